"""Countdown: reach the target with + - * / from the given numbers, each used at most once.

question   3 5 7 25:41       level = how many numbers
steps      25-7=18 / 18*3=54 / ...      each takes two of the numbers at hand and puts back the result
answer     an expression; its canonical form is the answer, never the value that it reaches
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

from ramify.describe import method
from ramify.errors import require
from ramify.tasks.pocket import expression
from ramify.tasks.pocket.dice import Dice
from ramify.tasks.pocket.expression import Tree, apply
from ramify.tasks.pocket.family import EFFORTS, Attempt, body_of, draw_questions
from ramify.tasks.pocket.trace import Parsed, Step, keeps, last_answer, steps
from ramify.types import Question

__all__ = ["Countdown", "Hand", "reachable", "solution"]

LARGEST = 25  # a given number
TARGETS = range(10, 100)
STEP = 999  # a value on the way, in generated solutions; answers may go beyond
_BODY = re.compile(r"([1-9][0-9]?(?: [1-9][0-9]?)*):([1-9][0-9]{0,3})")


class Problem(NamedTuple):
    """``path`` and ``tree`` are the generator's own solution, which no question carries."""

    numbers: tuple[int, ...]
    target: int
    path: tuple[str, ...] = ()
    tree: Tree = 0


@method
class Countdown:
    """Countdown with ``level`` numbers at one reasoning effort. Not every number need be used.

    >>> task = Countdown(3)
    >>> question = task.questions(1)[0]
    >>> question.prompt
    'M24 20 2:34\\n'
    >>> parsed = task.parse("20/2=10\\n24+10=34\\n>20/2+24\\n", question)
    >>> parsed.answer, task.verify(question, parsed.answer)
    ('20/2+24', 1.0)
    >>> task.parse("24+2=26\\n>26+8\\n", question).status  # 26 and 8 are not given
    'illegal'
    """

    level: int
    effort: str = "medium"

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    family: ClassVar[str] = "countdown"
    levels: ClassVar[range] = range(2, 7)

    def __post_init__(self) -> None:
        require(self.level in self.levels, "Countdown.level", self.level, "use 2 to 6 numbers")
        require(self.effort in EFFORTS, "Countdown.effort", self.effort, f"use one of {EFFORTS}")

    # What inference may see, and what it may not.

    def questions(self, n: int, run: str = "pocket", split: str = "eval") -> tuple[Question, ...]:
        """``n`` distinct questions of one split, each solvable with all its numbers."""
        return draw_questions(self, n, run, split)

    def references(self, questions: tuple[Question, ...] | list[Question]) -> tuple[str, ...]:
        """Numbers and target: what makes an expression right. There are many right answers."""
        return tuple(body_of(question) for question in questions)

    def parse(self, text: str, question: Question | None = None) -> Parsed:
        """The canonical form of the last answer line. With the question, its numbers count too."""
        reasoning, raw = last_answer(text)
        if raw is None:
            return Parsed(reasoning, None, None, "missing")
        tree = expression.read(raw)
        if tree is None:
            return Parsed(reasoning, None, raw, "malformed")
        if expression.value(tree) is None or (question is not None and not _given(tree, _problem(question).numbers)):
            return Parsed(reasoning, None, raw, "illegal")
        return Parsed(reasoning, expression.canonical(tree), raw, "ok")

    def grade(self, answer: str | None, reference: str) -> float:
        """1.0 for a legal expression that reaches the target of ``reference``."""
        problem = _read(reference)
        require(problem is not None, "reference", reference, "use a reference of this family")
        assert problem is not None
        tree = None if answer is None else expression.read(answer)
        return float(tree is not None and _reaches(tree, problem))

    def verify(self, question: Question, answer: str | None) -> float:
        """The programmatic verifier: no reference is needed, the question says what is right."""
        return self.grade(answer, body_of(question))

    def check(self, question: Question, text: str, attempts: int | None = 1) -> bool:
        """H(x, z) of ``trace.keeps``: wrong or illegal steps, and hands that cannot reach the target."""
        return keeps(self.derivation(question), text, attempts)

    def steps(self, question: Question, text: str) -> tuple[Step, ...]:
        """The ground truth of every line."""
        return steps(self.derivation(question), text, expression.holds)

    def derivation(self, question: Question) -> Hand:
        """All numbers at hand."""
        problem = _problem(question)
        return Hand(frozenset([tuple(sorted((n, str(n)) for n in problem.numbers))]), problem)

    # The generator.

    def problem(self, dice: Dice) -> Problem:
        """Random numbers, a random way to combine them all, and where it led if that is a target."""
        while True:
            numbers = tuple(1 + dice.below(LARGEST) for _ in range(self.level))
            path, tree, target = _wander(numbers, dice)
            if target in TARGETS and target not in numbers:
                return Problem(numbers, target, path, tree)

    def body(self, problem: Problem) -> str:
        """Numbers, a colon, the target."""
        return f"{' '.join(map(str, problem.numbers))}:{problem.target}"

    def canonical(self, problem: Problem) -> str:
        """The split ignores the order of the numbers."""
        return f"{' '.join(map(str, sorted(problem.numbers)))}:{problem.target}"

    def solve(self, problem: Problem, dice: Dice, slip: float = 0.0) -> Attempt:  # noqa: ARG002
        """The generator's own solution."""
        path = list(problem.path)
        return Attempt(path, path, expression.render(problem.tree))

    def stray(self, problem: Problem, dice: Dice) -> Attempt | None:
        """A way that leads elsewhere; every third one claims in its last step to have arrived."""
        path, tree, end = _wander(problem.numbers, dice)
        if end == problem.target or any(line.endswith(f"={problem.target}") for line in path):
            return None
        true = list(path)
        written = list(true)
        if dice.below(3) == 0:
            written[-1] = f"{true[-1].partition('=')[0]}={problem.target}"
        return Attempt(written, true, expression.render(tree))


@dataclass(frozen=True, slots=True)
class Hand:
    """The numbers at hand and the expressions behind them. Which of two equal ones was taken stays open."""

    hands: frozenset[tuple[tuple[int, str], ...]]  # each a sorted tuple of (value, canonical expression)
    problem: Problem
    fresh: bool = True

    def step(self, line: str) -> Hand | None:
        parts = expression.read_step(line)
        if parts is None or apply(parts[1], parts[0], parts[2]) != parts[3]:
            return None
        left = frozenset(after for hand in self.hands for after in _take(hand, *parts))
        return Hand(left, self.problem, fresh=False) if left else None

    def accepts(self, answer: str) -> bool:
        tree = expression.read(answer)
        if tree is None or not _reaches(tree, self.problem):
            return False
        text = expression.canonical(tree)
        return self.fresh or any(text == made for hand in self.hands for _, made in hand)

    def alive(self) -> bool:
        return any(reachable(tuple(n for n, _ in hand), self.problem.target) for hand in self.hands)


def reachable(numbers: tuple[int, ...], target: int) -> bool:
    """Whether some legal steps lead from these numbers to the target: an exact search.

    >>> reachable((3, 5, 25), 40), reachable((2, 2), 5)
    (True, False)
    """
    return _reachable(tuple(sorted(numbers)), target)


@lru_cache(maxsize=1 << 18)
def _reachable(numbers: tuple[int, ...], target: int) -> bool:
    if target in numbers:
        return True
    if len(numbers) == 2:
        a, b = numbers  # a <= b
        return target in (a + b, a * b, b - a) or (b % a == 0 and b // a == target)
    return any(_reachable(after, target) for after in _neighbours(numbers))


def _neighbours(numbers: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Every sorted tuple that one legal step leads to; ``numbers`` ascend."""
    found: set[tuple[int, ...]] = set()
    for i, a in enumerate(numbers):
        for j in range(i + 1, len(numbers)):
            b = numbers[j]
            rest = numbers[:i] + numbers[i + 1 : j] + numbers[j + 1 :]
            made = {a + b, a * b}
            if b > a:
                made.add(b - a)
            if b % a == 0:
                made.add(b // a)
            found.update(tuple(sorted((*rest, c))) for c in made)
    return found


def solution(question: Question) -> Tree | None:
    """Some tree that reaches the target, by exhaustive search; None if there is none."""
    problem = _problem(question)
    return _solution(tuple((n, n) for n in problem.numbers), problem.target)


def _solution(items: tuple[tuple[int, Tree], ...], target: int) -> Tree | None:
    for number, tree in items:
        if number == target:
            return tree
    for i, (a, first) in enumerate(items):
        for j, (b, second) in enumerate(items):
            for op in "+-*/" if i != j else "":
                c = apply(op, a, b)
                if c is None:
                    continue
                rest = tuple(item for k, item in enumerate(items) if k not in (i, j))
                made: Tree = (op, first, second)
                # The exact search first: it is cached, and spares building the trees of a dead end.
                if reachable((*(n for n, _ in rest), c), target):
                    return _solution((*rest, (c, made)), target)
    return None


def _read(body: str) -> Problem | None:
    found = _BODY.fullmatch(body)
    if found is None:
        return None
    return Problem(tuple(map(int, found.group(1).split(" "))), int(found.group(2)))


def _problem(question: Question) -> Problem:
    problem = _read(body_of(question))
    require(problem is not None, "Question.prompt", question.prompt, "use a question of this family")
    assert problem is not None
    return problem


def _given(tree: Tree, numbers: tuple[int, ...]) -> bool:
    return Counter(expression.leaves(tree)) <= Counter(numbers)


def _reaches(tree: Tree, problem: Problem) -> bool:
    return expression.value(tree) == problem.target and _given(tree, problem.numbers)


def _take(hand: tuple[tuple[int, str], ...], a: int, op: str, b: int, c: int) -> set[tuple[tuple[int, str], ...]]:
    """Every hand after ``a op b=c``: each way to pick the two numbers."""
    found = set()
    for i, (first, left) in enumerate(hand):
        if first != a:
            continue
        for j, (second, right) in enumerate(hand):
            if i == j or second != b:
                continue
            tree = expression.read(f"({left}){op}({right})")
            assert tree is not None
            rest = [item for k, item in enumerate(hand) if k not in (i, j)]
            found.add(tuple(sorted([*rest, (c, expression.canonical(tree))])))
    return found


def _wander(numbers: tuple[int, ...], dice: Dice) -> tuple[tuple[str, ...], Tree, int]:
    """Random legal steps until one number is left, the larger operand first."""
    items: list[tuple[int, Tree]] = [(n, n) for n in numbers]
    path = []
    while len(items) > 1:
        a, left = items.pop(dice.below(len(items)))
        b, right = items.pop(dice.below(len(items)))
        if a < b:
            a, left, b, right = b, right, a, left
        op = _operation(a, b, dice)
        c = apply(op, a, b) or 0
        path.append(f"{a}{op}{b}={c}")
        items.append((c, (op, left, right)))
    return tuple(path), items[0][1], items[0][0]


def _operation(a: int, b: int, dice: Dice) -> str:
    """A step that changes something and stays small, for a >= b."""
    roll = dice.random()
    if b > 1 and roll < 0.25 and a * b <= STEP:
        return "*"
    if b > 1 and roll < 0.4 and a % b == 0:
        return "/"
    return "-" if roll > 0.7 and a > b else "+"

"""Nested arithmetic: evaluate a bracketed expression one innermost operation at a time.

question   ((3+14)*2)-5        level = the number of operations
steps      3+14=17 / 17*2=34 / 34-5=29
answer     29
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from ramify.describe import method
from ramify.errors import require
from ramify.tasks.pocket import expression
from ramify.tasks.pocket.dice import Dice
from ramify.tasks.pocket.expression import Tree, apply
from ramify.tasks.pocket.family import EFFORTS, Attempt, body_of, draw_questions, wrong_number
from ramify.tasks.pocket.trace import Parsed, Step, keeps, last_answer, steps
from ramify.types import Question

__all__ = ["Arithmetic", "Reduction", "columns"]

LARGEST = 999  # every value on the way
OPERAND = 20
_NUMBER = re.compile(r"[1-9][0-9]{0,6}")

Compute: TypeAlias = Callable[[str, int, int], "int | None"]


@method
class Arithmetic:
    """Nested arithmetic with ``level`` operations at one reasoning effort.

    >>> task = Arithmetic(3)
    >>> question = task.questions(1)[0]
    >>> question.prompt, task.references([question])
    ('M((6*10)-1)-8\\n', ('51',))
    >>> task.parse("6*10=60\\n60-1=59\\n59-8=51\\n>51\\n").answer
    '51'
    """

    level: int
    effort: str = "medium"

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    family: ClassVar[str] = "arithmetic"
    levels: ClassVar[range] = range(1, 10)

    def __post_init__(self) -> None:
        require(self.level in self.levels, "Arithmetic.level", self.level, "use 1 to 9 operations")
        require(self.effort in EFFORTS, "Arithmetic.effort", self.effort, f"use one of {EFFORTS}")

    # What inference may see, and what it may not.

    def questions(self, n: int, run: str = "pocket", split: str = "eval") -> tuple[Question, ...]:
        """``n`` distinct questions of one split."""
        return draw_questions(self, n, run, split)

    def references(self, questions: tuple[Question, ...] | list[Question]) -> tuple[str, ...]:
        """The right answers, from the prompts alone."""
        return tuple(str(expression.value(_tree(question))) for question in questions)

    def parse(self, text: str, question: Question | None = None) -> Parsed:  # noqa: ARG002
        """The last complete answer line, a positive integer."""
        reasoning, raw = last_answer(text)
        if raw is None:
            return Parsed(reasoning, None, None, "missing")
        ok = _NUMBER.fullmatch(raw) is not None
        return Parsed(reasoning, raw if ok else None, raw, "ok" if ok else "malformed")

    def grade(self, answer: str | None, reference: str) -> float:
        """1.0 for the reference and 0.0 otherwise."""
        return float(answer is not None and answer == reference)

    def check(self, question: Question, text: str, attempts: int | None = 1) -> bool:
        """H(x, z) of ``trace.keeps``: steps must reduce an innermost operation of the expression, rightly."""
        return keeps(self.derivation(question), text, attempts)

    def steps(self, question: Question, text: str) -> tuple[Step, ...]:
        """The ground truth of every line."""
        return steps(self.derivation(question), text, expression.holds)

    def derivation(self, question: Question) -> Reduction:
        """Nothing derived yet."""
        tree = _tree(question)
        return Reduction(frozenset([tree]), str(expression.value(tree)))

    # The generator.

    def problem(self, dice: Dice) -> Tree:
        """A random tree whose every value is in [1, 999]: random neighbours merge until one is left."""
        trees: list[Tree] = [1 + dice.below(OPERAND) for _ in range(self.level + 1)]
        values: list[int] = [tree for tree in trees if isinstance(tree, int)]
        while len(trees) > 1:
            i = dice.below(len(trees) - 1)
            a, b = values[i], values[i + 1]
            op = _operation(a, b, dice)
            if op == "-" and a < b:
                trees[i], trees[i + 1], a, b = trees[i + 1], trees[i], b, a
            trees[i : i + 2] = [(op, trees[i], trees[i + 1])]
            values[i : i + 2] = [apply(op, a, b) or 0]
        return trees[0]

    def body(self, problem: Tree) -> str:
        """Every bracket but the outermost."""
        return _bracketed(problem)[1:-1]

    def canonical(self, problem: Tree) -> str:
        """The split ignores the order and grouping of sums and products."""
        return expression.canonical(problem)

    def solve(self, problem: Tree, dice: Dice, slip: float = 0.0) -> Attempt:
        """The derivation from the left. With a ``slip``, the work of a teacher of two minds.

        With probability ``slip`` it reckons by ``columns``, always in the same words. Otherwise it is right and says
        so in many ways: about half of the steps are checked again, in a random order. Where the columns lead out of
        the numbers, it is right too.
        """
        misled = _derived(problem, columns) if slip and dice.random() < slip else None
        if misled is not None:
            return misled
        right = _derived(problem, apply)
        assert right is not None  # every value of a problem is a positive integer
        if not slip:
            return right
        return replace(right, checked=[line for line in dice.shuffled(right.written) if dice.random() < 0.5])

    def stray(self, problem: Tree, dice: Dice) -> Attempt | None:
        """A derivation with one wrong result, carried on faithfully; None if it leads out of the numbers."""
        written: list[str] = []
        true: list[str] = []
        wrong = dice.below(self.level)

        def spoilt(op: str, a: int, b: int) -> int | None:
            c = apply(op, a, b)
            return wrong_number(c, dice) if c is not None and len(written) == wrong else c

        answer = _reduce(problem, written, true, spoilt)
        return None if answer is None else Attempt(written, true, str(answer))


def columns(op: str, a: int, b: int) -> int | None:
    """Sums and differences without carrying or borrowing at the units: a misconception, always the same.

    The ten of a sum is lost; of a difference the smaller digit is taken from the larger ("smaller from larger",
    Brown and Burton, 1978).

    >>> columns("+", 17, 5), columns("-", 52, 38), columns("*", 7, 8)
    (12, 26, 56)
    """
    c = apply(op, a, b)
    if c is None or op == "*":
        return c
    if op == "+":
        return c - 10 if a % 10 + b % 10 >= 10 and c > 10 else c
    return 10 * (a // 10 - b // 10) + abs(a % 10 - b % 10)


@dataclass(frozen=True, slots=True)
class Reduction:
    """What is left to evaluate. Equal operations may be taken in any place, so several trees are possible."""

    trees: frozenset[Tree]
    answer: str

    def step(self, line: str) -> Reduction | None:
        parts = expression.read_step(line)
        if parts is None or apply(parts[1], parts[0], parts[2]) != parts[3]:
            return None
        a, op, b, c = parts
        left = frozenset(after for tree in self.trees for after in _contract(tree, (op, a, b), c))
        return Reduction(left, self.answer) if left else None

    def accepts(self, answer: str) -> bool:
        return answer == self.answer

    def alive(self) -> bool:
        return True  # a faithful reduction can always be finished


def _tree(question: Question) -> Tree:
    tree = expression.read(body_of(question))
    require(tree is not None, "Question.prompt", question.prompt, "use a question of this family")
    assert tree is not None
    return tree


def _contract(tree: Tree, redex: Tree, result: int) -> list[Tree]:
    """The trees in which one occurrence of ``redex`` has become its result."""
    if isinstance(tree, int):
        return []
    if tree == redex:
        return [result]
    op, left, right = tree
    inside: list[Tree] = [(op, after, right) for after in _contract(left, redex, result)]
    return inside + [(op, left, after) for after in _contract(right, redex, result)]


def _operation(a: int, b: int, dice: Dice) -> str:
    roll = dice.random()
    if roll < 0.3 and a > 1 and b > 1 and a * b <= LARGEST:
        return "*"
    # Of two equal numbers only the sum is positive, and it is small: equal large ones are too rare to matter.
    return "-" if (roll < 0.65 and a != b) or (a + b > LARGEST and a != b) else "+"


def _bracketed(tree: Tree) -> str:
    return str(tree) if isinstance(tree, int) else f"({_bracketed(tree[1])}{tree[0]}{_bracketed(tree[2])})"


def _derived(tree: Tree, compute: Compute) -> Attempt | None:
    """Everything from the left; None if it leads out of the numbers."""
    written: list[str] = []
    answer = _reduce(tree, written, written, compute)
    return None if answer is None else Attempt(written, written, str(answer))


def _reduce(tree: Tree, written: list[str], true: list[str], compute: Compute) -> int | None:
    """Evaluate from the left, as ``compute`` has it; ``true`` keeps the right result of every step."""
    if isinstance(tree, int):
        return tree
    a = _reduce(tree[1], written, true, compute)
    b = _reduce(tree[2], written, true, compute) if a is not None else None
    if a is None or b is None:
        return None
    op = tree[0]
    said = compute(op, a, b)
    if said is None:
        return None
    if true is not written:
        true.append(f"{a}{op}{b}={apply(op, a, b)}")
    written.append(f"{a}{op}{b}={said}")
    return said

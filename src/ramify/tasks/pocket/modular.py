"""Dependency chains modulo 97: definitions in shuffled order, one variable asked for.

question   c=b-a b=a*2 a=60:c       level = how many variables
steps      a=60 / b=60*2=23 / c=23-60=60     any variable whose operands are known, each once
answer     60
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, NamedTuple, TypeAlias

from ramify.describe import method
from ramify.errors import require
from ramify.tasks.pocket.dice import Dice
from ramify.tasks.pocket.family import EFFORTS, Attempt, body_of, draw_questions, wrong_number
from ramify.tasks.pocket.trace import Parsed, Step, keeps, last_answer, steps
from ramify.types import Question

__all__ = ["MODULUS", "Known", "Modular"]

MODULUS = 97
LETTERS = "abcdefghijklmnopqrstuvwxyz"
BACK = 3  # an operand is one of the last three variables, so that chains are long
ROOTS = 0.1  # of the variables after the first are constants

_NUMBER = r"(?:0|[1-9][0-9]?)"
_DEFINITION = re.compile(rf"([a-z])=(?:({_NUMBER})|([a-z])([-+*])([a-z]|{_NUMBER}))")
_STEP = re.compile(rf"([a-z])=(?:({_NUMBER})([-+*])({_NUMBER})=)?({_NUMBER})")
_ANSWER = re.compile(_NUMBER)

Definition: TypeAlias = "int | tuple[str, str, str | int]"  # a constant, or (op, variable, variable or constant)


class Problem(NamedTuple):
    """Definitions in the order of the prompt."""

    definitions: dict[str, Definition]
    asked: str


@method
class Modular:
    """A dependency chain of ``level`` variables at one reasoning effort.

    >>> task = Modular(3)
    >>> question = task.questions(1)[0]
    >>> question.prompt, task.references([question])
    ('Mk=m+16 m=41 z=m-k:z\\n', ('81',))
    """

    level: int
    effort: str = "medium"

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    family: ClassVar[str] = "modular"
    levels: ClassVar[range] = range(2, 15)

    def __post_init__(self) -> None:
        require(self.level in self.levels, "Modular.level", self.level, "use 2 to 14 variables")
        require(self.effort in EFFORTS, "Modular.effort", self.effort, f"use one of {EFFORTS}")

    # What inference may see, and what it may not.

    def questions(self, n: int, run: str = "pocket", split: str = "eval") -> tuple[Question, ...]:
        """``n`` distinct questions of one split."""
        return draw_questions(self, n, run, split)

    def references(self, questions: tuple[Question, ...] | list[Question]) -> tuple[str, ...]:
        """The right answers, from the prompts alone."""
        return tuple(str(_value(problem, problem.asked, {})) for problem in map(_problem, questions))

    def parse(self, text: str, question: Question | None = None) -> Parsed:  # noqa: ARG002
        """The last complete answer line, a residue in [0, 97)."""
        reasoning, raw = last_answer(text)
        if raw is None:
            return Parsed(reasoning, None, None, "missing")
        if _ANSWER.fullmatch(raw) is None:
            return Parsed(reasoning, None, raw, "malformed")
        legal = int(raw) < MODULUS
        return Parsed(reasoning, raw if legal else None, raw, "ok" if legal else "illegal")

    def grade(self, answer: str | None, reference: str) -> float:
        """1.0 for the reference and 0.0 otherwise."""
        return float(answer is not None and answer == reference)

    def check(self, question: Question, text: str, attempts: int | None = 1) -> bool:
        """H(x, z) of ``trace.keeps``: a step must evaluate a definition from known values, rightly, once."""
        return keeps(self.derivation(question), text, attempts)

    def steps(self, question: Question, text: str) -> tuple[Step, ...]:
        """The ground truth of every line."""
        return steps(self.derivation(question), text, _holds)

    def derivation(self, question: Question) -> Known:
        """No value known yet."""
        problem = _problem(question)
        return Known({}, problem, str(_value(problem, problem.asked, {})))

    # The generator.

    def problem(self, dice: Dice) -> Problem:
        """Each variable is a constant or an operation on recent ones; the last one is asked for."""
        names = dice.shuffled(LETTERS)[: self.level]
        made: dict[str, Definition] = {names[0]: dice.below(MODULUS)}
        for i in range(1, self.level):
            last = i == self.level - 1
            made[names[i]] = dice.below(MODULUS) if not last and dice.random() < ROOTS else _operation(names[:i], dice)
        return Problem({name: made[name] for name in dice.shuffled(names)}, names[-1])

    def body(self, problem: Problem) -> str:
        """Definitions, a colon, the variable asked for."""
        return f"{' '.join(map(_write, problem.definitions.items()))}:{problem.asked}"

    def canonical(self, problem: Problem) -> str:
        """The split sees what the asked variable depends on; names, order and idle variables do not count."""
        return _signature(problem, problem.asked, {})

    def solve(self, problem: Problem, dice: Dice, slip: float = 0.0) -> Attempt:  # noqa: ARG002
        """Evaluate what can be evaluated, in random order, until the asked variable is known."""
        written, answer = _forward(problem, dice, -1, [])
        return Attempt(written, written, answer)

    def stray(self, problem: Problem, dice: Dice) -> Attempt | None:
        """A derivation with one wrong step (a wrong result or a wrong look-up), carried on faithfully."""
        true: list[str] = []
        written, answer = _forward(problem, dice, dice.below(self.level), true)
        return None if written == true else Attempt(written, true, answer)


@dataclass(frozen=True, slots=True)
class Known:
    """The values derived so far."""

    values: dict[str, int]
    problem: Problem
    answer: str

    def step(self, line: str) -> Known | None:
        found = _STEP.fullmatch(line)
        name = found.group(1) if found else ""
        definition = self.problem.definitions.get(name)
        if definition is None or name in self.values:
            return None
        if not isinstance(definition, int) and any(
            isinstance(part, str) and part not in self.values for part in definition[1:]
        ):
            return None
        text, result = _evaluate(name, definition, self.values)
        return Known({**self.values, name: result}, self.problem, self.answer) if line == text else None

    def accepts(self, answer: str) -> bool:
        return answer == self.answer

    def alive(self) -> bool:
        return True  # right values can always be carried on to the asked variable


def _modular(op: str, a: int, b: int) -> int:
    return (a + b if op == "+" else a - b if op == "-" else a * b) % MODULUS


def _holds(line: str) -> bool:
    """Whether the equation of a step is true by itself; a bare ``a=60`` only states a value."""
    found = _STEP.fullmatch(line)
    if found is None:
        return False
    _, a, op, b, c = found.groups()
    return op is None or _modular(op, int(a), int(b)) == int(c)


def _operation(names: list[str], dice: Dice) -> Definition:
    recent = names[-BACK:]
    left = dice.choice(recent)
    roll = dice.random()
    if roll < 0.25:
        return "*", left, 2 + dice.below(8)
    op = "+" if roll < 0.65 else "-"
    if len(recent) > 1 and dice.random() < 0.5:
        return op, left, dice.choice([name for name in recent if name != left])
    return op, left, 1 + dice.below(MODULUS - 1)


def _write(item: tuple[str, Definition]) -> str:
    name, definition = item
    if isinstance(definition, int):
        return f"{name}={definition}"
    op, left, right = definition
    return f"{name}={left}{op}{right}"


def _evaluate(name: str, definition: Definition, values: dict[str, int]) -> tuple[str, int]:
    """The step that derives a variable, and its value."""
    if isinstance(definition, int):
        return f"{name}={definition}", definition
    op, left, right = definition
    a, b = values[left], values[right] if isinstance(right, str) else right
    c = _modular(op, a, b)
    return f"{name}={a}{op}{b}={c}", c


def _forward(problem: Problem, dice: Dice, wrong: int, true: list[str]) -> tuple[list[str], str]:
    """Derive known variables in random order until the asked one. Step number ``wrong`` goes wrong."""
    values: dict[str, int] = {}
    written: list[str] = []
    left = dict(problem.definitions)
    while problem.asked not in values:
        ready = [name for name, definition in left.items() if _ready(definition, values)]
        name = dice.choice(ready)
        definition = left.pop(name)
        text, result = _evaluate(name, definition, values)
        true.append(text)
        if len(written) == wrong:
            text, result = _misstep(name, definition, values, text, result, dice)
        values[name] = result
        written.append(text)
    return written, str(values[problem.asked])


def _ready(definition: Definition, values: dict[str, int]) -> bool:
    if isinstance(definition, int):
        return True
    return definition[1] in values and (not isinstance(definition[2], str) or definition[2] in values)


def _misstep(
    name: str, definition: Definition, values: dict[str, int], text: str, result: int, dice: Dice
) -> tuple[str, int]:
    """A wrong result, or another variable's value in place of the right one."""
    if not isinstance(definition, int) and len(values) > 1 and dice.random() < 0.5:
        other = dice.choice([n for n in values if n != definition[1]])
        return _evaluate(name, definition, {**values, definition[1]: values[other]})
    said = wrong_number(result, dice, least=0) % MODULUS
    return f"{text.rpartition('=')[0]}={said}", said


def _value(problem: Problem, name: str, values: dict[str, int]) -> int:
    """The value of a variable by following its definition, with what is known kept in ``values``."""
    if name not in values:
        definition = problem.definitions[name]
        for part in () if isinstance(definition, int) else definition[1:]:
            if isinstance(part, str):
                _value(problem, part, values)
        values[name] = _evaluate(name, definition, values)[1]
    return values[name]


def _signature(problem: Problem, name: str, seen: dict[str, str]) -> str:
    """A hash of all that a variable depends on, the same under renaming, reordering and a + b = b + a."""
    if name not in seen:
        definition = problem.definitions[name]
        if isinstance(definition, int):
            return seen.setdefault(name, str(definition))
        op, left, right = definition
        parts = [_signature(problem, p, seen) if isinstance(p, str) else f"={p}" for p in (left, right)]
        text = op.join(sorted(parts) if op == "+" else parts)
        seen[name] = blake2b(text.encode(), digest_size=8).hexdigest()
    return seen[name]


def _problem(question: Question) -> Problem:
    problem = _read(body_of(question))
    require(problem is not None, "Question.prompt", question.prompt, "use a question of this family")
    assert problem is not None
    return problem


def _read(body: str) -> Problem | None:
    """A strict reader: every operand is defined, nothing depends on itself."""
    listed, colon, asked = body.partition(":")
    made: dict[str, Definition] = {}
    for text in listed.split(" "):
        found = _DEFINITION.fullmatch(text)
        if found is None or found.group(1) in made:
            return None
        name, constant, left, op, right = found.groups()
        made[name] = int(constant) if constant else (op, left, int(right) if right.isdigit() else right)
    known: dict[str, int] = {}
    for _ in made:
        known.update((name, 0) for name, definition in made.items() if _ready(definition, known))
    return Problem(made, asked) if colon and asked in made and len(known) == len(made) else None

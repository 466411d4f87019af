"""What the three families share: prompts, drawing questions, and the small change of wrong attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Protocol

from ramify.errors import InvalidValue, require
from ramify.tasks.pocket.dice import Dice
from ramify.tasks.pocket.split import SPLITS, split_of
from ramify.types import Key, Question

__all__ = [
    "EFFORTS",
    "TAGS",
    "Attempt",
    "Family",
    "body_of",
    "draw_problem",
    "draw_questions",
    "prompt_of",
    "wrong_number",
]

EFFORTS = ("low", "medium", "high")
TAGS = {"low": "L", "medium": "M", "high": "H"}
MAX_TRIES = 10_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt as lines. ``true[i]`` is line i as it should be; where they differ, a check finds it."""

    written: list[str]
    true: list[str]
    answer: str
    checked: Sequence[str] = ()  # lines that are checked below high effort, where every line is


class Family(Protocol):
    """A generated task at one level and effort. ``Any`` is the family's own problem type."""

    family: ClassVar[str]
    levels: ClassVar[range]

    @property
    def level(self) -> int: ...

    @property
    def effort(self) -> str: ...

    def problem(self, dice: Dice) -> Any: ...

    def body(self, problem: Any) -> str: ...

    def canonical(self, problem: Any) -> str: ...

    def solve(self, problem: Any, dice: Dice, slip: float = 0.0) -> Attempt: ...

    def stray(self, problem: Any, dice: Dice) -> Attempt | None: ...


def prompt_of(effort: str, body: str) -> str:
    """A prompt is the effort tag, the problem, and a newline.

    >>> prompt_of("high", "3 5 7:16")
    'H3 5 7:16\\n'
    """
    return f"{TAGS[effort]}{body}\n"


def body_of(question: Question) -> str:
    """The problem of a question, without tag and newline."""
    prompt = question.prompt
    require(
        prompt[:1] in TAGS.values() and prompt.endswith("\n"),
        "Question.prompt",
        prompt,
        "use a pocket prompt",
    )
    return prompt[1:-1]


def draw_problem(task: Family, dice: Dice, split: str) -> Any:
    """A problem of this split: others are thrown back."""
    for _ in range(MAX_TRIES):
        problem = task.problem(dice)
        if split_of(task.canonical(problem)) == split:
            return problem
    raise InvalidValue(f"{task!r} has no {split} problem in {MAX_TRIES} draws: use a higher level")


def draw_questions(task: Family, n: int, run: str, split: str) -> tuple[Question, ...]:
    """``n`` questions, no two equivalent. Question i does not depend on ``n`` nor on the effort."""
    require(split in SPLITS, "split", split, f"use one of {SPLITS}")
    found: dict[str, Question] = {}
    for sample in range(20 * n + 100):
        if len(found) == n:
            break
        dice = Dice(Key(run, f"{task.family}/{task.level}/{split}", sample, "question"))
        problem = draw_problem(task, dice, split)
        canonical = task.canonical(problem)
        if canonical not in found:
            found[canonical] = _question(task, task.body(problem), canonical)
    require(len(found) == n, f"{task!r}.questions(n)", n, f"there are only about {len(found)} different ones")
    return tuple(found.values())


def _question(task: Family, body: str, canonical: str) -> Question:
    name = blake2b(canonical.encode(), digest_size=5).hexdigest()
    groups = {"family": task.family, "level": str(task.level), "effort": task.effort}
    return Question(f"{task.family}-{task.level}-{task.effort}-{name}", prompt_of(task.effort, body), groups)


def wrong_number(right: int, dice: Dice, least: int = 1) -> int:
    """A plausible wrong result: off by a little, by a carry, or with two digits exchanged.

    >>> sorted({wrong_number(27, Dice(Key("run", "", i, "slip"))) for i in range(100)})
    [17, 25, 26, 28, 29, 37, 72]
    """
    digits = str(right)
    options = [right - 1, right + 1, right - 2, right + 2, right - 10, right + 10, int(digits[::-1])]
    options = [number for number in options if number >= least and number != right]
    return dice.choice(options)

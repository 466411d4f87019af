"""The verbs that benchmarks share. A benchmark is a class with these as its methods, and a ``spec`` of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from ramify.errors import InvalidValue, is_whole, require
from ramify.tasks.checking.ladder import BOTTOM, OTHER, SAME, Checked, Ladder
from ramify.tasks.extract.boxed import Boxed
from ramify.tasks.extract.choice import Letter
from ramify.tasks.extract.parsed import Parsed
from ramify.tasks.loading.spec import Item, Spec, load, question_of
from ramify.types import Question

__all__ = [
    "CHECKS",
    "FORMS",
    "Bench",
    "checked_by",
    "checked_exactly",
    "fields_ok",
    "grade",
    "items",
    "parse_boxed",
    "parse_letter",
    "questions",
    "references",
]

CHECKS = ("answers", "count", "none")
FORMS = ("canonical", "literal")


class Bench(Protocol):
    """What the shared verbs need of a benchmark."""

    spec: ClassVar[Spec]

    @property
    def source(self) -> str: ...

    @property
    def verify(self) -> str: ...


class Checking(Protocol):
    def verdicts(self, pairs: Sequence[tuple[str | None, str]]) -> list[Checked]: ...


class Voting(Protocol):
    @property
    def vote(self) -> str: ...

    @property
    def ladder(self) -> Ladder: ...


def fields_ok(self: Bench) -> None:
    """The check of the fields that benchmarks share."""
    name = type(self).__name__
    require(self.source, f"{name}.source", self.source, "use a file, a folder, or 'hub'")
    require(self.verify in CHECKS, f"{name}.verify", self.verify, f"use one of {', '.join(CHECKS)}")
    vote = getattr(self, "vote", "canonical")
    require(vote in FORMS, f"{name}.vote", vote, f"use one of {', '.join(FORMS)}")


def items(self: Bench) -> tuple[Item, ...]:
    """Questions and references together, verified: for loaders and tests."""
    return load(self.spec, self.source, self.verify, getattr(self, "run", ""))


def questions(self: Bench, n: int | None = None) -> tuple[Question, ...]:
    """The questions, or the first ``n`` of them: what inference may see."""
    require(n is None or is_whole(n), "n", n, "use a number of questions >= 0")
    return tuple(question_of(self.spec, item) for item in items(self)[:n])


def references(self: Bench, asked: Sequence[Question]) -> tuple[str, ...]:
    """The references of these questions, by their ids: behind the wall."""
    known = {item.id: item.reference for item in items(self)}
    missing = [question.id for question in asked if question.id not in known]
    if missing:
        raise InvalidValue(f"questions {missing[:3]}: not of {self.spec.name} from {self.source!r}")
    return tuple(known[question.id] for question in asked)


def parse_boxed(self: Voting, text: str, question: Question | None = None) -> Parsed:  # noqa: ARG001
    """The last box after the reasoning, in the form that is voted on."""
    return Boxed(self.vote, limits=self.ladder.limits)(text)


def checked_by(self: Voting, pairs: Sequence[tuple[str | None, str]]) -> list[Checked]:
    """Verdicts on pairs ``(answer, reference)``, with the rung that decided each."""
    return self.ladder.many(pairs)


def checked_exactly(self: object, pairs: Sequence[tuple[str | None, str]]) -> list[Checked]:  # noqa: ARG001
    """Exact match of letters and words, case and spacing aside."""
    return [BOTTOM if a is None else SAME if _folded(a) == _folded(b) else OTHER for a, b in pairs]


def grade(self: Checking, answer: str | None, reference: str) -> float:
    """1.0 for a right answer and 0.0 otherwise; ⊥ is 0.0."""
    return float(self.verdicts([(answer, reference)])[0].equal)


def parse_letter(self: Bench, text: str, question: Question | None = None) -> Parsed:  # noqa: ARG001
    """The final option letter."""
    return Letter()(text)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())

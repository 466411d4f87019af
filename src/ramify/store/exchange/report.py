"""What an import found: counts of what was missing, what was dropped, and where."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

from ramify.errors import InvalidValue, require
from ramify.store.exchange.mapping import Mapping

__all__ = ["STRICTNESS", "Collector", "Problem", "Report", "Strictness", "clip"]

Strictness: TypeAlias = Literal["all", "structure", "nothing"]
STRICTNESS = ("all", "structure", "nothing")
SHOWN = 20  # problems kept with their place; the rest are counted


class Problem(NamedTuple):
    """One thing that was wrong, and where."""

    where: str  # "line 7", "row 7"
    column: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}, column {self.column!r}: {self.what}" if self.column else f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Report:
    """What was read, how its columns were understood, and all that was not as it should be."""

    path: str
    mapping: Mapping
    rows: int  # in the file
    blocks: int  # read one after the other, each forgotten before the next
    questions: int
    candidates: int
    widths: tuple[int, int]  # the fewest and the most candidates of a question
    missing: dict[str, int]  # column -> cells without a value: counted, never imputed
    dropped: dict[str, int]  # what -> rows or cells that could not be read (only if strict="nothing")
    problems: tuple[Problem, ...]  # the first of them
    notes: tuple[str, ...]

    def __str__(self) -> str:
        low, high = self.widths
        each = f"{low}" if low == high else f"{low} to {high}"
        lines = [f"{self.path}: {self.questions} questions x {each} = {self.candidates} candidates", str(self.mapping)]
        lines += [f"missing  {column}: {count} of {self.candidates}" for column, count in self.missing.items()]
        lines += [f"dropped  {what}: {count}" for what, count in self.dropped.items()]
        lines += [f"         {problem}" for problem in self.problems]
        return "\n".join(lines + [f"note     {note}" for note in self.notes])


@dataclass(slots=True)
class Collector:
    """Gathers problems while a file is read, and decides which of them are errors."""

    path: str
    strict: Strictness
    missing: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(self.strict in STRICTNESS, "strict", self.strict, f"use one of {', '.join(STRICTNESS)}")

    def broken(self, where: str, column: str, value: Any, what: str, remedy: str = "") -> None:
        """A structural problem: an error that names its place and the remedy, or counted if nothing is strict."""
        told = what if value is None else f"{clip(value)}: {what}"
        if self.strict != "nothing":
            self.fail(Problem(where, column, told + remedy))
        problem = Problem(where, column, told)
        self.dropped[what] += 1
        if len(self.problems) < SHOWN:
            self.problems.append(problem)

    def absent(self, column: str, count: int, where: str) -> None:
        """Missing values: counted, or an error if everything is strict. ``where`` is the first of them."""
        if count and self.strict == "all":
            self.fail(Problem(where, column, "nothing there, and strict='all' does not count missing values"))
        if count:
            self.missing[column] += count

    def note(self, note: str) -> None:
        self.notes[note] = None

    def fail(self, problem: Problem) -> NoReturn:
        raise InvalidValue(f"{self.path}: {problem}")


def clip(value: Any) -> str:
    """A value in a message: short, and without anything a terminal would obey."""
    shown = repr(value)
    shown = "".join(character if character.isprintable() else "?" for character in shown[:80])
    return shown + "..." if len(repr(value)) > 80 else shown

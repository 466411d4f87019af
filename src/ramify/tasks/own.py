"""A file of one's own: JSONL, JSON, CSV or Parquet, with columns that are guessed, shown, and overridden."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from ramify.bank.codes import either, is_bottom
from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require
from ramify.tasks.checking.ladder import Checked, Ladder
from ramify.tasks.extract.boxed import Boxed, last_box
from ramify.tasks.extract.choice import LastNumber, Letter
from ramify.tasks.extract.parsed import Parsed
from ramify.tasks.loading import bench
from ramify.tasks.loading.files import Record, records
from ramify.tasks.loading.options import with_options
from ramify.tasks.loading.spec import BOXED, stamp
from ramify.tasks.mmlupro import PROMPT
from ramify.types import Question

__all__ = ["Columns", "Own", "final"]

GUESSES = {
    "question": ("question", "problem", "prompt", "input", "query", "text", "task"),
    "answer": ("answer", "reference", "target", "gold", "label", "expected", "solution", "output", "answer_letter"),
    "id": ("id", "uuid", "question_id", "unique_id", "task_id", "idx", "index", "name"),
}
GROUPS = ("domain", "field", "level", "subject", "category", "difficulty", "type", "source", "topic")
KINDS = ("guess", "box", "letter", "number")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is what, and which of them were guessed."""

    question: str
    answer: str
    id: str  # empty: the position in the file
    groups: tuple[str, ...]
    options: bool
    kind: str
    guessed: tuple[str, ...]
    rows: int

    def __str__(self) -> str:
        def line(role: str, value: str) -> str:
            return f"{role:<9} {value}{'  (guessed)' if role in self.guessed else ''}"

        names = {"question": self.question, "answer": self.answer, "id": self.id or "position in the file"}
        names |= {
            "groups": ", ".join(self.groups) or "none",
            "kind": self.kind,
            "options": "yes" if self.options else "no",
        }
        return "\n".join([*(line(role, value) for role, value in names.items()), f"{'rows':<9} {self.rows}"])


@method
class Own:
    """Questions from a file. Columns that are not named are guessed; ``columns()`` shows what was understood.

    ``kind``: how answers are extracted and checked: "box" (mathematics), "letter", "number", or "guess": letters where
    all references are letters, else boxes. Of a reference that is a whole solution, what it marks as its answer counts:
    what follows ``####``, or the last box. A reference that is a list holds alternatives: any of them is right.
    """

    source: str
    question: str = ""
    answer: str = ""
    id: str = ""
    groups: tuple[str, ...] = ()
    kind: str = "guess"
    prompt: str = ""
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"

    def __post_init__(self) -> None:
        require(self.kind in KINDS, "Own.kind", self.kind, f"use one of {', '.join(KINDS)}")
        require(self.vote in bench.FORMS, "Own.vote", self.vote, f"use one of {', '.join(bench.FORMS)}")
        ok = not self.prompt or "{question}" in self.prompt
        require(ok, "Own.prompt", self.prompt, "say where the question goes: '{question}'")

    def records(self) -> list[Record]:
        """The records of the file."""
        return _records(self.source, stamp(self.source))

    def columns(self) -> Columns:
        """What each column is taken for. Print it."""
        return _columns(self, stamp(self.source))

    def guessed(self) -> Columns:
        """The columns that were named, and guesses for the others."""
        rows = self.records()
        have = tuple(dict.fromkeys(name for row in rows[:100] for name in row))
        roles, guessed = {}, []
        for role, names in GUESSES.items():
            given = getattr(self, role)
            roles[role] = given or next((name for name in names if name in have), "")
            guessed += [] if given or not roles[role] else [role]
            wanted = given or role != "id"
            missing = roles[role] not in have and wanted
            require(not missing, f"Own.{role}", given, f"name the column of the {role}; the file has {', '.join(have)}")
        groups = self.groups or tuple(name for name in GROUPS if name in have and name not in roles.values())
        missing = [name for name in self.groups if name not in have]
        require(not missing, "Own.groups", missing, f"the file has {', '.join(have)}")
        guessed += [] if self.groups or not groups else ["groups"]
        kind = self.kind
        if kind == "guess":
            golds = [gold for row in rows for gold in _golds(row.get(roles["answer"]))]
            kind = "letter" if golds and all(re.fullmatch("[A-Z]", gold) for gold in golds) else "box"
            guessed.append("kind")
        return Columns(
            roles["question"], roles["answer"], roles["id"], groups, "options" in have, kind, tuple(guessed), len(rows)
        )

    def questions(self, n: int | None = None) -> tuple[Question, ...]:
        """The questions, or the first ``n``."""
        require(n is None or is_whole(n), "n", n, "use a number of questions >= 0")
        columns, rows = self.columns(), self.records()
        prompt = self.prompt or (PROMPT if columns.kind == "letter" else BOXED)
        names = [str(row[columns.id]) if columns.id else str(i) for i, row in enumerate(rows)]
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise InvalidValue(f"Own.id = {columns.id!r}: {twice!r} is there twice; name another column")
        found = []
        for name, row in zip(names[:n], rows, strict=False):
            text = str(row[columns.question])
            text = with_options({**row, "question": text}) if columns.options and columns.kind == "letter" else text
            groups = {group: str(row[group]) for group in columns.groups if row.get(group) not in (None, "")}
            found.append(Question(name, prompt.replace("{question}", text), groups))
        return tuple(found)

    def references(self, asked: Sequence[Question]) -> tuple[str, ...]:
        """The references of these questions, by their ids."""
        columns = self.columns()
        rows = enumerate(self.records())
        known = {str(row[columns.id] if columns.id else i): (i, _golds(row.get(columns.answer))) for i, row in rows}
        missing = [question.id for question in asked if question.id not in known]
        require(not missing, "questions", missing[:3], f"ask for questions of {self.source}")
        lacking = [(question.id, known[question.id][0]) for question in asked if not known[question.id][1]]
        if lacking:
            such = ", ".join(f"record {i + 1} (question {name!r})" for name, i in lacking[:3])
            remedy = "nothing can be graded without it: fill it in, leave those records out, or name another column"
            much = f"no gold in {len(lacking)} of {len(asked)} records of {self.source}"
            raise InvalidValue(f"Own.answer = {columns.answer!r}: {much}: {such}; {remedy}")
        return tuple(either(known[question.id][1]) for question in asked)

    def parse(self, text: str, question: Question | None = None) -> Parsed:  # noqa: ARG002
        """The answer, by the kind of task that it is."""
        kind = self.kind if self.kind != "guess" else self.columns().kind
        if kind == "letter":
            return Letter("ABCDEFGHIJKLMNOPQRSTUVWXYZ")(text)
        return LastNumber(self.vote)(text) if kind == "number" else Boxed(self.vote, limits=self.ladder.limits)(text)

    def verdicts(self, pairs: Sequence[tuple[str | None, str]]) -> list[Checked]:
        """Verdicts on pairs ``(answer, reference)``."""
        return self.ladder.many(pairs)

    grade = bench.grade


def final(reference: str) -> str:
    r"""The answer of a reference that is a whole solution; else the reference as it is.

    >>> final("6 * 7 = 42\n#### 42"), final(r"So it is $\boxed{\frac12}$."), final("42")
    ('42', '\\frac12', '42')
    """
    if "####" in reference:
        return reference.rpartition("####")[2].strip()
    box, whole = last_box(reference)
    return box if box is not None and whole else reference


def _golds(value: Any) -> list[str]:
    """The right answers that a cell holds: one, the alternatives of a list, or none."""
    cells = value if isinstance(value, list | tuple) else [value]
    return [final(str(cell)) for cell in cells if not is_bottom(cell) and str(cell).strip()]


@lru_cache(maxsize=16)
def _records(source: str, changed: tuple[int, ...]) -> list[Record]:
    require(changed, "Own.source", source, "there is no such file")
    require(not Path(source).is_dir(), "Own.source", source, "that is a folder: name one file in it")
    found = records(Path(source))
    require(found, "Own.source", source, "the file has no records")
    return found


@lru_cache(maxsize=64)
def _columns(own: Own, changed: tuple[int, ...]) -> Columns:  # noqa: ARG001
    return own.guessed()

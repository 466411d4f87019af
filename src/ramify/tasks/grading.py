"""Grading a bank: outcomes behind the wall, and for every candidate which rung decided and what went wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Layer, Outcomes
from ramify.bank.codes import encode
from ramify.errors import require
from ramify.tasks.checking.ladder import RUNGS, Checked
from ramify.tasks.extract.parsed import ALSO, OK, REFUSED, STATUSES, TIMEOUT, UNREAD, Parsed
from ramify.types import Question

__all__ = ["Graded", "Task", "grade_bank", "literal_bank", "parsed_bank", "verdicts"]

CHECKED = {"ok": OK, "refused": REFUSED, "timeout": TIMEOUT, "unread": UNREAD}


class Task(Protocol):
    """Where questions come from, and what a text says. ``answers`` and ``turns`` declare the kind of task it is."""

    @property
    def answers(self) -> str: ...  # "verifiable" | "open-ended"

    @property
    def turns(self) -> str: ...  # "single-turn" | "interactive"

    def parse(self, text: str, question: Question | None = None) -> Parsed: ...

    def grade(self, answer: str | None, reference: str) -> float: ...


def verdicts(task: Task, pairs: Sequence[tuple[str | None, str]]) -> list[tuple[float, Checked]]:
    """Grades of pairs ``(answer, reference)`` with what decided them, where the task says so by ``verdicts``."""
    own: Callable[[Sequence[tuple[str | None, str]]], list[Checked]] | None = getattr(task, "verdicts", None)
    if own is not None:
        return [(float(checked.equal), checked) for checked in own(pairs)]
    grades = [task.grade(*pair) for pair in pairs]
    return [(grade, Checked(grade == 1.0, "exact")) for grade in grades]


@dataclass(frozen=True, slots=True, eq=False)
class Graded:
    """Outcomes of a bank, with the rung and the status of every candidate. Statuses other than ok are incorrect."""

    outcomes: Outcomes
    rung: Array  # [Q, N] int8 into RUNGS, -1 where not drawn
    status: Array  # [Q, N] int8 into STATUSES, -1 where not drawn
    disagree: Array  # [Q, N] bool: the checkers said different things
    unguarded: Array  # [Q, N] bool: accepted by math-verify alone
    why: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @property
    def rates(self) -> dict[str, float]:
        """The share of drawn candidates of each status. What was not extracted is in the denominator."""
        drawn = self.status[self.status >= 0]
        return {name: float((drawn == code).mean()) if drawn.size else 0.0 for code, name in enumerate(STATUSES)}

    @property
    def rungs(self) -> dict[str, int]:
        """How many candidates each rung decided."""
        return {name: int((self.rung == code).sum()) for code, name in enumerate(RUNGS)}

    def layers(self) -> dict[str, Layer]:
        """Rung and status as layers to keep with a bank, for diagnosis only: they were made with references."""
        made = {"rung": (self.rung, RUNGS), "status": (self.status, STATUSES)}
        return {
            name: Layer(
                np.where(codes >= 0, codes, np.nan).astype(np.float64), f"{name}: {', '.join(names)}", role="diagnostic"
            )
            for name, (codes, names) in made.items()
        }


def parsed_bank(bank: Bank, task: Task) -> tuple[Bank, Array]:
    """The bank with the answers that ``task`` reads in its texts, and the statuses ``[Q, N]`` of reading them."""
    require(bank.text is not None, "Bank.text", None, "this bank stores no texts: parse them where they are")
    assert bank.text is not None
    status = np.full(bank.shape, -1, dtype=np.int8)
    rows: list[list[str | None]] = []
    for q, question in enumerate(bank.questions):
        row: list[str | None] = [None] * bank.shape[1]
        for n in np.flatnonzero(bank.drawn[q]):
            parsed = task.parse(bank.text[q, n] or "", question)
            row[n] = parsed.answer
            status[q, n] = STATUSES.index(ALSO.get(parsed.status, parsed.status))
        rows.append(row)
    return with_answers(bank, rows), status


def literal_bank(bank: Bank, task: Task) -> Bank:
    """The bank whose answers are the literal strings that were extracted, for votes as the paper counts them."""
    assert bank.text is not None
    rows: list[list[str | None]] = []
    for q, question in enumerate(bank.questions):
        parsed = [task.parse(text or "", question) if text is not None else None for text in bank.text[q]]
        rows.append(
            [None if p is None or p.answer is None or p.artefact is None else p.artefact.strip() for p in parsed]
        )
    return with_answers(bank, rows)


def with_answers(bank: Bank, rows: Sequence[Sequence[str | None]]) -> Bank:
    """The bank with other answers, ``[Q][N]``; everything else stays."""
    codes, _, texts = encode(rows)
    wide = np.full(bank.shape, -1, dtype=np.int32)
    wide[:, : codes.shape[1]] = codes
    return dataclasses.replace(bank, answers=np.where(bank.drawn, wide, -1).astype(np.int32), answer_text=tuple(texts))


def grade_bank(bank: Bank, task: Task, references: Sequence[str], status: Array | None = None) -> Graded:
    """Grade every drawn candidate against its question's reference. ``status`` is of the parse, where it is known."""
    require(len(references) == len(bank.questions), "references", len(references), "give one for each question")
    places = [(q, int(n)) for q in range(len(bank.questions)) for n in np.flatnonzero(bank.drawn[q])]
    answers = [bank.answer(q, n) for q, n in places]
    found = verdicts(
        task, [(None if a is None else str(a), references[q]) for a, (q, _) in zip(answers, places, strict=True)]
    )
    values = np.full(bank.shape, np.nan)
    rung, codes = np.full(bank.shape, -1, dtype=np.int8), np.full(bank.shape, -1, dtype=np.int8)
    disagree, unguarded = np.zeros(bank.shape, dtype=bool), np.zeros(bank.shape, dtype=bool)
    why = {}
    for place, answer, (grade, checked) in zip(places, answers, found, strict=True):
        values[place], rung[place] = grade, RUNGS.index(checked.rung)
        missing = STATUSES[1] if status is None or status[place] < 0 else STATUSES[int(status[place])]
        codes[place] = STATUSES.index(CHECKED[checked.status] if answer is not None else missing)
        disagree[place], unguarded[place] = checked.disagree, checked.why.startswith("not guarded")
        if checked.why:
            why[place] = checked.why
    return Graded(Outcomes.of(bank, values, repr(task)), rung, codes, disagree, unguarded, why)

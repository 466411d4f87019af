"""The audit of extracted answers: where a grade may be the fault of extraction, and human overrides of it.

Behind the wall: an audit looks at references. ``ramify audit answers`` prints what ``audit_answers`` returns.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from ramify.bank import Bank, Layer, Outcomes
from ramify.errors import InvalidValue, require
from ramify.tasks.extract.parsed import STATUSES
from ramify.tasks.grading import Graded, Task, grade_bank, parsed_bank, with_answers

__all__ = ["RISKS", "Audit", "Override", "Overrides", "Risk", "audit_answers"]

RISKS = ("reference in text", "cap hit", "checkers disagree", "not guarded", *STATUSES[1:])
SHOWN = 160  # characters of the text around what was found


@dataclass(frozen=True, slots=True)
class Risk:
    """A candidate whose grade may be the fault of extraction or checking."""

    kind: str  # one of RISKS
    question: str
    run: str
    sample: int
    answer: str | None
    reference: str
    grade: float
    shown: str  # the end of the text, or where the reference stands in it


@dataclass(frozen=True, slots=True)
class Audit:
    """Every risk, in order of question and candidate, and how often each status and rung occurred."""

    risks: tuple[Risk, ...]
    candidates: int
    rates: dict[str, float]
    rungs: dict[str, int]
    overridden: int = 0  # candidates that people have decided

    @property
    def counts(self) -> dict[str, int]:
        """Risks by kind; a candidate may have several."""
        found = Counter(risk.kind for risk in self.risks)
        return {kind: found[kind] for kind in RISKS if found[kind]}


def audit_answers(
    bank: Bank, task: Task, references: Sequence[str], *, parse: bool = True, decided: Overrides | None = None
) -> Audit:
    """List the risks of a bank's grades. With ``parse`` its texts are read again, else its answers are taken.

    What people ``decided`` is applied first, and no risk any more.

    A reference of one or two characters is found in any text, so a short one counts only where it stands by itself
    after an "answer" or in a box; a longer one wherever it stands by itself.
    """
    status = None
    if parse and bank.text is not None:
        bank, status = parsed_bank(bank, task)
    settled = np.zeros(bank.shape, dtype=bool)
    if decided is not None:
        bank = decided.answers(bank)
        settled[tuple(zip(*decided.places(bank), strict=True))] = bool(decided.rows)
    graded = grade_bank(bank, task, references, status)
    found = []
    for q, n in zip(*np.nonzero(bank.drawn & ~settled), strict=True):
        text = "" if bank.text is None else str(bank.text[q, n] or "")
        for kind, shown in _kinds(bank, graded, int(q), int(n), text, references[q]):
            key = bank.key(int(q), int(n))
            grade = float(graded.outcomes.values[q, n])
            answer = bank.answer(int(q), int(n))
            found.append(Risk(kind, key.question, key.run, key.sample, answer, references[q], grade, shown))
    return Audit(tuple(found), int(bank.drawn.sum()), graded.rates, graded.rungs, int(settled.sum()))


def _kinds(bank: Bank, graded: Graded, q: int, n: int, text: str, reference: str) -> Iterable[tuple[str, str]]:
    wrong = graded.outcomes.values[q, n] == 0
    place = _stands(reference, text) if wrong else None
    if place is not None:
        yield "reference in text", text[max(0, place - SHOWN // 2) : place + SHOWN // 2]
    if bank.endings[bank.ended[q, n]] == "length":
        yield "cap hit", text[-SHOWN:]
    if graded.disagree[q, n]:
        yield "checkers disagree", text[-SHOWN:]
    if graded.unguarded[q, n]:
        yield "not guarded", graded.why.get((q, n), "")
    if graded.status[q, n] > 0:
        yield STATUSES[graded.status[q, n]], text[-SHOWN:]


def _stands(reference: str, text: str) -> int | None:
    """Where a reference stands by itself in a text: the last place."""
    word = re.escape(reference.strip())
    if not word:
        return None
    before = r"(?:answer\W{0,12}(?:is\W{0,6})?|boxed\s*\{\s*)" if len(reference.strip()) <= 2 else ""
    found = None
    for found in re.finditer(rf"{before}(?<![\w.]){word}(?![\w]|\.\d)", text, re.IGNORECASE):  # noqa: B007
        pass
    return None if found is None else found.end() - len(reference.strip())


# ------------------------------------------------------------------------------------------------------------ overrides


@dataclass(frozen=True, slots=True)
class Override:
    """What a person decided about one candidate: another answer, another grade, or both."""

    question: str
    sample: int
    run: str = ""
    answer: str | None = None
    grade: float | None = None
    by: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Overrides:
    """A file of human decisions. Each names who made it and why; none is applied silently.

    JSONL or CSV with the columns question, sample, run, answer or grade, by, why.
    """

    rows: tuple[Override, ...]
    source: str = ""
    checksum: str = ""

    @classmethod
    def read(cls, path: str | Path) -> Overrides:
        """The overrides of a file; a row that cannot be used is an error that names its line."""
        path = Path(path)
        raw = path.read_bytes()
        text = raw.decode()
        if path.suffix == ".csv":
            records = list(enumerate(csv.DictReader(text.splitlines()), 2))
        else:
            records = [(i, json.loads(line)) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
        rows = tuple(_override(record, f"{path.name}, line {line}") for line, record in records)
        return cls(rows, path.name, sha256(raw).hexdigest())

    def layer(self, bank: Bank) -> Layer:
        """The overridden grades as a layer ``[Q, N]``, NaN where nobody decided. Diagnostic: no rule may use it."""
        values = np.full(bank.shape, np.nan)
        for row, place in self._places(bank):
            if row.grade is not None:
                values[place] = row.grade
        return Layer(values, f"human overrides: {self.source}", self.checksum[:12], role="diagnostic")

    def answers(self, bank: Bank) -> Bank:
        """The bank with the answers that a person read in its texts."""
        texts: list[list[str | None]] = [
            [bank.answer(q, n) for n in range(bank.shape[1])] for q in range(bank.shape[0])
        ]
        for row, (q, n) in self._places(bank):
            if row.answer is not None:
                texts[q][n] = row.answer or None
        return with_answers(bank, texts)

    def outcomes(self, bank: Bank, outcomes: Outcomes) -> Outcomes:
        """The outcomes with the overridden grades, and a description that says so."""
        layer = self.layer(bank)
        decided = ~np.isnan(layer.values)
        values = np.where(decided, layer.values, outcomes.on(bank))
        note = f"{outcomes.description}; {int(decided.sum())} overridden by {self.source} ({layer.version})"
        return Outcomes.of(bank, values, note, outcomes.version)

    def places(self, bank: Bank) -> list[tuple[int, int]]:
        """The candidates that were decided, as indices."""
        return [place for _, place in self._places(bank)]

    def _places(self, bank: Bank) -> list[tuple[Override, tuple[int, int]]]:
        known = {}
        for q, n in zip(*np.nonzero(bank.drawn), strict=True):
            key = bank.key(int(q), int(n))
            known[key.question, key.run, key.sample] = int(q), int(n)
        found = []
        for row in self.rows:
            place = known.get((row.question, row.run, row.sample))
            if place is None:
                raise InvalidValue(
                    f"{self.source}: question {row.question!r}, run {row.run!r}, sample {row.sample} "
                    "is no candidate of this bank: correct the file, or use the bank that it was made for"
                )
            found.append((row, place))
        return found


def _override(record: dict[str, object], where: str) -> Override:
    def text(name: str) -> str:
        value = record.get(name)
        return "" if value is None else str(value)

    require(text("question") and text("sample") != "", where, record, "give a question and a sample")
    require(text("by"), where, record, "say who decided, in the column 'by'")
    grade = float(text("grade")) if text("grade") != "" else None
    require(grade is None or 0 <= grade <= 1, f"{where}, grade", grade, "grade within [0, 1]")
    answer = text("answer") if record.get("answer") not in (None, "") else None
    require(grade is not None or answer is not None, where, record, "give an answer or a grade")
    return Override(text("question"), int(text("sample")), text("run"), answer, grade, by=text("by"), why=text("why"))

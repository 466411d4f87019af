"""How many candidates of each question were graded, and how many of them were correct."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Outcomes
from ramify.bank.proposal import is_independent, need_independence
from ramify.errors import require

__all__ = ["Tally", "graded_table"]


def graded_table(grades: Any, name: str = "grades") -> Array:
    """Grades as an array ``[Q, N]``; what is masked becomes NaN. Anything but real numbers is refused."""
    if isinstance(grades, np.ma.MaskedArray):
        grades = np.where(np.ma.getmaskarray(grades), np.nan, np.ma.getdata(grades).astype(np.float64))
    use = "give outcomes.on(bank), or Tally.of_bank(bank, outcomes)"
    require(not isinstance(grades, (Bank, Outcomes)), name, type(grades).__name__, use)
    table = np.asarray(grades)
    require(table.dtype.kind in "buif", name, table.dtype, "use numbers or booleans, NaN (or a mask) for missing")
    require(table.ndim == 2, name, table.shape, "use [Q, N]: a row of candidates for each question")
    require(table.shape[0] > 0, name, table.shape, "hand in at least one question")
    return table


def _true(mask: Array) -> Array:
    """How many are true in each row. A product of single floats is exact up to 2^24 and twice as fast as a sum."""
    if mask.shape[1] >= 1 << 24:
        return np.count_nonzero(mask, axis=1).astype(np.int64)
    return (mask.astype(np.float32) @ np.ones(mask.shape[1], dtype=np.float32)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Correct and graded candidates of each question: all that a binary profile depends on.

    A missing grade counts in neither. A question without any graded candidate stays in the tally, with ``graded`` 0.

    >>> tally = Tally.of([[1, 0, 1], [0, 0, float("nan")]])
    >>> tally.correct.tolist(), tally.graded.tolist()
    ([2, 0], [3, 2])
    """

    correct: Array  # [Q] int64
    graded: Array  # [Q] int64
    kind: str = "iid"  # what the candidates are draws of, in the words of ``Proposal.kind``
    assumed: str = ""  # why they may be taken as independent although their kind does not say so

    def __post_init__(self) -> None:
        ok = self.correct.shape == self.graded.shape and self.correct.ndim == 1
        require(ok, "Tally.graded", self.graded.shape, f"use the shape of correct, {self.correct.shape}")
        ok = (self.correct >= 0).all() and (self.correct <= self.graded).all()
        require(ok, "Tally.correct", "a count", "use counts between 0 and the number graded")

    @classmethod
    def of(cls, grades: Any) -> Tally:
        """The tally of binary grades ``[Q, N]``, which the caller takes to be independent draws."""
        table = graded_table(grades)
        whole = table.dtype.kind != "f"
        correct = _true(table if table.dtype == bool else table == 1)
        if whole and (table.size == 0 or (table.min() >= 0 and table.max() <= 1)):
            return cls(correct, np.full(len(table), table.shape[1], dtype=np.int64))
        graded = correct + _true(table == 0)
        if graded.sum() < table.size:
            strange = table[(table != 0) & (table != 1) & ~np.isnan(table)][:1].tolist()
            require(not strange, "grades", strange, "use 0, 1 or missing; graded levels are a RubricTally")
        return cls(correct, graded)

    @classmethod
    def of_bank(cls, bank: Bank, outcomes: Outcomes) -> Tally:
        """The tally of a bank's outcomes, with what the bank says about the independence of its candidates."""
        return replace(cls.of(outcomes.on(bank)), kind=bank.kind, assumed=bank.assumed)

    @property
    def questions(self) -> int:
        """Q."""
        return len(self.graded)

    @property
    def widest(self) -> int:
        """The largest number of graded candidates of a question."""
        return int(self.graded.max(initial=0))

    @property
    def independent(self) -> bool:
        """Whether the candidates are independent draws, by provenance or by a recorded assumption."""
        return is_independent(self.kind, self.assumed)

    def need_independence(self, what: str) -> None:
        """Refuse, in the name of an estimator that needs independent draws."""
        need_independence(what, self.kind, self.assumed)

    @property
    def remark(self) -> str:
        """What a number made from this tally must say about it; empty for independent draws."""
        if self.assumed:
            return f"assuming independence: {self.assumed}"
        return "" if self.kind == "iid" else f"descriptive of this {self.kind} bank"

    def take(self, questions: Array) -> Tally:
        """The tally of some questions: a mask or indices ``[Q']``, repeated ones included."""
        return replace(self, correct=self.correct[questions], graded=self.graded[questions])

    def histograms(self) -> Iterator[tuple[int, Array]]:
        """For each number n of graded candidates: ``(n, [n + 1])``, how many questions have 0..n correct of n."""
        for n in np.unique(self.graded):
            yield int(n), np.bincount(self.correct[self.graded == n], minlength=int(n) + 1)

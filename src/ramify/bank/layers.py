"""What is attached to a bank after it was made: scores any rule may read, and outcomes that only evaluation may."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.arrays import Array
from ramify.errors import InvalidValue, require

if TYPE_CHECKING:
    from ramify.bank.bank import Bank

__all__ = ["ROLES", "Layer", "Outcomes"]

ROLES = ("deployable", "diagnostic")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Evidence or verifier scores of every candidate, with what made them. NaN is missing, and never imputed."""

    values: Array  # [Q, N]
    description: str  # the text form of the method, or what is known of it
    version: str = ""
    cost: Array | None = None  # [Q, N] in the unit that the description says
    role: str = "deployable"

    def __post_init__(self) -> None:
        require(self.role in ROLES, "Layer.role", self.role, f"use one of {', '.join(ROLES)}")
        same = self.cost is None or self.cost.shape == self.values.shape
        require(same, "Layer.cost", None if self.cost is None else self.cost.shape, "give it the shape of the values")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Grades in [0, 1] of a bank's candidates against references: behind the wall, for evaluation only.

    Not a layer of the bank, on purpose: evidence maps, rules, stops and controllers take a ``Bank`` or ``Candidates``,
    so none of them can see a grade. NaN is a grade that is missing, never zero. Grades are found by question, run and
    sample, so they follow a bank through any slicing.
    """

    questions: tuple[str, ...]
    samples: Array  # [Q, N]
    runs: tuple[str, ...]
    source: Array  # [Q, N] into runs, -1 where nothing was drawn
    values: Array  # [Q, N]
    description: str = ""
    version: str = ""

    @classmethod
    def of(cls, bank: Bank, values: Any, description: str = "", version: str = "") -> Outcomes:
        """The grades of this very bank, ``[Q, N]``."""
        table, shape = np.asarray(values, dtype=np.float64), bank.shape
        require(table.shape == shape, "Outcomes.values", table.shape, f"use the shape {shape}")
        outside = table[(table < 0) | (table > 1)]
        require(outside.size == 0, "Outcomes.values", outside[:1].tolist(), "grade within [0, 1]")
        names, runs = tuple(question.id for question in bank.questions), tuple(each.run for each in bank.proposals)
        return cls(names, bank.samples, runs, bank.source, np.where(bank.drawn, table, np.nan), description, version)

    def on(self, bank: Bank) -> Array:
        """The grades aligned to ``bank [Q, N]``: NaN where a candidate was not graded."""
        if self.samples is bank.samples and self.source is bank.source:
            return self.values
        place = {name: row for row, name in enumerate(self.questions)}
        found, known = np.full(bank.shape, np.nan), False
        for row, question in enumerate(bank.questions):
            here = place.get(question.id)
            if here is not None:
                mine = np.flatnonzero(self.source[here] >= 0)
                names = [(self.runs[self.source[here, i]], self.samples[here, i]) for i in mine]
                graded = dict(zip(names, self.values[here, mine], strict=True))
                theirs = np.flatnonzero(bank.drawn[row])
                runs = [bank.proposals[bank.source[row, i]].run for i in theirs]
                keys = list(zip(runs, bank.samples[row, theirs], strict=True))
                found[row, theirs] = [graded.get(key, np.nan) for key in keys]
                known = known or any(key in graded for key in keys)
        if not known and bank.drawn.any() and (self.source >= 0).any():
            raise InvalidValue(
                f"{self.description or 'these outcomes'} grade no candidate of this bank: they belong to another"
            )
        return found

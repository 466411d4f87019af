"""The availability–selection gap: what a bank holds minus what a rule takes out of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Outcomes
from ramify.errors import require
from ramify.metrics.bankcurve import BankCurve, mean_in, over_questions
from ramify.metrics.estimate import Estimate
from ramify.metrics.exact import available

__all__ = ["Gap", "gap"]


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """Pass@k, a rule's accuracy at k, and the difference, question by question.

    >>> from ramify.bank import Bank, Outcomes
    >>> from ramify.metrics import plurality
    >>> bank = Bank.of({"easy": ["A", "A", "B"], "trap": ["B", "B", "A"], "hard": ["B", "B", "B"]})
    >>> outcomes = Outcomes.of(bank, bank.answers == np.array([[0], [1], [1]]))
    >>> found = gap(plurality(bank.candidates(), outcomes.on(bank)), bank, outcomes)
    >>> found.recoverable(3), found.hopeless(3), float(found.overall[-1].round(4))
    (('trap',), ('hard',), 0.3333)
    """

    questions: tuple[str, ...]
    budgets: Array  # [K]
    available: Array  # [Q, K]
    taken: Array  # [Q, K]
    rule: str

    @property
    def values(self) -> Array:
        """[Q, K] the gap; NaN where a question has fewer than k candidates or lacks a grade that matters."""
        return self.available - self.taken

    @property
    def overall(self) -> Array:
        """[K] the mean over the questions that are in."""
        return mean_in(self.values)

    def estimates(self, replicates: int = 2000, level: float = 0.95, run: str = "bootstrap") -> tuple[Estimate, ...]:
        """The mean gap at each budget with its prompt-bootstrap interval."""
        return over_questions(self.values, replicates, level, run, (-1.0, 1.0))

    def recoverable(self, budget: int, above: float = 0.0) -> tuple[str, ...]:
        """The questions that a better rule would gain at this budget, the largest gap first."""
        values = self._at(self.values, budget)
        order = np.argsort(-np.nan_to_num(values), kind="stable")
        return tuple(self.questions[q] for q in order if values[q] > above)

    def hopeless(self, budget: int) -> tuple[str, ...]:
        """The questions for which no rule can do anything at this budget: nothing of worth is there."""
        values = self._at(self.available, budget)
        return tuple(self.questions[q] for q in np.flatnonzero(values == 0))

    def _at(self, table: Array, budget: int) -> Array:
        found = np.flatnonzero(self.budgets == budget)
        require(found.size, "budget", budget, f"use one of {self.budgets.tolist()}")
        return table[:, found[0]]


def gap(curve: BankCurve, bank: Bank, outcomes: Outcomes) -> Gap:
    """The gap of a rule's curve on this bank: replayed or in closed form, it keeps its budgets.

    Never negative for a closed form, up to rounding; a replay's may be, by its Monte Carlo error.
    """
    require(len(curve.values) == bank.shape[0], "curve", curve.values.shape, f"use the curve of these {bank.shape[0]}")
    grades = outcomes.on(bank)
    ceiling = available(grades, bank.drawn, curve.budgets.tolist()).result.values
    lacking = np.isnan(grades) & bank.drawn  # of a question that lacks a grade, Pass@k would be of another bank
    ceiling = np.where(lacking.any(axis=1)[:, None], np.nan, ceiling)
    names = tuple(question.id for question in bank.questions)
    return Gap(names, curve.budgets, ceiling, curve.values, curve.rule)

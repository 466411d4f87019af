"""One bank with its grades, and every number of it that more than one section of a report needs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Candidates, Layer, Outcomes
from ramify.errors import require
from ramify.metrics.bankcurve import BUDGETS, BankCurve, mean_in, over_questions
from ramify.metrics.estimate import Estimate
from ramify.metrics.exact import available, best_of_n, plurality, selected
from ramify.metrics.tally import Tally
from ramify.report import text

__all__ = ["Case", "budgets_to", "mean_of"]

LAYERS = 4  # scores that get curves of their own; a page with more of them would be unreadable


def budgets_to(most: int) -> list[int]:
    """The budgets of a curve up to a bank's size: doubling, and the whole bank.

    >>> budgets_to(16), budgets_to(20)
    ([1, 2, 4, 8, 16], [1, 2, 4, 8, 16, 20])
    """
    doubled = [k for k in (*BUDGETS[:-1], *(2**i for i in range(7, 20))) if k < most]
    return sorted({*doubled, most})


def mean_of(values: Array) -> float:
    """The mean of what is not NaN; NaN where nothing is left."""
    return float(mean_in(np.asarray(values, dtype=float)[:, None])[0])


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A named bank and its outcomes. Derived numbers are made once, when first asked for.

    ``length`` and ``ended`` may be unknown: then what depends on them is left out, and the page says so.
    """

    name: str
    bank: Bank
    outcomes: Outcomes
    replicates: int = 2000  # of every interval over questions
    level: float = 0.95
    asked: tuple[int, ...] = ()  # budgets that somebody asked for, instead of those that suit the bank

    def __post_init__(self) -> None:
        graded = ~np.isnan(self.grades)
        require(graded.any(), "outcomes", "no grade", "grade at least one candidate: a report is about right and wrong")
        beyond = [k for k in self.asked if not 1 <= k <= self.most]
        require(
            not beyond, "budgets", beyond[:3], f"use numbers of candidates from 1 to {self.most}, the most there are"
        )

    @functools.cached_property
    def grades(self) -> Array:
        """[Q, N] NaN where there is none."""
        return self.outcomes.on(self.bank)

    @functools.cached_property
    def binary(self) -> bool:
        """Whether every grade is 0 or 1, so that there is a profile."""
        known = self.grades[~np.isnan(self.grades)]
        return bool(((known == 0) | (known == 1)).all())

    @functools.cached_property
    def tally(self) -> Tally:
        """Correct and graded candidates by question, with what the bank says of its independence."""
        return Tally.of_bank(self.bank, self.outcomes)

    @functools.cached_property
    def most(self) -> int:
        """The largest number of candidates that a question has."""
        return int(self.bank.drawn.sum(axis=1).max())

    @functools.cached_property
    def budgets(self) -> list[int]:
        """Those asked for, or doubling ones up to the usual number of candidates."""
        return sorted(set(self.asked)) or budgets_to(self.usual)

    @functools.cached_property
    def usual(self) -> int:
        """The number of candidates that at least half of the questions have: beyond it a mean is of few."""
        counts = np.sort(self.bank.drawn.sum(axis=1))
        return max(1, int(counts[len(counts) // 2]))

    @functools.cached_property
    def whole(self) -> Case:
        """The same at the usual number of candidates alone, where other budgets were asked for."""
        return self if self.top == self.usual else dataclasses.replace(self, asked=(self.usual,))

    @property
    def least(self) -> str:
        """The smallest budget, in words."""
        return "one candidate" if self.budgets[0] == 1 else f"{self.budgets[0]} candidates"

    @property
    def top(self) -> int:
        """The largest budget of the curves."""
        return self.budgets[-1]

    @functools.cached_property
    def scores(self) -> dict[str, Layer]:
        """Every score with at least one finite value, deployable ones first."""
        usable = {
            name: layer
            for name, layer in self.bank.layers.items()
            if np.isfinite(layer.values[self.bank.drawn]).any() and layer.values.ndim == 2
        }
        return {name: usable[name] for name in sorted(usable, key=lambda name: usable[name].role != "deployable")}

    @property
    def layers(self) -> dict[str, Layer]:
        """The scores that get curves: the first few."""
        return dict(list(self.scores.items())[:LAYERS])

    @property
    def undrawn(self) -> list[str]:
        """The scores that are on no curve and in no count of rules, which a page has to say."""
        return list(self.scores)[LAYERS:]

    @functools.cached_property
    def candidates(self) -> Candidates:
        return self.bank.candidates(evidence=self.layers)

    # ---------------------------------------------------------------------------------------------------------- curves

    @functools.cached_property
    def ceiling(self) -> BankCurve:
        """Pass@k (the best grade of k): what a perfect choice would take. A diagnostic."""
        return available(self.grades, self.bank.drawn, self.budgets).result

    @functools.cached_property
    def floor(self) -> BankCurve:
        """pass^k (the worst grade of k): all k have to be right."""
        graded = ~np.isnan(self.grades) & self.bank.drawn
        bank = Candidates(np.zeros(self.grades.shape, dtype=np.int64), graded, graded)
        values = selected(bank, -self.grades, self.grades, self.budgets)
        return dataclasses.replace(self.ceiling, values=values, rule="worst available")

    @functools.cached_property
    def rules(self) -> dict[str, BankCurve]:
        """The deployable rules that have a closed form: plurality, and Best-of-N by each deployable score."""
        found = {"plurality": plurality(self.candidates, self.grades, self.budgets)}
        for name, layer in self.layers.items():
            if layer.role == "deployable":
                found[f"best of N by {name}"] = best_of_n(self.candidates, name, self.grades, self.budgets)
        return found

    @functools.cached_property
    def assisted(self) -> dict[str, BankCurve]:
        """Best-of-N by scores that have seen a reference: diagnostics, drawn apart."""
        return {
            f"best of N by {name}": best_of_n(self.candidates, name, self.grades, self.budgets)
            for name, layer in self.layers.items()
            if layer.role == "diagnostic"
        }

    @functools.cached_property
    def accuracy(self) -> Estimate:
        """The mean grade of one candidate, with its interval over questions, whichever budgets were asked for."""
        return self.over(self.solved[:, None])[0]

    def over(self, table: Array, bounds: tuple[float, float] = (0.0, 1.0)) -> tuple[Estimate, ...]:
        """Column means of a table ``[Q, K]`` with intervals over questions; of fewer than two questions, without."""
        enough = (~np.isnan(table)).sum(axis=0) >= 2
        found = iter(over_questions(table[:, enough], self.replicates, self.level, bounds=bounds))
        means, few = mean_in(table), "fewer than two questions"
        return tuple(
            next(found) if ok else Estimate.descriptive(float(mean), few)
            for ok, mean in zip(enough, means, strict=True)
        )

    def fewer(self, curve: BankCurve | None = None) -> str:
        """A sentence where not every budget is about the same questions; empty where all are."""
        there = (~np.isnan((curve or self.ceiling).values)).sum(axis=0)
        if there.min() == there.max():
            return ""
        said = text.listed([f"{many:,} at k = {k}" for k, many in zip(self.budgets, there, strict=True)], 8)
        return (
            f"Questions without k graded candidates are left out, so points of a curve are of different ones: {said}."
        )

    def intervals(self, curve: BankCurve) -> tuple[Estimate, ...]:
        """The curve's means with intervals over questions; all curves of a case are resampled alike."""
        known = self._intervals
        if id(curve) not in known:
            known[id(curve)] = (curve, self.over(curve.values))  # the curve is kept, so that its id stays its own
        return known[id(curve)][1]

    @functools.cached_property
    def _intervals(self) -> dict[int, tuple[BankCurve, tuple[Estimate, ...]]]:
        return {}

    @property
    def best_rule(self) -> str:
        """The deployable curve that is best at the largest budget. Chosen after the fact, and said to be."""
        return max(self.rules, key=lambda name: np.nan_to_num(self.rules[name].mean[-1], nan=-1.0))

    # ----------------------------------------------------------------------------------------------------------- health

    @functools.cached_property
    def shares(self) -> Mapping[str, float]:
        """Rates over drawn candidates: no answer, cap hit (NaN if endings are unknown), not graded, mean tokens."""
        return self.shares_of(np.ones(len(self.bank.questions), dtype=bool))

    def shares_of(self, which: Array) -> dict[str, float]:
        """The same of the candidates of some questions ``[Q]``."""
        drawn = self.bank.drawn & which[:, None]
        known = drawn & (self.bank.ended > 0)
        length = self.bank.length
        measured = drawn & (length >= 0) if length is not None else np.zeros(drawn.shape, bool)
        capped = self.bank.ended == self.bank.endings.index("length")
        return {
            "invalid": _share(self.bank.answers < 0, drawn),
            "capped": _share(capped, known),
            "ungraded": _share(np.isnan(self.grades), drawn),
            "tokens": float(length[measured].mean()) if length is not None and measured.any() else np.nan,
        }

    @functools.cached_property
    def solved(self) -> Array:
        """[Q] the share of graded candidates that are right; NaN where none is graded."""
        there = ~np.isnan(self.grades)
        total = np.where(there, self.grades, 0.0).sum(axis=1)
        return np.divide(total, there.sum(axis=1), out=np.full(len(total), np.nan), where=there.any(axis=1))

    @property
    def graded(self) -> int:
        """How many questions have a grade: what an accuracy, and what is never or always solved, is a share of."""
        return int((~np.isnan(self.solved)).sum())

    @property
    def never(self) -> float:
        """The share of questions of which no graded candidate is worth anything."""
        return float(np.mean(self.solved[~np.isnan(self.solved)] == 0))

    @property
    def always(self) -> float:
        """The share of questions of which every graded candidate is right."""
        return float(np.mean(self.solved[~np.isnan(self.solved)] == 1))


def _share(what: Array, among: Array) -> float:
    return float(np.mean(what[among])) if among.any() else float("nan")

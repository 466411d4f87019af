"""What a rule is worth on subsets of one bank: a table ``[Q, K]`` of utility by question and budget, and its labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from ramify.arrays import Array
from ramify.decide.replay import BUDGETS
from ramify.errors import InvalidValue, is_whole, require
from ramify.keys import generator
from ramify.metrics.estimate import Estimate
from ramify.metrics.interval import Percentile
from ramify.metrics.resample import Resample
from ramify.metrics.units import check, counts_of
from ramify.types import Key

__all__ = ["BUDGETS", "BankCurve", "Diagnostic", "deployable", "floats", "over_questions", "whole_budgets"]

T = TypeVar("T")


# Which question a number answers. They differ where candidates tie, and only there.
SEEDED = "seeded order"  # ties go to the earliest of the seeded permutation; k = N is exact given that one order
AVERAGED = "tie-averaged"  # the expectation over all orders: tied groups share


@dataclass(frozen=True, slots=True, eq=False)
class BankCurve:
    """The expected utility of what a rule submits from a uniform k-subset of each question's bank.

    NaN leaves a question out of a budget: it has fewer than k candidates, or what it may submit was never graded.
    Nothing submitted (⊥) is worth 0 and stays in the denominator; ``invalid`` is how often that happens.
    """

    budgets: Array  # [K]
    values: Array  # [Q, K]
    rule: str
    estimand: str
    invalid: Array  # [Q, K] the share of subsets from which nothing was submitted
    error: Array  # [K] the Monte Carlo standard error of the mean over questions, 0 where exact
    replicates: int = 0  # 0 where nothing was simulated
    kind: str = "shared-bank"  # every rule sees the same candidates; a Run says "end-to-end"
    evidence: str = "fixed"  # the scores are the bank's, so a comparison isolates the rule; "varied" compares the stage
    replays: Array | None = None  # [Q, K, R] what each replay was worth, where they were kept

    def __repr__(self) -> str:
        means = ", ".join(f"{k}: {mean:.4g}" for k, mean in zip(self.budgets, self.mean, strict=True))
        return f"<BankCurve {self.rule}, {self.estimand}, {len(self.values)} questions; {means}>"

    @property
    def mean(self) -> Array:
        """[K] over the questions that are in; NaN where none is."""
        return mean_in(self.values)

    @property
    def left_out(self) -> Array:
        """[K] how many questions are not in the mean."""
        return np.isnan(self.values).sum(axis=0)

    def estimates(self, replicates: int = 2000, level: float = 0.95, run: str = "bootstrap") -> tuple[Estimate, ...]:
        """The mean at each budget with its prompt-bootstrap interval: questions are drawn after replays are averaged.

        The note carries the Monte Carlo error beside it, and how many questions are left out.
        """
        left_out = self.left_out
        notes = [
            "; ".join(
                ([f"Monte Carlo error {error:.2g}"] if error else []) + ([f"{left} questions left out"] if left else [])
            )
            for error, left in zip(self.error, left_out, strict=True)
        ]
        return over_questions(self.values, replicates, level, run, (0.0, 1.0), notes)

    def at(self, budget: int) -> Array:
        """[Q] the values at one budget."""
        found = np.flatnonzero(self.budgets == budget)
        require(found.size, "budget", budget, f"use one of {self.budgets.tolist()}")
        return self.values[:, found[0]]


@dataclass(frozen=True, slots=True)
class Diagnostic(Generic[T]):
    """A result that used what no deployed system has, such as a reference answer. No deployable table takes it."""

    result: T
    used: str


def deployable(results: Mapping[str, BankCurve | Diagnostic[BankCurve]]) -> dict[str, BankCurve]:
    """The same results, if every one of them could have been had without references.

    >>> from ramify.metrics.exact import available
    >>> ceiling = available(np.array([[1.0, 0.0]]))
    >>> deployable({"Pass@k": ceiling})
    Traceback (most recent call last):
    ramify.errors.InvalidValue: Pass@k used the outcomes themselves: a diagnostic is drawn apart from deployable results
    """
    kept = {}
    for name, result in results.items():
        if isinstance(result, Diagnostic):
            raise InvalidValue(f"{name} used {result.used}: a diagnostic is drawn apart from deployable results")
        kept[name] = result
    return kept


def over_questions(
    values: Array,
    replicates: int = 2000,
    level: float = 0.95,
    run: str = "bootstrap",
    bounds: tuple[float, float] = (-np.inf, np.inf),
    notes: Sequence[str] | None = None,
) -> tuple[Estimate, ...]:
    """Percentile intervals of the column means of a table ``[Q, K]``, from the same resamples of questions throughout.

    Which questions are drawn depends on ``run``, how many there are, and nothing else: tables of the same questions
    under one ``run`` are resampled alike whatever their values, so the intervals of two of them are paired.
    """
    table = np.asarray(values, dtype=float)
    there = ~np.isnan(table)
    few = there.any(axis=0) & (there.sum(axis=0) < 2)
    require(not few.any(), "values", "a column", "each column needs values in at least two questions")
    check(replicates, max(2, len(table)))
    many, columns = table.shape
    sums = np.concatenate([np.where(there, table, 0.0), there], axis=1)
    rng, found = generator(Key(run, "", 0, "questions")), []
    again = np.concatenate([counts @ sums for counts in counts_of(rng, np.ones(many, dtype=np.int64), replicates)])
    for column, mean in enumerate(mean_in(table)):
        if np.isnan(mean):
            found.append(Estimate.descriptive(float("nan"), "no question is in"))
            continue
        size = again[:, columns + column]
        lost = int((size == 0).sum())  # replicates that drew no question with a value
        means = again[size > 0, column] / size[size > 0]
        gone = f"{lost} replicates without a value left out" if lost else ""
        sample = Resample(float(mean), means, np.empty(0), np.empty(0), ("questions",), bounds, note=gone)
        estimate = Percentile(level)(sample)
        extra = notes[column] if notes else ""
        found.append(dataclasses.replace(estimate, note="; ".join(part for part in (estimate.note, extra) if part)))
    return tuple(found)


def whole_budgets(budgets: Iterable[int] | None, largest: int) -> Array:
    """[K] the budgets asked for, or every k up to the largest bank."""
    listed = list(range(1, largest + 1)) if budgets is None else list(budgets)
    wrong = [k for k in listed if not is_whole(k, 1)]
    require(not wrong, "budgets", wrong[:3], "use numbers of candidates >= 1")
    return np.array(listed, dtype=np.int64)


def floats(values: Any, name: str) -> Array:
    """The values as floats, NaN for missing; what is masked is missing. Anything but real numbers is refused."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values).astype(np.float64))
    table = np.asarray(values)
    require(table.dtype.kind in "buif", name, table.dtype, "use numbers or booleans, NaN (or a mask) for missing")
    return table.astype(np.float64)


def mean_in(values: Array) -> Array:
    """[...] the mean over the first axis of what is not NaN; NaN where nothing is left."""
    there = ~np.isnan(values)
    total = np.where(there, values, 0.0).sum(axis=0)
    return np.divide(total, there.sum(axis=0), out=np.full(total.shape, np.nan), where=there.any(axis=0))

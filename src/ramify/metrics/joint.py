"""The joint law Q_search,B of the banks that a search returns: size, multiplicity, and how far leaves go together.

Per-leaf inclusion probabilities are marginals of it and say nothing of the rest: a search that returns sixteen copies
of one leaf and one that returns sixteen independent leaves may have the same.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ramify.arrays import Array
from ramify.errors import require
from ramify.keys import generator
from ramify.metrics.estimate import Estimate
from ramify.metrics.shift import NOTHING, Law
from ramify.types import Key

__all__ = ["Joint", "joint_law"]


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """Returned banks as multisets: how often each holds each outcome, and the probability of each bank.

    ``exact`` lists every bank that is possible; otherwise each of R independent executions weighs 1/R.

    >>> two = joint_law([["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]], [0.4, 0.4, 0.1, 0.1])
    >>> two.inclusion.round(3).tolist(), two.share.tolist(), two.within, two.between, round(two.dependence, 3)
    ([0.6, 0.6], [0.5, 0.5], 0.8, 0.5, 0.6)
    """

    names: tuple[Hashable, ...]
    counts: Array  # [R, K]
    weight: Array  # [R] sums to 1
    exact: bool

    @property
    def size(self) -> Array:
        """[R] leaves in each bank, with multiplicity."""
        size: Array = self.counts.sum(axis=1)
        return size

    @property
    def distinct(self) -> Array:
        """[R] different outcomes in each bank."""
        distinct: Array = (self.counts > 0).sum(axis=1)
        return distinct

    @property
    def sizes(self) -> dict[int, float]:
        """P(a bank has so many leaves)."""
        return {int(n): float(self.weight[self.size == n].sum()) for n in np.unique(self.size)}

    @property
    def mean_size(self) -> float:
        return float(self.weight @ self.size)

    @property
    def mean_distinct(self) -> float:
        return float(self.weight @ self.distinct)

    @property
    def inclusion(self) -> Array:
        """[K] P(the bank holds the outcome at least once)."""
        return self.weight @ (self.counts > 0)

    @property
    def share(self) -> Array:
        """[K] the law of one leaf, drawn from a bank that has any: the per-leaf marginal."""
        held = self.size > 0
        weight = self.weight[held] / self.weight[held].sum()
        return weight @ (self.counts[held] / self.size[held, None])

    def one_leaf(self, run: str = "joint") -> Law:
        """The law of one leaf of the bank, to hold against q_π: exact, or a leaf drawn from each execution's bank.

        Drawing one leaf a bank keeps the draws independent, as all leaves of the banks would not be. A bank without any
        gives ⊥ (None).
        """
        if self.exact:
            empty = float(self.weight[self.size == 0].sum())
            mass = dict(zip(self.names, ((1 - empty) * self.share).tolist(), strict=True)) if self.names else {}
            return Law.exact({**mass, None: mass.get(None, 0.0) + empty})
        rng = generator(Key(run, "leaf", 0, "draw"))
        places = [rng.choice(len(row), p=row / row.sum()) if row.any() else None for row in self.counts]
        return Law.drawn(None if place is None else self.names[place] for place in places)

    @property
    def within(self) -> float:
        """P(two leaves of one bank agree), over banks with at least two. NaN where there is none."""
        return _ratio(*self._within())

    @property
    def between(self) -> float:
        """P(leaves of two independent executions agree), over the same banks: what ``within`` is at independence."""
        return _ratio(*self._between())

    @property
    def dependence(self) -> float:
        """(within - between) / (1 - between): 1 for copies, 0 for independent leaves, negative if they repel."""
        within, between = self.within, self.between
        return (within - between) / (1 - between) if between < 1 else math.nan

    @property
    def together(self) -> Array:
        """[K, K] P(both are in the bank) - P(one is) P(the other is); the diagonal is each one's variance."""
        there = (self.counts > 0).astype(np.float64)
        return (there * self.weight[:, None]).T @ there - np.outer(self.inclusion, self.inclusion)

    @property
    def cooccurrence(self) -> float:
        """Σ_{y<y'} P(both are in) / Σ_{y<y'} P(y is in) P(y' is in): above 1 outcomes come together, below they repel.

        The expected number of pairs of different outcomes in a bank, over that if outcomes were in it independently.
        """
        return _ratio(*self._pairs_apart())

    def estimates(self, level: float = 0.95) -> dict[str, Estimate]:
        """size, distinct, within, between and dependence; of executions, with their jackknife intervals over reruns."""
        values = {
            "size": self.mean_size,
            "distinct": self.mean_distinct,
            "within": self.within,
            "between": self.between,
            "dependence": self.dependence,
        }
        if self.exact:
            return {name: Estimate.descriptive(value, "exact") for name, value in values.items()}
        left = self._left_out()
        z = float(ndtri((1 + level) / 2))
        return {name: _jackknifed(value, left[name], z, level) for name, value in values.items()}

    # ------------------------------------------------------------------------------------------------ sums over banks

    def _pairs(self) -> tuple[Array, Array, Array]:
        """(weights [R], P(two of a bank agree) [R], shares [R, K]); weight 0 for banks with fewer than two."""
        size = self.size
        some = size >= 2
        safe = np.where(some, size, 2)
        agree = (self.counts * (self.counts - 1)).sum(axis=1) / (safe * (safe - 1))
        return np.where(some, self.weight, 0.0), agree, self.counts / safe[:, None]

    def _within(self) -> tuple[float, float]:
        weight, agree, _ = self._pairs()
        return float(weight @ agree), float(weight.sum())

    def _between(self) -> tuple[float, float]:
        """Numerator and denominator. Executions are never paired with themselves; an exact law's are."""
        weight, _, share = self._pairs()
        mean = weight @ share
        own = 0.0 if self.exact else float(weight**2 @ (share**2).sum(axis=1))
        both = 0.0 if self.exact else float((weight**2).sum())
        return float(mean @ mean) - own, float(weight.sum() ** 2) - both

    def _pairs_apart(self) -> tuple[float, float]:
        """Expected pairs of different outcomes in one bank, and with each from a bank of its own."""
        pairs, p = float(self.weight @ (self.distinct * (self.distinct - 1) / 2)), self.inclusion
        apart = float((p.sum() ** 2 - (p**2).sum()) / 2)
        if self.exact:
            return pairs, apart
        many = len(self.counts)  # an execution is not independent of itself
        return pairs, (apart - pairs / many) * many / (many - 1) if many > 1 else math.nan

    def _left_out(self) -> dict[str, Array]:
        """Each number without each execution [R]."""
        many, (weight, agree, share) = len(self.counts), self._pairs()
        if many < 2:
            return dict.fromkeys(("size", "distinct", "within", "between", "dependence"), np.array([math.nan]))
        on = (weight > 0).astype(np.float64)
        total, square = on @ share, (share**2).sum(axis=1) * on
        rest = total - on[:, None] * share  # [R, K]
        held = on.sum() - on
        with np.errstate(divide="ignore", invalid="ignore"):
            within = (on @ agree - on * agree) / held
            between = ((rest**2).sum(axis=1) - (square.sum() - square)) / (held**2 - held)
            dependence = (within - between) / (1 - between)
        plain = {"size": self.size, "distinct": self.distinct}
        left = {name: (each.sum() - each) / (many - 1) for name, each in plain.items()}
        return left | {"within": within, "between": between, "dependence": dependence}


def joint_law(banks: Sequence[Sequence[Hashable]], probabilities: Any = None) -> Joint:
    """The law of returned banks. Without probabilities, banks are independent executions of one search.

    A bank is the outcomes (leaves or answers) that were returned, as often as they were; it may be empty.
    """
    require(len(banks), "banks", "none", "run the search at least once")
    place: dict[Hashable, int] = {}
    for bank in banks:
        for outcome in bank:
            place.setdefault(outcome, len(place))
    counts = np.zeros((len(banks), len(place)), dtype=np.int64)
    for row, bank in zip(counts, banks, strict=True):
        np.add.at(row, [place[outcome] for outcome in bank], 1)
    if probabilities is None:
        return Joint(tuple(place), counts, np.full(len(banks), 1 / len(banks)), False)
    weight = np.asarray(probabilities, dtype=np.float64)
    ok = weight.shape == (len(banks),) and (weight >= 0).all() and abs(weight.sum() - 1) < NOTHING
    require(ok, "probabilities", weight.shape, "give each bank its probability, summing to 1")
    return Joint(tuple(place), counts, weight, True)


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan


def _jackknifed(value: float, left: Array, z: float, level: float) -> Estimate:
    """A U-statistic with the normal interval of its jackknife (Arvesen, 1969)."""
    many = len(left)
    error = math.sqrt((many - 1) / many * float(((left - left.mean()) ** 2).sum())) if many > 1 else math.nan
    return Estimate(value, value - z * error, value + z * error, level, ("reruns",), "jackknife")

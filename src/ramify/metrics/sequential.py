"""Comparisons that may be looked at any number of times: confidence sequences for a mean of bounded differences.

A confidence sequence holds at all times at once: P(the mean ever leaves it) <= alpha. So one may add samples until
satisfied, or until two systems are separated, and the error is still at most alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import permutation
from ramify.metrics.bankcurve import floats
from ramify.types import Key

__all__ = ["Betting", "ConfidenceSequence", "EmpiricalBernstein", "by_question_order", "by_round"]


@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceSequence:
    """After each of T differences: the running mean and an interval for the true one, valid at all times together."""

    mean: Array  # [..., T]
    low: Array  # [..., T] never falls
    high: Array  # [..., T] never rises
    level: float
    covers: tuple[str, ...]
    method: str

    @property
    def separated(self) -> Array:
        """[..., T] whether the interval has come to exclude zero."""
        return (self.low > 0) | (self.high < 0)

    @property
    def first(self) -> Array:
        """[...] the number of differences at which it first did, -1 if it has not."""
        apart = self.separated
        return np.where(apart.any(axis=-1), np.argmax(apart, axis=-1) + 1, -1)

    @property
    def verdict(self) -> Array:
        """[...] +1 the first system is better, -1 the second, 0 not decided."""
        return np.where(self.low[..., -1] > 0, 1, np.where(self.high[..., -1] < 0, -1, 0))


def _checked(differences: Array) -> Array:
    d = floats(differences, "differences")
    require(d.ndim >= 1 and d.shape[-1] >= 1, "differences", d.shape, "use [..., T] with T >= 1")
    require(not np.isnan(d).any(), "differences", "NaN", "leave out pairs in which one grade is missing")
    outside = d[(d < -1) | (d > 1)]
    require(outside.size == 0, "differences", outside[:1].tolist(), "use differences of grades, in [-1, 1]")
    return d


def _running(x: Array, prior: float) -> tuple[Array, Array]:
    """(means [..., T], variances [..., T]) of the first t of x in [0, 1], as if one more x had been ``prior``."""
    t = np.arange(1, x.shape[-1] + 1)
    mean = (prior + np.cumsum(x, axis=-1)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2, axis=-1)) / (t + 1)
    return mean, variance


def _before(values: Array, first: float) -> Array:
    """What was known before each observation: the values one step earlier."""
    return np.concatenate([np.full((*values.shape[:-1], 1), first), values[..., :-1]], axis=-1)


def _bets(variance: Array, alpha: float, most: float, first: float = 0.25) -> Array:
    """Predictable bets √(2 log(2/α) / (σ̂²_{t-1} t log(1 + t))), at most ``most`` (Waudby-Smith and Ramdas, 2024)."""
    t = np.arange(1, variance.shape[-1] + 1)
    return np.minimum(np.sqrt(2 * math.log(2 / alpha) / (_before(variance, first) * t * np.log1p(t))), most)


@method
class EmpiricalBernstein:
    """The predictable empirical-Bernstein confidence sequence (Waudby-Smith and Ramdas, 2024, theorem 2). Closed form.

    exp(λ (X - μ) - 4 (X - X̂)² ψ(λ)) with ψ(λ) = (-log(1 - λ) - λ) / 4 has mean at most one, for any bet λ and guess X̂
    that were made before X in [0, 1]; so products of it seldom grow.

    >>> found = EmpiricalBernstein()(np.full(400, 0.25))
    >>> int(found.first), round(float(found.low[-1]), 3), round(float(found.high[-1]), 3)
    (60, 0.213, 0.287)
    """

    alpha: float = 0.05

    def __post_init__(self) -> None:
        require(0 < self.alpha < 1, "EmpiricalBernstein.alpha", self.alpha, "use an error rate in (0, 1)")

    def __call__(self, differences: Array, covers: tuple[str, ...] = ("draws",)) -> ConfidenceSequence:
        """The sequence for differences ``[..., T]`` in [-1, 1], in the order they came."""
        return self.rounds(floats(differences, "differences")[..., None, :], covers)

    def rounds(self, differences: Array, covers: tuple[str, ...] = ("draws",)) -> ConfidenceSequence:
        """The sequence for the mean over Q fixed questions, of rounds of independent differences ``[..., Q, T]``.

        The differences of a round share one bet and each has its own question's mean so far as its guess: the spread
        between questions does not widen the interval, and a round counts as the Q observations it is.
        """
        d = _checked(differences)
        x, questions = (d + 1) / 2, d.shape[-2]
        mean, variance = _running(x, 0.5)
        bet = _bets(variance.sum(axis=-2), self.alpha, 0.5, questions / 4)  # [..., T]
        psi = (-np.log1p(-bet) - bet) / 4
        total = np.cumsum(bet, axis=-1) * questions
        centre = np.cumsum(bet * x.sum(axis=-2), axis=-1) / total
        surprise = 4 * ((x - _before(mean, 0.5)) ** 2).sum(axis=-2)
        radius = (math.log(2 / self.alpha) + np.cumsum(surprise * psi, axis=-1)) / total
        low, high = np.maximum(centre - radius, 0.0), np.minimum(centre + radius, 1.0)
        return _sequence(d.mean(axis=-2), 2 * low - 1, 2 * high - 1, self.alpha, covers, repr(self))


@method
class Betting:
    """The hedged-capital confidence sequence (Waudby-Smith and Ramdas, 2024, theorem 3): tighter, on a grid of means.

    A mean m stays in while neither a bet that the truth is above m nor one that it is below has multiplied its stake
    by 2 / alpha. ``points`` means in [-1, 1] are tested, zero among them; the interval reaches to the next one outside.
    """

    alpha: float = 0.05
    points: int = 401
    most: float = 0.5  # of the largest bet that cannot be ruined

    def __post_init__(self) -> None:
        require(0 < self.alpha < 1, "Betting.alpha", self.alpha, "use an error rate in (0, 1)")
        ok = is_whole(self.points, 3) and self.points % 2 == 1
        require(ok, "Betting.points", self.points, "use an odd number >= 3, so that zero is a point")
        require(0 < self.most < 1, "Betting.most", self.most, "use a share in (0, 1)")

    def __call__(self, differences: Array, covers: tuple[str, ...] = ("draws",)) -> ConfidenceSequence:
        """The sequence for differences ``[..., T]`` in [-1, 1], in the order they came."""
        d = _checked(differences)
        x = (d + 1) / 2
        bet = _bets(_running(x, 0.5)[1], self.alpha, np.inf)
        grid = np.linspace(0.0, 1.0, self.points)
        low, high = (np.empty(x.shape) for _ in range(2))
        for row in np.ndindex(x.shape[:-1]):
            out = self._refuted(x[row], bet[row], grid)  # [T, G]
            low[row], high[row] = _ends(out, grid)
        return _sequence(d, 2 * low - 1, 2 * high - 1, self.alpha, covers, repr(self))

    def _refuted(self, x: Array, bet: Array, grid: Array) -> Array:
        """[T, G] whether each mean has been refuted by time t: by capital 2 / alpha on either side, ever."""
        off = x[:, None] - grid
        with np.errstate(divide="ignore"):  # at the ends no bet can be ruined
            up = np.minimum(bet[:, None], self.most / grid)
            down = np.minimum(bet[:, None], self.most / (1 - grid))
        capital = np.maximum(
            np.cumsum(np.log1p(up * off), axis=0),
            np.cumsum(np.log1p(-down * off), axis=0),
        )
        return np.maximum.accumulate(capital, axis=0) >= math.log(2 / self.alpha)


def _ends(out: Array, grid: Array) -> tuple[Array, Array]:
    """([T], [T]) the refuted points next to those still in: the truth between two points is never lost."""
    kept = ~out
    first = np.where(kept.any(axis=1), np.argmax(kept, axis=1), 0)
    last = np.where(kept.any(axis=1), len(grid) - 1 - np.argmax(kept[:, ::-1], axis=1), len(grid) - 1)
    return grid[np.maximum(first - 1, 0)], grid[np.minimum(last + 1, len(grid) - 1)]


def _sequence(
    d: Array, low: Array, high: Array, alpha: float, covers: tuple[str, ...], name: str
) -> ConfidenceSequence:
    mean = np.cumsum(d, axis=-1) / np.arange(1, d.shape[-1] + 1)
    low, high = np.maximum.accumulate(low, axis=-1), np.minimum.accumulate(high, axis=-1)
    return ConfidenceSequence(mean, low, high, 1 - alpha, covers, name)


def by_round(first: Array, second: Array) -> Array:
    """[Q, N] the differences of two systems' grades on the same questions, for ``EmpiricalBernstein.rounds``.

    The questions are fixed: a sequence of rounds covers draws of candidates.
    """
    one, two = floats(first, "first"), floats(second, "second")
    same = one.shape == two.shape and one.ndim == 2
    require(same, "second", two.shape, f"use the same questions and rounds, {one.shape}")
    require(not (np.isnan(one) | np.isnan(two)).any(), "grades", "NaN", "a round is complete or left out")
    return one - two


def by_question_order(first: Array, second: Array, questions: Sequence[str], run: str = "compare") -> Array:
    """[Q] the differences of the questions' means in a keyed order, of grades ``[Q]`` or ``[Q, N]``.

    Questions are the sample: the sequence of these differences covers questions and draws. Their order must not depend
    on the grades, so it comes from the key.
    """
    one, two = floats(first, "first"), floats(second, "second")
    one, two = (each.mean(axis=1) if each.ndim == 2 else each for each in (one, two))
    require(len(one) == len(two) == len(questions), "questions", len(questions), f"name the {len(one)} questions")
    names = sorted(range(len(one)), key=lambda q: questions[q])
    order = np.array(names)[permutation(Key(run, "", 0, "questions"), len(one))]
    return (one - two)[order]

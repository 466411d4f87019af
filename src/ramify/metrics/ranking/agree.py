"""How far two orders agree, for many pairs of orders at once; and subset against full-bank rankings over replays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ramify.arrays import Array
from ramify.errors import require
from ramify.keys import numbered
from ramify.metrics.bankcurve import BUDGETS, floats, whole_budgets
from ramify.metrics.estimate import Estimate
from ramify.metrics.ranking.record import MeanScore, by_question, resampled
from ramify.metrics.replay import shuffled
from ramify.types import Key

__all__ = ["Agreement", "agreement", "kendall", "signal_agreement", "spearman", "weighted_kendall"]


def spearman(x: Array, y: Array) -> Array:
    """[...] the correlation of average ranks along the last axis; NaN where all of one are equal.

    >>> float(spearman(np.array([1, 2, 3, 4]), np.array([1, 3, 2, 4])))
    0.8
    """
    ranks = [np.sign(each[..., :, None] - each[..., None, :]).sum(axis=-1) for each in _floats(x, y)]  # centred, twice
    return _ratio((ranks[0] * ranks[1]).sum(axis=-1), *((each**2).sum(axis=-1) for each in ranks))


def kendall(x: Array, y: Array) -> Array:
    """[...] τ_b: concordant minus discordant pairs, over the geometric mean of the untied pairs of each."""
    signs = [np.sign(each[..., :, None] - each[..., None, :]) for each in _floats(x, y)]
    return _ratio(np.einsum("...ij,...ij->...", *signs), *(np.abs(each).sum(axis=(-2, -1)) for each in signs))


def weighted_kendall(x: Array, y: Array) -> Array:
    """[...] Vigna's (2015) weighted τ: a pair weighs 1 / r_i + 1 / r_j, so that exchanges at the top matter most.

    r is the rank by decreasing (x, y), then by (y, x), and the mean of the two is taken, as in ``scipy.stats``.
    """
    x, y = _floats(x, y)
    signs = [np.sign(each[..., :, None] - each[..., None, :]) for each in (x, y)]
    both = []
    for first, second in ((x, y), (y, x)):
        weight = 1.0 / _decreasing(first, second)
        pair = weight[..., :, None] + weight[..., None, :]
        together = (signs[0] * signs[1] * pair).sum(axis=(-2, -1))
        both.append(_ratio(together, *((np.abs(each) * pair).sum(axis=(-2, -1)) for each in signs)))
    return (both[0] + both[1]) / 2


def _decreasing(x: Array, y: Array) -> Array:
    """[..., M] ranks from 1 by decreasing (x, y)."""
    order = np.lexsort((y, x), axis=-1)
    rank = np.empty(x.shape)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(x.shape[-1], 0, -1.0), x.shape), axis=-1)
    return rank


def _floats(x: Array, y: Array) -> tuple[Array, Array]:
    x, y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    require(not (np.isnan(x).any() or np.isnan(y).any()), "scores", "NaN", "leave out models without a score")
    return x, y


def _ratio(together: Array, one: Array, two: Array) -> Array:
    scale = np.sqrt(one * two)
    return np.clip(np.divide(together, scale, out=np.full(np.shape(scale), np.nan), where=scale > 0), -1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Rankings from nested subsets of the bank against the ranking of the whole bank, replay by replay."""

    budgets: Array  # [K]
    full: Array  # [M] the score on the whole bank
    spearman: Array  # [R, K]
    kendall: Array  # [R, K]
    weighted: Array  # [R, K]

    def mean(self, name: str = "spearman") -> Array:
        """[K] over replays; a replay in which all models tie has no correlation and is left out."""
        return np.nanmean(getattr(self, name), axis=0)

    def band(self, name: str = "spearman", level: float = 0.95) -> Array:
        """[2, K] the central range over replays."""
        return np.nanquantile(getattr(self, name), [(1 - level) / 2, (1 + level) / 2], axis=0)


def agreement(
    table: Array,
    *,
    budgets: Iterable[int] = BUDGETS,
    replicates: int = 200,
    metric: Callable[[Array], Array] | None = None,
    questions: Sequence[str] | None = None,
    run: str = "replay",
) -> Agreement:
    """Agreement of rankings by the first k of a seeded permutation with the ranking by all, ``table [M, Q, N]``.

    Replays are paired: every model is cut to the same candidates. The default metric is mean accuracy; another is a
    function of ``[M, Q, k]``, like any scorer.
    """
    table = floats(table, "table")
    require(table.ndim == 3, "table", table.shape, "use [M, Q, N]")
    _, many, n = table.shape
    ks = whole_budgets(budgets, n)
    require((ks <= n).all(), "budgets", int(ks.max(initial=0)), f"the bank has {n} candidates a question")
    names = questions or [f"q{q}" for q in range(many)]
    order = np.stack([shuffled(numbered(Key(run, q, 0, "replay"), range(replicates)), n) for q in names], axis=1)
    if metric is None and not np.isnan(table).any():
        full, subset = table.sum(axis=(1, 2)) / (many * n), _prefix_means(table, order, ks)
    else:
        score = metric or MeanScore()
        full = score(table)
        at = np.arange(many)[:, None]
        subset = np.array([[score(table[:, at, each[:, :k]]) for k in ks] for each in order])
    return Agreement(ks, full, *(each(subset, full) for each in (spearman, kendall, weighted_kendall)))


def _prefix_means(table: Array, order: Array, budgets: Array) -> Array:
    """[R, K, M] mean accuracy of every prefix: one matrix product of who is in with who is right.

    Sums of 0 and 1 are exact in single precision up to 2^24, so equal accuracies stay equal.
    """
    models, many, n = table.shape
    whole = bool(((table == 0) | (table == 1)).all()) and many * n < 2**24
    right = table.reshape(models, -1).T.astype(np.float32 if whole else np.float64)
    place = np.empty(order.shape, dtype=np.int16 if n < 2**15 else np.int64)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(n, dtype=place.dtype), order.shape), axis=-1)
    sums = np.empty((len(order), budgets.size, models))
    for column, k in enumerate(budgets):
        inside = (place < k).reshape(len(order), -1)
        sums[:, column] = inside.astype(right.dtype) @ right
    return sums / (many * budgets[:, None])


def signal_agreement(
    signals: Mapping[str, Array],
    grades: Array,
    *,
    replicates: int = 2000,
    level: float = 0.95,
    run: str = "rank",
) -> dict[str, dict[str, Estimate]]:
    """Does a signal that inference can see rank models as accuracy does? Correlations over models, by signal.

    ``signals`` are tables ``[M, Q, N]``, higher is better, beside ``grades [M, Q, N]``. Intervals resample questions,
    the same for signal and accuracy.
    """
    right = by_question(grades)
    chosen = resampled(right.shape[1], replicates, run)
    count = np.stack([np.bincount(each, minlength=right.shape[1]) for each in chosen]).astype(float)  # [R, Q]
    truth, replays = _weighted(right, np.ones((1, right.shape[1])))[0], _weighted(right, count)
    found = {}
    for name, table in signals.items():
        values = by_question(table)
        require(values.shape == right.shape, f"signals[{name!r}]", values.shape, f"use {right.shape} questions")
        one, many = _weighted(values, np.ones((1, right.shape[1])))[0], _weighted(values, count)
        found[name] = {
            measure.__name__: _interval(float(measure(one, truth)), measure(many, replays), level)
            for measure in (spearman, kendall, weighted_kendall)
        }
    return found


def _weighted(values: Array, count: Array) -> Array:
    """[R, M] the mean over questions, each as often as it was drawn; questions that a model lacks are left out."""
    there = ~np.isnan(values)
    total, many = count @ np.where(there, values, 0.0).T, count @ there.T.astype(float)
    require((many > 0).all(), "table", "a model without values", "leave it out, or grade more of its candidates")
    return total / many


def _interval(value: float, draws: Array, level: float) -> Estimate:
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), level, ("questions",))

"""How well an evaluator orders the prefixes of one frontier, against their continuation value V(z) = E_π[utility | z].

Pruning compares prefixes of one question with each other, so what matters of a score is its order within a frontier,
not its calibration. V is made of utilities, which inference never sees: this is evaluation. On an enumerable model V
is exact; elsewhere it is the mean utility of rollouts, against which no score has τ = 1 and every regret is too large,
while ``lift`` stays unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.arrays import Array, first_max
from ramify.errors import require
from ramify.metrics.bankcurve import floats
from ramify.metrics.estimate import Estimate
from ramify.metrics.interval import Percentile
from ramify.metrics.resample import bootstrap_means
from ramify.types import Key

__all__ = ["Ordering", "continuation_values", "order_quality"]

MEASURES = ("tau", "accuracy", "lift", "regret")


@dataclass(frozen=True, slots=True, eq=False)
class Ordering:
    """Frontier by frontier: how a score orders prefixes, NaN where it has nothing to order."""

    tau: Array  # [...] Kendall's τ_b: concordant less discordant pairs, over the geometric mean of untied pairs
    accuracy: Array  # [...] of the pairs that differ in value, how many the score has right; ties of it count half
    lift: Array  # [...] V of the top choice less the mean V of the frontier
    regret: Array  # [...] the best V of the frontier less that of the top choice
    pairs: Array  # [...] pairs that differ in value
    tied: Array  # [...] share of those pairs that the score ties
    left_out: int  # prefixes without a score

    def by_question(self) -> dict[str, Array]:
        """[Q] each measure, averaged over a question's frontiers: those in which it is defined."""
        return {name: _mean(getattr(self, name)) for name in MEASURES}

    def estimates(self, replicates: int = 4000, level: float = 0.95, run: str = "ordering") -> dict[str, Estimate]:
        """The mean of each measure over questions with its bootstrap interval; questions without one are counted."""
        found = {}
        for name, values in self.by_question().items():
            there = ~np.isnan(values)
            require(there.sum() >= 2, name, int(there.sum()), "an interval over questions needs two that have a value")
            sample = bootstrap_means(values[there], Key(run, "questions", 0, "bootstrap"), replicates)
            estimate = Percentile(level)(sample)
            left = f"{int((~there).sum())} questions with nothing to order left out" if not there.all() else ""
            note = "; ".join(part for part in (estimate.note, left) if part)
            found[name] = Estimate(estimate.value, estimate.low, estimate.high, level, estimate.covers, note)
        return found


def order_quality(score: Any, value: Any) -> Ordering:
    """Compare scores ``[Q, ..., F]`` with continuation values of the same prefixes, along the last axis.

    The last axis is one frontier: the prefixes among which a controller chooses. NaN in ``value`` is padding; NaN in
    ``score`` is missing: such a prefix is never chosen, and its pairs are left out. The top choice is the earliest of
    the best, as a controller takes it.

    >>> found = order_quality([[0.9, 0.5, 0.5, 0.1]], [[0.6, 0.8, 0.2, 0.0]])
    >>> found.tau.round(3).tolist(), found.accuracy.round(3).tolist(), found.regret.round(3).tolist()
    ([0.548], [0.75], [0.2])
    """
    score, value = np.broadcast_arrays(floats(score, "score"), floats(value, "value"))
    there = ~np.isnan(value)
    able = there & ~np.isnan(score)
    signs = [_signs(np.where(able, each, 0.0), able) for each in (score, value)]
    differ, seen = (np.abs(each) for each in reversed(signs))
    together = (signs[0] * signs[1]).sum(axis=(-2, -1))
    pairs = differ.sum(axis=(-2, -1))
    top = np.maximum(first_max(np.where(able, score, -np.inf), able), 0)[..., None]
    chosen = np.take_along_axis(np.nan_to_num(value), top, axis=-1)[..., 0]
    chosen = np.where(able.sum(axis=-1) >= 2, chosen, np.nan)  # there is nothing to choose from one
    return Ordering(
        tau=_over(together, np.sqrt(pairs * seen.sum(axis=(-2, -1)))),
        accuracy=(1 + _over(together, pairs)) / 2,
        lift=chosen - _mean(value, keep=there),
        regret=np.where(there, value, -np.inf).max(axis=-1, initial=-np.inf) - chosen,
        pairs=pairs / 2,
        tied=1 - _over((differ * seen).sum(axis=(-2, -1)), pairs),
        left_out=int((there & ~able).sum()),
    )


def continuation_values(tokens: Array, log_q: Array, utility: Array) -> Mapping[tuple[int, ...], float]:
    """V(z) = Σ_{y below z} q(y) u(y) / q(z) for every prefix z of enumerated leaves ``[L, T]``, padded with -1.

    >>> V = continuation_values(np.array([[0, 2], [0, 1], [1, -1]]), np.log([0.25, 0.5, 0.25]), np.array([1.0, 0, 0]))
    >>> V[()], round(V[0,], 4), V[1,]
    (0.25, 0.3333, 0.0)
    """
    tokens, q, gain = np.asarray(tokens), np.exp(floats(log_q, "log_q")), floats(utility, "utility")
    ok = tokens.ndim == 2 and len(tokens) == len(q) == len(gain)
    require(ok, "tokens", tokens.shape, "give each leaf its log q and its utility")
    mass: dict[tuple[int, ...], float] = {}
    worth: dict[tuple[int, ...], float] = {}
    for row, p, u in zip(tokens.tolist(), q.tolist(), gain.tolist(), strict=True):
        for end in range(sum(token >= 0 for token in row) + 1):
            prefix = tuple(row[:end])
            mass[prefix] = mass.get(prefix, 0.0) + p
            worth[prefix] = worth.get(prefix, 0.0) + p * u
    return {prefix: worth[prefix] / mass[prefix] for prefix in mass}


def _signs(values: Array, able: Array) -> Array:
    """[..., F, F] the sign of every difference, 0 where one of the two is not there."""
    both = able[..., :, None] & able[..., None, :]
    with np.errstate(invalid="ignore"):  # -inf is a legal score, and as large as itself
        differences = np.nan_to_num(np.sign(values[..., :, None] - values[..., None, :]))
    return np.where(both, differences, 0.0)


def _over(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0)


def _mean(values: Array, keep: Array | None = None) -> Array:
    """The mean of what is there over all axes but the first, or over the last with ``keep``; NaN where nothing is."""
    if keep is None:
        values = values.reshape(len(values), -1)
        keep = ~np.isnan(values)
    return _over(np.where(keep, values, 0.0).sum(axis=-1), keep.sum(axis=-1))

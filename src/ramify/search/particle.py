"""Particle filtering over prefixes: a population that is prolonged, weighed and resampled."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ramify.arrays import pick
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import streams, uniform
from ramify.search.control import grown
from ramify.search.tree import LEAF, OPEN, Expansion, Grow, Tree
from ramify.search.unit import Chunk, Rollout, Unit
from ramify.types import Key

__all__ = ["Particles", "effective", "resampled"]

SCHEMES = ("multinomial", "systematic")
CLIP = 1e-6  # a score of exactly 0 or 1 would have an infinite logit
EVEN = 1e-9  # weights that differ by rounding do not differ


@method
class Particles:
    """``n`` particles, each prolonged by a unit, then resampled with probability softmax(logit(S)) (Puri et al., 2025).

    S in [0, 1] is the score of the current step, not a product over steps. Finished particles stay, and are resampled
    with the rest. ``ess``: resample only when 1/Σw² is below that share of n (1: always, when weights differ). With
    ``anneal``, the weights are flattened early: softmax(logit(S) / T), T = max(1, (1 - progress) / (ESS / n)) while
    progress = step / ``depth`` < 1/2. A particle that is held k times has multiplicity k in the bank.
    """

    n: int = 16
    unit: Unit = Chunk(1)
    resample: str = "systematic"
    ess: float = 1.0
    depth: int = 40
    anneal: bool = False

    def __post_init__(self) -> None:
        require(is_whole(self.n, 1), "Particles.n", self.n, "use a number of particles >= 1")
        require(is_whole(self.depth, 1), "Particles.depth", self.depth, "use a number of steps >= 1")
        require(self.resample in SCHEMES, "Particles.resample", self.resample, f"use one of {', '.join(SCHEMES)}")
        require(0 <= self.ess <= 1, "Particles.ess", self.ess, "use a share of n in [0, 1]")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return Expansion(0, (Grow(0, self.n, self.unit if self.depth > 1 else Rollout()),))
        log, step = tree.columns, tree.expansions
        rows, count = self._population(tree)
        if not any(log.state[row] == OPEN for row in rows):
            return None
        weight = self._weights(np.array([log.score[row] for row in rows]), count, step)
        if effective(weight, count) < self.ess * self.n * (1 - EVEN):
            count = resampled(weight, self.n, self.resample, key._replace(stream="resample"), step)
        close = [row for row, k in zip(rows, count, strict=True) if not k]
        hold = [(row, int(k)) for row, k in zip(rows, count, strict=True) if k and log.state[row] == LEAF]
        grow = [(row, int(k)) for row, k in zip(rows, count, strict=True) if k and log.state[row] == OPEN]
        unit = self.unit if step < self.depth - 1 else Rollout()
        return Expansion(step, tuple(Grow(row, k, unit) for row, k in grow), tuple(close), tuple(hold))

    tell = grown

    def _population(self, tree: Tree) -> tuple[list[int], np.ndarray]:
        """The rows of the particles that a sound check has not struck out, and how many are at each."""
        held = tree.last.hold if tree.last else ()
        born = [row for row in tree.born() if tree.columns.state[row] in (OPEN, LEAF)]
        return [row for row, _ in held] + born, np.array([k for _, k in held] + [1] * len(born))

    def _weights(self, score: np.ndarray, count: np.ndarray, step: int) -> np.ndarray:
        """``[P]`` of all particles at each place, summing to 1. A missing score has no weight, unless all are."""
        known = ~np.isnan(score)
        if not known.any():
            known = np.ones_like(known)
        require(not ((score < 0) | (score > 1)).any(), "score", score.tolist(), "use scores in [0, 1]")
        inside = np.clip(np.where(np.isnan(score), 0.5, score), CLIP, 1 - CLIP)
        logit = np.log(inside) - np.log1p(-inside)
        weight = _softmax(logit, known * count)
        progress = step / self.depth
        if self.anneal and progress < 0.5:
            weight = _softmax(logit / max(1.0, (1 - progress) / (effective(weight, count) / self.n)), known * count)
        return weight


def effective(weight: np.ndarray, count: ArrayLike = 1) -> float:
    """1 / Σ w² over particles: how many even ones these are worth. ``count`` of them share a weight evenly.

    >>> effective(np.array([0.5, 0.5])), effective(np.array([1.0, 0.0])), effective(np.array([0.75, 0.25]), [3, 1])
    (2.0, 1.0, 4.0)
    """
    return float(1 / (np.square(weight) / np.maximum(count, 1)).sum())


def resampled(weight: np.ndarray, n: int, scheme: str, key: Key, step: int = 0) -> np.ndarray:
    """How often each of ``[P]`` is drawn, n in all: n w on average. Systematic draws share one uniform.

    >>> resampled(np.array([0.5, 0.25, 0.25]), 4, "systematic", Key("run", "q", 0)).tolist()
    [2, 1, 1]
    """
    stream = streams([key])
    even = (np.arange(n) + uniform(stream, step)) / n
    u = even if scheme == "systematic" else uniform(stream, step, np.arange(n))
    places = pick(np.broadcast_to(weight, (n, weight.size)), u)
    return np.bincount(places, minlength=weight.size)


def _softmax(logit: np.ndarray, count: np.ndarray) -> np.ndarray:
    weight = count * np.exp(logit - logit[count > 0].max())
    shares: np.ndarray = weight / weight.sum()
    return shares

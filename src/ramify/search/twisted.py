"""Twisted sequential Monte Carlo: particles whose weights telescope, and an unbiased estimate of their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.search.control import grown
from ramify.search.particle import SCHEMES, resampled
from ramify.search.tree import LEAF, OPEN, Expansion, Grow, Tree
from ramify.search.unit import Chunk, Rollout, Unit
from ramify.types import Key

__all__ = ["Twisted"]


@method
class Twisted:
    """``n`` particles with weights ψ_t / ψ_{t-1} for the target q(y) ψ(y) (Zhao et al., 2024), ψ = S >= 0.

    The ratios telescope, so what an evaluator says on the way changes the variance and not the target. They are
    resampled when their effective number is below ``ess`` · n. ``anneal``: ψ_t = S^(t / anneal) before step ``anneal``,
    for prefixes that go on; a finished one has its whole S. A prefix that a check rejects, or that has no score, has
    ψ = 0.
    Particles that are resampled n at a time by either scheme are unbiased: with log Ẑ noted at the root, E Ẑ = Σ q ψ,
    and the layer ``weight`` sums to Ẑ with E Σ weight f = Σ q ψ f. They are known when the search has come to its end.
    """

    n: int = 16
    unit: Unit = Chunk(1)
    resample: str = "systematic"
    ess: float = 0.5
    depth: int = 40
    anneal: int = 0

    layers = ("weight",)

    def __post_init__(self) -> None:
        require(is_whole(self.n, 1), "Twisted.n", self.n, "use a number of particles >= 1")
        require(is_whole(self.depth, 1), "Twisted.depth", self.depth, "use a number of steps >= 1")
        require(is_whole(self.anneal), "Twisted.anneal", self.anneal, "use a number of steps >= 0")
        require(self.resample in SCHEMES, "Twisted.resample", self.resample, f"use one of {', '.join(SCHEMES)}")
        require(0 <= self.ess <= 1, "Twisted.ess", self.ess, "use a share of n in [0, 1]")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return Expansion(0, (Grow(0, self.n, self.unit if self.depth > 1 else Rollout()),), note=((0, 0.0),))
        if _over(tree):
            return None
        log, step = tree.columns, tree.expansions
        rows, count = _population(tree)
        weight = np.array([math.exp(self._log_weight(tree, row)) for row in rows])
        mass, log_z = count @ weight, tree.note(0)
        going = np.array([log.state[row] == OPEN for row in rows], dtype=bool)
        if mass and (going & (weight > 0)).any() and mass**2 / (count @ weight**2) < self.ess * self.n:
            log_z += math.log(mass / self.n)
            count = resampled(count * weight / mass, self.n, self.resample, key._replace(stream="resample"), step)
            weight = np.ones(len(rows))
        kept = [(row, int(k), w) for row, k, w in zip(rows, count, weight.tolist(), strict=True) if k and w]
        if not (going & (count * weight > 0)).any():
            return self._end(tree, log_z, rows, kept)
        unit = self.unit if step < self.depth - 1 else Rollout()
        return Expansion(
            step,
            tuple(Grow(row, k, unit) for row, k, _ in kept if log.state[row] == OPEN),
            tuple(sorted(set(rows) - {row for row, *_ in kept})),
            tuple((row, k) for row, k, _ in kept if log.state[row] == LEAF),
            ((0, log_z), *((row, math.log(w)) for row, _, w in kept)),
        )

    tell = grown

    def layer(self, name: str, tree: Tree, rows: Sequence[int]) -> list[float]:
        return [math.exp(tree.note(row)) if _over(tree) else math.nan for row in rows]

    def _log_weight(self, tree: Tree, row: int) -> float:
        """The log weight that a particle brought along, and the ratio of its latest step."""
        if tree.columns.depth[row] < tree.expansions:
            return tree.note(row)  # finished before
        up = tree.columns.parent[row]
        brought = tree.note(up) if up else 0.0
        return brought + self._log_psi(tree, row) - self._log_psi(tree, up)

    def _log_psi(self, tree: Tree, row: int) -> float:
        score, step = tree.columns.score[row], tree.columns.depth[row]
        if not row or not score > 0:
            require(not row or not score < 0, "score", score, "use scores >= 0")
            return -math.inf if row else 0.0
        early = step < self.anneal and tree.columns.state[row] != LEAF
        return math.log(score) * (step / self.anneal if early else 1.0)

    def _end(self, tree: Tree, log_z: float, rows: Sequence[int], kept: Sequence[tuple[int, int, float]]) -> Expansion:
        """What every finished particle weighs: the log of its part of Ẑ."""
        parts = [(row, log_z + math.log(k * w / self.n)) for row, k, w in kept]
        total = float(np.logaddexp.reduce([part for _, part in parts])) if parts else -math.inf
        return Expansion(
            tree.expansions,
            close=tuple(sorted(set(rows) - {row for row, *_ in kept})),
            hold=tuple((row, k) for row, k, _ in kept),
            note=((0, total), *parts),
        )


def _over(tree: Tree) -> bool:
    return tree.last is not None and not tree.last.grow


def _population(tree: Tree) -> tuple[list[int], np.ndarray]:
    """The rows of the particles that are left, and how many are at each ``[P]``."""
    held = tree.last.hold if tree.last else ()
    born = [row for row in tree.born() if tree.columns.state[row] in (OPEN, LEAF)]
    return [row for row, _ in held] + born, np.array([k for _, k in held] + [1] * len(born))

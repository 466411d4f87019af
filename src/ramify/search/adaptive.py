"""Adaptive branching (AB-MCTS-A, Inoue et al., 2025): at every prefix, one more child or further down an old one?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv, stdtrit

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import streams, uniform
from ramify.search.backup import square
from ramify.search.control import grown
from ramify.search.log import Log
from ramify.search.tree import GROWN, OPEN, Expansion, Grow, Tree
from ramify.search.unit import Chunk, TopTokens, Unit
from ramify.types import Key

__all__ = ["ABMCTS", "BetaScores", "NormalScores"]


@method
class NormalScores:
    """Scores are normal, of unknown mean and variance: μ | σ² ~ N(m, σ²/κ), σ² ~ ν τ² / χ²_ν.

    After n scores of mean x̄: κ' = κ + n, ν' = ν + n, m' = (κ m + n x̄) / κ',
    ν' τ'² = ν τ² + Σ(x - x̄)² + n κ (m - x̄)² / κ'. A draw of μ is m' + √(τ'²/κ') t_ν'.
    """

    m: float = 0.0
    kappa: float = 1.0
    nu: float = 1.0
    tau2: float = 0.1

    def __post_init__(self) -> None:
        for name in ("kappa", "nu", "tau2"):
            require(getattr(self, name) > 0, f"NormalScores.{name}", getattr(self, name), "use a number > 0")

    def posterior(self, n: np.ndarray, total: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, ...]:
        """(m, κ, ν, τ²) after ``n`` scores with these sums. All ``[...]``."""
        mean = total / np.maximum(n, 1)
        spread = np.maximum(squares - n * mean**2, 0.0) + n * self.kappa * (self.m - mean) ** 2 / (self.kappa + n)
        tau2 = (self.nu * self.tau2 + spread) / (self.nu + n)
        return (self.kappa * self.m + n * mean) / (self.kappa + n), self.kappa + n, self.nu + n, tau2

    def draw(self, n: np.ndarray, total: np.ndarray, squares: np.ndarray, u: np.ndarray) -> np.ndarray:
        m, kappa, nu, tau2 = self.posterior(n, total, squares)
        drawn: np.ndarray = m + np.sqrt(tau2 / kappa) * stdtrit(nu, u)
        return drawn


@method
class BetaScores:
    """Scores in [0, 1] as fractions of a success: p ~ Beta(a + Σx, b + Σ(1 - x))."""

    a: float = 0.5
    b: float = 0.5

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            require(getattr(self, name) > 0, f"BetaScores.{name}", getattr(self, name), "use a number > 0")

    def draw(self, n: np.ndarray, total: np.ndarray, squares: np.ndarray, u: np.ndarray) -> np.ndarray:
        ok = bool(((total >= 0) & (total <= n)).all())
        require(ok, "score", total.tolist(), "use scores in [0, 1], or NormalScores()")
        drawn: np.ndarray = betaincinv(self.a + total, self.b + n - total, u)
        return drawn


@method
class ABMCTS:
    """Thompson sampling between GEN, one more child, and CONT, an old one; then among the old ones, and so on down.

    GEN has seen the scores of a prefix's own children, CONT and each child those of what is below the children. A
    finished child cannot be continued, so where all are finished another one is generated. ``most`` children in all.
    Draws come from the key.
    """

    prior: NormalScores | BetaScores = NormalScores()
    unit: Unit = Chunk(1)
    most: int = 64

    def __post_init__(self) -> None:
        require(is_whole(self.most, 1), "ABMCTS.most", self.most, "use a number of children >= 1")
        ok = not isinstance(self.unit, TopTokens)
        require(ok, "ABMCTS.unit", self.unit, "use a unit that is drawn: an enumeration has no one more")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if tree.expansions >= self.most:
            return None
        log, row, drawn, stream = tree.columns, 0, 0, streams([key._replace(stream="thompson")])
        while log.state[row] == GROWN:
            kids = log.kids(row)
            going = [child for child in kids if log.state[child] in (OPEN, GROWN)]
            if not going:
                break
            u = uniform(stream, tree.expansions, drawn + np.arange(2 + len(going)))
            drawn += len(u)
            below = _below(log, kids)  # [3, children]
            generate, go_on = self._draw(np.stack([_own(log, kids).sum(1), below.sum(1)], axis=1), u[:2])
            if generate >= go_on:
                break
            at = {child: place for place, child in enumerate(kids)}
            row = going[int(np.argmax(self._draw(below[:, [at[child] for child in going]], u[2:])))]
        return Expansion(tree.expansions, (Grow(row, 1, self.unit, after=log.count[row]),))

    def _draw(self, sums: np.ndarray, u: np.ndarray) -> np.ndarray:
        return self.prior.draw(sums[0], sums[1], sums[2], u)

    tell = grown


def _own(log: Log, rows: Sequence[int]) -> np.ndarray:
    """``[3, rows]``: (n, Σx, Σx²) of these rows' own scores."""
    score = np.array([log.score[row] if log.own[row] else 0.0 for row in rows])
    return np.stack([np.array([log.own[row] for row in rows], dtype=np.float64), score, score**2])


def _below(log: Log, rows: Sequence[int]) -> np.ndarray:
    """``[3, rows]``: (n, Σx, Σx²) of the scores of everything below each row."""
    back, squares = log.backup(), log.backup(square)
    columns = (back.visits, back.total, squares.total)
    return np.asarray(np.array([[column[row] for row in rows] for column in columns]) - _own(log, rows))

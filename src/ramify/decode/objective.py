"""Objective gates: choose the support by minimising a function of the set, exactly where that is affordable."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ramify.arrays import largest, namespace, to_numpy
from ramify.decode.measure import TokenMeasure, restrict
from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require

__all__ = ["MassUnderEntropy", "MassVersusSize", "Objective"]


@method
class MassVersusSize:
    """J(A) = -log r(A) + price · log |A|: mass, paid for by the size of the support."""

    price: float

    def __post_init__(self) -> None:
        require(self.price >= 0, "MassVersusSize.price", self.price, "use a price >= 0")

    def __call__(self, member: np.ndarray, r: np.ndarray) -> np.ndarray:
        cost: np.ndarray = -np.log(member @ r) + self.price * np.log(member.sum(-1))
        return cost


@method
class MassUnderEntropy:
    """J(A) = -r(A) if H(Norm_A(r)) <= alpha H(r), else +inf: the problem that ``TopH`` solves among heads."""

    alpha: float

    def __post_init__(self) -> None:
        require(0 < self.alpha <= 1, "MassUnderEntropy.alpha", self.alpha, "use a share of the entropy in (0, 1]")

    def __call__(self, member: np.ndarray, r: np.ndarray) -> np.ndarray:
        log_r = np.log(r, where=r > 0, out=np.zeros_like(r))
        mass = member @ r
        entropy = np.log(mass) - member @ (r * log_r) / mass
        return np.where(entropy <= -self.alpha * (r @ log_r) + 1e-12, -mass, np.inf)


@method
class Objective:
    """The support A that minimises ``objective(member [S, n], r [n]) -> [S]`` over nonempty subsets of the live set.

    Exact by enumeration for up to ``exact`` live tokens. Beyond that the objective sees the ``pool`` heaviest
    tokens and only their heads are compared: a declared approximation, which the card prints. Ties go to the
    smaller set, then to the one with the heavier tokens. An objective that refuses every set (+inf) leaves the
    mode, recorded as a fallback.
    """

    objective: Callable[[np.ndarray, np.ndarray], np.ndarray]
    exact: int = 12
    pool: int = 256

    def __post_init__(self) -> None:
        require(callable(self.objective), "Objective.objective", self.objective, "give a function of (member, r)")
        require(
            is_whole(self.exact, 1) and self.exact <= 16,
            "Objective.exact",
            self.exact,
            "use 1 to 16 tokens: 2^16 subsets is the most",
        )
        require(is_whole(self.pool, 1), "Objective.pool", self.pool, "use an integer >= 1")

    @property
    def approximation(self) -> str:
        return f"exact up to {self.exact} live tokens; beyond, the best head of the {self.pool} heaviest"

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp, size = namespace(measure.energy), measure.energy.shape[-1]
        values, ids = largest(measure.energy, max(self.pool, self.exact))
        r = to_numpy(xp.exp(xp.astype(values, xp.float64) - measure.log_total)).reshape(-1, values.shape[-1])
        ids = to_numpy(ids).reshape(r.shape)
        keep = np.zeros((r.shape[0], size), dtype=bool)
        for row, live in enumerate(to_numpy(measure.support).reshape(-1)):
            keep[row, ids[row][self._best(r[row], int(live))]] = True
        return restrict(measure, xp.asarray(keep.reshape(tuple(measure.live.shape)), device=measure.live.device))

    def _best(self, r: np.ndarray, live: int) -> np.ndarray:
        """The positions in sorted r that the objective keeps; none if it refuses them all."""
        live = min(live, int(np.count_nonzero(r)))  # what underflows to probability zero adds nothing to any set
        exact = live <= self.exact
        n = live if exact else min(self.pool, live)
        member = _subsets(n) if exact else np.tri(n, dtype=bool)
        cost = np.asarray(self.objective(member, r[:n]), dtype=np.float64)
        if cost.shape != (len(member),) or np.isnan(cost).any():
            raise InvalidValue(
                f"{self.objective!r} gave {cost.shape} or NaN: return [{len(member)}] costs, +inf to refuse"
            )
        best = int(np.argmin(cost))
        return np.flatnonzero(member[best]) if cost[best] < np.inf else np.empty(0, dtype=np.int64)


@lru_cache(maxsize=16)
def _subsets(n: int) -> np.ndarray:
    """[2^n - 1, n] every nonempty subset of n ranked tokens, by size and then by rank."""
    chosen = [c for size in range(1, n + 1) for c in itertools.combinations(range(n), size)]
    member = np.zeros((len(chosen), n), dtype=bool)
    for row, members in enumerate(chosen):
        member[row, list(members)] = True
    return member

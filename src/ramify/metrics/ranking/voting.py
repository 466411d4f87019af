"""Rankings by voting: every question is a voter that orders the models by how well they do on it."""

from __future__ import annotations

import numpy as np

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.metrics.ranking.record import by_question

__all__ = ["Borda", "Copeland", "Kemeny", "Schulze", "preferences"]


def preferences(table: Array) -> Array:
    """[M, M] how many questions prefer i to j. A question that lacks either does not vote on the pair.

    >>> preferences(np.array([[1, 1, 0], [0, 1, 1]])).tolist()
    [[0, 1], [1, 0]]
    """
    values = by_question(table)
    return np.stack([(row > values).sum(axis=-1) for row in values])  # a comparison with NaN is False


@method
class Borda:
    """The mean over questions of how many models one beats, ties counting half."""

    def __call__(self, table: Array) -> Array:
        values = by_question(table)
        wins = preferences(values)
        return ((wins - wins.T).sum(axis=1) / values.shape[1] + len(values) - 1) / 2


@method
class Copeland:
    """How many models one beats in a majority of questions, ties counting half."""

    def __call__(self, table: Array) -> Array:
        return _duels_won(preferences(table))


@method
class Schulze:
    """How many models one beats by the strongest path of majorities (Schulze, 2011); strength is the winning votes."""

    def __call__(self, table: Array) -> Array:
        wins = preferences(table)
        path = np.where(wins > wins.T, wins, 0)
        for k in range(len(path)):
            path = np.maximum(path, np.minimum(path[:, k, None], path[None, k]))
        np.fill_diagonal(path, 0)
        return _duels_won(path)


def _duels_won(strength: Array) -> Array:
    """[M] Σ_j 1{i over j} + half the ties."""
    return ((np.sign(strength - strength.T)).sum(axis=1) + len(strength) - 1) / 2


@method
class Kemeny:
    """The order that the fewest (question, pair) votes contradict: exact, by dynamic programming over subsets.

    Scores are M - 1 minus the place, averaged over all optimal orders. 2^M subsets: for rosters up to ``largest``.
    """

    largest: int = 16

    def __post_init__(self) -> None:
        ok = is_whole(self.largest, 1) and self.largest <= 20
        require(ok, "Kemeny.largest", self.largest, "use up to 20 models; Schulze for more")

    def __call__(self, table: Array) -> Array:
        wins = preferences(table)
        many = len(wins)
        require(many <= self.largest, "models", many, f"Kemeny is exact up to {self.largest} models; use Schulze")
        cost = _against(wins)
        best, ways = _layers(cost, many, forward=True)
        rest, ends = _layers(cost, many, forward=False)
        masks, full = np.arange(1 << many), (1 << many) - 1
        place = np.zeros(many)
        for i in range(many):
            before = masks[(masks >> i) & 1 == 0]
            after = before | (1 << i)
            optimal = best[before] + cost[i, full ^ after] + rest[after] == best[full]
            share = np.where(optimal, ways[before] * ends[after], 0.0) / ways[full]
            place[i] = (share * np.bitwise_count(before)).sum()
        return many - 1 - place


def _against(wins: Array) -> Array:
    """[M, 2^M] the votes that contradict putting i before every model of a set: Σ_{j in set} wins[j, i]."""
    table = np.zeros((len(wins), 1), dtype=np.int64)
    for j in range(len(wins)):
        table = np.concatenate([table, table + wins[j][:, None]], axis=1)
    return table


def _layers(cost: Array, many: int, forward: bool) -> tuple[Array, Array]:
    """(least cost [2^M], in how many ways) of putting the models of a set first, or (backward) the others last."""
    masks, full = np.arange(1 << many), (1 << many) - 1
    size = np.bitwise_count(masks)
    value = np.full(1 << many, np.iinfo(np.int64).max // 4)
    ways = np.zeros(1 << many)
    start = 0 if forward else full
    value[start], ways[start] = 0, 1.0
    for layer in range(many) if forward else range(many, 0, -1):
        here = masks[size == layer]
        for i in range(many):
            if forward:
                known = here[(here >> i) & 1 == 0]
                new = known | (1 << i)
                price = value[known] + cost[i, full ^ new]
            else:
                known = here[(here >> i) & 1 == 1]
                new = known ^ (1 << i)
                price = value[known] + cost[i, full ^ known]
            ways[new] = np.where(
                price < value[new], ways[known], np.where(price == value[new], ways[new] + ways[known], ways[new])
            )
            value[new] = np.minimum(value[new], price)
    return value, ways

"""Several outputs at once: good, and unlike each other."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ramify.arrays import Array
from ramify.bank import Candidates, Choice
from ramify.decide.mbr import seeded
from ramify.decide.support import PAIRS, Rule, otherwise, valid_fields
from ramify.decide.utility import kernel
from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = ["DiverseNBest"]


@method
class DiverseNBest:
    """k outputs that maximise mean expected utility + spread * mean pairwise dissimilarity 1 - u (Jinnai et al., 2024).

    Greedy, then ``steps`` seeded attempts to swap a chosen output for another. ``ranked`` holds the k by expected
    utility, best first; the winner is the first of them.
    """

    k: int = 4
    spread: float = 0.1
    steps: int = 20
    seed: int = 0
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(is_whole(self.k, 1), "DiverseNBest.k", self.k, "use a number of outputs >= 1")
        require(self.spread >= 0, "DiverseNBest.spread", self.spread, "use a weight >= 0")
        require(is_whole(self.steps), "DiverseNBest.steps", self.steps, "use a number of swaps >= 0")

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        valid, n = candidates.eligible, candidates.eligible.shape[-1]
        pairs = kernel(candidates, valid)
        mean = pairs.sum(axis=-1) / np.maximum(np.count_nonzero(valid, axis=-1), 1)[..., None]
        flat = zip(valid.reshape(-1, n), pairs.reshape(-1, n, n), mean.reshape(-1, n), strict=True)
        ranked = [self.chosen(row, *part) for row, part in enumerate(flat)]
        table = np.array(ranked, dtype=np.int64).reshape(*valid.shape[:-1], self.k)
        choice = Choice(table[..., 0], np.where(valid, mean, np.nan), table)
        return otherwise(candidates, choice, self.fallback)

    def value(self, chosen: list[int], pairs: Array, mean: Array) -> float:
        """The objective of a set."""
        apart = [1 - (pairs[i, j] + pairs[j, i]) / 2 for i in chosen for j in chosen if i < j]
        return float(mean[chosen].mean() + self.spread * (np.mean(apart) if apart else 0.0))

    def chosen(self, row: int, valid: Array, pairs: Array, mean: Array) -> list[int]:
        """The k ids of one question, -1 where there are fewer."""
        ids, rng = np.flatnonzero(valid).tolist(), seeded(self.seed, row, "swaps")
        chosen: list[int] = []
        while len(chosen) < min(self.k, len(ids)):
            rest = [i for i in ids if i not in chosen]
            chosen.append(max(rest, key=lambda i: self.value([*chosen, i], pairs, mean)))
        for _ in range(self.steps if len(ids) > len(chosen) else 0):
            out, new = int(rng.integers(len(chosen))), [i for i in ids if i not in chosen]
            trial = [*chosen[:out], new[int(rng.integers(len(new)))], *chosen[out + 1 :]]
            if self.value(trial, pairs, mean) > self.value(chosen, pairs, mean):
                chosen = trial
        chosen.sort(key=lambda i: (-mean[i], i))
        return chosen + [-1] * (self.k - len(chosen))

"""Minimum Bayes risk: support_i = Σ_j w_j u(i, j), exactly and for fewer utility calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, log2
from typing import ClassVar

import numpy as np

from ramify.arrays import Array
from ramify.bank import Candidates, Choice
from ramify.decide.support import PAIRS, Rule, scored, settle, valid_fields
from ramify.decide.utility import asked, kernel
from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require
from ramify.keys import generator
from ramify.types import Key

__all__ = ["AMBR", "MBR", "CentroidMBR", "LowRankMBR", "PrunedMBR", "ReferenceAggregation", "WeightedMBR"]


@method
class MBR:
    """argmax_i (1/n) Σ_k u(i, k), the diagonal included (Kumar and Byrne, 2004): n² calls, half if u is symmetric.

    >>> from ramify.decide import Exact, Pairs
    >>> bank = Candidates(np.array([[0, 1, 1]]), utility=Pairs([["A", "B", "B"]], Exact()))
    >>> MBR()(bank).support.round(4).tolist()
    [[0.3333, 0.6667, 0.6667]]
    """

    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        valid = candidates.eligible
        n = np.maximum(np.count_nonzero(valid, axis=-1), 1)[..., None]
        return settle(candidates, valid, kernel(candidates, valid).sum(axis=-1) / n, fallback=self.fallback)


@method
class WeightedMBR:
    """argmax_i Σ_k w_k u(i, k) / Σ_k w_k for weights w >= 0 with a positive sum, such as importance weights."""

    evidence: str = "weight"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence, PAIRS)

    def __call__(self, candidates: Candidates) -> Choice:
        weight, valid = scored(candidates, self.evidence, candidates.eligible, self.missing)
        weight = np.where(valid, weight, 0.0)
        ok = np.isfinite(weight).all() and (weight >= 0).all()
        require(ok, f"evidence {self.evidence!r}", float(weight.min(initial=0.0)), "use finite weights >= 0")
        total = weight.sum(axis=-1)
        require((total[valid.any(axis=-1)] > 0).all(), f"the sum of {self.evidence!r}", 0.0, "some weight must be > 0")
        sums = np.einsum("...ij,...j->...i", kernel(candidates, valid), weight)
        return settle(candidates, valid, sums / np.where(total > 0, total, 1.0)[..., None], fallback=self.fallback)


# ------------------------------------------------------------------------------------------------------ approximations


def by_row(candidates: Candidates, estimate: Callable[[int, Array], Array], fallback: Rule | None) -> Choice:
    """Decide row by row: ``estimate(row, ids)`` gives the expected utility of the eligible ids, -inf if dropped."""
    valid = candidates.eligible
    rows = valid.reshape(-1, valid.shape[-1])
    support = np.full(rows.shape, -np.inf)
    for row, mask in enumerate(rows):
        ids = np.flatnonzero(mask)
        if ids.size:
            support[row, ids] = estimate(row, ids)
    return settle(candidates, valid, support.reshape(valid.shape), fallback=fallback)


def seeded(seed: int, row: int, purpose: str) -> np.random.Generator:
    """The random stream of one question's approximation."""
    return generator(Key("decide", str(row), seed, purpose))


@method
class ReferenceAggregation:
    """Average the references' features once and score every hypothesis against the average: n calls, not n².

    Exact where u is linear in the reference (DeNero et al., 2009; Vamvas and Sennrich, 2024). The utility is a
    ``Features``.
    """

    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        vectors, against = featured(candidates)

        def estimate(row: int, ids: Array) -> Array:
            return against(row, ids, vectors[row, ids].mean(axis=0)[None])

        return by_row(candidates, estimate, self.fallback)


@method
class CentroidMBR:
    """Score against the centroids of the references, found by seeded k-means (Deguchi et al., 2024): n k calls.

    Centroids weigh alike, by the ``"count"`` of their references, or by its ``"log"``, log(1 + count).
    """

    k: int = 8
    weight: str = "count"
    iterations: int = 10
    seed: int = 0
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(is_whole(self.k, 1), "CentroidMBR.k", self.k, "use a number of centroids >= 1")
        require(is_whole(self.iterations, 0), "CentroidMBR.iterations", self.iterations, "use a number >= 0")
        known = ("equal", "count", "log")
        require(self.weight in known, "CentroidMBR.weight", self.weight, f"use one of {', '.join(known)}")

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        vectors, against = featured(candidates)

        def estimate(row: int, ids: Array) -> Array:
            centres, counts = kmeans(vectors[row, ids], self.k, self.iterations, seeded(self.seed, row, "centroids"))
            weight = {"equal": np.ones(len(counts)), "count": counts, "log": np.log1p(counts)}[self.weight]
            return against(row, ids[:, None], centres[None]) @ (weight / weight.sum())

        return by_row(candidates, estimate, self.fallback)


def featured(candidates: Candidates) -> tuple[Array, Callable[[int, Array, Array], Array]]:
    """The vectors of the candidates' utility, and how it scores against a vector."""
    utility = asked(candidates)
    if not hasattr(utility, "vectors") or not hasattr(utility, "against"):
        raise InvalidValue(f"utility = {utility!r}: references can be averaged as vectors only: hand in Features(...)")
    return utility.vectors, utility.against


def kmeans(points: Array, k: int, iterations: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Centres and how many points each has: k-means++ seeding, then Lloyd's steps. Empty centres vanish."""
    centres = points[[int(rng.integers(len(points)))]]
    while len(centres) < min(k, len(points)):
        gap = ((points[:, None] - centres[None]) ** 2).sum(-1).min(axis=1)
        if not gap.any():
            break
        centres = np.concatenate([centres, points[[int(rng.choice(len(points), p=gap / gap.sum()))]]])
    for _ in range(iterations):
        nearest = ((points[:, None] - centres[None]) ** 2).sum(-1).argmin(axis=1)
        centres = np.stack([points[nearest == c].mean(axis=0) for c in np.unique(nearest)])
    nearest = ((points[:, None] - centres[None]) ** 2).sum(-1).argmin(axis=1)
    kept, counts = np.unique(nearest, return_counts=True)
    return centres[kept], counts.astype(np.float64)


@method
class PrunedMBR:
    """Confidence-based pruning (Cheng and Vlachos, 2023): drop hypotheses that a bootstrap says will not win.

    References come in one seeded order, ``first`` of them and then doubling. After each round a hypothesis stays if,
    in more than 1 - alpha of ``bootstrap`` resamples of the references seen, it is at least as good as the current
    best. The winner is the best by its mean over the references seen.
    """

    alpha: float = 0.99
    first: int = 8
    bootstrap: int = 500
    seed: int = 0
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(0 < self.alpha < 1, "PrunedMBR.alpha", self.alpha, "use a confidence in (0, 1)")
        require(is_whole(self.first, 1), "PrunedMBR.first", self.first, "use a number of references >= 1")
        require(is_whole(self.bootstrap, 1), "PrunedMBR.bootstrap", self.bootstrap, "use a number of resamples >= 1")

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        utility = asked(candidates)

        def estimate(row: int, ids: Array) -> Array:
            rng = seeded(self.seed, row, "pruning")
            references, alive = rng.permutation(ids), np.ones(ids.size, dtype=bool)
            table = np.zeros((ids.size, ids.size))
            seen, r = 0, min(self.first, ids.size)
            while True:
                table[alive, seen:r] = utility(row, ids[alive][:, None], references[None, seen:r])
                mean = np.where(alive, table[:, :r].mean(axis=1), -np.inf)
                if r == ids.size or alive.sum() == 1:
                    return mean
                counts = rng.multinomial(r, np.full(r, 1 / r), size=self.bootstrap)
                means = table[:, :r] @ counts.T  # [n, bootstrap], r times the resampled mean
                alive &= (means >= means[mean.argmax()]).mean(axis=1) > 1 - self.alpha
                seen, r = r, min(2 * r, ids.size)

        return by_row(candidates, estimate, self.fallback)


@method
class AMBR:
    """Adaptive MBR by correlated sequential halving (Jinnai and Ariu, 2024) within a budget of utility calls.

    Each round draws t = clamp(floor(budget / (|S| ceil(log2 n))), 1, n) new references for all survivors S and keeps
    those at or above the median of the running means. A pair of equals costs nothing where the utility knows it.
    """

    budget: int
    seed: int = 0
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(is_whole(self.budget, 1), "AMBR.budget", self.budget, "use a number of utility calls >= 1")

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        utility = asked(candidates)

        def estimate(row: int, ids: Array) -> Array:
            references = seeded(self.seed, row, "halving").permutation(ids)
            total, alive, seen = np.zeros(ids.size), np.ones(ids.size, dtype=bool), 0
            for pulls in self.pulls(ids.size, alive):
                new = references[seen : seen + pulls]
                total[alive] += utility(row, ids[alive][:, None], new[None]).sum(axis=1)
                seen += new.size
                kept = alive & (total >= np.median(total[alive]))
                if seen >= ids.size or kept.sum() == alive.sum():
                    break
                alive[:] = kept
            return np.where(alive, total / max(seen, 1), -np.inf)

        return by_row(candidates, estimate, self.fallback)

    def pulls(self, n: int, alive: Array) -> Iterator[int]:
        """How many new references each round draws, while the budget lasts and more than one is ``alive``."""
        spent, rounds = 0, max(ceil(log2(n)), 1) if n > 1 else 1
        while (size := int(alive.sum())) > 1:
            t = min(max(self.budget // (size * rounds), 1), n)
            if spent + size * t > self.budget:
                return
            yield t
            spent += size * t


@method
class LowRankMBR:
    """Observe a share of the pairs at random and complete the matrix (Trabelsi et al., 2024).

    ceil(share n²) cells, alternating least squares of the given rank with a ridge; the row means of the completion.
    """

    share: float = 0.125
    rank: int = 8
    ridge: float = 0.1
    iterations: int = 10
    seed: int = 0
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(0 < self.share <= 1, "LowRankMBR.share", self.share, "use a share of the pairs in (0, 1]")
        require(is_whole(self.rank, 1), "LowRankMBR.rank", self.rank, "use a rank >= 1")
        require(self.ridge > 0, "LowRankMBR.ridge", self.ridge, "use a ridge > 0")

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        utility = asked(candidates)

        def estimate(row: int, ids: Array) -> Array:
            rng, n = seeded(self.seed, row, "cells"), ids.size
            cells = rng.permutation(n * n)[: ceil(self.share * n * n)]
            seen = np.zeros((n, n), dtype=bool)
            seen.flat[cells] = True
            values = np.zeros((n, n))
            values[seen] = utility(row, ids[np.nonzero(seen)[0]], ids[np.nonzero(seen)[1]])
            left, right = (rng.normal(size=(n, min(self.rank, n))) for _ in range(2))
            for _ in range(self.iterations):
                left = self.solve(values, seen, right)
                right = self.solve(values.T, seen.T, left)
            return (left @ right.T).mean(axis=1)

        return by_row(candidates, estimate, self.fallback)

    def solve(self, values: Array, seen: Array, fixed: Array) -> Array:
        """The ridge regression of every row of ``values`` on ``fixed``, over the cells seen."""
        weighted = fixed[None] * seen[:, :, None]
        gram = np.einsum("ijr,js->irs", weighted, fixed) + self.ridge * np.eye(fixed.shape[1])
        return np.linalg.solve(gram, np.einsum("ijr,ij->ir", weighted, values)[..., None])[..., 0]

"""Order-only votes: what counts of a score is its rank. Exact integers decide, so that a tie is a tie.

The candidates that tie on ranks a+1 .. b of n share T(n - a) - T(n - b) equally, where T is the running sum of the
weights from the lowest rank up: T(j) = Σ_{s<=j} s^p for a rank vote and j^m for the Majority-of-the-Bests. Sharing
makes fractions, so a row is multiplied by the least common multiple of its tie sizes and stays integral.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import ClassVar

import numpy as np

from ramify.arrays import Array, standing
from ramify.bank import Candidates, Choice
from ramify.decide.support import Rule, otherwise, scored, settle, tally, valid_fields, voters
from ramify.decide.votes import Plurality
from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = ["AdaptiveMajorityOfTheBests", "FilteredVote", "MajorityOfTheBests", "RankVote"]

FINE = 2**36
EXACT = 2**53  # integers up to here are float64 without loss, and so are their sums
SMALL = 128  # candidates up to which the least common multiple of tie sizes fits 64 bits


@method
class RankVote:
    """w_i = (n - r_i + 1)^p, r_i the rank by score: p = 0 is plurality, 1 Borda, inf Best-of-N (Kang et al., 2025).

    ``ties="share"`` gives equal scores the mean weight of the ranks they occupy; ``"earliest"`` is the released code,
    where position decides. The released default is p = 0.5. Sums are integers.
    """

    evidence: str = "score"
    p: float = 1
    ties: str = "share"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(0 <= self.p < np.inf, "RankVote.p", self.p, "use an exponent in [0, inf); BestOfN is the limit")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        key, support = ranked_tally(candidates, score, valid, self.running, self.ties)
        return settle(candidates, valid, key, support=support, fallback=self.fallback)

    def running(self, n: int) -> list[int]:
        """T(0) .. T(n): the sums of the weights from the lowest rank up."""
        if float(self.p).is_integer():
            return list(accumulate((s ** int(self.p) for s in range(1, n + 1)), initial=0))
        # In units of 2^-36 of the largest: sums are exact in any order, and groups of the same ranks tie.
        return list(accumulate((round((s / n) ** self.p * FINE) for s in range(1, n + 1)), initial=0))


@method
class MajorityOfTheBests:
    """The mode of the Best-of-m answer over resamples with replacement, in closed form (Rakhsha et al., 2025).

    The candidate at rank t = 0, 1, ... wins with probability ((n - t)^m - (n - t - 1)^m) / n^m. ``m=None`` is
    floor(sqrt n); 1 is plurality and n -> inf Best-of-N. The support is the probability of the answer.

    >>> scores = {"score": np.array([0.5, 0.55, 0.6, 0.9, 0.4, 0.3])}
    >>> MajorityOfTheBests(m=2)(Candidates(np.array([0, 0, 0, 1, 1, 2]), evidence=scores)).support.round(4).tolist()
    [0.5833, 0.5833, 0.5833, 0.3889, 0.3889, 0.0278]
    """

    evidence: str = "score"
    m: int | None = None
    ties: str = "share"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(self.m is None or is_whole(self.m, 1), "MajorityOfTheBests.m", self.m, "use None or an integer >= 1")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        key, support = ranked_tally(candidates, score, valid, self.running, self.ties)
        return settle(candidates, valid, key, support=support, fallback=self.fallback)

    def running(self, n: int) -> list[int]:
        """T(j) = j^m: the bootstrap weights telescope."""
        m = math.isqrt(n) if self.m is None else self.m
        return [j ** max(1, min(m, n)) for j in range(n + 1)]


@method
class AdaptiveMajorityOfTheBests:
    """Majority-of-the-Bests with the m whose answer distribution moves least (Bickel and Sakov, 2008).

    Of the sizes m_j = ceil(ratio^j n) that differ, the one whose distribution is nearest to its successor's, in total
    variation; the largest of several. One m serves a question, chosen in exact fractions.
    """

    evidence: str = "score"
    ratio: float = 0.75
    ties: str = "share"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(0 < self.ratio < 1, "AdaptiveMajorityOfTheBests.ratio", self.ratio, "use a ratio in (0, 1)")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        _, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        sizes = self.sizes(candidates)
        choices = {m: self.at(m)(candidates) for m in np.unique(sizes[sizes > 0]).tolist()}
        winner = np.full(sizes.shape, -1)
        support = np.full(valid.shape, np.nan)
        for m, choice in choices.items():
            winner = np.where(sizes == m, choice.winner, winner)
            support = np.where((sizes == m)[..., None], choice.support, support)
        return otherwise(candidates, Choice(winner, support, winner[..., None]), self.fallback)

    def at(self, m: int) -> MajorityOfTheBests:
        return MajorityOfTheBests(self.evidence, m, self.ties, self.missing)

    def grid(self, n: int) -> list[int]:
        """ceil(ratio^j n) for j = 0, 1, ... until 1, each size once, from the largest down."""
        sizes: list[int] = []
        size = float(n)
        while not sizes or sizes[-1] > 1:
            sizes.append(max(math.ceil(size - 1e-9), 1))
            size *= self.ratio
        return list(dict.fromkeys(sizes))

    def sizes(self, candidates: Candidates) -> Array:
        """``[...]`` the m of every question, 0 where nothing is valid."""
        score, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        lead, n = valid.shape[:-1], valid.shape[-1]
        rows = math.prod(lead)
        parts = [part.reshape(rows, n) for part in (candidates.answers, valid, *span(score, valid, self.ties))]
        return np.array([self._size(*row) for row in zip(*parts, strict=True)], dtype=np.int64).reshape(lead)

    def _size(self, answers: Array, valid: Array, above: Array, upto: Array) -> int:
        n, ids = int(valid.sum()), np.flatnonzero(valid)
        grid = self.grid(n) if n else [0]
        laws = []
        for m in grid:
            law: dict[int, Fraction] = {}
            for i in ids:
                a, b = int(above[i]), int(upto[i])
                share = Fraction((n - a) ** m - (n - b) ** m, (b - a) * n**m)
                law[int(answers[i])] = law.get(int(answers[i]), Fraction(0)) + share
            laws.append(law)
        moves = [sum(abs(p[a] - q[a]) for a in p) for p, q in pairwise(laws)]
        return grid[moves.index(min(moves))] if moves else grid[0]


@method
class FilteredVote:
    """Keep the best by score, then let another rule decide among them: offline DeepConf (Fu et al., 2025).

    ``keep`` is a share of the valid in (0, 1], ceil(keep n), or a whole number of candidates; 1 is one candidate and
    1.0 all of them. ``ties="share"`` keeps all that tie with the last one kept; ``"earliest"`` exactly that many.
    """

    evidence: str = "score"
    keep: float = 0.5
    then: Rule = Plurality()
    ties: str = "share"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        share = isinstance(self.keep, float | np.floating) and 0 < self.keep <= 1
        require(
            share or is_whole(self.keep, 1), "FilteredVote.keep", self.keep, "use a share in (0, 1] or a count >= 1"
        )
        require(callable(self.then), "FilteredVote.then", self.then, "use a rule")

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.evidence, *getattr(self.then, "needs", ()))))

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        above, _ = span(score, valid, self.ties)
        kept = valid & (above < self.size(np.count_nonzero(valid, axis=-1))[..., None])
        return otherwise(candidates, self.then(dataclasses.replace(candidates, eligible=kept)), self.fallback)

    def size(self, n: Array) -> Array:
        """How many of n are kept, before ties."""
        if isinstance(self.keep, float | np.floating):
            return np.maximum(np.ceil(self.keep * np.asarray(n) - 1e-9), 1)
        return np.minimum(self.keep, n)


def span(score: Array, valid: Array, ties: str) -> tuple[Array, Array]:
    """The ranks each candidate occupies, ``above < r <= upto``; with ``ties="earliest"`` one rank of its own."""
    above, upto, place = standing(score, valid)
    return (above, upto) if ties == "share" else (place, place + 1)


def ranked_tally(
    candidates: Candidates, score: Array, valid: Array, running: Callable[[int], list[int]], ties: str
) -> tuple[Array, Array]:
    """Σ over the group of what its ranks earn: a key that orders exactly, and its share of all that is earned."""
    size = valid.shape[-1]
    n = np.count_nonzero(valid, axis=-1)[..., None]
    above, upto = span(score, valid, ties)
    tied = np.where(valid, upto - above, 1)
    table = running_table(running, size)
    earned, total = table[n, n - above] - table[n, n - upto], np.where(n > 0, table[n, n], 1)
    scale = np.lcm.reduce(tied.astype(object) if size > SMALL else tied, axis=-1, initial=1, keepdims=True)
    if table.dtype != object and np.max(total * scale.astype(np.float64), initial=0.0) < EXACT / 2:
        sums = tally(candidates, (earned * (scale // tied)).astype(np.float64), valid)
        return sums, sums / (scale * total).astype(np.float64)
    earned, total, scale = (part.astype(object) for part in (earned, total, scale))  # 64 bits may not hold the products
    return _beyond_float(candidates, valid, earned * (scale // tied), scale * total)


def running_table(running: Callable[[int], list[int]], size: int) -> Array:
    """T(j) for every n and j ``[size + 1, size + 1]``: int64, or Python's integers where they need more."""
    table = np.zeros((size + 1, size + 1), dtype=object)
    for n in range(size + 1):
        table[n, : n + 1] = running(n)
    return table.astype(np.int64) if table.max() < EXACT else table


def _beyond_float(candidates: Candidates, valid: Array, earned: Array, total: Array) -> tuple[Array, Array]:
    """The same in Python's integers, row by row: the key is the rank of the group's exact sum."""
    shape, size = valid.shape, valid.shape[-1]
    key, share = np.zeros((total.size, size)), np.zeros((total.size, size))
    rows = zip(*(part.reshape(-1, size) for part in (candidates.answers, valid, earned)), strict=True)
    for r, (answers, mask, won) in enumerate(rows):
        sums: dict[int, int] = {}
        codes = answers[mask].tolist()
        for code, gain in zip(codes, won[mask].tolist(), strict=True):
            sums[code] = sums.get(code, 0) + gain
        order = {value: rank for rank, value in enumerate(sorted(set(sums.values())))}
        key[r, mask] = [order[sums[code]] for code in codes]
        share[r, mask] = [sums[code] / int(total.flat[r]) for code in codes]
    return key.reshape(shape), share.reshape(shape)

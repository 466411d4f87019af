"""Stops across rollouts: leader share, entropy, ESC, CGES, budget and precision, and how stops combine."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.special import ndtri

from ramify.arrays import Array
from ramify.bank import Candidates, Verdict
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.stop.counts import Stop, Stream, verdicts
from ramify.types import Key

__all__ = [
    "AllOf",
    "AnswerEntropy",
    "AnyOf",
    "AtLeast",
    "AtMost",
    "Budget",
    "CgesStop",
    "Esc",
    "InBatches",
    "LeaderShare",
    "ShareInterval",
    "esc_cost",
]


@method
class LeaderShare:
    """Stop when v1 / n >= ``share``, from ``least`` valid answers on."""

    share: float = 0.8
    least: int = 2

    def __post_init__(self) -> None:
        require(0 < self.share <= 1, "LeaderShare.share", self.share, "use a share in (0, 1]")
        require(is_whole(self.least, 1), "LeaderShare.least", self.least, "use a number of answers >= 1")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        return verdicts(candidates, self._rows)

    def _rows(self, stream: Stream) -> tuple[Array, Array]:
        n = stream.n
        value = stream.first / np.maximum(n, 1)
        return (n >= self.least) & (value >= self.share), value


@method
class AnswerEntropy:
    """Stop when H(counts) / log m (0 if m = 1) is at most ``most``, from ``least`` valid answers on."""

    most: float = 0.75
    least: int = 2

    def __post_init__(self) -> None:
        require(0 <= self.most <= 1, "AnswerEntropy.most", self.most, "use a share of the largest entropy in [0, 1]")
        require(is_whole(self.least, 1), "AnswerEntropy.least", self.least, "use a number of answers >= 1")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        return verdicts(candidates, self._rows)

    def _rows(self, stream: Stream) -> tuple[Array, Array]:
        n, m, c = stream.n, stream.distinct, stream.occurrence
        # Σ v log v grows by v log v - (v-1) log (v-1) with each answer: a running sum, which no later answer can touch.
        grown = np.cumsum(_c_log_c(c) - _c_log_c(np.maximum(c - 1, 0)), axis=-1)
        entropy = np.log(np.maximum(n, 1)) - grown / np.maximum(n, 1)
        value = np.where(m > 1, entropy / np.log(np.maximum(m, 2)), 0.0)
        return (n >= self.least) & (value <= self.most), value


def _c_log_c(c: Array) -> Array:
    return c * np.log(np.maximum(c, 1))


# ------------------------------------------------------------------------------------------------------------------ ESC


@method
class Esc:
    """Early-stopping self-consistency (Li et al., 2024): stop after a window of ``window`` equal, valid answers.

    Windows are consecutive and do not overlap; a partial last one is sampled and never unanimous. ``value`` is the
    run of equal answers that ends here, as a share of the window. ``output`` says what the final rule sees: the
    unanimous "window" (released code), or "all" that was revealed. They differ: AAAAB AAAAB BBBBB.

    >>> stop = Esc(3)(Candidates(np.array([0, 1, 1, 1, 1, 1, 1]))).stop
    >>> stop.tolist()
    [False, False, False, False, False, True, False]
    """

    window: int = 5
    output: str = "window"

    def __post_init__(self) -> None:
        require(is_whole(self.window, 1), "Esc.window", self.window, "use a number of answers >= 1; 4 to 8 are usual")
        require(self.output in ("window", "all"), "Esc.output", self.output, "use 'window' or 'all'")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        return verdicts(candidates, self._rows)

    def _rows(self, stream: Stream) -> tuple[Array, Array]:
        seen, place = stream.revealed, np.arange(stream.label.shape[-1])
        last = np.maximum.accumulate(np.where(stream.drawn, place, 0), axis=-1)  # the latest one drawn
        label = np.where(seen > 0, np.take_along_axis(stream.label, last, axis=-1), -1)
        before = np.concatenate([np.full_like(label[..., :1], -2), label[..., :-1]], axis=-1)
        broken = stream.drawn & ((label != before) | (label < 0))
        begun = np.maximum.accumulate(np.where(broken, seen, 0), axis=-1)
        run = np.where(label >= 0, seen - begun + 1, 0)
        whole = (seen > 0) & (seen % self.window == 0)
        return whole & (run >= self.window), np.minimum(run, self.window) / self.window

    def revealed(self, candidates: Candidates) -> Candidates:
        """What the final rule sees of the candidates revealed when sampling ended."""
        if self.output == "all":
            return candidates
        stopped = self(candidates).now.stop[..., None]
        seen = np.cumsum(candidates.drawn, axis=-1)
        window = candidates.drawn & (seen > seen[..., -1:] - self.window)
        return dataclasses.replace(candidates, eligible=candidates.eligible & (window | ~stopped))


def esc_cost(p: Array, window: int, limit: int) -> Array:
    """[...] the expected number of samples of ``Esc(window)`` capped at ``limit``, given probabilities ``p [..., A]``.

    w (1 - (1 - Q)^K) / Q with Q = Σ p^w and K = floor(limit / w); a partial last window is sampled if it is reached.
    Probabilities that sum to less than 1 leave the rest to invalid answers.

    >>> round(float(esc_cost(np.array([0.7, 0.2, 0.1]), 5, 40)), 3)
    22.9
    """
    require(is_whole(window, 1) and is_whole(limit), "window, limit", (window, limit), "use whole numbers of samples")
    p = np.asarray(p, dtype=np.float64)
    ok = (p >= 0).all() and (p.sum(axis=-1) <= 1 + 1e-9).all()
    require(ok, "p", "the probabilities", "use numbers >= 0 with a sum of at most 1")
    windows, rest = divmod(limit, window)
    q = (p**window).sum(axis=-1)
    missed = (1 - q) ** windows
    whole = np.where(q > 0, (1 - missed) / np.where(q > 0, q, 1.0), windows)
    return window * whole + rest * missed


# ----------------------------------------------------------------------------------------------------------------- CGES


@method
class CgesStop:
    """Stop when the CGES posterior of an answer reaches ``threshold`` (Aghazadeh et al., 2026).

    Hypotheses are the m observed answers and OTHER. A candidate of confidence c in (0, 1) says its answer with c,
    each of the m others with (1 - c) / m. m grows, so the posterior is computed anew at every prefix. ``other`` lets
    OTHER stop too. Candidates without the evidence count as nothing.

    >>> seen = Candidates(np.array([0, 0, 1]), evidence={"c": np.array([0.8, 0.7, 0.6])})
    >>> round(float(CgesStop("c")(seen).now.value), 4)
    0.9032
    """

    score: str
    threshold: float = 0.95
    other: bool = False
    least: int = 1

    def __post_init__(self) -> None:
        require(0 < self.threshold < 1, "CgesStop.threshold", self.threshold, "use a probability in (0, 1)")
        require(isinstance(self.other, bool), "CgesStop.other", self.other, "use True or False")
        require(is_whole(self.least, 1), "CgesStop.least", self.least, "use a number of answers >= 1")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        c = candidates.score(self.score).astype(np.float64)
        wrong = c[candidates.eligible & ~((c > 0) & (c < 1) | np.isnan(c))]
        require(wrong.size == 0, f"evidence {self.score!r}", wrong[:1].tolist(), "use confidences strictly in (0, 1)")
        return verdicts(candidates, self._rows, c)

    def _rows(self, stream: Stream, c: Array) -> tuple[Array, Array]:
        c = np.where(stream.label >= 0, c, 0.5)
        members, m = stream.members(), stream.distinct
        odds = np.cumsum(members * (np.log(c) - np.log1p(-c))[..., None], axis=-2)
        counts = np.cumsum(members, axis=-2)
        # Against OTHER, an answer gains log c - log((1 - c)/m) with every candidate that gave it.
        score = np.where(counts > 0, odds + counts * np.log(np.maximum(m, 1))[..., None], -np.inf)
        peak = np.maximum(score.max(axis=-1, initial=-np.inf), 0.0)
        weight, other = np.exp(score - peak[..., None]), np.exp(-peak)
        # One after the other: a pairwise sum would round by how many answers are still to come.
        total = other + (np.cumsum(weight, axis=-1)[..., -1] if weight.shape[-1] else 0.0)
        best = np.maximum(weight.max(axis=-1, initial=0.0), other if self.other else 0.0)
        value = np.where(stream.n > 0, best / total, 0.0)
        return (stream.n >= self.least) & (value >= self.threshold), value


# ---------------------------------------------------------------------------------------------------- budget, precision


@method
class Budget:
    """Stop when what is left of ``limit`` cannot fund a rollout of worst case ``worst``; ``value`` is what is left.

    A candidate costs what the evidence ``cost`` says, or one unit where it is empty. The candidates' own ``left``,
    which a running ledger knows, has the last word on the prefix that is being decided.

    >>> Budget(limit=3, worst=1)(Candidates(np.array([0, 1, 2, 3]))).stop.tolist()
    [False, False, True, True]
    """

    limit: float = math.inf
    worst: float = 1
    cost: str = ""

    def __post_init__(self) -> None:
        require(self.limit >= 0, "Budget.limit", self.limit, "use an amount >= 0")
        require(0 < self.worst < math.inf, "Budget.worst", self.worst, "use the worst case of one rollout, > 0")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        cost = candidates.score(self.cost) if self.cost else np.ones(candidates.answers.shape)
        unknown = candidates.drawn & np.isnan(cost)
        require(not unknown.any(), f"evidence {self.cost!r}", "NaN", "a budget has to know what every candidate cost")
        value = self.limit - np.cumsum(np.where(candidates.drawn, cost, 0.0), axis=-1)
        value[..., -1:] = np.minimum(value[..., -1:], candidates.left)
        return Verdict(value < self.worst, value)


@method
class ShareInterval:
    """Stop when the Wilson interval of the leader's share v1 / n is narrower than ``width``; ``value`` is its width.

    Precision of the vote, not a proof of it: the leader was chosen by the same answers. For that, ``ModeCertificate``.
    """

    width: float = 0.2
    level: float = 0.95

    def __post_init__(self) -> None:
        require(0 < self.width < 1, "ShareInterval.width", self.width, "use a width in (0, 1)")
        require(0 < self.level < 1, "ShareInterval.level", self.level, "use a level in (0, 1)")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        return verdicts(candidates, self._rows)

    def _rows(self, stream: Stream) -> tuple[Array, Array]:
        n, z = np.maximum(stream.n, 1), float(ndtri((1 + self.level) / 2))
        p = stream.first / n
        wilson = 2 * z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        value = np.where(stream.n > 0, wilson, 1.0)
        return (stream.n > 0) & (value < self.width), value


# ---------------------------------------------------------------------------------------------------------- composition


@method
class AtMost:
    """Stop after ``n`` candidates, valid or not."""

    n: int = 40

    def __post_init__(self) -> None:
        require(is_whole(self.n), "AtMost.n", self.n, "use a number of candidates >= 0")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        value = np.cumsum(candidates.drawn, axis=-1).astype(np.float64)
        return Verdict(value >= self.n, value)


@method
class AtLeast:
    """``stop``, but not before ``n`` candidates, valid or not."""

    n: int
    stop: Stop

    def __post_init__(self) -> None:
        require(is_whole(self.n), "AtLeast.n", self.n, "use a number of candidates >= 0")

    def __call__(self, candidates: Candidates, key: Key | None = None) -> Verdict:
        stop, value = self.stop(candidates, key)
        return Verdict(stop & (np.cumsum(candidates.drawn, axis=-1) >= self.n), value)


@method
class InBatches:
    """``stop``, asked only after batches of first, first, 2 first, 4 first, ... candidates.

    >>> InBatches(LeaderShare(0.75))(Candidates(np.zeros(8, dtype=int))).stop.tolist()
    [False, True, False, True, False, False, False, True]
    """

    stop: Stop
    first: int = 2

    def __post_init__(self) -> None:
        require(is_whole(self.first, 1), "InBatches.first", self.first, "use a number of candidates >= 1")

    def __call__(self, candidates: Candidates, key: Key | None = None) -> Verdict:
        stop, value = self.stop(candidates, key)
        seen = np.cumsum(candidates.drawn, axis=-1)
        batches = seen // self.first
        asked = (seen % self.first == 0) & (batches > 0) & (batches & (batches - 1) == 0)  # a power of two
        return Verdict(stop & asked, value)


@method
class AnyOf:
    """Stop when one of them does; ``value`` is the first one's."""

    stops: tuple[Stop, ...]

    def __init__(self, *stops: Stop) -> None:
        require(stops, "AnyOf.stops", stops, "name at least one")
        object.__setattr__(self, "stops", stops)

    def __call__(self, candidates: Candidates, key: Key | None = None) -> Verdict:
        found = [stop(candidates, key) for stop in self.stops]
        return Verdict(np.logical_or.reduce([each.stop for each in found]), found[0].value)


@method
class AllOf:
    """Stop when all of them do; ``value`` is the first one's."""

    stops: tuple[Stop, ...]

    def __init__(self, *stops: Stop) -> None:
        require(stops, "AllOf.stops", stops, "name at least one")
        object.__setattr__(self, "stops", stops)

    def __call__(self, candidates: Candidates, key: Key | None = None) -> Verdict:
        found = [stop(candidates, key) for stop in self.stops]
        return Verdict(np.logical_and.reduce([each.stop for each in found]), found[0].value)

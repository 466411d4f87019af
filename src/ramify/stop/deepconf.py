"""DeepConf online (Fu et al., 2025): warm-up, a threshold for each question, the vote of what is kept, consensus."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ramify.arrays import Array, group_means, row_means, segments
from ramify.bank import Bank, Candidates, TokenTable, Verdict
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.stop.counts import Stream, verdicts
from ramify.stop.replay import Replay, replay
from ramify.types import APPENDED, Key

__all__ = ["DeepConfConsensus", "DeepConfReplay", "deepconf_online"]


@method
class DeepConfConsensus:
    """Stop when the leading answer has a share ``tau`` of the confidence-weighted vote over what is kept.

    ``score`` is each trace's lowest group confidence. The first ``warmup`` candidates set the threshold s of their
    own question, the (100 - eta)-th percentile of theirs; kept are those with confidence >= s, the warm-up's among
    them, and a trace that was cut or fell short is not. ``value`` is the leader's share of the kept weight. No
    verdict during warm-up.
    """

    score: str
    tau: float = 0.95
    eta: float = 10
    warmup: int = 16

    def __post_init__(self) -> None:
        require(0 < self.tau <= 1, "DeepConfConsensus.tau", self.tau, "use a share in (0, 1]")
        require(0 < self.eta <= 100, "DeepConfConsensus.eta", self.eta, "use a percentage in (0, 100]")
        require(is_whole(self.warmup, 1), "DeepConfConsensus.warmup", self.warmup, "use a number of traces >= 1")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        score = candidates.score(self.score).astype(np.float64)
        wrong = score[candidates.eligible & (score <= 0)]
        require(wrong.size == 0, f"evidence {self.score!r}", wrong[:1].tolist(), "weights of a vote have to be > 0")
        kept = score >= self.threshold(candidates)[..., None]
        return verdicts(candidates, self._rows, np.where(kept, score, np.nan))

    def threshold(self, candidates: Candidates) -> Array:
        """[...] s of every question; NaN, which keeps nothing, where its warm-up is not complete."""
        seen = np.cumsum(candidates.drawn, axis=-1)
        score = candidates.score(self.score).astype(np.float64)
        used = np.where(candidates.drawn & (seen <= self.warmup), score, np.nan)
        whole = (seen[..., -1] >= self.warmup) & ~np.isnan(used).all(axis=-1)
        out = np.full(whole.shape, np.nan)
        out[whole] = np.nanpercentile(used[whole], 100 - self.eta, axis=-1)
        return out

    def _rows(self, stream: Stream, weight: Array) -> tuple[Array, Array]:
        votes = np.cumsum(np.where(stream.members(), weight[..., None], 0.0), axis=-2)
        total = np.cumsum(np.where(stream.label >= 0, weight, 0.0), axis=-1)
        ready = (stream.revealed >= self.warmup) & (total > 0)
        value = np.where(ready, votes.max(axis=-1, initial=0.0) / np.where(total > 0, total, 1.0), 0.0)
        return ready & (value >= self.tau), value


class DeepConfReplay(NamedTuple):
    """What DeepConf online would have done with a stored bank: retrospective, and no claim of savings."""

    threshold: Array  # [Q]
    used: Array  # [Q, N] tokens until the cut, or all; those beyond the stopping time are not launched, and 0
    cut: Array  # [Q, N] whether the trace was stopped
    kept: Array  # [Q, N] whether it votes
    confidence: Array  # [Q, N] its weight, the lowest group confidence
    stopping: Replay
    kind: str = "retrospective"


def deepconf_online(
    bank: Bank, *, eta: float = 10, warmup: int = 16, window: int = 2048, k: int = 20, tau: float = 0.95
) -> DeepConfReplay:
    """The whole protocol on the recorded alternatives of a bank, all questions at once. Warm-up tokens count too."""
    require(bank.tokens is not None, "bank.tokens", None, "DeepConf needs the column 'top_logprobs'")
    lowest, groups = _groups(bank.tokens, window, k)  # type: ignore[arg-type]
    rule = DeepConfConsensus("lowest group", tau, eta, warmup)
    candidates = Candidates(bank.answers, bank.drawn, evidence={"lowest group": lowest})
    threshold = rule.threshold(candidates)
    later = bank.drawn & (np.cumsum(bank.drawn, axis=1) > warmup)
    at = _first_below(*groups, np.repeat(threshold, bank.shape[1])).reshape(bank.shape) + window
    length = bank.tokens.length  # type: ignore[union-attr]
    cut = later & (at <= length)
    stopping = replay(rule, candidates)
    launched = bank.drawn & (np.cumsum(bank.drawn, axis=1) <= stopping.n[:, None])
    used = np.where(launched, np.where(cut, at, length), 0).astype(np.int64)
    kept = launched & (lowest >= threshold[:, None])
    return DeepConfReplay(threshold, used, cut & launched, kept, lowest, stopping)


def _groups(table: TokenTable, window: int, k: int) -> tuple[Array, tuple[Array, Array]]:
    """The lowest group confidence ``[Q, N]``, and the full groups (means, offsets) for the cuts."""
    names = ("top_logprobs", "role") if "role" in table.columns else ("top_logprobs",)
    offsets, columns = table.packed(*names)
    top = columns["top_logprobs"]
    require(top.shape[1] >= k, "alternatives a token", top.shape[1], f"record at least {k}")
    own = columns["role"] != APPENDED if "role" in columns else np.ones(len(top), dtype=bool)
    require(own.all(), "role", "appended tokens", "replay them with LowConfidence, which keeps their positions")
    means, begin = group_means(-row_means(top, k), offsets, window)
    lowest = segments(np.minimum, means, begin[:-1], begin[1:])
    return lowest.reshape(table.start.shape), (means, begin)


def _first_below(means: Array, begin: Array, threshold: Array) -> Array:
    """[C] which group is the first below its trace's threshold; inf where none is."""
    counts = np.diff(begin)
    inside = np.arange(len(means)) - np.repeat(begin[:-1], counts)
    below = means < np.repeat(threshold, counts)
    found = segments(np.minimum, np.where(below, inside, np.inf), begin[:-1], begin[1:])
    return np.where(np.isnan(found), np.inf, found)

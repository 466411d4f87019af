"""Stops within a rollout: they act at a token index and see the tokens up to it, never a network chunk or an answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from ramify.arrays import Array, row_means, segments, window_sums
from ramify.bank import TokenTable, Verdict
from ramify.describe import method, text
from ramify.errors import InvalidValue, is_whole, require
from ramify.types import APPENDED

__all__ = ["AnyToken", "Looping", "LowConfidence", "TokenHistory", "TokenLimit", "TokenStop", "fit_low_confidence"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TokenHistory:
    """The tokens revealed so far of C traces of one question, flat, and how many of each were dropped before them.

    A stop that remembers m tokens needs only the last m that count: ``skipped`` keeps positions, and verdicts, what
    they were.
    """

    offsets: Array  # [C + 1]
    columns: Mapping[str, Array]  # [T] or [T, K]
    skipped: Array = None  # [C]
    question: str = ""

    def __post_init__(self) -> None:
        offsets = np.asarray(self.offsets)
        skipped = np.zeros(len(offsets) - 1, dtype=np.int64) if self.skipped is None else np.asarray(self.skipped)
        ok = skipped.shape == (len(offsets) - 1,)
        require(ok, "TokenHistory.skipped", skipped.shape, "give one number a trace")
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "skipped", skipped)

    @classmethod
    def of(cls, table: TokenTable, *names: str, question: str = "") -> TokenHistory:
        """All traces of a stored bank, for a replay."""
        return cls(*table.packed(*names), question=question)

    @property
    def index(self) -> Array:
        """[T] the position of each token in its trace, from 0."""
        length = np.diff(self.offsets)
        return np.arange(int(self.offsets[-1])) - np.repeat(self.offsets[:-1] - self.skipped, length)

    def column(self, name: str, who: object) -> Array:
        if name not in self.columns:
            raise InvalidValue(
                f"{text(who)} needs the column {name!r}, and these are revealed: {', '.join(self.columns) or 'none'}"
            )
        return self.columns[name]

    def first(self, n: int) -> TokenHistory:
        """The first n tokens of a single trace, and nothing of the others."""
        require(len(self.offsets) == 2, "TokenHistory.first", len(self.offsets) - 1, "take one trace")
        columns = {name: column[:n] for name, column in self.columns.items()}
        return dataclasses.replace(self, offsets=np.array([0, min(n, self.offsets[1])]), columns=columns)

    def last(self, n: int) -> TokenHistory:
        """The last n tokens of a single trace, with the others counted as skipped."""
        require(len(self.offsets) == 2, "TokenHistory.last", len(self.offsets) - 1, "take one trace")
        drop = max(0, int(self.offsets[1]) - n)
        columns = {name: column[drop:] for name, column in self.columns.items()}
        return dataclasses.replace(
            self, offsets=np.array([0, self.offsets[1] - drop]), columns=columns, skipped=self.skipped + drop
        )

    def stopped_at(self, verdict: Verdict) -> Array:
        """[C] the position after which each trace stops, -1 where it goes on."""
        at = segments(np.minimum, np.where(verdict.stop, self.index, np.inf), self.offsets[:-1], self.offsets[1:])
        return np.where(np.isfinite(at), at, -1).astype(np.int64)


TokenStop: TypeAlias = Callable[[TokenHistory], Verdict]
"""``Verdict.stop [T]``: whether to stop after each token. ``memory``, where declared: how many last tokens it needs."""


@method
class LowConfidence:
    """DeepConf's online stop: after each token from ``window`` on, stop if the group confidence is below ``threshold``.

    ``value`` is the mean confidence of the window that ends here, NaN before there is one: a shorter trace never
    stops. Tokens that the protocol appended are passed over. The threshold belongs to one question; see
    ``fit_low_confidence``.
    """

    threshold: float
    window: int = 2048
    k: int = 20
    question: str = ""  # that the threshold was fitted for
    warmup: tuple[float, ...] = ()  # the confidences it was fitted on

    def __post_init__(self) -> None:
        require(is_whole(self.window, 1), "LowConfidence.window", self.window, "use a number of tokens >= 1")
        require(is_whole(self.k, 1), "LowConfidence.k", self.k, "use a number of alternatives >= 1")

    def __call__(self, history: TokenHistory) -> Verdict:
        same = not (self.question and history.question) or self.question == history.question
        require(same, "LowConfidence.question", self.question, f"fit a threshold for {history.question!r}: never pool")
        top = history.column("top_logprobs", self)
        require(top.shape[1] >= self.k, "alternatives a token", top.shape[1], f"record at least {self.k}")
        keep = history.columns["role"] != APPENDED if "role" in history.columns else np.ones(len(top), dtype=bool)
        offsets = np.concatenate([[0], np.cumsum(keep)])[history.offsets]
        sums, begin = window_sums(-row_means(top[keep], self.k), offsets, self.window, history.skipped)
        value, counts = np.full(len(top), np.nan), np.diff(begin)
        ends = np.arange(len(sums)) + np.repeat(offsets[:-1] - begin[:-1] + self.window - 1, counts)
        value[np.flatnonzero(keep)[ends]] = sums / self.window
        return Verdict(value < self.threshold, value)

    @property
    def memory(self) -> int:
        return self.window


def fit_low_confidence(
    confidences: Array, eta: float = 10, window: int = 2048, k: int = 20, question: str = ""
) -> LowConfidence:
    """The stop for one question, from the lowest group confidences of its complete warm-up traces.

    The threshold is their (100 - eta)-th percentile, linearly interpolated: eta = 10 is DeepConf-low, 90 DeepConf-high.

    >>> fit_low_confidence(np.arange(1.0, 6.0), eta=20).threshold
    4.2
    """
    values = np.asarray(confidences, dtype=np.float64)
    ok = values.ndim == 1 and values.size and np.isfinite(values).all()
    require(ok, "confidences", values.shape, "use the finite lowest group confidences of one question's warm-up")
    require(0 < eta <= 100, "eta", eta, "use a percentage in (0, 100]")
    threshold = float(np.percentile(values, 100 - eta))
    return LowConfidence(threshold, window, k, question, tuple(values.tolist()))


@method
class TokenLimit:
    """Stop after ``n`` tokens."""

    n: int

    def __post_init__(self) -> None:
        require(is_whole(self.n, 1), "TokenLimit.n", self.n, "use a number of tokens >= 1")

    def __call__(self, history: TokenHistory) -> Verdict:
        value = history.index + 1.0
        return Verdict(value >= self.n, value)

    @property
    def memory(self) -> int:
        return 1


@method
class Looping:
    """Stop when the trace ends in ``times`` copies of one block of at most ``longest`` tokens, ``least`` tokens in all.

    ``value`` is how much of that is there already, for the block that is furthest: 1 stops.

    >>> history = TokenHistory(np.array([0, 6]), {"token": np.array([7, 1, 2, 1, 2, 1])})
    >>> Looping(times=2, longest=2, least=4)(history).stop.tolist()
    [False, False, False, False, True, True]
    """

    times: int = 8
    longest: int = 64
    least: int = 64

    def __post_init__(self) -> None:
        require(is_whole(self.times, 2), "Looping.times", self.times, "use a number of copies >= 2")
        require(is_whole(self.longest, 1), "Looping.longest", self.longest, "use a block length >= 1")
        require(is_whole(self.least, 1), "Looping.least", self.least, "use a number of tokens >= 1")

    def __call__(self, history: TokenHistory) -> Verdict:
        token = history.column("token", self)
        place = np.arange(len(token))
        inside = place - np.repeat(history.offsets[:-1], np.diff(history.offsets))
        value = np.zeros(len(token))
        for period in range(1, min(self.longest, len(token) - 1) + 1):
            same = np.zeros(len(token), dtype=bool)
            same[period:] = token[period:] == token[:-period]
            same &= inside >= period
            run = place - np.maximum.accumulate(
                np.where(same, -1, place)
            )  # tokens that repeat what came a period before
            need = max(self.times * period, self.least)
            np.maximum(value, np.where(run > 0, np.minimum(run + period, need) / need, 0.0), out=value)
        return Verdict(value >= 1, value)

    @property
    def memory(self) -> int:
        return max(self.times * self.longest, self.least) + self.longest


@method
class AnyToken:
    """Stop when one of several token stops does; ``value`` is the first one's."""

    stops: tuple[TokenStop, ...]

    def __init__(self, *stops: TokenStop) -> None:
        require(stops, "AnyToken.stops", stops, "name at least one")
        object.__setattr__(self, "stops", stops)

    def __call__(self, history: TokenHistory) -> Verdict:
        found = [stop(history) for stop in self.stops]
        return Verdict(np.logical_or.reduce([each.stop for each in found]), found[0].value)

    @property
    def memory(self) -> int:
        return max(getattr(stop, "memory", 1) for stop in self.stops)

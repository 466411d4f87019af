"""Evidence from the chosen tokens: their log-probabilities and ranks under the model, and PiCSAR."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ramify.arrays import Array, segments
from ramify.bank import Bank, Signal
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.evidence.declare import Needs
from ramify.evidence.reduce import Mean, Minimum, Total
from ramify.evidence.trace import COUNTED, TokenEvidence, counted, evaluate, several, spans
from ramify.evidence.transform import Exponential, NegativePerplexity, Transformed

__all__ = [
    "AfterMarker",
    "AnswerFrom",
    "LogProb",
    "NegativeLogRank",
    "Picsar",
    "Prob",
    "RankWithin",
    "mean_logprob",
    "min_logprob",
    "negative_perplexity",
    "normalised_likelihood",
    "sequence_logprob",
]


@method
class LogProb:
    """log p(y_t) of the raw model, as recorded."""

    @property
    def needs(self) -> Needs:
        return Needs(("logprob",))

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        return columns["logprob"]


@method
class Prob:
    """p(y_t)."""

    @property
    def needs(self) -> Needs:
        return Needs(("logprob",))

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        return np.exp(columns["logprob"].astype(np.float64))


@method
class NegativeLogRank:
    """-log rank of the chosen token: 0 where it was the model's mode."""

    @property
    def needs(self) -> Needs:
        return Needs(("rank",))

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        return -np.log(_ranks(columns))


@method
class RankWithin:
    """1 where the chosen token was among the model's k most likely; its mean is the share of such tokens."""

    k: int = 1

    def __post_init__(self) -> None:
        require(is_whole(self.k, 1), "RankWithin.k", self.k, "use a rank >= 1; 1 is the mode")

    @property
    def needs(self) -> Needs:
        return Needs(("rank",))

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        return (_ranks(columns) <= self.k).astype(np.float64)


def _ranks(columns: Mapping[str, Array]) -> Array:
    rank = columns["rank"]
    require((rank >= 1).all(), "rank", int(rank.min(initial=1)), "count ranks from 1, the model's mode")
    return rank


def sequence_logprob(tokens: str = "proposed") -> TokenEvidence:
    """Σ_t log p(y_t): prefers short traces."""
    return TokenEvidence(LogProb(), Total(), tokens)


def mean_logprob(tokens: str = "proposed") -> TokenEvidence:
    """Σ_t log p(y_t) / T."""
    return TokenEvidence(LogProb(), Mean(), tokens)


def min_logprob(tokens: str = "proposed") -> TokenEvidence:
    """min_t log p(y_t)."""
    return TokenEvidence(LogProb(), Minimum(), tokens)


def negative_perplexity(tokens: str = "proposed") -> Transformed:
    """-exp(-Σ_t log p(y_t) / T): perplexity, turned so that higher is better. Orders as the mean log-probability."""
    return Transformed(mean_logprob(tokens), NegativePerplexity())


def normalised_likelihood(tokens: str = "proposed") -> Transformed:
    """exp(Σ_t log p(y_t) / T) = 1 / perplexity: the weight of the normalised-likelihood vote."""
    return Transformed(mean_logprob(tokens), Exponential())


# -------------------------------------------------------------------------------------------------------------- PiCSAR

Boundary = Callable[[Array, Mapping[str, Array]], Array]
"""``(offsets [C + 1], columns) -> [C]``: how many tokens of a trace come before its answer, NaN where there is none."""


@method
class AnswerFrom:
    """The answer starts at the token index that a layer of the bank gives; NaN is no answer."""

    layer: str = "answer_start"

    @property
    def needs(self) -> Needs:
        return Needs(layers=(self.layer,))

    def __call__(self, _: Array, columns: Mapping[str, Array]) -> Array:
        return columns[self.layer]


@method
class AfterMarker:
    """The answer starts after a run of tokens, such as the end of thinking: at its last or first occurrence.

    >>> columns = {"token": np.array([5, 9, 5, 9, 1])}
    >>> AfterMarker((9,))(np.array([0, 4, 5]), columns).tolist()
    [4.0, nan]
    """

    tokens: tuple[int, ...]
    occurrence: str = "last"

    def __post_init__(self) -> None:
        ok = isinstance(self.tokens, tuple) and self.tokens and all(map(is_whole, self.tokens))
        require(ok, "AfterMarker.tokens", self.tokens, "use a tuple of at least one token id")
        require(
            self.occurrence in ("first", "last"), "AfterMarker.occurrence", self.occurrence, "use 'first' or 'last'"
        )

    @property
    def needs(self) -> Needs:
        return Needs(("token",))

    def __call__(self, offsets: Array, columns: Mapping[str, Array]) -> Array:
        token, m = columns["token"], len(self.tokens)
        inside = np.arange(len(token)) - np.repeat(offsets[:-1], np.diff(offsets))
        found = inside >= m - 1  # the marker ends here
        for back, wanted in enumerate(reversed(self.tokens)):
            found[back:] &= token[: len(token) - back] == wanted
        absent, pick = (-np.inf, np.maximum) if self.occurrence == "last" else (np.inf, np.minimum)
        cut = segments(pick, np.where(found, inside + 1.0, absent), offsets[:-1], offsets[1:])
        return np.where(np.isfinite(cut), cut, np.nan)


@method
class Picsar:
    """log p(reasoning) + log p(answer): the two parts of a trace, cut at ``boundary``.

    ``normalised`` divides the reasoning part by its length (PiCSAR-N); without it the sum is the sequence's
    log-probability wherever an answer was found. No boundary, no evidence; a boundary outside the trace raises. The
    boundary counts all tokens of the trace, and the sums those that ``tokens`` says.
    """

    boundary: Boundary = AnswerFrom()
    normalised: bool = False
    tokens: str = "proposed"

    def __post_init__(self) -> None:
        require(isinstance(self.normalised, bool), "Picsar.normalised", self.normalised, "use True or False")
        require(self.tokens in COUNTED, "Picsar.tokens", self.tokens, f"use one of {', '.join(COUNTED)}")

    @property
    def needs(self) -> Needs:
        own = Needs(("logprob", "role") if self.tokens == "sampled" else ("logprob",))
        return own.union(getattr(self.boundary, "needs", Needs()))

    @property
    def role(self) -> str:
        return "deployable"

    def __call__(self, bank: Bank) -> Signal:
        return several({"": self}, bank)[""]

    def of_tokens(self, offsets: Array, columns: Mapping[str, Array]) -> Array:
        """``[C]`` from flat columns of any size."""
        return evaluate([self], offsets, columns)[0]

    def of_chunk(self, offsets: Array, columns: Mapping[str, Array]) -> Array:
        cut, length = self.boundary(offsets, columns), np.diff(offsets)
        known = ~np.isnan(cut) & (length > 0)
        outside = known & ~((cut >= 0) & (cut <= length) & (cut == np.floor(cut)))
        require(not outside.any(), "Picsar.boundary", cut[outside][:1].tolist(), "use a token index in [0, T]")
        at = np.where(known, cut, 0).astype(np.int64)
        keep = counted(columns, self.tokens)
        own = np.ones(len(columns["logprob"]), dtype=bool) if keep is None else keep
        reasoning, answer = spans(np.where(own, columns["logprob"], 0.0), offsets, at)
        if self.normalised:
            reasoning = reasoning / np.maximum(spans(own.astype(np.float64), offsets, at)[0], 1)
        empty = spans(own.astype(np.float64), offsets, length)[0] == 0
        return np.where(known & ~empty, reasoning + answer, np.nan)

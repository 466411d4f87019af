"""Evidence from the K recorded alternatives of every token. All of it depends on K: never compare across K.

The alternatives are the K most likely tokens, from the likeliest down, and their log-probabilities are the model's own:
what lies beyond them is censored. Where a statistic renormalises over them, its docstring says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ramify.arrays import Array, row_means
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.evidence.declare import Needs
from ramify.evidence.reduce import BottomGroups, LowestGroup, Mean, Tail
from ramify.evidence.trace import TokenEvidence

__all__ = [
    "Confidence",
    "FullSelfCertainty",
    "Margin",
    "MaxProb",
    "NegativeEntropy",
    "NegativeVarentropy",
    "SelfCertainty",
    "deepconf_average",
    "deepconf_bottom",
    "deepconf_lowest",
    "deepconf_tail",
]

STAGES = ("raw", "any")
DEEP = -700.0  # exp underflows soon below this


def _check(name: str, k: int, stage: str, least: int = 1) -> None:
    require(is_whole(k, least), f"{name}.k", k, f"use a number of alternatives >= {least}")
    require(stage in STAGES, f"{name}.stage", stage, "use 'raw', or 'any' to accept processed alternatives")


def _top(columns: Mapping[str, Array], k: int) -> Array:
    """``[t, k]`` the k likeliest, as recorded. NaN, an alternative that is missing, passes."""
    top = columns["top_logprobs"]
    require(top.shape[1] >= k, "alternatives a token", top.shape[1], f"record at least the {k} asked for")
    if k < top.shape[1]:  # then it matters which come first
        disorder = (top[:, 1 : k + 1] > top[:, :k]).any()
        require(not disorder, "top_logprobs", "out of order", "record the alternatives from the likeliest down")
    return top[:, :k]


@method
class Confidence:
    """C_t = -(1/k) Σ_{j<=k} log p_t(j), DeepConf's token confidence (Fu et al., 2025). Higher is more peaked.

    The k likeliest tokens and no other: a sampled token outside them is not added.

    >>> Confidence(2)({"top_logprobs": np.array([[0.0, -2.0], [-1.0, -3.0]])}).tolist()
    [1.0, 2.0]
    """

    k: int = 20
    stage: str = "raw"

    def __post_init__(self) -> None:
        _check("Confidence", self.k, self.stage)

    @property
    def needs(self) -> Needs:
        return Needs(("top_logprobs",), top=self.k, stage=self.stage)

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        return -row_means(_top(columns, self.k), self.k)


@method
class SelfCertainty:
    """KL(U ‖ p_t) = -log k - (1/k) Σ_j log p_t(j) with p renormalised over the k likeliest, U uniform on them.

    A proxy for the full vocabulary's (Kang et al., 2025), which is ``FullSelfCertainty``.
    """

    k: int = 20
    stage: str = "raw"

    def __post_init__(self) -> None:
        _check("SelfCertainty", self.k, self.stage)

    @property
    def needs(self) -> Needs:
        return Needs(("top_logprobs",), top=self.k, stage=self.stage)

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        top = _top(columns, self.k)
        return _moments(top)[0] - math.log(self.k) - row_means(top, self.k)


@method
class FullSelfCertainty:
    """KL(U ‖ p_t) = -log V - (1/V) Σ_j log p_t(j) over the whole vocabulary (Kang et al., 2025).

    The bank has to hold all V log-probabilities of every token. Every output token counts, the first too.
    """

    vocabulary: int

    def __post_init__(self) -> None:
        require(is_whole(self.vocabulary, 1), "FullSelfCertainty.vocabulary", self.vocabulary, "use its size, >= 1")

    @property
    def needs(self) -> Needs:
        return Needs(("top_logprobs",), top=self.vocabulary, stage="raw")

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        top = columns["top_logprobs"]
        ok = top.shape[1] == self.vocabulary
        require(ok, "FullSelfCertainty.vocabulary", self.vocabulary, f"the bank recorded {top.shape[1]} a token")
        return -math.log(self.vocabulary) - row_means(top, self.vocabulary)


@method
class NegativeEntropy:
    """Σ_j p log p over the k likeliest, renormalised: the entropy, turned so that higher is better."""

    k: int = 20
    stage: str = "raw"

    def __post_init__(self) -> None:
        _check("NegativeEntropy", self.k, self.stage)

    @property
    def needs(self) -> Needs:
        return Needs(("top_logprobs",), top=self.k, stage=self.stage)

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        log_mass, mean = _moments(_top(columns, self.k))[:2]
        return mean - log_mass


@method
class NegativeVarentropy:
    """-Σ_j p (-log p - H)² over the k likeliest, renormalised."""

    k: int = 20
    stage: str = "raw"

    def __post_init__(self) -> None:
        _check("NegativeVarentropy", self.k, self.stage)

    @property
    def needs(self) -> Needs:
        return Needs(("top_logprobs",), top=self.k, stage=self.stage)

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        return -_moments(_top(columns, self.k), second=True)[2]


def _moments(top: Array, second: bool = False) -> tuple[Array, Array, Array]:
    """log Σ w, and the mean (and variance) of log w under w / Σ w, for w = exp(``top [t, k]``).

    Log-probabilities need no shift by their maximum, unless they are so low that the mass would vanish.
    """
    x = top.astype(np.float64)
    shift = 0.0
    if not x.min(initial=0.0) >= DEEP:
        shift = x.max(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            x = np.maximum(x - shift, DEEP)  # 0 log 0 = 0
        shift = shift[:, 0]
    w = np.exp(x)
    mass = np.einsum("tk->t", w)
    mean = np.einsum("tk,tk->t", w, x) / mass
    spread = np.einsum("tk,tk->t", w, (x - mean[:, None]) ** 2) / mass if second else mass
    return np.log(mass) + shift, mean + shift, spread


@method
class MaxProb:
    """max_j p_t(j), the probability of the model's mode."""

    stage: str = "raw"

    def __post_init__(self) -> None:
        _check("MaxProb", 1, self.stage)

    @property
    def needs(self) -> Needs:
        return Needs(("top_logprobs",), top=1, stage=self.stage)

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        return np.exp(_top(columns, 1)[:, 0].astype(np.float64))


@method
class Margin:
    """How far the likeliest token is ahead of the second: of their log-probabilities, or of the probabilities."""

    log: bool = True
    stage: str = "raw"

    def __post_init__(self) -> None:
        require(isinstance(self.log, bool), "Margin.log", self.log, "use True or False")
        _check("Margin", 2, self.stage)

    @property
    def needs(self) -> Needs:
        return Needs(("top_logprobs",), top=2, stage=self.stage)

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        top = _top(columns, 2).astype(np.float64)
        first, second = (top if self.log else np.exp(top)).T
        require(not (second > first).any(), "top_logprobs", "out of order", "record them from the likeliest down")
        return first - second


def deepconf_average(k: int = 20, tokens: str = "proposed") -> TokenEvidence:
    """Average trace confidence."""
    return TokenEvidence(Confidence(k), Mean(), tokens)


def deepconf_tail(k: int = 20, n: int = 2048, tokens: str = "proposed") -> TokenEvidence:
    """Confidence over the last n tokens."""
    return TokenEvidence(Confidence(k), Tail(n), tokens)


def deepconf_lowest(k: int = 20, window: int = 2048, tokens: str = "proposed") -> TokenEvidence:
    """The lowest group confidence."""
    return TokenEvidence(Confidence(k), LowestGroup(window), tokens)


def deepconf_bottom(k: int = 20, window: int = 2048, share: float = 0.1, tokens: str = "proposed") -> TokenEvidence:
    """The mean of the lowest tenth of the group confidences."""
    return TokenEvidence(Confidence(k), BottomGroups(window, share), tokens)

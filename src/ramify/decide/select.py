"""Selection by score: the best candidate, a gated one, or a distribution over them."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from ramify.arrays import Array, pick
from ramify.bank import Candidates, Choice
from ramify.decide.support import (
    PAIRS,
    Rule,
    members,
    otherwise,
    scored,
    settle,
    tally,
    top,
    valid_fields,
    voters,
)
from ramify.decide.utility import kernel
from ramify.decide.votes import Plurality, group_mean, softened
from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = [
    "BestOfMajority",
    "BestOfN",
    "Earliest",
    "KLBestOfN",
    "RegularisedBestOfN",
    "SoftBestOfN",
    "VerifierConstrained",
    "drawn",
    "expected",
]


@method
class Earliest:
    """The first eligible candidate: what a single sample would have submitted."""

    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def __call__(self, candidates: Candidates) -> Choice:
        valid = candidates.eligible
        return settle(candidates, valid, np.zeros(valid.shape), fallback=self.fallback)


@method
class BestOfN:
    """argmax over the eligible of s_i (Cobbe et al., 2021). Order-only.

    >>> BestOfN()(Candidates(np.array([0, 0, 1]), evidence={"score": np.array([0.3, 0.1, 0.9])})).winner.tolist()
    2
    """

    evidence: str = "score"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, candidates.eligible, self.missing)
        return settle(candidates, valid, score, fallback=self.fallback)


@method
class VerifierConstrained:
    """``then`` among the candidates whose verdict is in PASS; where none passes, the declared fallback.

    The verdict is evidence about the verifiable part of a candidate, which need not be a parsed answer: every drawn
    candidate may pass. The default fallback is plurality: a global Best-of-N would undo the gate.
    """

    verdict: str = "verdict"
    passing: tuple[float, ...] = (1.0,)
    then: Rule = Earliest()
    missing: str = "exclude"
    fallback: Rule | None = Plurality()
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        ok = isinstance(self.passing, tuple) and len(self.passing) > 0
        require(ok, "VerifierConstrained.passing", self.passing, "name the verdicts that pass, as a tuple")
        require(callable(self.then), "VerifierConstrained.then", self.then, "use a rule, such as BestOfN(...)")

    @property
    def needs(self) -> tuple[str, ...]:
        inner = (*getattr(self.then, "needs", ()), *getattr(self.fallback, "needs", ()))
        return tuple(dict.fromkeys((self.verdict, *inner)))

    def __call__(self, candidates: Candidates) -> Choice:
        verdict, valid = scored(candidates, self.verdict, candidates.drawn, self.missing)
        passed = dataclasses.replace(candidates, eligible=valid & np.isin(verdict, self.passing))
        return otherwise(candidates, self.then(passed), self.fallback)


@method
class SoftBestOfN:
    """Draw i with probability ∝ exp(alpha s_i): uniform at 0, uniform over the tied best at inf (Verdun et al., 2025).

    The choice carries the distribution; ``winner`` is its mode, and the loop draws with a key (see ``drawn``).

    >>> scores = {"score": np.array([1.0, 2.0, 3.0])}
    >>> SoftBestOfN(alpha=1)(Candidates(np.array([0, 1, 2]), evidence=scores)).probs.round(4).tolist()
    [0.09, 0.2447, 0.6652]
    """

    evidence: str = "score"
    alpha: float = 1.0
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(self.alpha >= 0, "SoftBestOfN.alpha", self.alpha, "use a weight of the score >= 0, math.inf included")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, candidates.eligible, self.missing)
        weight = self.weigh(score, valid)
        total = weight.sum(axis=-1, keepdims=True)
        probs = weight / np.where(total > 0, total, 1.0)
        return settle(candidates, valid, probs, probs=probs, fallback=self.fallback)

    def weigh(self, score: Array, valid: Array) -> Array:
        """exp(alpha (s - max s)) of the valid, with its two limits."""
        if self.alpha == 0:
            return valid.astype(np.float64)
        if math.isfinite(self.alpha):
            return softened(score, valid, 1 / self.alpha)
        best = np.where(valid, score, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
        return (valid & (score == best)).astype(np.float64)


def expected(choice: Choice, values: Array) -> Array:
    """``[...]`` Σ_i P(i) v_i of a stochastic choice, without a draw. NaN where nothing is chosen."""
    require(choice.probs is not None, "choice.probs", None, "this choice is deterministic: look its winner up")
    probs = np.asarray(choice.probs)
    with np.errstate(invalid="ignore"):
        value = np.where(probs > 0, probs * values, 0.0).sum(axis=-1)
    return np.where(choice.winner >= 0, value, np.nan)


def drawn(choice: Choice, u: Array) -> Choice:
    """The choice that a uniform ``u [...]`` in (0, 1) draws from its distribution; a deterministic one stays."""
    if choice.probs is None:
        return choice
    probs = np.asarray(choice.probs)
    safe = np.where(choice.winner[..., None] >= 0, probs, 1.0)
    winner = np.where(choice.winner >= 0, pick(safe, np.asarray(u, dtype=np.float64)), -1)
    return Choice(winner, choice.support, winner[..., None], choice.probs)


@method
class RegularisedBestOfN:
    """argmax s_i + beta (1/n) Σ_k u(i, k): Best-of-N with a Bayes-risk regulariser (Jinnai et al., 2024).

    The diagonal is included. beta = 0 is Best-of-N, beta -> inf MBR. With u the cosine of sentence embeddings (the
    released choice) beta plays the part of a Wasserstein penalty.
    """

    evidence: str = "score"
    beta: float = 1.0
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(
            0 <= self.beta < np.inf, "RegularisedBestOfN.beta", self.beta, "use a weight in [0, inf); MBR is the limit"
        )

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence, PAIRS)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, candidates.eligible, self.missing)
        mean = kernel(candidates, valid).sum(axis=-1) / np.maximum(np.count_nonzero(valid, axis=-1), 1)[..., None]
        return settle(candidates, valid, score + self.beta * mean, fallback=self.fallback)


@method
class KLBestOfN:
    """argmax s_i + beta log pi(y_i | x): Best-of-N with a KL regulariser (Jinnai et al., 2024); beta -> inf is MAP."""

    evidence: str = "score"
    beta: float = 0.01
    logprob: str = "sequence_logprob"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(0 <= self.beta < np.inf, "KLBestOfN.beta", self.beta, "use a weight in [0, inf)")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence, self.logprob)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, candidates.eligible, self.missing)
        logprob, valid = scored(candidates, self.logprob, valid, self.missing)
        penalty = self.beta * logprob if self.beta else np.zeros(valid.shape)
        return settle(candidates, valid, np.where(valid, score + penalty, -np.inf), fallback=self.fallback)


@method
class BestOfMajority:
    """The k answers with the best reward among those that at least a share alpha gave (Di et al., 2025).

    If no answer is that frequent, all of them are in. A group's reward is its mean or maximum; ``ranked`` holds the
    first candidate of each of the k answers, best first.
    """

    evidence: str = "score"
    alpha: float = 0.0
    k: int = 1
    pool: str = "mean"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(0 <= self.alpha <= 1, "BestOfMajority.alpha", self.alpha, "use a share in [0, 1]; 0 opens the gate")
        require(is_whole(self.k, 1), "BestOfMajority.k", self.k, "use a number of outputs >= 1")
        require(self.pool in ("mean", "max", "sum"), "BestOfMajority.pool", self.pool, "use 'mean', 'max' or 'sum'")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        share = tally(candidates, valid, valid) / np.maximum(np.count_nonzero(valid, axis=-1), 1)[..., None]
        frequent = valid & (share >= self.alpha)
        frequent = np.where(frequent.any(axis=-1, keepdims=True), frequent, valid)
        reward = self.reward(candidates, score, valid)
        choice = settle(candidates, frequent, reward)
        ranked = top(frequent & members(candidates, valid), reward, self.k)
        return otherwise(candidates, choice._replace(ranked=ranked), self.fallback)

    def reward(self, candidates: Candidates, score: Array, valid: Array) -> Array:
        """``[..., N]`` the pooled reward of each candidate's answer."""
        if self.pool == "mean":
            return group_mean(candidates, score, valid)
        if self.pool == "sum":
            return tally(candidates, score, valid)
        same = (candidates.answers[..., :, None] == candidates.answers[..., None, :]) & valid[..., None, :]
        return np.where(same, score[..., None, :], -np.inf).max(axis=-1, initial=-np.inf)

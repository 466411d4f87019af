"""Votes: support_i = Σ_j w_j 1[a_i = a_j], argmax over the valid, ties to the answer that appears first."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ramify.arrays import Array, at, group_first
from ramify.bank import Candidates, Choice
from ramify.decide.support import Rule, members, otherwise, scored, settle, tally, valid_fields, voters
from ramify.describe import method
from ramify.errors import require

__all__ = ["CGES", "CalibratedVote", "LikelihoodVote", "LogOddsVote", "Plurality", "SoftmaxVote", "WeightedVote"]


@method
class Plurality:
    """argmax_a |{i : a_i = a}|: self-consistency (Wang et al., 2023).

    >>> Plurality()(Candidates(np.array([0, 0, 1, -1]))).support.tolist()
    [2.0, 2.0, 1.0, nan]
    """

    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def __call__(self, candidates: Candidates) -> Choice:
        valid = voters(candidates)
        return settle(candidates, valid, tally(candidates, valid, valid), fallback=self.fallback)


@method
class WeightedVote:
    """argmax_a Σ_{i in g(a)} w_i, or the mean over the group (Li et al., 2023).

    A sum of negative weights turns votes into punishment, so log-probabilities are refused for the sum unless
    ``negative="allow"`` asks for it; the mean takes them. With equal weights the sum is plurality and the mean a tie.
    """

    evidence: str = "score"
    pool: str = "sum"
    negative: str = "refuse"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(self.pool in ("sum", "mean"), "WeightedVote.pool", self.pool, "use 'sum' or 'mean'")
        require(self.negative in ("refuse", "allow"), "WeightedVote.negative", self.negative, "use 'refuse' or 'allow'")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        weight, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        self.check(weight[valid])
        pooled = tally(candidates, weight, valid) if self.pool == "sum" else group_mean(candidates, weight, valid)
        return settle(candidates, valid, pooled, fallback=self.fallback)

    def check(self, weight: Array) -> None:
        """Refuse weights whose sum would not mean what it says."""
        ok = self.pool == "mean" or self.negative == "allow" or not (weight < 0).any()
        require(ok, f"evidence {self.evidence!r}", float(weight.min(initial=0.0)), NEGATIVE)
        require(not (weight == np.inf).any(), f"evidence {self.evidence!r}", np.inf, "use weights below infinity")


NEGATIVE = "summed, negative weights punish an answer for its votes: use exp, pool='mean', or negative='allow'"


def group_mean(candidates: Candidates, weight: Array, valid: Array) -> Array:
    """``[..., N]`` the mean weight of the group, taken about its first member: equal weights have exactly that mean."""
    size = candidates.answers.shape[-1]
    first = group_first(np.where(valid, candidates.answers, -1), valid)
    base = np.where(valid, np.take_along_axis(weight, np.minimum(first, size - 1), axis=-1) if size else weight, 0.0)
    off = np.where(valid & (weight != base), weight - np.where(np.isfinite(base), base, 0.0), 0.0)
    count = np.maximum(tally(candidates, valid, valid), 1.0)
    return base + tally(candidates, off, valid) / count


@method
class SoftmaxVote:
    """w_i = exp((s_i - max s) / T): from plurality (T -> inf) to Best-of-N (T -> 0); CISC (Taubenfeld et al., 2025).

    The support is a group's share of all weight.

    >>> scores = {"score": np.array([0.3, 0.3, 0.3, 0.85])}
    >>> SoftmaxVote(temperature=0.1)(Candidates(np.array([0, 0, 0, 1]), evidence=scores)).support.round(4).tolist()
    [0.0121, 0.0121, 0.0121, 0.9879]
    """

    evidence: str = "score"
    temperature: float = 1.0
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(self.temperature > 0, "SoftmaxVote.temperature", self.temperature, "use a temperature > 0, or BestOfN")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        weight = softened(score, valid, self.temperature)
        sums = tally(candidates, weight, valid)
        total = np.where(valid, weight, 0.0).sum(axis=-1, keepdims=True)
        return settle(candidates, valid, sums, support=sums / np.where(total > 0, total, 1.0), fallback=self.fallback)


def softened(score: Array, valid: Array, temperature: float) -> Array:
    """exp((s - max s) / T) of the valid, 0 of the rest. The best weigh exactly 1, also where they are infinite."""
    best = np.where(valid, score, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    near = valid & np.isfinite(score) & np.isfinite(best)  # a score of -inf carries no weight beside a finite one
    lower = np.where(near, np.exp(np.where(near, score - np.where(near, best, 0.0), 0.0) / temperature), 0.0)
    return np.where(valid, np.where(score == best, 1.0, lower), 0.0)


@method
class LikelihoodVote:
    """argmax_a Σ_{i in g(a)} exp(l_i) for log-probabilities l, as a log-sum-exp: nothing underflows.

    With mean token log-probabilities this is the normalised-likelihood vote, with exp(l) = 1 / perplexity; with
    sequence log-probabilities it marginalises the model over the sampled reasoning. The support is the log of the sum.
    """

    evidence: str = "mean_logprob"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        logprob, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        highest = float(logprob[valid].max(initial=-np.inf))
        require(highest <= 0, f"evidence {self.evidence!r}", highest, "use log-probabilities, which are <= 0")
        sums = tally(candidates, softened(logprob, valid, 1.0), valid)
        best = np.where(valid, logprob, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
        with np.errstate(divide="ignore"):
            return settle(candidates, valid, sums, support=best + np.log(sums), fallback=self.fallback)


@method
class LogOddsVote:
    """w_i = logit(s_i) - logit(b), or s_i - b with ``form="linear"`` (Kuang et al., 2025). The weak take votes away.

    A score of 0 or 1 has no log-odds: it raises, or is clipped to [clip, 1 - clip] where a ``clip`` is declared.
    """

    evidence: str = "score"
    threshold: float = 0.5
    form: str = "logit"
    clip: float = 0.0
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(self.form in ("logit", "linear"), "LogOddsVote.form", self.form, "use 'logit' or 'linear'")
        ok = math.isfinite(self.threshold) and (self.form == "linear" or 0 < self.threshold < 1)
        require(ok, "LogOddsVote.threshold", self.threshold, "use a score; within (0, 1) for the logit")
        require(0 <= self.clip < 0.5, "LogOddsVote.clip", self.clip, "use a margin in [0, 0.5); 0 raises at 0 and 1")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        weight = self.weigh(np.where(valid, score, self.threshold))
        return settle(candidates, valid, tally(candidates, weight, valid), fallback=self.fallback)

    def weigh(self, score: Array) -> Array:
        """The weight of every score."""
        if self.form == "linear":
            finite = np.isfinite(score).all()
            require(finite, f"evidence {self.evidence!r}", "an infinite score", "the linear form takes finite ones")
            return score - self.threshold
        score = np.clip(score, self.clip, 1 - self.clip)
        inside_unit(score, self.evidence, "set LogOddsVote.clip, or use form='linear'")
        return np.log(score) - np.log1p(-score) - (math.log(self.threshold) - math.log1p(-self.threshold))


def inside_unit(score: Array, evidence: str, remedy: str) -> None:
    """Refuse scores that are not strictly within (0, 1)."""
    outside = score[~((score > 0) & (score < 1))]
    require(
        outside.size == 0, f"evidence {evidence!r}", outside[:1].tolist(), f"scores must be within (0, 1): {remedy}"
    )


@method
class CalibratedVote:
    """w_i = log f1(s_i) / f0(s_i) + log q + log(m - 1) - log(1 - q): the optimal vote of Kuang et al. (2025).

    Two calibrated evidences, both fitted on held-out data: ``log_ratio``, the log density ratio of correct and
    incorrect responses, and ``correctness``, the probability of being correct, whose mean over the valid is q. m is
    the number of distinct answers; with one the formula is undefined and the answer is submitted. At q = 0 or 1 the
    group size decides (few, or many), and the density ratio among equals.
    """

    log_ratio: str = "log_ratio"
    correctness: str = "correctness"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.log_ratio, self.correctness)

    def __call__(self, candidates: Candidates) -> Choice:
        ratio, valid = scored(candidates, self.log_ratio, voters(candidates), self.missing)
        chance, valid = scored(candidates, self.correctness, valid, self.missing)
        require(np.isfinite(ratio[valid]).all(), f"evidence {self.log_ratio!r}", "infinite", "use finite log ratios")
        outside = chance[valid & ~((chance >= 0) & (chance <= 1))]
        require(outside.size == 0, f"evidence {self.correctness!r}", outside[:1].tolist(), "use probabilities")
        n = np.maximum(np.count_nonzero(valid, axis=-1), 1)
        q = np.where(valid, chance, 0.0).sum(axis=-1) / n
        groups = np.count_nonzero(members(candidates, valid), axis=-1)
        bias, sure = offset(q, groups)
        sums, sizes = tally(candidates, ratio, valid), tally(candidates, valid, valid)
        inner = sums + sizes * bias[..., None]
        # The limit q -> 0 or 1: size first, then the ratios. Standing makes one key of the pair.
        limit = lexicographic(sizes * sure[..., None], sums, valid)
        key = np.where((sure != 0)[..., None], limit, inner)
        return settle(candidates, valid, key, support=inner, fallback=self.fallback)


def offset(q: Array, groups: Array) -> tuple[Array, Array]:
    """log q + log(m - 1) - log(1 - q), and -1, 0 or +1: the sign of a limit where q is exactly 0 or 1.

    >>> offset(np.array(0.6), np.array(4))[0].round(5).tolist()
    1.50408
    """
    q, groups = np.asarray(q, dtype=np.float64), np.asarray(groups)
    inside = (q > 0) & (q < 1) & (groups > 1)
    safe, many = np.where(inside, q, 0.5), np.where(inside, groups, 2)
    bias = np.where(inside, np.log(safe) + np.log(many - 1.0) - np.log1p(-safe), 0.0)
    return bias, np.where((groups > 1) & ~inside, np.where(q >= 1, 1, -1), 0)


def lexicographic(major: Array, minor: Array, valid: Array) -> Array:
    """``[..., N]`` one number that orders as (major, minor) does among the valid."""
    order = np.lexsort((np.where(valid, minor, -np.inf), np.where(valid, major, -np.inf)), axis=-1)
    steps = np.zeros(order.shape, dtype=np.int64)
    for part in (major, minor):
        ordered = np.take_along_axis(np.where(valid, part, -np.inf), order, axis=-1)
        steps[..., 1:] |= ordered[..., 1:] != ordered[..., :-1]
    key = np.empty(order.shape, dtype=np.float64)
    np.put_along_axis(key, order, np.cumsum(steps, axis=-1).astype(np.float64), axis=-1)
    return key


@method
class CGES:
    """The posterior of an answer when each candidate is right with its confidence c_i (Aghazadeh et al., 2026).

    Hypotheses are the K - 1 observed answers and OTHER; log A(h) = Σ_i log c_i where a_i = h, else
    log((1 - c_i) / (K - 1)). The support is the normalised posterior. ``other=True`` lets OTHER win: nothing is
    submitted then, and the fallback applies.

    >>> scores = {"confidence": np.array([0.8, 0.7, 0.6])}
    >>> CGES()(Candidates(np.array([0, 0, 1]), evidence=scores)).support.round(4).tolist()
    [0.9032, 0.9032, 0.0726]
    """

    evidence: str = "confidence"
    other: bool = False
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(isinstance(self.other, bool), "CGES.other", self.other, "use True or False")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        score, valid = scored(candidates, self.evidence, voters(candidates), self.missing)
        inside_unit(score[valid], self.evidence, "calibrate or clip the confidence first")
        posterior, unseen = cges(candidates, np.where(valid, score, 0.5), valid)
        choice = settle(candidates, valid, posterior)
        if self.other:
            best = at(posterior, np.maximum(choice.winner, 0)) if posterior.shape[-1] else unseen
            winner = np.where((choice.winner >= 0) & (unseen > best), -1, choice.winner)
            choice = Choice(winner, choice.support, winner[..., None])
        return otherwise(candidates, choice, self.fallback)


def cges(candidates: Candidates, confidence: Array, valid: Array) -> tuple[Array, Array]:
    """The posterior of every candidate's answer ``[..., N]`` and of OTHER ``[...]``."""
    groups = np.count_nonzero(members(candidates, valid), axis=-1)
    miss = np.log1p(-confidence) - np.log(np.maximum(groups, 1))[..., None]
    log_a = tally(candidates, np.log(confidence) - miss, valid)  # relative to OTHER, which every candidate misses
    first = members(candidates, valid)
    peak = np.maximum(np.where(first, log_a, -np.inf).max(axis=-1, initial=-np.inf), 0.0)
    total = np.where(first, np.exp(log_a - peak[..., None]), 0.0).sum(axis=-1) + np.exp(-peak)
    return np.exp(log_a - peak[..., None]) / total[..., None], np.exp(-peak) / total

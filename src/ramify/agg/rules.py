"""Every rule of ``ramify.decide`` as a function over plain lists and arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from ramify import decide
from ramify.agg.plain import (
    Decided,
    Returns,
    Selection,
    chosen,
    numbers,
    packed,
    parts,
    presented,
    score_at,
    several,
    table,
    voted,
)
from ramify.arrays import Array
from ramify.bank import Candidates
from ramify.decide import Features, Rule
from ramify.errors import require

__all__ = [
    "CGES_OTHER",
    "Selection",
    "adaptive_majority_of_the_bests",
    "ambr",
    "best_of_majority",
    "best_of_n",
    "bradley_terry",
    "calibrated_vote",
    "centroid_mbr",
    "cges_vote",
    "diverse_n_best",
    "filtered_vote",
    "first_valid",
    "judged",
    "kde_weighted_vote",
    "kl_best_of_n",
    "knockout",
    "likelihood_vote",
    "logit_weighted_vote",
    "low_rank_mbr",
    "majority_of_the_bests",
    "majority_vote",
    "mbr",
    "mob",
    "pruned_mbr",
    "rank_weighted_vote",
    "reference_aggregation",
    "regularised_best_of_n",
    "round_robin",
    "select",
    "soft_best_of_n",
    "soft_best_of_n_probs",
    "softmax_weighted_vote",
    "verifier_constrained",
    "weighted_majority_vote",
]


class _Other:
    """The answer nobody gave."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "CGES_OTHER"

    def __reduce__(self) -> str:
        return "CGES_OTHER"


PLURALITY = decide.Plurality()
CGES_OTHER = _Other()
"""What ``cges_vote`` returns where the right answer is most likely one that was not given."""


def select(
    rule: Rule,
    answers: Any,
    scores: Any | Mapping[str, Any] = None,
    *,
    utility: Any = None,
    **returns: Unpack[Returns],
) -> Any:
    """What any rule of ``ramify.decide`` selects. ``scores`` is its evidence by name, or the one it needs.

    >>> from ramify.decide import RankVote
    >>> select(RankVote("reward", p=2), ["A", "A", "A", "B"], {"reward": [0.3, 0.3, 0.3, 0.85]})
    'B'
    """
    names = [name for name in getattr(rule, "needs", ()) if name != decide.PAIRS]
    if scores is not None and not isinstance(scores, Mapping):
        require(len(names) == 1, "scores", "one table", f"{rule!r} needs {names or 'none'}: give them by name")
        scores = {names[0]: scores}
    return packed(*chosen(rule, answers, scores or {}, utility), **returns)


# ---------------------------------------------------------------------------------------------------------------- votes


def first_valid(answers: Any, **returns: Unpack[Returns]) -> Any:
    """The first valid answer: what one sample would submit."""
    return packed(*chosen(decide.Earliest(), answers, {}), **returns)


def majority_vote(answers: Any, **returns: Unpack[Returns]) -> Any:
    """The most frequent answer: ``Plurality``.

    >>> majority_vote(["B", "A", "A", None], record=True)
    Selection(answer='A', index=1, score=2.0)
    """
    return packed(*chosen(decide.Plurality(), answers, {}), **returns)


def weighted_majority_vote(
    answers: Any, scores: Any, *, aggregate: str = "sum", negative: str = "refuse", **returns: Unpack[Returns]
) -> Any:
    """The answer with the largest sum or mean of scores: ``WeightedVote``. Negative sums are allowed by name only."""
    rule = decide.WeightedVote(pool=aggregate, negative=negative)
    return packed(*voted(rule, answers, scores), **returns)


def softmax_weighted_vote(answers: Any, scores: Any, *, temperature: float = 1.0, **returns: Unpack[Returns]) -> Any:
    """Votes weighted by exp(score / temperature): ``SoftmaxVote`` (CISC)."""
    return packed(*voted(decide.SoftmaxVote(temperature=temperature), answers, scores), **returns)


def likelihood_vote(answers: Any, logprobs: Any, **returns: Unpack[Returns]) -> Any:
    """Votes weighted by exp(log-probability), mean or sequence: ``LikelihoodVote``."""
    return packed(*voted(decide.LikelihoodVote("score"), answers, logprobs), **returns)


def rank_weighted_vote(
    answers: Any, scores: Any, *, p: float = 1.0, ties: str = "share", **returns: Unpack[Returns]
) -> Any:
    """Votes weighted by (n - rank + 1)^p: ``RankVote`` (Borda at p = 1)."""
    return packed(*voted(decide.RankVote(p=p, ties=ties), answers, scores), **returns)


def logit_weighted_vote(
    answers: Any,
    scores: Any,
    *,
    threshold: float = 0.5,
    transform: str = "logit",
    clip: float = 0.0,
    **returns: Unpack[Returns],
) -> Any:
    """Votes weighted by logit(score) - logit(threshold), or score - threshold: ``LogOddsVote``."""
    rule = decide.LogOddsVote(threshold=threshold, form=transform, clip=clip)
    return packed(*voted(rule, answers, scores), **returns)


def filtered_vote(
    answers: Any,
    scores: Any,
    *,
    keep: float = 0.5,
    weighted: bool = True,
    ties: str = "share",
    **returns: Unpack[Returns],
) -> Any:
    """A (weighted) vote among the best-scored share or number of candidates: ``FilteredVote`` (offline DeepConf)."""
    then: Rule = decide.WeightedVote() if weighted else decide.Plurality()
    return packed(*voted(decide.FilteredVote(keep=keep, then=then, ties=ties), answers, scores), **returns)


def calibrated_vote(answers: Any, log_ratio: Any, correctness: Any, **returns: Unpack[Returns]) -> Any:
    """The optimal vote from two calibrated evidences: ``CalibratedVote``."""
    evidence = {"log_ratio": log_ratio, "correctness": correctness}
    return packed(*chosen(decide.CalibratedVote(), answers, evidence), **returns)


def kde_weighted_vote(answers: Any, scores: Any, calibration: Any, **returns: Unpack[Returns]) -> Any:
    """``CalibratedVote`` on scores in (0, 1) with a fitted calibration.

    ``calibration`` has ``log_density_ratio(scores)`` and ``calibrated_probability(scores)``, as scorio's has.
    """
    like = table(answers)
    score = numbers(scores, like)
    valid = (like.codes >= 0) & ~np.isnan(score)
    evidence = {name: np.full(score.shape, np.nan) for name in ("score", "log_ratio", "correctness")}
    evidence["score"] = score
    if valid.any():
        evidence["log_ratio"][valid] = calibration.log_density_ratio(score[valid])
        evidence["correctness"][valid] = calibration.calibrated_probability(score[valid])
    bank = Candidates(like.codes, like.drawn, None, evidence)
    return packed(*presented(like, decide.CalibratedVote(), bank), **returns)


def cges_vote(answers: Any, scores: Any, *, allow_other: bool = False, **returns: Unpack[Returns]) -> Any:
    """The answer with the largest posterior under confidences in (0, 1): ``CGES``.

    With ``allow_other`` the answer may be ``CGES_OTHER``, with index -1.

    >>> cges_vote(["A", "A", "B"], [0.8, 0.7, 0.6]), cges_vote(["A"], [0.1], allow_other=True)
    ('A', CGES_OTHER)
    """
    rule = decide.CGES("score", other=allow_other)
    like, choice, index, score = voted(rule, answers, scores)
    found = Selection(*packed(like, choice, index, score, record=True))
    other = (index < 0) & (like.codes >= 0).any(axis=-1)
    if like.single:
        found = found._replace(answer=CGES_OTHER if other[0] else found.answer)
    else:
        found.answer[other] = CGES_OTHER
    return parts(found, **returns)


# ------------------------------------------------------------------------------------------------------------ selection


def best_of_n(answers: Any, scores: Any, **returns: Unpack[Returns]) -> Any:
    """The answer of the best-scored candidate: ``BestOfN``."""
    return packed(*voted(decide.BestOfN(), answers, scores), **returns)


def verifier_constrained(
    answers: Any,
    verdicts: Any,
    scores: Any = None,
    *,
    passing: tuple[float, ...] = (1.0,),
    fallback: Rule | None = PLURALITY,
    **returns: Unpack[Returns],
) -> Any:
    """The best-scored (or first) candidate among those that pass, else the fallback's: ``VerifierConstrained``."""
    then: Rule = decide.Earliest() if scores is None else decide.BestOfN()
    rule = decide.VerifierConstrained(passing=passing, then=then, fallback=fallback)
    return packed(*chosen(rule, answers, {"score": scores, "verdict": verdicts}), **returns)


def soft_best_of_n(answers: Any, scores: Any, *, alpha: float = 1.0, u: Any = None, **returns: Unpack[Returns]) -> Any:
    """A draw with probability ∝ exp(alpha score) by uniforms ``u``; without them the mode: ``SoftBestOfN``."""
    like = table(answers)
    bank = Candidates(like.codes, like.drawn, None, {"score": numbers(scores, like)})
    choice = decide.SoftBestOfN(alpha=alpha)(bank)
    if u is not None:
        choice = decide.drawn(choice, np.broadcast_to(np.asarray(u, dtype=np.float64), choice.winner.shape))
    return packed(like, choice, choice.winner, score_at(bank.score("score"), choice.winner), **returns)


def soft_best_of_n_probs(answers: Any, scores: Any, *, alpha: float = 1.0) -> Array:
    """The probabilities that ``soft_best_of_n`` draws with, ``[N]`` or ``[M, N]``."""
    like = table(answers)
    bank = Candidates(like.codes, like.drawn, None, {"score": numbers(scores, like)})
    probs = decide.SoftBestOfN(alpha=alpha)(bank).probs
    return np.asarray(probs)[0] if like.single else probs


def regularised_best_of_n(
    answers: Any, scores: Any, utility: Any = None, *, beta: float = 1.0, **returns: Unpack[Returns]
) -> Any:
    """score + beta * mean utility: ``RegularisedBestOfN``."""
    rule = decide.RegularisedBestOfN(beta=beta)
    return packed(*chosen(rule, answers, {"score": scores}, utility), **returns)


def kl_best_of_n(answers: Any, scores: Any, logprobs: Any, *, beta: float = 0.01, **returns: Unpack[Returns]) -> Any:
    """score + beta * sequence log-probability: ``KLBestOfN``."""
    evidence = {"score": scores, "sequence_logprob": logprobs}
    return packed(*chosen(decide.KLBestOfN(beta=beta), answers, evidence), **returns)


def majority_of_the_bests(
    answers: Any, scores: Any, *, m: int | None = None, ties: str = "share", **returns: Unpack[Returns]
) -> Any:
    """The likeliest Best-of-m answer under resampling: ``MajorityOfTheBests``."""
    return packed(*voted(decide.MajorityOfTheBests(m=m, ties=ties), answers, scores), **returns)


mob = majority_of_the_bests


def adaptive_majority_of_the_bests(
    answers: Any, scores: Any, *, ratio: float = 0.75, ties: str = "share", **returns: Unpack[Returns]
) -> Any:
    """The same with m chosen where the distribution moves least: ``AdaptiveMajorityOfTheBests``."""
    rule = decide.AdaptiveMajorityOfTheBests(ratio=ratio, ties=ties)
    return packed(*voted(rule, answers, scores), **returns)


def best_of_majority(
    answers: Any, scores: Any, *, alpha: float = 0.0, aggregate: str = "mean", k: int = 1, **returns: Unpack[Returns]
) -> Any:
    """The best-rewarded answer among the frequent ones, or a list of k > 1 of them: ``BestOfMajority``."""
    rule = decide.BestOfMajority(alpha=alpha, pool=aggregate, k=k)
    decided = voted(rule, answers, scores)
    return packed(*decided, **returns) if k == 1 else several(*decided[:2])


def judged(answers: Any, picks: Any, *, unreadable: str = "first", **returns: Unpack[Returns]) -> Any:
    """The answer that a judge picked most often: ``Judged``, as in Universal Self-Consistency."""
    return packed(*chosen(decide.Judged("score", unreadable), answers, {"score": picks}), **returns)


# ------------------------------------------------------------------------------------------------------------ utilities


def mbr(answers: Any, utility: Any = None, weights: Any = None, **returns: Unpack[Returns]) -> Any:
    """The answer with the largest expected utility against the others: ``MBR``, or ``WeightedMBR`` with weights.

    ``utility`` is a function of two answers (agreement, if None) or a matrix ``[N, N]``.

    >>> from ramify.decide import TokenF1
    >>> mbr(["a red cat", "a cat", "the dog"], TokenF1())
    'a red cat'
    """
    if weights is None:
        return packed(*chosen(decide.MBR(), answers, {}, utility), **returns)
    return packed(*chosen(decide.WeightedMBR("score"), answers, {"score": weights}, utility), **returns)


def pruned_mbr(answers: Any, utility: Any = None, *, alpha: float = 0.99, **returns: Unpack[Returns]) -> Any:
    """MBR with confidence-based pruning: ``PrunedMBR``."""
    return packed(*chosen(decide.PrunedMBR(alpha), answers, {}, utility), **returns)


def ambr(answers: Any, utility: Any = None, *, budget: int, **returns: Unpack[Returns]) -> Any:
    """MBR within a budget of utility calls, by sequential halving: ``AMBR``."""
    return packed(*chosen(decide.AMBR(budget), answers, {}, utility), **returns)


def low_rank_mbr(answers: Any, utility: Any = None, *, rank: int = 8, **returns: Unpack[Returns]) -> Any:
    """MBR from a share of the pairs, by completing the matrix: ``LowRankMBR``."""
    return packed(*chosen(decide.LowRankMBR(rank=rank), answers, {}, utility), **returns)


def reference_aggregation(
    answers: Any, vectors: Any, similarity: Callable[[Array, Array], Array] | None = None, **returns: Unpack[Returns]
) -> Any:
    """MBR against the average of the references' vectors, by the dot product if not said: ``ReferenceAggregation``."""
    return packed(*_featured(decide.ReferenceAggregation(), answers, vectors, similarity), **returns)


def centroid_mbr(
    answers: Any,
    vectors: Any,
    similarity: Callable[[Array, Array], Array] | None = None,
    *,
    k: int = 8,
    **returns: Unpack[Returns],
) -> Any:
    """MBR against centroids of the references' vectors: ``CentroidMBR``."""
    return packed(*_featured(decide.CentroidMBR(k), answers, vectors, similarity), **returns)


def _featured(rule: Rule, answers: Any, vectors: Any, similarity: Any) -> Decided:
    like = table(answers)
    given = np.asarray(vectors, dtype=np.float64)
    features = Features(given[None] if like.single else given, similarity or _dot)
    choice = rule(Candidates(like.codes, like.drawn, utility=features))
    return like, choice, choice.winner, score_at(choice.support, choice.winner)


def _dot(a: Array, b: Array) -> Array:
    return (a * b).sum(axis=-1)


def diverse_n_best(answers: Any, utility: Any = None, *, k: int = 4, spread: float = 0.1) -> Any:
    """k good answers that differ: ``DiverseNBest``."""
    return several(*chosen(decide.DiverseNBest(k, spread), answers, {}, utility)[:2])


def round_robin(answers: Any, judgements: Any, **returns: Unpack[Returns]) -> Any:
    """The winner of all against all; ``judgements [N, N]`` say how surely i beats j: ``RoundRobin``."""
    return packed(*chosen(decide.RoundRobin(), answers, {}, judgements), **returns)


def knockout(answers: Any, judgements: Any, *, both: bool = False, **returns: Unpack[Returns]) -> Any:
    """The winner of a bracket: ``Knockout``."""
    return packed(*chosen(decide.Knockout(both), answers, {}, judgements), **returns)


def bradley_terry(answers: Any, judgements: Any, *, prior: float = 0.1, **returns: Unpack[Returns]) -> Any:
    """The strongest candidate under the Bradley–Terry model of the judgements: ``BradleyTerry``."""
    return packed(*chosen(decide.BradleyTerry(prior), answers, {}, judgements), **returns)

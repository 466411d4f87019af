"""Every rule of ``ramify.decide`` as a function over plain lists and arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np

from ramify import decide
from ramify.arrays import Array
from ramify.bank import Candidates, Choice
from ramify.bank.codes import encode, is_bottom
from ramify.decide import Features, Given, Pairs, Rule
from ramify.errors import InvalidValue, require

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


class Selection(NamedTuple):
    """What was selected: for a batch each part is an array."""

    answer: Any
    index: Any  # -1 where nothing is valid
    score: Any  # the representative's; the rule's support where the rule reads no scores


class Returns(TypedDict, total=False):
    """What a selecting function returns besides the answer."""

    record: bool
    return_index: bool
    return_score: bool


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


# ------------------------------------------------------------------------------------------------------- input, output


class Table(NamedTuple):
    """Answers as a bank's arrays."""

    codes: Array  # [M, N]
    drawn: Array  # [M, N]
    answers: list[tuple[Any, ...]]  # by question, by code
    single: bool


def table(answers: Any) -> Table:
    """Answers of one question or of a batch.

    >>> table([["A", None], ["B"]]).codes.tolist(), table(["A", "B"]).single
    ([[0, -1], [0, -1]], True)
    """
    rows, single = _rows(answers)
    try:
        codes, drawn, texts = encode(rows)
    except TypeError as error:
        raise InvalidValue(f"answers: {error}: use hashable answers, tuples instead of lists inside a row") from None
    return Table(codes, drawn, texts, single)


def _rows(values: Any) -> tuple[list[list[Any]], bool]:
    """Rows of values, and whether there was only one, given flat."""
    if hasattr(values, "to_numpy"):  # a pandas Series or frame, without importing pandas
        values = values.to_numpy(dtype=object)
    if isinstance(values, np.ndarray):
        require(values.ndim in (1, 2), "answers or scores", values.shape, "use one dimension, or two for a batch")
        listed = values.tolist()
        return (
            ([listed], True) if values.ndim == 1 and not any(map(_is_row, listed)) else (list(map(_row, listed)), False)
        )
    listed = list(values)
    return (list(map(_row, listed)), False) if listed and all(map(_is_row, listed)) else ([listed], True)


def _is_row(value: Any) -> bool:
    return isinstance(value, list | np.ndarray) or hasattr(value, "to_numpy")


def _row(value: Any) -> list[Any]:
    return list(value.tolist() if isinstance(value, np.ndarray) else value)


def numbers(scores: Any, like: Table, name: str = "scores") -> Array:
    """``[M, N]`` scores aligned with the answers; None, NaN and NA are missing."""
    rows, _ = _rows(scores)
    require(
        len(rows) == len(like.codes), name, f"{len(rows)} rows", f"give one for each of {len(like.codes)} questions"
    )
    out = np.full(like.codes.shape, np.nan)
    for q, row in enumerate(rows):
        wanted = int(like.drawn[q].sum())
        require(len(row) == wanted, f"{name} of question {q}", f"{len(row)} values", f"give one for each of {wanted}")
        out[q, :wanted] = [_number(value, f"{name} of question {q}") for value in row]
    return out


def _number(value: Any, name: str) -> float:
    try:
        return math.nan if is_bottom(value) else float(value)
    except (TypeError, ValueError):
        raise InvalidValue(f"{name} has {value!r}: use numbers, and None where one is missing") from None


def pairs(utility: Any, like: Table, outputs: Any = None) -> Any:
    """A matrix ``[N, N]`` or ``[M, N, N]``, or a function of two outputs: the answers, or ``outputs``."""
    if utility is None or callable(utility):
        shown = [
            [texts[c] if c >= 0 else None for c in row] for texts, row in zip(like.answers, like.codes, strict=True)
        ]
        return Pairs(shown if outputs is None else _rows(outputs)[0], utility or decide.Exact())
    return Given(utility)


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
    return _packed(*_chosen(rule, answers, scores or {}, utility), **returns)


Decided: TypeAlias = tuple[Table, Choice, Array, Array]  # the choice, who stands for it, and the score shown with it


def _voted(rule: Rule, answers: Any, scores: Any) -> Decided:
    """A vote by scores: the best-scored candidate stands for the winning answer."""
    like = table(answers)
    return _presented(like, rule, Candidates(like.codes, like.drawn, None, {"score": numbers(scores, like)}))


def _presented(like: Table, rule: Rule, bank: Candidates) -> Decided:
    choice = rule(bank)
    index = decide.BestInGroup()(bank, choice)
    return like, choice, index, _at(bank.score("score"), index)


def _chosen(rule: Rule, answers: Any, scores: Mapping[str, Any], utility: Any = None) -> Decided:
    """A choice of a candidate, who stands for himself; shown with the first of the scores, or the support."""
    like = table(answers)
    evidence = {name: numbers(values, like, name) for name, values in scores.items() if values is not None}
    asks = utility is not None or decide.PAIRS in getattr(rule, "needs", ())
    choice = rule(Candidates(like.codes, like.drawn, None, evidence, pairs(utility, like) if asks else None))
    return like, choice, choice.winner, _at(next(iter(evidence.values()), choice.support), choice.winner)


def _at(values: Array, index: Array) -> Array:
    """``[M]`` the values at an index, NaN at -1."""
    if not values.shape[-1]:
        return np.full(index.shape, np.nan)
    return np.where(index >= 0, np.take_along_axis(values, np.maximum(index, 0)[:, None], axis=-1)[:, 0], np.nan)


def _packed(like: Table, choice: Choice, index: Array, score: Array, **returns: Unpack[Returns]) -> Any:
    """The answer, with what else was asked for."""
    del choice
    chosen = [None if i < 0 or like.codes[q, i] < 0 else like.answers[q][like.codes[q, i]] for q, i in enumerate(index)]
    if like.single:
        return _parts(Selection(chosen[0], int(index[0]), float(score[0])), **returns)
    answer = np.empty(len(chosen), dtype=object)
    answer[:] = chosen
    return _parts(Selection(answer, index.astype(np.int64), score), **returns)


def _parts(found: Selection, record: bool = False, return_index: bool = False, return_score: bool = False) -> Any:
    if record or (return_index and return_score):
        return found
    if return_index or return_score:
        return (found.answer, found.index if return_index else found.score)
    return found.answer


def _several(like: Table, choice: Choice) -> Any:
    """The k answers of a rule with several outputs: a list, or a list for each question."""
    rows = [[like.answers[q][like.codes[q, i]] for i in row if i >= 0] for q, row in enumerate(choice.ranked)]
    return rows[0] if like.single else rows


# ---------------------------------------------------------------------------------------------------------------- votes


def first_valid(answers: Any, **returns: Unpack[Returns]) -> Any:
    """The first valid answer: what one sample would submit."""
    return _packed(*_chosen(decide.Earliest(), answers, {}), **returns)


def majority_vote(answers: Any, **returns: Unpack[Returns]) -> Any:
    """The most frequent answer: ``Plurality``.

    >>> majority_vote(["B", "A", "A", None], record=True)
    Selection(answer='A', index=1, score=2.0)
    """
    return _packed(*_chosen(decide.Plurality(), answers, {}), **returns)


def weighted_majority_vote(
    answers: Any, scores: Any, *, aggregate: str = "sum", negative: str = "refuse", **returns: Unpack[Returns]
) -> Any:
    """The answer with the largest sum or mean of scores: ``WeightedVote``. Negative sums are allowed by name only."""
    rule = decide.WeightedVote(pool=aggregate, negative=negative)
    return _packed(*_voted(rule, answers, scores), **returns)


def softmax_weighted_vote(answers: Any, scores: Any, *, temperature: float = 1.0, **returns: Unpack[Returns]) -> Any:
    """Votes weighted by exp(score / temperature): ``SoftmaxVote`` (CISC)."""
    return _packed(*_voted(decide.SoftmaxVote(temperature=temperature), answers, scores), **returns)


def likelihood_vote(answers: Any, logprobs: Any, **returns: Unpack[Returns]) -> Any:
    """Votes weighted by exp(log-probability), mean or sequence: ``LikelihoodVote``."""
    return _packed(*_voted(decide.LikelihoodVote("score"), answers, logprobs), **returns)


def rank_weighted_vote(
    answers: Any, scores: Any, *, p: float = 1.0, ties: str = "share", **returns: Unpack[Returns]
) -> Any:
    """Votes weighted by (n - rank + 1)^p: ``RankVote`` (Borda at p = 1)."""
    return _packed(*_voted(decide.RankVote(p=p, ties=ties), answers, scores), **returns)


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
    return _packed(*_voted(rule, answers, scores), **returns)


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
    return _packed(*_voted(decide.FilteredVote(keep=keep, then=then, ties=ties), answers, scores), **returns)


def calibrated_vote(answers: Any, log_ratio: Any, correctness: Any, **returns: Unpack[Returns]) -> Any:
    """The optimal vote from two calibrated evidences: ``CalibratedVote``."""
    evidence = {"log_ratio": log_ratio, "correctness": correctness}
    return _packed(*_chosen(decide.CalibratedVote(), answers, evidence), **returns)


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
    return _packed(*_presented(like, decide.CalibratedVote(), bank), **returns)


def cges_vote(answers: Any, scores: Any, *, allow_other: bool = False, **returns: Unpack[Returns]) -> Any:
    """The answer with the largest posterior under confidences in (0, 1): ``CGES``.

    With ``allow_other`` the answer may be ``CGES_OTHER``, with index -1.

    >>> cges_vote(["A", "A", "B"], [0.8, 0.7, 0.6]), cges_vote(["A"], [0.1], allow_other=True)
    ('A', CGES_OTHER)
    """
    rule = decide.CGES("score", other=allow_other)
    like, choice, index, score = _voted(rule, answers, scores)
    found = Selection(*_packed(like, choice, index, score, record=True))
    other = (index < 0) & (like.codes >= 0).any(axis=-1)
    if like.single:
        found = found._replace(answer=CGES_OTHER if other[0] else found.answer)
    else:
        found.answer[other] = CGES_OTHER
    return _parts(found, **returns)


# ------------------------------------------------------------------------------------------------------------ selection


def best_of_n(answers: Any, scores: Any, **returns: Unpack[Returns]) -> Any:
    """The answer of the best-scored candidate: ``BestOfN``."""
    return _packed(*_voted(decide.BestOfN(), answers, scores), **returns)


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
    return _packed(*_chosen(rule, answers, {"score": scores, "verdict": verdicts}), **returns)


def soft_best_of_n(answers: Any, scores: Any, *, alpha: float = 1.0, u: Any = None, **returns: Unpack[Returns]) -> Any:
    """A draw with probability ∝ exp(alpha score) by uniforms ``u``; without them the mode: ``SoftBestOfN``."""
    like = table(answers)
    bank = Candidates(like.codes, like.drawn, None, {"score": numbers(scores, like)})
    choice = decide.SoftBestOfN(alpha=alpha)(bank)
    if u is not None:
        choice = decide.drawn(choice, np.broadcast_to(np.asarray(u, dtype=np.float64), choice.winner.shape))
    return _packed(like, choice, choice.winner, _at(bank.score("score"), choice.winner), **returns)


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
    return _packed(*_chosen(rule, answers, {"score": scores}, utility), **returns)


def kl_best_of_n(answers: Any, scores: Any, logprobs: Any, *, beta: float = 0.01, **returns: Unpack[Returns]) -> Any:
    """score + beta * sequence log-probability: ``KLBestOfN``."""
    evidence = {"score": scores, "sequence_logprob": logprobs}
    return _packed(*_chosen(decide.KLBestOfN(beta=beta), answers, evidence), **returns)


def majority_of_the_bests(
    answers: Any, scores: Any, *, m: int | None = None, ties: str = "share", **returns: Unpack[Returns]
) -> Any:
    """The likeliest Best-of-m answer under resampling: ``MajorityOfTheBests``."""
    return _packed(*_voted(decide.MajorityOfTheBests(m=m, ties=ties), answers, scores), **returns)


mob = majority_of_the_bests


def adaptive_majority_of_the_bests(
    answers: Any, scores: Any, *, ratio: float = 0.75, ties: str = "share", **returns: Unpack[Returns]
) -> Any:
    """The same with m chosen where the distribution moves least: ``AdaptiveMajorityOfTheBests``."""
    rule = decide.AdaptiveMajorityOfTheBests(ratio=ratio, ties=ties)
    return _packed(*_voted(rule, answers, scores), **returns)


def best_of_majority(
    answers: Any, scores: Any, *, alpha: float = 0.0, aggregate: str = "mean", k: int = 1, **returns: Unpack[Returns]
) -> Any:
    """The best-rewarded answer among the frequent ones, or a list of k > 1 of them: ``BestOfMajority``."""
    rule = decide.BestOfMajority(alpha=alpha, pool=aggregate, k=k)
    decided = _voted(rule, answers, scores)
    return _packed(*decided, **returns) if k == 1 else _several(*decided[:2])


def judged(answers: Any, picks: Any, *, unreadable: str = "first", **returns: Unpack[Returns]) -> Any:
    """The answer that a judge picked most often: ``Judged``, as in Universal Self-Consistency."""
    return _packed(*_chosen(decide.Judged("score", unreadable), answers, {"score": picks}), **returns)


# ------------------------------------------------------------------------------------------------------------ utilities


def mbr(answers: Any, utility: Any = None, weights: Any = None, **returns: Unpack[Returns]) -> Any:
    """The answer with the largest expected utility against the others: ``MBR``, or ``WeightedMBR`` with weights.

    ``utility`` is a function of two answers (agreement, if None) or a matrix ``[N, N]``.

    >>> from ramify.decide import TokenF1
    >>> mbr(["a red cat", "a cat", "the dog"], TokenF1())
    'a red cat'
    """
    if weights is None:
        return _packed(*_chosen(decide.MBR(), answers, {}, utility), **returns)
    return _packed(*_chosen(decide.WeightedMBR("score"), answers, {"score": weights}, utility), **returns)


def pruned_mbr(answers: Any, utility: Any = None, *, alpha: float = 0.99, **returns: Unpack[Returns]) -> Any:
    """MBR with confidence-based pruning: ``PrunedMBR``."""
    return _packed(*_chosen(decide.PrunedMBR(alpha), answers, {}, utility), **returns)


def ambr(answers: Any, utility: Any = None, *, budget: int, **returns: Unpack[Returns]) -> Any:
    """MBR within a budget of utility calls, by sequential halving: ``AMBR``."""
    return _packed(*_chosen(decide.AMBR(budget), answers, {}, utility), **returns)


def low_rank_mbr(answers: Any, utility: Any = None, *, rank: int = 8, **returns: Unpack[Returns]) -> Any:
    """MBR from a share of the pairs, by completing the matrix: ``LowRankMBR``."""
    return _packed(*_chosen(decide.LowRankMBR(rank=rank), answers, {}, utility), **returns)


def reference_aggregation(
    answers: Any, vectors: Any, similarity: Callable[[Array, Array], Array] | None = None, **returns: Unpack[Returns]
) -> Any:
    """MBR against the average of the references' vectors, by the dot product if not said: ``ReferenceAggregation``."""
    return _packed(*_featured(decide.ReferenceAggregation(), answers, vectors, similarity), **returns)


def centroid_mbr(
    answers: Any,
    vectors: Any,
    similarity: Callable[[Array, Array], Array] | None = None,
    *,
    k: int = 8,
    **returns: Unpack[Returns],
) -> Any:
    """MBR against centroids of the references' vectors: ``CentroidMBR``."""
    return _packed(*_featured(decide.CentroidMBR(k), answers, vectors, similarity), **returns)


def _featured(rule: Rule, answers: Any, vectors: Any, similarity: Any) -> Decided:
    like = table(answers)
    given = np.asarray(vectors, dtype=np.float64)
    features = Features(given[None] if like.single else given, similarity or _dot)
    choice = rule(Candidates(like.codes, like.drawn, utility=features))
    return like, choice, choice.winner, _at(choice.support, choice.winner)


def _dot(a: Array, b: Array) -> Array:
    return (a * b).sum(axis=-1)


def diverse_n_best(answers: Any, utility: Any = None, *, k: int = 4, spread: float = 0.1) -> Any:
    """k good answers that differ: ``DiverseNBest``."""
    return _several(*_chosen(decide.DiverseNBest(k, spread), answers, {}, utility)[:2])


def round_robin(answers: Any, judgements: Any, **returns: Unpack[Returns]) -> Any:
    """The winner of all against all; ``judgements [N, N]`` say how surely i beats j: ``RoundRobin``."""
    return _packed(*_chosen(decide.RoundRobin(), answers, {}, judgements), **returns)


def knockout(answers: Any, judgements: Any, *, both: bool = False, **returns: Unpack[Returns]) -> Any:
    """The winner of a bracket: ``Knockout``."""
    return _packed(*_chosen(decide.Knockout(both), answers, {}, judgements), **returns)


def bradley_terry(answers: Any, judgements: Any, *, prior: float = 0.1, **returns: Unpack[Returns]) -> Any:
    """The strongest candidate under the Bradley–Terry model of the judgements: ``BradleyTerry``."""
    return _packed(*_chosen(decide.BradleyTerry(prior), answers, {}, judgements), **returns)

"""What a verifier's score is worth: whom it ranks above whom, how far to believe it, and what selection does to it.

Scores are ``[Q, N]`` with NaN for missing, grades are 0 or 1 with NaN for missing; a candidate that lacks either is
left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ramify.arrays import Array
from ramify.bank import Candidates
from ramify.errors import require
from ramify.metrics.bankcurve import floats, mean_in, whole_budgets
from ramify.metrics.exact import first_rank, selected

__all__ = [
    "Auc",
    "PrecisionRecall",
    "Reliability",
    "Selection",
    "auc",
    "brier",
    "calibration_error",
    "over_optimisation",
    "precision_recall",
    "reliability",
    "roc_auc",
]


@dataclass(frozen=True, slots=True, eq=False)
class Auc:
    """ROC AUC of one score, by who is compared with whom."""

    pooled: float  # any correct candidate against any incorrect one
    by_group: dict[str, float]  # within the candidates of one generator
    within: float  # the mean over questions that have both kinds: what selection within a question lives on
    questions: int  # how many questions have both
    left_out: int  # candidates without a score or without a grade


def auc(score: Array, grade: Array) -> Array:
    """[...] P(score of a correct > score of an incorrect) + half the ties, along the last axis; NaN if one kind lacks.

    Exact: twice the Mann–Whitney count is an integer.

    >>> float(auc(np.array([0.9, 0.5, 0.5, 0.1]), np.array([1.0, 1.0, 0.0, 0.0])))
    0.875
    """
    score, grade = np.broadcast_arrays(floats(score, "score"), floats(grade, "grade"))
    there = ~(np.isnan(score) | np.isnan(grade))
    outside = grade[there & (grade != 0) & (grade != 1)]
    require(outside.size == 0, "grade", outside[:1].tolist(), "use 0 and 1: an AUC compares two kinds")
    right, wrong = there & (grade == 1), there & (grade == 0)
    order = np.lexsort((score, ~there), axis=-1)
    sort = [np.take_along_axis(each, order, axis=-1) for each in (score, right, wrong)]
    below = np.cumsum(sort[2], axis=-1) - sort[2]  # incorrect candidates before this one
    # Within a run of equal scores every member sees the incorrect below the run, and half of those inside it.
    first = np.ones(score.shape, dtype=bool)
    first[..., 1:] = sort[0][..., 1:] != sort[0][..., :-1]
    place = np.maximum.accumulate(np.where(first, np.arange(score.shape[-1]), 0), axis=-1)
    under = np.take_along_axis(below, place, axis=-1)
    last = np.roll(first, -1, axis=-1)
    last[..., -1:] = True
    ends = np.where(last, np.arange(score.shape[-1]), score.shape[-1])
    ends = np.flip(np.minimum.accumulate(np.flip(ends, axis=-1), axis=-1), axis=-1)
    upto = np.take_along_axis(below + sort[2], ends, axis=-1)
    twice = np.where(sort[1], under + upto, 0).sum(axis=-1)
    pairs = right.sum(axis=-1) * wrong.sum(axis=-1)
    return np.divide(twice, 2 * pairs, out=np.full(np.shape(pairs), np.nan), where=pairs > 0)


def roc_auc(score: Array, grade: Array, groups: Array | None = None) -> Auc:
    """AUC of scores ``[Q, N]``: pooled, by generator (``groups [Q, N]`` or ``[Q, 1]`` of names), within question."""
    score, grade = floats(score, "score"), floats(grade, "grade")
    rows = auc(score, grade)
    names = np.broadcast_to("" if groups is None else np.asarray(groups), score.shape)
    split = {str(name): float(auc(score[names == name], grade[names == name])) for name in np.unique(names)}
    return Auc(
        float(auc(score.ravel(), grade.ravel())),
        {} if groups is None else split,
        float(mean_in(rows)),
        int((~np.isnan(rows)).sum()),
        int((np.isnan(score) | np.isnan(grade)).sum()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PrecisionRecall:
    """Precision and recall of "accept everything that scores at least ``threshold``", from the strictest on."""

    threshold: Array  # [T] descending, one for each distinct score
    precision: Array  # [T]
    recall: Array  # [T]
    average: float  # Σ (R_t - R_{t-1}) P_t: average precision, without interpolation
    left_out: int


def precision_recall(score: Array, grade: Array) -> PrecisionRecall:
    """The curve over all distinct thresholds; tied scores are accepted together.

    >>> found = precision_recall(np.array([0.9, 0.5, 0.5]), np.array([1.0, 1.0, 0.0]))
    >>> found.precision.round(4).tolist(), found.recall.tolist(), round(found.average, 4)
    ([1.0, 0.6667], [0.5, 1.0], 0.8333)
    """
    s, g, left_out = _flat(score, grade)
    require((g == 1).any(), "grade", "no 1", "recall is of correct candidates, and there is none")
    order = np.argsort(-s, kind="stable")
    s, hits = s[order], np.cumsum(g[order])
    last = np.append(s[1:] != s[:-1], True)
    precision, recall = hits[last] / (np.flatnonzero(last) + 1), hits[last] / hits[-1]
    average = float((np.diff(recall, prepend=0.0) * precision).sum())
    return PrecisionRecall(s[last], precision, recall, average, left_out)


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Equal-count bins of a score: the mean score and the share of correct candidates in each."""

    score: Array  # [bins] mean score
    share: Array  # [bins] mean grade
    count: Array  # [bins]
    low: Array  # [bins] the smallest score
    high: Array  # [bins] the largest
    left_out: int


def reliability(score: Array, grade: Array, bins: int = 10) -> Reliability:
    """As many candidates in each bin as equal scores permit: those of one score are never split.

    Any score may be binned; only a probability may be compared with the share itself.
    """
    require(bins >= 1, "bins", bins, "use a number of bins >= 1")
    s, g, left_out = _flat(score, grade)
    order = np.argsort(s, kind="stable")
    s, g = s[order], g[order]
    require(s.size, "score", "nothing", "there is no candidate with a score and a grade")
    wanted = np.arange(1, bins) * s.size / bins
    sides = [np.searchsorted(s, s[wanted.astype(int)], side) for side in ("left", "right")]
    cut = np.where(wanted - sides[0] <= sides[1] - wanted, *sides)  # the nearer end of the run of equal scores
    edges = np.unique(np.concatenate([[0], cut, [s.size]]))
    start, count = edges[:-1], np.diff(edges)
    means = [np.add.reduceat(each, start) / count for each in (s, g)]
    return Reliability(means[0], means[1], count, s[start], s[edges[1:] - 1], left_out)


def brier(score: Array, grade: Array, *, probability: bool = False) -> float:
    """The mean of (score - grade)². Only for a score that is declared, and looks like, a probability.

    >>> brier(np.array([0.8, 0.3]), np.array([1.0, 0.0]), probability=True).__round__(4)
    0.065
    """
    s, g = _probabilities(score, grade, probability)
    return float(np.mean((s - g) ** 2))


def calibration_error(score: Array, grade: Array, bins: int = 10, *, probability: bool = False) -> float:
    """Expected calibration error over equal-count bins: Σ (n_b / n) |mean score - share correct|."""
    _probabilities(score, grade, probability)
    found = reliability(score, grade, bins)
    return float((found.count * np.abs(found.score - found.share)).sum() / found.count.sum())


def _probabilities(score: Array, grade: Array, declared: bool) -> tuple[Array, Array]:
    remedy = "say probability=True only of a calibrated probability of being correct; a bare score has no such error"
    require(declared is True, "probability", declared, remedy)
    s, g, _ = _flat(score, grade)
    require(s.size, "score", "nothing", "there is no candidate with a score and a grade")
    outside = s[(s < 0) | (s > 1)]
    require(outside.size == 0, "score", outside[:1].tolist(), "it is outside [0, 1], so it is no probability")
    return s, g


def _flat(score: Array, grade: Array) -> tuple[Array, Array, int]:
    """(scores, grades, how many lack either) as flat arrays."""
    s, g = np.broadcast_arrays(floats(score, "score"), floats(grade, "grade"))
    there = ~(np.isnan(s) | np.isnan(g))
    kept = g[there]
    outside = kept[(kept < 0) | (kept > 1)]
    require(outside.size == 0, "grade", outside[:1].tolist(), "grade within [0, 1]")
    return s[there], kept, int((~there).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Best-of-N against k, exactly: what the score says of the selected candidate, and what it is.

    Over-optimisation is ``score`` rising while ``grade`` falls. The questions are those of ``best_of_n`` and so are the
    grades: where no candidate of a subset has a score nothing is selected, which is worth 0 and no false positive.
    """

    budgets: Array  # [K]
    score: Array  # [K] the expected score of the selected, if there is one
    grade: Array  # [K] its expected grade
    false_positive: Array  # [K] P(it scores at least ``threshold`` and is wrong)
    exposed: Array  # [K] P(some wrong candidate among the k scores at least ``threshold``)
    kl: Array  # [K] log k - (k - 1) / k nats: at most how far the selection moves the proposal
    threshold: float
    left_out: Array  # [K] questions that are not in
    tables: Mapping[str, Array]  # [Q, K] what ``score``, ``grade``, ``false_positive`` and ``exposed`` are means of


def over_optimisation(
    candidates: Candidates,
    evidence: str,
    grades: Array,
    threshold: float | None = None,
    budgets: Iterable[int] | None = None,
) -> Selection:
    """Over-optimisation and false positives of a verifier against k, in closed form.

    ``threshold`` is where the verifier counts as having accepted; by default the median of its scores.

    >>> bank = Candidates(np.array([[0, 1, 2]]), evidence={"v": np.array([[0.9, 0.6, 0.1]])})
    >>> found = over_optimisation(bank, "v", np.array([[0.0, 1.0, 1.0]]), threshold=0.5)
    >>> found.score.round(3).tolist(), found.grade.round(3).tolist(), found.false_positive.round(3).tolist()
    ([0.533, 0.8, 0.9], [0.667, 0.333, 0.0], [0.333, 0.667, 1.0])
    """
    score, ks = candidates.score(evidence), whole_budgets(budgets, candidates.answers.shape[-1])
    grades, able = floats(grades, "grades"), candidates.eligible & ~np.isnan(score)
    require(able.any(), f"evidence {evidence!r}", "nothing", "no candidate has a score")
    infinite = score[able & ~np.isfinite(score)]
    require(infinite.size == 0, f"evidence {evidence!r}", infinite[:1].tolist(), "an expected score needs finite ones")
    cut = float(np.median(score[able])) if threshold is None else threshold
    false = np.where(np.isnan(grades), np.nan, (score >= cut) & (grades < 1)).astype(float)
    grade = selected(candidates, score, grades, ks)
    kept, some = ~np.isnan(grade), selected(candidates, score, np.ones(score.shape), ks)
    scored = selected(candidates, score, np.where(able, score, 0.0), ks)  # 0 where nothing is selected
    tables = {
        "score": np.divide(scored, some, out=np.full(grade.shape, np.nan), where=kept & (some > 0)),
        "grade": grade,
        "false_positive": np.where(kept, selected(candidates, score, false, ks), np.nan),
        "exposed": np.where(kept, _any(candidates.drawn, able & (np.nan_to_num(false) > 0), ks), np.nan),
    }
    means = {name: mean_in(table) for name, table in tables.items()}
    moved, left = np.log(ks) - (ks - 1) / ks, (~kept).sum(axis=0)
    return Selection(ks, **means, kl=moved, threshold=cut, left_out=left, tables=tables)


def _any(drawn: Array, marked: Array, budgets: Array) -> Array:
    """[Q, K] P(a uniform k-subset of the drawn holds a marked one): the first m ranks are the marked."""
    counts, many = drawn.sum(axis=-1), marked.sum(axis=-1)
    found = np.full((len(counts), budgets.size), np.nan)
    for n in np.unique(counts[counts > 0]):
        rows = np.flatnonzero(counts == n)
        reach = np.cumsum(first_rank(n, budgets), axis=1)  # [K, n] P(the best of the subset is among the first m)
        padded = np.concatenate([np.zeros((budgets.size, 1)), np.minimum(reach, 1.0)], axis=1)
        found[rows] = np.where(budgets <= n, padded[:, many[rows]].T, np.nan)
    return found

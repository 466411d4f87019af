"""Distributional reproducibility: two runs of one protocol on the same questions, and whether they are compatible.

Exact replay asks for the same bits. This asks for the same distribution of answers, which another seed, machine or
precision should leave alone. A difference test can only refuse; that runs agree is claimed by an equivalence test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ramify.arrays import Array
from ramify.bank import Bank, Outcomes
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import generator
from ramify.types import Key

__all__ = ["Reproducible", "Rerun", "adjusted", "compare_runs", "false_alarms"]

EXACT = 20_000  # tables enumerated rather than drawn


@method
class Reproducible:
    """A declared criterion for two runs: what counts as different, and what as the same.

    *Different*, at error rate ``alpha`` for the whole verdict, half each for two tests: the sum over questions of χ²
    between the two runs' answer counts, and the largest single question after Holm's correction. Both condition on the
    pooled answers, so that under one protocol every relabelling of the runs is equally likely: p-values are exact where
    the tables of a question can be listed, and Monte Carlo p-values (valid at any ``replicates``) elsewhere.

    *Equivalent*: the ``1 - 2 alpha`` interval of the difference lies within ``margin``, for the mean over questions;
    and within ``question_margin`` question by question: of the grade if there is one, else of the share of the pooled
    leading answer.
    """

    alpha: float = 0.05
    margin: float = 0.05
    question_margin: float = 0.25
    replicates: int = 2000

    def __post_init__(self) -> None:
        require(0 < self.alpha < 0.5, "Reproducible.alpha", self.alpha, "use an error rate in (0, 0.5)")
        for name in ("margin", "question_margin"):
            require(0 < getattr(self, name) < 1, f"Reproducible.{name}", getattr(self, name), "use a margin in (0, 1)")
        enough = is_whole(self.replicates, 1) and 1 / (self.replicates + 1) <= self.alpha / 2
        require(enough, "Reproducible.replicates", self.replicates, f"use at least {2 / self.alpha:.0f}")


@dataclass(frozen=True, slots=True, eq=False)
class Rerun:
    """The verdict on a second run, question by question and overall."""

    criterion: Reproducible
    questions: tuple[str, ...]
    p_question: Array  # [Q] of the difference test, 1 where there is nothing to tell
    p_adjusted: Array  # [Q] after Holm
    p_overall: float  # of the summed statistic
    different: bool
    difference: float  # of the means: second minus first
    low: float  # its 1 - 2 alpha interval, over draws of both runs
    high: float
    equivalent: bool
    equivalent_question: Array  # [Q]
    left_out: tuple[str, ...]  # questions that one run lacks

    @property
    def compatible(self) -> bool:
        """No difference was found. With few candidates that says little: look at ``equivalent`` too."""
        return not self.different

    @property
    def changed(self) -> tuple[str, ...]:
        """The questions that changed, at alpha for all of them together, the clearest first."""
        order = np.argsort(self.p_question, kind="stable")
        return tuple(self.questions[q] for q in order if self.p_adjusted[q] <= self.criterion.alpha)


def compare_runs(
    first: Bank,
    second: Bank,
    criterion: Reproducible,
    *,
    outcomes: tuple[Outcomes, Outcomes] | None = None,
    run: str = "reproduce",
) -> Rerun:
    """Hold a second run against the first. Answers are compared by their text; ⊥ is an answer like any other here."""
    for bank in (first, second):
        bank.need_independence("a comparison of answer distributions")
    here = {question.id: q for q, question in enumerate(second.questions)}
    pairs = [(q, here[question.id]) for q, question in enumerate(first.questions) if question.id in here]
    pairs = [(q, r) for q, r in pairs if first.drawn[q].any() and second.drawn[r].any()]
    require(pairs, "second", "no question in common", "compare runs on the same questions")
    names = tuple(first.questions[q].id for q, _ in pairs)
    counts = [_counts(first, q, second, r) for q, r in pairs]
    p, overall = difference_test(counts, criterion.replicates, run)
    holm = adjusted(p)
    values = [_values(first, q, second, r, outcomes) for q, r in pairs]
    moments = np.array([[_moments(one), _moments(two)] for one, two in values])  # [Q, 2 runs, (mean, variance of it)]
    d, v = moments[:, 1, 0] - moments[:, 0, 0], moments[:, :, 1].sum(axis=1)
    z = float(ndtri(1 - criterion.alpha))
    mean, error = float(d.mean()), float(np.sqrt(v.sum()) / len(d))
    every = {question.id for bank in (first, second) for question in bank.questions}
    return Rerun(
        criterion=criterion,
        questions=names,
        p_question=p,
        p_adjusted=holm,
        p_overall=overall,
        different=bool(min(2 * overall, 2 * holm.min()) <= criterion.alpha),
        difference=mean,
        low=mean - z * error,
        high=mean + z * error,
        equivalent=abs(mean) + z * error <= criterion.margin,
        equivalent_question=np.abs(d) + z * np.sqrt(v) <= criterion.question_margin,
        left_out=tuple(sorted(every - set(names))),
    )


def _counts(first: Bank, q: int, second: Bank, r: int) -> Array:
    """[2, G] how often each run gave each answer of a question."""
    given = [
        [bank.answer(row, int(n)) for n in np.flatnonzero(bank.drawn[row])] for bank, row in ((first, q), (second, r))
    ]
    code: dict[Any, int] = {}
    for answer in given[0] + given[1]:
        code.setdefault(answer, len(code))
    return np.stack([np.bincount([code[a] for a in answers], minlength=len(code)) for answers in given])


def _values(first: Bank, q: int, second: Bank, r: int, outcomes: tuple[Outcomes, Outcomes] | None) -> list[Array]:
    """Each run's values in [0, 1]: the grades, or whether the answer is the pooled leading one."""
    if outcomes is not None:
        tables = [each.on(bank)[row] for each, bank, row in zip(outcomes, (first, second), (q, r), strict=True)]
        graded = [table[~np.isnan(table)] for table in tables]
        require(
            all(each.size for each in graded), "outcomes", first.questions[q].id, "grade both runs of it, or neither"
        )
        return graded
    counts = _counts(first, q, second, r)
    lead = int(counts.sum(axis=0).argmax())
    return [np.repeat([1.0, 0.0], [row[lead], row.sum() - row[lead]]) for row in counts]


def _moments(values: Array) -> tuple[float, float]:
    """The mean, and its variance with one success and one failure added: never zero at the ends (Agresti and Caffo)."""
    n = values.size + 2
    mean = (values.sum() + 1) / n
    square = ((values**2).sum() + 1) / n
    return float(values.mean()), float((square - mean**2) / n)


def adjusted(p: Array) -> Array:
    """[Q] Holm's (1979) p-values: at most alpha for any of the questions that did not change.

    >>> adjusted(np.array([0.01, 0.04, 0.03])).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    scaled = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    found = np.empty(len(p))
    found[order] = np.minimum(scaled, 1.0)
    return found


# ------------------------------------------------------------------------------------------------- the difference test


def difference_test(counts: list[Array], replicates: int, run: str) -> tuple[Array, float]:
    """(p-value of each question [Q], p-value of the sum) for tables ``[2, G]`` of the answers of two runs.

    Under one distribution the first row is multivariate hypergeometric given the pooled answers.
    """
    seen = np.array([statistic(table[0], table.sum(axis=0)) for table in counts])
    total, p = np.zeros(replicates), np.ones(len(counts))
    for q, table in enumerate(counts):
        pooled, size = table.sum(axis=0), int(table[0].sum())
        if pooled.size == 1:
            continue
        rng = generator(Key(run, str(q), 0, "rerun"))
        drawn = rng.multivariate_hypergeometric(pooled, size, size=replicates, method="marginals")
        again = statistic(drawn, pooled)
        total += again
        listed = _every(pooled, size)
        if listed is None:
            p[q] = (1 + (again >= seen[q] - 1e-9).sum()) / (1 + replicates)
        else:
            rows, weight = listed
            p[q] = min(1.0, float(weight[statistic(rows, pooled) >= seen[q] - 1e-9].sum()))
    return p, float((1 + (total >= seen.sum() - 1e-9).sum()) / (1 + replicates))


def statistic(first: Array, pooled: Array) -> Array:
    """[...] χ² of the 2 x G table whose first row is ``first [..., G]``, less its expectation under relabelling.

    Centred, so that questions with many answers do not drown the others in the sum.
    """
    size, total = first.sum(axis=-1, keepdims=True), pooled.sum()
    share = size / total
    with np.errstate(divide="ignore", invalid="ignore"):
        cells = (first - pooled * share) ** 2 / (pooled * share * (1 - share))
    expected = (pooled.size - 1) * total / max(total - 1, 1)
    return np.where(np.isfinite(cells), cells, 0.0).sum(axis=-1) - expected


def _every(pooled: Array, size: int) -> tuple[Array, Array] | None:
    """Every first row with its probability, or None where there are more than ``EXACT``."""
    if np.prod(pooled.astype(float) + 1) > 50 * EXACT:
        return None
    rows, log = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    left = pooled.sum() - np.cumsum(pooled)
    for count, after in zip(pooled, left, strict=True):
        take = np.arange(count + 1)
        grown = np.concatenate([np.repeat(rows, take.size, axis=0), np.tile(take, len(rows))[:, None]], axis=1)
        grown_log = np.repeat(log, take.size) + np.tile(_log_choose(int(count)), len(rows))
        used = grown.sum(axis=1)
        kept = (used <= size) & (used + after >= size)
        rows, log = grown[kept], grown_log[kept]
        if len(rows) > EXACT:
            return None
    weight = np.exp(log - log.max())
    return rows, weight / weight.sum()


def _log_choose(n: int) -> Array:
    """[n + 1] log C(n, k)."""
    steps = np.log(np.arange(n, 0, -1) / np.arange(1, n + 1)) if n else np.zeros(0)
    return np.concatenate([[0.0], np.cumsum(steps)])


def false_alarms(criterion: Reproducible, probabilities: Array, n: int, campaigns: int, run: str) -> float:
    """How often the criterion calls two runs of one protocol different: answers ``[Q, G]`` drawn n times, twice."""
    p = np.asarray(probabilities, dtype=float)
    rng, alarms = generator(Key(run, "", 0, "simulate")), 0
    for campaign in range(campaigns):
        one, two = (rng.multinomial(n, p) for _ in range(2))
        tables = [np.stack([a, b])[:, a + b > 0] for a, b in zip(one, two, strict=True)]
        p_question, overall = difference_test(tables, criterion.replicates, f"{run} {campaign}")
        alarms += min(2 * overall, 2 * adjusted(p_question).min()) <= criterion.alpha
    return float(alarms) / campaigns

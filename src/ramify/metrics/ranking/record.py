"""What a ranking is: scores, ranks and how sure they are, in one record, from any scorer of a table ``[M, Q(, N)]``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require
from ramify.keys import generator, streams, uniform
from ramify.metrics.bankcurve import floats
from ramify.types import Key

__all__ = ["MeanScore", "Ranking", "Scorer", "by_question", "places", "posterior_ranking", "rank", "resampled"]

Scorer: TypeAlias = Callable[[Array], Array]
"""A table ``[M, Q]`` or ``[M, Q, N]`` of models, NaN for missing, to scores ``[M]``, higher is better."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Models by score. Rank 1 is best, ties share the better rank; intervals and chances say what ``covers`` names."""

    models: tuple[str, ...]
    scores: Array  # [M]
    ranks: Array  # [M]
    low: Array  # [M] of the score, at ``level``
    high: Array  # [M]
    rank_low: Array  # [M] of the rank: the better end
    rank_high: Array  # [M]
    chances: Array  # [M, M] P(model m has rank r + 1)
    level: float
    covers: tuple[str, ...]
    method: str
    failed: int = 0  # replicates for which the method has no answer, left out of the intervals

    @property
    def order(self) -> tuple[str, ...]:
        """The names, the best first; ties in the order given."""
        return tuple(self.models[m] for m in np.argsort(self.ranks, kind="stable"))

    @classmethod
    def of_draws(
        cls,
        models: Sequence[str],
        scores: Array,
        draws: Array,
        level: float,
        covers: tuple[str, ...],
        method: str,
        failed: int = 0,
    ) -> Ranking:
        """The ranking by ``scores [M]``, with intervals and chances from ``draws [D, M]`` of them."""
        require(0 < level < 1, "level", level, "use a coverage in (0, 1)")
        require(len(draws), "draws", 0, "no replicate gave scores: look at what the method says of the data itself")
        ends = [(1 - level) / 2, (1 + level) / 2]
        ranks, many = places(draws), len(models)
        low, high = np.quantile(draws, ends, axis=0)
        best, worst = np.quantile(ranks, ends, axis=0, method="nearest")
        chances = (ranks[:, :, None] == np.arange(1, many + 1)).mean(axis=0)
        return cls(
            tuple(models), scores, places(scores), low, high, best, worst, chances, level, covers, method, failed
        )


def places(scores: Array) -> Array:
    """[..., M] the rank of each score: one more than how many are better.

    >>> places(np.array([0.2, 0.9, 0.9])).tolist()
    [3, 1, 1]
    """
    scores = np.asarray(scores, dtype=float)
    return 1 + (scores[..., None, :] > scores[..., :, None]).sum(axis=-1)


def by_question(table: Array) -> Array:
    """[M, Q] the mean of each model on each question; NaN where nothing was graded."""
    table = floats(table, "table")
    require(table.ndim in (2, 3), "table", table.shape, "use [M, Q] or [M, Q, N]")
    if table.ndim == 2:
        return table
    there = ~np.isnan(table)
    count = there.sum(axis=-1)
    total = np.where(there, table, 0.0).sum(axis=-1)
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)


@method
class MeanScore:
    """The mean over questions of the mean over candidates: what any table of a metric is ranked by.

    >>> MeanScore()(np.array([[[1, 0], [1, 1]], [[0, 0], [1, 0]]])).tolist()
    [0.75, 0.25]
    """

    def __call__(self, table: Array) -> Array:
        values = by_question(table)
        there = ~np.isnan(values)
        require(there.any(axis=-1).all(), "table", "a model without grades", "leave it out")
        return np.where(there, values, 0.0).sum(axis=-1) / there.sum(axis=-1)


MEAN = MeanScore()


def rank(
    table: Array,
    scorer: Scorer = MEAN,
    *,
    models: Sequence[str] | None = None,
    replicates: int = 200,
    level: float = 0.95,
    run: str = "rank",
) -> Ranking:
    """Rank models by any scorer, which is applied anew to every resample of the questions.

    >>> table = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [0, 1, 1, 0]])
    >>> found = rank(table, models=["a", "b", "c"])
    >>> found.order, found.ranks.tolist(), found.chances[0].round(2).tolist()
    (('a', 'c', 'b'), [1, 3, 2], [1.0, 0.0, 0.0])
    """
    table = floats(table, "table")
    names = tuple(models or (f"model {m}" for m in range(len(table))))
    require(len(names) == len(table), "models", len(names), f"name all {len(table)}")
    scores, draws, failed = np.asarray(scorer(table)), [], 0
    for chosen in resampled(table.shape[1], replicates, run):
        try:
            draws.append(scorer(table[:, chosen]))
        except InvalidValue:  # this resample has no answer under the method, such as a model that always wins
            failed += 1
    title = getattr(scorer, "__name__", None) or repr(scorer)
    return Ranking.of_draws(names, scores, np.array(draws), level, ("questions",), title, failed)


def resampled(questions: int, replicates: int, run: str) -> Array:
    """[R, Q] questions drawn with replacement, from the keyed stream of ``run``."""
    require(is_whole(replicates, 1), "replicates", replicates, "use a number of resamples >= 1")
    stream = streams([Key(run, "", 0, "questions")])
    noise = uniform(stream, np.arange(replicates)[:, None], np.arange(questions))
    return (noise * questions).astype(np.int64)


def posterior_ranking(
    right: Array,
    trials: Array,
    *,
    models: Sequence[str] | None = None,
    prior: tuple[float, float] = (1.0, 1.0),
    draws: int = 4000,
    level: float = 0.95,
    run: str = "rank",
) -> Ranking:
    """Rank probabilities under p_mq ~ Beta(prior) and ``right [M, Q]`` of ``trials``: what other draws would say.

    The questions are the same in every draw, so the intervals cover draws of candidates and nothing else.
    """
    right, trials = np.asarray(right, dtype=float), np.broadcast_to(np.asarray(trials, dtype=float), np.shape(right))
    require(bool(((right >= 0) & (right <= trials)).all()), "right", "a count", "use 0 <= right <= trials")
    a, b = prior[0] + right, prior[1] + trials - right
    rng = generator(Key(run, "", 0, "posterior"))
    found = np.stack([rng.beta(a, b).mean(axis=-1) for _ in range(draws)])
    names = tuple(models or (f"model {m}" for m in range(len(right))))
    title = f"posterior mean accuracy, Beta{tuple(map(float, prior))}"
    return Ranking.of_draws(names, (a / (a + b)).mean(axis=-1), found, level, ("draws",), title)

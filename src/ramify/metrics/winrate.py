"""Pairwise win rate: an estimand of its own, which is only as meaningful as the judging that is on record with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import require
from ramify.keys import streams, uniform
from ramify.metrics.bankcurve import floats, over_questions
from ramify.metrics.estimate import Estimate
from ramify.types import Key

__all__ = ["Judging", "WinRate", "sides", "win_rate"]


@method
class Judging:
    """Everything that makes a win rate what it is.

    ``order`` says which response the judge sees first: "both" (every pair twice, once each way), "random" (a keyed side
    for each judgement) or "fixed" (always the first system; then position bias cannot be told from merit). ``ties``:
    "half", "drop" or "loss". ``aggregation``: "mean" of a question's judgements, or "majority" of them.
    """

    judge: str
    prompt: str
    order: str = "both"
    ties: str = "half"
    aggregation: str = "mean"
    reference: str = "none"  # the reference material that the judge saw

    def __post_init__(self) -> None:
        require(self.judge, "Judging.judge", self.judge, "name the judge: a model and its decoding")
        require(self.prompt, "Judging.prompt", self.prompt, "give the judge's prompt, or its digest")
        for name, known in (("order", ("both", "random", "fixed")), ("ties", ("half", "drop", "loss"))):
            require(getattr(self, name) in known, f"Judging.{name}", getattr(self, name), f"use one of {known}")
        ok = self.aggregation in ("mean", "majority")
        require(ok, "Judging.aggregation", self.aggregation, "use 'mean' or 'majority'")


@dataclass(frozen=True, slots=True, eq=False)
class WinRate:
    """How often the first system is preferred, by question, and the judging that says so."""

    judging: Judging
    values: Array  # [Q] in [0, 1], NaN without a judgement
    rate: Estimate
    first_side: float  # how often the response shown first wins, ties half: 0.5 is unbiased
    consistent: float  # of pairs judged both ways, how often both name the same system; NaN if none was
    left_out: int  # questions without a judgement that counts


def sides(questions: Sequence[str], judgements: int, run: str, order: str = "random") -> Array:
    """[Q, J] whether the first system is shown first. "both" alternates; "random" tosses the key's coin.

    >>> sides(["q1", "q2"], 4, "run", "both").astype(int).tolist()
    [[1, 0, 1, 0], [1, 0, 1, 0]]
    """
    require(order in ("both", "random", "fixed"), "order", order, "use 'both', 'random' or 'fixed'")
    shape = (len(questions), judgements)
    if order == "random":
        stream = streams(Key(run, question, 0, "side") for question in questions)
        return uniform(stream[:, None], index=np.arange(judgements)) < 0.5
    return np.broadcast_to((np.arange(judgements) % 2 == 0) | (order == "fixed"), shape).copy()


def win_rate(
    preferred: Array,
    shown_first: Array,
    judging: Judging,
    *,
    replicates: int = 2000,
    level: float = 0.95,
    run: str = "win rate",
) -> WinRate:
    """The win rate of the first system from verdicts ``preferred [Q, J]``: 1 it won, 0 it lost, 0.5 tie, NaN none.

    ``shown_first [Q, J]`` says where it stood. The interval resamples questions with all their judgements.

    >>> judging = Judging(judge="a model", prompt="Which is better?")
    >>> verdicts = np.array([[1.0, 1.0], [1.0, 0.0], [0.5, 0.0], [1.0, 1.0]])
    >>> found = win_rate(verdicts, sides(["a", "b", "c", "d"], 2, "run", "both"), judging)
    >>> found.rate.value, found.first_side, found.consistent
    (0.6875, 0.6875, 0.5)
    """
    verdict, first = floats(preferred, "preferred"), np.asarray(shown_first, dtype=bool)
    require(verdict.ndim == 2 and verdict.shape == first.shape, "shown_first", first.shape, f"use {verdict.shape}")
    odd = verdict[~np.isnan(verdict) & ~np.isin(verdict, (0.0, 0.5, 1.0))]
    require(odd.size == 0, "preferred", odd[:1].tolist(), "use 1, 0.5 and 0")
    _as_declared(verdict, first, judging)
    counted = _with_ties(verdict, judging.ties)
    values = _by_question(counted, judging.aggregation)
    there = ~np.isnan(values)
    require(there.any(), "preferred", "no verdict", "nothing was judged, or every verdict was a tie and dropped")
    (rate,) = over_questions(values[there, None], replicates, level, run, (0.0, 1.0))
    shown = np.where(first, verdict, 1 - verdict)
    known = ~np.isnan(shown)
    return WinRate(judging, values, rate, float(shown[known].mean()), _consistency(verdict, first), int((~there).sum()))


def _as_declared(verdict: Array, first: Array, judging: Judging) -> None:
    there = ~np.isnan(verdict)
    if judging.order == "both":
        balanced = ((first & there).sum(axis=1) == (~first & there).sum(axis=1)).all()
        require(balanced, "shown_first", "unequal", "order='both' judges every pair as often each way")
    if judging.order == "fixed":
        require(first[there].all(), "shown_first", "both sides", "order='fixed' shows the first system first")


def _with_ties(verdict: Array, ties: str) -> Array:
    if ties == "half":
        return verdict
    return np.where(verdict == 0.5, np.nan if ties == "drop" else 0.0, verdict)


def _by_question(verdict: Array, aggregation: str) -> Array:
    """[Q] the mean verdict, or which side of one half it falls; NaN without one."""
    there = ~np.isnan(verdict)
    count = there.sum(axis=1)
    total = np.where(there, verdict, 0.0).sum(axis=1)
    mean = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
    return np.where(np.isnan(mean), np.nan, (np.sign(mean - 0.5) + 1) / 2) if aggregation == "majority" else mean


def _consistency(verdict: Array, first: Array) -> float:
    """Of a question's judgements the i-th with the system first is paired with the i-th with it second."""
    same = total = 0
    for row, side in zip(verdict, first, strict=True):
        pairs = list(zip(row[side], row[~side], strict=False))
        judged = [(a, b) for a, b in pairs if not (np.isnan(a) or np.isnan(b))]
        same, total = same + sum(a == b for a, b in judged), total + len(judged)
    return float(same / total) if total else float("nan")

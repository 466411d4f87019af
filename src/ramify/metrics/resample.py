"""Resampling: the statistic recomputed on questions, clusters of them, and candidates drawn again.

A *unit* is what is drawn with replacement: a question, a cluster of questions, or a cell of questions that look the
same to the statistic (they need not be told apart). Statistics that depend on a table only through sums over questions
(means, and every functional of the profile) run for all replicates at once, as counts × table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import block_diag

from ramify.arrays import Array
from ramify.errors import require
from ramify.keys import generator
from ramify.metrics.functionals import Functional
from ramify.metrics.profile import Profile
from ramify.metrics.tally import Tally
from ramify.metrics.units import Found, Layout, alike, check, counts_of, members_of, redraw, replicate, units_of
from ramify.types import Key

__all__ = ["Resample", "Statistic", "bootstrap", "bootstrap_difference", "bootstrap_means", "bootstrap_profile"]

Statistic: TypeAlias = Callable[[Array], float]
"""A per-question table ``[Q, ...]`` -> a number. Resampling is not its job."""


@dataclass(frozen=True, slots=True, eq=False)
class Resample:
    """A statistic on the data, on replicates, and without each unit: what every bootstrap interval is made of."""

    value: float
    replicates: Array  # [R]
    left: Array  # [U] without one such unit
    times: Array  # [U] how many such units there are
    covers: tuple[str, ...]
    bounds: tuple[float, float] = (-np.inf, np.inf)
    error: float = np.nan  # the standard error of the value
    errors: Array | None = None  # [R] the standard error within each replicate
    note: str = ""

    @property
    def spread(self) -> float:
        """The bootstrap standard error."""
        return float(self.replicates.std(ddof=1))


def bootstrap(
    table: Any,
    statistic: Statistic,
    key: Key,
    replicates: int = 10_000,
    *,
    clusters: Any = None,
    error: Statistic | None = None,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Resample:
    """The prompt bootstrap of any statistic: it is called again on every resampled table.

    ``table [Q, ...]`` is whatever the statistic reads, grades or chosen answers; ``clusters [Q]`` names groups that are
    drawn whole. ``error`` gives the standard error of the statistic on a table, for studentised intervals.

    >>> sample = bootstrap(np.array([[0.0], [1.0], [1.0], [1.0]]), lambda t: t.mean(), Key("doc", "", 0), 200)
    >>> sample.value, sample.left.round(3).tolist()
    (0.75, [1.0, 0.667, 0.667, 0.667])
    """
    table = np.asarray(table)
    members = members_of(clusters, len(table))
    check(replicates, len(members))
    rng, many = generator(key), len(members)
    values, errors = np.empty(replicates), None if error is None else np.empty(replicates)
    for r in range(replicates):
        units = rng.integers(0, many, many)
        drawn = table[units if clusters is None else np.concatenate([members[unit] for unit in units])]
        values[r] = statistic(drawn)
        if errors is not None and error is not None:
            errors[r] = error(drawn)
    left = np.array([statistic(np.delete(table, unit, axis=0)) for unit in members])
    own = np.nan if error is None else float(error(table))
    value = float(statistic(table))
    return Resample(value, values, left, np.ones(many), ("questions",), bounds, own, errors, _drawn(clusters))


def bootstrap_means(
    table: Any,
    key: Key,
    replicates: int = 10_000,
    *,
    then: Callable[[Array], Array] | None = None,
    clusters: Any = None,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    errors: bool = False,
) -> Resample:
    """The prompt bootstrap of a function of column means of a per-question table ``[Q]`` or ``[Q, C]``.

    ``then`` maps means ``[..., C]`` to ``[...]`` and may be left out for a single column. NaN is missing: a column's
    mean is over the questions that have it.
    """
    table = np.asarray(table, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    require(table.ndim == 2 and len(table), "table", table.shape, "use [Q] or [Q, C] with at least one question")
    require(then is not None or table.shape[1] == 1, "then", None, "say which number to make of the column means")
    present = ~np.isnan(table)
    require((present.sum(axis=0) >= 2).all(), "table", "a column", "each column needs values in at least two questions")
    sizes = np.ones((len(table), 1)) if present.all() else present  # what each question adds to a column's size
    sums, columns = np.concatenate([np.where(present, table, 0.0), sizes], axis=1), table.shape[1]

    def statistic(flat: Array) -> Array:
        with np.errstate(invalid="ignore"):  # a replicate may have drawn no question that has a value
            means = flat[..., :columns] / flat[..., columns:]
        return means[..., 0] if then is None else then(means)

    if clusters is not None:
        sums = np.stack([sums[unit].sum(axis=0) for unit in members_of(clusters, len(table))])
    units, times = alike(sums)
    found = replicate(units, times, statistic, generator(key), replicates, errors)
    value, values, left, times, error, within = found
    usable = ~np.isnan(values)
    lost = f"{int((~usable).sum())} replicates without a value left out" if not usable.all() else ""
    within = None if within is None else within[usable]
    note = "; ".join(part for part in (_drawn(clusters), lost) if part)
    return Resample(value, values[usable], left, times, ("questions",), bounds, error, within, note)


def bootstrap_profile(
    tally: Tally,
    functional: Functional,
    key: Key,
    replicates: int = 10_000,
    *,
    over: tuple[str, ...] = ("questions",),
    clusters: Any = None,
    errors: bool = False,
) -> Resample:
    """The bootstrap of a functional of the finite-bank profile, which is recomputed in every replicate.

    ``over=("questions",)`` draws questions, each with its whole bank; ``("questions", "draws")`` also draws each
    bank's candidates again; ``("draws",)`` keeps the questions and draws candidates alone.

    >>> from ramify.metrics import PassAt
    >>> sample = bootstrap_profile(Tally.of([[1, 0], [0, 0], [1, 1]]), PassAt(2), Key("doc", "", 0), 1000)
    >>> round(sample.value, 4), len(sample.replicates), sample.covers
    (0.6667, 1000, ('questions',))
    """
    return _profiles([tally], lambda one: functional(one[0]), functional, key, replicates, over, clusters, errors, 0.0)


def bootstrap_difference(
    first: Tally,
    second: Tally,
    functional: Functional,
    key: Key,
    replicates: int = 10_000,
    *,
    over: tuple[str, ...] = ("questions",),
    clusters: Any = None,
    errors: bool = False,
) -> Resample:
    """The bootstrap of f(first) - f(second) for two systems on the same questions, each drawn with both banks."""
    same = first.questions == second.questions
    require(same, "second", second.questions, f"hand in a tally of the same {first.questions} questions, in one order")

    def difference(pair: Sequence[Profile]) -> Array:
        return functional(pair[0]) - functional(pair[1])

    return _profiles([first, second], difference, functional, key, replicates, over, clusters, errors, -1.0)


def _drawn(clusters: Any) -> str:
    return "" if clusters is None else f"{len(np.unique(np.asarray(clusters)))} clusters drawn whole"


def _profiles(
    tallies: list[Tally],
    combine: Callable[[Sequence[Profile]], Array],
    functional: Functional,
    key: Key,
    replicates: int,
    over: tuple[str, ...],
    clusters: Any,
    errors: bool,
    lowest: float,
) -> Resample:
    """The bootstrap of a functional of the profiles of one or more systems on the same questions."""
    for tally in tallies:
        require(isinstance(tally, Tally), "tally", type(tally).__name__, "use Tally.of(grades), grades as [Q, N]")
    remedy = 'use ("questions",), ("questions", "draws") or ("draws",)'
    require(over in (("questions",), ("questions", "draws"), ("draws",)), "over", over, remedy)
    if "draws" in over:
        for tally in tallies:
            tally.need_independence("drawing candidates again")
    require(not (errors and "draws" in over), "errors", errors, "errors within a replicate are those over questions")
    require(clusters is None or "questions" in over, "clusters", "given", "clusters are drawn over questions")
    k = int(getattr(functional, "k", 1))
    enough = np.logical_and.reduce([tally.graded >= k for tally in tallies])
    most = max(tally.widest for tally in tallies)
    require(enough.any(), "k", k, f"use k <= {most}, the most graded candidates of a question")
    layouts = [Layout.of(tally.take(enough)) for tally in tallies]
    edges = np.cumsum([layout.width for layout in layouts])[:-1]

    def statistic(flat: Array) -> Array:
        parts = np.split(flat, edges, axis=-1)
        return combine([layout.profile(part) for layout, part in zip(layouts, parts, strict=True)])

    if clusters is not None:
        members_of(clusters, len(enough))
    names = None if clusters is None else np.asarray(clusters)[enough]
    rng = generator(key)
    notes = [_drawn(names), *dict.fromkeys(tally.remark for tally in tallies)]
    if not enough.all():
        notes.append(f"{int((~enough).sum())} of {len(enough)} questions left out: fewer than {k} graded")
    units, times = units_of(layouts, names)
    if "draws" in over:
        check(replicates, 2)
        found = _redrawn(layouts, units, times, statistic, rng, replicates, over)
    else:
        found = replicate(units, times, statistic, rng, replicates, errors)
    note = "; ".join(note for note in notes if note)
    return Resample(*found[:4], over, (lowest, 1.0), *found[4:], note=note)


def _redrawn(
    layouts: Sequence[Layout],
    units: Array,
    times: Array,
    statistic: Callable[[Array], Array],
    rng: np.random.Generator,
    replicates: int,
    over: tuple[str, ...],
) -> Found:
    """Replicates in which each question's candidates are drawn again, with or without the questions.

    Candidates drawn with replacement have a truth of their own: fresh draws at the observed rates. Replicates scatter
    around that truth, not around the value, so they are moved by the difference.
    """
    whole, again = times @ units, redraw(layouts, rng)
    truth = whole @ block_diag(*(layout.redraws() for layout in layouts))
    alike = len(layouts) == 1 and times.sum() == whole.sum()  # questions of one system, none of them clustered
    if over == ("draws",):
        blocks: Iterator[Array] = iter([again(np.broadcast_to(whole, (replicates, len(whole))))])
    elif alike:  # a question and then its candidates: a draw from the mixture of all redrawn banks
        blocks = iter([rng.multinomial(int(whole.sum()), truth / truth.sum(), size=replicates)])
    else:
        blocks = (again(counts @ units) for counts in counts_of(rng, times, replicates))
    value = float(statistic(whole))
    values = np.concatenate([statistic(flat) for flat in blocks]) + (value - float(statistic(truth)))
    if over == ("draws",):  # no question is drawn, so leaving one out says nothing about skewness
        return value, values, np.array([value]), np.ones(1), np.nan, None
    return value, values, statistic(whole - units), times, np.nan, None

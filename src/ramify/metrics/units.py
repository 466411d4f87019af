"""What a bootstrap draws, and how a statistic of sums over it is computed for all replicates at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ramify.arrays import Array
from ramify.errors import is_whole, require
from ramify.metrics.laws import binomial
from ramify.metrics.profile import Profile
from ramify.metrics.tally import Tally

__all__ = [
    "Found",
    "Layout",
    "alike",
    "check",
    "counts_of",
    "errors_of",
    "members_of",
    "redraw",
    "replicate",
    "units_of",
]

BLOCK = 1 << 19  # counts held at a time, so that they stay in cache
CELLS = 1 << 15  # counters updated at a time
NUDGE = 1e-5  # the step of a numerical influence value

Found: TypeAlias = tuple[float, Array, Array, Array, float, Array | None]  # as the fields of a Resample


def check(replicates: int, units: int) -> None:
    require(is_whole(replicates, 2), "replicates", replicates, "use at least two")
    require(units >= 2, "questions", units, "resampling needs at least two questions or clusters")


def members_of(clusters: Any, questions: int) -> list[Array]:
    """The questions of each unit."""
    if clusters is None:
        return list(np.arange(questions)[:, None])
    names = np.asarray(clusters)
    require(names.shape == (questions,), "clusters", names.shape, f"name the cluster of each of {questions} questions")
    _, code, sizes = np.unique(names, return_inverse=True, return_counts=True)
    return np.split(np.argsort(code, kind="stable"), np.cumsum(sizes)[:-1])


def counts_of(rng: np.random.Generator, times: Array, replicates: int) -> Iterator[Array]:
    """How often each unit is drawn in each replicate, ``[r, U]`` at a time: Σ times draws with replacement."""
    total, many = int(times.sum()), len(times)
    step = max(1, BLOCK // many)
    for first in range(0, replicates, step):
        r = min(step, replicates - first)
        if 32 * many < total:  # few cells: a binomial for each costs less than an index for each unit
            yield rng.multinomial(total, times / total, size=r).astype(np.float64)
        else:
            yield _counted(rng, times, r)


def _counted(rng: np.random.Generator, times: Array, r: int) -> Array:
    """The counts ``[r, U]`` of Σ times indices for each of r replicates, a few rows at a time to stay in cache."""
    total, many = int(times.sum()), len(times)
    counts = np.empty((r, many))
    owner = np.repeat(np.arange(many), times)
    rows = max(1, CELLS // max(many, total))
    for first in range(0, r, rows):
        here = min(rows, r - first)
        index = rng.integers(0, total, size=(here, total), dtype=np.uint16 if total <= 1 << 16 else np.uint32)
        place = owner[index] if many < total else index.astype(np.intp)
        place += np.arange(0, here * many, many)[:, None]
        counts[first : first + here] = np.bincount(place.reshape(-1), minlength=here * many).reshape(here, many)
    return counts


def alike(rows: Array) -> tuple[Array, Array]:
    """The distinct rows ``[U, C]`` and how often each occurs ``[U]``: a table of right and wrong has few."""
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, first, times = np.unique(keys, return_index=True, return_counts=True)
    if 2 * len(first) > len(rows):
        return rows, np.ones(len(rows), dtype=np.int64)
    return rows[first], times


def replicate(
    units: Array,
    times: Array,
    statistic: Callable[[Array], Array],
    rng: np.random.Generator,
    replicates: int,
    errors: bool,
) -> Found:
    """(value, replicates, left, times, error, errors) of a statistic of Σ_u counts_u units_u, ``units [U, C]``."""
    check(replicates, int(times.sum()))
    whole = times @ units
    values, within = [], []
    for counts in counts_of(rng, times, replicates):
        values.append(statistic(counts @ units))
        if errors:
            within.append(errors_of(units, counts, statistic))
    left = statistic(whole - units)
    own = float(errors_of(units, times[None], statistic)[0]) if errors else np.nan
    value = float(statistic(whole))
    return value, np.concatenate(values), left, times, own, np.concatenate(within) if errors else None


def errors_of(units: Array, counts: Array, statistic: Callable[[Array], Array]) -> Array:
    """The standard error in each replicate ``[r]`` by the infinitesimal jackknife: √(Σ_u c_u I_u²) / Σ c.

    I_u is how the statistic moves when unit u gains weight, by a small step.
    """
    total = float(counts[0].sum())
    found = []
    step = max(1, BLOCK // (len(units) * units.shape[1]))
    for first in range(0, len(counts), step):
        c = counts[first : first + step]
        flat = c @ units
        moved = (1 - NUDGE) * flat[:, None] + (NUDGE * total) * units  # [r, U, C]
        influence = (statistic(moved) - statistic(flat)[:, None]) / NUDGE
        found.append(np.sqrt((c * influence**2).sum(axis=-1)) / total)
    return np.concatenate(found)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where each (n, correct) lies in a flat vector of cells, and the way back to a profile."""

    code: Array  # [Q] the cell of each question
    sizes: tuple[int, ...]  # the n of the blocks

    @classmethod
    def of(cls, tally: Tally) -> Layout:
        sizes = tuple(int(n) for n in np.unique(tally.graded))
        starts = np.concatenate([[0], np.cumsum([n + 1 for n in sizes])])
        return cls(starts[np.searchsorted(sizes, tally.graded)] + tally.correct, sizes)

    @property
    def width(self) -> int:
        return sum(n + 1 for n in self.sizes)

    def profile(self, flat: Array) -> Profile:
        edges = np.cumsum([n + 1 for n in self.sizes])[:-1]
        parts = np.split(flat, edges, axis=-1)
        return Profile(dict(zip(self.sizes, parts, strict=True)), "finite bank", 0)

    def redraws(self) -> Array:
        """The law of a cell's count when its n candidates are drawn again: ``[C, C]``."""
        table, first = np.zeros((self.width, self.width)), 0
        for n in self.sizes:
            table[first : first + n + 1, first : first + n + 1] = binomial(n, np.arange(n + 1) / n)
            first += n + 1
        return table


def units_of(layouts: Sequence[Layout], clusters: Array | None) -> tuple[Array, Array]:
    """What is drawn: the histogram ``[U, C]`` of each unit over the cells of all systems, and how many are alike."""
    codes = np.stack([layout.code for layout in layouts])  # [systems, Q]
    if clusters is None:  # questions with the same cells in all systems are alike
        joint = np.ravel_multi_index(tuple(codes), tuple(layout.width for layout in layouts))
        _, first, times = np.unique(joint, return_index=True, return_counts=True)
        groups = [codes[:, [q]] for q in first]
    else:
        groups = [codes[:, members] for members in members_of(clusters, codes.shape[1])]
        times = np.ones(len(groups), dtype=np.int64)
    starts = np.cumsum([0, *(layout.width for layout in layouts)])
    units = np.zeros((len(groups), starts[-1]))
    for u, group in enumerate(groups):
        np.add.at(units[u], group + starts[:-1, None], 1.0)
    return units, times


def redraw(layouts: Sequence[Layout], rng: np.random.Generator) -> Callable[[Array], Array]:
    """Histograms ``[R, C]`` of questions -> histograms after each question's candidates were drawn again."""
    tables = [layout.redraws() for layout in layouts]

    def again(flat: Array) -> Array:
        parts = np.split(flat, np.cumsum([len(table) for table in tables])[:-1], axis=-1)
        found = []
        for part, table in zip(parts, tables, strict=True):
            total = np.zeros(part.shape)
            for cell in np.flatnonzero(part.any(axis=0)):
                total += rng.multinomial(part[:, cell].astype(np.int64), table[cell])
            found.append(total)
        return np.concatenate(found, axis=-1)

    return again

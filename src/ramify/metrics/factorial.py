"""Full factorial comparisons: main effects and interactions of a balanced table, which add up to it.

A table ``[a_1, ..., a_F, Q]`` has a value for each combination of the levels of F factors and each question, every
combination on the same questions. The effect of a set S of factors is what remains of its means over everything else
after all effects of fewer factors are taken out: Π_{i in S} (I - M_i) Π_{i not in S} M_i, with M_i the mean over
factor i. Effects sum to zero along every factor of theirs, and all of them together give the table of means back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.errors import InvalidValue, is_whole, require
from ramify.keys import generator
from ramify.metrics.estimate import Estimate
from ramify.metrics.interval import Percentile
from ramify.metrics.resample import bootstrap_means
from ramify.types import Key

__all__ = ["Factorial", "Source", "full_factorial"]


@dataclass(frozen=True, slots=True)
class Source:
    """How much of the variation between cells one effect makes, and how it varies between questions.

    ``variance`` is the mean square of the effect over the cells; those of all sources add up to the variance of the
    table of means. It is too large by the noise of a finite number of questions; ``corrected`` has that noise, as the
    spread of the effect over questions tells it, taken out, and may be negative. ``by_question`` is the variance over
    questions of the effect itself, beyond what the highest interaction shows, with which draws are confounded.
    """

    factors: tuple[str, ...]
    df: int
    variance: float
    share: float  # of the variance of the table of means
    corrected: float
    by_question: float
    ratio: float  # F: the mean square of the effect over that of its interaction with questions
    p: float  # of a mean square as large when the signs of questions are flipped at random


@dataclass(frozen=True, slots=True, eq=False)
class Factorial:
    """A balanced table with the names of its factors and levels.

    >>> table = [[[0.0, 0.2], [0.4, 0.6]], [[0.2, 0.4], [1.0, 1.2]]]
    >>> made = full_factorial(table, {"s": ("s0", "s1"), "c": ("c0", "c1")})
    >>> round(made.grand, 3), made.effect("s").round(3).tolist(), made.effect("s", "c").round(3).tolist()
    (0.5, [-0.2, 0.2], [[0.1, -0.1], [-0.1, 0.1]])
    """

    table: Array  # [a_1, ..., a_F, Q]
    factors: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.factors)

    @property
    def means(self) -> Array:
        """[a_1, ..., a_F] over questions."""
        means: Array = self.table.mean(axis=-1)
        return means

    @property
    def grand(self) -> float:
        """The mean of everything."""
        return float(self.table.mean())

    def sets(self) -> tuple[tuple[str, ...], ...]:
        """Every set of factors with an effect, main effects first."""
        return tuple(s for size in range(1, len(self.names) + 1) for s in combinations(self.names, size))

    def effect(self, *factors: str) -> Array:
        """The effect of a set of factors, an axis for each in the order of the table: sums to zero along any axis."""
        return _projected(self.means, self._axes(factors), len(self.names))

    def within(self, *factors: str) -> Array:
        """[..., Q] the same effect in each question; its mean over questions is the effect."""
        return _projected(self.table, self._axes(factors), len(self.names))

    def estimates(
        self, *factors: str, replicates: int = 4000, level: float = 0.95, run: str = "factorial"
    ) -> dict[tuple[str, ...], Estimate]:
        """Every level of an effect with its paired bootstrap interval over questions.

        A replicate draws questions with all their cells; every effect of a table sees the same replicates.
        """
        within = self.within(*factors)
        chosen = [name for name in self.names if name in factors]
        found = {}
        for place in np.ndindex(within.shape[:-1]):
            sample = bootstrap_means(within[place], Key(run, "questions", 0, "bootstrap"), replicates)
            found[tuple(self.factors[name][i] for name, i in zip(chosen, place, strict=True))] = Percentile(level)(
                sample
            )
        return found

    def sources(self, flips: int = 4000, run: str = "factorial") -> tuple[Source, ...]:
        """The analysis of variance: a row for every main effect and interaction, which add up.

        ``p`` compares the mean square with those when each question's whole effect is given a random sign; it is exact
        if effects of questions are symmetric about zero when there is none.
        """
        require(self.table.shape[-1] >= 2, "questions", self.table.shape[-1], "variances need at least two questions")
        require(is_whole(flips, 1), "flips", flips, "use a number of sign flips >= 1")
        total = float(self.means.var())
        noise = self._by_question(self.names)
        sign = generator(Key(run, "questions", 0, "flip")).choice([-1.0, 1.0], (flips, self.table.shape[-1]))
        return tuple(self._source(s, total, noise, sign) for s in self.sets())

    def question_variance(self) -> float:
        """The variance between questions of their mean over all cells."""
        return float(self.table.reshape(-1, self.table.shape[-1]).mean(axis=0).var(ddof=1))

    def _axes(self, factors: Sequence[str]) -> tuple[int, ...]:
        unknown = [name for name in factors if name not in self.factors]
        require(not unknown, "factors", unknown, f"use some of {', '.join(self.names)}")
        require(len(set(factors)) == len(factors), "factors", factors, "name each factor once")
        return tuple(sorted(self.names.index(name) for name in factors))

    def _by_question(self, factors: Sequence[str]) -> float:
        """Σ over cells and questions of (e(q) - e)², over its degrees of freedom: the mean square with questions."""
        within = self.within(*factors)
        df, cells, questions = self._df(factors), within[..., 0].size, within.shape[-1]
        others = self.means.size // cells
        spread = ((within - within.mean(axis=-1, keepdims=True)) ** 2).sum()
        return float(others * spread / (df * (questions - 1)))

    def _df(self, factors: Sequence[str]) -> int:
        return int(np.prod([len(self.factors[name]) - 1 for name in factors]))

    def _source(self, factors: tuple[str, ...], total: float, noise: float, sign: Array) -> Source:
        within = self.within(*factors).reshape(-1, self.table.shape[-1])  # [cells, Q]
        (cells, questions), df = within.shape, self._df(factors)
        others = self.means.size // cells
        square = float((within.mean(axis=-1) ** 2).mean())
        error = self._by_question(factors)
        flipped = ((sign @ within.T / questions) ** 2).mean(axis=-1)
        return Source(
            factors=factors,
            df=df,
            variance=square,
            share=square / total if total > 0 else np.nan,
            corrected=square - error * df / (questions * others * cells),
            by_question=(error - noise) / others if factors != self.names else np.nan,
            ratio=questions * others * square * cells / df / error if error > 0 else np.nan,
            p=float((1 + (flipped >= square * (1 - 1e-12)).sum()) / (1 + len(sign))),
        )


def full_factorial(table: Any, factors: Mapping[str, Sequence[str]]) -> Factorial:
    """A table ``[a_1, ..., a_F, Q]`` with its factors in the order of the axes, each with the names of its levels.

    Every cell needs every question: a missing one would let questions pass for effects.
    """
    values = np.asarray(table, dtype=np.float64)
    shape = tuple(len(levels) for levels in factors.values())
    expected = f"{list(shape)} for the levels, then questions"
    require(values.ndim == len(shape) + 1 and values.shape[:-1] == shape, "table", values.shape, expected)
    few = [name for name, levels in factors.items() if len(levels) < 2 or len(set(levels)) < len(levels)]
    require(not few, "factors", few, "give each factor at least two levels with names of their own")
    missing = np.argwhere(~np.isfinite(values))
    if len(missing):
        raise InvalidValue(
            f"table{missing[0].tolist()} is missing ({len(missing)} in all): a full factorial has every question "
            "in every cell; leave out a question or a level, or grade what nothing was submitted for as 0"
        )
    return Factorial(values, {name: tuple(levels) for name, levels in factors.items()})


def _projected(table: Array, axes: Sequence[int], factors: int) -> Array:
    """Π_{i in axes} (I - M_i) Π_{i not in axes} M_i over the first ``factors`` axes; averaged axes are gone."""
    for axis in range(factors):
        mean = table.mean(axis=axis, keepdims=True)
        table = table - mean if axis in axes else mean
    return table.squeeze(axis=tuple(axis for axis in range(factors) if axis not in axes))

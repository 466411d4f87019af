"""Reductions: one number a candidate from flat values ``[T]`` and offsets ``[C + 1]``. A candidate without any is NaN.

A NaN among a candidate's values makes its number NaN: what is missing is not imputed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ramify.arrays import Array, group_means, segments, smallest_sums
from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = [
    "BottomGroups",
    "Final",
    "LogProduct",
    "LowestGroup",
    "Maximum",
    "Mean",
    "Minimum",
    "Reduction",
    "Tail",
    "Total",
]

Reduction: TypeAlias = Callable[[Array, Array], Array]
"""``(values [T], offsets [C + 1]) -> [C]``."""


@method
class Total:
    """Σ_t x_t."""

    def __call__(self, values: Array, offsets: Array) -> Array:
        return segments(np.add, values, offsets[:-1], offsets[1:])


@method
class Mean:
    """Σ_t x_t / T.

    >>> Mean()(np.array([1.0, 3.0, 5.0]), np.array([0, 2, 2, 3])).tolist()
    [2.0, nan, 5.0]
    """

    def __call__(self, values: Array, offsets: Array) -> Array:
        return Total()(values, offsets) / np.maximum(np.diff(offsets), 1)


@method
class Minimum:
    """min_t x_t: as good as the worst."""

    def __call__(self, values: Array, offsets: Array) -> Array:
        return segments(np.minimum, values, offsets[:-1], offsets[1:])


@method
class Maximum:
    """max_t x_t."""

    def __call__(self, values: Array, offsets: Array) -> Array:
        return segments(np.maximum, values, offsets[:-1], offsets[1:])


@method
class Final:
    """x_T: suits process rewards trained as value models."""

    def __call__(self, values: Array, offsets: Array) -> Array:
        some = np.diff(offsets) > 0
        out = np.full(some.shape, np.nan)
        out[some] = values[offsets[1:][some] - 1]
        return out


@method
class LogProduct:
    """Σ_t log x_t for x in [0, 1]: the order of the product without its underflow. A zero gives -inf, which is legal.

    >>> LogProduct()(np.array([0.5, 0.5, 0.0]), np.array([0, 2, 3])).round(4).tolist()
    [-1.3863, -inf]
    """

    def __call__(self, values: Array, offsets: Array) -> Array:
        wrong = values[(values < 0) | (values > 1)]
        require(wrong.size == 0, "LogProduct of", wrong[:1].tolist(), "use step scores in [0, 1]")
        with np.errstate(divide="ignore"):
            return Total()(np.log(values), offsets)


@method
class Tail:
    """The mean of the last min(T, n) values (DeepConf's tail confidence)."""

    n: int = 2048

    def __post_init__(self) -> None:
        require(is_whole(self.n, 1), "Tail.n", self.n, "use a number of tokens >= 1")

    def __call__(self, values: Array, offsets: Array) -> Array:
        start = np.maximum(offsets[:-1], offsets[1:] - self.n)
        return segments(np.add, values, start, offsets[1:]) / np.maximum(offsets[1:] - start, 1)


@method
class LowestGroup:
    """min_s G_s: the least confident stretch of ``window`` tokens (Fu et al., 2025)."""

    window: int = 2048

    def __post_init__(self) -> None:
        require(is_whole(self.window, 1), "LowestGroup.window", self.window, "use a number of tokens >= 1")

    def __call__(self, values: Array, offsets: Array) -> Array:
        return Minimum()(*group_means(values, offsets, self.window))


@method
class BottomGroups:
    """The mean of the lowest max(1, floor(share · #groups)) groups (Fu et al., 2025).

    A count, not a quantile: "all groups at or below the 10 % quantile" is another number.
    """

    window: int = 2048
    share: float = 0.1

    def __post_init__(self) -> None:
        require(is_whole(self.window, 1), "BottomGroups.window", self.window, "use a number of tokens >= 1")
        require(0 < self.share <= 1, "BottomGroups.share", self.share, "use a share in (0, 1]")

    def __call__(self, values: Array, offsets: Array) -> Array:
        means, begin = group_means(values, offsets, self.window)
        groups = np.diff(begin)
        kept = np.where(groups > 0, np.maximum(1, np.floor(self.share * groups + 1e-9)), 0).astype(np.int64)
        lowest = smallest_sums(means, begin, kept)
        unknown = np.isnan(Total()(means, begin))  # NaN sorts last, where the lowest would not see it
        return np.where(unknown, np.nan, lowest / np.maximum(kept, 1))

"""Bootstrap intervals: how a resample becomes an ``Estimate``."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from ramify.describe import method
from ramify.errors import require
from ramify.metrics.estimate import Estimate
from ramify.metrics.resample import Resample

__all__ = ["BCa", "Percentile", "Studentised"]


def _level(name: str, level: float) -> None:
    require(0 < level < 1, f"{name}.level", level, "use a coverage in (0, 1)")


def _estimate(sample: Resample, low: float, high: float, level: float, how: str) -> Estimate:
    """The interval within the range of the statistic, saying how it was made."""
    least, most = sample.bounds
    note = "; ".join(part for part in (how, sample.note) if part)
    low, high = (float(min(max(end, least), most)) for end in (low, high))
    return Estimate(sample.value, low, high, level, sample.covers, note)


@method
class Percentile:
    """The central ``level`` of the replicates (Efron, 1979). It stays in range, as the replicates do.

    >>> from ramify.metrics import Accuracy, Tally, bootstrap_profile
    >>> from ramify.types import Key
    >>> print(Percentile()(bootstrap_profile(Tally.of([[1, 0]] * 6 + [[1, 1]] * 4), Accuracy(), Key("doc", "", 0))))
    0.7 [0.55, 0.85] (95%, over questions; percentile)
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        _level("Percentile", self.level)

    def __call__(self, sample: Resample) -> Estimate:
        low, high = np.quantile(sample.replicates, [(1 - self.level) / 2, (1 + self.level) / 2])
        return _estimate(sample, low, high, self.level, "percentile")


@method
class BCa:
    """Percentiles moved for the bias and the skewness of the statistic (Efron, 1987); in range, as the replicates are.

    Where every replicate equals the value there is nothing to move, and the interval is that value.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        _level("BCa", self.level)

    def __call__(self, sample: Resample) -> Estimate:
        many = len(sample.replicates)
        below = (sample.replicates < sample.value).sum() + (sample.replicates == sample.value).sum() / 2
        bias = ndtri(np.clip(below / many, 0.5 / many, 1 - 0.5 / many))
        off = np.average(sample.left, weights=sample.times) - sample.left
        square = (sample.times * off**2).sum()
        skew = (sample.times * off**3).sum() / (6 * square**1.5) if square > 0 else 0.0
        z = bias + ndtri([(1 - self.level) / 2, (1 + self.level) / 2])
        low, high = np.quantile(sample.replicates, ndtr(bias + z / (1 - skew * z)))
        return _estimate(sample, low, high, self.level, "BCa")


@method
class Studentised:
    """value - t* · error, t* the quantiles of (replicate - value) / its own error (bootstrap-t), cut to the range.

    Replicates without any spread of their own say nothing about t; they are left out and counted.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        _level("Studentised", self.level)

    def __call__(self, sample: Resample) -> Estimate:
        remedy = "resample with errors=True, or with an error function for a statistic of your own"
        errors = sample.errors
        require(errors is not None, "Resample.errors", None, remedy)
        assert errors is not None
        usable = errors > 1e-9 * max(sample.error, 1e-300)
        if not usable.any() or not sample.error > 0:
            return _estimate(sample, sample.value, sample.value, self.level, "studentised; no spread")
        t = (sample.replicates[usable] - sample.value) / errors[usable]
        high, low = sample.value - sample.error * np.quantile(t, [(1 - self.level) / 2, (1 + self.level) / 2])
        dropped = int((~usable).sum())
        how = "studentised" + (f"; {dropped} replicates without spread left out" if dropped else "")
        return _estimate(sample, low, high, self.level, how)

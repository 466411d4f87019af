"""Calibration: functions from held-out data to a transform whose fitted numbers are its fields.

A fitted value remembers the name of its data and the questions in them, and refuses a bank that shares one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit, logsumexp

from ramify.arrays import Array
from ramify.bank import Bank
from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require

__all__ = [
    "DensityRatio",
    "FittedOn",
    "HeldOut",
    "IsotonicMap",
    "PlattMap",
    "QuantileBins",
    "density_ratio",
    "isotonic",
    "platt",
    "quantile_bins",
]


@method
class FittedOn:
    """Where fitted numbers come from: the data's name and the marks of their questions."""

    name: str
    description: str = ""
    questions: tuple[str, ...] = ()  # 48-bit marks of the ids, sorted

    def refuse(self, bank: Bank) -> None:
        """Raise where the bank has a question that the numbers were fitted on."""
        known = set(self.questions)
        shared = [question.id for question in bank.questions if _mark(question.id) in known]
        if shared:
            raise InvalidValue(
                f"this calibration was fitted on {self.name!r}, which shares {len(shared)} questions with the bank "
                f"(such as {shared[0]!r}): fit on other questions, or give questions that only share a name another id"
            )


def _mark(question: str) -> str:
    return hashlib.blake2b(question.encode(), digest_size=6).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Scores with known outcomes, set aside for fitting and named: nothing else may be fitted on.

    >>> held = HeldOut("dev", np.array([0.2, 0.9]), np.array([0.0, 1.0]), ("d1", "d2"))
    >>> held.source.name
    'dev'
    """

    name: str
    scores: Array  # [n]
    outcomes: Array  # [n] in [0, 1]
    questions: tuple[str, ...]  # the ids they come from
    description: str = ""
    left_out: int = 0  # candidates without a score or an outcome

    def __post_init__(self) -> None:
        for name in ("scores", "outcomes"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64).reshape(-1))
        require(self.name.strip(), "HeldOut.name", self.name, "name the data: the fitted value will say it")
        require(self.questions, "HeldOut.questions", self.questions, "give the ids of the questions they come from")
        size = self.scores.size
        require(
            size and size == self.outcomes.size, "HeldOut.outcomes", self.outcomes.size, f"give one for each of {size}"
        )
        require(not np.isnan(self.scores).any(), "HeldOut.scores", "NaN", "leave out candidates without a score")
        ok = ((self.outcomes >= 0) & (self.outcomes <= 1)).all()
        require(ok, "HeldOut.outcomes", "a value", "use outcomes in [0, 1]; leave out what was not graded")

    @classmethod
    def of(cls, name: str, bank: Bank, scores: Array, outcomes: Array, description: str = "") -> HeldOut:
        """The candidates of a held-out bank ``[Q, N]`` that have both a score and an outcome."""
        both = bank.drawn & ~np.isnan(scores) & ~np.isnan(outcomes)
        ids = tuple(question.id for question in bank.questions)
        return cls(name, scores[both], outcomes[both], ids, description, int(bank.drawn.sum() - both.sum()))

    @property
    def source(self) -> FittedOn:
        """What a value fitted on these data remembers of them."""
        return FittedOn(self.name, self.description, tuple(sorted({_mark(each) for each in self.questions})))

    def classes(self, what: str) -> tuple[Array, Array]:
        """The scores of correct and of incorrect candidates; both have to be there, and nothing between."""
        ok = np.isin(self.outcomes, (0.0, 1.0)).all()
        require(ok, f"{what}: outcomes", "graded", "use outcomes of 0 and 1")
        right, wrong = self.scores[self.outcomes == 1], self.scores[self.outcomes == 0]
        require(right.size and wrong.size, f"{what}: outcomes", (right.size, wrong.size), "give some of both classes")
        return right, wrong


# ------------------------------------------------------------------------------------------------------------ isotonic


@method
class IsotonicMap:
    """A nondecreasing map through fitted points, linear between them and constant beyond."""

    at: tuple[float, ...]
    value: tuple[float, ...]
    fitted_on: FittedOn

    def __post_init__(self) -> None:
        ok = len(self.at) == len(self.value) > 0 and list(self.at) == sorted(self.at)
        require(ok, "IsotonicMap.at", self.at[:3], "use one increasing point for each value")

    def __call__(self, values: Array) -> Array:
        return np.interp(values, self.at, self.value)


def isotonic(held_out: HeldOut) -> IsotonicMap:
    """The nondecreasing least-squares fit (pool adjacent violators); equal scores are pooled first.

    >>> held = HeldOut("dev", [1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], ("d",))
    >>> fit = isotonic(held)
    >>> fit.at, fit.value
    ((1.0, 2.0, 3.0, 4.0), (0.0, 0.5, 0.5, 1.0))
    """
    at, group = np.unique(held_out.scores, return_inverse=True)
    require(np.isfinite(at).all(), "isotonic: scores", "infinite", "use finite scores")
    weight = np.bincount(group)
    mean = np.bincount(group, held_out.outcomes) / weight
    fit = isotonic_regression(mean, weights=weight).x
    # Inside a run of one value only its ends matter.
    ends = np.concatenate([[True], fit[1:-1] != fit[:-2], [True]]) if at.size > 1 else np.array([True])
    if at.size > 2:
        ends[1:-1] |= fit[1:-1] != fit[2:]
    return IsotonicMap(tuple(at[ends].tolist()), tuple(fit[ends].tolist()), held_out.source)


# --------------------------------------------------------------------------------------------------------------- Platt


@method
class PlattMap:
    """s ↦ 1 / (1 + exp(-(slope s + offset)))."""

    slope: float
    offset: float
    fitted_on: FittedOn

    def __call__(self, values: Array) -> Array:
        out: Array = expit(self.slope * values + self.offset)
        return out


def platt(held_out: HeldOut) -> PlattMap:
    """Logistic regression on the score (Platt, 1999), with his targets (n₊+1)/(n₊+2) and 1/(n₋+2); Newton's method.

    The targets keep separable data finite.
    """
    right, wrong = held_out.classes("platt")
    ok = np.isfinite(held_out.scores).all() and np.ptp(held_out.scores) > 0
    require(ok, "platt: scores", "constant or infinite", "use finite scores that differ")
    target = np.where(held_out.outcomes == 1, (right.size + 1) / (right.size + 2), 1 / (wrong.size + 2))
    # Standardised scores condition the 2 x 2 system; the fit is mapped back.
    centre, scale = held_out.scores.mean(), held_out.scores.std()
    design = np.stack([(held_out.scores - centre) / scale, np.ones(held_out.scores.size)], axis=1)
    beta = np.array([0.0, math.log((right.size + 1) / (wrong.size + 1))])
    for _ in range(100):
        p = expit(design @ beta)
        step = np.linalg.solve((design * (p * (1 - p))[:, None]).T @ design, design.T @ (target - p))
        while _loss(design @ (beta + step), target) > _loss(design @ beta, target) and np.abs(step).max() > 1e-12:
            step = step / 2
        beta = beta + step
        if np.abs(step).max() < 1e-12:
            break
    slope = beta[0] / scale
    return PlattMap(float(slope), float(beta[1] - slope * centre), held_out.source)


def _loss(z: Array, target: Array) -> float:
    return float((np.logaddexp(0.0, z) - target * z).sum())


# --------------------------------------------------------------------------------------------------- log density ratio


@method
class DensityRatio:
    """log f₁(s) - log f₀(s): Gaussian kernel densities of the logits of correct and incorrect scores in (0, 1).

    ``eps`` clips scores to [eps, 1 - eps]; without it 0 and 1 raise.
    """

    correct: tuple[float, ...]  # logits
    incorrect: tuple[float, ...]
    bandwidths: tuple[float, float]  # of the correct, of the incorrect
    fitted_on: FittedOn
    eps: float | None = None

    def __post_init__(self) -> None:
        ok = len(self.bandwidths) == 2 and min(self.bandwidths) > 0
        require(ok, "DensityRatio.bandwidths", self.bandwidths, "use two positive numbers")

    def __call__(self, values: Array) -> Array:
        z = _logits(np.asarray(values, dtype=np.float64), self.eps, "DensityRatio")
        one, zero = (np.array(each) for each in (self.correct, self.incorrect))
        return _log_density(z, one, self.bandwidths[0]) - _log_density(z, zero, self.bandwidths[1])


def density_ratio(
    held_out: HeldOut, bandwidths: tuple[float, float] | None = None, eps: float | None = None
) -> DensityRatio:
    """The two densities, with Scott's bandwidth std(ddof=1) n^(-1/5) for each class unless given."""
    classes = [_logits(each, eps, "density_ratio") for each in held_out.classes("density_ratio")]
    widths = tuple(map(_scott, classes)) if bandwidths is None else bandwidths
    right, wrong = (tuple(each.tolist()) for each in classes)
    return DensityRatio(right, wrong, (float(widths[0]), float(widths[1])), held_out.source, eps)


def _scott(logits: Array) -> float:
    width = float(logits.std(ddof=1)) * logits.size ** (-1 / 5) if logits.size > 1 else 0.0
    require(width > 0, "density_ratio.bandwidths", width, "a class is constant: give the bandwidths yourself")
    return width


def _logits(scores: Array, eps: float | None, who: str) -> Array:
    clipped = scores if eps is None else np.clip(scores, eps, 1 - eps)
    ok = ((clipped > 0) & (clipped < 1)).all()
    require(ok, f"{who}: scores", "a value", "use scores strictly within (0, 1), or declare eps to clip them")
    out: Array = logit(clipped)
    return out


def _log_density(z: Array, sample: Array, width: float) -> Array:
    """[...] the log of a Gaussian kernel density, some thousands of points at a time."""
    flat, out = z.reshape(-1), np.empty(z.size)
    rows = max(1, (1 << 20) // sample.size)
    for i in range(0, flat.size, rows):
        off = (flat[i : i + rows, None] - sample) / width
        out[i : i + rows] = logsumexp(-0.5 * off * off, axis=-1)
    return out.reshape(z.shape) - math.log(sample.size * width * math.sqrt(2 * math.pi))


# ------------------------------------------------------------------------------------------------------- quantile bins


@method
class QuantileBins:
    """s ↦ the share of correct candidates in its bin; bins are [edge, next edge), open at both ends of the line."""

    edges: tuple[float, ...]  # inner ones, increasing
    rates: tuple[float, ...]  # one more
    fitted_on: FittedOn

    def __post_init__(self) -> None:
        ok = len(self.rates) == len(self.edges) + 1 and list(self.edges) == sorted(set(self.edges))
        require(ok, "QuantileBins.rates", len(self.rates), "give one rate a bin, and increasing edges between them")

    def __call__(self, values: Array) -> Array:
        return np.array(self.rates)[np.searchsorted(self.edges, values, side="right")]


def quantile_bins(held_out: HeldOut, bins: int = 10) -> QuantileBins:
    """Bins of equal frequency with duplicate edges merged. Edges are observed scores, so that no bin is empty.

    >>> fit = quantile_bins(HeldOut("dev", [0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], ("d",)), bins=2)
    >>> fit.edges, fit.rates
    ((0.8,), (0.0, 1.0))
    """
    require(is_whole(bins, 1), "quantile_bins.bins", bins, "use a number of bins >= 1")
    scores = held_out.scores
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, bins + 1)[1:-1], method="nearest"))
    edges = cuts[(cuts > scores.min()) & (cuts < scores.max())]
    place = np.searchsorted(edges, scores, side="right")
    rates = np.bincount(place, held_out.outcomes, minlength=edges.size + 1) / np.bincount(
        place, minlength=edges.size + 1
    )
    return QuantileBins(tuple(edges.tolist()), tuple(rates.tolist()), held_out.source)

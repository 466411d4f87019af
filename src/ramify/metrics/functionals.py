"""Scalar views of the profile: prespecified functionals f(S_k), each reading a profile or posterior draws of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaincc

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.metrics.estimate import Estimate
from ramify.metrics.profile import Profiled, bank_profile
from ramify.metrics.tally import Tally

__all__ = [
    "Accuracy",
    "BetaWeights",
    "EvenWeights",
    "Functional",
    "GPassAt",
    "GeomAt",
    "MaxAt",
    "MaxEntropyWeights",
    "MeanGPassAt",
    "MomentWeights",
    "PassArea",
    "PassAt",
    "PassHat",
    "PayoffWeights",
    "StrictMajority",
    "ThresholdUtility",
    "observed",
]

Functional: TypeAlias = Callable[[Profiled], Array]
"""A profile ``[..., k]`` -> a number ``[...]``; draws and replicates are leading axes."""

Weights: TypeAlias = Callable[[int], Array]
"""k -> ω_{t,k} ``[k]``, nonnegative with sum 1."""


def observed(tally: Tally, functional: Functional) -> Estimate:
    """The functional of the observed bank, with no claim beyond it; questions left out are counted in the note.

    >>> print(observed(Tally.of([[1, 0, 1], [0, 0, 0], [1, float("nan"), float("nan")]]), PassAt(2)))
    0.5 (descriptive; 1 of 3 questions left out: fewer than 2 graded)
    """
    profile, k = bank_profile(tally), int(getattr(functional, "k", 1))
    lost = profile.left_out(k)
    left = f"{lost} of {tally.questions} questions left out: fewer than {k} graded" if lost else ""
    return Estimate.descriptive(float(functional(profile)), "; ".join(part for part in (tally.remark, left) if part))


def _budget(name: str, k: object) -> None:
    require(is_whole(k, 1), f"{name}.k", k, "use an integer >= 1")


@method
class Accuracy:
    """S_{1,1}: the chance that one candidate is correct, questions weighing the same."""

    def __call__(self, profile: Profiled) -> Array:
        return profile.at(1)[..., 0]


@method
class PassAt:
    """Pass@k = S_{k,1}: at least one of k is correct (Chen et al., 2021).

    >>> from ramify.metrics import Tally, bank_profile
    >>> float(PassAt(2)(bank_profile(Tally.of([[1, 0, 0], [1, 1, 0]]))).round(6))
    0.833333
    """

    k: int

    def __post_init__(self) -> None:
        _budget("PassAt", self.k)

    def __call__(self, profile: Profiled) -> Array:
        return profile.at(self.k)[..., 0]


@method
class PassHat:
    """pass^k = S_{k,k}: all of k are correct (Yao et al., 2024)."""

    k: int

    def __post_init__(self) -> None:
        _budget("PassHat", self.k)

    def __call__(self, profile: Profiled) -> Array:
        return profile.at(self.k)[..., -1]


@method
class GPassAt:
    """G-Pass@k_τ = S_{k,⌈τk⌉} (Liu et al., 2025), with an exact ceiling; on a rubric, P(mean score >= τ)."""

    k: int
    tau: float

    def __post_init__(self) -> None:
        _budget("GPassAt", self.k)
        require(0 < self.tau <= 1, "GPassAt.tau", self.tau, "use a share in (0, 1]")

    def __call__(self, profile: Profiled) -> Array:
        return profile.tail(self.k, self.tau)


@method
class MeanGPassAt:
    """mG-Pass@k: the mean of S_{k,t} over t = ⌊k/2⌋+1 .. k, also for odd k."""

    k: int

    def __post_init__(self) -> None:
        _budget("MeanGPassAt", self.k)

    def __call__(self, profile: Profiled) -> Array:
        return profile.at(self.k)[..., self.k // 2 :].mean(axis=-1)


@method
class GeomAt:
    """Geom@k = √(S_{k,1} S_{k,k}) of the dataset profile; ``level="question"`` averages each question's own √."""

    k: int
    level: str = "dataset"

    def __post_init__(self) -> None:
        _budget("GeomAt", self.k)
        require(self.level in ("dataset", "question"), "GeomAt.level", self.level, "use 'dataset' or 'question'")

    def __call__(self, profile: Profiled) -> Array:
        if self.level == "question":
            return profile.ends(self.k, _geometric)
        s = profile.at(self.k)
        return _geometric(s[..., 0], s[..., -1])


def _geometric(one: Array, every: Array) -> Array:
    return np.sqrt(one * every)


@method
class StrictMajority:
    """S_{k,⌊k/2⌋+1}: more than half of k are correct, which bounds Maj@k from below for a single canonical target.

    Where several strings are correct it bounds nothing: they can outvote each other.
    """

    k: int

    def __post_init__(self) -> None:
        _budget("StrictMajority", self.k)

    def __call__(self, profile: Profiled) -> Array:
        return profile.at(self.k)[..., self.k // 2]


@method
class MaxAt:
    """Max@k: the expected best score of k, Σ_l (s_l - s_{l-1}) P(best >= s_l). On binary grades it is Pass@k."""

    k: int

    def __post_init__(self) -> None:
        _budget("MaxAt", self.k)

    def __call__(self, profile: Profiled) -> Array:
        reach, scores = profile.reach(self.k)
        return scores[0] + reach @ np.diff(scores)


@method
class PassArea:
    """The area under Pass@j over j = 1..k by the trapezoidal rule, divided by k - 1; Pass@1 for k = 1."""

    k: int

    def __post_init__(self) -> None:
        _budget("PassArea", self.k)

    def __call__(self, profile: Profiled) -> Array:
        curve = profile.discovery(self.k)
        if self.k == 1:
            return curve[..., 0]
        return (curve[..., 1:] + curve[..., :-1]).mean(axis=-1) / 2


# ---------------------------------------------------------------------------------------------- threshold utilities


@method
class EvenWeights:
    """ω = 1/k: U_ω is the accuracy, at every k."""

    def __call__(self, k: int) -> Array:
        return np.full(k, 1 / k)


@method
class MomentWeights:
    """ω_t = (t/k)^λ - ((t-1)/k)^λ: U_ω is the λ-th moment of the share correct. Small λ rewards discovery."""

    power: float

    def __post_init__(self) -> None:
        require(0 < self.power < math.inf, "MomentWeights.power", self.power, "use a finite exponent > 0")

    def __call__(self, k: int) -> Array:
        return np.diff((np.arange(k + 1) / k) ** self.power)


@method
class BetaWeights:
    """ω = the mass of a Beta law with this mean and concentration over the cells ((t-1)/k, t/k]."""

    mean: float
    concentration: float

    def __post_init__(self) -> None:
        require(0 < self.mean < 1, "BetaWeights.mean", self.mean, "use a mean threshold in (0, 1)")
        ok = 0 < self.concentration < math.inf
        require(ok, "BetaWeights.concentration", self.concentration, "use a finite number > 0")

    def __call__(self, k: int) -> Array:
        a, b = self.mean * self.concentration, (1 - self.mean) * self.concentration
        grid = np.arange(k + 1) / k
        below, above = betainc(a, b, grid), betaincc(a, b, grid)
        return np.where(below[1:] <= 0.5, np.diff(below), -np.diff(above))  # the smaller side loses no digits


@method
class MaxEntropyWeights:
    """ω ∝ e^{ct} on the cells ((t-1)/k, t/k], c so that the density behind it has this mean threshold."""

    mean: float

    def __post_init__(self) -> None:
        require(0 < self.mean < 1, "MaxEntropyWeights.mean", self.mean, "use a mean threshold in (0, 1)")

    def __call__(self, k: int) -> Array:
        near = min(self.mean, 1 - self.mean)
        if near == 0.5:
            return np.full(k, 1 / k)

        def mean(c: float) -> float:  # of the density ∝ e^{-cx} on [0, 1]
            return 0.5 - c / 12 if c < 1e-4 else 1 / c - 1 / math.expm1(c) if c < 700 else 1 / c

        c = brentq(lambda c: mean(c) - near, 0.0, 2 / near, xtol=1e-14, rtol=1e-14)
        weights = np.exp(-c * np.arange(k) / k)
        weights /= weights.sum()
        return weights if self.mean < 0.5 else weights[::-1]


@method
class PayoffWeights:
    """ω = the increments of a payoff u(0) = 0 <= u(1) <= .. <= u(k) = 1 for so many correct; it fixes k."""

    payoff: tuple[float, ...]

    def __post_init__(self) -> None:
        values = np.asarray(self.payoff, dtype=np.float64)
        ok = (
            values.ndim == 1
            and values.size >= 2
            and values[0] == 0
            and values[-1] == 1
            and (np.diff(values) >= 0).all()
        )
        require(ok, "PayoffWeights.payoff", self.payoff, "use (0, ..., 1), never falling")

    def __call__(self, k: int) -> Array:
        require(k == len(self.payoff) - 1, "PayoffWeights.payoff", len(self.payoff), f"give k + 1 = {k + 1} values")
        return np.diff(self.payoff)


@method
class ThresholdUtility:
    """U_ω(k) = Σ_t ω_{t,k} S_{k,t} for nonnegative weights of sum 1.

    >>> from ramify.metrics import latent_profile
    >>> float(ThresholdUtility(4, MomentWeights(2.0))(latent_profile([0.5], 4)))  # E[(X/4)²], X ~ Binomial(4, 1/2)
    0.3125
    """

    k: int
    weights: Weights

    def __post_init__(self) -> None:
        _budget("ThresholdUtility", self.k)
        omega = np.asarray(self.weights(self.k), dtype=np.float64)
        ok = omega.shape == (self.k,) and (omega >= 0).all() and abs(omega.sum() - 1) < 1e-9
        require(ok, "ThresholdUtility.weights", self.weights, f"use k = {self.k} nonnegative weights with sum 1")

    def __call__(self, profile: Profiled) -> Array:
        return profile.at(self.k) @ self.weights(self.k)

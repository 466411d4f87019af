"""The discovery–stability profile S_{k,t}: the share of questions with at least t correct among k candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ramify.arrays import Array
from ramify.errors import InvalidValue, is_whole, require
from ramify.metrics.laws import hypergeometric, mean_binomial, tails, thin
from ramify.metrics.tally import Tally

__all__ = ["Profile", "Profiled", "bank_profile", "latent_profile", "reached"]

TABLE = 1 << 22  # entries of a hypergeometric table made at a time


class Profiled(Protocol):
    """What a functional reads: a profile, or posterior draws of one. Leading axes ``[...]`` go through."""

    def at(self, k: int) -> Array:
        """S_{k,t}, t = 1..k: ``[..., k]``."""

    def tail(self, k: int, tau: float) -> Array:
        """P(the mean score of k candidates >= tau): ``[...]``."""

    def discovery(self, k: int) -> Array:
        """S_{j,1} for j = 1..k, over the questions that k is defined for: ``[..., k]``."""

    def reach(self, k: int) -> tuple[Array, Array]:
        """P(the best of k scores at least s_l) for the levels above the lowest, and all levels: ``[..., L-1], [L]``."""

    def ends(self, k: int, blend: Callable[[Array, Array], Array]) -> Array:
        """The mean over questions of blend(S_{k,1}, S_{k,k}) of each question: ``[...]``."""


def reached(points: int, tau: float) -> int:
    """The smallest t with t / points >= tau: an exact ceiling of tau · points.

    A decimal or a ratio typed as a float means the number it rounds from: 0.6 of 5 is 3, although 0.6 * 5 > 3.

    >>> reached(5, 0.6), reached(7, 5 / 7), reached(10, 0.31)
    (3, 5, 4)
    """
    require(0 < tau <= 1, "tau", tau, "use a share in (0, 1]")
    t = max(int(tau * points) - 1, 0)
    while t / points < tau:
        t += 1
    return t


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The law of the number of correct among n candidates of a question, which holds S_{k,t} for every k <= n.

    ``mass[n][..., j]`` is how many questions (or what share of them) have j correct of n. Leaving candidates out at
    random thins the law from n to k, exactly; so a finite bank, a latent profile, a posterior mean and posterior
    draws are one record, and every functional reads all of them. Leading axes are draws or replicates.

    >>> profile = bank_profile(Tally.of([[1, 1, 0, 0], [1, 0, 0, 0]]))
    >>> profile.at(2).round(4).tolist()  # Pass@2 = 2/3, pass^2 = 1/12
    [0.6667, 0.0833]
    """

    mass: Mapping[int, Array]  # n -> [..., n + 1]
    kind: str  # "finite bank" | "latent" | "posterior mean" | "posterior draws"
    questions: int
    remark: str = ""

    @property
    def top(self) -> int:
        """The largest k."""
        return max(self.mass)

    def left_out(self, k: int) -> int:
        """How many questions have fewer than k graded candidates, and so no part in S_k."""
        if self.kind != "finite bank":
            return 0
        kept = sum(np.asarray(mass.sum(axis=-1)).flat[0] for n, mass in self.mass.items() if n >= k)
        return round(self.questions - float(kept))

    def _need(self, k: int) -> None:
        require(is_whole(k, 1), "k", k, "use an integer >= 1")
        remedy = f"use k <= {self.top}, the most graded candidates of a question, or the posterior profile at any k"
        require(k <= self.top, "k", k, remedy)

    def _parts(self, k: int) -> list[tuple[int, Array]]:
        self._need(k)
        return [(n, mass) for n, mass in self.mass.items() if n >= k]

    def _mean(self, k: int, values: Callable[[int, Array], Array]) -> Array:
        """The mean of ``values(n, j [J]) [J, ...]`` over the questions with n >= k, asking only for j that occur."""
        total: Array = 0.0
        weight: Array = 0.0
        for n, mass in self._parts(k):
            occurs = np.flatnonzero(mass.reshape(-1, n + 1).any(axis=0))
            for first in range(0, len(occurs), max(1, TABLE // (k + 1))):
                j = occurs[first : first + max(1, TABLE // (k + 1))]
                total = total + mass[..., j] @ values(n, j)
            weight = weight + mass.sum(axis=-1)
        return total / (np.asarray(weight)[..., None] if np.ndim(total) > np.ndim(weight) else weight)

    def law(self, k: int) -> Array:
        """P(j of k are correct), j = 0..k: ``[..., k + 1]``."""
        if list(self.mass) == [k]:
            return self.mass[k] / self.mass[k].sum(axis=-1, keepdims=True)
        return self._mean(k, lambda n, j: hypergeometric(k, j, n - j))

    def at(self, k: int) -> Array:
        """S_{k,t}, t = 1..k: ``[..., k]``."""
        self._need(k)
        return np.minimum(tails(self.law(k)), 1.0)

    def all(self) -> Array:
        """S_{k,t} for every k and t at once, ``[..., K, K]`` with S_{k,t} at ``[..., k - 1, t - 1]``; 0 where t > k.

        One pass of thinning from k = K down. For K in the thousands ask for rows with ``at``.
        """
        top = self.top
        lead = next(iter(self.mass.values())).shape[:-1]
        laws, weights = np.zeros((*lead, top, top + 1)), np.zeros((*lead, top, 1))
        f, weight = np.zeros((*lead, top + 2)), np.zeros((*lead, 1))
        for k in range(top, 0, -1):
            f = thin(f, k + 1)
            if k in self.mass:
                f = f + self.mass[k]
                weight = weight + self.mass[k].sum(axis=-1, keepdims=True)
            laws[..., k - 1, : k + 1], weights[..., k - 1, :] = f, weight
        return np.minimum(tails(laws) / weights, 1.0)

    def tail(self, k: int, tau: float) -> Array:
        """S_{k,⌈τk⌉}: ``[...]``."""
        return self.at(k)[..., reached(k, tau) - 1]

    def discovery(self, k: int) -> Array:
        """S_{j,1} for j = 1..k, over the questions with at least k: ``[..., k]``."""

        def found(n: int, correct: Array) -> Array:
            u = np.arange(k)
            return 1 - np.cumprod(np.maximum(n - correct[:, None] - u, 0) / (n - u), axis=-1)

        return self._mean(k, found)

    def reach(self, k: int) -> tuple[Array, Array]:
        """Pass@k as the chance that the best of k reaches score 1, and the scores (0, 1)."""
        return self.at(k)[..., :1], np.array([0.0, 1.0])

    def ends(self, k: int, blend: Callable[[Array, Array], Array]) -> Array:
        """The mean over questions of blend(S_{k,1}, S_{k,k}) of each question: ``[...]``."""
        if self.kind != "finite bank":
            raise InvalidValue(f"a {self.kind} profile is an average over questions: ask the posterior's draws")

        def blended(n: int, correct: Array) -> Array:
            law = hypergeometric(k, correct, n - correct)
            return blend(tails(law)[:, 0], law[:, -1])

        return self._mean(k, blended)


def bank_profile(tally: Tally) -> Profile:
    """Ŝ_{k,t} of subsets of the observed bank without replacement: it describes the bank, whatever made it.

    >>> bank_profile(Tally.of([[1, 0], [1, 1], [0, float("nan")]])).all().round(3).tolist()
    [[0.5, 0.0], [1.0, 0.5]]
    """
    require(isinstance(tally, Tally), "tally", type(tally).__name__, "use Tally.of(grades), grades as [Q, N]")
    mass = {n: histogram.astype(np.float64) for n, histogram in tally.histograms() if n > 0}
    require(mass, "grades", "all missing", "no candidate of any question is graded, so there is no profile")
    return Profile(mass, "finite bank", tally.questions, tally.remark)


def latent_profile(p: Any, k: int) -> Profile:
    """S_{k,t} of fresh candidates that succeed with probabilities ``p [..., Q]``, for every budget up to k.

    >>> latent_profile([0.5, 1.0], 2).at(2).tolist()
    [0.875, 0.625]
    """
    p = np.asarray(p, dtype=np.float64)
    require(p.ndim >= 1 and p.shape[-1] > 0, "p", p.shape, "use [..., Q] with at least one question")
    require(((p >= 0) & (p <= 1)).all(), "p", p[~((p >= 0) & (p <= 1))][:1].tolist(), "use probabilities, none missing")
    require(is_whole(k, 1), "k", k, "use an integer >= 1")
    return Profile({k: mean_binomial(k, p) / p.shape[-1]}, "latent", p.shape[-1])

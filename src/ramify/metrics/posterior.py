"""The latent profile after a bank has been seen: Beta posteriors, their moments, and draws that everything shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import generator
from ramify.metrics.estimate import Estimate
from ramify.metrics.functionals import Functional
from ramify.metrics.laws import beta_binomial, mean_binomial
from ramify.metrics.profile import Profile
from ramify.metrics.tally import Tally
from ramify.types import Key

__all__ = ["BetaPrior", "Draws", "Posterior", "credible", "fit_prior", "refitted", "sensitivity"]

BLOCK = 1 << 22  # success probabilities held at a time
COVARIANCE = 1 << 21  # entries of per-question covariance tables held at a time
CONCENTRATION = (1e-3, 1e6)  # a fitted prior stays between a coin with two heads and a constant


@method
class BetaPrior:
    """p ~ Beta(alpha, beta) for every question. (1, 1) is flat, (1/2, 1/2) is Jeffreys' prior."""

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            require(0 < value < np.inf, f"BetaPrior.{name}", value, "use a finite number > 0")


JEFFREYS = BetaPrior(0.5, 0.5)


def fit_prior(tally: Tally) -> BetaPrior:
    """The prior with the largest marginal likelihood of the counts (empirical Bayes): it has learned the difficulty.

    Where all questions fare alike the likelihood wants a prior without spread; its concentration stops at 10^6.

    >>> fit_prior(Tally.of([[1, 1, 1, 1]] * 9 + [[0, 0, 0, 0]] * 9 + [[1, 1, 0, 0]] * 2)).alpha < 0.5
    True
    """
    tally.need_independence("an empirical-Bayes prior")
    graded, correct = tally.graded[tally.graded > 0], tally.correct[tally.graded > 0]
    require(graded.size, "grades", "all missing", "a prior is fitted to at least one graded candidate")
    cells, counts = np.unique(np.stack([correct, graded - correct]), axis=1, return_counts=True)

    def loss(point: Array) -> float:
        mean, concentration = 1 / (1 + np.exp(-point[0])), np.exp(point[1])
        a, b = mean * concentration, (1 - mean) * concentration
        return -float(counts @ (betaln(a + cells[0], b + cells[1]) - betaln(a, b)))

    mean = (correct.sum() + 0.5) / (graded.sum() + 1)
    bounds = [(-12.0, 12.0), tuple(np.log(CONCENTRATION))]
    found = minimize(loss, [np.log(mean / (1 - mean)), 0.5], bounds=bounds, method="L-BFGS-B")
    mean, concentration = 1 / (1 + np.exp(-found.x[0])), float(np.exp(found.x[1]))
    return BetaPrior(float(mean * concentration), float((1 - mean) * concentration))


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Independent Beta(a_q, b_q) for the success probability of each question.

    >>> posterior = Posterior.of(Tally.of([[0] * 80]))
    >>> round(float(posterior.profile(80).at(80)[0]), 4)  # never solved in 80, and yet: the flat prior's half
    0.4969
    """

    a: Array  # [Q]
    b: Array  # [Q]
    remark: str = ""

    def __post_init__(self) -> None:
        require(self.a.shape == self.b.shape and self.a.ndim == 1, "Posterior.a", self.a.shape, "use [Q], as b")
        require(self.a.size > 0, "Posterior.a", self.a.shape, "hand in at least one question")
        ok = (self.a > 0).all() and (self.b > 0).all() and np.isfinite(self.a + self.b).all()
        require(ok, "Posterior.a", "a parameter", "use finite numbers > 0")

    @classmethod
    def of(
        cls,
        tally: Tally,
        prior: BetaPrior | tuple[Any, Any] = BetaPrior(),  # noqa: B008
        auxiliary: Tally | None = None,
        weight: float = 1.0,
    ) -> Posterior:
        """a = α_q + ν_q + w ν⁰_q, b likewise. ``prior`` may hold arrays ``[Q]``; ``auxiliary`` is a prior bank of the
        same questions, each of its candidates counting ``weight`` <= 1. A question without grades keeps its prior.
        """
        tally.need_independence("the posterior profile")
        alpha, beta = (prior.alpha, prior.beta) if isinstance(prior, BetaPrior) else prior
        a, b = alpha + tally.correct.astype(float), beta + (tally.graded - tally.correct).astype(float)
        if auxiliary is not None:
            auxiliary.need_independence("a prior bank")
            require(
                0 <= weight <= 1, "weight", weight, "use the share of a candidate that one of the prior bank counts"
            )
            same = auxiliary.questions == tally.questions
            require(same, "auxiliary", auxiliary.questions, f"hand in a tally of the same {tally.questions} questions")
            a, b = a + weight * auxiliary.correct, b + weight * (auxiliary.graded - auxiliary.correct)
        return cls(a, b, tally.remark)

    @property
    def questions(self) -> int:
        """Q."""
        return len(self.a)

    def cells(self) -> tuple[Array, Array, Array]:
        """The distinct (a, b) and how many questions have them: ``[C], [C], [C]``."""
        total = self.a + self.b
        order = np.argsort(self.a) if (total == total[0]).all() else np.lexsort((self.b, self.a))
        a, b = self.a[order], self.b[order]
        first = np.flatnonzero(np.concatenate([[True], (a[1:] != a[:-1]) | (b[1:] != b[:-1])]))
        return a[first], b[first], np.diff(first, append=len(a))

    def profile(self, k: int) -> Profile:
        """E[S_{k,t}], the beta-binomial predictive, for every budget up to k. k may exceed the bank's N."""
        require(is_whole(k, 1), "k", k, "use an integer >= 1")
        a, b, counts = self.cells()
        step = max(1, BLOCK // (k + 1))
        law = sum(
            counts[i : i + step] @ beta_binomial(k, a[i : i + step], b[i : i + step]) for i in range(0, len(a), step)
        )
        return Profile({k: law / self.questions}, "posterior mean", self.questions, self.remark)

    def covariance(self, k: int) -> Array:
        """Cov(S_{k,t}, S_{k,u}) for t, u = 1..k: ``[k, k]``."""
        require(is_whole(k, 1), "k", k, "use an integer >= 1")
        a, b, counts = self.cells()
        step = max(1, COVARIANCE // (k + 1) ** 2)
        parts = [
            np.tensordot(counts[i : i + step], _covariance(k, a[i : i + step], b[i : i + step]), 1)
            for i in range(0, len(a), step)
        ]
        return np.sum(parts, axis=0) / self.questions**2

    def draws(self, key: Key, n: int = 4000, over_questions: bool = False) -> Draws:
        """n draws of all p_q, from which every k, threshold and summary is computed.

        ``over_questions`` also reweights the questions in every draw, by the Bayesian bootstrap: the draws are then
        about further questions like these, and not about these questions alone.
        """
        require(is_whole(n, 2), "n", n, "use at least two draws")
        return Draws(self, key, n, over_questions)


def _covariance(k: int, a: Array, b: Array) -> Array:
    """Cov(κ_t(p), κ_u(p)) under Beta(a, b): ``[C]`` -> ``[C, k, k]``, without subtracting second moments.

    With π the predictive law of one batch of k and ρ the ratio of the joint law of two batches to π ⊗ π, the
    covariance is Σ π_i π_j (ρ_ij - 1) over either quadrant cut at (t, u); the one whose terms share a sign is taken.
    """
    pi = beta_binomial(k, a, b)
    i, u = np.arange(k + 1)[:, None], np.arange(k)
    a, b, s = a[:, None, None], b[:, None, None], (a + b)[:, None, None]

    def risen(x: Array, i: Array) -> Array:  # Σ_{u<j} log(1 + i / (x + u)), j = 0..k
        terms = np.log1p(i / (x + u))
        return np.concatenate([np.zeros_like(terms[..., :1]), np.cumsum(terms, axis=-1)], axis=-1)

    log_rho = risen(a, i) + risen(b, i)[:, ::-1, ::-1] - risen(s, np.array([[k]]))[..., -1:]
    terms = pi[:, :, None] * pi[:, None, :] * np.expm1(log_rho)
    high = np.cumsum(np.cumsum(terms[:, ::-1, ::-1], axis=1), axis=2)[:, ::-1, ::-1]  # i >= t, j >= u
    low = np.cumsum(np.cumsum(terms, axis=1), axis=2)  # i <= t, j <= u
    mixed = np.cumsum(np.cumsum(terms[:, :, ::-1], axis=1), axis=2)[:, :, ::-1]  # i <= t, j >= u
    t = np.arange(1, k + 1)
    upper = t > (k * a / s)[..., 0]  # [C, k]
    both, neither = upper[:, :, None] & upper[:, None, :], ~upper[:, :, None] & ~upper[:, None, :]
    cross = -np.where(upper[:, None, :], mixed[:, :-1, 1:], mixed.transpose(0, 2, 1)[:, 1:, :-1])
    return np.where(both, high[:, 1:, 1:], np.where(neither, low[:, :-1, :-1], cross))


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """R posterior draws of all success probabilities. The key makes them again wherever they are needed.

    A functional may be applied to the draws themselves; to apply many, take ``profile(k)`` once, at the largest k.
    """

    posterior: Posterior
    key: Key
    n: int
    over_questions: bool = False

    def blocks(self) -> Iterator[tuple[Array, Array | None]]:
        """``(p [R, q], weight [R, q] or None)``, block by block of the questions."""
        rng = generator(self.key)
        step = max(1, BLOCK // self.n)
        for first in range(0, self.posterior.questions, step):
            a, b = self.posterior.a[first : first + step], self.posterior.b[first : first + step]
            p = rng.beta(a, b, size=(self.n, len(a)))
            yield p, rng.standard_exponential(p.shape) if self.over_questions else None

    def profile(self, k: int) -> Profile:
        """S_{k,t} of each draw, for every budget up to k: a profile with the leading axis ``[R]``."""
        require(is_whole(k, 1), "k", k, "use an integer >= 1")
        law = sum(mean_binomial(k, p, weight) for p, weight in self.blocks())
        law = law / law.sum(axis=-1, keepdims=True)
        return Profile({k: law}, "posterior draws", self.posterior.questions, self.posterior.remark)

    @property
    def covers(self) -> tuple[str, ...]:
        """Which randomness the draws are about."""
        return ("questions", "draws") if self.over_questions else ("draws",)

    def at(self, k: int) -> Array:
        """S_{k,t} of each draw: ``[R, k]``."""
        return self.profile(k).at(k)

    def tail(self, k: int, tau: float) -> Array:
        """S_{k,⌈τk⌉} of each draw: ``[R]``."""
        return self.profile(k).tail(k, tau)

    def discovery(self, k: int) -> Array:
        """S_{j,1} for j = 1..k of each draw: ``[R, k]``."""
        return self.profile(k).discovery(k)

    def reach(self, k: int) -> tuple[Array, Array]:
        """Pass@k of each draw ``[R, 1]``, and the scores (0, 1)."""
        return self.profile(k).reach(k)

    def ends(self, k: int, blend: Callable[[Array, Array], Array]) -> Array:
        """The mean over questions of blend(S_{k,1}, S_{k,k}) of each question, in each draw: ``[R]``."""
        total, weights = np.zeros(self.n), np.zeros(self.n)
        for p, weight in self.blocks():
            with np.errstate(divide="ignore"):  # p = 1 rounds to a certain success
                values = blend(-np.expm1(k * np.log1p(-p)), p**k)
            weight = np.ones_like(p) if weight is None else weight
            total, weights = total + (values * weight).sum(axis=-1), weights + weight.sum(axis=-1)
        return total / weights


def credible(values: Array, covers: tuple[str, ...] = ("draws",), level: float = 0.95, note: str = "") -> Estimate:
    """The posterior mean and equal-tailed interval of draws ``[R]`` of any quantity, differences included."""
    require(0 < level < 1, "level", level, "use a probability in (0, 1)")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(values.mean()), float(low), float(high), level, covers, note)


def refitted(tally: Tally, prior: BetaPrior, k: int, key: Key, n: int = 200) -> Profile:
    """What ``Posterior.of(tally, fit_prior(tally)).profile(k)`` would have been in n other studies: ``[n]``.

    Empirical Bayes takes its fitted numbers for known. Where questions fare alike the fitted prior has no spread, and
    neither draws of p nor other weights of the questions say that its mean is a guess too. So each study draws its
    questions from ``prior`` and as many candidates as there were, and fits a prior of its own (Laird and Louis, 1987).

    >>> even = Tally.of([[1, 0, 1, 0]] * 20)
    >>> means = refitted(even, fit_prior(even), 1, Key("doc", "refit", 0), n=60).at(1)[:, 0]
    >>> 0.03 < float(means.std()) < 0.09  # a coin tossed 80 times: 0.056
    True
    """
    tally.need_independence("an empirical-Bayes prior")
    require(is_whole(n, 2), "n", n, "use at least two studies")
    rng, size = generator(key), (n, tally.questions)
    correct = rng.binomial(tally.graded, rng.beta(prior.alpha, prior.beta, size=size))
    studies = [Tally(each, tally.graded) for each in correct]
    laws = [Posterior.of(study, fit_prior(study)).profile(k).mass[k] for study in studies]
    return Profile({k: np.stack(laws)}, "posterior means", tally.questions)


def sensitivity(
    tally: Tally,
    functional: Functional,
    key: Key,
    draws: int = 4000,
    level: float = 0.95,
    priors: Mapping[str, BetaPrior] | None = None,
) -> dict[str, Estimate]:
    """The same posterior number under several priors: flat, Jeffreys and fitted unless others are named.

    Where the rows differ by more than the intervals, the bank has not decided, and the prior has.
    """
    priors = priors or {"flat": BetaPrior(), "Jeffreys": JEFFREYS, "fitted": fit_prior(tally)}
    found = {}
    for name, prior in priors.items():
        posterior = Posterior.of(tally, prior)
        values = functional(posterior.draws(key, draws))
        found[name] = credible(values, level=level, note=f"Beta({prior.alpha:.4g}, {prior.beta:.4g})")
    return found

"""Item response models: how able a model and how hard a question, by marginal likelihood.

Abilities are normal and integrated out; questions have parameters. A model that answered 120 questions 80 times has a
posterior far narrower than the gaps of any fixed quadrature, so the nodes move to it (adaptive Gauss–Hermite). The
gradient of the marginal likelihood is the posterior mean of the complete one (Fisher's identity, the ascent that EM
makes); L-BFGS follows it, because EM itself crawls where abilities and difficulties are this well determined together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require
from ramify.metrics.bankcurve import floats

__all__ = ["Items", "Rasch", "TwoParameter"]


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A fitted model: P(right) = σ(discrimination (ability - difficulty)), abilities normal around 0."""

    ability: Array  # [M] posterior mean
    error: Array  # [M] posterior standard deviation, the questions' parameters taken as known
    difficulty: Array  # [Q]
    discrimination: Array  # [Q]
    spread: float  # of the abilities
    log_likelihood: float  # marginal, with the weak prior on the questions' parameters
    steps: int


class _Nodes(NamedTuple):
    at: Array  # [M, K] abilities
    weight: Array  # [M, K] posterior weights, summing to one
    log_marginal: Array  # [M]


@method
class Rasch:
    """One parameter a question (Rasch, 1960): its difficulty. The abilities' spread is estimated.

    ``weak`` is the spread of a normal prior on difficulties: without one a question that all or none solve would be
    infinitely easy or hard. ``math.inf`` has none, and refuses such questions.
    """

    nodes: int = 15
    weak: float = 5.0
    tolerance: float = 1e-6
    steps: int = 2000

    def __post_init__(self) -> None:
        _valid(self)

    def __call__(self, table: Array) -> Array:
        return self.fit(table).ability

    def fit(self, table: Array) -> Items:
        """The model of a table ``[M, Q(, N)]`` of 0 and 1, NaN for missing."""
        return _fit(table, self.nodes, self.weak, None, self.tolerance, self.steps)


@method
class TwoParameter:
    """Two parameters a question (Birnbaum, 1968): difficulty and discrimination. Abilities are standard normal.

    ``weak`` as in ``Rasch``; ``weak_log`` is the spread of a normal prior on log discrimination.
    """

    nodes: int = 15
    weak: float = 5.0
    weak_log: float = 1.0
    tolerance: float = 1e-6
    steps: int = 2000

    def __post_init__(self) -> None:
        _valid(self)
        ok = 0 < self.weak_log < math.inf
        require(
            ok, "TwoParameter.weak_log", self.weak_log, "use a spread > 0; a separated question has no finite slope"
        )

    def __call__(self, table: Array) -> Array:
        return self.fit(table).ability

    def fit(self, table: Array) -> Items:
        """The model of a table ``[M, Q(, N)]`` of 0 and 1, NaN for missing."""
        return _fit(table, self.nodes, self.weak, self.weak_log, self.tolerance, self.steps)


def _valid(model: Rasch | TwoParameter) -> None:
    name = type(model).__name__
    require(is_whole(model.nodes, 3), f"{name}.nodes", model.nodes, "use at least 3 nodes")
    require(model.weak > 0, f"{name}.weak", model.weak, "use a spread > 0, or inf for none")
    require(0 < model.tolerance < 1, f"{name}.tolerance", model.tolerance, "use a small number > 0")
    require(is_whole(model.steps, 1), f"{name}.steps", model.steps, "use a number of steps >= 1")


def counts(table: Array) -> tuple[Array, Array]:
    """(right [M, Q], trials [M, Q]) of a table ``[M, Q(, N)]`` of 0 and 1."""
    table = floats(table, "table")
    table = table[..., None] if table.ndim == 2 else table
    require(table.ndim == 3, "table", table.shape, "use [M, Q] or [M, Q, N]")
    there = ~np.isnan(table)
    outside = table[there & (table != 0) & (table != 1)]
    require(outside.size == 0, "table", outside[:1].tolist(), "use 0 and 1: item response models count successes")
    return np.where(there, table, 0.0).sum(axis=-1), there.sum(axis=-1).astype(float)


def _fit(table: Array, nodes: int, weak: float, weak_log: float | None, tolerance: float, steps: int) -> Items:
    right, trials = counts(table)
    if weak == math.inf:
        flat = (right.sum(axis=0) == 0) | (right == trials).all(axis=0)
        require(not flat.any(), "table", int(flat.sum()), "questions that all or none solve: use a finite weak prior")
    share, many = (right.sum(axis=0) + 0.5) / (trials.sum(axis=0) + 1), right.shape[1]
    # One curvature for each parameter at the start makes the problem round enough for L-BFGS.
    scale = 1 / np.sqrt(trials.sum(axis=0) * share * (1 - share) + 1 / weak**2 + 1e-6)
    start = np.concatenate([-np.log(share / (1 - share)) / scale, np.zeros(many if weak_log else 1)])
    mode = np.zeros(len(right))

    def parts(x: Array) -> tuple[Array, Array, float]:
        if weak_log is None:
            return x[:many] * scale, np.zeros(many), math.exp(x[many])
        return x[:many] * scale, x[many:] * scale, 1.0

    def loss(x: Array) -> tuple[float, Array]:
        nonlocal mode  # only where the search for the posterior's mode begins
        b, log_a, spread = parts(x)
        found = _expect(right, trials, b, log_a, spread, nodes, mode)
        mode = (found.weight * found.at).sum(axis=1)
        value, in_b, in_a = _slopes(right, trials, found, b, log_a, weak, weak_log)
        if weak_log is None:
            in_spread = (found.weight * (found.at / spread) ** 2).sum() - len(right)
            return -value, -np.append(in_b * scale, in_spread)
        return -value, -np.concatenate([in_b * scale, in_a * scale])

    size = max(float(trials.sum()), 1.0)
    options: Any = {
        "maxiter": steps,
        "maxfun": 2 * steps,
        "ftol": 1e-13,
        "gtol": tolerance * math.sqrt(size),
        "maxcor": 20,
    }
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    slope = float(np.abs(result.jac).max())
    if slope > 1e3 * tolerance * math.sqrt(size):
        raise InvalidValue(f"no maximum after {result.nit} steps (slope {slope:.2g}): raise steps, or tighten weak")
    b, log_a, spread = parts(result.x)
    found = _expect(right, trials, b, log_a, spread, nodes, mode)
    mean = (found.weight * found.at).sum(axis=1)
    error = np.sqrt((found.weight * (found.at - mean[:, None]) ** 2).sum(axis=1))
    return Items(mean, error, b, np.exp(log_a), spread, -float(result.fun), int(result.nit))


def _slopes(
    right: Array, trials: Array, found: _Nodes, b: Array, log_a: Array, weak: float, weak_log: float | None
) -> tuple[float, Array, Array]:
    """The penalised log marginal likelihood, and its gradient in difficulty and log discrimination ``[Q]``."""
    a, off = np.exp(log_a), found.at[..., None] - b
    residual = (right[:, None] - trials[:, None] * expit(a * off)) * found.weight[..., None]  # [M, K, Q]
    value = float(found.log_marginal.sum()) - float((b**2).sum()) / (2 * weak**2)
    in_b = -a * residual.sum(axis=(0, 1)) - b / weak**2
    if weak_log is None:
        return value, in_b, np.zeros(b.shape)
    in_a = a * (residual * off).sum(axis=(0, 1)) - log_a / weak_log**2
    return value - float((log_a**2).sum()) / (2 * weak_log**2), in_b, in_a


def _expect(right: Array, trials: Array, b: Array, log_a: Array, spread: float, nodes: int, start: Array) -> _Nodes:
    """Gauss–Hermite nodes centred on each model's posterior, scaled by its curvature there."""
    a = np.exp(log_a)
    mode = start.copy()
    for _ in range(50):  # Newton on a concave log posterior
        p = expit(a * (mode[:, None] - b))
        gradient = ((right - trials * p) * a).sum(axis=1) - mode / spread**2
        curvature = (trials * p * (1 - p) * a**2).sum(axis=1) + 1 / spread**2
        move = np.clip(gradient / curvature, -2.0, 2.0)
        mode = mode + move
        if np.abs(move).max() < 1e-10:
            break
    z, w = np.polynomial.hermite.hermgauss(nodes)
    width = 1 / np.sqrt(curvature)
    at = mode[:, None] + math.sqrt(2) * width[:, None] * z  # [M, K]
    x = a * (at[..., None] - b)  # [M, K, Q]
    log_joint = (right[:, None] * log_expit(x) + (trials - right)[:, None] * log_expit(-x)).sum(axis=-1)
    log_joint -= at**2 / (2 * spread**2) + math.log(spread * math.sqrt(2 * math.pi))
    terms = log_joint + np.log(w) + z**2 + np.log(math.sqrt(2) * width)[:, None]
    top = terms.max(axis=1, keepdims=True)
    total = np.exp(terms - top).sum(axis=1)
    return _Nodes(at, np.exp(terms - top) / total[:, None], top[:, 0] + np.log(total))

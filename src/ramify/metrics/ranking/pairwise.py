"""Strengths from pairs and orders: Bradley–Terry with ties and Plackett–Luce, by Newton on concave likelihoods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import InvalidValue, require
from ramify.metrics.bankcurve import floats
from ramify.metrics.ranking.record import by_question

__all__ = ["Duels", "PlackettLuce", "Strengths", "TiedBradleyTerry", "duels"]


class Duels(NamedTuple):
    """How often model i did better than j, and as well as j."""

    wins: Array  # [M, M]
    ties: Array  # [M, M] symmetric


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """Log-strengths with mean zero. ``error`` takes every comparison for independent; resample questions for more."""

    scores: Array  # [M]
    error: Array  # [M] from the information matrix
    covariance: Array  # [M, M]
    tie: float  # ν of Davidson, θ of Rao and Kupper; 0 and 1 where ties are not modelled
    log_likelihood: float


def duels(table: Array, pairing: str = "all") -> Duels:
    """The duels that a table ``[M, Q(, N)]`` holds.

    ``pairing="all"`` compares every candidate of i with every one of j on a question and counts N comparisons: which
    candidates share an index is an accident. ``"index"`` compares those with the same index.

    >>> duels(np.array([[[1, 1]], [[1, 0]]])).wins.tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    require(pairing in ("all", "index"), "pairing", pairing, "use 'all' or 'index'")
    table = floats(table, "table")
    table = table[..., None] if table.ndim == 2 else table
    require(table.ndim == 3, "table", table.shape, "use [M, Q] or [M, Q, N]")
    many = len(table)
    wins, ties = np.zeros((2, many, many))
    for i in range(many):
        for j in range(i):
            wins[i, j], wins[j, i], ties[i, j] = (_all if pairing == "all" else _index)(table[i], table[j])
            ties[j, i] = ties[i, j]
    return Duels(wins, ties)


def _index(one: Array, two: Array) -> tuple[float, float, float]:
    return float((one > two).sum()), float((two > one).sum()), float((one == two).sum())


def _all(one: Array, two: Array) -> tuple[float, float, float]:
    """Σ_q N_q P(>), N_q the smaller number of graded candidates: binary tables need their means alone."""
    n = [(~np.isnan(each)).sum(axis=-1) for each in (one, two)]
    both = (n[0] > 0) & (n[1] > 0)
    weight, scale = np.minimum(*n)[both], (n[0] * n[1])[both]
    if not all(np.isin(each[~np.isnan(each)], (0, 1)).all() for each in (one, two)):
        above = (one[both][:, :, None] > two[both][:, None, :]).sum(axis=(1, 2))
        below = (one[both][:, :, None] < two[both][:, None, :]).sum(axis=(1, 2))
    else:
        right = [np.nansum(each, axis=-1)[both] for each in (one, two)]
        above, below = right[0] * (n[1][both] - right[1]), right[1] * (n[0][both] - right[0])
    wins = (weight * above / scale).sum(), (weight * below / scale).sum()
    return float(wins[0]), float(wins[1]), float(weight.sum() - sum(wins))


@method
class TiedBradleyTerry:
    """P(i beats j) from strengths (Bradley and Terry, 1952), with ties.

    ``ties="davidson"``: win : loss : tie = π_i : π_j : ν √(π_i π_j) (Davidson, 1970). ``"rao-kupper"``: i wins with
    π_i / (π_i + θ π_j) (Rao and Kupper, 1967). ``"half"``: a tie is half a win for each. ``prior`` is the precision of
    a normal prior on the log-strengths; at 0 a roster without finite estimates is refused.
    """

    ties: str = "davidson"
    prior: float = 0.0
    pairing: str = "all"

    def __post_init__(self) -> None:
        require(self.ties in _MODELS, "TiedBradleyTerry.ties", self.ties, f"use one of {', '.join(_MODELS)}")
        require(self.prior >= 0, "TiedBradleyTerry.prior", self.prior, "use a precision >= 0")
        require(self.pairing in ("all", "index"), "TiedBradleyTerry.pairing", self.pairing, "use 'all' or 'index'")

    def __call__(self, table: Array) -> Array:
        return self.fit(duels(table, self.pairing)).scores

    def fit(self, found: Duels) -> Strengths:
        """The strengths that make these duels most likely."""
        wins, ties = (np.asarray(each, dtype=float) for each in found)
        if not self.prior:
            must_connect((wins > 0) | (ties > 0), "TiedBradleyTerry")
        if self.ties == "half" or not ties.any():
            return _fit(wins + ties / 2, np.zeros(ties.shape), _half, None, self.prior)
        require(wins.any(), "duels", "only ties", "nothing tells these models apart")
        return _fit(wins, ties, _MODELS[self.ties], 0.5, self.prior)


def must_connect(beats: Array, who: str) -> None:
    """Refuse where a group of models never lost to the others: its strength would be infinite (Ford, 1957)."""
    if connected_components(beats, connection="strong")[0] > 1:
        raise InvalidValue(f"{who} has no finite estimate: some models never lose to the others; use prior=1.0")


class _Chance(NamedTuple):
    """Of win, loss and tie: probabilities and their derivatives in the difference d and in the tie parameter."""

    p: Array  # [3, P]
    in_d: Array
    in_tie: Array


def _half(d: Array, _tie: float) -> _Chance:
    p, zero = 1 / (1 + np.exp(-d)), np.zeros(d.shape)
    return _Chance(np.stack([p, 1 - p, zero]), np.stack([p * (1 - p), -p * (1 - p), zero]), np.zeros((3, d.size)))


def _davidson(d: Array, tie: float) -> _Chance:
    """Three utilities d/2, -d/2 and log ν: a multinomial logit."""
    weight = np.exp(np.stack([d / 2, -d / 2, np.full(d.shape, tie)]))
    p = weight / weight.sum(axis=0)
    slope = np.array([0.5, -0.5, 0.0])[:, None]
    mean = (p * slope).sum(axis=0)
    return _Chance(p, p * (slope - mean), p * (np.array([0.0, 0.0, 1.0])[:, None] - p[2]))


def _rao_kupper(d: Array, tie: float) -> _Chance:
    """An ordered logit with thresholds ±η, η = log θ > 0."""
    a, b = 1 / (1 + np.exp(tie - d)), 1 / (1 + np.exp(tie + d))
    slope = a * (1 - a), b * (1 - b)
    between = np.sinh(tie) / (np.cosh(tie) + np.cosh(d))  # 1 - a - b, without cancellation
    in_d, in_tie = (slope[0], -slope[1], slope[1] - slope[0]), (-slope[0], -slope[1], slope[0] + slope[1])
    return _Chance(np.stack([a, b, between]), np.stack(in_d), np.stack(in_tie))


_MODELS: dict[str, Callable[[Array, float], _Chance]] = {
    "davidson": _davidson,
    "rao-kupper": _rao_kupper,
    "half": _half,
}


def _fit(
    wins: Array, ties: Array, model: Callable[[Array, float], _Chance], tie: float | None, prior: float
) -> Strengths:
    """Fisher scoring with step halving on (λ, tie); the likelihoods are concave, so there is one maximum."""
    many = len(wins)
    i, j = np.triu_indices(many, 1)
    counts = np.stack([wins[i, j], wins[j, i], ties[i, j]])  # [3, P]
    apart = np.zeros((i.size, many))
    apart[np.arange(i.size), i], apart[np.arange(i.size), j] = 1.0, -1.0
    free = tie is not None

    def value(at: Array) -> float:
        p = model(apart @ at[:many], at[many]).p
        return float(
            np.where(counts > 0, counts * np.log(np.maximum(p, 1e-300)), 0.0).sum() - prior / 2 * (at[:many] ** 2).sum()
        )

    def slopes(at: Array) -> tuple[Array, Array]:
        p, in_d, in_tie = model(apart @ at[:many], at[many])
        p = np.maximum(p, 1e-300)
        into = np.stack([in_d, in_tie])  # [2, 3, P]
        first = (counts / p * into).sum(axis=1)
        info = np.einsum("acp,bcp,cp,p->abp", into, into, 1 / p, counts.sum(axis=0))
        gradient = np.append(apart.T @ first[0] - prior * at[:many], first[1].sum() if free else 0.0)
        matrix = np.zeros((many + 1, many + 1))
        matrix[:many, :many] = apart.T @ (info[0, 0, :, None] * apart) + prior * np.eye(many)
        matrix[:many, many] = matrix[many, :many] = apart.T @ info[0, 1]
        matrix[many, many] = info[1, 1].sum()
        return gradient, matrix if free else np.where(
            np.eye(many + 1)[many] > 0, 0.0, matrix * (np.arange(many + 1) < many)[:, None]
        )

    at = _climb(np.append(np.zeros(many), tie or 0.0), value, slopes, lambda x: model is not _rao_kupper or x[many] > 0)
    covariance = np.linalg.pinv(slopes(at)[1], rcond=1e-12, hermitian=True)[:many, :many]
    scores = at[:many] - at[:many].mean()
    shown = float(np.exp(at[many])) if free else (1.0 if model is _rao_kupper else 0.0)
    return Strengths(scores, np.sqrt(np.diag(covariance)), covariance, shown, value(at))


def _climb(
    at: Array,
    value: Callable[[Array], float],
    slopes: Callable[[Array], tuple[Array, Array]],
    legal: Callable[[Array], bool] = lambda _: True,
    steps: int = 200,
) -> Array:
    """The maximum of a concave function, by Newton steps that are halved until they gain."""
    height = value(at)
    for _ in range(steps):
        gradient, matrix = slopes(at)
        step = np.linalg.pinv(matrix, rcond=1e-12, hermitian=True) @ gradient
        if not np.abs(step).max() > 1e-12:
            return at
        size = 1.0
        while size > 1e-10 and not (legal(at + size * step) and value(at + size * step) >= height):
            size /= 2
        if size <= 1e-10:  # no gain left above rounding
            return at
        at = at + size * step
        gained, height = value(at) - height, value(at)
        if np.abs(size * step).max() < 1e-9 and gained <= 1e-12 * abs(height):
            return at
    raise InvalidValue(f"the likelihood still grows after {steps} steps: use prior=1.0")


@method
class PlackettLuce:
    """Strengths from orders: the best is chosen from all, the next from the rest (Luce, 1959; Plackett, 1975).

    Every question orders the models by their mean on it (``events="question"``), or every candidate index does
    (``"sample"``). Tied models are each chosen from all that are not better (Breslow, 1974). ``prior`` as in
    ``TiedBradleyTerry``.
    """

    events: str = "question"
    prior: float = 0.0

    def __post_init__(self) -> None:
        require(self.events in ("question", "sample"), "PlackettLuce.events", self.events, "use 'question' or 'sample'")
        require(self.prior >= 0, "PlackettLuce.prior", self.prior, "use a precision >= 0")

    def __call__(self, table: Array) -> Array:
        return self.fit(table).scores

    def fit(self, table: Array) -> Strengths:
        """The strengths that make the orders of a table ``[M, Q(, N)]`` most likely."""
        values = by_question(table) if self.events == "question" else floats(table, "table").reshape(len(table), -1)
        sets, times, chosen = _stages(values)
        if not self.prior:
            beats = (values[:, None] > values[None, :]).any(axis=-1)
            must_connect(beats, "PlackettLuce")
        many = len(values)

        def value(at: Array) -> float:
            weight = np.exp(at - at.max())
            return float(chosen @ at - times @ (np.log(sets @ weight) + at.max()) - self.prior / 2 * (at**2).sum())

        def slopes(at: Array) -> tuple[Array, Array]:
            p = sets * np.exp(at - at.max())
            p /= p.sum(axis=1, keepdims=True)
            matrix = np.diag(times @ p) - p.T @ (times[:, None] * p)
            return chosen - times @ p - self.prior * at, matrix + self.prior * np.eye(many)

        at = _climb(np.zeros(many), value, slopes)
        covariance = np.linalg.pinv(slopes(at)[1], rcond=1e-12, hermitian=True)
        return Strengths(at - at.mean(), np.sqrt(np.diag(covariance)), covariance, 0.0, value(at))


def _stages(values: Array) -> tuple[Array, Array, Array]:
    """(sets chosen from [S, M], how often [S], how often each model was chosen [M]) of orders ``values [M, E]``.

    A choice from those that are all equal says nothing and is left out.
    """
    model, event = np.nonzero((values[:, None] > values[None, :]).any(axis=1))  # above somebody
    sets = (values[:, event] <= values[model, event]).T
    found, times = np.unique(np.packbits(sets, axis=1), axis=0, return_counts=True)
    chosen = np.bincount(model, minlength=len(values))
    members = np.unpackbits(found, axis=1, count=len(values)).astype(float)
    return members, times.astype(float), chosen.astype(float)

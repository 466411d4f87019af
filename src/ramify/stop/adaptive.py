"""Adaptive-Consistency: stop when the leading answer is likely to stay ahead. Three models of what is still to come."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import betainc, gammainc, gammaincc, gammaln, roots_genlaguerre

from ramify.arrays import Array
from ramify.bank import Candidates, Verdict
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.stop.counts import Stream, verdicts
from ramify.types import Key

__all__ = ["AdaptiveConsistency", "CrpConsistency", "DirichletConsistency"]


@method
class AdaptiveConsistency:
    """Stop when the leading answer is likely to be ahead of the runner-up (Aggarwal et al., 2023).

    P(p > 1/2) for p ~ Beta(v1 + 1, v2 + 1), v1 >= v2 the two largest counts: in integers, 1 - 2^-N Σ_{k<=v2} C(N, k)
    with N = v1 + v2 + 1. No valid answer: 0. The released code stops at 40 samples too:
    ``AnyOf(AdaptiveConsistency(), AtMost(40))``.

    >>> verdict = AdaptiveConsistency(0.95)(Candidates(np.array([0] * 8 + [1] * 2))).now
    >>> bool(verdict.stop), round(float(verdict.value), 4)
    (True, 0.9673)
    """

    threshold: float = 0.95

    def __post_init__(self) -> None:
        _probability("AdaptiveConsistency", self.threshold)

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        return verdicts(candidates, lambda stream: beta_leads(stream.first, stream.second, self.threshold))


def _probability(name: str, threshold: float) -> None:
    require(0 < threshold < 1, f"{name}.threshold", threshold, "use a probability in (0, 1)")


EXACT = 256  # beyond so many votes the integers get long, and double precision decides


def beta_leads(first: Array, second: Array, threshold: float) -> tuple[Array, Array]:
    """Whether P(Beta(v1 + 1, v2 + 1) > 1/2) reaches the threshold, decided in integers, and P rounded once."""
    base = int(second.max(initial=0)) + 1
    pairs, where = np.unique(first.reshape(-1) * base + second.reshape(-1), return_inverse=True)
    exact = [_beta_leads(*divmod(int(pair), base)) for pair in pairs]
    limit = Fraction(threshold)
    reached, value = np.array([p >= limit for p in exact], dtype=bool), np.array([float(p) for p in exact])
    return reached[where].reshape(first.shape), value[where].reshape(first.shape)


@lru_cache(1 << 16)
def _beta_leads(v1: int, v2: int) -> Fraction | float:
    total = v1 + v2 + 1
    if total > EXACT:
        return float(betainc(v2 + 1, v1 + 1, 0.5))
    return Fraction((1 << total) - _tail(total)[v2], 1 << total) if v1 else Fraction(0)


@lru_cache(1 << 10)
def _tail(total: int) -> tuple[int, ...]:
    """Σ_{k<=j} C(N, k) for j = 0 .. N / 2."""
    return tuple(accumulate(math.comb(total, k) for k in range(total // 2 + 1)))


# ------------------------------------------------------------------------------------------------------------ Dirichlet

STEP, NODES, REACH = 1 / 16, 256, 8.0
FLOOR, GRID = -40.0, 2.0**44


@method
class DirichletConsistency:
    """Stop when the leader probably has the largest share among all m observed answers (Aggarwal et al., 2023).

    P(p_1 > p_j for all j) for p ~ Dirichlet(v_j + 1): with independent Gammas, ∫ f_{v1+1}(g) Π_{j≠1} F_{v_j+1}(g) dg.
    In x = √g the leader's density is about as wide whatever its count, so 256 equidistant nodes around it are exact
    to 1e-12. Fewer than three answers: the Beta rule. All counts equal: 1/m.

    >>> verdict = DirichletConsistency()(Candidates(np.array([0] * 5 + [1] * 2 + [2]))).now
    >>> bool(verdict.stop), round(float(verdict.value), 5)
    (False, 0.81796)
    """

    threshold: float = 0.95

    def __post_init__(self) -> None:
        _probability("DirichletConsistency", self.threshold)

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        return verdicts(candidates, self._rows)

    def _rows(self, stream: Stream) -> tuple[Array, Array]:
        first, m = stream.first, stream.distinct
        stop, value = beta_leads(first, stream.second, self.threshold)
        many = m >= 3
        if many.any():
            value[many] = dirichlet_leads(stream.histogram()[many], first[many])
            level = many & (stream.n == m * first)
            value[level] = 1 / m[level]
            stop[many] = value[many] >= self.threshold
        return stop, value


def dirichlet_leads(histogram: Array, first: Array) -> Array:
    """[c] the leader's probability from ``histogram [c, C]`` of the counts, its own among them.

    Σ_j log F_{v_j+1} at the nodes is a matrix product. The logarithms lie on a grid of 2^-44, which makes the product
    exact in any order of summation: a verdict does not depend on what else is in the batch.
    """
    out = np.empty(first.shape)
    for v1 in map(int, np.unique(first)):
        rows, (at, weight) = first == v1, _nodes(v1)
        others = histogram[rows, : v1 + 1].astype(np.float64)
        others[:, -1] -= 1  # the leader itself
        held = np.flatnonzero(others.any(axis=0))
        inside = others[:, held] @ _log_cdf(max(6, v1.bit_length()))[held, at : at + NODES]
        out[rows] = (np.exp(inside) * weight).sum(axis=-1)
    return np.minimum(out, 1.0)


@lru_cache(1 << 12)
def _nodes(v1: int) -> tuple[int, Array]:
    """The first of the leader's nodes on the lattice x = k STEP, and the weights of its density at 256 of them."""
    a = v1 + 1
    at = max(0, math.floor((math.sqrt(a) - REACH) / STEP))
    x = (at + np.arange(NODES)) * STEP
    with np.errstate(divide="ignore"):
        log_weight = np.log(2 * STEP) + (2 * a - 1) * np.log(x) - x * x - gammaln(a)
    return at, np.exp(log_weight)


@lru_cache(16)
def _log_cdf(bits: int) -> Array:
    """[v + 1, k] log F_{v+1}(x_k²) on the grid, for counts of so many bits."""
    largest = (1 << bits) - 1
    at, _ = _nodes(largest)
    g = ((np.arange(at + NODES) * STEP) ** 2)[None]
    shape = np.arange(largest + 1)[:, None] + 1.0
    with np.errstate(divide="ignore"):
        below, above = gammainc(shape, g), gammaincc(shape, g)
        logs = np.where(below < 0.5, np.log(below), np.log1p(-above))
    return np.round(np.maximum(logs, FLOOR) * GRID) / GRID


# ------------------------------------------------------------------------------------------------------------------ CRP


@method
class CrpConsistency:
    """Stop when the leader will probably still lead at ``horizon`` valid answers, new answers included.

    The next answer is an old one with weight v_j, or a new one with weight α (a Chinese restaurant process); ties at
    the horizon go to the first to have appeared. Exact by generating functions for a given ``alpha``; without one, α
    follows Gamma(m, rate 1 + γ + ln n) and is integrated out by Gauss-Laguerre quadrature with ``nodes`` nodes. At
    the horizon: 1.
    """

    threshold: float = 0.95
    horizon: int = 40
    alpha: float | None = None
    nodes: int = 32

    def __post_init__(self) -> None:
        _probability("CrpConsistency", self.threshold)
        require(is_whole(self.horizon, 1), "CrpConsistency.horizon", self.horizon, "use a number of answers >= 1")
        ok = self.alpha is None or self.alpha > 0
        require(ok, "CrpConsistency.alpha", self.alpha, "use None to integrate it out, or a number > 0")
        require(is_whole(self.nodes, 1), "CrpConsistency.nodes", self.nodes, "use a number of nodes >= 1")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        return verdicts(candidates, self._rows)

    def _rows(self, stream: Stream) -> tuple[Array, Array]:
        counts, n, m = stream.counts(), stream.n, stream.distinct
        value = np.where(n >= self.horizon, 1.0, 0.0)
        for r, i in zip(*np.nonzero((n > 0) & (n < self.horizon)), strict=True):
            held = counts[r, i, : m[r, i]].tolist()
            lead = held.index(max(held))
            state = (tuple(sorted(held[:lead])), held[lead], tuple(sorted(held[lead + 1 :])))
            value[r, i] = crp_leads(*state, self.horizon, self.alpha, self.nodes)
        return value >= self.threshold, value


@lru_cache(1 << 16)
def crp_leads(
    earlier: tuple[int, ...], lead: int, later: tuple[int, ...], horizon: int, alpha: float | None, nodes: int
) -> float:
    """The probability that the leader leads at the horizon, given counts of answers that appeared before it and after.

    R answers are to come. If k of them are the leader's, it ends at t = v1 + k; an earlier answer must stay below t, a
    later or a new one may reach it. With rising factorials v^(i), the number of ways is R! times
    Σ_k v1^(k)/k! [x^(R-k)] Π_j (Σ_{i<=cap_j} v_j^(i)/i! x^i) exp(α Σ_{s<=t} x^s/s), out of (n + α)^(R).
    """
    n, left = sum(earlier) + lead + sum(later), horizon - sum(earlier) - lead - sum(later)
    k = np.arange(left + 1)  # also the powers of x
    old = np.zeros((left + 1, left + 1))  # [k, power]
    old[:, 0] = 1.0
    for held, slack in ((earlier, 1), (later, 0)):
        for v in held:
            cap = lead + k - v - slack
            old = _times(old, np.where(k <= cap[:, None], _rising(v, left), 0.0))
    new = _new_answers(n, 1 + len(earlier) + len(later), horizon, alpha, nodes)[lead + k]  # [k, power]
    rest = left - k[:, None] - k
    met = np.einsum("ki,ki->k", old, np.where(rest >= 0, new[k[:, None], rest], 0.0))
    return min(1.0, float((_rising(lead, left) * met).sum()))


def _rising(v: float, size: int) -> Array:
    """v^(i) / i! for i = 0 .. size."""
    i = np.arange(size)
    return np.concatenate([[1.0], np.cumprod((v + i) / (i + 1))])


def _times(one: Array, two: Array) -> Array:
    """Products of polynomials, row by row ``[k, power]``, cut at the same power."""
    size = one.shape[1]
    windows = sliding_window_view(np.pad(one, ((0, 0), (size - 1, 0))), size, axis=1)  # [k, power, back]
    product: Array = np.einsum("kpb,kb->kp", windows, two[:, ::-1])
    return product


@lru_cache(1 << 12)
def _new_answers(n: int, m: int, horizon: int, alpha: float | None, nodes: int) -> Array:
    """[t, u] E[R!/(n + α)^(R) [x^u] exp(α Σ_{s<=t} x^s / s)]: u votes for new answers, none of which gets more than t.

    The coefficient is a polynomial in α that does not depend on n and m, so its moments are all there is to integrate.
    """
    left = horizon - n
    alphas, weights = ([alpha], [1.0]) if alpha is not None else _alphas(n, m, nodes)
    scale = [weight / float(_rising(n + a, left)[-1]) for a, weight in zip(alphas, weights, strict=True)]
    moments = np.array(scale) @ (np.array(alphas)[:, None] ** np.arange(left + 1))  # [j] of α^j
    return np.einsum("tuj,j->tu", _new_by_tables(horizon)[: horizon + 1, : left + 1, : left + 1], moments)


@lru_cache(8)
def _new_by_tables(horizon: int) -> Array:
    """[t, u, j] the coefficient of α^j x^u in exp(α Σ_{s<=t} x^s / s): u votes for j new answers, each at most t."""
    size = horizon + 1
    table = np.zeros((size, size, size))
    table[:, 0, 0] = 1.0
    for u in range(1, size):  # from the derivative: u c_u = α Σ_{s<=t} c_{u-s}
        near = np.arange(u)[None, :] >= u - np.arange(size)[:, None]  # [t, u'] with u - u' <= t
        table[:, u, 1:] = np.einsum("tv,tvj->tj", near.astype(np.float64), table[:, :u, :-1]) / u
    return table


@lru_cache(1 << 12)
def _alphas(n: int, m: int, nodes: int) -> tuple[list[float], list[float]]:
    """Nodes and weights for α ~ Gamma(m, rate 1 + γ + ln n)."""
    x, weight = roots_genlaguerre(nodes, m - 1)
    rate = 1 + np.euler_gamma + math.log(n)
    return (x / rate).tolist(), (weight / weight.sum()).tolist()

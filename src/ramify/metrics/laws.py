"""The laws of counts that profiles are made of: hypergeometric, binomial, beta-binomial, and thinning.

Every probability here is a product of positive ratios taken outward from the mode and a sum of positive terms, so
relative errors stay near the number of factors times 1e-16, at any size and however far out in a tail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ramify.arrays import Array

__all__ = ["beta_binomial", "binomial", "hypergeometric", "mean_binomial", "tails", "thin"]

DIRECT = 256  # draws up to which powers of p neither under- nor overflow where it matters
BLOCK = 1 << 14  # probabilities worked on at a time, so that they stay in cache


def anchored(rise: Array, fall: Array, mode: Array) -> Array:
    """The law on 0..K with f(j + 1) / f(j) = rise / fall ``[..., K]``, built outward from its mode."""
    j = np.arange(rise.shape[-1])
    above = j >= np.asarray(mode)[..., None]
    up = np.divide(rise, fall, out=np.ones(rise.shape), where=above)
    down = np.divide(fall, rise, out=np.ones(rise.shape), where=~above)
    f = np.ones((*rise.shape[:-1], rise.shape[-1] + 1))
    f[..., 1:] = np.cumprod(up, axis=-1)
    f[..., :-1] *= np.cumprod(down[..., ::-1], axis=-1)[..., ::-1]
    return f / f.sum(axis=-1, keepdims=True)


def hypergeometric(k: int, hits: Any, misses: Any) -> Array:
    """P(j hits among k drawn without replacement), j = 0..k: ``[...]`` -> ``[..., k + 1]``. Zero if too few to draw.

    >>> hypergeometric(2, 3, 1).tolist()
    [0.0, 0.5, 0.5]
    """
    hits, misses = np.broadcast_arrays(
        np.asarray(hits, np.float64)[..., None], np.asarray(misses, np.float64)[..., None]
    )
    j = np.arange(k)
    rise, fall = np.maximum(hits - j, 0) * (k - j), (j + 1) * np.maximum(misses - k + j + 1, 0)
    enough = hits + misses >= k
    mode = np.floor((k + 1) * (hits + 1) / (hits + misses + 2))[..., 0]
    if enough.all():
        return anchored(rise, fall, mode)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(enough, anchored(rise, fall, mode), 0.0)


def beta_binomial(k: int, a: Any, b: Any) -> Array:
    """P(j of k succeed) for p ~ Beta(a, b), j = 0..k: ``[...]`` -> ``[..., k + 1]``.

    >>> beta_binomial(2, 1.0, 1.0).round(12).tolist()
    [0.333333333333, 0.333333333333, 0.333333333333]
    """
    a, b = np.broadcast_arrays(np.asarray(a, np.float64)[..., None], np.asarray(b, np.float64)[..., None])
    j = np.arange(k)
    rise, fall = (k - j) * (a + j), (j + 1) * (b + (k - j - 1))
    ushaped = (a < 1) & (b < 1)  # the larger end is the mode then
    mode = np.where(ushaped[..., 0], np.where(b > a, 0, k)[..., 0], np.count_nonzero(rise > fall, axis=-1))
    return anchored(rise, fall, mode)


def binomial(k: int, p: Any) -> Array:
    """P(j of k succeed), j = 0..k: ``p [...]`` -> ``[..., k + 1]``."""
    p = np.asarray(p, np.float64)[..., None]
    j = np.arange(k)
    mode = np.minimum(np.floor((k + 1) * p), k)[..., 0]
    return anchored((k - j) * p, (j + 1) * (1 - p), mode)


def thin(f: Array, k: int) -> Array:
    """The law of the count among k - 1 of k candidates, one left out at random: ``[..., k + 1]`` -> ``[..., k]``.

    >>> thin(np.array([0.0, 0.0, 1.0, 0.0]), 3).round(12).tolist()
    [0.0, 0.666666666667, 0.333333333333]
    """
    j = np.arange(k)
    return (f[..., :-1] * (k - j) + f[..., 1:] * (j + 1)) / k


def tails(f: Array) -> Array:
    """P(count >= t), t = 1..k, from the law of the count: ``[..., k + 1]`` -> ``[..., k]``."""
    return np.cumsum(f[..., :0:-1], axis=-1)[..., ::-1]


def mean_binomial(k: int, p: Array, weight: Array | None = None) -> Array:
    """Σ_q w_q Binomial(k, p_q) over the last axis: ``p [..., Q]`` -> ``[..., k + 1]``. Weights default to 1.

    Σ_q p^j (1-p)^(k-j) is a sum over q of x^(s i) times x^l for j = s i + l, x the smaller of the odds: a matrix
    product of √k giant by √k baby steps, in place of k passes over the data.
    """
    rows, many = p.reshape(-1, p.shape[-1]), p.shape[-1]
    weights = None if weight is None else np.broadcast_to(weight, p.shape).reshape(-1, many)
    sums = np.zeros((len(rows), k + 1))
    batch = max(1, BLOCK // max(many, 1))
    part: Callable[[int, Array, Array | None], Array] = _powers if k <= DIRECT else _table
    for r in range(0, len(rows), batch):
        for q in range(0, many, BLOCK):
            at = np.s_[r : r + batch, q : q + BLOCK]
            sums[r : r + batch] += part(k, rows[at], None if weights is None else weights[at])
    return sums.reshape(*p.shape[:-1], k + 1)


def _powers(k: int, p: Array, weight: Array | None) -> Array:
    """``mean_binomial`` of one block ``[r, q]`` by giant and baby steps."""
    q = 1 - p
    low = p <= q
    larger = np.where(low, q, p)
    x = np.where(low, p, q) / larger
    width = int(np.ceil(np.sqrt(k + 1)))
    baby = np.empty((len(p), width, p.shape[1]))
    baby[:, 0] = 1.0
    for i in range(1, width):
        np.multiply(baby[:, i - 1], x, out=baby[:, i])
    stride = baby[:, -1] * x
    steps = -(-(k + 1) // width)
    giant = np.empty((len(p), 2, steps, p.shape[1]))
    base = _power(larger, k) if weight is None else _power(larger, k) * weight
    np.multiply(base, low, out=giant[:, 0, 0])
    np.multiply(base, ~low, out=giant[:, 1, 0])
    for i in range(1, steps):
        np.multiply(giant[:, :, i - 1], stride[:, None], out=giant[:, :, i])
    both = giant.reshape(len(p), 2 * steps, -1) @ baby.transpose(0, 2, 1)
    up, down = np.moveaxis(both.reshape(len(p), 2, -1)[..., : k + 1], 1, 0)
    return (up + down[:, ::-1]) * _choose(k)


def _table(k: int, p: Array, weight: Array | None) -> Array:
    """``mean_binomial`` of one block by the table of each law, for k where powers would underflow."""
    sums = np.zeros((len(p), k + 1))
    step = max(1, (1 << 22) // (k + 1))
    for r in range(len(p)):
        for q in range(0, p.shape[1], step):
            law = binomial(k, p[r, q : q + step])
            sums[r] += law.sum(axis=0) if weight is None else weight[r, q : q + step] @ law
    return sums


def _power(x: Array, n: int) -> Array:
    """x to the n-th by squaring."""
    result, square = np.ones_like(x), x
    while n:
        if n & 1:
            result = result * square
        square, n = square * square, n >> 1
    return result


def _choose(k: int) -> Array:
    """C(k, 0..k), each rounded once."""
    row = [1]
    for j in range(k):
        row.append(row[-1] * (k - j) // (j + 1))
    return np.array(row, dtype=np.float64)

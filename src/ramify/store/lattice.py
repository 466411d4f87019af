"""The lattice code: top-K log-probabilities of low-precision logits, without loss, in about half the bytes.

Engines compute log p_j = (x_j - max x) - log Σ in single precision from bfloat16 logits. The gaps d_j = max x - x_j
lie on a power-of-two grid, so log p_j = fl32(log p_0 - d_j) bit for bit. Stored are log p_0, the grid's exponent, and
the successive differences of d_j in grid steps, which are small integers. A token that this does not reproduce exactly
is an exception and keeps its floats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Coded", "decode", "encode"]

EXPONENTS = range(1, -17, -1)  # coarse grids first: the coarsest that reproduces a token has the smallest steps
CHUNK = 1 << 16  # tokens at a time, so that the temporaries stay in cache


class Coded(NamedTuple):
    """T tokens with K alternatives each, in descending order of log-probability."""

    first: np.ndarray  # [T] float32
    exponent: np.ndarray  # [T] int8
    steps: np.ndarray  # [K - 1, T] uint16: transposed, because one rank's steps look alike
    exceptions: np.ndarray  # [E] int32, the tokens kept as floats
    exact: np.ndarray  # [E, K] float32


def encode(logprobs: np.ndarray) -> Coded:
    """Code float32 ``[T, K]``. Decoding gives the same bits, whatever the input.

    >>> x = np.array([[20.5, 19.25, 12.0]], dtype=np.float32)
    >>> logprobs = (x - x.max()) - np.log(np.exp(x - x.max()).sum(dtype=np.float32))
    >>> coded = encode(logprobs)
    >>> coded.exponent.tolist(), coded.steps.T.tolist(), coded.exceptions.size
    ([-2], [[5, 29]], 0)
    >>> np.array_equal(decode(coded), logprobs)
    True
    """
    size, k = logprobs.shape
    exponent, steps = np.zeros(size, dtype=np.int8), np.zeros((size, max(k - 1, 0)), dtype=np.uint16)
    failed = [np.empty(0, dtype=np.int64)]
    for begin in range(0, size, CHUNK):
        part = slice(begin, begin + CHUNK)
        left = _encode(logprobs[part], exponent[part], steps[part])
        failed.append(left + begin)
    exceptions = np.concatenate(failed).astype(np.int32)
    return Coded(
        logprobs[:, 0].copy() if k else np.zeros(size, np.float32),
        exponent,
        steps.T.copy(),
        exceptions,
        logprobs[exceptions],
    )


def _encode(logprobs: np.ndarray, exponent: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Fill in the codes of a chunk; the tokens that have none are returned."""
    first = logprobs[:, :1]
    with np.errstate(invalid="ignore"):
        gaps = first.astype(np.float64) - logprobs
    sane = np.isfinite(gaps).all(axis=1) & (gaps[:, -1] < 4096.0) & ~np.signbit(gaps).any(axis=1)
    left = np.flatnonzero(sane)
    probe = np.unique(np.linspace(1, gaps.shape[1] - 1, 3).astype(int)) if gaps.shape[1] > 1 else np.empty(0, dtype=int)
    for e in EXPONENTS:
        if left.size == 0:
            break
        hopeful = left[_reproduces(logprobs, gaps, left, e, probe)]  # three columns rule most grids out
        done = hopeful[_reproduces(logprobs, gaps, hopeful, e, slice(None))]
        grid = np.rint(gaps[done] * 2.0**-e)
        jumps = np.diff(grid, axis=1)
        fits = ((jumps >= 0) & (jumps < 65536)).all(axis=1)
        done = done[fits]
        exponent[done], steps[done] = e, jumps[fits].astype(np.uint16)
        left = np.setdiff1d(left, done, assume_unique=True)
    return np.union1d(np.flatnonzero(~sane), left)


def _reproduces(
    logprobs: np.ndarray, gaps: np.ndarray, rows: np.ndarray, e: int, columns: np.ndarray | slice
) -> np.ndarray:
    """Which rows the grid 2^e gives back bit for bit, looking at some columns."""
    gap = (np.rint(gaps[rows][:, columns] * 2.0**-e) * 2.0**e).astype(np.float32)
    given, wanted = logprobs[rows, :1] - gap, np.ascontiguousarray(logprobs[rows][:, columns])
    same: np.ndarray = (given.view(np.uint32) == wanted.view(np.uint32)).all(axis=1)  # bits: 0.0 and -0.0 differ
    return same


def decode(coded: Coded) -> np.ndarray:
    """The float32 ``[T, K]`` that was coded."""
    size, k = coded.first.size, coded.steps.shape[0] + 1
    logprobs = np.empty((size, k), dtype=np.float32)
    for begin in range(0, size, CHUNK):
        part = slice(begin, begin + CHUNK)
        steps = np.ascontiguousarray(coded.steps[:, part].T)
        grid = np.zeros((len(steps), k), dtype=np.float32)
        np.cumsum(steps, axis=1, dtype=np.float32, out=grid[:, 1:])
        np.multiply(grid, np.exp2(coded.exponent[part].astype(np.float32))[:, None], out=grid)
        np.subtract(coded.first[part, None], grid, out=logprobs[part])
    if coded.exceptions.size:
        logprobs[coded.exceptions] = coded.exact
    return logprobs

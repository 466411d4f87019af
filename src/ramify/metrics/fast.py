"""Compiled twins of hot loops, for the extra ``fast``: the same bits as their NumPy originals, and a test says so."""

from __future__ import annotations

import numba
import numpy as np

from ramify.arrays import Array

__all__ = ["shuffled"]


@numba.njit(cache=True)
def _shuffle(stream, n, out):
    """Philox4x32-10 at counters (j, 0), the uniforms of ``ramify.keys.uniform``, and their stable order."""
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    noise, keys = np.empty(n), np.empty(n)
    index, start = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    for r in range(stream.shape[0]):
        for j in range(n):
            c0, c1 = np.uint64(j), np.uint64(0)
            c2, c3 = np.uint64(stream[r, 2]), np.uint64(stream[r, 3])
            k0, k1 = np.uint64(stream[r, 0]), np.uint64(stream[r, 1])
            for _ in range(10):
                left, right = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
                c0, c1 = (right >> high) ^ c1 ^ k0, right & low
                c2, c3 = (left >> high) ^ c3 ^ k1, left & low
                k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
            bits = ((c0 >> np.uint64(5)) << np.uint64(26)) | (c1 >> np.uint64(6))
            noise[j] = min((np.float64(bits) + 0.5) * 2.0**-53, 1.0 - 2.0**-53)
        # Uniforms fall evenly into n buckets: a stable counting sort by bucket, then one insertion pass.
        start[:] = 0
        for j in range(n):
            start[int(noise[j] * n) + 1] += 1
        for b in range(n):
            start[b + 1] += start[b]
        for j in range(n):
            b = int(noise[j] * n)
            keys[start[b]], index[start[b]] = noise[j], j
            start[b] += 1
        for t in range(1, n):
            key, who, s = keys[t], index[t], t - 1
            while s >= 0 and keys[s] > key:
                keys[s + 1], index[s + 1] = keys[s], index[s]
                s -= 1
            keys[s + 1], index[s + 1] = key, who
        for j in range(n):
            out[r, j] = index[j]


def shuffled(stream: Array, n: int) -> Array:
    """[R, n] the permutation of each stream ``[R, 4]``."""
    out = np.empty((len(stream), n), dtype=np.int32)
    _shuffle(np.ascontiguousarray(stream), n, out)
    return out

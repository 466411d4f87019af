"""Attention as loops that numba compiles: ``Pocket(name, kernel="numba")``.

NumPy passes over the scores a dozen times; a loop reads keys and values where they lie, once. Each row is worked by the
same code in the same order whatever the batch, so this keeps the engine's promise by construction; its bits are its
own, not those of ``attention.py``. The exponentials are left to NumPy, which has vector code for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from ramify.models.pocket.cache import BLOCK, Pool
from ramify.models.pocket.checkpoint import Config

__all__ = ["attention"]

# A multiply and an add may become one instruction, the same one for every row. Nothing else may be reordered.
compiled: Callable[[Any], Any] = njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")


def attention(
    config: Config, pool: Pool, position: np.ndarray, table: np.ndarray, phase: np.ndarray
) -> Callable[[int, np.ndarray], np.ndarray]:
    """For rows at ``position [R]`` of ``table [R, C]``: a layer and its ``[q k v]`` to what the rows see there."""
    rows, columns = position.size, int(position.max(initial=0)) // BLOCK + 1
    turns = np.ascontiguousarray(phase).view(pool.keys[0].dtype).reshape(rows, -1)  # [R, d] cosine, sine, ...
    scores = np.empty((rows, config.heads, columns * BLOCK), turns.dtype)

    def see(layer: int, mixed: np.ndarray) -> np.ndarray:
        query = np.empty((rows, config.heads, config.head_width), mixed.dtype)
        keys, values = pool.keys[layer], pool.values[layer]
        _write(np.ascontiguousarray(mixed), turns, position, table, query, keys, values)
        _score(query, keys, position, table, scores)
        np.exp(scores, out=scores)
        seen = np.zeros_like(query)
        _mix(scores, values, position, table, seen)
        return seen.reshape(rows, -1)

    return see


@compiled
def _write(mixed, turns, position, table, query, keys, values):  # type: ignore[no-untyped-def]
    """Rotate queries and keys; put keys and values into the pool."""
    rows, heads, width = query.shape
    groups = keys.shape[1]
    for r in range(rows):
        block, offset = table[r, position[r] // BLOCK], position[r] % BLOCK
        for h in range(heads):
            for k in range(0, width, 2):
                x, y, c, s = mixed[r, h, k], mixed[r, h, k + 1], turns[r, k], turns[r, k + 1]
                query[r, h, k], query[r, h, k + 1] = x * c - y * s, x * s + y * c
        for g in range(groups):
            for k in range(0, width, 2):
                x, y, c, s = mixed[r, heads + g, k], mixed[r, heads + g, k + 1], turns[r, k], turns[r, k + 1]
                keys[block, g, k, offset], keys[block, g, k + 1, offset] = x * c - y * s, x * s + y * c
            for k in range(width):
                values[block, g, offset, k] = mixed[r, heads + groups + g, k]


@compiled
def _score(query, keys, position, table, scores):  # type: ignore[no-untyped-def]
    """q kᵀ less its largest entry, -inf after a row's own position."""
    rows, heads, width = query.shape
    group = heads // keys.shape[1]
    for r in range(rows):
        length = position[r] + 1
        for h in range(heads):
            out = scores[r, h]
            for c in range(position[r] // BLOCK + 1):
                key, here = keys[table[r, c], h // group], out[c * BLOCK : (c + 1) * BLOCK]
                for j in range(BLOCK):
                    here[j] = 0
                for k in range(0, width, 4):  # four at a time, so that sums stay in registers a little longer
                    a, b, d, e = query[r, h, k], query[r, h, k + 1], query[r, h, k + 2], query[r, h, k + 3]
                    for j in range(BLOCK):
                        here[j] += a * key[k, j] + b * key[k + 1, j] + d * key[k + 2, j] + e * key[k + 3, j]
            out[length:] = -np.inf
            largest = out[0]
            for j in range(1, length):
                largest = max(largest, out[j])
            for j in range(length):
                out[j] -= largest


@compiled
def _mix(weights, values, position, table, seen):  # type: ignore[no-untyped-def]
    """Σ_j w_j v_j / Σ_j w_j over a row's own positions."""
    rows, heads, width = seen.shape
    group = heads // values.shape[1]
    for r in range(rows):
        for h in range(heads):
            weight, out = weights[r, h], seen[r, h]
            mass = weight[0] * 0
            for c in range(position[r] // BLOCK + 1):
                value = values[table[r, c], h // group]
                for j in range(0, BLOCK, 4):
                    at = c * BLOCK + j
                    a, b, d, e = weight[at], weight[at + 1], weight[at + 2], weight[at + 3]
                    mass += (a + b) + (d + e)
                    for k in range(width):
                        out[k] += a * value[j, k] + b * value[j + 1, k] + d * value[j + 2, k] + e * value[j + 3, k]
            for k in range(width):
                out[k] /= mass

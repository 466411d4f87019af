"""Matrix products whose every row is a function of that row alone.

A BLAS is free to sum in another order when a matrix has more rows, and most do. What was found to hold, and
is measured again on each machine by ``rows_per_call`` before anything relies on it (OpenBLAS 0.3.31, kernels
SkylakeX and Sandybridge, one thread or two, 2 to 1,100 rows):

    x [M, K] @ w [K, N], row-major, with M >= 2, N a multiple of 16 and K within CHAIN is, element by element,
    one chain of fused multiply-adds over k = 0, 1, ..., whatever M.

So operands are kept in that form: one row is padded to two, output widths are rounded up, and longer inner
dimensions are cut into equal pieces whose results are added in order. A chain ends as it would have ended
without them when its last factors are exact zeros, so masked key positions cost nothing but time. A matrix-
vector product (M = 1), a transposed right-hand side, or N = 53 are not such chains.

Other kernels (Haswell, so most AVX2 machines) sum the rows of a large matrix in several orders. There each
call gets exactly ``tile`` rows, so that every row is always treated alike; slower, and as invariant.

Weights are cut into panels of PANEL columns and x into tiles of ROWS rows: OpenBLAS multiplies matrices of up
to a million multiply-adds without repacking them, which for these sizes is a fifth to three times as fast as
one large product.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise

import numpy as np

__all__ = ["PANEL", "WIDTH", "linear", "padded", "panels", "pieces", "product", "rows_per_call"]

CHAIN = 384 * 4  # bytes: 384 floats or 192 doubles. Kernels split longer inner dimensions, and not always alike
WIDTH = 16  # output columns come in multiples of this
PANEL = 64  # columns of a weight panel
ROWS = 32  # rows of a tile, so that ROWS * PANEL * 384 stays below a million
ANY = 0  # rows per call: as many as there are, and at least two


def product(x: np.ndarray, w: np.ndarray, tile: int = ANY) -> np.ndarray:
    """``x [..., M, K] @ w [..., K, N]``, K within CHAIN, N in WIDTHs: a row depends on its row of x only."""
    rows, inner = x.shape[-2:]
    if padded(rows, tile) != rows:
        padding = np.zeros((*x.shape[:-2], padded(rows, tile) - rows, inner), x.dtype)
        return product(np.concatenate([x, padding], axis=-2), w, tile)[..., :rows, :]
    if not tile:
        whole: np.ndarray = np.matmul(x, w)
        return whole
    tiles = x.reshape(*x.shape[:-2], rows // tile, tile, inner)
    result: np.ndarray = np.matmul(tiles, w[..., None, :, :])
    return result.reshape(*result.shape[:-3], rows, w.shape[-1])


def linear(x: np.ndarray, w: np.ndarray, tile: int = ANY) -> np.ndarray:
    """``x [M, K]`` times the matrix whose ``panels`` are ``w [P, K, PANEL]``: ``[M, P * PANEL]``, row by row.

    >>> rng = np.random.default_rng(0)
    >>> x, w = rng.standard_normal((100, 700)), rng.standard_normal((700, 53))
    >>> tile = rows_per_call("float64", tuple((high - low, PANEL) for low, high in pieces(700, 8)))
    >>> y = linear(x, panels(w), tile)
    >>> y.shape, bool(np.allclose(y[:, :53], x @ w))
    ((100, 64), True)
    >>> bool(np.array_equal(y[17:18], linear(x[17:18], panels(w), tile)))
    True
    """
    rows = len(x)
    tiles = max(-(-rows // (tile or ROWS)), 1)
    size = tile or max(-(-rows // tiles), 2)
    if tiles * size != rows:
        x = np.concatenate([x, np.zeros((tiles * size - rows, x.shape[1]), x.dtype)])
    out = np.empty((tiles, size, len(w), PANEL), x.dtype)
    by_panel = out.transpose(2, 0, 1, 3)
    for low, high in pieces(x.shape[1], x.itemsize):
        left, right = x[:, low:high].reshape(tiles, size, high - low), w[:, None, low:high]
        if low == 0:
            np.matmul(left, right, out=by_panel)
        else:
            by_panel += np.matmul(left, right)
    return out.reshape(tiles * size, -1)[:rows]


def panels(w: np.ndarray) -> np.ndarray:
    """``w [K, N]`` with zero columns up to whole panels, as ``[P, K, PANEL]``.

    >>> panels(np.ones((10, 130))).shape
    (3, 10, 64)
    """
    wide = np.pad(w, [(0, 0), (0, -w.shape[1] % PANEL)])
    return np.ascontiguousarray(wide.reshape(len(w), -1, PANEL).swapaxes(0, 1))


@cache
def pieces(inner: int, itemsize: int) -> tuple[tuple[int, int], ...]:
    """An inner dimension cut into equal parts within CHAIN.

    >>> pieces(256, 4), pieces(688, 4)
    (((0, 256),), ((0, 344), (344, 688)))
    """
    count = -(-inner * itemsize // CHAIN)
    return tuple(pairwise(inner * i // count for i in range(count + 1)))


def padded(rows: int, tile: int = ANY) -> int:
    """The rows a product really works on.

    >>> padded(1), padded(7), padded(7, tile=4)
    (2, 7, 8)
    """
    return -(-rows // tile) * tile if tile else max(rows, 2)


@cache
def rows_per_call(dtype: str, shapes: Iterable[tuple[int, int]]) -> int:
    """How many rows a call may take here: ANY, a tile of 4, or 1 (a row a call is invariant by definition).

    Measured on random operands of the given (K, N), at numbers of rows where kernels are known to switch.
    """
    rng = np.random.default_rng(0)
    for tile in (ANY, 4):
        if all(_invariant(rng, dtype, inner, outer, tile) for inner, outer in shapes):
            return tile
    return 1


def _invariant(rng: np.random.Generator, dtype: str, inner: int, outer: int, tile: int) -> bool:
    x = rng.standard_normal((256, inner)).astype(dtype)
    w = rng.standard_normal((inner, outer)).astype(dtype)
    alone = product(x[:, None], w, tile)[:, 0]
    spans = [slice(low, low + rows) for rows in (2, 3, 4, 5, 16, 17, 31, 32, 64, 100, 227) for low in (0, 29)]
    return all(np.array_equal(product(x[span], w, tile), alone[span]) for span in spans)

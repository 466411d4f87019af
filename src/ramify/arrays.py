"""The atoms: pure functions of arrays that act on the last axis and broadcast over the rest.

They take NumPy arrays or torch tensors. Only the two order statistics have a NumPy path of their own, because sorting a
vocabulary of 150,000 is what makes ordinary decoders slow: ``largest`` looks only at what exceeds a cheap lower bound,
and ``head`` finds its cut in a histogram of 16-bit digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "Array",
    "at",
    "count",
    "descending",
    "first_max",
    "group_first",
    "group_sum",
    "head",
    "join_rows",
    "largest",
    "namespace",
    "pick",
    "place",
    "standing",
    "take_rows",
    "to_numpy",
]

Array: TypeAlias = Any
"""A NumPy array or a torch tensor; its shape is said where it is named."""

SHORT = 256  # candidates looked at before a head is searched for in the whole vocabulary


def namespace(array: Array) -> Any:
    """The array API namespace of ``array``. NumPy needs no help, so the core does without array-api-compat.

    >>> namespace(np.zeros(3)) is np
    True
    """
    if isinstance(array, np.ndarray | np.generic):
        return np
    from array_api_compat import array_namespace  # type: ignore[import-not-found, unused-ignore]

    return array_namespace(array)


def to_numpy(array: Array) -> np.ndarray:
    """The array on the host, as NumPy."""
    return array if isinstance(array, np.ndarray) else np.asarray(array.cpu())


def count(mask: Array) -> Array:
    """How many are true along the last axis. A single row skips NumPy's slower path for reductions along an axis."""
    xp = namespace(mask)
    if xp is np and mask.size == mask.shape[-1]:
        return np.full(mask.shape[:-1], np.count_nonzero(mask))
    return xp.count_nonzero(mask, axis=-1)


def at(array: Array, index: Array) -> Array:
    """``array[..., index]`` row by row: ``[..., V]`` and ``[...]`` -> ``[...]``.

    >>> at(np.array([[1, 2], [3, 4]]), np.array([1, 0])).tolist()
    [2, 3]
    """
    if isinstance(array, np.ndarray):  # take_along_axis does this too, at several times the overhead
        rows = array.reshape(-1, array.shape[-1])
        return rows[np.arange(len(rows)), index.reshape(-1)].reshape(index.shape)
    return namespace(array).take_along_axis(array, index[..., None], axis=-1)[..., 0]


def largest(values: Array, m: int) -> tuple[Array, Array]:
    """The m largest entries in descending order, ties by position: ``(values [..., m], ids [..., m])``.

    >>> [part.tolist() for part in largest(np.array([1.0, 3.0, 2.0, 3.0]), 3)]
    [[3.0, 3.0, 2.0], [1, 3, 2]]
    """
    xp, size = namespace(values), values.shape[-1]
    m = min(m, size)
    if m == 0:
        return values[..., :0], xp.zeros((*values.shape[:-1], 0), dtype=xp.int64, device=values.device)
    if xp is np and 8 * m < size and values.size:
        rows = values.reshape(-1, size)
        ids = np.stack([_largest_row(row, m) for row in rows])
        found, shape = rows[np.arange(len(rows))[:, None], ids], (*values.shape[:-1], m)
        return found.reshape(shape), ids.reshape(shape)
    ids = xp.argsort(-values, axis=-1, stable=True)[..., :m]
    return xp.take_along_axis(values, ids, axis=-1), ids


def _largest_row(row: np.ndarray, m: int) -> np.ndarray:
    """The m-th largest of at least m block maxima bounds the m-th largest entry from below, so few survive it."""
    blocks = min(8 * m, row.size)
    maxima = row[: row.size // blocks * blocks].reshape(-1, blocks).max(axis=0)
    bound = np.partition(maxima, blocks - m)[blocks - m]
    dead = bound == -np.inf  # fewer than m entries carry anything: the rest are filled up in order of position
    survivors = np.flatnonzero(row > bound if dead else row >= bound)
    ids = survivors[np.argsort(-row[survivors], kind="stable")[:m]]
    return np.concatenate([ids, np.flatnonzero(row == bound)[: m - ids.size]]) if dead else ids


def descending(values: Array) -> Array:
    """The values sorted from the largest down. Without their positions this is half the work of ``largest``."""
    xp = namespace(values)
    return xp.flip(xp.sort(values, axis=-1), axis=-1)


def head(score: Array, mass: Array | None, budget: Array, *, closed: bool = False) -> Array:
    """Keep an entry while the mass before it, in order of (score descending, position), is below the budget.

    This one line is every head-budget gate: top-k has unit mass (``None``) and budget k, nucleus has the probability as
    score and mass, typical sampling scores by distance from the entropy. ``closed`` keeps an entry at equality too.

    >>> head(np.array([0.1, 0.4, 0.2, 0.3]), np.array([0.1, 0.4, 0.2, 0.3]), 0.5).tolist()
    [False, True, False, True]
    """
    xp, size = namespace(score), score.shape[-1]
    if xp is np and size > 8 * SHORT and score.size:
        budgets = np.broadcast_to(budget, score.shape[:-1]).reshape(-1)
        masses = [None] * budgets.size if mass is None else mass.reshape(-1, size)
        rows = zip(score.reshape(-1, size), masses, budgets, strict=True)
        return np.stack([_head_row(*row, closed) for row in rows]).reshape(score.shape)
    ids = xp.argsort(-score, axis=-1, stable=True)
    ordered = xp.ones_like(score) if mass is None else xp.take_along_axis(mass, ids, axis=-1)
    kept = _within(_before(ordered), xp.asarray(budget, device=score.device)[..., None], closed)
    if xp is np:
        keep = np.empty(math.prod(score.shape), dtype=bool)  # written everywhere: ids are a permutation of each row
        keep[(np.arange(keep.size // size) * size)[:, None] + ids.reshape(-1, size)] = kept.reshape(-1, size)
        return keep.reshape(score.shape)
    return xp.take_along_axis(kept, xp.argsort(ids, axis=-1), axis=-1)


def _head_row(score: np.ndarray, mass: np.ndarray | None, budget: float, closed: bool) -> np.ndarray:
    _, ids = largest(score, SHORT)
    ordered = np.ones(ids.size) if mass is None else mass[ids]
    kept = _within(_before(ordered), budget, closed)
    if kept[-1]:  # the budget reaches past the short list
        return _head_by_digit(score, mass, budget, closed)
    keep = np.zeros(score.size, dtype=bool)
    keep[ids[kept]] = True
    return keep


def _head_by_digit(score: np.ndarray, mass: np.ndarray | None, budget: float, closed: bool) -> np.ndarray:
    """Sum the mass by the leading 16 bits of the score; only the bin that the cut falls into is sorted."""
    digit = _leading_bits(score)
    by_digit = np.bincount(digit, mass, minlength=1 << 16)[::-1]  # descending
    cumulative = np.cumsum(by_digit)
    full = int(np.count_nonzero(_within(cumulative, budget, closed)))
    if full == 1 << 16:
        return np.ones(score.size, dtype=bool)
    boundary = (1 << 16) - 1 - full
    keep = digit > boundary
    ids = np.flatnonzero(digit == boundary)
    ids = ids[np.argsort(-score[ids], kind="stable")]
    ordered = np.ones(ids.size) if mass is None else mass[ids]
    above = cumulative[full - 1] if full else 0.0
    keep[ids[_within(above + _before(ordered), budget, closed)]] = True
    return keep


def _leading_bits(score: np.ndarray) -> np.ndarray:
    """The leading 16 bits of each float, mapped so that they order as the floats do."""
    # Adding zero turns -0.0 into 0.0, which compare equal but have different bits.
    words = np.ascontiguousarray(score + score.dtype.type(0)).view(np.uint16)
    lead = words[score.dtype.itemsize // 2 - 1 :: score.dtype.itemsize // 2]
    negative = (lead.view(np.int16) >> 15).view(np.uint16)
    return lead ^ (negative | np.uint16(0x8000))


def _before(mass: Array) -> Array:
    """The exclusive cumulative sum: the mass strictly before each entry."""
    xp = namespace(mass)
    cumulative = xp.cumulative_sum(mass, axis=-1, dtype=xp.float64)
    return xp.concat([xp.zeros_like(cumulative[..., :1]), cumulative[..., :-1]], axis=-1)


def _within(amount: Array, budget: Array, closed: bool) -> Array:
    return amount <= budget if closed else amount < budget


def pick(weight: Array, u: Array) -> Array:
    """Inverse CDF in position order: the first entry at which the running sum of ``weight`` passes ``u`` of the total.

    ``weight [..., V]`` is nonnegative with a positive sum and ``u [...]`` lies in (0, 1). An entry of weight zero
    is never picked. Two levels (a block, then an entry in it) cost one pass where a running sum would cost five.

    >>> pick(np.array([0.0, 0.5, 0.0, 0.5]), np.array(0.7)).tolist()
    3
    """
    xp, size = namespace(weight), weight.shape[-1]
    if size <= 2 * SHORT:
        return _passes(weight, u * xp.sum(weight, axis=-1, dtype=xp.float64))[0]
    width = _block_width(size)
    if size % width:
        padding = xp.zeros((*weight.shape[:-1], -size % width), dtype=weight.dtype, device=weight.device)
        weight = xp.concat([weight, padding], axis=-1)
    blocks = weight.reshape(*weight.shape[:-1], weight.shape[-1] // width, width)
    sums = xp.sum(blocks, axis=-1, dtype=xp.float64)
    block, short = _passes(sums, u * xp.sum(sums, axis=-1))
    inside = xp.take_along_axis(blocks, block[..., None, None], axis=-2)[..., 0, :]
    return block * width + _passes(inside, short)[0]


def first_max(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """``[...]`` the first of the largest valid entries, -1 where nothing is valid. -inf is a value like any other.

    >>> first_max(np.array([9.0, -np.inf, -np.inf]), np.array([False, True, True])).tolist()
    1
    """
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], -1)
    low = -np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    best = np.where(valid, values, low).max(axis=-1, keepdims=True)
    return np.where(valid.any(axis=-1), np.argmax(valid & (values == best), axis=-1), -1)


def _slots(codes: np.ndarray) -> tuple[np.ndarray, int]:
    """A flat place for every (row, code), code -1 included, and how many places there are."""
    width = int(codes.max(initial=-1)) + 2
    rows = math.prod(codes.shape[:-1])
    offsets = (np.arange(rows) * width + 1).reshape(*codes.shape[:-1], 1)
    return (codes + offsets).ravel(), rows * width


def group_sum(codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """``[..., N]`` Σ_j w_j over the entries with the same code, summed in order of position: Σ_j w_j 1[a_i = a_j].

    >>> group_sum(np.array([0, 1, 0, -1]), np.array([1.0, 2.0, 3.0, 0.0])).tolist()
    [4.0, 2.0, 4.0, 0.0]
    """
    slot, size = _slots(codes)
    sums: np.ndarray = np.bincount(slot, weight.ravel(), minlength=size)[slot]
    return sums.reshape(codes.shape)


def group_first(codes: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """``[..., N]`` the position of the first valid entry with the same code; N where there is none.

    >>> group_first(np.array([0, 1, 0, -1]), np.array([False, True, True, False])).tolist()
    [2, 1, 2, 4]
    """
    slot, size = _slots(codes)
    places = np.broadcast_to(np.arange(codes.shape[-1]), codes.shape).ravel()
    first = np.full(size, codes.shape[-1])
    counts = np.flatnonzero(valid.ravel())[::-1]  # of several writes to one place the last stays: the earliest entry
    first[slot[counts]] = places[counts]
    found: np.ndarray = first[slot]
    return found.reshape(codes.shape)


def standing(score: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Among the valid entries: how many score higher, how many at least as high, and the place with ties by position.

    >>> [part.tolist() for part in standing(np.array([0.5, 0.9, 0.5, 0.1]), np.array([True, True, True, False]))]
    [[1, 0, 1, 3], [3, 1, 3, 3], [1, 0, 2, 3]]
    """
    size = score.shape[-1]
    key = np.where(valid, -score, np.nan)  # NaN sorts last, behind -inf
    order = np.argsort(key, axis=-1, kind="stable")
    ordered = np.take_along_axis(key, order, axis=-1)
    total = np.count_nonzero(valid, axis=-1)[..., None]
    ids = np.broadcast_to(np.arange(size), score.shape)
    starts = np.ones(score.shape, dtype=bool)
    starts[..., 1:] = (ordered[..., 1:] != ordered[..., :-1]) | (ids[..., 1:] >= total)
    above = np.maximum.accumulate(np.where(starts, ids, 0), axis=-1)
    ends = np.concatenate([starts[..., 1:], np.ones_like(starts[..., :1])], axis=-1)
    upto = np.flip(np.minimum.accumulate(np.flip(np.where(ends, ids + 1, size), axis=-1), axis=-1), axis=-1)
    out = np.empty((3, *score.shape), dtype=np.int64)
    for part, values in zip(out, (np.minimum(above, total), np.minimum(upto, total), ids), strict=True):
        np.put_along_axis(part, order, values, axis=-1)
    return out[0], out[1], out[2]


@cache
def _block_width(size: int) -> int:
    """About the square root; a divisor near it where there is one, so that nothing has to be padded."""
    root = int(size**0.5)
    return next((width for width in range(root, root // 8, -1) if size % width == 0), root)


def _passes(weight: Array, amount: Array) -> tuple[Array, Array]:
    """The first entry whose running sum exceeds the amount, and by how much the sum before it falls short."""
    xp = namespace(weight)
    running = xp.cumulative_sum(weight, axis=-1, dtype=xp.float64)
    past = running > amount[..., None]
    found = xp.argmax(xp.astype(past, xp.int8), axis=-1)
    missed = ~xp.any(past, axis=-1)
    if xp.any(missed):  # rounding left the amount at the very end: the last entry that carries weight is the one
        last = weight.shape[-1] - 1 - xp.argmax(xp.flip(xp.astype(weight > 0, xp.int8), axis=-1), axis=-1)
        found = xp.where(missed, last, found)
    # Never negative, or the next level would pick an entry of weight zero.
    return found, xp.clip(amount - (at(running, found) - at(weight, found)), 0.0, None)


def take_rows(tree: Any, rows: Any) -> Any:
    """The given rows (leading axis) of every array in nested tuples and dicts."""
    if isinstance(tree, dict):
        return {name: take_rows(item, rows) for name, item in tree.items()}
    if isinstance(tree, tuple):
        return tuple(take_rows(item, rows) for item in tree)
    return tree[rows]


def place(tree: Any, like: Array) -> Any:
    """Every array in nested tuples and dicts, in the array library and on the device of ``like``."""
    if isinstance(tree, dict):
        return {name: place(item, like) for name, item in tree.items()}
    if isinstance(tree, tuple):
        return tuple(place(item, like) for item in tree)
    if isinstance(like, np.ndarray):
        return to_numpy(tree)
    return namespace(like).asarray(tree, device=like.device)


def join_rows(trees: Sequence[Any]) -> Any:
    """Concatenate the rows of equally built trees."""
    first = trees[0]
    if isinstance(first, dict):
        return {name: join_rows([tree[name] for tree in trees]) for name in first}
    if isinstance(first, tuple):
        return tuple(join_rows(items) for items in zip(*trees, strict=True))
    return namespace(first).concat(trees, axis=0)

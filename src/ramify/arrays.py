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
    "appearance",
    "at",
    "count",
    "descending",
    "first_max",
    "group_first",
    "group_means",
    "group_sum",
    "head",
    "join_rows",
    "largest",
    "namespace",
    "pick",
    "place",
    "row_means",
    "segments",
    "smallest_sums",
    "standing",
    "take_rows",
    "to_numpy",
    "window_sums",
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


# ------------------------------------------------------------------------ ragged rows: flat values [T], offsets [C + 1]
# What these return for a row depends on that row alone, to the bit: not on its neighbours, nor on how rows are chunked.

ROWS = 4096  # rows of a [T, K] matrix widened to double precision at a time


def segments(ufunc: np.ufunc, values: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """``ufunc`` reduced over ``values[start:end]`` of every row ``[C]``; NaN where that is empty.

    >>> segments(np.add, np.array([1.0, 2.0, 4.0]), np.array([0, 2, 2]), np.array([2, 2, 3])).tolist()
    [3.0, nan, 4.0]
    """
    some = end > start
    out = np.full(start.shape, np.nan)
    if some.any():
        pairs = np.stack([start[some], end[some]], axis=1).reshape(-1)
        pairs = pairs[:-1] if pairs[-1] == len(values) else pairs  # the last row may run to the very end
        out[some] = ufunc.reduceat(values, pairs)[::2]
    return out


def row_means(matrix: np.ndarray, k: int) -> np.ndarray:
    """The mean of the first k entries of every row ``[T, K] -> [T]``, in double precision and a few rows at a time."""
    out = np.empty(len(matrix))
    for i in range(0, len(matrix), ROWS):
        out[i : i + ROWS] = np.einsum("tk->t", np.asarray(matrix[i : i + ROWS, :k], dtype=np.float64))
    out /= k
    return out


def window_sums(
    values: np.ndarray, offsets: np.ndarray, window: int, skipped: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The sum of every full window inside each row: ``(sums, offsets of the windows [C + 1])``; a short row has none.

    A row is cut into blocks of one window, and a window is the end of a block plus the beginning of the next. Unlike a
    running sum over everything, nothing is ever subtracted: no cancellation, and a NaN stays in the windows holding it.
    ``skipped [C]`` entries came before the row's first: the blocks lie as if they were still there.

    >>> [part.tolist() for part in window_sums(np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 3, 4]), 2)]
    [[3.0, 6.0], [0, 2, 2]]
    """
    length = np.diff(offsets)
    long = length >= window
    phase = np.zeros_like(length[long]) if skipped is None else skipped[long] % window
    extent = length[long] + phase
    blocks = -(-extent // window)
    first = (np.cumsum(blocks) - blocks) * window  # [C'] the place where a row's blocks begin
    padded = np.zeros((int(blocks.sum()) + 1, window))
    filled = _marked(first + phase, first + extent, padded.size)
    padded.reshape(-1)[filled] = values if long.all() else values[np.repeat(long, length)]
    ending, before = np.empty_like(padded), np.empty_like(padded)
    np.cumsum(padded[:, ::-1], axis=1, out=ending[:, ::-1])  # from each place to the end of its block
    before[:, 0] = 0.0
    np.cumsum(padded[:, :-1], axis=1, out=before[:, 1:])  # from the beginning of its block up to each place
    ending.reshape(-1)[:-window] += before.reshape(-1)[window:]
    sums = ending.reshape(-1)[_marked(first + phase, first + extent - window + 1, padded.size)]
    return sums, np.concatenate([[0], np.cumsum(np.where(long, length - window + 1, 0))])


def _marked(start: np.ndarray, end: np.ndarray, size: int) -> np.ndarray:
    """[size] whether a place lies in one of the intervals [start, end), which are in order and apart."""
    step = np.zeros(size + 1, dtype=np.int8)
    step[start] += 1
    np.subtract.at(step, end, 1)  # an interval may end where the next begins
    return np.cumsum(step[:-1], dtype=np.int8).view(bool)


def group_means(values: np.ndarray, offsets: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Means over a sliding window, ``(means, offsets [C + 1])``: one for each end s = w .. T; the whole mean if T < w.

    >>> [part.tolist() for part in group_means(np.array([1.0, 3.0, 5.0, 9.0]), np.array([0, 3, 4]), 2)]
    [[2.0, 4.0, 9.0], [0, 2, 3]]
    """
    length = np.diff(offsets)
    sums, begin = window_sums(values, offsets, window)
    short = (length > 0) & (length < window)
    if not short.any():
        return sums / window, begin
    counts = np.where(short, 1, np.diff(begin))
    means = np.empty(int(counts.sum()))
    is_short = np.repeat(short, counts)
    means[~is_short] = sums / window
    means[is_short] = segments(np.add, values, offsets[:-1], offsets[1:])[short] / length[short]
    return means, np.concatenate([[0], np.cumsum(counts)])


def smallest_sums(values: np.ndarray, offsets: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """[C] the sum of the ``kept [C]`` smallest values of every row, added from the smallest up; NaN counts as largest.

    Rows of like length are looked at together, padded to less than twice their own.

    >>> smallest_sums(np.array([3.0, 1.0, 2.0, 5.0]), np.array([0, 3, 4]), np.array([2, 1])).tolist()
    [3.0, 5.0]
    """
    length = np.diff(offsets)
    kind = np.where(length > 0, np.frexp(length)[1], 0)  # the number of bits
    out = np.full(length.shape, np.nan)
    for bits in np.unique(kind[length > 0]):
        rows = np.flatnonzero(kind == bits)
        size, most = int(length[rows].max()), int(kept[rows].max())
        table = np.full((rows.size, size), np.inf)
        own = values if rows.size == length.size else values[np.repeat(kind == bits, length)]
        table[np.arange(size) < length[rows, None]] = own
        table.partition(most - 1, axis=1)
        lowest = np.sort(table[:, :most], axis=1)[np.arange(most) < kept[rows, None]]
        end = np.cumsum(kept[rows])
        out[rows] = segments(np.add, lowest, end - kept[rows], end)
    return out


def appearance(codes: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(label, occurrence)`` of each entry ``[..., N]``: 0, 1, ... in order of first appearance, and which one it is.

    An entry that is not valid has label -1 and occurrence 0. Both depend on the entries up to it and on no later one.

    >>> [part.tolist() for part in appearance(np.array([7, 3, -1, 7]), np.array([True, True, False, True]))]
    [[0, 1, -1, 0], [1, 1, 0, 2]]
    """
    valid = valid & (codes >= 0)
    shown = np.where(valid, codes, -1)
    order = np.argsort(shown, axis=-1, kind="stable")
    ranked = np.take_along_axis(shown, order, axis=-1)
    place = np.broadcast_to(np.arange(codes.shape[-1]), codes.shape)
    new = np.ones(codes.shape, dtype=bool)
    new[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    begun = np.maximum.accumulate(np.where(new, place, 0), axis=-1)
    first, occurrence = np.empty_like(order), np.empty_like(order)
    np.put_along_axis(first, order, np.take_along_axis(order, begun, axis=-1), axis=-1)
    np.put_along_axis(occurrence, order, place - begun + 1, axis=-1)
    labels = np.cumsum(valid & (first == place), axis=-1) - 1
    found = np.take_along_axis(labels, first, axis=-1)
    return np.where(valid, found, -1), np.where(valid, occurrence, 0)

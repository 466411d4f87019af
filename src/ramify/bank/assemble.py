"""From flat rows, one a candidate and in any order, to aligned ``[Q, N]`` arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.errors import InvalidValue

__all__ = ["Placement", "constant", "first_seen", "local_codes", "placed"]

BLOCK = 1 << 20  # rows looked at together: bounds what lies beside the arrays themselves

Where = Callable[[int], str]
"""The name of a row for an error message: "row 3", or the line of the file it came from."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where each row goes: row ``order[i]`` is candidate ``position[i]`` of question ``question[i]``."""

    shape: tuple[int, int]
    order: Array | None  # [R], None if the rows lie in order already
    question: Array  # [R] in order
    position: Array  # [R] in order

    def sorted(self, values: Array) -> Array:
        """The rows' values ``[R, ...]`` in order of question and position."""
        return values if self.order is None else values[self.order]

    def table(self, values: Array, fill: Any, dtype: Any = None) -> Array:
        """The values ``[R]`` as a table ``[Q, N]``, ``fill`` where nothing was drawn."""
        values = np.asarray(values)
        dtype = values.dtype if dtype is None else np.dtype(dtype)
        if len(values) == self.shape[0] * self.shape[1]:  # every place is taken, so order is all there is to it
            return self.sorted(values).astype(dtype, copy=False).reshape(self.shape)
        table = np.full(self.shape, fill, dtype=dtype)
        table[self.question, self.position] = self.sorted(values)
        return table


def placed(
    question: Array, source: Array, sample: Array, candidate: Array | None, shape: tuple[int, int], where: Where
) -> Placement:
    """Rows in order of question, then of ``candidate`` where that is given, else of source and sample.

    Two rows of one question, source and sample would be one candidate counted twice: an error that names both.
    """
    order = _order(question, source, sample)
    _need_distinct(_names(order, question, source, sample), order, where, "sample")
    if candidate is not None:
        order = _order(question, candidate)
        _need_distinct(_names(order, question, candidate), order, where, "candidate")
    mine = question if order is None else question[order]
    if candidate is None:
        counts = np.bincount(question, minlength=shape[0])
        position = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    else:
        position = candidate if order is None else candidate[order]
    width = max(shape[1], int(position.max(initial=-1)) + 1)
    return Placement((shape[0], width), order, mine, position)


def _order(*keys: Array) -> Array | None:
    """The stable order by several keys, the first counting most; None if the rows lie so already."""
    tied = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        if (tied & (key[1:] < key[:-1])).any():
            return np.lexsort(keys[::-1])
        tied &= key[1:] == key[:-1]
    return None


def _names(order: Array | None, *keys: Array) -> list[Array]:
    return [key if order is None else key[order] for key in keys]


def _need_distinct(names: Sequence[Array], order: Array | None, where: Where, what: str) -> None:
    same = np.ones(max(len(names[0]) - 1, 0), dtype=bool)
    for name in names:
        same &= name[1:] == name[:-1]
    if same.any():
        at = int(same.argmax())
        rows = sorted((at, at + 1) if order is None else (int(order[at]), int(order[at + 1])))
        raise InvalidValue(
            f"{where(rows[1])}, column {what!r}: {what} {int(names[-1][at])} is there twice, "
            f"first at {where(rows[0])}: that would count one candidate as two: drop one, or give it another run"
        )


def first_seen(codes: Array, values: Sequence[Any]) -> tuple[Array, list[Any]]:
    """Codes renumbered in order of first appearance, without the values that no row has or that repeat; -1 is None.

    >>> first_seen(np.array([2, 0, 2, -1]), ["a", "b", "c"])
    (array([ 0,  1,  0, -1], dtype=int32), ['c', 'a'])
    """
    if not len(values):
        return np.full(len(codes), -1, dtype=np.int32), []
    first = np.full(len(values) + 1, len(codes), dtype=np.int64)  # the last place is for -1
    for start in reversed(range(0, len(codes), BLOCK)):
        block = codes[start : start + BLOCK]
        first[block[::-1]] = np.arange(start, start + len(block))[::-1]  # of repeated indices the last write stays
    known: dict[Hashable, int] = {}
    renumber = np.full(len(values) + 1, -1, dtype=np.int32)
    for code in np.argsort(first[:-1], kind="stable").tolist():
        if first[code] < len(codes) and values[code] is not None:
            renumber[code] = known.setdefault(values[code], len(known))
    return renumber[codes], list(known)


def local_codes(question: Array, codes: Array, count: int) -> tuple[Array, list[Array]]:
    """Codes into one list of answers as codes of each question's own, in order of first appearance; -1 is ⊥.

    ``question [R]`` ascends from 0 to ``count - 1``. Returns the codes ``[R]`` and, by question, the answers they
    index.

    >>> local, own = local_codes(np.array([0, 0, 0, 1, 1]), np.array([5, -1, 2, 2, 2]), 2)
    >>> local.tolist(), [each.tolist() for each in own]
    ([0, -1, 1, 0, 0], [[5, 2], [2]])
    """
    found, own = np.full(len(codes), -1, dtype=np.int32), [np.empty(0, dtype=np.int64)] * count
    bounds = np.searchsorted(question, np.arange(count + 1))
    low = 0
    while low < count:  # whole questions, about BLOCK rows at a time
        high = max(low + 1, int(np.searchsorted(bounds, bounds[low] + BLOCK, side="right")) - 1)
        rows = np.arange(bounds[low], bounds[high])[codes[bounds[low] : bounds[high]] >= 0]
        pairs = np.stack([question[rows] - low, codes[rows]]).astype(np.int64)
        base = int(pairs[1].max(initial=0)) + 1
        unique, first, inverse = np.unique(pairs[0] * base + pairs[1], return_index=True, return_inverse=True)
        by_row = np.argsort(first)  # the rows ascend by question, so this orders by question and then by appearance
        rank = np.empty(len(unique), dtype=np.int64)
        rank[by_row] = np.arange(len(unique))
        answers = unique[by_row] % base
        starts = np.searchsorted(unique[by_row] // base, np.arange(high - low + 1))
        found[rows] = rank[inverse] - starts[pairs[0]]
        own[low:high] = [answers[a:b] for a, b in pairwise(starts)]
        low = high
    return found, own


def constant(question: Array, codes: Array, count: int, column: str, where: Where) -> Array:
    """The one code of each question ``[count]``, -1 where no row has any; two different ones are an error."""
    found = np.full(count, -1, dtype=np.int64)
    present = np.flatnonzero(codes >= 0)
    found[question[present]] = codes[present]
    clash = present[found[question[present]] != codes[present]]
    if clash.size:
        row = int(clash[0])
        other = int(present[(question[present] == question[row]) & (codes[present] != codes[row])][0])
        raise InvalidValue(
            f"{where(max(row, other))}, column {column!r}: differs from {where(min(row, other))}, which is of the same "
            "question: a question has one; leave the column out, or name the questions apart"
        )
    return found

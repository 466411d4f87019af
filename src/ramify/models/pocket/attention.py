"""Attention over blocks, without moving the cache.

Each block of keys gets a softmax of its own (its largest score, its mass relative to that, its weighted sum
of values), and a row's blocks are then merged in order (Milakov and Gimelshein, 2018; FlashDecoding). A block
that one row attends to is multiplied where it lies in the pool; one that several rows share is multiplied
once for all of them. Neither the batch nor the padding nor the sharing changes a bit of a row's result: a
block that a row lacks, or a masked position, adds exact zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.models.pocket.cache import BLOCK
from ramify.models.pocket.product import padded, product

__all__ = ["Plan", "attend"]


@dataclass(frozen=True, slots=True, eq=False)
class Alone:
    """A stretch of the pool, in which most blocks have one row that attends to them."""

    place: slice | np.ndarray  # a slice, or block ids if they lie far apart
    row: np.ndarray  # [slots] whose block it is; R where it is nobody's
    column: np.ndarray  # [slots] where it stands in the row's table
    bias: np.ndarray  # [slots, 1, 1, BLOCK] 0 at positions up to the row's own, -inf after them


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """Blocks that the same several rows attend to."""

    rows: np.ndarray  # [n]
    columns: np.ndarray  # [m] where the blocks stand in the rows' tables
    blocks: np.ndarray  # [m]
    bias: np.ndarray  # [m, 1, n g, BLOCK]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Who attends to what. It is the same in every layer, so it is made once a step."""

    alone: Alone
    shared: tuple[Shared, ...]
    columns: int
    group: int  # query heads to a key head
    tile: int

    @staticmethod
    def of(table: np.ndarray, position: np.ndarray, group: int, tile: int, dtype: Any) -> Plan:
        """The plan for rows at ``position [R]`` of the trajectories in ``table [R, C]``."""
        columns = int(position.max()) // BLOCK + 1
        row, column = np.nonzero(np.arange(columns) <= (position // BLOCK)[:, None])
        block = table[row, column]
        index = column[:, None] * BLOCK + np.arange(BLOCK)
        bias = np.where(index <= position[row, None], 0.0, -np.inf).astype(dtype)  # [pairs, BLOCK]
        single = np.bincount(block)[block] == 1
        alone = _alone(row[single], column[single], block[single], bias[single], nobody=position.size)
        shared = _shared(row[~single], column[~single], block[~single], bias[~single], group)
        return Plan(alone, shared, columns, group, tile)


def _alone(row: np.ndarray, column: np.ndarray, block: np.ndarray, bias: np.ndarray, nobody: int) -> Alone:
    """One stretch if at least half of it is wanted, else the blocks one by one."""
    low, high = (int(block.min()), int(block.max()) + 1) if block.size else (0, 0)
    if 2 * block.size < high - low:
        return Alone(block, row, column, bias[:, None, None])
    rows, columns = np.full(high - low, nobody), np.zeros(high - low, np.int64)
    biases = np.zeros((high - low, 1, 1, BLOCK), bias.dtype)
    rows[block - low], columns[block - low], biases[block - low, 0, 0] = row, column, bias
    return Alone(slice(low, high), rows, columns, biases)


def _shared(row: np.ndarray, column: np.ndarray, block: np.ndarray, bias: np.ndarray, group: int) -> tuple[Shared, ...]:
    """The pairs gathered by the set of rows that share a block."""
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.diff(block[order], prepend=-1))
    members: dict[bytes, list[np.ndarray]] = {}
    for pairs in np.split(order, starts[1:]) if order.size else ():
        members.setdefault(row[pairs].tobytes(), []).append(pairs)
    found = []
    for many in members.values():
        stack = np.stack(many)  # [m, n] pairs
        first, biases = stack[:, 0], np.repeat(bias[stack], group, axis=1)
        found.append(Shared(row[many[0]], column[first], block[first], biases[:, None]))
    return tuple(found)


def attend(plan: Plan, query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """softmax(q kᵀ) v of ``query [R, H, d]`` over one layer of a pool: ``[R, H d]``."""
    rows, heads, width = query.shape
    group, groups = plan.group, heads // plan.group
    # One row more than there are: it asks nothing, and takes what blocks of nobody have to say.
    queries = np.zeros((rows + 1, groups, padded(group, plan.tile), width), query.dtype)
    queries[:-1, :, :group] = query.reshape(rows, groups, group, width)
    part = np.zeros((rows + 1, plan.columns, groups, group, width), query.dtype)  # [R + 1, C, G, g, d]
    top, mass = np.full(part.shape[:-1], -np.inf, query.dtype), np.zeros(part.shape[:-1], query.dtype)

    one = plan.alone
    if one.row.size:
        found = _block(queries[one.row], keys[one.place], values[one.place], one.bias, group, plan.tile)
        for whole, each in zip((top, mass, part), found, strict=True):
            whole[one.row, one.column] = each
    for many in plan.shared:
        count = many.rows.size
        stacked = queries[many.rows, :, :group].swapaxes(0, 1).reshape(groups, count * group, width)
        found = _block(stacked, keys[many.blocks], values[many.blocks], many.bias, count * group, plan.tile)
        for whole, each in zip((top, mass, part), found, strict=True):
            by_row = each.reshape(-1, groups, count, group, *each.shape[3:])
            whole[many.rows[:, None], many.columns] = np.moveaxis(by_row, 2, 0)

    top, mass, part = top[:-1], mass[:-1], part[:-1]
    scale = np.exp(top - top.max(axis=1, keepdims=True))
    part *= scale[..., None]
    total: np.ndarray = _in_order(part) / _in_order(mass * scale)[..., None]
    return total.reshape(rows, heads * width)


def _block(
    query: np.ndarray, keys: np.ndarray, values: np.ndarray, bias: np.ndarray, count: int, tile: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each block's own softmax, for the first ``count`` of ``query [..., M, d]``: top, mass, sum over v."""
    weight = product(query, keys, tile)
    mine = weight[..., :count, :]
    mine += bias
    # Turned round first, because NumPy takes a maximum across rows twice as fast as along them.
    top = np.ascontiguousarray(mine.transpose(3, 0, 1, 2)).max(axis=0)
    mine -= top[..., None]
    np.exp(mine, out=mine)
    mass = np.vecdot(mine, np.ones(BLOCK, mine.dtype))
    return top, mass, product(weight, values, tile)[..., :count, :]


def _in_order(parts: np.ndarray) -> np.ndarray:
    """The sum over axis 1, first to last: zeros at the end change nothing."""
    total = parts[:, 0].copy()
    for column in range(1, parts.shape[1]):
        total += parts[:, column]
    return total

"""Keys and values in blocks of ``BLOCK`` positions: written once, shared by every row with the same prefix.

A row is a list of block ids, so forking, pruning and merging rows copy integers. A state may append to its
last block in place while nobody else has written past its length; otherwise it takes a copy of that one block
first. States are therefore values: advancing one never changes what another sees.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

__all__ = ["BLOCK", "Lease", "Pool"]

ROOM = 1024  # blocks of a new pool
FEW = 256  # blocks not worth giving back
BLOCK = 32  # positions; a multiple of product.WIDTH, and at most product.CHAIN


class Pool:
    """The blocks of one model, by layer: ``keys [P, G, d, BLOCK]`` and ``values [P, G, BLOCK, d]``."""

    def __init__(self, layers: int, groups: int, head_width: int, dtype: str, blocks: int = ROOM) -> None:
        # Zeros cost no memory until they are written to, so there is room from the start.
        self.keys = [np.zeros((blocks, groups, head_width, BLOCK), dtype) for _ in range(layers)]
        self.values = [np.zeros((blocks, groups, BLOCK, head_width), dtype) for _ in range(layers)]
        self.uses = np.zeros(blocks, np.int64)  # [P] rows of leases that hold the block; 0 is free
        self.written = np.zeros(blocks, np.int64)  # [P] positions that somebody has written
        self.returned: deque[np.ndarray] = deque()  # what dead leases held, until somebody looks
        self.copied = 0  # blocks, ever: what forks have cost

    @property
    def block_bytes(self) -> int:
        """The size of one block, all layers together."""
        return sum(cached[0].nbytes for cached in (*self.keys, *self.values))

    def take(self, count: int) -> np.ndarray:
        """The ids of ``count`` free blocks, the lowest ones, so that blocks in use stay close together."""
        while self.returned:
            np.subtract.at(self.uses, self.returned.popleft(), 1)
        self._shed(count)
        free = np.flatnonzero(self.uses == 0)[:count]
        if free.size < count:
            self._resize(max(2 * self.uses.size, self.uses.size + count), keep=self.uses.size)
            return self.take(count)
        old = free[self.written[free] > 0]
        for values in self.values:
            values[old] = 0.0  # a masked position weighs exactly nothing only if its value is finite
        self.written[free] = 0
        return free

    def lease(self, table: np.ndarray) -> Lease:
        """A hold on every block of ``table [B, C]`` (-1 is none) that lasts as long as the object."""
        held = table[table >= 0]
        np.add.at(self.uses, held, 1)
        return Lease(self, held)

    def extend(self, table: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, bool]:
        """A table under which each row may write its position ``length [B]``, and whether it is a new one."""
        rows, column, offset = np.arange(length.size), length // BLOCK, length % BLOCK
        missing = int(column.max(initial=0)) + 1 - table.shape[1]
        if missing > 0:
            table = np.concatenate([table, np.full((length.size, missing), -1)], axis=1)
        last = table[rows, column]
        mine = np.zeros(length.size, bool)
        candidates = np.flatnonzero((offset > 0) & (self.written[last] == offset))
        mine[candidates[np.unique(last[candidates], return_index=True)[1]]] = True  # one writer a block
        moved = np.flatnonzero(~mine)
        if moved.size:
            table, new = table.copy(), self.take(moved.size)
            started = offset[moved] > 0
            for cached in (*self.keys, *self.values):
                cached[new[started]] = cached[last[moved][started]]
            self.copied += int(started.sum())
            table[moved, column[moved]] = new
        self.written[table[rows, column]] = offset + 1
        return table, bool(moved.size)

    def write(self, layer: int, block: np.ndarray, offset: np.ndarray, key: np.ndarray, value: np.ndarray) -> None:
        """Put ``key, value [R, G, d]`` at ``(block, offset) [R]``."""
        self.keys[layer][block, :, :, offset] = key
        self.values[layer][block, :, offset] = value

    def _shed(self, count: int) -> None:
        """Give memory back when a large batch is over: what is written beyond four times what is in use."""
        in_use = int(np.flatnonzero(self.uses).max(initial=-1)) + 1
        touched = int(np.flatnonzero(self.written).max(initial=-1)) + 1
        if touched > max(FEW, 4 * (in_use + count)):
            self._resize(max(ROOM, in_use + count), keep=in_use)

    def _resize(self, blocks: int, keep: int) -> None:
        for arrays in (self.keys, self.values):
            arrays[:] = [_resized(old, blocks, keep) for old in arrays]
        self.uses, self.written = _resized(self.uses, blocks, keep), _resized(self.written, blocks, keep)


def _resized(old: np.ndarray, size: int, keep: int) -> np.ndarray:
    """Zeros of another length, after the first ``keep``."""
    new = np.zeros((size, *old.shape[1:]), old.dtype)
    new[:keep] = old[:keep]
    return new


@dataclass(slots=True, eq=False, weakref_slot=True)
class Lease:
    """A hold on blocks. When nobody keeps it any more, they are free again."""

    pool: Pool
    held: np.ndarray

    def __del__(self) -> None:
        self.pool.returned.append(self.held)  # no more than this: it may run in any thread, at any time

"""Training rows: examples packed into rows of 512 tokens, the same for any number of workers.

A row is uint8: the token, plus 128 where it is taught. Documents in a row end with their own end mark, so the
rows say everything: token, loss mask and document.
"""

from __future__ import annotations

import bisect
import multiprocessing as mp
from multiprocessing.pool import Pool

import numpy as np

from ramify.tasks.pocket.alphabet import PAD
from ramify.tasks.pocket.examples import Curriculum, Examples
from ramify.types import Key

__all__ = ["ROW", "TAUGHT", "generate", "pack", "workers"]

ROW = 512
TAUGHT = 128
BLOCK = 4096  # examples per key; part of what a seed means


def workers(count: int) -> Pool:
    """Processes that generate and label. Fork them before CUDA starts."""
    return mp.get_context("fork").Pool(count)


def pack(data: Examples) -> np.ndarray:
    """Rows ``[R, 512]`` that hold every example whole, longest first into the fullest row with room."""
    lengths = np.diff(data.offsets)
    marked = data.tokens | (data.taught * np.uint8(TAUGHT))
    rows: list[np.ndarray] = []
    rooms: list[tuple[int, int]] = []  # (room left, row), sorted
    for i in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[i])
        at = bisect.bisect_left(rooms, (length, -1))
        if at < len(rooms):
            room, row = rooms.pop(at)
        else:
            room, row = ROW, len(rows)
            rows.append(np.full(ROW, PAD, dtype=np.uint8))
        start = data.offsets[i]
        rows[row][ROW - room : ROW - room + length] = marked[start : start + length]
        bisect.insort(rooms, (room - length, row))
    return np.stack(rows)


def _block(job: tuple[Curriculum, str, int, int, str]) -> np.ndarray:
    mixture, run, block, n, split = job
    return pack(mixture(Key(run, split, block, "examples"), n, split))


def generate(pool: Pool, mixture: Curriculum, run: str, examples: int, split: str = "train") -> np.ndarray:
    """About ``examples`` examples as rows ``[R, 512]``, in the order of their blocks."""
    blocks = -(-examples // BLOCK)
    size = min(BLOCK, examples)
    jobs = [(mixture, run, block, size, split) for block in range(blocks)]
    return np.concatenate(list(pool.imap(_block, jobs, chunksize=1)))

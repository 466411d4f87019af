"""Token data of a bank: flat columns, and where each candidate's part of them lies."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.errors import InvalidValue, require

__all__ = ["COLUMNS", "TokenTable"]

COLUMNS: dict[str, np.dtype[Any]] = {  # name -> dtype; the two of the alternatives are [T, K]
    "token": np.dtype(np.int32),
    "role": np.dtype(np.int8),
    "logprob": np.dtype(np.float64),
    "log_q": np.dtype(np.float64),
    "rank": np.dtype(np.int32),
    "support": np.dtype(np.int32),
    "fallback": np.dtype(bool),
    "top_ids": np.dtype(np.int32),
    "top_logprobs": np.dtype(np.float32),
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """Candidate (q, n) owns positions ``start[q, n] : start[q, n] + length[q, n]`` of every column.

    Slicing a bank moves starts and lengths only, so columns may be memory-mapped and far larger than memory. A column
    that was not recorded is absent, and asking for it names it.
    """

    start: Array  # [Q, N], -1 where no tokens are recorded
    length: Array  # [Q, N], 0 there
    columns: Mapping[str, Array]  # [T] or [T, K]

    def __post_init__(self) -> None:
        require(
            self.start.shape == self.length.shape, "TokenTable.length", self.length.shape, f"use {self.start.shape}"
        )
        sizes = {name: len(column) for name, column in self.columns.items()}
        require(len(set(sizes.values())) <= 1, "TokenTable.columns", sizes, "give every column the same length")
        end = int((self.start + self.length).max(initial=0))
        require(end <= self.size or not self.columns, "TokenTable.start", end, f"stay within the {self.size} tokens")

    @property
    def size(self) -> int:
        """T, the number of positions in the columns."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __getitem__(self, name: str) -> Array:
        """A column ``[T]`` (or ``[T, K]`` for the alternatives)."""
        if name not in self.columns:
            raise InvalidValue(
                f"the bank did not record {name!r}: it has {', '.join(self.columns) or 'no token columns'}"
            )
        return self.columns[name]

    def of(self, question: int, candidate: int) -> dict[str, Array]:
        """The columns of one candidate, as views."""
        start, length = int(self.start[question, candidate]), int(self.length[question, candidate])
        require(start >= 0, f"tokens of candidate ({question}, {candidate})", None, "none were recorded")
        return {name: column[start : start + length] for name, column in self.columns.items()}

    def gather(self, rows: Array, columns: Array) -> TokenTable:
        """The table of a sliced bank: ``rows [Q', 1]`` and ``columns [Q', N']``, -1 for a candidate not drawn."""
        start = np.where(columns < 0, -1, self.start[rows, columns])
        return dataclasses.replace(self, start=start, length=np.where(start < 0, 0, self.length[rows, columns]))

    def packed(self, *names: str) -> tuple[Array, dict[str, Array]]:
        """``(offsets [Q N + 1], columns)`` with the candidates one after the other in ``[Q, N]`` order.

        A view where the table already lies like that, which a bank fresh from disk does.
        """
        start, length = self.start.reshape(-1), self.length.reshape(-1)
        offsets = np.concatenate([[0], np.cumsum(length, dtype=np.int64)])
        recorded = length > 0
        if np.array_equal(start[recorded], offsets[:-1][recorded] + (start[recorded][:1] if recorded.any() else 0)):
            first = int(start[recorded][0]) if recorded.any() else 0
            return offsets, {name: self[name][first : first + int(offsets[-1])] for name in names}
        index = np.repeat(start - offsets[:-1], length) + np.arange(offsets[-1])
        return offsets, {name: self[name][index] for name in names}

    @classmethod
    def join(cls, tables: Sequence[TokenTable | None], shapes: Sequence[tuple[int, int]]) -> TokenTable | None:
        """The tables of several banks side by side, along N. Only columns that all of them recorded are kept."""
        present = [table for table in tables if table is not None]
        if not present:
            return None
        shared = [name for name in present[0].columns if all(name in table.columns for table in present)]
        widths = {name: {table[name].shape[1:] for table in present} for name in shared}
        shared = [name for name in shared if len(widths[name]) == 1]  # alternatives of another K are another column
        starts, lengths, shift = [], [], 0
        for table, shape in zip(tables, shapes, strict=True):
            if table is None:
                starts.append(np.full(shape, -1, dtype=np.int64))
                lengths.append(np.zeros(shape, dtype=np.int64))
                continue
            starts.append(np.where(table.start < 0, -1, table.start + shift))
            lengths.append(table.length)
            shift += table.size
        columns = {name: np.concatenate([table[name] for table in present]) for name in shared}
        return cls(np.concatenate(starts, axis=1), np.concatenate(lengths, axis=1), columns)

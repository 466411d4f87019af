"""Some rows of a file, and the shapes they come in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.store.exchange.report import Collector

__all__ = ["Block", "exploded"]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows, as columns of Python values or Arrow arrays. ``lines`` says where in the file each row lies."""

    columns: dict[str, Any]
    lines: Sequence[int] | np.ndarray
    unit: str  # "row" or "line"

    def where(self, row: int) -> str:
        return f"{self.unit} {int(self.lines[row])}"

    def listed(self, name: str) -> list[Any]:
        values = self.columns[name]
        return list(values if isinstance(values, list) else values.to_pylist())


def exploded(block: Block, lists: Collection[str], found: Collector) -> Block:
    """A row a candidate, of rows that hold a question's candidates in lists."""
    columns = {name: block.listed(name) for name in block.columns}
    counts = [_width(block, columns, lists, row, found) for row in range(len(block.lines))]
    flat: dict[str, list[Any]] = {}
    for name, values in columns.items():
        pairs = list(zip(values, counts, strict=True))
        if name in lists:
            flat[name] = [each for value, n in pairs for each in (value if value is not None else [None] * n)[:n]]
        else:
            flat[name] = [value for value, n in pairs for _ in range(n)]
    return Block(flat, np.repeat(np.asarray(block.lines), counts), block.unit)


def _width(block: Block, columns: dict[str, list[Any]], lists: Collection[str], row: int, found: Collector) -> int:
    """How many candidates a row has: all its lists say the same, or the row is broken."""
    widths: dict[str, int] = {}
    for name in lists:
        value = columns[name][row]
        if value is not None and not isinstance(value, list):
            found.broken(block.where(row), name, value, "not a list, where other rows have one")
            return 0
        if value is not None:
            widths[name] = len(value)
    if len(set(widths.values())) > 1:
        found.broken(block.where(row), "", None, f"its lists have different lengths: {widths}")
        return 0
    return next(iter(widths.values()), 0)

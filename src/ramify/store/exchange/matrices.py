"""Parquet files and NumPy matrices in blocks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ramify.errors import InvalidValue
from ramify.store.exchange.block import Block
from ramify.store.exchange.stream import suffix_of

__all__ = ["numpy_blocks", "parquet_blocks"]


def parquet_blocks(path: Path, size: int, only: Collection[str] | None) -> Iterator[Block]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        names = [name for name in file.schema_arrow.names if only is None or name in only]
        rows = max(1, size * max(file.metadata.num_rows, 1) // max(path.stat().st_size * 2, 1))
        row = 1
        for batch in file.iter_batches(batch_size=rows, columns=names, use_threads=False):
            yield Block(
                dict(zip(batch.schema.names, batch.columns, strict=True)), range(row, row + batch.num_rows), "row"
            )
            row += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidValue(f"{path}: not a Parquet file that can be read: {error}") from None


def numpy_blocks(path: Path, size: int, only: Collection[str] | None) -> Iterator[Block]:
    """Matrices ``[Q, N]`` and what is known of the questions ``[Q]``, as rows."""
    import pyarrow as pa

    arrays = _arrays(path)
    shape = next((array.shape for array in arrays.values() if array.ndim == 2), None)
    if shape is None:
        raise InvalidValue(f"{path}: no [Q, N] matrix in it; it has { ({n: a.shape for n, a in arrays.items()}) }")
    for name, array in arrays.items():
        if array.shape not in (shape, shape[:1]):
            raise InvalidValue(f"{path}: {name!r} has the shape {array.shape}: use {shape} or {shape[:1]}")
    drawn = arrays.pop("drawn", None)
    rows = max(1, size // max(1, sum(a.dtype.itemsize * a.size // max(1, a.shape[0]) for a in arrays.values())))
    for low in range(0, shape[0], rows):
        high = min(low + rows, shape[0])
        kept = np.ones((high - low, shape[1]), bool) if drawn is None else np.asarray(drawn[low:high], dtype=bool)
        place = np.broadcast_to(np.arange(low, high)[:, None], kept.shape)[kept]
        columns = {"question": pa.array(np.char.add("q", place.astype(str)))} if "question" not in arrays else {}
        columns |= (
            {"sample": pa.array(np.broadcast_to(np.arange(shape[1]), kept.shape)[kept])}
            if "sample" not in arrays
            else {}
        )
        for name, array in arrays.items():
            values = np.asarray(array[low:high])
            spread = values if values.ndim == 2 else np.broadcast_to(values[:, None], kept.shape)
            columns[name] = _arrow(spread[kept])
        yield Block({n: c for n, c in columns.items() if only is None or n in only}, place + 1, "row")


def _arrow(values: np.ndarray) -> Any:
    import pyarrow as pa

    if values.dtype.kind == "U":
        return pa.array(values, mask=values == "")
    return pa.array(values, mask=np.isnan(values) if values.dtype.kind == "f" else None)


def _arrays(path: Path) -> dict[str, Any]:
    try:
        if suffix_of(path) == ".npz":
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        told = (
            "it holds Python objects, which are code and never loaded"
            if re.search("pickle|objects", str(error))
            else str(error)
        )
        raise InvalidValue(f"{path}: not a NumPy file that can be read: {told}") from None
    return {_role(matrix): matrix}


def _role(matrix: np.ndarray) -> str:
    """What a bare matrix holds: grades if only 0 and 1, scores if fractions, answers otherwise."""
    if matrix.dtype.kind not in "fiub":
        return "answer"
    finite = [block[~np.isnan(block)] if matrix.dtype.kind == "f" else block for block in matrix]
    if all(((block == 0) | (block == 1)).all() for block in finite):
        return "correct"
    return "answer" if all((block == np.floor(block)).all() for block in finite) else "score"

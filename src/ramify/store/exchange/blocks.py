"""Files as blocks of rows, one after the other: memory is a block's, whatever the size of the file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from ramify.errors import InvalidValue
from ramify.store.exchange.block import Block
from ramify.store.exchange.delimited import delimited
from ramify.store.exchange.lines import json_document, json_lines
from ramify.store.exchange.matrices import numpy_blocks, parquet_blocks
from ramify.store.exchange.report import Collector
from ramify.store.exchange.stream import SUFFIXES, suffix_of

__all__ = ["FORMATS", "blocks"]

FORMATS = SUFFIXES
DELIMITER = {".csv": ",", ".tsv": "\t"}


def blocks(
    path: Path, encoding: str, size: int, found: Collector, only: Collection[str] | None = None
) -> Iterator[Block]:
    """The rows of a file in blocks of about ``size`` bytes, with the columns ``only`` where the format can choose."""
    suffix = suffix_of(path)
    if not path.is_file():
        raise InvalidValue(f"{path}: there is no such file")
    match suffix:
        case ".jsonl" | ".ndjson":
            return json_lines(path, encoding, size, found)
        case ".json":
            return json_document(path, encoding, found)
        case ".csv" | ".tsv":
            return delimited(path, encoding, size, found, DELIMITER[suffix], only)
        case ".parquet":
            return parquet_blocks(path, size, only)
        case ".npy" | ".npz":
            return numpy_blocks(path, size, only)
    raise InvalidValue(
        f"{path}: {suffix or 'no suffix'!r} is no format; use one of {', '.join(FORMATS)}, text also as .gz"
    )

"""CSV and TSV in blocks, every cell as text: types are the business of the parts."""

from __future__ import annotations

import csv as reading
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ramify.errors import InvalidValue
from ramify.store.exchange.block import Block
from ramify.store.exchange.report import Collector
from ramify.store.exchange.stream import opened

__all__ = ["delimited"]


def delimited(
    path: Path, encoding: str, size: int, found: Collector, delimiter: str, only: Collection[str] | None
) -> Iterator[Block]:
    """The rows through Arrow's streaming reader; the header is row 1, as in a spreadsheet."""
    import pyarrow as pa
    from pyarrow import csv

    names = _header(path, encoding, delimiter)
    wanted = [name for name in names if only is None or name in only]
    skipped: set[int] = set()

    def invalid(row: Any) -> str:
        skipped.add(row.number)
        what = f"{row.actual_columns} cells where the header has {row.expected_columns}"
        problems.append((f"row {row.number}", row.text, what))
        return "skip" if found.strict == "nothing" else "error"

    problems: list[tuple[str, str, str]] = []  # Arrow swallows what is raised in there
    try:
        with opened(path, encoding, found) as stream:
            reader = csv.open_csv(
                pa.PythonFile(stream, "r"),
                csv.ReadOptions(block_size=size, use_threads=False),
                csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=invalid),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    include_columns=wanted,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            row = 2
            for batch in reader:
                _tell(problems, found)
                lines = _numbered(row, batch.num_rows, skipped)
                yield Block(dict(zip(wanted, batch.columns, strict=True)), lines, "row")
                row = int(lines[-1]) + 1 if batch.num_rows else row
            _tell(problems, found)
    except pa.ArrowInvalid as error:
        _tell(problems, found)
        _explain(path, error, names)


def _tell(problems: list[tuple[str, str, str]], found: Collector) -> None:
    while problems:
        where, text, what = problems.pop(0)
        found.broken(where, "", text, what)


def _numbered(first: int, count: int, skipped: set[int]) -> Sequence[int] | np.ndarray:
    """The numbers of a block's rows, when some were skipped on the way."""
    gone = sorted(number for number in skipped if number >= first)
    numbers = np.arange(first, first + count + len(gone))
    return range(first, first + count) if not gone else numbers[~np.isin(numbers, gone)][:count]


def _explain(path: Path, error: Exception, names: Sequence[str]) -> NoReturn:
    """Arrow's complaint in our words: which row and which column."""
    told = str(error)
    if "Empty CSV" in told:
        raise InvalidValue(f"{path}: the file is empty: the first row names the columns") from None
    if "straddl" in told:
        raise InvalidValue(
            f"{path}: a row is longer than a block, or a quote never ends: pass a larger block="
        ) from None
    place = re.search(r"column #(\d+)(?:: Row #(\d+))?", told)
    if place and "UTF8" in told:
        column = names[int(place[1])] if int(place[1]) < len(names) else place[1]
        row = f"row {place[2]}" if place[2] else "a row"
        raise InvalidValue(f"{path}: {row}, column {column!r}: not UTF-8: pass the file's encoding") from None
    raise InvalidValue(f"{path}: {told}") from None


def _header(path: Path, encoding: str, delimiter: str) -> list[str]:
    with opened(path, encoding, Collector(str(path), "nothing")) as stream:  # the rows come later, and count then
        line = stream.readline(1 << 20)
    try:
        names = next(reading.reader([line.decode()], delimiter=delimiter), [])
    except (UnicodeDecodeError, reading.Error) as error:
        raise InvalidValue(f"{path}: row 1: {error}") from None
    if not names:
        raise InvalidValue(f"{path}: the file is empty: the first row names the columns")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidValue(f"{path}: row 1: the column {twice[0]!r} is there twice: give each a name of its own")
    return names

"""JSON, a line or a document at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ramify.errors import InvalidValue
from ramify.store.exchange.block import Block
from ramify.store.exchange.report import Collector, clip
from ramify.store.exchange.stream import opened

__all__ = ["json_document", "json_lines"]

DOCUMENT = 1 << 30  # bytes of a .json file, which has to be read whole


def json_lines(path: Path, encoding: str, size: int, found: Collector) -> Iterator[Block]:
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    held = 0
    with opened(path, encoding, found) as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            row = _decoded(line, f"line {number}", found)
            if row is not None:
                rows.append(row)
                lines.append(number)
                held += len(line)
            if held >= size:
                yield Block(_columns(rows), lines, "line")
                rows, lines, held = [], [], 0
    if rows:
        yield Block(_columns(rows), lines, "line")


def _decoded(line: bytes, where: str, found: Collector) -> dict[str, Any] | None:
    """One JSON object of a line; text stays text."""
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError as error:
        found.broken(where, "", None, f"not UTF-8 ({error.reason}): pass the file's encoding")
        return None
    except (ValueError, RecursionError) as error:
        found.broken(where, "", None, f"not JSON: {clip(str(error))[1:-1]}")
        return None
    if not isinstance(row, dict):
        found.broken(where, "", row, "not an object: give each line as {column: value}")
        return None
    return row


def json_document(path: Path, encoding: str, found: Collector) -> Iterator[Block]:
    """A whole .json file: an array of objects, or one object, which is one row."""
    with opened(path, encoding, found) as stream:
        text = stream.read(DOCUMENT + 1)
    if len(text) > DOCUMENT:
        raise InvalidValue(f"{path}: over {DOCUMENT >> 20} MiB of JSON in one document: give it as lines (.jsonl)")
    try:
        document = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{path}: not a JSON document: {error}") from None
    rows = document if isinstance(document, list) else [document]
    for place, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise InvalidValue(f"{path}: row {place} = {clip(row)}: not an object")
    if rows:
        yield Block(_columns(rows), range(1, len(rows) + 1), "row")


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; what a row lacks is None. Objects inside become columns of their own: ``infos.r``."""
    flat = [_flattened(row) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    return {name: [row.get(name) for row in flat] for name in names}


def _flattened(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found.update({f"{name}.{inner}": each for inner, each in value.items()})
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            inner = dict.fromkeys(key for each in value for key in each)
            found.update({f"{name}.{key}": [each.get(key) for each in value] for key in inner})
        else:
            found[name] = value
    return found

"""Records from a file, a folder or the hub: JSONL, JSON, CSV and Parquet, packed by gzip or not."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ramify.errors import InvalidValue

__all__ = ["SUFFIXES", "Record", "found_in", "from_hub", "records"]

Record: TypeAlias = Mapping[str, Any]
SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".parquet")


def records(path: Path) -> list[Record]:
    """The records of one file; a line that is none is an error that names it."""
    if path.name.endswith(".parquet"):
        import pyarrow.parquet as parquet

        return list(parquet.read_table(path).to_pylist())
    raw = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
    name = path.name.removesuffix(".gz")
    if name.endswith(".csv"):
        return list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline="")))
    if name.endswith(".json"):
        return _listed(json.loads(raw), path)
    if name.endswith(".jsonl"):
        return list(_lines(raw, path))
    raise InvalidValue(f"{path}: use a file that ends in {', '.join(SUFFIXES)}")


def _lines(raw: bytes, path: Path) -> Iterator[Record]:
    for number, line in enumerate(raw.splitlines(), 1):
        if line.strip():
            try:
                record = json.loads(line)
            except ValueError as error:
                raise InvalidValue(f"{path}, line {number}: {error}") from None
            if not isinstance(record, dict):
                raise InvalidValue(f"{path}, line {number}: use one JSON object a line")
            yield record


def _listed(value: Any, path: Path) -> list[Record]:
    """A list of objects, or an object that holds one under any name, as the files of BIG-Bench Hard do."""
    if isinstance(value, dict):
        value = next((each for each in value.values() if isinstance(each, list)), None)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InvalidValue(f"{path}: use a JSON list of objects")
    return value


def found_in(source: str, names: Sequence[str]) -> Path:
    """The file that ``source`` is, or that a folder of that name has under one of ``names``; else what was missed."""
    path = Path(source)
    if path.is_file():
        return path
    if not path.exists():
        raise InvalidValue(f"source = {source!r}: there is no such file or folder; use a path, or 'hub'")
    for name in names:
        for suffix in SUFFIXES:
            if (path / f"{name}{suffix}").is_file():
                return path / f"{name}{suffix}"
    looked = ", ".join(f"{name}.*" for name in names)
    raise InvalidValue(f"{source}: has none of {looked} ({', '.join(SUFFIXES)}); put the file there, or name it itself")


def from_hub(dataset: str, config: str | None, split: str) -> list[Record]:
    """The records of a dataset on the Hugging Face hub, by the ``datasets`` package where it is installed."""
    try:
        import datasets
    except ImportError:
        raise InvalidValue(
            f"source = 'hub': {dataset} needs the datasets package: pip install 'ramify[hub]', or give a local file"
        ) from None
    return list(datasets.load_dataset(dataset, config, split=split))

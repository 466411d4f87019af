"""Write a bank as a file that others read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from ramify.bank import Bank, Outcomes, Proposal, to_arrow
from ramify.errors import InvalidValue, require
from ramify.store.exchange.stream import suffix_of

__all__ = ["write"]

WRITTEN = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv", ".npz")
ROWS = 10_000  # turned to text together
MATRIX = 1 << 30  # bytes of a matrix of answers: NumPy gives every answer the width of the longest


def write(
    bank: Bank, outcomes: Mapping[str, Outcomes] | None, path: str | PathLike[str], *, tokens: bool | None = None
) -> Path:
    """Write the drawn candidates, one row each: .jsonl, .csv, .tsv (all also .gz), .parquet, or matrices as .npz.

    Parquet keeps everything. JSONL and CSV keep all facts but the descriptions of layers and outcomes; CSV and .npz
    have no place for tokens, nor .npz for text. ``tokens`` defaults to whatever the format can hold. The file appears
    whole or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     print(write(Bank.of({"q": ["A", None]}), None, Path(folder) / "bank.csv").read_text())
    "question","prompt","run","candidate","sample","answer","ended"
    "q","","",0,0,"A","unknown"
    "q","","",1,1,,"unknown"
    """
    path = Path(path)
    suffix, outcomes = suffix_of(path), outcomes or {}
    holds = suffix in (".parquet", ".jsonl", ".ndjson")
    require(not tokens or holds, "tokens", tokens, f"{suffix} has no place for them: use .parquet or .jsonl")
    if suffix not in WRITTEN or (path.suffix == ".gz" and suffix in (".parquet", ".npz")):
        raise InvalidValue(f"{path}: {suffix or 'no suffix'!r} cannot be written; use one of {', '.join(WRITTEN)}")
    names = bank.tokens.columns if bank.tokens is not None and holds and tokens is not False else ()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        match suffix:
            case ".parquet":
                _parquet(to_arrow(bank, outcomes, names), part)
            case ".jsonl" | ".ndjson":
                _jsonl(*_flat(bank, outcomes, names), _text(path, part))
            case ".csv" | ".tsv":
                _csv(*_flat(bank, outcomes, names), _text(path, part), "\t" if suffix == ".tsv" else ",")
            case _:
                _npz(_matrices(bank, outcomes), part)
        part.replace(path)
    except OSError as error:
        raise InvalidValue(f"{path}: cannot be written: {error}") from None
    finally:
        part.unlink(missing_ok=True)
    return path


def _parquet(table: Any, part: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(table, part, compression="zstd")


def _flat(bank: Bank, outcomes: Mapping[str, Outcomes], names: Iterable[str]) -> tuple[Any, Any]:
    """The table, and the plain types to write it in. The proposal is left out where the run says it all."""
    import pyarrow as pa

    table = to_arrow(bank, outcomes, names)
    if all(proposal == Proposal(run=proposal.run) for proposal in bank.proposals):
        table = table.drop_columns(["proposal"])
    plain = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table, pa.schema(plain)


def _text(path: Path, part: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(part, "wb", 6) if path.suffix == ".gz" else part.open("wb"))


def _jsonl(table: Any, _: Any, stream: BinaryIO) -> None:
    with stream:
        for batch in table.to_batches(max_chunksize=ROWS):
            for row in batch.to_pylist():
                stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _csv(table: Any, schema: Any, stream: BinaryIO, delimiter: str) -> None:
    from pyarrow import csv

    options = csv.WriteOptions(delimiter=delimiter)
    with stream, csv.CSVWriter(stream, schema, write_options=options) as writer:
        for batch in table.to_batches(max_chunksize=ROWS):
            writer.write_batch(batch.cast(schema))


def _npz(arrays: Mapping[str, Any], part: Path) -> None:
    with part.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _matrices(bank: Bank, outcomes: Mapping[str, Outcomes]) -> dict[str, Any]:
    """``[Q, N]`` matrices, and ``[Q]`` of the questions, under the names of the columns."""
    longest = max((len(str(answer)) for texts in bank.answer_text for answer in texts), default=1)
    size = bank.answers.size * longest * 4
    require(size <= MATRIX, "answers", f"{size >> 20} MiB as a matrix", "use .parquet, which stores each answer once")
    answers = np.zeros(bank.shape, dtype=f"U{longest}")
    for q, n in zip(*np.nonzero(bank.answers >= 0), strict=True):
        answers[q, n] = str(bank.answer(q, n))
    arrays: dict[str, Any] = {
        "question": np.array([question.id for question in bank.questions], dtype=str),
        "prompt": np.array([question.prompt for question in bank.questions], dtype=str),
        "drawn": bank.drawn,
        "sample": bank.samples,
        "answer": answers,
        "ended": np.array(bank.endings)[bank.ended],
        "run": np.array([*(proposal.run for proposal in bank.proposals), ""])[bank.source],
    }
    for group in dict.fromkeys(name for question in bank.questions for name in question.groups):
        arrays[f"group.{group}"] = np.array([question.groups.get(group, "") for question in bank.questions])
    if bank.length is not None:
        arrays["length"] = np.where(bank.length < 0, np.nan, bank.length)
    if bank.log_q is not None:
        arrays["log_q"] = bank.log_q
    arrays |= {f"layer.{name}": layer.values for name, layer in bank.layers.items()}
    arrays |= {f"outcome.{name}": graded.on(bank) for name, graded in outcomes.items()}
    return arrays

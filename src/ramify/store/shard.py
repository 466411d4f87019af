"""Shards: sealed candidates as Parquet, the same rows and row groups in each of a shard's files.

attempts      question, run, sample, ..., text                one row a candidate, plain columns
tokens        token, logprob, rank, ... as lists              one row a candidate
alternatives  ids as lists, log-probabilities in the lattice code, or as floats where it does not hold
times         seconds: apart, so that equal content is equal bytes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ramify.bank.tokens import COLUMNS
from ramify.store import lattice
from ramify.store.records import Record
from ramify.types import Key

__all__ = ["FILES", "columns_of", "records_of", "row_groups", "tables", "write"]

FILES = ("attempts", "tokens", "alternatives", "times")
GROUP_TOKENS = 1 << 17  # a row group holds whole pools up to this many tokens
RAW_ABOVE = 0.2  # share of exceptions from which the lattice code does not pay

_WORDS = pa.dictionary(pa.int32(), pa.string())


def _list(kind: pa.DataType) -> pa.DataType:
    """A list without nulls inside, which reads a quarter faster than one that might have some."""
    return pa.list_(pa.field("element", kind, nullable=False))


ATTEMPTS = pa.schema(
    [
        pa.field("question", _WORDS, nullable=False),
        pa.field("run", _WORDS, nullable=False),
        pa.field("sample", pa.uint64(), nullable=False),
        pa.field("stream", _WORDS, nullable=False),
        pa.field("protocol", _WORDS, nullable=False),
        pa.field("ended", _WORDS, nullable=False),
        pa.field("answer", pa.string()),
        pa.field("status", _WORDS, nullable=False),
        pa.field("length", pa.int32()),
        pa.field("log_q", pa.float64()),
        pa.field("text", pa.large_string()),
        pa.field("digest", pa.binary(16), nullable=False),
    ]
)
TOKEN_TYPES = {
    "token": pa.int32(),
    "role": pa.int8(),
    "logprob": pa.float32(),
    "log_q": pa.float32(),
    "logprob64": pa.float64(),
    "log_q64": pa.float64(),
    "rank": pa.int32(),
    "support": pa.int32(),
    "fallback": pa.bool_(),
    "confidence": pa.float32(),
    "entropy": pa.float32(),
}
TOKENS = pa.schema([pa.field(name, _list(kind)) for name, kind in TOKEN_TYPES.items()])
ALTERNATIVES = pa.schema(
    [
        pa.field("k", pa.int32()),
        pa.field("ids", _list(pa.int32())),  # [t K], token by token
        pa.field("first", _list(pa.float32())),  # the best one's, where the chosen token is another
        pa.field("exponent", _list(pa.int8())),
        pa.field("steps", pa.large_binary()),  # [2, K - 1, t]: low bytes, then high bytes
        pa.field("exceptions", _list(pa.int32())),
        pa.field("exact", _list(pa.float32())),
        pa.field("logprobs", _list(pa.float32())),  # [t K], instead of the code
    ]
)
TIMES = pa.schema([pa.field("seconds", pa.float64())])
SCHEMAS = {"attempts": ATTEMPTS, "tokens": TOKENS, "alternatives": ALTERNATIVES, "times": TIMES}
SPLIT = (
    "logprob",
    "log_q",
    "logprob64",
    "log_q64",
    "confidence",
    "entropy",
    "first",
    "exact",
    "logprobs",
    "token",
    "ids",
)


# ------------------------------------------------------------------------------------------------------------- writing


def tables(records: Sequence[Record]) -> dict[str, pa.Table]:
    """The rows of each file for these candidates."""
    attempts = [
        {
            "question": record.key.question,
            "run": record.key.run,
            "sample": record.key.sample,
            "stream": record.key.stream,
            "protocol": record.protocol,
            "ended": record.ended,
            "answer": record.answer,
            "status": record.status,
            "length": record.length,
            "log_q": record.log_q,
            "text": record.text,
            "digest": record.digest,
        }
        for record in records
    ]
    return {
        "attempts": pa.Table.from_pylist(attempts, schema=ATTEMPTS),
        "tokens": _columns([_tokens(record) for record in records], TOKENS),
        "alternatives": _columns([_alternatives(record) for record in records], ALTERNATIVES),
        "times": pa.Table.from_pylist([{"seconds": record.seconds} for record in records], schema=TIMES),
    }


def _tokens(record: Record) -> dict[str, np.ndarray]:
    """The token columns of a candidate, by the name of the file's column that holds their type."""
    wide = {
        name for name in ("logprob", "log_q") if name in record.columns and record.columns[name].dtype == np.float64
    }
    return {f"{n}64" if n in wide else n: c for n, c in record.columns.items() if not n.startswith("top_")}


def _alternatives(record: Record) -> dict[str, Any]:
    if "top_ids" not in record.columns:
        return {}
    ids, logprobs = record.columns["top_ids"], record.columns["top_logprobs"]
    row: dict[str, Any] = {"k": ids.shape[1], "ids": ids.reshape(-1)}
    coded = lattice.encode(logprobs)
    if coded.exceptions.size > RAW_ABOVE * len(logprobs):
        return row | {"logprobs": logprobs.reshape(-1)}
    others = _others(record.columns, coded.first)
    planes = np.ascontiguousarray(coded.steps).view(np.uint8).reshape(-1, 2).T.tobytes()
    return row | {
        "first": coded.first if others is None else coded.first[others],
        "exponent": coded.exponent,
        "steps": planes,
        "exceptions": coded.exceptions,
        "exact": coded.exact.reshape(-1),
    }


def _others(columns: Mapping[str, np.ndarray], first: np.ndarray | None = None) -> np.ndarray | None:
    """Where the chosen token is not the best one: elsewhere its log-probability is the best one's, and is kept once.

    None where that does not hold, or cannot be told.
    """
    rank, logprob = columns.get("rank"), columns.get("logprob")
    if rank is None or logprob is None or logprob.dtype != np.float32:
        return None
    others: np.ndarray = rank != 1
    if first is not None and not np.array_equal(first[~others].view(np.uint32), logprob[~others].view(np.uint32)):
        return None
    return others


def _columns(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """A table of lists built from arrays, without a Python object for every number."""
    return pa.Table.from_arrays(
        [_column([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema
    )


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_list(kind):
        return pa.array(values, type=kind)
    offsets = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum([0 if value is None else len(value) for value in values], out=offsets[1:])
    present = [value for value in values if value is not None]
    flat = np.concatenate(present) if present else np.empty(0, dtype=kind.value_type.to_pandas_dtype())
    absent = pa.array(np.array([value is None for value in values], dtype=bool))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, type=kind.value_type), type=kind, mask=absent)


def write(parts: Iterator[Mapping[str, pa.Table]], path_of: Callable[[str], Path]) -> int:
    """Write row groups, one after the other, to the files of a shard. How many candidates there were is returned."""
    writers = {name: _writer(path_of(name), SCHEMAS[name]) for name in FILES}
    rows = 0
    try:
        for part in parts:
            for name, writer in writers.items():
                writer.write_table(part[name], row_group_size=max(1, part[name].num_rows))
            rows += part["attempts"].num_rows
    finally:
        for writer in writers.values():
            writer.close()
    return rows


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    def leaf(field: pa.Field) -> str:
        return f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name

    split = [leaf(field) for field in schema if field.name in SPLIT]
    blobs = ("text", "digest", "steps", "sample", "exceptions")
    dictionary = [leaf(field) for field in schema if field.name not in (*SPLIT, *blobs)]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=3,
        use_dictionary=dictionary,
        dictionary_pagesize_limit=1 << 24,
        column_encoding=dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
        write_statistics=[field.name for field in schema if field.name in ("question", "sample", "length")],
        store_schema=True,
    )


# ------------------------------------------------------------------------------------------------------------- reading


def row_groups(sizes: Sequence[int], pools: Sequence[Any]) -> list[slice]:
    """Cut candidates, which lie pool by pool, into row groups: whole pools, up to a cap; a pool beyond it is cut.

    >>> row_groups([100_000, 25_000, 30_000, 10], ["a", "a", "b", "b"])
    [slice(0, 2, None), slice(2, 4, None)]
    """
    starts = [0] + [i for i in range(1, len(pools)) if pools[i] != pools[i - 1]] + [len(pools)]
    groups: list[slice] = []
    begin, held = 0, 0
    for first, last in pairwise(starts):
        size = sum(sizes[first:last])
        if first > begin and held + size > GROUP_TOKENS:
            groups.append(slice(begin, first))
            begin, held = first, 0
        held += size
        if held > GROUP_TOKENS:  # the pool alone is too large
            held -= size
            for i in range(first, last):
                if i > begin and held + sizes[i] > GROUP_TOKENS:
                    groups.append(slice(begin, i))
                    begin, held = i, 0
                held += sizes[i]
    return [*groups, slice(begin, len(pools))] if len(pools) > begin else groups


def columns_of(
    tokens: pa.Table, alternatives: pa.Table | None, names: Sequence[str]
) -> Iterator[dict[str, np.ndarray]]:
    """The recorded columns of each candidate of a row group, for the names wanted, as views where that is possible."""
    lists = {name: _lists(tokens, name) for name in tokens.column_names}
    coded = {} if alternatives is None else {name: _lists(alternatives, name) for name in alternatives.column_names}
    for i in range(tokens.num_rows):
        every = {name.removesuffix("64"): lists[name][i] for name in lists if lists[name][i] is not None}
        found = {name: column for name, column in every.items() if name in names}
        if coded and coded["k"][i] is not None:
            k = int(coded["k"][i])
            if "top_ids" in names:
                found["top_ids"] = coded["ids"][i].reshape(-1, k)
            if "top_logprobs" in names:
                found["top_logprobs"] = _logprobs({name: values[i] for name, values in coded.items()}, k, every)
        yield found


def _logprobs(row: Mapping[str, Any], k: int, chosen: Mapping[str, np.ndarray]) -> np.ndarray:
    if row["logprobs"] is not None:
        return row["logprobs"].reshape(-1, k)  # type: ignore[no-any-return]
    first = row["first"]
    if first.size < row["exponent"].size:
        others = _others(chosen)
        assert others is not None, "the reader brings rank and logprob along"
        kept, first = first, chosen["logprob"].copy()
        first[others] = kept
    planes = np.frombuffer(row["steps"], dtype=np.uint8).reshape(2, -1)
    steps = (planes[0] | (planes[1].astype(np.uint16) << 8)).reshape(k - 1, first.size)
    return lattice.decode(lattice.Coded(first, row["exponent"], steps, row["exceptions"], row["exact"].reshape(-1, k)))


def _lists(table: pa.Table, name: str) -> list[Any]:
    """The values of a column: arrays for lists, Python values otherwise; None where null."""
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)
    if not pa.types.is_list(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    offsets, flat = column.offsets.to_numpy(), column.values.to_numpy(zero_copy_only=False)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return [flat[offsets[i] : offsets[i + 1]] if valid[i] else None for i in range(len(column))]


def records_of(parts: Mapping[str, pa.Table]) -> Iterator[Record]:
    """The candidates of a row group, whole."""
    names = [*COLUMNS, "confidence", "entropy"]
    every = columns_of(parts["tokens"], parts["alternatives"], names)
    seconds = parts["times"].column("seconds").to_pylist()
    for row, columns, time in zip(parts["attempts"].to_pylist(), every, seconds, strict=True):
        key = Key(row.pop("run"), row.pop("question"), row.pop("sample"), row.pop("stream"))
        row.pop("digest")
        yield Record(key=key, columns=columns, seconds=time, **row)

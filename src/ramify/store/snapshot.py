"""What a bank on disk holds at one moment, read in bounded memory while others go on writing."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ramify.bank import Bank, Layer, Outcomes, Proposal, TokenTable
from ramify.bank.bank import ENDINGS
from ramify.bank.codes import encode
from ramify.errors import StoreError, require
from ramify.store import shard
from ramify.store.inventory import Inventory, inventory
from ramify.store.manifest import Entry
from ramify.store.parquet import Parquet
from ramify.store.protocol import Card
from ramify.store.records import Record
from ramify.types import Key, Question

__all__ = ["Chunk", "Place", "Snapshot"]


class Chunk(NamedTuple):
    """Some candidates with their token data: where they lie in the bank, and flat columns with offsets."""

    question: np.ndarray  # [C], row in the bank
    candidate: np.ndarray  # [C], column in the bank
    offsets: np.ndarray  # [C + 1]
    columns: dict[str, np.ndarray]  # [T] or [T, K]


class Conflict(NamedTuple):
    """Two records of one key with different content. The first durable one counts."""

    run: str
    question: str
    sample: int
    first: str
    other: str


@dataclasses.dataclass(frozen=True, eq=False)
class Place:
    """Where the candidates of the bank are: parallel arrays over candidates, in the bank's order."""

    question: np.ndarray  # [C] row in the bank
    candidate: np.ndarray  # [C] column in the bank
    part: np.ndarray  # [C] shard number, or len(shards) for those still in journals
    row: np.ndarray  # [C] row in that part


@dataclasses.dataclass(frozen=True, eq=False)
class Snapshot:
    """A consistent view. Shards are read as they are needed; what is still in journals is held in memory."""

    path: Path
    entries: Mapping[str, Entry]
    fresh: Sequence[Record]  # in journals, not yet in shards
    questions: tuple[Question, ...]  # in their order
    cards: Mapping[str, Card]
    lock: int | None = None  # of the readers: while it is held, files that are no longer listed are not removed
    _local: threading.local = dataclasses.field(default_factory=threading.local)

    def close(self) -> None:
        """Let go of the files."""
        if self.lock is not None:
            os.close(self.lock)
            object.__setattr__(self, "lock", None)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------- the index

    @cached_property
    def shards(self) -> list[str]:
        """The shards, in the order they became durable."""
        return list(dict.fromkeys(entry.shard for entry in self.entries.values() if entry.shard))

    @cached_property
    def _files(self) -> dict[tuple[str, str], str]:
        return {(entry.shard, entry.kind): entry.file for entry in self.entries.values()}

    def file(self, shard_name: str, kind: str) -> Parquet:
        """A file of a shard, opened once for each thread: its reader is not made to be shared."""
        if (shard_name, kind) in self._files:
            opened: dict[str, Parquet] = self._local.__dict__
            if len(opened) > 64:
                opened.clear()
            name = self._files[shard_name, kind]
            if name not in opened:
                opened[name] = Parquet(self.path / name)
            return opened[name]
        raise StoreError(f"{self.path}: shard {shard_name} has no {kind} file: run `ramify bank verify {self.path}`")

    def _attempts(self, columns: Sequence[str]) -> list[pa.Table]:
        """These columns of every attempt, a table a shard, and one for the journals."""
        found = [self.file(name, "attempts").read(columns=list(columns)) for name in self.shards]
        return [*found, shard.tables(self.fresh)["attempts"].select(list(columns))]

    @cached_property
    def _index(self) -> tuple[Place, list[Conflict]]:
        """The bank's order: questions by position, runs by name, samples. The first durable record of a key counts."""
        order = {question.id: i for i, question in enumerate(self.questions)}
        parts = self._attempts(("question", "run", "stream", "sample", "digest"))
        table = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
        size = table.num_rows
        words = {name: _dictionary(table.column(name)) for name in ("question", "run", "stream")}
        unknown = [name for name in words["question"][1] if name not in order]
        if unknown:
            raise StoreError(f"{self.path}: attempts at a question that is not recorded: {unknown[:3]}")
        question = (
            np.array([order[name] for name in words["question"][1]], dtype=np.int64)[words["question"][0]]
            if size
            else np.empty(0, np.int64)
        )
        runs = _ranks(words["run"])
        streams = _ranks(words["stream"])
        sample = table.column("sample").to_numpy()
        part = np.repeat(np.arange(len(parts)), [each.num_rows for each in parts])
        row = np.concatenate([np.arange(each.num_rows) for each in parts])
        by = np.lexsort((np.arange(size), streams, sample, runs, question))  # stable: the first durable comes first
        name = np.stack([question, runs, sample.astype(np.int64), streams])[:, by]
        again = np.concatenate([[False], (np.diff(name, axis=1) == 0).all(axis=0)]) if size else np.empty(0, dtype=bool)
        conflicts = self._conflicts(table, by, again)
        kept = by[~again]
        question = question[kept]
        first = np.searchsorted(question, question, side="left")
        return Place(question, np.arange(len(kept)) - first, part[kept], row[kept]), conflicts

    @staticmethod
    def _conflicts(table: pa.Table, by: np.ndarray, again: np.ndarray) -> list[Conflict]:
        digests = table.column("digest")
        found, first = [], -1
        for i in np.flatnonzero(again | np.concatenate([again[1:], [False]])) if again.size else []:
            if not again[i]:
                first = by[i]
            elif digests[first].as_py() != digests[by[i]].as_py():
                row = table.slice(by[i], 1).to_pylist()[0]
                one, other = digests[first].as_py().hex(), digests[by[i]].as_py().hex()
                found.append(Conflict(row["run"], row["question"], row["sample"], one, other))
        return found

    def digests(self) -> Iterator[tuple[Key, bytes]]:
        """The key and the content's digest of every candidate."""
        place = self._index[0]
        for number, table in enumerate(self._attempts(("run", "question", "sample", "stream", "digest"))):
            picked = table.take(pa.array(np.sort(place.row[place.part == number])))
            for row in zip(*(picked.column(name).to_pylist() for name in picked.column_names), strict=True):
                yield Key(*row[:4]), row[4]

    @property
    def order(self) -> Place:
        """Where every candidate of the bank lies."""
        return self._index[0]

    def lengths(self) -> np.ndarray:
        """Tokens of every candidate, in the bank's order; 0 where unknown."""
        place, parts = self.order, self._attempts(("length",))
        start = np.cumsum([0, *(part.num_rows for part in parts)])
        table = pa.concat_tables(parts).column("length")
        found: np.ndarray = pc.fill_null(table, 0).to_numpy()[start[place.part] + place.row]
        return found

    @property
    def conflicts(self) -> list[Conflict]:
        """Keys with two different contents: their writers did not run the same thing."""
        return self._index[1]

    @property
    def shape(self) -> tuple[int, int]:
        """(Q, N)."""
        place = self._index[0]
        return len(self.questions), int(place.candidate.max(initial=-1)) + 1

    # -------------------------------------------------------------------------------------------------------- the bank

    def bank(self, columns: Sequence[str] = (), *, scratch: Path | None = None, text: bool = True) -> Bank:
        """The bank in memory. The token columns asked for are memory-mapped files in ``scratch``, if that is given."""
        place, shape = self._index[0], self.shape
        names = ["run", "sample", "protocol", "ended", "answer", "length", "log_q", *(["text"] if text else [])]
        parts = self._attempts(names)
        start = np.cumsum([0, *(part.num_rows for part in parts)])
        table = (
            pa.concat_tables(parts).unify_dictionaries().combine_chunks().take(pa.array(start[place.part] + place.row))
        )
        at = (place.question, place.candidate)

        def spread(values: Any, fill: Any, dtype: Any) -> np.ndarray:
            array = np.full(shape, fill, dtype=dtype)
            array[at] = values
            return array

        answers = table.column("answer").to_pylist()
        rows: list[list[Any]] = [[] for _ in self.questions]
        for question, answer in zip(place.question.tolist(), answers, strict=True):
            rows[question].append(answer)
        codes, drawn, texts = encode(rows)
        codes, drawn = codes.reshape(shape), drawn.reshape(shape)
        ended, endings = _dictionary(table.column("ended"))
        listed = tuple(dict.fromkeys([*ENDINGS, *endings]))
        renumber = np.array([listed.index(each) for each in endings] or [0], dtype=np.uint8)
        protocol, hashes = _dictionary(table.column("protocol"))
        known = [self._proposal(each) for each in hashes]
        proposals = tuple(dict.fromkeys(known)) or (Proposal(),)
        source = np.array([proposals.index(each) for each in known] or [0], dtype=np.int16)
        bank = Bank(
            questions=self.questions,
            answer_text=tuple(texts),
            answers=codes,
            drawn=drawn,
            ended=spread(renumber[ended], 0, np.uint8),
            source=spread(source[protocol], -1, np.int16),
            samples=spread(table.column("sample").to_numpy().astype(np.int64), 0, np.int64),
            proposals=proposals,
            endings=listed,
            log_q=spread(pc.fill_null(table.column("log_q"), np.nan).to_numpy(), np.nan, np.float64),
            length=spread(pc.fill_null(table.column("length"), -1).to_numpy(), -1, np.int64),
            text=spread(_objects(table.column("text")), None, object) if text else None,
            tokens=self._tokens(columns, scratch) if columns else None,
        )
        for name in self.layer_names:
            bank = bank.attach(name, self.layer(name))
        return bank

    def _proposal(self, protocol: str) -> Proposal:
        if protocol not in self.cards:
            raise StoreError(f"{self.path}: no card of protocol {protocol}: run `ramify bank verify {self.path}`")
        return self.cards[protocol].value

    def _tokens(self, columns: Sequence[str], scratch: Path | None) -> TokenTable:
        """Flat columns of the whole bank, in the bank's order."""
        chunks = list(self._plan())
        lengths = np.zeros(self.shape, dtype=np.int64)
        shapes: dict[str, tuple[Any, tuple[int, ...]]] = {}
        for plan in chunks:
            chunk = self._read(plan, columns[:1])
            lengths[chunk.question, chunk.candidate] = np.diff(chunk.offsets)
        start = np.cumsum(lengths.reshape(-1)).reshape(lengths.shape) - lengths
        total = int(lengths.sum())
        flat: dict[str, np.ndarray] = {}
        recorded = np.zeros(self.shape, dtype=bool)
        for plan in chunks:
            chunk = self._read(plan, columns)
            recorded[chunk.question, chunk.candidate] = np.diff(chunk.offsets) > 0
            for name, values in chunk.columns.items():
                if name not in flat:
                    shapes[name] = (values.dtype, values.shape[1:])
                    flat[name] = _empty(name, (total, *values.shape[1:]), values.dtype, scratch)
                if values.dtype.itemsize > flat[name].dtype.itemsize:
                    flat[name] = flat[name].astype(values.dtype)
                require(
                    values.shape[1:] == flat[name].shape[1:],
                    f"column {name}",
                    values.shape[1:],
                    "K differs: read runs apart",
                )
                for i in range(len(chunk.question)):
                    begin = int(start[chunk.question[i], chunk.candidate[i]])
                    part = values[chunk.offsets[i] : chunk.offsets[i + 1]]
                    flat[name][begin : begin + len(part)] = part
        return TokenTable(np.where(recorded, start, -1), np.where(recorded, lengths, 0), flat)

    # ------------------------------------------------------------------------------------------------------- streaming

    def _plan(self) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """(part, row group, rows in it that count, their places in the index), for every row group."""
        place = self._index[0]
        for number, name in enumerate(self.shards):
            file = self.file(name, "attempts")
            mine = np.flatnonzero(place.part == number)
            mine = mine[np.argsort(place.row[mine], kind="stable")]
            ends = np.cumsum([file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)])
            cuts = np.searchsorted(place.row[mine], np.concatenate([[0], ends]))
            for group in range(file.num_row_groups):
                here = mine[cuts[group] : cuts[group + 1]]
                if here.size:
                    yield number, group, place.row[here] - (ends[group] - file.metadata.row_group(group).num_rows), here
        journal = np.flatnonzero(place.part == len(self.shards))
        sizes = [record.length or 0 for record in (self.fresh[row] for row in place.row[journal])]
        for cut in shard.row_groups(sizes, place.question[journal].tolist()):
            yield len(self.shards), -1, place.row[journal[cut]], journal[cut]

    def _read(
        self, plan: tuple[int, int, np.ndarray, np.ndarray], columns: Sequence[str], *, whole: bool = False
    ) -> Chunk:
        """A row group's columns; with ``whole``, of the candidates that recorded all of them and of no others."""
        part, group, rows, here = plan
        if part == len(self.shards):
            found = [
                {name: self.fresh[row].columns[name] for name in columns if name in self.fresh[row].columns}
                for row in rows
            ]
        else:
            found = self._read_group(part, group, rows, columns)
        if whole:
            kept = [i for i, each in enumerate(found) if all(name in each for name in columns)]
            found, here = [found[i] for i in kept], here[kept]
        place = self._index[0]
        lengths = [len(next(iter(each.values()))) if each else 0 for each in found]
        flat = {}
        for name in columns:
            values = [each[name] for each in found if name in each]
            if values:
                if sum(map(len, values)) != sum(lengths):
                    raise StoreError(f"{self.path}: {name} was recorded for some candidates only; read the runs apart")
                widths = {value.shape[1:] for value in values}
                if len(widths) > 1:
                    found_k = f"{name} was recorded with K of {sorted(k for (k,) in widths)}"
                    raise StoreError(f"{self.path}: {found_k}; keep runs with different K in banks of their own")
                flat[name] = np.concatenate(values)
        return Chunk(
            place.question[here], place.candidate[here], np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), flat
        )

    def _read_group(
        self, part: int, group: int, rows: np.ndarray, columns: Sequence[str]
    ) -> list[dict[str, np.ndarray]]:
        name = self.shards[part]
        tokens = self.file(name, "tokens")
        wanted = {name.removesuffix("64") for name in columns} | (
            {"rank", "logprob"} if "top_logprobs" in columns else set()
        )
        present = [name for name in tokens.schema_arrow.names if name.removesuffix("64") in wanted]
        alternatives = None
        if {"top_ids", "top_logprobs"} & set(columns):
            needed = ["k", *(["ids"] if "top_ids" in columns else [])]
            needed += (
                ["first", "exponent", "steps", "exceptions", "exact", "logprobs"] if "top_logprobs" in columns else []
            )
            alternatives = self.file(name, "alternatives").read_row_group(group, columns=needed, use_threads=False)
        table = tokens.read_row_group(group, columns=present or ["token"], use_threads=False)
        if len(rows) < table.num_rows:
            table, picked = table.take(pa.array(rows)), pa.array(rows)
            alternatives = None if alternatives is None else alternatives.take(picked)
        return list(shard.columns_of(table, alternatives, columns))

    def chunks(self, columns: Sequence[str], *, workers: int = 1) -> Iterator[Chunk]:
        """The token data of the whole bank, a row group at a time: bounded memory, whatever the size."""
        yield from self._mapped(lambda plan: self._read(plan, columns), workers)

    def evidence(
        self,
        function: Callable[[np.ndarray, Mapping[str, np.ndarray]], np.ndarray],
        columns: Sequence[str],
        *,
        workers: int = 2,
    ) -> np.ndarray:
        """``function(offsets, columns) -> [C]`` over every candidate, as ``[Q, N]``.

        NaN where any of the columns was not recorded: the function does not see such a candidate.
        """

        def read(plan: tuple[int, int, np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            chunk = self._read(plan, columns, whole=True)
            if not len(chunk.question):
                return chunk.question, chunk.candidate, np.empty(0)
            return chunk.question, chunk.candidate, function(chunk.offsets, chunk.columns)

        values = np.full(self.shape, np.nan)
        for question, candidate, found in self._mapped(read, workers):
            values[question, candidate] = found
        return values

    def _mapped(self, read: Callable[[Any], Any], workers: int) -> Iterator[Any]:
        """Apply to every row group, in order, with at most ``workers`` at work and as many results waiting."""
        if workers <= 1:
            yield from map(read, self._plan())
            return
        with ThreadPoolExecutor(workers) as pool:
            waiting: list[Any] = []
            for plan in self._plan():
                waiting.append(pool.submit(read, plan))
                if len(waiting) > workers:
                    yield waiting.pop(0).result()
            for future in waiting:
                yield future.result()

    def records(self) -> Iterator[Record]:
        """Every candidate, whole, in the bank's order within each part; each key once."""
        for part, group, rows, _ in self._plan():
            if part == len(self.shards):
                yield from (self.fresh[row] for row in rows)
                continue
            tables = {kind: self.file(self.shards[part], kind).read_row_group(group) for kind in shard.FILES}
            picked = pa.array(rows)
            yield from shard.records_of({kind: table.take(picked) for kind, table in tables.items()})

    def inventory(self) -> Inventory:
        """What the bank holds, a row a run."""
        return inventory(self)

    def vocabulary(self, name: str) -> list[str]:
        """The strings of a vocabulary, by token id."""
        file = f"vocabularies/{name}.parquet"
        require(file in self.entries, "vocabulary", name, "use the name that add_vocabulary returned")
        return Parquet(self.path / file).read().column("string").to_pylist()  # type: ignore[no-any-return]

    # ---------------------------------------------------------------------------------------------------------- layers

    def _layer_files(self, kind: str) -> dict[str, pa.Table]:
        found = {}
        for entry in self.entries.values():
            if entry.kind == "layer":
                table = Parquet(self.path / entry.file).read()
                meta = table.schema.metadata
                if meta[b"kind"].decode() == kind:
                    found[meta[b"name"].decode()] = table
        return found

    @property
    def layer_names(self) -> list[str]:
        """Evidence and verifier scores attached to the bank."""
        return list(self._layer_files("score"))

    @property
    def outcome_names(self) -> list[str]:
        """Grades, behind the wall: ``bank`` never carries them."""
        return list(self._layer_files("outcome"))

    def layer(self, name: str) -> Layer:
        """One layer, aligned to the bank."""
        table = self._named(name, "score")
        meta = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        cost = self._aligned(table, "cost", 0.0) if table.column("cost").null_count < table.num_rows else None
        return Layer(self._aligned(table, "value", np.nan), meta["description"], meta["version"], cost, meta["role"])

    def outcomes(self, name: str) -> Outcomes:
        """The grades of that name, for evaluation."""
        table = self._named(name, "outcome")
        meta = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        bank = self.bank(text=False)
        return Outcomes.of(bank, self._aligned(table, "value", np.nan), meta["description"], meta["version"])

    def _named(self, name: str, kind: str) -> pa.Table:
        files = self._layer_files(kind)
        require(name in files, f"{kind} layer", name, f"the bank has {', '.join(files) or 'none'}")
        return files[name]

    def _aligned(self, table: pa.Table, column: str, fill: float) -> np.ndarray:
        """A layer's column as ``[Q, N]``, found by question, run and sample."""
        place = self._index[0]
        names = pa.concat_tables(self._attempts(("question", "run", "sample"))).unify_dictionaries().combine_chunks()
        start = np.cumsum([0, *(part.num_rows for part in self._attempts(("sample",)))])
        mine = names.take(pa.array(start[place.part] + place.row)).append_column(
            "here", pa.array(np.arange(len(place.row)))
        )
        plain = mine.cast(
            pa.schema([("question", pa.string()), ("run", pa.string()), ("sample", pa.uint64()), ("here", pa.int64())])
        )
        joined = plain.join(
            table.select(["question", "run", "sample", column]), ["question", "run", "sample"], join_type="inner"
        )
        values = np.full(self.shape, fill)
        here = joined.column("here").to_numpy()
        values[place.question[here], place.candidate[here]] = pc.fill_null(joined.column(column), fill).to_numpy()
        return values


def _dictionary(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """``(codes, words)`` of a dictionary column."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], type=column.type)
    return array.indices.to_numpy(), array.dictionary.to_pylist()


def _ranks(words: tuple[np.ndarray, list[str]]) -> np.ndarray:
    """Codes that sort as the words do."""
    codes, names = words
    rank = {name: i for i, name in enumerate(sorted(names))}
    table: np.ndarray = np.array([rank[name] for name in names] or [0], dtype=np.int64)
    found: np.ndarray = table[codes]
    return found


def _objects(column: pa.ChunkedArray) -> np.ndarray:
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values


def _empty(name: str, shape: tuple[int, ...], dtype: Any, scratch: Path | None) -> np.ndarray:
    if scratch is None:
        return np.zeros(shape, dtype=dtype)
    scratch.mkdir(parents=True, exist_ok=True)
    return np.lib.format.open_memmap(scratch / f"{name}.npy", mode="w+", dtype=dtype, shape=shape)

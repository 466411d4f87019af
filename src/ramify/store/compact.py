"""Compaction: all candidates in the bank's order, each once, in shards whose bytes depend on the content alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ramify.errors import StoreError
from ramify.store import disk, manifest, shard
from ramify.store.manifest import Change, Entry
from ramify.store.snapshot import Snapshot

if TYPE_CHECKING:
    from ramify.store.store import Store

__all__ = ["compact"]

SHARD_TOKENS = 1 << 25  # tokens in a shard
CACHED = 256 << 20  # bytes of row groups kept at hand


def compact(store: Store) -> None:
    """Write what the shards hold as new shards, then swap them in the manifest. Journals of living writers stay."""
    with disk.hold(store.path / "compactor"), store.snapshot() as snapshot:
        if snapshot.conflicts:
            raise StoreError(
                f"{store.path}: {len(snapshot.conflicts)} keys have two contents; run `ramify bank verify` first"
            )
        add = [*_write(store, snapshot), *filter(None, [store.write_questions(snapshot.entries)])]
        names = {entry.file for entry in add}
        rewritten = [entry for entry in snapshot.entries.values() if entry.shard or entry.kind == "questions"]
        old = [entry.file for entry in rewritten if entry.file not in names]
        with store.locked():
            live = manifest.read(store.path / "manifest")[0]
            fresh = tuple(entry for entry in add if entry.file not in live)
            if fresh or old:
                manifest.commit(store.path / "manifest", Change(fresh, drop=tuple(old)))
    store.recover()  # removes the old files if nobody reads them


def _write(store: Store, snapshot: Snapshot) -> list[Entry]:
    place = snapshot.order
    sealed = place.part < len(snapshot.shards)
    parts, rows, pools = place.part[sealed], place.row[sealed], place.question[sealed]
    sizes = snapshot.lengths()[sealed]
    cuts = shard.row_groups(sizes.tolist(), pools.tolist())
    source = _Source(snapshot)
    entries: list[Entry] = []
    for group in _shards(cuts, sizes):
        tables = (source.rows(parts[cut], rows[cut]) for cut in group)
        entries += store.write_canonical(tables)
    return entries


def _shards(cuts: Sequence[slice], sizes: np.ndarray) -> Iterator[list[slice]]:
    """Row groups, a shard at a time."""
    held: list[slice] = []
    tokens = 0
    for cut in cuts:
        size = int(sizes[cut].sum())
        if held and tokens + size > SHARD_TOKENS:
            yield held
            held, tokens = [], 0
        held.append(cut)
        tokens += size
    if held:
        yield held


class _Source:
    """Rows of the old shards, read a row group at a time, with the latest ones at hand."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._groups: OrderedDict[tuple[int, int], dict[str, pa.Table]] = OrderedDict()
        self._ends: dict[int, np.ndarray] = {}

    def rows(self, parts: np.ndarray, rows: np.ndarray) -> Mapping[str, pa.Table]:
        """These rows of these shards, in this order."""
        pieces: list[dict[str, pa.Table]] = []
        begin = 0
        groups = [self._group(int(part), int(row)) for part, row in zip(parts, rows, strict=True)]
        for i in range(1, len(rows) + 1):
            if i == len(rows) or groups[i][:2] != groups[begin][:2]:
                part, group, _ = groups[begin]
                at = pa.array([place for *_, place in groups[begin:i]])
                pieces.append({kind: table.take(at) for kind, table in self._read(part, group).items()})
                begin = i
        joined = {kind: pa.concat_tables([piece[kind] for piece in pieces]) for kind in shard.FILES}
        return {kind: _canonical(table, shard.SCHEMAS[kind]) for kind, table in joined.items()}

    def _group(self, part: int, row: int) -> tuple[int, int, int]:
        """(shard, row group, row in it)."""
        if part not in self._ends:
            meta = self.snapshot.file(self.snapshot.shards[part], "attempts").metadata
            self._ends[part] = np.cumsum([0, *(meta.row_group(g).num_rows for g in range(meta.num_row_groups))])
        group = int(np.searchsorted(self._ends[part], row, side="right")) - 1
        return part, group, row - int(self._ends[part][group])

    def _table(self, name: str, kind: str, group: int) -> pa.Table:
        """A row group in the present schema, whichever one it was written in."""
        return self.snapshot.file(name, kind).read_row_group(group).cast(shard.SCHEMAS[kind])

    def _read(self, part: int, group: int) -> dict[str, pa.Table]:
        if (part, group) not in self._groups:
            name = self.snapshot.shards[part]
            tables = {kind: self._table(name, kind, group) for kind in shard.FILES}
            self._groups[part, group] = tables
            while (
                len(self._groups) > 1
                and sum(t.nbytes for each in self._groups.values() for t in each.values()) > CACHED
            ):
                self._groups.popitem(last=False)
        self._groups.move_to_end((part, group))
        return self._groups[part, group]


def _canonical(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows with dictionaries in order of first appearance, whatever file they came from."""
    words = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    plain = pa.schema(
        [pa.field(field.name, pa.string(), field.nullable) if field.name in words else field for field in schema]
    )
    return table.cast(plain).combine_chunks().cast(schema)

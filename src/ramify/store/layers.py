"""Scores and grades as files: a row for every candidate that has one, by its key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ramify.bank import Bank, Layer, Outcomes
from ramify.errors import StoreError
from ramify.store.manifest import Entry
from ramify.store.parquet import Parquet

__all__ = ["about", "layer_rows", "there", "topped_up"]

LAYER = pa.schema(
    [
        pa.field("question", pa.string(), nullable=False),
        pa.field("run", pa.string(), nullable=False),
        pa.field("sample", pa.uint64(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("cost", pa.float64()),
    ]
)


def about(name: str, layer: Layer | Outcomes) -> dict[str, str]:
    """What a layer's file says of it."""
    kind, role = ("score", layer.role) if isinstance(layer, Layer) else ("outcome", "")
    return {"name": name, "kind": kind, "description": layer.description, "version": layer.version, "role": role}


def layer_rows(bank: Bank, values: np.ndarray, cost: np.ndarray | None, meta: Mapping[str, str]) -> pa.Table:
    """A layer as a table: a row for every candidate that has a value."""
    at = np.nonzero(bank.drawn & ~np.isnan(values))
    rows = {
        "question": [bank.questions[q].id for q in at[0]],
        "run": [bank.proposals[source].run for source in bank.source[at]],
        "sample": bank.samples[at].astype(np.uint64),
        "value": values[at].astype(np.float64),
        "cost": np.full(len(at[0]), None) if cost is None else cost[at].astype(np.float64),
    }
    return pa.table(rows, schema=LAYER.with_metadata(dict(meta)))


def there(folder: Path, live: Mapping[str, Entry], table: pa.Table) -> Entry | None:
    """The file of the layer of this name and kind, if there is one."""
    meta = table.schema.metadata
    for entry in live.values():
        if entry.kind == "layer":
            found = Parquet(folder / entry.file).schema_arrow.metadata
            if all(found[field] == meta[field] for field in (b"name", b"kind")):
                return entry
    return None


def topped_up(folder: Path, live: Mapping[str, Entry], table: pa.Table) -> tuple[Entry | None, pa.Table]:
    """``(the file of the layer of this name, if there is one; its rows and those of the table that it lacks)``."""
    entry, key = there(folder, live, table), ["question", "run", "sample"]
    if entry is None:
        return None, table
    old = Parquet(folder / entry.file).read()
    both = table.select([*key, "value"]).join(
        old.select([*key, "value"]), key, right_suffix=" there", join_type="inner"
    )
    other = both.filter(pc.not_equal(both["value"], both["value there"])).sort_by([(name, "ascending") for name in key])
    if other.num_rows:
        row, name = other.slice(0, 1).to_pylist()[0], table.schema.metadata[b"name"].decode()
        where = f"run {row['run']!r}, question {row['question']!r}, sample {row['sample']}"
        raise StoreError(
            f"{folder} has another {name!r} for {other.num_rows} candidates, such as {where}:"
            f" {row['value there']:g} there, {row['value']:g} now; a new version is a new name"
        )
    fresh = table.append_column("here", pa.array(np.arange(table.num_rows)))
    fresh = fresh.join(old.select(key), key, join_type="left anti").sort_by("here").select(LAYER.names)
    return entry, pa.concat_tables([old, fresh.cast(LAYER).replace_schema_metadata(old.schema.metadata)])

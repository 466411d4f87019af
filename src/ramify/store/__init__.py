"""The bank on disk: append-only, durable, compact, and read while it is written."""

from ramify.store.snapshot import Chunk, Snapshot
from ramify.store.store import SCHEMA, Store
from ramify.store.writer import Writer

__all__ = ["SCHEMA", "Chunk", "Snapshot", "Store", "Writer"]

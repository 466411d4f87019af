"""Every checksum and invariant of a bank on disk, and the name of what is broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ramify.errors import RamifyError, StoreError
from ramify.store import disk, journal, manifest, shard
from ramify.store.manifest import Entry
from ramify.store.protocol import Card

if TYPE_CHECKING:
    from ramify.store.store import Store

__all__ = ["Problem", "verify"]


class Problem(NamedTuple):
    """A file and what is wrong with it."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def verify(store: Store) -> list[Problem]:
    """Check files against the manifest, rows against their digests, and keys against each other."""
    try:
        live, _, sound = manifest.read(store.path / "manifest")
    except RamifyError as error:
        return [Problem("manifest", str(error))]
    problems = [*_files(store.path, live), *_leftovers(store, live), *_cards(store)]
    size = (store.path / "manifest").stat().st_size if (store.path / "manifest").exists() else 0
    if size > sound:
        problems.append(
            Problem("manifest", f"{size - sound} bytes at the end were cut off; the next writer removes them")
        )
    if any(problem.path in live or problem.path.startswith("protocols") for problem in problems):
        return problems  # what is inside damaged files says nothing
    try:
        problems += _content(store)
    except (RamifyError, pa.ArrowException, OSError) as error:
        problems.append(Problem(str(store.path), f"cannot be read: {error}"))
    return problems


def _files(path: Path, live: dict[str, Entry]) -> Iterator[Problem]:
    for entry in live.values():
        file = path / entry.file
        if not file.exists():
            yield Problem(entry.file, "is listed and not there")
        elif file.stat().st_size != entry.bytes:
            yield Problem(
                entry.file, f"has {file.stat().st_size} bytes, and had {entry.bytes}: truncated or overwritten"
            )
        elif disk.sha256(file) != entry.sha256:
            yield Problem(entry.file, "its checksum does not match: a bit was flipped, or it was overwritten")


def _leftovers(store: Store, live: dict[str, Entry]) -> Iterator[Problem]:
    for path in sorted((store.path / "journals").glob("*.log")):
        size, sound = path.stat().st_size, journal.sound_bytes(path)
        if size > sound and not disk.is_held(path):
            yield Problem(f"journals/{path.name}", f"{size - sound} bytes from {sound} on are damaged or were cut off")
    for path in sorted((store.path / "journals").glob("*.damaged")):
        sound = journal.sound_bytes(path)
        what = f"{path.stat().st_size - sound} bytes from {sound} on could not be read when it was sealed"
        yield Problem(f"journals/{path.name}", f"{what}: they are kept here")
    for path in sorted((store.path / "shards").glob("*")):
        name = str(path.relative_to(store.path))
        if name not in live and not path.name.endswith(".tmp"):
            yield Problem(name, "is not listed: left by a crash or kept for a reader; the next writer removes it")


def _cards(store: Store) -> Iterator[Problem]:
    for path in sorted((store.path / "protocols").glob("*.json")):
        try:
            Card.read(path)
        except StoreError as error:
            yield Problem(f"protocols/{path.name}", str(error))


def _content(store: Store) -> Iterator[Problem]:
    with store.snapshot() as snapshot:
        for conflict in snapshot.conflicts:
            yield Problem(
                f"run {conflict.run!r}, question {conflict.question!r}, sample {conflict.sample}",
                f"has two contents ({conflict.first[:8]} and {conflict.other[:8]}); the first durable one counts",
            )
        for name in snapshot.shards:
            files = {kind: snapshot.file(name, kind) for kind in shard.FILES}
            groups = {file.num_row_groups for file in files.values()}
            if len(groups) > 1:
                yield Problem(f"shards/{name}", f"its files have {sorted(groups)} row groups")
                continue
            for group in range(groups.pop()):
                parts = {kind: file.read_row_group(group) for kind, file in files.items()}
                stored = parts["attempts"].column("digest").to_pylist()
                for digest, record in zip(stored, shard.records_of(parts), strict=True):
                    if record.digest != digest:
                        yield Problem(f"shards/{name}", f"{record.key} does not hash to its digest")
                    if record.protocol not in snapshot.cards:
                        yield Problem(
                            f"shards/{name}", f"{record.key} was made by {record.protocol}, which has no card"
                        )

"""The list of files that make up a bank: one checksummed line a change, appended under a lock.

A reader takes the sound lines and has a consistent snapshot; a line that was cut off was never acknowledged, and the
next writer removes it. A whole line that does not fit its checksum was acknowledged, and is damage: nothing is removed.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import msgspec

from ramify.errors import StoreError
from ramify.store import disk

__all__ = ["Change", "Entry", "commit", "read"]


class Entry(msgspec.Struct, frozen=True):
    """A file of the bank, with what it takes to notice damage."""

    file: str
    kind: str  # attempts | tokens | alternatives | times | questions | layer | vocabulary
    bytes: int
    sha256: str
    rows: int
    shard: str = ""  # files of one shard hold the same candidates, row group by row group


class Change(msgspec.Struct, frozen=True):
    """What one line of the manifest says: files that belong to the bank from here on, and files that no longer do."""

    add: tuple[Entry, ...] = ()
    drop: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()  # journals whose records are all in shards


DECODER = msgspec.json.Decoder(Change)


def read(path: Path) -> tuple[dict[str, Entry], set[str], int]:
    """``(live files by name, sealed journals, sound bytes)``."""
    live: dict[str, Entry] = {}
    sealed: set[str] = set()
    sound = 0
    data = path.read_bytes() if path.exists() else b""
    for line in data.splitlines(keepends=True):
        change = _change(line)
        if change is None:
            if sound + len(line) < len(data) or not _cut_off(line):
                raise StoreError(
                    f"{path}: the line at byte {sound} is damaged, and the files it lists are not lost: "
                    "restore the manifest from a copy, and write nothing before that"
                )
            break
        live |= {entry.file: entry for entry in change.add}
        live = {name: entry for name, entry in live.items() if name not in change.drop}
        sealed |= set(change.sealed)
        sound += len(line)
    return live, sealed, sound


def _change(line: bytes) -> Change | None:
    checksum, _, body = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body):
        return None
    return DECODER.decode(body)


def _cut_off(line: bytes) -> bool:
    """Whether a line looks as an interrupted append leaves it: short, or with pages that never reached the disk."""
    return not line.endswith(b"\n") or b"\0" in line


def commit(path: Path, change: Change) -> None:
    """Append a change durably, after removing a line that was cut off. The caller holds the bank's lock."""
    _, _, sound = read(path)
    body = msgspec.json.encode(change)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.ftruncate(file, sound)
        disk.append(file, b"%08x %s\n" % (zlib.crc32(body), body), path)
        if sound == 0:
            disk.sync_directory(path.parent)
    finally:
        os.close(file)

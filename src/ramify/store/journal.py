"""A writer's log: every record that was acknowledged and is not yet in a shard.

``ramify-journal/1`` in 16 bytes, then records of length (4 bytes), crc32 (4 bytes) and payload, little-endian. A living
writer holds the lock of its file. A record that was cut off ends the log: nothing after it was acknowledged. A damaged
one ends it too, but what follows may have been acknowledged: such a file is kept.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from ramify.errors import StoreError
from ramify.store import disk

__all__ = ["Journal", "damaged", "payloads", "sound_bytes"]

MAGIC = b"ramify-journal/1"
HEADER = struct.Struct("<II")
LONGEST = 1 << 30  # bytes; a length beyond it is damage


class Journal:
    """The log of one writer, open and locked for appending."""

    def __init__(self, path: Path) -> None:
        self.path, written = path, disk.temporary(path)
        try:
            self._file = os.open(written, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}; the bank directory must be writable") from error
        disk.try_hold(self._file)  # before it has its name: nobody ever sees it without its lock and takes it for dead
        disk.append(self._file, MAGIC, path)
        disk.publish(written, path)
        self.size, self.closed = len(MAGIC), False

    def append(self, records: Iterable[bytes]) -> None:
        """Make records durable, in one sync. They are acknowledged when this returns, and not before."""
        if self.closed:
            raise StoreError(f"{self.path}: the journal is closed: open another writer with store.writer(...)")
        records = list(records)
        longest = max(map(len, records), default=0)
        if longest > LONGEST:  # it would be taken for damage, with all that follows it
            raise StoreError(f"{self.path}: a record of {longest:,} bytes; a journal keeps up to {LONGEST:,} each")
        framed = b"".join(HEADER.pack(len(record), zlib.crc32(record)) + record for record in records)
        disk.append(self._file, framed, self.path)
        self.size += len(framed)

    def close(self) -> None:
        """Give up the lock. What is in the log stays, for whoever seals it."""
        if not self.closed:  # its number may belong to another file by now
            self.closed = True
            os.close(self._file)


def payloads(path: Path) -> Iterator[bytes]:
    """The sound records of a log, in order, up to the first that is not."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return
        while header := file.read(HEADER.size):
            if len(header) < HEADER.size:
                return
            length, checksum = HEADER.unpack(header)
            if not 0 < length <= LONGEST:  # zeros are pages that never reached the disk
                return
            payload = file.read(length)
            if len(payload) < length or zlib.crc32(payload) != checksum:
                return
            yield payload


def sound_bytes(path: Path) -> int:
    """How much of a log is sound. Less than its size: the last append was cut off, or the file was damaged."""
    return len(MAGIC) + sum(HEADER.size + len(payload) for payload in payloads(path)) if path.stat().st_size else 0


def damaged(path: Path) -> bool:
    """Whether sound records follow the place where a log ends: they were acknowledged, and it was not cut off."""
    with path.open("rb") as file:
        file.seek(sound_bytes(path))
        rest = file.read()
    if len(rest) < HEADER.size or len(rest) - HEADER.size < HEADER.unpack_from(rest)[0] <= LONGEST:
        return False  # half a record, which is what an append that was cut off leaves
    return any(_sound_at(rest, place) for place in range(1, len(rest) - HEADER.size))


def _sound_at(data: bytes, place: int) -> bool:
    length, checksum = HEADER.unpack_from(data, place)
    begin = place + HEADER.size
    return bool(0 < length <= len(data) - begin and zlib.crc32(data[begin : begin + length]) == checksum)

"""The only place that makes things durable. Every step of the store is one of these, so tests can cut between two."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ramify.errors import StoreError

__all__ = [
    "append",
    "hold",
    "is_held",
    "publish",
    "remove",
    "sha256",
    "sync_directory",
    "temporary",
    "try_hold",
    "wait_to_hold",
]


def append(file: int, data: bytes, path: Path) -> None:
    """Write all of ``data`` at the end of an open file and make it durable; on failure the file is as it was."""
    before = os.lseek(file, 0, os.SEEK_END)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        os.fdatasync(file)
    except OSError as error:
        with suppress(OSError):  # a torn tail would be cut on opening anyway; cutting it here keeps the file appendable
            os.ftruncate(file, before)
        raise StoreError(
            f"{path}: {error.strerror}; nothing acknowledged is lost: free the disk and run again"
        ) from error


def publish(written: Path, final: Path) -> None:
    """Give a finished temporary file its name: durable content first, then the name, then the directory."""
    try:
        with written.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(written, final)
        sync_directory(final.parent)
    except OSError as error:
        raise StoreError(
            f"{final}: {error.strerror}; nothing acknowledged is lost: free the disk and run again"
        ) from error


def temporary(final: Path) -> Path:
    """Where a file is written before it has its name. No two processes share one."""
    return final.with_name(f".{final.name}.{os.getpid()}.tmp")


def sync_directory(path: Path) -> None:
    """Make names created or removed in a directory durable."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def remove(path: Path) -> None:
    """Remove a file that nothing refers to any more; if it is gone already, so much the better."""
    path.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """The checksum of a file, in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def hold(path: Path, *, shared: bool = False) -> Iterator[int]:
    """Hold the lock of a file while inside. The kernel drops it with the process, so there are no stale locks."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; a bank directory must be writable") from error
    try:
        wait_to_hold(file, shared=shared)
        yield file
    finally:
        os.close(file)


def wait_to_hold(file: int, *, shared: bool = False) -> None:
    """Take the lock of an open file, when whoever has it lets go."""
    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def try_hold(file: int, *, shared: bool = False) -> bool:
    """Take the lock of an open file if nobody else has it."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock of a file."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not try_hold(file, shared=True)
    finally:
        os.close(file)

"""Parquet files of a bank, whose damage is told by the file's name and with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ramify.errors import StoreError

__all__ = ["Parquet"]


class Parquet(pq.ParquetFile):  # type: ignore[misc]
    """A file in a folder of a bank. Not mapped: pages of a large file would count as memory in use."""

    def __init__(self, path: Path) -> None:
        self.place = path
        with _told(path):
            super().__init__(path)

    def read(self, *arguments: Any, **options: Any) -> pa.Table:
        with _told(self.place):
            return super().read(*arguments, **options)

    def read_row_group(self, *arguments: Any, **options: Any) -> pa.Table:
        with _told(self.place):
            return super().read_row_group(*arguments, **options)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Arrow's complaint, which names no file, as an error that does. The bank is the folder of the file's folder."""
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(f"{path}: there is no such file: {_remedy(path)}") from error
    except (OSError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise StoreError(f"{path}: cannot be read ({why}): {_remedy(path)}") from error


def _remedy(path: Path) -> str:
    bank = path.parent.parent
    return f"run `ramify bank verify {bank}`, which lists what is damaged; put that back from a copy, or import again"

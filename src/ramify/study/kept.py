"""Decisions by everything they depend on: what has been decided already need not be decided again."""

from __future__ import annotations

import dataclasses
import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

import ramify
from ramify.arrays import Array
from ramify.store import disk

__all__ = ["Decided"]


@dataclasses.dataclass
class Decided:
    """Arrays by the text of all that they were made from: change one rule, and only its text is new."""

    folder: Path
    hits: int = 0
    misses: int = 0

    def has(self, parts: Sequence[object]) -> bool:
        """Whether these parts were seen before."""
        return _load(*self._place(parts)) is not None

    def get(self, parts: Sequence[object], make: Callable[[], Mapping[str, Array]]) -> dict[str, Array]:
        """What ``make`` gives, or gave when these parts were last seen."""
        file, words = self._place(parts)
        found = _load(file, words)
        if found is not None:
            self.hits += 1
            return found
        self.misses += 1
        found = dict(make())
        buffer = io.BytesIO()
        np.savez_compressed(buffer, words=np.array(words), **found)
        self.folder.mkdir(parents=True, exist_ok=True)
        written = disk.temporary(file)
        written.write_bytes(buffer.getvalue())
        disk.publish(written, file)
        return found

    def _place(self, parts: Sequence[object]) -> tuple[Path, str]:
        words = "\n".join([ramify.__version__, *map(str, parts)])
        return self.folder / f"{blake2b(words.encode(), digest_size=12).hexdigest()}.npz", words


def _load(file: Path, words: str) -> dict[str, Array] | None:
    """The arrays of a file, if it is whole and about this; one that is damaged is made again."""
    try:
        with np.load(io.BytesIO(file.read_bytes())) as loaded:  # a damaged file would be left open
            found = {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
        return None
    return found if str(found.pop("words", "")) == words else None

"""Bytes of a file as UTF-8, decompressed, with broken ends and encodings named or counted."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from ramify.errors import InvalidValue
from ramify.store.exchange.report import Collector, Problem

__all__ = ["opened", "stem_of", "suffix_of"]

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".npy", ".npz")
MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def suffix_of(path: Path) -> str:
    """The format's suffix, in lower case, without a ``.gz`` behind it.

    >>> suffix_of(Path("a/b.JSONL.gz"))
    '.jsonl'
    """
    return Path(path.name.removesuffix(".gz") if path.suffix == ".gz" else path.name).suffix.lower()


def stem_of(path: Path, *, strict: bool = False) -> str:
    """The file's name without the suffix of its format: what comes before it may have dots of its own.

    ``strict``: a file of no known format has none.

    >>> [stem_of(Path(name)) for name in ("a/qwen2.5.jsonl", "b.csv.gz", "runs.v2", "README")]
    ['qwen2.5', 'b', 'runs.v2', 'README']
    """
    name, suffix = path.name.removesuffix(".gz"), suffix_of(path)
    return name[: -len(suffix)] if suffix in SUFFIXES else "" if strict else path.name


def opened(path: Path, encoding: str, found: Collector) -> BinaryIO:
    """The file's text as UTF-8 bytes, without a byte order mark."""
    declared = codecs.lookup(encoding).name if _known(encoding) else _unknown(path, encoding)
    raw: Any = None
    try:
        raw = gzip.GzipFile(path, "rb") if path.suffix == ".gz" else path.open("rb")
        head = raw.read1(4)
        raw.seek(0)
    except (OSError, EOFError, zlib.error) as error:
        if raw is not None:
            raw.close()
        raise InvalidValue(f"{path}: cannot be read: {error}") from None
    marked = next((name for mark, name in MARKS if head.startswith(mark)), None)
    if declared == "utf-8" and marked == "utf-16":
        declared = "utf-16"  # the mark says so
    declared = "utf-8-sig" if declared == "utf-8" and marked else declared
    plain = declared == "utf-8" and found.strict != "nothing"
    return io.BufferedReader(_Whole(raw, found) if plain else _Recoded(raw, declared, found), 1 << 20)


def _known(encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
    except LookupError:
        return False
    return True


def _unknown(path: Path, encoding: str) -> str:
    raise InvalidValue(f"{path}: encoding = {encoding!r}: no such encoding; use utf-8, utf-16, latin-1, ...")


class _Whole(io.RawIOBase):
    """A stream whose compressed source may break off."""

    def __init__(self, raw: Any, found: Collector) -> None:
        self.raw, self.found, self.read_so_far = raw, found, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self.chunk(len(buffer))
        buffer[: len(chunk)] = chunk
        self.read_so_far += len(chunk)
        return len(chunk)

    def chunk(self, size: int) -> bytes:
        """The next bytes. A broken gzip is an error, or the end of what can be read."""
        try:
            return bytes(self.raw.read1(size))  # what there is, so that a broken end loses nothing before it
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            where = f"after {self.raw.tell()} bytes of text"
            self.found.broken(where, "", None, f"the compressed file is broken: {error}")
            return b""

    def close(self) -> None:
        self.raw.close()
        super().close()


class _Recoded(_Whole):
    """The same from another encoding; what cannot be decoded is an error, or replaced and counted."""

    def __init__(self, raw: Any, encoding: str, found: Collector) -> None:
        super().__init__(raw, found)
        lenient = found.strict == "nothing"
        self.encoding, self.done, self.left = encoding, False, b""
        self.decoder = codecs.getincrementaldecoder(encoding)("replace" if lenient else "strict")

    def readinto(self, buffer: Any) -> int:
        while not self.left and not self.done:
            raw = self.chunk(len(buffer))
            self.done = not raw
            try:
                text = self.decoder.decode(raw, final=self.done)
            except UnicodeDecodeError as error:
                place = f"near byte {self.raw.tell()}"
                self.found.fail(Problem(place, "", f"not {self.encoding}: {error.reason}; pass the file's encoding"))
            if "\ufffd" in text:
                self.found.dropped["characters that could not be decoded"] += text.count("\ufffd")
            self.left = text.encode("utf-8", "surrogatepass")
        size = min(len(buffer), len(self.left))
        buffer[:size], self.left = self.left[:size], self.left[size:]
        return size

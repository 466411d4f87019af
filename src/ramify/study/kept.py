"""What has been done already and need not be done again: leaves by key, decisions by everything they depend on."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import ramify
from ramify.arrays import Array
from ramify.bank import Proposal
from ramify.errors import StoreError
from ramify.store import Store, disk
from ramify.store.records import Record
from ramify.types import Key, Leaf, Question, Request, Sampler

__all__ = ["Decided", "Remembered", "Stream"]


@dataclasses.dataclass
class Decided:
    """Arrays by the text of all that they were made from: change one rule, and only its text is new."""

    folder: Path
    hits: int = 0
    misses: int = 0

    def get(self, parts: Sequence[object], make: Callable[[], Mapping[str, Array]]) -> dict[str, Array]:
        """What ``make`` gives, or gave when these parts were last seen."""
        words = "\n".join([ramify.__version__, *map(str, parts)])
        file = self.folder / f"{blake2b(words.encode(), digest_size=12).hexdigest()}.npz"
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


def _load(file: Path, words: str) -> dict[str, Array] | None:
    """The arrays of a file, if it is whole and about this; one that is damaged is made again."""
    try:
        with np.load(file) as loaded:
            found = {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, KeyError):
        return None
    return found if str(found.pop("words", "")) == words else None


class Stream:
    """Leaves up to whatever stopped their source. That is raised by ``check``, when those that came are durable."""

    def __init__(self, leaves: Iterable[Leaf]) -> None:
        self.leaves = leaves
        self.stopped: BaseException | None = None

    def __iter__(self) -> Iterator[Leaf]:
        try:
            yield from self.leaves
        except GeneratorExit:
            raise
        except BaseException as error:
            self.stopped = error

    def check(self) -> None:
        if self.stopped is not None:
            raise self.stopped


class Remembered:
    """A sampler that keeps every leaf before it gives it, and asks the model only for those it does not have.

    Searches and directors ask for one key more than once, each time with a longer prefix: a leaf is kept under its key
    and everything else that the request says.
    """

    def __init__(
        self,
        sampler: Sampler,
        path: Path,
        proposal: Proposal,
        questions: Sequence[Question],
        tell: Callable[[Leaf, bool], None],
    ) -> None:
        self.sampler, self.tell = sampler, tell
        self.store = Store.create(path)
        self.writer = self.store.writer(proposal)
        self.writer.ask(questions)
        with self.store.snapshot() as snapshot:
            self.known = {record.key: record.leaf() for record in snapshot.records()}

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        missing: dict[Key, Request] = {}
        for request in requests:
            there = self.known.get(_place(request))
            if there is None:
                missing[request.key] = request
            else:
                self.tell(there, True)
                yield dataclasses.replace(there, key=request.key)
        made = Stream(self.sampler(list(missing.values())) if missing else ())
        placed = (dataclasses.replace(leaf, key=_place(missing[leaf.key])) for leaf in made)
        asked = {_place(request): request.key for request in missing.values()}
        if len(asked) < len(missing):
            raise StoreError("two requests of one batch are the same: give each its own key")
        for leaf in self.writer.keep(placed):
            kept = Record.of(leaf, self.writer.card.hash).leaf()  # as it will be read: alternatives in single precision
            self.known[leaf.key] = kept
            self.tell(kept, False)
            yield dataclasses.replace(kept, key=asked[leaf.key])
        made.check()

    def __enter__(self) -> Remembered:
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()


def _place(request: Request) -> Key:
    """The key under which the answer to a request is kept."""
    said: tuple[Any, ...] = (request.prompt, request.cap, request.prefix, request.prefix_role, request.top)
    said += (request.until, repr(request.stop))
    return request.key._replace(
        stream=f"{request.key.stream}#{blake2b(repr(said).encode(), digest_size=8).hexdigest()}"
    )

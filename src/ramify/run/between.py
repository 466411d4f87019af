"""Samplers between a loop and a model: one that is watched, and one that keeps what it was given.

Both pass on the memory of prefixes that the sampler under them offers, so that a search over them forks what it drew.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ramify.bank import Proposal
from ramify.errors import StoreError
from ramify.models.memory import Memory
from ramify.search.evaluate import over_memory
from ramify.store import Store
from ramify.store.records import Record
from ramify.types import Key, Leaf, Question, Request

__all__ = ["Remembered", "Stream", "Watched"]


@dataclasses.dataclass(frozen=True, eq=False)
class Watched:
    """A sampler each of whose leaves is told, by the number of its tokens that are new. Closing it closes the other."""

    sampler: Any
    tell: Callable[[int], None]

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        # A list tells which tokens were there before; a queue is left alone, since reading it takes from it.
        given = {each.key: len(each.prefix) for each in requests} if isinstance(requests, list) else {}
        found = iter(self.sampler(requests))
        try:
            for leaf in found:
                self.tell(len(leaf.tokens) - given.get(leaf.key, 0))
                yield leaf
        finally:
            getattr(found, "close", lambda: None)()

    @property
    def remember(self) -> Callable[[float], Memory]:
        made: Callable[[float], Memory] = self.sampler.remember  # or no attribute, where the other has none
        return made

    def sharing(self, memory: Memory) -> Watched:
        return dataclasses.replace(self, sampler=over_memory(self.sampler, memory))


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
    and everything else that the request says. Each is told, by its new tokens and whether it was there.
    """

    def __init__(
        self,
        sampler: Any,
        path: Path,
        proposal: Proposal,
        questions: Sequence[Question],
        tell: Callable[[int, bool], object],
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
                self.tell(len(there.tokens) - len(request.prefix), True)
                yield dataclasses.replace(there, key=request.key)
        made = Stream(self.sampler(list(missing.values())) if missing else ())
        placed = (dataclasses.replace(leaf, key=_place(missing[leaf.key])) for leaf in made)
        asked = {_place(request): request for request in missing.values()}
        if len(asked) < len(missing):
            raise StoreError("two requests of one batch are the same: give each its own key")
        for leaf in self.writer.keep(placed):
            kept = Record.of(leaf, self.writer.card.hash).leaf()  # as it will be read: alternatives in single precision
            self.known[leaf.key] = kept
            request = asked[leaf.key]
            self.tell(len(kept.tokens) - len(request.prefix), False)
            yield dataclasses.replace(kept, key=request.key)
        made.check()

    @property
    def remember(self) -> Callable[[float], Memory]:
        made: Callable[[float], Memory] = self.sampler.remember  # or no attribute, where the other has none
        return made

    def sharing(self, memory: Memory) -> Remembered:
        shared = copy.copy(self)  # over the same store
        shared.sampler = over_memory(self.sampler, memory)
        return shared

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

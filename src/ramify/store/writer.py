"""A writer of a bank: what it returns from is durable."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramify.errors import StoreError, is_whole
from ramify.store.journal import Journal
from ramify.store.records import Record, difference, pack, pack_question
from ramify.types import Key, Leaf, Question

if TYPE_CHECKING:
    from ramify.store.protocol import Card
    from ramify.store.store import Store

__all__ = ["Writer"]

GROUP = 0.05  # seconds: leaves that come faster than this share a sync
ROLL = 64 << 20  # bytes of journal that are sealed into a shard


class Writer:
    """Appends candidates of one protocol. Idempotent by key: what is there already is not written again.

    Several writers, in several processes, may work on one bank. ``keep`` is the loop to use: it yields a leaf only
    after it is durable. Closing seals the journal into a shard; a writer that is killed leaves it to the next one.
    """

    def __init__(
        self, store: Store, card: Card, known: dict[Key, bytes], asked: dict[str, Question], sealed: set[str]
    ) -> None:
        self.store, self.card = store, card
        self._known, self._asked = known, asked
        self._written = sealed  # questions in sealed files or in this writer's journals, which need no other's
        self._journal = self._open()
        self._full: list[Path] = []  # journals to seal
        self._closed = False

    def _open(self) -> Journal:
        with self.store.locked():
            return Journal(self.store.numbered("journals", ".log"))

    def ask(self, questions: Sequence[Question]) -> None:
        """Record questions, in their order. A question that is there already must be the same one."""
        for question in questions:
            there = self._asked.setdefault(question.id, question)
            if there.prompt != question.prompt:
                raise StoreError(
                    f"question {question.id!r} is in {self.store.path} with the prompt {there.prompt!r}, "
                    f"and now asks {question.prompt!r}: give it another id"
                )
        new = [(question, place) for place, question in enumerate(questions) if question.id not in self._written]
        if new:
            self._journal.append([pack_question(*each) for each in new])
            self._written |= {question.id for question, _ in new}

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Which of these candidates are not in the bank yet: all that a resumed or topped-up run has to make."""
        return [key for key in keys if key not in self._known]

    def append(self, *candidates: Leaf | Record, answers: Sequence[Any] = ()) -> None:
        """Make candidates durable together. When this returns they are acknowledged."""
        records = [
            each if isinstance(each, Record) else Record.of(each, self.card.hash, answer)
            for each, answer in zip(candidates, answers or [None] * len(candidates), strict=True)
        ]
        self._check(records)
        fresh: dict[Key, Record] = {}
        for record in records:
            there = self._known.get(record.key) or (fresh[record.key].digest if record.key in fresh else None)
            if there is None:
                fresh[record.key] = record
            elif there != record.digest:
                raise self._conflict(record)
        if not fresh:
            return
        self._journal.append([pack(record) for record in fresh.values()])
        self._known |= {key: record.digest for key, record in fresh.items()}
        if self._journal.size > ROLL:
            self._roll()

    def _check(self, records: Sequence[Record]) -> None:
        if self._closed:
            raise StoreError(f"the writer of {self.store.path} is closed: open another with store.writer(...)")
        for record in records:
            if record.key.run != self.card.run or record.protocol != self.card.hash:
                raise StoreError(f"{record.key}: this writer keeps run {self.card.run!r}; give the leaf's key that run")
            if not (is_whole(record.key.sample) and record.key.sample < 2**63):
                raise StoreError(f"{record.key}: a bank keeps samples in [0, 2**63)")
            if record.key.question not in self._written:
                raise StoreError(f"{record.key}: record the question first, with writer.ask([...])")

    def _conflict(self, record: Record) -> StoreError:
        with self.store.snapshot() as snapshot:
            there = next((each for each in snapshot.records() if each.key == record.key), record)
        return StoreError(
            f"{record.key} is in {self.store.path} already, with other content ({difference(there, record)}): "
            "one key gives one leaf; did the model or its engine change without changing the protocol card?"
        )

    def keep(self, leaves: Iterable[Leaf], parse: Any = None) -> Iterator[Leaf]:
        """Yield each leaf once it is durable. ``parse(text, question)`` gives the answer to store, None for ⊥.

        Leaves that come in quick succession share one sync.
        """
        waiting: list[Leaf] = []
        synced = -GROUP
        for leaf in leaves:
            waiting.append(leaf)
            if time.monotonic() - synced >= GROUP:
                yield from self._flush(waiting, parse)
                waiting, synced = [], time.monotonic()
        yield from self._flush(waiting, parse)

    def _flush(self, leaves: list[Leaf], parse: Any) -> list[Leaf]:
        if leaves:
            answers = [parse(leaf.text, self._asked[leaf.key.question]) if parse else None for leaf in leaves]
            self.append(*leaves, answers=answers)
        return leaves

    def _roll(self) -> None:
        full, self._journal = self._journal, self._open()  # first: if sealing fails the writer can go on
        full.close()
        self._full.append(full.path)
        self._seal()

    def _seal(self) -> None:
        """Seal what is full, together with what could not be sealed before: it has the questions."""
        self.store.seal(self._full)
        self._full = []

    def close(self) -> None:
        """Seal the journal into a shard."""
        if not self._closed:
            self._closed = True
            self._journal.close()
            self._full.append(self._journal.path)
            self._seal()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""A bank on disk: a directory that several writers append to and readers see whole.

bank.json                     the format and its version
protocols/HASH.json           what runs were made by
journals/NNNNNN.log           what was acknowledged and is not sealed yet, a file a writer
shards/NAME.attempts.parquet  sealed candidates; beside it .tokens, .alternatives and .times
questions/, layers/, vocabularies/
manifest                      the files that count, with checksums
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ramify.bank import Bank, Layer, Outcomes, Proposal
from ramify.errors import StoreError, require
from ramify.store import disk, journal, manifest, shard
from ramify.store.compact import compact
from ramify.store.layers import about, layer_rows, there, topped_up
from ramify.store.manifest import Change, Entry
from ramify.store.protocol import Card
from ramify.store.questions import ordered, question_table, read_questions
from ramify.store.records import Record, record_of, unpack
from ramify.store.snapshot import Snapshot
from ramify.store.verify import Problem, verify
from ramify.store.writer import Writer
from ramify.types import Key, Question

__all__ = ["SCHEMA", "Store"]

# 1: alternatives.first held the best log-probability of every token.
# 2: only of those where the chosen token is another; lists have no nulls inside. Files of 1 are read as they are.
SCHEMA = 2
FOLDERS = ("protocols", "journals", "shards", "questions", "layers", "vocabularies")


class _Format(msgspec.Struct, frozen=True):
    format: str = "ramify-bank"
    schema: int = SCHEMA


class Store:
    """A bank directory. Opening one writes nothing; ``create`` makes one or opens what is there."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._check_format()

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """The bank that is there."""
        return cls(path)

    @classmethod
    def create(cls, path: str | Path) -> Store:
        """The bank that is there, or a new and empty one."""
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / "bank.json").exists():
                own = (*FOLDERS, "bank.json", "lock", "manifest", "readers", "compactor")  # another may be creating it
                strangers = [each.name for each in path.iterdir() if each.name not in own]
                strangers = [name for name in strangers if not name.endswith(".tmp")]
                if strangers:
                    raise StoreError(
                        f"{path} is no bank and not empty (it has {strangers[0]!r}): use another directory"
                    )
                for folder in FOLDERS:
                    (path / folder).mkdir(exist_ok=True)
                _write(path / "bank.json", msgspec.json.encode(_Format()) + b"\n")
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}; a bank directory must be writable") from error
        return cls(path)

    def _check_format(self) -> None:
        file = self.path / "bank.json"
        if not file.exists():
            if (self.path / "bank" / "bank.json").exists():  # a run directory
                raise StoreError(f"{self.path} is not a bank, and has one: use {self.path / 'bank'}")
            raise StoreError(
                f"{self.path} is not a bank: it has no bank.json; `ramify bank import` or Store.create(path) makes one"
            )
        try:
            found = msgspec.json.decode(file.read_bytes(), type=_Format)
        except msgspec.MsgspecError as error:
            raise StoreError(f"{file}: {error}; it is damaged, or not a bank's") from None
        if found.format != "ramify-bank" or not 1 <= found.schema <= SCHEMA:
            says = f"{found.format!r}, schema {found.schema}"
            raise StoreError(f"{file} says {says}; this ramify reads 'ramify-bank', schema 1 to {SCHEMA}: upgrade it")
        self.schema = found.schema

    def _upgrade(self) -> None:
        """Say that files of the present schema may follow, before the first one does."""
        if self.schema < SCHEMA:
            _write(self.path / "bank.json", msgspec.json.encode(_Format()) + b"\n")
            self.schema = SCHEMA
        for folder in FOLDERS:
            (self.path / folder).mkdir(exist_ok=True)

    # ---------------------------------------------------------------------------------------------------------- locking

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The lock under which the manifest changes. Held for moments; a process that dies drops it."""
        with disk.hold(self.path / "lock"):
            yield

    def numbered(self, folder: str, suffix: str) -> Path:
        """The next name in a folder. Names grow, so that the first durable record of a key can be told."""
        used = [int(path.name.split(".")[0]) for path in (self.path / folder).iterdir() if path.name[:1].isdigit()]
        _, sealed, _ = manifest.read(self.path / "manifest")
        used += [int(name.split(".")[0]) for name in sealed] if folder == "journals" else []
        return self.path / folder / f"{max(used, default=0) + 1:06d}{suffix}"

    # ---------------------------------------------------------------------------------------------------------- writing

    def writer(self, proposal: Proposal, details: Mapping[str, Any] | None = None, *, beside: bool = False) -> Writer:
        """A writer for the run of this protocol: it resumes what is there, and tops it up.

        A bank holds one protocol unless ``beside`` says that another one is meant to lie beside it; a run's protocol
        never changes.
        """
        card = Card.of(proposal, details)
        self._upgrade()
        with self.locked():  # two that begin at once are not both the first
            for other in self.cards().values():
                if other.run == card.run or not beside:
                    card.need_same(other, str(self.path))
            file = self.path / "protocols" / f"{card.hash}.json"
            if not file.exists():
                _write(file, card.encode())
        self.recover()
        with self.snapshot() as snapshot:
            known = {key: digest for key, digest in snapshot.digests() if key.run == card.run}
            asked = {question.id: question for question in snapshot.questions}
        sealed = {question.id for question, _ in read_questions(self.path, self._live())}
        return Writer(self, card, known, asked, sealed)

    def add_vocabulary(self, tokens: Sequence[str]) -> str:
        """Keep the strings of a model's tokens, once. The name that is returned belongs into the protocol's details."""
        self._upgrade()
        name = hashlib.blake2b(msgspec.json.encode(list(tokens)), digest_size=8).hexdigest()
        with self.locked():
            final = self.path / "vocabularies" / f"{name}.parquet"
            if str(final.relative_to(self.path)) not in self._live():
                written = disk.temporary(final)
                table = pa.table({"token": pa.array(range(len(tokens)), pa.int32()), "string": list(tokens)})
                pq.write_table(table, written, compression="zstd")
                entry = self._publish(written, final, "vocabulary", len(tokens))
                manifest.commit(self.path / "manifest", Change((entry,)))
        return name

    def cards(self) -> dict[str, Card]:
        """The protocol cards, by hash."""
        return {file.stem: Card.read(file) for file in sorted((self.path / "protocols").glob("*.json"))}

    def recover(self) -> None:
        """Seal the journals of writers that died, and remove what no line of the manifest speaks of."""
        dead = [path for path in self._journals() if not disk.is_held(path)]
        if dead:
            self.seal(dead, wait=False)
        with self.locked():
            live, sealed, _ = manifest.read(self.path / "manifest")
            for folder in (*FOLDERS, "."):
                for path in (self.path / folder).iterdir():
                    stale = path.name.endswith(".tmp") and not _alive(path)
                    listed = str(path.relative_to(self.path)) in live or path.name.endswith(".tmp")
                    unlisted = folder in ("shards", "questions", "layers") and not listed
                    if stale or (unlisted and self._nobody_reads()):
                        disk.remove(path)
            for name in sealed:
                _retire(self.path / "journals" / name)

    def _nobody_reads(self) -> bool:
        """Whether no snapshot is open: files that are no longer listed may go."""
        file = os.open(self.path / "readers", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            return disk.try_hold(file)
        finally:
            os.close(file)

    def verify(self) -> list[Problem]:
        """Every checksum and invariant; an empty list is a sound bank."""
        return verify(self)

    def compact(self) -> None:
        """Rewrite the bank as one run of shards in the bank's order: the same content gives the same bytes."""
        self._upgrade()
        self.recover()
        compact(self)

    def _journals(self) -> list[Path]:
        _, sealed, _ = manifest.read(self.path / "manifest")
        return [path for path in sorted((self.path / "journals").glob("*.log")) if path.name not in sealed]

    def seal(self, journals: Sequence[Path], *, wait: bool = True) -> None:
        """Turn journals into a shard, name it in the manifest, and only then drop them.

        Another process may be sealing one of them: ``wait`` for it, or leave that one to it.
        """
        with ExitStack() as stack, self.locked():
            _, sealed, _ = manifest.read(self.path / "manifest")
            mine = []
            for path in journals:
                with suppress(FileNotFoundError):
                    file = os.open(path, os.O_RDWR)
                    stack.callback(os.close, file)
                    if path.name not in sealed and (disk.try_hold(file) or wait):
                        mine.append(path)
            questions, records = _load(mine)
            add = [*self._question_file(questions), *self._shard(records, questions)]
            if mine:
                manifest.commit(self.path / "manifest", Change(tuple(add), sealed=tuple(path.name for path in mine)))
            for path in (*mine, *(self.path / "journals" / name for name in sealed)):
                _retire(path)

    def _question_file(self, questions: Sequence[tuple[Question, int]]) -> list[Entry]:
        if not questions:
            return []
        final = self.numbered("questions", ".parquet")
        written = disk.temporary(final)
        pq.write_table(question_table(questions), written, compression="zstd")
        return [self._publish(written, final, "questions", len(questions))]

    def _shard(self, records: Sequence[Record], fresh: Sequence[tuple[Question, int]]) -> list[Entry]:
        """Write candidates in the bank's order: questions by position, runs by name, samples."""
        if not records:
            return []
        order = {question.id: place for place, question in enumerate(self._questions(self._live(), fresh))}
        distinct: dict[tuple[Key, bytes], Record] = {}
        for record in records:  # the first durable comes first, and the sort is stable
            distinct.setdefault((record.key, record.digest), record)
        ordered = sorted(distinct.values(), key=lambda each: (order[each.key.question], *each.key))
        cuts = shard.row_groups([record.length or 0 for record in ordered], [record.key.question for record in ordered])
        name = self.numbered("shards", "").name
        return self._write_shard(name, (shard.tables(ordered[cut]) for cut in cuts))

    def _write_shard(self, name: str, parts: Iterator[Mapping[str, pa.Table]]) -> list[Entry]:
        finals = {kind: self.path / "shards" / f"{name}.{kind}.parquet" for kind in shard.FILES}
        try:
            rows = shard.write(parts, lambda kind: disk.temporary(finals[kind]))
            return [self._publish(disk.temporary(final), final, kind, rows, name) for kind, final in finals.items()]
        except OSError as error:
            for final in finals.values():
                disk.remove(disk.temporary(final))
            raise StoreError(
                f"{self.path}: {error}; nothing acknowledged is lost: free the disk and run again"
            ) from error

    def write_canonical(self, parts: Iterator[Mapping[str, pa.Table]]) -> list[Entry]:
        """Write a shard that is named after its content."""
        pending = self.path / "shards" / "canonical"
        shard.write(parts, lambda kind: disk.temporary(pending.with_suffix(f".{kind}")))
        name = "c" + disk.sha256(disk.temporary(pending.with_suffix(".attempts")))[:15]
        entries = []
        for kind in shard.FILES:
            written, final = (
                disk.temporary(pending.with_suffix(f".{kind}")),
                self.path / "shards" / f"{name}.{kind}.parquet",
            )
            rows = pq.read_metadata(written).num_rows
            entries.append(self._publish(written, final, kind, rows, name))
        return entries

    def _publish(self, written: Path, final: Path, kind: str, rows: int, name: str = "") -> Entry:
        checksum, size = disk.sha256(written), written.stat().st_size
        disk.publish(written, final)
        return Entry(str(final.relative_to(self.path)), kind, size, checksum, rows, name)

    def add_bank(self, bank: Bank, outcomes: Mapping[str, Outcomes] | None = None, *, beside: bool = False) -> None:
        """Keep the candidates of a bank, its layers, and grades beside it.

        What is there is left alone and what is new is added, scores and grades too. One that says otherwise than the
        one that is there is refused before anything is written.
        """
        attached = [
            layer_rows(bank, layer.values, layer.cost, about(name, layer)) for name, layer in bank.layers.items()
        ]
        attached += [
            layer_rows(bank, grades.on(bank), None, about(name, grades)) for name, grades in (outcomes or {}).items()
        ]
        for table in attached:
            topped_up(self.path, self._live(), table)
        answers = [[bank.answer(q, n) for n in range(bank.shape[1])] for q in range(bank.shape[0])]
        for source, proposal in enumerate(bank.proposals):
            with self.writer(proposal, beside=beside or len(bank.proposals) > 1) as writer:
                writer.ask(bank.questions)
                batch: list[Record] = []
                for q, n in zip(*np.nonzero(bank.source == source), strict=True):
                    batch.append(record_of(bank, q, n, writer.card.hash, answers[q][n]))
                    if len(batch) == 512:
                        writer.append(*batch)
                        batch = []
                writer.append(*batch)
        for table in attached:
            self._keep_layer(table, more=True)

    # ---------------------------------------------------------------------------------------------------------- layers

    def add_layer(self, name: str, bank: Bank, layer: Layer, *, more: bool = False) -> None:
        """Attach scores to candidates, durably, without rewriting them. A name is given once.

        With ``more``, scores of that name may be there: candidates that have none get theirs.
        """
        self._keep_layer(layer_rows(bank, layer.values, layer.cost, about(name, layer)), more=more)

    def add_outcomes(self, name: str, bank: Bank, outcomes: Outcomes, *, anew: bool = False) -> None:
        """Attach grades. They stay behind the wall: only ``snapshot.outcomes`` gives them back.

        With ``anew``, grades of that name that are there are replaced: whoever makes them again knows better now.
        """
        self._keep_layer(layer_rows(bank, outcomes.on(bank), None, about(name, outcomes)), anew=anew)

    def _keep_layer(self, table: pa.Table, *, more: bool = False, anew: bool = False) -> None:
        """Write a layer; with ``more``, one that is there is replaced by itself and the rows it lacks."""
        with self.locked():
            if anew:
                old, whole = there(self.path, self._live(), table), table
                same = old is not None and pq.read_table(self.path / old.file).equals(table, check_metadata=True)
            else:
                old, whole = topped_up(self.path, self._live(), table)
                same = old is not None and whole.num_rows == old.rows
            name = table.schema.metadata[b"name"].decode()
            require(
                more or anew or old is None, "layer", name, "the bank has one of this name: a new version is a new name"
            )
            if same:
                return
            final = self.numbered("layers", ".parquet")
            written = disk.temporary(final)
            pq.write_table(whole, written, compression="zstd")
            entry = self._publish(written, final, "layer", whole.num_rows)
            manifest.commit(self.path / "manifest", Change((entry,), drop=() if old is None else (old.file,)))

    # ---------------------------------------------------------------------------------------------------------- reading

    def snapshot(self) -> Snapshot:
        """What the bank holds now. Close it, or use it in a ``with``, to let removed files go."""
        lock = self._read_lock()
        try:
            while True:
                before, sealed, version = manifest.read(self.path / "manifest")
                with suppress(FileNotFoundError):  # sealed while we looked: look again
                    paths = [path for path in sorted((self.path / "journals").glob("*.log")) if path.name not in sealed]
                    questions, fresh = _load(paths)
                    if manifest.read(self.path / "manifest")[2] == version:
                        break
            return Snapshot(self.path, before, fresh, self._questions(before, questions), self.cards(), lock)
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise

    def _live(self) -> dict[str, Entry]:
        return manifest.read(self.path / "manifest")[0]

    def _questions(self, live: Mapping[str, Entry], fresh: Sequence[tuple[Question, int]]) -> tuple[Question, ...]:
        """The questions in order of position, then id. Of several records of one question the first durable counts."""
        return tuple(question for question, _ in ordered([*read_questions(self.path, live), *fresh]))

    def write_questions(self, live: Mapping[str, Entry]) -> Entry | None:
        """All questions in one file that is named after its content; None if there are none."""
        questions = ordered(read_questions(self.path, live))
        if not questions:
            return None
        pending = disk.temporary(self.path / "questions" / "canonical")
        pq.write_table(question_table(questions), pending, compression="zstd")
        final = self.path / "questions" / f"c{disk.sha256(pending)[:15]}.parquet"
        return self._publish(pending, final, "questions", len(questions))

    def _read_lock(self) -> int | None:
        """The readers' lock, shared; None where the directory cannot be written to, and so nothing is ever removed."""
        try:
            file = os.open(self.path / "readers", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                return None
            raise StoreError(f"{self.path / 'readers'}: {error.strerror}; a reader needs its lock") from error
        disk.wait_to_hold(file, shared=True)  # whoever asks whether anybody reads has it for a moment
        return file


def _load(paths: Iterable[Path]) -> tuple[list[tuple[Question, int]], list[Record]]:
    """What journals hold, in order."""
    questions: list[tuple[Question, int]] = []
    records: list[Record] = []
    for path in paths:
        for payload in journal.payloads(path):
            found = unpack(payload)
            if isinstance(found, Record):
                records.append(found)
            else:
                questions.append(found)
    return questions, records


def _retire(path: Path) -> None:
    """Remove a journal whose records are in shards; one with bytes that could not be read is put aside."""
    if path.exists() and journal.damaged(path):
        disk.publish(path, path.with_suffix(".damaged"))
    disk.remove(path)


def _write(final: Path, data: bytes) -> None:
    """A small file, whole or not at all."""
    written = disk.temporary(final)
    written.write_bytes(data)
    disk.publish(written, final)


def _alive(path: Path) -> bool:
    """Whether the process that writes a temporary file lives."""
    pid = path.name.rsplit(".", 2)[1]
    return pid.isdigit() and Path(f"/proc/{pid}").exists()

"""Several processes at work on one bank: what one of them does in the moment another one looks."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from ramify.bank import Proposal
from ramify.errors import StoreError
from ramify.store import Snapshot, Store
from ramify.store.manifest import Entry
from ramify.store.protocol import Card
from tests.store.test_faults import filled
from tests.store.tools import PROPOSAL, contents


def somebody_looks(path: Path) -> threading.Timer:
    """Another process asks whether anybody reads, and has the readers' lock for a moment."""
    file = os.open(path / "readers", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(file, fcntl.LOCK_EX)
    moment = threading.Timer(0.1, lambda: os.close(file))
    moment.start()
    return moment


def test_a_snapshot_keeps_its_files_though_somebody_looked_for_readers_when_it_began(tmp_path: Path) -> None:
    store = filled(tmp_path / "bank")
    expected, moment = len(contents(store.path)), somebody_looks(store.path)
    with store.snapshot() as snapshot:
        moment.join()
        Store.open(store.path).compact()
        Store.open(store.path).writer(PROPOSAL).close()
        assert len(list(snapshot.records())) == expected


def test_compaction_loses_nothing_to_a_writer_that_opens_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path / "bank")
    expected, snapshot, write_questions = contents(store.path), Store.snapshot, Store.write_questions

    def begun(self: Store) -> Snapshot:
        moment = somebody_looks(self.path)
        found = snapshot(self)
        moment.join()
        return found

    def written(self: Store, live: Mapping[str, Entry]) -> Entry | None:
        Store.open(self.path).recover()  # the new shards are there, and not in the manifest yet
        return write_questions(self, live)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "snapshot", begun)
        patched.setattr(Store, "write_questions", written)
        store.compact()
    assert contents(store.path) == expected
    assert store.verify() == []


def test_two_protocols_of_one_run_that_begin_at_once_are_not_both_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, both, cards = Store.create(tmp_path / "bank").path, threading.Barrier(2), Store.cards
    refused: list[StoreError] = []

    def slowly(self: Store) -> dict[str, Card]:
        found = cards(self)
        with suppress(threading.BrokenBarrierError):
            both.wait(0.3)
        return found

    def begin(protocol: str) -> None:
        try:
            Store.open(path).writer(Proposal(run="run", protocol=protocol)).close()
        except StoreError as error:
            refused.append(error)

    monkeypatch.setattr(Store, "cards", slowly)
    threads = [threading.Thread(target=begin, args=(protocol,)) for protocol in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert len(cards(Store.open(path))) == 1


def test_a_bank_that_another_process_creates_at_the_same_moment_is_no_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, iterdir = tmp_path / "bank", Path.iterdir

    def later(self: Path) -> Iterator[Path]:
        with monkeypatch.context() as patched:
            patched.setattr(Path, "iterdir", iterdir)
            Store.create(path).snapshot().close()
        return iterdir(self)

    monkeypatch.setattr(Path, "iterdir", later)
    Store.create(path)

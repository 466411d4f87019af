"""Any sequence of append, crash, resume, compact and read equals the same operations on a dictionary."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ramify.store import Store, Writer, disk
from ramify.types import Key
from tests.store.tools import PROPOSAL, QUESTIONS, contents, record


class Banks(RuleBasedStateMachine):
    """Two writers and a model: the digests of what was acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "bank"
        self.model: dict[Key, bytes] = {}
        self.writers: dict[int, Writer] = {}

    @initialize()
    def create(self) -> None:
        self.store = Store.create(self.path)

    def writer(self, which: int) -> Writer:
        if which not in self.writers:
            self.writers[which] = self.store.writer(PROPOSAL)
            self.writers[which].ask(QUESTIONS)
        return self.writers[which]

    @rule(
        which=st.integers(0, 1), keys=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=5)
    )
    def append(self, which: int, keys: list[tuple[int, int]]) -> None:
        writer = self.writer(which)
        records = [record(writer, q, n) for q, n in keys]
        writer.append(*records)
        self.model |= {each.key: each.digest for each in records}

    @precondition(lambda self: self.writers)
    @rule(which=st.integers(0, 1), torn=st.binary(max_size=12))
    def crash(self, which: int, torn: bytes) -> None:
        """The process dies: its lock goes, its journal stays, with half a record at its end."""
        writer = self.writers.pop(which, None)
        if writer is not None:
            os.write(writer._journal._file, torn)
            writer._journal.close()

    @precondition(lambda self: self.writers)
    @rule(which=st.integers(0, 1))
    def close(self, which: int) -> None:
        writer = self.writers.pop(which, None)
        if writer is not None:
            writer.close()

    @rule()
    def compact(self) -> None:
        self.store.compact()

    @rule()
    def litter(self) -> None:
        """What a crash in the middle of writing leaves behind."""
        (self.path / "shards" / ".000001.attempts.parquet.999999999.tmp").write_bytes(b"half")
        (self.path / "shards" / "999999.attempts.parquet").write_bytes(b"unlisted")

    @invariant()
    def reads_as_the_model(self) -> None:
        if self.path.exists():
            assert contents(self.path) == self.model

    def teardown(self) -> None:
        for writer in self.writers.values():
            writer.close()
        assert contents(self.path) == self.model
        Store.open(self.path).recover()
        assert Store.open(self.path).verify() == []
        assert not any(disk.is_held(path) for path in self.path.glob("journals/*"))
        shutil.rmtree(self.folder)


TestBanks = Banks.TestCase
TestBanks.settings = settings(
    max_examples=12, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)

"""Full disks, damage, and power cuts: each gives a clear error and loses nothing that was acknowledged."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ramify.errors import StoreError
from ramify.store import Store, disk
from ramify.types import Key
from tests.store.tools import PROPOSAL, QUESTIONS, contents, record


def filled(path: Path, samples: int = 4) -> Store:
    store = Store.create(path)
    with store.writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS)
        writer.append(*(record(writer, q, n) for q in range(6) for n in range(samples)))
    return store


def in_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script where it may mount; skip where the machine does not let us."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    return subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, check=False)


FILL = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from ramify.errors import StoreError
from ramify.store import Store
from tests.store.tools import PROPOSAL, QUESTIONS, contents, record
path = Path(sys.argv[1])
store, kept = Store.create(path), []
writer = store.writer(PROPOSAL)
writer.ask(QUESTIONS)
try:
    for n in range(10_000):
        kept.append(record(writer, n % 6, n // 6).key)
        writer.append(record(writer, n % 6, n // 6))
except StoreError as error:
    kept.pop()
    print(error)
assert set(kept) <= set(contents(path)), "lost"
print(len(kept), len(contents(path)))
"""


def test_a_full_disk_stops_the_writer_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    script = tmp_path / "fill.py"
    script.write_text(FILL.format(root=str(Path(__file__).parents[2])))
    mounted = f"mount -t tmpfs -o size=300k tmpfs {tmp_path}/disk && {sys.executable} {script} {tmp_path}/disk/bank"
    (tmp_path / "disk").mkdir()
    result = in_namespace(mounted)
    assert result.returncode == 0, result.stderr
    message, counts = result.stdout.splitlines()
    assert "No space left on device; nothing acknowledged is lost: free the disk and run again" in message
    assert counts.split()[0] == counts.split()[1]


def test_a_read_only_directory_can_be_read_and_says_that_it_cannot_be_written(tmp_path: Path) -> None:
    store = filled(tmp_path / "bank")
    expected = len(contents(store.path))
    script = tmp_path / "read.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from pathlib import Path\nfrom ramify.errors import StoreError\nfrom ramify.store import Store\n"
        "from tests.store.tools import PROPOSAL, contents\nprint(len(contents(Path(sys.argv[1]))))\n"
        "try:\n    Store.create(sys.argv[1]).writer(PROPOSAL)\nexcept StoreError as error:\n    print(error)\n"
    )
    bound = f"mount --bind {store.path} {store.path} && mount -o remount,bind,ro {store.path}"
    result = in_namespace(f"{bound} && {sys.executable} {script} {store.path}")
    assert result.returncode == 0, result.stderr
    count, message = result.stdout.splitlines()
    assert int(count) == expected
    assert "Read-only file system" in message
    assert "must be writable" in message


def test_no_space_while_sealing_leaves_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.create(tmp_path / "bank")
    writer = store.writer(PROPOSAL)
    writer.ask(QUESTIONS)
    writer.append(*(record(writer, 0, n) for n in range(5)))
    expected = contents(store.path)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk, "publish", full)
    with pytest.raises((StoreError, OSError), match="No space left"):
        writer.close()
    monkeypatch.undo()
    assert contents(store.path) == expected
    store.recover()
    assert contents(store.path) == expected
    assert store.verify() == []


def test_no_space_while_rolling_says_so_and_the_writer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, publish = Store.create(tmp_path / "bank"), disk.publish

    def full(written: Path, final: Path) -> None:
        if final.suffix == ".parquet":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        publish(written, final)

    monkeypatch.setattr("ramify.store.writer.ROLL", 100)
    with store.writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS)
        monkeypatch.setattr(disk, "publish", full)
        with pytest.raises((StoreError, OSError), match="No space left"):
            writer.append(record(writer, 0, 0))
        monkeypatch.undo()
        writer.append(record(writer, 0, 1))
    store.recover()
    assert {key.sample for key in contents(store.path)} == {0, 1}
    assert store.verify() == []


def test_what_could_not_be_sealed_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.create(tmp_path / "bank")
    with store.writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS)
        for sample in (-1, 2**63):
            with pytest.raises(StoreError, match="keeps samples in"):
                writer.append(dataclasses.replace(record(writer, 0, 0), key=Key("run", "q0", sample)))
        with monkeypatch.context() as patched:
            patched.setattr("ramify.store.journal.LONGEST", 10)
            with pytest.raises(StoreError, match="a journal keeps up to 10 each"):
                writer.append(record(writer, 0, 0))
    assert contents(store.path) == {}
    assert store.verify() == []


def damaged(path: Path) -> Iterator[Path]:
    yield from (file for file in sorted(path.rglob("*")) if file.is_file() and file.stat().st_size)


def test_a_flipped_bit_anywhere_is_found_and_named(tmp_path: Path) -> None:
    store = filled(tmp_path / "bank")
    for file in list(damaged(store.path)):
        data = bytearray(file.read_bytes())
        for place in (len(data) // 3, len(data) // 2, len(data) - 2):
            data[place] ^= 0x10
            file.write_bytes(data)
            try:
                problems = " ".join(map(str, Store.open(store.path).verify()))
            except StoreError as error:
                problems = str(error)
            assert file.name in problems or str(file.relative_to(store.path)) in problems, (
                f"{file.name} at {place}: {problems}"
            )
            data[place] ^= 0x10
            file.write_bytes(data)
    assert store.verify() == []


def test_a_damaged_last_line_of_the_manifest_removes_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path / "bank")
    expected, manifest = contents(store.path), store.path / "manifest"
    data = bytearray(manifest.read_bytes())
    data[-20] ^= 1
    manifest.write_bytes(data)
    with pytest.raises(StoreError, match="is damaged"):
        store.writer(PROPOSAL)
    data[-20] ^= 1
    manifest.write_bytes(data)
    assert contents(store.path) == expected


def test_a_journal_that_ends_in_zeros_was_cut_off(tmp_path: Path) -> None:
    """After a power cut a file may have its new size and not its new pages."""
    store = Store.create(tmp_path / "bank")
    writer = store.writer(PROPOSAL)
    writer.ask(QUESTIONS)
    writer.append(record(writer, 0, 0))
    os.write(writer._journal._file, bytes(64))
    writer._journal.close()
    assert len(contents(store.path)) == 1
    store.recover()
    assert len(contents(store.path)) == 1
    assert store.verify() == []


def test_a_journal_that_is_damaged_in_the_middle_is_put_aside_and_not_removed(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    writer = store.writer(PROPOSAL)
    writer.ask(QUESTIONS)
    for n in range(6):
        writer.append(record(writer, 0, n))
    [path] = (store.path / "journals").glob("*.log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    writer.close()
    [problem] = store.verify()
    assert "could not be read when it was sealed" in str(problem)
    assert path.with_suffix(".damaged").read_bytes() == data
    assert len(contents(store.path)) < 6
    store.writer(PROPOSAL).close()
    assert store.verify() == [problem]


def test_a_truncated_file_is_found_and_reading_it_says_what_to_do(tmp_path: Path) -> None:
    store = filled(tmp_path / "bank")
    [file] = (store.path / "shards").glob("*.tokens.parquet")
    file.write_bytes(file.read_bytes()[:-100])
    [problem] = store.verify()
    assert "truncated" in str(problem)
    with pytest.raises(StoreError, match=r"cannot be read .* run `ramify bank verify"), store.snapshot() as snapshot:
        snapshot.bank(columns=("token",))


def test_a_damaged_journal_keeps_what_comes_before_the_damage(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    writer = store.writer(PROPOSAL)
    writer.ask(QUESTIONS)
    for n in range(6):
        writer.append(record(writer, 0, n))
    [path] = (store.path / "journals").glob("*.log")
    copy = tmp_path / "copy"
    shutil.copytree(store.path, copy)
    writer.close()
    log = copy / "journals" / path.name
    log.write_bytes(log.read_bytes()[:-3])
    assert len(contents(copy)) == 5
    assert any("cut off" in str(problem) for problem in Store.open(copy).verify())
    Store.open(copy).recover()
    assert len(contents(copy)) == 5
    assert Store.open(copy).verify() == []


def test_a_lock_that_was_left_behind_is_nobody_s(tmp_path: Path) -> None:
    store = filled(tmp_path / "bank")
    for name in ("lock", "readers", "compactor"):
        (store.path / name).write_text("pid 1, host gone, since yesterday\n")
    with store.writer(PROPOSAL) as writer:
        writer.append(record(writer, 0, 9))
    store.compact()
    assert len(contents(store.path)) == 25


# ---------------------------------------------------------------------------------------------------------- power cuts


class Recorder:
    """Copies the directory at every durable step: what a machine that lost power right after it would find."""

    def __init__(self, path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.out, self.steps, self.promised = path, out, list[tuple[Path, int]](), 0
        append, publish, remove = disk.append, disk.publish, disk.remove

        def torn_append(file: int, data: bytes, where: Path) -> None:
            before = os.lseek(file, 0, os.SEEK_END)
            for cut in {0, 1, len(data) // 2, len(data) - 1}:
                os.pwrite(file, data[:cut], before)  # a tail that reached the disk in part, before the sync
                self.copy()
                os.ftruncate(file, before)
            append(file, data, where)
            self.copy()

        def cut_publish(written: Path, final: Path) -> None:
            self.copy()
            publish(written, final)
            self.copy()

        def cut_remove(path: Path) -> None:
            remove(path)
            self.copy()

        monkeypatch.setattr(disk, "append", torn_append)
        monkeypatch.setattr(disk, "publish", cut_publish)
        monkeypatch.setattr(disk, "remove", cut_remove)

    def copy(self) -> None:
        if (self.path / "bank.json").exists():
            to = self.out / str(len(self.steps))
            shutil.copytree(self.path, to)
            self.steps.append((to, self.promised))


def test_power_may_fail_after_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path / "bank", tmp_path / "cuts", monkeypatch)
    store = Store.create(tmp_path / "bank")
    for part in range(2):
        writer = store.writer(PROPOSAL)
        writer.ask(QUESTIONS[:2])
        for n in range(part * 2, part * 2 + 2):
            writer.append(record(writer, 0, n), record(writer, 1, n))
            recorder.promised += 2
        writer.close()
    store.compact()
    monkeypatch.undo()
    assert len(recorder.steps) > 60
    everything = contents(store.path)
    for path, promised in recorder.steps:
        found = contents(path)
        assert len(found) >= promised, path
        assert found.items() <= everything.items()
        with Store.open(path).writer(PROPOSAL) as writer:  # recovers, and goes on
            writer.ask(QUESTIONS[:2])
            writer.append(*(record(writer, q, n) for q in range(2) for n in range(4)))
        assert contents(path) == everything
        assert Store.open(path).verify() == []


def test_the_manifest_refuses_damage_in_its_middle(tmp_path: Path) -> None:
    store = filled(tmp_path / "bank")
    with store.writer(PROPOSAL) as writer:
        writer.append(record(writer, 0, 20))
    path = store.path / "manifest"
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 2
    assert json.loads(lines[0].partition(b" ")[2])["add"]
    path.write_bytes(lines[0].replace(b"attempts", b"attempt5") + lines[1])
    with pytest.raises(StoreError, match="the line at byte 0 is damaged"):
        store.snapshot()
    assert "damaged" in str(store.verify()[0])

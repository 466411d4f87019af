"""Writers killed at random points: all that was acknowledged is there, once, and a resumed run ends as a whole one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ramify.store import Store
from ramify.types import Key
from tests.store.tools import PROPOSAL, QUESTIONS, canonical, contents, record

SAMPLES = 30
WRITE = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from ramify.store import Store, writer as module
from tests.store.tools import PROPOSAL, QUESTIONS, record
module.ROLL = 20_000  # seal often, so that kills fall into sealing too
path, mine, of = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Store.create(path).writer(PROPOSAL) as writer:
    writer.ask(QUESTIONS)
    keys = [(q, n) for n in range({SAMPLES}) for q in range(len(QUESTIONS)) if (n * len(QUESTIONS) + q) % of == mine]
    there = {{key for key in keys}} - {{
        (int(key.question[1:]), key.sample)
        for key in writer.missing(record(writer, q, n).key for q, n in keys)
    }}
    for q, n in keys:
        if (q, n) not in there:
            writer.append(record(writer, q, n))
            print(q, n, flush=True)
"""


def start(path: Path, mine: int, of: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITE, str(path), str(mine), str(of)], stdout=subprocess.PIPE, text=True
    )


def acknowledged(process: subprocess.Popen[str]) -> set[Key]:
    """What the writer said was durable. A line that was cut off was not said."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines(keepends=True)
    pairs = [line.split() for line in lines if line.endswith("\n")]
    return {Key("run", f"q{q}", int(n)) for q, n in pairs}


def kill_until_done(path: Path, writers: int, kills: int, rng: random.Random) -> int:
    """Run writers, killing all of them at random moments. How many kills hit a living writer is returned."""
    promised: set[Key] = set()
    hits = 0
    while hits < kills:
        running = [start(path, mine, writers) for mine in range(writers)]
        began = [process.stdout.readline() if process.stdout else "" for process in running]
        time.sleep(rng.random() * 0.12)
        for process in running:
            hits += process.poll() is None
            process.send_signal(signal.SIGKILL)
        for process, line in zip(running, began, strict=True):
            if line.endswith("\n"):
                q, n = line.split()
                promised.add(Key("run", f"q{q}", int(n)))
            promised |= acknowledged(process)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        found = contents(path)
        assert promised <= found.keys(), "an acknowledged leaf is gone"
        if len(found) == SAMPLES * len(QUESTIONS):
            break
    for mine in range(writers):
        process = start(path, mine, writers)
        acknowledged(process)
        assert process.wait() == 0
        assert process.stdout is not None
        process.stdout.close()
    return hits


def uninterrupted(path: Path) -> Path:
    with Store.create(path).writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS)
        writer.append(*(record(writer, q, n) for q in range(len(QUESTIONS)) for n in range(SAMPLES)))
    return path


@pytest.mark.parametrize(("writers", "kills"), [pytest.param(1, 4, marks=pytest.mark.soak), (4, 8)])
def test_nothing_acknowledged_is_lost_and_the_end_is_the_same(tmp_path: Path, writers: int, kills: int) -> None:
    assert kill_until_done(tmp_path / "bank", writers, kills, random.Random(writers)) >= 1
    whole = uninterrupted(tmp_path / "whole")
    assert contents(tmp_path / "bank") == contents(whole)
    assert canonical(tmp_path / "bank") == canonical(whole)
    assert Store.open(tmp_path / "bank").verify() == []


@pytest.mark.soak
@pytest.mark.parametrize("writers", [1, 4])
def test_hundreds_of_kills(tmp_path: Path, writers: int) -> None:
    rng, hits, whole = random.Random(writers), 0, canonical(uninterrupted(tmp_path / "whole"))
    for round in range(1000):
        hits += kill_until_done(tmp_path / str(round), writers, 12, rng)
        assert canonical(tmp_path / str(round)) == whole
        if hits >= 300:
            break
    assert hits >= 300, "too few kills hit a living writer"


def test_a_killed_compaction_loses_nothing(tmp_path: Path) -> None:
    path = uninterrupted(tmp_path / "bank")
    before = contents(path)
    program = f"from ramify.store import Store; print('go', flush=True); Store.open({str(path)!r}).compact()"
    rng = random.Random(0)
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.random() * 0.1)
        process.kill()
        process.wait()
        process.stdout.close()
        assert contents(path) == before
    assert canonical(path) == canonical(uninterrupted(tmp_path / "whole"))
    assert not [file for file in path.rglob("*.tmp") if os.path.exists(file)]

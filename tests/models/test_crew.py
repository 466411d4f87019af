"""Worker processes: the same leaves, cancelled when nobody wants them, and never a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from ramify.decode import Chain, Mirostat, Repetition, Temperature, TokenMeasure
from ramify.errors import InvalidValue, WorkerLost
from ramify.models import Crew, Pocket, Tabular, decode_with
from ramify.models import crew as module
from ramify.types import APPENDED, SAMPLED, Key, Leaf, Request

MODEL = Tabular.random(Key("sampler", "tabular", 0), vocabulary=4, order=2)


@pytest.fixture(autouse=True, scope="module")
def _no_worker_survives() -> Iterator[None]:
    yield
    module.dismiss()


def requests(n: int, prompts: list[tuple[int, ...]], cap: int) -> list[Request]:
    return [
        Request(Key("run", f"q{i % 3}", i), prompts[i % len(prompts)], cap=cap + i % 5, top=i % 3) for i in range(n)
    ]


def bits(leaf: Leaf) -> dict[str, object]:
    """Everything a leaf says, arrays as their bytes."""
    said = {field.name: getattr(leaf, field.name) for field in fields(leaf) if field.name != "top"}
    said |= {} if leaf.top is None else {"ids": leaf.top.ids, "logprobs": leaf.top.logprobs}
    return {name: (x.dtype, x.shape, x.tobytes()) if isinstance(x, np.ndarray) else x for name, x in said.items()}


def test_leaves_are_bit_for_bit_those_of_one_process() -> None:
    model = Pocket("tiny")
    prompts = [model.encode(text) for text in ("M3 5 7 25:41\n", "M3 5 7 25:41\n", "M1 2 3:6\n", "M4 4 10 9:25\n")]
    asked = [
        *requests(40, prompts, cap=30),
        Request(Key("r", "zero", 0), prompts[0], cap=0),
        Request(Key("r", "more", 0), prompts[0], 20, prefix=prompts[1][:2], prefix_role=(SAMPLED, APPENDED)),
    ]
    operator = Chain(Temperature(1.3), Repetition(1.1), Mirostat(tau=1.0))
    alone = {leaf.key: bits(leaf) for leaf in decode_with(model, operator)(asked)}
    assert len(alone) == len(asked)
    for workers, batch, order in ((2, 64, 1), (3, 7, -1), (2, 2, 1)):
        together = list(decode_with(model, operator, batch=batch, workers=workers)(asked[::order]))
        assert len(together) == len(asked)
        assert {leaf.key: bits(leaf) for leaf in together} == alone


def test_requests_are_taken_as_rows_become_free_and_closing_cancels() -> None:
    taken = []

    def endless() -> Iterator[Request]:
        for i in range(10**9):
            taken.append(i)
            yield Request(Key("run", "q", i), (), cap=5)

    leaves = decode_with(MODEL, Chain(), batch=6, workers=2)(endless())
    for _ in range(10):
        next(leaves)
    leaves.close()  # type: ignore[attr-defined]
    assert len(taken) <= 6 + 10
    again = list(decode_with(MODEL, Chain(), batch=6, workers=2)(requests(9, [()], 5)))
    assert len(again) == 9, "what a cancelled call left behind is not in the next one"
    assert len(module._idle) >= 2


def test_no_requests_need_no_workers() -> None:
    module.dismiss()
    assert list(decode_with(MODEL, Chain(), workers=2)([])) == []
    assert not module._idle


def test_a_killed_worker_is_an_error_and_never_a_hang() -> None:
    endless = (Request(Key("run", "q", i), (0,), cap=50) for i in range(10**9))
    leaves = decode_with(MODEL, Chain(Temperature(3.0)), batch=8, workers=2)(endless)
    next(leaves)
    victim = next(worker for worker in _alive())
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(WorkerLost, match=r"exit code -9\).*ask for them again"):
        for _ in leaves:
            pass
    assert len(list(decode_with(MODEL, Chain(), batch=8, workers=2)(requests(9, [()], 5)))) == 9


def _alive() -> list[int]:
    import multiprocessing

    return [
        int(child.pid) for child in multiprocessing.active_children() if child.pid and child.name == "ramify-worker"
    ]


def broken(measure: TokenMeasure) -> TokenMeasure:
    raise InvalidValue(f"no rows like these {len(measure.logits)}: use others")


def test_an_error_in_a_worker_is_raised_here_with_its_story() -> None:
    with pytest.raises(InvalidValue, match="use others") as caught:
        list(decode_with(MODEL, broken, batch=4, workers=2)(requests(9, [()], 5)))
    assert "in a worker process" in caught.value.__notes__[0]
    with pytest.raises(InvalidValue, match="top of a module"):
        list(decode_with(MODEL, lambda measure: measure, batch=4, workers=2)(requests(9, [()], 5)))


def test_an_error_of_the_caller_ends_the_workers() -> None:
    def failing() -> Iterator[Request]:
        yield from requests(9, [()], 5)
        raise KeyError("questions ran out")

    before = set(_alive())
    with pytest.raises(KeyError, match="ran out"):
        list(decode_with(MODEL, Chain(), batch=4, workers=2)(failing()))
    assert set(_alive()) <= before


def test_workers_need_rows() -> None:
    assert isinstance(decode_with(MODEL, Chain(), workers=2), Crew)
    for workers in (0, 65):
        with pytest.raises(InvalidValue, match=f"workers = {workers}"):
            decode_with(MODEL, Chain(), workers=workers)


SCRIPT = """
import itertools, sys
from ramify.decode import Chain
from ramify.models import Tabular, decode_with
from ramify.types import Key, Request
if __name__ == "__main__":
    model = Tabular.random(Key("m", "t", 0), vocabulary=4, order=2)
    endless = (Request(Key("run", "q", i), (0,), cap=50) for i in itertools.count())
    for leaf in decode_with(model, Chain(), workers=2)(endless):
        print("leaf", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_or_the_death_of_the_caller_leaves_no_worker(tmp_path: Path, how: signal.Signals) -> None:
    script = tmp_path / "endless.py"
    script.write_text(SCRIPT)
    env = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
        start_new_session=True,
    ) as caller:  # fmt: skip
        assert caller.stdout is not None
        assert caller.stdout.readline() == "leaf\n"
        (os.killpg if how == signal.SIGINT else os.kill)(caller.pid, how)  # Ctrl-C reaches the whole group
        _, story = caller.communicate(timeout=60)  # and this ends only when no worker holds the pipe any more
        assert caller.returncode != 0
    assert how == signal.SIGKILL or story.rstrip().endswith("KeyboardInterrupt")
    for _ in range(100):
        if not _group_lives(caller.pid):
            return
        time.sleep(0.1)
    pytest.fail("a worker outlived its caller")


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True

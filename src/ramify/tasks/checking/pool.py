"""Processes that can be killed: math-verify behind a pipe, with a time limit that holds whatever the text does."""

from __future__ import annotations

import atexit
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from ramify.errors import InvalidValue, WorkerLost, is_whole, require

__all__ = ["Pool", "shared"]

START = 120.0  # seconds that a process may take to import SymPy on a busy machine
WORKER = Path(__file__).with_name("worker.py")


class Pool:
    """Asks pairs of LaTeX texts of ``workers`` processes, each for at most ``seconds``. Processes start when needed.

    Replies are "equal", "different", "none" (no verdict) or "timeout": then the process was killed.
    """

    def __init__(self, seconds: float = 3.0, workers: int = 1) -> None:
        require(seconds > 0, "Pool.seconds", seconds, "use a time > 0")
        require(is_whole(workers, 1), "Pool.workers", workers, "use a number of processes >= 1")
        if find_spec("math_verify") is None:
            raise InvalidValue("math-verify is not installed: pip install 'ramify[math]', or use Ladder(math=False)")
        self.seconds, self.size = seconds, workers
        self.killed = 0
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock, self._owner = threading.Lock(), os.getpid()

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """The reply to each pair ``(reference, answer)``, in order."""
        with self._lock:
            return self._run(list(pairs))

    def close(self) -> None:
        """End every process."""
        if os.getpid() == self._owner:
            for process in self._idle:
                _end(process)
        self._idle = []

    def _run(self, pairs: list[tuple[str, str]]) -> list[str]:
        if os.getpid() != self._owner:  # after a fork the processes are the parent's
            self._idle, self._owner = [], os.getpid()
        replies = [""] * len(pairs)
        waiting = deque(range(len(pairs)))
        under: dict[int, tuple[subprocess.Popen[bytes], int, float]] = {}  # by descriptor: process, pair, deadline
        with selectors.DefaultSelector() as selector:
            while waiting or under:
                while waiting and len(under) < self.size:
                    number = waiting.popleft()
                    process = self._idle.pop() if self._idle else _started()
                    assert process.stdin is not None
                    assert process.stdout is not None
                    process.stdin.write(json.dumps(pairs[number]).encode() + b"\n")
                    process.stdin.flush()
                    under[process.stdout.fileno()] = process, number, time.monotonic() + self.seconds
                    selector.register(process.stdout, selectors.EVENT_READ)
                self._collect(selector, under, replies)
        return replies

    def _collect(
        self,
        selector: selectors.BaseSelector,
        under: dict[int, tuple[subprocess.Popen[bytes], int, float]],
        replies: list[str],
    ) -> None:
        """Take the replies that are there, and kill what is late."""
        late = min(deadline for _, _, deadline in under.values())
        ready = {key.fd for key, _ in selector.select(max(0.0, late - time.monotonic()))}
        for fd in list(under):
            process, number, deadline = under[fd]
            line = process.stdout.readline() if fd in ready and process.stdout else b""
            if line or fd in ready or time.monotonic() >= deadline:
                selector.unregister(fd)
                del under[fd]
                if line:
                    replies[number] = {b"true": "equal", b"false": "different"}.get(line.strip(), "none")
                    self._idle.append(process)
                else:  # out of time, or out of memory and gone
                    replies[number] = "none" if fd in ready else "timeout"
                    self.killed += 1
                    _end(process)


def _started() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(START) or process.stdout.readline() != b"ready\n":
            _end(process)
            raise WorkerLost(
                "the process of math-verify did not start: run `python -c 'import math_verify'` to see why"
            )
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()


@lru_cache(maxsize=8)
def shared(seconds: float, workers: int) -> Pool:
    """The pool that ladders with the same limits share, closed when Python ends."""
    pool = Pool(seconds, workers)
    atexit.register(pool.close)
    return pool

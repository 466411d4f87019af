"""The token loop in several processes at once.

A leaf depends on its key alone, so requests may be cut over processes anywhere. Each worker runs the whole loop
(model, decoder, draw) on its share of the batch, on one core: nothing waits for a lock or for the slowest part of a
product. Only requests and leaves travel, so this pays for any model small enough to have once a core.

Workers are spawned when first needed, and wait for the next call when one is done: a model is loaded once a worker.
A script that uses them needs the usual ``if __name__ == "__main__":``.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any

from ramify.errors import InvalidValue, WorkerLost, require
from ramify.models.pocket.cores import keep_to_one
from ramify.models.sampler import LocalSampler
from ramify.types import Leaf, Request

__all__ = ["Crew", "dismiss"]

STOP = "stop"  # to a worker: give up the job; from it: it has


@dataclass(frozen=True)
class Crew:
    """``local`` cut over ``workers`` processes, each with its share of the batch. The leaves are the same."""

    local: LocalSampler
    workers: int

    def __post_init__(self) -> None:
        fits = 1 <= self.workers <= self.local.batch
        require(fits, "workers", self.workers, f"use 1 to {self.local.batch}, a row of the batch each at least")
        memory = self.local.memory
        require(memory is None, "LocalSampler.memory", memory, "processes share none: use workers=1")

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        waiting = iter(requests)
        first = list(islice(waiting, self.local.batch))
        with hired(min(self.workers, len(first))) as crew:
            # Neighbours often ask the same question: a worker gets a run of them, and reads their prompt once.
            for worker, part, rows in zip(
                crew, _parts(first, len(crew)), _shares(self.local.batch, len(crew)), strict=True
            ):
                worker.begin(replace(self.local, batch=rows))
                worker.give(part)
            while busy := {worker.connection: worker for worker in crew if worker.owed}:
                for worker in [busy[ready] for ready in wait(list(busy))]:  # type: ignore[index]
                    yield from worker.leaves()
                    worker.give(list(islice(waiting, worker.rows - worker.owed)))


def _shares(whole: int, parts: int) -> list[int]:
    """``whole`` as a sum of so many numbers that differ by at most one.

    >>> _shares(64, 3)
    [22, 21, 21]
    """
    return [whole // parts + (i < whole % parts) for i in range(parts)]


def _parts(items: list[Request], parts: int) -> list[list[Request]]:
    rest = iter(items)
    return [list(islice(rest, share)) for share in _shares(len(items), parts)]


# ------------------------------------------------------------------------------------------------ seen from outside


class Worker:
    """A process that samples, and the pipe to it."""

    def __init__(self) -> None:
        context = get_context("spawn")  # a fork would copy locks that other threads hold
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=work, args=(theirs,), name="ramify-worker", daemon=True)
        self.process.start()
        theirs.close()
        self.rows, self.owed = 0, 0

    def begin(self, sampler: LocalSampler) -> None:
        """Make ready to sample with this one."""
        try:
            message = pickle.dumps(sampler)
        except Exception as error:
            remedy = "use methods and functions from the top of a module, or workers=1"
            raise InvalidValue(f"{sampler!r} cannot be sent to a process ({error}): {remedy}") from error
        self.rows, self.owed = sampler.batch, 0
        self._send(message)

    def give(self, requests: list[Request]) -> None:
        """More to do; it owes a leaf for each."""
        if requests:
            self.owed += len(requests)
            self._send(pickle.dumps(requests))

    def leaves(self) -> list[Leaf]:
        """What it has finished, now or soon. An error inside it is raised here."""
        try:
            found = self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        if isinstance(found, Exception):
            raise found
        self.owed -= len(found)
        return list(found)

    def rests(self) -> bool:
        """Have it leave its job, at the end of a step if one is under way; whether it is there for another."""
        try:
            self._send(pickle.dumps(STOP))
            while self.connection.recv() != STOP:  # leaves that nobody wants any more
                pass
        except (EOFError, OSError, WorkerLost):
            self.end()
            return False
        return True

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.join()
        self.connection.close()

    def _send(self, message: bytes) -> None:
        try:
            self.connection.send_bytes(message)
        except OSError as error:
            raise self._lost() from error

    def _lost(self) -> WorkerLost:
        self.process.join(timeout=1)
        code = self.process.exitcode
        return WorkerLost(
            f"worker process {self.process.pid} ended (exit code {code}) with {self.owed} leaves to go:"
            " ask for them again, with fewer workers or a smaller batch if memory ran out (-9); if it never began,"
            " put the script's calls under `if __name__ == '__main__':`"
        )


_idle: list[Worker] = []
_lock = Lock()


@contextmanager
def hired(count: int) -> Iterator[list[Worker]]:
    """So many workers, at rest before and after. If anything goes wrong inside, they end with it."""
    crew: list[Worker] = []
    with _lock:
        while _idle and len(crew) < count:
            worker = _idle.pop()
            crew += [worker] if worker.process.is_alive() else []
    try:
        crew += [Worker() for _ in range(count - len(crew))]
        with suppress(GeneratorExit):  # the caller wants no more leaves: nothing is wrong
            yield crew
        rested = [worker for worker in crew if worker.rests()]
    except BaseException:
        for worker in crew:  # a pipe may have been left in the middle of a message
            worker.end()
        raise
    with _lock:
        _idle.extend(rested)


def dismiss() -> None:
    """End the workers that wait for something to do. The next call spawns new ones."""
    with _lock:
        while _idle:
            _idle.pop().end()


atexit.register(dismiss)
if hasattr(os, "register_at_fork"):  # a forked child must not talk into its parent's pipes
    os.register_at_fork(after_in_child=_idle.clear)


# ------------------------------------------------------------------------------------------------- seen from inside


def work(connection: Connection) -> None:
    """The life of a worker: a sampler, its requests, a stop; and again."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    os.environ["OMP_NUM_THREADS"] = "1"  # for what is not imported yet
    keep_to_one()
    inbox = Inbox(connection)
    while True:
        try:
            sampler = inbox.next_message()
            for leaves in sampler.steps(inbox):
                inbox.under_way -= len(leaves)
                if leaves:
                    connection.send(leaves)
                if inbox.stopping.is_set():
                    break
        except Exception as error:
            connection.send(_sendable(error))
        inbox.settle()
        connection.send(STOP)


class Inbox:
    """What the parent sent, as an iterator of requests that never makes rows under way wait.

    A thread listens, so that the parent can always send, and a stop is known at once.
    """

    def __init__(self, connection: Connection) -> None:
        self.messages: SimpleQueue[Any] = SimpleQueue()
        self.stopping = Event()
        self.requests: deque[Request] = deque()
        self.under_way, self.stopped = 0, False
        Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection: Connection) -> None:
        while True:
            try:
                message = connection.recv_bytes()
            except (EOFError, OSError):
                os._exit(0)  # the parent is gone
            try:
                found = pickle.loads(message)
            except Exception as error:  # such as an operator from a module that is not there
                found = error
            if found == STOP:
                self.stopping.set()  # before the message, so that whoever has read it knows that this is set
            self.messages.put(found)

    def next_message(self) -> Any:
        found = self.messages.get()
        self.stopped = found == STOP
        if isinstance(found, Exception):
            raise found
        return found

    def __iter__(self) -> Inbox:
        return self

    def __next__(self) -> Request:
        while not self.requests:
            if self.stopping.is_set() or (self.under_way and self.messages.empty()):
                raise StopIteration  # for now: the loop asks again
            found = self.next_message()
            self.requests.extend(() if self.stopped else found)
        self.under_way += 1
        return self.requests.popleft()

    def settle(self) -> None:
        """Forget the job: everything up to its stop."""
        while not self.stopped:
            self.stopped = self.messages.get() == STOP
        self.stopped, self.under_way = False, 0
        self.stopping.clear()
        self.requests.clear()


def _sendable(error: Exception) -> Exception:
    """The error with its traceback as a note, or its words if it cannot travel."""
    import traceback

    story = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(story)
    error.add_note(f"in a worker process:\n{story}")
    return error

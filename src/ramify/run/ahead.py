"""Running ahead: rollouts are launched before their turn, and revealed in turn.

The program of a run is sequential: it asks for one leaf after the other, and what it decides depends on the leaves it
was given and on nothing else. ``drive`` answers it. To keep a sampler busy it launches requests that the program will
probably make next; those it never makes are surplus: cancelled where the sampler can, charged, and booked as
discarded. One worker or sixty-four, fast or slow: the decisions and the bank are the same, only cost and time differ.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from ramify.errors import WorkerLost, require
from ramify.types import Key, Leaf, Request, Sampler

__all__ = ["Ahead", "Asked", "Result", "drive"]

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A request, and the sampler that is to answer it."""

    request: Request
    arm: int = 0


@dataclasses.dataclass(eq=False)
class Ahead:
    """What a program will probably ask next, and how far it may be anticipated.

    ``upcoming`` gives requests in the program's order; ``alive`` says of a launched one whether the program may still
    ask for it. What is launched ahead must fit the ``allowance`` that is left, at its ``worst``, should none of it ever
    be revealed, and each of the ``budgets`` that it would be charged to, by name with what is left of it, should all of
    it be; ``discard`` is told of every leaf that turned out to be surplus. Where it is ``certain`` that everything
    upcoming will be asked for, leaves that wait for their turn are kept when the program is interrupted.
    """

    width: int  # rollouts under way or waiting to be revealed, the one asked for included
    upcoming: Callable[[], Iterable[Asked]]
    alive: Callable[[Asked], bool] = lambda _: True
    worst: Callable[[Asked], float] = lambda _: 0.0
    allowance: Callable[[], float] = lambda: math.inf
    budgets: Callable[[Asked], Iterable[tuple[str, float]]] = lambda _: ()
    certain: bool = False
    discard: Callable[[Asked, Leaf], None] = lambda *_: None


def drive(
    program: Generator[Asked, Leaf, Result],
    samplers: Mapping[int, Sampler] | Iterable[Sampler],
    ahead: Ahead,
    *,
    stored: Callable[[Key], Leaf | None] = lambda _: None,
    keep: Callable[[Asked, Leaf], None] = lambda *_: None,
    launched: Callable[[Key], None] = lambda _: None,
) -> Result:
    """Run a program to its end, and give what it returns.

    ``stored`` finds a leaf that an earlier run has made; ``keep`` makes one durable before the program sees it.
    """
    arms = dict(samplers) if isinstance(samplers, Mapping) else dict(enumerate(samplers))
    pool = _Pool(arms, ahead, launched, stored)
    leaf: Any = None  # what the program waits for; nothing at first
    try:
        while True:
            try:
                asked = program.send(leaf)
            except StopIteration as end:
                pool.finish()
                result: Result = end.value
                return result
            leaf = stored(asked.request.key)
            if leaf is None:
                leaf = pool.get(asked)
                keep(asked, leaf)
    except BaseException:
        if ahead.certain:
            pool.rescue(keep)
        raise
    finally:
        pool.close()


class _Feed:
    """The requests of one arm, as a sampler takes them: none now does not mean none later."""

    def __init__(self, take: Callable[[], Request | None]) -> None:
        self._take = take
        self.cancelled: set[Key] = set()

    def __iter__(self) -> Iterator[Request]:
        return self

    def __next__(self) -> Request:
        request = self._take()
        if request is None:
            raise StopIteration
        return request


class _Reserved:
    """What budgets would be charged if everything launched were revealed, each at its worst."""

    def __init__(self, ahead: Ahead) -> None:
        self._ahead, self._sums = ahead, dict[str, float]()

    def fits(self, asked: Asked) -> bool:
        """Reserve for one more; whether there is room for it in each of its budgets."""
        room = True
        for name, left in self._ahead.budgets(asked):
            self._sums[name] = self._sums.get(name, 0.0) + self._ahead.worst(asked)
            room = room and self._sums[name] <= left
        return room


class _Pool:
    """Launched rollouts: under way in a sampler, or finished and waiting for their turn."""

    def __init__(
        self,
        arms: Mapping[int, Sampler],
        ahead: Ahead,
        launched: Callable[[Key], None],
        stored: Callable[[Key], Leaf | None],
    ) -> None:
        self._arms, self._ahead, self._log, self._stored = arms, ahead, launched, stored
        self._feeds = {arm: _Feed(lambda arm=arm: self._next(arm)) for arm in arms}  # type: ignore[misc]
        self._running: dict[int, Iterator[Leaf]] = {}
        self._under_way: dict[Key, Asked] = {}
        self._ready: dict[Key, tuple[Asked, Leaf]] = {}
        self._wanted: Asked | None = None
        self._launchable: dict[int, deque[Asked]] = {arm: deque() for arm in arms}

    def get(self, asked: Asked) -> Leaf:
        """The leaf of a request, with others launched meanwhile."""
        self._wanted, key = asked, asked.request.key
        self._outgrown(asked)
        while key not in self._ready:
            self._plan()
            for arm in [asked.arm, *(arm for arm in self._arms if arm != asked.arm)]:
                if key in self._ready:
                    break
                self._advance(arm)
        self._wanted = None
        return self._ready.pop(key)[1]

    def _outgrown(self, asked: Asked) -> None:
        """Discard what was launched under this key with more room than the program now grants, if it used it."""
        key, cap = asked.request.key, asked.request.cap
        while key in self._under_way and self._under_way[key].request.cap > cap:
            self._advance(asked.arm)
        if key in self._ready and len(self._ready[key][1].tokens) > cap:
            self._ahead.discard(*self._ready.pop(key))

    def _plan(self) -> None:
        """Choose what may be launched now: the one asked for, then what is upcoming, in order, as far as allowed."""
        assert self._wanted is not None
        self._drop()
        for queue in self._launchable.values():
            queue.clear()
        wanted = self._wanted.request.key
        ahead = {key: each for key, each in self._launched().items() if key != wanted}
        chosen = [] if wanted in self._under_way else [self._wanted]
        left = self._ahead.allowance()
        left -= sum(self._ahead.worst(each) for each in ahead.values()) if math.isfinite(left) else 0
        reserved = _Reserved(self._ahead)
        for each in (self._wanted, *ahead.values()):
            reserved.fits(each)
        for each in self._ahead.upcoming():
            key = each.request.key
            if len(ahead) + 1 >= self._ahead.width:
                break
            if key in ahead or key == wanted or self._stored(key) is not None:
                continue
            left -= self._ahead.worst(each) if math.isfinite(left) else 0
            if left < 0 or not reserved.fits(each):
                break
            chosen.append(each)
            ahead[key] = each
        for each in chosen:
            self._launchable[each.arm].append(each)

    def _launched(self) -> dict[Key, Asked]:
        return self._under_way | {key: asked for key, (asked, _) in self._ready.items()}

    def _drop(self) -> None:
        """Cancel what the program will not ask for any more."""
        for key, (asked, leaf) in list(self._ready.items()):
            if not self._ahead.alive(asked):
                del self._ready[key]
                self._ahead.discard(asked, leaf)
        for key, asked in self._under_way.items():
            if not self._ahead.alive(asked):
                self._feeds[asked.arm].cancelled.add(key)

    def _next(self, arm: int) -> Request | None:
        if not self._launchable[arm]:
            return None
        asked = self._launchable[arm].popleft()
        self._under_way[asked.request.key] = asked
        self._log(asked.request.key)
        return asked.request

    def _advance(self, arm: int) -> None:
        """Wait for the next leaf of an arm that has something to do."""
        busy = any(each.arm == arm for each in self._under_way.values())
        if not busy and not self._launchable[arm]:
            return
        running = self._running.setdefault(arm, iter(self._arms[arm](self._feeds[arm])))
        leaf = next(running, None)
        if leaf is None:  # it ran dry: the next request starts it anew
            self._running.pop(arm)
            lost = [key for key, each in self._under_way.items() if each.arm == arm]
            if lost:  # nobody would ever answer them
                remedy = "a sampler answers every request, one that was cancelled with what it had"
                raise WorkerLost(f"the sampler of arm {arm} ended and left {len(lost)} out, first {lost[0]}: {remedy}")
            return
        require(leaf.key in self._under_way, "leaf.key", leaf.key, f"arm {arm} was not asked for it, or gave it before")
        self._ready[leaf.key] = (self._under_way.pop(leaf.key), leaf)

    def rescue(self, keep: Callable[[Asked, Leaf], None]) -> None:
        """Make durable what is finished and was not revealed."""
        for asked, leaf in self._ready.values():
            keep(asked, leaf)

    def finish(self) -> None:
        """The program is over: cancel what is under way, and discard all that was launched for nothing."""
        for queue in self._launchable.values():
            queue.clear()
        for key, asked in self._under_way.items():
            self._feeds[asked.arm].cancelled.add(key)
        for arm in list(self._running):
            while any(each.arm == arm for each in self._under_way.values()):
                self._advance(arm)
        for asked, leaf in self._ready.values():
            self._ahead.discard(asked, leaf)

    def close(self) -> None:
        for running in self._running.values():
            close: Any = getattr(running, "close", None)
            if close is not None:
                close()

"""How far long work is: a bar where somebody watches, plain lines in a log, and what to type after Ctrl-C."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ramify.cli.terminal import printable
from ramify.errors import RamifyError

__all__ = ["Interrupted", "Tracker", "again", "counted", "resumable", "track"]

EVERY = 10.0  # seconds between two lines of a log


class Interrupted(RamifyError):
    """Ctrl-C in the middle of work that can be gone on with; the message says how."""


class Tracker:
    """Work done of work to do, with tokens, cost and what is left of a budget. ``show`` decides where it is told."""

    def __init__(
        self,
        what: str,
        total: int,
        *,
        unit: str = "leaves",
        limit: float = float("inf"),
        price: Callable[[int], float] = float,
        money: str = "tokens",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.what, self.total, self.unit, self.limit, self.clock = what, total, unit, limit, clock
        self.price, self.money = price, money  # what tokens cost, and in which unit
        self.done = self.before = self.tokens = 0
        self.cost = 0.0
        self.start = clock()

    def there(self, done: int, tokens: int = 0) -> None:
        """What an earlier attempt has finished: it is done, and tells nothing about the rate."""
        self.done = self.before = done
        self.tokens, self.cost = tokens, self.price(tokens)
        self.tell()

    def advance(self, done: int = 1, tokens: int = 0) -> None:
        """A part of the work is finished."""
        self.done += done
        self.tokens += tokens
        self.cost += self.price(tokens)
        self.tell()

    def drawn(self, tokens: int, there: bool) -> None:
        """A draw, made now or found; what was found was paid for by an earlier attempt of the same budget."""
        self.before += there
        self.advance(1, tokens)

    def progress(self, far: Any) -> None:
        """A study's own report: absolute numbers, with what is under way."""
        self.what, self.total, self.tokens, self.cost = far.what or self.what, far.total, far.tokens, far.cost
        self.done, self.before, self.money = far.done, far.reused, far.unit
        self.limit = far.left + far.cost
        self.tell()

    def open(self) -> None:
        """Nothing to make ready."""

    def tell(self) -> None:
        """Nobody watches."""

    def close(self) -> None:
        """Nothing to tidy."""

    @property
    def seconds(self) -> float:
        return max(self.clock() - self.start, 1e-9)

    @property
    def rate(self) -> float:
        """Parts a second, of this attempt."""
        return (self.done - self.before) / self.seconds

    @property
    def left(self) -> float | None:
        """Seconds to go at this rate; None before there is one."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None

    def line(self) -> str:
        """All of it in one line.

        >>> now = [0.0]
        >>> tracker = Tracker("sampling", 10, limit=500, clock=lambda: now[-1])
        >>> now.append(2.0)
        >>> tracker.advance(4, tokens=120)
        >>> tracker.line()
        'sampling: 4 of 10 leaves, 2.0 a second, 3 s left, 120 tokens, 380 of 500 tokens left'
        """
        of = f"{self.done} of {self.total}" if self.total else f"{self.done}"
        parts = [f"{self.what}: {of} {self.unit}", f"{self.rate:.1f} a second"]
        if self.total:
            parts.append("time left unknown" if self.left is None else f"{self.left:.0f} s left")
        return printable(", ".join([*parts, *self.spent()]))

    def spent(self) -> list[str]:
        """Tokens, what they cost if that is another unit, and what is left of the budget."""
        from ramify.ledger import amount  # here: what only teaches loads nothing heavy

        parts = [f"{self.tokens:,} tokens"]
        if self.money != "tokens":
            parts.append(f"cost {amount(self.cost)} {self.money}")
        if self.limit != float("inf"):
            parts.append(f"{amount(max(self.limit - self.cost, 0))} of {amount(self.limit)} {self.money} left")
        return parts


class Lines(Tracker):
    """A log line now and then, and one at the end."""

    last = 0.0

    def tell(self) -> None:
        now = self.clock()
        if now - max(self.last, self.start) >= EVERY:
            self.last = now
            print(self.line(), file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.done or self.tokens:  # what was refused before any work has nothing to log
            print(self.line(), file=sys.stderr, flush=True)


class Bar(Tracker):
    """A bar on a terminal."""

    bar: Any = None
    task: Any = None

    def open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        # What matters most keeps its place in a narrow window: the rest is cut, the bar and the counts are not.
        text = TextColumn("{task.description}", markup=False, table_column=_cut(2))
        more = TextColumn("{task.fields[more]}", markup=False, table_column=_cut(3))
        columns = (BarColumn(bar_width=12), MofNCompleteColumn(), TimeRemainingColumn(), text, more)
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True, expand=True)
        self.task = self.bar.add_task(printable(self.what), total=self.total or None, more="")
        self.bar.start()

    def tell(self) -> None:
        more = ", ".join([*reversed(self.spent()), f"{self.rate:.1f} {self.unit}/s"])  # the budget first, if it has one
        self.bar.update(
            self.task, description=printable(self.what), completed=self.done, total=self.total or None, more=more
        )

    def close(self) -> None:
        self.bar.stop()


def _cut(share: int) -> Any:
    from rich.table import Column

    return Column(ratio=share, no_wrap=True, overflow="ellipsis")


@contextmanager
def track(what: str, total: int, **options: Any) -> Iterator[Tracker]:
    """A tracker that shows a bar if somebody watches standard error, and logs plain lines otherwise."""
    watched = sys.stderr.isatty()
    kind = Bar if watched else Lines
    tracker = kind(what, total, **options)
    tracker.open()
    try:
        yield tracker
    finally:
        tracker.close()


def counted(sampler: Any, tracker: Tracker) -> Any:
    """The same sampler, each of whose leaves is told."""
    from ramify.run.between import Watched

    return Watched(sampler, lambda tokens: tracker.advance(1, tokens=tokens))


@contextmanager
def resumable(kept: bool = True) -> Iterator[None]:
    """Say, on Ctrl-C, that what was finished is kept, and what to type to go on: the same command."""
    try:
        yield
    except KeyboardInterrupt:
        if kept:
            raise Interrupted(f"interrupted; what was finished is kept. Go on with:\n  {again()}") from None
        raise Interrupted("interrupted; nothing was kept: with --out RUN, it could be gone on with") from None


GIVEN: ContextVar[Sequence[str]] = ContextVar("GIVEN", default=())


def again() -> str:
    """The command that is running, as it can be typed.

    >>> _ = GIVEN.set(["sample", "runs/a b"])
    >>> again()
    "ramify sample 'runs/a b'"
    """
    return shlex.join(["ramify", *GIVEN.get()])

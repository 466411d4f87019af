"""Progress: one line says everything, a log gets plain lines, and Ctrl-C says how to go on."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pytest

from ramify.cli import progress
from ramify.cli.progress import Bar, Interrupted, Lines, Tracker, counted, resumable, track
from ramify.types import Key, Request


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_has_rate_time_left_tokens_and_budget_left() -> None:
    clock = Clock()
    tracker = Tracker("sampling", 100, limit=1000, clock=clock)
    tracker.there(20, 300)
    clock.now = 10
    tracker.advance(40, tokens=400)
    assert tracker.line() == (
        "sampling: 60 of 100 leaves, 4.0 a second, 10 s left, 700 tokens, 300 of 1,000 tokens left"
    )


def test_a_cost_in_another_unit_is_told_in_it() -> None:
    tracker = Tracker("sampling", 0, limit=2.0, price=lambda tokens: tokens / 1000, money="money", clock=Clock())
    tracker.advance(1, tokens=500)
    assert tracker.line().endswith("500 tokens, cost 0.5 money, 1.5 of 2 money left")


def test_a_log_gets_a_line_now_and_then_and_one_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    tracker = Lines("work", 30, clock=clock)
    for second in range(1, 31):
        clock.now = second
        tracker.advance()
    tracker.close()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == [f"work: {n} of 30 leaves" for n in (10, 20, 30, 30)]
    assert "\x1b" not in "".join(lines)


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with track("sampling\x1b[5m", 4, limit=100) as tracker:
        assert isinstance(tracker, Bar)
        tracker.advance(4, tokens=40)
        tracker.bar.refresh()
    shown = screen.getvalue()
    assert "4/4" in shown
    assert "60 of 100 tokens left, 40 tokens" in shown
    assert "\x1b[5m" not in shown


def test_a_watched_sampler_is_the_same_sampler_and_closes_with_it() -> None:
    class Leaf(NamedTuple):
        key: Key
        tokens: tuple[int, ...] = (1, 2, 3)

    closed = []

    def sampler(requests: Iterable[Request]) -> Iterator[Leaf]:
        try:
            for request in requests:
                yield Leaf(request.key)
        finally:
            closed.append(True)

    requests = [Request(Key("run", "q", i), (), 8, prefix=(1, 2)) for i in range(3)]
    for given, tokens in ((iter(requests), 3), (requests, 1)):  # a list says what was there; a queue is not read ahead
        tracker = Tracker("x", 3)
        leaves = counted(sampler, tracker)(given)
        next(leaves)
        leaves.close()
        assert (tracker.done, tracker.tokens) == (1, tokens)
    assert closed == [True, True]


def test_an_interrupt_says_how_to_go_on() -> None:
    progress.GIVEN.set(["sample", "runs/my run", "-n", "4"])
    with pytest.raises(Interrupted, match="ramify sample 'runs/my run' -n 4"), resumable():
        raise KeyboardInterrupt

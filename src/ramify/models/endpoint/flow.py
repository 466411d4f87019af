"""How many requests are under way at a server, and what happens to those that fail.

A server that says 429 is full: it has drawn nothing, so the request simply comes back later and the window shrinks. A
5xx, a cut connection or a malformed answer is a fault: the request is tried again a bounded number of times, and the
leaf says at which attempt it came, because whatever made the first one fail may have selected what is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import streams, uniform
from ramify.types import Key

__all__ = ["Aimd", "Retry", "Window", "retry_after"]


class Window(NamedTuple):
    """Requests that may be under way, as a real number that grows by fractions."""

    size: float
    settled: bool = False  # whether it was ever cut: before, it doubles a round trip; after, it grows by one
    cut_at: float = -math.inf


@method
class Aimd:
    """Additive increase, multiplicative decrease (Chiu and Jain, 1989), between ``least`` and ``most`` a server.

    >>> rule = Aimd(first=4, most=8)
    >>> window = rule.start()
    >>> for _ in range(3):
    ...     window = rule.grown(window)
    >>> window.size, rule.cut_down(window, launched=0.0, now=1.0).size
    (7.0, 3.5)
    """

    first: int = 16
    most: int = 256
    least: int = 1
    cut: float = 0.5

    def __post_init__(self) -> None:
        ok = all(map(is_whole, (self.first, self.most, self.least))) and 1 <= self.least <= self.first <= self.most
        require(ok, "Aimd.first", (self.least, self.first, self.most), "use 1 <= least <= first <= most")
        require(0 < self.cut < 1, "Aimd.cut", self.cut, "use a share in (0, 1)")

    def start(self) -> Window:
        return Window(float(self.first))

    def grown(self, window: Window) -> Window:
        """After a success: by one, or by one a window once it has met a limit."""
        by = 1 / window.size if window.settled else 1.0
        return window._replace(size=min(window.size + by, self.most))

    def cut_down(self, window: Window, launched: float, now: float) -> Window:
        """After a refusal. Those launched before the last cut speak of the old window, and do not cut the new one."""
        if launched < window.cut_at:
            return window
        return Window(max(window.size * self.cut, self.least), True, now)


@method
class Retry:
    """At most ``attempts`` of a request, with waits that double from ``base`` to ``most`` seconds; and at most
    ``patience`` seconds of being told to come back later, which is no attempt."""

    attempts: int = 5
    base: float = 0.5
    most: float = 30.0
    patience: float = 900.0

    def __post_init__(self) -> None:
        require(is_whole(self.attempts, 1), "Retry.attempts", self.attempts, "use a number of attempts >= 1")
        ok = 0 <= self.base <= self.most < math.inf
        require(ok, "Retry.base", (self.base, self.most), "use seconds 0 <= base <= most")
        require(self.patience >= 0, "Retry.patience", self.patience, "use seconds >= 0")

    def wait(self, failed: int, key: Key) -> float:
        """Seconds before the next attempt after so many failures: half of it fixed, half drawn from the key."""
        share = 0.5 + 0.5 * float(uniform(streams([key._replace(stream="retry")])[0], step=failed))
        return min(self.most, self.base * 2.0 ** (failed - 1)) * share


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a server asks to wait: a number, or a date; None where it says nothing that can be read.

    >>> from datetime import timezone
    >>> now = datetime(2026, 11, 16, 2, 0, tzinfo=timezone.utc)
    >>> retry_after({"retry-after": "1.5"}, now), retry_after({"retry-after": "Mon, 16 Nov 2026 02:00:07 GMT"}, now)
    (1.5, 7.0)
    """
    fine = headers.get("retry-after-ms")
    said = headers.get("retry-after")
    for text, unit in ((fine, 1000.0), (said, 1.0)):
        try:
            seconds = float(text) / unit if text is not None else math.nan
        except ValueError:
            continue
        if 0 <= seconds < math.inf:
            return seconds
    try:
        return max(0.0, (parsedate_to_datetime(said) - now).total_seconds()) if said else None
    except (ValueError, TypeError):
        return None

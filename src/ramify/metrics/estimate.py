"""A number with its interval, and the randomness that the interval is about."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ramify.errors import require

__all__ = ["SOURCES", "Estimate"]

# What may vary between two runs of a study: the questions asked, the candidates drawn, the judge's verdicts, whole
# reruns of the protocol; and, for replays only, the simulation itself.
SOURCES = ("questions", "draws", "judge", "reruns", "replays")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an interval ``[low, high]`` at a ``level``, and which randomness that interval ``covers``.

    An interval that covers "questions" is about other questions, each with candidates of its own, and not about the
    same ones asked again; one that covers "draws" is the reverse. A value without an interval (``low = high = value``,
    level 0, covering nothing) describes what was observed and no more.

    >>> print(Estimate(0.8194, 0.8069, 0.8317, 0.95, ("questions",)))
    0.8194 [0.8069, 0.8317] (95%, over questions)
    >>> print(Estimate.descriptive(0.5))
    0.5 (descriptive)
    """

    value: float
    low: float
    high: float
    level: float
    covers: tuple[str, ...]
    note: str = ""  # how it was made, and what was left out of it

    def __post_init__(self) -> None:
        require(0 <= self.level < 1, "Estimate.level", self.level, "use a coverage in (0, 1), or 0 for no interval")
        unknown = [each for each in self.covers if each not in SOURCES]
        require(not unknown, "Estimate.covers", unknown, f"use some of {', '.join(SOURCES)}")
        require(bool(self.covers) == (self.level > 0), "Estimate.covers", self.covers, "an interval covers something")
        ordered = self.low <= self.high or math.isnan(self.low) or math.isnan(self.high)
        require(ordered, "Estimate.low", (self.low, self.high), "put the lower end first")

    @classmethod
    def descriptive(cls, value: float, note: str = "") -> Estimate:
        """A number about the observed bank, with no claim beyond it."""
        return cls(value, value, value, 0.0, (), note)

    @property
    def width(self) -> float:
        """high - low."""
        return self.high - self.low

    def __str__(self) -> str:
        note = f"; {self.note}" if self.note else ""
        if not self.covers:
            return f"{self.value:.4g} (descriptive{note})"
        covers = " and ".join(self.covers)
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}] ({100 * self.level:g}%, over {covers}{note})"

"""What a search did, kind by kind, beside what its ledgers were charged."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ramify.models.memory import Sharing

__all__ = ["Compute", "Part", "Tally"]

KINDS = ("expansions", "rollouts", "evaluator", "checks", "maintenance")


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One kind of work."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0  # measured, and the only thing here that another run may have otherwise

    def plus(self, other: Part) -> Part:
        return Part(self.calls + other.calls, self.tokens + other.tokens, self.seconds + other.seconds)


@dataclasses.dataclass(frozen=True, slots=True)
class Compute:
    """All questions of a search together.

    ``expansions`` are children drawn by steps, chunks or single tokens, ``rollouts`` those drawn to their end; where
    both were in one batch its seconds are with the expansions. ``evaluator`` counts prefixes scored and tokens charged
    for it, ``checks`` prefixes that a sound check looked at, ``maintenance`` what the tree and the controller took:
    a call an expansion. ``sharing`` says what the engine computed; None if the sampler has no memory of prefixes.
    """

    expansions: Part = Part()
    rollouts: Part = Part()
    evaluator: Part = Part()
    checks: Part = Part()
    maintenance: Part = Part()
    sharing: Sharing | None = None

    def plus(self, other: Compute) -> Compute:
        """Both, one after the other, as a search that was resumed."""
        parts = {kind: getattr(self, kind).plus(getattr(other, kind)) for kind in KINDS}
        mine, theirs = self.sharing, other.sharing  # half of a search would be taken for the whole of it
        sharing = None if mine is None or theirs is None else mine.plus(theirs)
        return Compute(**parts, sharing=sharing)


class Tally:
    """Counts of a search under way."""

    def __init__(self) -> None:
        self.parts = dict.fromkeys(KINDS, Part())

    def add(self, kind: str, calls: int = 0, tokens: int = 0, seconds: float = 0.0) -> None:
        self.parts[kind] = self.parts[kind].plus(Part(calls, tokens, seconds))

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.add(kind, seconds=time.perf_counter() - start)

    def compute(self, sharing: Sharing | None) -> Compute:
        return Compute(**self.parts, sharing=sharing)

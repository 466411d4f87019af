"""A stop on a stored bank: when it would have stopped every question. Retrospective, and no claim of savings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Candidates, Verdict
from ramify.stop.counts import Stop
from ramify.types import Key

__all__ = ["Replay", "replay"]


class Replay(NamedTuple):
    """The stopping time of every question, from candidates that were all generated already."""

    n: Array  # [...] candidates revealed when it stopped: all that were drawn if it never did
    stopped: Array  # [...]
    verdict: Verdict  # [..., N]
    kind: str = "retrospective"

    def revealed(self, drawn: Array) -> Array:
        """[..., N] which of the drawn candidates had been revealed."""
        shown: Array = drawn & (np.cumsum(drawn, axis=-1) <= self.n[..., None])
        return shown


def replay(stop: Stop, candidates: Candidates | Bank, key: Key | None = None) -> Replay:
    """The first prefix at which a stop fires, for all questions and prefixes at once.

    >>> from ramify.stop import AdaptiveConsistency
    >>> replay(AdaptiveConsistency(), Bank.of([["A"] * 8, ["A", "B"] * 4])).n.tolist()
    [4, 8]
    """
    shown = candidates.candidates() if isinstance(candidates, Bank) else candidates
    verdict = stop(shown, key)
    if not shown.drawn.shape[-1]:
        nothing = np.zeros(shown.drawn.shape[:-1], dtype=np.int64)
        return Replay(nothing, nothing > 0, verdict)
    seen = np.cumsum(shown.drawn, axis=-1)
    fires = verdict.stop & shown.drawn
    stopped = fires.any(axis=-1)
    at = np.take_along_axis(seen, fires.argmax(axis=-1)[..., None], axis=-1)[..., 0]
    return Replay(np.where(stopped, at, seen[..., -1]), stopped, verdict)

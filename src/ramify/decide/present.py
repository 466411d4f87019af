"""Which candidate speaks for the answer: chosen after the answer is fixed, and apart from it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ramify.arrays import Array, at, first_max
from ramify.bank import Candidates, Choice
from ramify.describe import method

__all__ = ["BestInGroup", "FirstInGroup"]


def group(candidates: Candidates, choice: Choice) -> Array:
    """``[..., N]`` the eligible candidates that give the submitted answer; the winner alone where it has none."""
    chosen = choice.winner[..., None]
    safe = np.maximum(choice.winner, 0)
    answer = at(candidates.answers, safe)[..., None] if candidates.answers.shape[-1] else chosen
    alone = np.arange(candidates.answers.shape[-1]) == chosen
    same = candidates.eligible & (candidates.answers == answer)
    return np.where(answer >= 0, same, alone) & (chosen >= 0)


@method
class FirstInGroup:
    """The earliest candidate with the submitted answer."""

    role: ClassVar[str] = "deployable"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def __call__(self, candidates: Candidates, choice: Choice) -> Array:
        among = group(candidates, choice)
        return first_max(np.zeros(among.shape), among)


@method
class BestInGroup:
    """argmax over the candidates with the submitted answer of a rationale score; the earliest where none has one.

    >>> from ramify.decide import Plurality
    >>> bank = Candidates(np.array([0, 0, 1]), evidence={"score": np.array([0.3, 0.7, 0.9])})
    >>> BestInGroup()(bank, Plurality()(bank)).tolist()
    1
    """

    evidence: str = "score"
    role: ClassVar[str] = "deployable"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates, choice: Choice) -> Array:
        among, score = group(candidates, choice), candidates.score(self.evidence)
        best = first_max(np.asarray(score, dtype=np.float64), among & ~np.isnan(score))
        return np.where(best >= 0, best, FirstInGroup()(candidates, choice))

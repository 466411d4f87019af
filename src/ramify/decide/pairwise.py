"""Rules over pairwise judgements: u(i, j) in [0, 1] says how surely i beats j; NaN is a pair that was not judged.

Judgements are obtained, stored and charged before a rule runs (``Given`` holds a stored matrix); a knockout asks for
n - 1 of them only.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ramify.arrays import Array
from ramify.bank import Candidates, Choice
from ramify.decide.support import PAIRS, Rule, settle, valid_fields
from ramify.decide.utility import asked
from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = ["BradleyTerry", "Knockout", "RoundRobin"]


def judgements(candidates: Candidates) -> Array:
    """``[..., N, N]`` how surely i beats j among the eligible, NaN for the rest and for what was not judged."""
    utility, valid, n = asked(candidates), candidates.eligible, candidates.eligible.shape[-1]
    rows = valid.reshape(-1, n)
    found = np.full((len(rows), n, n), np.nan)
    row, i, j = np.nonzero(rows[:, :, None] & rows[:, None, :] & ~np.eye(n, dtype=bool))
    found[row, i, j] = utility(row, i, j)
    outside = found[(found < 0) | (found > 1)]
    require(outside.size == 0, "a judgement", outside[:1].tolist(), "say how surely i beats j, within [0, 1]")
    return found.reshape(*valid.shape, n)


@method
class RoundRobin:
    """The share of its judged games that a candidate wins; both orders of a pair count, so position bias cancels."""

    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        won = judgements(candidates)
        lost = 1 - np.swapaxes(won, -1, -2)
        games = np.stack([won, lost])
        judged = ~np.isnan(games)
        count = np.count_nonzero(judged, axis=(0, -1))
        share = np.where(judged, games, 0.0).sum(axis=(0, -1)) / np.maximum(count, 1)
        return settle(candidates, candidates.eligible, np.where(count > 0, share, 0.5), fallback=self.fallback)


@method
class Knockout:
    """A bracket in index order: the better of each pair goes on, n - 1 judgements in all (both orders if ``both``).

    A judgement of exactly one half lets the earlier one go on, and so does one that is missing.
    """

    both: bool = False
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(isinstance(self.both, bool), "Knockout.both", self.both, "use True or False")

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        valid, n = candidates.eligible, candidates.eligible.shape[-1]
        rounds = [self.bracket(candidates, row, np.flatnonzero(mask)) for row, mask in enumerate(valid.reshape(-1, n))]
        return settle(candidates, valid, np.array(rounds).reshape(valid.shape), fallback=self.fallback)

    def bracket(self, candidates: Candidates, row: int, alive: Array) -> Array:
        """``[N]`` how many rounds each candidate survived."""
        utility, rounds = asked(candidates), np.zeros(candidates.eligible.shape[-1])
        while alive.size > 1:
            i, j = alive[: alive.size // 2 * 2].reshape(-1, 2).T
            first = np.asarray(utility(np.full(i.size, row), i, j), dtype=np.float64)
            if self.both:
                first = (first + 1 - np.asarray(utility(np.full(i.size, row), j, i))) / 2
            alive = np.concatenate([np.where(first < 0.5, j, i), alive[alive.size // 2 * 2 :]])
            rounds[alive] += 1
        return rounds


@method
class BradleyTerry:
    """The strengths under which the judgements are likeliest: P(i beats j) = s_i / (s_i + s_j) (Hunter, 2004).

    Found by minorisation-maximisation. ``prior`` games, half won, against a player of strength 1 keep an undefeated
    candidate's strength finite. The support is log s.
    """

    prior: float = 0.1
    iterations: int = 200
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(self.prior > 0, "BradleyTerry.prior", self.prior, "use a number of games > 0")
        require(is_whole(self.iterations, 1), "BradleyTerry.iterations", self.iterations, "use a number >= 1")

    @property
    def needs(self) -> tuple[str, ...]:
        return (PAIRS,)

    def __call__(self, candidates: Candidates) -> Choice:
        judged = judgements(candidates)
        won = np.where(np.isnan(judged), 0.0, judged) + np.where(np.isnan(judged), 0.0, 1 - judged).swapaxes(-1, -2)
        games = (~np.isnan(judged)).astype(np.float64)
        games = games + games.swapaxes(-1, -2)
        wins = won.sum(axis=-1) + self.prior / 2
        strength = np.ones(wins.shape)
        for _ in range(self.iterations):
            faced = (games / (strength[..., :, None] + strength[..., None, :])).sum(axis=-1)
            strength = wins / (faced + self.prior / (strength + 1))
        return settle(candidates, candidates.eligible, np.log(strength), fallback=self.fallback)

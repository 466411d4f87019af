"""Ratings made for streams of games, for comparison: they depend on the order of the games, and forget."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import require
from ramify.metrics.bankcurve import floats

__all__ = ["Elo", "TrueSkill"]

TIES = ("skip", "draw", "solved")


def _events(table: Array) -> Array:
    """[E, M] one event for each candidate index and question, index by index, as a stream would bring them."""
    table = floats(table, "table")
    table = table[..., None] if table.ndim == 2 else table
    require(table.ndim == 3, "table", table.shape, "use [M, Q] or [M, Q, N]")
    require(not np.isnan(table).any(), "table", "NaN", "a stream of games has no missing ones: leave the question out")
    return table.transpose(2, 1, 0).reshape(-1, len(table))


def _played(outcome: Array, ties: str) -> Array:
    """[M, M] which pairs of an event count as games."""
    tied = outcome[:, None] == outcome[None]
    played = ~tied if ties == "skip" else np.ones_like(tied) if ties == "draw" else ~tied | (outcome > 0)[:, None]
    return played & ~np.eye(len(outcome), dtype=bool)


@method
class Elo:
    """Elo's (1978) rating: r_i += k (result - expected), all pairs of an event from the ratings before it.

    ``ties``: "skip", "draw" (half a win), or "solved" (a draw if both solved it, else skipped).
    """

    k: float = 32.0
    start: float = 1500.0
    scale: float = 400.0
    ties: str = "solved"

    def __post_init__(self) -> None:
        require(0 < self.k < math.inf, "Elo.k", self.k, "use a finite step > 0")
        require(0 < self.scale < math.inf, "Elo.scale", self.scale, "use a finite scale > 0")
        require(math.isfinite(self.start), "Elo.start", self.start, "use a finite rating")
        require(self.ties in TIES, "Elo.ties", self.ties, f"use one of {', '.join(TIES)}")

    def __call__(self, table: Array) -> Array:
        events = _events(table)
        rating = np.full(events.shape[1], self.start)
        for outcome in events:
            result = (np.sign(outcome[:, None] - outcome[None]) + 1) / 2
            expected = 1 / (1 + 10 ** ((rating[None] - rating[:, None]) / self.scale))
            rating = rating + self.k * np.where(_played(outcome, self.ties), result - expected, 0.0).sum(axis=1)
        return rating


@method
class TrueSkill:
    """Two-player TrueSkill (Herbrich et al., 2006): a normal belief about each skill, updated game by game.

    Games of one event start from the same beliefs and are joined in natural parameters, so that the order of the
    models does not matter. The score is the mean of the belief.
    """

    mean: float = 25.0
    spread: float = 25.0 / 3
    noise: float = 25.0 / 6
    drift: float = 25.0 / 300
    margin: float = 0.0  # of a draw
    ties: str = "skip"

    def __post_init__(self) -> None:
        for name in ("spread", "noise"):
            require(0 < getattr(self, name) < math.inf, f"TrueSkill.{name}", getattr(self, name), "use a number > 0")
        for name in ("drift", "margin"):
            require(0 <= getattr(self, name) < math.inf, f"TrueSkill.{name}", getattr(self, name), "use a number >= 0")
        require(self.ties in TIES, "TrueSkill.ties", self.ties, f"use one of {', '.join(TIES)}")
        drawn = self.ties != "skip"
        require(not drawn or self.margin > 0, "TrueSkill.margin", self.margin, "draws need a margin > 0")

    def __call__(self, table: Array) -> Array:
        return self.beliefs(table)[0]

    def beliefs(self, table: Array) -> tuple[Array, Array]:
        """(mean [M], spread [M]) of the skills after all games."""
        events, questions = _events(table), np.asarray(table).shape[1]
        mean, variance = np.full(events.shape[1], self.mean), np.full(events.shape[1], self.spread**2)
        for number, outcome in enumerate(events):
            mean, variance = self._after(mean, variance, outcome)
            if (number + 1) % questions == 0:  # a round is over
                variance = variance + self.drift**2
        return mean, np.sqrt(variance)

    def _after(self, mean: Array, variance: Array, outcome: Array) -> tuple[Array, Array]:
        total = 2 * self.noise**2 + variance[:, None] + variance[None]
        c = np.sqrt(total)
        side = np.sign(outcome[:, None] - outcome[None])  # +1: the row won
        t, margin = (mean[:, None] - mean[None]) / c, self.margin / c
        v, w = _decided(np.where(side == 0, 1, side) * t - margin)
        if self.ties != "skip":
            drawn = _drawn(t, margin)
            v, w = np.where(side == 0, drawn[0], side * v), np.where(side == 0, drawn[1], w)
        else:
            v = side * v
        new_mean = mean[:, None] + variance[:, None] / c * v
        new_variance = variance[:, None] * np.maximum(1 - variance[:, None] / total * w, 1e-12)
        played = _played(outcome, self.ties)
        precision = 1 / variance + np.where(played, 1 / new_variance - 1 / variance[:, None], 0.0).sum(axis=1)
        shift = new_mean / new_variance - (mean / variance)[:, None]
        natural = mean / variance + np.where(played, shift, 0.0).sum(axis=1)
        return natural / precision, 1 / precision


def _decided(x: Array) -> tuple[Array, Array]:
    """(v, w) of a win: the hazard of the normal, and v (v + x)."""
    v = np.exp(-x * x / 2 - math.log(math.sqrt(2 * math.pi)) - log_ndtr(x))
    return v, np.clip(v * (v + x), 0.0, 1.0)


def _drawn(t: Array, margin: Array) -> tuple[Array, Array]:
    """(v, w) of a draw: the mean and one minus the variance of a normal cut to (-margin - t, margin - t)."""
    low, high = -margin - t, margin - t
    mass = np.maximum(ndtr(high) - ndtr(low), 1e-300)
    density = [np.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in (low, high)]
    v = (density[0] - density[1]) / mass
    w = v * v + (high * density[1] - low * density[0]) / mass
    return v, np.clip(w, 0.0, 1.0)

"""Rules and stops written out in the slowest way, for any leading axes: what the replays are tested with."""

from __future__ import annotations

import numpy as np

from ramify.bank import Candidates, Choice, Verdict
from ramify.types import Key


def most_votes(candidates: Candidates) -> Choice:
    """Plurality, ties to the answer that appears first."""
    same = (candidates.answers[..., :, None] == candidates.answers[..., None, :]) & candidates.eligible[..., None, :]
    support = np.where(candidates.eligible, same.sum(axis=-1), 0)
    return _first(support.astype(float), candidates.eligible)


def best_score(candidates: Candidates) -> Choice:
    """Best-of-N by the evidence "score"."""
    score = candidates.score("score")
    return _first(score, candidates.eligible & ~np.isnan(score))


def any_one(candidates: Candidates) -> Choice:
    """A stochastic rule: a uniform draw among the eligible."""
    many = np.maximum(candidates.eligible.sum(axis=-1, keepdims=True), 1)
    return _first(candidates.eligible.astype(float), candidates.eligible)._replace(probs=candidates.eligible / many)


def _first(support: np.ndarray, valid: np.ndarray) -> Choice:
    masked = np.where(valid, support, -np.inf)
    winner = np.where(valid.any(axis=-1), np.argmax(masked, axis=-1), -1)
    winner = np.where(
        (masked == -np.inf).all(axis=-1) & valid.any(axis=-1), np.argmax(valid, axis=-1), winner
    )  # all -inf: the first valid one
    return Choice(winner, masked, winner[..., None])


def three_alike(candidates: Candidates, key: Key) -> Verdict:
    """Stop once an answer has three votes."""
    votes = np.cumsum((candidates.answers[..., :, None] == np.arange(50)) & candidates.eligible[..., None], axis=-2)
    value = votes.max(axis=-1)
    return Verdict(value >= 3, value)


def clairvoyant(candidates: Candidates, key: Key) -> Verdict:
    """Stops at the first candidate that agrees with the last one: it has seen the future."""
    seen = candidates.answers == candidates.answers[..., -1:]
    return Verdict(seen, seen)

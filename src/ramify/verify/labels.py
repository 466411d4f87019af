"""From label log-probabilities to scores: the formulas, apart from who was asked and how.

A label's log-probability is -inf where the server did not show it: alternatives are cut at the K likeliest, so low mass
may be hidden. What was visible is kept beside every score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ramify.arrays import Array
from ramify.errors import require

__all__ = ["GRADES", "contextual", "direct", "expected_grade", "label_logprobs", "visible"]

GRADES = tuple("ABCDEFGHIJKLMNOPQRST")  # A is worth 20, T is worth 1


def label_logprobs(alternatives: Mapping[str, float], labels: Sequence[str]) -> Array:
    """``[L]`` log-probability of each label: every token that spells it counts, with or without spaces around it.

    >>> np.exp(label_logprobs({"A": np.log(0.5), " A": np.log(0.25), "Because": np.log(0.25)}, "AB")).tolist()
    [0.75, 0.0]
    """
    spelled: dict[str, float] = {}
    for token, logprob in alternatives.items():
        name = token.strip()
        spelled[name] = float(np.logaddexp(spelled.get(name, -np.inf), logprob))
    return np.array([spelled.get(label, -np.inf) for label in labels])


def visible(logprobs: Array) -> Array:
    """``[...]`` the mass of all labels ``[..., L]`` that were shown."""
    mass: Array = np.exp(logprobs).sum(axis=-1)
    return mass


def direct(logprobs: Array) -> Array:
    """softmax over the labels ``[..., L]``: their shares of the visible mass; NaN where none was shown.

    >>> direct(np.log([0.6, 0.2, 0.0 + 1e-300])).round(6).tolist()
    [0.75, 0.25, 0.0]
    """
    with np.errstate(invalid="ignore"):
        top = logprobs.max(axis=-1, keepdims=True)
        weight = np.exp(logprobs - top)
        shares: Array = weight / weight.sum(axis=-1, keepdims=True)
    return shares


def contextual(logprobs: Array, null: Array, temperature: float = 1.5) -> Array:
    """softmax((l_slot - l_null) / temperature): what the candidate changed, against a prompt that says nothing.

    A label that the null prompt did not show has no baseline: NaN throughout. This is no calibrated probability.

    >>> contextual(np.log([0.8, 0.1, 0.1]), np.log([0.5, 0.25, 0.25])).round(4).tolist()
    [0.5575, 0.2212, 0.2212]
    """
    require(0 < temperature < np.inf, "temperature", temperature, "use a finite number > 0")
    baseline = np.where(np.isfinite(null), null, np.nan)
    return direct((logprobs - baseline) / temperature)


def expected_grade(logprobs: Array) -> Array:
    """``[..., 20]`` log-probabilities of A to T to (E[v] - 1) / 19 in [0, 1], over the visible mass.

    >>> logprobs = np.full(20, -np.inf)
    >>> logprobs[[0, 4]] = np.log([0.3, 0.1])                      # A, worth 20, and E, worth 16
    >>> round(float(expected_grade(logprobs)), 6)                  # (0.75 * 20 + 0.25 * 16 - 1) / 19
    0.947368
    """
    require(logprobs.shape[-1] == len(GRADES), "logprobs", logprobs.shape, "give one for each of A to T")
    score: Array = (direct(logprobs) @ np.arange(len(GRADES), 0, -1.0) - 1) / (len(GRADES) - 1)
    return score

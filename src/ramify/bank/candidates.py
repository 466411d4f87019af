"""What rules and stops see, and what they return: arrays on the last axis, broadcast over the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from ramify.arrays import Array
from ramify.errors import InvalidValue, require

__all__ = ["Candidates", "Choice", "Signal", "Utility", "Verdict"]

Utility: TypeAlias = Callable[[Array, Array, Array], Array]
"""``u(question, i, j)`` of broadcast index arrays: a rule asks for the pairs it needs, and the calls are counted."""


class Signal(NamedTuple):
    """Evidence of every candidate and what it cost to obtain. NaN is missing."""

    values: Array  # [Q, N]
    cost: Array  # [Q, N]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """All that a rule or a stop may see: no text, no reference, no outcome.

    ``eligible`` defaults to the drawn candidates with an answer. For open-ended tasks, where there is no invalid
    state, pass ``eligible=drawn``.

    >>> Candidates(np.array([0, 0, 1, -1])).eligible.tolist()
    [True, True, True, False]
    """

    answers: Array  # [..., N], -1 is ⊥
    drawn: Array = None
    eligible: Array = None
    evidence: Mapping[str, Array] = dataclasses.field(default_factory=dict)  # name -> [..., N], NaN is missing
    utility: Utility | None = None
    left: float = np.inf  # of the budget

    def __post_init__(self) -> None:
        answers = np.asarray(self.answers)
        require(answers.dtype.kind in "iu", "Candidates.answers", answers.dtype, "use integer codes, -1 for ⊥")
        require(answers.ndim >= 1, "Candidates.answers", answers.shape, "use an array [..., N]")
        drawn = np.ones(answers.shape, dtype=bool) if self.drawn is None else np.asarray(self.drawn, dtype=bool)
        eligible = drawn & (answers >= 0) if self.eligible is None else np.asarray(self.eligible, dtype=bool)
        evidence = {name: np.asarray(values) for name, values in self.evidence.items()}
        for name, array in {"drawn": drawn, "eligible": eligible, **evidence}.items():
            require(array.shape == answers.shape, f"Candidates.{name}", array.shape, f"use the shape {answers.shape}")
        require(not (eligible & ~drawn).any(), "Candidates.eligible", "a candidate not drawn", "drawn ones only")
        for name, value in (("answers", answers), ("drawn", drawn), ("eligible", eligible), ("evidence", evidence)):
            object.__setattr__(self, name, value)

    def score(self, name: str) -> Array:
        """The evidence of that name ``[..., N]``; a bank without it refuses, by name."""
        if name not in self.evidence:
            known = ", ".join(self.evidence) or "none"
            raise InvalidValue(f"the rule needs the evidence {name!r}, and these candidates carry: {known}")
        return self.evidence[name]

    def first(self, n: int) -> Candidates:
        """The revealed prefix: the first n candidates and nothing of the others."""
        return dataclasses.replace(
            self,
            answers=self.answers[..., :n],
            drawn=self.drawn[..., :n],
            eligible=self.eligible[..., :n],
            evidence={name: values[..., :n] for name, values in self.evidence.items()},
        )


class Choice(NamedTuple):
    """What a rule submits. ``winner`` is a candidate's index; its answer is the submitted one; -1: nothing eligible."""

    winner: Array  # [...]
    support: Array  # [..., N]
    ranked: Array  # [..., k] winner first, -1 where there are fewer
    probs: Array | None = None  # [..., N] of a stochastic rule: the loop draws with a key


class Verdict(NamedTuple):
    """For every prefix at once: whether to stop after n candidates, and the statistic that says so."""

    stop: Array  # [..., N]
    value: Array  # [..., N]

    @property
    def now(self) -> Verdict:
        """The verdict on everything revealed."""
        return Verdict(self.stop[..., -1], self.value[..., -1])

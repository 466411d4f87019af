"""Transforms of candidate evidence: part of what the evidence is, because votes add the numbers and not their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit, logit

from ramify.arrays import Array
from ramify.bank import Bank, Signal
from ramify.describe import method
from ramify.errors import require
from ramify.evidence.declare import Needs
from ramify.evidence.trace import evaluate, refuse_fitted

__all__ = ["Exponential", "Logit", "NegativePerplexity", "Sigmoid", "Transformed"]


@method
class Exponential:
    """e ↦ exp(e)."""

    def __call__(self, values: Array) -> Array:
        return np.exp(values)


@method
class NegativePerplexity:
    """Mean log-probability ↦ -exp(-e)."""

    def __call__(self, values: Array) -> Array:
        with np.errstate(over="ignore"):  # e = -inf: the perplexity is infinite
            return -np.exp(-values)


@method
class Sigmoid:
    """e ↦ 1 / (1 + exp(-e))."""

    def __call__(self, values: Array) -> Array:
        out: Array = expit(values)
        return out


@method
class Logit:
    """p ↦ log p - log(1 - p). ``eps`` clips p to [eps, 1 - eps]; without it 0 and 1 raise.

    >>> Logit(eps=0.01)(np.array([0.5, 1.0])).round(4).tolist()
    [0.0, 4.5951]
    """

    eps: float | None = None

    def __post_init__(self) -> None:
        require(self.eps is None or 0 < self.eps < 0.5, "Logit.eps", self.eps, "use None or a number in (0, 0.5)")

    def __call__(self, values: Array) -> Array:
        least = 0.0 if self.eps is None else self.eps
        wrong = values[(values < 0) | (values > 1) | ((least == 0) & ((values == 0) | (values == 1)))]
        require(wrong.size == 0, "Logit of", wrong[:1].tolist(), "use probabilities in (0, 1), or declare eps to clip")
        out: Array = logit(np.clip(values, least, 1 - least))
        return out


@method
class Transformed:
    """``by`` applied to the values of ``evidence``; missing stays missing.

    A calibration is such a transform, fitted on held-out data: it refuses a bank that shares a question with them.
    """

    evidence: Callable[[Bank], Signal]
    by: Callable[[Array], Array]

    @property
    def needs(self) -> Needs:
        found: Needs = getattr(self.evidence, "needs", Needs())
        return found

    @property
    def role(self) -> str:
        return str(getattr(self.evidence, "role", "deployable"))

    def __call__(self, bank: Bank) -> Signal:
        refuse_fitted(self, bank)
        values, cost = self.evidence(bank)
        return Signal(self._apply(values), cost)

    def of_tokens(self, offsets: Array, columns: Mapping[str, Array]) -> Array:
        """``[C]`` from flat columns of any size."""
        return evaluate([self], offsets, columns)[0]

    def of_chunk(self, offsets: Array, columns: Mapping[str, Array]) -> Array:
        inner: Any = self.evidence
        return self._apply(inner.of_chunk(offsets, columns))

    def _apply(self, values: Array) -> Array:
        out, known = np.full(values.shape, np.nan), ~np.isnan(values)
        out[known] = self.by(values[known])
        return out

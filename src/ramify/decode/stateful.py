"""Operators with a state: mirostat and adaptive-p. The state is a value in ``Side.state``; a drawn token settles it.

An operator stakes what it needs to look the drawn token up in; ``settle`` hands that token back and takes the next
state.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ramify.arrays import Array, at, head, largest, namespace
from ramify.decode.level import reaches
from ramify.decode.measure import TokenMeasure, restrict, reweight
from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = ["AdaptiveP", "Mirostat", "MirostatV1"]

LOG2 = math.log(2.0)


@method
class Mirostat:
    """Mirostat 2 (Basu et al., 2021): keep r with -log2 r <= μ, then μ ← μ - η (surprise - τ). μ starts at 2 τ.

    ``surprise="proposal"`` measures the drawn token under the truncated, renormalised r (llama.cpp); ``"model"``
    under r as this operator found it (the authors' code, whose constants are τ = 3, η = 1).
    """

    tau: float = 5.0
    eta: float = 0.1
    surprise: str = "proposal"

    def __post_init__(self) -> None:
        _valid_mirostat("Mirostat", self.tau, self.eta, self.surprise)

    def begin(self, rows: int) -> np.ndarray:
        return np.full(rows, 2.0 * self.tau)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        mu = measure.state(self)  # [...]
        # The threshold never rises above the mode, which has depth 0: at least that token stays.
        threshold = namespace(mu).clip(measure.log_mass - mu[..., None] * LOG2, None, 0.0)
        gated = restrict(measure, reaches(measure, threshold))
        return gated.stake(self, gated if self.surprise == "proposal" else measure)

    def settle(self, mu: Array, stake: TokenMeasure, token: Array) -> Array:
        return mu - self.eta * (_surprise(stake, token) - self.tau)


@method
class MirostatV1:
    """Mirostat 1: a top-k whose k follows from μ and a Zipf exponent ŝ estimated from the ``first`` = 100 top tokens.

    ŝ is the least-squares slope of log(r_i / r_{i+1}) on log((i + 1) / i), and
    k = ((ŝ-1) 2^μ / (1 - V^{-(ŝ-1)}))^{1/ŝ}, whose limit at ŝ = 1 is (2^μ / log V)^{1/ŝ}; k is truncated
    to an integer in [1, V] (llama.cpp).
    """

    tau: float = 5.0
    eta: float = 0.1
    surprise: str = "proposal"
    first: int = 100

    def __post_init__(self) -> None:
        _valid_mirostat("MirostatV1", self.tau, self.eta, self.surprise)
        require(is_whole(self.first, 2), "MirostatV1.first", self.first, "use at least 2 tokens to estimate a slope")

    def begin(self, rows: int) -> np.ndarray:
        return np.full(rows, 2.0 * self.tau)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        gated = restrict(measure, head(measure.energy, None, self._k(measure)))
        return gated.stake(self, gated if self.surprise == "proposal" else measure)

    def _k(self, measure: TokenMeasure) -> Array:
        xp, size = namespace(measure.energy), measure.energy.shape[-1]
        top = xp.astype(largest(measure.energy, self.first)[0], xp.float64)
        if size < 2:
            return xp.ones_like(measure.support)
        i = xp.astype(xp.arange(1, top.shape[-1], device=top.device), xp.float64)
        t = xp.log((i + 1) / i)
        real = top[..., 1:] > -xp.inf
        b = xp.where(real, top[..., :-1], 0.0) - xp.where(real, top[..., 1:], 0.0)
        t = xp.where(real, t, 0.0)
        squares = xp.sum(t * t, axis=-1)
        # One live token has no slope: any k keeps it.
        s = xp.clip(xp.sum(t * b, axis=-1) / xp.where(squares > 0, squares, 1.0), 1e-6, None)
        log_v = math.log(size)
        excess = xp.where(xp.abs(s - 1) < 1e-9, 1e-9, s - 1)
        log_base = xp.log(excess / -xp.expm1(-excess * log_v)) + measure.state(self) * LOG2
        log_k = log_base / s
        # exp(log V) may fall short of V by a rounding, and its floor by a token.
        return xp.where(log_k < log_v, xp.floor(xp.exp(xp.clip(log_k, 0.0, log_v))), float(size))

    def settle(self, mu: Array, stake: TokenMeasure, token: Array) -> Array:
        return mu - self.eta * (_surprise(stake, token) - self.tau)


@method
class AdaptiveP:
    """Prefer tokens near a moving target (llama.cpp): u = exp(5 - 10 d² / (1 + d)), d = |r - target'| / 0.3.

    target' = clip(2 target - average, 0, 1), the average of the drawn tokens' r with weights ``decay``^age, which
    starts as if ``target`` had always been drawn. State: (weighted sum, sum of weights).
    """

    target: float
    decay: float = 0.9

    family: ClassVar[str] = "weights"

    def __post_init__(self) -> None:
        require(0 <= self.target <= 1, "AdaptiveP.target", self.target, "use a probability in [0, 1]")
        require(0 <= self.decay < 1, "AdaptiveP.decay", self.decay, "use a decay in [0, 1)")

    def begin(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        ages = 1.0 / (1.0 - self.decay)
        return np.full(rows, self.target * ages), np.full(rows, ages)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp = namespace(measure.energy)
        weighted, ages = measure.state(self)
        target = xp.clip(2 * self.target - weighted / ages, 0.0, 1.0)[..., None]
        d = xp.abs(measure.probs - target) / 0.3
        log_weight = xp.astype(5.0 - 10.0 * d * d / (1.0 + d), measure.log_weight.dtype)
        return reweight(measure, log_weight).stake(self, measure)

    def settle(self, old: Any, stake: TokenMeasure, token: Array) -> tuple[Array, Array]:
        weighted, ages = old
        return at(stake.probs, token) + self.decay * weighted, 1.0 + self.decay * ages


def _surprise(stake: TokenMeasure, token: Array) -> Array:
    """[...] -log2 of the drawn token's probability under a staked measure; finite whatever the token."""
    bits = (stake.log_total[..., 0] - at(stake.log_weight, token)) / LOG2
    return namespace(bits).clip(bits, 0.0, 1e6)


def _valid_mirostat(owner: str, tau: float, eta: float, surprise: str) -> None:
    require(0 <= tau < math.inf, f"{owner}.tau", tau, "use a target surprise >= 0, in bits")
    require(0 <= eta < math.inf, f"{owner}.eta", eta, "use a learning rate >= 0")
    require(surprise in ("proposal", "model"), f"{owner}.surprise", surprise, "use 'proposal' or 'model'")

"""Operators that change the weights u_t and leave the support alone."""

from __future__ import annotations

import math

import numpy as np

from ramify.arrays import namespace
from ramify.decode.action import Greedy
from ramify.decode.measure import TokenMeasure, reweight
from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = ["Coverage", "DynamicTemperature", "LogitBias", "Quadratic", "Temperature", "Uniform"]


@method
class Temperature:
    """u = exp(ℓ / t). The limit t = 0 is a deterministic action: the mode, the lowest id among equals.

    >>> import numpy as np
    >>> Temperature(2.0)(TokenMeasure.of(np.log([0.64, 0.36]))).probs.round(4).tolist()
    [0.5714, 0.4286]
    >>> Temperature(0)(TokenMeasure.of(np.log([0.64, 0.36]))).forced.tolist()
    0
    """

    t: float

    def __post_init__(self) -> None:
        ok = self.t == 0 or 1e-6 <= self.t < math.inf
        require(ok, "Temperature.t", self.t, "use 0 (greedy) or a finite temperature >= 1e-6")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        if self.t == 0:
            return Greedy()(measure)
        return measure if self.t == 1 else reweight(measure, measure.log_weight / self.t)


@method
class DynamicTemperature:
    """T = low + (high - low) (H / log |S|)^exponent: hotter where the distribution is flatter (llama.cpp, Kobold).

    A support of one token has no entropy to scale by and is left alone.
    """

    low: float
    high: float
    exponent: float = 1.0

    def __post_init__(self) -> None:
        require(0 <= self.low < math.inf, "DynamicTemperature.low", self.low, "use a finite temperature >= 0")
        ok = max(self.low, 1e-6) <= self.high < math.inf
        require(ok, "DynamicTemperature.high", self.high, "use low <= high < inf")
        require(self.exponent > 0, "DynamicTemperature.exponent", self.exponent, "use an exponent > 0")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp = namespace(measure.log_weight)
        most = xp.log(xp.astype(measure.support, xp.float64))[..., None]
        share = xp.clip(measure.entropy / xp.where(most > 0, most, 1.0), 0.0, 1.0)
        t = xp.clip(self.low + (self.high - self.low) * share**self.exponent, 1e-6, None)
        t = xp.astype(xp.where(most > 0, t, 1.0), measure.log_weight.dtype)
        return reweight(measure, measure.log_weight / t)


@method
class Quadratic:
    """ℓ' = max - k f d² + s f d³ with d = ℓ - max, k = (3 - curve) / 2, s = (curve - 1) / 2 (smoothing, Kalomaze).

    ``curve`` in [1, 3] keeps the rank order; 1 is the pure quadratic.
    """

    factor: float
    curve: float = 1.0

    def __post_init__(self) -> None:
        require(0 < self.factor < math.inf, "Quadratic.factor", self.factor, "use a finite factor > 0")
        require(1 <= self.curve <= 3, "Quadratic.curve", self.curve, "use a curve in [1, 3]")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        k, s = (3 - self.curve) / 2, (self.curve - 1) / 2
        d = namespace(measure.depth).where(measure.live, measure.depth, 0.0)  # what is dead has no place on the curve
        return reweight(measure, measure.peak - k * self.factor * d**2 + s * self.factor * d**3)


@method
class Uniform:
    """u = 1 on the support: every retained token is as likely as any other."""

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        return reweight(measure, namespace(measure.log_weight).zeros_like(measure.log_weight))


@method
class Coverage:
    """u = (1 - share) r + share / |S|: whatever is retained is drawn with probability at least share / |S|.

    0 changes nothing and 1 is ``Uniform``.

    >>> import numpy as np
    >>> Coverage(0.5)(TokenMeasure.of(np.log([0.8, 0.2]))).probs.round(4).tolist()
    [0.65, 0.35]
    """

    share: float

    def __post_init__(self) -> None:
        require(0 <= self.share <= 1, "Coverage.share", self.share, "use a share in [0, 1]")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp = namespace(measure.log_weight)
        if self.share == 0:
            return measure
        even = self.share / xp.astype(measure.support, xp.float64)[..., None]
        mixed = xp.log((1 - self.share) * measure.probs + even)
        return reweight(measure, xp.astype(mixed, measure.log_weight.dtype))


@method
class LogitBias:
    """ℓ_i + b_i for the given (token, bias) pairs. A bias of -inf is a gate: use ``Ban``.

    >>> import numpy as np
    >>> LogitBias(((1, float(np.log(4))),))(TokenMeasure.of(np.log([0.8, 0.2]))).probs.round(4).tolist()
    [0.5, 0.5]
    """

    bias: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        pairs = isinstance(self.bias, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in self.bias)
        require(pairs, "LogitBias.bias", self.bias, "use a tuple of (token id, bias) pairs")
        for token, amount in self.bias:
            require(is_whole(token), "LogitBias.bias", (token, amount), "use token ids >= 0")
            require(
                math.isfinite(amount),
                "LogitBias.bias",
                (token, amount),
                "use finite biases; Ban removes a token",
            )

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp, size = namespace(measure.log_weight), measure.log_weight.shape[-1]
        bias = np.zeros(size)
        for token, amount in self.bias:
            require(
                token < size,
                "LogitBias.bias",
                (token, amount),
                f"use token ids below the vocabulary's {size}",
            )
            bias[token] += amount
        dtype, device = measure.log_weight.dtype, measure.log_weight.device
        return reweight(measure, measure.log_weight + xp.asarray(bias, dtype=dtype, device=device))

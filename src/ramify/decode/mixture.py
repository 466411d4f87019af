"""Randomised configurations: a hidden choice is marginalised into the measure, so that log q stays exact."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array, at, namespace
from ramify.decode.compose import Chain, are_operators
from ramify.decode.measure import NONE, Operator, TokenMeasure, begin, force, members, restrict, settle, token_ids
from ramify.describe import method
from ramify.errors import require

__all__ = ["Mixture", "Xtc"]


@method
class Mixture:
    """A randomised configuration: operator c with probability w_c, once a leaf or at every token.

    The draw of c is marginalised, so log q is exact and no coin is tossed. Per leaf, q(y) = Σ_c w_c q_c(y) telescopes
    into q̃_t = Σ_c π_c q̃_{c,t}, π the posterior of c given the tokens so far: that is this operator's state. Per token,
    π = w. Each configuration's own state follows the tokens that were drawn.

    Where some configurations force a token and others do not, it is given their share of the mass, live or not.
    Operators chained after a mixture act on the marginal; what belongs to a configuration goes inside it.

    >>> from ramify.decode import Greedy, Temperature
    >>> mixed = Mixture((Greedy(), Temperature(1.0)), (0.5, 0.5))
    >>> mixed(TokenMeasure.of(np.log([0.8, 0.2]))).probs.round(4).tolist()
    [0.9, 0.1]
    """

    configurations: tuple[Operator, ...]
    weights: tuple[float, ...]
    per: str = "leaf"

    def __post_init__(self) -> None:
        ok = isinstance(self.configurations, tuple) and isinstance(self.weights, tuple) and self.configurations
        require(ok, "Mixture.configurations", self.configurations, "give a tuple of operators and a tuple of weights")
        are_operators("Mixture", self.configurations)
        require(
            len(self.weights) == len(self.configurations) and all(0 <= w < math.inf for w in self.weights)
            and math.isclose(sum(self.weights), 1.0, abs_tol=1e-9),
            "Mixture.weights",
            self.weights,
            f"give {len(self.configurations)} weights >= 0 that sum to 1",
        )  # fmt: skip
        require(self.per in ("leaf", "token"), "Mixture.per", self.per, "use 'leaf' or 'token'")

    def begin(self, rows: int) -> Any:
        weights = np.asarray(self.weights, dtype=np.float64)
        log_prior = np.log(weights, where=weights > 0, out=np.full(len(self.weights), -np.inf))
        return np.tile(log_prior, (rows, 1)), tuple(begin(each, rows) for each in self.configurations)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        log_posterior, states = measure.state(self)
        outcomes = []
        for configuration, state in zip(self.configurations, states, strict=True):
            side = dataclasses.replace(measure.side, state=state)
            outcomes.append(configuration(dataclasses.replace(measure, side=side, stakes=())))
        mixed = blend(measure, outcomes, log_posterior)
        return mixed.stake(self, tuple(outcomes))

    def settle(self, old: Any, outcomes: Sequence[TokenMeasure], token: Array) -> Any:
        log_posterior, _ = old
        xp = namespace(log_posterior)
        states = tuple(settle(outcome, token) for outcome in outcomes)
        if self.per == "token":
            return log_posterior, states
        evidence = xp.stack([at(outcome.log_kernel, token) for outcome in outcomes], axis=-1)
        joint = log_posterior + evidence
        # A token that no configuration could have drawn (a later operator's doing) teaches nothing about which it is.
        taught = xp.any(joint > -xp.inf, axis=-1, keepdims=True)
        joint = xp.where(taught, joint, log_posterior)
        peak = xp.max(joint, axis=-1, keepdims=True)
        return joint - peak - xp.log(xp.sum(xp.exp(joint - peak), axis=-1, keepdims=True)), states


@method
class Xtc:
    """Exclude top choices (Weidmann, 2024): with probability P, only the least likely token with r >= threshold stays.

    It needs two such tokens, and does nothing where a ``protect``-ed id would go. The coin is marginalised over
    ``then``: what follows the coin in an engine's chain (llama.cpp: the temperature) belongs there, while operators
    chained after an ``Xtc`` act on the marginal. The mode may go: not a head gate.

    >>> Xtc(0.5, 0.2)(TokenMeasure.of(np.log([0.5, 0.3, 0.2]))).probs.round(4).tolist()
    [0.25, 0.15, 0.6]
    """

    probability: float
    threshold: float = 0.1
    protect: tuple[int, ...] = ()
    then: Operator = Chain()

    def __post_init__(self) -> None:
        require(0 <= self.probability <= 1, "Xtc.probability", self.probability, "use a probability in [0, 1]")
        require(0 < self.threshold <= 0.5, "Xtc.threshold", self.threshold, "use a threshold in (0, 0.5]")
        token_ids("Xtc.protect", self.protect)
        are_operators("Xtc", (self.then,))
        require(
            not begin(self.then, 1),
            "Xtc.then",
            self.then,
            "keep stateful operators outside: the coin is hidden",
        )

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        off, on = self.then(measure), self.then(restrict(measure, ~self._excluded(measure)))
        if self.probability in (0, 1):
            return on if self.probability else off
        xp = namespace(measure.live)
        odds = [math.log1p(-self.probability), math.log(self.probability)]
        coin = xp.asarray(odds, dtype=xp.float64, device=measure.live.device)
        return blend(measure, (off, on), xp.broadcast_to(coin, (*measure.live.shape[:-1], 2)))

    def _excluded(self, measure: TokenMeasure) -> Array:
        """[..., V] the top choices but the least likely of them, the highest id among equals."""
        xp, size = namespace(measure.live), measure.live.shape[-1]
        top = measure.live & (measure.log_probs >= math.log(self.threshold))
        least = xp.min(xp.where(top, measure.energy, xp.inf), axis=-1, keepdims=True)
        bottom = xp.astype(top & (measure.energy == least), xp.int8)
        stays = size - 1 - xp.argmax(xp.flip(bottom, axis=-1), axis=-1)
        gone = top & (xp.arange(size, device=top.device) != stays[..., None])
        guarded = xp.any(gone & members(measure, self.protect, "Xtc.protect"), axis=-1)
        return gone & ~guarded[..., None]


def blend(measure: TokenMeasure, outcomes: Sequence[TokenMeasure], log_weights: Array) -> TokenMeasure:
    """Σ_c w_c K_c over outcomes of one measure, ``log_weights [..., C]``: a hidden choice, marginalised."""
    xp = namespace(measure.log_weight)
    live, total = None, None
    for c, outcome in enumerate(outcomes):
        possible = log_weights[..., c] > -xp.inf
        kernel = xp.where(possible[..., None], xp.exp(log_weights[..., c, None] + outcome.log_kernel), 0.0)
        reach = xp.where((outcome.forced != NONE)[..., None], kernel > 0, outcome.live & possible[..., None])
        total = kernel if total is None else total + kernel
        live = reach if live is None else live | reach
    assert total is not None
    # A live token whose probability underflows keeps the smallest positive weight rather than log 0.
    log_weight = xp.astype(xp.log(_positive(total)), measure.log_weight.dtype)
    forced = _agreed([outcome.forced for outcome in outcomes])
    fallback = outcomes[0].fallback
    for outcome in outcomes[1:]:
        fallback = fallback | outcome.fallback
    mixed = dataclasses.replace(measure, log_weight=log_weight, live=live, fallback=fallback)
    return force(mixed, forced, forced != NONE)


def _agreed(forced: Sequence[Array]) -> Array:
    """[...] the action that every configuration takes, or -1."""
    xp, agreed = namespace(forced[0]), forced[0]
    for other in forced[1:]:
        agreed = xp.where(agreed == other, agreed, NONE)
    return agreed


def _positive(x: Array) -> Array:
    xp = namespace(x)
    return xp.clip(x, xp.finfo(x.dtype).smallest_normal, None)

"""Weights that look back at the trace: repetition, frequency and presence penalties, and DRY."""

from __future__ import annotations

import math

from ramify.arrays import Array, namespace
from ramify.decode.measure import NONE, Side, TokenMeasure, reweight, token_ids
from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = ["Dry", "Frequency", "Presence", "Repetition"]


@method
class Repetition:
    """ℓ / θ where ℓ > 0, ℓ θ elsewhere, for tokens already seen (Keskar et al., 2019).

    ``scope="all"`` counts the prompt too, as transformers, vLLM and llama.cpp do; ``last`` looks at so many tokens
    only.
    """

    theta: float
    scope: str = "all"
    last: int | None = None

    def __post_init__(self) -> None:
        require(
            0 < self.theta < math.inf,
            "Repetition.theta",
            self.theta,
            "use a finite factor > 0; 1 changes nothing",
        )
        _window("Repetition", self.scope, self.last)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp, logit = namespace(measure.log_weight), measure.log_weight
        seen = counts(measure, self.scope, self.last) > 0
        penalised = xp.where(logit > 0, logit / self.theta, logit * self.theta)
        return reweight(measure, xp.where(seen, penalised, logit))


@method
class Frequency:
    """ℓ - α count: each occurrence costs the same again."""

    alpha: float
    scope: str = "generated"
    last: int | None = None

    def __post_init__(self) -> None:
        require(
            math.isfinite(self.alpha),
            "Frequency.alpha",
            self.alpha,
            "use a finite penalty; 0 changes nothing",
        )
        _window("Frequency", self.scope, self.last)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp, logit = namespace(measure.log_weight), measure.log_weight
        return reweight(measure, logit - self.alpha * xp.astype(counts(measure, self.scope, self.last), logit.dtype))


@method
class Presence:
    """ℓ - α 1{count > 0}: having occurred costs once."""

    alpha: float
    scope: str = "generated"
    last: int | None = None

    def __post_init__(self) -> None:
        require(math.isfinite(self.alpha), "Presence.alpha", self.alpha, "use a finite penalty; 0 changes nothing")
        _window("Presence", self.scope, self.last)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp, logit = namespace(measure.log_weight), measure.log_weight
        seen = counts(measure, self.scope, self.last) > 0
        return reweight(measure, logit - self.alpha * xp.astype(seen, logit.dtype))


@method
class Dry:
    """Don't repeat yourself: a token that would prolong a repeated sequence costs multiplier · base^(match - allowed).

    The match is the longest suffix of the trace that occurred earlier followed by that token; ``breakers`` end matches.
    ``match < allowed`` costs nothing. Matches are counted up to the length at which the penalty passes 1e38
    (llama.cpp).
    """

    multiplier: float
    base: float = 1.75
    allowed: int = 2
    breakers: tuple[int, ...] = ()
    scope: str = "all"
    last: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.multiplier < math.inf, "Dry.multiplier", self.multiplier, "use a finite factor >= 0")
        require(1 < self.base < math.inf, "Dry.base", self.base, "use a finite base > 1")
        token_ids("Dry.breakers", self.breakers)
        require(is_whole(self.allowed, 1), "Dry.allowed", self.allowed, "use a length >= 1")
        _window("Dry", self.scope, self.last)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp, logit = namespace(measure.log_weight), measure.log_weight
        trace = history(measure.side, logit.shape[-1], self.scope, self.last)
        if self.multiplier == 0 or trace.shape[-1] < 2:
            return measure
        longest = self.allowed + int(38 * math.log(10) / math.log(self.base))
        match = self._matches(trace, longest)[
            ..., :-1
        ]  # [..., T - 1] of each earlier position with the end of the trace
        follow = trace[..., 1:]  # the token that came next
        power = xp.astype(xp.where(match >= self.allowed, match - self.allowed, 0), xp.float64)
        cost = xp.where(match >= self.allowed, self.multiplier * self.base**power, xp.zeros_like(power))
        most = float(xp.finfo(logit.dtype).max) / 4  # a token may become hopeless, not -inf
        return reweight(measure, logit - _highest(follow, xp.astype(xp.clip(cost, 0.0, most), logit.dtype), logit))

    def _matches(self, trace: Array, longest: int) -> Array:
        """[..., T] for each position, how many tokens up to it equal the last tokens of the trace (right-aligned)."""
        xp, size = namespace(trace), trace.shape[-1]
        breaks = trace == NONE
        for token in self.breakers:
            breaks = breaks | (trace == token)
        match = xp.zeros_like(trace)
        alive = xp.ones_like(breaks)
        for back in range(min(longest, size - 1)):
            # Compare the token `back` before each position with the token `back` before the end.
            shifted = _shift(trace, back)
            alive = alive & (shifted == trace[..., size - 1 - back, None]) & ~breaks[..., size - 1 - back, None]
            if not xp.any(alive[..., :-1]):
                break
            match = match + xp.astype(alive, match.dtype)
        return match


def history(side: Side, size: int, scope: str, last: int | None) -> Array:
    """[..., T] the tokens in scope, right-aligned (padding -1 in front), at most the ``last`` ones."""
    xp = namespace(side.tokens)
    tokens = side.tokens if scope == "generated" else xp.concat([side.prompt, side.tokens], axis=-1)
    if 0 not in tokens.shape:
        highest = int(xp.max(tokens))
        require(highest < size, "side tokens", highest, f"use token ids below the vocabulary's {size}")
    # A stable sort by "is a token" moves the padding to the front and keeps the order of the rest.
    order = xp.argsort(xp.astype(tokens != NONE, xp.int8), axis=-1, stable=True)
    aligned = xp.take_along_axis(tokens, order, axis=-1)
    return aligned if last is None else aligned[..., max(0, aligned.shape[-1] - last) :]


def counts(measure: TokenMeasure, scope: str, last: int | None) -> Array:
    """[..., V] how often each token occurs in the scope."""
    xp, size = namespace(measure.log_weight), measure.log_weight.shape[-1]
    tokens = history(measure.side, size, scope, last)
    rows = math.prod(tokens.shape[:-1])
    flat = xp.reshape(tokens, (rows, tokens.shape[-1]))
    cells = (xp.arange(rows, device=flat.device)[:, None] * size + flat)[flat != NONE]
    total = xp.bincount(cells, minlength=rows * size)
    return xp.reshape(total, tuple(measure.log_weight.shape))


def _highest(tokens: Array, cost: Array, like: Array) -> Array:
    """[..., V] the largest cost that any position puts on each token; 0 elsewhere."""
    xp, size = namespace(like), like.shape[-1]
    rows = math.prod(like.shape[:-1])
    flat, cost = (xp.reshape(each, (rows, tokens.shape[-1])) for each in (tokens, cost))
    paid = (cost > 0) & (flat != NONE)
    cells, cost = (xp.arange(rows, device=flat.device)[:, None] * size + flat)[paid], cost[paid]
    # Sorted by (cell, cost), the last of each run of equal cells is its largest cost.
    order = xp.argsort(cost)
    order = xp.take(order, xp.argsort(xp.take(cells, order), stable=True))
    cells, cost = xp.take(cells, order), xp.take(cost, order)
    last = xp.concat([cells[1:] != cells[:-1], xp.ones_like(cells[:1], dtype=xp.bool)])
    out = xp.zeros(rows * size, dtype=like.dtype, device=like.device)
    out[cells[last]] = cost[last]
    return xp.reshape(out, tuple(like.shape))


def _shift(trace: Array, back: int) -> Array:
    """The trace moved right by ``back``, with padding in front."""
    xp = namespace(trace)
    if back == 0:
        return trace
    return xp.concat([xp.full_like(trace[..., :back], NONE - 1), trace[..., :-back]], axis=-1)


def _window(owner: str, scope: str, last: int | None) -> None:
    require(scope in ("all", "generated"), f"{owner}.scope", scope, "use 'all' (prompt too) or 'generated'")
    require(last is None or is_whole(last, 1), f"{owner}.last", last, "use None or an integer >= 1")

"""Deterministic actions, and the masks and length rules that a protocol imposes on a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ramify.arrays import Array, namespace
from ramify.decode.measure import (
    NONE,
    Side,
    TokenMeasure,
    force,
    in_vocabulary,
    members,
    restrict,
    reweight,
    token_ids,
    valid_fallback,
)
from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require

__all__ = ["Ban", "ForcePrefix", "Greedy", "Mask", "MaxThinking", "MinThinking"]


@method
class Greedy:
    """Take the mode, the lowest id among equals. An action some other operator took stands, whatever the order.

    Greedy looks at the support as it finds it, so gates and masks that are to bind it come before it.
    """

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        return force(measure, measure.mode, measure.forced == NONE)


@method
class ForcePrefix:
    """The trace opens with these tokens, whether or not the model or a gate would allow them."""

    tokens: tuple[int, ...]

    def __post_init__(self) -> None:
        token_ids("ForcePrefix.tokens", self.tokens)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        if not self.tokens:
            return measure
        in_vocabulary("ForcePrefix.tokens", self.tokens, measure)
        xp, length = namespace(measure.live), measure.side.length
        script = xp.asarray(self.tokens, device=length.device)
        within = length < len(self.tokens)
        return force(measure, script[xp.where(within, length, 0)], within)


@method
class Ban:
    """These tokens leave the support."""

    tokens: tuple[int, ...]
    fallback: str = "mode"

    family: ClassVar[str] = "mask"

    def __post_init__(self) -> None:
        token_ids("Ban.tokens", self.tokens)
        valid_fallback("Ban", self.fallback)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        return restrict(measure, ~members(measure, self.tokens, "Ban.tokens"), self.fallback)


@method
class Mask:
    """A grammar or any other rule of the trace: ``allowed(side, V)`` gives a bool mask that broadcasts to ``[..., V]``.

    Name it in a module (``'grammar:digits'`` in the text form), so that the protocol can say which rule it was.
    """

    allowed: Callable[[Side, int], Array]
    fallback: str = "mode"

    family: ClassVar[str] = "mask"

    def __post_init__(self) -> None:
        require(callable(self.allowed), "Mask.allowed", self.allowed, "give a function of (side, V)")
        valid_fallback("Mask", self.fallback)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp, size = namespace(measure.live), measure.live.shape[-1]
        keep = xp.asarray(self.allowed(measure.side, size), device=measure.live.device)
        if keep.dtype != xp.bool or keep.shape[-1] != size:
            raise InvalidValue(f"{self!r} gave {keep.dtype} {tuple(keep.shape)}: return a bool mask [..., {size}]")
        return restrict(measure, keep, self.fallback)


@method
class MaxThinking:
    """Once the trace has ``n`` tokens and thinking has not ended, write its end, which is a token or several.

    Thinking has ended where the first token of ``end`` stands; an end the model began itself is left to the model.
    """

    n: int
    end: tuple[int, ...]

    def __post_init__(self) -> None:
        require(is_whole(self.n), "MaxThinking.n", self.n, "use a number of tokens >= 0")
        require(self.end, "MaxThinking.end", self.end, "give the token ids that end thinking")
        token_ids("MaxThinking.end", self.end)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        in_vocabulary("MaxThinking.end", self.end, measure)
        xp, length = namespace(measure.live), measure.side.length
        script = xp.asarray(self.end, device=length.device)
        begun = _first(measure.side, self.end[0])  # the trace's length where the end has not begun
        written = length - begun
        act = (begun >= self.n) & (written < len(self.end))
        return force(measure, script[xp.where(act, written, 0)], act)


@method
class MinThinking:
    """Before the trace has ``n`` tokens its end may not come: ``end`` leaves the support.

    With ``instead``, the end's mass moves to the live ones of those tokens, in equal shares: what a server does that
    replaces a premature end by a switch word drawn at random ("Wait", "Alternatively"), with the draw marginalised.
    """

    n: int
    end: int
    instead: tuple[int, ...] = ()
    fallback: str = "mode"

    family: ClassVar[str] = "mask"

    def __post_init__(self) -> None:
        require(is_whole(self.n), "MinThinking.n", self.n, "use a number of tokens >= 0")
        token_ids("MinThinking.end", (self.end,))
        token_ids("MinThinking.instead", self.instead)
        require(
            self.end not in self.instead,
            "MinThinking.instead",
            self.instead,
            "name tokens other than the end",
        )
        valid_fallback("MinThinking", self.fallback)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        early = (measure.side.length < self.n)[..., None]
        end = members(measure, (self.end,), "MinThinking.end")
        moved = self._moved(measure, end, early) if self.instead else measure
        return restrict(moved, ~(end & early), self.fallback)

    def _moved(self, measure: TokenMeasure, end: Array, early: Array) -> TokenMeasure:
        xp = namespace(measure.live)
        switch = members(measure, self.instead, "MinThinking.instead") & measure.live
        share = xp.count_nonzero(switch, axis=-1)[..., None]
        mass = xp.sum(xp.where(end, measure.weight, 0.0), axis=-1, keepdims=True) / xp.where(share > 0, share, 1)
        here = switch & early & (mass > 0)
        log_weight = measure.peak + xp.log(xp.where(here, measure.weight + mass, 1.0))
        return reweight(measure, xp.where(here, xp.astype(log_weight, measure.log_weight.dtype), measure.log_weight))


def _first(side: Side, token: int) -> Array:
    """[...] where ``token`` first stands in the trace; its length where it does not."""
    xp, found = namespace(side.tokens), side.tokens == token
    if side.tokens.shape[-1] == 0:
        return side.length
    return xp.where(xp.any(found, axis=-1), xp.argmax(xp.astype(found, xp.int8), axis=-1), side.length)

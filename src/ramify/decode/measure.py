"""The token measure: the weights u_t, the support S_t and the untouched logits, kept apart over any batch axes.

An operator takes a measure and returns a measure. ``Norm_S(u)`` is computed only when something asks for it, so that a
chain of operators renormalises between each two of them without writing anything down.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np

from ramify.arrays import Array, at, count, namespace, place, take_rows
from ramify.errors import InvalidValue, is_whole, require

__all__ = ["Operator", "Side", "TokenMeasure", "begin", "force", "restrict", "reweight", "settle"]

NONE = -1  # no token: in `forced`, and as padding in histories


@dataclass(frozen=True, eq=False)
class Side:
    """What an operator may know beside the logits: the trace so far and the state that operators keep.

    ``state`` maps each stateful operator to its value: arrays with the batch axes in front, in nested tuples and dicts.
    """

    tokens: Array  # [..., T] generated so far, right-padded with -1
    prompt: Array  # [..., P] the prompt, right-padded with -1
    state: Mapping[Any, Any] = field(default_factory=dict)
    hidden: Mapping[str, Array] = field(default_factory=dict)  # anything else a user's operator reads, by name

    @classmethod
    def start(cls, operator: Any, prompts: Sequence[Sequence[int]]) -> Side:
        """A row a prompt, nothing generated yet, and the state that the operator begins with."""
        rows, width = len(prompts), max(map(len, prompts), default=0)
        padded = np.full((rows, width), NONE, dtype=np.int64)
        for row, prompt in zip(padded, prompts, strict=True):
            row[: len(prompt)] = prompt
        return cls(np.zeros((rows, 0), dtype=np.int64), padded, begin(operator, rows))

    @property
    def length(self) -> Array:
        """[...] how many tokens each row has."""
        return namespace(self.tokens).sum(self.tokens != NONE, axis=-1)

    def append(self, tokens: Array) -> Side:
        """The side after ``tokens [...]``; -1 appends nothing to a row."""
        xp, length, history = namespace(self.tokens), self.length, self.tokens
        width = history.shape[-1]
        if width == 0 or xp.any(length == width):
            room = xp.full((*history.shape[:-1], 1), NONE, dtype=history.dtype, device=history.device)
            history = xp.concat([history, room], axis=-1)
        here = xp.arange(history.shape[-1], device=history.device) == length[..., None]
        return dataclasses.replace(self, tokens=xp.where(here, xp.astype(tokens, history.dtype)[..., None], history))

    def rows(self, rows: Any) -> Side:
        """The given rows: fork, prune, reorder."""
        return Side(*take_rows((self.tokens, self.prompt, dict(self.state), dict(self.hidden)), rows))

    def trimmed(self) -> Side:
        """Without the padding that no row needs any more."""
        longest = int(self.length.max()) if 0 not in self.tokens.shape else 0
        return dataclasses.replace(self, tokens=self.tokens[..., :longest])

    def like(self, array: Array) -> Side:
        """The same side in the array library and on the device of ``array``."""
        return Side(*place((self.tokens, self.prompt, dict(self.state), dict(self.hidden)), array))


@dataclass(frozen=True, eq=False)
class TokenMeasure:
    """Weights, support and logits of the next token, for any leading batch axes.

    >>> measure = TokenMeasure.of(np.log([0.5, 0.3, 0.2]))
    >>> measure.probs.round(3).tolist()
    [0.5, 0.3, 0.2]
    """

    logits: Array  # [..., V] the model's own, never changed
    log_weight: Array  # [..., V] log u_t
    live: Array  # [..., V] S_t
    forced: Array  # [...] a deterministic action: a token, or -1
    fallback: Array  # [...] whether a gate would have left nothing
    side: Side
    stakes: tuple[tuple[Any, Any, Any], ...] = ()  # (stateful operator, what the drawn token settles, in which rows)

    @classmethod
    def of(cls, logits: Array, side: Side | None = None) -> TokenMeasure:
        """The raw model as a measure: u = exp(logits), S = every token with a finite logit."""
        xp = namespace(logits)
        shape = tuple(logits.shape)
        require(shape and shape[-1] >= 1, "logits.shape", shape, "use [..., V], V >= 1")
        wide, dead = _precision(xp, logits.dtype)
        if wide is not None:
            logits = xp.astype(logits, wide)
        batch = shape[:-1]
        peak = xp.max(logits, axis=-1, keepdims=True)
        _check_peak(peak, dead)
        if side is None:
            empty = xp.zeros((*batch, 0), dtype=xp.int64, device=logits.device)
            side = Side(empty, empty)
        elif tuple(side.tokens.shape[:-1]) != batch:
            found = tuple(side.tokens.shape)
            raise InvalidValue(f"side.tokens.shape = {found}: use {(*batch, 'T')}, the batch axes of the logits")
        live = logits > dead
        measure = cls(
            logits=logits,
            log_weight=logits if xp.all(live) else xp.where(live, logits, -xp.inf),
            live=live,
            forced=xp.full(batch, NONE, dtype=xp.int64, device=logits.device),
            fallback=xp.zeros(batch, dtype=xp.bool, device=logits.device),
            side=side,
        )
        measure.__dict__["peak"] = peak  # already known: fill the cached property
        return measure

    @cached_property
    def energy(self) -> Array:
        """[..., V] log u on the support and -inf outside it."""
        xp = namespace(self.live)
        return self.log_weight if xp.all(self.live) else xp.where(self.live, self.log_weight, -xp.inf)

    @cached_property
    def peak(self) -> Array:
        """[..., 1] the largest energy."""
        return namespace(self.energy).max(self.energy, axis=-1, keepdims=True)

    @cached_property
    def depth(self) -> Array:
        """[..., V] energy - peak: 0 at the mode, -inf outside the support."""
        return self.energy - self.peak

    @cached_property
    def weight(self) -> Array:
        """[..., V] u / max u on the support, 0 outside it."""
        return namespace(self.depth).exp(self.depth)

    @cached_property
    def total(self) -> Array:
        """[..., 1] the sum of ``weight``, in double precision."""
        xp = namespace(self.weight)
        return xp.sum(self.weight, axis=-1, keepdims=True, dtype=xp.float64)

    @cached_property
    def log_mass(self) -> Array:
        """[..., 1] log Σ_S u - peak, so that log r = depth - log_mass."""
        return namespace(self.total).log(self.total)

    @property
    def log_total(self) -> Array:
        """[..., 1] log Σ_S u, so that log r = energy - log_total."""
        return self.peak + self.log_mass

    @property
    def probs(self) -> Array:
        """[..., V] r = Norm_S(u): the reference of the next gate, and the proposal q̃ unless a token is forced."""
        return self.weight / self.total

    @property
    def log_probs(self) -> Array:
        """[..., V] log r, -inf outside the support."""
        return self.depth - self.log_mass

    @cached_property
    def entropy(self) -> Array:
        """[..., 1] H(r) in nats."""
        xp = namespace(self.energy)
        # 0 log 0 = 0: far below the peak the weight underflows to zero, whatever finite number it meets.
        moment = xp.sum(self.weight * xp.clip(self.depth, -1e4, None), axis=-1, keepdims=True, dtype=xp.float64)
        return self.log_mass - moment / self.total

    @cached_property
    def support(self) -> Array:
        """[...] how many tokens are live."""
        return count(self.live)

    @property
    def mode(self) -> Array:
        """[...] the heaviest live token, the lowest id among equals."""
        return namespace(self.energy).argmax(self.energy, axis=-1)

    @property
    def log_kernel(self) -> Array:
        """[..., V] log K(i): log q̃, or a point mass where a token is forced."""
        xp = namespace(self.energy)
        point = xp.where(self._is_token(self.forced), 0.0, -xp.inf)
        return xp.where(self.forced[..., None] != NONE, point, self.log_probs)

    def _is_token(self, token: Array) -> Array:
        xp = namespace(token)
        return xp.arange(self.logits.shape[-1], device=token.device) == token[..., None]

    def state(self, operator: Any) -> Any:
        """What a stateful operator left after the last token, or what it begins with."""
        if operator in self.side.state:
            return self.side.state[operator]
        return _shaped(place(operator.begin(math.prod(self.logits.shape[:-1])), self.logits), self.logits)

    def stake(self, operator: Any, what: Any) -> TokenMeasure:
        """This measure with something a stateful operator wants to look the drawn token up in."""
        rows = namespace(self.forced).ones_like(self.fallback)
        return dataclasses.replace(self, stakes=(*self.stakes, (operator, what, rows)))


Operator: TypeAlias = Callable[[TokenMeasure], TokenMeasure]


@cache
def _precision(xp: Any, dtype: Any) -> tuple[Any, float]:
    """The dtype to widen logits to (None: work in their own), and the number at or below which a logit is dead.

    Some engines mask with the lowest finite number instead of -inf, so whatever is near it counts as masked.
    """
    if not xp.isdtype(dtype, "real floating") or xp.finfo(dtype).bits > 64:
        raise InvalidValue(f"logits.dtype = {dtype}: use a floating-point dtype of at most 64 bits")
    return (xp.float32 if xp.finfo(dtype).bits < 32 else None), float(xp.finfo(dtype).min) / 2


def _check_peak(peak: Array, dead: float) -> None:
    """A maximum is NaN if anything is, so one number a row tells all that can be wrong with it."""
    xp = namespace(peak)
    if xp.all((peak > dead) & (peak < xp.inf)):
        return
    if xp.any(xp.isnan(peak)):
        raise InvalidValue("logits hold NaN: the model's output is broken; check its weights and precision")
    if xp.any(peak == xp.inf):
        raise InvalidValue("logits hold +inf: a certain token is the `forced` channel's business; use finite logits")
    raise InvalidValue("logits leave no live token (all are masked): give every row at least one finite logit")


def _shaped(tree: Any, like: Array) -> Any:
    """Rows ``[n, ...]`` of a state, shaped as the batch of ``like``."""
    if isinstance(tree, dict):
        return {name: _shaped(item, like) for name, item in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_shaped(item, like) for item in tree)
    return namespace(tree).reshape(tree, (*like.shape[:-1], *tree.shape[1:]))


# ------------------------------------------------------------------------------------ the three things operators do


def restrict(measure: TokenMeasure, keep: Array, fallback: str = "mode") -> TokenMeasure:
    """Narrow the support to ``keep``. Where nothing would be left, the declared fallback applies and is recorded."""
    xp = namespace(keep)
    if keep.shape != measure.live.shape:
        keep = xp.broadcast_to(keep, measure.live.shape)
    live = measure.live & keep
    empty = ~xp.any(live, axis=-1)
    if xp.any(empty):
        instead = measure.live if fallback == "live" else measure._is_token(measure.mode)
        live = xp.where(empty[..., None], instead, live)
    return dataclasses.replace(measure, live=live, fallback=measure.fallback | empty)


def reweight(measure: TokenMeasure, log_weight: Array) -> TokenMeasure:
    """Change the measure inside the support. A weight of -inf would be a gate in disguise: use one."""
    if log_weight.shape != measure.log_weight.shape:
        shapes = tuple(log_weight.shape), tuple(measure.log_weight.shape)
        raise InvalidValue(f"log_weight.shape = {shapes[0]}: return a weight a token, {shapes[1]}")
    return dataclasses.replace(measure, log_weight=log_weight)


def force(measure: TokenMeasure, token: Array, where: Array) -> TokenMeasure:
    """Take a deterministic action in some rows, with a token in the support or not; a later action overrides it."""
    return dataclasses.replace(measure, forced=namespace(where).where(where, token, measure.forced))


# ---------------------------------------------------------------------------------------------------- state, as values


def begin(operator: Any, rows: int) -> dict[Any, Any]:
    """The state that an operator and the operators in it start with, for so many rows."""
    if hasattr(operator, "begin"):
        return {operator: operator.begin(rows)}
    state: dict[Any, Any] = {}
    for part in getattr(operator, "operators", ()):
        for stateful, value in begin(part, rows).items():
            if stateful in state:
                raise InvalidValue(f"{operator!r} holds {stateful!r} twice: their states could not be told apart")
            state[stateful] = value
    return state


def settle(measure: TokenMeasure, token: Array, drawn: Array | None = None) -> dict[Any, Any]:
    """The operators' state after ``token [...]`` came. Where it was not ``drawn`` (forced, impossible) none changes."""
    xp = namespace(measure.forced)
    state = dict(measure.side.state)
    if measure.stakes and drawn is None:
        drawn = (measure.forced == NONE) & at(measure.live, token)
    for operator, stake, rows in measure.stakes:
        old = measure.state(operator)
        state[operator] = _choose(xp, drawn & rows, operator.settle(old, stake, token), old)
    return state


def _choose(xp: Any, condition: Array, yes: Any, no: Any) -> Any:
    if isinstance(yes, dict):
        return {name: _choose(xp, condition, yes[name], no[name]) for name in yes}
    if isinstance(yes, tuple):
        return tuple(_choose(xp, condition, *pair) for pair in zip(yes, no, strict=True))
    return xp.where(condition[(..., *[None] * (yes.ndim - condition.ndim))], yes, no)


# ------------------------------------------------------------------------------------------- checks that operators
# share


def valid_fallback(owner: str, fallback: str) -> None:
    require(
        fallback in ("mode", "live"),
        f"{owner}.fallback",
        fallback,
        "use 'mode' (the mode) or 'live' (no gate)",
    )


def token_ids(field: str, tokens: object) -> None:
    ok = isinstance(tokens, tuple) and all(is_whole(token) for token in tokens)
    require(ok, field, tokens, "use a tuple of token ids >= 0")


def in_vocabulary(field: str, tokens: tuple[int, ...], measure: TokenMeasure) -> None:
    size = measure.live.shape[-1]
    require(all(token < size for token in tokens), field, tokens, f"use token ids below the vocabulary's {size}")


def members(measure: TokenMeasure, tokens: tuple[int, ...], field: str) -> Array:
    """[V] which token ids are among ``tokens``."""
    in_vocabulary(field, tokens, measure)
    xp = namespace(measure.live)
    mask = np.zeros(measure.live.shape[-1], dtype=bool)
    mask[list(tokens)] = True
    return xp.asarray(mask, device=measure.live.device)

"""From a measure to a token: exact draws from keyed streams, and the record of each.

Both draws depend on a row's measure and stream alone, so neither batch, order nor resumption can change a token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ramify.arrays import Array, at, count, join_rows, largest, namespace, pick, place, to_numpy
from ramify.decode.action import Greedy
from ramify.decode.compose import Chain
from ramify.decode.head import EntropyBudget, TailFree, TopH, TopK, TopP, Typical
from ramify.decode.level import Epsilon, Eta, MinP, PLess, TopA, TopNSigma
from ramify.decode.measure import NONE, Operator, Side, TokenMeasure, settle
from ramify.decode.weights import Coverage, DynamicTemperature, Quadratic, Temperature, Uniform
from ramify.describe import method
from ramify.errors import InvalidValue
from ramify.keys import gumbel, uniform

__all__ = ["Draw", "Drawn", "GumbelMax", "InverseCDF", "step"]

SMALL = (
    4096  # vocabularies up to this are drawn from as they stand; in larger ones each row is reduced to its survivors
)


# Operators that look at weights and never at a token's id: what is left of a chain of them may run on survivors alone.
WEIGHTS_ONLY = (
    *(Temperature, DynamicTemperature, Quadratic, Uniform, Coverage, Greedy),
    *(Epsilon, Eta, MinP, TopA, PLess, TopNSigma),
    *(TopK, TopP, Typical, TailFree, TopH, EntropyBudget),
)


class Drawn(NamedTuple):
    """One token a row, and what its kernel was."""

    token: Array  # [...]
    logprob: Array  # [...] log p, the raw model's
    log_q: Array  # [...] log q̃, the proposal's; 0 for a forced token, NaN for an appended one
    rank: Array  # [...] in the raw model, 1 is the mode
    support: Array  # [...] how many tokens could have been drawn
    fallback: Array  # [...] whether a gate would have left nothing
    forced: Array  # [...] whether the token was a deterministic action
    top_ids: Array  # [..., K] the raw model's K likeliest tokens
    top_logprobs: Array  # [..., K]


@method
class InverseCDF:
    """The first token, in order of ids, at which the running mass passes one uniform a position."""

    def __call__(self, measure: TokenMeasure, _: np.ndarray | None, stream: np.ndarray, position: np.ndarray) -> Array:
        u = namespace(measure.live).asarray(uniform(stream, position), device=measure.live.device)
        return pick(measure.weight, u)


@method
class GumbelMax:
    """argmax of log u + Gumbel noise keyed by (position, token id): common random numbers across decoders."""

    def __call__(
        self, measure: TokenMeasure, ids: np.ndarray | None, stream: np.ndarray, position: np.ndarray
    ) -> Array:
        xp = namespace(measure.live)
        *rows, column = np.nonzero(to_numpy(measure.live))
        noise = np.zeros(measure.live.shape)
        token = column if ids is None else ids[column]
        noise[(*rows, column)] = gumbel(stream[tuple(rows)], position[tuple(rows)], token)
        return xp.argmax(measure.energy + xp.asarray(noise, device=measure.live.device), axis=-1)


Draw: TypeAlias = Callable[[TokenMeasure, np.ndarray | None, np.ndarray, np.ndarray], Array]
"""(measure [..., M], the token ids of its columns [M] or None, stream [..., 4], position [...]) -> column [...]"""


def step(
    operator: Operator,
    logits: Array,
    side: Side,
    stream: np.ndarray,
    *,
    draw: Draw = InverseCDF(),
    given: Array | None = None,
    appended: Array | None = None,
    top: int = 0,
) -> tuple[Drawn, Side]:
    """Decode one token in every row: ``logits [B, V]`` and ``stream [B, 4]`` -> what was drawn, and the side after it.

    ``given [B]`` imposes tokens (-1 draws one): their log q is what the proposal would have given them, so
    replaying a trace scores it. Where ``appended [B]``, the given token is the protocol's own: no log q, and no
    state changes.

    Large vocabularies are worked on a row at a time, so that a row and its temporaries stay in a core's cache.
    """
    if logits.ndim != 2 or stream.shape != (logits.shape[0], 4):
        shapes = tuple(logits.shape), tuple(stream.shape)
        raise InvalidValue(f"logits.shape, stream.shape = {shapes}: use [B, V] and [B, 4], a stream a row")
    xp, rows, side = namespace(logits), logits.shape[0], side.like(logits)
    given = place(np.full(rows, NONE) if given is None else given, logits)
    appended = place(np.zeros(rows, dtype=bool) if appended is None else appended, logits)
    wrong = (given < NONE) | (given >= logits.shape[-1])
    if xp.any(wrong):
        raise InvalidValue(f"given = {int(given[wrong][0])}: use token ids below {logits.shape[-1]}, or -1 to draw one")

    def block(part: slice) -> tuple[Drawn, dict[Any, Any]]:
        raw = TokenMeasure.of(logits[part], side.rows(part))
        return _decode(operator, raw, stream[part], draw, given[part], appended[part], top)

    if xp is np and logits.shape[-1] > SMALL and rows > 1:
        _keep_freed_memory()
        blocks = [block(slice(row, row + 1)) for row in range(rows)]
        drawn, state = Drawn(*join_rows([tuple(each) for each, _ in blocks])), join_rows([each for _, each in blocks])
    else:
        drawn, state = block(slice(None))
    return drawn, dataclasses.replace(side.append(drawn.token), state=state)


def _decode(
    operator: Operator, raw: TokenMeasure, stream: np.ndarray, draw: Draw, given: Array, appended: Array, top: int
) -> tuple[Drawn, dict[Any, Any]]:
    xp = namespace(raw.logits)
    wide, final, ids = _propose(operator, raw)
    chosen = draw(final, ids, stream, to_numpy(raw.side.length))
    if ids is None:
        proposed, late = chosen, final.forced
    else:
        proposed, late = ids[chosen], np.where(final.forced == NONE, NONE, ids[final.forced])
    action = xp.where(wide.forced == NONE, late, wide.forced)
    forced = action != NONE
    token = xp.where(given == NONE, xp.where(forced, action, proposed), given)

    column = token if ids is None else np.minimum(np.searchsorted(ids, token), len(ids) - 1)
    possible = at(final.live, column) & (True if ids is None else ids[column] == token)
    log_q = xp.where(possible, at(final.log_weight, column) - final.log_total[..., 0], -xp.inf)
    log_q = xp.where(forced, xp.where(token == action, 0.0, -xp.inf), log_q)
    alternatives, top_ids = largest(raw.energy, top)
    drawn = Drawn(
        token=token,
        logprob=at(raw.logits, token) - raw.log_total[..., 0],
        log_q=xp.where(appended, xp.nan, log_q),
        rank=_rank(raw.logits, token),
        support=xp.where(forced, 1, final.support),
        fallback=final.fallback,
        forced=forced & (token == action),
        top_ids=top_ids,
        top_logprobs=alternatives - raw.log_total,
    )
    return drawn, settle(wide, token, possible & ~forced & ~appended)


def _propose(operator: Operator, raw: TokenMeasure) -> tuple[TokenMeasure, TokenMeasure, np.ndarray | None]:
    """Apply an operator: (the measure over the vocabulary, the measure to draw from, the token ids of its columns).

    The two are one, and the ids None, unless this is one long row that some operator cut down, and what is left of the
    chain looks at weights alone: then that runs on the survivors only. The proposal is the same, and so is every row's
    arithmetic in whatever batch it comes, because ``step`` works on long rows one at a time.
    """
    measure, rest = raw, _in_sequence(operator)
    long = isinstance(raw.live, np.ndarray) and raw.live.shape[-1] > SMALL and raw.live.shape[0] == 1
    while rest:
        measure, rest = rest[0](measure), rest[1:]
        if long and measure.support[0] < raw.live.shape[-1] and all(isinstance(each, WEIGHTS_ONLY) for each in rest):
            ids = np.flatnonzero(measure.live[0])
            final = dataclasses.replace(
                measure,
                logits=measure.logits[:, ids],
                log_weight=measure.log_weight[:, ids],
                live=np.ones((1, len(ids)), dtype=bool),
                forced=np.full(1, NONE),
            )
            for each in rest:
                final = each(final)
            return measure, final, ids
    return measure, measure, None


def _in_sequence(operator: Any) -> tuple[Any, ...]:
    """The operators of nested chains, one after another."""
    if isinstance(operator, Chain):
        return tuple(part for each in operator.operators for part in _in_sequence(each))
    if isinstance(operator, TopH) and operator.first is not None:
        return TopK(operator.first), TopH(operator.alpha, operator.form)
    return (operator,)


def _rank(logits: Array, token: Array) -> Array:
    """[...] 1 + the tokens that the raw model puts before this one, equals in order of their ids."""
    xp, logit = namespace(logits), at(logits, token)[..., None]
    rank, equal = 1 + count(logits > logit), logits == logit
    if xp.any(count(equal) > 1):
        before = xp.arange(logits.shape[-1], device=logits.device) < token[..., None]
        rank = rank + count(equal & before)
    return rank


@cache
def _keep_freed_memory() -> None:
    """Once a process: let glibc's allocator keep freed blocks of up to 31 MiB instead of returning them to the system.

    It raises its threshold to the largest mapped block it has seen freed. Without this every temporary of a long row is
    returned and faulted in again, which doubles the time of a step.
    """
    np.empty(31 << 20, dtype=np.uint8)

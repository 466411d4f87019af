"""From a measure to a token: exact draws from keyed streams, and the record of each.

Both draws depend on a row's measure and stream alone, so neither batch, order nor resumption can change a token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ramify.arrays import Array, at, count, join_rows, largest, namespace, pick, place, take_rows, to_numpy
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
        token = column if ids is None else ids[(*rows, column)]
        noise[(*rows, column)] = gumbel(stream[tuple(rows)], position[tuple(rows)], token)
        return xp.argmax(measure.energy + xp.asarray(noise, device=measure.live.device), axis=-1)


Draw: TypeAlias = Callable[[TokenMeasure, np.ndarray | None, np.ndarray, np.ndarray], Array]
"""(measure [B, M], the token ids of its columns [B, M] or None, stream [B, 4], position [B]) -> column [B]"""


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

    if xp is np and logits.shape[-1] > SMALL and rows:
        drawn, state = _long_rows(operator, logits, side, stream, draw, given, appended, top)
    else:
        raw = TokenMeasure.of(logits, side)
        measure, position = operator(raw), to_numpy(side.length)
        chosen = _choose(measure, None, measure.forced, position, stream, draw, given)
        drawn = _record(chosen, appended, _under_model(raw.logits, raw.log_total, chosen.token, top))
        state = settle(measure, drawn.token, chosen.possible & ~chosen.forced & ~appended)
    return drawn, dataclasses.replace(side.append(drawn.token), state=state)


class _Chosen(NamedTuple):
    """The proposal's side of a draw."""

    token: Array  # [B]
    log_q: Array  # [B]
    possible: Array  # [B] whether the measure could have drawn it
    forced: Array  # [B] whether an action was to be taken
    followed: Array  # [B] whether the token is that action
    support: Array  # [B]
    fallback: Array  # [B]


def _choose(
    measure: TokenMeasure,
    ids: np.ndarray | None,
    action: Array,
    position: np.ndarray,
    stream: np.ndarray,
    draw: Draw,
    given: Array,
) -> _Chosen:
    """Draw from ``measure [B, M]``: over the vocabulary (``ids`` None) or over survivors, the tokens ``ids [B, M]``."""
    xp, rows = namespace(measure.live), np.arange(len(position))
    drawn, late = draw(measure, ids, stream, position), measure.forced
    if ids is not None:
        drawn, late = ids[rows, drawn], np.where(late == NONE, NONE, ids[rows, late])
    action = xp.where(action == NONE, late, action)
    token = xp.where(given == NONE, xp.where(action == NONE, drawn, action), given)
    forced = action != NONE
    # Ids ascend and padding repeats the last: the first column that reaches the token is the only one that may be it.
    column = token if ids is None else np.minimum(np.sum(ids < token[:, None], axis=-1), ids.shape[-1] - 1)
    possible = at(measure.live, column) & (True if ids is None else ids[rows, column] == token)
    log_q = xp.where(possible, at(measure.log_weight, column) - measure.log_total[..., 0], -xp.inf)
    return _Chosen(
        token=token,
        log_q=xp.where(forced, xp.where(token == action, 0.0, -xp.inf), log_q),
        possible=possible,
        forced=forced,
        followed=forced & (token == action),
        support=xp.where(forced, 1, measure.support),
        fallback=measure.fallback,
    )


def _under_model(logits: Array, log_total: Array, token: Array, top: int) -> tuple[Array, Array, Array, Array]:
    """The raw model's side of a draw: log p and rank of the token, and the ``top`` alternatives."""
    alternatives, ids = largest(logits, top)
    return at(logits, token) - log_total[..., 0], _rank(logits, token), ids, alternatives - log_total


def _record(chosen: _Chosen, appended: Array, model: tuple[Array, Array, Array, Array]) -> Drawn:
    logprob, rank, top_ids, top_logprobs = model
    return Drawn(
        token=chosen.token,
        logprob=logprob,
        log_q=namespace(appended).where(appended, namespace(appended).nan, chosen.log_q),
        rank=rank,
        support=chosen.support,
        fallback=chosen.fallback,
        forced=chosen.followed,
        top_ids=top_ids,
        top_logprobs=top_logprobs,
    )


# ------------------------------------------------------------------------------------- long rows: a large vocabulary


class _Cut(NamedTuple):
    """A long row that a gate has cut down, with what is left to do on its survivors."""

    row: int
    rest: tuple[Any, ...]  # operators that look at weights alone
    ids: np.ndarray  # [M]
    log_weight: np.ndarray  # [M]
    forced: np.ndarray  # [1]
    fallback: np.ndarray  # [1]
    log_total: np.ndarray  # [1, 1] of the raw model
    measure: TokenMeasure | None  # [1, V] as the gate left it, where a state waits for the token


def _long_rows(
    operator: Operator,
    logits: np.ndarray,
    side: Side,
    stream: np.ndarray,
    draw: Draw,
    given: np.ndarray,
    appended: np.ndarray,
    top: int,
) -> tuple[Drawn, dict[Any, Any]]:
    """Decode a row at a time, so that a row and its temporaries stay in a core's cache, until a gate has cut it down.

    Once the rest of the chain looks at weights alone it runs on the survivors, padded to a power of two, many rows
    together. Which width that is depends on the row and not on its company, so neither does a single bit of the result.
    """
    _keep_freed_memory()
    parts, position = _in_sequence(operator), side.length
    done: list[tuple[list[int], Drawn, dict[Any, Any]]] = []
    waiting: dict[tuple[int, int], list[_Cut]] = {}

    def finish(cuts: list[_Cut], width: int) -> None:
        rows, action = [cut.row for cut in cuts], np.concatenate([cut.forced for cut in cuts])
        measure, ids = _together(cuts, width)
        for each in cuts[0].rest:
            measure = each(measure)
        chosen = _choose(measure, ids, action, position[rows], stream[rows], draw, given[rows])
        settled = chosen.possible & ~chosen.forced & ~appended[rows]
        model, states = [], []
        for i, cut in enumerate(cuts):
            token = chosen.token[i : i + 1]
            model.append(_under_model(logits[cut.row : cut.row + 1], cut.log_total, token, top))
            if cut.measure is not None:
                states.append(settle(cut.measure, token, settled[i : i + 1]))
        state = join_rows(states) if states else take_rows(dict(side.state), rows)
        done.append((rows, _record(chosen, appended[rows], join_rows(model)), state))

    for row in range(len(logits)):
        mine = slice(row, row + 1)
        raw = TokenMeasure.of(logits[mine], side.rows(mine))
        cut = _cut(row, parts, raw)
        if isinstance(cut, TokenMeasure):  # nothing went: drawn from as it stands
            chosen = _choose(cut, None, cut.forced, position[mine], stream[mine], draw, given[mine])
            drawn = _record(chosen, appended[mine], _under_model(logits[mine], raw.log_total, chosen.token, top))
            done.append(([row], drawn, settle(cut, drawn.token, chosen.possible & ~chosen.forced & ~appended[mine])))
        elif len(cut.ids) > SMALL:  # still long: alone, and without padding
            finish([cut], len(cut.ids))
        else:
            waiting.setdefault((len(cut.rest), _width(len(cut.ids))), []).append(cut)
    for (_, width), cuts in waiting.items():
        finish(cuts, width)
    order = np.argsort([row for rows, _, _ in done for row in rows])
    drawn = Drawn(*take_rows(join_rows([tuple(each) for _, each, _ in done]), order))
    return drawn, take_rows(join_rows([state for _, _, state in done]), order)


def _cut(row: int, parts: tuple[Any, ...], raw: TokenMeasure) -> TokenMeasure | _Cut:
    """Apply operators to one long row until tokens have gone and only weights matter to the rest."""
    measure, rest = raw, parts
    while rest:
        measure, rest = rest[0](measure), rest[1:]
        if measure.support[0] < raw.live.shape[-1] and all(isinstance(each, WEIGHTS_ONLY) for each in rest):
            ids = np.flatnonzero(measure.live[0])
            weights, state = measure.log_weight[0, ids], measure if measure.stakes else None
            return _Cut(row, rest, ids, weights, measure.forced, measure.fallback, raw.log_total, state)
    return measure


def _together(cuts: list[_Cut], width: int) -> tuple[TokenMeasure, np.ndarray]:
    """The survivors of several rows as one measure ``[B, width]``, and their token ids."""
    log_weight = np.zeros((len(cuts), width), dtype=cuts[0].log_weight.dtype)
    ids, live = np.empty(log_weight.shape, dtype=np.int64), np.zeros(log_weight.shape, dtype=bool)
    for i, cut in enumerate(cuts):
        count = len(cut.ids)
        log_weight[i, :count], live[i, :count] = cut.log_weight, True
        ids[i, :count], ids[i, count:] = cut.ids, cut.ids[-1]
    forced, fallback = np.full(len(cuts), NONE), np.concatenate([cut.fallback for cut in cuts])
    # Operators on weights alone never look at logits or side; only their shapes have to fit.
    return TokenMeasure(log_weight, log_weight, live, forced, fallback, Side(ids[:, :0], ids[:, :0])), ids


def _width(count: int) -> int:
    """The power of two, at least 64, that so many survivors are padded to."""
    return max(64, 1 << (count - 1).bit_length())


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

"""A model and a decoder as a ``Sampler``: the token loop, written once for every model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from ramify.arrays import join_rows, to_numpy
from ramify.decode.draw import Draw, Drawn, InverseCDF, step
from ramify.decode.measure import NONE, Operator, Side
from ramify.errors import require
from ramify.keys import streams
from ramify.types import APPENDED, FORCED, SAMPLED, Leaf, Model, Request, Sampler, Top

__all__ = ["LocalSampler", "decode_with"]


def decode_with(model: Model[Any], operator: Operator, *, draw: Draw = InverseCDF(), batch: int = 64) -> Sampler:
    """A sampler that runs ``model`` under a decoder. Leaves come as they finish; each depends on its key alone.

    >>> from ramify.decode import Chain, Temperature
    >>> from ramify.models import Tabular
    >>> from ramify.types import Key
    >>> coin = Tabular(("h", "t", "."), (((), (0.5, 0.3, 0.2)),), eos=2)
    >>> [leaf] = decode_with(coin, Chain(Temperature(0.7)))([Request(Key("run", "q", 0), prompt=(), cap=8)])
    >>> leaf.text, leaf.ended
    ('h h h h .', 'eos')
    """
    return LocalSampler(model, operator, draw, batch)


@dataclasses.dataclass(frozen=True)
class _Row:
    """A trajectory under way: its request and what was drawn for it so far."""

    request: Request
    drawn: list[Drawn]


@dataclasses.dataclass(frozen=True)
class LocalSampler:
    """The token loop with continuous batching: finished rows leave the batch and waiting requests take their place."""

    model: Model[Any]
    operator: Operator
    draw: Draw = InverseCDF()
    batch: int = 64

    def __post_init__(self) -> None:
        require(self.batch >= 1, "batch", self.batch, "use a number of rows >= 1")

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        waiting = iter(requests)
        rows: list[_Row] = []
        state, side, stream = None, None, np.empty((0, 4), dtype=np.uint32)
        while True:
            fresh = list(islice(waiting, self.batch - len(rows)))
            if fresh:
                state, side, stream = self._admit(state, side, stream, fresh)
                rows += [_Row(request, []) for request in fresh]
            if not rows:
                return
            assert side is not None
            going = [i for i, row in enumerate(rows) if not self._ended(row)]
            yield from (self._leaf(row) for row in rows if self._ended(row))
            if len(going) < len(rows):
                rows = [rows[i] for i in going]
                state, side, stream = self.model.select([state], going), side.rows(going).trimmed(), stream[going]
                continue
            given, appended = self._given(rows)
            top = max(row.request.top for row in rows)
            drawn, side = step(
                self.operator,
                self.model.logits(state),
                side,
                stream,
                draw=self.draw,
                given=given,
                appended=appended,
                top=top,
            )
            state = self.model.advance(state, drawn.token)
            side, record = side.like(stream), Drawn(*map(to_numpy, drawn))
            for i, row in enumerate(rows):
                row.drawn.append(_cut(Drawn(*(field[i] for field in record)), row.request.top))

    def _admit(self, state: Any, side: Side | None, stream: np.ndarray, fresh: list[Request]) -> tuple[Any, Side, Any]:
        """Start new requests and join them to the rows under way."""
        started = self.model.start([request.prompt for request in fresh])
        new = Side.start(self.operator, [request.prompt for request in fresh])
        keys = streams(request.key for request in fresh)
        if side is None or len(stream) == 0:
            return started, new, keys
        count = len(stream) + len(fresh)
        joined = Side(
            tokens=_joined(side.tokens, new.tokens),
            prompt=_joined(side.prompt, new.prompt),
            state=join_rows([_complete(side, new), _complete(new, side)]),
        )
        return self.model.select([state, started], np.arange(count)), joined, np.concatenate([stream, keys])

    def _given(self, rows: list[_Row]) -> tuple[np.ndarray, np.ndarray]:
        """The tokens that prefixes impose at this step, and which of them are the protocol's own."""
        given, appended = np.full(len(rows), NONE), np.zeros(len(rows), dtype=bool)
        for i, row in enumerate(rows):
            position, request = len(row.drawn), row.request
            if position < len(request.prefix):
                given[i] = request.prefix[position]
                appended[i] = request.prefix_role is not None and request.prefix_role[position] == APPENDED
        return given, appended

    def _ended(self, row: _Row) -> str | None:
        position, request = len(row.drawn), row.request
        appended = request.prefix_role is not None and 0 < position <= len(request.prefix) and (
            request.prefix_role[position - 1] == APPENDED
        )  # fmt: skip
        if row.drawn and int(row.drawn[-1].token) == self.model.eos and not appended:
            return "eos"
        return "length" if position >= request.cap else None

    def _leaf(self, row: _Row) -> Leaf:
        request, drawn = row.request, row.drawn
        fields = Drawn(*(np.array([each[i] for each in drawn]) for i in range(len(Drawn._fields))))
        role = np.where(fields.forced.astype(bool), FORCED, SAMPLED)
        if request.prefix_role is not None:
            imposed = np.array(request.prefix_role, dtype=role.dtype)
            role[: len(imposed)] = np.where(imposed == APPENDED, APPENDED, role[: len(imposed)])
        tokens = fields.token.astype(np.int64)
        shape = fields.top_ids.shape if drawn else (0, request.top)
        return Leaf(
            key=request.key,
            tokens=tokens,
            role=role.astype(np.int8),
            logprob=fields.logprob,
            log_q=fields.log_q,
            rank=fields.rank,
            support=fields.support,
            fallback=fields.fallback,
            ended=self._ended(row) or "unknown",
            text=self.model.text(tokens.tolist()),
            top=Top(fields.top_ids.reshape(shape), fields.top_logprobs.reshape(shape)) if request.top else None,
        )


def _cut(drawn: Drawn, top: int) -> Drawn:
    """A row's record with the alternatives it asked for: others in the batch may have asked for more."""
    return drawn._replace(top_ids=drawn.top_ids[:top], top_logprobs=drawn.top_logprobs[:top])


def _complete(side: Side, other: Side) -> dict[Any, Any]:
    """The state of one side, with what only the other's operators keep in the value they begin with."""
    missing = {operator: operator.begin(len(side.tokens)) for operator in other.state if operator not in side.state}
    return {**side.state, **missing}


def _joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two padded histories, one below the other."""
    width = max(a.shape[-1], b.shape[-1])
    parts = [np.pad(x, ((0, 0), (0, width - x.shape[-1])), constant_values=NONE) for x in (a, b)]
    return np.concatenate(parts)

"""A model and a decoder as a ``Sampler``: the token loop, written once for every model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ramify.arrays import join_rows, to_numpy
from ramify.decode.draw import Draw, Drawn, InverseCDF, step
from ramify.decode.measure import NONE, Operator, Side
from ramify.errors import require
from ramify.keys import streams
from ramify.models.memory import Memory, Row, spelled
from ramify.stop.within import TokenHistory, TokenStop
from ramify.types import APPENDED, FORCED, SAMPLED, Leaf, Model, Request, Sampler, Top

__all__ = ["LocalSampler", "decode_with"]


def decode_with(
    model: Model[Any], operator: Operator, *, draw: Draw = InverseCDF(), batch: int = 64, workers: int = 1
) -> Sampler:
    """A sampler that runs ``model`` under a decoder. Leaves come as they finish; each depends on its key alone.

    ``workers`` is a number of processes to cut the batch over: the leaves are the same, sooner (see ``Crew``).

    >>> from ramify.decode import Chain, Temperature
    >>> from ramify.models import Tabular
    >>> from ramify.types import Key
    >>> coin = Tabular(("h", "t", "."), (((), (0.5, 0.3, 0.2)),), eos=2)
    >>> [leaf] = decode_with(coin, Chain(Temperature(0.7)))([Request(Key("run", "q", 0), prompt=(), cap=8)])
    >>> leaf.text, leaf.ended
    ('h h h h .', 'eos')
    """
    local = LocalSampler(model, operator, draw, batch)
    if workers == 1:
        return local
    from ramify.models.crew import Crew  # here, because most callers need no processes

    return Crew(local, workers)


@dataclasses.dataclass(frozen=True)
class LocalSampler:
    """The token loop with continuous batching: finished rows leave the batch and waiting requests take their place.

    With a ``memory``, a request begins at its longest stored ancestor instead of replaying its prefix, and rows that
    end are stored. The leaves are the same.
    """

    model: Model[Any]
    operator: Operator
    draw: Draw = InverseCDF()
    batch: int = 64
    memory: Memory | None = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        require(self.batch >= 1, "batch", self.batch, "use a number of rows >= 1")
        mine = self.memory is None or (self.memory.model == self.model and self.memory.operator == self.operator)
        require(mine, "LocalSampler.memory", self.memory, "give one of the same model and decoder")

    def remember(self, capacity: float) -> Memory:
        """A new memory that fits this sampler."""
        return Memory(self.model, self.operator, capacity)

    def sharing(self, memory: Memory) -> LocalSampler:
        """The same sampler over prefixes that others have drawn, if they had this model and decoder."""
        fits = (memory.model, memory.operator) == (self.model, self.operator)
        return dataclasses.replace(self, memory=memory) if fits else self

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        for leaves in self.steps(requests):
            yield from leaves

    def steps(self, requests: Iterable[Request]) -> Iterator[list[Leaf]]:
        """The leaves that ended at each step, often none. Requests are taken as rows become free."""
        waiting, tape = iter(requests), _Tape(self.batch)
        rows, state = _Rows.start(self.operator, [], range(0)), None
        while True:
            fresh = list(islice(waiting, self.batch - len(rows)))
            if not fresh and not len(rows):
                return
            if not all(request.cap for request in fresh):
                yield [self._leaf(request, tape, 0, 0, "length") for request in fresh if not request.cap]
                fresh = [request for request in fresh if request.cap]
            if fresh:
                rows, state = self._admit(rows, state, fresh, tape)
            if not len(rows):
                continue
            given, appended = rows.given()
            drawn, side = step(
                self.operator,
                self.model.logits(state),
                rows.side,
                rows.stream,
                draw=self.draw,
                given=given,
                appended=appended,
                top=max(request.top for request in rows.requests),
            )
            record = Drawn(*map(to_numpy, drawn))
            tape.write(rows.slot, rows.position, record)
            rows = dataclasses.replace(rows, position=rows.position + 1, side=side.like(rows.stream))
            over = (record.token == self.model.eos) & ~appended | (rows.position >= rows.cap)
            reasons = {i: self._reason(record, appended, i) for i in np.flatnonzero(over).tolist()}
            halted = _halted(rows, tape, record, appended)
            ends = {i: why for i, why in halted.items() if why == "stop:until"}  # at the cap it is still an end
            reasons = halted | reasons | ends | _cancelled(rows, requests)
            going, token = np.array([i for i in range(len(rows)) if i not in reasons], dtype=np.int64), drawn.token
            slots, lengths = rows.slot.tolist(), rows.position.tolist()
            leaves = [self._leaf(rows.requests[i], tape, slots[i], lengths[i], why) for i, why in reasons.items()]
            if self.memory is not None:
                self.memory.watch(int((rows.position - rows.begun).sum()), state)
                for i in reasons:
                    self._store(self.memory, rows, state, tape, i)
            yield leaves
            if going.size < len(rows):
                rows, state, token = rows.take(going), self.model.select([state], going), token[going]
            if len(rows):
                state = self.model.advance(state, token)
                if self.memory is not None:
                    self.memory.count(computed=len(rows))

    def _admit(self, rows: _Rows, state: Any, fresh: list[Request], tape: _Tape) -> tuple[_Rows, Any]:
        """Start new requests and join them to the rows under way."""
        free = sorted(set(range(self.batch)) - set(rows.slot.tolist()))[: len(fresh)]
        new = _Rows.start(self.operator, fresh, free)
        if self.memory is None:
            states = [self.model.start([request.ids for request in fresh])]
        else:
            origins = self.memory.origins(fresh)
            new, states = new.forked(origins), [origin.state for origin in origins]
            for slot, origin in zip(free, origins, strict=True):
                tape.restore(slot, origin.record)
        joined = rows.joined(new) if len(rows) else new
        if len(rows) or self.memory is not None:
            states = [self.model.select([state, *states] if len(rows) else states, np.arange(len(joined)))]
        return joined, states[0]

    def _store(self, memory: Memory, rows: _Rows, state: Any, tape: _Tape, i: int) -> None:
        """Keep row ``i``, whose last token the model has not read yet."""
        request, length = rows.requests[i], int(rows.position[i])
        record, role = tape.read(int(rows.slot[i]), length), request.prefix_role
        record = record._replace(
            top_ids=record.top_ids[:, : request.top].copy(), top_logprobs=record.top_logprobs[:, : request.top].copy()
        )
        tokens = record.token.tolist()
        name = spelled(tokens, None if role is None else (*role, *[SAMPLED] * length)[:length])
        row = Row(
            state=self.model.select([state], [i]),
            side=_own(rows.side.rows([i]), request),
            record=record,
            top=request.top,
            pending=tokens[-1],
            over=name[-1] == self.model.eos,
        )
        memory.keep(request.ids, name, row)
        memory.count(represented=len(request.prompt) + length - 1)

    def _reason(self, record: Drawn, appended: np.ndarray, row: int) -> str:
        return "eos" if int(record.token[row]) == self.model.eos and not appended[row] else "length"

    def _leaf(self, request: Request, tape: _Tape, slot: int, length: int, ended: str) -> Leaf:
        fields = tape.read(slot, length)
        role = np.where(fields.forced.astype(bool), FORCED, SAMPLED)
        if request.prefix_role is not None:
            imposed = np.array(request.prefix_role[:length], dtype=role.dtype)  # an end within it ends the leaf
            role[: len(imposed)] = np.where(imposed == APPENDED, APPENDED, role[: len(imposed)])
        tokens = fields.token.astype(np.int64)
        shape = (length, min(request.top, fields.top_ids.shape[1]) if length else request.top)
        top = (each[:, : request.top].reshape(shape) for each in (fields.top_ids, fields.top_logprobs))
        return Leaf(
            key=request.key,
            tokens=tokens,
            role=role.astype(np.int8),
            logprob=fields.logprob,
            log_q=fields.log_q,
            rank=fields.rank,
            support=fields.support,
            fallback=fields.fallback,
            ended=ended,
            text=self.model.text(tokens.tolist()),
            top=Top(*top) if request.top else None,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows:
    """Trajectories under way: what each was asked for, and how far it is."""

    requests: list[Request]
    slot: np.ndarray  # [B] where the tape keeps what was drawn for it
    position: np.ndarray  # [B] tokens so far
    cap: np.ndarray  # [B]
    stream: np.ndarray  # [B, 4]
    side: Side
    begun: np.ndarray  # [B] tokens that it was forked with

    @classmethod
    def start(cls, operator: Operator, requests: list[Request], slots: Sequence[int]) -> _Rows:
        return cls(
            requests=requests,
            slot=np.array(slots, dtype=np.int64),
            position=np.zeros(len(requests), dtype=np.int64),
            cap=np.array([request.cap for request in requests], dtype=np.int64),
            stream=streams(request.key for request in requests),
            side=Side.start(operator, [request.ids for request in requests]),
            begun=np.zeros(len(requests), dtype=np.int64),
        )

    def forked(self, origins: Sequence[Row]) -> _Rows:
        """The same requests, as far as their origins are."""
        length = np.array([origin.length for origin in origins], dtype=np.int64)
        side = _stacked([origin.side for origin in origins])
        return dataclasses.replace(self, position=length, begun=length, side=side)

    def __len__(self) -> int:
        return len(self.requests)

    def take(self, going: np.ndarray) -> _Rows:
        parts = (self.slot[going], self.position[going], self.cap[going], self.stream[going])
        requests = [self.requests[i] for i in going]
        return _Rows(requests, *parts, self.side.rows(going).trimmed(), self.begun[going])

    def joined(self, new: _Rows) -> _Rows:
        return _Rows(
            requests=self.requests + new.requests,
            slot=np.concatenate([self.slot, new.slot]),
            position=np.concatenate([self.position, new.position]),
            cap=np.concatenate([self.cap, new.cap]),
            stream=np.concatenate([self.stream, new.stream]),
            side=_stacked([self.side, new.side]),
            begun=np.concatenate([self.begun, new.begun]),
        )

    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """The tokens that prefixes impose at this step, and which of them are the protocol's own."""
        given, appended = np.full(len(self), NONE), np.zeros(len(self), dtype=bool)
        for i, (position, request) in enumerate(zip(self.position.tolist(), self.requests, strict=True)):
            if position < len(request.prefix):
                given[i] = request.prefix[position]
                appended[i] = request.prefix_role is not None and request.prefix_role[position] == APPENDED
        return given, appended


class _Tape:
    """What was drawn for the rows under way, a slot a row: written a token at a time for all of them at once."""

    DTYPES = Drawn(*(np.int64, np.float64, np.float64, np.int64, np.int64, bool, bool, np.int64, np.float64))

    def __init__(self, slots: int) -> None:
        shapes = [(slots, 0)] * 7 + [(slots, 0, 0)] * 2  # [slots, T], and [slots, T, K] for the alternatives
        self.fields = [np.empty(shape, dtype) for shape, dtype in zip(shapes, self.DTYPES, strict=True)]

    def write(self, slot: np.ndarray, position: np.ndarray, drawn: Drawn) -> None:
        """Keep the token of each row at ``position [B]`` of ``slot [B]``."""
        last = int(position.max())
        for i, each in enumerate(drawn):
            kept = each.shape[1:]
            field = self._room(i, last + 1, kept)
            if kept:
                field[slot, position, : kept[0]] = each
            else:
                field[slot, position] = each

    def restore(self, slot: int, record: Drawn) -> None:
        """Begin a slot with a record ``[t]`` of tokens."""
        length = len(record.token)
        for i, each in enumerate(record if length else ()):
            place: tuple[Any, ...] = (slot, slice(0, length), *map(slice, each.shape[1:]))
            self._room(i, length, each.shape[1:])[place] = each

    def _room(self, i: int, length: int, kept: tuple[int, ...]) -> np.ndarray:
        """A field with room for so many tokens, and alternatives to each."""
        field = self.fields[i]
        if field.shape[1] < length or field.shape[2:] < kept:
            shape = (len(field), max(2 * length + 30, field.shape[1]), *map(max, kept, field.shape[2:]))
            longer = np.zeros(shape, field.dtype)
            longer[tuple(map(slice, field.shape))] = field
            self.fields[i] = longer
        return self.fields[i]

    def read(self, slot: int, length: int, begin: int = 0) -> Drawn:
        """A copy of the first ``length`` tokens of a slot, from ``begin`` on."""
        return Drawn(*(field[slot, begin:length].copy() for field in self.fields))


def _halted(rows: _Rows, tape: _Tape, record: Drawn, appended: np.ndarray) -> dict[int, str]:
    """The rows that end by a rule of their own request, and by which."""
    found = {}
    for i, request in enumerate(rows.requests):
        if (request.until or request.stop) and (length := int(rows.position[i])) > len(request.prefix):
            if int(record.token[i]) in request.until and not appended[i]:
                found[i] = "stop:until"
            elif request.stop is not None and _stops(request, tape, int(rows.slot[i]), length):
                found[i] = f"stop:{type(request.stop).__name__}"
    return found


def _stops(request: Request, tape: _Tape, slot: int, length: int) -> bool:
    """Whether a request's token stop ends it after the token it has just drawn."""
    stop: TokenStop = request.stop  # type: ignore[assignment]
    begin = max(0, length - getattr(stop, "memory", length))
    drawn = tape.read(slot, length, begin)
    role = np.where(drawn.forced.astype(bool), FORCED, SAMPLED)
    given = (request.prefix_role or (SAMPLED,) * len(request.prefix))[begin:]
    role[: len(given)] = given
    columns = {"token": drawn.token, "role": role, "logprob": drawn.logprob, "top_logprobs": drawn.top_logprobs}
    history = TokenHistory(np.array([0, length - begin]), columns, np.array([begin]), request.key.question)
    return bool(stop(history).stop[-1])


def _cancelled(rows: _Rows, requests: object) -> dict[int, str]:
    """The rows that nobody wants any more, where the caller says so."""
    keys = getattr(requests, "cancelled", None)
    return {i: "stop:cancelled" for i, request in enumerate(rows.requests) if request.key in keys} if keys else {}


def _stacked(sides: Sequence[Side]) -> Side:
    """The rows of several sides, one below the other. What only some operators keep begins anew in the others."""
    operators = dict.fromkeys(operator for side in sides for operator in side.state)
    states = [
        {name: side.state[name] if name in side.state else name.begin(len(side.tokens)) for name in operators}
        for side in sides
    ]
    return Side(_padded([side.tokens for side in sides]), _padded([side.prompt for side in sides]), join_rows(states))


def _padded(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Padded histories ``[B, T]``, one below the other."""
    width = max(part.shape[-1] for part in parts)
    return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[-1])), constant_values=NONE) for part in parts])


def _own(side: Side, request: Request) -> Side:
    """A single row without the padding that it had among others."""
    return dataclasses.replace(side.trimmed(), prompt=side.prompt[:, : len(request.prompt)])

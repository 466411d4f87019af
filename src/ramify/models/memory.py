"""A memory of prefixes: what a search has drawn once is forked, not computed again.

A row is kept where a trajectory ended or was interrupted: the model's state, the decoder's side and the record of each
token, under the name of its tokens. A request begins at its longest stored ancestor and goes on from there, so its
leaf has the bits it would have had if the prefix had been replayed. Rows lie in a trie of tokens; a position counts
once however many rows share it, and whoever has not been asked for longest goes first when there are too many.

A memory belongs to whoever made it and is handed to a sampler: nothing outlives it, and two never meet.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from ramify.decode.draw import Drawn
from ramify.decode.measure import NONE, Operator, Side
from ramify.errors import require
from ramify.types import APPENDED, Model, Prompt, Request

__all__ = ["CAPACITY", "Memory", "Row", "Sharing", "Spot", "spelled"]

CAPACITY = 32_768  # tokens
Advance: TypeAlias = Callable[[Any, np.ndarray], Any]
"""(state of B rows, their next tokens [B]) -> the state after them: a model's own, or one that looks closer"""


@dataclasses.dataclass(frozen=True, slots=True)
class Sharing:
    """What a memory did. ``computed`` positions went through the model, where a tree without sharing has
    ``represented``: for every request and every score all of its tokens, the prompt's included."""

    computed: int = 0
    represented: int = 0
    scored: int = 0  # of the computed: by evaluators
    scored_represented: int = 0  # of the represented: by evaluators
    forks: int = 0  # requests that began at a stored row
    evictions: int = 0  # rows that went because there were too many
    peak_tokens: int = 0  # held at once, shared positions once, rows under way included
    peak_bytes: int = 0

    def plus(self, other: Sharing) -> Sharing:
        """Both, one after the other: amounts add up, a peak is a maximum."""
        both = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        names = [field.name for field in dataclasses.fields(self)]
        return Sharing(
            *(max(a, b) if name.startswith("peak") else a + b for name, (a, b) in zip(names, both, strict=True))
        )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One trajectory as far as it is: everything that it takes to go on."""

    state: Any  # one row of the model's, after all tokens but ``pending``
    side: Side  # one row, after all tokens
    record: Drawn  # [t] a token each
    top: int = 0  # alternatives that were recorded at every token
    pending: int = NONE  # a token that was drawn and that the model has not read
    over: bool = False  # it ended by the model's own end: nothing follows

    @property
    def length(self) -> int:
        return len(self.record.token)


class Spot:
    """A position in the trie: the prefix up to it, perhaps with a row."""

    __slots__ = ("__weakref__", "_up", "below", "name", "notes", "pieces", "row", "size")

    def __init__(self, up: Spot | None, name: Any, size: int) -> None:
        self._up = None if up is None else ref(up)  # no circle: rows go as soon as their memory does
        self.name, self.size = name, size
        self.below: dict[int, Spot] = {}
        self.row: Row | None = None
        self.pieces: Mapping[Hashable, int] = {}
        self.notes: dict[Hashable, np.ndarray] = {}  # what evaluators have read here

    @property
    def up(self) -> Spot | None:
        return None if self._up is None else self._up()


class Memory:
    """Rows of one model under one decoder, of at most ``capacity`` tokens together. Beyond that they are recomputed.

    >>> from ramify.decode import Temperature
    >>> from ramify.models import LocalSampler, Tabular
    >>> from ramify.types import Key
    >>> coin = Tabular(("h", "t", "."), (((), (0.5, 0.3, 0.2)),), eos=2)
    >>> memory = Memory(coin, Temperature(1.0), capacity=100)
    >>> sampler = LocalSampler(coin, Temperature(1.0), memory=memory)
    >>> [first] = sampler([Request(Key("run", "q", 0), (), cap=3)])
    >>> [leaf] = sampler([Request(Key("run", "q", 1), (), cap=6, prefix=tuple(first.tokens.tolist()))])
    >>> first.text, leaf.text, memory.sharing.forks, memory.sharing.computed, memory.sharing.represented
    ('t h h', 't h h h t .', 1, 5, 7)
    """

    def __init__(self, model: Model[Any], operator: Operator, capacity: float = CAPACITY) -> None:
        require(capacity >= 0, "Memory.capacity", capacity, "use a number of tokens >= 0 (math.inf for no bound)")
        self.model, self.operator, self.capacity = model, operator, capacity
        self.tokens, self.bytes = 0, 0  # held now
        self._counts = dict.fromkeys((field.name for field in dataclasses.fields(Sharing)), 0)
        self._roots: dict[Prompt, Spot] = {}
        self._used: OrderedDict[Spot, None] = OrderedDict()  # those with a row, an ancestor after its descendants
        self._pieces: Counter[Hashable] = Counter()

    @property
    def sharing(self) -> Sharing:
        """What it did so far."""
        return Sharing(**self._counts)

    # --------------------------------------------------------------------------------------------------------- looking

    def spot(self, prompt: Prompt, name: Sequence[int]) -> Spot | None:
        """Where a prefix lies, if anything stored has it for an ancestor."""
        spot = self._roots.get(prompt)
        for symbol in name:
            if spot is None:
                return None
            spot = spot.below.get(symbol)
        return spot

    def origins(self, requests: Sequence[Request]) -> list[Row]:
        """Where each request begins: its longest stored ancestor, or its prompt; all their tokens read."""
        spots = [self._ancestor(request) for request in requests]
        rows = {id(spot): spot.row for spot in spots if spot is not None and spot.row is not None}
        self.count(forks=sum(spot is not None for spot in spots))
        missing = [request.ids for request, spot in zip(requests, spots, strict=True) if spot is None]
        started = self._started(list(dict.fromkeys(missing)))  # others may go for these, so rows were taken before
        behind = {id(spot): spot for spot in spots if spot is not None and rows[id(spot)].pending != NONE}
        rows |= dict(zip(behind, self.caught_up([(spot, rows[i]) for i, spot in behind.items()]), strict=True))
        return [
            started[request.ids] if spot is None else rows[id(spot)]
            for request, spot in zip(requests, spots, strict=True)
        ]

    def _ancestor(self, request: Request) -> Spot | None:
        """One shorter than the cap: a leaf is made of a row that has a token to draw or to replay."""
        spot, found = self._roots.get(request.ids), None
        for depth, symbol in enumerate((*spelled(request.prefix, request.prefix_role), None)):
            if spot is None or depth >= request.cap:
                break
            if spot.row is not None and not spot.row.over and spot.row.top >= request.top:
                found = spot
            spot = None if symbol is None else spot.below.get(symbol)
        if found is not None:
            self._touch(found)
        return found

    def _started(self, prompts: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], Row]:
        if not prompts:
            return {}
        state, side = self.model.start(prompts), Side.start(self.operator, prompts)
        self.count(computed=sum(map(len, prompts)))
        found = {}
        for i, prompt in enumerate(prompts):
            mine = dataclasses.replace(side.rows([i]), prompt=np.array([prompt], dtype=np.int64).reshape(1, -1))
            found[prompt] = Row(self.model.select([state], [i]), mine, nothing(), top=2**31)
            self.keep(prompt, (), found[prompt])
        return found

    def caught_up(self, rows: Sequence[tuple[Spot, Row]], advance: Advance | None = None) -> list[Row]:
        """These rows with their last token read, all at once, by the model's ``advance`` or one that sees more."""
        if not rows:
            return []
        state = self.model.select([row.state for _, row in rows], np.arange(len(rows)))
        state = (advance or self.model.advance)(state, np.array([row.pending for _, row in rows]))
        self.count(computed=len(rows))
        found = []
        for i, (spot, row) in enumerate(rows):
            found.append(dataclasses.replace(row, state=self.model.select([state], [i]), pending=NONE))
            if spot.row is row:  # it may have had to go meanwhile
                self._put(spot, found[-1])
        return found

    # --------------------------------------------------------------------------------------------------------- keeping

    def keep(self, prompt: tuple[int, ...], name: Sequence[int], row: Row) -> None:
        """Store a row, unless there is one that says at least as much. Others go if there is no room."""
        if len(prompt) + len(name) > self.capacity:
            return
        spot = self._roots.get(prompt)
        if spot is None:
            spot = self._roots[prompt] = self._grown(None, prompt, len(prompt))
        for symbol in name:
            below = spot.below.get(symbol)
            if below is None:
                below = spot.below[symbol] = self._grown(spot, symbol, 1)
            spot = below
        if spot.row is None or spot.row.top < row.top:
            self._put(spot, row)
        self._touch(spot)
        while self.tokens > self.capacity:
            self._remove(next(iter(self._used)))
            self.count(evictions=1)

    def note(self, spot: Spot, key: Hashable, value: np.ndarray) -> None:
        """Leave something at a spot that stays as long as the spot does."""
        self.bytes += value.nbytes if key not in spot.notes else 0
        spot.notes[key] = value

    def drop(self, prompt: Prompt, name: Sequence[int]) -> None:
        """Let a row go that nobody will ask for again."""
        spot = self.spot(prompt, name)
        if spot is not None and spot.row is not None:
            self._remove(spot)

    def count(self, **amounts: int) -> None:
        """Add to the counts."""
        for name, amount in amounts.items():
            self._counts[name] += amount

    def watch(self, tokens: int, state: Any) -> None:
        """Take notice of rows under way, with so many tokens that are theirs alone."""
        if self.tokens + tokens > self._counts["peak_tokens"]:
            others = sum(size for piece, size in footprint(self.model, state).items() if piece not in self._pieces)
            self._counts["peak_tokens"] = self.tokens + tokens
            self._counts["peak_bytes"] = max(self._counts["peak_bytes"], self.bytes + others)

    def _grown(self, up: Spot | None, name: Any, size: int) -> Spot:
        self.tokens += size
        return Spot(up, name, size)

    def _put(self, spot: Spot, row: Row | None) -> None:
        """Have a spot hold this row and nothing else."""
        pieces: Mapping[Hashable, int] = {} if row is None else footprint(self.model, row)
        for piece, size in pieces.items():
            self._pieces[piece] += 1
            self.bytes += size if self._pieces[piece] == 1 else 0
        for piece, size in spot.pieces.items():
            self._pieces[piece] -= 1
            if not self._pieces[piece]:
                del self._pieces[piece]
                self.bytes -= size
        spot.row, spot.pieces = row, pieces

    def _touch(self, spot: Spot) -> None:
        """An ancestor is used whenever a descendant is, so that whoever goes first has none."""
        for each in _upwards(spot):
            if each.row is not None:
                self._used[each] = None
                self._used.move_to_end(each)

    def _remove(self, spot: Spot) -> None:
        self._put(spot, None)
        self._used.pop(spot, None)
        for each in list(_upwards(spot)):
            if each.row is not None or each.below:
                return
            self.tokens -= each.size
            self.bytes -= sum(note.nbytes for note in each.notes.values())
            up = each.up
            del (self._roots if up is None else up.below)[each.name]


def spelled(tokens: Sequence[int], role: Sequence[int] | None) -> tuple[int, ...]:
    """The name of a prefix: its tokens, with the protocol's own words (which no state follows) told apart."""
    if role is None or APPENDED not in role:
        return tuple(tokens)
    return tuple(~token if each == APPENDED else token for token, each in zip(tokens, role, strict=True))


def nothing() -> Drawn:
    """The record of no token."""
    shapes = [(0,)] * 7 + [(0, 0)] * 2
    dtypes = (np.int64, np.float64, np.float64, np.int64, np.int64, bool, bool, np.int64, np.float64)
    return Drawn(*(np.empty(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)))


def footprint(model: Any, value: Any) -> dict[Hashable, int]:
    """The pieces of memory that a value keeps alive, in bytes; pieces that several share have one name.

    A model whose states share memory says so by a method ``footprint(state)``; of anything else arrays are counted.
    """
    if isinstance(value, Row):
        return {**footprint(model, value.state), **dict(_arrays((value.side, value.record)))}
    own: Callable[[Any], dict[Hashable, int]] | None = getattr(model, "footprint", None)
    return own(value) if own is not None else dict(_arrays(value))


def _arrays(value: Any) -> Iterator[tuple[Hashable, int]]:
    """Every array inside a value, by its identity, and its size."""
    if isinstance(getattr(value, "nbytes", None), int):
        yield id(value), value.nbytes
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _arrays([getattr(value, field.name) for field in dataclasses.fields(value)])
    elif isinstance(value, Mapping):
        yield from _arrays(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _arrays(each)


def _upwards(spot: Spot) -> Iterator[Spot]:
    each: Spot | None = spot
    while each is not None:
        yield each
        each = each.up

"""Prefix evaluators S(z) by the heads of a checkpoint, at ends of lines.

Each can read in two ways, with the same bits:

- as **a model of its own**: prompt and prefix are read anew for every score, and charged;
- **shared**: off the states that the proposal itself has computed, where the proposal is the checkpoint that the heads
  belong to. What is charged is the positions that are read for the score: one an end of a line that the parent of the
  prefix did not have. The token that ends a step has not been through the model when it is scored, so that is a
  position computed, and whoever goes on from there finds it done.

A shared reading that finds its row gone (there was no room) reads everything again. That is counted by the memory and
not charged: the price of a search depends on its tree, not on who else was in the cache.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache, partial
from typing import ClassVar, NamedTuple

import numpy as np

from ramify.bank import Signal
from ramify.decode.measure import NONE
from ramify.describe import method
from ramify.errors import InvalidValue
from ramify.evidence.reduce import Minimum, Reduction
from ramify.ledger import Work
from ramify.models.memory import Memory, Row, Spot, spelled
from ramify.models.pocket.heads import line_ends, middle_of, read_features, scores
from ramify.models.pocket.model import Pocket, State, engine_of
from ramify.search.evaluate import Evaluator
from ramify.types import Prefix

__all__ = ["FinishedHead", "ProcessHead", "ValueHead"]


@method
class ValueHead:
    """S(z): the checkpoint's own estimate that a prefix will end in a right answer, at its last complete line.

    The cost is the tokens read: prompt and prefix, or one if ``shared``.
    """

    name: str
    shared: bool = False

    head: ClassVar[str] = "value"

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        return _alone(self, prefixes)

    def ends(self, _: int, sequence: Sequence[int]) -> np.ndarray:
        """Where the head is read, after so many tokens of a prompt."""
        return line_ends(self.name, sequence)[-1:]

    def reduced(self, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """One score a prefix from those at its ends."""
        return _last(values, offsets)

    def worst(self, prompt: int, tokens: int) -> Work:
        """What a prefix of so many tokens can cost to read: a search asks before it grows one."""
        return _reads(1 if self.shared else prompt + tokens)

    def sharing(self, memory: Memory | None) -> Evaluator:
        return _shared(self, memory)


@method
class ProcessHead:
    """S(z): the checkpoint's estimates that the steps of a prefix are right, one a line, reduced to one number.

    ``reduce`` is ``Minimum()``, ``Final()``, ``Mean()``, ``Total()`` or ``LogProduct()``. A prefix without a line has
    no score. The cost is the tokens read: prompt and prefix, or one a new line if ``shared``.
    """

    name: str
    reduce: Reduction = Minimum()
    shared: bool = False

    head: ClassVar[str] = "process"

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        return _alone(self, prefixes)

    def ends(self, prompt: int, sequence: Sequence[int]) -> np.ndarray:
        found = line_ends(self.name, sequence)
        return found[found > prompt]

    def reduced(self, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        return np.asarray(self.reduce(values, offsets))

    def worst(self, prompt: int, tokens: int) -> Work:
        return _reads(tokens if self.shared else prompt + tokens)

    def sharing(self, memory: Memory | None) -> Evaluator:
        return _shared(self, memory)


@method
class FinishedHead:
    """S(z) of a trajectory that has ended: the checkpoint's estimate that its answer is right. NaN for others.

    With ``Staged(ValueHead(...), FinishedHead(...))`` one head guides a search and the other chooses among its leaves.
    """

    name: str
    shared: bool = False

    head: ClassVar[str] = "outcome"

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        return _alone(self, prefixes)

    def ends(self, prompt: int, sequence: Sequence[int]) -> np.ndarray:
        over = len(sequence) > prompt and sequence[-1] == Pocket(self.name).eos
        return line_ends(self.name, sequence)[-1:] if over else np.empty(0, np.int64)

    def reduced(self, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        return _last(values, offsets)

    def worst(self, prompt: int, tokens: int) -> Work:
        return _reads(1 if self.shared else prompt + tokens)

    def sharing(self, memory: Memory | None) -> Evaluator:
        return _shared(self, memory)


Head = ValueHead | ProcessHead | FinishedHead


# ------------------------------------------------------------------------------------------------ a model of its own


def _alone(head: Head, prefixes: Sequence[Prefix]) -> Signal:
    wanted = _wanted(head, prefixes)
    features, cost = read_features(head.name, [each.sequence for each in wanted], [each.ends for each in wanted])
    return Signal(_values(head, features), cost)


class _Wanted(NamedTuple):
    """What a prefix is to be read at."""

    prompt: tuple[int, ...]
    prefix: Prefix
    ends: np.ndarray  # tokens up to each, the prompt's included

    @property
    def sequence(self) -> tuple[int, ...]:
        return (*self.prompt, *self.prefix.tokens)

    @property
    def new(self) -> int:
        """Ends that the parent did not have."""
        seen = self.prefix.seen
        return int((self.ends > len(self.prompt) + seen).sum()) if seen else len(self.ends)


def _wanted(head: Head, prefixes: Sequence[Prefix]) -> list[_Wanted]:
    encode = cache(Pocket(head.name).encode)
    prompts = [encode(z.question.prompt) for z in prefixes]
    return [
        _Wanted(prompt, z, head.ends(len(prompt), (*prompt, *z.tokens)))
        for prompt, z in zip(prompts, prefixes, strict=True)
    ]


def _values(head: Head, features: Sequence[np.ndarray]) -> np.ndarray:
    if not features:
        return np.empty(0)
    offsets = np.cumsum([0, *map(len, features)])
    return np.asarray(head.reduced(scores(head.name, head.head, np.concatenate(features)), offsets))


def _last(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    some, out = np.diff(offsets) > 0, np.full(len(offsets) - 1, np.nan)
    out[some] = values[offsets[1:][some] - 1]
    return out


def _reads(tokens: int) -> Work:
    return Work(generated=tokens, evaluator_tokens=tokens)


# ---------------------------------------------------------------------------------------- off the proposal's states


def _shared(head: Head, memory: Memory | None) -> Evaluator:
    if not head.shared:
        return head
    if memory is not None and memory.model == Pocket(head.name):
        return _Shared(head, memory)
    remedy = f"draw from {Pocket(head.name)!r} by a local sampler with a memory, or use shared=False"
    raise InvalidValue(f"{type(head).__name__}.shared = True: {remedy}")


@dataclasses.dataclass(frozen=True, eq=False)
class _Shared:
    """A head over the rows of a memory."""

    of: Head
    memory: Memory

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        wanted = _wanted(self.of, prefixes)
        whole = sum(int(each.ends[-1]) for each in wanted if each.ends.size)
        self.memory.count(represented=whole, scored_represented=whole)
        features = _Reading(self.of.name, self.memory)(wanted)
        return Signal(_values(self.of, features), np.array([each.new for each in wanted], np.int64))

    def worst(self, prompt: int, tokens: int) -> Work:
        return self.of.worst(prompt, tokens)


class _Place(NamedTuple):
    """A position to read, in a row that is there."""

    spot: Spot  # of the position
    end: int
    holder: Spot
    row: Row
    token: int


class _Reading:
    """Features at ends of lines, from what a memory has and from as few positions as it takes."""

    def __init__(self, name: str, memory: Memory) -> None:
        self.name, self.memory, self.engine, self.middle = name, memory, engine_of(Pocket(name)), middle_of(name)

    def __call__(self, wanted: Sequence[_Wanted]) -> list[np.ndarray]:
        places: dict[tuple[int, int], _Place] = {}
        lost: list[_Wanted] = []
        for each in wanted:
            found = self.places(each)
            lost += [each] if found is None else []
            places.update({(id(place.spot), place.end): place for place in found or ()})
        behind = [place for place in places.values() if self.is_pending(place)]
        self.catch_up(list({id(place.holder): place for place in behind}.values()))
        self.look_again([place for place in places.values() if not self.is_pending(place)])
        gone = {id(each): features for each, features in zip(lost, self.read_all(lost), strict=True)}
        return [gone[id(each)] if id(each) in gone else self.noted(each) for each in wanted]

    def spot(self, each: _Wanted, end: int) -> Spot | None:
        name = spelled(each.prefix.tokens, each.prefix.role)
        return self.memory.spot(each.prompt, name[: max(0, end - len(each.prompt))])

    def places(self, each: _Wanted) -> list[_Place] | None:
        """What has to be read for a prefix; None if the memory does not have its row."""
        holder = self.spot(each, len(each.sequence))
        if holder is None or (holder.row is None and each.ends.size):
            return None
        found = []
        for end in each.ends.tolist():
            spot = self.spot(each, end)
            assert spot is not None, "every position of a stored row is in the trie"
            if end not in spot.notes:
                assert holder.row is not None
                found.append(_Place(spot, end, holder, holder.row, each.sequence[end - 1]))
        return found

    def is_pending(self, place: _Place) -> bool:
        """Whether the model has not read that position yet."""
        return place.spot is place.holder and place.row.pending != NONE

    def catch_up(self, places: Sequence[_Place]) -> None:
        """Read the last tokens of rows, which their children will find read."""

        def advance(state: State, tokens: np.ndarray) -> State:
            with self.engine.lock:
                after, features = self.engine.look(state, tokens, self.middle)
            for place, each in zip(places, features, strict=True):
                self.memory.note(place.spot, place.end, each.copy())
            return after

        self.memory.caught_up([(place.holder, place.row) for place in places], advance)
        self.memory.count(scored=len(places))

    def look_again(self, places: Sequence[_Place]) -> None:
        """Read positions once more whose keys and values are in the cache: they are written as they are."""
        if not places:
            return
        states = [place.row.state for place in places]
        width = max(state.table.shape[1] for state in states)
        table = np.concatenate(
            [np.pad(state.table, [(0, 0), (0, width - state.table.shape[1])], constant_values=-1) for state in states]
        )
        token, end = np.array([place.token for place in places]), np.array([place.end for place in places])
        network = self.engine.network
        output = partial(network.features, middle=self.middle)
        with self.engine.lock:
            features = self.engine.at(token, end - 1, table, output, 2 * network.config.width)
        for place, each in zip(places, features, strict=True):
            self.memory.note(place.spot, place.end, each.copy())
        self.memory.count(computed=len(places), scored=len(places))

    def read_all(self, lost: Sequence[_Wanted]) -> list[np.ndarray]:
        features, cost = read_features(self.name, [each.sequence for each in lost], [each.ends for each in lost])
        read = sum({each.sequence: int(tokens) for each, tokens in zip(lost, cost, strict=True)}.values())
        self.memory.count(computed=read, scored=read)
        return features

    def noted(self, each: _Wanted) -> np.ndarray:
        if not each.ends.size:
            return np.empty((0, 2 * self.engine.network.config.width), np.float32)
        spots = [self.spot(each, end) for end in each.ends.tolist()]
        return np.stack([spot.notes[end] for spot, end in zip(spots, each.ends.tolist(), strict=True) if spot])

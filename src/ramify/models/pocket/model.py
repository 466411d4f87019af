"""``Pocket``: the embedded reasoner as a value, and its state as a record of arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from threading import RLock
from typing import Any, TypeAlias

import numpy as np

from ramify.describe import method
from ramify.errors import InvalidValue, require
from ramify.models.pocket.cache import BLOCK, Lease, Pool
from ramify.models.pocket.checkpoint import Config, Vocabulary, read_config, read_vocabulary
from ramify.models.pocket.cores import cores, in_parallel, single_threaded
from ramify.models.pocket.network import Network, load_network

__all__ = ["DATA", "Pocket", "State", "engine_of"]

DATA = Path(__file__).parents[2] / "data" / "pocket"  # the checkpoints that come with the package
PREFILL = 256  # prompt tokens read at a time
FEWEST = 16  # rows worth a core of their own


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Trajectories read so far, a row each. A value: whatever is made of it, its rows stay as they are."""

    scores: np.ndarray  # [B, V] the logits of the next token
    length: np.ndarray  # [B] tokens read
    table: np.ndarray  # [B, C] the row's blocks of the cache, -1 is none
    lease: Lease = field(repr=False)  # keeps those blocks


@method
class Pocket:
    """A small Llama-layout decoder in NumPy: ``name`` is a checkpoint of the package or a folder.

    A row's logits are the same bits alone, in any batch, in any order, after a fork, and whether its tokens
    were read at once or one by one. ``precision`` is "float32", or "float64" for audits. ``kernel="numba"`` has
    attention compiled (``pip install 'ramify[fast]'``): faster, with bits of its own and the same promise about them.
    """

    name: str
    precision: str = "float32"
    kernel: str = "numpy"

    def __post_init__(self) -> None:
        require(self.name, "Pocket.name", self.name, "give a checkpoint's name or folder")
        known = self.precision in ("float32", "float64")
        require(known, "Pocket.precision", self.precision, "use 'float32' or 'float64'")
        require(self.kernel in ("numpy", "numba"), "Pocket.kernel", self.kernel, "use 'numpy' or 'numba'")

    @property
    def eos(self) -> int:
        """The token that ends a trajectory."""
        return _config(self).eos

    @property
    def context(self) -> int:
        """The most tokens a trajectory may have, prompt included."""
        return _config(self).context

    @property
    def folder(self) -> Path:
        """Where the checkpoint lies."""
        for folder in (DATA / self.name, Path(self.name)):
            if (folder / "config.json").is_file():
                return folder
        here = sorted(folder.parent.name for folder in DATA.glob("*/config.json"))
        raise InvalidValue(f"Pocket.name = {self.name!r}: use a folder with a config.json, or one of {here}")

    def start(self, prompts: Sequence[Sequence[int]]) -> State:
        """The state after reading each prompt, a row a prompt. Blocks that prompts share are read once."""
        engine = engine_of(self)
        given = [tuple(int(token) for token in prompt) for prompt in prompts]
        distinct = list(dict.fromkeys(given))
        for prompt in distinct:
            fits = 0 < len(prompt) <= self.context
            require(fits, "len(prompt)", len(prompt), f"use 1 to {self.context} tokens")
            engine.check(min(prompt), max(prompt))
        with engine.lock:
            read = engine.prefill(distinct)
            row = {prompt: i for i, prompt in enumerate(distinct)}
            return engine.select([read], [row[prompt] for prompt in given])

    def logits(self, state: State) -> np.ndarray:
        """Next-token logits ``[B, V]``."""
        return state.scores

    def advance(self, state: State, tokens: Any) -> State:
        """The state after appending ``tokens [B]``."""
        engine, token = engine_of(self), np.asarray(tokens, np.int64)
        longest = int(state.length.max(initial=0))
        require(token.shape == state.length.shape, "shape", token.shape, f"give {state.length.size} tokens")
        require(longest < self.context, "length", longest, "the context is full: stop before")
        engine.check(int(token.min(initial=0)), int(token.max(initial=0)))
        with engine.lock:
            return engine.advance(state, token)

    def select(self, states: Sequence[State], rows: Any) -> State:
        """The given rows of several states, counted through them: fork, prune and merge in one call."""
        engine = engine_of(self)
        with engine.lock:
            return engine.select(states, rows)

    def footprint(self, state: State) -> dict[Hashable, int]:
        """The memory that a state keeps alive, in bytes: its blocks by number, which other states may share."""
        size = engine_of(self).pool.block_bytes
        blocks = np.unique(state.table[state.table >= 0]).tolist()
        return {**{("block", block): size for block in blocks}, id(state): state.scores.nbytes + state.table.nbytes}

    def text(self, tokens: Sequence[int]) -> str:
        """The string that these tokens spell."""
        return _vocabulary(self).decode([int(token) for token in tokens])

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens that spell a string."""
        return _vocabulary(self).encode(text)


Output: TypeAlias = Callable[[Pool, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(pool, token [R], position [R], table [R, C], which are wanted [W]) -> [W, ...]: ``Network.forward`` is one"""


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """A network and its cache. Their one mutable part, the pool, is only touched under the lock."""

    network: Network
    pool: Pool
    lock: RLock  # type: ignore[valid-type, unused-ignore]

    def check(self, low: int, high: int) -> None:
        size = self.network.config.vocabulary
        require(low >= 0 and high < size, "token", (low, high), f"use ids from 0 to {size - 1}")

    def prefill(self, prompts: Sequence[tuple[int, ...]]) -> State:
        ends = [np.arange(1, len(prompt) + 1) == len(prompt) for prompt in prompts]
        scores, table, lease = self.read(prompts, ends, self.network.forward, self.network.config.vocabulary)
        return State(scores, np.array([len(prompt) for prompt in prompts], np.int64), table, lease)

    def read(
        self, prompts: Sequence[tuple[int, ...]], marks: Sequence[np.ndarray], output: Output, width: int
    ) -> tuple[np.ndarray, np.ndarray, Lease]:
        """Read distinct prompts: the ``output [M, width]`` of marked tokens, row by row, and where the rows lie.

        Blocks that prompts share are read once. A marked token is always read: in a known block it writes what is
        there.
        """
        table, fresh = self._allocate(prompts)
        lease = self.pool.lease(table)
        keep = [np.repeat(new, BLOCK)[: mark.size] | mark for new, mark in zip(fresh, marks, strict=True)]
        first = np.cumsum([0, *(mark.sum() for mark in marks)])
        found = np.empty((first[-1], width), self.network.embed.dtype)

        def work(part: np.ndarray) -> None:
            row = np.repeat(part, [keep[i].sum() for i in part])
            position = np.concatenate([np.flatnonzero(keep[i]) for i in part])
            token = np.concatenate([np.array(prompts[i])[keep[i]] for i in part])
            marked = np.concatenate([marks[i][keep[i]] for i in part])
            place = np.concatenate([np.arange(first[i], first[i + 1]) for i in part])
            for low in range(0, token.size, PREFILL):
                cut = slice(low, low + PREFILL)
                wanted = np.flatnonzero(marked[cut])
                here, place = place[: wanted.size], place[wanted.size :]
                found[here] = output(self.pool, token[cut], position[cut], table[row[cut]], wanted)

        with single_threaded():
            in_parallel(work, _families(table, np.array([each.sum() for each in keep], np.int64)))
        return found, table, lease

    def _allocate(self, prompts: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, list[np.ndarray]]:
        """A table of blocks ``[B, C]``, and for each prompt which of them it is the first to use."""
        ends = [range(BLOCK, len(prompt) + BLOCK, BLOCK) for prompt in prompts]
        names = [[prompt[:end] for end in each] for prompt, each in zip(prompts, ends, strict=True)]
        distinct = list(dict.fromkeys(name for row in names for name in row))
        block = dict(zip(distinct, self.pool.take(len(distinct)).tolist(), strict=True))
        table = np.full((len(prompts), max(map(len, names), default=0)), -1)
        fresh, seen = [], set[tuple[int, ...]]()
        for i, row in enumerate(names):
            table[i, : len(row)] = [block[name] for name in row]
            fresh.append(np.array([name not in seen for name in row]))
            seen.update(row)
        for name, i in block.items():
            self.pool.written[i] = (len(name) - 1) % BLOCK + 1
        return table, fresh

    def advance(self, state: State, token: np.ndarray) -> State:
        table, changed = self.pool.extend(state.table, state.length)
        lease = self.pool.lease(table) if changed else state.lease
        scores = self.at(token, state.length, table, self.network.forward, state.scores.shape[1])
        return State(scores, state.length + 1, table, lease)

    def look(self, state: State, token: np.ndarray, middle: int) -> tuple[State, np.ndarray]:
        """``advance``, and the features ``[B, 2 D]`` of these tokens with it."""
        table, changed = self.pool.extend(state.table, state.length)
        lease = self.pool.lease(table) if changed else state.lease
        size, width = state.scores.shape[1], 2 * self.network.config.width
        found = self.at(token, state.length, table, partial(self.network.both, middle=middle), size + width)
        scores = np.ascontiguousarray(found[:, :size])
        return State(scores, state.length + 1, table, lease), np.ascontiguousarray(found[:, size:])

    def at(self, token: np.ndarray, position: np.ndarray, table: np.ndarray, output: Output, width: int) -> np.ndarray:
        """Read ``token [R]`` at ``position [R]`` of the rows of ``table [R, C]``, where each may write: ``[R, width]``.

        A position that was read before gets what is there.
        """
        found = np.empty((token.size, width), self.network.embed.dtype)

        def read(part: np.ndarray) -> None:
            found[part] = output(self.pool, token[part], position[part], table[part], np.arange(part.size))

        count = max(1, min(cores(), token.size // FEWEST))
        with single_threaded():
            in_parallel(read, np.array_split(np.arange(token.size), count) if token.size else ())
        return found

    def select(self, states: Sequence[State], rows: Any) -> State:
        width = max(state.table.shape[1] for state in states)
        tables = [_wider(state.table, width) for state in states]
        row = np.arange(sum(map(len, tables)))[rows]
        length = np.concatenate([state.length for state in states])[row]
        table = np.concatenate(tables)[row, : -(-int(length.max(initial=0)) // BLOCK)]
        scores = np.concatenate([state.scores for state in states])[row]
        return State(scores, length, table, self.pool.lease(table))


def _families(table: np.ndarray, work: np.ndarray) -> list[np.ndarray]:
    """Rows cut into a part a core, alike in ``work [B]``; those sharing their first block stay together."""
    if len(table) == 0:
        return []
    _, first, member = np.unique(table[:, 0], return_index=True, return_inverse=True)
    order = np.argsort(first[member], kind="stable")
    family = first[member][order]
    begins = (np.cumsum(work[order]) - work[order])[np.searchsorted(family, family)]  # work before the family
    part = begins * cores() // work.sum()
    return [order[part == each] for each in np.unique(part)]


def _wider(table: np.ndarray, width: int) -> np.ndarray:
    return np.pad(table, [(0, 0), (0, width - table.shape[1])], constant_values=-1)


@cache  # never evicted: states point into its pool
def engine_of(model: Pocket) -> Engine:
    with single_threaded():
        network = load_network(model.folder, model.precision, model.kernel)
    return Engine(network, network.pool(), RLock())


@cache
def _config(model: Pocket) -> Config:
    return read_config(model.folder)


@cache
def _vocabulary(model: Pocket) -> Vocabulary:
    return read_vocabulary(model.folder, _config(model).vocabulary)

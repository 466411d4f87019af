"""A sampler with a memory of prefixes: the same leaves, less work, and no more memory than it may have."""

from __future__ import annotations

import gc
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.decode import Chain, Mirostat, Operator, Repetition, Temperature, TopP
from ramify.describe import text
from ramify.errors import InvalidValue
from ramify.models import Crew, LocalSampler, Memory, Pocket, Tabular
from ramify.models.memory import spelled
from ramify.models.pocket.cache import BLOCK
from ramify.models.pocket.model import engine_of
from ramify.types import APPENDED, SAMPLED, Key, Leaf, Request
from tests.methods import OPERATORS

MODEL = Tabular.random(Key("memory", "tabular", 0), vocabulary=4, order=2)
FIELDS = ("tokens", "role", "logprob", "log_q", "rank", "support", "fallback")


def same(a: Leaf, b: Leaf) -> bool:
    if (a.key, a.ended, a.text, a.top is None) != (b.key, b.ended, b.text, b.top is None):
        return False
    tops = () if a.top is None or b.top is None else zip(a.top, b.top, strict=True)
    pairs = [*((getattr(a, name), getattr(b, name)) for name in FIELDS), *tops]
    return all(np.array_equal(x, y, equal_nan=True) and x.dtype == y.dtype for x, y in pairs)


def growth(sampler: LocalSampler, seed: int, rounds: int = 5, prompts: int = 2) -> Iterator[list[Leaf]]:
    """A search at random: children of prefixes drawn before, of whole ones and of parts, in any order."""
    rng = random.Random(seed)
    known: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((0,) * (1 + i), ()) for i in range(prompts)]
    for number in range(rounds):
        requests = []
        for i in range(10):
            prompt, prefix = rng.choice(known)
            prefix = prefix[: rng.choice((len(prefix), rng.randint(0, len(prefix))))]
            role = tuple(rng.choice((SAMPLED, SAMPLED, APPENDED)) for _ in prefix) if rng.random() < 0.3 else None
            cap = len(prefix) + rng.randint(0, 5)
            key = Key("memory", f"q{number}", i, f"draw/{rng.randint(0, 1)}")
            until = (1,) if rng.random() < 0.5 else ()
            requests.append(Request(key, prompt, cap, prefix, role, top=rng.choice((0, 0, 2)), until=until))
        rng.shuffle(requests)
        leaves = sorted(sampler(requests), key=lambda leaf: leaf.key)
        prompt_of = {request.key: request.ids for request in requests}
        known += [(prompt_of[leaf.key], tuple(leaf.tokens.tolist())) for leaf in leaves]
        yield leaves


@pytest.mark.parametrize("operator", OPERATORS, ids=text)
def test_leaves_have_the_same_bits_with_a_memory_of_any_size(operator: Operator) -> None:
    plain = LocalSampler(MODEL, operator, batch=4)
    for capacity, batch in ((math.inf, 7), (6, 3), (0, 4)):
        memory = Memory(MODEL, operator, capacity)
        sampler = LocalSampler(MODEL, operator, batch=batch, memory=memory)
        for mine, theirs in zip(growth(sampler, 1), growth(plain, 1), strict=True):
            assert all(same(a, b) for a, b in zip(mine, theirs, strict=True))
        assert memory.tokens <= capacity
        assert (memory.sharing.forks > 0) == (capacity > 0)
        assert (memory.sharing.evictions > 0) == (capacity == 6)
        assert memory.sharing.computed <= memory.sharing.represented


@given(seed=st.integers(0, 10**6), capacity=st.integers(0, 60), batch=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_any_growth_any_capacity_any_batch(seed: int, capacity: int, batch: int) -> None:
    operator = Chain(Repetition(1.2), Mirostat(tau=1.0))
    memory = Memory(MODEL, operator, capacity)
    sampler = LocalSampler(MODEL, operator, batch=batch, memory=memory)
    for mine, theirs in zip(growth(sampler, seed), growth(LocalSampler(MODEL, operator), seed), strict=True):
        assert all(same(a, b) for a, b in zip(mine, theirs, strict=True))
        assert memory.tokens <= capacity
        assert memory.tokens == distinct_positions(memory)
        assert memory.bytes == sum(
            {piece: size for spot in spots(memory) for piece, size in spot.pieces.items()}.values()
        )


def spots(memory: Memory) -> Iterator[Any]:
    waiting = list(memory._roots.values())
    while waiting:
        spot = waiting.pop()
        assert spot.row is not None or spot.below, "a branch without a row is not kept"
        waiting += spot.below.values()
        yield spot


def distinct_positions(memory: Memory) -> int:
    return sum(spot.size for spot in spots(memory))


@pytest.mark.parametrize("operator", [Temperature(1.0), Chain(Mirostat(tau=2.0), TopP(0.95))], ids=text)
def test_the_pocket_engine_forks_to_the_same_bits(operator: Operator) -> None:
    model = Pocket("tiny")
    for capacity in (math.inf, 60):
        memory = Memory(model, operator, capacity)
        forking, plain = LocalSampler(model, operator, memory=memory), LocalSampler(model, operator, batch=5)
        for mine, theirs in zip(growth(forking, 3), growth(plain, 3), strict=True):
            assert all(same(a, b) for a, b in zip(mine, theirs, strict=True))
        assert memory.sharing.computed < 0.7 * memory.sharing.represented


def test_what_is_computed_is_counted() -> None:
    model, operator = Pocket("tiny"), Temperature(1.0)
    memory = Memory(model, operator)
    sampler, prompt = LocalSampler(model, operator, memory=memory), model.encode("M2+3*(4-1)\n")
    [first] = sampler([Request(Key("r", "q", 0), prompt, cap=6)])
    assert len(first.tokens) == 6
    assert memory.sharing.computed == len(prompt) + 5, "a prompt, and every token but the last"
    prefix = tuple(first.tokens.tolist())
    list(sampler([Request(Key("r", "q", i, "draw/0"), prompt, cap=8, prefix=prefix) for i in range(4)]))
    assert memory.sharing.computed == len(prompt) + 5 + 1 + 4, "the last once for all, and a token each"
    assert memory.sharing.represented == len(prompt) + 5 + 4 * (len(prompt) + 7)
    assert (memory.sharing.forks, memory.sharing.evictions) == (4, 0)
    assert memory.sharing.peak_tokens >= memory.tokens >= len(prompt) + 6


def test_forking_copies_one_block_and_only_when_somebody_writes() -> None:
    model, operator = Pocket("tiny"), Temperature(1.0)
    pool, memory = engine_of(model).pool, Memory(model, operator)
    sampler, prompt = LocalSampler(model, operator, memory=memory), tuple(range(2, 42))
    [first] = sampler([Request(Key("r", "q", 0), prompt, cap=4)])
    prefix = tuple(first.tokens.tolist())
    spot = memory.spot(prompt, prefix)
    assert spot is not None
    assert spot.row is not None
    copied = pool.copied
    many = model.select([spot.row.state], [0] * 8)
    assert pool.copied == copied
    assert (many.table == many.table[0]).all(), "eight rows, the same blocks"
    leaves = list(sampler([Request(Key("r", "q", i, "draw/0"), prompt, cap=6, prefix=prefix) for i in range(8)]))
    assert len(prompt) + 6 <= 2 * BLOCK, "nobody needs a third block"
    assert {len(leaf.tokens) for leaf in leaves} == {6}
    assert pool.copied - copied == 7, "the first writes where it is; every other copies the last block, and no more"


def test_blocks_are_free_again_when_a_memory_is_gone() -> None:
    model, operator = Pocket("tiny"), Temperature(1.0)
    pool = engine_of(model).pool
    gc.collect()
    pool.take(0)
    before = int((pool.uses > 0).sum())
    memory = Memory(model, operator)
    list(LocalSampler(model, operator, memory=memory)([Request(Key("r", "q", 0), (2,) * 70, cap=4)]))
    pool.take(0)
    assert int((pool.uses > 0).sum()) > before
    gc.disable()
    try:
        del memory
        pool.take(0)
        assert int((pool.uses > 0).sum()) == before, "without waiting for a collector of circles"
    finally:
        gc.enable()


def test_the_bytes_of_shared_blocks_count_once() -> None:
    model, operator = Pocket("tiny"), Temperature(1.0)
    memory, pool = Memory(model, operator), engine_of(model).pool
    sampler = LocalSampler(model, operator, memory=memory)
    list(sampler([Request(Key("r", "q", i), (3,) * (2 * BLOCK), cap=2) for i in range(5)]))
    # Two full blocks of the prompt, and a third of each distinct row.
    rows = len({id(spot) for spot in spots(memory) if spot.row is not None and spot.up is not None})
    blocks = memory.bytes // pool.block_bytes
    assert 2 <= blocks <= 2 + rows
    assert memory.sharing.peak_bytes >= memory.bytes - pool.block_bytes


def test_an_end_is_no_ancestor_and_more_alternatives_are_computed_anew() -> None:
    memory = Memory(MODEL, Chain())
    sampler = LocalSampler(MODEL, Chain(), memory=memory)
    ended = next(
        leaf for i in range(50) for leaf in sampler([Request(Key("r", "q", i), (), cap=9)]) if leaf.ended == "eos"
    )
    prefix = tuple(ended.tokens.tolist())
    beyond = Request(Key("r", "q", 99), (), cap=12, prefix=(*prefix, 0, 0))
    [a], [b] = list(sampler([beyond])), list(LocalSampler(MODEL, Chain())([beyond]))
    assert same(a, b)
    assert len(a.tokens) == len(prefix)
    wide = Request(Key("r", "q", 98), (), cap=len(prefix) + 2, prefix=prefix[:-1], top=3)
    [a], [b] = list(sampler([wide])), list(LocalSampler(MODEL, Chain())([wide]))
    assert same(a, b)
    assert a.top is not None
    assert a.top.ids.shape[1] == 3


def test_rows_can_be_dropped() -> None:
    memory = Memory(MODEL, Chain())
    [leaf] = LocalSampler(MODEL, Chain(), memory=memory)([Request(Key("r", "q", 1), (0, 1), cap=4)])
    assert memory.tokens == 2 + len(leaf.tokens)
    memory.drop((0, 1), leaf.tokens.tolist())
    memory.drop((0, 1), (9, 9, 9))
    assert memory.tokens == 2
    memory.drop((0, 1), ())
    assert (memory.tokens, memory.bytes) == (0, 0)


def test_a_memory_serves_one_model_and_decoder() -> None:
    memory = Memory(MODEL, Temperature(0.5))
    with pytest.raises(InvalidValue, match="the same model and decoder"):
        LocalSampler(MODEL, Chain(), memory=memory)
    assert LocalSampler(MODEL, Chain()).sharing(memory).memory is None
    assert LocalSampler(MODEL, Temperature(0.5)).sharing(memory).memory is memory
    with pytest.raises(InvalidValue, match="processes share none"):
        Crew(LocalSampler(MODEL, Temperature(0.5), memory=memory), 2)
    with pytest.raises(InvalidValue, match="use a number of tokens >= 0"):
        Memory(MODEL, Chain(), -1)
    assert spelled((1, 2), (SAMPLED, APPENDED)) == (1, ~2)

"""Slow, plain references that share no code with the package: sorting, loops, sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from hypothesis import strategies as st

from ramify.decode import Operator, Side, TokenMeasure, step
from ramify.keys import streams
from ramify.types import Key, Model

# METHODS.md, D8: the worked vector.
WORKED = (0.35, 0.25, 0.15, 0.10, 0.08, 0.07)


def measure(probs: Sequence[float] | np.ndarray, **side: Sequence[int]) -> TokenMeasure:
    """The measure of one distribution, with an optional ``tokens`` and ``prompt`` history."""
    p = np.asarray(probs, dtype=np.float64)
    logits = np.log(p, where=p > 0, out=np.full(p.shape, -np.inf))
    tokens, prompt = (np.array(side.get(name, ()), dtype=np.int64) for name in ("tokens", "prompt"))
    history = Side(tokens, prompt)
    return TokenMeasure.of(logits, history)


def kept(result: TokenMeasure) -> list[int]:
    """The live ids of a single row."""
    ids: list[int] = np.flatnonzero(result.live).tolist()
    return ids


def ranked(p: np.ndarray) -> list[int]:
    """Ids by probability descending, ties by id."""
    return sorted(range(len(p)), key=lambda i: (-p[i], i))


def prefix_by(order: Sequence[int], weight: Callable[[int], float], budget: float) -> set[int]:
    """The shortest prefix of an order whose weight reaches the budget."""
    chosen: set[int] = set()
    total = 0.0
    for i in order:
        if total >= budget:
            break
        chosen.add(i)
        total += weight(i)
    return chosen


def entropy(p: np.ndarray) -> float:
    return -sum(float(x) * math.log(x) for x in p if x > 0)


@st.composite
def logit_rows(draw: st.DrawFn, max_rows: int = 4, max_size: int = 12) -> np.ndarray:
    """[B, V] logits with ties, -inf, single live tokens and wide ranges."""
    rows, size = draw(st.integers(1, max_rows)), draw(st.integers(4, max_size))
    value = st.one_of(
        st.sampled_from([0.0, 1.0, -1.0, 2.5]),  # ties
        st.floats(-30, 30, allow_nan=False, width=32),
        st.sampled_from([-1e4, 1e4, 700.0, -800.0]),
        st.just(-math.inf),
    )
    table = np.array(draw(st.lists(st.lists(value, min_size=size, max_size=size), min_size=rows, max_size=rows)))
    alive = draw(st.lists(st.integers(0, size - 1), min_size=rows, max_size=rows))
    for row, token in zip(table, alive, strict=True):
        if not np.isfinite(row).any():
            row[token] = 0.0
    return table


@st.composite
def histories(draw: st.DrawFn, rows: int, size: int) -> Side:
    """A ragged side for so many rows: generated tokens and prompts over the vocabulary."""

    def padded(longest: int) -> np.ndarray:
        sequences = draw(st.lists(st.lists(st.integers(0, size - 1), max_size=longest), min_size=rows, max_size=rows))
        out = np.full((rows, max(map(len, sequences))), -1, dtype=np.int64)
        for row, sequence in zip(out, sequences, strict=True):
            row[: len(sequence)] = sequence
        return out

    return Side(padded(6), padded(3))


@cache
def _streams(samples: int) -> np.ndarray:
    return streams(Key("simulate", "q", i) for i in range(samples))


def simulate(
    model: Model[np.ndarray], operator: Operator, prompt: Sequence[int], cap: int, samples: int, **how: object
) -> tuple[np.ndarray, np.ndarray]:
    """Draw many leaves of one prompt in one batch: (tokens [N, cap] padded with -1, log_q [N])."""
    stream = _streams(samples)
    tokens, total = np.full((samples, cap), -1), np.zeros(samples)
    rows = np.arange(samples)
    state = model.start([prompt] * samples)
    side = Side.start(operator, [prompt] * samples)
    for position in range(cap):
        drawn, side = step(operator, model.logits(state), side, stream[rows], **how)  # type: ignore[arg-type]
        tokens[rows, position], total[rows] = drawn.token, total[rows] + drawn.log_q
        going = np.flatnonzero(drawn.token != model.eos)
        if going.size == 0:
            break
        state = model.select([model.advance(state, drawn.token)], going)
        side, rows = side.rows(going), rows[going]
    return tokens, total

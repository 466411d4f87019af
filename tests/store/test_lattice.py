"""The code gives back every bit, whatever it is fed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ramify.models import Pocket
from ramify.store.lattice import decode, encode


def bfloat16(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded: np.ndarray = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return rounded


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.array_equal(a.view(np.uint32), np.ascontiguousarray(b).view(np.uint32))


def logprobs(logits: np.ndarray, k: int) -> np.ndarray:
    """As engines compute them: single precision from bfloat16 logits, over the whole vocabulary, the k best first."""
    x = bfloat16(logits)
    shifted = x - x.max(axis=1, keepdims=True)
    every = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True, dtype=np.float32))
    return np.ascontiguousarray(-np.sort(-every.astype(np.float32), axis=1)[:, :k])


FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@given(arrays(np.float32, st.tuples(st.integers(0, 6), st.integers(1, 5)), elements=FLOATS))
def test_any_floats_come_back(values: np.ndarray) -> None:
    assert same(decode(encode(values)), values)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.floats(0.01, 60))
def test_low_precision_logits_need_few_exceptions(seed: int, k: int, scale: float) -> None:
    logits = np.random.default_rng(seed).normal(0, scale, (50, 64)) + 10
    values = logprobs(logits, k)
    coded = encode(values)
    assert same(decode(coded), values)
    assert coded.exceptions.size <= 5


def test_a_real_model_in_low_precision_is_on_the_lattice() -> None:
    model = Pocket("tiny")
    state = model.start([model.encode("M3 5 7:15\n"), model.encode("M15 17 17 18:37\n"), model.encode("H2+3*4\n")])
    values = logprobs(model.logits(state), 20)
    coded = encode(values)
    assert coded.exceptions.size == 0
    assert same(decode(coded), values)


@pytest.mark.parametrize("row", [[-0.0, -1.0], [0.0, 0.0], [-np.inf, -np.inf], [-1.0, -0.5], [np.nan, -1.0]])
def test_odd_rows_come_back(row: list[float]) -> None:
    values = np.array([row, [-0.25, -1.5]], dtype=np.float32)
    assert same(decode(encode(values)), values)

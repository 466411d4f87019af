"""The atoms against plain sorting, on sizes that take each of their paths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.arrays import (
    appearance,
    at,
    count,
    descending,
    head,
    join_rows,
    largest,
    pick,
    segments,
    smallest_sums,
    take_rows,
    window_sums,
)

SIZES = (1, 7, 100, 5_000, 30_000)


def rows(kind: str, size: int, dtype: type = np.float32, n: int = 3) -> np.ndarray:
    rng = np.random.default_rng(size)
    values = rng.normal(size=(n, size))
    if kind == "tied":
        values = np.round(values)
    if kind == "peaked":
        values[:, :: max(1, size // 20)] += 20
    if kind == "mostly dead":
        values[rng.random((n, size)) < 0.99] = -np.inf
    if kind == "equal":
        values[:] = 1.5
    if kind == "signed zeros":
        values = np.where(rng.random((n, size)) < 0.5, 0.0, -0.0)
    return values.astype(dtype)


KINDS = ("normal", "tied", "peaked", "mostly dead", "equal", "signed zeros")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_largest_is_a_stable_sort(kind: str, size: int, dtype: type) -> None:
    values = rows(kind, size, dtype)
    for m in (0, 1, 2, 50, 256, size):
        found, ids = largest(values, m)
        expected = np.argsort(-values, axis=-1, kind="stable")[:, :m]
        assert (ids == expected).all()
        assert (found == np.take_along_axis(values, expected, axis=-1)).all()
    assert (descending(values) == -np.sort(-values, axis=-1)).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("closed", [False, True])
def test_head_keeps_what_comes_before_the_budget(kind: str, size: int, dtype: type, closed: bool) -> None:
    score = rows(kind, size, dtype)
    # Whole numbers: their sums are exact in any order.
    mass: np.ndarray = np.random.default_rng(1).integers(0, 3, score.shape).astype(dtype)
    for weight, budgets in ((None, (1, 3, 300, size)), (mass, (0.5, 1, 10, 400, size // 2, 10.0 * size))):
        for budget in budgets:
            kept = head(score, weight, budget, closed=closed)
            for i, row in enumerate(score):
                order = np.argsort(-row, kind="stable")
                amounts = np.ones(size) if weight is None else weight[i][order]
                before = np.concatenate([[0.0], np.cumsum(amounts)[:-1]])
                expected = np.zeros(size, dtype=bool)
                expected[order[before <= budget if closed else before < budget]] = True
                assert (kept[i] == expected).all()


def test_head_takes_a_budget_a_row() -> None:
    score = rows("normal", 5_000)
    assert head(score, None, np.array([1, 300, 4_999])).sum(-1).tolist() == [1, 300, 4_999]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=2000).filter(any), st.floats(0.0001, 0.9999))
def test_pick_inverts_the_distribution_function(weights: list[int], u: float) -> None:
    weight = np.array(weights, dtype=np.float64)
    running = np.cumsum(weight)
    expected = int(np.argmax(running > u * running[-1]))
    found = int(pick(weight, np.array(u)))
    # The block sums may round differently at the very edge of an entry; whole numbers leave only the product u * total.
    assert weight[found] > 0
    assert found == expected or abs(running[min(found, expected)] - u * running[-1]) < 1e-9 * running[-1]


@pytest.mark.parametrize("size", [3, 700, 5_000])
def test_pick_never_takes_an_entry_without_weight(size: int) -> None:
    weight = np.zeros((2, size))
    weight[0, size // 2], weight[1, [1, size - 1]] = 1e-300, 1.0
    for u in (1e-17, 0.3, 0.5, 1 - 2**-53):
        first, second = pick(weight, np.array([u, u]))
        assert first == size // 2
        assert second in (1, size - 1)


def test_pick_stays_on_weight_when_block_sums_round() -> None:
    weight = np.zeros(600)
    weight[0], weight[25], weight[48] = 0.1, 0.2, 0.3
    assert int(pick(weight, np.array(0.16666666666666669))) in (0, 25)


def test_no_rows_are_no_trouble() -> None:
    empty = np.zeros((0, 5_000))
    assert largest(empty, 3)[0].shape == (0, 3)
    assert head(empty, None, 3).shape == (0, 5_000)


def test_at_and_count_and_rows() -> None:
    values = np.arange(24).reshape(2, 3, 4)
    assert (at(values, np.array([[0, 1, 2], [3, 2, 1]])) == [[0, 5, 10], [15, 18, 21]]).all()
    assert count(values[:1, :1] > 1).tolist() == [[2]]
    assert count(values > 5).tolist() == [[0, 2, 4], [4, 4, 4]]
    tree = {"a": (np.arange(3), np.arange(6).reshape(3, 2))}
    again = join_rows([take_rows(tree, [2, 0]), take_rows(tree, slice(1, 2))])
    assert again["a"][0].tolist() == [2, 0, 1]
    assert again["a"][1].tolist() == [[4, 5], [0, 1], [2, 3]]


# ---------------------------------------------------------------------------------------------------------- ragged rows


@given(data=st.data())
def test_window_sums_are_the_sums_of_windows(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=6))
    window = data.draw(st.integers(1, 6))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.random.default_rng(sum(lengths)).normal(size=int(offsets[-1]))
    skipped = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(lengths), max_size=len(lengths))))
    for before in (None, skipped):
        sums, begin = window_sums(values, offsets, window, before)
        slow = [
            [math.fsum(values[a + i : a + i + window]) for i in range(n - window + 1)]
            for a, n in zip(offsets[:-1], lengths, strict=True)
        ]
        assert np.diff(begin).tolist() == [len(row) for row in slow]
        assert np.allclose(sums, [each for row in slow for each in row], rtol=1e-13, atol=1e-13)
    low = smallest_sums(values, offsets, np.minimum(lengths, 2))
    for row, (a, n) in enumerate(zip(offsets[:-1], lengths, strict=True)):
        expected = math.fsum(sorted(values[a : a + n])[:2]) if n else math.nan
        assert np.isclose(low[row], expected, equal_nan=True)


def test_a_nan_stays_in_the_windows_and_rows_that_hold_it() -> None:
    values = np.array([1.0, np.nan, 1.0, 1.0, 1.0, 2.0])
    sums, _ = window_sums(values, np.array([0, 4, 6]), 2)
    assert np.isnan(sums).tolist() == [True, True, False, False]
    assert np.isnan(segments(np.add, values, np.array([0, 4]), np.array([4, 6]))).tolist() == [True, False]


@given(codes=st.lists(st.integers(-1, 4), min_size=1, max_size=12))
def test_appearance_is_a_dictionary(codes: list[int]) -> None:
    label, occurrence = appearance(np.array(codes), np.array(codes) >= 0)
    known: dict[int, int] = {}
    counts: dict[int, int] = {}
    for i, code in enumerate(codes):
        if code < 0:
            assert (label[i], occurrence[i]) == (-1, 0)
            continue
        counts[code] = counts.get(code, 0) + 1
        assert (label[i], occurrence[i]) == (known.setdefault(code, len(known)), counts[code])

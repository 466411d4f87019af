"""The atoms against plain sorting, on sizes that take each of their paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.arrays import at, count, descending, head, join_rows, largest, pick, take_rows

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

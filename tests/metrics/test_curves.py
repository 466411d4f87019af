"""Costs add up, points are not invented, and allocations are compared with every other one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.bank import Bank, Layer, Outcomes
from ramify.errors import InvalidValue
from ramify.metrics import allocate, available, end_to_end, gap, of_allocation, on_bank, plurality
from ramify.metrics.bankcurve import over_questions
from tests.metrics.test_replay import small


def test_end_to_end_costs_add_up_by_component_and_missing_utilities_are_left_out() -> None:
    runs = end_to_end(
        {"one": [0.0, 1.0, np.nan], "two": [1.0, 1.0, 1.0], "waste": [0.0, 1.0, 0.0]},
        {
            "one": {"generate": [10, 30, 1000]},
            "two": {"generate": [40, 60, 80], "signal": 5.0},
            "waste": {"generate": [500, 500, 500], "control": [0, 0, 3]},
        },
    )
    assert runs.gain.tolist() == [0.5, 1.0, 1 / 3]
    assert runs.spent("generate").tolist() == [20.0, 60.0, 500.0]
    assert runs.spent("signal").tolist() == [0.0, 5.0, 0.0]
    assert runs.spent().tolist() == [20.0, 65.0, 501.0]
    assert runs.frontier.tolist() == [True, True, False]
    assert runs.at(42.5) == pytest.approx(0.75)
    with pytest.raises(InvalidValue, match="it was measured from 20 to 501 tokens"):
        runs.at(10.0)
    with pytest.raises(InvalidValue, match="use the stages of the ledger"):
        end_to_end({"a": [1.0]}, {"a": {"gpu": [1.0]}})
    with pytest.raises(InvalidValue, match="use one of generate"):
        runs.spent("decide")


def test_the_cost_of_a_subset_is_the_mean_over_all_subsets() -> None:
    bank = Bank.of({"a": ["x", "y", "x", "z"], "b": ["x", "x"]})
    length = np.array([[3, 5, 9, 20], [7, 1, -1, -1]])
    bank = type(bank)(**{f: getattr(bank, f) for f in bank.__dataclass_fields__} | {"length": length})
    cost = np.array([[1.0, 2, 3, 4], [5, 6, 0, 0]])
    bank = bank.attach("verifier", Layer(np.zeros((2, 4)), "a verifier", cost=cost))
    outcomes = Outcomes.of(bank, np.array([[1.0, 0, 1, 0], [1, 1, 0, 0]]))
    curve = on_bank(plurality(bank.candidates(), outcomes.on(bank)), bank, signals=["verifier"], decide=2.0)
    for k in range(1, 5):
        subsets = list(itertools.combinations(range(4), k))
        assert curve.cost["generate"][0, k - 1] == pytest.approx(np.mean([length[0, list(s)].sum() for s in subsets]))
        assert curve.cost["signal"][0, k - 1] == pytest.approx(np.mean([cost[0, list(s)].sum() for s in subsets]))
    assert np.isnan(curve.cost["generate"][1, 2:]).all()
    assert curve.spent("decide").tolist() == [2.0] * 4
    assert curve.kind == "shared bank"
    plain, outcomes = small()
    with pytest.raises(InvalidValue, match="count candidates instead"):
        on_bank(plurality(plain.candidates(), outcomes.on(plain)), plain)
    counted = on_bank(plurality(plain.candidates(), outcomes.on(plain)), plain, unit="candidates")
    assert counted.spent().tolist() == list(range(1, 13))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4), st.integers(0, 9), st.integers(0, 2))
def test_concave_curves_get_the_best_allocation_there_is(chances: list[float], budget: int, least: int) -> None:
    curves = 1 - (1 - np.array(chances)[:, None]) ** np.arange(5)
    if least * len(chances) > budget:
        with pytest.raises(InvalidValue, match="budget"):
            allocate(curves, budget, least=least)
        return
    found = allocate(curves, budget, least=least)
    every = itertools.product(range(least, 5), repeat=len(chances))
    best = max(of_allocation(curves, np.array(each)) for each in every if sum(each) <= budget)
    assert found.value == pytest.approx(best, abs=1e-12)
    assert found.bound == pytest.approx(best, abs=1e-12)
    assert found.number.sum() <= budget
    assert found.spent == found.number.sum()


@given(st.data())
def test_other_curves_and_prices_stay_under_the_bound(data: st.DataObject) -> None:
    many = data.draw(st.integers(1, 3))
    level = st.floats(0, 1).map(lambda x: round(x, 3))
    curves = np.array(data.draw(st.lists(st.lists(level, min_size=4, max_size=4), min_size=many, max_size=many)))
    price = np.array(data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.5]), min_size=many, max_size=many)))
    budget = data.draw(st.integers(0, 10))
    found = allocate(curves, budget, price)
    every = [np.array(each) for each in itertools.product(range(4), repeat=many)]
    best = max(of_allocation(curves, each) for each in every if (each * price).sum() <= budget)
    assert found.value <= best + 1e-12
    assert best <= found.bound + 1e-9
    assert (found.number * price).sum() <= budget + 1e-9
    assert found.spent == pytest.approx((found.number * price).sum())


def test_the_oracle_allocation_beats_the_uniform_one_on_a_bank() -> None:
    bank, outcomes = small(questions=60)
    ceiling = available(outcomes.on(bank), bank.drawn).result.values
    curves = np.concatenate([np.zeros((60, 1)), ceiling], axis=1)
    oracle = allocate(curves, budget=4 * 60)
    assert oracle.value > of_allocation(curves, np.full(60, 4)) + 0.01
    assert oracle.number.sum() <= 240


def test_who_is_recoverable() -> None:
    bank, outcomes = small()
    curve = plurality(bank.candidates(), outcomes.on(bank))
    found = gap(curve, bank, outcomes)
    assert (found.values > -1e-12).all()
    assert np.allclose(found.values[:, 0], 0, atol=1e-12), "one candidate leaves nothing to select"
    grades = outcomes.on(bank)
    assert set(found.hopeless(12)) == {f"q{q}" for q in np.flatnonzero(grades.max(axis=1) == 0)}
    ceiling, taken = grades.max(axis=1), curve.at(12)
    names = {f"q{q}" for q in np.flatnonzero(ceiling > taken)}
    assert set(found.recoverable(12)) == names
    assert found.overall[-1] == pytest.approx((ceiling - taken).mean())
    ungraded = Outcomes.of(bank, np.where(np.arange(12) == 3, np.nan, grades))
    assert np.isnan(gap(curve, bank, ungraded).values).all(), "Pass@k of fewer candidates is Pass@k of another bank"


def test_questions_are_drawn_alike_whatever_their_values() -> None:
    """Right and wrong has two values and may be shuffled among equals; values that all differ may not: same draws."""
    rng = np.random.default_rng(8)
    right = (rng.random(40) < 0.6).astype(float)
    near = right + 1e-9 * rng.random(40)
    both = over_questions(np.stack([right, near, 1 - right], axis=1), 500)
    assert [both[1].low, both[1].high] == pytest.approx([both[0].low, both[0].high], abs=2e-9)
    assert [both[2].low, both[2].high] == pytest.approx([1 - both[0].high, 1 - both[0].low], abs=1e-12)
    (alone,) = over_questions(near[:, None], 500)
    assert (alone.low, alone.high) == pytest.approx((both[1].low, both[1].high), abs=1e-12)


def test_a_replicate_without_a_value_is_left_out_and_counted() -> None:
    """Two of 40 questions have a value: (38/40)^40 = 12.9 % of resamples draw neither."""
    values = np.full(40, np.nan)
    values[:2] = (0.0, 1.0)
    (found,) = over_questions(values[:, None], 4000)
    lost = int(found.note.split("; ")[1].split()[0])
    assert lost / 4000 == pytest.approx((38 / 40) ** 40, abs=0.02)
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    with pytest.raises(InvalidValue, match="at least two questions"):
        over_questions(np.array([[1.0], [np.nan]]))

"""Laws over every functional and interval in tests/methods.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.describe import text
from ramify.metrics import (
    Functional,
    Posterior,
    Profile,
    RubricTally,
    Tally,
    bank_profile,
    bootstrap_profile,
    latent_profile,
)
from ramify.types import Key
from tests.methods import FUNCTIONALS, INTERVALS

KEY = Key("test", "laws", 0, "bootstrap")
GRADES = st.lists(st.lists(st.integers(0, 1), min_size=9, max_size=9), min_size=2, max_size=5)


def of(functional: Functional, grades: object) -> float:
    return float(functional(bank_profile(Tally.of(grades))))


@pytest.mark.parametrize("functional", FUNCTIONALS, ids=text)
@given(grades=GRADES, data=st.data())
@settings(max_examples=15)
def test_a_functional_lies_in_range_and_never_falls_when_a_candidate_becomes_correct(
    functional: Functional, grades: list[list[int]], data: st.DataObject
) -> None:
    table = np.array(grades)
    before = of(functional, table)
    assert -1e-12 <= before <= 1 + 1e-12
    table[data.draw(st.integers(0, len(table) - 1)), data.draw(st.integers(0, 8))] = 1
    assert of(functional, table) >= before - 1e-12
    assert of(functional, np.ones_like(table)) == pytest.approx(1)
    assert of(functional, np.zeros_like(table)) == pytest.approx(0, abs=1e-15)
    assert of(functional, table[::-1, ::-1]) == pytest.approx(of(functional, table), rel=1e-12), "order is no matter"


@pytest.mark.parametrize("functional", FUNCTIONALS, ids=text)
def test_a_functional_reads_profiles_posteriors_draws_and_rubrics(functional: Functional) -> None:
    grades = (np.arange(45).reshape(5, 9) % 4 < 2).astype(float)
    tally = Tally.of(grades)
    assert float(functional(RubricTally.of(grades, (0, 1)).profile())) == pytest.approx(
        of(functional, grades), rel=1e-12
    )
    draws = Posterior.of(tally).draws(KEY, 50)
    assert functional(draws).shape == (50,)
    if "question" not in text(functional):
        p = np.random.default_rng(0).random((3, 7))
        together = functional(latent_profile(p, 9))
        alone = [float(functional(latent_profile(row, 9))) for row in p]
        assert np.allclose(together, alone, rtol=1e-12)
        assert np.ndim(functional(Posterior.of(tally).profile(9))) == 0


@pytest.mark.parametrize("functional", FUNCTIONALS, ids=text)
def test_a_bank_of_many_sizes_is_the_weighted_mean_or_the_pooled_profile(functional: Functional) -> None:
    one, other = Tally(np.array([4, 9]), np.array([9, 9])), Tally(np.array([3]), np.array([12]))
    pooled = Tally(np.array([4, 9, 3]), np.array([9, 9, 12]))
    k = int(getattr(functional, "k", 1))
    rows = [bank_profile(each).law(k) for each in (one, other)]
    by_hand = Profile({k: (2 * rows[0] + rows[1]) / 3}, "latent", 3)
    if "question" in text(functional) or "Area" in text(functional):
        parts = [float(functional(bank_profile(each))) for each in (one, other)]
        expected = (2 * parts[0] + parts[1]) / 3
    else:
        expected = float(functional(by_hand))
    assert float(functional(bank_profile(pooled))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("interval", INTERVALS, ids=text)
@pytest.mark.parametrize("functional", FUNCTIONALS, ids=text)
def test_an_interval_is_ordered_in_range_and_holds_its_value(interval: object, functional: Functional) -> None:
    tally = Tally.of((np.random.default_rng(2).random((25, 9)) < 0.4).astype(int))
    found = interval(bootstrap_profile(tally, functional, KEY, 400, errors=True))  # type: ignore[operator]
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.covers == ("questions",)

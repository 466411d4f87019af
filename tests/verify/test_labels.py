"""The verifier formulas, against values worked out by hand and against SciPy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from ramify.errors import InvalidValue
from ramify.verify import contextual, direct, expected_grade, label_logprobs, visible

LOGPROBS = st.lists(st.floats(-20, 0), min_size=3, max_size=3).map(np.array)


@given(LOGPROBS, st.floats(-5, 5))
def test_direct_is_the_softmax_and_ignores_a_common_shift(logprobs: np.ndarray, shift: float) -> None:
    np.testing.assert_allclose(direct(logprobs), softmax(logprobs), atol=1e-12)
    np.testing.assert_allclose(direct(logprobs + shift), direct(logprobs), atol=1e-12)


@given(LOGPROBS, LOGPROBS, st.floats(0.1, 5))
def test_contextual_is_the_softmax_of_the_difference(slot: np.ndarray, null: np.ndarray, t: float) -> None:
    np.testing.assert_allclose(contextual(slot, null, t), softmax((slot - null) / t), atol=1e-12)


def test_contextual_by_hand() -> None:
    # Weights (8/5)^(2/3), (2/5)^(2/3), (2/5)^(2/3), since 1/1.5 = 2/3.
    one, other = Fraction(8, 5) ** 2, Fraction(2, 5) ** 2
    a, b = float(one) ** (1 / 3), float(other) ** (1 / 3)
    found = contextual(np.log([0.8, 0.1, 0.1]), np.log([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(found, np.array([a, b, b]) / (a + 2 * b), rtol=1e-12)


def test_a_null_prompt_that_changes_nothing_leaves_an_even_softmax() -> None:
    slot = np.log([0.7, 0.2, 0.1])
    np.testing.assert_allclose(contextual(slot, slot), [1 / 3] * 3)


def test_a_label_without_a_baseline_leaves_no_score() -> None:
    assert np.isnan(contextual(np.log([0.7, 0.2, 0.1]), np.array([0.0, -1.0, -np.inf]))).all()


def test_nothing_visible_is_missing_and_not_even() -> None:
    hidden = np.full(3, -np.inf)
    assert np.isnan(direct(hidden)).all()
    assert visible(hidden) == 0


@pytest.mark.parametrize(("letter", "score"), [("A", 1.0), ("T", 0.0), ("J", 10 / 19), ("K", 9 / 19)])
def test_a_certain_grade(letter: str, score: float) -> None:
    logprobs = np.full(20, -np.inf)
    logprobs[ord(letter) - ord("A")] = math.log(0.4)  # the other 0.6 went elsewhere: renormalised
    assert float(expected_grade(logprobs)) == pytest.approx(score, abs=1e-12)
    assert float(visible(logprobs)) == pytest.approx(0.4)


def test_an_expected_grade_by_hand() -> None:
    # q(B) = 3/4, q(D) = 1/4: E[v] = (3 * 19 + 17) / 4 = 37/2, and (37/2 - 1) / 19 = 35/38.
    logprobs = np.full(20, -np.inf)
    logprobs[[1, 3]] = np.log([0.6, 0.2])
    assert float(expected_grade(logprobs)) == pytest.approx(float(Fraction(35, 38)), abs=1e-12)


def test_grades_need_all_twenty_letters() -> None:
    with pytest.raises(InvalidValue, match="A to T"):
        expected_grade(np.zeros(5))


def test_every_spelling_of_a_label_counts() -> None:
    found = label_logprobs({"A": math.log(0.2), " A": math.log(0.1), "A\n": math.log(0.05), "Ah": math.log(0.3)}, "AB")
    assert math.exp(found[0]) == pytest.approx(0.35)
    assert found[1] == -math.inf

"""Closed forms against every order of a small bank in exact fractions, and against published figures."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.bank import Candidates
from ramify.errors import InvalidValue
from ramify.metrics import BankCurve, Diagnostic, available, best_of_n, deployable, plurality, strict_majority
from ramify.metrics.exact import first_rank, pascal, wins_majority, wins_plurality
from tests.metrics import brute

codes = st.lists(st.integers(-1, 3), min_size=1, max_size=6)


@given(codes, st.data())
@settings(max_examples=40)
def test_closed_forms_equal_every_order_with_several_correct_strings(answers: list[int], data: st.DataObject) -> None:
    n = len(answers)
    right = {0: Fraction(1), 1: Fraction(1), 2: Fraction(1, 4)}  # two correct strings and one half right
    grades = [right.get(code, Fraction(0)) for code in answers]
    score = data.draw(st.lists(st.sampled_from([None, -math.inf, 0.0, 1.0, 2.0]), min_size=n, max_size=n))
    bank = Candidates(
        np.array([answers]), evidence={"s": np.array([[np.nan if each is None else each for each in score]])}
    )
    table = np.array([grades], dtype=float)
    rules = (
        (plurality(bank, table), brute.plurality(answers)),
        (strict_majority(bank, table), brute.majority(answers)),
        (best_of_n(bank, "s", table), brute.best(answers, score)),
    )
    for curve, pick in rules:
        exact = [float(brute.expected(pick, grades, k)) for k in range(1, n + 1)]
        assert np.allclose(curve.values[0], exact, rtol=1e-13, atol=1e-15), curve.rule
        kept = [float(brute.expected(pick, [1] * n, k)) for k in range(1, n + 1)]
        assert np.allclose(1 - curve.invalid[0], kept, rtol=1e-13, atol=1e-13), curve.rule
        assert curve.estimand == "tie-averaged"
        assert not curve.error.any()


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=7))
def test_the_best_available_is_the_best_of_all_subsets(grades: list[float]) -> None:
    pick = brute.best([0] * len(grades), grades)
    exact = [float(brute.expected(pick, [Fraction(g) for g in grades], k)) for k in range(1, len(grades) + 1)]
    assert np.allclose(available(np.array([grades])).result.values[0], exact, rtol=1e-13)


def test_a_group_of_eighty_to_double_precision() -> None:
    """Against integer arithmetic: one correct group of 30, rivals of 30, 12 and 5, three candidates without answer."""
    n, own, rivals = 80, 30, (30, 12, 5)
    for k in (1, 2, 7, 40, 79, 80):
        ways = Fraction(0)
        for c in range(1, min(own, k) + 1):
            # poly[t][d]: ways to take d candidates of the rivals, none above c, t of them at c
            poly = {(0, 0): 1}
            for size in rivals:
                grown: dict[tuple[int, int], int] = {}
                for (t, d), many in poly.items():
                    for j in range(min(c, size) + 1):
                        key = (t + (j == c), d + j)
                        grown[key] = grown.get(key, 0) + many * math.comb(size, j)
                poly = grown
            for (t, d), many in poly.items():
                if 0 <= k - c - d <= 3:
                    ways += Fraction(math.comb(own, c) * many * math.comb(3, k - c - d), t + 1)
        exact = float(ways / math.comb(n, k))
        found = wins_plurality(np.array([own]), np.array([rivals]), n)[0, k]
        assert abs(found - exact) <= 1e-12 * exact, k


def test_every_answer_different_is_the_mean_at_every_k() -> None:
    bank = Candidates(np.arange(40)[None])
    grades = np.zeros((1, 40))
    grades[0, :10] = 1
    assert np.allclose(plurality(bank, grades).values, 0.25, rtol=1e-12)


def test_strict_majority_is_the_coordinate_of_the_profile() -> None:
    """S_{k, k // 2 + 1} by the hypergeometric tail in integers."""
    table = wins_majority(20)
    for size, k in ((5, 4), (11, 20), (13, 7), (20, 3)):
        tail = sum(math.comb(size, j) * math.comb(20 - size, k - j) for j in range(k // 2 + 1, k + 1))
        assert table[size, k] == pytest.approx(tail / math.comb(20, k), rel=1e-14)


def test_the_weights_of_ranks_sum_to_one_and_equal_binomials() -> None:
    weights = first_rank(80, np.arange(1, 81))
    assert np.allclose(weights.sum(axis=1), 1, rtol=1e-13)
    exact = [[math.comb(80 - r, k - 1) / math.comb(80, k) for r in range(1, 81)] for k in range(1, 81)]
    assert np.allclose(weights, exact, rtol=1e-12, atol=0)
    assert pascal(80)[80, 40] == math.comb(80, 40)


def test_published_figures_of_the_large_bank() -> None:
    """Of 3,600 questions 650 are never and 341 always right in 80: Pass@80 = 81.94 % and pass^80 = 9.47 %."""
    right = np.concatenate([np.zeros(650), np.full(341, 80), np.full(2609, 40)])
    grades = (np.arange(80) < right[:, None]).astype(float)
    assert round(100 * available(grades, budgets=[80]).result.mean[0], 2) == 81.94
    worst = available(1 - grades, budgets=[80]).result.mean[0]
    assert round(100 * (1 - worst), 2) == 9.47


def test_unequal_banks_and_missing_grades_are_left_out_and_counted() -> None:
    answers = np.array([[0, 0, 1, -1], [0, 1, -1, -1], [0, 1, 1, 0]])
    drawn = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]], dtype=bool)
    grades = np.array([[1.0, 1, 0, 0], [1, 0, np.nan, np.nan], [1, np.nan, 0, 1]])
    bank = Candidates(answers, drawn, evidence={"s": np.array([[1.0, 2, 3, 4], [2, 1, 0, 0], [4, 1, 3, 2]])})
    curve = plurality(bank, grades)
    assert curve.left_out.tolist() == [1, 1, 2, 2]
    best = best_of_n(bank, "s", grades)
    assert best.values[1, :2].tolist() == [0.5, 1.0]
    assert np.isnan(best.values[2, :2]).sum() == 1, "at k = 2 the ungraded one, the lowest, can no longer be the best"
    assert curve.at(1)[0] == 0.5
    with pytest.raises(InvalidValue, match=r"budget = 9: use one of \[1, 2, 3, 4\]"):
        curve.at(9)
    empty = Candidates(np.zeros((1, 0), dtype=int))
    assert plurality(empty, np.zeros((1, 0))).values.shape == (1, 0)
    nothing = plurality(Candidates(np.array([[-1, -1]])), np.zeros((1, 2)))
    assert nothing.values.tolist() == [[0.0, 0.0]]
    assert nothing.invalid.tolist() == [[1.0, 1.0]]


def test_a_diagnostic_stays_out_of_deployable_tables() -> None:
    grades = np.array([[1.0, 0.0]])
    fine = plurality(Candidates(np.array([[0, 1]])), grades)
    assert isinstance(fine, BankCurve)
    assert deployable({"plurality": fine}) == {"plurality": fine}
    ceiling = available(grades)
    assert isinstance(ceiling, Diagnostic)
    with pytest.raises(InvalidValue, match="Pass@k used the outcomes themselves"):
        deployable({"plurality": fine, "Pass@k": ceiling})


def test_masks_are_missing_and_open_ended_banks_have_no_groups() -> None:
    masked = np.ma.array([[1.0, 0.0, 1.0]], mask=[[False, False, True]])
    assert available(masked).result.values.round(4).tolist()[0][:2] == [0.5, 1.0]
    bank = Candidates(np.array([[0, 0, -1]]), eligible=np.ones((1, 3), dtype=bool))
    assert plurality(bank, np.array([[1.0, 1.0, 0.0]])).values.tolist() == [[2 / 3, 1.0, 1.0]]
    with pytest.raises(InvalidValue, match=r"grades = \(1, 2\): use \[Q, N\]"):
        plurality(bank, np.ones((1, 2)))
    with pytest.raises(InvalidValue, match="use numbers or booleans"):
        available(np.array([["yes", "no"]]))


def test_errors_name_the_field() -> None:
    with pytest.raises(InvalidValue, match="budgets"):
        plurality(Candidates(np.array([[0]])), np.ones((1, 1)), budgets=[0])
    with pytest.raises(InvalidValue, match="replay the rule"):
        plurality(Candidates(np.zeros((1, 1001), dtype=int)), np.ones((1, 1001)))

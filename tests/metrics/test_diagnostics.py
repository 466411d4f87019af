"""Verifier diagnostics against pair counts in integers, every subset of small banks, and a real bank."""

from __future__ import annotations

import gzip
import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.bank import Bank, Candidates, Outcomes
from ramify.errors import InvalidValue
from ramify.metrics import (
    auc,
    available,
    best_of_n,
    brier,
    calibration_error,
    over_optimisation,
    plurality,
    precision_recall,
    reliability,
    roc_auc,
)
from ramify.metrics.replay import submitted
from tests.metrics.rules import most_votes

DATA = Path(__file__).parents[3] / "shared" / "data" / "banks"
scored = st.lists(st.tuples(st.sampled_from([np.nan, -1.0, 0.0, 0.5, 2.0]), st.sampled_from([0.0, 1.0, np.nan])))


def pairs(score: np.ndarray, grade: np.ndarray) -> float:
    """Concordant pairs one by one, in fractions."""
    good = [s for s, g in zip(score, grade, strict=True) if g == 1 and not np.isnan(s)]
    bad = [s for s, g in zip(score, grade, strict=True) if g == 0 and not np.isnan(s)]
    if not good or not bad:
        return float("nan")
    won = sum(Fraction(1) if a > b else Fraction(1, 2) if a == b else Fraction(0) for a in good for b in bad)
    return float(won / (len(good) * len(bad)))


@given(st.lists(scored, min_size=1, max_size=5))
def test_auc_counts_pairs_with_ties_exactly(rows: list[list[tuple[float, float]]]) -> None:
    width = max(map(len, rows)) + 1
    score, grade = np.full((2, len(rows), width), np.nan)
    for q, row in enumerate(rows):
        for n, (s, g) in enumerate(row):
            score[q, n], grade[q, n] = s, g
    expected = [pairs(s, g) for s, g in zip(score, grade, strict=True)]
    assert np.array_equal(auc(score, grade), expected, equal_nan=True)
    found = roc_auc(score, grade, np.array([["a"], *[["b"]] * (len(rows) - 1)]))
    assert np.array_equal([found.pooled], [pairs(score.ravel(), grade.ravel())], equal_nan=True)
    assert np.array_equal([found.by_group["a"]], [expected[0]], equal_nan=True)
    assert found.questions == sum(not np.isnan(each) for each in expected)
    assert found.left_out == int((np.isnan(score) | np.isnan(grade)).sum())


def test_precision_and_recall_at_every_threshold() -> None:
    rng = np.random.default_rng(0)
    score, grade = rng.integers(0, 8, 60) / 8.0, (rng.random(60) < 0.4).astype(float)
    found = precision_recall(score, grade)
    for t, p, r in zip(found.threshold, found.precision, found.recall, strict=True):
        accepted = score >= t
        assert p == pytest.approx(grade[accepted].mean())
        assert r == pytest.approx(grade[accepted].sum() / grade.sum())
    assert found.threshold.tolist() == sorted(set(score), reverse=True)
    assert precision_recall(grade, grade).average == 1.0
    with pytest.raises(InvalidValue, match="there is none"):
        precision_recall(score, np.zeros(60))


def test_bins_are_equal_in_count_and_never_split_a_score() -> None:
    found = reliability(np.arange(100) / 100, np.arange(100) >= 50, bins=10)
    assert found.count.tolist() == [10] * 10
    assert found.share.tolist() == [0.0] * 5 + [1.0] * 5
    tied = reliability(np.array([0.5] * 95 + [0.9] * 5), np.ones(100), bins=10)
    assert tied.count.tolist() == [95, 5]
    assert reliability(np.array([0.5, np.nan]), np.array([1.0, 0.0])).left_out == 1
    with pytest.raises(InvalidValue, match="no candidate with a score"):
        reliability(np.array([np.nan]), np.array([1.0]))


def test_brier_and_calibration_error_are_refused_for_bare_scores() -> None:
    score, grade = np.array([0.2, 0.8]), np.array([0.0, 1.0])
    for measure in (brier, calibration_error):
        with pytest.raises(InvalidValue, match="a bare score has no such error"):
            measure(score, grade)
        with pytest.raises(InvalidValue, match="no probability"):
            measure(score * 2, grade, probability=True)
    assert brier(score, grade, probability=True) == pytest.approx(0.04)
    assert calibration_error(score, grade, 2, probability=True) == pytest.approx(0.2)
    assert calibration_error(np.full(4, 0.5), np.array([0, 1, 0, 1.0]), probability=True) == 0


def test_selection_against_every_subset() -> None:
    rng = np.random.default_rng(3)
    score = rng.permutation(6).astype(float)[None]
    grade = (rng.random((1, 6)) < 0.5).astype(float)
    found = over_optimisation(Candidates(np.zeros((1, 6), dtype=int), evidence={"v": score}), "v", grade, threshold=3.0)
    for k in range(1, 7):
        subsets = [list(s) for s in itertools.combinations(range(6), k)]
        best = [s[int(np.argmax(score[0, s]))] for s in subsets]
        assert found.score[k - 1] == pytest.approx(np.mean(score[0, best]))
        assert found.grade[k - 1] == pytest.approx(np.mean(grade[0, best]))
        wrong = (score[0] >= 3) & (grade[0] == 0)
        assert found.false_positive[k - 1] == pytest.approx(np.mean(wrong[best]))
        assert found.exposed[k - 1] == pytest.approx(np.mean([wrong[s].any() for s in subsets]))
    assert found.kl[0] == 0
    assert (np.diff(found.exposed) >= 0).all()


def test_the_same_questions_are_in_at_every_k_and_nothing_selected_is_not_right() -> None:
    """One score of four, and it is of the right candidate: it is reached by k of 4, so the grade is k / 4.

    The second question has all four scores, wrong ones only: 0 throughout. Means (k / 4 + 0) / 2, as best_of_n has it.
    """
    nan = np.nan
    score = np.array([[0.9, nan, nan, nan], [0.1, 0.2, 0.3, 0.4]])
    grade = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    bank = Candidates(np.zeros((2, 4), dtype=int), evidence={"v": score})
    found = over_optimisation(bank, "v", grade, threshold=0.35)
    assert found.grade == pytest.approx([1 / 8, 2 / 8, 3 / 8, 4 / 8])
    assert found.grade == pytest.approx(best_of_n(bank, "v", grade).mean)
    assert found.left_out.tolist() == [0, 0, 0, 0]
    # The selected of the first scores 0.9 if there is one; of the second, the mean largest of k of (.1, .2, .3, .4).
    assert found.score == pytest.approx([(0.9 + x) / 2 for x in (0.25, 1 / 3, 0.375, 0.4)])
    assert found.false_positive == pytest.approx([k / 8 for k in (1, 2, 3, 4)])  # 0.4 is wrong and reached by k of 4


def test_an_expected_score_needs_finite_ones_and_a_mask_is_missing() -> None:
    bank = Candidates(np.array([[0, 1]]), evidence={"v": np.array([[-np.inf, 1.0]])})
    with pytest.raises(InvalidValue, match="an expected score needs finite ones"):
        over_optimisation(bank, "v", np.array([[1.0, 0.0]]))
    masked = np.ma.array([0.9, 0.5, 0.1], mask=[False, True, False])
    assert auc(masked, np.array([1.0, 1.0, 0.0])) == 1


def test_a_score_that_misleads_shows_over_optimisation() -> None:
    rng = np.random.default_rng(0)
    grade = (rng.random((400, 32)) < 0.5).astype(float)
    score = np.where(grade == 1, rng.normal(1, 1, grade.shape), np.where(rng.random(grade.shape) < 0.05, 9.0, 0.0))
    found = over_optimisation(Candidates(np.zeros(grade.shape, dtype=int), evidence={"v": score}), "v", grade, 5.0)
    assert (np.diff(found.score) > 0).all(), "the proxy rises throughout"
    assert found.grade.argmax() not in (0, 31), "and the truth first rises, then falls"
    assert found.grade[-1] < found.grade.max() - 0.1
    assert (np.diff(found.false_positive) > 0).all()


def test_published_figures_of_the_reward_bank() -> None:
    """100 MATH questions x 8: accuracy 91.0, Pass@8 96, plurality@8 93, reward Best-of-8 94 (shared/data/README.md)."""
    path = DATA / "qwen25math_rm8" / "math_cot_100.jsonl.gz"
    if not path.exists():
        pytest.skip("the shared data is not here")
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    bank, outcomes = reward_bank(rows)
    grades = outcomes.on(bank)
    assert 100 * grades.mean() == pytest.approx(91.0)
    assert 100 * available(grades, budgets=[8]).result.mean[0] == 96
    assert 100 * best_of_n(bank.candidates(evidence=["reward"]), "reward", grades, [8]).mean[0] == 94
    stored, _ = submitted(most_votes(bank.candidates()), grades)
    assert 100 * stored.mean() == pytest.approx(93), "ties to the earliest of the stored order"
    assert 100 * plurality(bank.candidates(), grades, [8]).mean[0] == pytest.approx(92.5), "tied answers share"
    assert roc_auc(bank.layers["reward"].values, grades).pooled > 0.8


def reward_bank(rows: list[dict[str, Any]]) -> tuple[Bank, Outcomes]:
    bank = Bank.of(
        [[each or None for each in row["pred"]] for row in rows],
        scores={"reward": [np.ravel(row["pred_score"]) for row in rows]},
    )
    return bank, Outcomes.of(bank, np.array([row["score"] for row in rows], dtype=float), "the released labels")

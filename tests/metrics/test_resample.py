"""Bootstraps against their own slow definitions, and intervals against textbooks' answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from ramify.bank import Bank, Outcomes, Proposal
from ramify.errors import InvalidValue
from ramify.metrics import (
    Accuracy,
    BCa,
    Functional,
    GeomAt,
    MeanGPassAt,
    PassArea,
    PassAt,
    Percentile,
    Resample,
    Studentised,
    Tally,
    bank_profile,
    bootstrap,
    bootstrap_difference,
    bootstrap_means,
    bootstrap_profile,
)
from ramify.types import Key

KEY = Key("test", "resample", 0, "bootstrap")
FUNCTIONALS = (PassAt(4), GeomAt(4), GeomAt(4, "question"), MeanGPassAt(5), PassArea(6))


def bank(questions: int, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((questions, n)) < rng.beta(0.5, 0.5, questions)[:, None]).astype(float)


def same_law(one: np.ndarray, other: np.ndarray) -> None:
    """Two samples of one law: means and spreads within five standard errors."""
    error = np.sqrt(one.var() / len(one) + other.var() / len(other))
    assert abs(one.mean() - other.mean()) < 5 * error
    assert one.std() == pytest.approx(other.std(), rel=5 / np.sqrt(min(len(one), len(other))))


@pytest.mark.parametrize("functional", FUNCTIONALS, ids=repr)
def test_the_histogram_bootstrap_is_the_bootstrap_of_the_statistic(functional: Functional) -> None:
    grades = bank(40, 6)

    def statistic(table: np.ndarray) -> float:
        return float(functional(bank_profile(Tally.of(table))))

    fast = bootstrap_profile(Tally.of(grades), functional, KEY, 4_000)
    slow = bootstrap(grades, statistic, KEY, 1_000)
    assert fast.value == pytest.approx(slow.value, rel=1e-12)
    same_law(fast.replicates, slow.replicates)
    for sample in (fast, slow):  # leave-one-out values: the same multiset, by cells or by questions
        assert np.average(sample.left, weights=sample.times) == pytest.approx(slow.left.mean(), rel=1e-12)
    assert BCa()(fast).low == pytest.approx(BCa()(slow).low, abs=0.02)


def test_the_means_bootstrap_is_the_bootstrap_of_the_mean() -> None:
    table = bank(50, 3)
    fast = bootstrap_means(table, KEY, 4_000, then=lambda m: m[..., 0] - m[..., 2])
    slow = bootstrap(table, lambda t: float(t[:, 0].mean() - t[:, 2].mean()), KEY, 1_000)
    assert fast.value == slow.value
    assert len(fast.left) <= 8, "eight kinds of question"
    assert np.allclose(np.sort(np.repeat(fast.left, fast.times)), np.sort(slow.left), rtol=1e-12)
    same_law(fast.replicates, slow.replicates)
    values = np.random.default_rng(1).random(50)
    assert np.allclose(bootstrap_means(values, KEY, 10).left, [np.delete(values, q).mean() for q in range(50)])


def test_missing_values_of_a_column_are_left_out_of_its_mean() -> None:
    table = np.array([[1.0, np.nan], [0.0, 4.0], [1.0, 2.0], [1.0, np.nan]])
    found = bootstrap_means(table, KEY, 500, then=lambda m: m[..., 1])
    assert found.value == 3.0
    assert found.left.tolist() == [3.0, 2.0, 4.0, 3.0]
    lost = 500 - len(found.replicates)
    assert 5 < lost < 70, "one in 16 replicates draws neither of the two questions that have a value"
    assert found.note == f"{lost} replicates without a value left out"
    with pytest.raises(InvalidValue, match="each column needs values in at least two questions"):
        bootstrap_means(np.full((3, 1), np.nan), KEY)


def test_clusters_are_drawn_whole() -> None:
    grades = np.repeat(bank(12, 5, seed=2), 4, axis=0)  # four copies of each: 48 questions, 12 pieces of information
    clusters = np.repeat(np.arange(12), 4)
    tally = Tally.of(grades)
    blind, aware = (bootstrap_profile(tally, PassAt(3), KEY, 4_000, clusters=c) for c in (None, clusters))
    assert aware.spread == pytest.approx(2 * blind.spread, rel=0.1), "√4 wider"
    slow = bootstrap(grades, lambda t: float(PassAt(3)(bank_profile(Tally.of(t)))), KEY, 800, clusters=clusters)
    same_law(aware.replicates, slow.replicates)
    assert "12 clusters drawn whole" in Percentile()(aware).note
    means = bootstrap_means(grades.mean(1), KEY, 4_000, clusters=clusters)
    same_law(means.replicates, bootstrap_profile(tally, Accuracy(), KEY, 4_000, clusters=clusters).replicates)


@pytest.mark.parametrize("clusters", [None, np.arange(30) // 2])
def test_the_two_level_bootstrap_draws_candidates_again(clusters: Any) -> None:
    grades, rng = bank(30, 8), np.random.default_rng(5)
    functional = PassAt(4)

    def once() -> float:
        if clusters is None:
            rows = rng.integers(0, 30, 30)
        else:
            rows = np.concatenate([[2 * c, 2 * c + 1] for c in rng.integers(0, 15, 15)])
        drawn = grades[rows[:, None], rng.integers(0, 8, (30, 8))]
        return float(functional(bank_profile(Tally.of(drawn))))

    slow = np.array([once() for _ in range(1_500)])
    fast = bootstrap_profile(Tally.of(grades), functional, KEY, 4_000, over=("questions", "draws"), clusters=clusters)
    centred = fast.replicates - fast.value + 1 - np.mean((1 - grades.mean(1)) ** 4)  # the truth of the resampled world
    same_law(centred, slow)
    assert fast.covers == ("questions", "draws")


def test_drawing_candidates_alone_keeps_the_questions() -> None:
    grades, rng = bank(20, 10), np.random.default_rng(6)
    slow = np.array([grades[np.arange(20)[:, None], rng.integers(0, 10, (20, 10))].mean() for _ in range(2_000)])
    fast = bootstrap_profile(Tally.of(grades), Accuracy(), KEY, 4_000, over=("draws",))
    same_law(fast.replicates, slow)
    assert fast.covers == ("draws",)
    assert Percentile()(fast).width < Percentile()(bootstrap_profile(Tally.of(grades), Accuracy(), KEY, 4_000)).width


def test_paired_differences_see_that_questions_are_shared() -> None:
    rng = np.random.default_rng(7)
    p = rng.beta(0.4, 0.4, 60)[:, None]
    one, other = (Tally.of((rng.random((60, 8)) < np.clip(p + shift, 0, 1)).astype(int)) for shift in (0.1, 0.0))
    paired = bootstrap_difference(one, other, Accuracy(), KEY, 6_000)
    assert paired.value == pytest.approx(one.correct.mean() / 8 - other.correct.mean() / 8, rel=1e-12)
    apart = [bootstrap_profile(tally, Accuracy(), KEY, 6_000).spread for tally in (one, other)]
    assert paired.spread < 0.5 * np.hypot(apart[0], apart[1]), "difficulty cancels"
    d = one.correct / 8 - other.correct / 8
    assert paired.spread == pytest.approx(d.std() / np.sqrt(60), rel=0.05)
    assert Percentile()(bootstrap_difference(one, one, PassAt(3), KEY, 100)).width == 0
    both = bootstrap_difference(one, other, Accuracy(), KEY, 2_000, over=("questions", "draws"))
    assert both.spread > paired.spread


def test_a_pair_leaves_out_what_either_lacks() -> None:
    nan = np.nan
    one = Tally.of([[1, 1, 0], [0, 0, 1], [1, nan, nan], [1, 1, 1]])
    other = Tally.of([[0, 1, 0], [0, nan, nan], [1, 1, 1], [1, 0, 1]])
    sample = bootstrap_difference(one, other, PassAt(2), KEY, 200)
    assert sample.value == pytest.approx((1 + 1) / 2 - (2 / 3 + 1) / 2)
    assert "2 of 4 questions left out: fewer than 2 graded" in sample.note


def test_percentile_and_bca_against_scipy() -> None:
    values = np.random.default_rng(8).exponential(size=40)
    sample = bootstrap_means(values, KEY, 20_000)
    for interval, method in ((Percentile(0.9), "percentile"), (BCa(0.9), "BCa")):
        options: Any = {"confidence_level": 0.9, "n_resamples": 20_000, "method": method}
        theirs = scipy_bootstrap((values,), np.mean, **options, rng=np.random.default_rng(1)).confidence_interval
        assert interval(sample).low == pytest.approx(theirs.low, abs=0.01)
        assert interval(sample).high == pytest.approx(theirs.high, abs=0.015)


def test_the_studentised_interval_of_a_mean_is_the_textbooks() -> None:
    values = np.random.default_rng(9).exponential(size=30)
    sample = bootstrap_means(values, KEY, 5_000, errors=True)
    assert sample.error == pytest.approx(values.std() / np.sqrt(30), rel=1e-6), (
        "the infinitesimal jackknife is exact here"
    )
    slow = bootstrap(values[:, None], np.mean, KEY, 3_000, error=lambda t: float(t.std() / np.sqrt(len(t))))
    one, other = Studentised()(sample), Studentised()(slow)
    assert one.low == pytest.approx(other.low, abs=0.03)
    assert one.high == pytest.approx(other.high, abs=0.08)
    assert one.high - sample.value > 1.3 * (sample.value - one.low), "skewed as the data are"


def test_the_error_of_a_functional_is_its_delta_method() -> None:
    tally = Tally.of(bank(80, 6))
    sample = bootstrap_profile(tally, GeomAt(3), KEY, 4_000, errors=True)
    assert sample.error == pytest.approx(sample.spread, rel=0.08)


def test_intervals_stay_in_range_and_degenerate_ones_are_points() -> None:
    nearly = Tally.of(np.concatenate([np.ones((30, 4)), [[1, 1, 1, 0]]]))
    sample = bootstrap_profile(nearly, Accuracy(), KEY, 2_000, errors=True)
    for interval in (Percentile(), BCa(), Studentised()):
        found = interval(sample)
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.covers == ("questions",)
    always = bootstrap_profile(Tally.of(np.ones((5, 4))), PassAt(2), KEY, 100, errors=True)
    for interval in (Percentile(), BCa(), Studentised()):
        assert (interval(always).low, interval(always).high) == (1.0, 1.0)


def test_the_same_key_gives_the_same_interval() -> None:
    tally = Tally.of(bank(20, 5))
    one, again = (BCa()(bootstrap_profile(tally, PassAt(2), KEY, 500)) for _ in range(2))
    other = BCa()(bootstrap_profile(tally, PassAt(2), KEY._replace(sample=1), 500))
    assert one == again
    assert one != other


def test_what_cannot_be_resampled_is_refused() -> None:
    tally = Tally.of(bank(6, 4))
    search = Bank.of({f"q{i}": ["A", "B"] for i in range(3)}, proposal=Proposal("search"))
    found = Tally.of_bank(search, Outcomes.of(search, [[1.0, 0.0]] * 3))
    assert "descriptive of this search bank" in bootstrap_profile(found, Accuracy(), KEY, 10).note
    refusals: list[tuple[str, Any]] = [
        (
            "drawing candidates again needs independent draws",
            lambda: bootstrap_profile(found, Accuracy(), KEY, over=("draws",)),
        ),
        ("k = 5: use k <= 4", lambda: bootstrap_profile(tally, PassAt(5), KEY)),
        ("over", lambda: bootstrap_profile(tally, PassAt(2), KEY, over=("judge",))),
        ("at least two questions", lambda: bootstrap_profile(tally.take(np.array([0])), PassAt(2), KEY)),
        ("replicates = 0", lambda: bootstrap_profile(tally, PassAt(2), KEY, 0)),
        ("name the cluster", lambda: bootstrap_profile(tally, PassAt(2), KEY, clusters=[1, 2])),
        ("errors within a replicate", lambda: bootstrap_profile(tally, PassAt(2), KEY, over=("draws",), errors=True)),
        ("the same 6 questions", lambda: bootstrap_difference(tally, found, PassAt(2), KEY)),
        ("say which number", lambda: bootstrap_means(np.ones((3, 2)), KEY)),
        ("resample with errors=True", lambda: Studentised()(bootstrap_profile(tally, PassAt(2), KEY, 10))),
        ("Percentile.level = 95", lambda: Percentile(95)),
    ]
    for message, call in refusals:
        with pytest.raises(InvalidValue, match=message):
            call()


def test_bca_by_hand() -> None:
    # Two of ten replicates below, none equal: z0 = Φ⁻¹(0.2). No skew: the ends are Φ(2 z0 ± 1.2816) at level 0.8.
    sample = Resample(2.5, np.arange(1.0, 11.0), np.array([1.0, 2.0, 3.0]), np.ones(3), ("questions",))
    found = BCa(0.8)(sample)
    assert found.low == pytest.approx(np.quantile(np.arange(1.0, 11.0), 0.0015), abs=0.02)  # Φ(-1.683 - 1.282)
    assert found.high == pytest.approx(np.quantile(np.arange(1.0, 11.0), 0.3441), abs=0.02)  # Φ(-1.683 + 1.282)

"""The profile against exact rationals, published figures, and what it must refuse."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.bank import Bank, Outcomes, Proposal
from ramify.errors import InvalidValue
from ramify.metrics import (
    Accuracy,
    GeomAt,
    GPassAt,
    MaxAt,
    MeanGPassAt,
    PassArea,
    PassAt,
    PassHat,
    StrictMajority,
    Tally,
    bank_profile,
    bootstrap_profile,
    latent_profile,
    observed,
)
from ramify.types import Key
from tests.metrics import oracle
from tests.metrics.oracle import off

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "banks"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the shared data is not here")


def rows(counts: list[tuple[int, int]]) -> Tally:
    return Tally(np.array([c for c, _ in counts]), np.array([n for _, n in counts]))


@st.composite
def tallies(draw: st.DrawFn, most: int = 30) -> list[tuple[int, int]]:
    graded = draw(st.lists(st.integers(1, most), min_size=1, max_size=6))
    return [(draw(st.integers(0, n)), n) for n in graded]


@given(tallies(16))
def test_the_finite_bank_profile_is_the_exact_rational_for_every_k_and_t(counts: list[tuple[int, int]]) -> None:
    profile = bank_profile(rows(counts))
    table = profile.all()
    for k in range(1, profile.top + 1):
        kept = [(c, n) for c, n in counts if n >= k]
        exact = oracle.mean([oracle.tails(oracle.subsets(c, n, k)) for c, n in kept])
        assert profile.left_out(k) == len(counts) - len(kept)
        for t in range(k):
            assert off(profile.at(k)[t], exact[t]) < 1e-12
            assert off(table[k - 1, t], exact[t]) < 1e-12
        assert not table[k - 1, k:].any()


@given(tallies(20), st.integers(1, 20))
def test_the_profile_falls_in_t_and_its_mean_over_t_is_the_accuracy(counts: list[tuple[int, int]], k: int) -> None:
    profile = bank_profile(rows(counts))
    k = min(k, profile.top)
    s = profile.at(k)
    kept = [(c, n) for c, n in counts if n >= k]
    assert (np.diff(s) <= 1e-15).all()
    assert s.mean() == pytest.approx(np.mean([c / n for c, n in kept]), rel=1e-12)


@pytest.mark.parametrize(
    ("correct", "n", "k"), [(0, 80, 80), (80, 80, 80), (7, 80, 40), (1, 10_000, 80), (4_999, 10_000, 5_000)]
)
def test_large_banks_are_exact_too(correct: int, n: int, k: int) -> None:
    found = bank_profile(rows([(correct, n)])).at(k)
    for t in sorted({1, 2, k // 2, k // 2 + 1, k - 1, k}):
        exact = oracle.subset_tail(correct, n, k, t)
        if exact == 0 or float(exact) > 1e-300:
            assert off(found[t - 1], exact) < 1e-12, t


@given(st.lists(st.fractions(0, 1, max_denominator=50), min_size=1, max_size=4), st.integers(1, 40))
def test_the_latent_profile_is_the_mean_binomial_tail(p: list[F], k: int) -> None:
    p = [F(float(each)) for each in p]  # what the package is given
    found = latent_profile([float(each) for each in p], k)
    exact = oracle.mean([oracle.tails(oracle.fresh(each, k)) for each in p])
    for t in range(k):
        assert off(found.at(k)[t], exact[t]) < 1e-12
    half = max(1, k // 2)
    thinned = oracle.mean([oracle.tails(oracle.fresh(each, half)) for each in p])
    assert off(found.at(half)[0], thinned[0]) < 1e-12, "smaller budgets by thinning"


@pytest.mark.parametrize("k", [256, 257, 700])
def test_the_latent_profile_of_long_budgets(k: int) -> None:
    p = [F(1, 8), F(1, 2), F(15, 16), F(1), F(0)]
    found, exact = (
        latent_profile([float(each) for each in p], k).at(k),
        oracle.mean([oracle.tails(oracle.fresh(each, k)) for each in p]),
    )
    for t in (1, k // 3, k // 2, k):
        assert off(found[t - 1], exact[t - 1]) < 1e-12


def test_the_blocks_of_the_latent_profile_add_up() -> None:
    p = np.random.default_rng(0).random((3, 40_000))  # more than a block of questions
    parts = [latent_profile(p[:, i : i + 8_000], 6).at(6) for i in range(0, 40_000, 8_000)]
    assert np.allclose(latent_profile(p, 6).at(6), np.mean(parts, axis=0), rtol=1e-13)
    assert np.array_equal(latent_profile(p[1], 6).at(6), latent_profile(p[1:2], 6).at(6)[0])


def test_published_counts_give_the_published_percentages() -> None:
    # The paper's evaluation: 3,600 questions, 650 never and 341 always solved in 80.
    correct = np.concatenate([np.zeros(650, int), np.full(341, 80), np.full(3600 - 991, 40)])
    profile = bank_profile(Tally(correct, np.full(3600, 80)))
    assert round(100 * float(PassAt(80)(profile)), 2) == 81.94
    assert round(100 * float(PassHat(80)(profile)), 2) == 9.47


def read(name: str) -> list[Any]:
    with gzip.open(DATA / name, "rt") as file:
        return [json.loads(line) for line in file] if name.endswith("jsonl.gz") else json.load(file)


@needs_data
def test_the_figures_of_the_reward_model_bank() -> None:
    tally = Tally.of([row["score"] for row in read("qwen25math_rm8/math_cot_100.jsonl.gz")])
    assert round(100 * float(Accuracy()(bank_profile(tally))), 1) == 91.0
    assert round(100 * float(PassAt(8)(bank_profile(tally))), 1) == 96.0


@needs_data
@pytest.mark.parametrize(("kind", "accuracy", "passed"), [("standard", 7.34, 33.0), ("cot", 4.03, 49.0)])
def test_the_figures_of_the_game_of_24(kind: str, accuracy: float, passed: float) -> None:
    logs = read(f"tot_gpt4_logs/game24__gpt-4_0.7_naive_{kind}_sample_100_start900_end1000.json.gz")
    tally = Tally.of([log.get("accs") or [info["r"] for info in log["infos"]] for log in logs])
    assert tally.graded.tolist() == [100] * 100
    assert round(100 * float(Accuracy()(bank_profile(tally))), 2) == accuracy
    assert round(100 * float(PassAt(100)(bank_profile(tally))), 1) == passed


@needs_data
def test_rows_that_were_never_graded_are_missing_and_not_wrong() -> None:
    grades: dict[tuple[int, int], list[float]] = defaultdict(list)
    for row in read("ethsri_rollouts_n16/rollouts.jsonl.gz"):
        grades[row["step"], row["row"] // 16].append(np.nan if row["oracle"] is None else row["oracle"])
    tally = Tally.of(list(grades.values()))
    profile = bank_profile(tally)
    assert round(100 * float(Accuracy()(profile)), 2) == 11.47
    assert round(100 * float(PassAt(16)(profile)), 1) == 66.3
    assert profile.left_out(16) == 64
    assert "64 of 640 questions left out" in observed(tally, PassAt(16)).note


# ------------------------------------------------------------------------------------------------------- functionals


def test_functionals_by_hand() -> None:
    # One question, 3 of 5 correct: of 3 candidates j = 1, 2, 3 are correct with probability 3/10, 6/10, 1/10.
    profile = bank_profile(rows([(3, 5)]))
    assert off(PassAt(3)(profile), F(1)) < 1e-15
    assert off(PassHat(3)(profile), F(1, 10)) < 1e-14
    assert off(MeanGPassAt(3)(profile), F(7, 10) / 2 + F(1, 10) / 2) < 1e-14  # t = 2, 3, divided by k - floor(k/2) = 2
    assert off(StrictMajority(3)(profile), F(7, 10)) < 1e-14
    assert off(GPassAt(3, 0.5)(profile), F(7, 10)) < 1e-14
    assert float(GeomAt(3)(profile)) == pytest.approx(np.sqrt(0.1), rel=1e-14)
    assert off(PassArea(3)(profile), (F(3, 5) / 2 + F(9, 10) + F(1, 2)) / 2) < 1e-14
    assert off(MaxAt(3)(profile), F(1)) < 1e-15


@pytest.mark.parametrize(
    ("k", "tau", "t"),
    [(5, 0.6, 3), (10, 0.3, 3), (7, 5 / 7, 5), (3, 1 / 3, 1), (80, 0.55, 44), (4, 1e-9, 1), (4, 1.0, 4)],
)
def test_the_threshold_of_g_pass_is_an_exact_ceiling(k: int, tau: float, t: int) -> None:
    profile = bank_profile(rows([(k // 2, k), (k - 1, k), (k, k), (1, k)]))
    assert GPassAt(k, tau)(profile) == profile.at(k)[t - 1]


def test_geom_of_the_dataset_and_of_each_question_are_two_numbers() -> None:
    profile = bank_profile(rows([(4, 4), (2, 4)]))  # at k = 2: Pass 1 and 5/6, pass^ 1 and 1/6
    assert float(GeomAt(2)(profile)) == pytest.approx(np.sqrt(11 / 12 * 7 / 12), rel=1e-14)
    assert float(GeomAt(2, "question")(profile)) == pytest.approx((1 + np.sqrt(5 / 36)) / 2, rel=1e-14)


def test_functionals_go_through_leading_axes() -> None:
    p = np.random.default_rng(1).random((2, 3, 20))
    together = latent_profile(p, 9)
    for functional in (Accuracy(), PassAt(5), MeanGPassAt(9), GeomAt(9), GPassAt(9, 0.4), PassArea(9), MaxAt(4)):
        alone = [[functional(latent_profile(p[i, j], 9)) for j in range(3)] for i in range(2)]
        assert np.allclose(functional(together), alone, rtol=1e-13)


# ------------------------------------------------------------------------------------------- what is not a number


def test_missing_grades_are_missing() -> None:
    nan = np.nan
    tally = Tally.of([[1, nan, 0, nan], [nan] * 4, [1, 1, 1, 1]])
    assert (tally.correct.tolist(), tally.graded.tolist()) == ([1, 0, 4], [2, 0, 4])
    profile = bank_profile(tally)
    assert float(Accuracy()(profile)) == 0.75
    assert [profile.left_out(k) for k in (1, 2, 3, 4)] == [1, 1, 2, 2]
    masked = np.ma.masked_array([[1, 0, 0, 0], [1, 1, 1, 1]], [[False, True, False, True], [False] * 4])
    assert (Tally.of(masked).correct.tolist(), Tally.of(masked).graded.tolist()) == ([1, 4], [2, 4])


@pytest.mark.parametrize(
    ("grades", "message"),
    [
        (np.zeros((3, 0)), "all missing"),
        (np.full((3, 2), np.nan), "all missing"),
        ([[0.5, 1.0]], r"grades = \[0.5\]: use 0, 1 or missing; graded levels are a RubricTally"),
        ([[2, 1]], r"grades = \[2\]"),
        ([[-1, 1]], r"grades = \[-1\]"),
        ([[np.inf, 1]], "use 0, 1 or missing"),
        (np.zeros((0, 4)), "at least one question"),
        ([1, 0, 1], r"use \[Q, N\]"),
        ([["yes", "no"]], "use numbers or booleans"),
        (Bank.of({"q": ["1"]}), "Tally.of_bank"),
        ([[1 + 0j, 0]], "use numbers or booleans"),
    ],
)
def test_what_cannot_be_tallied_is_refused_by_name(grades: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        bank_profile(Tally.of(grades))


def test_grades_that_are_no_tally_are_sent_to_one() -> None:
    with pytest.raises(InvalidValue, match=r"use Tally.of\(grades\)"):
        bank_profile([[1, 0]])  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"use Tally.of\(grades\)"):
        bootstrap_profile([[1, 0]], PassAt(1), Key("run", "q", 0))  # type: ignore[arg-type]


def test_budgets_beyond_the_bank_are_refused_with_a_remedy() -> None:
    profile = bank_profile(Tally.of([[1, 0, 1]]))
    with pytest.raises(InvalidValue, match=r"k = 4: use k <= 3, .* or the posterior profile"):
        profile.at(4)
    for k in (0, -1, 2.0, True):
        with pytest.raises(InvalidValue, match="use an integer >= 1"):
            profile.at(k)  # type: ignore[arg-type]
    for p in ([0.2, np.nan], [1.2], [], [-0.1]):
        with pytest.raises(InvalidValue, match=r"p = "):
            latent_profile(p, 3)


def test_a_bank_that_is_not_iid_is_described_and_says_so() -> None:
    bank = Bank.of({"q": ["A", "A", "B"]}, proposal=Proposal("search"))
    outcomes = Outcomes.of(bank, [[1.0, 1.0, 0.0]])
    found = observed(Tally.of_bank(bank, outcomes), PassAt(1))
    assert found.covers == ()
    assert str(found) == "0.6667 (descriptive; descriptive of this search bank)"
    assumed = Tally.of_bank(bank.assuming_independence("restarts from the root"), outcomes)
    assert "restarts from the root" in observed(assumed, PassAt(1)).note

"""Rubric outcomes: exact rationals on the lattice of the scores, and the binary profile as the two-level case."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.bank import Bank, Outcomes, Proposal
from ramify.errors import InvalidValue
from ramify.metrics import (
    DirichletPosterior,
    GeomAt,
    GPassAt,
    MaxAt,
    MeanGPassAt,
    PassArea,
    PassAt,
    Posterior,
    RubricTally,
    Tally,
    bank_profile,
)
from ramify.types import Key
from tests.metrics import oracle
from tests.metrics.oracle import off

KEY = Key("test", "rubric", 0, "draws")
SCALES = [
    (F(0), F(1, 2), F(1)),
    (F(0), F(1, 3), F(2, 3), F(1)),
    (F(1, 10), F(1, 5), F(3, 10), F(9, 10)),
    (F(0), F(1, 7)),
]


@given(st.sampled_from(SCALES), st.data(), st.integers(1, 6))
@settings(max_examples=40)
def test_finite_bank_and_posterior_tails_are_exact_rationals(
    scores: tuple[F, ...], data: st.DataObject, k: int
) -> None:
    level = st.lists(st.integers(0, 4), min_size=len(scores), max_size=len(scores))
    counts = data.draw(st.lists(level.filter(lambda row: sum(row) >= 6), min_size=1, max_size=3))
    tally = RubricTally(np.array(counts), scores)
    bank = [oracle.rubric_subsets(row, scores, k) for row in counts]
    later = [oracle.rubric_predictive([F(1, 2) + c for c in row], scores, k) for row in counts]
    posterior = DirichletPosterior.of(tally, prior=0.5).profile()
    for t in range(1, k + 1):
        exact = [sum((oracle.reaching(law, F(t, k)) for law in laws), F(0)) / len(laws) for laws in (bank, later)]
        assert off(tally.profile().at(k)[t - 1], exact[0]) < 1e-12
        assert off(posterior.at(k)[t - 1], exact[1]) < 1e-12
    for tau in (0.1, 0.25, 1 / 3, 0.6, 0.95):
        share = F(tau).limit_denominator(1000)
        reached = sum((oracle.reaching(law, share) for law in bank), F(0)) / len(bank)
        assert off(tally.profile().tail(k, tau), reached) < 1e-12


def test_a_threshold_that_three_tenths_reach_is_reached() -> None:
    # 0.1 + 0.1 + 0.1 = 0.30000000000000004 > 0.3, and 0.7 + 0.1 + 0.1 = 0.8999999999999999 < 0.9: not here.
    tally = RubricTally.of([[0.1, 0.1, 0.1], [0.7, 0.1, 0.1]], scores=(0, 0.1, 0.7, 1))
    assert float(tally.profile().tail(3, 0.1)) == 1.0
    assert float(tally.profile().tail(3, 0.3)) == 0.5


@given(st.integers(0, 2**40), st.integers(1, 9))
def test_the_binary_profile_is_the_two_level_case(seed: int, k: int) -> None:
    grades = (np.random.default_rng(seed).random((5, 9)) < 0.4).astype(float)
    rubric, binary = RubricTally.of(grades, scores=(0, 1)), Tally.of(grades)
    one, other = rubric.profile(), bank_profile(binary)
    later, also = DirichletPosterior.of(rubric).profile(), Posterior.of(binary).profile(k)
    assert np.allclose(one.at(k), other.at(k), rtol=1e-12, atol=0)
    assert np.allclose(later.at(k), also.at(k), rtol=1e-12, atol=0)
    for f in (PassAt(k), GPassAt(k, 0.6), MeanGPassAt(k), GeomAt(k), GeomAt(k, "question"), MaxAt(k), PassArea(k)):
        assert float(f(one)) == pytest.approx(float(f(other)), rel=1e-12)


def test_the_expected_best_score() -> None:
    # Two of (0, 1/2, 1): the best is 1/2 with probability 1/3 and 1 with 2/3.
    tally = RubricTally.of([[0, 0.5, 1.0]], scores=(0, 0.5, 1))
    assert off(MaxAt(2)(tally.profile()), F(5, 6)) < 1e-14
    assert off(MaxAt(3)(tally.profile()), F(1)) < 1e-14
    later = DirichletPosterior.of(tally)  # Dirichlet(2, 2, 2)
    below = [oracle.predictive(F(4), F(2), 2)[0], oracle.predictive(F(2), F(4), 2)[0]]  # none above 0, none above 1/2
    assert off(MaxAt(2)(later.profile()), 1 - sum(below, F(0)) / 2) < 1e-13


def test_draws_average_to_the_exact_posterior() -> None:
    tally = RubricTally.of([[0, 0.25, 1, 0.25], [0.5, 0.5, 1, 1], [0, 0, 0, 0.25]], scores=(0, 0.25, 0.5, 1))
    posterior = DirichletPosterior.of(tally)
    draws, n = posterior.draws(KEY, 4_000), 4_000
    for f in (PassAt(5), GPassAt(5, 0.3), MeanGPassAt(5), MaxAt(5), PassArea(3)):
        values = f(draws)
        assert values.shape == (n,)
        assert abs(values.mean() - float(f(posterior.profile()))) < 5 * values.std() / np.sqrt(n)
    assert ((GeomAt(3, "question")(draws) >= 0) & (GeomAt(3, "question")(draws) <= 1)).all()
    with pytest.raises(InvalidValue, match="ask the posterior's draws"):
        GeomAt(3, "question")(posterior.profile())


def test_many_levels_at_eighty() -> None:
    scores = tuple(F(i, 20) for i in range(21))
    grades = np.random.default_rng(0).choice([float(s) for s in scores], size=(2, 80))
    tally = RubricTally.of(grades, scores)
    assert tally.profile().at(80).tolist() == pytest.approx(
        [np.mean([row.mean() >= t / 80 - 1e-12 for row in grades]) for t in range(1, 81)], abs=1e-12
    ), "all 80 of 80: the observed mean, exactly"
    later = DirichletPosterior.of(tally).profile()
    law = later.law(80)
    assert law.sum() == pytest.approx(1, rel=1e-12)
    mean = law @ np.arange(len(law)) / (80 * 20)
    assert mean == pytest.approx(later.mean(), rel=1e-12), "the mean of 80 has the mean of one"


def test_unequal_banks_and_missing_grades() -> None:
    tally = RubricTally.of([[0, 0.5, np.nan], [1, 1, 0.5], [np.nan] * 3], scores=(0, 0.5, 1))
    assert tally.counts.tolist() == [[1, 1, 0], [0, 1, 2], [0, 0, 0]]
    assert [tally.profile().left_out(k) for k in (1, 2, 3)] == [1, 1, 2]
    assert off(tally.profile().at(3)[2], F(0)) == 0
    with pytest.raises(InvalidValue, match="k = 4: use k <= 3"):
        tally.profile().at(4)


@pytest.mark.parametrize(
    ("grades", "scores", "message"),
    [
        ([[0.3]], (0, 0.5, 1), "use one of the scores 0, 1/2, 1, or missing"),
        ([[0.0]], (0,), "two levels or more"),
        ([[0.0]], (0, 0, 1), "ascending"),
        ([[0.0]], (0, 1.5), r"in \[0, 1\]"),
        ([[np.nan]], (0, 1), "all missing"),
    ],
)
def test_what_is_not_on_the_rubric_is_refused(grades: Any, scores: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        RubricTally.of(grades, scores).profile()


def test_a_search_bank_has_no_dirichlet_posterior() -> None:
    bank = Bank.of({"q": ["A", "B"]}, proposal=Proposal("sweep"))
    tally = RubricTally.of_bank(bank, Outcomes.of(bank, [[0.5, 1.0]]), scores=(0, 0.5, 1))
    assert tally.profile().remark == "descriptive of this sweep bank"
    with pytest.raises(InvalidValue, match="this bank is sweep"):
        DirichletPosterior.of(tally)

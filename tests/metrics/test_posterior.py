"""Beta posteriors: exact rationals for the moments, simulation for the draws, and priors that are seen."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.bank import Bank, Outcomes, Proposal
from ramify.errors import InvalidValue
from ramify.metrics import (
    Accuracy,
    BetaPrior,
    GeomAt,
    MaxAt,
    MeanGPassAt,
    PassArea,
    PassAt,
    PassHat,
    Posterior,
    Tally,
    bank_profile,
    credible,
    fit_prior,
    refitted,
    sensitivity,
)
from ramify.types import Key
from tests.metrics import oracle
from tests.metrics.oracle import off

KEY = Key("test", "posterior", 0, "draws")

PRIORS = st.sampled_from([(F(1), F(1)), (F(1, 2), F(1, 2)), (F(1, 4), F(3)), (F(64), F(64)), (F(1, 1024), F(1, 1024))])


@given(PRIORS, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=4), st.integers(1, 30))
def test_the_posterior_mean_profile_is_the_exact_rational_at_any_k(
    prior: tuple[F, F], counts: list[tuple[int, int]], k: int
) -> None:
    tally = Tally(np.array([c for c, _ in counts]), np.array([c + w for c, w in counts]))
    found = Posterior.of(tally, BetaPrior(float(prior[0]), float(prior[1]))).profile(k)
    exact = oracle.mean([oracle.tails(oracle.predictive(prior[0] + c, prior[1] + w, k)) for c, w in counts])
    for t in range(k):
        assert off(found.at(k)[t], exact[t]) < 1e-12
    smaller = max(1, k // 3)
    exact = oracle.mean([oracle.tails(oracle.predictive(prior[0] + c, prior[1] + w, smaller)) for c, w in counts])
    assert off(found.at(smaller)[0], exact[0]) < 1e-12
    assert off(found.all()[smaller - 1, smaller - 1], exact[-1]) < 1e-12


@given(PRIORS, st.tuples(st.integers(0, 40), st.integers(0, 40)), st.integers(1, 8))
@settings(max_examples=30)
def test_the_posterior_covariance_is_the_exact_rational_into_its_corners(
    prior: tuple[F, F], counts: tuple[int, int], k: int
) -> None:
    tally = Tally(np.array([counts[0], 1]), np.array([sum(counts), 2]))
    found = Posterior.of(tally, BetaPrior(float(prior[0]), float(prior[1]))).covariance(k)
    one = oracle.covariance(prior[0] + counts[0], prior[1] + counts[1], k)
    two = oracle.covariance(prior[0] + 1, prior[1] + 1, k)
    for t in range(k):
        for u in range(k):
            assert off(found[t, u], (one[t][u] + two[t][u]) / 4) < 1e-12


def test_a_question_never_solved_in_eighty_counts_a_half_under_the_flat_prior() -> None:
    never = Tally.of(np.zeros((1, 80)))
    assert off(PassAt(80)(Posterior.of(never).profile(80)), F(80, 161)) < 1e-14  # 1 - 81/161, in closed form
    assert (
        off(
            PassAt(80)(Posterior.of(never, BetaPrior(0.5, 0.5)).profile(80)),
            1 - oracle.predictive(F(1, 2), F(161, 2), 80)[0],
        )
        < 1e-12
    )
    assert float(PassAt(80)(bank_profile(never))) == 0


def test_sensitivity_shows_what_the_prior_decides() -> None:
    grades = np.concatenate([np.zeros((60, 16)), np.ones((30, 16)), np.eye(16)[:10]])
    found = sensitivity(Tally.of(grades), PassAt(64), KEY, draws=500)
    assert list(found) == ["flat", "Jeffreys", "fitted"]
    assert found["flat"].value > found["Jeffreys"].value > found["fitted"].value > 0.4
    assert found["fitted"].high < found["flat"].low, "the bank has not decided, the prior has"
    assert found["flat"].covers == ("draws",)
    own = sensitivity(Tally.of(grades), PassAt(4), KEY, draws=500, priors={"sceptic": BetaPrior(1.0, 20.0)})
    assert own["sceptic"].note == "Beta(1, 20)"


def test_the_fitted_prior_finds_the_difficulty_it_was_drawn_from() -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(0.4, 0.8, 4_000)
    tally = Tally(rng.binomial(20, p), np.full(4_000, 20))
    fitted = fit_prior(tally)
    assert fitted.alpha == pytest.approx(0.4, rel=0.06)
    assert fitted.beta == pytest.approx(0.8, rel=0.06)
    alike = fit_prior(Tally(np.full(50, 5), np.full(50, 10)))
    assert alike.alpha + alike.beta > 1e3, "questions that fare alike leave a prior without spread"
    assert alike.alpha / (alike.alpha + alike.beta) == pytest.approx(0.5, abs=1e-6)


def test_priors_by_question_and_prior_banks_with_a_weight() -> None:
    now, before = Tally.of([[1, 0, 0], [1, 1, 1]]), Tally.of([[1, 1, 1, 1], [0, 0, 0, 1]])
    posterior = Posterior.of(now, (np.array([1.0, 2.0]), np.array([3.0, 0.5])), auxiliary=before, weight=0.25)
    assert posterior.a.tolist() == [1 + 1 + 1.0, 2 + 3 + 0.25]
    assert posterior.b.tolist() == [3 + 2 + 0.0, 0.5 + 0 + 0.75]
    exact = oracle.mean([oracle.tails(oracle.predictive(a, b, 5)) for a, b in [(F(3), F(5)), (F(21, 4), F(5, 4))]])
    assert max(off(x, e) for x, e in zip(posterior.profile(5).at(5), exact, strict=True)) < 1e-12
    with pytest.raises(InvalidValue, match=r"weight = 1\.5"):
        Posterior.of(now, auxiliary=before, weight=1.5)
    with pytest.raises(InvalidValue, match="the same 2 questions"):
        Posterior.of(now, auxiliary=Tally.of([[1]]))


def test_draws_have_the_exact_mean_and_covariance_and_are_shared() -> None:
    tally = Tally.of((np.arange(24).reshape(6, 4) % 5 < 2).astype(int))
    posterior, n = Posterior.of(tally), 40_000
    draws = posterior.draws(KEY, n).profile(6)
    s = draws.at(6)
    error = np.sqrt(np.diag(posterior.covariance(6)) / n)
    assert (np.abs(s.mean(0) - posterior.profile(6).at(6)) < 5 * error).all()
    assert np.allclose(np.cov(s.T), posterior.covariance(6), rtol=0.05)
    geom, hat = GeomAt(6)(draws), PassHat(6)(draws)
    assert np.allclose(geom**2, PassAt(6)(draws) * hat, rtol=1e-12), "one set of draws, draw by draw"
    again = posterior.draws(KEY, n).profile(3)
    assert np.allclose(draws.at(3), again.at(3), rtol=1e-10), "thinned from 6 and computed at 3: the same draws"
    assert np.allclose(Accuracy()(draws), MeanGPassAt(1)(draws), rtol=1e-14)


def test_functionals_read_the_draws_themselves() -> None:
    posterior = Posterior.of(Tally.of([[1, 0, 1], [0, 0, 0], [1, 1, 1]]))
    draws = posterior.draws(KEY, 300)
    for functional in (PassAt(4), PassArea(4), MaxAt(4), MeanGPassAt(5), GeomAt(4)):
        assert np.allclose(functional(draws), functional(draws.profile(functional.k)), rtol=1e-12)
    p = next(draws.blocks())[0]
    by_hand = np.sqrt((1 - (1 - p) ** 4) * p**4).mean(1)
    assert np.allclose(GeomAt(4, "question")(draws), by_hand, rtol=1e-10)
    with pytest.raises(InvalidValue, match="ask the posterior's draws"):
        GeomAt(4, "question")(posterior.profile(4))


def test_draws_over_questions_are_wider_and_say_so() -> None:
    tally = Tally.of(np.repeat([[1] * 30, [0] * 30], 20, axis=0))
    posterior = Posterior.of(tally)
    here, beyond = posterior.draws(KEY, 2_000), posterior.draws(KEY, 2_000, over_questions=True)
    fixed, further = (credible(Accuracy()(d.profile(1)), d.covers) for d in (here, beyond))
    assert (fixed.covers, further.covers) == (("draws",), ("questions", "draws"))
    assert further.width > 5 * fixed.width
    assert 0 <= further.low < further.high <= 1


def test_a_bank_that_is_not_iid_has_no_posterior_unless_somebody_says_why() -> None:
    bank = Bank.of({"q": ["A", "B"]}, proposal=Proposal("search"))
    outcomes = Outcomes.of(bank, [[1.0, 0.0]])
    tally = Tally.of_bank(bank, outcomes)
    for refuse in (Posterior.of, fit_prior):
        with pytest.raises(InvalidValue, match="this bank is search: use a descriptive finite-bank number"):
            refuse(tally)
    assumed = Posterior.of(Tally.of_bank(bank.assuming_independence("beams were restarted"), outcomes))
    assert "beams were restarted" in assumed.profile(3).remark


@pytest.mark.parametrize("prior", [(0.0, 1.0), (1.0, -1.0), (np.inf, 1.0)])
def test_improper_priors_are_refused(prior: tuple[float, float]) -> None:
    with pytest.raises(InvalidValue, match="BetaPrior"):
        BetaPrior(*prior)
    with pytest.raises(InvalidValue, match="Posterior"):
        Posterior.of(Tally.of([[0]]), prior)


def test_other_studies_scatter_as_their_candidates_do_where_all_questions_fare_alike() -> None:
    """Without spread between questions the mean of Q N candidates is binomial: sqrt(p (1 - p) / (Q N))."""
    tally = Tally.of([[1, 0, 0, 0, 0, 1, 0, 1]] * 30)
    prior = fit_prior(tally)
    others = PassAt(1)(refitted(tally, prior, 1, KEY, 150))
    assert others.std() == pytest.approx(math.sqrt(0.375 * 0.625 / 240), rel=0.25)
    known = PassAt(1)(Posterior.of(tally, prior).draws(KEY, 500, over_questions=True))
    assert known.std() < others.std() / 5  # which is what taking the fitted prior for known amounts to

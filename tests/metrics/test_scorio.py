"""Against scorio 0.2.3: equal where it is right, and each difference of docs/metrics.md pinned down."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from ramify.metrics import (
    BetaWeights,
    DirichletPosterior,
    EvenWeights,
    GeomAt,
    GPassAt,
    MaxAt,
    MaxEntropyWeights,
    MeanGPassAt,
    MomentWeights,
    PassArea,
    PassAt,
    PassHat,
    PayoffWeights,
    Percentile,
    Posterior,
    RubricTally,
    Tally,
    ThresholdUtility,
    bank_profile,
    bootstrap_profile,
    credible,
)
from ramify.types import Key
from tests.metrics import oracle
from tests.metrics.oracle import off

scorio = pytest.importorskip("scorio.eval")
weights = pytest.importorskip("scorio.eval.tailpass_weights")

KEY = Key("test", "scorio", 0, "draws")
RNG = np.random.default_rng(11)
BANK = (RNG.random((30, 12)) < RNG.beta(0.5, 0.5, 30)[:, None]).astype(int)
TALLY = Tally.of(BANK)


@pytest.mark.parametrize("k", [1, 2, 5, 8, 12])
def test_equal_on_binary_banks(k: int) -> None:
    profile, later = bank_profile(TALLY), Posterior.of(TALLY).profile(k)
    assert np.allclose(profile.at(k), scorio.tailpass_empirical(BANK, k), rtol=1e-12, atol=1e-15)
    assert float(PassAt(k)(profile)) == pytest.approx(scorio.pass_at_k(BANK, k), rel=1e-12)
    assert float(PassHat(k)(profile)) == pytest.approx(scorio.pass_hat_k(BANK, k), rel=1e-12)
    assert float(GPassAt(k, 0.6)(profile)) == pytest.approx(scorio.g_pass_at_k_tau(BANK, k, 0.6), rel=1e-12)
    assert float(PassArea(k)(profile)) == pytest.approx(scorio.auc_at_k(BANK, k), rel=1e-12)
    assert float(GeomAt(k)(profile)) == pytest.approx(scorio.geom_ds_at_k(BANK, k), rel=1e-12)
    assert float(GeomAt(k, "question")(profile)) == pytest.approx(scorio.geom_at_k(BANK, k), rel=1e-12)
    assert np.allclose(later.at(k), scorio.tailpass(BANK, k).mean, rtol=1e-12)
    assert np.allclose(Posterior.of(TALLY).covariance(k), scorio.tailpass(BANK, k).covariance, rtol=1e-5)
    if k % 2 == 0:
        assert float(MeanGPassAt(k)(profile)) == pytest.approx(scorio.mg_pass_at_k(BANK, k), rel=1e-12)


def test_equal_beyond_the_bank_and_with_a_prior_bank() -> None:
    prior = (RNG.random((30, 5)) < 0.5).astype(int)
    ours = Posterior.of(TALLY, auxiliary=Tally.of(prior), weight=0.3).profile(40).at(40)
    assert np.allclose(ours, scorio.tailpass(BANK, 40, R0=prior, eta=0.3).mean, rtol=1e-12)


def test_equal_on_rubrics_whose_scores_are_binary_fractions() -> None:
    codes = RNG.integers(0, 4, (12, 8))
    scores = [0, 0.25, 0.5, 1]
    tally = RubricTally.of(np.array(scores)[codes], scores)
    for k in (1, 3, 8):
        assert np.allclose(tally.profile().at(k), scorio.tailpass_empirical(codes, k, w=scores), rtol=1e-12, atol=1e-15)
        later = DirichletPosterior.of(tally).profile()
        assert np.allclose(later.at(k), scorio.tailpass(codes, k, w=scores).mean, rtol=1e-11)
        assert float(MaxAt(k)(tally.profile())) == pytest.approx(scorio.max_at_k(codes, k, w=scores), rel=1e-12)
        assert float(MaxAt(k)(later)) == pytest.approx(scorio.max_at_k_ci(codes, k, w=scores)[0], rel=1e-12)


def test_equal_weight_families() -> None:
    k, payoff = 9, (0, 0, 0, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 1)
    pairs: list[tuple[Any, Any]] = [
        (EvenWeights(), weights.uniform_weights(k)),
        (MomentWeights(0.3), weights.moment_weights(k, 0.3)),
        (MomentWeights(4.0), weights.moment_weights(k, 4.0)),
        (BetaWeights(0.7, 12.0), weights.beta_weights(k, 0.7, 12.0)),
        (MaxEntropyWeights(0.2), weights.maxent_weights(k, 0.2)),
        (MaxEntropyWeights(0.97), weights.maxent_weights(k, 0.97)),
        (PayoffWeights(payoff), weights.payoff_weights(payoff)),
    ]
    for ours, theirs in pairs:
        assert np.allclose(ours(k), theirs, rtol=1e-9, atol=1e-15), ours
        value = float(ThresholdUtility(k, ours)(bank_profile(TALLY)))
        assert value == pytest.approx(scorio.threshold_spectrum_at_k(BANK, k, theirs), rel=1e-9)


# ------------------------------------------------------------------------------- the differences, in the docs' order


def test_difference_rubric_thresholds() -> None:
    codes, scores = [[0, 1, 2, 1]], [0, 0.1, 0.7, 1]
    tally = RubricTally.of(np.array(scores)[np.array(codes)], scores)
    law = oracle.rubric_subsets([1, 2, 1, 0], [F(0), F(1, 10), F(7, 10), F(1)], 2)
    exact = oracle.reaching(law, F(2, 5))  # 0.1 and 0.7 make 0.4 on average
    assert exact == F(1, 3)
    assert off(tally.profile().tail(2, 0.4), exact) < 1e-12
    assert scorio.tailpass_empirical(codes, 2, w=scores, thresholds=[0.4])[0] == 0.0


def test_difference_many_levels() -> None:
    codes, scores = np.arange(6)[None], [0, 0.2, 0.4, 0.6, 0.8, 1]
    with pytest.raises(ValueError, match="count states; the limit is"):
        _ = scorio.tailpass(codes, 80, w=scores).mean
    ours = DirichletPosterior.of(RubricTally.of(np.array(scores)[codes], scores)).profile().at(80)
    assert ours[0] == pytest.approx(1.0)
    assert (np.diff(ours) <= 0).all()


def test_difference_odd_mean_g_pass() -> None:
    always = np.ones((1, 3), dtype=int)
    assert float(MeanGPassAt(3)(bank_profile(Tally.of(always)))) == pytest.approx(1.0)
    assert scorio.mg_pass_at_k(always, 3) == pytest.approx(2 / 3)
    assert scorio.mg_pass_at_k(always[:, :1], 1) == 0.0


def test_difference_geom() -> None:
    bank = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    assert float(GeomAt(2)(bank_profile(Tally.of(bank)))) == pytest.approx(np.sqrt(11 / 12 * 7 / 12))
    assert scorio.geom_at_k(bank, 2) == pytest.approx((1 + np.sqrt(5 / 36)) / 2), (
        "the question level under the plain name"
    )


def test_difference_intervals_outside_the_range() -> None:
    bank = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]])
    *_, high = scorio.avg_ci(bank)
    assert high > 1
    ours = Percentile()(bootstrap_profile(Tally.of(bank), PassAt(1), KEY, 500))
    assert ours.high <= 1
    assert credible(PassAt(1)(Posterior.of(Tally.of(bank)).draws(KEY, 500))).high <= 1


def test_difference_masked_data() -> None:
    masked = np.ma.masked_array([[1, 0, 0, 0], [1, 1, 1, 1]], [[False, True, True, True], [False] * 4])
    assert scorio.pass_at_k(masked, 1) == 0.625, "the mask is ignored, and what it hides counts as wrong"
    assert float(PassAt(1)(bank_profile(Tally.of(masked)))) == 1.0


def test_difference_covariance_corners() -> None:
    never = np.zeros((1, 80), dtype=int)  # p ~ Beta(1, 81), and κ_{80,80} = p^80
    moment = [oracle.rising(F(1), n) / oracle.rising(F(82), n) for n in (80, 160)]
    variance = moment[1] - moment[0] ** 2
    assert off(Posterior.of(Tally.of(never)).covariance(80)[79, 79], variance) < 1e-12
    assert scorio.tailpass(never, 80).covariance[79, 79] > 1e10 * variance

"""Calibrations against their definitions, SciPy and scorio; and the wall between fitting and evaluation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from ramify.bank import Bank, Layer
from ramify.describe import parse, text
from ramify.evidence import (
    HeldOut,
    Score,
    Transformed,
    annotate,
    density_ratio,
    isotonic,
    platt,
    quantile_bins,
    several,
)


def held(n: int = 60, seed: int = 0, tied: bool = False) -> HeldOut:
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 2, n).astype(float)
    scores = np.clip(0.5 + 0.2 * (outcomes - 0.5) + 0.2 * rng.normal(size=n), 0.01, 0.99)
    return HeldOut(
        "dev split", np.clip(np.round(scores, 1), 0.1, 0.9) if tied else scores, outcomes, ("d1", "d2"), "a test"
    )


def test_isotonic_is_the_nondecreasing_least_squares_fit() -> None:
    for seed in range(5):
        data = held(12, seed, tied=seed % 2 == 1)
        fit = isotonic(data)
        values = fit(data.scores)
        order = np.argsort(data.scores)
        assert (np.diff(values[order]) >= 0).all()
        # Brute force: the best nondecreasing step function is a max-min of block means (Barlow et al., 1972).
        at = np.unique(data.scores)
        mean = [data.outcomes[data.scores == x] for x in at]
        best = [
            max(min(np.concatenate(mean[a : b + 1]).mean() for b in range(i, len(at))) for a in range(i + 1))
            for i in range(len(at))
        ]
        assert fit(at).tolist() == pytest.approx(best)
        assert fit(np.array([-5.0, 5.0])).tolist() == [fit.value[0], fit.value[-1]]
        assert len(fit.at) <= len(at)


def test_platt_minimises_its_loss() -> None:
    data = held(80, 3)
    fit = platt(data)
    plus, minus = int(data.outcomes.sum()), int((1 - data.outcomes).sum())
    target = np.where(data.outcomes == 1, (plus + 1) / (plus + 2), 1 / (minus + 2))

    def loss(beta: np.ndarray) -> float:
        z = beta[0] * data.scores + beta[1]
        return float((np.logaddexp(0, z) - target * z).sum())

    other = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12})
    assert loss(np.array([fit.slope, fit.offset])) <= other.fun + 1e-9
    assert (fit.slope, fit.offset) == pytest.approx(tuple(other.x), abs=1e-4)


def test_platt_is_finite_on_separable_data() -> None:
    fit = platt(HeldOut("dev", [0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], ("d",)))
    assert 0 < fit.slope < 100
    assert fit(np.array([0.5])).tolist() == pytest.approx([0.5])


def test_density_ratio_is_two_gaussian_kernel_densities_on_logits() -> None:
    data = held(40, 1)
    fit = density_ratio(data)
    z = np.log(data.scores / (1 - data.scores))
    right, wrong = z[data.outcomes == 1], z[data.outcomes == 0]
    widths = [each.std(ddof=1) * each.size ** (-1 / 5) for each in (right, wrong)]  # METHODS.md: Scott
    assert fit.bandwidths == pytest.approx(widths)
    at = np.array([0.2, 0.7])
    x = np.log(at / (1 - at))[:, None]
    expected = np.log(norm.pdf(x, right, widths[0]).mean(1)) - np.log(norm.pdf(x, wrong, widths[1]).mean(1))
    assert fit(at).tolist() == pytest.approx(expected.tolist())


def test_density_ratio_and_bins_are_scorios() -> None:
    scorio = pytest.importorskip("scorio.aggregate")
    for seed in range(4):
        data = held(50, seed, tied=seed % 2 == 1)
        theirs = scorio.fit_kde_vote_calibration(data.scores, data.outcomes)
        at = np.linspace(0.05, 0.95, 19)
        assert density_ratio(data)(at).tolist() == pytest.approx(theirs.log_density_ratio(at).tolist())
        bins = quantile_bins(data)
        assert bins.edges == pytest.approx(tuple(theirs.bin_edges[1:-1]))
        assert bins.rates == pytest.approx(tuple(theirs.bin_probability))
        assert bins(at).tolist() == pytest.approx(theirs.calibrated_probability(at).tolist())


def test_the_offset_of_the_calibrated_log_odds_vote() -> None:
    """METHODS.md: q = .6, m = 4 gives log q + log(m - 1) - log(1 - q) = 1.50408; q is the mean of the bins' rates."""
    bins = quantile_bins(HeldOut("dev", [0.1, 0.2, 0.8, 0.9, 0.95], [0, 0, 1, 1, 1], ("d",)), bins=1)
    q = float(bins(np.array([0.3, 0.4])).mean())
    assert q == 0.6
    assert math.log(q) + math.log(3) - math.log(1 - q) == pytest.approx(1.50408, abs=5e-6)


def test_duplicate_edges_are_merged_and_no_bin_is_empty() -> None:
    bins = quantile_bins(HeldOut("dev", [0.2] * 40 + [0.4] * 13 + [0.9] * 2, [0] * 40 + [1] * 15, ("d",)))
    assert bins.edges == (0.4,)
    assert bins.rates == (0.0, 1.0)


FITS = (isotonic, platt, density_ratio, quantile_bins)


@pytest.mark.parametrize("fit", FITS)
def test_a_fitted_value_shows_its_numbers_and_its_data(fit: object) -> None:
    value = fit(held())  # type: ignore[operator]
    assert value.fitted_on.name == "dev split"
    assert parse(text(value)) == value
    evidence = Transformed(Score("judge"), value)
    assert parse(text(evidence)) == evidence


@pytest.mark.parametrize("fit", FITS)
def test_fitting_on_the_evaluation_bank_is_an_error(fit: object) -> None:
    bank = Bank.of({"d2": ["A"], "e1": ["B"]}).attach("judge", Layer(np.array([[0.3], [0.8]]), ""))
    evidence = Transformed(Score("judge"), fit(held()))  # type: ignore[operator]
    with pytest.raises(
        ValueError, match=r"fitted on 'dev split', which shares 1 questions with the bank \(such as 'd2'\)"
    ):
        evidence(bank)
    with pytest.raises(ValueError, match="shares 1 questions"):
        several({"x": Transformed(evidence, np.exp)}, bank)
    other = annotate(bank.only(["e1"]), calibrated=evidence)
    assert np.isfinite(other.layers["calibrated"].values).all()
    assert "dev split" in other.layers["calibrated"].description


def test_held_out_data_leave_out_what_is_missing_and_count_it() -> None:
    bank = Bank.of({"d": ["A", "B", "C"]})
    data = HeldOut.of("dev", bank, np.array([[0.1, np.nan, 0.3]]), np.array([[1.0, 1.0, np.nan]]))
    assert data.scores.tolist() == [0.1]
    assert data.left_out == 2
    with pytest.raises(ValueError, match="give some of both classes"):
        platt(data)
    with pytest.raises(ValueError, match="name the data"):
        HeldOut(" ", [0.1], [1], ("d",))
    with pytest.raises(ValueError, match="ids of the questions"):
        HeldOut("dev", [0.1], [1], ())
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        HeldOut("dev", [0.1], [2], ("d",))
    with pytest.raises(ValueError, match=r"strictly within \(0, 1\)"):
        density_ratio(HeldOut("dev", [0.0, 0.5, 0.7, 1.0], [0, 1, 0, 1], ("d",)))
    clipped = density_ratio(HeldOut("dev", [0.0, 0.5, 0.7, 1.0], [0, 1, 0, 1], ("d",)), eps=0.01)
    assert np.isfinite(clipped(np.array([0.0, 1.0]))).all()
    with pytest.raises(ValueError, match="a class is constant"):
        density_ratio(HeldOut("dev", [0.5, 0.5, 0.7], [1, 1, 0], ("d",)))


def test_missing_stays_missing() -> None:
    bank = Bank.of({"e": ["A", "B"]}).attach("judge", Layer(np.array([[np.nan, 0.5]]), ""))
    for fit in FITS:
        values = Transformed(Score("judge"), fit(held()))(bank).values[0]
        assert np.isnan(values).tolist() == [True, False]

"""METHODS.md, section D8: every definition, edge case and vector as a test. Ids are zero-based here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ramify.decode import (
    AdaptiveP,
    Chain,
    Coverage,
    DynamicTemperature,
    EntropyBudget,
    Epsilon,
    Eta,
    Fallback,
    MinP,
    Parallel,
    PLess,
    Quadratic,
    TailFree,
    Temperature,
    TokenMeasure,
    TopA,
    TopH,
    TopK,
    TopNSigma,
    TopP,
    Typical,
    Uniform,
    Xtc,
)
from tests.oracle import WORKED, entropy, kept, measure

p = measure(WORKED)


def test_the_worked_vector_has_the_entropy_it_is_said_to_have() -> None:
    assert float(p.entropy[0]) == pytest.approx(1.61704, abs=5e-6)


def test_top_k_counts_and_breaks_ties_by_id() -> None:
    assert kept(TopK(3)(p)) == [0, 1, 2]
    assert kept(TopK(99)(p)) == list(range(6))
    tied = measure([0.3, 0.2, 0.2, 0.2, 0.1])
    assert kept(TopK(2)(tied)) == [0, 1]
    assert kept(TopK(2, ties="keep")(tied)) == [0, 1, 2, 3]


def test_top_p_is_the_smallest_head_that_reaches_p() -> None:
    assert kept(TopP(0.59)(p)) == [0, 1]
    assert kept(TopP(0.61)(p)) == [0, 1, 2]
    assert kept(TopP(1e-9)(p)) == [0]
    assert kept(TopP(1.0)(p)) == list(range(6))
    half = measure([0.5, 0.25, 0.25])  # exact in binary: equality is equality
    assert kept(TopP(0.5)(half)) == [0]
    assert kept(TopP(0.5, boundary="exceed")(half)) == [0, 1], "SGLang: one more token at exact equality"


def test_epsilon_and_eta_thresholds() -> None:
    assert kept(Epsilon(0.09)(p)) == [0, 1, 2, 3]
    assert kept(Eta(0.05)(p)) == list(range(6)), "the threshold .04438 is below every token"
    h = entropy(np.array(WORKED))
    assert min(0.05, math.sqrt(0.05) * math.exp(-h)) == pytest.approx(0.04438, abs=5e-6)
    low = measure([0.9, 0.0443, 0.0445, 0.0112])
    threshold = math.sqrt(0.05) * math.exp(-entropy(np.array([0.9, 0.0443, 0.0445, 0.0112])))
    assert kept(Eta(0.05)(low)) == [i for i, x in enumerate([0.9, 0.0443, 0.0445, 0.0112]) if x >= min(0.05, threshold)]


def test_a_gate_that_would_leave_nothing_falls_back_and_says_so() -> None:
    assert kept(Epsilon(0.5)(p)) == [0]
    assert bool(Epsilon(0.5)(p).fallback)
    assert kept(Epsilon(0.5, fallback="live")(p)) == list(range(6))
    assert not bool(Epsilon(0.3)(p).fallback)
    other = Fallback(Epsilon(0.5), TopK(3))(p)
    assert kept(other) == [0, 1, 2]
    assert bool(other.fallback)
    assert kept(Fallback(Epsilon(0.3), TopK(3))(p)) == [0]


def test_min_p_and_top_a() -> None:
    assert kept(MinP(0.25)(p)) == [0, 1, 2, 3]
    assert kept(MinP(0)(p)) == list(range(6))
    assert kept(MinP(1)(p)) == [0]
    assert kept(TopA(0.7)(p)) == [0, 1, 2, 3], "threshold .7 * .35^2 = .08575"
    assert kept(TopA(0)(p)) == list(range(6))


def test_p_less_and_its_normalised_form() -> None:
    assert float(np.sum(p.probs**2)) == pytest.approx(0.2288)
    assert kept(PLess()(p)) == [0, 1]
    assert pytest.approx(0.07456) == (6 * 0.2288 - 1) / 5
    assert kept(PLess(normalised=True)(p)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 49, 1000])
@pytest.mark.parametrize("gate", [PLess(), PLess(normalised=True)])
def test_p_less_keeps_all_of_a_uniform_distribution(size: int, gate: PLess) -> None:
    result = gate(TokenMeasure.of(np.full(size, -3.7)))
    assert int(result.support) == size
    assert not bool(result.fallback)


def test_typical_orders_by_distance_from_the_entropy() -> None:
    assert kept(Typical(0.6)(p)) == [0, 1, 2]
    assert kept(Typical(0.3)(p)) == [1, 2], "the mode is dropped: not a head gate"
    assert kept(Typical(0.25)(p)) == [1]
    pair = measure([0.4, 0.15, 0.15, 0.15, 0.15])
    first = Typical(0.1)(pair)
    assert int(first.support) == 1
    assert kept(Typical(0.1, ties="keep")(pair)) in ([0], [1, 2, 3, 4])


def test_top_n_sigma_on_logits_and_its_degrees_of_freedom() -> None:
    logits = np.log(WORKED)
    for ddof in (0, 1):
        sigma = np.std(logits, ddof=ddof)
        for n in (0.3, 1.0, 1.5, 2.5):
            expected = np.flatnonzero(logits >= logits.max() - n * sigma).tolist()
            assert kept(TopNSigma(n, ddof=ddof)(p)) == expected
    dead = TokenMeasure.of(np.array([2.0, 1.0, -np.inf, 0.0, -np.inf]))
    assert kept(TopNSigma(1.0)(dead)) == [0], "σ = std(2, 1, 0) = .816 over the finite logits alone"
    assert kept(TopNSigma(1.3)(dead)) == [0, 1]


@pytest.mark.parametrize("t", [0.2, 0.9, 3.0])
def test_top_n_sigma_does_not_see_the_temperature(t: float) -> None:
    for n in (0.3, 1.0, 1.5):
        assert kept(Chain(Temperature(t), TopNSigma(n))(p)) == kept(TopNSigma(n)(p))


def test_tail_free_cuts_where_the_curvature_has_run_out() -> None:
    assert kept(TailFree(0.6)(p)) == [0, 1, 2]
    assert kept(TailFree(0.5)(p)) == [0, 1]
    assert kept(TailFree(0.9)(p)) == [0, 1, 2, 3]
    assert kept(TailFree(0.999)(p)) == [0, 1, 2, 3]
    assert kept(TailFree(1.0)(p)) == list(range(6))
    assert kept(TailFree(0.5)(measure([0.25] * 4))) == [0, 1, 2, 3], "no curvature: left alone"
    assert kept(TailFree(0.5)(measure([0.7, 0.3]))) == [0, 1], "under three tokens: left alone"
    with_dead = measure([0.35, 0.0, 0.25, 0.15, 0.0, 0.10, 0.08, 0.07])
    assert kept(TailFree(0.6)(with_dead)) == [0, 2, 3], "dead tokens have no part in the differences"


def test_top_h_paper_form_against_partial_sums() -> None:
    budget = 0.62 * entropy(np.array(WORKED))
    assert budget == pytest.approx(1.0026, abs=5e-5)
    two, three = np.array(WORKED[:2]) / 0.6, np.array(WORKED[:3]) / 0.75
    assert entropy(two) == pytest.approx(0.6792, abs=5e-5)
    assert entropy(three) == pytest.approx(1.0438, abs=5e-5)
    assert sum(-x * math.log(x) for x in WORKED[:3]) == pytest.approx(0.9986, abs=5e-5)
    assert kept(TopH(0.62)(p)) == [0, 1]
    assert kept(TopH(0.62, form="partial")(p)) == [0, 1, 2]
    assert kept(TopH(1.0)(p)) == list(range(6))
    assert kept(TopH(1e-6)(p)) == [0], "the mode always stays"


def test_the_entropy_budget_is_top_h_in_nats() -> None:
    assert kept(EntropyBudget(1.0026)(p)) == [0, 1]
    assert kept(EntropyBudget(0.0)(p)) == [0]
    assert kept(EntropyBudget(2.0)(p)) == list(range(6))


def test_xtc_marginalises_its_coin() -> None:
    # r >= .15: tokens 0, 1, 2; all but the least likely go with probability .4.
    off, on = np.array(WORKED), np.array([0, 0, *WORKED[2:]]) / sum(WORKED[2:])
    assert Xtc(0.4, 0.15)(p).probs == pytest.approx(0.6 * off + 0.4 * on)
    assert kept(Xtc(1.0, 0.15)(p)) == [2, 3, 4, 5]
    assert Xtc(1.0, 0.3)(p).probs == pytest.approx(off), "one top choice is not enough"
    assert Xtc(1.0, 0.15, protect=(1,))(p).probs == pytest.approx(off), "a protected id cancels the removal"
    assert Xtc(1.0, 0.15, protect=(2,))(p).probs == pytest.approx(on), "the one that stays needs no protection"
    hot_off, hot_on = off**0.5 / (off**0.5).sum(), on**0.5 / (on**0.5).sum()
    assert Xtc(0.4, 0.15, then=Temperature(2.0))(p).probs == pytest.approx(0.6 * hot_off + 0.4 * hot_on)
    tied = measure([0.25, 0.25, 0.25, 0.25])
    assert kept(Xtc(1.0, 0.2)(tied)) == [3], "of equals the last in order stays"


def test_temperature_and_its_zero_limit() -> None:
    cold = np.array(WORKED) ** 2
    assert Temperature(0.5)(p).probs == pytest.approx(cold / cold.sum())
    tied = TokenMeasure.of(np.array([1.0, 3.0, 3.0]))
    assert int(Temperature(0)(tied).forced) == 1, "the lowest id among maxima"
    assert Temperature(1e-3)(tied).probs.round(6).tolist() == [0, 0.5, 0.5]


def test_dynamic_temperature_follows_the_normalised_entropy() -> None:
    share = entropy(np.array(WORKED)) / math.log(6)
    t = 0.5 + (1.5 - 0.5) * share**2
    expected = np.array(WORKED) ** (1 / t)
    assert DynamicTemperature(0.5, 1.5, 2.0)(p).probs == pytest.approx(expected / expected.sum())
    assert DynamicTemperature(0.5, 1.5)(measure([1.0, 0.0])).probs.tolist() == [1.0, 0.0]


def test_quadratic_smoothing() -> None:
    logits = np.log(WORKED)
    d = logits - logits.max()
    for curve in (1.0, 2.0, 3.0):
        k, s = (3 - curve) / 2, (curve - 1) / 2
        expected = np.exp(logits.max() - k * 0.3 * d**2 + s * 0.3 * d**3)
        assert Quadratic(0.3, curve)(p).probs == pytest.approx(expected / expected.sum())


def test_adaptive_p_starts_at_its_target() -> None:
    d = np.abs(np.array(WORKED) - 0.3) / 0.3
    expected = np.exp(5 - 10 * d**2 / (1 + d))
    assert AdaptiveP(0.3)(p).probs == pytest.approx(expected / expected.sum())


def test_uniform_and_coverage_inside_a_support() -> None:
    head = TopK(3)(p)
    assert Uniform()(head).probs == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0, 0])
    r = np.array([*WORKED[:3], 0, 0, 0]) / 0.75
    assert Coverage(0.4)(head).probs == pytest.approx(0.6 * r + 0.4 * np.array([1, 1, 1, 0, 0, 0]) / 3)


def test_the_two_orders_of_top_k_and_top_p_differ_where_they_should() -> None:
    # After top-4 the head has mass .85, so .8 of it is .68: three tokens. Top-p first sees the whole mass: four.
    assert kept(Chain(TopK(4), TopP(0.8))(p)) == [0, 1, 2]
    assert kept(Chain(TopP(0.8), TopK(4))(p)) == [0, 1, 2, 3]
    assert kept(Parallel(TopK(4), TopP(0.8))(p)) == [0, 1, 2, 3]


def test_temperature_before_a_mass_gate_moves_the_support_and_after_it_only_the_weights() -> None:
    before, after = Chain(Temperature(0.5), TopP(0.8))(p), Chain(TopP(0.8), Temperature(0.5))(p)
    assert kept(before) == [0, 1]
    assert kept(after) == kept(TopP(0.8)(p)) == [0, 1, 2, 3]
    cold = np.array([*WORKED[:4], 0, 0]) ** 2
    assert after.probs == pytest.approx(cold / cold.sum())


def test_a_parallel_reference_can_be_the_raw_model() -> None:
    hot = Chain(Temperature(3.0), Parallel(TopP(0.59), reference="logits"))(p)
    assert kept(hot) == [0, 1]
    warm = np.array(WORKED[:2]) ** (1 / 3)
    assert hot.probs[:2] == pytest.approx(warm / warm.sum()), "the support of the raw model, the weights of the hot one"

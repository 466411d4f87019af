"""The vectors of METHODS.md D4, and scorio where it is right."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank, Layer, Proposal
from ramify.evidence import (
    AfterMarker,
    AnswerFrom,
    BottomGroups,
    Confidence,
    Evidence,
    FullSelfCertainty,
    LogProduct,
    LowestGroup,
    Margin,
    Maximum,
    MaxProb,
    Mean,
    Minimum,
    NegativeEntropy,
    NegativeVarentropy,
    Picsar,
    Process,
    PTrue,
    Reduction,
    Score,
    SelfCertainty,
    Tail,
    TokenEvidence,
    deepconf_average,
    deepconf_bottom,
    deepconf_lowest,
    deepconf_tail,
    mean_logprob,
    min_logprob,
    negative_perplexity,
    normalised_likelihood,
    sequence_logprob,
    step_layer,
)
from tests.evidence.banks import DATA, slow_groups, trace_bank

SIX = np.log([[0.35, 0.25, 0.15, 0.10, 0.08, 0.07]])
REDUCTIONS: dict[str, Reduction] = {"mean": Mean(), "min": Minimum(), "max": Maximum()}


def test_self_certainty_of_the_worked_distribution() -> None:
    bank = trace_bank(top=[SIX])
    for statistic in (FullSelfCertainty(6), SelfCertainty(6)):  # normalised over all of six: the two agree
        assert TokenEvidence(statistic)(bank).values[0, 0] == pytest.approx(0.17838, abs=5e-6)  # METHODS.md


def test_the_first_token_counts() -> None:
    """The released script drops it: two tokens, only one of them peaked."""
    peaked = np.log([[0.99, 0.005, 0.005]])
    flat = np.log([[1 / 3] * 3])
    value = TokenEvidence(FullSelfCertainty(3))(trace_bank(top=[np.concatenate([peaked, flat])])).values[0, 0]
    kl = -math.log(3) - (math.log(0.99) + 2 * math.log(0.005)) / 3
    assert value == pytest.approx(kl / 2)


def test_likelihoods() -> None:
    bank = trace_bank([[-0.05, -0.7, -0.2, -1.1], []])
    expected: dict[Evidence, float] = {
        sequence_logprob(): -2.05,
        mean_logprob(): -0.5125,
        min_logprob(): -1.1,
        negative_perplexity(): -math.exp(0.5125),
        normalised_likelihood(): math.exp(-0.5125),
    }
    for evidence, value in expected.items():
        signal = evidence(bank)
        assert signal.values[0, 0] == pytest.approx(value)
        assert np.isnan(signal.values[0, 1]), "no token, no evidence"
        assert (signal.cost == 0).all(), "recorded with the generation"


def test_no_sum_of_log_probabilities_underflows_or_overflows() -> None:
    bank = trace_bank([[-1000.0] * 5, [-np.inf, -1.0]])
    assert sequence_logprob()(bank).values.tolist() == [[-5000.0, -np.inf]]
    assert negative_perplexity()(bank).values.tolist() == [[-np.inf, -np.inf]]
    assert normalised_likelihood()(bank).values.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 30])
def test_deepconf_reductions_against_exact_sums(length: int) -> None:
    rng = np.random.default_rng(length)
    top = -np.sort(rng.exponential(2, size=(length, 5)))
    confidence = [-math.fsum(row) / 5 for row in top]
    groups = slow_groups(confidence, 4)
    lowest = sorted(groups)[: max(1, math.floor(0.3 * len(groups)))]
    bank = trace_bank(top=[top])
    for evidence, value in (
        (deepconf_average(5), math.fsum(confidence) / length),
        (deepconf_tail(5, 4), math.fsum(confidence[-4:]) / min(4, length)),
        (deepconf_lowest(5, 4), min(groups)),
        (deepconf_bottom(5, 4, 0.3), math.fsum(lowest) / len(lowest)),
    ):
        assert evidence(bank).values[0, 0] == pytest.approx(value, rel=1e-14)


def test_windows_keep_full_precision_after_a_huge_value() -> None:
    """A running sum over the trace would lose all digits of what comes after 1e17."""
    top = np.full((40, 1), -1.0)
    top[3] = -1e17
    groups = TokenEvidence(Confidence(1), LowestGroup(4))(trace_bank(top=[top])).values
    assert groups[0, 0] == 1.0


def test_the_bottom_share_is_a_count_and_not_a_quantile() -> None:
    """Of ten groups 0, 1, 1, 1, 2, ... the count takes two; scorio's quantile takes all that tie at it."""
    scorio = pytest.importorskip("scorio.aggregate")
    confidence = np.array([0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    top = -confidence[:, None]
    mine = deepconf_bottom(1, window=1, share=0.2)(trace_bank(top=[top])).values[0, 0]
    assert mine == 0.5  # the lowest two: 0 and 1
    assert scorio.deepconf_confidence(top, mode="bottom_group", window=1, bottom_quantile=0.2) == 0.75  # 0, 1, 1, 1


def test_statistics_from_alternatives_by_hand() -> None:
    p = np.array([0.5, 0.25, 0.25])
    bank = trace_bank(top=[np.log(np.array([p, np.array([0.8, 0.1, 0.1])]))])
    h = -(p * np.log(p)).sum()
    second = -(0.8 * math.log(0.8) + 0.2 * math.log(0.1))
    value: dict[Any, tuple[float, float]] = {
        NegativeEntropy(3): (-second, -h),
        NegativeVarentropy(3): (
            -(0.8 * (-math.log(0.8) - second) ** 2 + 0.2 * (-math.log(0.1) - second) ** 2),
            -(p * (-np.log(p) - h) ** 2).sum(),
        ),
        MaxProb(): (0.8, 0.5),
        Margin(): (math.log(8), math.log(2)),
        Margin(log=False): (0.7, 0.25),
    }
    for statistic, (high, low) in value.items():
        best = TokenEvidence(statistic, Maximum())(bank).values[0, 0]
        worst = TokenEvidence(statistic, Minimum())(bank).values[0, 0]
        assert {round(best, 12), round(worst, 12)} == {round(high, 12), round(low, 12)}
    assert TokenEvidence(NegativeEntropy(3), Tail(1))(bank).values[0, 0] == pytest.approx(-second)


def test_k_below_the_recorded_takes_the_likeliest_and_renormalises() -> None:
    bank = trace_bank(top=[SIX])
    p = np.array([0.35, 0.25]) / 0.6
    assert TokenEvidence(NegativeEntropy(2))(bank).values[0, 0] == pytest.approx((p * np.log(p)).sum())
    assert TokenEvidence(SelfCertainty(2))(bank).values[0, 0] == pytest.approx(-math.log(2) - np.log(p).mean())
    assert deepconf_average(2)(bank).values[0, 0] == pytest.approx(-np.log([0.35, 0.25]).mean())


def test_alternatives_so_unlikely_that_their_mass_would_vanish() -> None:
    """Entropy does not change when all log-probabilities fall by 2,000; an alternative at -inf adds nothing."""
    for top in (SIX - 2000.0, np.concatenate([SIX, [[-np.inf]]], axis=1)):
        bank = trace_bank(top=[top])
        p = np.exp(SIX[0])
        assert TokenEvidence(NegativeEntropy(top.shape[1]))(bank).values[0, 0] == pytest.approx((p * np.log(p)).sum())


def test_a_missing_alternative_makes_the_trace_missing_and_no_other() -> None:
    top = [SIX, np.where(np.arange(6) == 5, np.nan, SIX), SIX]
    for statistic in (Confidence(6), NegativeEntropy(6), SelfCertainty(6), NegativeVarentropy(6)):
        for reduction in (Mean(), Minimum(), LowestGroup(1), BottomGroups(1)):
            values = TokenEvidence(statistic, reduction)(trace_bank(top=top)).values
            assert np.isnan(values).tolist() == [[False, True, False]], (statistic, reduction)
    assert not np.isnan(TokenEvidence(Confidence(5))(trace_bank(top=top)).values).any(), "five of them are there"


def test_picsar() -> None:
    bank = trace_bank([[-0.05, -0.7, -0.2, -1.1]] * 4)
    bank = bank.attach("answer_start", Layer(np.array([[3.0, 0.0, 4.0, np.nan]]), "by hand"))
    assert Picsar()(bank).values[0, :3] == pytest.approx([-2.05] * 3)  # the whole, wherever it is cut
    assert np.isnan(Picsar()(bank).values[0, 3]), "no answer found"
    assert Picsar(normalised=True)(bank).values[0, :3] == pytest.approx([-0.95 / 3 - 1.1, -2.05, -2.05 / 4])
    wrong = trace_bank([[-1.0]]).attach("answer_start", Layer(np.array([[2.0]]), "beyond the end"))
    with pytest.raises(ValueError, match=r"Picsar.boundary = \[2.0\]: use a token index in \[0, T\]"):
        Picsar()(wrong)


def test_the_marker_of_an_answer() -> None:
    columns = {"token": np.array([7, 1, 2, 7, 1, 2, 9, 1, 2])}
    offsets = np.array([0, 7, 7, 9])
    assert AfterMarker((1, 2))(offsets, columns).tolist() == pytest.approx([6, np.nan, 2], nan_ok=True)
    assert AfterMarker((1, 2), occurrence="first")(offsets, columns).tolist() == pytest.approx(
        [3, np.nan, 2], nan_ok=True
    )
    assert np.isnan(AfterMarker((2, 1))(offsets, columns)).all(), "never across two traces"
    assert AnswerFrom("x")(offsets, {"x": np.array([1.0])}).tolist() == [1.0]


STEPS = [0.91, 0.42, 0.88, 0.73]


def test_process_rewards() -> None:
    bank = Bank.of({"q": ["A", "B"]})
    bank = bank.attach("prm", step_layer(bank, [[STEPS, []]], "PRM")).attach("steps", Layer(np.array([[4.0, 0.0]]), ""))
    # scorio 0.2.3, prm_aggregate of the same steps
    for reduction, value in ((None, 0.73), (Minimum(), 0.42), (Mean(), 0.735), (Maximum(), 0.91)):
        evidence = Process("prm", steps="steps") if reduction is None else Process("prm", reduction, steps="steps")
        assert evidence(bank).values[0, 0] == pytest.approx(value)
        assert np.isnan(evidence(bank).values[0, 1]), "no step, no evidence"
    assert np.exp(Process("prm", LogProduct())(bank).values[0, 0]) == pytest.approx(0.24552528)


def test_a_long_product_does_not_underflow() -> None:
    bank = Bank.of({"q": ["A", "B"]})
    bank = bank.attach("prm", step_layer(bank, [[[1e-3] * 200, [1e-3] * 199 + [1e-4]]], "PRM"))
    values = Process("prm", LogProduct())(bank).values[0]
    assert values[0] > values[1] > -np.inf  # the product itself is 1e-600, that is 0.0, for both


def test_step_scores_that_do_not_match_the_steps_raise() -> None:
    bank = Bank.of({"q": ["A", "B"]})
    bank = bank.attach("prm", step_layer(bank, [[[0.5], [0.5, 0.7]]], "PRM"))
    told = bank.attach("steps", Layer(np.array([[1.0, 3.0]]), ""))
    with pytest.raises(ValueError, match=r"candidate \(0, 1\) has 2 step scores and 3 steps"):
        Process("prm", steps="steps")(told)
    hole = Bank.of({"q": ["A"]}).attach("prm", Layer(np.array([[[0.5, np.nan, 0.7]]]), ""))
    with pytest.raises(ValueError, match="has 2 step scores and 3 steps"):
        Process("prm")(hole)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        Process("prm", LogProduct())(Bank.of({"q": ["A"]}).attach("prm", Layer(np.array([[[1.5]]]), "")))


def test_p_true_and_scores() -> None:
    bank = Bank.of({"q": ["A", "B", "C"]})
    cost = np.array([[5.0, 6.0, 7.0]])
    bank = bank.attach("log_p_true", Layer(np.log([[0.3, 0.5, 1e-320]]), "judge", cost=cost))
    bank = bank.attach("log_p_false", Layer(np.array([[math.log(0.1), -np.inf, np.nan]]), "judge"))
    signal = PTrue()(bank)
    assert signal.values[0, :2].tolist() == pytest.approx([0.75, 1.0])
    assert np.isnan(signal.values[0, 2])
    assert signal.cost.tolist() == cost.tolist(), "a judge's calls were charged, and the signal says how much"
    assert PTrue(form="log odds")(bank).values[0, 0] == pytest.approx(math.log(3))
    assert Score("log_p_true", lower_is_better=True)(bank).values[0, 0] == pytest.approx(-math.log(0.3))
    reference = bank.attach("compass", Layer(np.ones((1, 3)), "CompassVerifier with the reference", role="diagnostic"))
    with pytest.raises(ValueError, match="the layer 'compass' is a diagnostic"):
        Score("compass")(reference)
    assert Score("compass", role="reference-assisted")(reference).values.tolist() == [[1.0, 1.0, 1.0]]


def test_a_bank_that_lacks_a_signal_refuses_by_name() -> None:
    top = trace_bank(top=[SIX])
    with pytest.raises(ValueError, match="needs 20 alternatives a token, and this bank recorded 6"):
        deepconf_lowest()(top)
    with pytest.raises(ValueError, match="needs the token column 'logprob', and this bank recorded: top_logprobs"):
        mean_logprob()(top)
    with pytest.raises(ValueError, match="recorded no tokens"):
        mean_logprob()(Bank.of({"q": ["A"]}))
    with pytest.raises(ValueError, match="needs the layer 'judge', and this bank has: none"):
        Score("judge")(top)
    with pytest.raises(ValueError, match="raw alternatives, and those of run '' are processed"):
        deepconf_lowest(6)(trace_bank(top=[SIX], stage="processed"))
    assert TokenEvidence(Confidence(6, stage="any"))(trace_bank(top=[SIX], stage="processed")).values[0, 0] > 0
    with pytest.raises(ValueError, match="the bank recorded 6 a token"):
        TokenEvidence(FullSelfCertainty(5))(top)
    with pytest.raises(ValueError, match="out of order"):
        deepconf_average(2)(trace_bank(top=[SIX[:, ::-1]]))
    with pytest.raises(ValueError, match="out of order"):
        TokenEvidence(Margin())(trace_bank(top=[SIX[:, [1, 0]]]))
    assert Proposal(stage="unknown").stage == "unknown", "what is not known is not refused"


def test_appended_tokens_are_not_the_models_evidence() -> None:
    import dataclasses

    bank = trace_bank([[-1.0, -5.0, -3.0, -2.0], [-9.0]])
    assert bank.tokens is not None
    role = np.array([0, 2, 1, 0, 2], dtype=np.int8)
    table = dataclasses.replace(bank.tokens, columns={**bank.tokens.columns, "role": role})
    told = dataclasses.replace(bank, tokens=table)
    assert mean_logprob()(told).values[0].tolist() == pytest.approx([-2.0, np.nan], nan_ok=True)
    assert mean_logprob(tokens="sampled")(told).values[0, 0] == -1.5
    assert mean_logprob(tokens="all")(told).values[0].tolist() == [-2.75, -9.0]
    assert mean_logprob()(bank).values[0, 0] == -2.75, "no roles recorded, nothing known to be appended"
    with pytest.raises(ValueError, match="needs the token column 'role'"):
        mean_logprob(tokens="sampled")(bank)


def test_scorio_on_random_traces() -> None:
    scorio = pytest.importorskip("scorio.aggregate")
    rng = np.random.default_rng(7)
    tops = [-np.sort(rng.exponential(2, size=(t, 20))).astype(np.float32) for t in (1, 5, 60, 300)]
    bank = trace_bank(top=tops)
    pairs: dict[str, tuple[Any, int]] = {
        "token_entropy": (NegativeEntropy(20), -1),
        "varentropy": (NegativeVarentropy(20), -1),
        "self_certainty": (SelfCertainty(20), 1),
        "max_softmax_probability": (MaxProb(), 1),
        "logprob_margin": (Margin(), 1),
    }
    flip = {"mean": "mean", "min": "max", "max": "min"}
    for name, (statistic, sign) in pairs.items():
        for how, reduction in REDUCTIONS.items():
            mine = TokenEvidence(statistic, reduction)(bank).values[0]
            # theirs is the entropy itself: its minimum is the maximum of its negative
            theirs = [sign * getattr(scorio, name)(top, aggregate=how if sign > 0 else flip[how]) for top in tops]
            assert mine.tolist() == pytest.approx(theirs, rel=1e-12, abs=1e-12), (name, how)
    for mode, evidence in (
        ("mean", deepconf_average()),
        ("tail", deepconf_tail(n=50)),
        ("lowest_group", deepconf_lowest(window=50)),
    ):
        theirs = [scorio.deepconf_confidence(top, mode=mode, window=50, tail_tokens=50) for top in tops]
        assert evidence(bank).values[0].tolist() == pytest.approx(theirs, rel=1e-12)
    mine = deepconf_bottom(window=50)(bank).values[0]
    theirs = [scorio.deepconf_confidence(top, mode="bottom_group", window=50) for top in tops]
    assert mine[:2].tolist() == pytest.approx(theirs[:2])  # one group
    assert (mine <= np.array(theirs) + 1e-12).all(), "a quantile takes at least as many groups as the count does"
    assert mine[3] < theirs[3]


def test_the_fixtures_of_other_languages() -> None:
    path = DATA / "scorio_aime25_q06" / "julia_aggregate_fixtures.json"
    if not path.exists():
        pytest.skip("the shared data are not here")
    known = json.loads(path.read_text())
    expected, inputs = known["confidence"], known["inputs"]
    bank = trace_bank([inputs["logprobs"]], [np.array(inputs["topk"])])
    bank = bank.attach("answer_start", Layer(np.array([[3.0]]), ""))

    def value(evidence: object) -> float:
        return float(evidence(bank).values[0, 0])  # type: ignore[operator]

    assert value(mean_logprob()) == pytest.approx(expected["mean_logprob"])
    assert -value(negative_perplexity()) == pytest.approx(expected["perplexity"])
    assert value(Picsar(normalised=True)) == pytest.approx(expected["picsar"]["normalized"])
    assert value(TokenEvidence(SelfCertainty(3))) == pytest.approx(expected["self_certainty"]["mean"])
    assert -value(TokenEvidence(NegativeEntropy(3))) == pytest.approx(expected["token_entropy"]["mean"])
    assert -value(TokenEvidence(NegativeVarentropy(3), Minimum())) == pytest.approx(expected["varentropy"]["max"])
    assert value(TokenEvidence(Margin(log=False))) == pytest.approx(expected["logprob_margin"]["prob"])
    assert value(TokenEvidence(MaxProb())) == pytest.approx(expected["max_softmax_probability"]["mean"])
    assert value(deepconf_average(3)) == pytest.approx(expected["deepconf_confidence"]["mean"])

"""The laws of decision rules, over every rule in tests/methods.py."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.arrays import Array
from ramify.bank import Candidates
from ramify.decide import (
    MBR,
    PAIRS,
    BestOfN,
    Judged,
    MajorityOfTheBests,
    Plurality,
    Present,
    RankVote,
    ReferenceAggregation,
    Rule,
    SoftBestOfN,
    SoftmaxVote,
    VerifierConstrained,
    WeightedMBR,
    excluded,
)
from ramify.describe import text
from ramify.errors import InvalidValue
from tests.decide.banks import NAMES, agreement, candidates, row, seeds
from tests.methods import BY_PAIRS, EARLIEST, ORDER_ONLY, PRESENTS, RULES, VOTES

name = text


@pytest.mark.parametrize("rule", RULES, ids=name)
@given(rng=seeds, missing=st.sampled_from([0.0, 0.3]), n=st.integers(1, 7))
@settings(max_examples=15)
def test_a_rule_ignores_bottom_and_answers_minus_one_when_there_is_nothing_else(
    rule: Rule, rng: np.random.Generator, missing: float, n: int
) -> None:
    bank = candidates(rng, (4, n), missing=missing)
    bank = dataclasses.replace(bank, evidence={**bank.evidence, "weight": np.ones((4, n))})
    bank.answers[0], bank.eligible[0] = -1, False
    bank.evidence["verdict"][0] = 0
    choice = rule(bank)
    assert choice.winner.shape == (4,)
    assert choice.support.shape == (4, n)
    assert choice.winner[0] == -1, "nothing else"
    for q, winner in enumerate(choice.winner):
        assert winner == choice.ranked[q, 0]
        if winner >= 0:
            verified = "VerifierConstrained" in text(rule)  # what it verifies need not be an answer
            assert bank.drawn[q, winner] if verified else bank.eligible[q, winner]
        elif not missing and "VerifierConstrained" not in text(rule) and "other=True" not in text(rule):
            unread = "unreadable='none'" in text(rule)
            assert unread or not bank.eligible[q].any(), "a rule submits something where it can"


@pytest.mark.parametrize("rule", RULES, ids=name)
@given(rng=seeds)
@settings(max_examples=10)
def test_what_is_not_eligible_never_matters(rule: Rule, rng: np.random.Generator) -> None:
    bank = candidates(rng, (3, 6))
    outside = ~bank.eligible
    other = {key: np.where(outside, rng.permutation(v.ravel()).reshape(v.shape), v) for key, v in bank.evidence.items()}
    other["verdict"] = bank.evidence["verdict"]  # read for every drawn candidate
    answers = np.where(outside, -1, bank.answers)
    changed = dataclasses.replace(bank, evidence=other, answers=answers)
    if "VerifierConstrained" not in text(rule):
        assert rule(bank).winner.tolist() == rule(changed).winner.tolist()


@pytest.mark.parametrize("rule", RULES, ids=name)
@given(rng=seeds, levels=st.sampled_from([0, 4]))
@settings(max_examples=10)
def test_a_batched_call_is_a_loop_of_single_calls(rule: Any, rng: np.random.Generator, levels: int) -> None:
    bank = candidates(rng, (2, 3, 6), levels=levels, missing=0.1)
    seeded = {"CentroidMBR", "PrunedMBR", "AMBR", "LowRankMBR", "DiverseNBest"}  # their streams are keyed by the row
    bank = dataclasses.replace(bank, evidence={**bank.evidence, "weight": np.ones((2, 3, 6))})
    together = rule(bank)
    for index in np.ndindex(2, 3):
        if type(rule).__name__ not in seeded or index == (0, 0):
            one = rule(row(bank, index))
            assert int(one.winner) == int(together.winner[index])
            assert np.array_equal(one.support, together.support[index], equal_nan=True)
            assert one.ranked.tolist() == together.ranked[index].tolist()
            assert (one.probs is None) == (together.probs is None)
            assert one.probs is None or np.array_equal(one.probs, together.probs[index])


@pytest.mark.parametrize("present", PRESENTS, ids=name)
@given(rng=seeds)
@settings(max_examples=10)
def test_a_presentation_gives_the_submitted_answer_and_batches_as_a_loop(
    present: Present, rng: np.random.Generator
) -> None:
    bank = candidates(rng, (2, 3, 6), levels=3, missing=0.3)
    choice = Plurality()(bank)
    shown = present(bank, choice)
    for index in np.ndindex(2, 3):
        alone = row(bank, index)
        assert int(present(alone, Plurality()(alone))) == int(shown[index])
        if choice.winner[index] >= 0:
            assert alone.answers[shown[index]] == alone.answers[choice.winner[index]]
        else:
            assert shown[index] == -1


def affine(x: Array) -> Array:
    return 3 * x - 1


TRANSFORMS = (np.exp, affine, np.cbrt, lambda x: np.floor(np.log(x) * 1e6))


@pytest.mark.parametrize("rule", [*ORDER_ONLY, *EARLIEST, BestOfN()], ids=name)
@given(rng=seeds, levels=st.sampled_from([0, 3, 8]), index=st.integers(0, 2))
@settings(max_examples=20)
def test_order_only_rules_survive_increasing_transforms(
    rule: Rule, rng: np.random.Generator, levels: int, index: int
) -> None:
    bank = candidates(rng, (5, 9), levels=levels)
    moved = dataclasses.replace(bank, evidence={"score": TRANSFORMS[index](bank.evidence["score"])})
    before, after = rule(bank), rule(moved)
    assert before.winner.tolist() == after.winner.tolist()
    if not isinstance(rule, BestOfN):
        assert np.array_equal(before.support, after.support, equal_nan=True)


@pytest.mark.parametrize("rule", [*VOTES, *ORDER_ONLY], ids=name)
@given(rng=seeds, value=st.floats(0.51, 0.99))
@settings(max_examples=20)
def test_a_vote_on_equal_evidence_is_plurality(rule: Rule, rng: np.random.Generator, value: float) -> None:
    bank = candidates(rng, (6, 8))
    equal = {key: np.full(bank.answers.shape, np.log(value) if "log" in key else value) for key in NAMES}
    bank = dataclasses.replace(bank, evidence=equal)
    assert rule(bank).winner.tolist() == Plurality()(bank).winner.tolist()


@given(rng=seeds)
def test_plurality_is_mbr_under_agreement(rng: np.random.Generator) -> None:
    bank = candidates(rng, (6, 8))
    bank = dataclasses.replace(bank, utility=agreement(bank.answers))
    assert MBR()(bank).winner.tolist() == Plurality()(bank).winner.tolist()
    shares = Plurality()(bank).support / np.maximum(bank.eligible.sum(-1, keepdims=True), 1)
    assert np.allclose(MBR()(bank).support, shares, equal_nan=True)


@given(rng=seeds, weight=st.sampled_from([1.0, 0.25]))
def test_weighted_mbr_with_equal_weights_is_mbr(rng: np.random.Generator, weight: float) -> None:
    bank = candidates(rng, (6, 8))
    bank = dataclasses.replace(bank, evidence={"weight": np.full((6, 8), weight)})
    assert WeightedMBR()(bank).winner.tolist() == MBR()(bank).winner.tolist()


@given(rng=seeds)
def test_reference_aggregation_is_exact_where_the_utility_is_linear(rng: np.random.Generator) -> None:
    bank = candidates(rng, (4, 7))
    assert np.allclose(ReferenceAggregation()(bank).support, MBR()(bank).support, equal_nan=True)


@given(rng=seeds, levels=st.sampled_from([0, 3]))
def test_limits(rng: np.random.Generator, levels: int) -> None:
    bank = candidates(rng, (6, 8), levels=levels)
    eligible = bank.eligible.sum(-1, keepdims=True)
    uniform = np.asarray(SoftBestOfN(alpha=0)(bank).probs)
    assert np.array_equal(uniform, np.where(bank.eligible, 1 / np.maximum(eligible, 1), 0.0))
    best = np.where(bank.eligible, bank.evidence["score"], -np.inf)
    tied = bank.eligible & (best == best.max(-1, keepdims=True))
    assert np.array_equal(np.asarray(SoftBestOfN(alpha=np.inf)(bank).probs) > 0, tied)
    plurality, hard = Plurality()(bank).winner.tolist(), BestOfN()(bank)
    assert RankVote(p=0)(bank).winner.tolist() == plurality
    assert MajorityOfTheBests(m=1)(bank).winner.tolist() == plurality
    assert SoftmaxVote(temperature=np.inf)(bank).winner.tolist() == plurality
    if not levels:  # unique scores: the sharp ends of the families are Best-of-N, up to the group's first member
        answers = np.take_along_axis(bank.answers, np.maximum(hard.winner, 0)[:, None], -1)[:, 0]
        for rule in (RankVote(p=400), SoftmaxVote(temperature=1e-6)):
            winner = np.maximum(rule(bank).winner, 0)
            assert np.take_along_axis(bank.answers, winner[:, None], -1)[:, 0].tolist() == answers.tolist()


@pytest.mark.parametrize("rule", [r for r in RULES if getattr(r, "needs", ())], ids=name)
def test_a_rule_without_its_signals_refuses_by_name(rule: Any) -> None:
    needs = rule.needs
    bank = candidates(np.random.default_rng(1), (3, 5))
    for lost in needs:
        evidence = {key: values for key, values in bank.evidence.items() if key != lost}
        poor = dataclasses.replace(bank, evidence=evidence, utility=None if lost == PAIRS else bank.utility)
        with pytest.raises(InvalidValue, match="pairwise utilities" if lost == PAIRS else f"{lost!r}"):
            rule(poor)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_a_rule_declares_its_role_and_an_empty_bank_is_no_error(rule: Any) -> None:
    assert rule.role == "deployable"
    assert rule.__doc__
    if rule not in BY_PAIRS:
        nothing = Candidates(
            np.zeros((2, 0), dtype=int), evidence={n: np.zeros((2, 0)) for n in (*NAMES, "verdict", "judge")}
        )
        assert rule(nothing).winner.tolist() == [-1, -1]


@pytest.mark.parametrize("rule", [r for r in RULES if hasattr(r, "missing")], ids=name)
def test_missing_scores_are_excluded_and_counted_or_refused(rule: Any) -> None:
    bank = candidates(np.random.default_rng(3), (3, 6))
    needs = [each for each in rule.needs if each != PAIRS]
    lost = needs[0]
    holes = bank.evidence[lost].copy()
    where = bank.eligible.argmax(-1)
    holes[np.arange(3), where] = np.nan
    poor = dataclasses.replace(bank, evidence={**bank.evidence, lost: holes})
    assert excluded(poor, needs).tolist() == [1, 1, 1]
    fewer = bank.eligible.copy()
    fewer[np.arange(3), where] = False
    reads_others = isinstance(rule, VerifierConstrained | Judged) or rule.fallback is not None
    if not reads_others:
        assert rule(poor).winner.tolist() == rule(dataclasses.replace(bank, eligible=fewer)).winner.tolist()
    with pytest.raises(InvalidValue, match="is missing"):
        dataclasses.replace(rule, missing="refuse")(poor)

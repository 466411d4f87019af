"""Replays: their permutations, their exact ends, their agreement with closed forms, and the wall before references."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank, Layer, Outcomes
from ramify.decide import MBR, BestOfN, Exact, Pairs, Plurality, RankVote, WeightedVote
from ramify.decide.replay import replay as winners
from ramify.decide.support import Rule
from ramify.describe import text
from ramify.errors import InvalidValue
from ramify.keys import numbered, permutation
from ramify.metrics import BankCurve, best_of_n, diagnose, orders, plurality, replay, replay_stop
from ramify.metrics.replay import shuffled
from ramify.types import Key
from tests.metrics.rules import any_one, best_score, clairvoyant, most_votes, three_alike


def small(questions: int = 30, n: int = 12, seed: int = 0) -> tuple[Bank, Outcomes]:
    """Answers with two correct strings, ⊥, ties in scores and missing ones."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 1, (questions, 1))
    codes = np.where(
        rng.random((questions, n)) < p, rng.integers(0, 2, (questions, n)), rng.integers(2, 6, (questions, n))
    )
    codes[rng.random(codes.shape) < 0.1] = -1
    scores = rng.integers(0, 4, codes.shape).astype(float)
    scores[rng.random(codes.shape) < 0.05] = np.nan
    rows = {f"q{q}": [None if code < 0 else f"a{code}" for code in row] for q, row in enumerate(codes)}
    bank = Bank.of(rows, scores={"score": scores})
    return bank, Outcomes.of(bank, np.isin(codes, [0, 1]).astype(float), "two strings are right")


def test_replicates_are_the_banks_own_permutations() -> None:
    bank = Bank.of({"x": ["A", "B", "C", "D"], "y": ["A", "B"]})
    order = orders(bank, "run", [0, 5])
    for i, replicate in enumerate((0, 5)):
        assert np.array_equal(bank.take(order[i]).samples, bank.permuted("run", replicate).samples)
    assert (order[:, 1, 2:] == -1).all()


def test_compiled_permutations_are_the_same_bits() -> None:
    pytest.importorskip("numba")
    for n in (1, 2, 17, 80, 300):
        stream = numbered(Key("run", "q", 0, "replay"), range(40))
        plain, fast = (shuffled(stream, n, compiled) for compiled in (False, True))
        assert np.array_equal(plain, fast)
        assert np.array_equal(plain[7], permutation(Key("run", "q", 7, "replay"), n))


@pytest.mark.parametrize("rule", [most_votes, best_score])
def test_a_replay_estimates_the_closed_form_and_its_error_says_how_well(rule: object) -> None:
    bank, outcomes = small()
    name = ["score"] if rule is best_score else []
    curve = replay(rule, bank, outcomes, evidence=name, budgets=[1, 2, 3, 5, 8], replicates=600)  # type: ignore[arg-type]
    candidates, grades = bank.candidates(evidence=name), outcomes.on(bank)
    exact = (best_of_n(candidates, "score", grades) if name else plurality(candidates, grades)).mean[[0, 1, 2, 4, 7]]
    assert curve.mean[0] == pytest.approx(exact[0], rel=1e-13), "k = 1 enumerates"
    assert curve.error[0] == 0
    assert (curve.error[1:] > 0).all()
    assert (np.abs(curve.mean - exact)[1:] < 4 * curve.error[1:]).all()
    # The reported error is the spread that other runs show.
    again = [
        replay(rule, bank, outcomes, evidence=name, budgets=[3], replicates=100, run=f"run {i}")  # type: ignore[arg-type]
        for i in range(40)
    ]
    spread = np.std([each.mean[0] for each in again], ddof=1)
    assert 0.6 < spread / again[0].error[0] < 1.5


RULES = (Plurality(), BestOfN("score"), WeightedVote("score"), RankVote("score"))


@pytest.mark.parametrize("rule", RULES, ids=text)
def test_the_one_pass_engine_gives_what_the_rule_gives(rule: Rule) -> None:
    bank, outcomes = small()
    bank = bank.take(np.where(np.arange(12) < np.arange(30)[:, None] % 12 + 1, np.arange(12), -1))  # unequal banks
    asked: dict[str, Any] = {"evidence": ["score"], "budgets": [1, 2, 5, 12, 3], "replicates": 20}
    fast = replay(rule, bank, outcomes, **asked)
    slow = replay(lambda candidates: rule(candidates), bank, outcomes, **asked)
    for name in ("values", "invalid", "error"):
        assert np.allclose(getattr(fast, name), getattr(slow, name), atol=1e-14, equal_nan=True), name


@pytest.mark.parametrize("rule", RULES[:2], ids=text)
def test_closed_forms_are_the_mean_of_the_rules_over_every_order(rule: Rule) -> None:
    bank, outcomes = small(questions=8, n=6)
    candidates, grades = bank.candidates(evidence=["score"]), outcomes.on(bank)
    orders = np.array(list(itertools.permutations(range(6))))[:, None].repeat(8, axis=1)
    winner = winners(rule, candidates, orders, range(1, 7))  # [6!, 6, Q]
    mean = np.where(winner < 0, 0.0, grades[np.arange(8), np.maximum(winner, 0)]).mean(axis=0).T
    exact = plurality(candidates, grades) if rule == Plurality() else best_of_n(candidates, "score", grades)
    assert np.allclose(exact.values, mean, rtol=1e-12, atol=1e-14)


def test_pairwise_utilities_follow_the_permutation() -> None:
    """MBR under agreement is plurality: through the utility of permuted candidates it must stay so."""
    bank, outcomes = small(questions=6, n=7)
    utility = Pairs.of(bank, Exact())
    asked: dict[str, Any] = {"budgets": [1, 3, 7], "replicates": 6}
    by_pairs = replay(MBR(), bank, outcomes, utility=utility, **asked)
    assert np.array_equal(by_pairs.values, replay(Plurality(), bank, outcomes, **asked).values)
    with pytest.raises(InvalidValue, match="pairwise utilities"):
        replay(MBR(), bank, outcomes, **asked)


def test_intervals_resample_questions_after_averaging_replays() -> None:
    bank, outcomes = small()
    curve = replay(most_votes, bank, outcomes, budgets=[1, 3, 12], replicates=50)
    found = curve.estimates(replicates=4000)
    for column, estimate in enumerate(found):
        values = curve.values[:, column]
        assert estimate.value == pytest.approx(values.mean())
        assert (estimate.high - estimate.low) / 3.92 == pytest.approx(values.std() / np.sqrt(30), rel=0.1)
        assert estimate.covers == ("questions",)
    assert "Monte Carlo error" in found[1].note
    assert "Monte Carlo" not in found[0].note
    assert "Monte Carlo" not in found[2].note


def test_the_whole_bank_is_decided_in_the_seeded_order() -> None:
    bank = Bank.of({f"q{i}": ["A", "B"] for i in range(40)})
    outcomes = Outcomes.of(bank, np.tile([1.0, 0.0], (40, 1)))
    curve = replay(most_votes, bank, outcomes, budgets=[1, 2], replicates=50)
    first = bank.permuted("replay", 0).samples[:, 0] == 0
    assert np.array_equal(curve.at(2), first.astype(float)), "a tie goes to the earliest of the permutation"
    assert curve.estimand == "seeded order"
    assert curve.error[1] == 0
    averaged = plurality(bank.candidates(), outcomes.on(bank))
    assert averaged.estimand == "tie-averaged"
    assert (averaged.at(2) == 0.5).all(), "another estimand, and it says so"


def test_subsets_are_nested_and_the_same_for_every_rule() -> None:
    bank, outcomes = small()
    seen: list[np.ndarray] = []

    def watch(candidates):  # type: ignore[no-untyped-def]
        seen.append(candidates.answers)
        return most_votes(candidates)

    replay(watch, bank, outcomes, budgets=[2, 4], replicates=3)
    two, four = seen[0], seen[1]
    assert np.array_equal(two, four[..., :2])


def test_unequal_banks_missing_grades_and_nothing_submitted() -> None:
    bank = Bank.of({"long": ["A", "B", "A", None], "short": ["A"], "empty": [None, None, None, None], "un": ["A"] * 4})
    grades = np.array([[1, 0, 1, 0], [1, np.nan, np.nan, np.nan], [0, 0, 0, 0], [1, 1, np.nan, 1]], dtype=float)
    curve = replay(most_votes, bank, Outcomes.of(bank, grades), budgets=[1, 2, 4, 8], replicates=100)
    assert curve.values[:, 0].tolist()[:3] == [0.5, 1.0, 0.0]
    assert np.isnan(curve.values[3, :2]).all(), "what it may submit was never graded"
    assert np.isnan(curve.values[1, 1:]).all()
    assert curve.left_out.tolist() == [1, 2, curve.left_out[2], 4]
    assert curve.invalid[2, :3].tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(curve.mean[3])


def test_a_stochastic_rule_is_worth_its_expectation() -> None:
    bank, outcomes = small()
    curve = replay(any_one, bank, outcomes, budgets=[12], replicates=1)
    grades = outcomes.on(bank)
    eligible = bank.answers >= 0
    expected = (grades * eligible).sum(1) / np.maximum(eligible.sum(1), 1)
    assert np.allclose(curve.values[:, 0], expected, rtol=1e-13)


def test_reference_assisted_scores_are_a_type_of_their_own() -> None:
    bank, outcomes = small()
    gold = bank.attach("compass", Layer(outcomes.on(bank), "saw the reference", role="diagnostic"))
    with pytest.raises(InvalidValue, match="it has seen references: use diagnose"):
        replay(best_score, gold, outcomes, evidence=["compass"])
    found = diagnose(best_score, bank, outcomes, scores={"score": outcomes.on(bank)}, budgets=[12], replicates=1)
    assert isinstance(found.result, BankCurve)
    assert found.result.mean[0] == outcomes.on(bank).max(axis=1).mean(), "driven by the outcome it is Pass@N"
    assert found.used == "reference-assisted scores: score"


def test_a_stop_is_replayed_causally() -> None:
    bank, outcomes = small()
    found = replay_stop(three_alike, most_votes, bank, outcomes, replicates=20)
    assert found.label == "retrospective"
    for r in (0, 7):
        stream = bank.permuted("replay", r)
        grades = outcomes.on(stream)
        for q in (0, 3, 11):
            votes: dict[int, int] = {}
            used = bank.shape[1]
            for i, code in enumerate(stream.answers[q]):
                votes[int(code)] = votes.get(int(code), 0) + (code >= 0)
                if votes[int(code)] == 3:
                    used = i + 1
                    break
            assert found.samples[r, q] == used
            assert found.stopped[r, q] == (max(votes.values()) == 3)
        whole = most_votes(stream.candidates())
        if r == 0:
            never = replay_stop(
                lambda c, key: three_alike(c, key)._replace(stop=np.zeros(c.answers.shape, bool)),
                most_votes,
                bank,
                outcomes,
                replicates=1,
            )
            worth = np.where(whole.winner >= 0, grades[np.arange(len(grades)), whole.winner], 0)
            assert np.array_equal(never.values, worth)
            assert (never.same == 1).all()
            assert (never.samples == bank.shape[1]).all()
    with pytest.raises(InvalidValue, match="let it see the prefix only"):
        replay_stop(clairvoyant, most_votes, bank, outcomes, replicates=2)


def test_a_limit_bounds_the_stream() -> None:
    bank, outcomes = small()
    found = replay_stop(three_alike, most_votes, bank, outcomes, replicates=5, limit=4)
    assert found.samples.max() == 4
    with pytest.raises(InvalidValue, match="replicates"):
        replay_stop(three_alike, most_votes, bank, outcomes, replicates=0)

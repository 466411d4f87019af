"""MBR, its approximations with their utility calls counted, tournaments, and several outputs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.arrays import Array
from ramify.bank import Candidates
from ramify.decide import (
    AMBR,
    MBR,
    BradleyTerry,
    CentroidMBR,
    DiverseNBest,
    Exact,
    Features,
    Given,
    Knockout,
    LowRankMBR,
    Pairs,
    PrunedMBR,
    ReferenceAggregation,
    RoundRobin,
    TokenF1,
    WeightedMBR,
    ngram_features,
)
from ramify.errors import InvalidValue
from tests.decide.banks import dot, seeds


class Counted:
    """A random utility matrix that writes down every question it is asked."""

    def __init__(self, values: Array) -> None:
        self.values, self.rounds = values, list[tuple[int, ...]]()

    def __call__(self, question: Array, i: Array, j: Array) -> Array:
        del question
        found = self.values[i, j]
        self.rounds.append(found.shape)
        return found

    @property
    def calls(self) -> int:
        return sum(math.prod(shape) for shape in self.rounds)


def over(utility: Any, n: int) -> Candidates:
    return Candidates(np.arange(n), utility=utility)


def plain(a: str, b: str) -> float:
    """A function of two outputs that says nothing about itself."""
    return float(len(set(a) & set(b)))


# ------------------------------------------------------------------------------------------------------------ the exact


def test_mbr_asks_for_every_pair_once() -> None:
    texts = [["a b", "b c", "a c", "d"]]
    asymmetric, symmetric = Pairs(texts, plain), Pairs(texts, TokenF1())
    MBR()(Candidates(np.arange(4)[None], utility=asymmetric))
    choice = MBR()(Candidates(np.arange(4)[None], utility=symmetric))
    assert asymmetric.calls == 16  # n²
    assert symmetric.calls == 6  # n (n - 1) / 2
    MBR()(Candidates(np.arange(4)[None], utility=symmetric))
    assert symmetric.calls == 6, "what is known is not asked again"
    # F1 of each pair of overlapping texts is 1/2: rows (1 + 1/2 + 1/2 + 0) / 4, and 1/4 for the last
    assert choice.support.tolist() == [[0.5, 0.5, 0.5, 0.25]]


def test_only_eligible_candidates_are_compared() -> None:
    utility = Pairs([["a", "b", None, "a"]], plain)
    MBR()(Candidates(np.array([[0, 1, -1, 0]]), utility=utility))
    assert utility.calls == 9


def test_weighted_mbr_normalises_and_refuses_bad_weights() -> None:
    pairs = Given(np.eye(3))
    some = Candidates(np.arange(3), evidence={"weight": np.array([1.0, 3.0, 0.0])}, utility=pairs)
    assert WeightedMBR()(some).support.tolist() == [0.25, 0.75, 0.0]
    for bad in ([0.0, 0.0, 0.0], [1.0, -1.0, 1.0], [np.inf, 1.0, 1.0]):
        with pytest.raises(InvalidValue, match="weight"):
            WeightedMBR()(Candidates(np.arange(3), evidence={"weight": np.array(bad)}, utility=pairs))


def test_a_missing_pair_is_an_error_for_mbr() -> None:
    holes = Given([[1.0, np.nan], [0.5, 1.0]])
    with pytest.raises(InvalidValue, match="every pair"):
        MBR()(over(holes, 2))


# ------------------------------------------------------------------------------------------------------- approximations


def test_ambr_halves_in_the_published_rounds() -> None:
    rng = np.random.default_rng(0)
    utility = Counted(rng.random((64, 64)))
    AMBR(budget=384)(over(utility, 64))
    assert utility.rounds == [(64, 1), (32, 2), (16, 4), (8, 8), (4, 16), (2, 32)]
    assert utility.calls == 384


@given(seeds, st.integers(1, 20), st.integers(1, 500))
@settings(max_examples=60)
def test_ambr_never_spends_past_its_budget_and_is_exact_when_it_can_be(
    rng: np.random.Generator, n: int, budget: int
) -> None:
    utility = Counted(rng.random((n, n)))
    choice = AMBR(budget)(over(utility, n))
    assert utility.calls <= budget
    rounds = max(math.ceil(math.log2(n)), 1) if n > 1 else 1
    if budget >= n * n * rounds:
        assert int(choice.winner) == int(MBR()(over(Counted(utility.values), n)).winner)


def test_equals_are_free_where_the_utility_knows_them() -> None:
    texts = [[f"t{i}" for i in range(64)]]
    utility = Pairs(texts, lambda a, b: 1.0 + (a < b))
    known = Pairs(texts, Exact())
    for each in (utility, known):
        AMBR(384)(Candidates(np.arange(64)[None], utility=each))
    assert known.calls < utility.calls <= 384


@given(seeds, st.integers(1, 40))
@settings(max_examples=40)
def test_pruning_keeps_the_best_and_asks_for_less(rng: np.random.Generator, n: int) -> None:
    quality = np.linspace(0, 1, n)[:, None] + 0.01 * rng.random((n, n))  # clear differences: little is undecided
    utility = Counted(quality)
    choice = PrunedMBR(first=4, bootstrap=100)(over(utility, n))
    assert int(choice.winner) == int(MBR()(over(Counted(quality), n)).winner)
    assert utility.calls <= n * n
    if n > 16:
        assert utility.calls < n * n / 2


def test_pruning_without_differences_uses_every_reference() -> None:
    utility = Counted(np.ones((20, 20)))
    assert int(PrunedMBR()(over(utility, 20)).winner) == 0
    assert utility.calls == 400, "ties survive: nobody can be dropped"


def test_reference_aggregation_compares_n_times_and_centroids_n_k_times() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.random((1, 30, 4))
    one, few, all_ = (Features(vectors, dot) for _ in range(3))
    bank = np.arange(30)[None]
    exact = MBR()(Candidates(bank, utility=all_))
    average = ReferenceAggregation()(Candidates(bank, utility=one))
    centroids = CentroidMBR(k=3)(Candidates(bank, utility=few))
    assert np.allclose(average.support, exact.support), "exact for a utility that is linear in the reference"
    assert np.allclose(centroids.support, exact.support), "weighted by count, centroids have the same mean"
    assert (one.calls, few.calls, all_.calls) == (30, 90, 900)
    with pytest.raises(InvalidValue, match="Features"):
        ReferenceAggregation()(over(Given(np.eye(3)), 3))


def test_low_rank_completion_finds_the_best_of_a_low_rank_matrix() -> None:
    rng = np.random.default_rng(3)
    n = 48
    values = np.outer(np.linspace(1, 2, n), np.ones(n)) + np.outer(np.ones(n), rng.random(n))
    utility = Counted(values)
    choice = LowRankMBR(share=0.25, rank=2, ridge=1e-3, iterations=30)(over(utility, n))
    assert utility.calls == math.ceil(n * n / 4)
    assert int(choice.winner) >= n - 3
    assert LowRankMBR().share == 1 / 8


def test_ngram_features() -> None:
    features = ngram_features([["aa", "ab", ""]], n=2)
    assert features.sum(-1).tolist() == [[3.0, 3.0, 0.0]]  # a a aa; a b ab


# ------------------------------------------------------------------------------------------------------ several outputs


@given(seeds)
@settings(max_examples=20)
def test_diverse_n_best_is_no_worse_than_greedy_and_no_swap_betters_it(rng: np.random.Generator) -> None:
    values = rng.random((6, 6))
    values = (values + values.T) / 2
    bank, mean = over(Given(values), 6), values.mean(axis=1)
    rule = DiverseNBest(k=2, spread=0.5, steps=300)
    found, greedy = (each(bank).ranked.tolist() for each in (rule, DiverseNBest(k=2, spread=0.5, steps=0)))
    value = rule.value(found, values, mean)
    assert value >= rule.value(greedy, values, mean)
    swaps = [[i, j] for i, j in itertools.combinations(range(6), 2) if i in found or j in found]
    assert value >= max(rule.value(pair, values, mean) for pair in swaps) - 1e-12
    plain_ = DiverseNBest(k=3, spread=0.0)(bank).ranked.tolist()
    assert plain_ == np.argsort(-mean, kind="stable")[:3].tolist(), "without spread: the best by expected utility"
    assert DiverseNBest(k=8)(bank).ranked.tolist()[6:] == [-1, -1]


# ---------------------------------------------------------------------------------------------------------- tournaments


def test_round_robin_counts_both_orders_and_skips_what_was_not_judged() -> None:
    nan = math.nan
    judged = Given([[nan, 0.9, nan], [0.4, nan, 1.0], [nan, 0.0, nan]])
    # 0: won .9 and, as second, 1 - .4; 1: .4, 1, 1 - .9, 1 - 0; 2: 0, 1 - 1
    assert RoundRobin()(over(judged, 3)).support.tolist() == pytest.approx([0.75, 0.625, 0.0])


def test_a_knockout_asks_n_minus_one_times() -> None:
    strength = np.array([0.2, 0.9, 0.5, 0.4, 0.95])
    utility = Counted((strength[:, None] > strength[None]) * 1.0)
    assert int(Knockout()(over(utility, 5)).winner) == 4
    assert utility.calls == 4
    both = Counted(utility.values)
    assert int(Knockout(both=True)(over(both, 5)).winner) == 4
    assert both.calls == 8
    assert int(Knockout()(over(Given(np.full((4, 4), 0.5)), 4)).winner) == 0, "a draw lets the earlier one go on"


def test_bradley_terry_recovers_strengths_of_two() -> None:
    # 30 games, of which 0 won 20: with a vanishing prior the odds are 2 to 1
    values = np.array([[math.nan, 2 / 3], [1 / 3, math.nan]])
    support = BradleyTerry(prior=1e-9)(over(Given(values), 2)).support
    assert math.exp(support[0] - support[1]) == pytest.approx(2.0, rel=1e-6)


def test_bradley_terry_orders_a_chain_that_was_only_partly_judged() -> None:
    values = np.full((4, 4), math.nan)
    for i in range(3):
        values[i, i + 1] = 0.9  # 0 beats 1, 1 beats 2, 2 beats 3
    support = BradleyTerry()(over(Given(values), 4)).support
    assert np.argsort(-support).tolist() == [0, 1, 2, 3]
    assert np.isfinite(BradleyTerry()(over(Given(np.array([[0.5, 1.0], [0.0, 0.5]])), 2)).support).all()


def test_judgements_are_probabilities() -> None:
    with pytest.raises(InvalidValue, match=r"within \[0, 1\]"):
        RoundRobin()(over(Given([[0.0, 3.0], [0.0, 0.0]]), 2))

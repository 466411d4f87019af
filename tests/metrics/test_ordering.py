"""Ordering quality of evaluators against continuation values: SciPy, brute force, and the tabular model."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from ramify.decode import Chain, Temperature, TopK
from ramify.errors import InvalidValue
from ramify.metrics import continuation_values, order_quality
from ramify.models import Tabular, leaves
from ramify.types import Key

grades = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=7)


@settings(max_examples=150, deadline=None)
@given(grades)
def test_one_frontier_by_brute_force(rows: list[tuple[int, int]]) -> None:
    score, value = (np.array(each, dtype=float) for each in zip(*rows, strict=True))
    found = order_quality(score[None], value[None])
    decided = [(i, j) for i, j in combinations(range(len(rows)), 2) if value[i] != value[j]]
    right = sum(0.5 if score[i] == score[j] else (score[i] > score[j]) == (value[i] > value[j]) for i, j in decided)
    assert found.pairs[0] == len(decided)
    top = rows[int(np.argmax(score))][1]
    assert found.regret[0] == pytest.approx(value.max() - top)
    assert found.lift[0] == pytest.approx(top - value.mean())
    expected = kendalltau(score, value).statistic if len(set(score)) > 1 and len(set(value)) > 1 else math.nan
    assert found.tau[0] == pytest.approx(float(expected), nan_ok=True)
    if decided:
        assert found.accuracy[0] == pytest.approx(right / len(decided))
        assert found.tied[0] == pytest.approx(sum(score[i] == score[j] for i, j in decided) / len(decided))
    else:
        assert math.isnan(found.accuracy[0])


def test_missing_scores_are_left_out_and_counted_and_padding_is_nothing() -> None:
    nan = math.nan
    found = order_quality([[0.2, nan, 0.7, 0.9]], [[0.0, 1.0, 0.5, nan]])
    assert found.left_out == 1
    assert found.pairs.tolist() == [1]
    assert found.accuracy.tolist() == [1.0]
    assert found.lift.tolist() == [pytest.approx(0.5 - 0.5)]
    assert found.regret.tolist() == [pytest.approx(0.5)], "the best was there to be had"
    nothing = order_quality([[nan, 0.3]], [[0.5, 0.6]])
    assert all(math.isnan(float(each[0])) for each in (nothing.tau, nothing.lift, nothing.regret))


def test_infinite_scores_are_scores() -> None:
    found = order_quality([[-math.inf, -math.inf, 0.0]], [[0.0, 0.5, 1.0]])
    assert found.accuracy.tolist() == [pytest.approx((2 + 0.5) / 3)]
    assert found.regret.tolist() == [0.0]


def test_order_is_all_that_counts() -> None:
    rng = np.random.default_rng(0)
    score, value = rng.normal(size=(20, 3, 6)), rng.random((20, 3, 6))
    one, other = order_quality(score, value), order_quality(np.exp(3 * score), value)
    for name in ("tau", "accuracy", "lift", "regret"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    perfect, reversed_ = order_quality(value, value), order_quality(-value, value)
    assert (perfect.tau == 1).all()
    assert (perfect.regret == 0).all()
    assert (perfect.accuracy == 1).all()
    assert (reversed_.tau == -1).all()


def test_lift_is_unbiased_under_rollouts_and_agreement_is_not() -> None:
    rng = np.random.default_rng(1)
    value, score = rng.random((400, 6)), rng.random((400, 6))
    score = score + value
    exact = order_quality(score, value)
    noisy = [order_quality(score, rng.binomial(4, value) / 4) for _ in range(40)]
    error = np.std([each.lift.mean() for each in noisy], ddof=1) / math.sqrt(40)
    assert abs(np.mean([each.lift.mean() for each in noisy]) - exact.lift.mean()) < 4 * error
    assert np.mean([each.regret.mean() for each in noisy]) > exact.regret.mean() + 0.02
    perfect = order_quality(value, rng.binomial(4, value) / 4)
    assert np.nanmean(perfect.tau) < 0.8, "the order of rollouts is not that of values"


def test_questions_are_the_unit_of_intervals() -> None:
    rng = np.random.default_rng(2)
    value = rng.random((30, 4, 5))
    value[3] = 0.5  # nothing to order in this question
    found = order_quality(rng.random((30, 4, 5)) + value, value)
    by_question = found.by_question()
    assert by_question["tau"].shape == (30,)
    estimates = found.estimates(replicates=300)
    assert estimates["tau"].covers == ("questions",)
    assert "1 questions with nothing to order" in estimates["tau"].note
    assert estimates["tau"].value == pytest.approx(np.nanmean(by_question["tau"]))
    assert estimates["regret"].note == "percentile"
    with pytest.raises(InvalidValue, match="two that have a value"):
        order_quality(np.ones((2, 3)), np.ones((2, 3))).estimates()


def test_continuation_values_are_those_of_the_recursion() -> None:
    """V(z) = Σ_t q(t | z) V(z t), with V of a leaf its utility, walked down the model itself."""
    model, cap, chain = (
        Tabular.random(Key("order", "tabular", 0), vocabulary=4, order=2),
        5,
        Chain(TopK(3), Temperature(0.7)),
    )
    found = leaves(model, chain, (), cap)
    utility = np.array([sum(row) % 3 == 0 for row in found.tokens.tolist()], dtype=float)
    given_ = dict(zip(map(tuple, found.tokens.tolist()), utility.tolist(), strict=True))
    values = continuation_values(found.tokens, found.log_q, utility)

    def walk(prefix: tuple[int, ...]) -> float:
        if len(prefix) == cap or (prefix and prefix[-1] == model.eos):
            return float(given_[prefix + (-1,) * (cap - len(prefix))])
        logits = model.logits(model.start([prefix]))[0]
        kept = np.argsort(-logits, kind="stable")[:3]
        weight = np.exp((logits[kept] - logits[kept].max()) / 0.7)
        chances = (weight / weight.sum()).tolist()
        mine = sum(p * walk((*prefix, int(token))) for p, token in zip(chances, kept, strict=True))
        assert values[prefix] == pytest.approx(mine)
        return float(mine)

    walk(())
    with pytest.raises(InvalidValue, match="each leaf"):
        continuation_values(found.tokens, found.log_q, utility[:-1])

"""Proposal shift: exact between laws that are known, and never overconfident about laws that were drawn from."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, entropy

from ramify.errors import InvalidValue
from ramify.metrics import Law, binomial_interval, joint_law, proposal_shift

weights = st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(any)


def of(counts: list[int]) -> dict[Hashable, Fraction]:
    return {k: Fraction(n, sum(counts)) for k, n in enumerate(counts)}


def law(mass: dict[Hashable, Fraction]) -> Law:
    return Law.exact({name: float(p) for name, p in mass.items()})


@settings(max_examples=80, deadline=None)
@given(weights, weights)
def test_exact_laws_give_the_numbers_of_fractions(one: list[int], two: list[int]) -> None:
    q, p = of(one), of(two)
    found = proposal_shift(law(q), law(p))
    names = q.keys() | p.keys()
    moved = sum(abs(q.get(k, Fraction(0)) - p.get(k, Fraction(0))) for k in names) / 2
    lost = sum(mass for k, mass in q.items() if not p.get(k))
    rarer = sum(mass for k, mass in q.items() if p.get(k, Fraction(0)) < mass)
    assert found.moved.value == pytest.approx(float(moved)) == pytest.approx(found.difference.clip(0).sum())
    assert found.lost.value == pytest.approx(float(lost))
    assert found.suppressed == pytest.approx(float(rarer))
    assert found.moved.covers == found.lost.covers == ()
    assert (found.given_up.value == math.inf) == bool(lost)
    if not lost:
        masses = [[float(each.get(k, 0)) for k in names] for each in (q, p)]
        expected = entropy(masses[0], masses[1])
        assert found.given_up.value == pytest.approx(float(expected), abs=1e-12)
    assert found.entropy[0] == pytest.approx(float(entropy([float(each) for each in q.values()])))
    assert found.floor == 0
    assert math.isnan(found.p)
    assert found.rare == 0
    assert found.unseen.value == 0


def test_the_law_of_answers_is_that_of_leaves_summed() -> None:
    leaves = Law.exact({"1": 0.25, "01": 0.25, "2": 0.5})
    assert dict(zip(*_pairs(leaves.by(lambda leaf: int(str(leaf)))), strict=True)) == {1: 0.5, 2: 0.5}
    drawn = Law.drawn(["1", "2", "01", "1"]).by(lambda leaf: int(str(leaf)))
    assert dict(zip(*_pairs(drawn), strict=True)) == {1: 0.75, 2: 0.25}
    assert drawn.codes is not None
    assert drawn.codes.tolist() == [0, 1, 0, 0], "in the order they were drawn"


def _pairs(each: Law) -> tuple[tuple[Hashable, ...], list[float]]:
    return each.names, each.probs.tolist()


def test_two_draws_agree_without_bias() -> None:
    """Over all samples of three from (1/2, 1/3, 1/6): the mean estimate of Σ p² is 14/36 exactly."""
    p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    total = sum(
        math.prod(p[i] for i in sample) * Fraction(Law.drawn(sample).agree).limit_denominator(100)
        for sample in product(range(3), repeat=3)
    )
    assert total == Fraction(14, 36)
    assert Law.exact({k: float(each) for k, each in enumerate(p)}).agree == pytest.approx(14 / 36)


@pytest.mark.parametrize(("k", "n"), [(0, 7), (3, 9), (9, 9), (40, 100)])
def test_binomial_intervals_are_scipys(k: int, n: int) -> None:
    expected = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert binomial_interval(k, n, 0.05) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("sampled", [False, True], ids=["exact before", "drawn before"])
@pytest.mark.parametrize("same", [True, False], ids=["nothing moved", "moved"])
def test_the_interval_of_what_moved_holds_at_any_number_of_outcomes(sampled: bool, same: bool) -> None:
    """Sixty outcomes, 100 executions: the plug-in is far too large, and the interval errs in at most 5 % of 200."""
    rng = np.random.default_rng(5)
    q = rng.dirichlet(np.full(60, 0.5))
    p = q if same else np.where(np.arange(60) < 30, q, 0) / q[:30].sum()
    truth = float(np.abs(p - q).sum() / 2)
    inside, values, floors, lows, alarms = [], [], [], [], []
    for _ in range(200):
        before = Law.drawn(rng.choice(60, 150, p=q).tolist()) if sampled else Law.exact(dict(enumerate(q.tolist())))
        found = proposal_shift(before, Law.drawn(rng.choice(60, 100, p=p).tolist()), replicates=39)
        inside.append(found.moved.low <= truth <= found.moved.high)
        values.append(found.moved.value)
        floors.append(found.floor)
        lows.append(found.moved.low)
        alarms.append(found.p <= 0.05)
    assert np.mean(inside) >= 0.95
    assert same or np.mean(np.array(lows) > 0) > 0.95, "it is not an empty statement"
    assert np.mean(values) > truth
    assert np.mean(alarms) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 200) if same else np.mean(alarms) > 0.95
    if same:
        assert np.mean(values) == pytest.approx(np.mean(floors), rel=0.05), "the floor is what no shift looks like"


def test_what_was_never_returned_is_at_most_lost() -> None:
    """A search that reaches b with 1/400: 200 executions return it rarely, and do not show that it is lost."""
    rng = np.random.default_rng(0)
    before = Law.exact({"a": 0.5, "b": 0.3, "c": 0.2})
    found = [
        proposal_shift(before, Law.drawn(rng.choice(["a", "b"], 200, p=[0.9975, 0.0025]).tolist())) for _ in range(300)
    ]
    assert all(each.lost.low == 0 and 0.2 <= each.lost.high <= 0.5 for each in found)
    never = next(each for each in found if "b" not in each.names[: len(each.names)] or each.after[1] == 0)
    assert never.lost.value == pytest.approx(0.5)
    assert "not out of reach" in never.lost.note
    assert never.rare == pytest.approx(1 - 0.05 ** (1 / 200))
    assert never.rare > 0.0025
    assert never.suppressed == pytest.approx(0.5), "b and c are certainly rarer than under the proposal"
    assert np.mean([each.unseen.high >= 0.0025 * (each.after[1] == 0) for each in found]) >= 0.95


def test_lost_mass_of_a_drawn_proposal_has_a_binomial_interval() -> None:
    before, after = Law.drawn(["a"] * 30 + ["b"] * 10), Law.drawn(["a"] * 50)
    found = proposal_shift(before, after)
    assert found.lost.value == 0.25
    assert [found.lost.low, found.lost.high] == pytest.approx([0.0, binomial_interval(10, 40, 0.05)[1]])
    assert found.lost.covers == ("draws", "reruns")
    certain = proposal_shift(before, Law.exact({"a": 1.0}))
    assert certain.lost.low == pytest.approx(binomial_interval(10, 40, 0.05)[0])
    assert certain.lost.covers == ("draws",)
    assert math.isnan(found.suppressed)


def test_nothing_submitted_is_an_outcome() -> None:
    found = proposal_shift(Law.exact({"a": 1.0}), Law.drawn([None, "a", None, "a"]))
    assert found.moved.value == 0.5
    assert found.gained.value == math.inf


# -------------------------------------------------------------------------------------------------------- joint laws


def test_independent_leaves_agree_within_as_they_do_between() -> None:
    p = [0.5, 0.3, 0.2]
    banks = list(product(range(3), repeat=3))
    joint = joint_law(banks, [math.prod(p[i] for i in bank) for bank in banks])
    assert joint.within == pytest.approx(0.38) == pytest.approx(joint.between)
    assert joint.dependence == pytest.approx(0, abs=1e-12)
    assert joint.inclusion.tolist() == pytest.approx([1 - (1 - each) ** 3 for each in p])
    assert joint.share.tolist() == pytest.approx(p)
    assert joint.sizes == {3: pytest.approx(1)}
    assert joint.together.sum() == pytest.approx(
        np.average(joint.distinct**2, weights=joint.weight) - joint.mean_distinct**2
    )


def test_copies_and_leaves_without_replacement_are_the_two_ends() -> None:
    copies = joint_law([["a"] * 4, ["b"] * 4], [0.5, 0.5])
    assert (copies.within, copies.between, copies.dependence) == (1.0, 0.5, 1.0)
    assert copies.cooccurrence == 0
    apart = joint_law([["a", "b"], ["b", "c"], ["a", "c"]], [1 / 3] * 3)
    assert apart.within == 0
    assert apart.dependence == pytest.approx((0 - 1 / 3) / (1 - 1 / 3))
    assert apart.cooccurrence == pytest.approx(1 / (3 * 4 / 9))


def test_executions_estimate_the_joint_law_without_bias() -> None:
    """Over every pair of executions of a small law, the mean of ``between`` and of pairs apart is that of the law."""
    banks, p = [("a", "a"), ("a", "b"), ("b", "c", "c")], [0.5, 0.25, 0.25]
    exact = joint_law(banks, p)
    pairs = list(product(range(3), repeat=2))
    chance = [p[i] * p[j] for i, j in pairs]
    seen = [joint_law([banks[i], banks[j]]) for i, j in pairs]
    assert np.dot(chance, [each.between for each in seen]) == pytest.approx(exact.between)
    assert np.dot(chance, [each.within for each in seen]) == pytest.approx(exact.within)
    assert np.dot(chance, [each.mean_distinct for each in seen]) == pytest.approx(exact.mean_distinct)
    apart = [each._pairs_apart() for each in seen]
    assert np.dot(chance, apart) == pytest.approx(exact._pairs_apart())


def test_jackknife_intervals_cover_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    banks, p = [("a", "a", "a"), ("a", "b", "b"), ("c", "b", "a"), (), ("d",)], [0.3, 0.2, 0.3, 0.1, 0.1]
    truth = joint_law(banks, p).estimates()
    hits = dict.fromkeys(truth, 0)
    for _ in range(300):
        drawn = joint_law([banks[i] for i in rng.choice(5, 80, p=p)])
        for name, found in drawn.estimates().items():
            assert found.covers == ("reruns",)
            hits[name] += found.low <= truth[name].value <= found.high
    assert min(hits.values()) >= 0.9 * 300


def test_the_jackknife_is_that_of_leaving_executions_out() -> None:
    banks = [["a", "a"], ["a", "b"], ["b", "b", "c"], ["c"], []]
    found = joint_law(banks)._left_out()
    for r in range(5):
        rest = joint_law(banks[:r] + banks[r + 1 :])
        assert found["within"][r] == pytest.approx(rest.within)
        assert found["between"][r] == pytest.approx(rest.between)
        assert found["dependence"][r] == pytest.approx(rest.dependence)
        assert found["size"][r] == pytest.approx(rest.mean_size)


def test_one_leaf_a_bank_is_an_independent_draw_of_the_marginal() -> None:
    banks, p = [("a", "a", "b"), ("b",), (), ("c", "a")], [0.5, 0.2, 0.1, 0.2]
    exact = joint_law(banks, p).one_leaf()
    expected = {"a": 0.5 * 2 / 3 + 0.1, "b": 0.5 / 3 + 0.2, "c": 0.1, None: 0.1}
    assert dict(zip(exact.names, exact.probs.tolist(), strict=True)) == pytest.approx(expected)
    drawn = np.random.default_rng(0).choice(4, 2000, p=p)
    law = joint_law([banks[i] for i in drawn]).one_leaf()
    assert law.draws == 2000
    for name, share in zip(law.names, law.probs.tolist(), strict=True):
        assert share == pytest.approx(expected[None if name is None else str(name)], abs=5 * math.sqrt(0.25 / 2000))
    assert joint_law([[], []], [0.5, 0.5]).one_leaf().names == (None,)


def test_banks_without_pairs_have_no_dependence() -> None:
    joint = joint_law([["a"], []])
    assert math.isnan(joint.within)
    assert math.isnan(joint.dependence)
    assert joint.sizes == {0: 0.5, 1: 0.5}
    assert joint.share.tolist() == [1.0]


def test_refusals() -> None:
    with pytest.raises(InvalidValue, match="sum to 1"):
        Law.exact({"a": 0.5})
    with pytest.raises(InvalidValue, match="at least once"):
        Law.drawn([])
    with pytest.raises(InvalidValue, match="at least once"):
        joint_law([])
    with pytest.raises(InvalidValue, match="summing to 1"):
        joint_law([["a"]], [0.5])
    with pytest.raises(InvalidValue, match="coverage"):
        proposal_shift(Law.exact({"a": 1.0}), Law.exact({"a": 1.0}), level=1.0)

"""Plans, checked by running the study they plan."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ramify.arrays import Array
from ramify.errors import InvalidValue
from ramify.metrics import (
    Accuracy,
    BetaPrior,
    Functional,
    GeomAt,
    PassAt,
    Percentile,
    Tally,
    bank_profile,
    bootstrap_difference,
    bootstrap_profile,
    candidates_for,
    questions_for,
    questions_to_separate,
    summarise,
    width_of,
)
from ramify.types import Key

KEY = Key("test", "planning", 0, "bootstrap")
U = BetaPrior(0.4, 0.6)


def study(rng: np.random.Generator, questions: int, n: int, shift: float = 0.0) -> Tally:
    p = np.clip(rng.beta(U.alpha, U.beta, questions) + shift, 0, 1)
    return Tally(rng.binomial(n, p), np.full(questions, n))


@pytest.mark.parametrize("functional", [Accuracy(), PassAt(4), GeomAt(4)], ids=repr)
def test_the_planned_width_is_the_width_of_the_sampling_law(functional: Functional) -> None:
    rng = np.random.default_rng(0)
    values = [float(functional(bank_profile(study(rng, 150, 8)))) for _ in range(2_000)]
    low, high = np.quantile(values, [0.025, 0.975])
    assert width_of(functional, U, questions=150, candidates=8).width == pytest.approx(high - low, rel=0.08)


def test_the_accuracy_has_its_two_components_in_closed_form() -> None:
    # Beta(1, 1): the variance of p is 1/12 and the mean of p(1-p) is 1/6.
    for n in (1, 4, 64):
        width = width_of(Accuracy(), BetaPrior(1.0, 1.0), questions=100, candidates=n).width
        assert width == pytest.approx(2 * 1.959964 * np.sqrt((1 / 12 + 1 / 6 / n) / 100), rel=1e-4)


def test_questions_and_candidates_for_a_width() -> None:
    plan = questions_for(PassAt(8), U, width=0.05, candidates=16)
    assert plan.width <= 0.05 < width_of(PassAt(8), U, plan.questions - 1, 16).width
    more = candidates_for(PassAt(8), U, width=0.05, questions=plan.questions)
    assert more.candidates <= 16
    assert more.total <= plan.total
    with pytest.raises(InvalidValue, match=r"100 questions allow 0.1.* at best; ask more questions"):
        candidates_for(Accuracy(), U, width=0.01, questions=100)
    with pytest.raises(InvalidValue, match="candidates = 4: use at least the functional's k = 8"):
        questions_for(PassAt(8), U, width=0.05, candidates=4)


def test_a_pilot_stands_in_for_the_difficulty() -> None:
    pilot = study(np.random.default_rng(1), 3_000, 20)
    known, guessed = (questions_for(Accuracy(), d, width=0.04, candidates=8).questions for d in (U, pilot))
    assert guessed == pytest.approx(known, rel=0.05)


def test_as_many_questions_as_planned_separate_two_systems() -> None:
    rng, shift = np.random.default_rng(2), 0.06

    def pair(questions: int, n: int) -> tuple[Tally, Tally]:
        p = rng.beta(U.alpha, U.beta, questions)
        better = np.clip(p + shift * 2 * rng.random(questions), 0, 1)
        return tuple(Tally(rng.binomial(n, each), np.full(questions, n)) for each in (better, p))  # type: ignore[return-value]

    pilot = pair(2_000, 16)
    gap = float(np.mean(pilot[0].correct - pilot[1].correct) / 16)
    plan = questions_to_separate(*pilot, Accuracy(), gap, candidates=4, power=0.8)
    studies = [bootstrap_difference(*pair(plan.questions, 4), Accuracy(), KEY, 400) for _ in range(300)]
    assert 0.7 < np.mean([Percentile()(each).low > 0 for each in studies]) < 0.9
    assert questions_to_separate(*pilot, Accuracy(), gap, candidates=64).questions < plan.questions


def test_groups_weigh_the_same_in_the_macro_average() -> None:
    rng = np.random.default_rng(3)
    sizes = [5, 20, 80]
    labels = np.repeat(["a", "b", "c"], sizes)
    p = np.repeat([0.9, 0.5, 0.1], sizes)
    tally = Tally(rng.binomial(10, p), np.full(105, 10))
    found = summarise(tally, labels, Accuracy(), KEY, 3_000)
    means = [tally.correct[labels == g].mean() / 10 for g in "abc"]
    assert found.macro.value == pytest.approx(np.mean(means), rel=1e-12)
    assert found.micro.value == pytest.approx(tally.correct.mean() / 10, rel=1e-12)
    assert found.questions == (5, 20, 80)
    spread = np.sqrt(sum(tally.correct[labels == g].var() / 100 / n for g, n in zip("abc", sizes, strict=True)) / 9)
    assert found.macro.width == pytest.approx(2 * 1.96 * spread, rel=0.1), "stratified: groups are kept"
    assert found.heterogeneity.p == 1e-4, "no permutation of 9,999 divides them so"
    assert found.heterogeneity.share > 0.9
    balanced = summarise(tally, np.arange(105) % 7, PassAt(4), KEY, 1_000)
    assert balanced.heterogeneity.p > 1e-3
    assert balanced.micro.value == pytest.approx(balanced.macro.value, rel=1e-12), "groups of one size"


def test_groups_whose_questions_all_fared_alike_are_compared_too() -> None:
    """Two right and two wrong questions: of 6 ways to divide them 2 are as uneven, so p is 1/3 and not next to 0."""
    two = summarise(Tally.of([[1], [1], [0], [0]]), ["a", "a", "b", "b"], Accuracy(), KEY, 200).heterogeneity
    assert two.p == pytest.approx(1 / 3, abs=0.02)  # 9,999 permutations: a standard error of 0.005
    assert np.isnan([two.q, two.share, two.between]).all(), "no variance to weigh by"
    assert two.spread == 1
    ten = summarise(Tally.of([[1]] * 10 + [[0]] * 10), ["a"] * 10 + ["b"] * 10, Accuracy(), KEY, 200).heterogeneity
    assert ten.p == 1e-4  # 2 / C(20, 10) is 1.1e-5
    alike = summarise(Tally.of([[1, 0]] * 6), ["a", "b"] * 3, Accuracy(), KEY, 200).heterogeneity
    assert alike.p == 1


def test_permuted_labels_against_another_program() -> None:
    rng = np.random.default_rng(5)
    labels, right = np.repeat([0, 1, 2], [4, 6, 9]), rng.binomial(8, np.repeat([0.4, 0.5, 0.7], [4, 6, 9]))
    tally = Tally(right, np.full(19, 8))

    def between(*samples: Array) -> float:
        return float(sum(len(each) * (each.mean() - right.mean()) ** 2 for each in samples))

    samples = [right[labels == g] for g in range(3)]
    other = stats.permutation_test(
        samples, between, n_resamples=9_999, alternative="greater", rng=np.random.default_rng(1)
    )
    assert summarise(tally, labels, Accuracy(), KEY, 200).heterogeneity.p == pytest.approx(other.pvalue, abs=0.02)


def test_a_group_without_two_usable_questions_is_named() -> None:
    nan = np.nan
    tally = Tally.of([[1, 0], [1, 1], [0, nan], [0, 1]])
    with pytest.raises(InvalidValue, match=r"groups = \['y'\]: a group needs two questions with at least k = 2"):
        summarise(tally, ["x", "x", "y", "y"], PassAt(2), KEY)
    with pytest.raises(InvalidValue, match="name the group"):
        summarise(tally, ["x"], PassAt(2), KEY)


def test_seventy_two_fields_of_fifty() -> None:
    rng = np.random.default_rng(4)
    tally = Tally(rng.binomial(80, rng.beta(0.5, 0.5, 3_600)), np.full(3_600, 80))
    found = summarise(tally, np.repeat(np.arange(72), 50), PassAt(8), KEY, 300)
    assert len(found.values) == 72
    whole = Percentile()(bootstrap_profile(tally, PassAt(8), KEY, 2_000))
    assert found.micro.value == pytest.approx(whole.value, rel=1e-12)
    assert found.micro.width == pytest.approx(whole.width, rel=0.2)

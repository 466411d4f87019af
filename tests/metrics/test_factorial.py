"""Effects of full factorials: they sum to zero, they add up, and they are what an analysis of variance says."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import f as f_law

from ramify.arrays import Array
from ramify.errors import InvalidValue
from ramify.metrics import Factorial, full_factorial

NAMES = ("evaluator", "controller", "budget", "rule")


def named(table: Array) -> Factorial:
    shape = table.shape[:-1]
    return full_factorial(
        table, {name: [f"{name}{i}" for i in range(n)] for name, n in zip(NAMES, shape, strict=False)}
    )


@st.composite
def tables(draw: st.DrawFn) -> Array:
    shape = draw(st.lists(st.integers(2, 4), min_size=1, max_size=4))
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).normal(size=(*shape, draw(st.integers(2, 5))))


@settings(max_examples=60, deadline=None)
@given(tables())
def test_effects_sum_to_zero_and_add_up_to_the_table(table: Array) -> None:
    made = named(table)
    total = np.full(made.means.shape, made.grand)
    for chosen in made.sets():
        effect = made.effect(*chosen)
        assert effect.shape == tuple(len(made.factors[name]) for name in chosen)
        for axis in range(effect.ndim):
            assert np.allclose(effect.sum(axis=axis), 0)
        assert np.allclose(made.within(*chosen).mean(axis=-1), effect)
        total = total + effect[tuple(slice(None) if name in chosen else None for name in made.names)]
    assert np.allclose(total, made.means)


@settings(max_examples=40, deadline=None)
@given(tables())
def test_variances_of_the_sources_add_up_to_that_of_the_means(table: Array) -> None:
    made = named(table)
    sources = made.sources(flips=5)
    assert sum(each.variance for each in sources) == pytest.approx(float(made.means.var()))
    assert sum(each.share for each in sources) == pytest.approx(1)
    assert sum(each.df for each in sources) == made.means.size - 1


def test_effects_of_fractions_by_the_definition() -> None:
    rng = np.random.default_rng(3)
    whole = rng.integers(0, 7, (2, 3, 2, 4))
    made = named(whole / 7)

    def mean(fixed: dict[int, int]) -> Fraction:
        cells = [whole[at] for at in product(*map(range, whole.shape)) if all(at[i] == j for i, j in fixed.items())]
        return Fraction(int(sum(cells)), 7 * len(cells))

    grand, a, b = mean({}), mean({0: 1}), mean({1: 2})
    both, all_three = mean({0: 1, 1: 2}), mean({0: 1, 1: 2, 2: 0})
    assert made.effect("evaluator")[1] == pytest.approx(float(a - grand))
    assert made.effect("controller", "evaluator")[1, 2] == pytest.approx(float(both - a - b + grand))
    c, ac, bc = mean({2: 0}), mean({0: 1, 2: 0}), mean({1: 2, 2: 0})
    third = all_three - both - ac - bc + a + b + c - grand
    assert made.effect(*NAMES[:3])[1, 2, 0] == pytest.approx(float(third))


def test_mean_squares_are_those_of_repeated_measures() -> None:
    """One factor within subjects: F and its error by the sums of squares of any textbook, for whole numbers."""
    table = np.array([[3, 4, 5, 4], [5, 6, 9, 8], [4, 7, 6, 7]], dtype=float)  # [3 levels, 4 questions]
    (only,) = named(table).sources(flips=1)
    grand = Fraction(68, 12)
    rows = [Fraction(16, 4), Fraction(28, 4), Fraction(24, 4)]
    columns = [Fraction(12, 3), Fraction(17, 3), Fraction(20, 3), Fraction(19, 3)]
    between = sum(4 * (row - grand) ** 2 for row in rows)
    residual = sum((Fraction(int(table[i, j])) - rows[i] - columns[j] + grand) ** 2 for i in range(3) for j in range(4))
    expected = (between / 2) / (residual / 6)
    assert only.df == 2
    assert only.ratio == pytest.approx(float(expected))
    assert only.corrected == pytest.approx(float((between / 2 - residual / 6) / 4 * 2 / 3))


def test_the_corrected_variance_is_unbiased_and_the_plain_one_is_not() -> None:
    """A known effect in noise: over many tables the corrected variance has the effect's own, to its standard error."""
    rng = np.random.default_rng(0)
    true = np.array([-0.3, 0.0, 0.3])[:, None, None]  # variance 0.06
    found = []
    for _ in range(800):
        made = named(true + rng.normal(size=(3, 2, 6)) + rng.normal(size=6))
        found.append([(each.corrected, each.variance) for each in made.sources(flips=1)])
    corrected, plain = np.array(found).transpose(2, 0, 1)
    expected = np.array([0.06, 0.0, 0.0])
    error = corrected.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(corrected.mean(axis=0) - expected) < 4 * error).all()
    assert (plain.mean(axis=0) > expected + 4 * error).all()


def test_sign_flips_reject_as_often_as_they_say_and_find_what_is_there() -> None:
    rng = np.random.default_rng(1)
    null = [named(rng.normal(size=(3, 2, 20))).sources(flips=99)[0].p for _ in range(400)]
    assert np.mean(np.array(null) <= 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)
    effect = np.array([0.0, 0.5, 1.0])[:, None, None]
    there = named(effect + rng.normal(size=(3, 2, 20))).sources(flips=999)[0]
    assert there.p < 0.02 > f_law.sf(there.ratio, 2, 38)


def test_intervals_are_paired_over_questions() -> None:
    rng = np.random.default_rng(2)
    hard = rng.normal(scale=10, size=30)  # questions differ far more than levels do
    table = np.array([0.0, 0.5])[:, None] + hard + rng.normal(scale=0.1, size=(2, 30))
    first, second = named(table).estimates("evaluator", replicates=500).values()
    assert first.covers == ("questions",)
    assert first.high < -0.2 < 0.2 < second.low  # ± 3.6 if questions were not shared
    assert first.value == pytest.approx(-second.value)
    assert list(named(table).estimates("evaluator", replicates=2)) == [("evaluator0",), ("evaluator1",)]


def test_refusals() -> None:
    with pytest.raises(InvalidValue, match="missing"):
        named(np.array([[0.0, np.nan], [1.0, 1.0]]))
    with pytest.raises(InvalidValue, match="at least two levels"):
        named(np.zeros((1, 4)))
    with pytest.raises(InvalidValue, match="table"):
        full_factorial(np.zeros((2, 3)), {"a": ("x", "y", "z")})
    with pytest.raises(InvalidValue, match="use some of"):
        named(np.zeros((2, 3))).effect("judge")
    with pytest.raises(InvalidValue, match="two questions"):
        named(np.zeros((2, 1))).sources()

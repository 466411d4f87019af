"""Reruns: exact p-values, measured false alarms, two runs of one protocol against one at another temperature."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from ramify.bank import Bank, Outcomes, Proposal
from ramify.decode import Temperature
from ramify.describe import parse, text
from ramify.errors import InvalidValue
from ramify.metrics import Reproducible, adjusted, compare_runs, false_alarms
from ramify.metrics.reproduce import difference_test, statistic
from ramify.models import Tabular, decode_with
from ramify.types import Key, Question, Request

CRITERION = Reproducible(replicates=999)


def tabular(run: str, temperature: float, questions: int = 12, n: int = 60) -> Bank:
    """Answers are the leaves of a random tabular model, another for each question."""
    asked = [Question(f"q{i}", "") for i in range(questions)]
    leaves = []
    for i, question in enumerate(asked):
        model = Tabular.random(Key("reproduce", question.id, 0), vocabulary=3, order=1)
        requests = [Request(Key(run, question.id, sample), (), cap=3) for sample in range(n)]
        leaves += list(decode_with(model, Temperature(temperature))(requests))
        assert len(leaves) == n * (i + 1)
    return Bank.of_leaves(asked, leaves, lambda words, _: words, proposal=Proposal(run=run))


def test_two_runs_of_one_protocol_pass_and_another_temperature_fails() -> None:
    first, again, hotter = tabular("one", 1.0), tabular("two", 1.0), tabular("three", 2.5)
    same = compare_runs(first, again, CRITERION)
    assert same.compatible
    assert same.changed == ()
    assert same.p_overall > 0.05
    other = compare_runs(first, hotter, CRITERION)
    assert other.different
    assert len(other.changed) >= 1
    assert not other.equivalent


def test_equivalence_needs_enough_candidates() -> None:
    few = compare_runs(tabular("one", 1.0, 4, 10), tabular("two", 1.0, 4, 10), CRITERION)
    assert few.compatible
    assert not few.equivalent, "no difference was found, and none was excluded"
    many = compare_runs(tabular("one", 1.0, 8, 400), tabular("two", 1.0, 8, 400), CRITERION)
    assert many.equivalent
    assert many.equivalent_question.all()
    assert many.low <= many.difference <= many.high


def test_p_values_are_exact_where_tables_can_be_listed() -> None:
    """A 2 x 3 table against every relabelling of its 8 answers."""
    one, two = [0, 0, 0, 1], [1, 1, 2, 2]
    table = np.array([[3, 1, 0], [0, 2, 2]])
    pooled = one + two
    seen = statistic(table[0], table.sum(axis=0))
    hits = total = 0
    for chosen in itertools.combinations(range(8), 4):
        row = np.bincount([pooled[i] for i in chosen], minlength=3)
        hits += statistic(row, table.sum(axis=0)) >= seen - 1e-9
        total += 1
    p, _ = difference_test([table], 99, "run")
    assert p[0] == pytest.approx(hits / total, rel=1e-12)
    fisher = stats.fisher_exact(np.array([[7, 1], [2, 6]])).pvalue
    p, _ = difference_test([np.array([[7, 1], [2, 6]])], 99, "run")
    assert p[0] == pytest.approx(fisher, rel=1e-9), "with equal runs and two answers it is Fisher's test"


def test_monte_carlo_p_values_are_near_the_exact_ones() -> None:
    table = np.array([[12, 3, 9, 4, 7], [5, 9, 8, 8, 5]])
    p, overall = difference_test([table], 20_000, "run")
    assert overall == pytest.approx(p[0], abs=0.015), "of one question the sum is that question"
    assert p[0] == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue, abs=0.03)


def test_the_statistic_is_centred() -> None:
    pooled = np.array([5, 3, 8])
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_hypergeometric(pooled, 7, size=40_000)
    assert statistic(drawn, pooled).mean() == pytest.approx(0, abs=0.05)


def test_false_alarms_are_at_most_the_declared_rate() -> None:
    rng = np.random.default_rng(0)
    answers = rng.dirichlet(np.full(6, 0.5), size=8)
    rate = false_alarms(Reproducible(replicates=199), answers, n=16, campaigns=200, run="simulated")
    assert rate <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)


def test_equivalence_is_seldom_claimed_at_the_margin() -> None:
    """Two runs whose means differ by exactly the margin: at most alpha are called equivalent."""
    rng = np.random.default_rng(1)
    claimed = 0
    for campaign in range(200):
        banks = [graded(rng, p, f"{campaign} {name}") for name, p in (("one", 0.45), ("two", 0.55))]
        (first, right), (second, left) = banks
        found = compare_runs(first, second, Reproducible(margin=0.1, replicates=39), outcomes=(right, left))
        claimed += found.equivalent
    assert claimed / 200 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)


def graded(rng: np.random.Generator, p: float, run: str) -> tuple[Bank, Outcomes]:
    right = rng.random((10, 40)) < p
    bank = Bank.of([["A" if each else "B" for each in row] for row in right], proposal=Proposal(run=run))
    return bank, Outcomes.of(bank, right.astype(float))


def test_holm_equals_its_definition() -> None:
    p = np.array([0.01, 0.02, 0.03, 0.5, 0.011])
    order: Sequence[int] = np.argsort(p).tolist()
    running, expected = 0.0, [0.0] * 5
    for i, q in enumerate(order):
        running = max(running, min(1.0, (5 - i) * p[q]))
        expected[q] = running
    assert adjusted(p).tolist() == pytest.approx(expected)


def test_what_is_compared_is_said() -> None:
    first = Bank.of({"a": ["x", None], "b": ["x", "x"], "d": ["x", "y"]}, proposal=Proposal(run="1"))
    second = Bank.of({"b": ["x", "x"], "a": ["x", None], "c": ["y"]}, proposal=Proposal(run="2"))
    found = compare_runs(first, second, CRITERION)
    assert found.questions == ("a", "b")
    assert found.left_out == ("c", "d")
    assert found.p_question.tolist() == pytest.approx([1.0, 1.0])
    with pytest.raises(InvalidValue, match="no question in common"):
        compare_runs(first, Bank.of({"z": ["x"]}), CRITERION)
    with pytest.raises(InvalidValue, match="needs independent draws"):
        compare_runs(first, Bank.of({"a": ["x"]}, proposal=Proposal("search")), CRITERION)
    for fields in ({"alpha": 0.7}, {"margin": 0.0}, {"question_margin": 2.0}, {"replicates": 10}):
        with pytest.raises(InvalidValue, match=r"Reproducible\."):
            Reproducible(**fields)
    assert parse(text(CRITERION)) == CRITERION

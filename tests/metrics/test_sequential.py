"""Sequences hold at all times together: the rates are measured by simulated campaigns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ramify.describe import parse, text
from ramify.errors import InvalidValue
from ramify.metrics import Betting, EmpiricalBernstein, by_question_order, by_round

METHODS = (EmpiricalBernstein(), Betting(points=81))


def differences(rng: np.random.Generator, kind: str, campaigns: int, n: int, gap: float = 0.0) -> np.ndarray:
    """Paired differences with mean ``gap``: of single answers, or of the means of few answers to U-shaped questions."""
    if kind == "answers":
        first = rng.random((campaigns, n)) < 0.5 + gap
        return first.astype(float) - (rng.random((campaigns, n)) < 0.5)
    p = np.clip(rng.beta(0.3, 0.3, (campaigns, n)), gap, 1 - gap)
    found: np.ndarray = (rng.binomial(4, p + gap) - rng.binomial(4, p)) / 4
    return found


@pytest.mark.parametrize("method", METHODS, ids=text)
@pytest.mark.parametrize("kind", ["answers", "questions"])
def test_identical_systems_are_separated_in_at_most_five_percent_of_campaigns(method: Any, kind: str) -> None:
    rng = np.random.default_rng(1)
    campaigns = 400
    found = method(differences(rng, kind, campaigns, 500))
    alarms = int((found.first > 0).sum())
    # 5 % of 400 is 20; three standard deviations above it would be 33.
    assert alarms <= 20, f"{alarms} of {campaigns} campaigns looked at after every difference"


@pytest.mark.parametrize("method", METHODS, ids=text)
def test_systems_that_differ_are_separated_and_the_truth_stays_inside(method: Any) -> None:
    rng = np.random.default_rng(2)
    found = method(differences(rng, "answers", 60, 1500, gap=0.2))
    assert (found.verdict == 1).mean() > 0.95
    assert ((found.low <= 0.2) & (found.high >= 0.2)).all(axis=-1).mean() >= 0.95
    assert (np.diff(found.low, axis=-1) >= 0).all()
    assert (np.diff(found.high, axis=-1) <= 0).all()
    swapped = method(-differences(np.random.default_rng(2), "answers", 5, 1500, gap=0.2))
    assert (swapped.verdict == -1).all()


def test_an_ordinary_interval_looked_at_often_is_wrong_far_more_often() -> None:
    d = differences(np.random.default_rng(1), "answers", 400, 500)
    t = np.arange(1, 501)
    mean = np.cumsum(d, axis=1) / t
    error = np.sqrt((np.cumsum(d**2, axis=1) / t - mean**2) / t)
    alarms = ((np.abs(mean) > 1.96 * error) & (t >= 20)).any(axis=1).mean()
    assert alarms > 0.25


def test_betting_is_tighter_than_the_closed_form() -> None:
    d = differences(np.random.default_rng(3), "answers", 10, 400, gap=0.1)
    wide, tight = EmpiricalBernstein()(d), Betting()(d)
    assert (tight.high - tight.low)[:, -1].mean() < (wide.high - wide.low)[:, -1].mean()


def test_the_closed_form_is_the_theorem_written_out() -> None:
    d = differences(np.random.default_rng(4), "answers", 1, 50)[0]
    x = (d + 1) / 2
    mean, variance, bets, top, bottom = 0.5, 0.25, 0.0, 0.0, 0.0
    sums, squares = 0.5, 0.25
    low = -1.0
    for t, each in enumerate(x, start=1):
        bet = min(math.sqrt(2 * math.log(2 / 0.05) / (variance * t * math.log(1 + t))), 0.5)
        bets += bet
        top += bet * each
        bottom += 4 * (each - mean) ** 2 * (-math.log(1 - bet) - bet) / 4
        low = max(low, 2 * (top / bets - (math.log(40) + bottom) / bets) - 1)
        sums += each
        mean = sums / (t + 1)
        squares += (each - mean) ** 2
        variance = squares / (t + 1)
    assert EmpiricalBernstein()(d).low[-1] == pytest.approx(max(low, -1.0), abs=1e-12)


def test_a_grid_never_loses_a_mean_between_its_points() -> None:
    d = np.full(3000, 0.013)
    for method in (Betting(points=21), Betting(points=401)):
        found = method(d)
        assert found.low[-1] <= 0.013 <= found.high[-1]


def test_rounds_and_questions() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(50)
    one, two = (rng.random((2, 50, 40)) < p[:, None]).astype(float)
    assert np.array_equal(by_round(one, two), one - two)
    names = [f"q{i}" for i in range(50)]
    order = by_question_order(one, two, names)
    assert sorted(order) == pytest.approx(sorted(one.mean(1) - two.mean(1)))
    shuffle = rng.permutation(50)
    again = by_question_order(one[shuffle], two[shuffle], [names[i] for i in shuffle])
    assert np.array_equal(order, again), "the order is the key's, not the table's"


def test_rounds_over_fixed_questions_hold_and_separate_sooner() -> None:
    rng = np.random.default_rng(5)
    p = rng.beta(0.4, 0.4, (40, 1))
    null = (rng.random((300, 40, 30)) < p).astype(float) - (rng.random((300, 40, 30)) < p)
    assert (EmpiricalBernstein().rounds(null).first > 0).sum() <= 15
    better = np.clip(p + 0.15, 0, 1)
    truth = float((better - p).mean())
    d = (rng.random((100, 40, 30)) < better).astype(float) - (rng.random((100, 40, 30)) < p)
    found = EmpiricalBernstein().rounds(d)
    assert ((found.low <= truth) & (found.high >= truth)).all(axis=-1).mean() >= 0.95
    assert (found.first > 0).mean() > 0.9
    assert (EmpiricalBernstein()(d.mean(axis=1)).first > 0).mean() < 0.1, "as thirty observations they say little"
    one = EmpiricalBernstein().rounds(d[0, :1])
    assert np.array_equal(one.low, EmpiricalBernstein()(d[0, 0]).low)


def test_bad_input_is_named() -> None:
    for method in METHODS:
        assert parse(text(method)) == method
        with pytest.raises(InvalidValue, match=r"in \[-1, 1\]"):
            method(np.array([2.0]))
        with pytest.raises(InvalidValue, match="NaN"):
            method(np.array([np.nan]))
    for build in (lambda: Betting(points=4), lambda: Betting(alpha=0), lambda: EmpiricalBernstein(1.0)):
        with pytest.raises(InvalidValue, match=r"Betting\.|EmpiricalBernstein\."):
            build()
    with pytest.raises(InvalidValue, match="complete or left out"):
        by_round(np.array([[np.nan]]), np.array([[1.0]]))

"""Win rates with their judging: ties, sides, aggregation, and the bias of a position."""

from __future__ import annotations

import numpy as np
import pytest

from ramify.describe import parse, text
from ramify.errors import InvalidValue
from ramify.metrics import Judging, sides, win_rate

JUDGING = Judging(judge="Pocket('main') at T=0", prompt="Which response is better?", reference="the rubric")


def test_ties_and_aggregation_are_part_of_the_estimand() -> None:
    verdicts = np.array([[1.0, 0.5, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5], [0.0, 0.5, 0.5, 0.0]])
    first = sides(["a", "b", "c"], 4, "run", "both")
    # By hand: means 0.625, 0.5, 0.25 with ties half; 2/3, none, 0 without ties; 0.5, 0, 0 as losses.
    assert win_rate(verdicts, first, JUDGING).rate.value == pytest.approx(1.375 / 3)
    dropped = win_rate(verdicts, first, Judging("j", "p", ties="drop"))
    assert dropped.rate.value == pytest.approx(1 / 3)
    assert dropped.left_out == 1
    assert win_rate(verdicts, first, Judging("j", "p", ties="loss")).rate.value == pytest.approx(0.5 / 3)
    majority = win_rate(verdicts, first, Judging("j", "p", aggregation="majority"))
    assert majority.values.tolist() == [1.0, 0.5, 0.0]


def test_judging_both_ways_takes_a_position_bias_out_and_reports_it() -> None:
    """A judge that prefers the first response three times in four, and two equal systems."""
    rng = np.random.default_rng(0)
    names = [f"q{i}" for i in range(2000)]
    for order, centre in (("both", 0.5), ("random", 0.5), ("fixed", 0.75)):
        first = sides(names, 2, "run", order)
        verdicts = np.where(rng.random(first.shape) < 0.75, first, ~first).astype(float)
        found = win_rate(verdicts, first, Judging("j", "p", order=order))
        assert found.rate.value == pytest.approx(centre, abs=0.03)
        assert found.first_side == pytest.approx(0.75, abs=0.03)
        assert found.rate.low < centre < found.rate.high
        if order == "both":
            assert found.consistent == pytest.approx(2 * 0.75 * 0.25, abs=0.04)
    assert sides(names, 3, "run").mean() == pytest.approx(0.5, abs=0.03)
    assert np.array_equal(sides(names, 3, "run")[5:9], sides(names[5:9], 3, "run")), "a side belongs to its question"


def test_the_record_and_the_table_must_agree() -> None:
    with pytest.raises(InvalidValue, match="as often each way"):
        win_rate(np.ones((1, 2)), np.ones((1, 2), dtype=bool), JUDGING)
    with pytest.raises(InvalidValue, match="shows the first system first"):
        win_rate(np.ones((1, 1)), np.zeros((1, 1), dtype=bool), Judging("j", "p", order="fixed"))
    with pytest.raises(InvalidValue, match=r"use 1, 0\.5 and 0"):
        win_rate(np.full((1, 2), 0.3), sides(["a"], 2, "r", "both"), JUDGING)
    with pytest.raises(InvalidValue, match="nothing was judged"):
        win_rate(np.full((1, 2), np.nan), sides(["a"], 2, "r", "both"), JUDGING)
    for fields in ({"judge": ""}, {"prompt": ""}, {"order": "any"}, {"ties": "win"}, {"aggregation": "best"}):
        with pytest.raises(InvalidValue, match=r"Judging\."):
            Judging(**{"judge": "j", "prompt": "p", **fields})
    assert parse(text(JUDGING)) == JUDGING

"""What the study of searches says of its own table."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def page(study: Callable[[str], ModuleType]) -> ModuleType:
    return study("searching.page")


@pytest.fixture(scope="module")
def line(study: Callable[[str], ModuleType]) -> Callable[..., Any]:
    """A line of the table from the paired gains of its questions."""
    bench, lines, plan = study("bench"), study("searching.lines"), study("searching.plan")

    def made(paired: np.ndarray, name: str = "beam") -> Any:
        own, gain = (bench.over_questions(values, "docs/test") for values in (np.abs(paired), paired))
        job, p = plan.Job("test", name), bench.sign_flips(paired, "docs/test")
        return lines.Line(job, 100.0, 0.0, own, "plurality", gain, p)

    return made


def test_chance_is_counted_from_the_level_of_the_intervals(page: ModuleType, line: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    found = [line(rng.standard_normal(20)) for _ in range(104)]
    words = page.verdict([*found, line(rng.random(20) + 1, "restarts")])
    assert "Of 105 searches" in words
    assert "chance would give 2.6 of each kind" in words  # 105 / 40 = 2.625


def test_the_clearest_gain_is_corrected_for_all_rows(page: ModuleType, line: Callable[..., Any]) -> None:
    large = line(np.array([5.0, -1.0, 4.0, -2.0, 3.0, 2.0]), "DVTS")
    clear = line(np.array([0.1] * 12), "restarts")  # all of one sign: p = 2 / 2^12
    words = page.verdict([large, clear, line(np.array([-1.0, -2.0]), "UCT")])
    assert "The largest gain has DVTS" in words
    assert "The clearest gain is that of restarts" in words
    assert "the smallest UCT" in words
    assert clear.p == pytest.approx(2**-11, abs=5e-4)
    assert f"p = {clear.p:.4f}" in words
    assert f"{3 * clear.p:.2f} for the best of 3 rows" in words


def test_no_gain_is_named_where_there_is_none(page: ModuleType, line: Callable[..., Any]) -> None:
    words = page.verdict([line(np.array([-1.0, -2.0, -1.0]))])
    assert "Of 1 searches 0 are ahead" in words
    assert "1 behind" in words
    assert "clearest" not in words


def test_a_leaf_protocol_is_read_between_its_sizes(study: Callable[[str], ModuleType]) -> None:
    rivals = study("searching.rivals")
    curve = rivals.Curve(np.array([1, 2]), np.array([10.0, 20.0]), np.array([[0.0, 1.0], [1.0, 1.0]]))
    assert [curve.at(tokens).tolist() for tokens in (5, 10, 15, 20, 99)] == [
        [0.0, 1.0],
        [0.0, 1.0],
        [0.5, 1.0],
        [1.0, 1.0],
        [1.0, 1.0],
    ]
    assert rivals.Rival.of({"one": curve}, 15.0).right({"one": curve}).tolist() == [0.5, 1.0]

"""``ramify demo``: the numbers are those of the runs, and the words follow them either way."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank, Outcomes
from ramify.cli.demonstration import Alone, Measured, Setting, finding, forced, grown, mean, measured, sampled
from ramify.cli.demopage import result_of
from ramify.metrics import Tally, bank_profile
from ramify.report import page_of
from ramify.types import Sampler
from tests.cli.conftest import Run


def test_the_demo_prints_the_table_the_other_protocols_and_two_sentences(run: Run) -> None:
    ran = run("demo", "--questions", "3", "-n", "4", "--model", "tiny")
    assert ran.code == 0, ran.err
    for words in ("Pass@k", "pass^k", "plurality", "best log p", "verifier", "tokens", "beam search", "budget forcing"):
        assert words in ran.out
    assert "One sample is right on" in ran.out
    assert "The page, with every question and candidate: report.html" in ran.out
    page = Path("report.html").read_text()
    assert "One sample is right on" in page
    assert "beam search" in page
    assert "sampling tiny: 12 of 12 leaves" in ran.err


def test_the_same_command_gives_the_same_numbers(run: Run) -> None:
    one, other = (run("demo", "--questions", "2", "-n", "2", "--model", "tiny", "--json").found for _ in range(2))
    assert one["rows"] == other["rows"]
    assert one["alone"] == other["alone"]
    assert one["finding"] == other["finding"]


def test_the_rows_are_the_closed_forms_of_the_bank() -> None:
    setting = Setting.of("tiny", 4, 6)
    bank = sampled(setting, _as_it_is)
    found = measured(setting, bank)
    grades = found.outcomes.on(found.bank)
    verified = [
        [setting.asked.task.verify(q, bank.answer(i, n)) for n in range(6)] for i, q in enumerate(bank.questions)
    ]
    assert np.array_equal(grades, np.array(verified)), "Countdown's verifier needs no reference"
    profile = bank_profile(Tally.of(grades))
    assert found.budgets == (1, 2, 4, 6)
    for row in found.rows:
        assert row["Pass@k"].value == pytest.approx(float(profile.at(row["k"])[0]))
        assert row["pass^k"].value == pytest.approx(float(profile.at(row["k"])[-1]))
        assert row["tokens"] == pytest.approx(row["k"] * float(bank.length[bank.drawn].mean()))  # type: ignore[index]


def test_the_page_is_made_from_a_result_whose_rows_are_the_tables() -> None:
    setting = Setting.of("tiny", 3, 4)
    found = forced(setting, grown(setting, measured(setting, sampled(setting, _as_it_is)), _as_it_is), _as_it_is)
    result = result_of(setting, found)
    for row in found.rows:
        for shown, name in (("plurality", "plurality"), ("verifier", "verifier"), ("Pass@k", "any right (Pass@k)")):
            assert result.row(name, k=row["k"]).mean == pytest.approx(row[shown].value)
        assert result.row("plurality", k=row["k"]).mean_cost == pytest.approx(row["tokens"])
        assert result.row("verifier", k=row["k"]).mean_cost == pytest.approx(row["tokens"] + row["read"])
    for name, each in found.alone.items():
        assert result.row(name).mean == pytest.approx(each.right.value)
        assert result.row(name).mean_cost == pytest.approx(each.tokens)
        assert result.row(name).regime == each.regime
        assert set(result.outcomes[name].on(each.bank)[each.bank.drawn]) <= {0.0, 1.0}
    assert {row.kind for row in result.rows if row.name.startswith("any")} == {"diagnostic"}
    figure = page_of(result).figures()["scaling"]
    assert "excludes prompt tokens" in json.dumps(figure.spec)
    assert "replay bands" not in figure.note, "closed forms: nothing was replayed"


def _as_it_is(sampler: Sampler) -> Sampler:
    return sampler


def made(curves: dict[str, Any], alone: dict[str, Any]) -> Measured:
    """Numbers as if they had been measured, on forty questions alike in pairs."""
    bank = Bank.of({f"q{i}": ["7"] for i in range(40)})
    outcomes = Outcomes.of(bank, np.ones((40, 1)))

    def spread(share: float) -> np.ndarray:
        return (np.arange(40) < round(40 * share)).astype(float)

    tables = {name: np.stack([spread(value) for value in values], axis=1) for name, values in curves.items()}
    cost = {"generate": np.tile([10.0, 160.0], (40, 1)), "signal": np.tile([12.0, 190.0], (40, 1))}
    rows = [{name: mean(table[:, place]) for name, table in tables.items()} for place in range(2)]
    others = {
        name: Alone("made up", "search", spread(share), {"generate": np.full(40, tokens)}, bank)
        for name, (share, tokens) in alone.items()
    }
    return dataclasses.replace(Measured(bank, outcomes, (1, 16), tables, cost, rows), alone=others)


def test_the_words_follow_numbers_that_rise() -> None:
    up = {"Pass@k": (0.5, 1.0), "plurality": (0.5, 0.8), "verifier": (0.5, 0.9), "likeliest": (0.5, 0.5)}
    said = finding(made(up, {"beam search": (1.0, 150.0), "budget forcing": (0.2, 11.0)}))
    assert "plurality submits one for 80.0 % (+30.0 points, 95 % +" in said
    assert "so 10.0 points are there and not found" in said
    assert "Beam search is right on 100.0 % for 150 tokens, above the vote of 16 (80.0 % for 160)" in said
    assert "budget forcing is right on 20.0 % for 11 tokens, below the vote of 1 (50.0 % for 10)" in said
    assert said.count(". ") == 1, "two sentences"


def test_the_words_follow_numbers_that_fall_or_say_nothing() -> None:
    down = {"Pass@k": (0.5, 0.5), "plurality": (0.5, 0.2), "verifier": (0.5, 0.5), "likeliest": (0.5, 0.5)}
    said = finding(made(down, {"beam search": (0.2, 150.0)}))
    assert "plurality ends at 20.0 % (below one sample: -30.0 points" in said
    assert "verifier ends at 50.0 % (not told apart from one sample: +0.0 points" in said
    assert "so what is there is found" in said
    assert "not told apart from the vote of 16 (20.0 % for 160)" in said

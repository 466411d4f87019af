"""The page of a study: rows, costs, comparisons and rankings as the result has them, with their warnings."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from ramify.decide import Plurality
from ramify.describe import text
from ramify.report import Page, Picture, page_of
from ramify.report.studypage import finding
from ramify.study.result import Result, Row
from tests.report.synthetic import study


@pytest.fixture(scope="module")
def found() -> tuple[Result, Page]:
    result = study(3, 2, 14, 8)
    return result, page_of(result)


def test_every_row_is_in_the_table_with_its_numbers(found: tuple[Result, Page]) -> None:
    result, page = found
    table = page.tables()["results"]
    assert len(table.rows) == len(result.rows) == 2 * 3 * 13
    for shown, row in zip(table.rows, result.rows, strict=True):
        assert shown["utility"].value == pytest.approx(row.mean)
        assert shown["cost"] == pytest.approx(row.mean_cost)
        assert shown["invalid"] == pytest.approx(row.invalid.mean())
        assert shown["tokens"] == pytest.approx(row.tokens.mean())
    assert {row["kind"] for row in table.rows} == {"shared-bank", "diagnostic", "end-to-end"}


def test_the_scaling_figure_has_a_view_for_each_task_model_and_stage(found: tuple[Result, Page]) -> None:
    figure = found[1].figures()["scaling"]
    assert len({figure.view, *figure.views}) == 6 * (1 + 3)  # total; generate, signal, surplus
    for name, spec in figure.views.items():
        words = json.dumps(spec)
        if name.endswith("signal"):
            assert "of signal alone, excludes generate and surplus" in words
    assert "generate + signal + surplus, excludes prompt tokens" in json.dumps(figure.spec)


def test_bands_are_called_what_they_are(found: tuple[Result, Page]) -> None:
    figures = found[1].figures()
    assert {row["band"] for row in figures["agreement"].rows} == {"central 95 % of replays"}
    assert {row["band"] for row in figures["roster"].rows} == {"interquartile range of 3 configurations"}
    assert {row["band"] for row in figures["scaling"].rows} == {"95 % interval over questions"}
    assert "no confidence interval" in figures["agreement"].note
    assert "no confidence interval" in figures["roster"].note


def test_the_roster_is_the_median_and_the_quartiles(found: tuple[Result, Page]) -> None:
    result, page = found
    task = result.rows[0].task
    banks = {row.bank for row in result.rows if row.task == task}
    grades = [result.outcomes[name].on(result.banks[name]) for name in sorted(banks)]
    best = [table.max(axis=1).mean() for table in grades]
    (row,) = [
        row for row in page.figures()["roster"].rows if (row["task"], row["series"], row["k"]) == (task, "Pass@k", 8)
    ]
    assert (row["low"], row["median"], row["high"]) == pytest.approx(tuple(np.quantile(best, [0.25, 0.5, 0.75])))


def test_mixed_interfaces_are_warned_of(found: tuple[Result, Page]) -> None:
    result, page = found
    assert set(result.mixed) == {"task A", "task B"}
    text = page.html()
    assert "Warning: On task A, configurations were asked through different prompt interfaces." in text
    assert "On task A and task B configurations were asked in different ways" in page.finding
    alike = tuple(dataclasses.replace(each, interface="chat") for each in result.interfaces)
    assert "different prompt interfaces" not in page_of(dataclasses.replace(result, interfaces=alike)).html()


def test_the_ledger_charges_a_shared_bank_once(found: tuple[Result, Page]) -> None:
    result, page = found
    rows = page.tables()["ledger"].rows
    name = result.rows[0].bank
    length = result.banks[name].length
    assert length is not None
    first = [row for row in rows if (row["task"], row["model"]) == (result.rows[0].task, result.rows[0].model)]
    (bank,) = [row for row in first if row["what"] == "8 candidates a question"]
    assert bank["generate"] == pytest.approx(length.sum())
    (rule,) = [row for row in first if row["what"] == "best of N"]
    assert rule["signal"] == 14 * 12 * 8
    assert "generate" not in rule
    (own,) = [row for row in first if row["what"] == "adaptive, 2000 tokens"]
    assert own["total"] == pytest.approx(own["generate"] + own["surplus"])
    assert rows[-1]["what"] == "in all"
    assert rows[-1]["total"] == pytest.approx(sum(row["total"] for row in rows[:-1]))


def test_what_was_run_again_and_what_was_not(found: tuple[Result, Page]) -> None:
    result, page = found
    status = {row["bank"]: row["status"] for row in page.tables()["reproduced"].rows}
    assert status[next(iter(result.banks))] == "exact replay checked: 20 of 20 leaves are the same"
    assert sum("not checked" in words for words in status.values()) == 5


def test_the_finding_names_the_cheapest_and_the_best(found: tuple[Result, Page]) -> None:
    result, page = found
    mine = [row for row in result.rows if row.task == "task A" and row.kind != "diagnostic"]
    best = max(mine, key=lambda row: row.mean)
    assert f"the best of {len(mine)} deployable rows is {best.label} of {best.model}" in page.finding
    assert f"{100 * best.mean:.1f} %" in page.finding
    assert "Of 1 declared comparison" in page.finding


def test_a_picture_is_an_image_and_cannot_run(found: tuple[Result, Page]) -> None:
    bad = "<svg xmlns='http://www.w3.org/2000/svg'><script>window.hacked = 1</script></svg>"
    text = page_of(found[0], pictures=(Picture("tree", "A tree", bad, "A tree of two prefixes."),)).html()
    assert "<script>window.hacked" not in text
    assert 'src="data:image/svg+xml;base64,' in text
    assert 'alt="A tree of two prefixes."' in text


def test_a_study_without_banks_still_has_a_page() -> None:
    result = study(1, 1, 6, 4)
    page = page_of(dataclasses.replace(result, banks={}, outcomes={}, agreements=(), comparisons=(), measures=()))
    assert set(page.figures()) == {"scaling"}
    assert page.html()


def test_configurations_stand_side_by_side_at_their_largest_budget(found: tuple[Result, Page]) -> None:
    result, page = found
    figure = page.figures()["standing"]
    assert len({figure.view, *figure.views}) == 2 * 4  # tasks x protocols
    mine = [row for row in figure.rows if row["view"] == "task A: plurality"]
    expected = {row.model: row.mean for row in result.rows if (row.task, row.name, row.k) == ("task A", "plurality", 8)}
    assert {row["configuration"]: row["utility"] for row in mine} == pytest.approx(expected)
    assert [row["utility"] for row in mine] == sorted(expected.values(), reverse=True)


def test_mixed_interfaces_are_marked_where_configurations_are_ranked(found: tuple[Result, Page]) -> None:
    result, page = found
    figure = page.figures()["standing"]
    for row in figure.rows:
        asked = "completion" if row["configuration"] == "model 0" else "chat"
        assert row["said"].endswith(f"% ({asked})")
    for view in figure.all_views():
        assert "mixes the model with how it was asked" in figure.words(view)[1]
    alike = tuple(dataclasses.replace(each, interface="chat") for each in result.interfaces)
    plain = page_of(dataclasses.replace(result, interfaces=alike)).figures()["standing"]
    assert "mixes" not in plain.note
    assert not [row for row in plain.rows if "(" in row["said"]]


def test_every_view_has_its_own_words(found: tuple[Result, Page]) -> None:
    for figure in found[1].figures().values():
        said = [figure.words(view)[0] for view in figure.all_views()]
        assert len(set(said)) == len(said), figure.name


def test_what_all_differences_have_in_common_is_said_once(found: tuple[Result, Page]) -> None:
    result = found[0]
    (one,) = result.comparisons
    alike = page_of(dataclasses.replace(result, comparisons=(one, dataclasses.replace(one, b="model 0: other"))))
    figure = alike.figures()["differences"]
    assert figure.title == "Differences, paired over questions: model 0"
    assert [row["difference of"] for row in figure.rows] == [
        "plurality, k = 8 − plurality, k = 1",
        "plurality, k = 8 − other",
    ]
    mixed = page_of(
        dataclasses.replace(result, comparisons=(one, dataclasses.replace(one, a="model 1: x", b="model 1: y")))
    )
    assert [row["difference of"] for row in mixed.figures()["differences"].rows][1] == "x − y (model 1)"


def test_one_sample_a_question_has_no_curves() -> None:
    result = study(3, 2, 12, 1)
    page = page_of(dataclasses.replace(result, agreements=()))
    assert set(page.figures()) == {"scaling", "standing", "differences", "groups"}
    assert "nothing here is about choosing between candidates" in page.html()
    assert len(page.tables()["rates"].rows) == 6


def test_what_banks_have_in_common_is_said_once(found: tuple[Result, Page]) -> None:
    text = found[1].html()
    assert text.count("intervals over 14 questions are rough.") == 1
    assert "model 0, task A; model 1, task A; model 2, task A; and 3 more: intervals over 14 questions" in text


def of(result: Result, **changes: object) -> Result:
    """The study with its rows changed alike."""
    return dataclasses.replace(result, rows=tuple(dataclasses.replace(row, **changes) for row in result.rows))  # type: ignore[arg-type]


def test_the_finding_claims_no_more_than_the_costs_and_the_ties_say() -> None:
    result = study(1, 1, 6, 4)
    one, two = (row for row in result.rows if row.name == "plurality" and row.k in (1, 2))
    half = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])

    def said(*rows: Row) -> str:
        return finding(dataclasses.replace(result, rows=rows, comparisons=(), interfaces=()))

    low = dataclasses.replace(one, utility=half, cost={"generate": np.full(6, 10.0)})
    high = dataclasses.replace(two, utility=np.ones(6), cost={"generate": np.full(6, 10.0)})
    best = "On task A, plurality, k = 2 is the best of 2 deployable rows, which all cost the same, at 100.0 %"
    assert said(low, high).startswith(best)
    dear = dataclasses.replace(high, cost={"generate": np.full(6, 30.0)})
    assert "is plurality, k = 2 with 100.0 % [100.0, 100.0] for 3 times the cost. Their intervals" in said(low, dear)
    equal = dataclasses.replace(dear, utility=half)
    told = said(low, equal)
    assert "plurality, k = 1 is the best of 2 deployable rows, and none costs less, at 50.0 %" in told
    assert told.endswith("; 1 other row reaches as much.")
    assert said(low) == f"On task A, plurality, k = 1 reaches 50.0 % [{_ends(low)}]."


def _ends(row: Row) -> str:
    found = row.estimate()
    return f"{100 * found.low:.1f}, {100 * found.high:.1f}"


def test_budgets_of_one_bank_are_not_the_same_candidates(found: tuple[Result, Page]) -> None:
    result, page = found
    (row,) = page.tables()["comparisons"].rows
    assert row["same"] == "the same bank, 8 and 1 of its candidates"
    side = result.comparisons[0]
    alike = dataclasses.replace(side, b=side.b.replace("plurality, k = 1", "best of N, k = 8"))
    (row,) = page_of(dataclasses.replace(result, comparisons=(alike,))).tables()["comparisons"].rows
    assert row["same"] == "yes: the rule alone differs"
    invalid = np.mean(result.rows[0].invalid)
    assert row["invalid"] == f"{100 * invalid:.1f} %", "both sides are of one bank, so it is said once"


def test_two_values_of_one_vote_are_explained_where_they_differ(found: tuple[Result, Page]) -> None:
    result, page = found
    assert "two values on this page" not in page.html(), "closed forms in both places"
    first = next(row for row in result.rows if row.name == "plurality" and row.k == 8)
    other = np.where(np.arange(14) == 0, 1 - first.utility, first.utility)  # the first question is a tie, say
    moved = dataclasses.replace(first, protocol=f"{text(Plurality())} over Chain()", utility=other)
    said = page_of(
        dataclasses.replace(result, rows=tuple(moved if row is first else row for row in result.rows))
    ).html()
    there = f"{100 * first.mean:.1f} % here and {100 * moved.mean:.1f} % there"
    assert f"model 0, task A: {there}." in said.replace("\u00a0", " ")


def test_replay_bands_are_promised_only_where_there_are_any(found: tuple[Result, Page]) -> None:
    result, page = found
    assert "replay bands" in page.figures()["scaling"].note
    assert "replay bands" not in page_of(of(result, spread=None)).figures()["scaling"].note


def test_tables_of_the_study_have_what_belongs_beside_an_accuracy(found: tuple[Result, Page]) -> None:
    result, page = found
    (row,) = page.tables()["measures"].rows
    bank = result.banks[result.measures[0].bank]
    assert row["invalid"] == (bank.answers < 0).mean()
    assert row["tokens"] == bank.length.mean()  # type: ignore[union-attr]
    mine = [row for row in result.rows if row.task == "task A" and row.kind != "diagnostic"]
    best = min(mine, key=lambda row: (-row.mean, row.mean_cost))
    assert f"{best.label} of {best.model} with" in page.finding, "the tile and the finding name the same row"
    assert f"{best.label} of {best.model}; no answer {100 * np.mean(best.invalid):.1f} %" in page.tiles[0][2]
    assert page.tables()["interfaces"].csv().splitlines()[0] == "model,on task A,on task B"
    (headroom,) = [section for section in page.sections if section.name == "headroom"]
    assert headroom.lead.startswith("Of 14 questions of model 0, task A, ")

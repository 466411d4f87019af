"""The page of one bank: what it says is what the metrics say, and nothing on it can run or load anything."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html.parser
import json
import math
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.stats

from ramify.bank import Bank, Layer, Outcomes, Proposal
from ramify.errors import InvalidValue
from ramify.metrics import PassAt, Tally, gap, observed, plurality
from ramify.report import Case, Page, Remark, profile_page, vendor
from ramify.report.verifier import wilson
from tests.report.synthetic import hostile, looks_real


class Outline(html.parser.HTMLParser):
    """The elements of a page, their attributes, and the text of its scripts and style."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in self.inside:
            self.inside[tag].append("")
            self.open = tag

    def handle_endtag(self, tag: str) -> None:
        self.open = "" if tag == self.open else self.open

    def handle_data(self, data: str) -> None:
        if self.open:
            self.inside[self.open][-1] += data


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    return found


@pytest.fixture(scope="module")
def real() -> tuple[Bank, Outcomes, Page]:
    bank, outcomes = looks_real()
    return bank, outcomes, profile_page(bank, outcomes, title="A bank")


def test_the_numbers_are_those_of_the_metrics(real: tuple[Bank, Outcomes, Page]) -> None:
    bank, outcomes, page = real
    tally = Tally.of_bank(bank, outcomes)
    rows = {(row["series"], row["k"]): row["share"] for row in page.figures()["discovery"].rows}
    for k in (1, 2, 4, 8):
        assert rows["Pass@k", k] == pytest.approx(observed(tally, PassAt(k)).value, abs=1e-12)
        assert rows["pass^k", k] == pytest.approx(_pass_hat(outcomes.on(bank), k), abs=1e-12)
    curve = plurality(bank.candidates(), outcomes.on(bank), [8])
    table = page.tables()["reducers"]
    (row,) = [row for row in table.rows if row["rule"] == "plurality"]
    assert row["k8"].value == pytest.approx(float(curve.mean[0]), abs=1e-12)
    taken = [row for row in page.figures()["gap"].rows if row["rule"] == "plurality" and row["k"] == 8]
    assert taken[0]["gap"] == pytest.approx(float(gap(curve, bank, outcomes).overall[0]), abs=1e-12)


def _pass_hat(grades: np.ndarray, k: int) -> float:
    """All of k right, by counting: C(c, k) / C(n, k)."""
    from math import comb

    n = grades.shape[1]
    return float(np.mean([comb(int(c), k) / comb(n, k) for c in grades.sum(axis=1)]))


def test_the_finding_says_the_numbers(real: tuple[Bank, Outcomes, Page]) -> None:
    bank, outcomes, page = real
    grades = outcomes.on(bank)
    assert f"One candidate is right on {100 * grades.mean():.1f} % of 40 questions" in page.finding
    assert f"there is a right one for {100 * grades.max(axis=1).mean():.1f} %" in page.finding
    never, always = (grades.sum(axis=1) == 0).mean(), (grades.sum(axis=1) == 8).mean()
    assert f"{100 * never:.1f} % of questions are never solved and {100 * always:.1f} % always" in page.finding
    assert "95 % interval over questions" in page.finding


def test_every_accuracy_table_has_what_belongs_beside_it(real: tuple[Bank, Outcomes, Page]) -> None:
    page = real[2]
    for name in ("rates", "reducers", "stops", "heterogeneity"):
        labels = {column.key for column in page.tables()[name].columns}
        assert {"invalid", "capped", "tokens"} <= labels, name
    assert {"invalid", "capped", "tokens"} <= set(page.figures()["groups"].columns())
    shares = page.tables()["rates"].rows[0]
    bank = real[0]
    assert shares["invalid"] == (bank.answers < 0).mean()
    assert shares["capped"] == (bank.ended == bank.endings.index("length")).mean()
    assert shares["tokens"] == bank.length.mean()  # type: ignore[union-attr]


def test_no_band_is_called_a_confidence_interval(real: tuple[Bank, Outcomes, Page]) -> None:
    said = " ".join(figure.note + figure.alt for figure in real[2].figures().values())
    assert "confidence interval" not in said
    for figure in real[2].figures().values():
        bands = {row["band"] for row in figure.rows if "band" in row}
        drawn = ", drawn within groups" if figure.name == "groups" else ""
        assert bands <= {f"95 % interval over questions{drawn}"}, figure.name


def test_every_interval_in_the_data_is_drawn(real: tuple[Bank, Outcomes, Page]) -> None:
    """A mark from low to high in each figure whose rows have both; in the gap it hangs from what is available."""

    def ends(layer: Any) -> set[tuple[str, str]]:
        code = layer.get("encoding", {})
        return {(code.get(way, {}).get("field"), code.get(f"{way}2", {}).get("field")) for way in "xy"}

    for figure in real[2].figures().values():
        if any(row.get("low") is not None for row in figure.rows):
            for spec in figure.all_views().values():
                drawn = set().union(*map(ends, spec["layer"]))
                assert drawn & {("low", "high"), ("least", "most")}, figure.name
    fixed = [layer for layer in real[2].figures()["stopping"].spec["layer"] if layer["mark"]["type"] == "area"]
    assert [layer["transform"][0]["filter"]["equal"] for layer in fixed] == ["plurality at fixed k"]


def test_choosing_by_a_score_is_best_of_n_with_its_interval(real: tuple[Bank, Outcomes, Page]) -> None:
    figures = real[2].figures()
    for name in ("verifier", "mean log-prob"):
        mine = [row for row in figures["choosing"].rows if (row["score of"], row["what"]) == (name, "right")]
        theirs = [
            row
            for row in figures["scaling"].rows
            if (row["series"], row["axis"]) == (f"best of N by {name}", "candidates")
        ]
        for key in ("share", "low", "high"):
            assert [row[key] for row in mine] == pytest.approx([row[key] for row in theirs], abs=1e-12)


def test_bins_without_a_wrong_one_still_have_an_interval() -> None:
    low, high = wilson(np.array([0.0, 1.0, 0.3]), np.array([20, 20, 10]))
    for i, right in enumerate((0, 20, 3)):
        exact = scipy.stats.binomtest(right, (20, 20, 10)[i]).proportion_ci(method="wilson")
        assert (low[i], high[i]) == pytest.approx((exact.low, exact.high), abs=1e-6)


def test_an_axis_of_equal_values_is_no_point() -> None:
    bank = Bank.of({"a": ["1"] * 8, "b": ["1"] * 8, "c": ["2"] * 8})
    for grades, domain in ((np.ones((3, 8)), [0.7, 1.0]), (np.zeros((3, 8)), [0.0, 0.3])):
        figure = profile_page(bank, Outcomes.of(bank, grades)).figures()["stopping"]
        scale = figure.spec["layer"][0]["encoding"]["y"]["scale"]
        assert scale["domain"] == pytest.approx(domain)
        places = sorted(row["title_y"] for row in figure.rows if "title_y" in row)
        assert len(places) == 3
        assert min(np.diff(places)) >= 0.05 * 0.3
        assert domain[0] <= places[0] + 1e-9
        assert places[-1] <= domain[1] + 1e-9


def test_axes_of_cost_say_what_they_leave_out(real: tuple[Bank, Outcomes, Page]) -> None:
    figure = real[2].figures()["scaling"]
    for view in (figure.spec, *figure.views.values()):
        assert "excludes" in json.dumps(view), view
    assert set(figure.views) == {"candidates", "generate", "signal"}


def test_the_page_is_whole_and_loads_nothing(real: tuple[Bank, Outcomes, Page]) -> None:
    text = real[2].html()
    found = outline(text)
    assert not [tag for tag, attrs in found.tags if tag in ("link", "iframe", "object", "embed", "base", "form")]
    for tag, attrs in found.tags:
        assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
        assert "style" not in attrs, (tag, attrs)
        address = attrs.get("src") or attrs.get("href") or "#"
        assert address.startswith(("#", "data:image/svg+xml;base64,")), address
    assert len(text) < 3_000_000


def test_the_policy_allows_these_scripts_and_no_others(real: tuple[Bank, Outcomes, Page]) -> None:
    found = outline(real[2].html())
    (policy,) = [
        a["content"] for t, a in found.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")
    types = [attrs.get("type") for tag, attrs in found.tags if tag == "script"]
    for kind, text in zip(types, found.inside["script"], strict=True):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert (f"'sha256-{digest}'" in policy) == (kind is None), text[:60]
    (style,) = found.inside["style"]
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in policy


def test_same_page_same_bytes(real: tuple[Bank, Outcomes, Page]) -> None:
    bank, outcomes, page = real
    assert profile_page(bank, outcomes, title="A bank").html() == page.html()


def test_a_hostile_bank_adds_no_element_and_no_attribute() -> None:
    bank, outcomes = hostile()
    found = outline(profile_page(bank, outcomes).html())
    scripts = [attrs for tag, attrs in found.tags if tag == "script"]
    assert len(scripts) == 4 + len(vendor.FILES) + 1
    assert len(found.inside["style"]) == 1
    for tag, attrs in found.tags:
        assert tag not in ("img", "svg", "iframe"), attrs
        assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
    islands = [text for text, attrs in zip(found.inside["script"], scripts, strict=True) if attrs.get("type")]
    assert not [text for text in islands if "<" in text or ">" in text]
    visible = json.dumps(json.loads(islands[3])["questions"], ensure_ascii=False)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", visible)


def test_the_stored_scripts_are_the_published_ones() -> None:
    assert vendor.strange() == []
    assert all((vendor.FOLDER / f"{file.package}.LICENSE").read_text().startswith("Copyright") for file in vendor.FILES)
    assert not [text for text in vendor.scripts() if "</script" in text.lower() or "\r" in text]


def test_the_page_of_a_bank_needs_no_study_and_no_drawing_library() -> None:
    program = """
import sys
from ramify.bank import Bank, Outcomes
from ramify.report import profile_page
bank = Bank.of({"a": ["1", "2"], "b": ["1", "1"]})
profile_page(bank, Outcomes.of(bank, [[1, 0], [1, 1]])).html()
print(sorted(name for name in ("ramify.study", "ramify.models", "vl_convert", "torch") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


# ------------------------------------------------------------------------------------------------------- awkward banks


def test_a_bank_without_any_grade_is_refused() -> None:
    bank = Bank.of({"a": ["1", "2"]})
    with pytest.raises(InvalidValue, match="grade at least one candidate"):
        profile_page(bank, Outcomes.of(bank, [[np.nan, np.nan]]))


@pytest.mark.parametrize(
    ("answers", "grades"),
    [
        ([["1"], ["2"]], [[1.0], [0.0]]),  # one candidate each
        ([["1", "1", "2", "3"]], [[1.0, 1.0, 0.0, 0.0]]),  # one question
        ([["1", "2"], ["1"], ["3", "4", "5", "6", "7"]], None),  # unequal numbers
        ([["1", "1"], ["1", "1"]], [[1.0, 1.0], [1.0, 1.0]]),  # all right
        ([[None, None], [None, None]], [[0.0, 0.0], [0.0, 0.0]]),  # nothing parsed
        ([["1", "2", "3", "4"], ["1", "2", "2", "2"]], [[0.5, 0.25, 1.0, 0.0], [1.0, 0.0, 0.0, np.nan]]),  # parts, gaps
    ],
)
def test_banks_of_every_shape_have_a_page(answers: Any, grades: Any) -> None:
    bank = Bank.of(answers)
    values = np.where(bank.drawn, bank.answers == 0, np.nan).astype(float) if grades is None else grades
    page = profile_page(bank, Outcomes.of(bank, values))
    assert page.finding
    assert "NaN" not in page.html().split('id="figures-data"')[1].split("</script>")[0]


def test_banks_that_are_not_independent_say_so() -> None:
    for kind, word in (("stopped", "biased"), ("search", "not independent draws")):
        bank = Bank.of({"a": ["1", "2", "1"], "b": ["1", "1", "2"]}, proposal=Proposal(kind=kind))
        page = profile_page(bank, Outcomes.of(bank, bank.answers == 0))
        assert word in page.html()


def test_derived_numbers_are_made_once() -> None:
    bank, outcomes = looks_real(6, 4)
    case = Case("c", bank, outcomes)
    assert case.ceiling is case.ceiling
    assert case.intervals(case.ceiling) is case.intervals(case.ceiling)


def test_the_finding_holds_many_candidates_against_one_of_the_same_questions() -> None:
    """Two easy questions have four candidates and a hard one has one: more candidates gain 0 here, and not 1/3."""
    bank = Bank.of({"a": ["1"] * 4, "b": ["1"] * 4, "c": ["2"]})
    page = profile_page(bank, Outcomes.of(bank, [[1] * 4, [1] * 4, [0] + [math.nan] * 3]))
    assert "Among 4 candidates, which 2 of these questions have, there is a right one for 100.0 %" in page.finding
    assert "no more than one candidate alone on them." in page.finding
    assert "33.3 % of all questions are never solved" in page.finding


# ---------------------------------------------------------------------------------------------------------- the finding


def test_all_right_is_no_limit_of_the_model() -> None:
    bank = Bank.of({"a": ["1", "1"], "b": ["1", "1"]})
    page = profile_page(bank, Outcomes.of(bank, np.ones((2, 2))))
    assert "Every candidate is right, so these questions cannot tell rules or models apart." in page.finding
    assert "limit" not in page.finding
    (said,) = [part.words for part in remarks(page) if "one point" in part.words]
    assert said.startswith("An interval of one point, such as [100.0, 100.0], says that all questions fared alike")


def test_no_answer_is_not_laid_to_the_model() -> None:
    bank = Bank.of([[None, None], [None, None]])
    page = profile_page(bank, Outcomes.of(bank, np.zeros((2, 2))))
    assert "No candidate has an answer: look at how answers are read" in page.finding
    bank = Bank.of([["1", "2"], ["3", "4"]])
    page = profile_page(bank, Outcomes.of(bank, np.zeros((2, 2))))
    assert "No candidate is right, so no rule can help." in page.finding


def test_shares_are_of_the_questions_that_have_grades() -> None:
    """Three questions of two candidates, one without a grade: half of two are right, and one of two is never solved."""
    bank = Bank.of([["1", "1"], ["2", "2"], ["3", "3"]])
    nan = math.nan
    page = profile_page(bank, Outcomes.of(bank, [[1.0, 1.0], [0.0, 0.0], [nan, nan]]))
    assert "One candidate is right on 50.0 % of the 2 of 3 questions that have grades" in page.finding
    assert (
        "which 2 of these questions have with the grades that matter, there is a right one for 50.0 %" in page.finding
    )
    assert "50.0 % of graded questions are never solved and 50.0 % always." in page.finding
    (headroom,) = [section for section in page.sections if section.name == "headroom"]
    assert headroom.lead.startswith("Of 2 graded questions, 50.0 % are never solved")


def test_one_question_has_no_interval_and_none_that_is_rough() -> None:
    bank = Bank.of([["1", "1", "2", "3"]])
    said = [part.words for part in remarks(profile_page(bank, Outcomes.of(bank, [[1.0, 1.0, 0.0, 0.0]])))]
    assert "bank: one question has grades, so there are no intervals over questions." in said
    assert not [words for words in said if "rough" in words]


def test_what_has_to_be_known_stands_beside_the_first_number() -> None:
    bank, outcomes = looks_real(12, 4)
    page = profile_page(bank, outcomes)
    assert isinstance(page.sections[0].parts[0], Remark)
    assert "intervals over 12 questions are rough." in page.sections[0].parts[0].words


def test_a_fifth_score_is_named_where_it_is_not_drawn() -> None:
    bank, outcomes = looks_real(8, 4)
    for name in ("fourth", "fifth", "sixth"):
        bank = bank.attach(name, Layer(np.random.default_rng(len(name)).random(bank.shape), name))
    page = profile_page(bank, outcomes)
    said = [part.words for part in remarks(page)]
    assert "demo: sixth and compass have no curve: the first 4 scores do." in said  # deployable scores come first
    assert [words for words in said if words.endswith("because there are more than 4: demo: sixth and compass.")]
    assert "the best of 5 rules with a curve here" in page.finding  # plurality and four scores


def test_a_vote_that_beats_every_curve_is_named_in_the_finding() -> None:
    """The highest score is wrong and two answers tie in votes: only a vote that weighs by rank is right."""
    answers, scores = ["wrong", "right", "right", "other", "other"], [5.0, 4.0, 3.0, 2.0, 1.0]
    bank = Bank.of({"a": answers, "b": answers}, scores={"v": [scores, scores]})
    page = profile_page(bank, Outcomes.of(bank, [[0.0, 1.0, 1.0, 0.0, 0.0]] * 2))
    # Borda weights 5, 4 + 3, 2 + 1: right wins. Plurality shares a tie of two with two: 1/2. Best of N: 0.
    assert "plurality, the best of 2 rules with a curve here, submits one for 50.0 %" in page.finding
    assert "Of all 4 rules on the whole bank, Borda vote by v submits most: 100.0 %." in page.finding
    shown = {row["rule"]: row["share"] for row in page.figures()["reducers"].rows}
    assert shown["Borda vote by v"] == max(share for rule, share in shown.items() if not rule.startswith("Pass"))


def test_the_page_is_asked_for_the_level_and_the_budgets_of_its_reader(real: tuple[Bank, Outcomes, Page]) -> None:
    bank, outcomes, whole = real
    page = profile_page(bank, outcomes, title="A bank", level=0.5, budgets=(1, 3))
    rows = [row for row in page.figures()["discovery"].rows if row["series"] == "Pass@k"]
    assert [row["k"] for row in rows] == [1, 3]
    assert {row["band"] for row in rows} == {"50 % interval over questions"}
    assert "50 % interval over questions" in page.finding
    assert "Among 3 candidates there is a right one" in page.finding
    assert page.figures()["reducers"].title == "Rules on the same 8 candidates"
    assert page.figures()["headroom"].rows == whole.figures()["headroom"].rows
    assert "Only k = 1 was asked for" in profile_page(bank, outcomes, budgets=[1]).finding
    three = profile_page(bank, outcomes, title="A bank", budgets=[3])
    assert three.tiles[0] == whole.tiles[0], "the accuracy of one candidate, though nobody asked for k = 1"
    assert three.finding.partition(". Among")[0] == whole.finding.partition(". Among")[0]
    assert "from 3 candidates to 3" in three.figures()["scaling"].alt
    with pytest.raises(InvalidValue, match=r"budgets = \[99\]: use numbers of candidates from 1 to 8"):
        profile_page(bank, outcomes, budgets=[1, 99])


def test_points_of_a_curve_say_how_many_questions_they_are_of() -> None:
    bank = Bank.of({"a": ["1"] * 4, "b": ["1"] * 4, "c": ["2"]})
    page = profile_page(bank, Outcomes.of(bank, [[1] * 4, [1] * 4, [0] + [math.nan] * 3]))
    for name in ("discovery", "scaling"):
        counts = {row["k"]: row["questions"] for row in page.figures()[name].rows}
        assert counts == {1: 3, 2: 2, 4: 2}, name
        assert "are of different ones: 3 at k = 1, 2 at k = 2 and 2 at k = 4." in page.figures()[name].note


def test_choosing_by_a_score_is_the_curve_of_best_of_n() -> None:
    """A score for one candidate in four only: small k often find none, which is not right."""
    bank, outcomes = looks_real(12, 8)
    values = bank.layers["verifier"].values.copy()
    values[:, 2:] = np.nan
    bank = dataclasses.replace(bank, layers={"verifier": Layer(values, "two of eight")})
    page = profile_page(bank, outcomes)
    chosen = [row for row in page.figures()["choosing"].rows if row["what"] == "right"]
    curve = [row for row in page.figures()["scaling"].rows if row["series"] == "best of N by verifier"]
    best = {row["k"]: row["share"] for row in curve}
    assert {row["k"]: row["share"] for row in chosen} == pytest.approx(best)
    assert {row["questions"] for row in chosen} == {12}


def test_groups_are_tested_by_permuting_labels_and_small_p_is_said_as_such() -> None:
    groups = {f"q{i}": {"field": "easy" if i < 8 else "hard"} for i in range(16)}
    bank = Bank.of({f"q{i}": ["1", "1"] for i in range(16)}, groups=groups)
    page = profile_page(bank, Outcomes.of(bank, [[1.0, 1.0]] * 8 + [[0.0, 0.0]] * 8))
    table = page.tables()["heterogeneity"]
    (row,) = table.rows
    assert row["p"] == pytest.approx(2 / 12870, abs=3e-4)  # of C(16, 8) divisions two are as uneven
    assert math.isnan(row["share"])
    cells = dict(zip([column.key for column in table.columns], table.body()[0], strict=True))
    assert (cells["p"], cells["share"]) == ("< 0.001", "–")


def remarks(page: Page) -> list[Remark]:
    return [part for section in page.sections for part in section.parts if isinstance(part, Remark)]

"""The page of one bank: what it says is what the metrics say, and nothing on it can run or load anything."""

from __future__ import annotations

import base64
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

from ramify.bank import Bank, Outcomes, Proposal
from ramify.errors import InvalidValue
from ramify.metrics import PassAt, Tally, gap, observed, plurality
from ramify.report import Case, Page, profile_page, vendor
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
    for name in ("rates", "reducers", "stops"):
        labels = {column.key for column in page.tables()[name].columns}
        assert {"invalid", "tokens"} <= labels, name
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
        assert bands <= {"95 % interval over questions"}, figure.name


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

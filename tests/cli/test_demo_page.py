"""The demo's page in headless Chromium: its charts drew, its questions sort and filter, and it loads nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ramify.cli import main
from tests.browser import CHROMIUM, Opened, Opening

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
SHARES = "[...document.querySelectorAll('.explorer tbody tr')].map((r) => parseFloat(r.cells[1].innerText))"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("demo") / "report.html"
    assert main(["demo", "--questions", "8", "-n", "4", "--model", "tiny", "--out", str(file)]) == 0
    return file


@pytest.fixture
def visit(opening: Opening, page: Path) -> Callable[..., Opened]:
    return partial(opening, page)


def test_the_charts_of_the_demo_drew_and_nothing_was_loaded(visit: Callable[..., Opened]) -> None:
    opened = visit()
    marks = opened.tab.evaluate(
        """[...document.querySelectorAll('[data-figure]')].map(
            (f) => [f.dataset.figure, f.querySelectorAll('.chart svg :is(path, rect, line)').length])"""
    )
    assert len(marks) >= 5
    assert [figure for figure, many in marks if many < 8] == []
    assert "One sample is right on" in opened.tab.inner_text("body")
    opened.quiet()


def test_the_questions_of_the_demo_sort_and_filter(visit: Callable[..., Opened]) -> None:
    tab = (opened := visit()).tab
    tab.click(".explorer th:nth-child(2) button")
    falling = tab.evaluate(SHARES)
    assert falling == sorted(falling, reverse=True)
    assert len(falling) == 8
    tab.fill(".filters input", "countdown-4")
    assert tab.evaluate("document.querySelectorAll('.explorer tbody tr').length") == 8
    tab.fill(".filters input", "no such question")
    assert tab.evaluate("document.querySelectorAll('.explorer tbody tr').length") <= 1
    opened.quiet()


def test_the_demo_fits_a_phone(visit: Callable[..., Opened]) -> None:
    opened = visit(viewport={"width": 390, "height": 844})
    assert opened.tab.evaluate("document.documentElement.scrollWidth") <= 390
    opened.quiet()

"""The documentation site: it builds without a warning, and its reference shows every method with its fields."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from inspect import isfunction
from pathlib import Path

import pytest

from tests.methods import METHODS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]  # --quiet hides warnings
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_method_is_in_the_reference(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "reference").rglob("index.html"))
    shown = {name.rsplit(".", 1)[-1] for name in re.findall(r'id="(ramify\.[\w.]+)"', pages)}
    missing = sorted({type(each).__name__ for each in METHODS if not isfunction(each)} - shown)
    assert not missing


def test_what_is_written_as_a_list_is_one(site: Path) -> None:
    """Markdown takes a list that follows a paragraph without an empty line for more of the paragraph."""
    for page in site.rglob("*.html"):
        paragraphs = re.findall(r"<p>(.*?)</p>", page.read_text(), re.DOTALL)
        assert not [each for each in paragraphs if re.search(r"^\s*([-*+]|\d+\.)\s", each, re.MULTILINE)], page


def test_no_page_asks_another_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        loads = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text())
        assert not [each for each in loads if "canonical" not in each], page

"""Shared fixtures and the hypothesis profile: derandomised, so that a red test is red for everybody."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.browser import CHROMIUM, Opened, Opening

if TYPE_CHECKING:
    from playwright.sync_api import Browser

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", parent=settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    drive = pytest.importorskip("playwright.sync_api", reason="playwright drives Chromium: pip install 'ramify[test]'")
    with drive.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opening(browser: Browser) -> Iterator[Opening]:
    """Open files in tabs of their own, which close with the test."""
    opened: list[Opened] = []

    def go(file: Path, **options: Any) -> Opened:
        opened.append(Opened(browser, file, **options))
        return opened[-1]

    yield go
    for each in opened:
        each.context.close()

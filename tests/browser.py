"""A real browser for tests of pages: what a page draws, says and asks for."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Opened:
    """A tab with everything it complained about and asked for."""

    def __init__(self, browser: Browser, file: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.tab: Tab = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.add_init_script(
            "window.refused = []; addEventListener('securitypolicyviolation', (e) => refused.push(e.violatedDirective))"
        )
        self.tab.goto(file.as_uri())
        self.tab.wait_for_selector("html[data-ready=charts]", timeout=60_000)

    def quiet(self) -> None:
        """Nothing was complained about, nothing was refused, and only the file itself was asked for."""
        assert self.said == []
        assert self.tab.evaluate("refused") == []
        assert len([url for url in self.asked if not url.startswith("blob:")]) == 1, self.asked


Opening: TypeAlias = Callable[..., Opened]  # (file, **options of the context)

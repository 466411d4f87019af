"""Studies are scripts: they find each other beside themselves, so they are imported with their folder on the path."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture(scope="session")
def study() -> Callable[[str], ModuleType]:
    """A module of studies/ by its name."""

    def found(name: str) -> ModuleType:
        with pytest.MonkeyPatch.context() as patch:  # no longer than it takes: a study is called as a package is
            patch.setattr(sys, "path", [*sys.path, str(STUDIES)])
            return import_module(name)

    return found

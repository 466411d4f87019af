"""Words that a decision is kept by: another body is other words, in the file of a method or in what it imports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramify.decide import BestOfN
from ramify.study import load
from ramify.study.words import words

RULE = """\
import dataclasses
import numpy as np
import words_helper
from ramify.bank import Choice
from ramify.decide import Plurality
from ramify.describe import method
from ramify.models import Pocket
from ramify.study import Protocol, Study, System, Tasked
from ramify.tasks import Countdown

def plain(candidates):
    return words_helper.vote(candidates)

def outer():
    def nested(candidates):
        return plain(candidates)
    return nested

@method
class Mine:
    k: int = 1

    def __call__(self, candidates):
        return plain(candidates)

RULES = {"plain": plain, "nested": outer(), "method": Mine(3)}
tasks, models = (Tasked(Countdown(3), questions=2),), (System(Pocket("tiny")),)
study = Study("t", tasks, models, (Protocol("a", RULES[WHICH]),), cap=9)
"""
HELPER = """\
from words_below.deep import DEEP
from ramify.decide import Plurality

def vote(candidates):
    return Plurality()(candidates)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "words_helper.py").write_text(HELPER)
    (tmp_path / "words_below").mkdir()
    (tmp_path / "words_below" / "deep.py").write_text("class Deep:\n    pass\n\nDEEP = Deep()\n")
    yield tmp_path
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.startswith("words_")]:
        del sys.modules[name]


def _said(folder: Path, which: str) -> str:
    """The words of the rule of a study, read anew."""
    _forget()
    (folder / "study.py").write_text(f"WHICH = {which!r}\n{RULE}")
    return words(load(folder / "study.py").study.protocols[0].rule)


@pytest.mark.parametrize("which", ["plain", "method"])
@pytest.mark.parametrize("file", ["words_helper.py", "words_below/deep.py", "study.py"])
def test_a_change_in_a_file_or_a_helper_is_other_words(folder: Path, which: str, file: str) -> None:
    before = _said(folder, which)
    assert _said(folder, which) == before
    if file == "study.py":
        (folder / file).write_text((folder / file).read_text() + "# another\n")
        assert words(load(folder / file).study.protocols[0].rule) != before
        return
    (folder / file).write_text((folder / file).read_text() + "# another\n")
    assert _said(folder, which) != before


def test_a_nested_function_has_words_that_never_come_again(folder: Path) -> None:
    assert _said(folder, "nested") != _said(folder, "nested")


def test_files_that_nothing_imports_change_nothing(folder: Path) -> None:
    before = _said(folder, "method")
    (folder / "words_other.py").write_text("x = 1\n")
    assert _said(folder, "method") == before


def test_a_method_of_the_package_is_its_text_alone() -> None:
    assert words(BestOfN("logp")) == repr(BestOfN("logp"))

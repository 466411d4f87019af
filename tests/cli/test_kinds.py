"""Every method in every option: it is of the kind that the option takes, or it is refused with exit 2 by name."""

from __future__ import annotations

from typing import Any

import pytest

from ramify.cli.parts import KINDS, value
from ramify.describe import parse
from ramify.errors import InvalidValue, RamifyError
from ramify.evidence import LogProb, Mean, mean_logprob
from ramify.kinds import brief, kind_of, misplaced
from ramify.stop import AllOf, AnyOf, AtMost
from ramify.tasks import Verified
from tests import methods
from tests.cli.conftest import Run, rows, written


def _texts() -> dict[str, Any]:
    """Text form -> value, of every method that has one that can be read here; one of each class and kind."""
    found: dict[str, Any] = {}
    for each in (*methods.METHODS, LogProb(), Mean(), AnyOf(AtMost(2)), AllOf(AtMost(2)), Verified()):
        try:
            if parse(repr(each)) == each:
                found.setdefault(type(each).__name__, each)
        except RamifyError:  # a function of the tests is in it
            continue
    return {repr(each): each for each in found.values()}


TEXTS = _texts()
OPTIONS = {
    "--rule": "rule",
    "--stop": "stop",
    "--utility": "utility",
    "--metric": "metric",
    "--by": "scorer",
    "--decode": "decoder",
    "--controller": "controller",
    "--evaluator": "evaluator",
    "--check": "check",
    "--cost": "cost",
    "--evidence": "evidence",
    "--task": "task",
    "--model": "model",
}


@pytest.mark.parametrize(("option", "kind"), OPTIONS.items())
def test_an_option_takes_its_kind_and_nothing_else(option: str, kind: str) -> None:
    taken = []
    for text, method in TEXTS.items():
        if kind_of(method) in KINDS[kind]:
            taken.append(value(text, option, kind))
            continue
        with pytest.raises(InvalidValue, match=f"methods --kind {kind}` lists|ramify score --judge"):
            value(text, option, kind)
    assert taken, "none fits"


# Command lines that take a method's text: with every method that fits, and one of each kind that does not, they answer
# or refuse.
LINES = {
    "decide --rule": ("decide", "a.jsonl", "--rule"),
    "decide --evidence": ("decide", "a.jsonl", "--rule", "BestOfN('x')", "--evidence"),
    "decide --utility": ("decide", "a.jsonl", "--rule", "MBR()", "--utility"),
    "stop --stop": ("stop", "a.jsonl", "--replicates", "2", "--stop"),
    "compare --metric": ("compare", "a.jsonl", "b.jsonl", "--metric"),
    "rank --by": ("rank", "a.jsonl", "b.jsonl", "--replicates", "3", "--by"),
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_method_in_any_option_is_a_traceback(run: Run, line: str) -> None:
    for name, seed in (("a.jsonl", 0), ("b.jsonl", 1)):
        written(name, [{**row, "score": 0.1 + 0.1 * row["sample"]} for row in rows(4, 4, seed)])
    mark = "x=" if line.endswith("evidence") else ""
    fit = KINDS[OPTIONS[line.split()[1]]]
    one = {kind_of(method): text for text, method in TEXTS.items()}.values()
    for text, method in list(TEXTS.items())[sum(map(ord, line)) % 2 :: 2]:  # every other: each takes a command
        if kind_of(method) in fit or text in one:
            assert run(*LINES[line], mark + text).code in ((0, 2) if kind_of(method) in fit else (2,)), text


# What `sample` and `search` are given, before a model is asked for anything.
REFUSED = {
    "a token stop as a stop": ("sample", "r", "--stop", "TokenLimit(3)"),
    "a draw as a stop": ("sample", "r", "--stop", "AnyOf(2)"),
    "a verifier as evidence": ("sample", "r", "--evidence", "x=Pointwise()"),
    "a statistic as evidence": ("sample", "r", "--evidence", "x=LogProb()"),
    "a metric as a cost": ("sample", "r", "--cost", "PassAt(2)"),
    "an evaluator as a controller": ("search", "--controller", "Likelihood()"),
    "a verifier of answers as a check": ("search", "--check", "Verified()"),
    "a number as a unit": ("search", "--controller", "Beam(n=2, m=2, unit=3)"),
    "half an escape": ("search", "--step", "\\x"),
    "what cannot be spelled": ("search", "--step", "É"),
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_a_run_refuses_what_cannot_work_before_it_begins(run: Run, line: tuple[str, ...]) -> None:
    ran = run(*line, "--questions", "1", "--model", "tiny")
    assert ran.code == 2
    assert line[-2] in ran.err
    assert line[-1].removeprefix("x=") in ran.err


@pytest.mark.parametrize("kind", KINDS)
def test_the_list_of_a_kind_is_what_its_option_takes(run: Run, kind: str) -> None:
    listed = run("methods", "--kind", kind, "--json").found["methods"]
    assert listed
    assert {row["role"] for row in listed} <= set(KINDS[kind])
    assert not {"TokenF1", "FirstInGroup", "TokenLimit", "LogProb"} & {
        row["name"] for row in listed if kind in ("rule", "stop", "evidence")
    }


def test_suggestions_know_presets_and_name_only_what_fits(run: Run) -> None:
    written("a.jsonl", rows(2, 2))
    ran = run("decide", "a.jsonl", "--evidence", "x=mean_logprb")
    assert "did you mean mean_logprob?" in ran.err
    assert "did you mean Plurality?" in run("decide", "a.jsonl", "--rule", "Plurlity()").err
    ran = run("decide", "a.jsonl", "--rule", "TokenF2()")  # TokenF1 is no rule
    assert ran.code == 2
    assert "TokenF1" not in ran.err


def test_values_inside_of_values_are_looked_at_too() -> None:
    assert misplaced(mean_logprob()) == ""
    assert "AnyOf.stops = 2" in misplaced(parse("AnyOf(AtMost(3), 2)"))
    assert "AllOf.stops" in misplaced(parse("AnyOf(AllOf(Mean()))"))


def test_brief_words_read_back_as_the_value() -> None:
    for method in TEXTS.values():
        assert parse(brief(method)) == method
        assert len(brief(method)) <= len(repr(method))

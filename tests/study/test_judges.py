"""Verifiers in a study: evidence that asks a judge, a grader that stays a diagnostic, and nothing asked twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ramify.decide import BestOfN
from ramify.decode import Temperature
from ramify.describe import method
from ramify.errors import InvalidValue, StudyError
from ramify.models import Pocket
from ramify.models.endpoint import Endpoint
from ramify.study import Protocol, System, check_study, loads, run_study
from ramify.study.judges import judge_of
from ramify.verify import CompassVerifier, Judge, Pointwise, Rubric
from tests.study.tools import Dice, study
from tests.verify.tools import Scripted, judge_by

ASKED: list[Scripted] = []
ONE = Pointwise(Rubric((("X", "?"),)), cap=4)


def script(prompt: str) -> tuple[list[str], Mapping[int, Mapping[str, float]]]:
    """Likes candidates that begin with a."""
    candidate = prompt.rpartition("<candidate>\n")[2] if "<reference>" in prompt else prompt
    liked = "\na " in candidate or candidate.startswith("a ")
    if "<reference>" in prompt:
        return ["A" if liked else "B"], {0: {"A": 0.9, "B": 0.05, "C": 0.05} if liked else {"A": 0.1, "B": 0.9}}
    return ["X", ":", " ", "A" if liked else "T"], {3: {"A" if liked else "T": 1.0}}


@method
class Scribe:
    """A model that can only judge."""

    name: str = "scribe"

    def judge(self) -> Judge:
        judge, sampler = judge_by(script, context=100_000)
        ASKED.append(sampler)
        return judge


def given(*protocols: Protocol) -> object:
    return study(models=(System(Dice()),), judges=(System(Scribe()),), protocols=protocols, metrics=())


def test_a_verifier_is_evidence_that_is_paid_for(tmp_path: Path) -> None:
    ASKED.clear()
    asks = Protocol("pointwise", BestOfN("point"), evidence=(("point", ONE),), judge="scribe")
    result = run_study(given(asks), tmp_path / "s")  # type: ignore[arg-type]
    bank = result.banks["dice on guess"]
    layer = bank.layers["point"]
    assert bank.text is not None
    liked = np.array([[text.startswith("a ") for text in row] for row in bank.text])
    np.testing.assert_allclose(layer.values, liked.astype(float))  # A is 1, T is 0
    assert layer.description.endswith("by scripted")
    row = result.row("pointwise", k=8)
    assert row.kind == "shared-bank"
    assert (row.cost["signal"] > 0).all()
    assert liked.any(axis=1).all()
    assert row.utility.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]  # a is right for every third question
    first = sum(len(each.asked) for each in ASKED)
    assert first > 0
    ASKED.clear()
    run_study(given(asks, Protocol("again", BestOfN("p"), evidence=(("p", ONE),), judge="scribe")), tmp_path / "s")  # type: ignore[arg-type]
    assert sum(len(each.asked) for each in ASKED) == 0


def test_a_grader_is_a_diagnostic(tmp_path: Path) -> None:
    graded = Protocol("compass", BestOfN("grader"), diagnostic=CompassVerifier(), judge="scribe")
    result = run_study(given(graded), tmp_path / "s")  # type: ignore[arg-type]
    assert {row.kind for row in result.rows} == {"diagnostic"}
    assert not result.banks["dice on guess"].layers  # nothing of it is where a rule could read it


def test_a_judge_must_be_named_and_be_there() -> None:
    text = """
[study]
title = "x"
n = 2
[task]
task = "Countdown(3)"
questions = 2
[[model]]
model = "Pocket('tiny')"
[[protocol]]
name = "p"
rule = "BestOfN('point')"
evidence = { point = "Pointwise()" }
"""
    with pytest.raises(StudyError, match=r"s\.toml:13: point asks a model about candidates: name it, judge = 'tiny'"):
        loads(text, "s.toml")
    with pytest.raises(StudyError, match=r"s\.toml:14: judge = 'tyny': .* did you mean 'tiny'"):
        loads(text + 'judge = "tyny"\n', "s.toml")
    assert loads(text + 'judge = "tiny"\n').study.protocols[0].judge == "tiny"
    with pytest.raises(StudyError, match="is a grader, which belongs into diagnostic"):
        loads(text.replace("Pointwise()", "CompassVerifier()"))


def test_a_local_model_is_a_judge() -> None:
    judge = judge_of(System(Dice()))
    assert judge.encode("ab?") == (0, 1)
    assert judge.token(2) == "c"


def test_a_judge_that_does_not_answer_or_cannot_judge_is_refused_before_any_work(tmp_path: Path) -> None:
    @method
    class Deaf:
        name: str = "deaf"

        def preflight(self) -> None:
            raise InvalidValue("nobody listens there: start the server")

    asks = Protocol("pointwise", BestOfN("point"), evidence=(("point", ONE),), judge="deaf")
    deaf = study(models=(System(Dice()),), judges=(System(Deaf()),), protocols=(asks,))
    with pytest.raises(StudyError, match=r"judge\.0\.model: judge = 'deaf' does not answer: nobody listens there"):
        run_study(deaf, tmp_path / "s")
    assert not (tmp_path / "s").exists()
    hosted = Endpoint("gpt", "http://127.0.0.1:9/v1", "hosted")
    asks = Protocol("pointwise", BestOfN("point"), evidence=(("point", ONE),), judge="gpt")
    mute = study(models=(System(Dice()),), judges=(System(hosted),), protocols=(asks,))
    with pytest.raises(
        StudyError, match=r"protocol\.0\.judge: judge = 'gpt': hosted does not say how its token ids read"
    ):
        check_study(mute)
    asks = Protocol("pointwise", BestOfN("point"), evidence=(("point", ONE),), judge="tiny")
    small = study(models=(System(Dice()),), judges=(System(Pocket("tiny"), name="tiny"),), protocols=(asks,))
    with pytest.raises(StudyError, match=r"judge = 'tiny': Pocket\(.*\) has no letters to read a prompt with"):
        check_study(small)


def test_one_model_that_judges_in_two_ways_gives_two_layers(tmp_path: Path) -> None:
    judges = (System(Dice(), name="cold", decode=Temperature(0.1)), System(Dice(), name="hot", decode=Temperature(9.0)))
    mine = [Protocol(each.name, BestOfN("p"), evidence=(("p", ONE),), judge=each.name) for each in judges]
    given = study(models=(System(Dice()),), judges=judges, protocols=tuple(mine), metrics=())
    names = list(run_study(given, tmp_path / "s").banks["dice on guess"].layers)
    assert [name.rpartition(" by ")[2] for name in names] == [
        "Dice(name='dice') (Temperature(t=0.1))",
        "Dice(name='dice') (Temperature(t=9.0))",
    ]

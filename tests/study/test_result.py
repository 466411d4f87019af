"""The record between a study and its reports: what is written is read, whole and exactly."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from ramify.bank import Bank, Layer, Outcomes, Proposal
from ramify.errors import InvalidValue, StoreError
from ramify.metrics import Estimate
from ramify.store import Store
from ramify.study.result import Agreed, Comparison, Coverage, Measure, Result, Row
from ramify.study.stored import FILE, write


def bank() -> Bank:
    found = Bank.of({"q1": ["A", "A", "B"], "q2": ["7", None]}, proposal=Proposal(run="toy", model="Toy()"))
    return dataclasses.replace(found, length=np.where(found.drawn, 5, -1))


def row(name: str = "vote", k: int | None = 2, **fields: object) -> Row:
    q = np.array([0.5, np.nan])
    given: dict[str, object] = {
        "task": "toy",
        "model": "m",
        "interface": "plain",
        "name": name,
        "protocol": "Plurality()",
        "regime": "leaves",
        "kind": "shared-bank",
        "k": k,
        "budget": None,
        "unit": "tokens",
        "utility": q,
        "spread": np.array([[0.0, 1.0], [np.nan, np.nan]]),
        "cost": {"generate": np.array([10.0, 20.0]), "signal": np.array([1.0, 2.0])},
        "invalid": np.zeros(2),
        "capped": np.zeros(2),
        "tokens": np.full(2, 5.0),
        "bank": "toy",
    }
    return Row(**{**given, **fields})  # type: ignore[arg-type]


def result() -> Result:
    answers = bank()
    layer = Layer(np.where(answers.drawn, 0.25, np.nan), "Head()", cost=np.where(answers.drawn, 3.0, 0.0))
    answers = answers.attach("head", layer)
    grades = Outcomes.of(answers, np.where(answers.drawn, answers.answers == 0, np.nan), "toy grades")
    return Result(
        title="A toy",
        card={"task": "Toy()"},
        questions={"toy": answers.questions},
        rows=(row(), row("other", None, spread=None, budget=12.5, kind="end-to-end")),
        banks={"toy": answers},
        outcomes={"toy": grades},
        comparisons=(Comparison("toy", "a", "b", Estimate(0.1, -0.1, 0.3, 0.95, ("questions",)), 2, True, "n"),),
        shared=("they share",),
        reproduced={"toy": "not checked"},
        interfaces=(Coverage("m", "toy", "plain", 2),),
        measures=(Measure("PassAt(k=2)", "toy", "m", "toy", Estimate.descriptive(float("nan"), "none"), "g", 2),),
        agreements=(Agreed("toy", ("m", "n"), "spearman", *(np.array([1, 2.0]) for _ in range(4))),),
        notes=("a note",),
    )


def stored(folder: Path, found: Result) -> None:
    Store.create(folder / "banks" / "toy").add_bank(dataclasses.replace(found.banks["toy"], layers={}))
    write(folder, found, {"toy": "banks/toy"})


def same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, np.asarray(other), equal_nan=one.dtype.kind == "f")
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    if isinstance(one, (tuple, list)):
        assert isinstance(other, (tuple, list))
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        assert isinstance(other, dict)
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    return one == other or (one != one and other != other)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    before = result()
    stored(tmp_path, before)
    after = Result.read(tmp_path, columns=())
    for field in dataclasses.fields(Result):
        if field.name not in ("banks", "outcomes"):
            assert same(getattr(before, field.name), getattr(after, field.name)), field.name
    one, other = before.banks["toy"], after.banks["toy"]
    for name in ("questions", "answer_text", "answers", "drawn", "ended", "source", "proposals", "length", "layers"):
        assert same(getattr(one, name), getattr(other, name)), name
    assert same(before.outcomes["toy"].on(one), after.outcomes["toy"].on(other))
    assert after.outcomes["toy"].description == "toy grades"


def test_candidates_added_to_the_store_since_are_not_in_the_result(tmp_path: Path) -> None:
    before = result()
    stored(tmp_path, before)
    more = Bank.of({"q1": ["A", "A", "B", "C"], "q2": ["7", None, "8"], "q3": ["1"]}, proposal=bank().proposals[0])
    Store.open(tmp_path / "banks" / "toy").add_bank(dataclasses.replace(more, length=np.where(more.drawn, 5, -1)))
    after = Result.read(tmp_path, columns=())
    assert after.banks["toy"].answers.tolist() == [[0, 0, 1], [0, -1, -1]]
    assert after.banks["toy"].drawn.tolist() == [[True, True, True], [True, True, False]]


def test_writing_the_same_result_again_changes_no_byte(tmp_path: Path) -> None:
    stored(tmp_path, result())
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    write(tmp_path, result(), {"toy": "banks/toy"})
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == before


def test_a_result_that_is_replaced_leaves_no_arrays_behind(tmp_path: Path) -> None:
    stored(tmp_path, result())
    write(tmp_path, dataclasses.replace(result(), rows=(row("changed", 1, utility=np.ones(2)),)), {"toy": "banks/toy"})
    assert len(list(tmp_path.glob("arrays-*.npz"))) == 1
    assert [each.name for each in Result.read(tmp_path, ()).rows] == ["changed"]


def test_a_folder_without_a_result_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="run `ramify run` first"):
        Result.read(tmp_path)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(StoreError, match="leaves are kept"):
        Result.read(tmp_path)
    (tmp_path / FILE).write_text(json.dumps({"format": "ramify-study", "version": 99}))
    with pytest.raises(StoreError, match="version 99"):
        Result.read(tmp_path)


def test_rows_say_what_they_are() -> None:
    one = row()
    assert (one.label, row(k=None, budget=12.5).label, row(k=None).label) == (
        "vote, k = 2",
        "vote, 12.5 tokens",
        "vote",
    )
    assert (one.mean, one.mean_cost, one.total.tolist()) == (0.5, 11.0, [11.0, 22.0])
    low, high = one.replays() or (9.0, 9.0)
    assert (round(low, 3), round(high, 3)) == (0.025, 0.975)  # NumPy's linear quantiles of 0 and 1
    with pytest.raises(InvalidValue, match=r"Row\.kind = 'oracle'"):
        row(kind="oracle")
    with pytest.raises(InvalidValue, match=r"Row\.cost"):
        row(cost={"lunch": np.zeros(2)})


def test_a_row_is_found_by_name() -> None:
    found = dataclasses.replace(result(), rows=(row(k=1), row(k=8), row(task="other")))
    assert found.row("vote", task="toy").k == 8
    assert found.row("vote", task="toy", k=1).k == 1
    with pytest.raises(InvalidValue, match="say which"):
        found.row("vote")
    with pytest.raises(InvalidValue, match="the study has vote"):
        found.row("voet")


def test_mixed_interfaces_are_named() -> None:
    mixed = (Coverage("m", "toy", "plain", 2), Coverage("n", "toy", "chat", 2), Coverage("m", "b", "plain", 1))
    assert dataclasses.replace(result(), interfaces=mixed).mixed == ("toy",)

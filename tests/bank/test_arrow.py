"""A bank survives Arrow: the same facts come back, whatever order the rows were in."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.bank import Bank, Layer, Outcomes, Proposal, from_arrow, to_arrow, to_xarray, union
from ramify.errors import InvalidValue
from ramify.types import Question
from tests.bank.test_bank import generated


def facts(bank: Bank, outcomes: dict[str, Outcomes] | None = None) -> dict[tuple[object, ...], dict[str, object]]:
    """Everything known of each candidate, by proposal and key."""
    found: dict[tuple[object, ...], dict[str, object]] = {}
    grades = {name: graded.on(bank) for name, graded in (outcomes or {}).items()}
    for q, n in zip(*np.nonzero(bank.drawn), strict=True):
        tables = {name: layer.values for name, layer in bank.layers.items()}
        tables |= {f"cost {name}": layer.cost for name, layer in bank.layers.items() if layer.cost is not None}
        tables |= grades | {name: getattr(bank, name) for name in ("log_q", "length", "text")}
        fact: dict[str, object] = {name: repr(v if v is None else np.asarray(v)[q, n]) for name, v in tables.items()}
        fact |= {"answer": repr(bank.answer(q, n)), "ended": bank.endings[bank.ended[q, n]], "at": int(n)}
        if bank.tokens is not None and bank.tokens.start[q, n] >= 0:
            fact["tokens"] = {name: values.tolist() for name, values in bank.tokens.of(q, n).items()}
        found[bank.proposals[bank.source[q, n]], bank.key(q, n)] = fact
    return found


def same(one: Bank, two: Bank) -> None:
    assert one.questions == two.questions
    assert one.shape == two.shape
    assert facts(one) == facts(two)
    assert one.assumed == two.assumed
    told = [{name: (x.description, x.version, x.role) for name, x in bank.layers.items()} for bank in (one, two)]
    assert told[0] == told[1]


ANSWERS = (
    st.text(min_size=1, max_size=3),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.one_of(st.text(max_size=2), st.integers(0, 9), st.booleans(), st.tuples(st.integers(0, 3), st.text(max_size=1))),
)


@st.composite
def banks(draw: st.DrawFn) -> Bank:
    answer = st.none() | draw(st.sampled_from(ANSWERS))
    rows = draw(st.lists(st.lists(answer, max_size=4), max_size=4))
    scores = [[draw(st.none() | st.floats(allow_nan=False)) for _ in row] for row in rows]
    bank = Bank.of(
        {f"q{i}": row for i, row in enumerate(rows)},
        proposal=Proposal(draw(st.sampled_from(["iid", "search"])), "r\"'un", signals=("token",), top=3),
        scores={"a.b": scores},
        groups={"q0": {"field": "x"}, "q1": {"level": "7"}},
    )
    if draw(st.booleans()):
        order = np.array(draw(st.permutations(range(-1, bank.shape[1])))[: bank.shape[1] + 1], dtype=np.int64)
        bank = bank.take(order) if bank.shape[1] else bank
    return dataclasses.replace(bank, assumed=draw(st.sampled_from(["", "because"])))


@given(banks(), st.data())
def test_a_bank_comes_back_from_arrow_as_it_was(bank: Bank, data: st.DataObject) -> None:
    grades = data.draw(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, np.nan]), min_size=bank.answers.size, max_size=bank.answers.size)
    )
    outcomes = {"exact": Outcomes.of(bank, np.array(grades).reshape(bank.shape), "against gold", "2")}
    table = to_arrow(bank, outcomes)
    assert len(table) == bank.drawn.sum()
    again = from_arrow(table)
    same(bank, again.bank)
    assert facts(bank, outcomes) == facts(again.bank, again.outcomes)
    assert (again.outcomes["exact"].description, again.outcomes["exact"].version) == ("against gold", "2")
    shuffled = table.take(np.array(data.draw(st.permutations(range(len(table)))), dtype=np.int64))
    assert facts(from_arrow(shuffled).bank) == facts(bank)


@given(st.data())
def test_tokens_and_provenance_come_back_from_any_slice(data: st.DataObject) -> None:
    bank = union(generated("one", top=2)[0], generated("two", counts=(2, 4, 0, 1), top=2)[0])
    bank = bank.attach("score", Layer(np.arange(36.0).reshape(4, 9), "a test", "3", np.ones((4, 9)), "diagnostic"))
    bank = bank.take(np.array(data.draw(st.permutations(range(-1, 9)))[: data.draw(st.integers(1, 10))]))
    assert bank.tokens is not None
    same(bank, from_arrow(to_arrow(bank, tokens=bank.tokens.columns)).bank)


def test_what_was_not_recorded_is_null_and_comes_back_unknown() -> None:
    bank, _ = generated()
    assert bank.length is not None
    assert bank.log_q is not None
    assert bank.tokens is not None
    length, log_q, start = bank.length.copy(), bank.log_q.copy(), bank.tokens.start.copy()
    length[0, 1], log_q[0, 2], start[2, 0] = -1, np.nan, -1
    tokens = dataclasses.replace(bank.tokens, start=start, length=np.where(start < 0, 0, bank.tokens.length))
    bank = dataclasses.replace(bank, length=length, log_q=log_q, tokens=tokens)
    table = to_arrow(bank, tokens=["token"])
    assert [table[name].null_count for name in ("length", "log_q", "token.token")] == [1, 1, 1]
    assert table["answer"].null_count == (bank.drawn & (bank.answers < 0)).sum()
    again = from_arrow(table).bank
    assert again.tokens is not None
    assert again.length is not None
    assert again.length[0, 1] == -1
    assert again.tokens.start[2, 0] == -1
    assert again.tokens["token"].dtype == np.int32


def test_data_frames_take_a_bank_as_it_is() -> None:
    bank, _ = generated()
    assert pa.table(bank).num_rows == 12
    frame = pl.DataFrame(bank)
    assert frame.shape == (12, 11 + 1)
    assert frame.filter(pl.col("group.field") == "odd").height == 3
    assert pa.table(bank).to_pandas()["sample"].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3]


def test_a_data_frame_of_any_library_becomes_a_bank() -> None:
    columns: dict[str, list[Any]] = {
        "question": ["b", "a", "b"],
        "answer": ["1", None, "2"],
        "layer.s": [0.5, 1.5, 2.5],
    }
    for frame in (pl.DataFrame(columns), pd.DataFrame(columns), pa.table(columns)):
        bank = from_arrow(frame).bank
        assert [question.id for question in bank.questions] == ["b", "a"]
        assert bank.answers.tolist() == [[0, 1], [-1, -1]]
        assert bank.drawn.tolist() == [[True, True], [True, False]]
        assert np.array_equal(bank.layers["s"].values, [[0.5, 2.5], [1.5, np.nan]], equal_nan=True)
        assert bank.proposals == (Proposal(),)


def test_a_filtered_frame_keeps_its_facts_without_the_metadata() -> None:
    bank = union(Bank.of({"q": ["A", "B"]}, proposal=Proposal(run="one", model="m")), Bank.of({"q": ["C"]}))
    frame = pl.DataFrame(bank).filter(pl.col("answer") != "A")
    again = from_arrow(frame).bank
    assert {key: fact["answer"] for key, fact in facts(again).items()} == {
        key: fact["answer"] for key, fact in facts(bank).items() if fact["answer"] != "'A'"
    }
    assert again.proposals == bank.proposals


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"answer": ["1"]}, "one of them has to be 'question'"),
        ({"question": ["a", None]}, "row 1, column 'question'"),
        ({"question": ["a", "b", "a"], "sample": [0, 0, 0]}, "row 2, column 'sample': sample 0 .* first at row 0"),
        ({"question": ["a", "a"], "sample": [0, None]}, "row 1, column 'sample'"),
        ({"question": ["a", "a"], "prompt": ["x", "y"]}, "row 1, column 'prompt': differs from row 0"),
        ({"question": ["a", "a"], "outcome.o": [1.0, 2.0]}, r"row 1, column 'o' = 2.0: grade within \[0, 1\]"),
        ({"question": ["a"], "layer.s": ["high"]}, "column 'layer.s'"),
        ({"question": ["a"], "proposal": ["{"]}, "column 'proposal'"),
        ({"question": ["a"], "proposal": ['{"kind": "magic"}']}, "Proposal.kind"),
        (
            {"question": ["a", "a"], "token.token": [[1], [2, 3]], "token.rank": [[1], [2]]},
            "row 1, column 'token.rank'",
        ),
        ({"question": ["a"], "token.top_ids": [[[1, 2], [3]]]}, "as many alternatives"),
        ({"question": ["a", "a"], "candidate": [0, 0], "sample": [0, 1]}, "row 1, column 'candidate'"),
    ],
)
def test_a_table_that_is_no_bank_is_refused_by_row_and_column(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        from_arrow(pa.table(columns))


def test_refusals_on_the_way_out_name_what_has_no_column() -> None:
    with pytest.raises(InvalidValue, match="no token columns"):
        to_arrow(Bank.of({"q": ["A"]}), tokens=["token"])
    with pytest.raises(InvalidValue, match="has no column form"):
        to_arrow(Bank.of({"q": [frozenset()]}))


def test_xarray_has_named_dims_and_the_groups_as_coordinates() -> None:
    bank = Bank.of({"q1": ["A", None], "q2": ["7"]}, groups={"q1": {"level": "1"}}, scores={"s": [[1, 2], [3]]})
    data = to_xarray(bank, {"exact": Outcomes.of(bank, [[1, 0], [np.nan, np.nan]])})
    assert dict(data.sizes) == {"question": 2, "candidate": 2}
    assert data["answer"].values.tolist() == [["A", ""], ["7", ""]]
    assert data["layer.s"].sel(question="q2").values[0] == 3
    assert float(data["outcome.exact"].mean()) == 0.5
    assert data["group.level"].values[0] == "1"


def test_a_bank_of_questions_nobody_drew_for_comes_back() -> None:
    bank = Bank.of({"a": [], "b": ["1"], "c": []}, groups={"c": {"g": "x"}})
    again = from_arrow(to_arrow(bank)).bank
    assert again.questions == bank.questions == (Question("a", ""), Question("b", ""), Question("c", "", {"g": "x"}))
    assert facts(again) == facts(bank)

"""Banks from files: what is in them comes in, what is missing is counted, what is broken is named by row and column."""

from __future__ import annotations

import gzip
import json
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ramify.bank import Bank, Layer, Outcomes, Proposal, union
from ramify.errors import InvalidValue
from ramify.store.exchange import Imported, importing, read, write
from ramify.store.exchange.block import Block
from tests.bank.test_arrow import facts
from tests.bank.test_bank import generated

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "banks"
real = pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/banks")

HEADER = "question,sample,answer,correct,score\n"
ROWS = "q1,0,7,1,0.5\nq1,1,,0,-inf\nq2,0,A,,2\nq2,1,B,true,nan\n"


def saved(folder: Path, name: str, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def told(imported: Imported) -> dict[str, Any]:
    bank, outcomes, _ = imported
    rows = {}
    for q, n in zip(*np.nonzero(bank.drawn), strict=True):
        grades = {name: repr(float(graded.on(bank)[q, n])) for name, graded in outcomes.items()}
        scores = {name: repr(float(layer.values[q, n])) for name, layer in bank.layers.items()}
        rows[f"{bank.questions[q].id}/{bank.samples[q, n]}"] = (bank.answer(q, n), grades, scores)
    return rows


EXPECTED = {
    "q1/0": ("7", {"correct": "1.0"}, {"score": "0.5"}),
    "q1/1": (None, {"correct": "0.0"}, {"score": "-inf"}),
    "q2/0": ("A", {"correct": "nan"}, {"score": "2.0"}),
    "q2/1": ("B", {"correct": "1.0"}, {"score": "nan"}),
}


def as_json() -> str:
    rows = [
        {"question": "q1", "sample": 0, "answer": 7, "correct": True, "score": 0.5},
        {"question": "q1", "sample": 1, "answer": None, "correct": 0, "score": float("-inf")},
        {"question": "q2", "sample": 0, "answer": "A", "score": 2},
        {"question": "q2", "sample": 1, "answer": "B", "correct": 1.0, "score": float("nan")},
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_lists() -> str:
    rows = [
        {"question": "q1", "answer": ["7", None], "correct": [1, 0], "score": [[0.5], [float("-inf")]]},
        {"question": "q2", "answer": ["A", "B"], "correct": [None, True], "score": [2, None]},
    ]
    return json.dumps(rows)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bank.csv", HEADER + ROWS),
        ("bank.csv.gz", HEADER + ROWS),
        ("bank.tsv", (HEADER + ROWS).replace(",", "\t")),
        ("bank.csv", b"\xef\xbb\xbf" + (HEADER + ROWS).encode()),
        ("bank.csv", (HEADER + ROWS).replace("\n", "\r\n")),
        ("bank.jsonl", as_json()),
        ("bank.jsonl", "\ufeff" + as_json().replace("\n", "\n\n")),
        ("bank.jsonl.gz", as_json()),
        ("bank.json", as_lists()),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_the_same_facts_come_from_every_text_format(tmp_path: Path, name: str, content: str | bytes) -> None:
    imported = read(saved(tmp_path, name, content))
    assert told(imported) == EXPECTED
    assert imported.report.missing == {"answer": 1, "layer.score": 1, "outcome.correct": 1}
    assert imported.report.dropped == {}
    assert imported.bank.endings[imported.bank.ended[0, 0]] == "unknown"


def test_a_parquet_file_of_others_and_one_with_lists_say_the_same(tmp_path: Path) -> None:
    columns = {
        "question": ["q1", "q1", "q2", "q2"],
        "sample": [0, 1, 0, 1],
        "answer": ["7", None, "A", "B"],
        "correct": [True, False, None, True],
        "score": [0.5, -np.inf, 2.0, np.nan],
    }
    parquet.write_table(pa.table(columns), tmp_path / "flat.parquet")
    assert told(read(tmp_path / "flat.parquet")) == EXPECTED
    lists = {
        "question": ["q1", "q2"],
        "answer": [["7", None], ["A", "B"]],
        "correct": [[True, False], [None, True]],
        "score": [[0.5, -np.inf], [2.0, np.nan]],
    }
    parquet.write_table(pa.table(lists), tmp_path / "lists.parquet")
    assert told(read(tmp_path / "lists.parquet")) == EXPECTED


def test_a_matrix_is_enough(tmp_path: Path) -> None:
    np.save(tmp_path / "grades.npy", np.array([[1, 0, 1], [0, 0, 1]]))
    bank, outcomes, report = read(tmp_path / "grades.npy")
    assert bank.shape == (2, 3)
    assert outcomes["correct"].values.tolist() == [[1, 0, 1], [0, 0, 1]]
    assert "no answers were recorded: every candidate is ⊥" in report.notes
    np.save(tmp_path / "answers.npy", np.array([[3, 3, 5], [7, 7, 7]]))
    bank, outcomes, _ = read(tmp_path / "answers.npy")
    assert (bank.answer_text, bank.answers.tolist(), outcomes) == ((("3", "5"), ("7",)), [[0, 0, 1], [0, 0, 0]], {})
    np.save(tmp_path / "words.npy", np.array([["a", "", "b"]]))
    assert read(tmp_path / "words.npy").bank.answers.tolist() == [[0, -1, 1]]
    np.save(tmp_path / "partly.npy", np.array([[1.0, np.nan], [0.0, 1.0]]))
    assert np.isnan(read(tmp_path / "partly.npy").outcomes["correct"].values[0, 1])
    np.save(tmp_path / "scores.npy", np.array([[0.25, 1.5]]))
    assert read(tmp_path / "scores.npy").bank.layers["score"].values.tolist() == [[0.25, 1.5]]
    assert read(tmp_path / "scores.npy", {"answer": "score"}).bank.answer_text == (("0.25", "1.5"),)
    np.savez(tmp_path / "both.npz", answer=np.array([["a", "b"]]), correct=np.array([[1, 0]]), level=np.array(["3"]))
    bank, outcomes, _ = read(tmp_path / "both.npz")
    assert (bank.answer_text, outcomes["correct"].values.tolist()) == ((("a", "b"),), [[1, 0]])
    assert bank.questions[0].groups == {"level": "3"}


# ---------------------------------------------------------------------------------------------------------- round trips


@st.composite
def written_banks(draw: st.DrawFn) -> tuple[Bank, dict[str, Outcomes]]:
    words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=4)
    answer = st.none() | words.filter(lambda word: "\x00" not in word)
    rows = draw(st.lists(st.lists(answer, min_size=1, max_size=3), min_size=1, max_size=3))
    scores = [[draw(st.none() | st.floats(allow_nan=False)) for _ in row] for row in rows]
    proposal = draw(st.sampled_from([Proposal(), Proposal(run="r"), Proposal("search", "r", model="m")]))
    names = {f'q"{i}, \n': row for i, row in enumerate(rows)}
    bank = Bank.of(names, proposal=proposal, scores={"s": scores})
    grades = np.array([[draw(st.sampled_from([0, 0.5, 1, np.nan])) for _ in range(bank.shape[1])] for _ in rows])
    return bank, {"exact": Outcomes.of(bank, grades)}


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "jsonl.gz", "csv", "tsv.gz", "npz"])
@given(written=written_banks())
def test_a_bank_comes_back_from_its_file(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, written: tuple[Bank, dict[str, Outcomes]]
) -> None:
    bank, outcomes = written
    path = tmp_path_factory.mktemp("round") / f"bank.{suffix}"
    write(bank, outcomes, path)
    again = read(path)
    kept = Proposal(run=bank.proposals[0].run) if suffix == "npz" else bank.proposals[0]
    assert list(again.bank.proposals) == [kept]
    assert list(facts(again.bank, again.outcomes).values()) == list(facts(bank, outcomes).values())
    assert [key for _, key in facts(again.bank)] == [key for _, key in facts(bank)]
    assert list(path.parent.iterdir()) == [path], "nothing is left beside the file"


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_tokens_groups_text_and_provenance_come_back(tmp_path: Path, suffix: str) -> None:
    bank = union(generated("one")[0], generated("two", counts=(2, 2))[0])
    bank = bank.attach("score", Layer(np.arange(21.0).reshape(3, 7), "score", cost=np.ones((3, 7))))
    again = read(write(bank, None, tmp_path / f"bank.{suffix}")).bank
    assert again.questions == bank.questions
    precise = facts(bank)
    if suffix == "jsonl":  # the alternatives are kept in single precision
        assert bank.tokens is not None
        assert again.tokens is not None
        assert np.allclose(again.tokens["top_logprobs"], bank.tokens["top_logprobs"], atol=1e-6)
        for fact in (*precise.values(), *(found := facts(again)).values()):
            assert isinstance(fact["tokens"], dict)
            fact["tokens"].pop("top_logprobs")
        assert found == precise
    else:
        assert facts(again) == precise


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    bank, _ = generated()
    with pytest.raises(InvalidValue, match=r"use one of \.parquet"):
        write(bank, None, tmp_path / "bank.npy")
    with pytest.raises(InvalidValue, match="no place for them"):
        write(bank, None, tmp_path / "bank.csv", tokens=True)
    with pytest.raises(InvalidValue, match="cannot be written"):
        write(bank, None, tmp_path / "nowhere" / "bank.csv")


# -------------------------------------------------------------------------------------------------------------- mapping


def parts(path: Path, **given: str | None) -> dict[str, str]:
    return dict(read(path, {part.replace("__", "."): column for part, column in given.items()}).report.mapping.parts)


def test_the_mapping_is_guessed_shown_and_overridden(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", "Problem ID,attempt,pred,answer,is_correct,rm_score,level,note\np,0,1,1,1,.5,3,x\n")
    guessed = parts(path)
    assert guessed == {
        "question": "Problem ID",
        "sample": "attempt",
        "answer": "pred",
        "group.level": "level",
        "layer.rm_score": "rm_score",
        "outcome.is_correct": "is_correct",
    }
    shown = str(read(path).report.mapping)
    assert "outcome.is_correct  <- is_correct" in shown
    assert "answer: a reference; gold stays out of a bank" in shown
    assert "note: nothing is known by this name" in shown
    given = parts(path, answer="answer", layer__mine="rm_score", group__level=None)
    assert given["answer"] == "answer"
    assert "group.level" not in given
    assert "layer.rm_score" not in given
    assert given["layer.mine"] == "rm_score"
    assert "(given)" in str(read(path, {"answer": "answer"}).report.mapping)


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        (
            "idx,question,response,acc",
            "0,What is 1 + 1?,two,1",
            {"question": "idx", "prompt": "question", "text": "response"},
        ),
        ("question,prompt,answer", "q1,What is it?,7", {"question": "question", "prompt": "prompt"}),
        ("prompt,completion,score", "What is it?,seven,true", {"question": "prompt", "outcome.score": "score"}),
        ("qid,seed,answer,tokens", "q,42,a,17", {"length": "tokens"}),
        ("qid,answer,finish_reason,logprob", "q,a,stop,-3.5", {"ended": "finish_reason", "layer.logprob": "logprob"}),
        ("qid,answer,log_q,label", "q,a,-3.5,gold words", {"log_q": "log_q", "answer": "answer"}),
    ],
)
def test_names_and_values_decide_together(tmp_path: Path, header: str, row: str, expected: dict[str, str]) -> None:
    found = parts(saved(tmp_path, "a.csv", f"{header}\n{row}\n"))
    assert expected.items() <= found.items()
    assert "outcome.label" not in found


def test_an_id_of_rows_is_no_question_and_a_constant_seed_no_sample(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", "id,question,seed,answer\n0,q1,5,a\n1,q1,5,b\n2,q2,5,c\n")
    bank = read(path).bank
    assert [question.id for question in bank.questions] == ["q1", "q2"]
    assert bank.samples.tolist() == [[0, 1], [0, 0]]
    path = saved(tmp_path, "b.csv", "question,seed,answer\nq1,7,a\nq1,5,b\n")
    bank = read(path).bank
    assert bank.samples.tolist() == [[5, 7]], "candidates are in order of sample, whatever the order of rows"
    assert [bank.answer(0, n) for n in (0, 1)] == ["b", "a"]


def test_a_question_that_is_only_asked_is_named_by_its_prompt_or_the_digest_of_it(tmp_path: Path) -> None:
    long = "Why? " * 50
    path = saved(tmp_path, "a.jsonl", "".join(json.dumps({"prompt": p, "answer": "1"}) + "\n" for p in ("What?", long)))
    one, two = read(path).bank.questions
    assert (one.id, two.prompt, len(two.id)) == ("What?", long, 16)
    assert read(path).bank.questions[1].id == two.id


def test_unknown_finish_reasons_stay_unknown(tmp_path: Path) -> None:
    reasons = ["stop", "length", "content_filter", None, "stop:confidence", "max_tokens"]
    rows = "".join(json.dumps({"qid": "q", "answer": "1", "finish_reason": reason}) + "\n" for reason in reasons)
    bank, _, report = read(saved(tmp_path, "a.jsonl", rows))
    endings = [bank.endings[code] for code in bank.ended[0]]
    assert endings == ["eos", "length", "unknown", "unknown", "stop:confidence", "length"]
    assert any("['content_filter']" in note for note in report.notes)


def test_columns_that_begin_late_are_found_or_remarked_upon(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"qid": f"q{i}", "answer": "1", "correct": None, "score": None} for i in range(1500)]
    rows[1400] |= {"correct": False, "score": 0.5}
    late = {"qid": "late", "answer": "1", "correct": True, "score": 1.5, "rm_score": 2.0}
    path = saved(tmp_path, "a.jsonl", lines(*rows, late))
    bank, outcomes, _ = read(path)
    assert (bank.layers["score"].values[1400, 0], outcomes["correct"].values[1400, 0]) == (0.5, 0)
    bank, outcomes, report = read(path, block=4096)
    assert outcomes["correct"].values[1400, 0] == 0, "the name is enough for grades"
    assert "no values in the first rows" in report.mapping.ignored["score"]
    assert any(note.startswith("column 'rm_score' appears at line") for note in report.notes)


def test_a_file_that_says_what_it_is_keeps_its_provenance(tmp_path: Path) -> None:
    bank = Bank.of({"q": ["a"]}, proposal=Proposal("search", "r", model="m"))
    for name in ("a.jsonl", "a.parquet", "a.csv"):
        again = read(write(bank, None, tmp_path / name), run="other")
        assert again.bank.proposals == bank.proposals
        assert not any("independent" in note for note in again.report.notes)
        assert read(tmp_path / name, proposal=Proposal("sweep")).bank.proposals[0].kind == "sweep"


def test_a_run_is_named_where_the_file_does_not(tmp_path: Path) -> None:
    bank, outcomes, _ = read(saved(tmp_path, "a.csv", HEADER + ROWS), run="mine")
    assert bank.proposals == (Proposal(run="mine"),)
    assert outcomes["correct"].on(bank)[0, 0] == 1
    assert outcomes["correct"].on(bank.first(1))[0, 0] == 1


def test_gold_never_becomes_part_of_a_bank(tmp_path: Path) -> None:
    rows = {
        "question": "q",
        "answer": "1",
        "gold": "SECRET",
        "solution": "SECRET",
        "correct": True,
        "correct_answer": "SECRET",
    }
    bank, outcomes, _ = read(saved(tmp_path, "a.jsonl", json.dumps(rows)))
    assert b"SECRET" not in pickle.dumps(bank)
    assert bank.layers == {}
    assert list(outcomes) == ["correct"]


def test_a_score_of_zeros_and_ones_is_remarked_upon(tmp_path: Path) -> None:
    report = read(saved(tmp_path, "a.csv", "question,answer,reward\nq,1,0\nq,2,1.0\n")).report
    assert any("map outcome.reward" in note for note in report.notes)


def test_the_caller_says_what_made_the_candidates_and_what_means_no_answer(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", "question,run,sample,answer\nq,a,0,None\nq,b,0,1\n")
    imported = read(path)
    assert any("bottom=['None']" in note for note in imported.report.notes)
    assert imported.bank.kind == "heterogeneous"
    bank = read(path, proposal=Proposal("search", model="m"), bottom=["None"]).bank
    assert [(p.kind, p.run, p.model) for p in bank.proposals] == [("search", "a", "m"), ("search", "b", "m")]
    assert bank.answers.tolist() == [[-1, 0]]


# --------------------------------------------------------------------------------------------------- broken on purpose


def lines(*rows: Any) -> str:
    return "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)


GOOD = {"question": "q", "sample": 0, "answer": "1", "score": 1}
BROKEN: list[tuple[str, str | bytes, str, dict[str, int]]] = [
    # file, content, what the error says, what strict="nothing" drops
    ("a.csv", "sample,answer\n0,1\n", "no column names the question; it has sample, answer", {}),
    ("a.csv", "question,colour\nq,red\n", "no column holds answers", {}),
    ("a.csv", "", "the file is empty", {}),
    ("a.csv", HEADER, "there are no rows in it", {}),
    ("a.csv", "question,answer,answer\nq,1,1\n", "row 1: the column 'answer' is there twice", {}),
    (
        "a.csv",
        HEADER + "q,0,1,1,high\nq,1,1,1,2\n" + "q,2,1,1,3\n" * 0,
        "row 2, column 'score' = 'high'|column 'score': 'high': not a number",
        {},
    ),
    (
        "a.csv",
        HEADER + "q,0,1,1,1\nq,1,1,1,2,9\nq,2,1,1,1\n",
        "row 3: .*6 cells where the header has 5",
        {"6 cells": 1},
    ),
    ("a.csv", HEADER + "q,0,1,1,1\nq,1,1\nq,2,1,1,1\n", "row 3: .*3 cells where the header has 5", {"3 cells": 1}),
    ("a.csv", HEADER + "q,0,1,1,1\nq,x,1,1,1\n", "row 3, column 'sample': 'x': not a whole number", {"not a whole": 1}),
    ("a.csv", HEADER + "q,0,1,1,1\n,1,1,1,1\n", "row 3, column 'question': no question", {"no question": 1}),
    ("a.csv", HEADER + "q,0,1,1,1\nq,,1,1,1\n", "row 3, column 'sample': no sample", {"no sample": 1}),
    (
        "a.csv",
        HEADER + "q,0,1,1,1\nq,99999999999999999999,1,1,1\n",
        "row 3, column 'sample': '99999999999999999999': not a whole number",
        {"not a whole": 1},
    ),
    (
        "a.csv",
        HEADER + "q,0,1,1,1\np,0,1,1,1\nq,0,2,1,1\n",
        "row 4, column 'sample': sample 0 is there twice, first at row 2",
        {"this sample": 1},
    ),
    (
        "a.csv",
        HEADER + "q,0,1,1,1\nq,1,1,maybe,1\n",
        "row 3, column 'correct': 'maybe': not a grade",
        {"not a grade": 1},
    ),
    ("a.csv", HEADER + "q,0,1,1,1\nq,1,1,2,1\n", "row 3, column 'correct': '2': not a grade", {"not a grade": 1}),
    ("a.csv", HEADER.encode() + b"q,0,1,1,1\nq,1,\xff,1,1\n", "row 3, column 'answer': not UTF-8", {"characters": 1}),
    ("a.jsonl", lines(GOOD, "{broken\n"), "line 2: not JSON", {"not JSON": 1}),
    ("a.jsonl", lines(GOOD, "[1]\n"), r"line 2: \[1\]: not an object", {"not an object": 1}),
    ("a.jsonl", lines(GOOD, "[" * 100_000 + "\n"), "line 2: not JSON", {"not JSON": 1}),
    ("a.jsonl", lines(GOOD, '{"question": ' + "9" * 5000 + "}\n"), "line 2: not JSON", {"not JSON": 1}),
    ("a.jsonl", lines(GOOD).encode() + b'{"question": "\xff", "sample": 1}\n', "line 2: not UTF-8", {"characters": 1}),
    (
        "a.jsonl",
        lines(GOOD, "\n", {**GOOD, "sample": 1, "score": 10**400}),
        "line 3, column 'score': 1000.*not a number",
        {"not a number": 1},
    ),
    ("a.jsonl", lines(GOOD, {**GOOD, "sample": 1.5}), "line 2, column 'sample': 1.5", {"not a whole": 1}),
    ("a.jsonl", lines(GOOD, {**GOOD, "sample": -1}), "line 2, column 'sample': -1", {"not a whole": 1}),
    (
        "a.jsonl",
        lines(GOOD, {**GOOD, "sample": 1, "score": "high"}),
        "line 2, column 'score': 'high'",
        {"not a number": 1},
    ),
    (
        "a.jsonl",
        lines({"question": "q", "answer": ["1"], "score": [1]}, {"question": "p", "answer": ["1", "2"], "score": [1]}),
        "line 2: its lists have different lengths",
        {"its lists": 1},
    ),
    (
        "a.jsonl",
        lines({"question": "q", "answer": ["1"]}, {"question": "p", "answer": "1"}),
        "line 2, column 'answer': '1': not a list",
        {"not a list": 1},
    ),
    (
        "a.jsonl",
        lines(
            {"question": "q", "answer": "1", "sample": 0, "tokens": [1, 2]},
            {"question": "q", "answer": "1", "sample": 1, "tokens": [1, "x"]},
        ),
        r"line 2, column 'tokens': \[1, 'x'\]: not a list for token.token",
        {"not a list": 1},
    ),
    (
        "a.jsonl",
        lines(
            {"question": "q", "answer": "1", "sample": 0, "tokens": [1, 2]},
            {"question": "q", "answer": "1", "sample": 1, "tokens": [1, 2.5]},
        ),
        r"line 2, column 'tokens': \[1, 2.5\]: not a list for token.token",
        {"not a list": 1},
    ),
    ("a.parquet", b"PAR1 but not really", "not a Parquet file", {}),
    ("a.npy", b"\x93NUMPY nonsense", "not a NumPy file", {}),
    ("a.json", "[1, 2]", "row 1 = 1: not an object", {}),
    ("a.json", "{", "not a JSON document", {}),
    ("a.xlsx", "", "'.xlsx' is no format", {}),
]


@pytest.mark.parametrize(("name", "content", "message", "dropped"), BROKEN, ids=range(len(BROKEN)))
def test_what_is_broken_is_an_error_that_names_the_place_or_is_dropped_and_counted(
    tmp_path: Path, name: str, content: str | bytes, message: str, dropped: dict[str, int]
) -> None:
    path = saved(tmp_path, name, content)
    with pytest.raises(InvalidValue, match=message) as caught:
        # The guess would leave out a column that does not look its part; here it has to take it.
        read(path, {"layer.score": "score"} if "high" in str(content) and "," in str(content)[:20] else None)
    assert str(path) in str(caught.value)
    if dropped:
        report = read(path, strict="nothing").report
        assert sum(report.dropped.values()) == sum(dropped.values())
        for what in dropped:
            assert any(told.startswith(what) or what in told for told in report.dropped), report.dropped


def test_a_gzip_that_breaks_off_is_an_error_or_read_as_far_as_it_goes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"q{i},0,{rng.integers(10**9)},1,{rng.random()}\n" for i in range(5000)]
    whole = gzip.compress((HEADER + "".join(rows)).encode())
    path = tmp_path / "a.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidValue, match="the compressed file is broken"):
        read(path)
    imported = read(path, strict="nothing")
    assert 1000 < len(imported.bank.questions) < 5000
    assert any("compressed file is broken" in what for what in imported.report.dropped)
    jsonl = gzip.compress(lines(*({**GOOD, "sample": i, "score": rng.random()} for i in range(5000))).encode())
    (tmp_path / "a.jsonl.gz").write_bytes(jsonl[: len(jsonl) // 2])
    with pytest.raises(InvalidValue, match="the compressed file is broken"):
        read(tmp_path / "a.jsonl.gz")
    (tmp_path / "b.csv.gz").write_bytes(b"question,answer\nq,1\n")
    with pytest.raises(InvalidValue, match=r"b\.csv\.gz: cannot be read: Not a gzipped file"):
        read(tmp_path / "b.csv.gz")


def test_strict_about_all_means_missing_values_too(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", HEADER + ROWS)
    with pytest.raises(InvalidValue, match="row 3, column 'answer': nothing there"):
        read(path, strict="all")
    with pytest.raises(InvalidValue, match="strict = 'some'"):
        read(path, strict="some")  # type: ignore[arg-type]


def test_other_encodings_are_read_when_named(tmp_path: Path) -> None:
    text = "question,answer\nq,é\n"
    for encoding in ("utf-16", "latin-1"):
        assert read(saved(tmp_path, "a.csv", text.encode(encoding)), encoding=encoding).bank.answer_text == (("é",),)
    with pytest.raises(InvalidValue, match="no such encoding"):
        read(saved(tmp_path, "a.csv", text), encoding="utf-99")
    with pytest.raises(InvalidValue, match="not ascii"):
        read(saved(tmp_path, "a.csv", text), encoding="ascii")


def test_a_mark_says_the_encoding_by_itself(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-8-sig"):
        path = saved(tmp_path, "a.csv", "question,answer\nq,é\n".encode(encoding))
        assert read(path).bank.answer_text == (("é",),)


def test_logs_of_an_evaluation_harness_hold_the_gold_in_the_question_s_record(tmp_path: Path) -> None:
    rows = [
        {
            "doc_id": i,
            "doc": {"question": "What is 1 + 1?", "answer": "2", "label": 1},
            "target": "2",
            "resps": [["It is 3"]],
            "filtered_resps": ["3"] if i else "2",  # a list of one, or bare
            "exact_match": float(not i),
        }
        for i in range(2)
    ]
    path = saved(tmp_path, "samples.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    bank, outcomes, report = read(path)
    assert bank.answer_text == (("2",), ("3",))
    assert outcomes["exact_match"].values.tolist() == [[1], [0]]
    assert list(outcomes) == ["exact_match"]
    assert report.mapping.ignored["target"].startswith("a reference")
    assert "doc.answer" in report.mapping.ignored
    assert not any("filter" in note for note in report.notes)
    twice = [{**row, "filter": name} for row in rows for name in ("strict", "flexible")]
    path = saved(tmp_path, "twice.jsonl", "".join(json.dumps(row) + "\n" for row in twice))
    assert any(
        "rows of the filters flexible, strict are taken for candidates" in note for note in read(path).report.notes
    )


def test_a_list_of_answers_beside_a_prediction_is_the_gold(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.jsonl", '{"question": "q", "prediction": "42", "answers": ["42", "forty-two"]}\n')
    found = read(path)
    assert found.bank.answer_text == (("42",),)
    assert found.report.mapping.ignored["answers"].startswith("a reference")
    assert read(path, {"group.reference": "answers"}).bank.questions[0].groups == {"reference": "42 ¦ forty-two"}


@pytest.mark.parametrize(("value", "graded"), [("42", False), ("1", True), ("0.5", True)])
def test_a_label_is_a_grade_only_if_it_could_be_one(tmp_path: Path, value: str, graded: bool) -> None:
    found = read(saved(tmp_path, "a.csv", f"question,pred,label\nq,7,{value}\n"))
    assert ("label" in found.outcomes) is graded
    assert any("--reference label" in note for note in found.report.notes) is graded
    assert found.report.mapping.ignored.get("label", "").startswith("a reference") is not graded


def test_what_is_no_grade_is_refused_with_what_it_may_be(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"'5': not a grade in \[0, 1\]; empty .* --reference correct if it is"):
        read(saved(tmp_path, "a.csv", "question,answer,correct\nq,7,5\n"))


def test_a_mapping_that_names_nothing_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", HEADER + ROWS)
    with pytest.raises(InvalidValue, match=r"mapping\['answer'\] = 'pred': no such column; the file has question"):
        read(path, {"answer": "pred"})
    with pytest.raises(InvalidValue, match=r"mapping\['colour'\]: not a part of a bank"):
        read(path, {"colour": "answer"})
    with pytest.raises(InvalidValue, match="there is no such file"):
        read(tmp_path / "none.csv")


def test_text_is_never_evaluated_or_unpickled(tmp_path: Path) -> None:
    code = "__import__('os').system('touch /tmp/pwned')"
    bank = read(saved(tmp_path, "a.csv", f'question,answer\nq,"{code}"\n')).bank
    assert bank.answer_text == ((code,),)
    np.save(tmp_path / "objects.npy", np.array([["a", None]], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidValue, match="Python objects, which are code and never loaded"):
        read(tmp_path / "objects.npy")


def test_half_a_surrogate_pair_does_not_break_the_import(tmp_path: Path) -> None:
    row = '{"question": "q", "answer": "\\ud800", "text": "a\\udfffb"}\n'
    bank = read(saved(tmp_path, "a.jsonl", row)).bank
    assert bank.answer_text == (("?",),)
    assert bank.text is not None
    assert bank.text[0, 0] == "a?b"


def test_unequal_n_is_counted_and_never_padded(tmp_path: Path) -> None:
    bank, outcomes, report = read(saved(tmp_path, "a.csv", "question,answer,correct\na,1,1\nb,1,0\nb,2,1\n"))
    assert report.widths == (1, 2)
    assert "questions have 1 to 2 candidates" in report.notes
    assert bank.drawn.tolist() == [[True, False], [True, True]]
    assert np.isnan(outcomes["correct"].values[0, 1])


# ----------------------------------------------------------------------------------------------------------- streaming


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet"])
def test_big_files_are_read_in_blocks_and_give_the_same_bank(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    answers = [[str(value) for value in row] for row in rng.integers(0, 5, (200, 16))]
    bank = Bank.of(answers, scores={"s": rng.random((200, 16))})
    path = write(bank, {"exact": Outcomes.of(bank, rng.integers(0, 2, (200, 16)))}, tmp_path / f"bank.{suffix}")
    if suffix == "parquet":
        table = parquet.read_table(path)
        parquet.write_table(table.replace_schema_metadata(None), path, row_group_size=500)
    largest, add = [0], importing._Rows.add

    def watched(rows: Any, block: Block) -> None:
        largest[0] = max(largest[0], len(block.lines))
        add(rows, block)

    monkeypatch.setattr(importing._Rows, "add", watched)
    seen: list[int] = []
    small = read(path, block=4096, progress=seen.append)
    assert small.report.blocks > 10
    assert largest[0] < 400, "no block holds the file"
    assert seen == sorted(seen)
    assert seen[-1] == 3200
    assert facts(small.bank, small.outcomes) == facts(read(path).bank, read(path).outcomes)
    assert facts(small.bank).keys() == facts(bank).keys()


def test_errors_name_the_row_in_whatever_block_it_lies(tmp_path: Path) -> None:
    rows = [f"q{i},0,1,1,0.5\n" for i in range(2000)]
    rows[1777] = "q1777,0,1,1,oops\n"
    rows.insert(1000, "q1,2,1\n")
    path = saved(tmp_path, "a.csv", HEADER + "".join(rows))
    with pytest.raises(InvalidValue, match=r"row 1002: .*3 cells"):
        read(path, block=2048)
    report = read(path, block=2048, strict="nothing").report
    assert [(problem.where, problem.column) for problem in report.problems] == [("row 1002", ""), ("row 1780", "score")]


def flat_csv(path: Path, size: int, width: int = 64) -> tuple[int, int]:
    """A CSV of about ``size`` bytes: (rows, questions)."""
    rows, question = 0, 0
    with path.open("w") as stream:
        stream.write(HEADER)
        while stream.tell() < size:
            block = [
                f"q{question + i},{n},{(i * n) % 11},{n % 2},0.{i % 997:03d}\n"
                for i in range(500)
                for n in range(width)
            ]
            stream.write("".join(block))
            question, rows = question + 500, rows + len(block)
    return rows, question


def test_memory_beside_the_arrays_stays_bounded(tmp_path: Path) -> None:
    """NumPy tells tracemalloc what it allocates: at the peak, a few times what is returned."""
    rows, questions = flat_csv(tmp_path / "a.csv", 4 << 20)
    read(saved(tmp_path, "warm.csv", HEADER + ROWS))
    tracemalloc.start()
    bank, outcomes, report = read(tmp_path / "a.csv", block=1 << 16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(bank.questions), int(bank.drawn.sum())) == (questions, rows)
    assert report.blocks > 30
    arrays = [bank.answers, bank.drawn, bank.ended, bank.source, bank.samples, bank.layers["score"].values]
    size = sum(array.nbytes for array in [*arrays, outcomes["correct"].values])
    assert peak < 5 * size, f"{peak / size:.1f} times the arrays"


@pytest.mark.soak
def test_two_gigabytes_of_short_rows(tmp_path: Path) -> None:
    """In a process of its own, whose peak is a few times the arrays that it returns."""
    import subprocess
    import sys

    rows, questions = flat_csv(tmp_path / "big.csv", 2 << 30)
    program = f"""
import resource, sys, time
from ramify.store.exchange import read
import pyarrow, pyarrow.csv
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.time()
bank, outcomes, report = read({str(tmp_path / "big.csv")!r})
peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
arrays = [bank.answers, bank.drawn, bank.ended, bank.source, bank.samples, bank.layers["score"].values]
size = sum(array.nbytes for array in [*arrays, outcomes["correct"].values])
assert (len(bank.questions), int(bank.drawn.sum())) == ({questions}, {rows})
print(report.rows, "rows; MiB", size >> 20, "peak", peak >> 20, "s", time.time() - start, file=sys.stderr)
assert peak < 5 * size, (peak, size)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    print(result.stderr)


# ---------------------------------------------------------------------------------------------------------- real files


def accuracy(imported: Imported, name: str) -> tuple[float, float]:
    """(accuracy, Pass@N) over the graded questions, in per cent."""
    grades = imported.outcomes[name].on(imported.bank)
    graded = ~np.isnan(grades).all(axis=1)
    return 100 * float(np.nanmean(grades[graded])), 100 * float(np.nanmax(grades[graded], axis=1).mean())


@real
def test_qwen_math_with_reward_scores() -> None:
    """The README of the data: accuracy 91.0, Pass@8 96, plurality@8 93, reward Best-of-8 94."""
    imported = read(DATA / "qwen25math_rm8" / "math_cot_100.jsonl.gz")
    bank, grades = imported.bank, imported.outcomes["score"].values
    assert bank.shape == (100, 8)
    assert accuracy(imported, "score") == pytest.approx((91.0, 96.0))
    best = bank.layers["pred_score"].values.argmax(axis=1)
    assert grades[np.arange(100), best].sum() == 94
    counts = (bank.answers[:, :, None] == bank.answers[:, None, :]).sum(axis=2) * (bank.answers >= 0)
    assert grades[np.arange(100), counts.argmax(axis=1)].sum() == 93
    assert bank.questions[0].groups == {"level": "Level 3"}
    assert b"gt_cot" not in pickle.dumps(bank)
    assert imported.report.mapping.ignored["answer"].startswith("a reference")


@real
def test_ethsri_rollouts_that_were_never_graded_are_missing_and_not_wrong() -> None:
    """The README of the data: graded rows 11.47 %, Pass@16 66.3 %, 49.1 % not extracted, 1,024 rows never graded."""
    imported = read(DATA / "ethsri_rollouts_n16" / "rollouts.jsonl.gz")
    bank, grades = imported.bank, imported.outcomes["oracle"].values
    assert bank.shape == (640, 16)
    assert accuracy(imported, "oracle") == pytest.approx((11.47, 66.3), abs=0.05)
    assert imported.report.missing["outcome.oracle"] == 1024 == np.isnan(grades).sum()
    graded = ~np.isnan(grades)
    assert 100 * (bank.answers[graded] < 0).mean() == pytest.approx(49.1, abs=0.05)


@real
def test_ethsri_full_text_has_quoted_lines_and_no_sample_column() -> None:
    imported = read(DATA / "ethsri_rollouts_n16" / "step-1.full.tsv.gz")
    assert imported.bank.shape == (64, 16)
    assert imported.bank.drawn.all()
    assert imported.report.mapping.parts["answer"] == "extracted_answer"
    assert accuracy(imported, "oracle_reward")[0] == pytest.approx(
        12.695, abs=0.01
    )  # 130 of 1,024, counted in the file


@real
@pytest.mark.parametrize(
    ("name", "shape", "truncated", "tokens"),
    [("add2_fewshot_q40_n16", (40, 16), 0, 13194), ("mawps_singleop_fewshot_q30_n16", (30, 16), 55, 19987)],
)
def test_smollm_with_tokens_and_top_20(name: str, shape: tuple[int, int], truncated: int, tokens: int) -> None:
    """The expected counts are those of the lines of the file, read with gzip and json alone."""
    path = DATA / "smollm2_local_top20" / f"{name}.jsonl.gz"
    bank, outcomes, report = read(path)
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert bank.shape == shape
    assert bank.tokens is not None
    assert bank.tokens.size == tokens == sum(len(row["tokens"]) for row in rows)
    assert bank.tokens["top_ids"].shape == (tokens, 20)
    assert bank.proposals[0].top == 20
    assert (bank.ended == bank.endings.index("length")).sum() == truncated
    assert np.nanmean(outcomes["correct"].values) == np.mean([row["correct"] for row in rows])
    row = rows[37]
    part = bank.tokens.of(row["q"], row["sample"])
    assert part["token"].tolist() == row["tokens"]
    assert part["logprob"].tolist() == row["logprob"]
    assert part["rank"].tolist() == [rank + 1 for rank in row["rank"]]
    assert np.array_equal(part["top_logprobs"], np.array(row["top20_logprob"], dtype=np.float32))
    assert "ranks count from 0 in the file, and from 1 in the bank" in report.notes
    light = read(path, tokens=False).bank
    assert light.tokens is None


@real
def test_scorio_is_one_question_in_lists() -> None:
    """The README of the data: plurality picks 271 (34 votes to 32), Best-of-N picks 821."""
    bank, outcomes, _ = read(DATA / "scorio_aime25_q06" / "aime25_q06_compass.json")
    assert bank.shape == (1, 80)
    counts = np.bincount(bank.answers[0])
    assert sorted(counts.tolist())[-2:] == [32, 34]
    assert bank.answer_text[0][counts.argmax()] == "271"
    best = int(bank.layers["scores"].values[0].argmax())
    assert bank.answer(0, best) == "821"
    assert outcomes["correct"].values[0, best] == 1


@real
@pytest.mark.parametrize(
    ("kind", "given", "outcome", "expected"),
    [
        ("standard", {}, "accs", (7.34, 33.0)),
        ("cot", {"outcome.correct": "infos.r"}, "correct", (4.03, 49.0)),
    ],
)
def test_game_of_24_samples(
    kind: str, given: dict[str, str | None], outcome: str, expected: tuple[float, float]
) -> None:
    """The README of the data: direct 7.34 %, Pass@100 33 %; chain of thought 4.03 %, 49 %."""
    name = f"game24__gpt-4_0.7_naive_{kind}_sample_100_start900_end1000.json.gz"
    imported = read(DATA / "tot_gpt4_logs" / name, given)
    assert imported.bank.shape == (100, 100)
    assert accuracy(imported, outcome) == pytest.approx(expected)
    assert "no answers were recorded: every candidate is ⊥" in imported.report.notes


def test_the_report_reads_as_a_page(tmp_path: Path) -> None:
    page = str(read(saved(tmp_path, "a.csv", HEADER + ROWS)).report)
    assert "2 questions x 2 = 4 candidates" in page
    assert "missing  answer: 1 of 4" in page


def test_what_is_quoted_from_a_file_cannot_steer_a_terminal(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", HEADER + "q,0,1,1,1\nq,\x1b[2J,1,1,1\n")
    with pytest.raises(InvalidValue) as caught:
        read(path)
    assert "\x1b" not in str(caught.value)

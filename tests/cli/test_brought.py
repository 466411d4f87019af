"""What people bring: gold under many names, partial grades, unfinished scores, files with dots in their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank, Layer, Outcomes, Proposal
from ramify.store import Store
from tests.cli.conftest import Run, rows, written

# Two questions of four candidates; 0/1 predictions, and gold that could be taken for grades. Right: 1 and 3 of 4.
BINARY = [{"id": f"q{q}", "pred": int(i == 0), "label": gold} for q, gold in enumerate((1, 0)) for i in range(4)]


def answered(said: list[str], **more: Any) -> list[dict[str, Any]]:
    """Candidates of one question ``q``."""
    return [{"question": "q", **more, "prediction": each} for each in said]


def test_a_named_reference_wins_over_the_guess_that_it_holds_grades(run: Run) -> None:
    written("bin.jsonl", BINARY)
    found = run("profile", "bin.jsonl", "--reference", "label", "--no-page", "--json").found
    assert found["profile"][0]["Pass@k"]["value"] == 0.5  # 1/4 and 3/4
    assert found["profile"][1]["Pass@k"]["value"] == 0.75  # 1 - C(3,2)/C(4,2) = 1/2, and 1
    assert found["grades"] == "equal to label"
    shown = run("profile", "bin.jsonl", "--reference", "label", "--no-page").out
    assert "label: a reference" in shown
    listed = rows()
    written("both.jsonl", [{**row, "gold": "none of them"} for row in listed])
    both = run("profile", "both.jsonl", "--reference", "gold", "--no-page", "--json").found
    assert both["never_solved"] == 1
    own = run("profile", "both.jsonl", "--reference", "gold", "--grades", "correct", "--no-page", "--json").found
    assert own["profile"][0]["Pass@k"]["value"] == pytest.approx(np.mean([row["correct"] for row in listed]))


@pytest.mark.parametrize("command", [["decide"], ["stop"], ["compare", "bin.jsonl"], ["rank", "bin.jsonl"]])
def test_how_a_file_was_understood_is_said_beside_the_result(run: Run, command: list[str]) -> None:
    written("bin.jsonl", BINARY)
    ran = run(*command, "bin.jsonl", "--json")
    assert ran.code == 0, ran.err
    assert "answer <- pred, outcome.label <- label" in ran.err
    assert "--reference label" in ran.err


def test_gold_is_not_held_against_itself_nor_against_nothing(run: Run) -> None:
    written("a.jsonl", [{"question": "q", "response": "42", "answer": "42"}] * 2)
    ran = run("profile", "a.jsonl", "--reference", "answer")
    assert ran.code == 2
    assert "taken for the answers themselves" in ran.err
    assert "--map answer=response" in ran.err
    written("b.jsonl", [{"question": "q", "output": said, "expected": "42"} for said in ("42", "41")])
    ran = run("profile", "b.jsonl", "--reference", "expected")
    assert ran.code == 2
    assert "--map answer=output" in ran.err
    mended = run("profile", "b.jsonl", "--reference", "expected", "--map", "answer=output", "--no-page", "--json")
    assert mended.found["profile"][0]["Pass@k"]["value"] == 0.5
    assert "--map answer=output" in run("profile", "b.jsonl").err


def test_any_of_several_right_answers_is_right(run: Run) -> None:
    written("a.jsonl", answered(["42", "forty-two", "41", "42.0"], gold=["42", "forty-two"]))
    found = run("profile", "a.jsonl", "--no-page", "--json").found
    assert found["profile"][0]["Pass@k"]["value"] == 0.75


def test_questions_without_gold_stay_ungraded_and_are_named(run: Run) -> None:
    written("a.jsonl", [*answered(["42"], gold="42"), {"question": "p", "prediction": "42", "gold": None}])
    ran = run("profile", "a.jsonl", "--no-page")
    assert "1 questions have no gold, such as 'p', and stay ungraded" in ran.out
    written("own.jsonl", [{"id": "q", "question": "?", "gold": "42"}, {"id": "p", "question": "?", "gold": ""}])
    for command in (
        ["profile", "a.jsonl", "--task", "Own('own.jsonl')"],
        ["sample", "runs/x", "--task", "Own('own.jsonl')", "--model", "tiny"],
    ):
        refused = run(*command)
        assert refused.code == 2
        assert "no gold in 1 of 2 records of own.jsonl: record 2 (question 'p')" in refused.err
    assert not Path("runs/x").exists()


def test_a_study_refuses_questions_without_gold(run: Run) -> None:
    written("own.jsonl", [{"id": "q", "question": "?", "gold": "42"}, {"id": "p", "question": "?", "gold": None}])
    Path("study.toml").write_text(
        "[study]\ntitle = 'mine'\nn = 1\n[[task]]\ntask = \"Own('own.jsonl')\"\n[[model]]\nmodel = \"Pocket('tiny')\"\n"
        "[[protocol]]\nname = 'vote'\nrule = 'Plurality()'\n"
    )
    ran = run("run", "study.toml", "--check")
    assert ran.code == 2
    assert "no gold in 1 of 2 records" in ran.err


# ---------------------------------------------------------------------------------------------------- partial grades


def partly() -> list[dict[str, Any]]:
    """Grades of thirds, so that the vote's winners are 2/3 and 1/3."""
    return [
        {"question": name, "answer": answer, "correct": grade}
        for name, grade in (("a", 2 / 3), ("b", 1 / 3))
        for answer in ("x", "x", "y")
    ]


def test_partial_grades_are_no_accuracy_until_a_threshold_says_what_is_right(run: Run) -> None:
    written("p.jsonl", partly())
    for command in (["decide"], ["decide", "--k", "1,2"], ["stop"]):
        verb, *options = command
        assert "mean grade" in run(verb, "p.jsonl", *options).out
        told = run(verb, "p.jsonl", *options, "--threshold", "0.5").out
        assert "mean grade" not in told
        assert "accuracy" in told
    found = run("decide", "p.jsonl", "--json").found
    assert (found["what"], found["rules"][0]["accuracy"]["value"]) == ("mean grade", pytest.approx(0.5))
    both = ["compare", "p.jsonl", "p.jsonl", "--rule", "Plurality()"]
    assert "mean grade of what is submitted" in run(*both).out
    strict = run(*both, "--threshold", "0.7", "--json").found
    assert [side["value"] for side in strict["sides"]] == [0, 0]
    assert strict["what"] == "accuracy of what is submitted"
    ranked = run("rank", "p.jsonl", "p.jsonl", "--threshold", "0.3", "--json").found
    assert [system["score"] for system in ranked["systems"]] == [1, 1]


@pytest.mark.parametrize("value", ["nan", "7", "0", "-1"])
@pytest.mark.parametrize("command", ["profile", "decide", "stop"])
def test_a_threshold_is_a_grade(run: Run, command: str, value: str) -> None:
    written("p.jsonl", partly())
    ran = run(command, "p.jsonl", "--threshold", value)
    assert ran.code == 2
    assert "use a number in (0, 1]" in ran.err


# ------------------------------------------------------------------------------------------------- scores of a part


def test_scores_of_an_unfinished_run_are_counted_and_completed(run: Run) -> None:
    def drawn(n: int) -> Bank:
        return Bank.of({q: ["5", "4", "4"][:n] for q in ("a", "b")}, scores={"raw": [[0.1, 0.9, 0.2][:n]] * 2})

    store, more = Store.create("mybank"), drawn(3)
    store.add_bank(drawn(2), {"correct": Outcomes.of(drawn(2), np.ones((2, 2)))})
    score = ["score", "mybank", "--evidence", "half=Transformed(Score('raw'), Sigmoid())"]
    assert run(*score).code == 0
    store.add_bank(more, {"correct": Outcomes.of(more, np.ones((2, 3)))})
    for command in (["decide", "mybank"], ["stop", "mybank"]):
        ran = run(*command, "--rule", "BestOfN('half')")
        assert "2 of 6 candidates have no score 'half'" in ran.out
        assert "the same `ramify score` command" in ran.out
    compared = run("compare", "mybank", "--rule", "BestOfN('half')", "--rule", "Plurality()").out
    assert "2 candidates have no score 'half'" in compared
    ran = run(*score, "--json")
    assert ran.code == 0, ran.err
    assert ran.found["layers"][0]["missing"] == 0
    assert run("decide", "mybank", "--rule", "BestOfN('half')", "--json").found["unscored"] == {}
    assert run(*score).code == 0, "complete already"
    other = run("score", "mybank", "--evidence", "half=Score('raw')")
    assert other.code == 2
    assert "of Transformed(" in other.err
    assert "a new version is a new name" in other.err


def test_a_layer_that_is_topped_up_keeps_what_it_has(run: Run) -> None:
    bank = Bank.of({"a": ["5", "4"]})
    store = Store.create("mybank")
    store.add_bank(bank)
    store.add_layer("s", bank, Layer(np.array([[1.0, np.nan]]), "mine"))
    store.add_layer("s", bank, Layer(np.array([[1.0, 2.0]]), "mine"), more=True)
    with store.snapshot() as snapshot:
        assert snapshot.bank().layers["s"].values.tolist() == [[1, 2]]


# ------------------------------------------------------------------------------------------------------ names of files


def test_files_with_dots_in_their_names_have_pages_and_runs_of_their_own(run: Run) -> None:
    for name in ("qwen2.5.jsonl", "qwen2.7.jsonl", "a.jsonl"):
        written(name, rows(4, 2))
    Path("a.csv").write_text("question,answer,correct\nq,7,1\nq,8,0\n")
    for name in ("qwen2.5.jsonl", "a.csv"):
        assert run("profile", name).code == 0
    assert {page.name for page in Path().glob("*.html")} == {"qwen2.5-profile.html", "a.csv-profile.html"}
    assert run("bank", "import", "qwen2.5.jsonl", "b").code == 0
    with Store.open(Path("b")).snapshot() as snapshot:
        assert [proposal.run for proposal in snapshot.bank().proposals] == ["qwen2.5"]
    ranked = run("rank", "qwen2.5.jsonl", "qwen2.7.jsonl", "--json").found
    assert {system["name"] for system in ranked["systems"]} == {"qwen2.5", "qwen2.7"}


# ------------------------------------------------------------------------------------------------------ false certainty


@pytest.mark.parametrize(
    ("grades", "why"),
    [
        ([[1]], "0 questions have two graded candidates or more"),
        ([[1, 0], [0, 1]], "2 questions have two"),
        ([[1, 1]] * 5, "all 10 graded candidates are right"),
        ([[0, 0]] * 5, "all 10 graded candidates are wrong"),
    ],
)
def test_nothing_is_predicted_from_what_says_nothing(run: Run, grades: list[list[int]], why: str) -> None:
    table = [{"question": f"q{q}", "answer": "7", "correct": grade} for q, row in enumerate(grades) for grade in row]
    written("a.jsonl", table)
    assert f"No prediction for fresh candidates: {why}" in run("profile", "a.jsonl", "--no-page").out


# ------------------------------------------------------------------------------------------------- spellings, responses


def test_spellings_of_one_answer_vote_together_where_asked(run: Run) -> None:
    written("a.jsonl", answered(["7", "7", "42", "42.0", r"\frac{84}{2}"], gold="42"))
    apart = run("decide", "a.jsonl")
    assert "1 questions have one answer in several spellings, such as '42' and '42.0' of 'q'" in apart.out
    assert "--canonical" in apart.out
    assert run("decide", "a.jsonl", "--json").found["rules"][0]["answers"] == {"q": "7"}
    together = run("decide", "a.jsonl", "--canonical", "--json").found["rules"][0]
    assert (together["answers"], together["accuracy"]["value"]) == ({"q": "42"}, 1)
    assert "--canonical" not in run("decide", "a.jsonl", "--canonical").out
    assert run("stop", "a.jsonl", "--stop", "AtMost(9)", "--canonical", "--json").found["stops"][0]["accuracy"] == 1
    assert "--canonical" in run("audit", "a.jsonl").out


@pytest.fixture
def responses(run: Run) -> str:
    written("own.jsonl", [{"id": name, "question": "?", "answer": "42"} for name in ("p", "q")])
    said = [(name, f"So \\boxed{{{answer}}}") for name in ("p", "q") for answer in ("42", "41", "42.0")]
    written("r.jsonl", [{"question_id": name, "response": text} for name, text in said])
    return "r.jsonl"


@pytest.mark.parametrize(
    "command", [["decide"], ["stop"], ["compare", "r.jsonl", "--rule", "Plurality()"], ["rank", "r.jsonl"]]
)
def test_responses_are_read_by_a_task_everywhere(run: Run, responses: str, command: list[str]) -> None:
    ran = run(*command, responses, "--task", "Own('own.jsonl')", "--json")
    assert ran.code == 0, ran.err
    assert "read and graded by Own('own.jsonl'): ok 1.000" in ran.err
    if command == ["decide"]:
        assert ran.found["rules"][0]["accuracy"]["value"] == 1
    else:
        untold = run(*command, responses)
        assert untold.code == 2
        assert "--task" in untold.err
    both = run(*command, responses, "--task", "Own('own.jsonl')", "--reference", "gold")
    assert both.code == 2
    assert "name one of them" in both.err


def test_an_imported_bank_keeps_grades_against_gold(run: Run) -> None:
    listed = rows()
    written("my.jsonl", listed, leave=("correct",))
    told = run("bank", "import", "my.jsonl", "mybank")
    assert "nothing is graded: --reference gold" in told.out
    refused = run("profile", "mybank")
    assert refused.code == 2
    assert "`ramify bank import FILE mybank --reference COLUMN`" in refused.err
    assert run("bank", "import", "my.jsonl", "mybank", "--reference", "gold").code == 0
    found = run("profile", "mybank", "--no-page", "--json").found
    assert found["profile"][0]["Pass@k"]["value"] == pytest.approx(np.mean([row["correct"] for row in listed]))
    assert "gold" not in json.dumps(run("bank", "info", "mybank", "--json").found["rows"])


# ---------------------------------------------------------------------------------------------- errors that name a cure


def test_a_run_that_is_not_finished_says_how_to_go_on(run: Run) -> None:
    Store.create("runs/mine/bank").add_bank(Bank.of({"q": ["7"]}))
    for command in ("profile", "report"):
        ran = run(command, "runs/mine")
        assert ran.code == 2
        assert "the run is not finished; go on with the same `ramify sample`" in ran.err
    Store.create("runs/none/bank")
    ran = run("compare", "runs/mine", "runs/none")
    assert ran.code == 2
    assert "runs/none is empty: no candidate is finished" in ran.err


@pytest.mark.parametrize("part", ["layers", "shards", "questions"])
@pytest.mark.parametrize("whole", [False, True])
def test_damage_is_told_by_the_file_and_with_what_to_do(run: Run, part: str, whole: bool) -> None:
    written("my.jsonl", rows())
    assert run("bank", "import", "my.jsonl", "mybank").code == 0
    assert run("bank", "compact", "mybank").code == 0
    damaged = [file for file in Path("mybank", part).glob("*.parquet") if part != "shards" or "attempts" in file.name]
    for file in damaged:
        content = file.read_bytes()
        file.write_bytes(b"nothing" if whole else content[:8] + b"\0" * 200 + content[208:])
    ran = run("decide", "mybank")
    assert ran.code == 2
    assert f"mybank/{part}/" in ran.err
    assert "`ramify bank verify mybank`" in ran.err


def test_a_rule_over_pairs_names_the_option_that_it_needs(run: Run) -> None:
    written("my.jsonl", rows())
    ran = run("decide", "my.jsonl", "--rule", "MBR()")
    assert ran.code == 2
    assert '--utility "RougeL()"' in ran.err
    assert "Candidates(" not in ran.err
    assert run("decide", "my.jsonl", "--rule", "MBR()", "--utility", "RougeL()").code == 0
    both = ["--rule", "MBR()", "--rule", "Plurality()"]
    assert run("compare", "my.jsonl", *both, "--utility", "RougeL()").code == 0


def test_questions_without_a_candidate_are_told_in_the_first_lines(run: Run) -> None:
    bank = Bank.of({"a": ["5", "5"], "b": ["4", "4"], "c": []}, proposal=Proposal("search"))
    Store.create("mybank").add_bank(bank, {"correct": Outcomes.of(bank, np.where(bank.drawn, 1.0, np.nan))})
    ran = run("profile", "mybank", "--no-page")
    assert ran.code == 0, ran.err
    first = "1 of 3 questions have no candidate, and are in no number here: what a run submitted counts them as wrong."
    assert ran.out.split("\n\n")[1].startswith(first)


def test_only_so_many_answers_are_looked_at_for_spellings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramify.cli.submit.SPELLED", 2)
    table = [{"question": name, "answer": answer} for name in ("p", "q") for answer in ("42", "42.0")]
    written("a.jsonl", table)
    assert "1 of the first 1 questions have one answer" in run("decide", "a.jsonl").out

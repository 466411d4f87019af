"""The verbs over banks that are there: decide, stop, compare, rank, audit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ramify.bank import Bank, Outcomes
from ramify.decide import BestOfN, Plurality
from ramify.metrics import replay
from ramify.store import Store
from ramify.store.exchange import read
from tests.cli.conftest import Run, rows, written

TRAP: dict[str, list[str | None]] = {"q1": ["5", "5", "4"], "q2": ["1", "2", "2"], "q3": [None, "9", "8"]}
RIGHT = {"q1": "4", "q2": "2", "q3": "9"}
SCORE = [[0.1, 0.2, 0.9], [0.9, 0.5, 0.4], [1.0, 0.8, 0.3]]


@pytest.fixture
def bank() -> Bank:
    return Bank.of(TRAP, scores={"score": SCORE})


@pytest.fixture
def folder(run: Run, bank: Bank) -> str:
    grades = [[float(answer == RIGHT[name]) for answer in answers] for name, answers in TRAP.items()]
    Store.create("mybank").add_bank(bank, {"correct": Outcomes.of(bank, grades)})
    return "mybank"


def test_decide_submits_what_the_rule_submits_and_says_what_it_is_worth(run: Run, folder: str) -> None:
    ran = run("decide", folder, "--rule", "Plurality()", "--rule", "BestOfN('score')", "--json")
    vote, best = ran.found["rules"]
    assert vote["answers"] == {"q1": "5", "q2": "2", "q3": "9"}  # ⊥ does not vote; ties go to the earliest
    assert vote["accuracy"]["value"] == pytest.approx(2 / 3)
    assert best["answers"] == {"q1": "4", "q2": "1", "q3": "9"}
    assert best["accuracy"]["value"] == pytest.approx(2 / 3)
    assert ran.found["shared_bank"] is True
    assert "5" in run("decide", folder).out


def test_a_curve_is_the_replay_of_the_rule(run: Run, folder: str, bank: Bank) -> None:
    found = run("decide", folder, "--rule", "BestOfN('score')", "--k", "1,2,3", "--json").found
    grades = [[float(answer == RIGHT[name]) for answer in answers] for name, answers in TRAP.items()]
    exact = replay(BestOfN("score"), bank, Outcomes.of(bank, grades), evidence=["score"], budgets=[1, 2, 3])
    assert [row["accuracy"]["value"] for row in found["rows"]] == pytest.approx(exact.mean.tolist())
    assert found["kind"] == "shared-bank"


def test_decide_works_without_grades(run: Run) -> None:
    Path("a.csv").write_text("question,answer\nq,7\nq,7\nq,8\n")
    found = run("decide", "a.csv", "--json").found
    assert found["rules"][0]["answers"] == {"q": "7"}
    assert found["rules"][0]["accuracy"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["decide", "mybank", "--rule", "Pluralitee()"], "did you mean Plurality?"),
        (["decide", "mybank", "--rule", "TopK(4)"], "ramify methods --kind rule"),
        (["decide", "mybank", "--rule", "BestOfN('reward')"], "--evidence reward=mean_logprob"),
        (["decide", "mybank", "--evidence", "logp"], "write NAME=TEXT"),
        (["decide", "mybank", "--evidence", "logp=mean_logprob"], "needs the token column 'logprob'"),
        (["decide", "mybank", "--k", "none"], "write numbers >= 1"),
        (["decide", "mybank", "--rule", "SoftmaxVote(temperature=-1)"], "SoftmaxVote.temperature = -1"),
        (["decide", "nothing.csv"], "there is no such file"),
        (["decide", "mybank", "--grades", "exact"], "mybank has correct"),
        (["stop", "mybank", "--stop", "Plurality()"], "ramify methods --kind stop"),
        (["profile", "mybank", "--level", "2"], "--level 2.0: use a coverage in (0, 1)"),
        (["tasks", "Own('mybank')"], "that is a folder: name one file in it"),
        (["compare", "mybank"], "Give another bank, or two rules"),
        (["rank", "mybank"], "two banks or more"),
        (["profile", "mybank", "--map", "answer=x"], "columns are of files"),
        (["score", "mybank"], "--evidence NAME=TEXT"),
        (["score", "a.csv", "--evidence", "x=mean_logprob"], "ramify bank import a.csv mybank"),
        (["score", "mybank", "--evidence", "score=Score('score')"], "a new version is a new name"),
        (["methods", "NoSuchThing"], "`ramify methods` lists all"),
        (["methods", "--kind", "nonsense"], "there are cost, utility"),
        (["replay", "mybank"], "no run directory"),
    ],
)
def test_bad_input_names_the_remedy_and_is_status_2(run: Run, folder: str, arguments: list[str], message: str) -> None:
    Path("a.csv").write_text("question,answer\nq,7\n")
    ran = run(*arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.startswith("ramify: ")
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "row 3, column 'score': 'high': not a number; empty the cell if it is missing, or leave the column out: "),
        ([], "--map layer.score=\n"),
        (["--map", "answer=said"], "--map answer=said: no such column"),
        (["--map", "wrong=said"], "--map wrong: not a part of a bank"),
        (["--map", "layer.score=", "--reference", "truth"], "--reference truth: no such column"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_options(run: Run, arguments: list[str], message: str) -> None:
    Path("a.csv").write_text("question,answer,score,correct\nq,7,0.5,1\nq,nan,high,0\n")
    ran = run("decide", "a.csv", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "mapping[" not in ran.err
    assert "--bottom nan`" in run("profile", "a.csv", "--map", "layer.score=", "--no-page").out


def test_a_stop_is_replayed_and_says_that_it_saves_nothing(run: Run) -> None:
    written("my.jsonl", rows())
    ran = run("stop", "my.jsonl", "--stop", "Esc(2)", "--stop", "AtMost(3)")
    assert "Retrospective" in ran.out
    found = run("stop", "my.jsonl", "--stop", "AtMost(3)", "--json").found
    assert found["label"] == "retrospective"
    assert found["stops"][0]["samples"] == 3


def test_a_stop_that_never_stops_loses_nothing_to_all_candidates(run: Run) -> None:
    answers = {"q1": ["4", "5"], "q2": ["7", "7"]}  # a tie goes to the earliest: it is right in half of the orders
    right = {"q1": "4", "q2": "7"}
    table = [{"question": q, "answer": a, "correct": int(a == right[q])} for q, each in answers.items() for a in each]
    written("tied.jsonl", table)
    found = run("stop", "tied.jsonl", "--stop", "AtMost(9)", "--json").found
    [row] = found["stops"]
    assert (row["stopped"], row["same_answer"]) == (0, 1)
    assert row["accuracy"] == found["whole"]["accuracy_in_orders"] < found["whole"]["accuracy"]["value"] == 1


def test_scores_are_kept_as_layers_and_read_by_rules(run: Run, folder: str) -> None:
    ran = run("score", folder, "--evidence", "half=Transformed(Score('score'), Sigmoid())", "--json")
    assert ran.code == 0, ran.err
    assert ran.found["layers"][0]["scored"] == 9
    assert run("decide", folder, "--rule", "BestOfN('half')", "--json").found["rules"][0]["answers"]["q1"] == "4"
    assert "half" in run("bank", "info", folder).out


def test_two_banks_are_compared_on_shared_questions(run: Run) -> None:
    one, other = rows(), rows(questions=24, seed=1)
    written("one.jsonl", one)
    written("two.jsonl", other)
    found = run("compare", "one.jsonl", "two.jsonl", "--json").found
    means = [np.mean([row["correct"] for row in each[:160]]) for each in (one, other)]
    assert found["difference"]["value"] == pytest.approx(means[1] - means[0])
    assert (found["questions"], found["left_out"]) == (20, 4)
    assert found["difference"]["covers"] == ["questions"]
    ruled = run("compare", "one.jsonl", "two.jsonl", "--rule", "Plurality()", "--json").found
    banks = [read(name).bank for name in ("one.jsonl", "two.jsonl")]
    worth = []
    for bank in banks:
        choice = Plurality()(bank.candidates())
        answers = [bank.answer(q, int(w)) for q, w in enumerate(choice.winner)]
        worth.append(np.mean([answer == str(q) for q, answer in enumerate(answers[:20])]))
    assert ruled["difference"]["value"] == pytest.approx(worth[1] - worth[0])


@pytest.mark.parametrize("more", [[], ["--rule", "Plurality()"]])
def test_what_is_compared_and_its_difference_are_of_the_same_questions(run: Run, more: list[str]) -> None:
    one, other = rows(), rows(seed=1)
    for row in other:
        if row["question_id"] == other[0]["question_id"]:
            row["correct"] = None  # the first question has no grades on one side: it is in no number
    written("one.jsonl", one)
    written("two.jsonl", other)
    found = run("compare", "one.jsonl", "two.jsonl", *more, "--json").found
    first, second = (side["value"] for side in found["sides"])
    assert found["difference"]["value"] == pytest.approx(second - first)
    assert (found["questions"], found["left_out"], found["ungraded"]) == (19, 0, 1)
    assert "1 without grades of both" in run("compare", "one.jsonl", "two.jsonl", *more).out


def test_two_rules_on_one_bank_say_that_they_shared_it(run: Run, folder: str) -> None:
    ran = run("compare", folder, "--rule", "Plurality()", "--rule", "BestOfN('score')")
    assert "the interval includes zero: no difference is shown" in ran.out
    assert "Both rules chose from the same candidates." in ran.out


def test_a_rerun_that_differs_is_status_1(run: Run) -> None:
    written("one.jsonl", rows())
    written("other.jsonl", [{**row, "prediction": "x", "correct": False} for row in rows()])
    same = run("compare", "one.jsonl", "one.jsonl", "--rerun", "--json")
    assert same.code == 0
    assert same.found["rerun"]["different"] is False
    ran = run("compare", "one.jsonl", "other.jsonl", "--rerun")
    assert ran.code == 1
    assert "different" in ran.out


def test_systems_are_ranked_by_their_means(run: Run) -> None:
    for seed, name in enumerate(("a", "b", "c")):
        written(f"{name}.jsonl", rows(seed=seed))
    found = run("rank", "a.jsonl", "b.jsonl", "c.jsonl", "--json").found
    means = {name: np.mean([row["correct"] for row in rows(seed=seed)]) for seed, name in enumerate("abc")}
    assert [row["name"] for row in found["systems"]] == sorted(means, key=lambda name: -means[name])
    for row in found["systems"]:
        assert row["score"] == pytest.approx(means[row["name"]])
        assert row["low"] <= row["score"] <= row["high"]


def test_the_audit_names_what_is_wrong_and_where(run: Run) -> None:
    listed = [
        {"qid": "a", "answer": "7", "correct": True, "response": "x" * 300, "finish_reason": "stop"},
        {"qid": "a", "answer": "7", "correct": False, "response": "x" * 300, "finish_reason": "length"},
        {"qid": "a", "answer": "7.0", "correct": True, "response": " ", "finish_reason": "stop"},
        {"qid": "b", "answer": "", "correct": True, "response": "\x1b[31mred", "finish_reason": "stop"},
    ]
    written("bad.jsonl", listed)
    ran = run("audit", "bad.jsonl", "--json")
    assert ran.code == 1, "one answer is graded both ways"
    found = {each["what"]: each["many"] for each in ran.found["findings"]}
    assert found == {
        "correct: one answer graded both ways": 1,
        "correct: right without an answer": 1,
        "no answer": 1,
        "at the cap": 1,
        "questions with one answer spelled in two ways": 1,
        "long responses that are copies": 1,
        "empty responses": 1,
        "responses with control characters": 1,
        "questions with fewer candidates": 1,
    }
    assert run("audit", "bank", "bad.jsonl").code == 1, "the long form"
    written("good.jsonl", [{"qid": name, "answer": "7", "correct": 1} for name in "aabb"])
    clean = run("audit", "good.jsonl", "--strict")
    assert (clean.code, clean.out) == (0, "good.jsonl: nothing to look at was found\n")


def test_methods_are_listed_from_their_docstrings(run: Run) -> None:
    found = run("methods", "--kind", "rule", "--json").found["methods"]
    named = {row["name"]: row for row in found}
    assert named["Plurality"]["text"] == "Plurality(fallback=None)"
    assert all(row["meaning"] for row in found)
    one = run("methods", "TopP").out
    assert "TopP(p, boundary='reach')" in one
    assert "Holtzman" in one
    assert "mean_logprob" in run("methods", "--kind", "evidence").out


def test_every_method_has_a_meaning(run: Run) -> None:
    assert [row["name"] for row in run("methods", "--json").found["methods"] if not row["meaning"]] == []


def test_tasks_and_models_are_listed(run: Run) -> None:
    assert "Countdown(level, effort='medium')" in run("tasks").out
    found = run("tasks", "Countdown(4)", "--questions", "2", "--json").found
    assert found["questions"][0]["prompt"] == "M15 17 17 18:37\n"
    models = {row["name"]: row for row in run("models", "--json").found["checkpoints"]}
    assert models["main"]["parameters"] == 4852992
    assert models["main"]["heads"] is True


@pytest.fixture
def responses(run: Run) -> str:
    """Responses without answers, and a file of what was asked."""
    asked = [{"id": "a", "question": "6 times 7?", "answer": "42"}, {"id": "b", "question": "Half?", "answer": "1/2"}]
    written("questions.jsonl", asked)
    said = [
        ("a", r"so it is \boxed{42}", "stop"),
        ("a", "the answer is 42, I think", "stop"),
        ("b", r"\boxed{0.5}", "stop"),
        ("b", r"\boxed{2", "length"),
        ("c", r"\boxed{3}", "stop"),
    ]
    written("my.jsonl", [{"question_id": q, "response": text, "finish_reason": ended} for q, text, ended in said])
    return "my.jsonl"


def test_the_audit_of_answers_lists_what_extraction_may_have_got_wrong(run: Run, responses: str) -> None:
    ran = run("audit", "answers", responses, "--task", "Own('questions.jsonl')", "--json")
    assert ran.code == 0, ran.err
    assert ran.found["counts"] == {"reference in text": 1, "cap hit": 1, "no answer": 1, "unclosed box": 1}
    assert (ran.found["candidates"], ran.found["left_out"]) == (4, 1)
    page = run("audit", "answers", responses, "--task", "Own('questions.jsonl')").out
    assert "a, 1" in page
    assert "1 questions are not of this task" in page
    assert "it is not verifiable" in run("audit", "answers", responses, "--task", "DescribeFacts()").err
    refused = run("audit", "answers", responses, "--task", "Countdown(4)")
    assert refused.code == 2
    assert "Question.prompt" in refused.err  # of a generated task, what is right follows from the prompt


def test_responses_are_read_and_graded_by_a_task(run: Run, responses: str) -> None:
    ran = run("profile", responses, "--task", "Own('questions.jsonl')", "--json", "--no-page")
    assert ran.code == 0, ran.err
    assert ran.found["profile"][0]["Pass@k"]["value"] == 0.5  # two of four: what was not extracted is wrong
    assert ran.found["no_answer"] == 0.5
    written("questions.jsonl", [{"id": "z", "question": "?", "answer": "1"}])
    refused = run("profile", responses, "--task", "Own('questions.jsonl')")
    assert refused.code == 2
    assert "is none of its ids, such as 'z'" in refused.err


def test_what_was_taken_for_the_grades_is_no_evidence(run: Run) -> None:
    Path("a.csv").write_text("question,sample,answer,score\nq,0,7,0\nq,1,7,0\nq,2,8,1\n")
    assert run("decide", "a.csv", "--rule", "Plurality()", "--json").found["rules"][0]["accuracy"]["value"] == 0.0
    for more in ((), ("--k", "1,2")):
        ran = run("decide", "a.csv", "--rule", "BestOfN('score')", *more)
        assert ran.code == 2
        assert "it has seen references" in ran.err


def test_a_missing_grade_leaves_out_a_question_and_not_the_number(run: Run) -> None:
    """Four alike for one question, two of each for another, of which one has no grade: the first alone is in."""
    listed = [{"question": "a", "answer": "1", "correct": 1}] * 4
    listed += [{"question": "b", "answer": "1", "correct": 1}] * 2 + [{"question": "b", "answer": "2"}] * 2
    written("my.jsonl", listed)
    ran = run("stop", "my.jsonl", "--stop", "AdaptiveConsistency(0.95)", "--json")
    assert ran.code == 0, ran.err
    (row,) = ran.found["stops"]
    assert row["accuracy"] == 1.0
    assert row["left_out"] == 1
    said = run("stop", "my.jsonl", "--stop", "AdaptiveConsistency(0.95)").out
    assert "Questions left out, because what would be submitted has no grade: AdaptiveConsistency(" in said


def test_rows_at_different_k_say_whom_they_leave_out(run: Run) -> None:
    listed = [
        {"question": q, "answer": "1", "correct": q != "c"} for q, n in (("a", 4), ("b", 4), ("c", 2)) for _ in range(n)
    ]
    written("my.jsonl", listed)
    ran = run("decide", "my.jsonl", "--k", "2,4,99")
    assert ran.code == 0, ran.err
    two, four, beyond = (line.split() for line in ran.out.splitlines() if line.startswith("Plurality"))
    assert (two[1], two[2], two[-1]) == ("2", "0.667", "0")
    assert (four[1], four[2], four[-1]) == ("4", "1.000", "1")
    assert (beyond[1], beyond[2], beyond[-1]) == ("99", "–", "3")
    assert "Rows at different k are of different questions" in ran.out
    assert "Nothing at k = 99: no question has more than 4 candidates." in ran.out


def test_one_question_ranks_without_intervals(run: Run) -> None:
    for name, right in (("one", (1, 0)), ("two", (1, 1))):
        written(f"{name}.jsonl", [{"question": "a", "answer": str(i), "correct": g} for i, g in enumerate(right)])
    ran = run("rank", "one.jsonl", "two.jsonl")
    assert ran.code == 0, ran.err
    assert "0.500 to 0.500" not in ran.out
    assert "1 question that all have (0 others left out): nothing to resample, so no interval." in ran.out
    assert run("rank", "one.jsonl", "two.jsonl", "--json").found["covers"] == []


def test_options_of_an_audit_may_stand_before_the_file(run: Run) -> None:
    written(
        "my.jsonl", [{"question": "a", "answer": None, "correct": 0}, {"question": "b", "answer": "1", "correct": 1}]
    )
    before, after = run("audit", "--strict", "my.jsonl"), run("audit", "my.jsonl", "--strict")
    assert (before.code, before.out) == (after.code, after.out)
    assert after.code == 1
    assert "answers" in run("audit", "--help").out

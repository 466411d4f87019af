"""``ramify profile``: a newcomer's file, from the shell to the numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ramify
from ramify.cli.spelling import equal
from ramify.metrics import MeanGPassAt, PassAt, PassHat, Tally, bank_profile
from tests.cli.conftest import Run, rows, written


def test_a_file_of_answers_gives_the_profile_with_intervals_that_say_what_they_cover(run: Run) -> None:
    listed = rows()
    written("my.jsonl", listed)
    ran = run("profile", "my.jsonl", "--json", "--no-page")
    assert ran.code == 0, ran.err
    grades = np.array([row["correct"] for row in listed], dtype=float).reshape(20, 8)
    exact = bank_profile(Tally.of(grades))
    assert [row["k"] for row in ran.found["profile"]] == [1, 2, 4, 8]
    for row in ran.found["profile"]:
        for name, functional in (("Pass@k", PassAt), ("pass^k", PassHat), ("mG-Pass@k", MeanGPassAt)):
            value = float(functional(row["k"])(exact))
            assert row[name]["value"] == pytest.approx(value, abs=1e-12)
            assert row[name]["covers"] == ["questions"]
            assert row[name]["low"] <= value <= row[name]["high"]
    assert [row["k"] for row in ran.found["posterior"]["rows"]] == [1, 2, 4, 8, 16]
    assert ran.found["posterior"]["rows"][0]["Pass@k"]["covers"] == ["questions", "draws"]
    assert ran.found["never_solved"] == float((grades.sum(axis=1) == 0).mean())


def test_the_columns_are_shown_and_can_be_overridden(run: Run) -> None:
    written("my.jsonl", [{**row, "said": "nothing"} for row in rows()])
    shown = run("profile", "my.jsonl", "--no-page").out
    assert "answer           <- prediction" in shown
    assert "they cover other questions, not the same ones asked again" in shown
    assert "answer           <- said  (given)" in run("profile", "my.jsonl", "--map", "answer=said", "--no-page").out


def test_answers_are_graded_against_a_reference_that_the_bank_never_has(run: Run) -> None:
    listed = rows()
    written("my.jsonl", listed, leave=("correct",))
    ran = run("profile", "my.jsonl", "--json", "--no-page")
    assert ran.code == 0, ran.err
    assert ran.found["grades"] == "equal to gold"
    right = np.mean([row["correct"] for row in listed])
    assert ran.found["profile"][0]["Pass@k"]["value"] == pytest.approx(right)
    written("other.jsonl", [{"truth" if k == "gold" else k: v for k, v in row.items()} for row in listed], ("correct",))
    refused = run("profile", "other.jsonl")
    assert refused.code == 2
    assert "--reference COLUMN" in refused.err
    again = run("profile", "other.jsonl", "--reference", "truth", "--no-page", "--json")
    assert again.found["profile"][0]["Pass@k"]["value"] == pytest.approx(right)


@pytest.mark.parametrize("name", ["my.csv", "my.parquet", "mybank"])
def test_other_forms_of_the_same_bank_give_the_same_numbers(run: Run, name: str) -> None:
    written("my.jsonl", rows())
    assert run("bank", "import", "my.jsonl", "mybank").code == 0
    if name != "mybank":
        assert run("bank", "export", "mybank", name).code == 0
    one, other = (
        run("profile", "my.jsonl", "--json", "--no-page").found,
        run("profile", name, "--json", "--no-page").found,
    )
    assert one["profile"] == other["profile"]
    assert one["posterior"] == other["posterior"]


def test_a_score_of_zeros_and_ones_is_taken_for_grades_and_that_is_said(run: Run) -> None:
    listed = [{"qid": r["question_id"], "answer": r["prediction"], "score": int(r["correct"])} for r in rows()]
    written("my.jsonl", listed)
    ran = run("profile", "my.jsonl")
    assert ran.code == 0, ran.err
    assert "score holds only 0 and 1: taken for the grades" in ran.out


def test_grades_between_need_a_threshold(run: Run) -> None:
    listed = [{"qid": row["question_id"], "answer": "x", "grade": 0.75 * row["correct"]} for row in rows()]
    written("my.jsonl", listed)
    refused = run("profile", "my.jsonl")
    assert refused.code == 2
    assert "--threshold 0.5" in refused.err
    found = run("profile", "my.jsonl", "--threshold", "0.5", "--no-page", "--json").found
    assert found["profile"][0]["Pass@k"]["value"] == pytest.approx(np.mean([row["correct"] for row in rows()]))


def test_groups_and_budgets_are_those_asked_for(run: Run) -> None:
    written("my.jsonl", rows())
    found = run("profile", "my.jsonl", "--by", "level", "--k", "2,8", "--no-page", "--json").found
    assert [row["k"] for row in found["profile"]] == [2, 8]
    assert found["groups"]["Pass@2"]["names"] == ["easy", "hard"]
    refused = run("profile", "my.jsonl", "--by", "colour")
    assert refused.code == 2
    assert "there are level" in refused.err


def test_the_prior_is_an_output_and_a_point_is_no_certainty(run: Run) -> None:
    written("my.jsonl", rows())
    by_prior = run("profile", "my.jsonl", "--json", "--no-page").found["posterior"]["sensitivity"]
    assert list(by_prior) == ["flat", "Jeffreys", "fitted"]
    assert "where they differ, the prior has decided" in run("profile", "my.jsonl", "--no-page").out
    written("all.jsonl", [{**row, "correct": True} for row in rows()])
    assert "says that all questions fared alike" in run("profile", "all.jsonl", "--no-page").out


def test_dependent_candidates_get_no_prediction(run: Run) -> None:
    written("my.jsonl", rows())
    ran = run("profile", "my.jsonl", "--kind", "search", "--no-page", "--json")
    assert ran.found["posterior"]["rows"] == []
    assert "independent" in ran.found["posterior"]["refused"]


def test_one_question_is_described_without_an_interval(run: Run) -> None:
    written("my.jsonl", rows(questions=1))
    found = run("profile", "my.jsonl", "--json", "--no-page").found
    assert found["profile"][0]["Pass@k"]["covers"] == []


def test_hostile_text_does_not_reach_the_terminal(run: Run) -> None:
    listed = [{**row, "question_id": f"\x1b[2J{row['question_id']}", "prediction": "\x1b]0;x\x07"} for row in rows(2)]
    written("my.jsonl", listed)
    for command in (["profile", "my.jsonl"], ["decide", "my.jsonl"], ["audit", "my.jsonl"]):
        ran = run(*command)
        assert "\x1b" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("7", "7.0", True),
        ("1,000", "1000", True),
        ("The Cat", "the  cat", True),
        ("7", "8", False),
        ("1/0", "2/0", False),
    ],
)
def test_answers_are_compared_in_canonical_form(run: Run, one: str, other: str, same: bool) -> None:
    assert equal(one, other) is same
    written("my.jsonl", [{"qid": name, "pred": one, "gold": other} for name in "aabb"])
    found = run("profile", "my.jsonl", "--json", "--no-page").found
    assert found["profile"][0]["Pass@k"]["value"] == float(same)


def test_hostile_answers_are_refused_and_not_computed(run: Run) -> None:
    written("my.jsonl", [{"qid": name, "pred": "9^{9^{9^9}}", "gold": "1"} for name in "aabb"])
    ran = run("profile", "my.jsonl", "--json", "--no-page")
    assert ran.found["profile"][0]["Pass@k"]["value"] == 0.0


def test_the_page_is_written_where_it_is_asked_for(run: Run) -> None:
    written("my.jsonl", rows())
    assert run("profile", "my.jsonl", "--no-page", "--json").found["page"] is None
    assert not list(Path().glob("*.html"))
    assert run("profile", "my.jsonl", "--page", "there.html", "--json").found["page"] == "there.html"
    assert "<html" in Path("there.html").read_text()


def test_the_newcomers_path_as_a_script(tmp_path: Path) -> None:
    """A file and one command in a new process, as somebody would type it."""
    lines = [json.dumps({"question": f"q{i // 4}", "answer": str(i % 3), "correct": i % 3 == 0}) for i in range(40)]
    (tmp_path / "my.jsonl").write_text("\n".join(lines))
    env = {"PYTHONPATH": str(Path(ramify.__file__).parent.parent)}
    program = [sys.executable, "-m", "ramify.cli", "profile", "my.jsonl"]
    ran = subprocess.run(program, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Pass@k" in ran.stdout
    assert "outcome.correct  <- correct" in ran.stdout
    assert "The page, with every question and answer: my-profile.html" in ran.stdout
    assert "<html" in (tmp_path / "my-profile.html").read_text()


def test_the_page_is_asked_what_the_terminal_is_asked_and_says_the_same(run: Run) -> None:
    written("my.jsonl", rows())
    ran = run("profile", "my.jsonl", "--k", "1,3", "--level", "0.5", "--json")
    assert ran.code == 0, ran.err
    page = Path("my-profile.html").read_text()
    data = json.loads(page.split('id="figures-data"')[1].partition(">")[2].partition("</script>")[0])["discovery"]
    shown = [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]
    assert sorted({row["k"] for row in shown}) == [1, 3]
    assert {row["band"] for row in shown} == {"50 % interval over questions"}
    for row in ran.found["profile"]:
        for name in ("Pass@k", "pass^k"):
            (there,) = [each for each in shown if (each["series"], each["k"]) == (name, row["k"])]
            here = [row[name][end] for end in ("value", "low", "high")]
            assert here == pytest.approx([there["share"], there["low"], there["high"]], abs=1e-6)

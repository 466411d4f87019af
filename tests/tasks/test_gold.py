"""What is right, as people write it: one answer, any of several, or nothing, which is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ramify.errors import InvalidValue
from ramify.tasks import Own
from ramify.tasks.checking import Ladder


def own(folder: Path, *golds: Any) -> Own:
    path = folder / "questions.jsonl"
    rows = [{"id": f"q{i}", "question": "?", "gold": gold} for i, gold in enumerate(golds)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Own(str(path))


def test_any_of_a_list_is_right(tmp_path: Path) -> None:
    task = own(tmp_path, ["42", "forty-two"], "7", [0.5])
    first, second, third = task.references(task.questions())
    assert [task.grade(answer, first) for answer in ("42.0", "forty-two", "41", None)] == [1, 1, 0, 0]
    assert [task.grade(answer, second) for answer in ("7", "42")] == [1, 0]
    assert task.grade("1/2", third) == 1


def test_a_text_that_looks_like_a_list_is_one_answer(tmp_path: Path) -> None:
    task = own(tmp_path, "[1, 2]")
    [interval] = task.references(task.questions())
    assert [task.grade(answer, interval) for answer in ("[1,2]", "1", "2")] == [1, 0, 0]


def test_letters_of_a_list_are_letters(tmp_path: Path) -> None:
    assert own(tmp_path, ["A", "B"], "C").columns().kind == "letter"


@pytest.mark.parametrize("nothing", [None, "", "  ", [], [None]])
def test_a_question_without_gold_is_refused_by_its_record(tmp_path: Path, nothing: Any) -> None:
    task = own(tmp_path, "42", nothing, "7")
    with pytest.raises(InvalidValue, match=r"no gold in 1 of 3 records .*: record 2 \(question 'q1'\); .*leave those"):
        task.references(task.questions())
    asked = [question for question in task.questions() if question.id != "q1"]
    assert task.references(asked) == ("42", "7")  # what is not asked is not missed


def test_the_ladder_says_which_rung_decided_of_several_right_answers() -> None:
    ladder = Ladder(math=False)
    assert ladder("2", "1 ¦ 2").rung == "exact"
    assert not ladder("3", "1 ¦ 2").equal
    guarded = ladder(r"1+\frac1e+\pi", r"7 ¦ 1+\pi+\frac1e")
    assert guarded.equal
    assert ladder.exact("x", "1 ¦ 2") == ladder.exact("x", "1")

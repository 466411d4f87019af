"""``ramify audit answers``: what extraction may have got wrong, and what people decided about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, written

TEXTS = [
    (r"So \boxed{204}.", "stop"),
    ("The answer is 204.", "stop"),
    (r"<think>204, or", "length"),
    (r"\boxed{205}", "stop"),
]


@pytest.fixture
def task(run: Run) -> str:
    Path("mine.csv").write_text("id,question,answer\nq1,How long?,204\n")
    written("out.jsonl", [{"qid": "q1", "response": text, "answer": "", "finish_reason": why} for text, why in TEXTS])
    return 'Own("mine.csv")'


def test_risks_are_listed_with_their_texts(run: Run, task: str) -> None:
    found = run("audit", "answers", "out.jsonl", "--task", task, "--json").found
    assert found["candidates"] == 4
    assert found["counts"] == {"reference in text": 2, "cap hit": 1, "no answer": 1, "truncated reasoning": 1}
    assert found["rates"]["ok"] == 0.5
    assert found["rungs"]["exact"] == 4
    shown = run("audit", "answers", "out.jsonl", "--task", task)
    assert shown.code == 0
    assert "The answer is 204." in shown.out
    assert "no answer" in shown.out


def test_what_people_decided_is_a_risk_no_more(run: Run, task: str) -> None:
    rows = [{"question": "q1", "run": "out", "sample": 1, "answer": "204", "by": "Ada", "why": "it says so"}]
    Path("decided.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = run("audit", "answers", "out.jsonl", "--task", task, "--overrides", "decided.jsonl", "--json").found
    assert found["overridden"] == 1
    assert found["counts"] == {"reference in text": 1, "cap hit": 1, "truncated reasoning": 1}
    Path("decided.jsonl").write_text(json.dumps({**rows[0], "by": ""}))
    ran = run("audit", "answers", "out.jsonl", "--task", task, "--overrides", "decided.jsonl")
    assert ran.code == 2
    assert "say who decided" in ran.err


def test_a_task_that_is_none_and_questions_of_another_are_named(run: Run, task: str) -> None:
    assert "that is a rule" in run("audit", "answers", "out.jsonl", "--task", "Plurality()").err
    Path("mine.csv").write_text("id,question,answer\nq9,How long?,204\n")
    assert "has no question of Own" in run("audit", "answers", "out.jsonl", "--task", task).err

"""Grading a bank, the audit of its answers, and human overrides."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ramify.bank import Bank
from ramify.decide import Plurality
from ramify.errors import InvalidValue
from ramify.tasks import Arithmetic, DescribeFacts
from ramify.tasks.audit import Overrides, audit_answers
from ramify.tasks.checking import Checked, Ladder
from ramify.tasks.extract import Boxed, Parsed
from ramify.tasks.grading import grade_bank, literal_bank, parsed_bank
from ramify.types import Question


class Sums:
    """A task of one's own is any object with these."""

    answers, turns = "verifiable", "single-turn"

    def parse(self, text: str, question: Question | None = None) -> Parsed:  # noqa: ARG002
        return Boxed()(text)

    def grade(self, answer: str | None, reference: str) -> float:
        return float(Ladder(math=False)(answer, reference).equal)

    def verdicts(self, pairs: Sequence[tuple[str | None, str]]) -> list[Checked]:
        return Ladder(math=False).many(pairs)


TEXTS = [
    [r"\boxed{\frac12}", r"\boxed{0.5}", r"\boxed{2/4}", r"\boxed{3}", r"\boxed{3}"],
    ["The answer is 204.", r"\boxed{204", r"<think>204", r"\boxed{9^{9^{9^9}}}", r"\boxed{2}"],
]
REFERENCES = ["1/2", "204"]


@pytest.fixture
def bank() -> Bank:
    made = Bank.of([["?"] * 5, ["?"] * 5])
    text = np.array(TEXTS, dtype=object)
    ended = made.ended.copy()
    ended[1, 2] = 2  # length
    return dataclasses.replace(made, text=text, ended=ended)


def test_statuses_stay_apart_and_in_the_denominator(bank: Bank) -> None:
    parsed, status = parsed_bank(bank, Sums())
    graded = grade_bank(parsed, Sums(), REFERENCES, status)
    assert graded.outcomes.values.tolist() == [[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]]
    expected = {"ok": 0.6, "no answer": 0.1, "unclosed box": 0.1, "truncated reasoning": 0.1, "refused by limits": 0.1}
    assert {name: rate for name, rate in graded.rates.items() if rate} == pytest.approx(expected)
    assert graded.rungs["exact"] == 10
    assert graded.layers()["status"].role == "diagnostic"


def test_literal_plurality_and_canonical_plurality_differ(bank: Bank) -> None:
    canonical, _ = parsed_bank(bank, Sums())
    literal = literal_bank(bank, Sums())
    winner = Plurality()(canonical.candidates()).winner
    assert canonical.answer(0, int(winner[0])) == "1/2"  # three ways to write it, one vote group
    winner = Plurality()(literal.candidates()).winner
    assert literal.answer(0, int(winner[0])) == "3"  # as strings, 3 has two votes and each half has one


def test_the_audit_lists_what_extraction_may_have_got_wrong(bank: Bank) -> None:
    audit = audit_answers(bank, Sums(), REFERENCES)
    assert audit.candidates == 10
    assert audit.counts == {
        "reference in text": 3,
        "cap hit": 1,
        "no answer": 1,
        "unclosed box": 1,
        "truncated reasoning": 1,
        "refused by limits": 1,
    }
    [cut] = [risk for risk in audit.risks if risk.kind == "cap hit"]
    assert (cut.question, cut.sample, cut.answer, cut.reference, cut.grade) == ("q1", 2, None, "204", 0.0)


def test_disagreeing_checkers_are_listed(bank: Bank) -> None:
    class Torn(Sums):
        def verdicts(self, pairs: Sequence[tuple[str | None, str]]) -> list[Checked]:
            return [Checked(True, "guard", disagree=True) for _ in pairs]

    assert audit_answers(bank, Torn(), REFERENCES).counts["checkers disagree"] == 10


def test_a_short_reference_is_not_found_in_every_text(bank: Bank) -> None:
    text = np.array([["There are 3 ways and 4 more", "so the answer is 3, or 4", *["x"] * 3], ["x"] * 5], dtype=object)
    audit = audit_answers(dataclasses.replace(bank, text=text), Sums(), ["3", "204"])
    assert [risk.sample for risk in audit.risks if risk.kind == "reference in text"] == [1]


def test_overrides_are_a_layer_and_say_who_decided(bank: Bank, tmp_path: Path) -> None:
    path = tmp_path / "overrides.jsonl"
    path.write_text(
        '{"question": "q1", "sample": 0, "grade": 1, "by": "Ada", "why": "the last line says 204"}\n'
        '{"question": "q1", "sample": 1, "answer": "204", "by": "Ada"}\n'
    )
    overrides = Overrides.read(path)
    parsed, _ = parsed_bank(bank, Sums())
    graded = grade_bank(overrides.answers(parsed), Sums(), REFERENCES)
    assert graded.outcomes.values[1].tolist() == [0, 1, 0, 0, 0]
    final = overrides.outcomes(parsed, graded.outcomes)
    assert final.values[1].tolist() == [1, 1, 0, 0, 0]
    assert "1 overridden by overrides.jsonl" in final.description
    layer = overrides.layer(parsed)
    assert layer.role == "diagnostic"
    assert np.isnan(layer.values).sum() == 9
    attached = parsed.attach("overrides", layer)
    assert attached.first(1).layers["overrides"].values.tolist()[1] == [1.0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("q9,0,,1,Ada", "is no candidate of this bank"),
        ("q1,0,,2,Ada", "grade within"),
        ("q1,0,,,Ada", "give an answer or a grade"),
        ("q1,0,,1,", "say who decided"),
    ],
)
def test_overrides_that_cannot_be_used_are_errors(bank: Bank, tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "overrides.csv"
    path.write_text(f"question,sample,answer,grade,by\n{row}\n")
    with pytest.raises(InvalidValue, match=message):
        Overrides.read(path).layer(bank)


def test_any_task_can_be_graded_and_audited() -> None:
    """The pocket tasks, and tasks whose utility is a number in between."""
    task = Arithmetic(1)
    [question] = task.questions(1)
    [reference] = task.references([question])
    bank = Bank.of({question.id: [reference, "0", None]})
    graded = grade_bank(bank, task, [reference])
    assert graded.outcomes.values.tolist() == [[1.0, 0.0, 0.0]]
    text = np.array([[f">{reference}\n", ">x\n", ""]], dtype=object)
    parsed, status = parsed_bank(dataclasses.replace(bank, text=text), task)
    assert grade_bank(parsed, task, [reference], status).rates["parse error"] == pytest.approx(1 / 3)
    facts = DescribeFacts(2)
    [question] = facts.questions(1)
    described = grade_bank(Bank.of({question.id: ["Nice."]}), facts, facts.references([question]))
    assert described.outcomes.values[0, 0] == pytest.approx(2 / 3)  # one short sentence that says none of the facts

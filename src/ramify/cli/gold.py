"""Behind the wall: grades of candidates against a file's own gold, or by a task."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.bank import Bank, Outcomes
from ramify.errors import InvalidValue, require
from ramify.store.exchange import Report, read
from ramify.store.exchange.mapping import Mapping as Columns
from ramify.tasks.checking import Ladder
from ramify.tasks.grading import grade_bank, parsed_bank

if TYPE_CHECKING:
    from ramify.cli.source import Source

__all__ = ["against", "comparable", "graded_by", "guessed", "of_task", "told", "without"]

GOLD = "a reference;"  # how an import says of a column that it is one
TASK = "--task \"Own('questions.csv')\""


def without(mapping: Mapping[str, str | None], column: str) -> dict[str, str | None]:
    """The mapping under which a column that was named as the reference is guessed for nothing that rules see."""
    parts = (f"{family}.{column}" for family in ("outcome", "layer", "group"))
    return {**{part: None for part in parts if part not in mapping}, **mapping} if column else dict(mapping)


def told(report: Report, column: str) -> Report:
    """The report of a file that was read without this column, which says what the column is."""
    if column not in report.mapping.ignored:
        return report
    ignored = {**report.mapping.ignored, column: f"{GOLD} gold stays out of a bank"}
    return dataclasses.replace(report, mapping=dataclasses.replace(report.mapping, ignored=ignored))


def guessed(columns: Columns) -> str:
    """The reference of a file that has one, and answers to hold against it; empty if there is a doubt."""
    found = [column for column, why in columns.ignored.items() if why.startswith(GOLD)]
    return found[0] if len(found) == 1 and "answer" in columns.parts else ""


def comparable(columns: Columns, reference: str) -> None:
    """Refuse a reference that would be held against itself, or against nothing."""
    answer, text = columns.parts.get("answer"), columns.parts.get("text", "")
    such = f"--map answer={text or 'COLUMN'}"
    remedy = f"say which column holds what was answered, {such}, or read answers out of responses, {TASK}"
    if answer == reference:
        raise InvalidValue(f"--reference {reference}: that column is taken for the answers themselves: {remedy}")
    if answer is None:
        raise InvalidValue(f"--reference {reference}: no column is taken for answers to compare with it: {remedy}")


def against(
    path: Path, bank: Bank, mapping: Mapping[str, str | None], column: str, **reading: Any
) -> tuple[Outcomes, str]:
    """Grades against a file's reference column, and how they were made.

    The column is read apart, under the same options: the bank that rules see never has it. Candidates of questions
    without gold stay ungraded.
    """
    parts = {part: name for part, name in mapping.items() if name != column}
    again = read(path, {**parts, "group.reference": column}, tokens=False, **reading).bank
    right = [question.groups.get("reference", "").strip() for question in again.questions]
    cells = [(q, n) for q, n in np.argwhere(bank.drawn).tolist() if right[q]]
    require(cells, "--reference", column, f"{path} has no value in that column")
    answers = [bank.answer(q, n) for q, n in cells]
    pairs = [(None if answer is None else str(answer), right[q]) for answer, (q, _) in zip(answers, cells, strict=True)]
    verdicts, how = _checked(pairs)
    values = np.full(bank.shape, np.nan)
    for (q, n), same in zip(cells, verdicts, strict=True):
        values[q, n] = float(same)
    lacking = [question.id for question, gold in zip(bank.questions, right, strict=True) if not gold]
    how += f"; {len(lacking)} questions have no gold, such as {lacking[0]!r}, and stay ungraded" if lacking else ""
    return Outcomes.of(bank, values, f"equal to {column}"), f"graded against {column}: {how}"


def _checked(pairs: list[tuple[str | None, str]]) -> tuple[list[bool], str]:
    """Which answers are their references. What canonical forms leave open needs the extra ``math``."""
    ladder = Ladder(math=find_spec("math_verify") is not None)
    exact = [ladder.exact(*pair) for pair in pairs]
    undecided = sum(verdict is None for verdict in exact)
    if not undecided:
        return [bool(verdict and verdict.equal) for verdict in exact], "canonical forms compared"
    if ladder.math:
        return [verdict.equal for verdict in ladder.many(pairs)], f"canonical forms; {undecided} by math-verify"
    remedy = "count as wrong: pip install 'ramify[math]' to decide them"
    return [
        bool(verdict and verdict.equal) for verdict in exact
    ], f"canonical forms; {undecided} undecided, which {remedy}"


def of_task(source: Source, written: str) -> tuple[Any, Bank, tuple[str, ...]]:
    """A task with a ladder of checks, the part of the bank that it asked, and what is right."""
    from ramify.cli.machine import task_of  # here, because few commands need a task

    task = task_of(written)
    if getattr(task, "answers", "") != "verifiable":
        raise InvalidValue(f"--task {written}: it is not verifiable; `ramify methods Own` is, for a file of questions")
    if hasattr(task, "family"):  # generated: what is right follows from the prompts
        return task, source.bank, tuple(task.references(source.bank.questions))
    asked = {question.id: question for question in task.questions()}
    known = [question for question in source.bank.questions if question.id in asked]
    if not known:
        such = f"{source.bank.questions[0].id!r} is none of its ids, such as {next(iter(asked), '')!r}"
        raise InvalidValue(f"{source.path} has no question of {written}: {such}")
    part = source.bank.only([question.id for question in known])
    return task, part, tuple(task.references([asked[question.id] for question in known]))


def graded_by(source: Source, written: str) -> Source:
    """The source with answers read from its texts by a task, where it has texts, and graded by its ladder."""
    task, bank, references = of_task(source, written)
    status = None
    if bank.text is not None:
        bank, status = parsed_bank(bank, task)
    graded = grade_bank(bank, task, references, status)
    rates = ", ".join(f"{name} {share:.3f}" for name, share in graded.rates.items() if share)
    told = f"read and graded by {written}: {rates}"
    left = len(source.bank.questions) - len(bank.questions)
    more = (f"{left} questions are not of this task, and left out",) if left else ()
    return dataclasses.replace(
        source, bank=bank, grades={"task": graded.outcomes}, chosen="task", notes=(*source.notes, told, *more)
    )

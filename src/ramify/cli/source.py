"""Where a command takes its candidates from: a file of somebody's making, a bank's directory, or a run's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Outcomes, Proposal
from ramify.bank.tokens import COLUMNS
from ramify.cli.terminal import progress, spoken
from ramify.errors import InvalidValue, require
from ramify.store import Store
from ramify.store.exchange import read
from ramify.store.snapshot import Snapshot
from ramify.tasks.checking import Ladder, canonical
from ramify.tasks.grading import grade_bank, parsed_bank

__all__ = ["Source", "bank_folder", "equal", "graded_by", "load", "of_task", "shared", "with_tokens"]

GOLD = "a reference;"  # how an import says of a column that it is one


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A bank, the grades that lie beside it, and how both were come by."""

    path: Path
    bank: Bank
    grades: Mapping[str, Outcomes]
    shown: str  # how a file's columns were understood, or what a directory is
    folder: Path | None = None  # of the bank on disk; None for a file

    @property
    def name(self) -> str:
        """What a table calls it."""
        return self.path.name.partition(".")[0] or str(self.path)

    def graded(self, name: str = "", threshold: float | None = None) -> Outcomes:
        """The grades to evaluate by; with a threshold they become right and wrong."""
        if not self.grades:
            raise InvalidValue(
                f"{self.path} has no grades: give a file a column `correct`, or say which column holds the right answer"
                " with --reference COLUMN; a bank's directory takes them from `ramify bank import`"
            )
        if not name and len(self.grades) > 1:
            raise InvalidValue(f"{self.path} has the grades {', '.join(self.grades)}: choose with --grades NAME")
        name = name or next(iter(self.grades))
        require(name in self.grades, "--grades", name, f"{self.path} has {', '.join(self.grades)}")
        found = self.grades[name]
        if threshold is None:
            return found
        right = np.where(np.isnan(found.values), np.nan, found.values >= threshold)
        return dataclasses.replace(found, values=right, description=f"{found.description} >= {threshold:g}")

    def binary(self, name: str = "", threshold: float | None = None) -> Outcomes:
        """Grades that are right, wrong or missing; others need a threshold, and are refused without one."""
        found = self.graded(name, threshold)
        between = found.values[(found.values > 0) & (found.values < 1)]
        if between.size:
            much = f"{self.path} has grades between 0 and 1, such as {between[0]:g}"
            raise InvalidValue(f"{much}: say from where on an answer is right, such as --threshold 0.5")
        return found


def load(
    path: Path,
    mapping: Mapping[str, str | None] | None = None,
    *,
    reference: str = "",
    kind: str = "",
    tokens: bool = False,
) -> Source:
    """The candidates at a path, with token columns only if asked for: they are large, and few commands need them."""
    if path.is_dir():
        given = [f"--map {part}=" for part in mapping or {}] + (["--reference"] if reference else [])
        require(not given, given[0] if given else "", str(path), "columns are of files; a bank has its parts already")
        return _of_store(path, tokens)
    with progress(f"reading {path.name}") as tell:
        made = Proposal(kind) if kind else None
        found = read(path, mapping, proposal=made, run=path.name.partition(".")[0], tokens=tokens, progress=tell)
    bank, grades, shown = found.bank, dict(found.outcomes), spoken(str(found.report))
    gold = [column for column, why in found.report.mapping.ignored.items() if why.startswith(GOLD)]
    if not reference and not grades and len(gold) == 1 and "answer" in found.report.mapping.parts:
        reference = gold[0]
    if reference:
        made_here, how = _against(path, bank, mapping or {}, reference)
        grades = {reference: made_here, **grades}
        shown += f"\nnote     {how}"
    binary = [name for name, layer in bank.layers.items() if _zero_or_one(layer.values)]
    if not grades and len(binary) == 1:
        layer = bank.layers[binary[0]]
        grades = {binary[0]: Outcomes.of(bank, layer.values, binary[0])}
        rest = {name: each for name, each in bank.layers.items() if name != binary[0]}  # no rule may read its grades
        bank = dataclasses.replace(bank, layers={**rest, binary[0]: dataclasses.replace(layer, role="diagnostic")})
        shown += f"\nnote     {binary[0]} holds only 0 and 1: taken for the grades"
    return Source(path, bank, grades, shown)


def bank_folder(path: Path) -> Path:
    """The bank's directory: the one given, or that of the run which it is."""
    return path / "bank" if (path / "bank" / "bank.json").exists() else path


def _of_store(path: Path, tokens: bool) -> Source:
    folder = bank_folder(path)
    if (path / "result.json").exists() and not (folder / "bank.json").exists():
        raise InvalidValue(f"{path} is a study's folder: `ramify report {path}` makes its page")
    with Store.open(folder).snapshot() as snapshot:
        bank = with_tokens(snapshot) if tokens else snapshot.bank()
        grades = {name: snapshot.outcomes(name) for name in snapshot.outcome_names}
    many = f"{len(bank.questions)} questions, {int(bank.drawn.sum())} candidates"
    return Source(path, bank, grades, f"{path}: {many}, {bank.kind}", folder)


def with_tokens(snapshot: Snapshot) -> Bank:
    """The bank with the token columns that its protocols say they recorded."""
    bank = snapshot.bank()
    recorded = {name for proposal in bank.proposals for name in proposal.signals}
    names = [name for name in COLUMNS if name in recorded]
    return snapshot.bank(columns=names) if names else bank


def _zero_or_one(values: Array) -> bool:
    known = values[~np.isnan(values)]
    return bool(known.size) and bool(np.isin(known, (0.0, 1.0)).all())


# ------------------------------------------------------------------------------------------------ behind the wall: gold


def _against(path: Path, bank: Bank, mapping: Mapping[str, str | None], column: str) -> tuple[Outcomes, str]:
    """Grades against a file's reference column, and how they were made.

    The column is read apart: the bank that rules see never has it.
    """
    parts = {part: name for part, name in mapping.items() if name != column}
    again = read(path, {**parts, "group.reference": column}, run=path.name.partition(".")[0], tokens=False).bank
    right = [question.groups.get("reference", "").strip() for question in again.questions]
    cells = [(q, n) for q, n in np.argwhere(bank.drawn).tolist() if right[q]]
    require(cells, "--reference", column, f"{path} has no value in that column")
    answers = [bank.answer(q, n) for q, n in cells]
    pairs = [(None if answer is None else str(answer), right[q]) for answer, (q, _) in zip(answers, cells, strict=True)]
    verdicts, how = _checked(pairs)
    values = np.full(bank.shape, np.nan)
    for (q, n), same in zip(cells, verdicts, strict=True):
        values[q, n] = float(same)
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


def equal(one: str, other: str) -> bool:
    """Whether two answers have the same canonical form.

    >>> equal("1/2", "0.50"), equal(r"\\sqrt{8}", r"2\\sqrt{2}"), equal("7", "8")
    (True, True, False)
    """
    a, b = canonical(one), canonical(other)
    return a.form is not None and a.form == b.form


def of_task(source: Source, written: str) -> tuple[Any, Bank, tuple[str, ...]]:
    """A task with a ladder of checks, the part of the bank that it asked, and what is right: behind the wall."""
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
    read = ", ".join(f"{name} {share:.3f}" for name, share in graded.rates.items() if share)
    shown = f"{source.shown}\nnote     read and graded by {written}: {read}"
    left = len(source.bank.questions) - len(bank.questions)
    shown += f"\nnote     {left} questions are not of this task, and left out" if left else ""
    return dataclasses.replace(source, bank=bank, grades={"task": graded.outcomes}, shown=shown)


# ------------------------------------------------------------------------------------------------------ several sources


def shared(sources: list[Source]) -> tuple[list[Bank], int]:
    """The banks on the questions that all of them have, in one order; and how many questions that leaves out."""
    ids = [{question.id for question in source.bank.questions} for source in sources]
    common = set.intersection(*ids)
    order = [question.id for question in sources[0].bank.questions if question.id in common]
    names = ", ".join(str(source.path) for source in sources)
    require(
        order, "questions", "none in common", f"{names} ask different questions: a paired comparison needs the same"
    )
    return [source.bank.only(order) for source in sources], len(set.union(*ids)) - len(order)

"""Where a command takes its candidates from: a file of somebody's making, a bank's directory, or a run's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Outcomes, Proposal
from ramify.bank.tokens import COLUMNS
from ramify.cli import gold
from ramify.cli.terminal import progress, spoken
from ramify.errors import InvalidValue, require
from ramify.store import Store
from ramify.store.exchange import read, stem_of
from ramify.store.exchange.mapping import Mapping as Columns
from ramify.store.snapshot import Snapshot

__all__ = ["Source", "bank_folder", "load", "shared", "with_tokens"]


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A bank, the grades that lie beside it, and how both were come by."""

    path: Path
    bank: Bank
    grades: Mapping[str, Outcomes]
    said: str  # how a file's columns were understood, or what a directory is
    folder: Path | None = None  # of the bank on disk; None for a file
    columns: Columns | None = None  # of a file
    chosen: str = ""  # the grades that were asked for by naming what they are made from
    notes: tuple[str, ...] = ()  # what was concluded beyond the columns

    @property
    def name(self) -> str:
        """What a table calls it."""
        return (self.path.name if self.folder else stem_of(self.path)) or str(self.path)

    @property
    def page(self) -> Path:
        """Where its page goes: named after the file, with its suffix where another file has the same name before it."""
        beside = [] if self.folder else [*self.path.parent.glob(f"{_plain(stem_of(self.path))}.*")]
        twins = [other for other in beside if other.name != self.path.name and stem_of(other, strict=True) == self.name]
        return Path(f"{self.path.name if twins else self.name}-profile.html")

    @property
    def shown(self) -> str:
        """How it was understood, in full."""
        return "\n".join([self.said, *(f"note     {note}" for note in self.notes)])

    @property
    def understood(self) -> str:
        """The same of a file in a line: what was taken for what. Empty for a bank, which says what it is."""
        if self.columns is None:
            return "; ".join(self.notes)
        parts = ", ".join(f"{part} <- {column}" for part, column in self.columns.parts.items())
        lacking = "answer" not in self.columns.parts and not (self.bank.answers >= 0).any()
        none = ["no column is taken for answers: --map answer=COLUMN, or --task TEXT reads them in responses"]
        told = [*map(spoken, self.columns.notes), *(none if lacking else []), *self.notes]
        return "; ".join([f"{self.path.name}: {parts}", *told])

    def graded(self, name: str = "", threshold: float | None = None) -> Outcomes:
        """The grades to evaluate by; with a threshold they become right and wrong."""
        ok = threshold is None or 0 < threshold <= 1
        require(ok, "--threshold", threshold, "grades are from 0 to 1: use a number in (0, 1], such as 0.5")
        if not self.grades:
            raise InvalidValue(self._ungraded())
        name = name or self.chosen
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
        between = partial(found)
        if between is not None:
            much = f"{self.path} has grades between 0 and 1, such as {between:g}"
            raise InvalidValue(f"{much}: say from where on an answer is right, such as --threshold 0.5")
        return found

    def _ungraded(self) -> str:
        """Why there are no grades, and what gives some: each remedy works on what this is."""
        by_task = f"name the task they are for, {gold.TASK}"
        if self.folder is not None and self.folder != self.path:
            again = "go on with the same `ramify sample` or `ramify search` command, which grades at its end"
            return f"{self.path} has no grades: the run is not finished; {again}, or {by_task}"
        if self.folder is not None:
            again = f"`ramify bank import FILE {self.path} --reference COLUMN` adds those of the file it came from"
            return f"{self.path} has no grades: {again}, or {by_task}"
        if self.columns is not None and "answer" not in self.columns.parts:
            such = self.columns.parts.get("text", "COLUMN")
            return (
                f"{self.path} has no grades and no answers: say which column holds them, --map answer={such}"
                f" --reference COLUMN; where answers have to be read out of responses, {by_task}"
            )
        return (
            f"{self.path} has no grades: give it a column `correct`, say which column holds the right answer with"
            f" --reference COLUMN, or {by_task}"
        )


def partial(outcomes: Outcomes) -> float | None:
    """A grade between right and wrong, if there is one."""
    between = outcomes.values[(outcomes.values > 0) & (outcomes.values < 1)]
    return float(between[0]) if between.size else None


def load(
    path: Path,
    mapping: Mapping[str, str | None] | None = None,
    *,
    reference: str = "",
    task: str = "",
    kind: str = "",
    tokens: bool = False,
) -> Source:
    """The candidates at a path, with token columns only if asked for: they are large, and few commands need them.

    Grades are the file's own, those against the column ``reference``, or those of a ``task``, whichever is named.
    """
    require(not (reference and task), "--reference", reference, "and --task both grade: name one of them")
    if path.is_dir():
        given = [f"--map {part}=" for part in mapping or {}] + (["--reference"] if reference else [])
        require(not given, given[0] if given else "", str(path), "columns are of files; a bank has its parts already")
        source = _of_store(path, tokens)
    else:
        source = _of_file(path, mapping or {}, reference, kind, tokens, bool(task))
    return gold.graded_by(source, task) if task else source


def _of_file(
    path: Path, mapping: Mapping[str, str | None], reference: str, kind: str, tokens: bool, by_task: bool
) -> Source:
    with progress(f"reading {path.name}") as tell:
        made, run = Proposal(kind) if kind else None, stem_of(path)
        found = read(path, gold.without(mapping, reference), proposal=made, run=run, tokens=tokens, progress=tell)
    bank, grades, report = found.bank, dict(found.outcomes), gold.told(found.report, reference)
    columns = report.mapping
    source = Source(path, bank, grades, spoken(str(report)), columns=columns)
    if reference:
        gold.comparable(columns, reference)
    named = reference or ("" if grades or by_task else gold.guessed(columns))
    if named:
        own, how = gold.against(path, bank, mapping, named)
        return dataclasses.replace(source, grades={**grades, named: own}, chosen=reference, notes=(how,))
    binary = [name for name, layer in bank.layers.items() if _zero_or_one(layer.values)]
    if grades or by_task or len(binary) != 1:
        return source
    layer = bank.layers[binary[0]]
    rest = {name: each for name, each in bank.layers.items() if name != binary[0]}  # no rule may read its grades
    bank = dataclasses.replace(bank, layers={**rest, binary[0]: dataclasses.replace(layer, role="diagnostic")})
    grades = {binary[0]: Outcomes.of(bank, layer.values, binary[0])}
    told = f"{binary[0]} holds only 0 and 1: taken for the grades"
    return dataclasses.replace(source, bank=bank, grades=grades, notes=(told,))


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
    if not bank.drawn.any():
        raise InvalidValue(f"{path} is empty: no candidate is finished; go on with the command that makes them")
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


def _plain(name: str) -> str:
    """A name as a pattern that matches it alone."""
    import glob

    return glob.escape(name)


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

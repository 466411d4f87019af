"""Read a bank from a file of somebody else's making."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Mapping as MappingType
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ramify.bank import Bank, Outcomes, Proposal, from_arrow
from ramify.bank.codes import is_bottom
from ramify.bank.table import METADATA
from ramify.errors import InvalidValue
from ramify.store.exchange.block import Block, exploded
from ramify.store.exchange.blocks import blocks
from ramify.store.exchange.mapping import Mapping, guess
from ramify.store.exchange.names import kind_of
from ramify.store.exchange.parts import Ended, Part, part_for
from ramify.store.exchange.report import Collector, Report, Strictness
from ramify.store.exchange.stream import suffix_of

__all__ = ["Imported", "read"]

BLOCK = 16 << 20  # bytes of the file looked at together
LOOK = 1000  # rows that the mapping is guessed from


class Imported(NamedTuple):
    """A bank, the grades that lay beside it, and what the reading found."""

    bank: Bank
    outcomes: dict[str, Outcomes]
    report: Report


def read(
    path: str | PathLike[str],
    mapping: MappingType[str, str | None] | None = None,
    *,
    nested: bool | None = None,
    strict: Strictness = "structure",
    proposal: Proposal | None = None,
    run: str = "",
    bottom: Iterable[str] = (),
    tokens: bool = True,
    encoding: str = "utf-8",
    block: int = BLOCK,
    progress: Callable[[int], None] | None = None,
) -> Imported:
    """The bank in a file: .jsonl, .json, .csv, .tsv (all also .gz), .parquet, .npy or .npz.

    ``mapping`` says which column plays a part where the guess is wrong: ``{"answer": "pred", "layer.reward": "rm"}``,
    None for a part to leave out. The guess is in ``report.mapping``. ``nested`` is whether a row holds a question's
    candidates in lists. ``strict`` is "structure" (a broken row or cell is an error that names it, a missing value is
    counted), "all" (a missing value is an error too) or "nothing" (what is broken is dropped and counted). ``proposal``
    says what made the candidates; without it a file that does not say is taken for independent draws of one protocol.
    ``run`` names the run of rows that have none. ``bottom`` are answers that mean ⊥. Files are read ``block`` bytes at
    a time; ``progress`` is told the rows read so far.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "bank.csv"
    ...     _ = path.write_text("question,sample,answer,correct,score\\nq1,0,7,1,0.5\\nq1,1,,0,\\nq2,0,A,,2\\n")
    ...     bank, outcomes, report = read(path)
    >>> bank.answers.tolist(), outcomes["correct"].values.tolist(), bank.layers["score"].values.tolist()
    ([[0, -1], [0, -1]], [[1.0, 0.0], [nan, nan]], [[0.5, nan], [2.0, nan]])
    >>> report.missing
    {'answer': 1, 'layer.score': 1, 'outcome.correct': 1}
    """
    path, found = Path(path), Collector(str(path), strict)
    if _is_own(path) and not mapping:
        return _own(path, proposal, run, tokens)
    chosen = _guessed(path, dict(mapping or {}), nested, encoding, block, strict)
    if not tokens:
        kept = {part: column for part, column in chosen.parts.items() if not part.startswith("token.")}
        chosen = dataclasses.replace(chosen, parts=kept)
    rows = _Rows(chosen, frozenset(bottom), found)
    for each in blocks(path, encoding, block, found, set(chosen.parts.values())):
        rows.add(each)
        if progress is not None:
            progress(rows.read)
    bank, outcomes = _assembled(rows, path)
    recorded = "proposal" in chosen.parts
    bank = _ranks_from_one(_described(bank, proposal, run, recorded), found)
    if proposal is None and not recorded:
        found.note("taken for independent draws of one protocol; say otherwise with proposal=")
    rows.remark(bank)
    return Imported(bank, _graded(bank, outcomes), rows.report(bank))


def _is_own(path: Path) -> bool:
    """Whether ``ramify`` wrote this Parquet file, which then says itself what it is."""
    if suffix_of(path) != ".parquet" or not path.is_file():
        return False
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return METADATA in (parquet.read_schema(path).metadata or {})
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidValue(f"{path}: not a Parquet file that can be read: {error}") from None


def _own(path: Path, proposal: Proposal | None, run: str, tokens: bool) -> Imported:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        names = [name for name in parquet.read_schema(path).names if tokens or not name.startswith("token.")]
        table = parquet.read_table(path, columns=names, use_threads=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidValue(f"{path}: not a Parquet file that can be read: {error}") from None
    bank, outcomes = from_arrow(table, lambda row: f"{path}: row {row + 1}")
    bank = _described(bank, proposal, run, True)
    parts, widths = Mapping({name: name for name in names}), _widths(bank)
    report = Report(str(path), parts, len(table), 1, bank.shape[0], int(bank.drawn.sum()), widths, {}, {}, (), ())
    return Imported(bank, _graded(bank, outcomes), report)


def _graded(bank: Bank, outcomes: MappingType[str, Outcomes]) -> dict[str, Outcomes]:
    """The grades under the names that the runs have now."""
    return {name: Outcomes.of(bank, each.values, each.description, each.version) for name, each in outcomes.items()}


def _guessed(
    path: Path, given: dict[str, str | None], nested: bool | None, encoding: str, block: int, strict: Strictness
) -> Mapping:
    first = next(blocks(path, encoding, block, Collector(str(path), strict)), None)
    if first is None:
        raise InvalidValue(f"{path}: there are no rows in it")
    sample = {name: _first(values, LOOK) for name, values in first.columns.items()}
    kinds = {name: kind_of(_present(first.listed(name))) for name in sample if kind_of(sample[name]) == "empty"}
    try:
        mapping = guess(sample, given, nested, kinds)
    except InvalidValue as error:
        raise InvalidValue(f"{path}: {error}") from None
    if "question" not in mapping.parts and not mapping.nested:
        raise InvalidValue(
            f"{path}: no column names the question; it has {', '.join(sample)}: say which, as "
            "mapping={'question': ...} (--map question=COLUMN)"
        )
    wanted = [
        part for part in mapping.parts if part.partition(".")[0] in ("answer", "text", "outcome", "layer", "token")
    ]
    if not wanted:
        raise InvalidValue(
            f"{path}: no column holds answers, text, grades or scores; it has {', '.join(sample)}: say which, as "
            "mapping={'answer': ...} (--map answer=COLUMN)"
        )
    return mapping


def _present(values: list[Any]) -> list[Any]:
    """Values from anywhere in the block, of a column that is empty at first."""
    return list(islice((value for value in values if isinstance(value, list) or not is_bottom(value)), LOOK))


def _first(values: Any, count: int) -> list[Any]:
    return list(values[:count]) if isinstance(values, list) else values.slice(0, count).to_pylist()


class _Rows:
    """The rows of a file so far, part by part, and where each of them lay."""

    def __init__(self, mapping: Mapping, bottom: frozenset[str], found: Collector) -> None:
        self.mapping, self.found = mapping, found
        columns = dict(mapping.parts)
        if "question" not in columns:  # nested rows without an id are named by their place
            columns["question"] = ""
        itself = columns.get("prompt") == columns["question"]
        self.columns = columns
        self.parts: dict[str, Part] = {part: part_for(part, bottom, itself) for part in columns}
        self.read = self.kept = self.count = 0
        self.starts: list[int] = []
        self.lines: list[Any] = []
        self.unit = "row"

    def add(self, block: Block) -> None:
        self.read += len(block.lines)
        known = {*self.columns.values(), *self.mapping.ignored}
        for name in block.columns.keys() - known:
            self.found.note(f"column {name!r} appears at {block.where(0)} or later and was not read: map a part to it")
        block = self.prepared(block)
        broken = np.zeros(len(block.lines), dtype=bool)
        for part, reader in self.parts.items():
            broken |= reader.add(block, self.columns[part], self.found)
        lines: Any = block.lines
        if broken.any():
            lines = np.asarray(block.lines)[~broken]
            for reader in self.parts.values():
                reader.keep(~broken)
        self.starts.append(self.kept)
        self.lines.append(lines)
        self.kept += len(lines)
        self.count, self.unit = self.count + 1, block.unit

    def prepared(self, block: Block) -> Block:
        """The block with every column it should have, one row a candidate."""
        wanted = dict.fromkeys(column for column in self.columns.values() if column)
        columns = {name: block.columns.get(name, [None] * len(block.lines)) for name in wanted}
        if "" in self.columns.values():
            columns[""] = [f"q{number - 1}" for number in block.lines]
        block = Block(columns, block.lines, block.unit)
        return exploded(block, self.lists(), self.found) if self.mapping.nested else block

    def lists(self) -> list[str]:
        """The columns of a nested file that hold candidates; the others describe the question."""
        families = ("question", "prompt", "group", "run", "proposal")
        return [column for part, column in self.mapping.parts.items() if part.partition(".")[0] not in families]

    def where(self, row: int) -> str:
        at = bisect_right(self.starts, row) - 1
        return f"{self.unit} {int(self.lines[at][row - self.starts[at]])}"

    def table(self) -> Any:
        import pyarrow as pa

        return pa.table({part: self.parts[part].column() for part in list(self.parts)})

    def remark(self, bank: Bank) -> None:
        """Notes on what is as it should be, and might still surprise."""
        (low, high), ended = _widths(bank), self.parts.get("ended")
        if low != high:
            self.found.note(f"questions have {low} to {high} candidates")
        if "answer" not in self.mapping.parts:
            self.found.note("no answers were recorded: every candidate is ⊥")
        if isinstance(ended, Ended) and ended.strange:
            self.found.note(
                f"the finish reasons {sorted(ended.strange)[:5]} mean nothing here: these endings are unknown"
            )
        answers = Counter(str(answer) for texts in bank.answer_text for answer in texts)
        for word in ("None", "none", "null", "nan", "NaN"):
            if answers[word]:
                remedy = f"pass bottom=[{word!r}] if it means no answer"
                self.found.note(f"the answer {word!r} was given to {answers[word]} questions; {remedy}")

    def report(self, bank: Bank) -> Report:
        found, questions = self.found, len(bank.questions)
        missing = dict(sorted(found.missing.items()))
        notes = (*self.mapping.notes, *found.notes)
        read = (self.read, self.count, questions, int(bank.drawn.sum()), _widths(bank))
        return Report(found.path, self.mapping, *read, missing, dict(found.dropped), tuple(found.problems), notes)


def _widths(bank: Bank) -> tuple[int, int]:
    counts = bank.drawn.sum(axis=1)
    return int(counts.min(initial=counts.max(initial=0))), int(counts.max(initial=0))


def _assembled(rows: _Rows, path: Path) -> Any:
    table = rows.table()
    if not len(table):
        raise InvalidValue(f"{path}: there are no rows in it that can be read")
    if rows.found.strict == "nothing":
        table = _without_repeats(table, rows)
    try:
        return from_arrow(table, rows.where)
    except InvalidValue as error:
        raise InvalidValue(f"{path}: {_renamed(str(error), rows.mapping)}") from None


def _renamed(message: str, mapping: Mapping) -> str:
    """The file's own name of a column, beside the part it plays."""
    for part, column in mapping.parts.items():
        if f"column {part!r}" in message and column != part:
            return message.replace(f"column {part!r}", f"column {column!r} ({part})", 1)
    return message


def _without_repeats(table: Any, rows: _Rows) -> Any:
    """The first of every question, run and sample."""
    import pyarrow as pa

    if "sample" not in table.column_names:
        return table
    names = [name for name in ("question", "proposal", "run", "sample") if name in table.column_names]
    seen: set[tuple[Any, ...]] = set()
    keep = np.ones(len(table), dtype=bool)
    for row, key in enumerate(zip(*(table[name].to_pylist() for name in names), strict=True)):
        if key in seen:
            keep[row] = False
            rows.found.broken(rows.where(row), rows.mapping.parts["sample"], key[-1], "this sample is there already")
        seen.add(key)
    return table if keep.all() else table.filter(pa.array(keep))


def _described(bank: Bank, proposal: Proposal | None, run: str, recorded: bool) -> Bank:
    """The bank with what is known of its origin: what the file recorded, and the caller's word on the rest."""
    if recorded and proposal is None:
        return bank
    signals = () if bank.tokens is None else tuple(bank.tokens.columns)
    top = 0 if bank.tokens is None or "top_ids" not in signals else bank.tokens["top_ids"].shape[1]
    base = proposal or Proposal()
    base = dataclasses.replace(base, run=base.run or run)
    length = bank.length
    if length is None and bank.tokens is not None:  # the tokens are all there, so their number is known
        length = np.where(bank.tokens.start < 0, -1, bank.tokens.length)
    told = [
        dataclasses.replace(base, run=each.run or base.run, signals=base.signals or signals, top=base.top or top)
        for each in bank.proposals
    ]
    return dataclasses.replace(bank, proposals=tuple(told), length=length)


def _ranks_from_one(bank: Bank, found: Collector) -> Bank:
    """Ranks count from 1 here. A file that has a rank 0 counts from 0."""
    if bank.tokens is None or "rank" not in bank.tokens.columns:
        return bank
    rank = bank.tokens["rank"]
    if not rank.size or rank.min() != 0:
        return bank
    found.note("ranks count from 0 in the file, and from 1 in the bank")
    return dataclasses.replace(
        bank,
        tokens=dataclasses.replace(bank.tokens, columns={**bank.tokens.columns, "rank": rank + rank.dtype.type(1)}),
    )

"""An Arrow table on its way to a bank: every column checked, and put in its place."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from ramify.arrays import Array
from ramify.bank.assemble import Placement, Where, constant, first_seen, local_codes, placed
from ramify.bank.bank import ENDINGS, Bank
from ramify.bank.layers import Layer, Outcomes
from ramify.bank.proposal import Proposal
from ramify.bank.tokens import COLUMNS, TokenTable
from ramify.errors import InvalidValue, require
from ramify.types import Question

__all__ = ["METADATA", "VERSION", "TableReader", "WithOutcomes", "pyarrow"]

METADATA = b"ramify"  # the key of the schema's metadata
VERSION = 1


class WithOutcomes(NamedTuple):
    """A bank, and the grades that lay beside it in the table."""

    bank: Bank
    outcomes: dict[str, Outcomes]


def pyarrow() -> Any:
    """pyarrow, imported when a table is asked for: the bank itself does without."""
    import pyarrow

    return pyarrow


def _read_metadata(table: Any) -> dict[str, Any]:
    raw = (table.schema.metadata or {}).get(METADATA)
    metadata: dict[str, Any] = {} if raw is None else json.loads(raw)
    version = metadata.get("version", VERSION)
    require(version == VERSION, "the table's version", version, f"this release reads version {VERSION}")
    return metadata


class TableReader:
    """One table on its way to a bank."""

    def __init__(self, table: Any, where: Where) -> None:
        require("question" in table.column_names, "columns", table.column_names, "one of them has to be 'question'")
        self.table, self.metadata, self.where = table, _read_metadata(table), where
        codes, ids = self.codes("question")
        absent = np.flatnonzero(codes < 0)
        require(not absent.size, f"{where(int(absent[0]) if absent.size else 0)}, column 'question'", None, "name it")
        empty = [entry for entry in self.metadata.get("empty", ()) if entry[1] not in set(ids)]
        self.question, self.questions = self.asked(codes, [str(name) for name in ids], empty)

    def has(self, name: str) -> bool:
        return name in self.table.column_names

    def under(self, prefix: str) -> dict[str, str]:
        """The columns ``prefix.<name>``, by name."""
        return {name.removeprefix(prefix): name for name in self.table.column_names if name.startswith(prefix)}

    def codes(self, name: str) -> tuple[Array, list[Any]]:
        """A column as codes ``[R]`` in order of first appearance, -1 for null, and the values they stand for."""
        pa, column = pyarrow(), self.table[name]
        if pa.types.is_null(column.type):
            return np.full(len(column), -1, dtype=np.int32), []
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        column = column.unify_dictionaries()
        if not column.num_chunks:
            return np.empty(0, dtype=np.int32), []
        parts = [chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False) for chunk in column.chunks]
        values = column.chunk(0).dictionary.to_pylist()
        values = [None if value == "" or value != value else value for value in values] if name == "answer" else values
        return first_seen(np.concatenate(parts), values)

    def asked(
        self, codes: Array, ids: list[str], empty: list[tuple[int, str, str, dict[str, str]]]
    ) -> tuple[Array, tuple[Question, ...]]:
        """The questions in order, and the question ``[R]`` of every row. Those nobody drew for keep their place."""
        facts: dict[str, list[str | None]] = {}
        for name in ["prompt"] * self.has("prompt") + list(self.under("group.").values()):
            own, values = self.codes(name)
            chosen = constant(codes, own, len(ids), name, self.where)
            facts[name] = [None if code < 0 else str(values[code]) for code in chosen.tolist()]
        prompts = facts.pop("prompt", [None] * len(ids))
        questions = [
            Question(
                name,
                prompts[row] or "",
                {each.removeprefix("group."): str(v[row]) for each, v in facts.items() if v[row] is not None},
            )
            for row, name in enumerate(ids)
        ]
        place = np.arange(len(ids))
        for row, name, prompt, groups in empty:  # ascending, so each one finds its place among those before it
            questions.insert(row, Question(name, prompt, groups))
            place += place >= row
        return place[codes] if len(ids) else codes, tuple(questions)

    def proposals(self) -> tuple[Array, tuple[Proposal, ...]]:
        if self.has("proposal"):
            codes, values = self.codes("proposal")
            proposals = [_proposal(value) for value in values]
        elif self.has("run"):
            codes, values = self.codes("run")
            proposals = [Proposal(run=str(value)) for value in values]
        else:
            return np.zeros(len(self.question), dtype=np.int16), (Proposal(),)
        if (codes < 0).any():
            codes, proposals = np.where(codes < 0, len(proposals), codes), [*proposals, Proposal()]
        return codes.astype(np.int16), tuple(proposals) or (Proposal(),)

    def bank(self) -> WithOutcomes:
        source, proposals = self.proposals()
        samples = self.whole("sample") if self.has("sample") else _appearance(self.question)
        candidate = self.whole("candidate") if self.has("candidate") else None
        shape = (len(self.questions), int(self.metadata.get("width", 0)) if candidate is not None else 0)
        rows = placed(self.question, source, samples, candidate, shape, self.where)
        answers, texts = self.answers(rows)
        ended, endings = self.endings()
        bank = Bank(
            questions=self.questions,
            answer_text=texts,
            answers=rows.table(_as_given(rows, answers), -1),
            drawn=rows.table(np.ones(len(self.question), dtype=bool), False),
            ended=rows.table(ended, 0),
            source=rows.table(source, -1),
            samples=rows.table(samples, 0, np.int64),
            proposals=proposals,
            endings=endings,
            log_q=rows.table(self.floats("log_q"), np.nan) if self.has("log_q") else None,
            length=rows.table(self.whole("length", null=-1), -1) if self.has("length") else None,
            text=rows.table(self.text(), None, object) if self.has("text") else None,
            tokens=self.tokens(rows),
            layers={name: self.layer(name, column, rows) for name, column in self.under("layer.").items()},
            assumed=self.metadata.get("assumed", ""),
        )
        return WithOutcomes(bank, {name: self.graded(bank, name, rows) for name in self.under("outcome.")})

    def answers(self, rows: Placement) -> tuple[Array, tuple[tuple[Any, ...], ...]]:
        """Codes ``[R]`` in order, each question with its own, and the answers they stand for."""
        if not self.has("answer"):
            return np.full(len(rows.question), -1, dtype=np.int32), ((),) * len(self.questions)
        codes, values = self.codes("answer")
        if self.metadata.get("answer") == "json":
            values = [_hashable(json.loads(value)) for value in values]
        local, own = local_codes(rows.question, rows.sorted(codes), len(self.questions))
        return local, tuple(tuple(values[code] for code in each.tolist()) for each in own)

    def endings(self) -> tuple[Array, tuple[str, ...]]:
        if not self.has("ended"):
            return np.zeros(len(self.question), dtype=np.uint8), ENDINGS
        codes, values = self.codes("ended")
        endings = tuple(dict.fromkeys([*ENDINGS, *map(str, values)]))
        require(len(endings) < 256, "column 'ended'", len(endings), "a bank tells at most 255 endings apart")
        table = np.array([*(endings.index(str(value)) for value in values), 0], dtype=np.uint8)  # -1 is the last
        return table[codes], endings

    def whole(self, name: str, null: int | None = None) -> Array:
        """A column of whole numbers; a null is an error unless it stands for something."""
        pa, column = pyarrow(), self.table[name]
        if null is None and column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise InvalidValue(f"{self.where(row)}, column {name!r} = None: use a whole number")
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InvalidValue(f"column {name!r}: {error}: use whole numbers") from None
        return (column if null is None else column.fill_null(null)).to_numpy()

    def floats(self, name: str) -> Array:
        pa, column = pyarrow(), self.table[name]
        kept = column.type if pa.types.is_floating(column.type) else pa.float64()
        try:
            return column.cast(pa.float64() if kept == pa.float16() else kept).to_numpy()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidValue(f"column {name!r}: {error}: use numbers") from None

    def text(self) -> Array:
        found = np.empty(len(self.table), dtype=object)
        found[:] = self.table["text"].to_pylist()
        return found

    def layer(self, name: str, column: str, rows: Placement) -> Layer:
        description, version, role = self.metadata.get("layers", {}).get(name, (name, "", "deployable"))
        cost = rows.table(self.floats(f"cost.{name}"), 0) if self.has(f"cost.{name}") else None
        return Layer(rows.table(self.floats(column), np.nan), description, version, cost, role)

    def graded(self, bank: Bank, name: str, rows: Placement) -> Outcomes:
        description, version = self.metadata.get("outcomes", {}).get(name, (name, ""))
        values = self.floats(f"outcome.{name}")
        wrong = np.flatnonzero((values < 0) | (values > 1))
        if wrong.size:
            row = int(wrong[0])
            raise InvalidValue(f"{self.where(row)}, column {name!r} = {float(values[row])!r}: grade within [0, 1]")
        return Outcomes.of(bank, rows.table(values, np.nan), description, version)

    def tokens(self, rows: Placement) -> TokenTable | None:
        found = self.under("token.")
        if not found:
            return None
        columns: dict[str, Array] = {}
        shared: Array = None
        for name, column in found.items():
            start, length, values = _flat(self.table[column], column, COLUMNS.get(name))
            if shared is not None and not (np.array_equal(shared[1], length) and np.array_equal(shared[0], start)):
                row = int(np.flatnonzero((shared[1] != length) | (shared[0] != start))[0])
                remedy = f"it has another length than column {next(iter(found.values()))!r}"
                raise InvalidValue(f"{self.where(row)}, column {column!r}: {remedy}")
            shared = shared or (start, length)
            columns[name] = values
        return TokenTable(rows.table(shared[0], -1), rows.table(shared[1], 0), columns)


def _as_given(rows: Placement, values: Array) -> Array:
    """Values in order of question and position, as values in order of the table's rows."""
    if rows.order is None:
        return values
    found = np.empty_like(values)
    found[rows.order] = values
    return found


def _appearance(question: Array) -> Array:
    """The samples of rows that do not say: 0, 1, ... within each question, as they come."""
    order = np.argsort(question, kind="stable")
    counts = np.bincount(question)
    found = np.empty(len(question), dtype=np.int64)
    found[order] = np.arange(len(question)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found


def _proposal(form: str) -> Proposal:
    try:
        fields: dict[str, Any] = json.loads(form)
        fields.pop("method", None)
        fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return Proposal(**fields)
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidValue(f"column 'proposal' = {form[:80]!r}: {error}") from None


def _hashable(answer: Any) -> Any:
    return tuple(map(_hashable, answer)) if isinstance(answer, list) else answer


def _flat(column: Any, name: str, dtype: Any) -> tuple[Array, Array, Array]:
    """``(start [R], length [R], values [T] or [T, K])`` of a column of lists; a null has start -1."""
    pa = pyarrow()
    import pyarrow.compute as pc

    array = column.combine_chunks()
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    length = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    absent = array.is_null().to_numpy(zero_copy_only=False)
    start = np.where(absent, -1, np.cumsum(length) - length)
    items, width = array.flatten(), None
    if pa.types.is_nested(items.type):
        widths = np.unique(pc.list_value_length(items).to_numpy(zero_copy_only=False)).tolist()
        require(len(widths) <= 1, f"column {name!r}", widths[:3], "record as many alternatives at every token")
        width, items = (widths[0] if widths else getattr(items.type, "list_size", 0)), items.flatten()
    whole = dtype is not None and dtype.kind != "f"
    require(not (whole and items.null_count), f"column {name!r}", None, "leave no gaps inside a list")
    values = items.to_numpy(zero_copy_only=False)
    values = values.astype(dtype, copy=False) if whole else values  # floats stay as precise as they were stored
    return start, length, values if width is None else values.reshape(-1 if width else 0, width)

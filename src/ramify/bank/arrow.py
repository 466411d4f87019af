"""A bank as an Arrow table, one row a candidate, and back; xarray at the edge.

Everything a row says is in its columns, so that a table survives what data frames do to it (filters, joins of several
banks, files). Only descriptions of layers and outcomes, and questions nobody drew for, travel as schema metadata.

    question  prompt  group.<name>  run  proposal (JSON)  candidate  sample  answer  ended  length  log_q  text
    layer.<name>  cost.<name>  outcome.<name>  token.<column> (lists)

null is what it is in the bank: ⊥ for an answer, unknown for a length or log q, missing for a score or a grade.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank.assemble import Where
from ramify.bank.bank import Bank
from ramify.bank.layers import Outcomes
from ramify.bank.table import METADATA, VERSION, TableReader, WithOutcomes, pyarrow
from ramify.describe import describe
from ramify.errors import InvalidValue, require

__all__ = ["from_arrow", "to_arrow", "to_xarray"]


# ------------------------------------------------------------------------------------------------------ bank -> Arrow


def to_arrow(bank: Bank, outcomes: Mapping[str, Outcomes] | None = None, tokens: Iterable[str] = ()) -> Any:
    """The drawn candidates as a ``pyarrow.Table``, with these outcomes beside them and these token columns as lists.

    >>> bank = Bank.of({"q1": ["A", None], "q2": ["7"]}, scores={"reward": [[0.5, 0.25], [None]]})
    >>> table = to_arrow(bank, {"exact": Outcomes.of(bank, [[1, 0], [1, np.nan]])})
    >>> table.select(["question", "sample", "answer", "layer.reward", "outcome.exact"]).to_pylist()[1:]
    [{'question': 'q1', 'sample': 1, 'answer': None, 'layer.reward': 0.25, 'outcome.exact': 0.0},
     {'question': 'q2', 'sample': 0, 'answer': '7', 'layer.reward': None, 'outcome.exact': 1.0}]
    """
    pa, outcomes = pyarrow(), outcomes or {}
    columns = dict(_columns(bank, outcomes, list(tokens)))
    metadata = {METADATA: json.dumps(_metadata(bank, outcomes)).encode()}
    return pa.table(columns).replace_schema_metadata(metadata)


def _columns(bank: Bank, outcomes: Mapping[str, Outcomes], tokens: list[str]) -> Iterator[tuple[str, Any]]:
    pa = pyarrow()
    q, n = np.nonzero(bank.drawn)
    yield "question", _coded(q, [question.id for question in bank.questions])
    yield "prompt", _coded(q, [question.prompt for question in bank.questions])
    for group in dict.fromkeys(name for question in bank.questions for name in question.groups):
        yield f"group.{group}", _coded(q, [question.groups.get(group) for question in bank.questions])
    yield "run", _coded(bank.source[q, n], [proposal.run for proposal in bank.proposals])
    yield "proposal", _coded(bank.source[q, n], [json.dumps(describe(each)) for each in bank.proposals])
    yield "candidate", pa.array(n.astype(np.int32))
    yield "sample", pa.array(bank.samples[q, n].astype(np.int64))
    yield "answer", _answers(bank, q, n)
    yield "ended", _coded(bank.ended[q, n], list(bank.endings))
    if bank.length is not None:
        yield "length", _numbers(bank.length[q, n], bank.length[q, n] < 0)
    if bank.log_q is not None:
        yield "log_q", _numbers(bank.log_q[q, n])
    if bank.text is not None:
        yield "text", pa.array(bank.text[q, n], type=pa.large_string())
    for name, layer in bank.layers.items():
        require(layer.values.ndim == 2, f"layer {name!r}", layer.values.shape, "only [Q, N] layers have a column")
        yield f"layer.{name}", _numbers(layer.values[q, n])
        if layer.cost is not None:
            yield f"cost.{name}", _numbers(layer.cost[q, n])
    for name, graded in outcomes.items():
        yield f"outcome.{name}", _numbers(graded.on(bank)[q, n])
    for name in tokens:
        yield f"token.{name}", _lists(bank, q, n, name)


def _coded(codes: Array, values: list[Any], kind: Any = None, missing: Array | None = None) -> Any:
    """Values that repeat, each stored once: rows ``[R]`` of codes into ``values``, among which some may be equal."""
    pa = pyarrow()
    known = pa.array(values, type=kind or pa.large_string()).dictionary_encode()
    indices = known.indices.take(pa.array(codes.astype(np.int32), mask=missing))
    return pa.DictionaryArray.from_arrays(indices, known.dictionary)


def _numbers(values: Array, unknown: Array | None = None) -> Any:
    missing = unknown if unknown is not None else np.isnan(values) if values.dtype.kind == "f" else None
    return pyarrow().array(values, mask=missing)


def _answers(bank: Bank, q: Array, n: Array) -> Any:
    """Answers as strings, whole numbers or floats if all are of that kind; otherwise as JSON, which metadata says."""
    pa, kind = pyarrow(), _answer_kind(bank)
    starts = np.cumsum([0, *map(len, bank.answer_text)])
    values = [answer for texts in bank.answer_text for answer in texts]
    if kind == "json":
        values = [_as_json(answer) for answer in values]
    local = bank.answers[q, n]
    types = {"text": pa.large_string(), "json": pa.large_string(), "whole": pa.int64(), "float": pa.float64()}
    coded = _coded(starts[q] + local, values, types[kind], local < 0)
    return coded if kind in ("text", "json") else coded.cast(types[kind])


def _answer_kind(bank: Bank) -> str:
    kinds = {type(answer) for texts in bank.answer_text for answer in texts}
    if kinds <= {str}:
        return "text"
    if kinds == {int} and all(-(2**63) <= answer < 2**63 for texts in bank.answer_text for answer in texts):
        return "whole"
    return "float" if kinds == {float} else "json"


def _as_json(answer: Any) -> str:
    try:
        return json.dumps(answer.item() if isinstance(answer, np.generic) else answer)
    except TypeError:
        remedy = "use strings, numbers, booleans or tuples of them"
        raise InvalidValue(f"the answer {answer!r} has no column form: {remedy}") from None


def _lists(bank: Bank, q: Array, n: Array, name: str) -> Any:
    """A token column as lists; null where a candidate's tokens were not recorded. The alternatives are ``[t, K]``."""
    pa = pyarrow()
    if bank.tokens is None:
        raise InvalidValue(f"the bank did not record {name!r}: it has no token columns")
    offsets, packed = bank.tokens.packed(name)
    kept = offsets[np.append(q * bank.shape[1] + n, len(offsets) - 1)]  # the undrawn own no tokens
    values = np.ascontiguousarray(packed[name])
    flat = pa.array(values.reshape(-1))
    items = flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    return pa.LargeListArray.from_arrays(pa.array(kept), items, mask=pa.array(bank.tokens.start[q, n] < 0))


def _metadata(bank: Bank, outcomes: Mapping[str, Outcomes]) -> dict[str, Any]:
    empty = [row for row in range(len(bank.questions)) if not bank.drawn[row].any()]
    asked = [(row, bank.questions[row]) for row in empty]
    return {
        "version": VERSION,
        "answer": _answer_kind(bank),
        "width": bank.shape[1],
        "assumed": bank.assumed,
        "empty": [[row, question.id, question.prompt, dict(question.groups)] for row, question in asked],
        "layers": {name: [each.description, each.version, each.role] for name, each in bank.layers.items()},
        "outcomes": {name: [each.description, each.version] for name, each in outcomes.items()},
    }


# ------------------------------------------------------------------------------------------------------ Arrow -> bank


def from_arrow(table: Any, where: Where = "row {}".format) -> WithOutcomes:
    """The bank of a table, and its outcomes: what ``to_arrow`` makes, or anything with a column ``question``.

    Any Arrow producer will do (pyarrow, polars, pandas, DuckDB). Without ``sample`` the rows of a question are its
    samples in order; without ``candidate`` they are ordered by run and sample. ``where`` names a row in errors.

    >>> import pyarrow as pa
    >>> bank, outcomes = from_arrow(pa.table({"question": ["a", "b", "a"], "answer": ["1", "2", None]}))
    >>> bank.shape, bank.answers.tolist(), outcomes
    ((2, 2), [[0, -1], [0, -1]], {})
    """
    pa = pyarrow()
    table = table if isinstance(table, pa.Table) else pa.table(table)
    return TableReader(table, where).bank()


# ------------------------------------------------------------------------------------------------------------- xarray


def to_xarray(bank: Bank, outcomes: Mapping[str, Outcomes] | None = None) -> Any:
    """The bank as an ``xarray.Dataset`` with dims question and candidate; NaN, -1 and "" are not known.

    >>> data = to_xarray(Bank.of({"q1": ["A", "A"], "q2": ["7"]}))
    >>> dict(data.sizes), data.answer.sel(question="q2").values.tolist(), int(data.drawn.sum())
    ({'question': 2, 'candidate': 2}, ['7', ''], 3)
    """
    try:
        import xarray
    except ImportError:
        raise InvalidValue("to_xarray needs xarray: pip install xarray") from None

    dims = ("question", "candidate")
    answer = np.full(bank.shape, "", dtype=object)  # xarray would make NaN of None
    for q, n in zip(*np.nonzero(bank.answers >= 0), strict=True):
        answer[q, n] = bank.answer(q, n)
    ended = np.array(bank.endings, dtype=object)[bank.ended]
    variables = {"answer": answer, "code": bank.answers, "drawn": bank.drawn, "sample": bank.samples, "ended": ended}
    variables |= {name: getattr(bank, name) for name in ("log_q", "length", "text") if getattr(bank, name) is not None}
    variables |= {f"layer.{name}": layer.values for name, layer in bank.layers.items()}
    variables |= {f"outcome.{name}": graded.on(bank) for name, graded in (outcomes or {}).items()}
    coords: dict[str, Any] = {"question": [question.id for question in bank.questions]}
    for group in dict.fromkeys(name for question in bank.questions for name in question.groups):
        coords[f"group.{group}"] = ("question", [question.groups.get(group) for question in bank.questions])
    return xarray.Dataset({name: (dims, values) for name, values in variables.items()}, coords)

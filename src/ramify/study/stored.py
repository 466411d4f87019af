"""A result on disk: ``result.json`` names everything, ``arrays-*.npz`` holds the numbers, ``banks/`` the leaves.

The JSON file is replaced last and at once, and the arrays are named after their content: a reader sees the old result
or the new one. A bank is kept once, as its store; a result says which of its questions and candidates it used.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Layer, Outcomes
from ramify.errors import StoreError
from ramify.metrics.estimate import Estimate
from ramify.store import Store, disk
from ramify.study.result import Agreed, Charge, Comparison, Coverage, Measure, Result, Row
from ramify.types import Question

__all__ = ["FILE", "FORMAT", "HELD", "opened", "read", "write"]

FILE = "result.json"
FORMAT = "ramify-study"
VERSION = 1
HELD = 20_000_000  # tokens of a bank that are held in memory with their texts
ARRAYS = ("utility", "spread", "invalid", "capped", "tokens")


def write(folder: Path, result: Result, stores: Mapping[str, str]) -> None:
    """Keep a result beside its banks; ``stores`` says in which directory under the folder each bank lies."""
    numbers: dict[str, Array] = {}
    form = {
        "format": FORMAT,
        "version": VERSION,
        "title": result.title,
        "card": dict(result.card),
        "questions": {task: [dataclasses.asdict(each) for each in asked] for task, asked in result.questions.items()},
        "rows": [_row(row, f"row{i}", numbers) for i, row in enumerate(result.rows)],
        "banks": {
            name: _bank(bank, result.outcomes.get(name), stores[name], f"bank{i}", numbers)
            for i, (name, bank) in enumerate(result.banks.items())
        },
        "comparisons": [_plain(each) for each in result.comparisons],
        "shared": list(result.shared),
        "reproduced": dict(result.reproduced),
        "interfaces": [dataclasses.asdict(each) for each in result.interfaces],
        "measures": [_plain(each) for each in result.measures],
        "charges": [dataclasses.asdict(each) for each in result.charges],
        "agreements": [_agreed(each, f"agreed{i}", numbers) for i, each in enumerate(result.agreements)],
        "notes": list(result.notes),
    }
    form["arrays"] = _save(folder, numbers)
    _put(folder / FILE, json.dumps(form, indent=1, ensure_ascii=False).encode() + b"\n")
    for old in folder.glob("arrays-*.npz"):
        if old.name != form["arrays"]:
            disk.remove(old)


def read(folder: Path, columns: Sequence[str] = ()) -> Result:
    """The result that lies in a folder."""
    try:
        form = json.loads((folder / FILE).read_text())
    except FileNotFoundError:
        raise StoreError(f"{folder} has no {FILE}: no study was run to its end here; run `ramify run` first") from None
    except ValueError as error:
        raise StoreError(f"{folder / FILE}: {error}; it is damaged: run the study again, leaves are kept") from None
    if form.get("format") != FORMAT or form.get("version") != VERSION:
        says = f"{form.get('format')!r}, version {form.get('version')}"
        raise StoreError(f"{folder / FILE} says {says}; this ramify reads {FORMAT!r}, version {VERSION}")
    try:
        with np.load(folder / form["arrays"]) as loaded:
            numbers = {name: loaded[name] for name in loaded.files}
    except FileNotFoundError:  # another result took its place between the two
        if json.loads((folder / FILE).read_text())["arrays"] != form["arrays"]:
            return read(folder, columns)
        raise StoreError(f"{folder / form['arrays']} is missing: run the study again, leaves are kept") from None
    banks = {name: _opened(folder, each, numbers, columns) for name, each in form["banks"].items()}
    graded = {
        name: Outcomes.of(banks[name], numbers[each["outcomes"]], **each["graded"])
        for name, each in form["banks"].items()
        if each["outcomes"] is not None
    }
    return Result(
        title=form["title"],
        card=form["card"],
        questions={task: tuple(Question(**each) for each in asked) for task, asked in form["questions"].items()},
        rows=tuple(_row_of(each, numbers) for each in form["rows"]),
        banks=banks,
        outcomes=graded,
        comparisons=tuple(Comparison(**_with_estimate(each, "difference")) for each in form["comparisons"]),
        shared=tuple(form["shared"]),
        reproduced=form["reproduced"],
        interfaces=tuple(Coverage(**each) for each in form["interfaces"]),
        measures=tuple(Measure(**_with_estimate(each, "estimate")) for each in form["measures"]),
        charges=tuple(Charge(**each) for each in form.get("charges", ())),  # results of before have none
        agreements=tuple(_agreed_of(each, numbers) for each in form["agreements"]),
        notes=tuple(form["notes"]),
    )


# ------------------------------------------------------------------------------------------------------- value -> JSON


def _row(row: Row, place: str, numbers: dict[str, Array]) -> dict[str, Any]:
    form = {
        each.name: getattr(row, each.name) for each in dataclasses.fields(row) if each.name not in (*ARRAYS, "cost")
    }
    for name in ARRAYS:
        form[name] = _keep(getattr(row, name), f"{place}.{name}", numbers)
    form["cost"] = {
        stage: _keep(np.broadcast_to(part, row.utility.shape), f"{place}.cost.{stage}", numbers)
        for stage, part in row.cost.items()
    }
    return form


def _bank(bank: Bank, outcomes: Outcomes | None, store: str, place: str, numbers: dict[str, Array]) -> dict[str, Any]:
    """Which questions and how many candidates of a store; layers and grades are numbers of the result."""
    layers = {}
    for i, (name, layer) in enumerate(bank.layers.items()):
        layers[name] = {
            "values": _keep(layer.values, f"{place}.layer{i}", numbers),
            "cost": _keep(layer.cost, f"{place}.layer{i}.cost", numbers),
            "description": layer.description,
            "version": layer.version,
            "role": layer.role,
        }
    return {
        "store": store,
        "questions": [question.id for question in bank.questions],
        "candidates": _keep(bank.drawn.sum(axis=1), f"{place}.candidates", numbers),
        "layers": layers,
        "outcomes": None if outcomes is None else _keep(outcomes.on(bank), f"{place}.outcomes", numbers),
        "graded": {} if outcomes is None else {"description": outcomes.description, "version": outcomes.version},
    }


def _agreed(agreed: Agreed, place: str, numbers: dict[str, Array]) -> dict[str, Any]:
    form = {"task": agreed.task, "models": list(agreed.models), "measure": agreed.measure}
    names = ("budgets", "mean", "low", "high")
    return form | {name: _keep(getattr(agreed, name), f"{place}.{name}", numbers) for name in names}


def _plain(record: Any) -> dict[str, Any]:
    """A record as JSON; numbers that JSON has no word for are strings."""

    def number(value: Any) -> Any:
        return repr(value) if isinstance(value, float) and not math.isfinite(value) else value

    form = dataclasses.asdict(record)
    return {
        name: {key: number(each) for key, each in value.items()} if isinstance(value, dict) else number(value)
        for name, value in form.items()
    }


def _keep(array: Array | None, name: str, numbers: dict[str, Array]) -> str | None:
    if array is None:
        return None
    numbers[name] = np.asarray(array)
    return name


def _save(folder: Path, numbers: Mapping[str, Array]) -> str:
    """The arrays in a file that is named after its content."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **dict(numbers))
    content = hashlib.blake2b(digest_size=8)
    for name, array in numbers.items():  # a zip file has times in it, and is another at every writing
        content.update(f"{name} {array.dtype.str} {array.shape};".encode() + np.ascontiguousarray(array).tobytes())
    name = f"arrays-{content.hexdigest()}.npz"
    if not (folder / name).exists():
        _put(folder / name, buffer.getvalue())
    return name


def _put(final: Path, data: bytes) -> None:
    written = disk.temporary(final)
    written.write_bytes(data)
    disk.publish(written, final)


# ------------------------------------------------------------------------------------------------------- JSON -> value


def _row_of(form: Mapping[str, Any], numbers: Mapping[str, Array]) -> Row:
    arrays = {name: None if form[name] is None else numbers[form[name]] for name in ARRAYS}
    return Row(**{**form, **arrays, "cost": {stage: numbers[name] for stage, name in form["cost"].items()}})


def _opened(folder: Path, form: Mapping[str, Any], numbers: Mapping[str, Array], columns: Sequence[str]) -> Bank:
    """The part of a store that the result is about, as it was: what was added since is not in it."""
    whole = opened(folder / form["store"], columns, light=True)
    bank = whole.only(form["questions"])
    count = numbers[form["candidates"]]
    width = int(count.max(initial=0))
    place = np.arange(width)
    bank = bank.take(np.where(place < count[:, None], place, -1))
    for name, each in form["layers"].items():
        cost = None if each["cost"] is None else numbers[each["cost"]]
        layer = Layer(numbers[each["values"]], each["description"], each["version"], cost, each["role"])
        bank = bank.attach(name, layer)
    return bank


def opened(path: Path, columns: Sequence[str], *, light: bool = False) -> Bank:
    """The bank of a store. Tokens of a large one are mapped from disk; a ``light`` one has none of them, and no texts.

    A file that is mapped outlives its name, so nothing is left behind.
    """
    with Store.open(path).snapshot() as snapshot:
        if int(np.maximum(snapshot.lengths(), 0).sum()) <= HELD:
            return snapshot.bank(columns)
        if light:
            return snapshot.bank((), text=False)
        with TemporaryDirectory(dir=path.parent, prefix=".scratch-") as scratch:
            return snapshot.bank(columns, scratch=Path(scratch))


def _agreed_of(form: Mapping[str, Any], numbers: Mapping[str, Array]) -> Agreed:
    arrays = {name: numbers[form[name]] for name in ("budgets", "mean", "low", "high")}
    return Agreed(form["task"], tuple(form["models"]), form["measure"], **arrays)


def _with_estimate(form: Mapping[str, Any], name: str) -> dict[str, Any]:
    given = dict(form[name])
    numbers = {key: float(given[key]) for key in ("value", "low", "high", "level")}
    return {**form, name: Estimate(**{**given, **numbers, "covers": tuple(given["covers"])})}

"""A benchmark as data: where it is, what its records look like, how many there are, and what is asked of a model."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ramify.errors import InvalidValue
from ramify.tasks.checking.lexer import unboxed
from ramify.tasks.loading.files import Record, found_in, from_hub, records
from ramify.types import Question

__all__ = ["BOXED", "Item", "Spec", "digest", "load", "stamp"]

BOXED = "{question}\n\nPlease reason step by step, and put your final answer within \\boxed{}."
_INSTRUCTION = re.compile(r"\s*Please reason step by step, and put your final answer within \\boxed\{\}\.?\s*$")


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its reference, before the wall is put between them."""

    id: str
    question: str
    reference: str
    groups: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known about a benchmark. ``count`` and ``answers`` are checked whenever it is loaded."""

    name: str
    files: tuple[str, ...]  # names to look for in a folder, without their endings
    count: int
    hub: tuple[str, str | None, str]  # dataset, configuration, split
    prompt: str = BOXED
    question: tuple[str, ...] = ("question", "problem", "prompt", "input")
    answer: tuple[str, ...] = ("answer", "target", "solution")
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()  # group, columns it may be in
    sizes: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()  # group, its values and their counts
    answers: str | None = None  # digest of the references, None where it is not known
    final: Callable[[Record], str] | None = None  # the reference of a record, where it is not a column
    shown: Callable[[Record], str] | None = None  # the question of a record, where it is not a column
    sample: Callable[[Sequence[Item], str], Sequence[Item]] | None = None  # a keyed choice of items
    total: int | None = None  # items before that choice
    parts: tuple[str, ...] = ()  # one file, and one configuration on the hub, for each of these tasks


def load(spec: Spec, source: str, verify: str = "answers", run: str = "") -> tuple[Item, ...]:
    """The items of a benchmark from ``source``: a file, a folder, or 'hub'.

    ``verify``: "answers" verifies the count, the sizes of groups and the references; "count" the first two; "none"
    takes what is there.
    """
    return _load(spec, source, verify, run, stamp(source))


def stamp(source: str) -> tuple[int, ...]:
    """What changes when a file does, so that a changed file is read again."""
    path = Path(source)
    if not path.exists():
        return ()
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return tuple(part for each in files for part in (each.stat().st_mtime_ns, each.stat().st_size))


@lru_cache(maxsize=32)
def _load(spec: Spec, source: str, verify: str, run: str, changed: tuple[int, ...]) -> tuple[Item, ...]:  # noqa: ARG001
    rows = _records(spec, source)
    items: Sequence[Item] = [_item(spec, record, number) for number, record in enumerate(rows)]
    if spec.sample is not None and verify != "none":
        _need_count(spec, source, len(items), spec.total or len(items))
        items = spec.sample(items, run)
    if verify != "none":
        _check(spec, source, items, verify)
    return tuple(items)


def _records(spec: Spec, source: str) -> list[Record]:
    dataset, config, split = spec.hub
    if source == "hub" and not spec.parts:
        return from_hub(dataset, config, split)
    if source == "hub":
        return _joined({part: from_hub(dataset, part, split) for part in spec.parts})
    folder = Path(source)
    if folder.is_dir() and any((folder / f"{part}.json").is_file() for part in spec.parts):
        return _joined({part: records(found_in(source, [part])) for part in spec.parts})
    return records(found_in(source, spec.files))


def _joined(parts: Mapping[str, Sequence[Record]]) -> list[Record]:
    """The records of several tasks, each with the name of its own and its place in it."""
    return [{"i": i, **record, "task": part} for part, found in parts.items() for i, record in enumerate(found)]


def _item(spec: Spec, record: Record, number: int) -> Item:
    question = spec.shown(record) if spec.shown else str(_column(spec, record, spec.question, number))
    answer = spec.final(record) if spec.final else unboxed(str(_column(spec, record, spec.answer, number)).strip())
    groups = tuple(
        (name, _text(value)) for name, columns in spec.groups if (value := _first(record, columns)) is not None
    )
    name = _first(record, ("uuid", "question_id", "unique_id", "task_id", "id", "problem_idx"))
    task = f"{record['task']}-{record.get('i', number)}" if name is None and "task" in record else None
    return Item(
        f"{spec.name}/{task or (number if name is None else name)}",
        _INSTRUCTION.sub("", question).strip(),
        answer,
        groups,
    )


def _text(value: Any) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _first(record: Record, columns: Sequence[str]) -> Any:
    return next((record[name] for name in columns if record.get(name) is not None), None)


def _column(spec: Spec, record: Record, columns: Sequence[str], number: int) -> Any:
    value = _first(record, columns)
    if value is None:
        have = ", ".join(record)
        raise InvalidValue(f"{spec.name}, record {number}: has none of the columns {', '.join(columns)}, but {have}")
    return value


# ------------------------------------------------------------------------------------------------------------ verifying


def digest(references: Sequence[str]) -> str:
    """A checksum of references in any order and spacing: the same for every edition of a benchmark's questions.

    >>> digest(["204", " 025"]) == digest(["25", "204"])
    True
    """
    texts = sorted("".join(text.split()).lstrip("0") or "0" for text in references)
    return sha256(json.dumps(texts, ensure_ascii=False).encode()).hexdigest()[:16]


def _need_count(spec: Spec, source: str, count: int, expected: int) -> None:
    if count != expected:
        short = f"{expected - count} are missing" if count < expected else f"{count - expected} are too many"
        raise InvalidValue(
            f"{spec.name} from {source!r} has {count} questions, not {expected}: {short}; verify='none' takes it"
        )


def _check(spec: Spec, source: str, items: Sequence[Item], verify: str) -> None:
    _need_count(spec, source, len(items), spec.count)
    twice, times = Counter(item.id for item in items).most_common(1)[0]
    if times > 1:
        raise InvalidValue(f"{spec.name} from {source!r}: the id {twice!r} is there twice")
    for group, sizes in spec.sizes:
        found: dict[str, int] = {}
        for item in items:
            value = dict(item.groups).get(group, "")
            found[value] = found.get(value, 0) + 1
        wrong = [f"{name}: {found.get(name, 0)} of {size}" for name, size in sizes if found.get(name, 0) != size]
        if wrong:
            raise InvalidValue(f"{spec.name} from {source!r}, {group}: {'; '.join(wrong[:5])}; verify='none' takes it")
    if verify == "answers" and spec.answers is not None and digest([item.reference for item in items]) != spec.answers:
        raise InvalidValue(
            f"{spec.name} from {source!r}: the references are not the known ones ({spec.answers}); "
            "a corrected edition? verify='count' takes it"
        )


def question_of(spec: Spec, item: Item) -> Question:
    """What inference may see of an item. Templates are replaced, not formatted: questions are full of braces."""
    return Question(item.id, spec.prompt.replace("{question}", item.question), dict(item.groups))

"""What each field of a study file takes: a reader for every key, which says what to write where it cannot read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias

from ramify.errors import InvalidValue, ParseError, is_whole
from ramify.kinds import ALSO, SLOTS, need_kind
from ramify.models import Pocket
from ramify.models.pocket.model import DATA
from ramify.study.spec import OUTCOMES
from ramify.written import written

__all__ = ["MODEL", "NEEDED", "PROTOCOL", "REDUCED", "STUDY", "TASK", "Fields", "Wrong", "by_hand", "checkpoints"]


def checkpoints() -> list[str]:
    """The checkpoints that come with the package."""
    return sorted(folder.parent.name for folder in DATA.glob("*/config.json"))


class Wrong(Exception):
    """What a field was given is not what it takes; the message says what to write."""


def _words(given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise Wrong("use a text")
    return given


def _count(least: int) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        if not is_whole(given, least):
            raise Wrong(f"use a whole number >= {least}")
        return int(given)

    return read


def _number(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or math.isnan(given):
        raise Wrong("use a number")
    return given


def _flag(given: Any) -> bool:
    if not isinstance(given, bool):
        raise Wrong("use true or false")
    return given


def _value(field: str) -> Callable[[Any], Any]:
    """A method in its text form, of the kind that the field takes."""

    def read(given: Any) -> Any:
        if not isinstance(given, str):
            raise Wrong(f"write the value's text form, such as {SLOTS[field][1]!r}")
        if field == "model" and given in checkpoints():
            return Pocket(given)
        try:
            found = written(given, (SLOTS[field][0], *ALSO.get(field, ())))
            need_kind(field, found)
        except (ParseError, InvalidValue) as error:
            raise Wrong(str(error)) from None
        return found

    return read


def _many(one: Callable[[Any], Any], rising: bool = False) -> Callable[[Any], tuple[Any, ...]]:
    """A list, or a single one."""

    def read(given: Any) -> tuple[Any, ...]:
        found = tuple(one(each) for each in (given if isinstance(given, list) else [given]))
        if not found:
            raise Wrong("the list is empty: leave the key out instead")
        if rising and list(found) != sorted(set(found)):
            raise Wrong("use increasing numbers")
        return found

    return read


def _evidence(given: Any) -> tuple[tuple[str, Any], ...]:
    """Named evidence: ``evidence = { logp = "..." }``; a single text is called ``score``."""
    named = given if isinstance(given, dict) else {"score": given}
    return tuple((name, _value("evidence")(each)) for name, each in named.items())


def _diagnostic(given: Any) -> Any:
    """The word "outcomes", or a grader that sees references."""
    if given == OUTCOMES:
        return given
    if isinstance(given, str) and given.isidentifier() and get_close_matches(given, [OUTCOMES]):
        raise Wrong(f"did you mean {OUTCOMES!r}?")
    return _value("diagnostic")(given)


def _pairs(given: Any) -> tuple[tuple[str, str], ...]:
    """Pairs of names: ``[["plurality", "one sample"], ...]``."""
    ok = isinstance(given, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in given)
    if not ok or not all(isinstance(name, str) for pair in given for name in pair):
        raise Wrong('use pairs of names, such as [["plurality", "one sample"]]')
    return tuple((one, other) for one, other in given)


Fields: TypeAlias = Mapping[str, Callable[[Any], Any]]
WHOLE, TEXTS = _count(1), _many(_words)
BUDGETS, LIMITS = _many(WHOLE, rising=True), _many(_number, rising=True)
STUDY: Fields = {
    "title": _words,
    "run": _words,
    "decode": _value("decode"),
    "unit": _value("unit"),
    "cap": WHOLE,
    "top": _count(0),
    "n": WHOLE,
    "budgets": BUDGETS,
    "limit": _number,
    "metrics": _many(_value("metrics")),
    "comparisons": _pairs,
    "replays": WHOLE,
    "replicates": _count(2),  # an interval of one resample is none
    "level": _number,
    "rank": _flag,
    "replayed": _count(0),
    "notes": TEXTS,
}
TASK: Fields = {
    "task": _value("task"),
    "name": _words,
    "questions": WHOLE,
    "run": _words,
    "groups": TEXTS,
}
MODEL: Fields = {
    "model": _value("model"),
    "name": _words,
    "interface": _words,
    "effort": _words,
    "decode": _value("decode"),
    "cap": WHOLE,
    "top": _count(0),
    "tasks": TEXTS,
    "repeats": _count(0),
    "batch": WHOLE,
    "workers": WHOLE,
}
PROTOCOL: Fields = {
    "name": _words,
    "rule": _value("rule"),
    "decode": _value("decode"),
    "evidence": _evidence,
    "budgets": BUDGETS,
    "limits": LIMITS,
    "n": WHOLE,
    "cap": WHOLE,
    "stop": _value("stop"),
    "within": _value("within"),
    "director": _value("director"),
    "controller": _value("controller"),
    "evaluator": _value("evaluator"),
    "check": _value("check"),
    "diagnostic": _diagnostic,
    "judge": _words,
    "fresh": _flag,
    "models": TEXTS,
    "tasks": TEXTS,
}
REDUCED: Fields = {
    "questions": WHOLE,
    "n": WHOLE,
    "budgets": BUDGETS,
    "limits": LIMITS,
    "replays": WHOLE,
    "replicates": _count(2),
    "repeats": _count(0),
    "models": TEXTS,
    "tasks": TEXTS,
}
NEEDED = {
    "study": ("title",),
    "task": ("task",),
    "model": ("model",),
    "judge": ("model",),
    "protocol": ("name",),
    "reduced": (),
}


def by_hand(entry: Any, fields: Fields) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it) of a value that was made in Python: a file's readers, for values as they are."""
    for field in dataclasses.fields(entry):
        given: Any = getattr(entry, field.name)
        if field.name not in fields or given is field.default or given in ("", None):
            continue
        try:
            if isinstance(field.default, tuple) and not isinstance(given, tuple):
                raise Wrong("use a tuple, such as (8,) or ('a', 'b')")
            if field.name in SLOTS:
                for each in _values(field.name, given):
                    need_kind(field.name, each)
            elif given != ():
                fields[field.name](_listed(given))
        except (Wrong, InvalidValue) as error:
            yield (
                field.name,
                f"{field.name} = {given!r}: {error}" if isinstance(error, Wrong) else f"{field.name}: {error}",
            )


def _values(field: str, given: Any) -> tuple[Any, ...]:
    """The methods of a field."""
    if field == "evidence":
        if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in given):
            raise Wrong("use pairs of a name and evidence, such as (('logp', mean_logprob()),)")
        return tuple(value for _, value in given)
    if field == "diagnostic" and given == OUTCOMES:
        return ()
    return given if field == "metrics" else (given,)


def _listed(given: Any) -> Any:
    return [_listed(each) for each in given] if isinstance(given, tuple) else given

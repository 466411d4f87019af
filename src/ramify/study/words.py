"""Values of a study in words: what a decision is kept by, so words that are the same have to mean the same."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from types import FunctionType, ModuleType
from typing import Any

from ramify.describe import text
from ramify.errors import InvalidValue
from ramify.study.spec import Protocol

__all__ = ["said", "words"]

NAMED = ("rule", "stop", "within", "director", "controller", "evaluator", "check")  # what a protocol may name
_OWN: dict[int, tuple[Any, str]] = {}  # values without a text form; held, so that no other gets their place in memory


def words(value: Any) -> str:
    """The text form of a value, and of one of the user's own a digest of the file it is written in and its helpers.

    The text of ``MyRule(3)`` is the same after its body was changed. One that has no text, as with a lambda in it,
    gets words that never come again: any two lambdas of a module print the same inside a method.
    """
    try:
        said = text(value)
    except InvalidValue:
        return _OWN.setdefault(id(value), (value, f"{value!r} #{token_hex(4)}"))[1]
    return " ".join([said, *(f"#{_digest(file)}" for file in sorted(set(_files(value))))])


def said(protocol: Protocol) -> str:
    """What a protocol names, and its evidence."""
    named = [(name, getattr(protocol, name)) for name in NAMED]
    return ", ".join(f"{name}={words(value)}" for name, value in (*named, *protocol.evidence) if value is not None)


def _files(value: Any) -> Iterator[str]:
    """Where the parts of a value that are not ramify's are written."""
    if isinstance(value, tuple):
        for each in value:
            yield from _files(each)
    elif isinstance(value, FunctionType):
        yield from _file(value)
    elif dataclasses.is_dataclass(value):
        for base in inspect.getmro(type(value)):
            for each in vars(base).values():
                if isinstance(each, FunctionType) and each.__module__ == base.__module__:  # not put there by others
                    yield from _file(each)
        for field in dataclasses.fields(value):
            yield from _files(getattr(value, field.name))


def _file(function: FunctionType) -> Iterator[str]:
    """Where a function is written, and what that file has imported from beside it or below."""
    file = Path(function.__code__.co_filename)
    if not function.__module__.startswith("ramify.") and file.is_file():
        yield from map(str, _reached(file.resolve(), function.__globals__, {}))


def _reached(file: Path, names: Mapping[str, Any], seen: dict[Path, None]) -> Iterable[Path]:
    """A file and those of its folder that the names in it lead to, and so on: a helper changed is a rule changed."""
    seen[file] = None
    for each in [*names.values()]:
        module = each if isinstance(each, ModuleType) else sys.modules.get(_home(each))
        written = getattr(module, "__file__", None)
        where = Path(written).resolve() if written else file
        beside = file.parent in where.parents and "site-packages" not in where.parts
        if beside and where not in seen and not getattr(module, "__name__", "").startswith("ramify."):
            _reached(where, vars(module), seen)
    return seen


def _home(value: Any) -> str:
    """The module that a function, a class or the class of a value is written in."""
    named = value if isinstance(value, (FunctionType, type)) else type(value)
    return str(named.__module__)


def _digest(file: str) -> str:
    return blake2b(Path(file).read_bytes(), digest_size=4).hexdigest()

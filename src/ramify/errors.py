"""The exceptions ramify raises. Every message names what was wrong, its value, and what to do about it."""

from __future__ import annotations

from numbers import Integral

__all__ = [
    "EndpointError",
    "InvalidValue",
    "OverBudget",
    "ParseError",
    "RamifyError",
    "StoreError",
    "StudyError",
    "WorkerLost",
    "is_whole",
    "require",
]


class RamifyError(Exception):
    """The root of every error that ramify raises on purpose."""


class InvalidValue(RamifyError, ValueError):
    """An argument, a field or an array that no method can work with."""


class ParseError(RamifyError, ValueError):
    """A text or JSON form that does not describe a value of this package."""


class OverBudget(RamifyError):
    """A charge that would spend past the ledger's limit; the caller should have asked ``admits`` first."""


class StoreError(RamifyError):
    """A bank on disk that cannot be read, written or trusted as it is."""


class EndpointError(RamifyError):
    """A server that is not there, refuses, or keeps answering what it cannot have drawn. Keys make a rerun safe."""


class StudyError(RamifyError):
    """A study that cannot be run as it is written: a line for every place, with what to write instead."""


class WorkerLost(RamifyError):
    """A worker process ended before its work did. What it had not sent is lost; keys make asking again safe."""


def require(ok: object, field: str, value: object, remedy: str) -> None:
    """Raise ``InvalidValue`` naming the field, its value and the remedy, unless ``ok``.

    >>> require(-1 > 0, "TopK.k", -1, "use an integer >= 1")
    Traceback (most recent call last):
    ramify.errors.InvalidValue: TopK.k = -1: use an integer >= 1
    """
    if not ok:
        raise InvalidValue(f"{field} = {value!r}: {remedy}")


def is_whole(value: object, least: int = 0) -> bool:
    """Whether a value is an integer (a bool is not) and at least ``least``.

    >>> is_whole(3, 1), is_whole(2.5), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least

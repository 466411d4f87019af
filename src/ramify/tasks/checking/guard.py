"""The guard: both sides again, to fifty digits, with their shapes and free symbols compared."""

from __future__ import annotations

from ramify.tasks.checking.canonical import Canonical
from ramify.tasks.checking.grammar import Tree, read
from ramify.tasks.checking.limits import LIMITS, Limits, Refused, Unreadable
from ramify.tasks.checking.numeric import close, evaluate, is_real, point

__all__ = ["same_values"]

TRIALS = 3  # points at which expressions in symbols are compared
VALUES = ("integer", "value", "letter")


def same_values(a: Canonical, b: Canonical, limits: Limits = LIMITS) -> bool | None:
    r"""Whether two answers that were read have the same shape, symbols and values; None where that cannot be said.

    >>> from ramify.tasks.checking.canonical import canonical
    >>> same_values(canonical(r"1-\frac1e"), canonical(r"1+\frac1e"))
    False
    >>> same_values(canonical(r"\cos\frac{\pi}{7}\cos\frac{2\pi}{7}\cos\frac{3\pi}{7}"), canonical("1/8"))
    True
    """
    unknown = ("unread", "refused", "relation")
    if a.shape in unknown or b.shape in unknown or a.form is None or b.form is None:
        return None
    if _kind(a.shape) != _kind(b.shape):
        return False
    if a.shape in ("text", "base"):
        return a.form == b.form
    try:
        return _same(read(a.form, limits), read(b.form, limits), a.symbols | b.symbols)
    except (Unreadable, Refused):
        return None


def _kind(shape: str) -> str:
    if shape in VALUES:
        return "value"
    return "interval" if shape == "tuple" else shape  # an open interval is written like a pair


def _same(a: Tree, b: Tree, symbols: frozenset[str]) -> bool | None:
    if a[0] in ("tuple", "interval", "matrix", "cup"):
        return _parts(a, b, symbols)
    if a[0] == "set":
        return _sets(a[1:], b[1:], symbols) if b[0] == "set" else False
    return _values(a, b, symbols)


def _parts(a: Tree, b: Tree, symbols: frozenset[str]) -> bool | None:
    """In order, part by part; brackets and their closedness count."""
    if a[0] != b[0] or len(a) != len(b):
        return False
    found: list[bool | None] = []
    for x, y in zip(a[1:], b[1:], strict=True):
        if isinstance(x, bool) or isinstance(y, bool):
            found.append(x == y)
        elif a[0] == "matrix":
            found.append(_parts(("tuple", *x), ("tuple", *y), symbols))
        else:
            found.append(_same(x, y, symbols))
    return _all(found)


def _sets(a: tuple[Tree, ...], b: tuple[Tree, ...], symbols: frozenset[str]) -> bool | None:
    """Every member has an equal one on the other side."""
    equal = [[_same(x, y, symbols) for y in b] for x in a]
    rows = [_any(row) for row in equal]
    columns = [_any([row[j] for row in equal]) for j in range(len(b))]
    return _all(rows + columns)


def _values(a: Tree, b: Tree, symbols: frozenset[str]) -> bool | None:
    """Equal at every trial point. A symbol of one side only must not matter there, or the sides differ.

    Symbols are tried as positive numbers first, as most are meant. Where negative ones make a difference, as between
    |x| and x, nothing is said.
    """
    for trial in range(TRIALS if symbols else 1):
        where = {name: point(name, trial) for name in symbols}
        x, y = evaluate(a, where), evaluate(b, where)
        if x is None or y is None:
            return None
        if not close(x, y):
            return False
    return None if _differ_below(a, b, symbols) else True


def _differ_below(a: Tree, b: Tree, symbols: frozenset[str]) -> bool:
    """Whether two expressions are real where all symbols are negative, and not the same."""
    where = {name: -point(name, 0) for name in symbols}
    if not symbols or not (is_real(a, where) and is_real(b, where)):
        return False
    return not close(evaluate(a, where), evaluate(b, where))


def _all(found: list[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


def _any(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False

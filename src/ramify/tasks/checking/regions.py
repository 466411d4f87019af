"""Sets of real numbers as disjoint intervals, with exact ends: unions, intersections and differences."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key

from ramify.tasks.checking.algebra import Sum, is_rational, show
from ramify.tasks.checking.limits import Unreadable

__all__ = ["Interval", "cut", "joined", "shared"]

INFINITE = (("oo", Fraction(1)),)


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``low`` to ``high``, each end in it or not. An open one is written like a pair, because it is."""

    low: Sum
    closed: bool
    high: Sum
    shut: bool

    def form(self) -> str:
        return f"{'[' if self.closed else '('}{show(self.low)}, {show(self.high)}{']' if self.shut else ')'}"

    def empty(self) -> bool:
        order = compare(self.low, self.high)
        return order > 0 or (order == 0 and not (self.closed and self.shut))


def compare(x: Sum, y: Sum) -> int:
    """-1, 0 or 1. Equal forms are equal numbers; others are compared to 50 digits."""
    if x == y:
        return 0
    a, b = _number(x), _number(y)
    return int(a > b) - int(a < b)


def _number(x: Sum) -> Fraction | float:
    if len(x) == 1 and INFINITE in x:
        return float("inf") * float(x[INFINITE])
    value = is_rational(x)
    if value is not None:
        return value
    from ramify.tasks.checking.numeric import of_text

    found = of_text(show(x))
    if found is None:
        raise Unreadable("the end of an interval that is no number")
    return found


def joined(a: list[Interval], b: list[Interval]) -> list[Interval]:
    """The union, in order."""
    parts = sorted((part for part in (*a, *b) if not part.empty()), key=cmp_to_key(_by_low))
    found: list[Interval] = []
    for part in parts:
        last = found[-1] if found else None
        gap = 1 if last is None else compare(part.low, last.high)
        if last is None or gap > 0 or (gap == 0 and not (part.closed or last.shut)):
            found.append(part)
        else:
            found[-1] = _longer(last, part)
    return found


def shared(a: list[Interval], b: list[Interval]) -> list[Interval]:
    """The intersection."""
    return joined([each for x in a for y in b if not (each := _common(x, y)).empty()], [])


def cut(a: list[Interval], b: list[Interval]) -> list[Interval]:
    """The difference: what of a is outside every interval of b."""
    infinite: Sum = {INFINITE: Fraction(1)}
    nothing: Sum = {INFINITE: Fraction(-1)}
    for y in b:
        before = Interval(nothing, False, y.low, not y.closed)
        after = Interval(y.high, not y.shut, infinite, False)
        a = shared(
            a, [before, after] if compare(y.low, y.high) or y.closed else [Interval(nothing, False, infinite, False)]
        )
    return a


def _by_low(x: Interval, y: Interval) -> int:
    return compare(x.low, y.low) or (y.closed - x.closed)


def _longer(x: Interval, y: Interval) -> Interval:
    order = compare(x.high, y.high)
    if order == 0:
        return Interval(x.low, x.closed, x.high, x.shut or y.shut)
    return x if order > 0 else Interval(x.low, x.closed, y.high, y.shut)


def _common(x: Interval, y: Interval) -> Interval:
    low, high = compare(x.low, y.low), compare(x.high, y.high)
    closed = x.closed and y.closed if low == 0 else (x if low > 0 else y).closed
    shut = x.shut and y.shut if high == 0 else (x if high < 0 else y).shut
    return Interval((x if low >= 0 else y).low, closed, (x if high <= 0 else y).high, shut)

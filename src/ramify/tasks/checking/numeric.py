"""Values of trees to fifty digits, by mpmath: what the guard compares. Trees come from our own reader only."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from ramify.errors import InvalidValue
from ramify.tasks.checking.grammar import Tree, read
from ramify.tasks.checking.limits import LIMITS, Limits, Refused, Unreadable

__all__ = ["DIGITS", "close", "evaluate", "is_real", "of_text", "point"]

DIGITS = 50
WORKING = 100  # digits while computing, so that a cancellation of fifty leaves fifty
LARGEST = 10**5  # of an exponent or the argument of a factorial: larger ones are not computed


def _mpmath() -> Any:
    try:
        import mpmath
    except ImportError:
        raise InvalidValue("mpmath is not installed: pip install 'ramify[math]'") from None
    return mpmath


def of_text(text: str, limits: Limits = LIMITS) -> Fraction | None:
    """The real value of a text, a fraction that agrees with it to fifty digits; None if it is no real number.

    >>> of_text("sqrt(2)") ** 2 - 2 < Fraction(1, 10**50)
    True
    """
    mp = _mpmath()
    try:
        value = evaluate(read(text, limits), {})
    except (Unreadable, Refused):
        return None
    if value is None or abs(mp.im(value)) > mp.mpf(10) ** -DIGITS or not mp.isfinite(value):
        return None
    return Fraction(mp.nstr(mp.re(value), DIGITS + 10))


def point(symbol: str, number: int) -> Fraction:
    """Where a symbol is tried: a rational that its name and the number of the trial decide.

    It lies in (1, 2), then in (4, 5), (7, 8) and so on: between the same two integers ⌊x⌋ would pass for 1.
    """
    digest = blake2b(f"{symbol}/{number}".encode(), digest_size=4).digest()
    return 1 + 3 * number + Fraction(int.from_bytes(digest) + 1, 2**32 + 2)


def evaluate(tree: Tree, where: Mapping[str, Fraction]) -> Any:
    r"""The complex value of an expression; None where it has none (a pole, a set, a number beyond the range).

    >>> print(evaluate(read(r"\sqrt{2}"), {}))
    1.4142135623731
    """
    mp = _mpmath()
    with mp.workdps(WORKING):
        try:
            return _value(tree, where, mp)
        except (ZeroDivisionError, OverflowError, ValueError, TypeError, KeyError, NotImplementedError):
            return None


def is_real(tree: Tree, where: Mapping[str, Fraction]) -> bool:
    """Whether an expression and every part of it are real numbers there: √x √y is not √(xy) where both are negative."""
    mp = _mpmath()
    parts = [part for part in tree[1:] if isinstance(part, tuple) and part and isinstance(part[0], str)]
    if not all(is_real(part, where) for part in parts):
        return False
    value = evaluate(tree, where)
    return value is not None and not bool(mp.im(value))


def close(a: Any, b: Any) -> bool:
    """Equal to fifty digits, relative to the larger one."""
    mp = _mpmath()
    with mp.workdps(WORKING):
        if mp.isinf(a) or mp.isinf(b):
            return bool(a == b)
        scale = max(abs(a), abs(b))
        return bool(abs(a - b) <= scale * mp.mpf(10) ** -DIGITS) or bool(scale < mp.mpf(10) ** -(DIGITS + 10))


def _value(tree: Tree, where: Mapping[str, Fraction], mp: Any) -> Any:
    def of(part: Tree) -> Any:
        return _value(part, where, mp)

    match tree:
        case ("num", c):
            return mp.mpf(c.numerator) / c.denominator
        case ("const", name):
            return {"pi": +mp.pi, "e": +mp.e, "i": mp.mpc(0, 1), "oo": mp.inf}[name]
        case ("symbol", name):
            return mp.mpf(where[name].numerator) / where[name].denominator
        case ("add", a, b):
            return of(a) + of(b)
        case ("neg", a):
            return -of(a)
        case ("mul", a, b):
            return of(a) * of(b)
        case ("div", a, b):
            return of(a) / of(b)
        case ("pow", a, b):
            return _power(of(a), of(b), mp)
        case ("root", n, a):
            return _root(of(a), n, mp)
        case ("degree", a):
            return of(a)
        case ("factorial", a):
            return mp.factorial(_small(of(a), mp))
        case ("binom", a, b):
            return mp.binomial(_small(of(a), mp), _small(of(b), mp))
        case ("log", base, a):
            return mp.log(of(a)) if base is None else mp.log(of(a)) / mp.log(of(base))
        case ("call", name, a):
            angle = of(a[1]) * mp.pi / 180 if a[0] == "degree" and name in ANGLES else of(a)
            return getattr(mp, CALLS[name])(angle)
        case ("relation", ops, *parts) if set(ops) == {"="}:
            return of(parts[-1])
    raise ValueError(tree[0])


ANGLES = ("sin", "cos", "tan", "cot", "sec", "csc")
CALLS = {name: name for name in (*ANGLES, "sinh", "cosh", "tanh", "exp", "floor", "ceil")}
CALLS |= {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "abs": "fabs"}


def _small(x: Any, mp: Any) -> Any:
    if abs(x) > LARGEST or mp.im(x):
        raise ValueError("too large")
    return x


def _power(a: Any, b: Any, mp: Any) -> Any:
    _small(b, mp) if not mp.im(b) else None
    if abs(b) > LARGEST or (abs(a) > 0 and abs(mp.log(abs(a))) * abs(b) > 10**6):
        raise OverflowError
    if mp.im(a) == 0 and mp.re(a) < 0 and not mp.im(b):
        # The real root of a negative number, where the exponent is an odd fraction: as the exact rung has it.
        exact = _odd(b, mp)
        if exact is not None:
            return _root(mp.re(a), exact.denominator, mp) ** exact.numerator
    return mp.power(a, b)


def _odd(b: Any, mp: Any) -> Fraction | None:
    for below in range(3, 100, 2):
        above = mp.nint(b * below)
        if abs(b * below - above) < mp.mpf(10) ** -DIGITS and abs(above) < 1000:
            found = Fraction(int(above), below)
            return found if found.denominator % 2 else None
    return None


def _root(a: Any, n: int, mp: Any) -> Any:
    if n % 2 and mp.im(a) == 0 and mp.re(a) < 0:
        return -mp.root(-mp.re(a), n)
    return mp.sqrt(a) if n == 2 else mp.root(a, n)

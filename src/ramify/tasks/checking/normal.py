"""From the tree of an answer to its normal form: one text for all ways to write the same answer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from ramify.tasks.checking.algebra import HALF, ONE, Algebra, Sum, constant, is_rational, primitive_part, show
from ramify.tasks.checking.grammar import Tree
from ramify.tasks.checking.limits import Limits, Unreadable
from ramify.tasks.checking.regions import INFINITE, Interval, cut, joined, shared

__all__ = ["Normal", "normal"]

MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Normal:
    """``form`` is the canonical text, ``shape`` what kind of thing it is; ``sure`` says that other forms differ."""

    form: str
    shape: str
    sure: bool
    symbols: frozenset[str] = frozenset()


def normal(tree: Tree, limits: Limits) -> Normal:
    """The normal form of an answer's tree.

    >>> from ramify.tasks.checking.grammar import read
    >>> from ramify.tasks.checking.limits import LIMITS
    >>> [normal(read(text), LIMITS).form for text in (r"\\sqrt{8}", r"2\\sqrt2", "x=5", r"1\\pm\\sqrt{19}", "0.50")]
    ['2*sqrt(2)', '2*sqrt(2)', '5', '\\\\{1+sqrt(19), 1-sqrt(19)\\\\}', '1/2']
    """
    worker = _Normal(limits)
    try:
        form, shape = worker.answer(tree)
    except ZeroDivisionError:
        raise Unreadable("a division by zero") from None
    return Normal(form, shape, worker.sure, frozenset(worker.symbols))


class _Normal(Algebra):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.symbols: set[str] = set()
        self.mixed: set[str] = set()

    # ------------------------------------------------------------------------------------------------ shapes of answers

    def answer(self, tree: Tree) -> tuple[str, str]:
        match tree:
            case ("list" | "set", *items):
                return self.collection(items)
            case ("tuple", *items):
                return f"({', '.join(self.answer(item)[0] for item in items)})", "tuple"
            case ("interval", low, closed, high, shut):
                found = Interval(self.end(low), closed, self.end(high), shut)
                return found.form(), "interval"
            case ("cup" | "cap" | "setminus", _, _):
                return self.shown_region(self.region(tree))
            case ("matrix", *rows):
                return self.matrix(rows), "matrix"
            case ("relation", ops, *parts):
                return self.relation(ops, parts)
            case ("text", words):
                return words.casefold(), "text"
            case ("base", digits, base):
                return f"{digits}_{base}" if base < 10 else f"{digits}_{{{base}}}", "base"
            case ("pm", _, _):
                return self.collection([tree])
            case ("degree", inside):
                return self.answer(inside)
        return show(self.value(tree)), "value"

    def collection(self, items: list[Tree]) -> tuple[str, str]:
        """A set, in the order of its members' texts, each once; ± is two members."""
        signed = [each for item in items for each in self.signs(item)]
        forms = sorted({self.answer(item)[0] for item in signed})
        if not forms:
            return r"\{\}", "set"
        return f"\\{{{', '.join(forms)}\\}}", "set"

    def signs(self, tree: Tree) -> list[Tree]:
        """The values of an expression with ±, which all its signs take together."""
        if not _has_sign(tree):
            return [tree]
        return [_chosen(tree, 1), _chosen(tree, -1)]

    def matrix(self, rows: list[Any]) -> str:
        body = r" \\ ".join(" & ".join(show(self.value(cell)) for cell in row) for row in rows)
        return r"\begin{pmatrix}" + body + r"\end{pmatrix}"

    # -------------------------------------------------------------------------------------------------------- relations

    def relation(self, ops: tuple[str, ...], parts: list[Tree]) -> tuple[str, str]:
        if ops == ("in",):
            return self.answer(parts[1])
        if set(ops) <= {"="}:
            return self.equation(parts)
        found = self.bounds(ops, parts)
        if found is not None:
            return self.shown_region(found)
        if len(ops) == 1 and ops[0] in MIRROR:
            low, high = (parts[0], parts[1]) if ops[0] in ("<", "<=") else (parts[1], parts[0])
            difference = self.subtract(self.value(high), self.value(low))
            self.sure = False
            return (
                f"{show(primitive_part(difference)[1]) if difference else '0'}>{'=' * (len(ops[0]) - 1)}0",
                "relation",
            )
        raise Unreadable("a chain of relations")

    def equation(self, parts: list[Tree]) -> tuple[str, str]:
        """What is named equals its value, so the value is the answer; another equation is its zero set, up to scale."""
        if len(parts) > 2 or _names_value(parts[0]):
            return self.answer(parts[-1])
        if _names_value(parts[1]) and parts[1][0] == "symbol":
            return self.answer(parts[0])
        difference = self.subtract(self.value(parts[0]), self.value(parts[1]))
        if not difference:
            return "0=0", "relation"
        _, x = primitive_part(difference)
        return f"{max(show(x), show(self.scale(x, Fraction(-1))))}=0", "relation"

    def bounds(self, ops: tuple[str, ...], parts: list[Tree]) -> list[Interval] | None:
        """``x < 3`` and ``-2 <= x < 7`` as intervals of one symbol."""
        if len(parts) == 2 and parts[1][0] == "symbol" and ops[0] in MIRROR:
            ops, parts = (MIRROR[ops[0]],), [parts[1], parts[0]]
        if len(parts) == 2 and parts[0][0] == "symbol" and ops[0] in MIRROR:
            value, closed = self.end(parts[1]), ops[0].endswith("=")
            if ops[0] in ("<", "<="):
                return [Interval({INFINITE: Fraction(-1)}, False, value, closed)]
            return [Interval(value, closed, {INFINITE: Fraction(1)}, False)]
        if len(parts) == 3 and parts[1][0] == "symbol" and set(ops) <= {"<", "<="}:
            return [Interval(self.end(parts[0]), ops[0] == "<=", self.end(parts[2]), ops[1] == "<=")]
        if len(parts) == 3 and parts[1][0] == "symbol" and set(ops) <= {">", ">="}:
            return [Interval(self.end(parts[2]), ops[1] == ">=", self.end(parts[0]), ops[0] == ">=")]
        return None

    # ---------------------------------------------------------------------------------------------------------- regions

    def end(self, tree: Tree) -> Sum:
        """The end of an interval: a real number or ±∞."""
        return self.value(tree)

    def region(self, tree: Tree) -> list[Interval]:
        """A set of reals as disjoint intervals in order; a point is a closed interval of length 0."""
        match tree:
            case ("cup", a, b):
                return joined(self.region(a), self.region(b))
            case ("cap", a, b):
                return shared(self.region(a), self.region(b))
            case ("setminus", a, b):
                return cut(self.region(a), self.region(b))
            case ("interval", low, closed, high, shut):
                return [Interval(self.end(low), closed, self.end(high), shut)]
            case ("tuple", low, high):
                return [Interval(self.end(low), False, self.end(high), False)]
            case ("set", *items):
                points = [self.value(each) for item in items for each in self.signs(item)]
                return joined([Interval(x, True, x, True) for x in points], [])
            case ("symbol", "R"):
                return [Interval({INFINITE: Fraction(-1)}, False, {INFINITE: Fraction(1)}, False)]
            case ("relation", ops, *parts):
                found = self.bounds(ops, parts)
                if found is not None:
                    return found
        raise Unreadable("a union of something else than intervals and sets")

    def shown_region(self, parts: list[Interval]) -> tuple[str, str]:
        points = [part for part in parts if part.low == part.high]
        if len(points) == len(parts):
            return (f"\\{{{', '.join(sorted(show(p.low) for p in points))}\\}}" if points else r"\{\}"), "set"
        return r" \cup ".join(part.form() for part in parts), "interval"

    # ----------------------------------------------------------------------------------------------------------- values

    def value(self, tree: Tree) -> Sum:
        """The normal form of an expression."""
        match tree:
            case ("num", c):
                return constant(c)
            case ("const", name):
                return self.atom(name)
            case ("symbol", name):
                self.symbols.add(name)
                return self.atom(name)
            case ("add", a, b):
                return self.add(self.finite(self.value(a)), self.finite(self.value(b)))
            case ("neg", a):
                return self.scale(self.value(a), Fraction(-1))
            case ("mul", a, b):
                return self.multiply(self.finite(self.value(a)), self.finite(self.value(b)))
            case ("div", a, b):
                return self.divide(self.finite(self.value(a)), self.finite(self.value(b)))
            case ("pow", a, b):
                return self.raised(a, b)
            case ("root", n, a):
                return self.power(self.finite(self.value(a)), Fraction(1, n))
            case ("factorial", a):
                return self.factorial(self.value(a))
            case ("binom", a, b):
                return self.binomial(self.value(a), self.value(b))
            case ("degree", a):
                return self.value(a)
            case ("log", base, a):
                return self.logarithm(base, self.value(a))
            case ("call", name, a):
                return self.call(name, a)
            case ("relation", ops, *parts) if set(ops) == {"="}:
                return self.value(parts[-1])
        raise Unreadable(f"a {tree[0]} inside an expression")

    def atom(self, name: str) -> Sum:
        if name in ("pi", "e"):
            self.mixed.add(name)
            self.sure = self.sure and len(self.mixed) < 2  # whether pi and e are independent is not known
        return {((name, Fraction(1)),): Fraction(1)}

    def finite(self, x: Sum) -> Sum:
        """Infinity is a value, and no number to compute with."""
        if any(atom == "oo" for term in x for atom, _ in term):
            raise Unreadable("arithmetic with infinity")
        return x

    def opaque(self, text: str) -> Sum:
        self.sure = False
        return {((text, Fraction(1)),): Fraction(1)}

    def raised(self, base: Tree, exponent: Tree) -> Sum:
        power = self.finite(self.value(exponent))
        r = is_rational(power)
        if r is not None and base != ("const", "e"):
            if r.denominator != 1 and r.denominator > 100:
                raise Unreadable("a root of a high order")
            if abs(r.numerator) > 10**6:
                self.limits.power(2, abs(r.numerator))
            return self.power(self.finite(self.value(base)), r)
        if base == ("const", "e"):
            return self.exponential(power)
        below = self.finite(self.value(base))
        found = constant(1)
        for term, c in power.items():
            found = self.multiply(found, self.power(below, c) if term == ONE else self.symbolic(below, term, c))
        return found

    def symbolic(self, base: Sum, exponent: tuple[Any, ...], c: Fraction) -> Sum:
        """base^(c · exponent): 4^n is (2^n)^2, so bases are primes where they are rational."""
        self.sure = False
        inner = show({exponent: Fraction(1)})
        inner = inner if inner.isalpha() else f"({inner})"
        number = is_rational(base)
        if number is not None and number > 0:
            powers: dict[str, Fraction] = {}
            for part, sign in ((number.numerator, 1), (number.denominator, -1)):
                for prime, count in self.factors(part).items():
                    powers[f"{prime}^{inner}"] = powers.get(f"{prime}^{inner}", Fraction(0)) + sign * count * c
            return self.reduced(powers, Fraction(1))
        text = show(base)
        if not text.isalpha():
            raise Unreadable("a sum to a power that is no number")
        return {((f"{text}^{inner}", c),): Fraction(1)}

    def exponential(self, power: Sum) -> Sum:
        """e^(...): what is rational is a power of e, iπ turns, and the rest stays."""
        found = constant(1)
        for term, c in power.items():
            if term == ONE:
                found = self.multiply(found, self.power(self.atom("e"), c))
            elif term == (("i", Fraction(1)), ("pi", Fraction(1))):
                cosine, sine = self.turn(c), self.turn(HALF - c)
                found = self.multiply(found, self.add(cosine, self.multiply(self.atom("i"), sine)))
            else:
                found = self.multiply(found, self.symbolic(self.atom("e"), term, c))
        return found

    # -------------------------------------------------------------------------------------------------------- functions

    def factorial(self, x: Sum) -> Sum:
        n = is_rational(x)
        if n is None:
            return self.opaque(f"({show(x)})!")
        if n.denominator != 1 or n < 0:
            raise Unreadable("a factorial of something else than a whole number")
        self.limits.factorial(int(n))
        product = 1
        for k in range(2, int(n) + 1):
            product *= k
        return constant(product)

    def binomial(self, above: Sum, below: Sum) -> Sum:
        n, k = is_rational(above), is_rational(below)
        if n is None or k is None:
            self.sure = False
            raise Unreadable("a binomial coefficient of symbols")
        if n.denominator != 1 or k.denominator != 1 or not 0 <= k <= n:
            raise Unreadable("a binomial coefficient outside the triangle")
        return constant(self.limits.binomial(int(n), int(k)))

    def logarithm(self, base: Tree | None, x: Sum) -> Sum:
        above = self.natural(x)
        return above if base is None else self.divide(above, self.natural(self.value(base)))

    def natural(self, x: Sum) -> Sum:
        """ln x, of a rational by its prime factors."""
        c = is_rational(x)
        if c is None and len(x) == 1:
            [(term, c)] = x.items()
            if c > 0 and all(atom.isdigit() or atom == "e" for atom, _ in term):
                found = self.natural(constant(c))
                for atom, e in term:
                    piece = constant(1) if atom == "e" else self.opaque(f"ln({atom})")
                    found = self.add(found, self.scale(piece, e))
                return found
            c = None
        if c is None or c <= 0:
            return self.opaque(f"ln({show(x)})")
        found = {}
        for number, sign in ((c.numerator, 1), (c.denominator, -1)):
            for prime, count in self.factors(number).items():
                found = self.add(found, self.scale(self.opaque(f"ln({prime})"), Fraction(sign * count)))
        return found

    def call(self, name: str, tree: Tree) -> Sum:
        if name == "exp":
            return self.exponential(self.value(tree))
        if name in ("sin", "cos", "tan", "cot", "sec", "csc"):
            return self.trigonometric(name, self.angle(tree))
        x = self.value(tree)
        c = is_rational(x)
        if c is not None and name in ("abs", "floor", "ceil"):
            return constant({"abs": abs, "floor": floor, "ceil": ceil}[name](c))  # type: ignore[operator]
        return self.opaque(f"{name}({show(x)})")

    def angle(self, tree: Tree) -> Sum:
        """An angle in radians: degrees are a unit elsewhere, and a number here."""
        if tree[0] == "degree":
            return self.multiply(self.value(tree[1]), {(("pi", Fraction(1)),): Fraction(1, 180)})
        return self.value(tree)

    def trigonometric(self, name: str, x: Sum) -> Sum:
        r = _turns(x)
        if r is not None:
            cosine, sine = self.turn(r), self.turn(HALF - r)
            top = {"sin": sine, "cos": cosine, "tan": sine, "cot": cosine}.get(name, constant(1))
            below = {"tan": cosine, "cot": sine, "sec": cosine, "csc": sine}.get(name, constant(1))
            return self.divide(top, below)
        if name in ("sec", "csc", "cot"):
            return self.inverse(self.trigonometric({"sec": "cos", "csc": "sin", "cot": "tan"}[name], x))
        flipped = show(x).startswith("-")
        found = self.opaque(f"{name}({show(self.scale(x, Fraction(-1)) if flipped else x)})")
        return self.scale(found, Fraction(-1)) if flipped and name != "cos" else found

    def turn(self, r: Fraction) -> Sum:
        """cos(rπ): by symmetry an angle in [0, 1/2], and in roots where they are square roots of rationals."""
        r = abs(r) % 2
        r = 2 - r if r > 1 else r
        if r > HALF:
            return self.scale(self.turn(1 - r), Fraction(-1))
        known: dict[Fraction, list[tuple[int, Fraction]]] = {
            Fraction(0): [(1, Fraction(1))],
            Fraction(1, 2): [],
            Fraction(1, 3): [(1, HALF)],
            Fraction(1, 4): [(2, HALF)],
            Fraction(1, 6): [(3, HALF)],
            Fraction(1, 5): [(1, Fraction(1, 4)), (5, Fraction(1, 4))],
            Fraction(2, 5): [(1, Fraction(-1, 4)), (5, Fraction(1, 4))],
            Fraction(1, 12): [(6, Fraction(1, 4)), (2, Fraction(1, 4))],
            Fraction(5, 12): [(6, Fraction(1, 4)), (2, Fraction(-1, 4))],
        }
        if r not in known:
            return self.opaque(f"cos({show({(('pi', Fraction(1)),): r})})")
        found: Sum = {}
        for under, c in known[r]:
            found = self.add(found, self.scale(self.rational_power(Fraction(under), HALF), c))
        return found


def _turns(x: Sum) -> Fraction | None:
    """r of an angle rπ."""
    if not x:
        return Fraction(0)
    return x.get((("pi", Fraction(1)),)) if len(x) == 1 else None


def _names_value(tree: Tree) -> bool:
    """Whether the left of an equation only names what is asked for: x, f(x), AB, m + n."""
    match tree:
        case ("symbol", _) | ("text", _):
            return True
        case ("mul", a, b):
            return bool(_names_value(a) and _names_value(b) and a[0] != "add")  # f(x), AB
        case ("add", a, b):
            return _names_value(a) and _names_value(b)
    return False


def _has_sign(tree: Any) -> bool:
    return isinstance(tree, tuple) and len(tree) > 0 and (tree[0] == "pm" or any(_has_sign(part) for part in tree[1:]))


def _chosen(tree: Any, sign: int) -> Any:
    """The tree with one sign for all its ±."""
    if not isinstance(tree, tuple):
        return tree
    parts = tuple(_chosen(part, sign) for part in tree[1:])
    if tree and tree[0] == "pm":
        return ("add", parts[0], parts[1] if sign > 0 else ("neg", parts[1]))
    return (tree[0], *parts) if tree else tree

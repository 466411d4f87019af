"""Sums of products with exact coefficients: the normal form of numbers and expressions.

A term is a rational times powers of atoms with rational exponents; an atom is its own canonical text: a prime under a
root ("2"), "i", "pi", "e", a symbol, or something opaque ("sin(x)", "(1+x)"). Products of different roots of primes
are linearly independent over the rationals (Besicovitch, 1940), and pi is transcendental, so over these atoms and
symbols two forms are equal exactly where the values are: such a form is ``sure``. Opaque atoms may hide an equality.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import gcd, isqrt, lcm
from typing import TypeAlias

from ramify.tasks.checking.limits import Limits, Refused

__all__ = ["Algebra", "Monomial", "Sum", "constant", "is_rational", "show"]

Monomial: TypeAlias = tuple[tuple[str, Fraction], ...]  # (atom, exponent), sorted by atom
Sum: TypeAlias = dict[Monomial, Fraction]

ONE: Monomial = ()
HALF = Fraction(1, 2)
SIEVE = 100_000  # trial division up to here: a cofactor below its square is prime
POSITIVE = ("pi", "e")


def constant(value: Fraction | int) -> Sum:
    """A rational as a sum."""
    return {ONE: Fraction(value)} if value else {}


def is_rational(x: Sum) -> Fraction | None:
    """The rational that a sum is, or None."""
    if not x:
        return Fraction(0)
    return x[ONE] if len(x) == 1 and ONE in x else None


class Algebra:
    """Arithmetic on sums within limits. It remembers what stands behind opaque atoms that are sums themselves."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.behind: dict[str, Sum] = {}
        self.sure = True  # every atom so far is independent of the others

    # ------------------------------------------------------------------------------------------------------------- ring

    def add(self, x: Sum, y: Sum) -> Sum:
        total = dict(x)
        for term, c in y.items():
            total[term] = total.get(term, Fraction(0)) + c
        return {term: c for term, c in total.items() if c}

    def scale(self, x: Sum, c: Fraction) -> Sum:
        return {term: c * value for term, value in x.items()} if c else {}

    def subtract(self, x: Sum, y: Sum) -> Sum:
        return self.add(x, self.scale(y, Fraction(-1)))

    def multiply(self, x: Sum, y: Sum) -> Sum:
        if len(x) * len(y) > self.limits.terms * self.limits.terms:
            raise Refused("a product of long sums")
        total: Sum = {}
        for a, c in x.items():
            for b, d in y.items():
                for term, value in self.reduced(_joined(a, b), c * d).items():
                    total[term] = total.get(term, Fraction(0)) + value
        total = {term: c for term, c in total.items() if c}
        if len(total) > self.limits.terms:
            raise Refused(f"a sum of more than {self.limits.terms} terms")
        self.sized(total.values())
        return total

    def reduced(self, powers: dict[str, Fraction], c: Fraction) -> Sum:
        """A product with whole powers of primes and of i in its coefficient, and sums behind atoms multiplied out."""
        kept: list[tuple[str, Fraction]] = []
        expand: list[tuple[str, int]] = []
        for atom, exponent in powers.items():
            whole = exponent.numerator // exponent.denominator
            if atom == "i":
                turns = int(exponent) % 4
                c, exponent = (-c if turns >= 2 else c), Fraction(turns % 2)
            elif atom.isdigit():
                self.limits.power(int(atom), abs(whole))
                c, exponent = c * Fraction(int(atom)) ** whole, exponent - whole
            elif atom in self.behind and (whole >= 1 or (whole < 0 and len(self.behind[atom]) == 1)):
                expand.append((atom, whole))
                exponent -= whole
            if exponent:
                kept.append((atom, exponent))
        found: Sum = {tuple(sorted(kept)): c} if c else {}
        for atom, whole in expand:
            found = self.multiply(found, self.power(self.behind[atom], Fraction(whole)))
        return found

    def sized(self, values: Iterable[Fraction]) -> None:
        bits = int(self.limits.digits * 3.33)
        if any(max(v.numerator.bit_length(), v.denominator.bit_length()) > bits for v in values):
            raise Refused(f"a number with more than {self.limits.digits} digits")

    # ----------------------------------------------------------------------------------------------------------- powers

    def whole_power(self, x: Sum, n: int) -> Sum:
        """x to a whole power n >= 0."""
        if len(x) == 1 and is_rational(x) is None:
            [(term, c)] = x.items()
            self.power_of(c, n)
            return self.reduced({atom: e * n for atom, e in term}, c**n)
        value = is_rational(x)
        if value is not None:
            self.power_of(value, n)
            return constant(value**n)
        if n > self.limits.degree:
            raise Refused(f"the power {n} of a sum")
        found = constant(1)
        for _ in range(n):
            found = self.multiply(found, x)
        return found

    def power_of(self, c: Fraction, n: int) -> None:
        self.limits.power(c.numerator, n)
        self.limits.power(c.denominator, n)

    def power(self, x: Sum, r: Fraction) -> Sum:
        """x to a rational power; zero to a negative one raises ZeroDivisionError."""
        if r.denominator == 1 and r >= 0:
            return self.whole_power(x, int(r))
        if not x:
            if r < 0:
                raise ZeroDivisionError
            return {}
        if r.denominator == 1:
            return self.whole_power(self.inverse(x), -int(r))
        if len(x) == 1:
            return self.root_of_term(x, r)
        if r == HALF and (found := self.denested(x)) is not None:
            return found
        return self.opaque_power(x, r)

    def root_of_term(self, x: Sum, r: Fraction) -> Sum:
        """c Π a^e to a rational power: distributed over what is known to be positive."""
        [(term, c)] = x.items()
        rest = tuple((atom, e) for atom, e in term if not (atom.isdigit() or atom in POSITIVE))
        found = self.reduced({atom: e * r for atom, e in term if (atom, e) not in rest}, Fraction(1))
        sign = 1 if c > 0 else -1
        simple = len(rest) == 1 and rest[0][1] == 1 and rest[0][0] != "i"
        if rest and not (simple and sign > 0):
            return self.multiply(
                self.multiply(found, self.rational_power(abs(c), r)), self.opaque_power({rest: Fraction(sign)}, r)
            )
        if rest:
            found = self.multiply(found, self.reduced({rest[0][0]: r}, Fraction(1)))
        if sign < 0 and r.denominator == 2:
            found = self.multiply(found, self.reduced({"i": Fraction(r.numerator)}, Fraction(1)))
        elif sign < 0 and r.denominator % 2 == 0:
            return self.opaque_power(x, r)
        elif sign < 0 and r.numerator % 2:
            found = self.scale(found, Fraction(-1))  # the real root of a negative number
        return self.multiply(found, self.rational_power(abs(c), r))

    def rational_power(self, c: Fraction, r: Fraction) -> Sum:
        """A positive rational to a rational power, by its prime factors."""
        powers: dict[str, Fraction] = {}
        for number, sign in ((c.numerator, 1), (c.denominator, -1)):
            for prime, count in self.factors(number).items():
                powers[str(prime)] = powers.get(str(prime), Fraction(0)) + sign * count * r
        return self.reduced(powers, Fraction(1))

    def factors(self, n: int) -> dict[int, int]:
        """Prime factors by trial division. A large cofactor is kept whole, unless it is a square."""
        found: dict[int, int] = {}
        p = 2
        while p * p <= n and p < SIEVE:
            while n % p == 0:
                n //= p
                found[p] = found.get(p, 0) + 1
            p += 1 if p == 2 else 2
        if n > 1:
            root = isqrt(n)
            if root * root == n:
                found[root] = found.get(root, 0) + 2
                n = root
            else:
                found[n] = found.get(n, 0) + 1
            self.sure = self.sure and n < SIEVE * SIEVE
        return found

    def denested(self, x: Sum) -> Sum | None:
        """√(a + √b) as √((a + d)/2) ± √((a − d)/2) where d = √(a² − b) is rational and all is real."""
        a = x.get(ONE, Fraction(0))
        others = [(term, c) for term, c in x.items() if term != ONE]
        if a <= 0 or len(others) != 1 or any(e != HALF or not atom.isdigit() for atom, e in others[0][0]):
            return None
        [(term, c)] = others
        b = c * c
        for atom, _ in term:
            b *= int(atom)
        d = _root(a * a - b)
        if d is None:
            return None
        plus, minus = self.rational_power((a + d) / 2, HALF), self.rational_power((a - d) / 2, HALF)
        return self.add(plus, minus) if c > 0 else self.subtract(plus, minus)

    def opaque_power(self, x: Sum, r: Fraction) -> Sum:
        """A power that stays a power: of the sum without its rational content."""
        self.sure = False
        content, primitive = primitive_part(x)
        atom = f"({show(primitive)})"
        self.behind[atom] = primitive
        return self.multiply(self.rational_power(content, r), {((atom, r),): Fraction(1)})

    # -------------------------------------------------------------------------------------------------------- divisions

    def divide(self, x: Sum, y: Sum) -> Sum:
        if not y:
            raise ZeroDivisionError
        if len(y) > 1 and (found := self.quotient(x, y)) is not None:
            return found
        return self.multiply(x, self.inverse(y))

    def inverse(self, x: Sum) -> Sum:
        """1 / x. Denominators of square roots and i are made rational; other sums stay."""
        if not x:
            raise ZeroDivisionError
        if len(x) == 1:
            [(term, c)] = x.items()
            return self.reduced({atom: -e for atom, e in term}, 1 / c)
        atoms = {pair for term in x for pair in term}
        if all(_conjugable(*pair) for pair in atoms):
            return self.conjugated(x, sorted(atom for atom, _ in atoms))
        content, primitive = primitive_part(x)
        if show(primitive).startswith("-"):
            content, primitive = -content, self.scale(primitive, Fraction(-1))
        name = f"({show(primitive)})"
        self.behind[name], self.sure = primitive, False
        return {((name, Fraction(-1)),): 1 / content}

    def conjugated(self, x: Sum, roots: list[str]) -> Sum:
        """1 / x of a number in square roots and i, made rational one root after the other."""
        above = constant(1)
        for atom in reversed(roots):
            other = {term: (-c if any(a == atom for a, _ in term) else c) for term, c in x.items()}
            x, above = self.multiply(x, other), self.multiply(above, other)
            if len(x) == 1:
                break
        return self.multiply(above, self.inverse(x))

    def quotient(self, x: Sum, y: Sum) -> Sum | None:
        """x / y where that is again a sum without denominators: exact division of polynomials."""
        if not all(_polynomial(term) for term in (*x, *y)) or not any(term for term in y):
            return None
        lead = max(y, key=_degrees)
        found: Sum = {}
        for _ in range(self.limits.terms):
            if not x:
                return found
            top = max(x, key=_degrees)
            step = _joined(top, tuple((atom, -e) for atom, e in lead))
            if any(e < 0 for e in step.values()):
                return None
            piece = {tuple(sorted((a, e) for a, e in step.items() if e)): x[top] / y[lead]}
            found = self.add(found, piece)
            x = self.subtract(x, self.multiply(piece, y))
        return None


def primitive_part(x: Sum) -> tuple[Fraction, Sum]:
    """``(content, primitive)`` with a positive rational content and whole coprime coefficients."""
    above = gcd(*(c.numerator for c in x.values()))
    below = lcm(*(c.denominator for c in x.values()))
    content = Fraction(above, below)
    return content, {term: c / content for term, c in x.items()}


# ---------------------------------------------------------------------------------------------------------------- text


def show(x: Sum) -> str:
    """The text of a sum, which the grammar reads back: highest degree first.

    >>> show({(): Fraction(-1, 2), (("17", Fraction(1, 2)),): Fraction(1, 2)})
    '-1/2+1/2*sqrt(17)'
    """
    if not x:
        return "0"
    terms = sorted(((_rank(term), _shown(term), c) for term, c in x.items()))
    text = "".join(_signed(c, body) for _, body, c in terms)
    return text.removeprefix("+")


def _rank(term: Monomial) -> tuple[Fraction, int]:
    degree = sum((e for atom, e in term if not (atom.isdigit() or atom in ("i", *POSITIVE))), Fraction(0))
    return -degree, len(term)


def _signed(c: Fraction, body: str) -> str:
    sign = "-" if c < 0 else "+"
    c = abs(c)
    if not body:
        return f"{sign}{c}"
    return f"{sign}{body}" if c == 1 else f"{sign}{c}*{body}"


def _shown(term: Monomial) -> str:
    under = 1
    parts = []
    for atom, e in term:
        if atom.isdigit() and e == HALF:
            under *= int(atom)
        elif e == 1:
            parts.append(atom)
        else:
            exponent = str(e) if e.denominator == 1 and e > 0 else f"({e})"
            name, caret, inner = atom.partition("^")
            # 2^n squared is 2^(2*n): the reader splits it again. A caret inside brackets is another matter.
            parts.append(f"{name}^({e}*{inner})" if caret and "(" not in name else f"{atom}^{exponent}")
    roots = [f"sqrt({under})"] if under > 1 else []
    return "*".join(roots + parts)


# --------------------------------------------------------------------------------------------------------------- pieces


def _joined(a: Monomial, b: Monomial) -> dict[str, Fraction]:
    powers = dict(a)
    for atom, e in b:
        powers[atom] = powers.get(atom, Fraction(0)) + e
    return powers


def _root(value: Fraction) -> Fraction | None:
    if value < 0:
        return None
    above, below = isqrt(value.numerator), isqrt(value.denominator)
    return Fraction(above, below) if above * above == value.numerator and below * below == value.denominator else None


def _conjugable(atom: str, e: Fraction) -> bool:
    return atom == "i" or (atom.isdigit() and e == HALF)


def _polynomial(term: Monomial) -> bool:
    return all(e.denominator == 1 and e > 0 and not atom.isdigit() and atom != "i" for atom, e in term)


def _degrees(term: Monomial) -> tuple[tuple[int, str, Fraction], ...]:
    """A lexicographic order of monomials: earlier atoms first, higher powers above. Longer is above its prefix."""
    return tuple((-ord(atom[0]), atom, e) for atom, e in term)

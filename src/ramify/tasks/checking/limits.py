"""Static limits on answers: what is longer, deeper or larger is refused before anything is computed with it."""

from __future__ import annotations

from math import comb, lgamma, log

from ramify.describe import method
from ramify.errors import RamifyError, is_whole, require

__all__ = ["LIMITS", "Limits", "Refused", "Unreadable"]


class Unreadable(RamifyError):
    """A text outside the grammar of answers. It may still be an answer, for another rung to judge."""


class Refused(RamifyError):
    """An answer beyond the static limits: nothing was computed with it, and it counts as wrong."""


@method
class Limits:
    """How large an answer may be, in its text and in the numbers that it writes.

    >>> Limits().power(2, 99)
    >>> Limits().factorial(10**9)
    Traceback (most recent call last):
    ramify.tasks.checking.limits.Refused: 1000000000! has more than 1000 digits
    """

    length: int = 1000  # characters
    nesting: int = 40  # brackets within brackets
    digits: int = 1000  # of any integer, written or computed
    terms: int = 200  # of a sum that was multiplied out
    degree: int = 40  # of a power of a sum that is multiplied out

    def __post_init__(self) -> None:
        for name in ("length", "nesting", "digits", "terms", "degree"):
            require(is_whole(getattr(self, name), 1), f"Limits.{name}", getattr(self, name), "use an integer >= 1")

    def text(self, text: str) -> None:
        """Refuse a text that is too long or nested too deep; brackets need not match."""
        if len(text) > self.length:
            raise Refused(f"{len(text)} characters, and {self.length} are read")
        depth = 0
        for letter in text:
            depth += (letter in "([{") - (letter in ")]}")
            if depth > self.nesting:
                raise Refused(f"nested more than {self.nesting} deep")

    def power(self, base: int, exponent: int) -> None:
        """Refuse ``base ** exponent`` where it has too many digits."""
        if abs(base) > 1 and exponent * log(abs(base), 10) > self.digits:
            raise Refused(f"a power with more than {self.digits} digits")

    def factorial(self, n: int) -> None:
        """Refuse n! where it has too many digits."""
        if n > 3 and (n > 10**9 or lgamma(n + 1) / log(10) > self.digits):
            raise Refused(f"{n}! has more than {self.digits} digits")

    def binomial(self, n: int, k: int) -> int:
        """C(n, k), refused where it may have too many digits."""
        least = min(k, n - k)
        if least > 0 and (n > 10**9 or least * log(n, 10) > self.digits):
            raise Refused(f"a binomial coefficient with more than {self.digits} digits")
        return comb(n, k)


LIMITS = Limits()

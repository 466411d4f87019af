"""The ladder of checks: the cheapest rung that can decide does, and the verdict says which one it was.

    exact   canonical forms: equal forms are equal answers, and different ones that are sure are different
    math    math-verify in a process that can be killed, on LaTeX that our reader wrote where it could read the answer
    guard   both sides to fifty digits, shapes and symbols compared; it overrules, because it does not guess
    limits  the answer was refused before anything was computed

Equality on the exact rung is an equivalence relation. Below it is a judgement of an answer against a reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ramify.bank.codes import EITHER, alternatives
from ramify.describe import method
from ramify.errors import InvalidValue, require
from ramify.tasks.checking.canonical import Canonical, canonical
from ramify.tasks.checking.guard import same_values
from ramify.tasks.checking.lexer import clean
from ramify.tasks.checking.limits import LIMITS, Limits, Refused, Unreadable
from ramify.tasks.checking.pool import shared
from ramify.tasks.checking.render import latex

__all__ = ["RUNGS", "Checked", "Ladder"]

RUNGS = ("exact", "math", "guard", "limits", "none")
_TOWER = re.compile(r"\^\s*\{?[^{}^]*\^\s*\{?[^{}^]*\^")
_DIGITS = re.compile(r"\d+")
_LARGE = re.compile(r"\^\s*\{?\s*\d{5,}|\d{5,}\s*\}?\)?!")


@dataclass(frozen=True, slots=True)
class Checked:
    """A verdict: whether the answer is right, the rung that decided, and what happened on the way.

    ``status``: ok | refused (by limits) | timeout | unread (no rung could read it). ``disagree``: math-verify and the
    guard said different things.
    """

    equal: bool
    rung: str
    status: str = "ok"
    disagree: bool = False
    why: str = ""


@method
class Ladder:
    r"""Whether an answer is the reference, and which rung said so. Of several right answers one is enough.

    >>> ladder = Ladder(math=False)
    >>> ladder(r"2\sqrt2", r"\sqrt{8}")
    Checked(equal=True, rung='exact', status='ok', disagree=False, why='')
    >>> ladder(r"1+\frac1e+\pi", r"1-\frac1e+\pi").rung, ladder("9^{9^{9^9}}", "1").status
    ('guard', 'refused')
    """

    limits: Limits = LIMITS
    math: bool = True
    seconds: float = 3.0
    workers: int = 1

    def __post_init__(self) -> None:
        require(self.seconds > 0, "Ladder.seconds", self.seconds, "use a time > 0")
        require(self.workers >= 1, "Ladder.workers", self.workers, "use a number of processes >= 1")

    def __call__(self, answer: str | None, reference: str) -> Checked:
        """The verdict on one answer; None is ⊥ and never right."""
        if answer == reference and answer is not None and answer.isascii() and answer.isdigit():
            return SAME if len(answer) <= self.limits.digits else self.many([(answer, reference)])[0]
        return self.many([(answer, reference)])[0]

    def many(self, pairs: Iterable[tuple[str | None, str]]) -> list[Checked]:
        """The verdicts on many pairs ``(answer, reference)``: what the exact rung leaves goes to the pool together."""
        listed = list(pairs)
        found = [self.exact(answer, reference) for answer, reference in listed]
        open_ = [self.undecided(*pair) if verdict is None else [] for pair, verdict in zip(listed, found, strict=True)]
        left = list(dict.fromkeys(pair for pairs in open_ for pair in pairs))
        later = dict(zip(left, self.below(left), strict=True)) if left else {}
        return [
            _one_of([later[pair] for pair in pairs]) if verdict is None else verdict
            for pairs, verdict in zip(open_, found, strict=True)
        ]

    def undecided(self, answer: str | None, reference: str) -> list[tuple[str | None, str]]:
        """The pairs of a reference's alternatives that the exact rung leaves open."""
        return [(answer, each) for each in alternatives(reference) if self.exact(answer, each) is None]

    def exact(self, answer: str | None, reference: str) -> Checked | None:
        """The first rung alone; None where it cannot decide."""
        if answer is None:
            return BOTTOM
        if EITHER in reference:
            found = [self.exact(answer, each) for each in alternatives(reference)]
            return None if None in found and SAME not in found else _one_of([each for each in found if each])
        b = canonical(reference, self.limits)
        if b.form is None and len(reference) > self.limits.length:  # prose: the same words, or not
            return SAME if _words(answer) == _words(reference) else OTHER
        if b.form is None:
            raise InvalidValue(f"reference = {reference[:60]!r}: {b.why}; give the ladder wider Limits(...)")
        a = canonical(answer, self.limits)
        if a.form is None:
            return Checked(False, "limits", "refused", why=a.why)
        if a.form == b.form:
            return SAME
        return OTHER if a.sure and b.sure else None

    def below(self, pairs: list[tuple[str | None, str]]) -> list[Checked]:
        """The rungs below: math-verify, then the guard."""
        read = [(canonical(str(a), self.limits), canonical(b, self.limits)) for a, b in pairs]
        asked = [self.question(*sides, *pair) for sides, pair in zip(read, pairs, strict=True)]
        texts = [text for text in asked if isinstance(text, tuple)] if self.math else []
        replies = iter(shared(self.seconds, self.workers)(texts) if texts else [])
        verdicts = []
        for (a, b), text in zip(read, asked, strict=True):
            if isinstance(text, Checked):
                verdicts.append(text)
            else:
                verdicts.append(_settled(a, b, next(replies) if self.math else "none", same_values(a, b, self.limits)))
        return verdicts

    def question(self, a: Canonical, b: Canonical, answer: str | None, reference: str) -> tuple[str, str] | Checked:
        """What math-verify is asked, reference first; or a refusal of text that only it could read."""
        try:
            return self.written(b, reference), self.written(a, str(answer))
        except Refused as refusal:
            return Checked(False, "limits", "refused", why=str(refusal))

    def written(self, side: Canonical, text: str) -> str:
        """LaTeX of our own where the text was read; else the text, within static limits on powers and digits."""
        if side.tree is not None:
            try:
                return latex(side.tree)
            except Unreadable:
                pass
        text = clean(text)
        if _TOWER.search(text) or _LARGE.search(text):
            raise Refused("a power, a tower of powers or a factorial that is too large")
        if max(map(len, _DIGITS.findall(text)), default=0) > self.limits.digits:
            raise Refused(f"a number with more than {self.limits.digits} digits")
        return text


SAME, OTHER = Checked(True, "exact"), Checked(False, "exact")
BOTTOM = Checked(False, "exact", why="no answer")


def _one_of(verdicts: list[Checked]) -> Checked:
    """The verdict on an answer of which any of several would be right."""
    return next((verdict for verdict in verdicts if verdict.equal), verdicts[0])


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def _settled(a: Canonical, b: Canonical, reply: str, guard: bool | None) -> Checked:
    """One verdict of two opinions. The guard computed, so it overrules; where it could not, math-verify decides."""
    said = {"equal": True, "different": False}.get(reply)
    if guard is not None:
        agree = said is None or said == guard
        return Checked(guard, "math" if said == guard else "guard", disagree=not agree)
    if said is not None:
        unread = ", ".join(side for side, c in (("the answer", a), ("the reference", b)) if c.shape == "unread")
        return Checked(said, "math", why=f"not guarded: {unread or 'no number'}" if said else "")
    return Checked(False, "none", "timeout" if reply == "timeout" else "unread", why=a.why or b.why)

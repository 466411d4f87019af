r"""Boxed answers: the last ``\boxed{...}`` after the reasoning."""

from __future__ import annotations

import re

from ramify.describe import method
from ramify.errors import require
from ramify.tasks.checking.canonical import canonical, literal
from ramify.tasks.checking.limits import LIMITS, Limits
from ramify.tasks.extract.parsed import NOTHING, OK, REFUSED, TRUNCATED, UNCLOSED, Parsed, failed
from ramify.tasks.extract.segments import segments

__all__ = ["FORMS", "Boxed", "last_box"]

FORMS = ("canonical", "literal")
_OPENING = re.compile(r"\\(?:boxed|fbox)\s*(\{)?")
_BARE = re.compile(r"\\(?:boxed|fbox)\s+([^\s$\\{}.,;]+)")


@method
class Boxed:
    r"""The last box after the reasoning. ``form`` says what is voted on: canonical answers, or literal strings.

    ``opened``: the prompt opens the reasoning, so that a text without its end is truncated. ``after``: with True, boxes
    inside the reasoning are never answers; with False they are where nothing follows them.

    >>> Boxed()(r"<think>\boxed{7}?</think> So \boxed{\frac{2}{4}}.")
    Parsed(reasoning='<think>\\boxed{7}?</think>', answer='1/2', artefact='\\frac{2}{4}', status='ok')
    >>> [Boxed()(text).status for text in (r"\boxed{12", "The answer is 12.", r"<think>\boxed{12}", r"\boxed{9^{9^9}}")]
    ['unclosed box', 'no answer', 'truncated reasoning', 'refused by limits']
    """

    form: str = "canonical"
    opened: bool = False
    after: bool = True
    limits: Limits = LIMITS

    def __post_init__(self) -> None:
        require(self.form in FORMS, "Boxed.form", self.form, f"use one of {', '.join(FORMS)}")

    def __call__(self, text: str) -> Parsed:
        reasoning, final, closed = segments(text, self.opened)
        if not closed and self.after:
            return failed(text, TRUNCATED)
        box, whole = last_box(final if closed else text)
        if box is None and not self.after:
            box, whole = last_box(text)
        if box is None:
            return failed(reasoning, NOTHING)
        if not whole:
            return failed(reasoning, UNCLOSED, box)
        return formed(reasoning, box, self.form, self.limits)


def formed(reasoning: str, artefact: str, form: str, limits: Limits = LIMITS) -> Parsed:
    """An answer in the form that is voted on; one that is empty or beyond the limits is ⊥."""
    if not artefact.strip():
        return failed(reasoning, NOTHING, artefact)
    found = canonical(artefact, limits)
    if found.form is None:
        return failed(reasoning, REFUSED, artefact)
    return Parsed(reasoning, found.form if form == "canonical" else literal(artefact), artefact, OK)


def last_box(text: str) -> tuple[str | None, bool]:
    r"""The content of the last box, and whether it is closed; None without any.

    >>> last_box(r"\boxed{1} or \boxed{\frac{1}{2}} dollars"), last_box(r"\boxed{\frac{1}{2"), last_box(r"\boxed 5")
    (('\\frac{1}{2}', True), ('\\frac{1}{2', False), ('5', True))
    """
    found = None
    for found in _OPENING.finditer(text):  # noqa: B007
        pass
    if found is None:
        return None, False
    if found.group(1) is None:
        bare = _BARE.match(text, found.start())
        return (bare.group(1), True) if bare else ("", False)
    depth, at = 1, found.end()
    while at < len(text) and depth:
        letter = text[at]
        if letter == "\\":
            at += 1  # an escaped brace is no brace
        depth += (letter == "{") - (letter == "}")
        at += 1
    return (text[found.end() : at - 1], True) if not depth else (text[found.end() :], False)

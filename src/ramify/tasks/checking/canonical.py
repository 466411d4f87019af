"""Canonical answers: an equivalence relation by canonical form, for voting and for the exact rung of checking."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ramify.tasks.checking.grammar import Tree, read
from ramify.tasks.checking.lexer import CONSTANTS, FUNCTIONS, GREEK
from ramify.tasks.checking.limits import LIMITS, Limits, Refused, Unreadable
from ramify.tasks.checking.normal import normal

__all__ = ["Canonical", "canonical", "literal"]

_INTEGER = re.compile(r"([+-]?)0*([0-9]+)")
_LETTER = re.compile(r"(?:\\text\s*\{)?\s*\(?\s*([A-Za-z])\s*\)?\s*\.?\s*\}?")
_BASED = re.compile(r"0*([0-9A-Z]*[A-Z][0-9A-Z]*)_(?:\{([0-9]{2})\}|([0-9]))")
_WORDS = re.compile(r"(?=.*[^\W\d_]{3})[^\W\d_]+(?:(?:, *| +|-|'|’)[^\W\d_]+)*[.!]?")
_WRAPPED = re.compile(r"\\(?:text|mbox|textbf|mathrm|textit)\s*\{([^{}]*)\}\.?")
NAMES = frozenset(CONSTANTS) | FUNCTIONS | GREEK


@dataclass(frozen=True, slots=True)
class Canonical:
    """An answer in canonical form.

    Two answers are the same exactly if their forms are equal. ``sure``: another sure form is another answer; otherwise
    an equality may be hidden, which the later rungs look for. ``form`` is None where the answer was refused.
    """

    form: str | None
    shape: str  # integer | value | letter | text | set | tuple | interval | matrix | relation | base | unread | refused
    sure: bool
    tree: Tree | None = None
    symbols: frozenset[str] = frozenset()
    why: str = ""


def canonical(text: str, limits: Limits = LIMITS) -> Canonical:
    r"""The canonical form of a final answer. It is its own canonical form.

    >>> texts = "073", r"\frac{2}{4}", r"\sqrt{1215}", r"70{,}000", "(x+1)^2", r"(0,2)\setminus\{1\}", "(C)", "Even."
    >>> for text in texts:
    ...     print(text, "->", canonical(text).form)
    073 -> 73
    \frac{2}{4} -> 1/2
    \sqrt{1215} -> 9*sqrt(15)
    70{,}000 -> 70000
    (x+1)^2 -> x^2+2*x+1
    (0,2)\setminus\{1\} -> (0, 1) \cup (1, 2)
    (C) -> C
    Even. -> even
    >>> canonical("9^{9^{9^9}}").shape, canonical("(" * 3000).shape
    ('refused', 'refused')
    """
    found = _INTEGER.fullmatch(text)
    if found is not None and len(text) <= limits.digits:
        sign, digits = found.groups()
        return Canonical(f"-{digits}" if sign == "-" and digits != "0" else digits, "integer", True)
    return _canonical(text, limits)


def literal(text: str) -> str:
    """The answer as it was written, but for white space around it: what the paper's plurality counts."""
    return text.strip()


@lru_cache(maxsize=1 << 16)
def _canonical(text: str, limits: Limits) -> Canonical:
    text = text.strip()
    try:
        limits.text(text)
        return _word(text) or _expression(text, limits)
    except Refused as refusal:
        return Canonical(None, "refused", False, why=str(refusal))
    except Unreadable as reason:
        return Canonical(" ".join(text.split()), "unread", False, why=str(reason))


def _word(text: str) -> Canonical | None:
    """Letters, digits in a base with letters, and words."""
    inner = text.strip("$ ")
    found = _LETTER.fullmatch(inner)
    if found is not None:
        return Canonical(found.group(1), "letter", True, _symbol(found.group(1)), frozenset(found.group(1)))
    found = _BASED.fullmatch(inner)
    if found is not None:
        return Canonical(inner.lstrip("0"), "base", True)
    wrapped = _WRAPPED.fullmatch(inner)
    words = wrapped.group(1) if wrapped else inner
    if wrapped is None and (not _WORDS.fullmatch(words) or words in NAMES):
        return None
    form = " ".join(words.casefold().split()).strip(".!,;: '\"’")
    if wrapped is not None and not (_WORDS.fullmatch(form) and form not in NAMES):
        if not form or not any(letter.isalpha() for letter in form):
            return None
        form = f"\\text{{{form}}}"
    return Canonical(form, "text", True)


def _symbol(letter: str) -> Tree:
    return ("const" if letter in "ei" else "symbol", letter)


def _expression(text: str, limits: Limits) -> Canonical:
    tree = read(text, limits)
    found = normal(tree, limits)
    if len(found.form) > limits.length:
        raise Unreadable("a form that is longer than what is read")
    shape = "integer" if _INTEGER.fullmatch(found.form) else found.shape
    shape = "letter" if len(found.form) == 1 and found.form.isalpha() else shape
    return Canonical(found.form, shape, found.sure, tree, found.symbols)

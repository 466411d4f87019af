"""Flexible extraction: the kind of answer that a question asks for decides what is looked for (BIG-Bench Hard)."""

from __future__ import annotations

import re

from ramify.describe import method
from ramify.errors import require
from ramify.tasks.extract.boxed import last_box
from ramify.tasks.extract.choice import LastNumber, Letter, Phrase, said
from ramify.tasks.extract.parsed import NOTHING, OK, TRUNCATED, Parsed, failed
from ramify.tasks.extract.segments import segments

__all__ = ["KINDS", "Flexible", "kind_of"]

KINDS = ("letter", "yes or no", "true or false", "valid or invalid", "number", "brackets", "words")
_BRACKETS = re.compile(r"[()\[\]{}<>](?:\s*[()\[\]{}<>])*")
_WORDS = re.compile(r"[A-Za-z&'’.-]+")
OPTIONS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PLAIN = str.maketrans(",;\n", "   ", '*`"“”')


@method
class Flexible:
    """The answer of one kind, wherever it stands: boxed, after "the answer is", or last in the text.

    >>> Flexible("letter")("Let's see. So the answer is (B).").answer
    '(B)'
    >>> Flexible("brackets")("So the answer is ] ] >.").answer
    '] ] >'
    >>> Flexible("words")("The answer is: barn, damp dot").answer
    'barn damp dot'
    >>> Flexible("yes or no")("No wait... the answer is Yes.").answer
    'Yes'
    """

    kind: str = "letter"
    opened: bool = False

    def __post_init__(self) -> None:
        require(self.kind in KINDS, "Flexible.kind", self.kind, f"use one of {', '.join(KINDS)}")

    def __call__(self, text: str) -> Parsed:
        match self.kind:
            case "letter":
                parsed = Letter(OPTIONS, opened=self.opened)(text)
                return parsed if parsed.answer is None else _with(parsed, f"({parsed.answer})")
            case "number":
                return LastNumber(opened=self.opened)(text)
            case "brackets" | "words":
                return self.sequence(text)
            case kind:
                return Phrase(tuple(_titled(word) for word in kind.split(" or ")), self.opened)(text)

    def sequence(self, text: str) -> Parsed:
        """Brackets or words in a row."""
        reasoning, final, closed = segments(text, self.opened)
        if not closed:
            return failed(text, TRUNCATED)
        box, whole = last_box(final)
        places = ([box] if box is not None and whole else []) + said(final)[-1:] + final.strip().splitlines()[-1:]
        for place in places:
            answer = _brackets(place) if self.kind == "brackets" else _words(place)
            if answer:
                return Parsed(reasoning, answer, place, OK)
        return failed(reasoning, NOTHING)


def _titled(word: str) -> str:
    return word if word in ("valid", "invalid") else word.capitalize()


def _with(parsed: Parsed, answer: str) -> Parsed:
    return Parsed(parsed.reasoning, answer, parsed.artefact, parsed.status)


def _brackets(text: str) -> str:
    text = re.sub(r"\\([{}\[\]()<>])", r"\1", text).replace("\\langle", "<").replace("\\rangle", ">").replace("$", "")
    found = _BRACKETS.findall(text)
    return " ".join("".join(found[-1].split())) if found else ""


def _words(text: str) -> str:
    text = re.sub(r"\\(?:text|mathrm)\s*\{([^{}]*)\}", r"\1", text).translate(PLAIN)
    words = _WORDS.findall(text.replace("\\", " "))
    return " ".join(word.strip(".").lower() for word in words if word.strip("."))


def kind_of(targets: set[str]) -> str:
    """The kind of answers that a task's targets are.

    >>> [kind_of(set(each)) for each in (["(A)", "(B)"], ["yes", "no"], ["24", "-3"], ["] ]", ">"], ["a b", "c"])]
    ['letter', 'yes or no', 'number', 'brackets', 'words']
    """
    folded = {target.casefold() for target in targets}
    for kind in ("yes or no", "true or false", "valid or invalid"):
        if folded <= set(kind.split(" or ")):
            return kind
    if all(re.fullmatch(r"[-+]?\d+", target) for target in targets):
        return "number"
    if all(_BRACKETS.fullmatch(target) and not re.fullmatch(r"\([A-Z]\)", target) for target in targets):
        return "brackets"
    lettered = sum(bool(re.fullmatch(r"\([A-Z]\)", target)) for target in targets)
    return "letter" if 2 * lettered >= len(targets) else "words"

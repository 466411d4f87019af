"""Option letters, numbers and short words: extraction by phrases, then by what stands last."""

from __future__ import annotations

import re
from collections import deque

from ramify.describe import method
from ramify.errors import require
from ramify.tasks.checking.lexer import clean
from ramify.tasks.extract.boxed import FORMS, formed, last_box
from ramify.tasks.extract.parsed import NOTHING, OK, TRUNCATED, UNREAD, Parsed, failed
from ramify.tasks.extract.segments import segments

__all__ = ["LastNumber", "Letter", "Phrase", "said"]

SAID = 64  # of a text that says it over and over, the last ones
_SAID = re.compile(
    r"(?:final answer|correct answer|best answer|correct option|correct choice|answer|option|choice)"
    r"(?:\s+(?:choice|option))?\s*(?:\*\*|\$)*\s*(?:is|:|=|would be|must be)\s*:?\s*"
    r"(?:\*\*|\$|\\text\{|\\mathrm\{)*\s*([^\n]{0,1000})",
    re.IGNORECASE,
)
_SIGN = r"(?:(?<![\w)\]}])[-−+])?"  # behind a number or a name it is a difference, or a range
_NUMBER = re.compile(rf"{_SIGN}\$?\d[\d,]*(?:\.\d+)?(?:/\d+|[eE][-+]?\d+(?!\w))?|{_SIGN}\.\d+")
_CHOSEN = re.compile(
    r"(?:option|choice|answer)\s+[(*]*([A-Z])[)*]*\s+is\s+(?:the\s+)?(?:most\s+)?(?:correct|right|best|accurate|appropriate)",
    re.IGNORECASE,
)
_MARKED = re.compile(r"####\s*([^\n]+)")


def said(text: str) -> list[str]:
    """What follows "the answer is" on its line, the last times that it is said.

    >>> said("The answer is (B). No: the correct answer is **C**.")
    ['(B). No: the correct answer is **C**.', 'C**.']
    """
    found: deque[str] = deque(maxlen=SAID)
    at = 0
    while (match := _SAID.search(text, at)) is not None:
        found.append(match.group(1))
        at = match.start(1)
    return list(found)


@method
class Letter:
    """An option letter: boxed, then in "the answer is" or "option C is correct", then the last that stands alone.

    ``loose``: whether a letter that merely stands alone counts. ``letters`` are the options there are.

    >>> texts = r"So \\boxed{\\text{(B)}}.", "The answer is (c).", "Answer: J", "It must be D", "Because I said so."
    >>> [Letter()(text).answer for text in texts]
    ['B', 'C', 'J', 'D', None]
    """

    letters: str = "ABCDEFGHIJ"
    loose: bool = True
    opened: bool = False

    def __post_init__(self) -> None:
        ok = self.letters.isascii() and self.letters.isalpha() and self.letters.isupper()
        require(ok, "Letter.letters", self.letters, "use capital letters, such as 'ABCD'")

    def __call__(self, text: str) -> Parsed:
        reasoning, final, closed = segments(text, self.opened)
        if not closed:
            return failed(text, TRUNCATED)
        box, whole = last_box(final)
        if box is not None and whole:
            letter = self.in_box(box)
            return Parsed(reasoning, letter, box, OK) if letter else failed(reasoning, UNREAD, box)
        for phrase in reversed(said(final)):
            letter = self.leading(phrase)
            if letter:
                return Parsed(reasoning, letter, phrase, OK)
        chosen = [found for found in _CHOSEN.findall(final) if found in self.letters]  # "Option C is correct."
        return Parsed(reasoning, chosen[-1], chosen[-1], OK) if chosen else self.alone(reasoning, final)

    def in_box(self, box: str) -> str | None:
        inner = re.sub(r"\\(?:text|mathrm|textbf|mathbf)\s*\{([^{}]*)\}", r"\1", box)
        return self.leading(clean(inner))

    def leading(self, text: str) -> str | None:
        """The letter that a phrase begins with, in brackets or followed by an end."""
        found = re.match(rf"[\s(\[*$\"']*([{self.letters}{self.letters.lower()}])(?![A-Za-z0-9'’])", text)
        # A small letter before a word is an article or a pronoun, unless it is closed like an option.
        if found is None or (found.group(1).islower() and not re.match(r"\s*[).\]:*]|\s*$", text[found.end() :])):
            return None
        if found.group(1) in "AI" and re.match(r"\s+[a-z]", text[found.end() :]):
            return None
        return found.group(1).upper()

    def alone(self, reasoning: str, final: str) -> Parsed:
        if not self.loose:
            return failed(reasoning, NOTHING)
        found = re.findall(rf"(?<![A-Za-z0-9'’])([{self.letters}])(?![A-Za-z0-9'’]|\s+[a-z])", final)
        return Parsed(reasoning, found[-1], found[-1], OK) if found else failed(reasoning, NOTHING)


@method
class LastNumber:
    """A number: boxed, then after ``####``, then in the last "the answer is", then the last number there is.

    >>> texts = "Then #### 1,234", "The answer is $18.50.", "First 3, and then 5 apples.", "Nothing."
    >>> [LastNumber()(text).answer for text in texts]
    ['1234', '37/2', '5', None]
    """

    form: str = "canonical"
    loose: bool = True
    opened: bool = False

    def __post_init__(self) -> None:
        require(self.form in FORMS, "LastNumber.form", self.form, f"use one of {', '.join(FORMS)}")

    def __call__(self, text: str) -> Parsed:
        reasoning, final, closed = segments(text, self.opened)
        if not closed:
            return failed(text, TRUNCATED)
        box, whole = last_box(final)
        if box is not None and whole:
            return formed(reasoning, box, self.form)
        marked = _MARKED.findall(final)
        places = marked[-1:] + said(final)[-1:] + ([final] if self.loose else [])
        for number, place in enumerate(places):
            found = _NUMBER.findall(place)
            if found:
                last = found[-1] if number == len(places) - 1 and self.loose else found[0]
                return formed(reasoning, last.replace("$", "").rstrip(",").replace(",", ""), self.form)
        return failed(reasoning, NOTHING)


@method
class Phrase:
    """One of given words: boxed, in the last "the answer is", then the last of them in the text. Case is ignored.

    >>> Phrase(("valid", "invalid"))("The argument is not valid, so the answer is invalid.").answer
    'invalid'
    """

    words: tuple[str, ...] = ("yes", "no")
    opened: bool = False

    def __post_init__(self) -> None:
        require(self.words and all(self.words), "Phrase.words", self.words, "name the words that may be answers")

    def __call__(self, text: str) -> Parsed:
        reasoning, final, closed = segments(text, self.opened)
        if not closed:
            return failed(text, TRUNCATED)
        box, whole = last_box(final)
        places = [box] if box is not None and whole else []
        for place in [*places, *reversed(said(final))]:
            word = self.found(place, first=True)
            if word:
                return Parsed(reasoning, word, place, OK)
        word = self.found(final, first=False)
        return Parsed(reasoning, word, word, OK) if word else failed(reasoning, NOTHING)

    def found(self, text: str, first: bool) -> str | None:
        names = {word.casefold(): word for word in self.words}
        longest = sorted(names, key=len, reverse=True)
        all_found = re.findall(rf"(?<!\w)({'|'.join(map(re.escape, longest))})(?!\w)", text.casefold())
        return names[all_found[0 if first else -1]] if all_found else None

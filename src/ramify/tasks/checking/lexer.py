"""From the LaTeX or plain text of an answer to tokens. Layout, currency and decoration go; nothing is computed."""

from __future__ import annotations

import re
from typing import NamedTuple

from ramify.tasks.checking.limits import Unreadable

__all__ = ["CONSTANTS", "FUNCTIONS", "GREEK", "Token", "clean", "tokens", "unboxed"]


class Token(NamedTuple):
    """``kind``: number | symbol | constant | function | command | op | text | repeat | end."""

    kind: str
    value: str
    spaced: bool = False  # white space before it


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _names("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log lg exp sqrt abs floor ceil")
GREEK = _names(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega"
)
CONSTANTS = {"pi": "pi", "infty": "oo", "oo": "oo", "inf": "oo", "infinity": "oo"}
COMMANDS = _names("frac sqrt binom cup cap setminus in begin end pm mp circ degree emptyset varnothing")
OPERATORS = {
    "cdot": "*",
    "times": "*",
    "ast": "*",
    "div": "/",
    "le": "<=",
    "leq": "<=",
    "leqslant": "<=",
    "ge": ">=",
    "geq": ">=",
    "geqslant": ">=",
    "lt": "<",
    "gt": ">",
    "ne": "!=",
    "neq": "!=",
    "lvert": "|",
    "rvert": "|",
    "vert": "|",
    "mid": "|",
    "land": ",",
    "lor": ",",
    "backslash": "\\setminus",
    "colon": ":",
}
VARIANTS = {"varphi": "phi", "vartheta": "theta", "varepsilon": "epsilon", "dfrac": "frac", "tfrac": "frac"}
VARIANTS |= {"cfrac": "frac", "dbinom": "binom", "tbinom": "binom", "smallsetminus": "setminus"}
SILENT = _names(
    "left right displaystyle textstyle limits big Big bigg Bigg bigl bigr Bigl Bigr quad qquad rm bf it mathstrut"
)
DECORATION = _names("overline mathbf boldsymbol vec hat bar underline mathcal mathbb widehat")
WORDS = _names("text mbox textbf textit mathrm operatorname textrm texttt mathit")

UNITS = _names(
    "cm mm km in inch inches ft foot feet yard yards yd mile miles mi mph meter meters metre metres kg "
    "gram grams lb lbs pound pounds oz ounce ounces sec second seconds min minute minutes hr hour hours "
    "day days week weeks month months year years degree degrees deg rad radian radians unit units square "
    "sq cubic percent dollar dollars cent cents usd liter liters litre litres ml people students ways "
    "points times"
)  # single letters are symbols

_UNICODE = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "×": "*",
        "·": "*",
        "⋅": "*",
        "÷": "/",
        "⁄": "/",
        "π": r"\pi ",
        "∞": r"\infty ",
        "≤": "<=",
        "≥": ">=",
        "°": r"^\circ ",
        "º": r"^\circ ",
        "∪": r"\cup ",
        "∩": r"\cap ",
        "∈": r"\in ",
        "±": r"\pm ",
        "∓": r"\mp ",
        "√": r"\sqrt ",
        "∅": r"\emptyset ",
        "\u2061": "",
        "\u200b": "",
        "\u00a0": " ",
        "\u2009": " ",
        "\u202f": " ",
        "½": r"\frac12 ",
        "θ": r"\theta ",
        "α": r"\alpha ",
        "β": r"\beta ",
        "，": ",",
        "（": "(",
        "）": ")",
        "²": "^{2}",
        "³": "^{3}",
    }
)
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?|\\(.)", re.DOTALL)
_NUMBER = re.compile(r"(?:\d+\.\d+|\d+\.(?!\d)|\.\d+|\d+)(?:[eE][+-]?\d{1,4}(?![\w.]))?")
_WORD = re.compile(r"[A-Za-z]+")
# Groups of three after a separator that only separates thousands: always, and at the top where a comma may too.
_THIN = re.compile(r"(?<![\d.])(\d{1,3})((?:(?:\{,\}|,\\!|\\,|\\!|,\\,|\\ )\s?\d{3})+)(?!\d)")
_COMMA = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NOT_DIGIT = re.compile(r"\D")


def unboxed(text: str) -> str:
    r"""The content of a ``\boxed{...}`` or ``\fbox{...}`` that is the whole text.

    >>> unboxed(r"\boxed{\frac{1}{2}}")
    '\\frac{1}{2}'
    """
    for opening in ("\\boxed{", "\\fbox{"):
        if text.startswith(opening) and text.endswith("}"):
            inside = text[len(opening) : -1]
            depth = 0
            for letter in inside:
                depth += (letter == "{") - (letter == "}")
                if depth < 0:
                    return text
            return inside
    return text


def clean(text: str) -> str:
    r"""The text without dollar signs, final full stops, percent signs and separators of thousands.

    >>> clean(r"$70{,}000$."), clean(r"\$32,\!348"), clean("1,234"), clean("(1,234)"), clean(r"50\%")
    ('70000', '32348', '1234', '(1,234)', '50')
    """
    text = text.translate(_UNICODE).strip()
    for opening, closing in (("\\(", "\\)"), ("\\[", "\\]")):
        if text.startswith(opening) and text.endswith(closing):
            text = text[2:-2]
    text = text.replace("\\$", "").replace("$", "").replace("\\%", "").replace("%", "").strip()
    text = text.removesuffix(".").rstrip() if not text.endswith("\\.") else text
    text = unboxed(text.strip())
    text = _THIN.sub(lambda found: found.group(1) + _NOT_DIGIT.sub("", found.group(2)), text)
    return text.replace(",", "") if _COMMA.fullmatch(text) else text


def tokens(text: str) -> list[Token]:
    """The tokens of a cleaned text, with an end."""
    return _Lexer(text).run()


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.spaced = text, 0, False
        self.found: list[Token] = []

    def run(self) -> list[Token]:
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter.isspace() or letter == "~":
                self.at, self.spaced = self.at + 1, True
            elif letter == "\\":
                self.command()
            elif letter.isdigit() or letter == ".":
                self.number()
            elif letter.isalpha():
                self.word()
            else:
                self.operator(letter)
        return [*self.found, Token("end", "", self.spaced)]

    def add(self, kind: str, value: str) -> None:
        self.found.append(Token(kind, value, self.spaced))
        self.spaced = False

    def number(self) -> None:
        found = _NUMBER.match(self.text, self.at)
        if found is None or not found.group().isascii():
            raise Unreadable(f"a stray {self.text[self.at]!r}")
        self.at = found.end()
        self.add("number", found.group())

    def word(self) -> None:
        found = _WORD.match(self.text, self.at)
        if found is None:
            raise Unreadable(f"the letter {self.text[self.at]!r}")
        word, self.at = found.group(), found.end()
        if word in ("and", "or"):
            self.add("op", ",")
        elif word in CONSTANTS:
            self.add("constant", CONSTANTS[word])
        elif word in FUNCTIONS:
            self.add("function", word)
        elif word in GREEK:
            self.add("symbol", word)
        elif len(word) > 1 and self.found and self.found[-1].kind in ("number", "repeat") and word.lower() in UNITS:
            self.add("text", word)
        else:
            for letter in word:
                self.add("constant" if letter in "ei" else "symbol", letter)

    def operator(self, letter: str) -> None:
        pair = self.text[self.at : self.at + 2]
        value = {"**": "^", "<=": "<=", ">=": ">=", "!=": "!=", "==": "="}.get(pair)
        self.at += 2 if value else 1
        if value is None and letter not in "+-*/^_(){}[]|,;:=<>!&'":
            raise Unreadable(f"the letter {letter!r}")
        self.add("op", value or letter)

    def command(self) -> None:
        found = _COMMAND.match(self.text, self.at)
        if found is None:
            raise Unreadable("a backslash at the end")
        self.at = found.end()
        name, mark = found.group(1), found.group(2)
        if mark is not None:
            self.mark(mark)
            return
        name = VARIANTS.get(name, name)
        if name in SILENT:
            if self.text.startswith(".", self.at) and found.group(1) in ("left", "right"):
                self.at += 1
        elif name in WORDS:
            self.words()
        elif name in DECORATION:
            self.decorated()
        elif name in CONSTANTS:
            self.add("constant", CONSTANTS[name])
        elif name in OPERATORS:
            kind = "command" if OPERATORS[name].startswith("\\") else "op"
            self.add(kind, OPERATORS[name].lstrip("\\"))
        elif name in ("lfloor", "rfloor", "lceil", "rceil"):
            self.add("op", name)
        elif name == "degree":
            self.add("command", "circ")
        elif name in COMMANDS:
            self.add("command", name)
        elif name in FUNCTIONS:
            self.add("function", name)
        elif name in GREEK:
            self.add("symbol", name)
        else:
            raise Unreadable(f"the command \\{name}")

    def mark(self, mark: str) -> None:
        if mark in ",;:! ":
            self.spaced = True
        elif mark in "{}":
            self.add("op", "\\" + mark)
        elif mark == "\\":
            self.add("op", "\\\\")
        elif mark in "|":
            self.add("op", "|")
        else:
            raise Unreadable(f"the command \\{mark}")

    def group(self) -> str:
        """The raw text of a following ``{...}``."""
        start = self.at
        while start < len(self.text) and self.text[start].isspace():
            start += 1
        end = self.text.find("}", start)
        if not self.text.startswith("{", start) or end < 0 or "{" in self.text[start + 1 : end]:
            raise Unreadable("a command without its group")
        self.at = end + 1
        return self.text[start + 1 : end]

    def words(self) -> None:
        content = " ".join(self.group().split())
        if content.lower() in ("and", "or", ","):
            self.add("op", ",")
        elif len(content) == 1 and content.isalpha() and content.isascii():
            self.add("constant" if content in "ei" else "symbol", content)
        elif content in FUNCTIONS:
            self.add("function", content)
        elif content:
            self.add("text", content)

    def decorated(self) -> None:
        """A line over digits after the point repeats them; over anything else it says nothing about the value."""
        content = self.group() if self.text[self.at :].lstrip().startswith("{") else ""
        last = self.found[-1] if self.found else Token("", "")
        if content.isdigit() and last.kind == "number" and "." in last.value:
            self.add("repeat", content)
        else:
            self.text = content + self.text[self.at :]
            self.at = 0

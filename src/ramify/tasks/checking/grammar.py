r"""The grammar of final answers, read to an exact tree.

    answer   = item (("," | ";" | "and") item)*               a list without brackets, in no order
    item     = region (("=" | "<" | "<=" | ">" | ">=" | "\in") region)*
    region   = sum (("\cup" | "\cap" | "\setminus") sum)*
    sum      = sign? product (("+" | "-" | "\pm") product)*
    product  = factor (("*" | "/" | nothing) factor)*          from the left
    factor   = primary ("!" | degree | unit)* ("^" exponent)?
    primary  = number | mixed number | symbol | constant | fraction | root | binomial | function | bracket | matrix

A tree is a tuple of a tag and its parts; numbers are fractions, so that a decimal is the rational that it writes.
Nothing is evaluated here, and no text goes anywhere but into this reader.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

from ramify.tasks.checking.lexer import Token, clean, tokens
from ramify.tasks.checking.limits import LIMITS, Limits, Refused, Unreadable

__all__ = ["Tree", "read"]

Tree: TypeAlias = tuple[Any, ...]

RELATIONS = ("=", "<", "<=", ">", ">=", "!=")
CLOSING = {"(": ")", "[": "]"}


def read(text: str, limits: Limits = LIMITS) -> Tree:
    r"""The tree of an answer.

    >>> read(r"2\sqrt{3}")
    ('mul', ('num', Fraction(2, 1)), ('root', 2, ('num', Fraction(3, 1))))
    >>> read(r"149\frac{1}{3}")
    ('num', Fraction(448, 3))
    >>> read("__import__('os').system('id')")
    Traceback (most recent call last):
    ramify.tasks.checking.limits.Unreadable: ...
    """
    limits.text(text)
    reader = _Reader(tokens(clean(text)), limits)
    tree = reader.answer()
    reader.need("end")
    return tree


class _Reader:
    def __init__(self, found: list[Token], limits: Limits) -> None:
        self.tokens, self.at, self.depth, self.limits = found, 0, 0, limits

    # ------------------------------------------------------------------------------------------------------- the tokens

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    @property
    def later(self) -> Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.now
        self.at += 1
        return token

    def sees(self, *values: str, kind: str = "op") -> bool:
        return self.now.kind == kind and (not values or self.now.value in values)

    def passes(self, value: str, kind: str = "op") -> bool:
        found = self.now.kind == kind and self.now.value == value
        self.at += found
        return found

    def need(self, kind: str, value: str | None = None) -> Token:
        if self.now.kind != kind or (value is not None and self.now.value != value):
            raise Unreadable(f"{self.now.value or 'the end'!r} where {value or kind!r} is needed")
        return self.take() if kind != "end" else self.now

    def down(self) -> None:
        self.depth += 1
        if self.depth > 3 * self.limits.nesting:
            raise Refused("nested too deep")

    # -------------------------------------------------------------------------------------------------------- the rules

    def answer(self) -> Tree:
        items = [self.item()]
        while self.sees(",", ";"):
            while self.sees(",", ";"):
                self.take()
            items.append(self.item())
        return items[0] if len(items) == 1 else ("list", *items)

    def item(self) -> Tree:
        if self.sees(kind="text") and self.later.kind in ("end",):
            return ("text", self.take().value)
        if self.sees(kind="text") and self.later.kind == "op" and self.later.value in (":", "="):
            self.at += 2  # "Answer: 5"
        parts = [self.region()]
        ops = []
        while self.sees(*RELATIONS) or self.sees("in", kind="command"):
            ops.append(self.take().value)
            parts.append(self.region())
        return parts[0] if not ops else ("relation", tuple(ops), *parts)

    def region(self) -> Tree:
        tree = self.sum()
        while self.sees("cup", "cap", "setminus", kind="command"):
            tree = (self.take().value, tree, self.sum())
        return tree

    def sum(self) -> Tree:
        self.down()
        tree = self.signed()
        while self.sees("+", "-") or self.sees("pm", "mp", kind="command"):
            op = self.take().value
            right = self.product()
            tree = {"+": ("add", tree, right), "-": ("add", tree, ("neg", right))}.get(op, ("pm", tree, right))
        self.depth -= 1
        return tree

    def signed(self) -> Tree:
        if self.sees("pm", "mp", kind="command"):
            self.take()
            return ("pm", ("num", Fraction(0)), self.product())
        if self.sees("+", "-"):
            negative = self.take().value == "-"
            self.down()
            tree = self.signed()
            self.depth -= 1
            return ("neg", tree) if negative else tree
        return self.product()

    def product(self) -> Tree:
        tree = self.factor()
        while True:
            if self.sees("*", "/"):
                op = self.take().value
                right = ("neg", self.factor()) if self.passes("-") else self.factor()
                tree = ("mul" if op == "*" else "div", tree, right)
            elif self.begins():
                tree = ("mul", tree, self.factor())
            else:
                return tree

    def begins(self) -> bool:
        """Whether a factor follows, multiplied by juxtaposition. Two numbers side by side are no product."""
        kind, value = self.now.kind, self.now.value
        if kind == "number" and self.tokens[self.at - 1] != Token("op", "!"):
            raise Unreadable("a number after a factor")
        return (
            kind in ("symbol", "constant", "function", "number")
            or (kind == "command" and value in ("frac", "sqrt", "binom"))
            or (kind == "op" and value in ("(", "{", "lfloor", "lceil"))
        )

    def factor(self) -> Tree:
        tree = self.postfix(self.primary())
        if not self.passes("^"):
            return tree
        if self.passes("circ", "command"):
            return self.postfix(("degree", tree))
        return self.postfix(("pow", tree, self.exponent()))

    def postfix(self, tree: Tree) -> Tree:
        while True:
            if self.passes("!"):
                tree = ("factorial", tree)
            elif self.sees("circ", kind="command"):
                self.take()
                tree = ("degree", tree)
            elif self.sees(kind="text"):
                self.unit()
            else:
                return tree

    def unit(self) -> None:
        """Words after a value are its unit, which the question has fixed; so are their powers."""
        self.take()
        if self.passes("^"):
            self.exponent()

    def exponent(self) -> Tree:
        if self.passes("-"):
            return ("neg", self.exponent())
        if self.sees("{"):
            return self.group()
        tree = self.argument_token()
        return ("pow", tree, self.exponent()) if self.passes("^") else tree

    def group(self) -> Tree:
        """``{...}``: LaTeX's brackets, that only group."""
        self.need("op", "{")
        self.down()
        tree = self.item()
        self.depth -= 1
        self.need("op", "}")
        return tree

    def argument(self) -> Tree:
        """What a command takes: a group, or one token; of a number one digit, as TeX has it."""
        return self.group() if self.sees("{") else self.argument_token(digit=True)

    def argument_token(self, digit: bool = False) -> Tree:
        token = self.now
        if digit and token.kind == "number" and len(token.value) > 1:
            self.tokens[self.at] = Token("number", token.value[1:])
            return ("num", _fraction(token.value[0], self.limits))
        return self.primary()

    # ------------------------------------------------------------------------------------------------------- primaries

    def primary(self) -> Tree:
        token = self.now
        match token.kind:
            case "number":
                return self.number()
            case "symbol":
                return self.symbol()
            case "constant":
                self.take()
                return ("const", token.value)
            case "function":
                return self.function()
            case "command":
                return self.command()
            case "op" if token.value in ("(", "["):
                return self.bracket()
            case "op" if token.value == "{":
                return self.group()
            case "op" if token.value == "\\{":
                return self.set()
            case "op" if token.value in ("|", "lfloor", "lceil"):
                return self.enclosed()
        raise Unreadable(f"{token.value or 'the end'!r} where a value is needed")

    def number(self) -> Tree:
        text = self.take().value
        value = _fraction(text, self.limits)
        if self.sees(kind="repeat"):
            value += _repeating(text, self.take().value)
        if self.sees("_"):
            return self.based(text)
        mixed = self.mixed(text)
        return ("num", value + mixed if mixed is not None else value)

    def based(self, digits: str) -> Tree:
        """``52_8``: digits in a base. They are kept as written, because a question that wants a base wants these."""
        self.take()
        base = self.argument()
        if base[0] != "num" or not digits.isdigit():
            raise Unreadable("a subscript of a number")
        return ("base", digits.lstrip("0") or "0", int(base[1]))

    def mixed(self, whole: str) -> Fraction | None:
        r"""The fraction of a mixed number, ``149\frac{1}{3}`` or ``1 1/2``: whole numbers throughout."""
        if not whole.isdigit():
            return None
        start = self.at
        if self.passes("frac", "command"):
            over, under = self.argument(), self.argument()
            if over[0] == under[0] == "num" and over[1].denominator == under[1].denominator == 1 and under[1] > 0:
                return Fraction(over[1], under[1])
        elif self.now.kind == "number" and self.now.spaced and self.later == Token("op", "/"):
            over_text = self.take().value
            self.take()
            if self.now.kind == "number" and over_text.isdigit() and self.now.value.isdigit() and int(self.now.value):
                return Fraction(int(over_text), int(self.take().value))
        self.at = start
        return None

    def symbol(self) -> Tree:
        name = self.take().value
        while self.passes("'"):
            name += "'"
        if self.passes("_"):
            name += "_" + self.subscript()
        return ("symbol", name)

    def subscript(self) -> str:
        if not self.passes("{"):
            token = self.take()
            if token.kind not in ("number", "symbol", "constant"):
                raise Unreadable("a subscript")
            return token.value
        parts = []
        while not self.passes("}"):
            token = self.take()
            if token.kind not in ("number", "symbol", "constant", "text"):
                raise Unreadable("a subscript")
            parts.append(token.value)
        text = "".join(parts)
        return text if len(text) == 1 else "{" + text + "}"

    def function(self) -> Tree:
        name = self.take().value
        if name == "sqrt":
            return ("root", 2, self.bracketed_argument())
        power = base = None
        for _ in range(2):
            if self.passes("^"):
                power = self.exponent()
            elif self.passes("_"):
                base = self.argument()
        if power == ("neg", ("num", Fraction(1))) and name in ("sin", "cos", "tan"):
            name, power = "arc" + name, None
        inside = self.bracketed_argument()
        tree = ("log", base, inside) if name in ("log", "ln", "lg") else ("call", name, inside)
        if name == "lg" and base is None:
            tree = ("log", ("num", Fraction(10)), inside)
        return tree if power is None else ("pow", tree, power)

    def bracketed_argument(self) -> Tree:
        """In brackets, or a run of factors up to the next operator or function: ``\\sin 2x``."""
        if self.sees("(", "["):
            return self.bracket()
        self.down()
        tree = ("neg", self.factor()) if self.passes("-") else self.factor()
        while self.now.kind in ("symbol", "constant") or (self.now.kind == "command" and self.now.value == "frac"):
            tree = ("mul", tree, self.factor())
        self.depth -= 1
        return tree

    def command(self) -> Tree:
        name = self.take().value
        match name:
            case "frac":
                return ("div", self.argument(), self.argument())
            case "binom":
                return ("binom", self.argument(), self.argument())
            case "sqrt":
                return self.root()
            case "begin":
                return self.matrix()
            case "emptyset" | "varnothing":
                return ("set",)
        raise Unreadable(f"\\{name} where a value is needed")

    def root(self) -> Tree:
        index: Tree = ("num", Fraction(2))
        if self.passes("["):
            index = self.sum()
            self.need("op", "]")
        if index[0] != "num" or index[1].denominator != 1 or not 1 <= index[1] <= 100:
            raise Unreadable("a root whose index is no small whole number")
        return ("root", int(index[1]), self.bracket() if self.sees("(") else self.argument())

    def bracket(self) -> Tree:
        """Brackets around one value group it; around several they are a tuple, or an interval where that shows."""
        opening = self.take().value
        self.down()
        items = [self.item()]
        while self.passes(",") or self.passes(";"):
            items.append(self.item())
        self.depth -= 1
        closing = self.take()
        if closing.kind != "op" or closing.value not in (")", "]"):
            raise Unreadable(f"{opening!r} is not closed")
        square = opening == "[", closing.value == "]"
        if len(items) == 1:
            if square != (False, False) and CLOSING[opening] != closing.value:
                raise Unreadable("brackets that do not match")
            return items[0] if square == (False, False) else ("tuple", items[0])
        if len(items) == 2 and square != (False, False):
            return ("interval", items[0], square[0], items[1], square[1])
        if CLOSING[opening] != closing.value:
            raise Unreadable("brackets that do not match")
        return ("tuple", *items)

    def set(self) -> Tree:
        self.take()
        if self.passes("\\}"):
            return ("set",)
        self.down()
        items = [self.item()]
        while self.passes(",") or self.passes(";"):
            items.append(self.item())
        self.depth -= 1
        self.need("op", "\\}")
        return ("set", *items)

    def enclosed(self) -> Tree:
        opening = self.take().value
        closing = {"|": "|", "lfloor": "rfloor", "lceil": "rceil"}[opening]
        self.down()
        tree = self.sum()
        self.depth -= 1
        self.need("op", closing)
        return ("call", {"|": "abs", "lfloor": "floor", "lceil": "ceil"}[opening], tree)

    def matrix(self) -> Tree:
        self.environment()
        rows: list[tuple[Tree, ...]] = []
        row = [self.sum()]
        while not self.passes("end", "command"):
            if self.passes("&"):
                row.append(self.sum())
            elif self.passes("\\\\"):
                rows.append(tuple(row))
                row = [] if self.sees("end", kind="command") else [self.sum()]
            else:
                raise Unreadable("a matrix that is not closed")
        rows += [tuple(row)] if row else []
        self.environment()
        if len({len(each) for each in rows}) != 1:
            raise Unreadable("a matrix with rows of several lengths")
        return ("matrix", *rows)

    def environment(self) -> None:
        self.need("op", "{")
        letters = []
        while not self.passes("}"):
            token = self.take()
            if token.kind not in ("symbol", "constant"):
                raise Unreadable("an environment")
            letters.append(token.value)
        if "".join(letters) not in ("pmatrix", "bmatrix", "matrix", "vmatrix", "Bmatrix", "smallmatrix"):
            raise Unreadable("an environment that is no matrix")


def _fraction(text: str, limits: Limits) -> Fraction:
    """The rational that a number writes. Its digits are counted first."""
    if len(text) > limits.digits:
        raise Refused(f"a number with more than {limits.digits} digits")
    mantissa, _, exponent = text.lower().partition("e")
    if exponent and abs(int(exponent)) > limits.digits:
        raise Refused(f"a number with more than {limits.digits} digits")
    whole, _, part = mantissa.partition(".")
    value = Fraction(int(whole + part or "0"), 10 ** len(part))
    return value * Fraction(10) ** int(exponent or 0)


def _repeating(text: str, again: str) -> Fraction:
    """What repeating digits add to a decimal: 0.1 with 6 over and over is 1/10 + 6/90."""
    places = len(text.partition(".")[2])
    return Fraction(int(again), (10 ** len(again) - 1) * 10**places)

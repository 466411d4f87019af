"""A tree as LaTeX for another checker: it is given what our reader understood, never the text that a model wrote."""

from __future__ import annotations

from fractions import Fraction

from ramify.tasks.checking.grammar import Tree
from ramify.tasks.checking.lexer import GREEK
from ramify.tasks.checking.limits import Unreadable

__all__ = ["latex"]

CONSTANTS = {"pi": r"\pi ", "oo": r"\infty ", "e": "e", "i": "i"}
RELATIONS = {"=": "=", "<": "<", ">": ">", "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "in": r"\in"}
SETS = {"cup": r"\cup", "cap": r"\cap", "setminus": r"\setminus"}


def latex(tree: Tree) -> str:
    r"""The LaTeX of a tree, every part in brackets of its own.

    >>> from ramify.tasks.checking.grammar import read
    >>> latex(read("1/2*sqrt(3)"))
    '\\left(\\frac{1}{2}\\right) \\cdot \\left(\\sqrt{3}\\right)'
    """
    match tree:
        case ("num", c):
            return _number(c)
        case ("const", name):
            return CONSTANTS[name]
        case ("symbol", name):
            return f"\\{name} " if name in GREEK else name
        case ("add", a, ("neg", b)):
            return f"{latex(a)} - {_in(b)}"
        case ("add", a, b):
            return f"{latex(a)} + {_in(b)}"
        case ("neg", a):
            return f"-{_in(a)}"
        case ("mul", a, b):
            return f"{_in(a)} \\cdot {_in(b)}"
        case ("div", a, b):
            return f"\\frac{{{latex(a)}}}{{{latex(b)}}}"
        case ("pow", a, b):
            return f"{_in(a)}^{{{latex(b)}}}"
        case ("root", n, a):
            return f"\\sqrt{{{latex(a)}}}" if n == 2 else f"\\sqrt[{n}]{{{latex(a)}}}"
        case ("factorial", a):
            return f"{_in(a)}!"
        case ("binom", a, b):
            return f"\\binom{{{latex(a)}}}{{{latex(b)}}}"
        case ("degree", a):
            return latex(a)
        case ("log", base, a):
            return f"\\ln {_in(a)}" if base is None else f"\\log_{{{latex(base)}}} {_in(a)}"
        case ("call", "abs", a):
            return f"\\left|{latex(a)}\\right|"
        case ("call", "floor" | "ceil" as name, a):
            return f"\\l{name} {latex(a)} \\r{name}"
        case ("call", name, a):
            inside = rf"\frac{{{latex(a[1])} \pi}}{{180}}" if a[0] == "degree" else latex(a)
            return f"\\{name}\\left({inside}\\right)"
    return _shape(tree)


def _shape(tree: Tree) -> str:
    match tree:
        case ("tuple", *items):
            return f"\\left({', '.join(map(latex, items))}\\right)"
        case ("set" | "list", *items):
            return f"\\left\\{{{', '.join(map(latex, items))}\\right\\}}"
        case ("interval", low, closed, high, shut):
            return f"\\left{'[' if closed else '('}{latex(low)}, {latex(high)}\\right{']' if shut else ')'}"
        case ("cup" | "cap" | "setminus" as op, a, b):
            return f"{latex(a)} {SETS[op]} {latex(b)}"
        case ("matrix", *rows):
            body = r" \\ ".join(" & ".join(map(latex, row)) for row in rows)
            return rf"\begin{{pmatrix}}{body}\end{{pmatrix}}"
        case ("relation", ops, *parts):
            text = latex(parts[0])
            for op, part in zip(ops, parts[1:], strict=True):
                text += f" {RELATIONS[op]} {latex(part)}"
            return text
    raise Unreadable(f"a {tree[0]} has no LaTeX")


def _number(c: Fraction) -> str:
    if c.denominator == 1:
        return str(c.numerator)
    return f"{'-' if c < 0 else ''}\\frac{{{abs(c.numerator)}}}{{{c.denominator}}}"


def _in(tree: Tree) -> str:
    """A part in brackets, unless it is a single token."""
    text = latex(tree)
    return text if tree[0] in ("symbol", "const") or text.isdigit() else f"\\left({text}\\right)"

"""Expressions over positive integers: a strict reader, exact values, one canonical text for equivalents.

    sum     = product (("+" | "-") product)*
    product = atom (("*" | "/") atom)*
    atom    = number | "(" sum ")"
    number  = a decimal without leading zeros, at most seven digits

Every value on the way is a positive integer: a difference must stay above zero and a quotient must be exact.
"""

from __future__ import annotations

import re
from typing import TypeAlias

__all__ = ["Tree", "apply", "canonical", "holds", "leaves", "read", "read_step", "render", "value"]

Tree: TypeAlias = "int | tuple[str, Tree, Tree]"

MAX_TEXT = 400
MAX_DEPTH = 40

_TOKEN = re.compile(r"[1-9][0-9]{0,6}(?![0-9])|[-+*/()]")
_STEP = re.compile(r"([1-9][0-9]{0,6})([-+*/])([1-9][0-9]{0,6})=([1-9][0-9]{0,6})")


def apply(op: str, a: int, b: int) -> int | None:
    """``a op b``, or None where it is no positive integer.

    >>> apply("-", 7, 3), apply("-", 3, 3), apply("/", 8, 4), apply("/", 8, 3)
    (4, None, 2, None)
    """
    if op == "+":
        return a + b
    if op == "-":
        return a - b if a > b else None
    if op == "*":
        return a * b
    return a // b if b and a % b == 0 else None


def read(text: str) -> Tree | None:
    """The tree of an expression, or None if the text is not one.

    >>> read("(25-3)*2")
    ('*', ('-', 25, 3), 2)
    >>> read("2**3"), read("(2"), read("007"), read("__import__('os')")
    (None, None, None, None)
    """
    if len(text) > MAX_TEXT:
        return None
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        tokens.append(found.group())
        at = found.end()
    tree, end = _sum([*tokens, ""], 0, 0)
    return tree if end == len(tokens) else None


def _sum(tokens: list[str], at: int, depth: int) -> tuple[Tree | None, int]:
    tree, at = _product(tokens, at, depth)
    while tree is not None and tokens[at] in ("+", "-"):
        op = tokens[at]
        right, at = _product(tokens, at + 1, depth)
        tree = None if right is None else (op, tree, right)
    return tree, at


def _product(tokens: list[str], at: int, depth: int) -> tuple[Tree | None, int]:
    tree, at = _atom(tokens, at, depth)
    while tree is not None and tokens[at] in ("*", "/"):
        op = tokens[at]
        right, at = _atom(tokens, at + 1, depth)
        tree = None if right is None else (op, tree, right)
    return tree, at


def _atom(tokens: list[str], at: int, depth: int) -> tuple[Tree | None, int]:
    token = tokens[at]
    if token.isdigit():
        return int(token), at + 1
    if token != "(" or depth >= MAX_DEPTH:
        return None, -1
    tree, at = _sum(tokens, at + 1, depth + 1)
    return (tree, at + 1) if tree is not None and tokens[at] == ")" else (None, -1)


def value(tree: Tree) -> int | None:
    """The value, or None where some part of the tree is no positive integer.

    >>> value(("-", ("*", 5, 4), 8)), value(("/", 7, 2))
    (12, None)
    """
    if isinstance(tree, int):
        return tree
    a, b = value(tree[1]), value(tree[2])
    return None if a is None or b is None else apply(tree[0], a, b)


def leaves(tree: Tree) -> list[int]:
    """The numbers of a tree, from left to right."""
    return [tree] if isinstance(tree, int) else leaves(tree[1]) + leaves(tree[2])


def render(tree: Tree) -> str:
    """The text with the fewest brackets that ``read`` reads back as this very tree.

    >>> render(("-", 9, ("+", 2, ("*", 3, 1))))
    '9-(2+3*1)'
    """
    if isinstance(tree, int):
        return str(tree)
    op, left, right = tree
    first, second = render(left), render(right)
    product = op in "*/"
    if product and not isinstance(left, int) and left[0] in "+-":
        first = f"({first})"
    # The reader is left-associative, so a right operand of the same rank keeps its brackets.
    if not isinstance(right, int) and (product or right[0] in "+-"):
        second = f"({second})"
    return f"{first}{op}{second}"


def canonical(tree: Tree) -> str:
    """One text for all trees that differ by the order and the grouping of sums and products only.

    Sums are flattened into added and subtracted terms and products into numerators and denominators, each
    sorted. The value and the numbers used stay the same, and the text is legal whenever the tree is.

    >>> canonical(("-", 9, ("-", 4, 2))) == canonical(("-", ("+", 2, 9), 4)) == "9+2-4"
    True
    >>> canonical(("*", 2, ("-", 25, 3)))
    '(25-3)*2'
    """
    if isinstance(tree, int):
        return str(tree)
    ranks = "+-" if tree[0] in "+-" else "*/"
    plain: list[str] = []
    inverse: list[str] = []
    _flatten(tree, ranks, plain, inverse)
    plain.sort(key=_order, reverse=True)
    inverse.sort(key=_order, reverse=True)
    return ranks[0].join(plain) + "".join(ranks[1] + part for part in inverse)


def _order(part: str) -> tuple[int, str]:
    return len(part), part


def _flatten(tree: Tree, ranks: str, plain: list[str], inverse: list[str]) -> None:
    if isinstance(tree, int) or tree[0] not in ranks:
        text = canonical(tree)
        plain.append(f"({text})" if ranks == "*/" and not isinstance(tree, int) else text)
        return
    op, left, right = tree
    _flatten(left, ranks, plain, inverse)
    if op == ranks[0]:
        _flatten(right, ranks, plain, inverse)
    else:
        _flatten(right, ranks, inverse, plain)


def read_step(line: str) -> tuple[int, str, int, int] | None:
    """The parts of a step ``a op b=c``, or None.

    >>> read_step("12*4=48"), read_step("12*4=")
    ((12, '*', 4, 48), None)
    """
    found = _STEP.fullmatch(line)
    if found is None:
        return None
    a, op, b, c = found.groups()
    return int(a), op, int(b), int(c)


def holds(line: str) -> bool:
    """Whether a line is a step whose equation is true.

    >>> holds("12*4=48"), holds("12*4=46")
    (True, False)
    """
    parts = read_step(line)
    return parts is not None and apply(parts[1], parts[0], parts[2]) == parts[3]

"""The strict reader and the canonical form."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.tasks.pocket import expression
from ramify.tasks.pocket.expression import Tree, apply, canonical, leaves, read, render, value

trees: st.SearchStrategy[Tree] = st.recursive(
    st.integers(1, 60), lambda inner: st.tuples(st.sampled_from("+-*/"), inner, inner), max_leaves=7
)


def exact(tree: Tree) -> Fraction | None:
    """The value by rational arithmetic, written apart from the package; None beyond division by zero."""
    if isinstance(tree, int):
        return Fraction(tree)
    a, b = exact(tree[1]), exact(tree[2])
    if a is None or b is None or (tree[0] == "/" and b == 0):
        return None
    return {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else None}[tree[0]]


@given(trees)
def test_what_is_rendered_is_read_back(tree: Tree) -> None:
    assert read(render(tree)) == tree


@given(trees)
def test_value_is_rational_arithmetic_on_legal_trees(tree: Tree) -> None:
    if value(tree) is not None:
        assert value(tree) == exact(tree)


@given(trees)
def test_canonical_keeps_value_and_numbers_and_is_a_fixed_point(tree: Tree) -> None:
    again = read(canonical(tree))
    assert again is not None
    assert sorted(leaves(again)) == sorted(leaves(tree))
    if exact(tree) is not None:
        assert exact(again) in (exact(tree), None)
    assert canonical(again) == canonical(tree)
    if value(tree) is not None:
        assert value(again) == value(tree)  # in particular it stays legal


def rearranged(tree: Tree, data: st.DataObject) -> Tree:
    """The same expression with operands exchanged and sums and products regrouped at random."""
    if isinstance(tree, int):
        return tree
    op, left, right = tree[0], rearranged(tree[1], data), rearranged(tree[2], data)
    if op in "+*" and data.draw(st.booleans()):
        left, right = right, left
    if op in "+*" and not isinstance(right, int) and right[0] == op and data.draw(st.booleans()):
        return (op, (op, left, right[1]), right[2])
    if op == "-" and not isinstance(right, int) and right[0] == "-" and data.draw(st.booleans()):
        return ("-", ("+", left, right[2]), right[1])
    return (op, left, right)


@given(trees, st.data())
def test_canonical_does_not_see_order_and_grouping(tree: Tree, data: st.DataObject) -> None:
    assert canonical(rearranged(tree, data)) == canonical(tree)


@pytest.mark.parametrize(
    ("one", "other"), [("3-2", "2-3"), ("8/4", "4/8"), ("2*(3+4)", "2*3+4"), ("5*1", "5"), ("6+6", "6*2")]
)
def test_different_expressions_stay_apart(one: str, other: str) -> None:
    first, second = read(one), read(other)
    assert first is not None
    assert second is not None
    assert canonical(first) != canonical(second)


@given(st.text(alphabet="0123456789+-*/() .^abc\n", max_size=12))
def test_the_reader_reads_its_grammar_and_nothing_else(text: str) -> None:
    tree = read(text)
    if tree is not None:
        assert set(text) <= set("0123456789+-*/()")
        assert read(render(tree)) == tree


@pytest.mark.parametrize(
    "text", ["", "1+", "+1", "01", "1 + 2", "1)", "((1)", "2**3", "1//2", "-1", "１+２", "99999999"]
)
def test_near_misses_are_refused(text: str) -> None:
    assert read(text) is None


def test_deep_and_long_texts_are_refused_without_recursion_errors() -> None:
    assert read("(" * 5000 + "1" + ")" * 5000) is None
    assert read("(" * 190 + "1" + ")" * 190) is None
    assert read("1" + "+1" * 5000) is None


@given(st.integers(1, 999), st.integers(1, 999), st.sampled_from("+-*/"))
def test_a_step_holds_exactly_for_its_result(a: int, b: int, op: str) -> None:
    c = apply(op, a, b)
    assert expression.holds(f"{a}{op}{b}={c}") == (c is not None)
    assert not expression.holds(f"{a}{op}{b}={(c or 1) + 1}")

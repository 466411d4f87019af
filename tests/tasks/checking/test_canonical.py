"""Canonical answers: one form for all ways to write an answer, exact, idempotent, and bounded."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.tasks.checking import Limits, canonical, literal
from ramify.tasks.checking.grammar import read
from ramify.tasks.checking.limits import Refused, Unreadable

QUESTIONS = Path(__file__).parents[4] / "shared" / "data" / "questions"


def form(text: str) -> str | None:
    return canonical(text).form


# Ways to write one answer. The right side of each row is the canonical form.
SAME: list[tuple[str, list[str]]] = [
    ("73", ["73", "073", "+73", "73.0", "73.", "$73$", r"\boxed{73}", r"\(73\)", " 73 ", "146/2", "x = 73", r"73\%"]),
    ("70000", ["70,000", "70{,}000", r"70\,000", r"70,\!000", r"\$70,000", "7e4", r"7\times10^4", r"7 \cdot 10^{4}"]),
    ("-7/2", ["-3.5", r"-\frac{7}{2}", r"\frac{-7}{2}", r"-3\frac{1}{2}", "-7/2", "−3.5", r"\dfrac{7}{-2}"]),
    ("1/3", [r"0.\overline{3}", r"\frac13", "1/3", r"\frac{2}{6}"]),
    ("1/6", [r"0.1\overline{6}", r"\frac{1}{6}"]),
    ("1/2*sqrt(2)", [r"\frac{1}{\sqrt2}", r"\frac{\sqrt{2}}{2}", r"2^{-1/2}", r"\sqrt{\frac12}", r"\cos 45^\circ"]),
    ("1+sqrt(2)", [r"\sqrt{3+2\sqrt{2}}", r"\frac{1}{\sqrt2-1}", "1+√2"]),
    ("-2", [r"\sqrt[3]{-8}", r"(-8)^{1/3}", "-2"]),
    ("3*ln(2)", [r"\ln 8", r"\log 8", r"3\ln2", r"-\ln\frac18"]),
    ("3", [r"\log_2 8", r"\log_{10} 1000", r"\lg 1000", r"\frac{\ln 8}{\ln 2}"]),
    ("-1", [r"e^{i\pi}", "i^2", r"\cos\pi", "i^{10}"]),
    ("2*x+2*y", ["2(x+y)", "2y+2x", r"2\cdot(y+x)"]),
    ("x^2-1", ["(x-1)(x+1)", "x^2-1", r"\frac{x^3-x}{x}"]),
    ("2*2^n", ["2^{n+1}", r"2\cdot2^n", r"\frac{4\cdot2^{n}}{2}"]),
    (r"\{-1, 1\}", [r"\pm1", "1,-1", r"\{-1, 1\}", r"\{1,-1,1\}", r"-1 \text{ and } 1", "-1 or 1"]),
    ("(1, 2)", ["(1,2)", r"\left(1, 2\right)", "( 1 , 2 )", "1<x<2"]),
    ("[1, oo)", [r"[1,\infty)", r"x\ge1", r"x \in [1, \infty)", r"1 \leq x", "x>=1"]),
    (r"(-oo, 0) \cup (0, oo)", [r"(-\infty,\infty)\setminus\{0\}", r"(0,\infty)\cup(-\infty,0)"]),
    ("C", ["C", "(C)", r"\text{C}", r"\text{(C)}", "C."]),
    ("no solution", ["No solution", r"\text{no solution}", "no  solution."]),
    ("x-y=0", ["2x-2y=0", "2y = 2x", "y-x=0"]),
    ("52_8", ["52_8", "52_{8}"]),
    ("10", [r"\binom{5}{2}", r"\frac{5!}{3!2!}", "10^1"]),
    ("5", [r"|-5|", r"\lfloor 5.7 \rfloor", r"\lceil 4.1 \rceil"]),
]


@pytest.mark.parametrize(("expected", "written"), SAME, ids=[expected for expected, _ in SAME])
def test_all_ways_to_write_an_answer_have_one_form(expected: str, written: list[str]) -> None:
    assert {text: form(text) for text in written} == dict.fromkeys(written, expected)
    assert form(expected) == expected


# Conventions where either would do: each is declared in docs/tasks.md.
@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("1,2,3", "3,2,1", True),  # a list without brackets has no order
        (r"(-\infty, 3)", "x<3", True),  # an inequality in one symbol is its interval
        (r"\frac{x^2-1}{x-1}", "x+1", True),  # expressions are formal: a hole is no difference
        (r"\overline{AB}", "AB", True),  # decoration says nothing about a value
        (r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)", False),  # a shape is part of the answer
        ("2A_{16}", "42", False),  # so is a base
        (r"4\pi", "12.566370614", False),  # a decimal is the rational that it writes
        (r"50\%", "0.5", False),  # percent is a unit, and the question has fixed it
        ("12 cm", "12", True),
        ("{5}", "5", True),  # braces without backslashes only group
        (r"\{5\}", "5", False),
        ("(1,234)", "1234", False),  # inside brackets a comma separates
        ("(1,2)", r"\{1,2\}", False),
        ("[1,2]", "(1,2)", False),
        ("a", "A", False),
        ("Even", "even", True),
    ],
)
def test_conventions(a: str, b: str, same: bool) -> None:
    assert (form(a) == form(b)) is same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2 3",
        "1..2",
        ")",
        "(1",
        "x_",
        r"\frac{1}",
        r"\unknown{3}",
        "1/0",
        r"\infty-\infty",
        "2^",
        r"\sqrt",
        "5 = ",
        "☃",
    ],
)
def test_what_cannot_be_read_keeps_its_text(text: str) -> None:
    assert canonical(text).shape == "unread"
    assert form(text) == text.strip()


HOSTILE = [
    "9^{9^{9^9}}",
    "(10^{9})!",
    "9" * 2000,
    "(" * 3000,
    "{" * 300 + "1" + "}" * 300,
    "-" * 990 + "1",
    "(x+y+z+w)^{40}",
    "(x+1)^{10^6}",
    "1e99999",
    r"\binom{10^8}{5\cdot10^7}",
    "((2^{999})^{999})^{999}",
    r"\sqrt{" * 41 + "2" + "}" * 41,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_hostile_answers_are_refused(text: str) -> None:
    found = canonical(text)
    assert (found.form, found.shape) == (None, "refused") or found.shape == "unread"


def test_limits_are_fields() -> None:
    assert canonical("12345", Limits(digits=4)).shape == "refused"
    assert canonical("2^{99}", Limits(digits=29)).shape == "refused"
    assert canonical("2^{99}", Limits(digits=30)).form == str(2**99)
    with pytest.raises(ValueError, match=r"Limits\.digits = 0"):
        Limits(digits=0)


def test_a_form_is_its_own_form_on_real_answers() -> None:
    if not QUESTIONS.exists():
        pytest.skip("no shared data")
    unread = []
    for name in ("math500", "hmmt_feb_2025", "brumo_2025", "aime_2024", "aime_2025", "aime_2026"):
        with gzip.open(QUESTIONS / f"{name}.jsonl.gz", "rt") as lines:
            for line in lines:
                text = json.loads(line)["answer"]
                found = canonical(text)
                assert found.form is not None, text
                assert canonical(found.form).form == found.form, text
                unread += [text] if found.shape == "unread" else []
    assert unread == []  # every one of the 650 references is read


def test_literal_strings_stay_apart() -> None:
    assert len({literal(text) for text in ("0.5", "1/2", r"\frac12", " 0.5 ")}) == 3


# ----------------------------------------------------------------------------------------------------------- properties

NUMBERS = st.builds(Fraction, st.integers(-30, 30), st.integers(1, 12))


@st.composite
def rational(draw: st.DrawFn, depth: int = 3) -> tuple[str, Fraction]:
    """LaTeX of a rational expression, and its value by Python's own fractions."""
    if depth == 0 or draw(st.booleans()):
        value = draw(NUMBERS)
        styles = [f"\\frac{{{value.numerator}}}{{{value.denominator}}}", f"({value})"]
        styles += [f"({value.numerator})"] if value.denominator == 1 else []
        return draw(st.sampled_from(styles)), value
    (a, x), (b, y) = draw(rational(depth - 1)), draw(rational(depth - 1))
    op = draw(st.sampled_from("+-*/^"))
    if op == "/" and y:
        return draw(st.sampled_from([f"\\frac{{{a}}}{{{b}}}", f"\\left({a}\\right)/({b})"])), x / y
    if op == "^":
        n = draw(st.integers(0, 3))
        return f"\\left({a}\\right)^{{{n}}}", x**n
    if op == "*":
        return f"({a})\\cdot({b})", x * y
    return (f"({a})-({b})", x - y) if op == "-" else (f"({a})+({b})", x + y)


@given(rational())
@settings(max_examples=200, deadline=None)
def test_rational_expressions_are_their_fraction(pair: tuple[str, Fraction]) -> None:
    text, value = pair
    assert form(text) == str(value)


@given(st.tuples(NUMBERS, NUMBERS, st.integers(2, 60)), st.tuples(NUMBERS, NUMBERS, st.integers(2, 60)))
@settings(max_examples=200, deadline=None)
def test_quadratic_numbers_are_equal_where_their_values_are(
    left: tuple[Fraction, Fraction, int], right: tuple[Fraction, Fraction, int]
) -> None:
    def reduced(a: Fraction, b: Fraction, n: int) -> tuple[Fraction, Fraction, int]:
        square = max(d for d in range(1, n + 1) if n % (d * d) == 0)  # the oracle: the largest square factor by search
        n, b = n // (square * square), b * square
        return (a + b, Fraction(0), 1) if n == 1 else (a, b, n if b else 1)

    def written(a: Fraction, b: Fraction, n: int) -> str:
        return f"({a}) + ({b})\\sqrt{{{n}}}"

    assert (form(written(*left)) == form(written(*right))) is (reduced(*left) == reduced(*right))


@given(NUMBERS, NUMBERS, st.integers(2, 30))
@settings(max_examples=100, deadline=None)
def test_denominators_are_made_rational(a: Fraction, b: Fraction, n: int) -> None:
    if a * a == b * b * n or not b:
        return
    one = form(f"\\frac{{1}}{{({a})+({b})\\sqrt{{{n}}}}}")
    other = form(f"\\frac{{({a})-({b})\\sqrt{{{n}}}}}{{{a * a - b * b * n}}}")
    assert one == other


@given(st.text(alphabet="0123456789+-*/^()[]{}\\,.=<>xyabe piqrtfcsnlo_!|&$ ", max_size=40))
@settings(max_examples=400, deadline=None)
def test_any_text_has_a_form_that_is_its_own_form(text: str) -> None:
    found = canonical(text)
    if found.form is not None and found.shape != "unread":
        again = canonical(found.form)
        assert again.form == found.form, (text, found, again)


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(Refused, Unreadable):
        read(text)
    canonical(text)


def test_sure_forms_of_real_numbers_differ_in_value() -> None:
    """Different sure forms are different numbers: their floats agree with that on a grid."""
    forms = {f"({a})+({b})\\sqrt{{2}}+({c})\\sqrt{{3}}": a + b * math.sqrt(2) + c * math.sqrt(3)
             for a in range(-2, 3) for b in range(-2, 3) for c in range(-2, 3)}  # fmt: skip
    assert all(canonical(text).sure for text in forms)
    assert len({form(text) for text in forms}) == len({round(value, 9) for value in forms.values()}) == 125

"""Forms have the values of the texts that they come from, and different sure forms have different values.

The oracle is mpmath's arithmetic on the tree as it was written, which knows nothing of normal forms.
"""

from __future__ import annotations

import random

import pytest

from ramify.tasks.checking import canonical
from ramify.tasks.checking.grammar import read
from ramify.tasks.checking.numeric import close, evaluate, point

mp = pytest.importorskip("mpmath")

LEAVES = [
    "1",
    "2",
    "3",
    r"\sqrt2",
    r"\sqrt3",
    r"\sqrt{12}",
    "i",
    "x",
    "y",
    r"\frac12",
    r"\pi",
    r"\sqrt[3]{2}",
    "0.25",
    "e",
]
FUNCTIONS = [r"\sin({})", r"\cos({})", r"e^{{{}}}", r"6^{{{}}}", r"\ln(1+({})^2)"]


def expression(rng: random.Random, depth: int, functions: bool) -> str:
    if depth == 0:
        return rng.choice(LEAVES)
    a, b = expression(rng, depth - 1, functions), expression(rng, rng.randint(0, depth - 1), functions)
    forms = [f"({a})+({b})", f"({a})-({b})", f"({a})({b})", f"\\frac{{{a}}}{{{b}}}", f"({a})^{{{rng.randint(-3, 3)}}}"]
    forms += [
        rng.choice(FUNCTIONS).format(a),
        rf"\cos\frac{{{rng.randint(-9, 30)}\pi}}{{{rng.randint(1, 12)}}}",
    ] * functions
    return rng.choice(forms)


@pytest.mark.parametrize("seed", range(4))
def test_a_form_has_the_value_of_its_text(seed: int) -> None:
    rng, seen = random.Random(seed), 0
    where = {name: point(name, seed) for name in "xy"}
    for _ in range(250):
        text = expression(rng, rng.randint(1, 3), functions=True)
        found = canonical(text)
        if found.form is None or found.shape == "unread":
            continue
        assert canonical(found.form).form == found.form, text
        value, again = evaluate(read(text), where), evaluate(read(found.form), where)
        if value is not None and again is not None:
            seen += 1
            assert close(value, again) or abs(value - again) < mp.mpf(10) ** -40, (text, found.form)
    assert seen > 150


@pytest.mark.parametrize("seed", range(3))
def test_different_sure_forms_have_different_values(seed: int) -> None:
    rng = random.Random(seed)
    known: dict[tuple[str, ...], str | None] = {}
    for _ in range(500):
        text = expression(rng, rng.randint(1, 2), functions=False)
        found, value = canonical(text), None
        if found.form is not None and found.shape != "unread" and found.sure:
            value = evaluate(read(text), {name: point(name, 0) for name in "xy"})
        if value is not None:
            digits = tuple("0" if abs(part) < 1e-40 else mp.nstr(part, 30) for part in (mp.re(value), mp.im(value)))
            assert known.setdefault(digits, found.form) == found.form, text
    assert len(known) > 50


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (r"(\sin(e^{x}))^{-1}", "sin(e^x)^(-1)"),  # a caret inside brackets is not the power's own
        (r"(\sin(\sqrt[3]{3}))^{2}", "sin(3^(1/3))^2"),
        (r"((\pi+1)^{-3})^{4}", "(1+pi)^(-12)"),
        (r"\frac{1}{1-x}", "-(x-1)^(-1)"),
        (r"\frac{-1}{x-1}", "-(x-1)^(-1)"),
    ],
)
def test_powers_of_what_stays_whole(text: str, form: str) -> None:
    assert canonical(text).form == form
    assert canonical(form).form == form

"""Text and JSON forms: round trips over every method, and everything the reader must refuse."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.decode import Chain, LogitBias, Mask, Mixture, TokenMeasure, TopK, TopP
from ramify.describe import describe, parse, restore, text
from ramify.errors import InvalidValue, ParseError
from tests import methods
from tests.methods import METHODS, alternate


@pytest.mark.parametrize("method", METHODS, ids=lambda m: text(m)[:60])
def test_every_method_survives_text_json_hash_and_pickle(method: object) -> None:
    if inspect.isfunction(method):  # a function's text is a string; what makes it a method is the slot it stands in
        method = Chain(method)
    assert parse(repr(method), modules=[methods]) == method
    assert restore(json.loads(json.dumps(describe(method))), modules=[methods]) == method
    assert pickle.loads(pickle.dumps(method)) == method
    assert len({method, pickle.loads(pickle.dumps(method))}) == 1


def test_repr_is_the_text_form_and_names_every_field() -> None:
    assert repr(TopK(5)) == "TopK(k=5, ties='id')"
    assert repr(Chain(TopK(5), methods.sharpen)) == "Chain(TopK(k=5, ties='id'), 'tests.methods:sharpen')"


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(allow_nan=False, allow_infinity=False)), max_size=4))
def test_numbers_round_trip_exactly(bias: list[tuple[int, float]]) -> None:
    assert parse(repr(LogitBias(tuple(bias)))) == LogitBias(tuple(bias))


def test_infinity_and_signs_are_read() -> None:
    assert parse("(1, -2.5, inf, -inf, None, True)") == (1, -2.5, math.inf, -math.inf, None, True)
    assert restore(json.loads(json.dumps(describe((math.inf, -math.inf))))) == (math.inf, -math.inf)


def test_qualified_names_and_lists_are_read() -> None:
    assert parse("ramify.decode.TopK(1)", modules=[methods]) == TopK(1)
    assert parse("decode.Mixture([decode.TopK(1), TopP(0.5)], [0.5, 0.5])") == Mixture((TopK(1), TopP(0.5)), (0.5, 0.5))


def test_a_function_is_found_only_in_a_module_handed_in() -> None:
    source = "Mask(allowed='tests.methods:alternate', fallback='mode')"
    assert parse(source, modules=[methods]) == Mask(alternate)
    with pytest.raises(ParseError, match=r"hand its module in"):
        parse(source)
    with pytest.raises(ParseError, match=r"no function of tests\.methods; did you mean alternate\?"):
        parse("Mask('tests.methods:alternat')", modules=[methods])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("TopPP(0.9)", "did you mean TopP"),
        ("TopP(pp=0.9)", r"TopP has no field pp; did you mean p\?"),
        ("TopP()", "missing a required argument: 'p'"),
        ("TopP(0.9, 'reach', 1)", "too many positional arguments"),
        ("TopP('high')", "TopP"),
        ("__import__('os').system('true')", "not a name of ramify"),
        ("os.system('true')", "not a name of ramify"),
        ("decode.draw.dataclasses.replace(TopP(0.9))", "not a name of ramify"),
        ("describe('x')", "not a name of ramify"),
        ("(lambda: 1)()", "not a name of ramify"),
        ("[x for x in (1, 2)]", "nothing else is read"),
        ("1 + 1", "nothing else is read"),
        ("2 ** 9999999", "nothing else is read"),
        ("'a' 'b' if True else 1", "nothing else is read"),
        ("TopP.__class__", "nothing else is read"),
        ("f'{1}'", "nothing else is read"),
        ("b'bytes'", "nothing else is read"),
        ("TopP(**{'p': 0.9})", "write the fields out"),
        ("TopK(k=1, k=2)", "TopK is given k twice"),
        ("1" + "+1" * 900, "nothing else is read|is not an expression"),
        ("a" + ".b" * 400 + "(1)", "is not a name"),
        ("Tabular(('a',), (((),),), 0)", "Tabular"),
        ("TopP(0x" + "f" * 5000 + ")", "TopP"),
        ("Leaf(1, 2, 3, 4, 5, 6, 7, 8, 9)", "is not a name of ramify"),
        ("os.path.TopK(1)", "is not a name of ramify"),
        ("Mask('ramify.decode.history:_shift')", "is no function of"),
        ("Chain(*(1, 2))", "nothing else is read"),
        ("-'x'", "only numbers take"),
        ("-True", "only numbers take"),
        ("TopP(0.9", "is not an expression"),
        ("", "is not an expression"),
        ("(" * 300 + ")" * 300, "is not an expression"),
        ("Chain(" * 80 + ")" * 80, "nested more than"),
        ("1" * 200_000, "at most"),
        ("Mask('os:system')", "hand its module in"),
        ("Mask('ramify.decode.draw:np')", "is no function of"),
        ("Mask('ramify.nowhere:f')", "there is no module"),
        ("Mask('ramify.describe:FunctionType')", "is no function of"),
    ],
)
def test_the_reader_refuses_with_a_reason(source: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(source)


@given(st.text(max_size=60))
def test_the_reader_never_fails_in_another_way(source: str) -> None:
    with contextlib.suppress(ParseError, InvalidValue):
        parse(source)


@pytest.mark.parametrize(
    "form",
    [
        {"method": "Chain", "arguments": 5},
        {"method": 3},
        {"method": "TopPP"},
        {"method": "TopP", "q": 1},
        {"x": 1},
        {"float": "1"},
        {"function": "os:system"},
    ],
)
def test_bad_json_is_refused(form: object) -> None:
    with pytest.raises(ParseError):
        restore(form)


def test_values_without_a_name_are_refused_when_described() -> None:
    def local(measure: TokenMeasure) -> TokenMeasure:
        return measure

    for nameless in (len, lambda measure: measure, local):
        with pytest.raises(InvalidValue, match=r"has no (text|JSON) form"):
            text(Chain(nameless))  # type: ignore[arg-type]
        with pytest.raises(InvalidValue, match=r"has no (text|JSON) form"):
            describe(Chain(nameless))  # type: ignore[arg-type]
        assert repr(Chain(nameless)).startswith("Chain(")  # type: ignore[arg-type]

"""Values as people write them, on a command line or in a study file. Nothing is evaluated."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

from ramify import decode, evidence
from ramify.describe import parse
from ramify.errors import InvalidValue, ParseError

__all__ = ["presets", "written"]

RETURNS = ("TokenEvidence", "Transformed", "Chain", "Operator")  # what a preset gives: a value like any other


def written(text: str) -> Any:
    """The value of a text form, or of a preset; brackets that hold nothing may be left out.

    >>> written("Plurality")
    Plurality(fallback=None)
    >>> written("mean_logprob") == evidence.mean_logprob(), written("deepconf_lowest(5, window=16)").reduction.window
    (True, 16)
    """
    name = text.partition("(")[0].strip()
    if name in presets():
        return _preset(name, text)
    return parse(f"{text.strip()}()" if text.strip().isidentifier() else text)


def presets(modules: Iterable[ModuleType] = (decode, evidence)) -> dict[str, FunctionType]:
    """The functions of the package that give a method from a few numbers."""
    found = {}
    for module in modules:
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, FunctionType) and inspect.signature(function).return_annotation in RETURNS:
                found[name] = function
    return found


def _preset(name: str, text: str) -> Any:
    """A preset called with literals."""
    try:
        tree = ast.parse(text if "(" in text else f"{text}()", mode="eval").body
        assert isinstance(tree, ast.Call)
        assert isinstance(tree.func, ast.Name)
        given = [ast.literal_eval(item) for item in tree.args]
        named = {str(item.arg): ast.literal_eval(item.value) for item in tree.keywords}
        return presets()[name](*given, **named)
    except InvalidValue:
        raise
    except (AssertionError, SyntaxError, ValueError, TypeError) as error:
        raise ParseError(f"{name} is called with numbers and strings: {error}") from None

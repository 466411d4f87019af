"""Values as people write them, on a command line or in a study file. Nothing is evaluated."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Collection, Iterable
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from ramify import decode, evidence
from ramify.describe import methods, parse
from ramify.errors import InvalidValue, ParseError
from ramify.kinds import kind_of

__all__ = ["KIND_OF", "presets", "written"]

# what a preset gives, a value like any other -> what that is
KIND_OF = {"TokenEvidence": "evidence", "Transformed": "evidence", "Chain": "decoder", "Operator": "decoder"}


def written(text: str, kinds: Collection[str] = ()) -> Any:
    """The value of a text form, or of a preset; brackets that hold nothing may be left out.

    A name that nothing has is answered with the nearest one, of ``kinds`` if these are all that would do.

    >>> written("Plurality")
    Plurality(fallback=None)
    >>> written("mean_logprob") == evidence.mean_logprob(), written("deepconf_lowest(5, window=16)").reduction.window
    (True, 16)
    """
    name = text.partition("(")[0].strip()
    if name in presets():
        return _preset(name, text)
    try:
        return parse(f"{text.strip()}()" if text.strip().isidentifier() else text)
    except ParseError:
        if not name.isidentifier() or name in _names(()):
            raise
    match = difflib.get_close_matches(name, _names(tuple(kinds)), n=1, cutoff=0.5)
    raise ParseError(f"{name} is not a name of ramify{f'; did you mean {match[0]}?' if match else ''}")


@cache
def _names(kinds: tuple[str, ...]) -> list[str]:
    """What a value may be called: methods and presets, of some kinds or of all."""
    found = {cls.__name__: kind_of(cls) for cls in methods()}
    found |= {name: KIND_OF[inspect.signature(each).return_annotation] for name, each in presets().items()}
    return [name for name, kind in found.items() if not kinds or kind in kinds]


def presets(modules: Iterable[ModuleType] = (decode, evidence)) -> dict[str, FunctionType]:
    """The functions of the package that give a method from a few numbers."""
    found = {}
    for module in modules:
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, FunctionType) and inspect.signature(function).return_annotation in KIND_OF:
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

"""The text and JSON forms of methods, and the strict reader that rebuilds them.

A method is a frozen value whose ``repr`` is an expression: ``Chain(TopK(k=50, ties='id'), TopP(p=0.9, ...))``.
``parse`` reads that expression back without evaluating anything: it knows constructor calls, literals and tuples,
and resolves names only inside this package and in modules the caller hands in.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import importlib
import inspect
import math
import pkgutil
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from numbers import Integral, Real
from types import FunctionType, ModuleType
from typing import Any, TypeVar, dataclass_transform

from ramify.errors import InvalidValue, ParseError

__all__ = ["describe", "method", "methods", "parse", "restore", "text"]

T = TypeVar("T")

MAX_TEXT = 100_000  # characters; a protocol is a few hundred
MAX_DEPTH = 50
FORMS = "use numbers, strings, tuples, other methods, or functions at the top of a module"


@dataclass_transform(frozen_default=True)
def method(cls: type[T]) -> type[T]:
    """A frozen, slotted dataclass whose ``repr`` is its text form: how every method of the package is declared."""
    cls.__repr__ = _shown  # type: ignore[method-assign]
    return dataclasses.dataclass(frozen=True, slots=True, repr=False, init="__init__" not in vars(cls))(cls)


# ------------------------------------------------------------------------------------------------- value -> text, JSON


def text(value: object) -> str:
    """The expression that rebuilds ``value``. Every field is written out, so a later default cannot change it.

    >>> from ramify.decode import Chain, MinP, Temperature
    >>> text(Chain(Temperature(0.7), MinP(0.05)))
    'Chain(Temperature(t=0.7), MinP(c=0.05))'
    """
    return _text(value, strict=True)


def _shown(value: object) -> str:
    """The ``repr`` of a method: its text form, or the nearest thing for a value that has none."""
    return _text(value, strict=False)


def _text(value: object, strict: bool) -> str:
    if value is None or isinstance(value, (bool, str)):
        return repr(value)
    if isinstance(value, Integral):
        return repr(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, tuple):
        return f"({', '.join(_text(item, strict) for item in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, FunctionType) and (not strict or _has_name(value)):
        return repr(f"{value.__module__}:{value.__qualname__}")
    if _is_method(type(value)):
        arguments = [(name, _text(item, strict)) for name, item in _arguments(value)]
        return f"{type(value).__name__}({', '.join(x if name is None else f'{name}={x}' for name, x in arguments)})"
    if not strict:
        return repr(value)
    raise InvalidValue(f"{value!r} has no text form: {FORMS}")


def describe(value: object) -> Any:
    """The JSON form: plain dicts, lists, numbers and strings.

    >>> from ramify.decode import TopP
    >>> describe(TopP(0.9))
    {'method': 'TopP', 'p': 0.9, 'boundary': 'reach'}
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, tuple):
        return [describe(item) for item in value]
    if isinstance(value, FunctionType) and _has_name(value):
        return {"function": f"{value.__module__}:{value.__qualname__}"}
    if _is_method(type(value)):
        form: dict[str, Any] = {"method": type(value).__name__}
        for name, item in _arguments(value):
            if name is None:
                form.setdefault("arguments", []).append(describe(item))
            else:
                form[name] = describe(item)
        return form
    raise InvalidValue(f"{value!r} has no JSON form: {FORMS}")


def _arguments(value: object) -> Iterator[tuple[str | None, object]]:
    """The constructor arguments of a value, in order; those of a ``*variadic`` constructor have no name."""
    cls: Any = type(value)
    for parameter in _parameters(cls):
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((None, item) for item in getattr(value, parameter.name))
        else:
            yield parameter.name, getattr(value, parameter.name)


@cache
def _parameters(cls: type) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(cls).parameters.values())


def _has_name(function: FunctionType) -> bool:
    """Whether a function can be found again by its module and name: lambdas and local functions cannot."""
    return "." not in function.__qualname__ and "<" not in function.__qualname__


def _is_method(cls: Any) -> bool:
    """Whether ``method`` made this class: only such values have a text form, and only they are built from one."""
    return cls.__repr__ is _shown


# ------------------------------------------------------------------------------------------------- text, JSON -> value


def parse(source: str, modules: Iterable[ModuleType] = ()) -> Any:
    """The value that a text form describes. Nothing is evaluated.

    Names are looked up in the public names of this package and of ``modules``, and nowhere else; a plain function is
    the string ``'module:name'``, in a module of the package or one handed in.

    >>> parse("TopK(k=50)")
    TopK(k=50, ties='id')
    >>> parse("TopPP(p=0.9)")
    Traceback (most recent call last):
    ramify.errors.ParseError: TopPP is not a name of ramify; did you mean TopP?
    """
    if len(source) > MAX_TEXT:
        raise ParseError(f"the text has {len(source)} characters: a method's text form has at most {MAX_TEXT}")
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ParseError(f"{_clip(source)} is not an expression: {error}") from None
    return _Reader(modules, source.strip()).expression(tree.body, 0)


def restore(form: Any, modules: Iterable[ModuleType] = ()) -> Any:
    """The value that a JSON form describes: ``restore(describe(value)) == value``."""
    return _Reader(modules).json(form, 0)


@dataclasses.dataclass(frozen=True)
class _Reader:
    modules: Iterable[ModuleType]
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "modules", tuple(self.modules))

    def expression(self, node: ast.expr, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ParseError(f"the expression is nested more than {MAX_DEPTH} deep")
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as constant):
                return constant
            case ast.Name(id="inf" | "nan" as name):
                return float(name)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                number = self.expression(operand, depth + 1)
                if isinstance(number, bool) or not isinstance(number, (int, float)):
                    raise ParseError(f"a sign before {self.words(operand)}: only numbers take one")
                return -number if isinstance(sign, ast.USub) else number
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self.expression(item, depth + 1) for item in items)
            case ast.Call(func=function, args=positional, keywords=keywords):
                cls = self.constructor(self.words(function))
                named: dict[str, Any] = {}
                for keyword in keywords:
                    if keyword.arg is None:
                        raise ParseError(f"{cls.__name__}(**...): write the fields out")
                    if keyword.arg in named:
                        raise ParseError(f"{cls.__name__} is given {keyword.arg} twice")
                    named[keyword.arg] = self.expression(keyword.value, depth + 1)
                return self.build(cls, [self.expression(item, depth + 1) for item in positional], named)
        raise ParseError(
            f"{self.words(node)} is not a constructor call, a literal or a tuple of them; nothing else is read"
        )

    def words(self, node: ast.expr) -> str:
        """The node as it was written. (Unparsing would recurse, and hostile text is deep.)"""
        return _clip(ast.get_source_segment(self.source, node) or "the expression")

    def json(self, form: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ParseError(f"the JSON form is nested more than {MAX_DEPTH} deep")
        match form:
            case bool() | int() | float() | str() | None:
                return form
            case [*items]:
                return tuple(self.json(item, depth + 1) for item in items)
            case {"float": "inf" | "-inf" | "nan" as name, **others} if not others:
                return float(name)
            case {"function": str(name), **others} if not others:
                return self.function(name)
            case {"method": str(name), **others}:
                listed: Any = others.pop("arguments", [])
                if not isinstance(listed, list):
                    raise ParseError(f"{_clip(name)}: arguments = {_clip(repr(listed))} is not a list")
                positional = [self.json(item, depth + 1) for item in listed]
                named = {str(field): self.json(item, depth + 1) for field, item in others.items()}
                return self.build(self.constructor(name), positional, named)
        raise ParseError(f"{_clip(repr(form))} is not the JSON form of a value")

    def build(self, cls: type, positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Call the constructor, with names checked first and function fields resolved."""
        known = [parameter.name for parameter in _parameters(cls) if parameter.kind is not parameter.VAR_POSITIONAL]
        for name in named:
            if name not in known:
                raise ParseError(f"{cls.__name__} has no field {name}{_closest(name, known)}; it has: {known}")
        try:
            bound = inspect.signature(cls).bind(*positional, **named)
        except TypeError as error:
            raise ParseError(f"{cls.__name__}: {error}") from None
        slots = _function_slots(cls)
        for name, given in bound.arguments.items():
            if name in slots:
                many = isinstance(given, tuple)
                resolved = [self.function(x) if isinstance(x, str) else x for x in (given if many else (given,))]
                bound.arguments[name] = tuple(resolved) if many else resolved[0]
        try:
            return cls(*bound.args, **bound.kwargs)
        except InvalidValue:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ParseError(f"{cls.__name__}: {_clip(str(error))}") from None

    def constructor(self, name: str) -> type:
        """The public class of that name. Dots walk from the package or from a module handed in: ``decode.Fallback``."""
        *path, last = name.removeprefix("ramify.").split(".")
        inside, handed = ".".join(["ramify", *path]), ".".join(path)
        known: dict[str, type] = {}
        for module in _groups():
            known |= _constructors(module) if not path or module.__name__ == inside else {}
        for module in self.modules:  # one that was handed in has the last word
            known |= _constructors(module) if not path or module.__name__ in (inside, handed) else {}
        if last in known:
            return known[last]
        raise ParseError(f"{_clip(name)} is not a name of ramify{_closest(last, known)}")

    def function(self, name: str) -> Any:
        """The module-level function ``module:name``, from the package or a module handed in."""
        module_name, _, attribute = name.partition(":")
        inside = module_name.split(".")[0] == "ramify"
        allowed = {module.__name__: module for module in self.modules}
        if not inside and module_name not in allowed:
            raise ParseError(f"{_clip(name)}: hand its module in: modules=[{module_name or '...'}]")
        try:
            module = importlib.import_module(module_name) if inside else allowed[module_name]
        except ImportError:
            raise ParseError(f"{_clip(name)}: there is no module {module_name}") from None
        found = getattr(module, attribute, None)
        functions = [n for n in _public(module) if isinstance(getattr(module, n), FunctionType)]
        if attribute not in functions or not isinstance(found, FunctionType) or found.__module__ != module_name:
            raise ParseError(f"{_clip(name)} is no function of {module_name}{_closest(attribute, functions)}")
        return found


def methods() -> tuple[type, ...]:
    """Every public method of the package once, in the order of its groups and of their ``__all__``."""
    found = dict.fromkeys(cls for module in _groups() for cls in _constructors(module).values())
    return tuple(cls for cls in found if cls.__module__.startswith("ramify."))


@cache
def _groups() -> tuple[ModuleType, ...]:
    """The importable top-level modules of the package; a group whose optional dependency is absent is passed over."""
    import ramify

    found = []
    for entry in pkgutil.iter_modules(ramify.__path__, "ramify."):
        if entry.name.rpartition(".")[2].startswith("_"):
            continue
        try:
            found.append(importlib.import_module(entry.name))
        except ImportError:
            continue
    return tuple(found)


def _public(module: ModuleType) -> Sequence[str]:
    names: Sequence[str] = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    return names


def _constructors(module: ModuleType) -> dict[str, type]:
    """The public methods of a module, by name."""
    found = {name: getattr(module, name) for name in _public(module)}
    return {name: cls for name, cls in found.items() if isinstance(cls, type) and _is_method(cls)}


@cache
def _function_slots(cls: Any) -> frozenset[str]:
    """The constructor parameters that are annotated as callables, alone or in a tuple."""
    hints = typing.get_type_hints(cls.__init__)
    return frozenset(name for name, hint in hints.items() if _mentions_callable(hint))


def _mentions_callable(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    return origin is Callable or hint is Callable or any(map(_mentions_callable, typing.get_args(hint)))


def _closest(name: str, names: Iterable[str]) -> str:
    match = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"; did you mean {match[0]}?" if match else ""


def _clip(source: str) -> str:
    return source if len(source) <= 80 else source[:77] + "..."

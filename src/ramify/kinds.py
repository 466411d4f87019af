"""What a value is, and which option or field it fits: told from its verbs and the types it declares.

No list of methods has to be kept, and a value of the right package in the wrong place is refused before any work.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ramify.describe import text
from ramify.errors import InvalidValue

__all__ = ["ALSO", "EXAMPLES", "SLOTS", "article", "brief", "kind_of", "misplaced", "need_kind"]

# (types of what a call has to be given, type of its result) as they are written -> what such a value is
CALLS = {
    ("TokenMeasure", "TokenMeasure"): "decoder",
    ("Candidates", "Choice"): "rule",
    ("Bank", "Signal"): "evidence",
    ("Sequence[Prefix]", "Signal"): "evaluator",
    ("Sequence[Prefix]", "Array"): "check",
    ("Candidates", "Verdict"): "stop",
    ("TokenHistory", "Verdict"): "token stop",
    ("Work", "int"): "unit",
    ("Work", "float"): "unit",
    ("Profiled", "Array"): "metric",
    ("Iterable[Request]", "Iterator[Leaf]"): "model",
    ("Question", "Sequence[str | None]", "Array"): "answer verifier",
    ("str", "str", "float"): "similarity",
    ("Hashable", "Hashable", "float"): "similarity",
    ("Any", "Any", "float"): "similarity",
    ("Mapping[str, Array]", "Array"): "token statistic",
    ("Array", "Array", "Array"): "reduction",
}
VERBS = (
    (("act",), "director"),
    (("ask", "tell"), "controller"),
    (("fit", "warmup"), "token stop"),
    (("questions", "references", "parse", "grade"), "task"),
    (("start", "logits", "advance", "select"), "model"),
)
# kind -> how one is written
EXAMPLES = {
    "task": "Countdown(4)",
    "model": "Pocket('main')",
    "decoder": "Chain(Temperature(0.6), TopP(0.95))",
    "rule": "Plurality()",
    "evidence": "TokenEvidence(LogProb(), Mean())",
    "stop": "AdaptiveConsistency(0.95)",
    "token stop": "OnlineConfidence()",
    "director": "BudgetForcing(waits=1, wait='wait\\n')",
    "controller": "Beam(n=4, m=2)",
    "evaluator": "Likelihood()",
    "check": "Sound()",
    "unit": "Tokens()",
    "metric": "PassAt(8)",
    "scorer": "Borda()",
    "similarity": "TokenF1()",
    "verifier": "Pointwise()",
    "grader": "CompassVerifier()",
    "answer verifier": "Verified()",
}
# field of a study -> (kind, an example)
SLOTS = {
    field: (kind, EXAMPLES[kind])
    for field, kind in {
        "task": "task",
        "model": "model",
        "decode": "decoder",
        "rule": "rule",
        "evidence": "evidence",
        "stop": "stop",
        "within": "token stop",
        "director": "director",
        "controller": "controller",
        "evaluator": "evaluator",
        "check": "check",
        "unit": "unit",
        "metrics": "metric",
        "diagnostic": "grader",
    }.items()
}
ALSO = {"evidence": ("verifier",)}  # evidence that asks a judge
# the type that a field of a method declares -> what has to be in it
INNER = {
    "Stop": "stop",
    "TokenStop": "token stop",
    "Rule": "rule",
    "Operator": "decoder",
    "Evaluator": "evaluator",
    "Controller": "controller",
    "Check": "check",
    "Statistic": "token statistic",
    "Reduction": "reduction",
    "Callable[[Bank], Signal]": "evidence",
}


def kind_of(value: Any) -> str:
    """What a value is, or "" for one that does not say (one of the user's own without annotations fits anywhere).

    A class is asked what its values are.

    >>> from ramify.decode import TopP
    >>> from ramify.decide import Plurality
    >>> kind_of(TopP(0.9)), kind_of(Plurality), kind_of(lambda bank: None), kind_of(3)
    ('decoder', 'rule', '', 'no method')
    """
    for verbs, kind in VERBS:
        if all(hasattr(value, verb) for verb in verbs):
            return kind
    cls = value if isinstance(value, type) else type(value)
    call = value if inspect.isfunction(value) else inspect.getattr_static(cls, "__call__", None)
    return _kind_of_call(call) if inspect.isfunction(call) else "no method"


def _kind_of_call(call: types.FunctionType) -> str:
    annotated = dict(call.__annotations__)
    result = _written(annotated.pop("return", None))
    if "judge" in annotated:
        return {"Scores": "verifier", "Graded": "grader"}.get(result, "another kind of method")
    needed = [
        (each.name, _written(annotated.get(each.name)))
        for each in inspect.signature(call).parameters.values()
        if each.name != "self" and each.default is each.empty
    ]
    if needed == [("table", "Array")] and result == "Array":
        return "scorer"  # of models; other maps of arrays have other names for theirs
    if not result or not needed or not needed[0][1]:
        return ""
    return CALLS.get((*(said for _, said in needed), result), "another kind of method")


def need_kind(field: str, value: Any) -> None:
    """Refuse a value that belongs into another field of a study, and say into which."""
    wanted, example = SLOTS[field]
    found = kind_of(value)
    if found not in (wanted, "", *ALSO.get(field, ())):
        home = next((name for name, (kind, _) in SLOTS.items() if kind == found), None)
        what = f"is {article(found)}, which belongs into {home}" if home else f"is {article(found)}"
        raise InvalidValue(f"{brief(value)} {what}; {field} takes {article(wanted)}, such as {example}")
    if inner := misplaced(value):
        raise InvalidValue(inner)


def misplaced(value: Any) -> str:
    """What is wrong inside a method: a value in a field that takes another kind. Nothing if all is well.

    >>> from ramify.stop import AnyOf
    >>> misplaced(AnyOf(2))
    'AnyOf.stops = 2: that is no method; use a stop, such as AdaptiveConsistency(0.95)'
    """
    return next(_misplaced(value), "")


def _misplaced(value: Any) -> Iterator[str]:
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return
    for field in dataclasses.fields(value):
        given, said = getattr(value, field.name), _written(field.type)
        wanted = next((kind for name, kind in INNER.items() if said in _forms(name)), "")
        for each in given if isinstance(given, tuple) else (given,):
            found = kind_of(each)
            if wanted and not (each is None and said.endswith("None")) and found not in (wanted, ""):
                remedy = f"use {article(wanted)}" + (f", such as {EXAMPLES[wanted]}" if wanted in EXAMPLES else "")
                yield f"{type(value).__name__}.{field.name} = {brief(each)}: that is {article(found)}; {remedy}"
            elif not wanted and not _fits(each, _hints(type(value)).get(field.name)):
                yield f"{type(value).__name__}.{field.name} = {brief(each)}: use a value of {said}"
            else:
                yield from _misplaced(each)


def _forms(name: str) -> tuple[str, ...]:
    return (name, f"{name} | None", f"tuple[{name}, ...]")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the classes of the package that its field names; other hints say nothing here."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in typing.get_args(hint))
    if typing.get_origin(hint) is Callable:
        return callable(value)
    ours = isinstance(hint, type) and hint.__module__.startswith("ramify.") and dataclasses.is_dataclass(hint)
    return isinstance(value, hint) if ours else (hint is not type(None) or value is None)


@cache
def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError:  # a type of the user's own that is there for the type checker alone
        return {}


def brief(value: Any) -> str:
    """A value as a person would write it: fields that have their defaults are left out.

    >>> from ramify.stop import AnyOf, AtMost, CgesStop
    >>> brief(AnyOf(CgesStop("c", least=2), AtMost(8))), brief(("a", 1))
    ("AnyOf(CgesStop('c', least=2), AtMost(8))", "('a', 1)")
    """
    ours = dataclasses.is_dataclass(value) and type(value).__module__.startswith("ramify.")
    if not ours:
        try:
            return text(value)
        except InvalidValue:
            return repr(value)
    said, named = list[str](), False
    for each in inspect.signature(type(value)).parameters.values():
        given = getattr(value, each.name)
        if each.kind is each.VAR_POSITIONAL:
            said += map(brief, given)
        elif each.default is not each.empty and given == each.default:
            named = True  # those after it have to say which they are
        else:
            said.append(f"{each.name}={brief(given)}" if named else brief(given))
            named = named or each.default is not each.empty
    return f"{type(value).__name__}({', '.join(said)})"


def article(kind: str) -> str:
    """A kind with its article, where it takes one."""
    if kind in ("evidence", "no method", "another kind of method"):
        return kind
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


def _written(annotation: Any) -> str:
    if annotation is None:
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))

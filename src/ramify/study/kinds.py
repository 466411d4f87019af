"""Which slot of a study a value fits: told from its verbs and the types it declares, so that no list has to be kept."""

from __future__ import annotations

import inspect
from typing import Any

from ramify.errors import InvalidValue

__all__ = ["SLOTS", "kind_of", "need_kind"]

# (type of the first argument, type of the result) as they are written -> what such a value is
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
}
VERBS = (
    (("act",), "director"),
    (("ask", "tell"), "controller"),
    (("fit", "warmup"), "token stop"),
    (("questions", "references", "parse", "grade"), "task"),
    (("start", "logits", "advance", "select"), "model"),
)
# field -> (kind, an example)
SLOTS = {
    "task": ("task", "Countdown(4)"),
    "model": ("model", "Pocket('main')"),
    "decode": ("decoder", "Chain(Temperature(0.6), TopP(0.95))"),
    "rule": ("rule", "Plurality()"),
    "evidence": ("evidence", "TokenEvidence(LogProb(), Mean())"),
    "stop": ("stop", "AdaptiveConsistency(0.95)"),
    "within": ("token stop", "OnlineConfidence()"),
    "director": ("director", "BudgetForcing(waits=1, wait='wait\\n')"),
    "controller": ("controller", "Beam(n=4, m=2)"),
    "evaluator": ("evaluator", "Likelihood()"),
    "check": ("check", "Sound()"),
    "unit": ("unit", "Tokens()"),
    "metrics": ("metric", "PassAt(8)"),
    "diagnostic": ("grader", "CompassVerifier()"),
}
ALSO = {"evidence": "verifier"}  # evidence that asks a judge


def kind_of(value: Any) -> str:
    """What a value is, or "" for one that does not say (one of the user's own without annotations fits anywhere).

    >>> from ramify.decode import TopP
    >>> from ramify.decide import Plurality
    >>> kind_of(TopP(0.9)), kind_of(Plurality()), kind_of(lambda bank: None)
    ('decoder', 'rule', '')
    """
    for verbs, kind in VERBS:
        if all(hasattr(value, verb) for verb in verbs):
            return kind
    call = value if inspect.isfunction(value) else inspect.getattr_static(type(value), "__call__", None)
    if not inspect.isfunction(call):
        return "no method"
    types = dict(call.__annotations__)
    result, first = types.pop("return", None), next(iter(types.values()), None)
    if "judge" in types:
        return {"Scores": "verifier", "Graded": "grader"}.get(_written(result), "another kind of method")
    known = CALLS.get((_written(first), _written(result)))
    if known is not None:
        return known
    return "" if result is None or first is None else "another kind of method"


def need_kind(field: str, value: Any) -> None:
    """Refuse a value that belongs into another slot, and say into which."""
    wanted, example = SLOTS[field]
    found = kind_of(value)
    if found in (wanted, "", ALSO.get(field)):
        return
    home = next((name for name, (kind, _) in SLOTS.items() if kind == found), None)
    what = f"is {_article(found)}, which belongs into {home}" if home else f"is {found}"
    raise InvalidValue(f"{value!r} {what}; {field} takes {_article(wanted)}, such as {example}")


def _article(kind: str) -> str:
    return kind if kind == "evidence" else f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _written(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))

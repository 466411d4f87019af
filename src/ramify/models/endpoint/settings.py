"""From a decoder to a server's sampling parameters: exactly, or an error that names what cannot be said.

The parameters are read off the operators; then the server's own chain for these parameters, which the presets of the
decoder write out, must be the decoder. So a gate in the wrong place is an error, as is a tie rule that the engine does
not follow. llama.cpp takes the order as a parameter; the others do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramify.decode import (
    Chain,
    DynamicTemperature,
    Frequency,
    Greedy,
    LogitBias,
    MinP,
    Operator,
    Parallel,
    Presence,
    Repetition,
    Temperature,
    TopK,
    TopNSigma,
    TopP,
    Typical,
)
from ramify.errors import InvalidValue
from ramify.models.endpoint.dialect import Dialect

__all__ = ["parameters", "served"]


def _middle(heat: DynamicTemperature) -> dict[str, Any]:
    return {
        "temp": (heat.low + heat.high) / 2,
        "dynatemp_range": (heat.high - heat.low) / 2,
        "dynatemp_exponent": heat.exponent,
    }


def _windowed(name: str, value: float, last: int | None) -> dict[str, Any]:
    return {name: value, "repeat_last_n": -1 if last is None else last}


# Each operator as arguments of a preset. Where two presets name a thing differently, both names are given.
READ: dict[type, Callable[[Any], dict[str, Any]]] = {
    Temperature: lambda x: {"temperature": x.t, "temp": x.t},
    Greedy: lambda _: {"temperature": 0.0, "temp": 0.0},
    DynamicTemperature: _middle,
    TopK: lambda x: {"top_k": x.k},
    TopP: lambda x: {"top_p": x.p},
    MinP: lambda x: {"min_p": x.c},
    Typical: lambda x: {"typ_p": x.p},
    TopNSigma: lambda x: {"top_n_sigma": x.n},
    Repetition: lambda x: {"repetition_penalty": x.theta, **_windowed("repeat_penalty", x.theta, x.last)},
    Frequency: lambda x: _windowed("frequency_penalty", x.alpha, x.last),
    Presence: lambda x: _windowed("presence_penalty", x.alpha, x.last),
    LogitBias: lambda x: {"logit_bias": x.bias},
}
NEUTRAL: dict[str, Any] = {
    "temperature": 1.0,
    "temp": 1.0,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typ_p": 1.0,
    "top_n_sigma": 0.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.1,
    "repetition_penalty": 1.0,
    "repeat_penalty": 1.0,
    "repeat_last_n": 64,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "logit_bias": (),
}
STEP = {  # the step of llama.cpp's order that an operator belongs to
    Repetition: "penalties",
    Frequency: "penalties",
    Presence: "penalties",
    TopNSigma: "top_n_sigma",
    TopK: "top_k",
    Typical: "typ_p",
    TopP: "top_p",
    MinP: "min_p",
    Temperature: "temperature",
    DynamicTemperature: "temperature",
    Greedy: "temperature",
}


def parameters(decoder: Operator, dialect: Dialect) -> dict[str, Any]:
    """What a request says of its sampling: every parameter of the server, those that are off too.

    >>> from ramify.models.endpoint.dialect import DIALECTS
    >>> vllm = DIALECTS["vllm"]
    >>> found = parameters(Chain(Temperature(0.6), TopP(0.95)), vllm)
    >>> found["temperature"], found["top_p"], found["top_k"]
    (0.6, 0.95, 0)
    >>> parameters(Chain(TopP(0.95), Temperature(0.6)), vllm)
    Traceback (most recent call last):
    ramify.errors.InvalidValue: vllm cannot express Chain(TopP(p=0.95, boundary='reach'), Temperature(t=0.6)): ...
    >>> parameters(Temperature(1.0), vllm) == parameters(Chain(), vllm)
    True
    """
    chain = served(decoder, dialect)
    arguments = NEUTRAL | _arguments(_flat(chain.operators), dialect)
    off = dict(dialect.off)
    found = {}
    for argument, name in dialect.names:
        value = arguments[argument]
        found[name] = off.get(name, value) if value == NEUTRAL[argument] else value
    bias = {str(token): value for token, value in arguments["logit_bias"]}
    found.pop("logit_bias", None)
    found |= {"logit_bias": bias} if bias else {}
    if dialect.reorders:
        order = list(dict.fromkeys(STEP[type(x)] for x in chain.operators if type(x) in STEP))
        found["samplers"] = order if "temperature" in order else [*order, "temperature"]
    return found


def served(decoder: Operator, dialect: Dialect) -> Chain:
    """The decoder as the chain that the server runs. It is the same chain: otherwise this raises."""
    asked = decoder if isinstance(decoder, Chain) else Chain(decoder)
    arguments = _arguments(_flat(asked.operators), dialect)
    if dialect.preset is None:
        if len(asked.operators) > 1:
            raise _cannot(dialect, asked, "nobody has published the order of its gates; use one, or name the server")
        return asked
    known = {argument for argument, _ in dialect.names}
    runs = dialect.preset(**{name: value for name, value in arguments.items() if name in known})
    plain = Chain(*(each for each in asked.operators if each != Temperature(1.0)))  # which changes nothing
    if runs in (asked, plain):
        return runs
    if dialect.reorders:
        return _reordered(asked, runs, dialect)
    raise _cannot(dialect, asked, f"with these parameters it runs {runs}")


def _flat(operators: tuple[Operator, ...]) -> list[Operator]:
    return [each for x in operators for each in (_flat(x.operators) if isinstance(x, (Parallel, Chain)) else [x])]


def _arguments(operators: list[Operator], dialect: Dialect) -> dict[str, Any]:
    """The preset's arguments that the operators stand for."""
    known = {argument for argument, _ in dialect.names}
    found: dict[str, Any] = {}
    for x in operators:
        said = {name: value for name, value in READ.get(type(x), lambda _: {})(x).items() if name in known}
        if not said or set(said) == {"repeat_last_n"}:
            raise _cannot(dialect, x, f"it knows {', '.join(sorted(name for _, name in dialect.names))}")
        twice = [name for name, value in said.items() if name in found and found[name] != value]
        if twice:
            raise _cannot(dialect, x, f"it takes one {twice[0]}, and the decoder gives it twice")
        found |= said
    if any(abs(value) > 100 for _, value in found.get("logit_bias", ())):
        raise _cannot(dialect, LogitBias(found["logit_bias"]), "it clips a bias to [-100, 100]")
    return found


def _reordered(asked: Chain, runs: Chain, dialect: Dialect) -> Chain:
    """The decoder, if it is the server's own operators in another order that the server can be told."""
    if sorted(map(repr, asked.operators)) != sorted(map(repr, runs.operators)):
        raise _cannot(dialect, asked, f"with these parameters it runs {runs}, in any order")
    bias = [i for i, x in enumerate(asked.operators) if isinstance(x, LogitBias)]
    if bias not in ([], [0]):
        raise _cannot(dialect, asked, "it adds a bias before everything else")
    ours, theirs = ([x for x in chain.operators if STEP.get(type(x)) == "penalties"] for chain in (asked, runs))
    at = [i for i, x in enumerate(asked.operators) if STEP.get(type(x)) == "penalties"]
    if ours != theirs or (at and at[-1] - at[0] != len(at) - 1):
        raise _cannot(dialect, asked, "its penalties are one step: repetition, frequency, presence")
    return asked


def _cannot(dialect: Dialect, what: object, why: str) -> InvalidValue:
    return InvalidValue(f"{dialect.name} cannot express {what!r}: {why}; see ramify.decode.presets")

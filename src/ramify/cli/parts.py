"""From the text on a command line to values: rules, stops, evidence, decoders, tasks, models. Nothing is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ramify import decide
from ramify.bank import Bank, Layer, Signal
from ramify.errors import InvalidValue, ParseError, require
from ramify.kinds import EXAMPLES, article, kind_of, misplaced
from ramify.tasks import Verified
from ramify.written import written

__all__ = ["KINDS", "attached", "layers_for", "signal_of", "value"]

JUDGED = "it asks a model about candidates, which `ramify score --judge TEXT` does"

# What people type for a kind -> the kinds that such an option takes. Every kind is a word for itself too.
KINDS: dict[str, tuple[str, ...]] = {
    "cost": ("unit",),
    "utility": ("similarity",),
    "within": ("token stop",),
    **{kind: (kind,) for kind in EXAMPLES},
}


def value(text: str, option: str, kind: str = "", also: tuple[str, ...] = ()) -> Any:
    """The value of a text form, or of a preset such as ``mean_logprob`` or ``vllm(temperature=0.6)``.

    ``kind`` is what the option takes; values of another kind than that and ``also`` are refused by name.

    >>> value("BestOfN('logp')", "--rule", "rule").evidence
    'logp'
    >>> value("TopK(4)", "--rule", "rule")
    Traceback (most recent call last):
    ramify.errors.InvalidValue: --rule TopK(4): that is a decoder; `ramify methods --kind rule` lists what fits
    """
    try:
        found = written(text, (*KINDS[kind], *also) if kind else ())
    except ParseError as error:
        raise ParseError(f"{option} {text}: {error} (`ramify methods{f' --kind {kind}' if kind else ''}`)") from None
    except InvalidValue as error:
        raise InvalidValue(f"{option} {text}: {error}") from None
    if kind and (much := kind_of(found)) not in (*KINDS[kind], *also, ""):
        fits = JUDGED if much == "verifier" else f"`ramify methods --kind {kind}` lists what fits"
        raise InvalidValue(f"{option} {text}: that is {article(much)}; {fits}")
    if inner := misplaced(found):
        raise InvalidValue(f"{option} {text}: {inner}")
    return found


# ------------------------------------------------------------------------------------------------------------ evidence


def signal_of(found: Any, bank: Bank) -> Signal:
    """What an evidence map says of a bank; a verifier that needs no reference is one too."""
    if isinstance(found, Verified):
        values = np.full(bank.shape, np.nan)
        for q, question in enumerate(bank.questions):
            answers = [bank.answer(q, n) for n in range(bank.shape[1])]
            values[q] = np.where(bank.drawn[q], found(question, answers), np.nan)
        return Signal(values, np.zeros(bank.shape))
    return found(bank)  # type: ignore[no-any-return]


def attached(bank: Bank, wanted: Mapping[str, str], option: str = "--evidence") -> Bank:
    """The bank with the evidence asked for as layers, ``NAME=TEXT`` each."""
    for name, text in wanted.items():
        found = value(text, option, "evidence", ("answer verifier",))
        signal = signal_of(found, bank)
        bank = bank.attach(name, Layer(signal.values, repr(found), cost=signal.cost))
    return bank


def layers_for(rule: Any, bank: Bank) -> list[str]:
    """The layers that a rule reads, all there and none of them from behind the wall."""
    wanted = [name for name in getattr(rule, "needs", ()) if name != decide.support.PAIRS]
    for name in wanted:
        if name not in bank.layers:
            there = ", ".join(bank.layers) or "none"
            raise InvalidValue(
                f"{rule!r} reads the evidence {name!r}, and this bank has {there}: name it, as in"
                f" --evidence {name}=mean_logprob, or keep it with `ramify score`"
            )
        role = bank.layers[name].role
        require(role == "deployable", f"evidence {name!r}", role, "it has seen references, so no rule may read it")
    return wanted

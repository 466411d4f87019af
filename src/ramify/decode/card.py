"""The sampling card: what a reader has to know of a decoding protocol, printed from the values themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ramify.decode.compose import Chain, Fallback, Parallel
from ramify.decode.draw import Draw, GumbelMax, InverseCDF
from ramify.decode.measure import Operator
from ramify.decode.mixture import Xtc
from ramify.decode.weights import Temperature
from ramify.describe import describe, text
from ramify.keys import PROTOCOL

__all__ = ["SamplingCard"]

GATES = ("level", "head", "objective", "stateful", "mask")
WEIGHTS = ("weights", "history")


@dataclass(frozen=True)
class SamplingCard:
    """Everything a sampling report should specify, so that the proposal q(y | x) is defined by the page.

    >>> from ramify.decode import TopP
    >>> card = SamplingCard(Chain(Temperature(0.6), TopP(0.95)), eos=2, cap=32768, samples=64, run="aime")
    >>> print(card)
    token measure       u = exp(logits), then Temperature(t=0.6)
    support gates       TopP(p=0.95, boundary='reach')
    reference score     r = Norm_S(u) as each gate finds it
    order               Chain(Temperature(t=0.6), TopP(p=0.95, boundary='reach'))
    actions             none: every token is drawn
    state               none
    randomisation       none beyond the draw
    draw                InverseCDF()
    stop and length     token 2, or 32768 tokens
    samples             64
    streams             Philox4x32-10, ramify/1, keyed by (run='aime', question, sample, 'draw'), the position
    approximations      none
    fallbacks           none needed
    other operators     none
    """

    decoder: Operator
    eos: int
    cap: int
    samples: int
    run: str
    draw: Draw = InverseCDF()
    stream: str = "draw"

    def rows(self) -> dict[str, str]:
        """The card, a line a row of the paper's list."""
        parts = list(_parts(self.decoder))

        def those(*families: str) -> str:
            return "; ".join(text(part) for part in parts if _family(part) in families)

        raw = any(isinstance(part, Parallel) and part.reference == "logits" for part in parts)
        approximations = [part.approximation for part in parts if hasattr(part, "approximation")]
        fallbacks = [f"{type(part).__name__}: {part.fallback}" for part in parts if hasattr(part, "fallback")]
        fallbacks += [text(part) for part in parts if isinstance(part, Fallback)]
        chance, noise = those("mixture"), " and the token id" if isinstance(self.draw, GumbelMax) else ""
        stream = f"(run={self.run!r}, question, sample, {self.stream!r})"
        return {
            "token measure": "u = exp(logits)" + "".join(f", then {each}" for each in [those(*WEIGHTS)] if each),
            "support gates": those(*GATES) or "none: every token with a finite logit",
            "reference score": "r = Norm_S(u) as each gate finds it" + (", raw p inside Parallel" if raw else ""),
            "order": text(self.decoder),
            "actions": those("action") or "none: every token is drawn",
            "state": "; ".join(text(part) for part in parts if hasattr(part, "begin")) or "none",
            "randomisation": f"{chance} (marginalised in log q)" if chance else "none beyond the draw",
            "draw": text(self.draw),
            "stop and length": f"token {self.eos}, or {self.cap} tokens",
            "samples": str(self.samples),
            "streams": f"Philox4x32-10, {PROTOCOL.decode()}, keyed by {stream}, the position{noise}",
            "approximations": "; ".join(approximations) or "none",
            "fallbacks": "; ".join(fallbacks) or "none needed",
            "other operators": those("other") or "none",
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:<20}{value}" for name, value in self.rows().items())

    def describe(self) -> dict[str, Any]:
        """The card as JSON, with the decoder in the form that ``restore`` reads."""
        return {**self.rows(), "decoder": describe(self.decoder), "draw": describe(self.draw)}


def _parts(operator: Any) -> Iterator[Any]:
    """The operators in a decoder, in order, composites before what they hold."""
    if not isinstance(operator, Chain):
        yield operator
    children = getattr(operator, "operators", ()) or getattr(operator, "configurations", ())
    for child in (*children, *([operator.then] if isinstance(operator, Xtc) else [])):
        yield from _parts(child)


def _family(operator: Any) -> str:
    """What an operator does to the measure: the module that defines it says so, unless its class says otherwise."""
    if isinstance(operator, Temperature) and operator.t == 0:
        return "action"
    package, _, module = getattr(operator, "__module__", type(operator).__module__).rpartition(".")
    family: str = getattr(type(operator), "family", module if package == "ramify.decode" else "other")
    return family

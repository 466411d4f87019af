"""Banks drawn from something else than the target: self-normalised importance weights, where they are honest.

w_i ∝ q*(y_i) / q_i(y_i) corrects a bank only if the target is absolutely continuous with respect to every proposal
that contributed. A truncated proposal can never draw what its gates removed, although the ratios of what it did draw
are finite; such weights are heuristics, and have to be declared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Layer
from ramify.describe import parse
from ramify.errors import InvalidValue, ParseError, require

__all__ = ["Importance", "importance"]

FULL = (
    "Temperature",
    "DynamicTemperature",
    "Quadratic",
    "Uniform",
    "Coverage",
    "Chain",
    "AdaptiveP",
    "Repetition",
    "Frequency",
    "Presence",
    "Dry",
)


class Importance(NamedTuple):
    """Self-normalised weights of a bank towards a target, how many draws they are worth, and what they may claim."""

    weights: Array  # [Q, N], each question's sum to 1; NaN where not drawn
    size: Array  # [Q] the effective sample size (Σ w)² / Σ w²
    heuristic: str  # why the weights are used although they are no exact correction; "" where they are one

    def layer(self) -> Layer:
        """The weights as evidence for ``WeightedMBR`` and ``WeightedVote``, saying what they are."""
        exact = "q*/q, self-normalised"
        return Layer(self.weights, f"heuristic weights: {self.heuristic}" if self.heuristic else exact)


def importance(bank: Bank, target: Array, *, heuristic: str = "") -> Importance:
    """The importance weights of a bank's candidates under ``target [Q, N]``, log q*(y_i) of the wanted proposal.

    Refused where a ratio is unavailable or a proposal truncates, unless ``heuristic`` says why to use them anyway.

    >>> import dataclasses
    >>> from ramify.bank import Proposal
    >>> bank = Bank.of({"q": ["A", "B"]}, proposal=Proposal(protocol="Temperature(t=2.0)"))
    >>> bank = dataclasses.replace(bank, log_q=np.log([[0.5, 0.5]]))
    >>> weights, size, _ = importance(bank, np.log([[0.9, 0.1]]))
    >>> weights.round(2).tolist(), size.round(4).tolist()
    ([[0.9, 0.1]], [1.2195])
    """
    target = np.asarray(target, dtype=np.float64)
    require(target.shape == bank.shape, "target", target.shape, f"use the shape {bank.shape}")
    if not heuristic:
        for proposal in (bank.proposals[i] for i in np.unique(bank.source[bank.drawn])):
            why = _objection(proposal.kind, proposal.protocol)
            require(not why, "importance weights", why, "declare them with heuristic='why they are used'")
    if bank.log_q is None:
        raise InvalidValue("importance weights: the bank records no log q: the ratios are unavailable")
    ratio = target - bank.log_q
    lost = int((np.isnan(ratio) & bank.drawn).sum())
    require(not lost, "importance weights", f"{lost} ratios unavailable", "score every candidate under both proposals")
    ratio = np.where(bank.drawn, ratio, -np.inf)
    require((ratio < np.inf).all(), "importance weights", np.inf, "a drawn candidate has q > 0")
    peak = ratio.max(axis=-1, keepdims=True, initial=-np.inf)
    weight = np.where(bank.drawn, np.exp(ratio - np.where(np.isfinite(peak), peak, 0.0)), 0.0)
    total = weight.sum(axis=-1)
    require(
        (total[bank.drawn.any(axis=-1)] > 0).all(), "the sum of the weights", 0.0, "the target gives no draw any mass"
    )
    safe = np.where(total > 0, total, 1.0)
    size = np.where(total > 0, total**2 / np.maximum((weight**2).sum(axis=-1), 1e-300), 0.0)
    return Importance(np.where(bank.drawn, weight / safe[:, None], np.nan), size, heuristic)


def _objection(kind: str, protocol: str) -> str:
    """Why a proposal's ratios are no exact correction; "" where they are."""
    if kind in ("search", "sweep"):
        return f"a {kind} proposal has no known q"
    if not protocol:
        return "a proposal does not say its protocol, so it may truncate"
    try:
        gates = [name for name in _operators(parse(protocol)) if name not in FULL]
    except (InvalidValue, ParseError):
        return f"the protocol {protocol!r} cannot be read, so it may truncate"
    return f"the proposal truncates: {', '.join(gates)}" if gates else ""


def _operators(value: Any) -> Iterator[str]:
    """The names of all operators in a decoder."""
    if type(value).__name__ == "Temperature" and value.t == 0:
        yield "Temperature(t=0)"
        return
    yield type(value).__name__
    for part in getattr(value, "operators", ()):
        yield from _operators(part)

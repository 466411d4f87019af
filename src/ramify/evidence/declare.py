"""What an evidence map says of itself: the signals it needs, and its role. A bank without the signals is refused."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import NamedTuple, TypeAlias

import numpy as np

from ramify.bank import Bank, Signal
from ramify.errors import InvalidValue

__all__ = ["ROLES", "Evidence", "Needs", "check"]

Evidence: TypeAlias = Callable[[Bank], Signal]
"""Higher is better, always; NaN is missing. The values of this package also declare ``needs`` and ``role``."""

ROLES = ("deployable", "exact diagnostic", "reference-assisted")


class Needs(NamedTuple):
    """Token columns and layers that have to be recorded, with how many alternatives a token and from which stage."""

    columns: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    top: int = 0  # K
    stage: str = "any"  # "raw": alternatives of the model itself, not of a processed distribution
    every: bool = False  # whatever token columns there are, for a plain function that does not say

    def union(self, other: Needs) -> Needs:
        """Both at once."""
        return Needs(
            tuple(dict.fromkeys(self.columns + other.columns)),
            tuple(dict.fromkeys(self.layers + other.layers)),
            max(self.top, other.top),
            "raw" if "raw" in (self.stage, other.stage) else "any",
            self.every or other.every,
        )


def name_of(method: object) -> str:
    """A method's text form, or where a plain function lives."""
    return f"{method.__module__}:{method.__qualname__}" if isinstance(method, FunctionType) else repr(method)


def check(bank: Bank, needs: Needs, method: object) -> None:
    """Refuse, in the method's name, a bank that lacks what it needs."""
    who = name_of(method)
    if needs.columns and bank.tokens is None:
        raise InvalidValue(f"{who} needs the token column {needs.columns[0]!r}, and this bank recorded no tokens")
    for name in needs.columns:
        if bank.tokens is not None and name not in bank.tokens.columns:
            known = ", ".join(bank.tokens.columns) or "none"
            raise InvalidValue(f"{who} needs the token column {name!r}, and this bank recorded: {known}")
    for name in needs.layers:
        if name not in bank.layers:
            known = ", ".join(bank.layers) or "none"
            raise InvalidValue(f"{who} needs the layer {name!r}, and this bank has: {known}")
    if needs.top and bank.tokens is not None:
        recorded = bank.tokens["top_logprobs"].shape[1]
        if recorded < needs.top:
            raise InvalidValue(f"{who} needs {needs.top} alternatives a token, and this bank recorded {recorded}")
    if needs.stage == "raw":
        _need_raw(bank, who)


def _need_raw(bank: Bank, who: str) -> None:
    """Every contributing proposal may call its alternatives raw, or not know; "processed" is another quantity."""
    for source in np.unique(bank.source[bank.drawn]):
        proposal = bank.proposals[source]
        if proposal.stage == "processed":
            raise InvalidValue(
                f"{who} needs the model's raw alternatives, and those of run {proposal.run!r} are processed "
                "(after penalties and truncation): record raw ones, or ask for them by name with stage='any'"
            )

"""Where candidates come from, and which estimators that permits."""

from __future__ import annotations

from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require

__all__ = ["KINDS", "Proposal", "is_independent", "need_independence"]

# From the weakest claim to the strongest: a bank of several sources is as weak as the weakest of them.
KINDS = ("search", "sweep", "stopped", "heterogeneous", "iid")
STAGES = ("raw", "processed", "unknown")


@method
class Proposal:
    """The protocol that made a set of candidates, and which of their signals it recorded.

    ``kind`` is "iid" (independent draws of one declared protocol), "heterogeneous" (draws of several, each with its
    log q), "stopped" (independent draws whose number depends on what they showed: shares of such a bank are biased),
    "sweep" (a deterministic grid) or "search" (induced by a controller). ``top`` alternatives were recorded at
    every token, "raw" (the model's own) or "processed" (after penalties and truncation): mass and ranks beyond them
    are censored, not zero. ``fresh`` says whether the candidates were made for this run or shared with ``parent``.

    >>> Proposal(run="aime", protocol="Temperature(t=0.6)", top=20, stage="raw").kind
    'iid'
    """

    kind: str = "iid"
    run: str = ""
    protocol: str = ""  # the decoder's text form, or what is known of it
    model: str = ""
    interface: str = ""  # the id of the prompt interface: template, system text, effort
    signals: tuple[str, ...] = ()  # the token columns that were recorded
    top: int = 0  # K; 0 is none
    stage: str = "unknown"
    fresh: bool = True
    parent: str = ""

    def __post_init__(self) -> None:
        require(self.kind in KINDS, "Proposal.kind", self.kind, f"use one of {', '.join(KINDS)}")
        require(self.stage in STAGES, "Proposal.stage", self.stage, f"use one of {', '.join(STAGES)}")
        require(is_whole(self.top), "Proposal.top", self.top, "use a number of alternatives >= 0")


def is_independent(kind: str, assumed: str) -> bool:
    """Whether candidates are independent draws of one protocol, by provenance or by a recorded assumption."""
    return kind == "iid" or bool(assumed)


def need_independence(what: str, kind: str, assumed: str) -> None:
    """Refuse, in the name of an estimator that needs independent draws.

    >>> need_independence("Pass@k", "search", assumed="")
    Traceback (most recent call last):
    ramify.errors.InvalidValue: Pass@k needs independent draws of one protocol, and this bank is search: ...
    """
    if not is_independent(kind, assumed):
        remedy = "use a descriptive finite-bank number, or bank.assuming_independence(reason)"
        raise InvalidValue(f"{what} needs independent draws of one protocol, and this bank is {kind}: {remedy}")

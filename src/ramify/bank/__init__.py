"""Banks of candidates: aligned ``[Q, N]`` arrays, flat token data, provenance, and what is attached later."""

from ramify.bank.arrow import from_arrow, to_arrow, to_xarray
from ramify.bank.bank import Bank
from ramify.bank.candidates import Candidates, Choice, Signal, Utility, Verdict
from ramify.bank.layers import Layer, Outcomes
from ramify.bank.proposal import Proposal
from ramify.bank.tokens import TokenTable
from ramify.bank.union import union

__all__ = [
    "Bank",
    "Candidates",
    "Choice",
    "Layer",
    "Outcomes",
    "Proposal",
    "Signal",
    "TokenTable",
    "Utility",
    "Verdict",
    "from_arrow",
    "to_arrow",
    "to_xarray",
    "union",
]

"""Stopping: causal predicates over what has been revealed, across rollouts and within one."""

from ramify.stop.across import (
    AllOf,
    AnswerEntropy,
    AnyOf,
    AtLeast,
    AtMost,
    Budget,
    CgesStop,
    Esc,
    InBatches,
    LeaderShare,
    ShareInterval,
    esc_cost,
)
from ramify.stop.adaptive import AdaptiveConsistency, CrpConsistency, DirichletConsistency
from ramify.stop.certificate import ModeCertificate, log_e_value
from ramify.stop.counts import Stop
from ramify.stop.deepconf import DeepConfConsensus, DeepConfReplay, deepconf_online
from ramify.stop.replay import Replay, replay
from ramify.stop.within import (
    AnyToken,
    Looping,
    LowConfidence,
    TokenHistory,
    TokenLimit,
    TokenStop,
    fit_low_confidence,
)

__all__ = [
    "AdaptiveConsistency",
    "AllOf",
    "AnswerEntropy",
    "AnyOf",
    "AnyToken",
    "AtLeast",
    "AtMost",
    "Budget",
    "CgesStop",
    "CrpConsistency",
    "DeepConfConsensus",
    "DeepConfReplay",
    "DirichletConsistency",
    "Esc",
    "InBatches",
    "LeaderShare",
    "Looping",
    "LowConfidence",
    "ModeCertificate",
    "Replay",
    "ShareInterval",
    "Stop",
    "TokenHistory",
    "TokenLimit",
    "TokenStop",
    "deepconf_online",
    "esc_cost",
    "fit_low_confidence",
    "log_e_value",
    "replay",
]

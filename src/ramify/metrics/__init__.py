"""How good a bank and a system are: arrays in, ``Estimate`` out."""

from ramify.metrics.estimate import Estimate
from ramify.metrics.functionals import (
    Accuracy,
    BetaWeights,
    EvenWeights,
    Functional,
    GeomAt,
    GPassAt,
    MaxAt,
    MaxEntropyWeights,
    MeanGPassAt,
    MomentWeights,
    PassArea,
    PassAt,
    PassHat,
    PayoffWeights,
    StrictMajority,
    ThresholdUtility,
)
from ramify.metrics.profile import Profile, Profiled, bank_profile, latent_profile
from ramify.metrics.tally import Tally

__all__ = [
    "Accuracy",
    "BetaWeights",
    "Estimate",
    "EvenWeights",
    "Functional",
    "GPassAt",
    "GeomAt",
    "MaxAt",
    "MaxEntropyWeights",
    "MeanGPassAt",
    "MomentWeights",
    "PassArea",
    "PassAt",
    "PassHat",
    "PayoffWeights",
    "Profile",
    "Profiled",
    "StrictMajority",
    "Tally",
    "ThresholdUtility",
    "bank_profile",
    "latent_profile",
]

"""One token: logits become a distribution through operators on a token measure, and the distribution a draw.

>>> import numpy as np
>>> from ramify.decode import Chain, Temperature, TokenMeasure, TopP
>>> measure = TokenMeasure.of(np.log([0.5, 0.3, 0.15, 0.05]))
>>> Chain(Temperature(0.5), TopP(0.9))(measure).probs.round(3).tolist()
[0.735, 0.265, 0.0, 0.0]
"""

from ramify.decode.action import Ban, ForcePrefix, Greedy, Mask, MaxThinking, MinThinking
from ramify.decode.card import SamplingCard
from ramify.decode.compose import Chain, Fallback, Parallel
from ramify.decode.draw import Draw, Drawn, GumbelMax, InverseCDF, step
from ramify.decode.head import EntropyBudget, TailFree, TopH, TopK, TopP, Typical
from ramify.decode.history import Dry, Frequency, Presence, Repetition
from ramify.decode.level import Epsilon, Eta, MinP, PLess, TopA, TopNSigma
from ramify.decode.measure import Operator, Side, TokenMeasure, begin, force, restrict, reweight, settle
from ramify.decode.mixture import Mixture, Xtc
from ramify.decode.objective import MassUnderEntropy, MassVersusSize, Objective
from ramify.decode.presets import llama_cpp, sglang, transformers, vllm
from ramify.decode.stateful import AdaptiveP, Mirostat, MirostatV1
from ramify.decode.weights import Coverage, DynamicTemperature, LogitBias, Quadratic, Temperature, Uniform

__all__ = [
    "AdaptiveP",
    "Ban",
    "Chain",
    "Coverage",
    "Draw",
    "Drawn",
    "Dry",
    "DynamicTemperature",
    "EntropyBudget",
    "Epsilon",
    "Eta",
    "Fallback",
    "ForcePrefix",
    "Frequency",
    "Greedy",
    "GumbelMax",
    "InverseCDF",
    "LogitBias",
    "Mask",
    "MassUnderEntropy",
    "MassVersusSize",
    "MaxThinking",
    "MinP",
    "MinThinking",
    "Mirostat",
    "MirostatV1",
    "Mixture",
    "Objective",
    "Operator",
    "PLess",
    "Parallel",
    "Presence",
    "Quadratic",
    "Repetition",
    "SamplingCard",
    "Side",
    "TailFree",
    "Temperature",
    "TokenMeasure",
    "TopA",
    "TopH",
    "TopK",
    "TopNSigma",
    "TopP",
    "Typical",
    "Uniform",
    "Xtc",
    "begin",
    "force",
    "llama_cpp",
    "restrict",
    "reweight",
    "settle",
    "sglang",
    "step",
    "transformers",
    "vllm",
]

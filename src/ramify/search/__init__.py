"""Prefix search: controllers that ask and tell over an immutable tree, and evaluators of prefixes."""

from ramify.search.adaptive import ABMCTS, BetaScores, NormalScores
from ramify.search.best import BestFirst, DepthFirst
from ramify.search.control import Controller, Layered
from ramify.search.diverse import DiverseBeam
from ramify.search.evaluate import (
    Blend,
    Check,
    Evaluator,
    Even,
    Exponentiated,
    Likelihood,
    PerLength,
    RawLikelihood,
    Staged,
)
from ramify.search.judge import Judge, Rollouts, StepScores, ValueModel
from ramify.search.level import DVTS, Beam, Breadth, Rebase
from ramify.search.lookahead import Lookahead
from ramify.search.mcts import PUCT, UCT, GumbelHalving
from ramify.search.particle import Particles
from ramify.search.picture import svg_picture, text_picture
from ramify.search.policy import LinearPriority
from ramify.search.rap import RAP
from ramify.search.reject import Restarts, SpeculativeRejection
from ramify.search.stochastic import StochasticBeam
from ramify.search.tree import Child, Expansion, Grow, Tree
from ramify.search.twisted import Twisted
from ramify.search.unit import Chunk, Rollout, ToDelimiter, TopTokens, Unit

__all__ = [
    "ABMCTS",
    "DVTS",
    "PUCT",
    "RAP",
    "UCT",
    "Beam",
    "BestFirst",
    "BetaScores",
    "Blend",
    "Breadth",
    "Check",
    "Child",
    "Chunk",
    "Controller",
    "DepthFirst",
    "DiverseBeam",
    "Evaluator",
    "Even",
    "Expansion",
    "Exponentiated",
    "Grow",
    "GumbelHalving",
    "Judge",
    "Layered",
    "Likelihood",
    "LinearPriority",
    "Lookahead",
    "NormalScores",
    "Particles",
    "PerLength",
    "RawLikelihood",
    "Rebase",
    "Restarts",
    "Rollout",
    "Rollouts",
    "SpeculativeRejection",
    "Staged",
    "StepScores",
    "StochasticBeam",
    "ToDelimiter",
    "TopTokens",
    "Tree",
    "Twisted",
    "Unit",
    "ValueModel",
    "svg_picture",
    "text_picture",
]

"""Prefix search: controllers that ask and tell over an immutable tree, and evaluators of prefixes."""

from ramify.search.best import BestFirst, DepthFirst
from ramify.search.control import Controller
from ramify.search.evaluate import Blend, Check, Evaluator, Exponentiated, Likelihood, PerLength, RawLikelihood
from ramify.search.level import DVTS, Beam, Breadth, Rebase
from ramify.search.mcts import PUCT, UCT, GumbelHalving
from ramify.search.particle import Particles
from ramify.search.tree import Child, Expansion, Grow, Tree
from ramify.search.unit import Chunk, Rollout, ToDelimiter, TopTokens, Unit

__all__ = [
    "DVTS",
    "PUCT",
    "UCT",
    "Beam",
    "BestFirst",
    "Blend",
    "Breadth",
    "Check",
    "Child",
    "Chunk",
    "Controller",
    "DepthFirst",
    "Evaluator",
    "Expansion",
    "Exponentiated",
    "Grow",
    "GumbelHalving",
    "Likelihood",
    "Particles",
    "PerLength",
    "RawLikelihood",
    "Rebase",
    "Rollout",
    "ToDelimiter",
    "TopTokens",
    "Tree",
    "Unit",
]

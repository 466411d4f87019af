"""Reasoning via planning (RAP, Hao et al., 2023): tree search on the rewards of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ramify.describe import method
from ramify.errors import require
from ramify.search.control import grown
from ramify.search.log import Log
from ramify.search.mcts import check, ucb, visit
from ramify.search.tree import Expansion, Tree
from ramify.search.unit import Chunk, Unit
from ramify.types import Key

__all__ = ["RAP"]


@method
class RAP:
    """UCT on the summed rewards of a path, each step's reward being r = P(step)^a · S^b.

    P is the raw model's probability of the step's tokens, S in [0, 1] its self-evaluation, the protocol's evaluator.
    Answers are aggregated over the tree with ``WeightedVote("path")``: the layer ``path`` is Σ r from the root to a
    leaf, and the vote sums it over the leaves that agree.
    """

    a: float = 0.5
    b: float = 0.5
    c: float = 1.0
    width: int = 4
    unit: Unit = Chunk(1)
    most: int = 64
    backup: str = "mean"

    layers = ("path",)

    def __post_init__(self) -> None:
        check(self)
        for name in ("a", "b", "c"):
            value = getattr(self, name)
            require(0 <= value < math.inf, f"RAP.{name}", value, "use a finite number >= 0")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if tree.expansions >= self.most:
            return None
        row = ucb(tree.columns, tree.columns.backup(self.path), self.c, self.backup == "mean")
        return None if row < 0 else visit(tree, row, self.width, self.unit)

    tell = grown

    def path(self, log: Log, row: int, above: float) -> float:
        """Σ r from the root to a row."""
        step = log.logprob[row] - log.logprob[log.parent[row]]
        require(0 <= log.score[row] <= 1, "score", log.score[row], "use self-evaluations in [0, 1]")
        require(step <= 0, "logprob", step, "give every step its log-probability")
        return above + math.exp(self.a * step) * math.pow(log.score[row], self.b)

    def layer(self, name: str, tree: Tree, rows: Sequence[int]) -> list[float]:
        worth = tree.columns.backup(self.path).worth
        return [worth[row] if tree.columns.own[row] else math.nan for row in rows]

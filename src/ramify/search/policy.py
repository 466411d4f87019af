"""A policy with numbers in it: which open prefix to grow next, by a weighted sum of what the tree knows of it."""

from __future__ import annotations

import math

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.search.control import grown
from ramify.search.log import Log
from ramify.search.tree import Expansion, Grow, Tree
from ramify.search.unit import Chunk, Unit
from ramify.types import Key

__all__ = ["LinearPriority"]


@method
class LinearPriority:
    """The open prefix with the highest w · φ, ties to the shallower and then to the earlier; ``width`` children each.

    φ = (its score, its depth, how much better its score is than its parent's, log p of its latest step): all known when
    a prefix is born, so that a stored search goes on as it was. ``weights`` are what is learned: ``studies/policy.py``
    tunes them on questions of their own. (1, 0, 0, 0) is ``BestFirst``. Any other policy, scripted or learned, is a
    class like this one. A feature that is missing counts as 0.
    """

    weights: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    width: int = 4
    unit: Unit = Chunk(1)
    leaves: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        ok = len(self.weights) == 4 and all(math.isfinite(weight) for weight in self.weights)
        require(ok, "LinearPriority.weights", self.weights, "use four finite numbers")
        require(is_whole(self.width, 1), "LinearPriority.width", self.width, "use a number of children >= 1")
        for name in ("leaves", "most"):
            value = getattr(self, name)
            require(
                value is None or is_whole(value, 1), f"LinearPriority.{name}", value, "use an integer >= 1, or None"
            )

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return Expansion(0, (Grow(0, self.width, self.unit),))
        log = tree.columns
        over = self.leaves is not None and log.leaves >= self.leaves
        if over or (self.most is not None and tree.expansions >= self.most):
            return None
        heap = log.heap(self.order)
        return Expansion(tree.expansions, (Grow(int(heap[0][-1]), self.width, self.unit),)) if heap else None

    tell = grown

    def order(self, log: Log, row: int) -> tuple[float, ...]:
        """Where a prefix stands in the queue."""
        up, depth = log.parent[row], log.depth[row]
        features = (
            log.score[row],
            depth,
            log.score[row] - log.score[up] if log.own[up] else 0.0,
            log.logprob[row] - log.logprob[up],
        )
        known = [w * x for w, x in zip(self.weights, features, strict=True) if w and x == x]
        return -sum(known), depth, row

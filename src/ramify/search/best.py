"""Controllers that take one open prefix after the other: the best, or the deepest."""

from __future__ import annotations

import math

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.search.control import grown
from ramify.search.log import Log
from ramify.search.tree import Expansion, Grow, Tree
from ramify.search.unit import Chunk, Unit
from ramify.types import Key

__all__ = ["BestFirst", "DepthFirst"]


@method
class BestFirst:
    """The open prefix with the best score, ties to the shallower and then to the earlier; ``width`` children each.

    It ends after ``leaves`` leaves, at a leaf that scores ``enough``, after ``most`` expansions, or when nothing is
    open. ``bound`` declares that no completion scores above its prefix, as with likelihoods: then the search ends as
    soon as no open prefix scores above the best leaf, which is the best that there is (A*).
    """

    width: int = 4
    unit: Unit = Chunk(1)
    leaves: int | None = None
    most: int | None = None
    bound: bool = False
    enough: float = math.inf

    def __post_init__(self) -> None:
        _limits(self)

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return Expansion(0, (Grow(0, self.width, self.unit),))
        heap = tree.columns.heap(by_score)
        if not heap or _over(tree, self):
            return None
        if self.bound and tree.columns.best_leaf >= -heap[0][0]:
            return None
        return Expansion(tree.expansions, (Grow(int(heap[0][-1]), self.width, self.unit),))

    tell = grown


@method
class DepthFirst:
    """The deepest open prefix, the best of them first (Tree of Thoughts, depth first). ``width`` children each.

    Prefixes that score below ``threshold`` are given up, which a learned score cannot prove right.
    """

    width: int = 4
    unit: Unit = Chunk(1)
    threshold: float = -math.inf
    leaves: int | None = 1
    most: int | None = None
    enough: float = math.inf

    def __post_init__(self) -> None:
        _limits(self)
        require(not math.isnan(self.threshold), "DepthFirst.threshold", self.threshold, "use a number")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return Expansion(0, (Grow(0, self.width, self.unit),))
        log = tree.columns
        heap = log.heap(by_depth)
        if not heap or _over(tree, self):
            return None
        row = int(heap[0][-1])
        if log.score[row] < self.threshold:
            return Expansion(tree.expansions, close=(row,))
        return Expansion(tree.expansions, (Grow(row, self.width, self.unit),))

    tell = grown


def by_score(log: Log, row: int) -> tuple[float, ...]:
    return -log.score[row], log.depth[row], row


def by_depth(log: Log, row: int) -> tuple[float, ...]:
    return -log.depth[row], -log.score[row], row


def _over(tree: Tree, search: BestFirst | DepthFirst) -> bool:
    if search.most is not None and tree.expansions >= search.most:
        return True
    if tree.columns.best_leaf >= search.enough:
        return True
    return search.leaves is not None and tree.columns.leaves >= search.leaves


def _limits(controller: BestFirst | DepthFirst) -> None:
    name = type(controller).__name__
    require(is_whole(controller.width, 1), f"{name}.width", controller.width, "use a number of children >= 1")
    for field in ("leaves", "most"):
        value = getattr(controller, field)
        require(value is None or is_whole(value, 1), f"{name}.{field}", value, "use an integer >= 1, or None")
    require(not math.isnan(controller.enough), f"{name}.enough", controller.enough, "use a score, or math.inf")

"""Trajectories that are given up on the way when they look hopeless: side by side, or one after the other."""

from __future__ import annotations

import math

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.search.control import grown, selectable
from ramify.search.tree import OPEN, Expansion, Grow, Tree
from ramify.search.unit import Chunk, Rollout, TopTokens, Unit
from ramify.types import Key

__all__ = ["Restarts", "SpeculativeRejection"]


@method
class SpeculativeRejection:
    """Best-of-N that does not finish what looks hopeless (Sun et al., 2024). ``n`` trajectories, a unit at a time.

    After each of the steps ``at`` only the best share ``keep`` of those that go on does so, rounded up; the others are
    given up. Nothing branches after the root, so every leaf is a draw of the proposal until somebody chooses.
    """

    n: int = 16
    unit: Unit = Chunk(1)
    at: tuple[int, ...] = (1,)
    keep: float = 0.5
    depth: int = 40

    def __post_init__(self) -> None:
        name = "SpeculativeRejection"
        require(is_whole(self.n, 1), f"{name}.n", self.n, "use a number of trajectories >= 1")
        require(all(is_whole(step, 1) for step in self.at), f"{name}.at", self.at, "use numbers of steps >= 1")
        require(0 < self.keep <= 1, f"{name}.keep", self.keep, "use a share in (0, 1]")
        require(is_whole(self.depth, 1), f"{name}.depth", self.depth, "use a number of steps >= 1")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return Expansion(0, (Grow(0, self.n, self.unit if self.depth > 1 else Rollout()),))
        going = [row for row in tree.born() if tree.columns.state[row] == OPEN]
        kept = selectable(tree, going)
        if tree.expansions in self.at:
            kept = kept[: math.ceil(self.keep * len(going))]
        close = tuple(row for row in going if row not in set(kept))
        unit = self.unit if tree.expansions < self.depth - 1 else Rollout()
        grow = tuple(Grow(row, 1, unit) for row in sorted(kept))
        return Expansion(tree.expansions, grow, close) if grow or close else None

    tell = grown


@method
class Restarts:
    """One trajectory after the other, a unit at a time, until a leaf scores ``enough``; at most ``n`` of them.

    One that scores below ``low`` after a step in ``at`` is given up, and the next begins at the root.
    """

    n: int = 16
    unit: Unit = Chunk(1)
    at: tuple[int, ...] = (1,)
    low: float = 0.1
    enough: float = math.inf
    depth: int = 40

    def __post_init__(self) -> None:
        require(is_whole(self.n, 1), "Restarts.n", self.n, "use a number of trajectories >= 1")
        require(all(is_whole(step, 1) for step in self.at), "Restarts.at", self.at, "use numbers of steps >= 1")
        require(not math.isnan(self.low), "Restarts.low", self.low, "use a score")
        require(not math.isnan(self.enough), "Restarts.enough", self.enough, "use a score, or math.inf")
        require(is_whole(self.depth, 1), "Restarts.depth", self.depth, "use a number of steps >= 1")
        ok = not isinstance(self.unit, TopTokens)
        require(ok, "Restarts.unit", self.unit, "use a unit that is drawn: an enumeration has no one more")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        log, born = tree.columns, tree.born()
        going = [row for row in born if log.state[row] == OPEN]
        if going and self._goes_on(log.score[going[0]], log.depth[going[0]]):
            unit = self.unit if log.depth[going[0]] < self.depth - 1 else Rollout()
            return Expansion(tree.expansions, (Grow(going[0], 1, unit),))
        begun = log.count[0]
        if begun >= self.n or log.best_leaf >= self.enough:
            return Expansion(tree.expansions, (), tuple(going)) if going else None
        unit = self.unit if self.depth > 1 else Rollout()
        return Expansion(tree.expansions, (Grow(0, 1, unit, after=begun),), tuple(going))

    tell = grown

    def _goes_on(self, score: float, depth: int) -> bool:
        """Whether a prefix is not given up; one without a score is, where it is looked at."""
        return depth not in self.at or score >= self.low

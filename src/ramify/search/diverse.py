"""Diverse beam search: groups that are kept apart by a penalty on what earlier groups chose."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.search.control import grown, selectable
from ramify.search.level import level, others, root
from ramify.search.tree import Expansion, Tree
from ramify.search.unit import Chunk, Unit
from ramify.types import Key

__all__ = ["DiverseBeam"]


@method
class DiverseBeam:
    """``groups`` beams, each choosing by S - λ · (how often earlier groups chose the same tokens at this level).

    Vijayakumar et al. (2018) with the Hamming diversity: by tokens with a unit of one token, by steps with a longer
    one. Of ``n / m`` live prefixes each group has the same number, and each has ``m`` successors. Groups choose one
    after the other, at the root from all children, then from those of their own prefixes. The penalty counts at its
    own level and is not carried on. Finished prefixes leave for the bank and hold no place.
    """

    n: int = 12
    m: int = 2
    groups: int = 3
    penalty: float = 0.5
    unit: Unit = Chunk(1)
    depth: int = 40

    def __post_init__(self) -> None:
        for name in ("n", "m", "groups", "depth"):
            require(is_whole(getattr(self, name), 1), f"DiverseBeam.{name}", getattr(self, name), "use an integer >= 1")
        require(self.n % (self.m * self.groups) == 0, "DiverseBeam.n", self.n, "use a multiple of m · groups")
        ok = 0 <= self.penalty < math.inf
        require(ok, "DiverseBeam.penalty", self.penalty, "use a finite number >= 0")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return root(self.n, self.unit, self.depth)
        group = self._chosen(tree)
        kept = [(row, self.m) for row in group]
        asked = level(tree, others(tree, tree.born(), kept), kept, self.unit, self.depth)
        return asked and dataclasses.replace(asked, note=tuple(sorted(group.items())))

    tell = grown

    def _chosen(self, tree: Tree) -> dict[int, float]:
        """The rows that go on, and the group of each."""
        log, rows, places = tree.columns, selectable(tree, tree.born()), self.n // (self.m * self.groups)
        group, before = dict[int, float](), Counter[tuple[int, ...]]()
        for number in range(self.groups):
            mine = [row for row in rows if row not in group and (not log.parent[row] or _of(tree, row) == number)]
            mine.sort(key=lambda row: self.penalty * before[tree.step(row)] - log.score[row])
            first = {(log.parent[row], tree.step(row)): row for row in reversed(mine)}  # of equal siblings
            chosen = [row for row in mine if first[log.parent[row], tree.step(row)] == row][:places]
            group |= dict.fromkeys(chosen, float(number))
            before.update(tree.step(row) for row in chosen)
        return group


def _of(tree: Tree, row: int) -> float:
    return tree.note(tree.columns.parent[row], -1.0)

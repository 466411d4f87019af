"""Beam search that looks ahead: a candidate is scored by where a short rollout from it leads."""

from __future__ import annotations

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.search.control import grown
from ramify.search.level import root
from ramify.search.tree import GROWN, LEAF, OPEN, Expansion, Grow, Tree
from ramify.search.unit import Chunk, Rollout, TopTokens, Unit
from ramify.types import Key

__all__ = ["Lookahead"]


@method
class Lookahead:
    """``Beam`` whose candidates are ranked by the score after ``k`` more units (Snell et al., 2024). k = 0 is ``Beam``.

    The units ahead are drawn as a child of the candidate, one after the other, and charged like any other; then they
    are given up, finished or not, and a candidate that goes on gets ``m`` successors of its own.
    """

    n: int = 16
    m: int = 4
    k: int = 1
    unit: Unit = Chunk(1)
    depth: int = 40

    def __post_init__(self) -> None:
        for name, least in (("n", 1), ("m", 1), ("k", 0), ("depth", 1)):
            value = getattr(self, name)
            require(is_whole(value, least), f"Lookahead.{name}", value, f"use an integer >= {least}")
        require(self.n % self.m == 0, "Lookahead.n", self.n, "use a multiple of m")
        ok = not isinstance(self.unit, TopTokens)
        require(ok, "Lookahead.unit", self.unit, "use a unit that is drawn: looking ahead would use up the best token")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return root(self.n, self.unit, self.depth)
        log, ahead = tree.columns, int(tree.note(0))  # units that this level has been followed
        end = {row: _end(tree, row) for row in tree.born(ahead) if log.state[row] in (OPEN, GROWN)}
        further = [row for row in end.values() if log.state[row] == OPEN]
        if ahead < self.k and further:
            grow = tuple(Grow(row, 1, self.unit) for row in sorted(further))
            return Expansion(tree.expansions, grow, note=((0, ahead + 1.0),))
        return self._level(tree, end)

    tell = grown

    def _level(self, tree: Tree, end: dict[int, int]) -> Expansion | None:
        log = tree.columns
        scored = [row for row in end if log.own[end[row]]]
        seen = sum(log.state[each] == LEAF for each in end.values())  # finished ahead: they hold no place
        places = max(0, self.n // self.m - (log.leaves - seen))
        first = {(log.parent[row], tree.step(row)): row for row in sorted(scored, reverse=True)}
        ranked = sorted(first.values(), key=lambda row: (-log.score[end[row]], row))[:places]
        close = [row for row in end if row not in ranked]
        close += [child for row in ranked for child in tree.children(row)]
        grow = tuple(self._grow(tree, row) for row in sorted(ranked))
        return Expansion(tree.expansions, grow, tuple(sorted(close)), note=((0, 0.0),)) if grow or close else None

    def _grow(self, tree: Tree, row: int) -> Grow:
        unit = self.unit if tree.columns.depth[row] < self.depth - 1 else Rollout()
        return Grow(row, self.m, unit, after=tree.columns.count[row])


def _end(tree: Tree, row: int) -> int:
    """Where the units ahead of a candidate lead."""
    while tree.columns.state[row] == GROWN and len(tree.children(row)):
        row = tree.children(row)[0]
    return row

"""Controllers that go down level by level: beams, diverse subtrees, REBASE, breadth-first thoughts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.search.control import grown, selectable
from ramify.search.tree import LEAF, OPEN, Expansion, Grow, Tree
from ramify.search.unit import Chunk, Rollout, Unit
from ramify.types import Key

__all__ = ["DVTS", "Beam", "Breadth", "Rebase", "balanced", "level", "others", "root"]


@method
class Beam:
    """Beam search (with a process reward: Snell et al., 2024). ``n / m`` prefixes live, ``m`` successors each.

    The root gets n children; of a level the n/m best go on, and at the last ``depth`` they run to their end. Finished
    prefixes leave for the bank. A place they held stays empty, unless ``refill``. Of siblings with the same tokens the
    first counts; if fewer than n/m prefixes remain, fewer go on. At the token level the unit is ``Chunk(1)`` drawn,
    or ``TopTokens(end)`` enumerated.
    """

    n: int = 16
    m: int = 4
    unit: Unit = Chunk(1)
    depth: int = 40
    refill: bool = False

    def __post_init__(self) -> None:
        _sizes(self)

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return root(self.n, self.unit, self.depth)
        born = tree.born()
        places = self.n // self.m - (0 if self.refill else tree.columns.leaves)
        kept = [(row, self.m) for row in selectable(tree, born, distinct=True)[: max(0, places)]]
        return level(tree, others(tree, born, kept), kept, self.unit, self.depth)

    tell = grown


@method
class DVTS:
    """Diverse verifier tree search (Beeching et al., 2024): ``n / m`` independent subtrees, one path each.

    Of the m successors in each subtree the best goes on, finished or not; its siblings are given up. One leaf a
    subtree is returned.
    """

    n: int = 16
    m: int = 4
    unit: Unit = Chunk(1)
    depth: int = 40

    def __post_init__(self) -> None:
        _sizes(self)

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return root(self.n, self.unit, self.depth)
        log, groups = tree.columns, dict[tuple[int, int], list[int]]()
        for row in tree.born():
            subtree = log.number[row] // self.m if log.parent[row] == 0 else 0
            groups.setdefault((log.parent[row], subtree), []).append(row)
        kept, close = list[tuple[int, int]](), list[int]()
        for group in groups.values():
            scored = [row for row in group if log.state[row] in (OPEN, LEAF) and not math.isnan(log.score[row])]
            best = max(scored, key=lambda row: log.score[row], default=-1)
            close += [row for row in group if row != best and log.state[row] in (OPEN, LEAF)]
            kept += [(best, self.m)] if best >= 0 and log.state[best] == OPEN else []
        return level(tree, close, kept, self.unit, self.depth)

    tell = grown


@method
class Rebase:
    """Reward-balanced search (Wu et al., 2024): width is allocated by a softmax over a level, greedily rounded up.

    The finished leaves are subtracted from ``width`` for good; prefixes that get nothing are given up.
    """

    width: int = 16
    temperature: float = 0.2
    unit: Unit = Chunk(1)
    depth: int = 25

    def __post_init__(self) -> None:
        require(is_whole(self.width, 1), "Rebase.width", self.width, "use a number of prefixes >= 1")
        ok = 0 < self.temperature < math.inf
        require(ok, "Rebase.temperature", self.temperature, "use a finite number > 0")
        require(is_whole(self.depth, 1), "Rebase.depth", self.depth, "use a number of levels >= 1")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return root(self.width, self.unit, self.depth)
        born = tree.born()
        rows, width = selectable(tree, born), max(0, self.width - tree.columns.leaves)
        shares = balanced([tree.columns.score[row] for row in rows], width, self.temperature)
        kept = [(row, share) for row, share in zip(rows, shares, strict=True) if share]
        return level(tree, others(tree, born, kept), kept, self.unit, self.depth)

    tell = grown


@method
class Breadth:
    """Tree of Thoughts, breadth first (Yao et al., 2023): each of ``b`` states proposes ``k`` thoughts, b are kept.

    Finished states leave for the bank and hold no place.
    """

    b: int = 5
    k: int = 4
    unit: Unit = Chunk(1)
    depth: int = 10

    def __post_init__(self) -> None:
        for name in ("b", "k", "depth"):
            require(is_whole(getattr(self, name), 1), f"Breadth.{name}", getattr(self, name), "use an integer >= 1")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return root(self.k, self.unit, self.depth)
        born = tree.born()
        kept = [(row, self.k) for row in selectable(tree, born, distinct=True)[: self.b]]
        return level(tree, others(tree, born, kept), kept, self.unit, self.depth)

    tell = grown


def balanced(scores: Sequence[float], width: int, temperature: float) -> list[int]:
    """How many children each gets: n_j = ⌈W_left e^{r_j/T} / S_left⌉, from the best down; the tail may get none.

    S_left is a sum over those still to come: subtracting from a running total would round equal shares apart.

    >>> balanced([0.9, 0.8, 0.3, 0.1], 16, 0.2), balanced([0.5, 0.5, 0.5], 4, 0.2)
    ([10, 6, 0, 0], [2, 1, 1])
    """
    if not len(scores):
        return []
    score = np.asarray(scores, dtype=np.float64)
    order = np.argsort(-score, kind="stable")
    top = score[order[0]]
    weight = np.exp((score[order] - top) / temperature) if math.isfinite(top) else np.ones(len(score))
    ahead = np.cumsum(weight[::-1])[::-1]  # S_left before each
    shares = [0] * len(scores)
    for place, own, total in zip(order.tolist(), weight.tolist(), ahead.tolist(), strict=True):
        shares[place] = min(width, math.ceil(width * (own / total))) if total else 0
        width -= shares[place]
    return shares


def root(width: int, unit: Unit, depth: int) -> Expansion:
    return Expansion(0, (Grow(0, width, unit if depth > 1 else Rollout()),))


def level(
    tree: Tree, close: Sequence[int], kept: Sequence[tuple[int, int]], unit: Unit, depth: int
) -> Expansion | None:
    """Grow the kept ones of a level, to their ends if it is the last, and give up others."""
    log = tree.columns
    grow = tuple(Grow(row, width, unit if log.depth[row] < depth - 1 else Rollout()) for row, width in sorted(kept))
    return Expansion(tree.expansions, grow, tuple(close)) if grow or close else None


def others(tree: Tree, rows: Sequence[int], kept: Sequence[tuple[int, int]]) -> list[int]:
    """The open rows of a level that are not kept."""
    chosen, state = {row for row, _ in kept}, tree.columns.state
    return [row for row in rows if state[row] == OPEN and row not in chosen]


def _sizes(beam: Beam | DVTS) -> None:
    name = type(beam).__name__
    require(is_whole(beam.m, 1), f"{name}.m", beam.m, "use a number of successors >= 1")
    require(is_whole(beam.n, beam.m) and beam.n % beam.m == 0, f"{name}.n", beam.n, "use a multiple of m")
    require(is_whole(beam.depth, 1), f"{name}.depth", beam.depth, "use a number of levels >= 1")

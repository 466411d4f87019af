"""Monte Carlo tree search. A new child is one visit worth its score, backed up to the root.

Selection goes down from the root to a prefix that has no children yet, and grows it; a finished one is visited once
more, worth its score again, at no cost. Prefixes of which nothing can come any more are passed over.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import gumbel, streams
from ramify.search.backup import Backup
from ramify.search.control import grown
from ramify.search.log import Log
from ramify.search.tree import GROWN, OPEN, Expansion, Grow, Tree
from ramify.search.unit import Chunk, Unit
from ramify.types import Key

__all__ = ["PUCT", "UCT", "GumbelHalving", "check", "ucb", "visit"]

BACKUPS = ("mean", "max")
Worth: TypeAlias = Callable[[Log, int, int], float]


def check(search: Any) -> None:
    name = type(search).__name__
    require(is_whole(search.width, 1), f"{name}.width", search.width, "use a number of children >= 1")
    require(is_whole(search.most, 1), f"{name}.most", search.most, "use a number of expansions >= 1")
    require(search.backup in BACKUPS, f"{name}.backup", search.backup, f"use one of {', '.join(BACKUPS)}")


@method
class UCT:
    """argmax Q + c √(ln n(z) / n(z, a)) (Kocsis and Szepesvári, 2006); children without a visit first, in order.

    Q is the mean of what was backed up, or its maximum. ``most`` expansions and visits; the most visited, the best
    value or any rule over the leaves may be submitted: that is the protocol's to say.
    """

    c: float = math.sqrt(2)
    width: int = 4
    unit: Unit = Chunk(1)
    most: int = 64
    backup: str = "mean"

    def __post_init__(self) -> None:
        check(self)
        require(0 <= self.c < math.inf, "UCT.c", self.c, "use a finite number >= 0")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if tree.expansions >= self.most:
            return None
        row = ucb(tree.columns, tree.columns.backup(), self.c, self.backup == "mean")
        return None if row < 0 else visit(tree, row, self.width, self.unit)

    tell = grown


@method
class PUCT:
    """argmax Q + c_p P(a) √n(z) / (1 + n(z, a)), c_p = ln((n(z) + base + 1) / base) + init (Silver et al., 2017).

    P(a) is the raw model's probability of a child's tokens, normalised over its siblings. A child without a visit is
    taken to be worth its parent's mean.
    """

    init: float = 1.25
    base: float = 19652
    width: int = 4
    unit: Unit = Chunk(1)
    most: int = 64
    backup: str = "mean"

    def __post_init__(self) -> None:
        check(self)
        require(self.base > 0, "PUCT.base", self.base, "use a number > 0")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if tree.expansions >= self.most:
            return None
        row = _descend(tree.columns, 0, self._worth)
        return None if row < 0 else visit(tree, row, self.width, self.unit)

    tell = grown

    def _worth(self, log: Log, row: int, child: int) -> float:
        n, here = log.visits[row], log.visits[child]
        weight = math.log((n + self.base + 1) / self.base) + self.init
        value = _value(log, child if here else row, self.backup)
        return value + weight * math.exp(_log_prior(log, row, child)) * math.sqrt(n) / (1 + here)


@method
class GumbelHalving:
    """Sequential halving over root children chosen by Gumbel-top-m (Danihelka et al., 2022).

    The root gets ``width`` children, of which the ``m`` with the highest g + log P go on. In each of ⌈log₂ m⌉ rounds
    the survivors share ``most`` / rounds expansions evenly, one after the other, and the worse half by
    g + log P + scale · Q is dropped. Below the root selection is PUCT's.
    """

    m: int = 4
    width: int = 8
    unit: Unit = Chunk(1)
    most: int = 64
    scale: float = 1.0
    below: PUCT = PUCT()

    def __post_init__(self) -> None:
        ok = is_whole(self.width, 1) and is_whole(self.m, 1) and self.m <= self.width
        require(ok, "GumbelHalving.m", self.m, "use a number of root children from 1 to width")
        require(is_whole(self.most, 1), "GumbelHalving.most", self.most, "use a number of expansions >= 1")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            return Expansion(0, (Grow(0, self.width, self.unit),))
        log, done = tree.columns, tree.expansions - 1
        start = self._start(tree, key)
        held = tree.last.hold if tree.last else ()
        arms = [row for row, _ in held] if done else sorted(start, key=lambda row: -start[row])[: self.m]
        arms = [row for row in arms if log.alive[row]]
        if done >= self.most or not arms:
            return None
        rounds = max(1, math.ceil(math.log2(self.m)))
        ends = [self.most * (each + 1) // rounds for each in range(rounds)]
        if done in ends:
            arms = self._halved(log, arms, start)
        begun = max([0, *(end for end in ends if end <= done)])
        row = _descend(log, arms[(done - begun) % len(arms)], self.below._worth)
        asked = visit(tree, row, self.below.width, self.unit)
        return dataclasses.replace(asked, hold=tuple((arm, 1) for arm in arms))  # who survives is in the tree

    tell = grown

    def _start(self, tree: Tree, key: Key) -> dict[int, float]:
        """g + log P of the root's children, by row."""
        log, rows = tree.columns, [row for row in tree.children(0) if tree.columns.alive[row]]
        noise = gumbel(streams([key._replace(stream="gumbel")])[0], 0, np.array([log.number[row] for row in rows]))
        return {row: float(g) + _log_prior(log, 0, row) for row, g in zip(rows, noise, strict=True)}

    def _halved(self, log: Log, arms: list[int], start: dict[int, float]) -> list[int]:
        worth = {row: start[row] + self.scale * _value(log, row, self.below.backup) for row in arms}
        return sorted(arms, key=lambda row: -worth[row])[: max(1, (len(arms) + 1) // 2)]


def ucb(log: Log, back: Backup, c: float, mean: bool) -> int:
    """The row without children that Q + c √(ln n(z) / n(z, a)) leads to; -1 where nothing is alive."""
    visits, total, best, alive, state, row = back.visits, back.total, back.best, log.alive, log.state, 0
    while state[row] == GROWN:
        found, highest, seen = -1, -math.inf, math.log(max(1, visits[row]))
        for child in log.kids(row):
            if not alive[child]:
                continue
            n = visits[child]
            if not n:
                found = child
                break
            worth = (total[child] / n if mean else best[child]) + c * math.sqrt(seen / n)
            if worth > highest or found < 0:
                found, highest = child, worth
        if found < 0:
            return -1
        row = found
    return row


def _descend(log: Log, row: int, worth: Worth) -> int:
    """The row without children that selection reaches; -1 where nothing is alive."""
    if not log.alive[row]:
        return -1
    while log.state[row] == GROWN:
        children = [child for child in log.kids(row) if log.alive[child]]
        row = max(children, key=lambda child: worth(log, row, child))
    return row


def _value(log: Log, row: int, backup: str) -> float:
    if not log.visits[row]:
        return 0.0
    return log.total[row] / log.visits[row] if backup == "mean" else log.best[row]


def _log_prior(log: Log, row: int, child: int) -> float:
    """log of a child's share in the probability of all its siblings' tokens; even shares where none is known."""
    siblings = [log.logprob[each] for each in log.kids(row)]
    top = max(siblings)
    if not math.isfinite(top):
        return -math.log(len(siblings))
    return log.logprob[child] - top - math.log(sum(math.exp(each - top) for each in siblings))


def visit(tree: Tree, row: int, width: int, unit: Unit) -> Expansion:
    is_open = tree.columns.state[row] == OPEN
    return Expansion(tree.expansions, (Grow(row, width if is_open else 0, unit if is_open else None),))

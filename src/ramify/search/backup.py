"""Visits, totals and maxima of everything below a prefix, brought up to date when somebody reads them.

    visits(z) = n(z) + Σ_c visits(c)      total(z) = n(z) v(z) + Σ_c total(c)      best(z) = max(v(z), max_c best(c))

over the children c, n(z) the visits of z itself. They are functions of the tree and not of its history: the sum always
runs from the last child to the first, so one path mended after every expansion and one sweep over a million rows at the
end have the same bits.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ramify.search.log import Log

__all__ = ["Backup", "Value", "plain", "square"]

Value: TypeAlias = Callable[["Log", int, float], float]
"""``(log, row, worth of its parent) -> worth`` of a visit."""


def plain(log: Log, row: int, above: float) -> float:
    """A visit is worth its score."""
    return log.score[row]


def square(log: Log, row: int, above: float) -> float:
    return log.score[row] ** 2


class Backup:
    """Columns ``[rows]`` of visits, totals and maxima, for visits that are worth a ``value``."""

    def __init__(self, value: Value) -> None:
        self.value = value
        self.worth = array("d")  # of one visit to the prefix itself; 0 where it has no score
        self.visits, self.total, self.best = array("q"), array("d"), array("d")
        self.expansions = 0  # of the log, that are in

    def update(self, log: Log) -> None:
        """Mend the paths that grew, or sweep over all rows where that is less work."""
        if self.expansions == len(log.asked) and self.visits:
            return
        new = len(log.parent) - len(self.worth)
        for row in range(len(self.worth), len(log.parent)):
            above = self.worth[log.parent[row]] if row else 0.0
            self.worth.append(self.value(log, row, above) if log.own[row] else 0.0)
            self._enter(log, row)
        grown = [grow.node for number in range(self.expansions, len(log.asked)) for grow in log.asked[number].grow]
        self.expansions = len(log.asked)
        if sum(log.depth[row] + 1 for row in grown) > len(log.parent) - new:
            self._sweep(log)
        else:
            for row in grown:
                self._mend(log, row)

    def _enter(self, log: Log, row: int) -> None:
        """A row as if nothing were below it."""
        own, worth = log.own[row], self.worth[row]
        self.visits.append(own)
        self.total.append(own * worth)
        self.best.append(worth if own else -math.inf)

    def _mend(self, log: Log, row: int) -> None:
        """The path from a row to the root."""
        visits, total, best = self.visits, self.total, self.best
        while row >= 0:
            n, worth = log.own[row], self.worth[row]
            amount, most = n * worth, worth if n else -math.inf
            for child in reversed(log.kids(row)):
                n += visits[child]
                amount += total[child]
                if best[child] > most:
                    most = best[child]
            visits[row], total[row], best[row] = n, amount, most
            row = log.parent[row]

    def _sweep(self, log: Log) -> None:
        """All rows, from the last: a child comes before its parent."""
        self.visits, self.total, self.best = array("q"), array("d"), array("d")
        for row in range(len(log.parent)):
            self._enter(log, row)
        visits, total, best, parent = self.visits, self.total, self.best, log.parent
        for row in range(len(parent) - 1, 0, -1):
            up = parent[row]
            visits[up] += visits[row]
            total[up] += total[row]
            if best[row] > best[up]:
                best[up] = best[row]

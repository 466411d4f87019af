"""The log of a search: what was asked for and what came of it, with the columns that controllers read beside it.

Columns are appended to and never copied. What changes later (states, what is alive, visits) is written in place; a tree
that needs an older state of them replays its part of the log.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ramify.errors import require
from ramify.search.backup import Backup, Value, plain
from ramify.search.unit import Unit
from ramify.types import Leaf

__all__ = ["CUT", "GROWN", "LEAF", "OPEN", "PRUNED", "Child", "Children", "Expansion", "Grow", "Log"]

# What became of a prefix: not looked at yet; has children; finished; proven hopeless by a sound check; given up by a
# controller, which may be wrong.
OPEN, GROWN, LEAF, PRUNED, CUT = range(5)

Order: TypeAlias = Callable[["Log", int], tuple[float, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class Grow:
    """Ask for ``width`` children of a prefix. Width 0 visits it once more: its score is backed up again.

    A prefix that has children already gets more if ``after`` says how many it has; they are numbered from there on.
    """

    node: int
    width: int
    unit: Unit | None = None
    after: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Expansion:
    """What a controller asks for next: prefixes to grow, prefixes to give up, and what it wants to find again.

    A prefix is given up with everything below it.
    """

    number: int  # of expansions before it: what makes telling it twice harmless
    grow: tuple[Grow, ...] = ()
    close: tuple[int, ...] = ()
    hold: tuple[tuple[int, int], ...] = ()  # (finished prefix, multiplicity) of a population
    note: tuple[tuple[int, float], ...] = ()  # (prefix, number) that the controller reads again with ``tree.note``


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Child:
    """A new prefix: its parent's with ``tokens`` more."""

    tokens: tuple[int, ...]
    score: float = math.nan  # S(z); NaN is missing, and never selected
    log_q: float = math.nan  # of these tokens under the proposal
    logprob: float = math.nan  # of these tokens under the raw model
    ended: str = ""  # eos, length, ...; empty for a prefix that goes on
    kept: bool = True  # False: a sound check proved that nothing good follows
    leaf: Leaf | None = None  # the record of a finished one


Children: TypeAlias = Mapping[int, Sequence[Child]]


class Log:
    """The expansions, and the columns after all of them. Row 0 is the empty prefix; children follow their parents."""

    def __init__(self) -> None:
        self.asked: list[Expansion] = []
        self.rows = array("q", [1])  # rows there were before each expansion, and now
        self.parts: dict[tuple[int, int], int] = {}  # (expansion, place): children, where they are not as many as asked
        self.parent, self.number, self.depth = array("q", [-1]), array("q", [0]), array("q", [0])
        self.score, self.log_q, self.logprob = array("d", [math.nan]), array("d", [0.0]), array("d", [0.0])
        self.step_log_q, self.step_logprob = array("d", [0.0]), array("d", [0.0])  # of a row's own tokens
        self.own = array("q", [0])  # visits of a prefix itself: none without a score
        self.state = array("b", [OPEN])
        self.first, self.count, self.live = array("q", [0]), array("q", [0]), array("q", [0])  # children; those alive
        self.more: dict[int, list[int]] = {}  # children of prefixes that grew more than once: their rows lie apart
        self.alive = array("b", [1])  # 0: pruned, cut, or grown with no child alive
        self.start, self.text = array("q", [0, 0]), array("q")  # tokens of row i: text[start[i]:start[i + 1]]
        self.leaves, self.best_leaf = 0, -math.inf  # how many are finished and kept; the best score of a finished one
        self.leaf: dict[int, Leaf] = {}
        self.ended: dict[int, str] = {}
        self.note: dict[int, float] = {}
        self._heaps: dict[Order, tuple[list[tuple[float, ...]], int]] = {}
        self._backups: dict[Value, Backup] = {}

    # --------------------------------------------------------------------------------------------------------- writing

    def enter(self, asked: Expansion, children: Children) -> None:
        self._check(asked)  # everything before anything is written: the log is shared
        for row in asked.close:
            self._bury(row)
            self._cut(row)
        for place, grow in enumerate(asked.grow):
            if grow.width:
                born = children[grow.node]
                self._grow(grow.node, born)
                if len(born) != grow.width:
                    self.parts[len(self.asked), place] = len(born)
            else:
                self.own[grow.node] += not math.isnan(self.score[grow.node])
        if asked.note:
            self.note.update(asked.note)
        self.asked.append(asked)
        self.rows.append(len(self.parent))

    def _check(self, asked: Expansion) -> None:
        size, closed = len(self.parent), set(asked.close)
        for row in closed:
            ok = 0 < row < size and self.state[row] in (OPEN, GROWN, LEAF)
            require(ok, "Expansion.close", row, "give up prefixes that are open, grown or finished")
        for grow in asked.grow:
            ok = 0 <= grow.node < size and grow.node not in closed
            wanted = GROWN if grow.after else OPEN if grow.width else LEAF
            ok = ok and self.state[grow.node] == wanted and self.count[grow.node] == grow.after
            if not ok or (grow.after and not grow.width):
                remedy = "grow prefixes that are open, or grown with `after` their children; visit finished ones again"
                require(False, "Expansion.grow", grow, remedy)

    def _grow(self, node: int, children: Sequence[Child]) -> None:
        row, before, many = len(self.parent), self.count[node], len(children)
        if not before:
            self.state[node], self.first[node] = GROWN, row
        elif many:
            self.more[node] = [*self.kids(node), *range(row, row + many)]
        self.count[node] = before + many
        self._append(node, before, children)
        fresh = sum(child.kept for child in children)
        self.live[node] += fresh
        if fresh and not self.alive[node]:
            self._revive(node)
        elif not self.live[node]:
            self._bury(node)

    def _append(self, node: int, before: int, children: Sequence[Child]) -> None:
        """The rows of new children. A column at a time: this is where a search without a model spends its time."""
        row, many = len(self.parent), len(children)
        none = (0,) * many
        self.parent.extend((node,) * many)
        self.number.extend(range(before, before + many))
        self.depth.extend((self.depth[node] + 1,) * many)
        score = [child.score for child in children]
        self.score.extend(score)
        self.own.extend([not math.isnan(each) for each in score])  # a missing score is no visit
        log_q, logprob = [child.log_q for child in children], [child.logprob for child in children]
        self.step_log_q.extend(log_q)
        self.step_logprob.extend(logprob)
        self.log_q.extend([self.log_q[node] + each for each in log_q])
        self.logprob.extend([self.logprob[node] + each for each in logprob])
        self.state.extend([PRUNED if not child.kept else LEAF if child.ended else OPEN for child in children])
        self.alive.extend([child.kept for child in children])
        for column in (self.first, self.count, self.live):
            column.extend(none)
        for place, child in enumerate(children, row):
            self.text.extend(child.tokens)
            self.start.append(len(self.text))
            if child.ended:
                self._finish(place, child)

    def _finish(self, row: int, child: Child) -> None:
        self.ended[row] = child.ended
        if child.kept:
            self.leaves += 1
            self.best_leaf = max(self.best_leaf, child.score)  # a NaN leaves it alone
        if child.leaf is not None:
            self.leaf[row] = child.leaf

    def _cut(self, row: int) -> None:
        """Give up a prefix, with everything below it."""
        below = [row]
        for row in below:  # grows while it is walked
            if self.state[row] in (OPEN, GROWN, LEAF):
                self.leaves -= self.state[row] == LEAF
                self.state[row], self.alive[row], self.live[row] = CUT, 0, 0
                below += self.kids(row)

    def _bury(self, row: int) -> None:
        """Nothing more can come of a prefix; then perhaps of its parent."""
        while row >= 0 and self.alive[row]:
            self.alive[row] = 0
            row = self.parent[row]
            if row >= 0:
                self.live[row] -= 1
                if self.live[row]:
                    return

    def _revive(self, row: int) -> None:
        """Something can come of a prefix again; then of its parent too."""
        while row >= 0 and not self.alive[row]:
            self.alive[row] = 1
            row = self.parent[row]
            if row >= 0:
                self.live[row] += 1

    # --------------------------------------------------------------------------------------------------------- reading

    def born(self, number: int) -> dict[int, range]:
        """The rows of the children of an expansion, by the prefix that they prolong."""
        row, found = self.rows[number], {}
        for place, grow in enumerate(self.asked[number].grow):
            many = self.parts.get((number, place), grow.width)
            found[grow.node], row = range(row, row + many), row + many
        return found

    def told(self, number: int) -> dict[int, tuple[Child, ...]]:
        """The children of an expansion as they were told. They are kept as columns: objects would have to be walked."""
        return {node: tuple(map(self._child, rows)) for node, rows in self.born(number).items()}

    def _child(self, row: int) -> Child:
        return Child(
            tuple(self.text[self.start[row] : self.start[row + 1]]),
            self.score[row],
            self.step_log_q[row],
            self.step_logprob[row],
            self.ended.get(row, ""),
            self.state[row] != PRUNED,
            self.leaf.get(row),
        )

    def kids(self, row: int) -> Sequence[int]:
        """The rows of a prefix's children, in order."""
        if row in self.more:
            return self.more[row]
        return range(self.first[row], self.first[row] + self.count[row])

    def backup(self, value: Value = plain) -> Backup:
        """What every visit below a prefix was worth, up to date. A search that never asks pays nothing for it."""
        found = self._backups.get(value)
        if found is None:
            found = self._backups[value] = Backup(value)
        found.update(self)
        return found

    @property
    def visits(self) -> array[int]:
        return self.backup().visits

    @property
    def total(self) -> array[float]:
        return self.backup().total

    @property
    def best(self) -> array[float]:
        return self.backup().best

    def heap(self, order: Order) -> list[tuple[float, ...]]:
        """The open prefixes with a score as a heap by ``order(log, row)``, whose last entry is the row.

        A prefix that is no longer open never is again, so what is popped here stays popped.
        """
        heap, seen = self._heaps.get(order, ([], 1))
        for row in range(seen, len(self.parent)):
            if self.state[row] == OPEN and self.own[row]:
                heapq.heappush(heap, order(self, row))
        self._heaps[order] = heap, len(self.parent)
        while heap and self.state[int(heap[0][-1])] != OPEN:
            heapq.heappop(heap)
        return heap

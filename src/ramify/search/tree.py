"""The tree of a search: an immutable value over a persistent log of expansions.

A tree is a log and how much of it counts. ``told`` on the newest tree appends to the log in place, and the columns
that controllers read (parent, score, visits, ...) are kept up to date beside it, so nothing is copied. An older tree
still knows its own length: it stays whole, and if it is read or grown after a newer one was made, it replays its part
of the log once and goes on with that.

An expansion is a batch. Its parts may be told in any order and more than once: they wait, and are entered when all of
them are there, in the order of the batch. Rows are therefore numbered the same whatever finished first.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ramify.errors import require
from ramify.search.unit import Unit
from ramify.types import SAMPLED, Leaf, Prefix, Question

__all__ = ["CUT", "GROWN", "LEAF", "OPEN", "PRUNED", "Child", "Expansion", "Grow", "Tree"]

# What became of a prefix: not looked at yet; has children; finished; proven hopeless by a sound check; given up by a
# controller, which may be wrong.
OPEN, GROWN, LEAF, PRUNED, CUT = range(5)

Children: TypeAlias = Mapping[int, Sequence["Child"]]
Order: TypeAlias = Callable[[float, int, int], tuple[float, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class Grow:
    """Ask for ``width`` children of a prefix. Width 0 visits it once more: its score is backed up again."""

    node: int
    width: int
    unit: Unit | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Expansion:
    """What a controller asks for next: prefixes to grow, prefixes to give up, and how often others are held."""

    number: int  # of expansions before it: what makes telling it twice harmless
    grow: tuple[Grow, ...] = ()
    close: tuple[int, ...] = ()
    hold: tuple[tuple[int, int], ...] = ()  # (finished prefix, multiplicity) of a population


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


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """An immutable search tree. Row 0 is the empty prefix; children of one prefix have consecutive rows.

    >>> tree = Tree()
    >>> asked = Expansion(0, (Grow(0, 2),))
    >>> after = tree.told(asked, {0: [Child((7,), score=0.5), Child((8,), score=1.0, ended="eos")]})
    >>> len(tree), len(after), after.column("score").tolist()[1:], after.visits(0), after.told(asked, {}) is after
    (1, 3, [0.5, 1.0], 2, True)
    """

    _log: _Log = dataclasses.field(default_factory=lambda: _Log())
    expansions: int = 0
    waiting: Mapping[int, tuple[Child, ...]] = dataclasses.field(default_factory=dict)  # of the batch under way

    # --------------------------------------------------------------------------------------------------------- growing

    def told(self, asked: Expansion, children: Children) -> Tree:
        """The tree after some or all parts of an expansion have finished. What was told before is passed over."""
        if asked.number < self.expansions:
            before = self._log.entries[asked.number][0]
            require(before == asked, "Expansion", asked, f"expansion {asked.number} of this tree is another")
            return self
        require(asked.number == self.expansions, "Expansion.number", asked.number, f"this tree is at {self.expansions}")
        wanted = {grow.node: grow for grow in asked.grow}
        require(len(wanted) == len(asked.grow), "Expansion.grow", asked.grow, "name a prefix once")
        require(
            children.keys() <= wanted.keys(), "children", sorted(children), f"this expansion grows {sorted(wanted)}"
        )
        fresh = {node: tuple(born) for node, born in children.items() if node not in self.waiting}
        waiting = {**self.waiting, **fresh}
        if any(grow.width and grow.node not in waiting for grow in asked.grow):
            return dataclasses.replace(self, waiting=waiting) if fresh else self
        log = self.columns
        log.enter(asked, waiting)
        return Tree(log, self.expansions + 1)

    def missing(self, asked: Expansion) -> tuple[Grow, ...]:
        """The parts of an expansion that have not been told yet."""
        return tuple(grow for grow in asked.grow if grow.width and grow.node not in self.waiting)

    @property
    def columns(self) -> _Log:
        """The log with columns as they are in this tree. For reading: what is written here is lost or worse."""
        if len(self._log.entries) != self.expansions:
            mine = _Log()
            for asked, children in self._log.entries[: self.expansions]:
                mine.enter(asked, children)
            object.__setattr__(self, "_log", mine)
        return self._log

    def __reduce__(self) -> Any:
        return _restored, (tuple(self._log.entries[: self.expansions]), dict(self.waiting))

    # --------------------------------------------------------------------------------------------------------- reading

    def __len__(self) -> int:
        return len(self.columns.parent)

    def column(self, name: str) -> np.ndarray:
        """A copy of a column ``[rows]``: parent, number, depth, score, log_q, logprob, visits, total, best, state."""
        return np.array(getattr(self.columns, name))

    def visits(self, row: int) -> int:
        return self.columns.visits[row]

    @property
    def last(self) -> Expansion | None:
        """The latest expansion that was entered."""
        return self._log.entries[self.expansions - 1][0] if self.expansions else None

    def children(self, row: int) -> range:
        log = self.columns
        return range(log.first[row], log.first[row] + log.count[row])

    def born(self) -> list[int]:
        """The rows of the latest expansion's children, in order."""
        return [row for grow in (self.last.grow if self.last else ()) if grow.width for row in self.children(grow.node)]

    def path(self, row: int) -> tuple[int, ...]:
        """The child numbers from the root: the name of a prefix, and of its children's random streams."""
        log, found = self.columns, []
        while row:
            found.append(log.number[row])
            row = log.parent[row]
        return tuple(reversed(found))

    def tokens(self, row: int) -> tuple[int, ...]:
        """The whole prefix."""
        log, parts = self.columns, []
        while row:
            parts.append(log.text[log.start[row] : log.start[row + 1]])
            row = log.parent[row]
        return tuple(token for part in reversed(parts) for token in part)

    def prefix(self, row: int, question: Question) -> Prefix:
        log, tokens = self.columns, self.tokens(row)
        return Prefix(question, tokens, (SAMPLED,) * len(tokens), log.log_q[row], log.logprob[row])

    def rows(self, state: int) -> list[int]:
        """The rows in a state, in order."""
        return [row for row, each in enumerate(self.columns.state) if each == state]

    def record(self, row: int) -> Leaf | None:
        return self.columns.leaf.get(row)

    def ended(self, row: int) -> str:
        return self.columns.ended.get(row, "")

    @property
    def cut_mass(self) -> float:
        """q(prefixes that a controller gave up), each once: what unsound pruning took away. NaN where unknown."""
        log, mass = self.columns, dict[tuple[int, ...], float]()
        for row in self.rows(CUT):
            mass[self.tokens(row)] = math.exp(log.log_q[row])
        return sum(mass.values())


class _Log:
    """The entries, and the columns after all of them: append-only but for visits, totals, states and what is alive."""

    def __init__(self) -> None:
        self.entries: list[tuple[Expansion, Children]] = []
        self.parent, self.number, self.depth = array("q", [-1]), array("q", [0]), array("q", [0])
        self.score, self.log_q, self.logprob = array("d", [math.nan]), array("d", [0.0]), array("d", [0.0])
        self.visits, self.total, self.best = array("q", [0]), array("d", [0.0]), array("d", [-math.inf])
        self.state = array("b", [OPEN])
        self.first, self.count, self.live = array("q", [0]), array("q", [0]), array("q", [0])  # children; those alive
        self.alive = array("b", [1])  # 0: pruned, cut, or grown with no child alive
        self.start, self.text = array("q", [0, 0]), array("q")  # tokens of row i: text[start[i]:start[i + 1]]
        self.leaves, self.best_leaf = 0, -math.inf  # how many are finished and kept; the best score of a finished one
        self.leaf: dict[int, Leaf] = {}
        self.ended: dict[int, str] = {}
        self._heaps: dict[Order, tuple[list[tuple[float, ...]], int]] = {}

    def enter(self, asked: Expansion, children: Children) -> None:
        self._check(asked)  # everything before anything is written: the log is shared
        for row in asked.close:
            self.leaves -= self.state[row] == LEAF
            self.state[row] = CUT
            self._bury(row)
        for grow in asked.grow:
            if grow.width:
                self._grow(grow.node, children[grow.node])
            else:
                self._back_up(grow.node, self.score[grow.node])
        self.entries.append((asked, {grow.node: tuple(children.get(grow.node, ())) for grow in asked.grow}))

    def _check(self, asked: Expansion) -> None:
        size, closed = len(self.parent), set(asked.close)
        for row in closed:
            ok = 0 < row < size and self.state[row] in (OPEN, LEAF)
            require(ok, "Expansion.close", row, "give up prefixes that are open or finished")
        for grow in asked.grow:
            ok = 0 <= grow.node < size and grow.node not in closed
            ok = ok and (self.state[grow.node] == OPEN if grow.width else self.state[grow.node] == LEAF)
            require(ok, "Grow.node", grow.node, "grow prefixes that are open, and visit finished ones again")

    def _grow(self, node: int, children: Sequence[Child]) -> None:
        self.state[node], self.first[node], self.count[node] = GROWN, len(self.parent), len(children)
        self.live[node] = sum(child.kept for child in children)
        for number, child in enumerate(children):
            self._append(node, number, child)
        if not self.live[node]:
            self._bury(node)

    def _append(self, node: int, number: int, child: Child) -> None:
        row = len(self.parent)
        self.parent.append(node)
        self.number.append(number)
        self.depth.append(self.depth[node] + 1)
        self.score.append(child.score)
        self.log_q.append(self.log_q[node] + child.log_q)
        self.logprob.append(self.logprob[node] + child.logprob)
        self.visits.append(0)
        self.total.append(0.0)
        self.best.append(-math.inf)
        self.state.append(PRUNED if not child.kept else LEAF if child.ended else OPEN)
        self.alive.append(child.kept)
        for column in (self.first, self.count, self.live):
            column.append(0)
        self.text.extend(child.tokens)
        self.start.append(len(self.text))
        if child.ended:
            self.ended[row] = child.ended
        if child.ended and child.kept:
            self.leaves += 1
            self.best_leaf = max(self.best_leaf, child.score)  # a NaN leaves it alone
        if child.leaf is not None:
            self.leaf[row] = child.leaf
        self._back_up(row, child.score)

    def _back_up(self, row: int, value: float) -> None:
        """One more visit worth ``value``, from a prefix up to the root. A missing score is no visit."""
        if math.isnan(value):
            return
        parent, visits, total, best = self.parent, self.visits, self.total, self.best
        while row >= 0:
            visits[row] += 1
            total[row] += value
            if value > best[row]:
                best[row] = value
            row = parent[row]

    def _bury(self, row: int) -> None:
        """Nothing more can come of a prefix; then perhaps of its parent."""
        while row >= 0 and self.alive[row]:
            self.alive[row] = 0
            row = self.parent[row]
            if row >= 0:
                self.live[row] -= 1
                if self.live[row]:
                    return

    def heap(self, order: Order) -> list[tuple[float, ...]]:
        """The open prefixes with a score as a heap by ``order(score, depth, row)``, whose last entry is the row.

        A prefix that is no longer open never is again, so what is popped here stays popped.
        """
        heap, seen = self._heaps.get(order, ([], 1))
        for row in range(seen, len(self.parent)):
            if self.state[row] == OPEN and not math.isnan(self.score[row]):
                heapq.heappush(heap, order(self.score[row], self.depth[row], row))
        self._heaps[order] = heap, len(self.parent)
        while heap and self.state[int(heap[0][-1])] != OPEN:
            heapq.heappop(heap)
        return heap


def _restored(entries: Sequence[tuple[Expansion, Children]], waiting: Mapping[int, tuple[Child, ...]]) -> Tree:
    log = _Log()
    for asked, children in entries:
        log.enter(asked, children)
    return Tree(log, len(entries), waiting)

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
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ramify.errors import require
from ramify.search.log import CUT, GROWN, LEAF, OPEN, PRUNED, Child, Children, Expansion, Grow, Log
from ramify.types import SAMPLED, Leaf, Prefix, Question

__all__ = ["CUT", "GROWN", "LEAF", "OPEN", "PRUNED", "Child", "Children", "Expansion", "Grow", "Tree"]


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """An immutable search tree. Row 0 is the empty prefix.

    >>> tree = Tree()
    >>> asked = Expansion(0, (Grow(0, 2),))
    >>> after = tree.told(asked, {0: [Child((7,), score=0.5), Child((8,), score=1.0, ended="eos")]})
    >>> len(tree), len(after), after.column("score").tolist()[1:], after.visits(0), after.told(asked, {}) is after
    (1, 3, [0.5, 1.0], 2, True)
    """

    _log: Log = dataclasses.field(default_factory=lambda: Log())
    expansions: int = 0
    waiting: Mapping[int, tuple[Child, ...]] = dataclasses.field(default_factory=dict)  # of the batch under way

    # --------------------------------------------------------------------------------------------------------- growing

    def told(self, asked: Expansion, children: Children) -> Tree:
        """The tree after some or all parts of an expansion have finished. What was told before is passed over."""
        if asked.number != self.expansions:
            return self._again(asked)
        wanted = {grow.node for grow in asked.grow}
        if len(wanted) != len(asked.grow):
            require(False, "Expansion.grow", asked.grow, "name a prefix once")
        if not children.keys() <= wanted:
            require(False, "children", sorted(children), f"this expansion grows {sorted(wanted)}")
        fresh = {node: tuple(born) for node, born in children.items() if node not in self.waiting}
        waiting = {**self.waiting, **fresh} if self.waiting else fresh
        if any(grow.width and grow.node not in waiting for grow in asked.grow):
            return dataclasses.replace(self, waiting=waiting) if fresh else self
        log = self.columns
        log.enter(asked, waiting)
        return Tree(log, self.expansions + 1)

    def _again(self, asked: Expansion) -> Tree:
        """The same tree, if that expansion is one of those in it."""
        ok = asked.number < self.expansions
        require(ok, "Expansion.number", asked.number, f"this tree is at {self.expansions}")
        before = self._log.asked[asked.number]
        require(before == asked, "Expansion", asked, f"expansion {asked.number} of this tree is another")
        return self

    def missing(self, asked: Expansion) -> tuple[Grow, ...]:
        """The parts of an expansion that have not been told yet."""
        return tuple(grow for grow in asked.grow if grow.width and grow.node not in self.waiting)

    @property
    def columns(self) -> Log:
        """The log with columns as they are in this tree. For reading: what is written here is lost or worse."""
        if len(self._log.asked) != self.expansions:
            mine = Log()
            for asked, children in self._entries():
                mine.enter(asked, children)
            object.__setattr__(self, "_log", mine)
        return self._log

    def __reduce__(self) -> Any:
        return _restored, (tuple(self._entries()), dict(self.waiting))

    def _entries(self) -> Iterator[tuple[Expansion, Children]]:
        """What was asked for and told, from the beginning."""
        return ((self._log.asked[number], self._log.told(number)) for number in range(self.expansions))

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
        return self._log.asked[self.expansions - 1] if self.expansions else None

    def children(self, row: int) -> Sequence[int]:
        return self.columns.kids(row)

    def born(self, back: int = 0) -> list[int]:
        """The rows of the latest expansion's children, in order; or those of the one ``back`` before it."""
        number = self.expansions - 1 - back
        return [] if number < 0 else list(range(self._log.rows[number], self._log.rows[number + 1]))

    def note(self, row: int, default: float = 0.0) -> float:
        """The number that the controller noted last at a prefix."""
        return self.columns.note.get(row, default)

    def path(self, row: int) -> tuple[int, ...]:
        """The child numbers from the root: the name of a prefix, and of its children's random streams."""
        log, found = self.columns, []
        while row:
            found.append(log.number[row])
            row = log.parent[row]
        return tuple(reversed(found))

    def step(self, row: int) -> tuple[int, ...]:
        """What a prefix has beyond its parent's."""
        log = self.columns
        return tuple(log.text[log.start[row] : log.start[row + 1]])

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
        """q(prefixes that a controller gave up): what unsound pruning took away. NaN where unknown.

        Each counts once, and not below another; one that was also drawn by a sibling that is kept is not lost.
        """
        log = self.columns
        kept = {self.tokens(row) for row in range(len(self)) if log.state[row] in (OPEN, GROWN, LEAF)}
        cut = {self.tokens(row): math.exp(log.log_q[row]) for row in self.rows(CUT)}
        lost = {tokens: mass for tokens, mass in cut.items() if tokens not in kept}
        first = [tokens for tokens in lost if not any(tokens[:n] in lost for n in range(len(tokens)))]
        return sum((lost[tokens] for tokens in first), 0.0)


def _restored(entries: Sequence[tuple[Expansion, Children]], waiting: Mapping[int, tuple[Child, ...]]) -> Tree:
    log = Log()
    for asked, children in entries:
        log.enter(asked, children)
    return Tree(log, len(entries), waiting)

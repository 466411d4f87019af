"""Controllers: from a tree to the expansion it should have next.

A controller is a frozen value with ``ask(tree, key, left)`` and ``tell(tree, asked, children)``. Both are pure: what a
controller knows is in the tree. ``ask`` on a tree whose latest expansion is only partly told gives that expansion
again. Scores may be of any kind; a prefix without one is never selected, and ties go to the earliest.

A controller that knows more about its leaves than score, visits and multiplicity names it in ``layers``, and says it in
``layer(name, tree, rows)``: a rule of the protocol may then read it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from ramify.search.tree import OPEN, Children, Expansion, Tree
from ramify.types import Key

__all__ = ["Controller", "Layered", "grown", "selectable"]


class Controller(Protocol):
    """What every controller is."""

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        """The next expansion, or None when the search is over. ``left`` is what remains of the budget."""

    def tell(self, tree: Tree, asked: Expansion, children: Children) -> Tree:
        """The tree with children by the prefix that they prolong; of all of an expansion or of a part of it."""


class Layered(Controller, Protocol):
    """A controller with something to say about its leaves."""

    @property
    def layers(self) -> tuple[str, ...]:
        """Names beside ``score``, ``visits`` and ``multiplicity``."""

    def layer(self, name: str, tree: Tree, rows: Sequence[int]) -> list[float]:
        """What it says about finished prefixes; NaN before it knows."""


def grown(self: object, tree: Tree, asked: Expansion, children: Children) -> Tree:
    """The ``tell`` of every controller here: a tree keeps the books itself."""
    return tree.told(asked, children)


def selectable(tree: Tree, rows: Sequence[int], distinct: bool = False) -> list[int]:
    """The open rows with a score, the best first. ``distinct`` keeps the first of siblings with the same tokens."""
    log, seen, found = tree.columns, set[tuple[int, tuple[int, ...]]](), list[int]()
    for row in rows:
        if log.state[row] != OPEN or math.isnan(log.score[row]):
            continue
        name = (log.parent[row], tree.step(row))
        if not distinct or name not in seen:
            found.append(row)
            seen.add(name)
    return sorted(found, key=lambda row: -log.score[row])

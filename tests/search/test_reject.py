"""Giving up trajectories on the way, and stopping at a leaf that is good enough: by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from ramify.errors import InvalidValue
from ramify.search import BestFirst, Child, Controller, DepthFirst, Expansion, Restarts, SpeculativeRejection, Tree
from ramify.search.tree import CUT
from ramify.types import Key

KEY = Key("run", "q", 0, "control")


def told(controller: Controller, tree: Tree, scores: Sequence[float], ended: Sequence[int] = ()) -> Tree:
    """The next expansion, whose children have these scores, one after the other."""
    asked, left, children = controller.ask(tree, KEY, math.inf), list(scores), {}
    assert asked is not None
    for grow in asked.grow:
        mine, left = left[: grow.width], left[grow.width :]
        start = len(scores) - len(left) - len(mine)
        children[grow.node] = [
            Child((i,), score, -1.0, -1.0, ended="eos" if start + i in ended else "") for i, score in enumerate(mine)
        ]
    assert not left
    return controller.tell(tree, asked, children)


def grown(asked: Expansion | None) -> list[tuple[int, int]]:
    return [] if asked is None else [(grow.node, grow.width) for grow in asked.grow]


def test_the_worse_are_given_up_at_the_declared_steps_only() -> None:
    controller = SpeculativeRejection(n=5, at=(2,), keep=0.5)
    tree = told(controller, Tree(), (0.1, 0.2, 0.3, 0.4, 0.5))
    assert grown(controller.ask(tree, KEY, math.inf)) == [(row, 1) for row in range(1, 6)], "nobody goes at step 1"
    tree = told(controller, tree, (0.9, 0.1, math.nan, 0.8, 0.7), ended=(4,))
    asked = controller.ask(tree, KEY, math.inf)
    assert grown(asked) == [(6, 1), (9, 1)], "half of the four that go on; a finished one leaves for the bank"
    assert asked is not None
    assert asked.close == (7, 8)
    tree = told(controller, tree, (0.1, 0.2), ended=(0, 1))
    assert controller.ask(tree, KEY, math.inf) is None
    assert tree.rows(CUT) == [7, 8]
    assert tree.columns.leaves == 3


def test_a_share_is_rounded_up_and_a_missing_score_is_never_kept() -> None:
    controller = SpeculativeRejection(n=3, at=(1,), keep=0.01)
    tree = told(controller, Tree(), (0.2, math.nan, 0.3))
    assert grown(controller.ask(tree, KEY, math.inf)) == [(3, 1)]
    with pytest.raises(InvalidValue, match="a share in"):
        SpeculativeRejection(keep=0.0)
    with pytest.raises(InvalidValue, match="numbers of steps"):
        SpeculativeRejection(at=(0,))


@pytest.mark.parametrize("kind", [BestFirst, DepthFirst])
def test_a_leaf_that_is_good_enough_ends_a_search(kind: type) -> None:
    controller = kind(width=2, leaves=None, enough=0.8)
    tree = told(controller, Tree(), (0.7, 0.5), ended=(0,))
    assert grown(controller.ask(tree, KEY, math.inf)) == [(2, 2)], "0.7 is not enough"
    tree = told(controller, tree, (0.8, 0.9), ended=(0,))
    assert controller.ask(tree, KEY, math.inf) is None
    with pytest.raises(InvalidValue, match="use a score"):
        kind(enough=math.nan)


def test_a_trajectory_that_looks_hopeless_is_followed_by_another_until_one_is_good_enough() -> None:
    controller = Restarts(n=3, at=(2,), low=0.5, enough=0.9)
    tree = told(controller, Tree(), (0.1,))
    assert grown(controller.ask(tree, KEY, math.inf)) == [(1, 1)], "step 1 is not looked at"
    tree = told(controller, tree, (0.4,))
    asked = controller.ask(tree, KEY, math.inf)
    assert asked is not None
    assert (grown(asked), asked.close, asked.grow[0].after) == ([(0, 1)], (2,), 1), (
        "given up, and one more from the root"
    )
    tree = told(controller, tree, (0.2,))
    tree = told(controller, tree, (0.5,))
    tree = told(controller, tree, (0.8,), ended=(0,))
    assert grown(controller.ask(tree, KEY, math.inf)) == [(0, 1)], "a leaf, and not good enough"
    tree = told(controller, tree, (0.95,), ended=(0,))
    assert controller.ask(tree, KEY, math.inf) is None
    assert tree.columns.count[0] == 3


def test_restarts_give_up_the_last_one_too() -> None:
    controller = Restarts(n=1, at=(1,), low=0.5)
    tree = told(controller, Tree(), (math.nan,))
    asked = controller.ask(tree, KEY, math.inf)
    assert asked is not None
    assert (asked.grow, asked.close) == ((), (1,))
    tree = controller.tell(tree, asked, {})
    assert controller.ask(tree, KEY, math.inf) is None
    assert tree.rows(CUT) == [1]

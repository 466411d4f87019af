"""The tree: a pure value over a shared log, whatever finishes first and however often it is told."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from ramify.errors import InvalidValue
from ramify.search import Child, Expansion, Grow, Tree
from ramify.search.tree import CUT, GROWN, LEAF, OPEN, PRUNED

COLUMNS = ("parent", "number", "depth", "score", "log_q", "logprob", "visits", "total", "best", "state")


def facts(tree: Tree) -> list[list[float]]:
    columns = [np.nan_to_num(tree.column(name), nan=-99.0).tolist() for name in COLUMNS]
    return [*columns, [len(tree.tokens(row)) for row in range(len(tree))]]


def pair(a: float, b: float) -> list[Child]:
    return [Child((1,), score=a, log_q=-1.0, logprob=-1.5), Child((2, 3), score=b, log_q=-2.0, logprob=-2.5)]


FIRST = Expansion(0, (Grow(0, 2),))
SECOND = Expansion(1, (Grow(1, 2), Grow(2, 2)))
BORN = {1: pair(0.25, 0.5), 2: pair(1.0, 0.0)}


def grown() -> Tree:
    return Tree().told(FIRST, {0: pair(0.5, 0.75)}).told(SECOND, BORN)


def test_visits_totals_and_tokens_by_hand() -> None:
    tree = grown()
    assert tree.column("visits").tolist() == [6, 3, 3, 1, 1, 1, 1]
    assert tree.column("total").tolist() == [3.0, 1.25, 1.75, 0.25, 0.5, 1.0, 0.0]
    assert tree.column("best").tolist() == [1.0, 0.5, 1.0, 0.25, 0.5, 1.0, 0.0]
    assert tree.column("log_q").tolist() == [0.0, -1.0, -2.0, -2.0, -3.0, -3.0, -4.0]
    assert tree.tokens(6) == (2, 3, 2, 3)
    assert tree.path(6) == (1, 1)
    assert [tree.columns.state[row] for row in (0, 1, 3)] == [GROWN, GROWN, OPEN]


def test_parts_of_an_expansion_may_be_told_in_any_order_and_more_than_once() -> None:
    base = Tree().told(FIRST, {0: pair(0.5, 0.75)})
    for order in itertools.permutations([1, 2, 1]):
        tree = base
        for node in order:
            tree = tree.told(SECOND, {node: BORN[node]})
        assert facts(tree) == facts(grown())
        assert tree.told(SECOND, BORN) is tree
        assert tree.told(FIRST, {}) is tree
    half = base.told(SECOND, {2: BORN[2]})
    assert [grow.node for grow in half.missing(SECOND)] == [1]
    assert facts(half) == facts(base), "nothing is entered before the whole of it is there"


def test_telling_leaves_the_old_tree_alone_and_copies_nothing() -> None:
    one = Tree().told(FIRST, {0: pair(0.5, 0.75)})
    log = one._log
    before = facts(one)
    two = one.told(SECOND, BORN)
    assert two._log is log, "the newest tree goes on with the log of the one before"
    assert facts(one) == before
    assert one._log is not log, "read after a newer one was made, the old tree has its own"
    other = one.told(SECOND, {1: pair(0.0, 0.0), 2: pair(0.0, 0.0)})
    assert facts(two) == facts(grown())
    assert other.column("total").tolist()[0] == 1.25


@pytest.mark.parametrize("parts", [{}, {2: BORN[2]}])
def test_a_pickled_tree_is_the_same_tree(parts: dict[int, list[Child]]) -> None:
    tree = Tree().told(FIRST, {0: pair(0.5, 0.75)}).told(SECOND, parts)
    again = pickle.loads(pickle.dumps(tree))
    assert facts(again) == facts(tree)
    assert facts(again.told(SECOND, BORN)) == facts(grown())


def test_what_is_over_stays_over() -> None:
    children = [Child((1,), 0.5, ended="eos"), Child((2,), kept=False), Child((3,), 0.1, log_q=math.log(0.25))]
    tree = Tree().told(FIRST, {0: children})
    assert tree.column("state").tolist() == [GROWN, LEAF, PRUNED, OPEN]
    tree = tree.told(Expansion(1, close=(3,)), {})
    assert tree.columns.state[3] == CUT
    assert tree.cut_mass == pytest.approx(0.25)
    assert tree.columns.alive.tolist() == [1, 1, 0, 0]
    tree = tree.told(Expansion(2, close=(1,)), {})
    assert tree.columns.alive.tolist() == [0, 0, 0, 0], "nothing can come of the root any more"
    assert tree.visits(0) == 2, "a missing score is no visit"


def test_a_wrong_expansion_is_refused_and_writes_nothing() -> None:
    tree = grown()
    before = facts(tree)
    for wrong in (
        Expansion(5),
        Expansion(2, (Grow(1, 2),)),
        Expansion(2, (Grow(3, 2),), close=(3,)),
        Expansion(2, (Grow(3, 0),)),
        Expansion(2, close=(99,)),
        Expansion(1, (Grow(1, 3),)),
        Expansion(2, (Grow(3, 1), Grow(3, 1))),
    ):
        with pytest.raises(InvalidValue):
            tree.told(wrong, {grow.node: [Child((1,))] * grow.width for grow in wrong.grow})
    assert facts(tree) == before
    with pytest.raises(InvalidValue, match="expansion grows"):
        tree.told(Expansion(2, (Grow(3, 1),)), {4: [Child((1,))]})

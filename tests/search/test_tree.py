"""The tree: a pure value over a shared log, whatever finishes first and however often it is told."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.errors import InvalidValue
from ramify.search import Child, Expansion, Grow, Tree
from ramify.search.backup import square
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


AGAIN = Expansion(2, (Grow(1, 1, after=2), Grow(5, 2)))
LATE = {1: [Child((9,), score=2.0, log_q=-0.5, logprob=-0.5)], 5: pair(0.5, 0.5)}


def test_a_prefix_that_was_grown_may_have_more_children() -> None:
    tree = grown().told(AGAIN, LATE)
    assert tree.children(1) == [3, 4, 7]
    assert tree.born() == [7, 8, 9]
    assert [tree.path(row) for row in tree.children(1)] == [(0, 0), (0, 1), (0, 2)], "numbered on"
    assert tree.tokens(7) == (1, 9)
    assert tree.column("visits").tolist() == [9, 4, 5, 1, 1, 3, 1, 1, 1, 1]
    assert tree.column("total").tolist()[:2] == [3.0 + 2.0 + 1.0, 1.25 + 2.0]
    assert facts(grown().told(AGAIN, {5: LATE[5]}).told(AGAIN, {1: LATE[1]})) == facts(tree)
    assert facts(pickle.loads(pickle.dumps(tree))) == facts(tree)
    assert tree.told(AGAIN, LATE) is tree
    for wrong in (Grow(1, 1), Grow(1, 1, after=1), Grow(5, 1, after=1), Grow(1, 0, after=2)):
        with pytest.raises(InvalidValue, match="after"):
            grown().told(Expansion(2, (wrong,)), {wrong.node: [Child((1,))]})


def test_a_prefix_whose_children_all_died_lives_again_with_another_one() -> None:
    tree = Tree().told(FIRST, {0: pair(0.5, 0.75)}).told(Expansion(1, (Grow(1, 1),)), {1: [Child((4,), kept=False)]})
    assert tree.columns.alive.tolist() == [1, 0, 1, 0]
    tree = tree.told(Expansion(2, close=(2,)), {})
    assert tree.columns.alive.tolist() == [0, 0, 0, 0]
    tree = tree.told(Expansion(3, (Grow(1, 1, after=1),)), {1: [Child((5,), 0.5)]})
    assert tree.columns.alive.tolist() == [1, 1, 0, 0, 1]
    assert tree.columns.live.tolist() == [1, 1, 0, 0, 0]


def test_a_prefix_is_given_up_with_everything_below_it() -> None:
    tree = grown().told(Expansion(2, (Grow(3, 1),)), {3: [Child((4,), 0.5, ended="eos", log_q=-1.0)]})
    assert tree.columns.leaves == 1
    tree = tree.told(Expansion(3, close=(1,)), {})
    assert tree.column("state").tolist() == [GROWN, CUT, GROWN, CUT, CUT, OPEN, OPEN, CUT]
    assert tree.columns.leaves == 0
    assert tree.columns.alive.tolist() == [1, 0, 1, 0, 0, 1, 1, 0]
    assert tree.columns.live.tolist() == [1, 0, 2, 0, 0, 0, 0, 0]
    assert tree.cut_mass == pytest.approx(math.exp(-1.0)), "what is below is in it"


def test_notes_are_found_again_and_belong_to_their_tree() -> None:
    one = Tree().told(Expansion(0, (Grow(0, 2),), note=((0, -1.5),)), {0: pair(0.5, 0.75)})
    two = one.told(Expansion(1, note=((0, 2.5), (1, 3.0))), {})
    assert (two.note(0), two.note(1), two.note(2)) == (2.5, 3.0, 0.0)
    assert (one.note(0), one.note(1)) == (-1.5, 0.0)
    assert pickle.loads(pickle.dumps(two)).note(0) == 2.5


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_backing_up_gives_the_same_bits_whenever_it_is_read(data: st.DataObject) -> None:
    """A tree that is read after every expansion, one that is read at the end, and sums by their definition."""
    score = st.one_of(st.floats(-1e3, 1e3), st.just(math.nan), st.just(-math.inf))
    often = seldom = Tree()
    for number in range(data.draw(st.integers(1, 25))):
        node = data.draw(st.integers(0, len(often) - 1))
        state, after = often.columns.state[node], often.columns.count[node]
        width = 0 if state == LEAF else data.draw(st.integers(1, 3))
        asked = Expansion(number, (Grow(node, width, after=after if state == GROWN else 0),))
        born = [Child((1,), data.draw(score), ended=data.draw(st.sampled_from(["", "eos"]))) for _ in range(width)]
        often, seldom = often.told(asked, {node: born}), seldom.told(asked, {node: born})
        often.visits(0)
    assert facts(seldom) == facts(often) == facts(pickle.loads(pickle.dumps(often)))
    log, below = often.columns, {row: [row] for row in range(len(often))}
    for row in range(len(often) - 1, 0, -1):
        below[log.parent[row]] += below[row]
    for row, rows in below.items():
        seen = [log.score[each] for each in rows for _ in range(log.own[each])]
        assert log.visits[row] == len(seen)
        assert log.best[row] == max(seen, default=-math.inf)
        assert log.total[row] == pytest.approx(sum(seen), abs=1e-9)
        assert log.backup(square).total[row] == pytest.approx(sum(each * each for each in seen), abs=1e-6)


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
        Expansion(2, close=(0,)),
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

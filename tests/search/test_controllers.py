"""Controllers on trees whose scores are given: published vectors, and what each selects, by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.describe import text
from ramify.errors import InvalidValue
from ramify.search import (
    DVTS,
    PUCT,
    UCT,
    Beam,
    BestFirst,
    Breadth,
    Child,
    Chunk,
    Controller,
    DepthFirst,
    Expansion,
    Grow,
    GumbelHalving,
    Particles,
    Rebase,
    Rollout,
    Tree,
)
from ramify.search.level import balanced
from ramify.search.particle import effective, resampled
from ramify.search.tree import LEAF
from ramify.types import Key
from tests.methods import CONTROLLERS

KEY = Key("run", "q", 0, "control")


def born(*scores: float, ended: tuple[int, ...] = ()) -> list[Child]:
    return [
        Child((number,), score, -1.0, -1.0, ended="eos" if number in ended else "")
        for number, score in enumerate(scores)
    ]


def ask(controller: Controller, tree: Tree) -> Expansion:
    asked = controller.ask(tree, KEY, math.inf)
    assert asked is not None
    return asked


def begun(controller: Controller, *scores: float, ended: tuple[int, ...] = ()) -> Tree:
    asked = ask(controller, Tree())
    [root] = asked.grow
    assert root.width == len(scores)
    return controller.tell(Tree(), asked, {0: born(*scores, ended=ended)})


def test_balanced_allocation() -> None:
    # The vectors of REBASE's allocation, greedily rounded up.
    assert balanced([0.9, 0.8, 0.3, 0.1], 16, 0.2) == [10, 6, 0, 0]
    assert balanced([0.5, 0.5, 0.5], 4, 0.2) == [2, 1, 1]
    assert balanced([0.3, 0.9, 0.1, 0.8], 16, 0.2) == [0, 10, 0, 6], "in the order given"
    assert balanced([], 4, 0.2) == []
    assert balanced([-math.inf, -math.inf], 3, 0.2) == [2, 1]


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=20), st.integers(0, 40), st.floats(0.01, 10))
def test_a_balanced_allocation_spends_its_width(scores: list[float], width: int, temperature: float) -> None:
    shares = balanced(scores, width, temperature)
    assert sum(shares) == width
    ordered = [shares[place] for place in np.argsort(-np.array(scores), kind="stable")]
    assert ordered == sorted(ordered, reverse=True), "a better prefix never gets less"


def test_a_beam_keeps_the_best_and_finished_prefixes_hold_their_places() -> None:
    beam = Beam(n=6, m=2, unit=Chunk(1), depth=3)
    tree = begun(beam, 0.1, 0.9, 0.5, 0.5, 0.7, math.nan)
    asked = ask(beam, tree)
    assert asked.grow == (Grow(2, 2, Chunk(1)), Grow(3, 2, Chunk(1)), Grow(5, 2, Chunk(1))), "ties to the earliest"
    assert asked.close == (1, 4, 6)
    tree = beam.tell(tree, asked, {2: born(0.1, 0.2), 3: born(0.3, 0.4, ended=(1,)), 5: born(0.5, 0.6)})
    asked = ask(beam, tree)
    assert [grow.node for grow in asked.grow] == [11, 12], "two places: a finished prefix holds one"
    assert {grow.unit for grow in asked.grow} == {Rollout()}, "the last level runs to its end"
    assert [grow.node for grow in ask(Beam(n=6, m=2, depth=3, refill=True), tree).grow] == [9, 11, 12]


def test_siblings_with_the_same_tokens_count_once() -> None:
    beam = Beam(n=4, m=2)
    twice = [Child((5,), 0.9), Child((5,), 0.9), Child((6,), 0.1), Child((5,), 0.9)]
    tree = beam.tell(Tree(), ask(beam, Tree()), {0: twice})
    assert [grow.node for grow in ask(beam, tree).grow] == [1, 3]


def test_diverse_subtrees_keep_one_path_each() -> None:
    dvts = DVTS(n=6, m=2)
    tree = begun(dvts, 0.9, 0.8, 0.1, 0.2, 0.3, 0.4, ended=(0, 4))
    asked = ask(dvts, tree)
    assert [grow.node for grow in asked.grow] == [4, 6]
    assert asked.close == (2, 3, 5), "a finished sibling that is not the best is given up too"
    tree = dvts.tell(tree, asked, {4: born(0.1, 0.2, ended=(0, 1)), 6: born(0.3, 0.3, ended=(0, 1))})
    last = ask(dvts, tree)
    assert last.grow == ()
    tree = dvts.tell(tree, last, {})
    assert dvts.ask(tree, KEY, math.inf) is None
    assert tree.rows(LEAF) == [1, 8, 9], "one leaf a subtree"


def test_rebase_subtracts_finished_leaves_for_good() -> None:
    rebase = Rebase(width=4, temperature=0.2)
    tree = begun(rebase, 0.5, 0.5, 0.5, 0.9, ended=(3,))
    assert [(grow.node, grow.width) for grow in ask(rebase, tree).grow] == [(1, 1), (2, 1), (3, 1)]
    tree = begun(rebase, 0.9, 0.0, 0.0, 0.0)
    asked = ask(rebase, tree)
    assert [(grow.node, grow.width) for grow in asked.grow] == [(1, 4)]
    assert asked.close == (2, 3, 4)


def test_breadth_first_thoughts() -> None:
    breadth = Breadth(b=2, k=3)
    tree = begun(breadth, 0.1, 0.3, 0.2)
    assert [(grow.node, grow.width) for grow in ask(breadth, tree).grow] == [(2, 3), (3, 3)]


def test_best_first_goes_by_score_then_depth_then_insertion() -> None:
    best = BestFirst(width=2)
    tree = begun(best, 0.5, 0.9)
    order = []
    for scores in ((0.5, 0.5), (0.1, 0.1), (0.1, 0.1)):
        asked = ask(best, tree)
        order.append(asked.grow[0].node)
        tree = best.tell(tree, asked, {order[-1]: born(*scores)})
    assert order == [2, 1, 3]


def test_a_bound_ends_best_first_at_the_best_leaf() -> None:
    tree = begun(BestFirst(width=2), -1.0, -2.0, ended=(0,))
    assert BestFirst(width=2, bound=True).ask(tree, KEY, math.inf) is None
    assert ask(BestFirst(width=2), tree).grow[0].node == 2


def test_depth_first_gives_up_below_its_threshold() -> None:
    deep = DepthFirst(width=2, threshold=0.3)
    tree = begun(deep, 0.1, 0.9)
    asked = ask(deep, tree)
    assert asked.grow[0].node == 2
    tree = deep.tell(tree, asked, {2: born(0.2, 0.1)})
    assert ask(deep, tree).close == (3,)


def simulate(controller: Controller, value: Callable[[tuple[int, ...]], float], depth: int) -> Tree:
    """A complete tree of two tokens whose leaves at ``depth`` have values; inner prefixes have the mean of theirs."""

    def score(tokens: tuple[int, ...]) -> float:
        return value(tokens) if len(tokens) == depth else (score((*tokens, 0)) + score((*tokens, 1))) / 2

    tree = Tree()
    while (asked := controller.ask(tree, KEY, math.inf)) is not None:
        children = {}
        for grow in asked.grow:
            prefix = tree.tokens(grow.node)
            full = [(*prefix, token) for token in range(grow.width)]
            ended = "eos" if len(prefix) + 1 == depth else ""
            children[grow.node] = [
                Child((each[-1],), score(each), math.log(0.5), math.log(0.5), ended) for each in full
            ]
        tree = controller.tell(tree, asked, children)
    return tree


@pytest.mark.parametrize("backup", ["mean", "max"])
def test_uct_visits_concentrate_on_the_best_action(backup: str) -> None:
    def value(tokens: tuple[int, ...]) -> float:
        return 0.8 if tokens[0] == 1 else 0.2

    shares = []
    for most in (20, 200, 2000):
        tree = simulate(UCT(width=2, most=most, backup=backup), value, depth=3)
        shares.append(tree.visits(2) / tree.visits(0))
    assert shares == sorted(shares)
    assert shares[-1] > 0.97


def test_uct_selects_by_its_formula() -> None:
    uct = UCT(c=1.0, width=2)
    tree = begun(uct, 0.5, 0.4)
    tree = uct.tell(tree, ask(uct, tree), {1: born(0.5, 0.5)})
    # Q + sqrt(ln 4 / n): 0.5 + sqrt(1.386 / 3) = 1.18 against 0.4 + sqrt(1.386) = 1.577.
    assert ask(uct, tree).grow[0].node == 2


def test_puct_follows_the_prior_and_then_the_value() -> None:
    puct = PUCT(width=2, most=400)
    asked = ask(puct, Tree())
    tree = puct.tell(Tree(), asked, {0: [Child((0,), 0.5, logprob=math.log(0.9)), Child((1,), 0.5, logprob=-2.3)]})
    assert ask(puct, tree).grow[0].node == 1
    tree = simulate(puct, lambda tokens: float(tokens[0] == 1), depth=2)
    assert tree.visits(2) > 0.9 * tree.visits(0)


def test_sequential_halving_drops_half_of_the_survivors() -> None:
    halving = GumbelHalving(m=4, width=4, most=24, scale=50.0, below=PUCT(width=2))
    tree = simulate(halving, lambda tokens: tokens[0] / 4, depth=3)
    held = [len(asked.hold) for asked in tree._log.asked[1:]]
    assert held == [4] * 12 + [2] * 12
    visits = [tree.visits(row) for row in tree.children(0)]
    assert np.argmax(visits) in (2, 3)
    assert tree.last is not None
    assert {row for row, _ in tree.last.hold} == {3, 4}, "the two best by value"


def test_resampling_draws_its_weights_on_average() -> None:
    weight = np.array([0.5, 0.3, 0.15, 0.05])
    for scheme in ("multinomial", "systematic"):
        counts = np.mean([resampled(weight, 8, scheme, KEY, step) for step in range(2000)], axis=0)
        assert np.allclose(counts, 8 * weight, atol=0.12), scheme
    spread = [resampled(weight, 8, "systematic", KEY, step) for step in range(200)]
    assert np.abs(np.array(spread) - 8 * weight).max() < 1, "within one of its share"
    assert effective(weight) == pytest.approx(1 / 0.365)


def test_particles_are_held_when_they_are_finished() -> None:
    filter_ = Particles(n=4)
    tree = begun(filter_, 0.99, 0.01, 0.5, 0.5, ended=(0,))
    asked = ask(filter_, tree)
    copies = dict(asked.hold) | {grow.node: grow.width for grow in asked.grow}
    assert sum(copies.values()) == 4
    assert copies[1] >= 3, "0.99 has 99 parts of 101.01"
    assert set(asked.close) == {1, 2, 3, 4} - copies.keys()
    with pytest.raises(InvalidValue, match=r"\[0, 1\]"):
        ask(filter_, begun(filter_, -1.0, 0.1, 0.1, 0.1))


@pytest.mark.parametrize("ess", [0.5, 1.0])
def test_particles_that_are_held_together_count_one_by_one(ess: float) -> None:
    filter_ = Particles(n=4, resample="multinomial", ess=ess)
    tree = begun(filter_, 0.5, 0.5, 0.5, 0.5, ended=(0,))
    after = tree.told(Expansion(1, (Grow(2, 1, Chunk(1)),), (3, 4), ((1, 3),)), {2: born(0.5)})
    for question in "abcdefgh":  # three at the leaf and one that goes on, all worth the same: nothing to resample
        asked = filter_.ask(after, KEY._replace(question=question), math.inf)
        assert asked is not None
        assert (asked.hold, [grow.width for grow in asked.grow]) == (((1, 3),), [1])


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
def test_asking_is_pure_and_an_expansion_under_way_is_asked_again(controller: Controller) -> None:
    asked = ask(controller, Tree())
    assert controller.ask(Tree(), KEY, math.inf) == asked
    tree = controller.tell(Tree(), asked, {0: born(*np.linspace(0.3, 0.9, asked.grow[0].width))})
    following = controller.ask(tree, KEY, math.inf)
    assert following == controller.ask(tree, KEY, math.inf)
    if following is not None and len(following.grow) > 1:
        part = controller.tell(tree, following, {following.grow[0].node: born(0.5)})
        assert controller.ask(part, KEY, math.inf) == following

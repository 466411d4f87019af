"""Laws that every controller obeys, on a tabular model."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Sequence

import numpy as np
import pytest

from ramify.describe import text
from ramify.models import Tabular
from ramify.search import Controller, Grow, Tree
from ramify.types import Key
from tests.methods import CONTROLLERS
from tests.search.tools import KEY, Tokens, World, next_probs

MODEL, CAP = Tabular.random(Key("laws", "search", 0), vocabulary=5, order=1), 4
NAMES = ("parent", "number", "depth", "score", "log_q", "logprob", "visits", "total", "best", "state")


def score(tokens: Tokens) -> float:
    """In (0, 1), and different almost everywhere."""
    return 0.1 + 0.8 * math.modf(abs(math.sin(1 + sum((i + 2) * (t + 1) for i, t in enumerate(tokens))) * 1e4))[0]


WORLD = World(MODEL, CAP, score)


def facts(tree: Tree) -> tuple[object, ...]:
    columns = [np.nan_to_num(tree.column(name), nan=-9.0, neginf=-99.0).tolist() for name in NAMES]
    notes = [tree.note(row) for row in range(len(tree))]
    return (columns, notes, [tree.path(row) for row in range(len(tree))], tree.last, tree.expansions)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
def test_telling_is_pure(controller: Controller) -> None:
    """Every tree on the way is afterwards what it was, and the last one is what it would have been without them."""
    tree, kept = Tree(), []
    while (asked := controller.ask(tree, KEY, math.inf)) is not None:
        kept.append((tree, facts(tree), asked))
        tree = WORLD.tell(controller, tree, asked)
    assert kept
    for old, before, asked in kept[:: max(1, len(kept) // 5)]:
        assert facts(old) == before
        assert controller.ask(old, KEY, math.inf) == asked
    assert facts(tree) == facts(WORLD.search(controller))
    assert controller.ask(tree, KEY, math.inf) is None


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
def test_parts_may_finish_in_any_order_and_be_told_again(controller: Controller) -> None:
    found, dice = WORLD.search(controller), random.Random(7)

    def twice(parts: Sequence[Grow]) -> list[Grow]:
        mixed = [*parts, *parts]
        dice.shuffle(mixed)
        return mixed

    assert facts(WORLD.search(controller, order=twice)) == facts(found)
    assert facts(WORLD.search(controller, order=lambda parts: parts[::-1])) == facts(found)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
def test_a_stored_search_goes_on_as_if_it_had_not_been_stored(controller: Controller) -> None:
    found = WORLD.search(controller)
    for stop in {1, found.expansions // 2, found.expansions}:
        tree: Tree = pickle.loads(pickle.dumps(WORLD.search(controller, most=stop)))
        while (asked := controller.ask(tree, KEY, math.inf)) is not None:
            tree = pickle.loads(pickle.dumps(WORLD.tell(controller, tree, asked)))
        assert facts(tree) == facts(found)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
def test_a_search_without_any_score_ends(controller: Controller) -> None:
    """A missing score is never selected; nobody fails on it, and nobody takes it for a number."""
    tree = World(MODEL, CAP, lambda _: math.nan).search(controller, most=300)
    assert tree.expansions < 300
    assert tree.visits(0) == 0


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
def test_nothing_comes_of_a_prefix_that_was_given_up(controller: Controller) -> None:
    tree = WORLD.search(controller)
    log = tree.columns
    for asked in log.asked:
        assert len({grow.node for grow in asked.grow}) == len(asked.grow)
        assert not {grow.node for grow in asked.grow} & set(asked.close)
    for row in range(1, len(tree)):
        assert math.exp(log.logprob[row]) == pytest.approx(math.prod(_path(tree.tokens(row))))


def _path(tokens: Tokens) -> list[float]:
    return [next_probs(MODEL, tokens[:i])[token] for i, token in enumerate(tokens)]

"""Claims of theory, against a model whose every leaf can be enumerated."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from ramify.describe import text
from ramify.models import Tabular
from ramify.search import (
    PUCT,
    RAP,
    UCT,
    Beam,
    BestFirst,
    Breadth,
    Controller,
    DepthFirst,
    DiverseBeam,
    Particles,
    StochasticBeam,
    TopTokens,
    Twisted,
)
from ramify.search.tree import LEAF, PRUNED
from ramify.types import Key
from tests.search.tools import KEY, Tokens, World, everyone, everything

MODEL, CAP = Tabular.random(Key("exact", "search", 0), vocabulary=4, order=1, spread=0.7), 3
SMALL = Tabular.random(Key("exact", "search", 1), vocabulary=3, order=1, spread=0.7)
STRAIGHT = Tabular(("a", "b", "."), (((), (0.6, 0.4, 0.0)), ((0,), (0.3, 0.7, 0.0)), ((1,), (0.8, 0.2, 0.0))), eos=2)


def likelihood(tokens: Tokens) -> float:
    return next((p for y, p in everything(MODEL, CAP) if y == tokens), 0.5)


# ------------------------------------------------------------------------------------------------------- enumeration

TOKENS = TopTokens(3)
EXHAUSTIVE: tuple[Controller, ...] = (
    Beam(n=4000, m=4, unit=TOKENS, refill=True),
    Breadth(b=1000, k=4, unit=TOKENS),
    DiverseBeam(n=8000, m=4, groups=2, unit=TOKENS),
    BestFirst(width=4, unit=TOKENS),
    DepthFirst(width=4, unit=TOKENS, leaves=None),
    UCT(width=4, unit=TOKENS, most=400, c=10.0),
    PUCT(width=4, unit=TOKENS, most=400, init=50.0),
    RAP(width=4, unit=TOKENS, most=400, c=10.0),
    StochasticBeam(k=1000, width=4, unit=TOKENS),
)


@pytest.mark.parametrize("controller", EXHAUSTIVE, ids=text)
def test_a_search_that_is_wide_enough_is_an_enumeration(controller: Controller) -> None:
    tree = World(MODEL, CAP, likelihood).search(controller)
    found = {tree.tokens(row): math.exp(tree.columns.logprob[row]) for row in tree.rows(LEAF)}
    assert found == pytest.approx(dict(everything(MODEL, CAP)))


# -------------------------------------------------------------------------------------------------------- convergence


def utility(tokens: Tokens) -> float:
    return float(tokens.count(1) == 2)


def value(tokens: Tokens) -> float:
    """E[utility | prefix], by enumeration."""
    below = list(everything(MODEL, CAP, tokens))
    return sum(p * utility(y) for y, p in below)


@pytest.mark.parametrize("backup", ["mean", "max"])
def test_uct_visit_shares_converge_to_the_best_action(backup: str) -> None:
    best = max(range(4), key=lambda token: max((utility(y) for y, _ in everything(MODEL, CAP, (token,))), default=0))
    shares = []
    for most in (50, 400, 3200):
        tree = World(MODEL, CAP, utility).search(UCT(width=4, unit=TOKENS, most=most, backup=backup, c=0.5))
        row = next(row for row in tree.children(0) if tree.tokens(row) == (best,))
        mates = [r for r in tree.children(0) if any(utility(y) for y, _ in everything(MODEL, CAP, tree.tokens(r)))]
        assert row in mates
        shares.append(sum(tree.visits(r) for r in mates) / tree.visits(0))
    assert shares == sorted(shares)
    assert shares[-1] > 0.95


def test_uct_by_the_exact_value_prefers_the_action_of_the_highest_value() -> None:
    best = max(range(4), key=lambda token: value((token,)))
    shares = []
    for most in (50, 400, 3200):
        tree = World(MODEL, 1, value).search(UCT(width=4, unit=TOKENS, most=most, backup="max", c=0.3))
        row = next(row for row in tree.children(0) if tree.tokens(row) == (best,))
        shares.append(tree.visits(row) / tree.visits(0))
    assert shares == sorted(shares)
    assert shares[-1] > 0.9


# ----------------------------------------------------------------------------------------- sampling without replacement


def without_replacement(k: int) -> tuple[dict[Tokens, float], dict[tuple[Tokens, ...], float]]:
    """P(a leaf is among the first k) and P(these are the first k, in this order), by successive sampling."""
    leaves = dict(everything(SMALL, 2))
    orders, included = {}, Counter[Tokens]()
    for order in itertools.permutations(leaves, k):
        p, left = 1.0, 1.0
        for leaf in order:
            p, left = p * leaves[leaf] / left, left - leaves[leaf]
        orders[order] = p
        included.update(dict.fromkeys(order, p))
    return dict(included), orders


@pytest.mark.parametrize("k", [1, 2, 3])
def test_stochastic_beam_search_draws_without_replacement(k: int) -> None:
    included, orders = without_replacement(k)
    assert sum(included.values()) == pytest.approx(k)
    controller, runs = StochasticBeam(k=k, width=3, unit=TopTokens(2)), 2000
    leaves, seen, order = dict(everything(SMALL, 2)), Counter[Tokens](), Counter[tuple[Tokens, ...]]()
    sums = []
    for i in range(runs):
        tree = World(SMALL, 2, lambda _: 0.0).search(controller, KEY._replace(sample=i))
        rows = tree.rows(LEAF)
        g = controller.layer("perturbed", tree, rows)
        found = [tree.tokens(row) for _, row in sorted(zip(g, rows, strict=True), reverse=True)]
        assert len(set(found)) == k
        seen.update(found)
        order[tuple(found)] += 1
        weight = controller.layer("weight", tree, rows)
        sums.append([sum(weight), sum(w * len(tree.tokens(r)) for w, r in zip(weight, rows, strict=True))])
    for leaf, p in included.items():
        assert abs(seen[leaf] / runs - p) < 5 * math.sqrt(p * (1 - p) / runs) + 1e-12, leaf
    for which, p in orders.items():
        assert abs(order[which] / runs - p) < 5 * math.sqrt(p * (1 - p) / runs) + 1e-12, which
    expected = [1.0, sum(p * len(y) for y, p in leaves.items())]
    error = np.std(sums, axis=0) / math.sqrt(runs)
    assert (np.abs(np.mean(sums, axis=0) - expected) < 5 * error).all(), "Σ weight f is unbiased for E f"


def test_the_inclusion_probability_is_that_of_passing_the_threshold() -> None:
    controller, hits = StochasticBeam(k=2, width=3, unit=TopTokens(2)), []
    for i in range(200):
        tree = World(SMALL, 2, lambda _: 0.0).search(controller, KEY._replace(sample=i))
        rows, leaves = tree.rows(LEAF), dict(everything(SMALL, 2))
        kappa, inclusion = tree.note(0), controller.layer("inclusion", tree, rows)
        for row, q in zip(rows, inclusion, strict=True):
            assert tree.note(row) > kappa
            # The Gumbel law: P(log p + G > κ).
            assert q == pytest.approx(1 - math.exp(-leaves[tree.tokens(row)] * math.exp(-kappa)))
            hits.append(q)
    assert 0 < min(hits) < max(hits) <= 1
    every = World(SMALL, 2, lambda _: 0.0).search(StochasticBeam(k=50, width=3, unit=TopTokens(2)))
    assert StochasticBeam(TopTokens(2)).layer("inclusion", every, every.rows(LEAF)) == [1.0] * 7
    part = World(SMALL, 2, lambda _: 0.0).search(controller, most=1)
    assert np.isnan(controller.layer("weight", part, part.rows(LEAF))).all(), "unknown before the end"


# ------------------------------------------------------------------------------------------------------------ particles


def psi(tokens: Tokens) -> float:
    """Some positive function, zero somewhere."""
    return 0.0 if tokens[:2] == (1, 1) else 0.15 + 0.7 * math.modf(abs(math.sin(1 + sum(tokens) + 3 * len(tokens))))[0]


def ones(tokens: Tokens) -> float:
    return tokens.count(0)


def unbiased(estimates: list[list[float]], expected: list[float]) -> None:
    error = np.std(estimates, axis=0) / math.sqrt(len(estimates))
    assert (error > 0).all()
    assert (np.abs(np.mean(estimates, axis=0) - expected) < 5 * error).all()


@pytest.mark.parametrize(
    "controller",
    [
        Twisted(n=3, ess=1.0, resample="multinomial"),
        Twisted(n=3, ess=1.0),
        Twisted(n=4, ess=0.6),
        Twisted(n=3, ess=0.8, anneal=3),
        Twisted(n=3, ess=1.0, depth=2),
    ],
    ids=text,
)
def test_twisted_particles_are_unbiased_for_their_target(controller: Twisted) -> None:
    leaves = list(everything(MODEL, CAP))
    expected = [sum(p * psi(y) for y, p in leaves), sum(p * psi(y) * ones(y) for y, p in leaves)]
    estimates = []
    for i in range(1200):
        tree = World(MODEL, CAP, psi).search(controller, KEY._replace(question=f"q{i}"))
        rows = tree.rows(LEAF)
        weight = controller.layer("weight", tree, rows)
        assert sum(weight) == pytest.approx(math.exp(tree.note(0))), "the weights sum to Ẑ"
        estimates.append([sum(weight), sum(w * ones(tree.tokens(r)) for w, r in zip(weight, rows, strict=True))])
    unbiased(estimates, expected)


def test_one_particle_weighs_what_its_leaf_does() -> None:
    for i in range(20):
        tree = World(MODEL, CAP, psi).search(Twisted(n=1, anneal=2), KEY._replace(question=f"q{i}"))
        worth = [psi(tree.tokens(row)) for row in range(1, len(tree)) if not tree.children(row)]
        assert math.exp(tree.note(0)) == pytest.approx(worth[-1])


def odds(tokens: Tokens) -> float:
    return psi(tokens) / (1 - psi(tokens))


@pytest.mark.parametrize("scheme", ["multinomial", "systematic"])
def test_a_particle_filter_is_unbiased_for_the_product_of_its_odds(scheme: str) -> None:
    """Resampled at every step by odds(S), a population estimates E[Π_t odds(S_t) f], on trajectories of one length."""

    def positive(tokens: Tokens) -> float:
        return max(psi(tokens), 0.1)

    def product(tokens: Tokens) -> float:
        every = [positive(tokens[:t]) for t in range(1, len(tokens) + 1)]
        return math.prod(each / (1 - each) for each in every)

    leaves = list(everything(STRAIGHT, 3))
    expected = [sum(p * product(y) for y, p in leaves), sum(p * product(y) * ones(y) for y, p in leaves)]
    estimates = []
    for i in range(1000):
        tree = World(STRAIGHT, 3, positive).search(Particles(n=4, resample=scheme), KEY._replace(question=f"q{i}"))
        means = []
        for back in range(tree.expansions):
            rows = tree.born(back)
            weight = np.array([positive(tree.tokens(row)) for row in rows])
            weight /= 1 - weight
            f = np.array([ones(tree.tokens(row)) for row in rows]) if not back else np.ones(len(rows))
            means.append((weight.mean(), (weight * f).mean()))
        before = math.prod(mean for mean, _ in means[1:])
        estimates.append([before * means[0][0], before * means[0][1]])
    unbiased(estimates, expected)


# --------------------------------------------------------------------------------------------------------------- checks


def sound(tokens: Tokens) -> bool:
    """For this utility: more than two 1s cannot be mended."""
    return tokens.count(1) <= 2


def unsound(tokens: Tokens) -> bool:
    return tokens.count(1) < 2


@pytest.mark.parametrize("controller", EXHAUSTIVE, ids=text)
def test_a_sound_check_leaves_the_best_reachable_utility_alone_and_an_unsound_one_does_not(
    controller: Controller,
) -> None:
    def best(check: Callable[[Tokens], bool]) -> tuple[float, int]:
        tree = World(MODEL, CAP, utility, check).search(controller)
        return max(tree.columns.score[row] for row in tree.rows(LEAF)), len(tree.rows(PRUNED))

    assert best(everyone) == (1.0, 0)
    assert best(sound)[0] == 1.0
    assert best(sound)[1] > 0
    assert best(unsound)[0] == 0.0

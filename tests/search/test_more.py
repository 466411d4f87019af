"""Diverse beams, lookahead, adaptive branching and RAP: what each selects, by hand and against other definitions."""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.bank import Candidates
from ramify.decide import WeightedVote
from ramify.errors import InvalidValue
from ramify.models import Tabular
from ramify.search import (
    ABMCTS,
    RAP,
    Beam,
    BestFirst,
    BetaScores,
    Child,
    Chunk,
    Controller,
    DiverseBeam,
    Expansion,
    Grow,
    LinearPriority,
    Lookahead,
    NormalScores,
    Rollout,
    StochasticBeam,
    TopTokens,
    Tree,
    Twisted,
)
from ramify.search.adaptive import _below, _own
from ramify.search.tree import CUT, LEAF
from ramify.types import Key
from tests.search.tools import KEY, Tokens, World

MODEL = Tabular.random(Key("more", "search", 0), vocabulary=5, order=1)


def score(tokens: Tokens) -> float:
    return 0.1 + 0.8 * math.modf(abs(math.sin(1 + sum((i + 2) * (t + 1) for i, t in enumerate(tokens))) * 1e4))[0]


WORLD = World(MODEL, 5, score)


def facts(tree: Tree) -> list[tuple[object, ...]]:
    log = tree.columns
    return [(tree.tokens(row), log.parent[row], log.state[row], log.visits[row]) for row in range(len(tree))]


def ask(controller: Controller, tree: Tree) -> Expansion:
    asked = controller.ask(tree, KEY, math.inf)
    assert asked is not None
    return asked


# ------------------------------------------------------------------------------------------------------------- diverse


def test_a_group_is_penalised_for_what_earlier_groups_chose() -> None:
    diverse = DiverseBeam(n=4, m=2, groups=2, penalty=0.5)
    tokens = [(5,), (5,), (6,), (7,)]
    children = [Child(t, s) for t, s in zip(tokens, (0.9, 0.8, 0.4, 0.2), strict=True)]
    tree = diverse.tell(Tree(), ask(diverse, Tree()), {0: children})
    asked = ask(diverse, tree)
    # The first group takes 5 at 0.9; for the second another 5 is worth 0.8 - 0.5 < 0.4.
    assert [grow.node for grow in asked.grow] == [1, 3]
    assert asked.note == ((1, 0.0), (3, 1.0))
    mild = DiverseBeam(n=4, m=2, groups=2, penalty=0.3)
    assert [grow.node for grow in ask(mild, tree).grow] == [1, 2], "0.8 - 0.3 > 0.4"
    below = {1: [Child((8,), 0.7), Child((9,), 0.6)], 3: [Child((8,), 0.8), Child((9,), 0.5)]}
    asked = ask(diverse, diverse.tell(tree, asked, below))
    # Groups keep to their own prefixes: 0.7 of the first, then 0.8 - 0.5 < 0.5 of the second.
    assert [grow.node for grow in asked.grow] == [5, 8]
    assert asked.close == (6, 7)


def test_steps_are_compared_whole() -> None:
    diverse = DiverseBeam(n=4, m=2, groups=2, penalty=9.0, unit=Chunk(2))
    children = [Child((1, 2), 0.9), Child((1, 3), 0.8), Child((1, 2), 0.85), Child((4, 4), 0.1)]
    tree = diverse.tell(Tree(), ask(diverse, Tree()), {0: children})
    assert [grow.node for grow in ask(diverse, tree).grow] == [1, 2]


def test_one_group_is_a_beam_and_the_penalty_makes_steps_more_varied() -> None:
    one = WORLD.search(DiverseBeam(n=6, m=2, groups=1))
    assert facts(one) == facts(WORLD.search(Beam(n=6, m=2, refill=True)))

    def copies(penalty: float) -> float:
        """Pairs of equal steps among those that went on at one level, over many trees."""
        pairs = 0
        for i in range(40):
            tree = WORLD.search(DiverseBeam(n=12, m=2, groups=3, penalty=penalty), KEY._replace(sample=i))
            for asked in tree.columns.asked[1:]:
                count = Counter(tree.step(grow.node) for grow in asked.grow)
                pairs += sum(n * (n - 1) // 2 for n in count.values())
        return pairs

    assert copies(2.0) < copies(0.2) < copies(0.0)


# ------------------------------------------------------------------------------------------------------------ lookahead


def test_looking_nowhere_ahead_is_a_beam() -> None:
    for unit in (Chunk(1), Chunk(2)):
        assert facts(WORLD.search(Lookahead(n=6, m=2, k=0, unit=unit))) == facts(WORLD.search(Beam(6, 2, unit)))


def test_candidates_are_ranked_by_where_they_lead() -> None:
    ahead = Lookahead(n=2, m=1, k=2)
    tree = ahead.tell(Tree(), ask(ahead, Tree()), {0: [Child((1,), 0.9), Child((2,), 0.1)]})
    asked = ask(ahead, tree)
    assert asked.grow == (Grow(1, 1, Chunk(1)), Grow(2, 1, Chunk(1)))
    tree = ahead.tell(tree, asked, {1: [Child((3,), 0.2)], 2: [Child((4,), 0.5, ended="eos")]})
    asked = ask(ahead, tree)
    assert asked.grow == (Grow(3, 1, Chunk(1)),), "what is finished goes no further"
    tree = ahead.tell(tree, asked, {3: [Child((5,), 0.3)]})
    two = Lookahead(n=1, m=1, k=2)
    asked = ask(two, tree)
    assert asked.grow == (Grow(2, 1, Chunk(1), after=1),), "0.5 at the end of 2 against 0.3 at the end of 1"
    assert asked.close == (1, 4), "one is given up, and what was only looked at"
    tree = two.tell(tree, asked, {2: [Child((6,), 0.4)]})
    assert tree.path(6) == (1, 1)
    assert tree.rows(CUT) == [1, 3, 4, 5]
    assert tree.rows(LEAF) == []


def test_what_would_go_wrong_is_refused() -> None:
    for wrong, field in (
        (lambda: Lookahead(unit=TopTokens(4)), "Lookahead.unit"),
        (lambda: Lookahead(n=5, m=2), "Lookahead.n"),
        (lambda: DiverseBeam(n=8, m=2, groups=3), "DiverseBeam.n"),
        (lambda: DiverseBeam(penalty=-1.0), "DiverseBeam.penalty"),
        (lambda: NormalScores(tau2=0.0), "NormalScores.tau2"),
        (lambda: BetaScores(a=0.0), "BetaScores.a"),
        (lambda: RAP(a=-1.0), "RAP.a"),
        (lambda: StochasticBeam(TopTokens(4), k=0), "StochasticBeam.k"),
        (lambda: Twisted(resample="residual"), "Twisted.resample"),
        (lambda: Twisted(ess=2.0), "Twisted.ess"),
    ):
        with pytest.raises(InvalidValue, match=re.escape(field)):
            wrong()


def test_a_lookahead_leaves_finished_leaves_of_its_own_alone() -> None:
    for i in range(10):
        tree = WORLD.search(Lookahead(n=6, m=2, k=1), KEY._replace(sample=i))
        assert tree.rows(LEAF)
        assert not tree.rows(0), "nothing is left open"


# -------------------------------------------------------------------------------------------------- adaptive branching

SCORES = st.lists(st.integers(-20, 20), max_size=6)


@given(SCORES)
def test_the_normal_posterior_in_exact_fractions(numbers: list[int]) -> None:
    x = [Fraction(each, 8) for each in numbers]
    n, m0, k0, v0, t0 = len(x), Fraction(0), Fraction(1), Fraction(1), Fraction(1, 10)
    mean = sum(x, Fraction(0)) / max(n, 1)
    spread = sum(((each - mean) ** 2 for each in x), Fraction(0))
    tau2 = (v0 * t0 + spread + Fraction(n) * k0 * (m0 - mean) ** 2 / (k0 + n)) / (v0 + n)
    expected = [(k0 * m0 + n * mean) / (k0 + n), k0 + n, v0 + n, tau2]
    sums = (np.array(float(v)) for v in (n, sum(x), sum(each * each for each in x)))
    assert [float(v) for v in NormalScores().posterior(*sums)] == pytest.approx([float(v) for v in expected])


def test_draws_have_the_law_of_the_posterior() -> None:
    u = (np.arange(4000) + 0.5) / 4000
    x = np.array([0.2, 0.5, 0.9])
    sums = (np.full(4000, 3.0), np.full(4000, x.sum()), np.full(4000, (x**2).sum()))
    assert np.allclose(BetaScores().draw(*sums, u), scipy.stats.beta(0.5 + 1.6, 0.5 + 1.4).ppf(u))
    m, kappa, nu, tau2 = NormalScores().posterior(*(s[0] for s in sums))
    law = scipy.stats.t(nu, m, math.sqrt(tau2 / kappa))
    assert np.allclose(NormalScores().draw(*sums, u), law.ppf(u))
    # As it is defined: a variance, then a mean given it.
    rng = np.random.default_rng(0)
    variance = nu * tau2 / rng.chisquare(nu, 40_000)
    means = rng.normal(m, np.sqrt(variance / kappa))
    assert scipy.stats.kstest(law.cdf(means), "uniform").pvalue > 1e-3


def test_the_priors_of_treequest() -> None:
    """As it is published: the same posterior parameters after the same scores."""
    state = pytest.importorskip("treequest.algos.ab_mcts_a.prob_state")
    theirs = state.ProbabilisticDist(state.PriorConfig(dist_type="gaussian"))
    x = np.array([0.3, 0.7, 0.45])
    for each in x:
        theirs.tell_observation(float(each))
    m, kappa, nu, tau2 = NormalScores().posterior(np.array(3.0), x.sum(), (x**2).sum())
    assert theirs.params == pytest.approx({"m": m, "kappa": kappa, "nu": nu, "tau_square": tau2})


def test_one_more_child_counts_for_generating_and_what_is_below_for_going_on() -> None:
    branching = ABMCTS()
    tree = branching.tell(Tree(), ask(branching, Tree()), {0: [Child((1,), 0.5)]})
    tree = tree.told(Expansion(1, (Grow(0, 1, after=1),)), {0: [Child((2,), 0.75)]})
    tree = tree.told(Expansion(2, (Grow(1, 1),)), {1: [Child((3,), 0.25)]})
    tree = tree.told(Expansion(3, (Grow(3, 1),)), {3: [Child((4,), 1.0)]})
    log = tree.columns
    assert _own(log, log.kids(0)).sum(1).tolist() == [2, 1.25, 0.8125], "the new children's own scores"
    assert _below(log, log.kids(0)).sum(1).tolist() == [2, 1.25, 1.0625], "0.25 and 1.0, below them"
    assert _below(log, [1, 2]).T.tolist() == [[2, 1.25, 1.0625], [0, 0, 0]], "2 has its prior alone"
    assert _own(log, log.kids(1)).T.tolist() == [[1, 0.25, 0.0625]]


def test_branching_adapts_to_what_pays() -> None:
    """Where depth pays, it goes deep; where all that counts is another try, wide. Twenty keys each."""

    def widths(value: World, most: int) -> list[int]:
        return [
            len(value.search(ABMCTS(BetaScores(), most=most), KEY._replace(sample=i)).children(0)) for i in range(20)
        ]

    deep = World(MODEL, 60, lambda tokens: min(1.0, 0.1 * len(tokens)))
    wide = World(MODEL, 60, lambda tokens: 0.9 if len(tokens) == 1 else 0.05)
    assert np.mean(widths(wide, 40)) > 2 * np.mean(widths(deep, 40))


def test_where_every_child_is_finished_another_is_generated() -> None:
    tree = WORLD.search(ABMCTS(unit=Rollout(), most=7))
    assert len(tree.children(0)) == 7
    assert [tree.path(row) for row in tree.children(0)] == [(i,) for i in range(7)]
    with pytest.raises(InvalidValue, match="one more"):
        ABMCTS(unit=TopTokens(4))
    with pytest.raises(InvalidValue, match=r"\[0, 1\]"):
        World(MODEL, 5, lambda _: 7.0).search(ABMCTS(BetaScores(), most=9))


# ------------------------------------------------------------------------------------------------------------------ RAP


def test_path_rewards_by_hand_and_the_vote_over_the_tree() -> None:
    rap = RAP(a=1.0, b=2.0, width=2)
    half = math.log(0.5)
    tree = rap.tell(Tree(), ask(rap, Tree()), {0: [Child((1,), 0.5, logprob=half), Child((2,), 1.0, logprob=half)]})
    # r = 1/2 · 1/4 and 1/2 · 1.
    assert list(tree.columns.backup(rap.path).worth) == [0.0, 0.125, 0.5]
    assert ask(rap, tree).grow[0].node == 2
    grown = {2: [Child((3,), 0.5, logprob=2 * half, ended="eos"), Child((4,), 1.0, logprob=2 * half, ended="eos")]}
    tree = rap.tell(tree, ask(rap, tree), grown)
    assert rap.layer("path", tree, tree.rows(LEAF)) == [0.5 + 0.0625, 0.5 + 0.25]
    back = tree.columns.backup(rap.path)
    assert back.visits[2] == 3
    assert back.total[2] == 0.5 + 0.5625 + 0.75
    chosen = WeightedVote("path")(Candidates(np.array([0, 1, 0]), evidence={"path": np.array([0.5, 0.8, 0.4])}))
    assert int(chosen.winner) == 0, "two paths to one answer weigh 0.9"
    with pytest.raises(InvalidValue, match="self-evaluations"):
        World(MODEL, 4, lambda _: 2.0).search(RAP())


@given(st.floats(0, 2), st.floats(0, 2), st.integers(0, 50))
@settings(max_examples=15, deadline=None)
def test_a_path_reward_is_the_sum_of_its_steps(a: float, b: float, sample: int) -> None:
    rap = RAP(a=a, b=b, width=3, most=12)
    tree = WORLD.search(rap, KEY._replace(sample=sample))
    log, worth = tree.columns, tree.columns.backup(rap.path).worth
    for row in range(1, len(tree)):
        total, at = 0.0, row
        while at:
            step = math.exp(log.logprob[at] - log.logprob[log.parent[at]])
            total, at = total + step**a * log.score[at] ** b, log.parent[at]
        assert worth[row] == pytest.approx(total)


# ------------------------------------------------------------------------------------------------------------- policies


def test_a_priority_by_score_alone_is_best_first() -> None:
    for i in range(10):
        key = KEY._replace(sample=i)
        learned, best = LinearPriority(width=2, leaves=5), BestFirst(width=2, leaves=5)
        assert facts(WORLD.search(learned, key)) == facts(WORLD.search(best, key))


def test_a_priority_weighs_what_the_tree_knows() -> None:
    root = [Child((1,), 0.5, logprob=-1.0), Child((2,), 0.25, logprob=-2.0)]
    below = [Child((3,), 0.125, logprob=-0.5), Child((4,), 0.375, logprob=-4.0)]
    tree = Tree().told(Expansion(0, (Grow(0, 2),)), {0: root}).told(Expansion(1, (Grow(2, 2),)), {2: below})
    for weights, row in (
        ((1.0, 0.0, 0.0, 0.0), 1),
        ((1.0, 1.0, 0.0, 0.0), 4),  # 0.5 + 1 against 0.375 + 2
        ((0.0, 0.0, -1.0, 0.0), 3),  # it fell by 0.125
        ((0.0, 0.0, 0.0, 1.0), 3),  # log p of the step is -0.5
        ((0.0, 0.0, 0.0, 0.0), 1),  # the shallower
    ):
        assert ask(LinearPriority(weights, width=2), tree).grow[0].node == row
    with pytest.raises(InvalidValue, match="four"):
        LinearPriority((1.0, math.inf, 0.0, 0.0))


# --------------------------------------------------------------------------------------------------------- populations


def test_a_stochastic_beam_goes_on_below_a_check() -> None:
    """What is struck out takes part in the noise and not in the beam: k leaves, all of them allowed."""
    controller = StochasticBeam(k=4, width=5, unit=TopTokens(4))
    for i in range(20):
        tree = World(MODEL, 3, score, lambda z: 1 not in z).search(controller, KEY._replace(sample=i))
        assert len(tree.rows(LEAF)) == 4
        assert all(1 not in tree.tokens(row) for row in tree.rows(LEAF))


def test_particles_that_all_weigh_nothing_end_the_search() -> None:
    tree = World(MODEL, 4, lambda _: 0.0).search(Twisted(n=4))
    assert tree.note(0) == -math.inf
    assert tree.rows(LEAF) == []
    with pytest.raises(InvalidValue, match="score"):
        World(MODEL, 4, lambda _: -1.0).search(Twisted(n=4))

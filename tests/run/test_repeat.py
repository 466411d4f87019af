"""The law of whole executions: every one listed on a tiny model, against closed forms and against keyed runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable

import numpy as np
import pytest

from ramify.bank import Proposal
from ramify.decide import BestOfN, Plurality, SoftBestOfN
from ramify.decode import Chain, Temperature, TopK
from ramify.errors import InvalidValue
from ramify.ledger import Ledger, Tokens
from ramify.metrics import Law, joint_law, proposal_shift
from ramify.models import Tabular, decode_with, leaves
from ramify.run import Arm, Execution, Search, every_execution, executions
from ramify.search import (
    DVTS,
    Beam,
    BestFirst,
    Chunk,
    Controller,
    Exponentiated,
    GumbelHalving,
    Likelihood,
    Particles,
    RawLikelihood,
    Rebase,
    Rollout,
    ToDelimiter,
    TopTokens,
)
from ramify.types import Question

COIN = Tabular(("h", "t", "."), (((), (0.5, 0.3, 0.2)), ((0,), (0.125, 0.625, 0.25)), ((1,), (0.25, 0.25, 0.5))), eos=2)
QUESTION = Question("q", "")
BEST = BestOfN("score")
RUNS = 800


def q_pi(cap: int) -> dict[Hashable, float]:
    found = leaves(COIN, Chain(), (), cap)
    return {
        tuple(token for token in row if token >= 0): math.exp(log_q)
        for row, log_q in zip(found.tokens.tolist(), found.log_q.tolist(), strict=True)
    }


def law(found: Iterable[Execution]) -> dict[Hashable, float]:
    mass: dict[Hashable, float] = defaultdict(float)
    for each in found:
        mass[each.submitted] += each.probability
    return mass


def every(search: Search, **more: object) -> list[Execution]:
    return every_execution(search, QUESTION, COIN, Chain(), **more)  # type: ignore[arg-type]


def next_token(prefix: tuple[int, ...]) -> np.ndarray:
    return np.asarray(np.exp(COIN.logits(COIN.start([prefix]))[0]))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_best_of_n_whole_leaves_has_the_law_of_an_order_statistic(n: int) -> None:
    """P(best = y) = (F(s)^n - F(s-)^n) q(y) / q(score = s), F the law of the score: ties share as they were drawn."""
    search = Search(Beam(n, 1, Rollout(), depth=1), RawLikelihood(), cap=2, rule=BEST)
    found, proposal = law(every(search)), q_pi(2)
    for leaf, q in proposal.items():
        below = sum(p for p in proposal.values() if p < q - 1e-12)
        level = sum(p for p in proposal.values() if abs(p - q) <= 1e-12)
        assert found[leaf] == pytest.approx(((below + level) ** n - below**n) * q / level)
    assert sum(found.values()) == pytest.approx(1)


def narrow_beam(cap: int) -> dict[tuple[int, ...], float]:
    """A beam of width 2 with one place, by hand: the likelier of two draws goes on, the first end ends it."""
    mass: dict[tuple[int, ...], float] = defaultdict(float)

    def down(prefix: tuple[int, ...], weight: float) -> None:
        p, depth = next_token(prefix), len(prefix) + 1
        for one in range(3):
            for two in range(3):
                pair, chance = (one, two), weight * float(p[one] * p[two])
                ended = [token for token in pair if token == 2 or depth == cap]
                best = max(ended or pair, key=lambda token: p[token])  # ties to the first
                if ended:
                    mass[(*prefix, best)] += chance
                else:
                    down((*prefix, best), chance)

    down((), 1.0)
    return mass


def test_a_beam_of_two_with_one_place_is_best_of_two_at_every_step() -> None:
    found = law(every(Search(Beam(2, 2), Likelihood(), cap=3, rule=BEST)))
    expected = narrow_beam(3)
    assert found.keys() == expected.keys()
    assert all(found[leaf] == pytest.approx(p) for leaf, p in expected.items())
    # by hand: both first draws are "." with 1/25, one of them with 8/25; either way "." is submitted.
    assert found[(2,)] == pytest.approx(9 / 25)


DRAWN = (
    Search(Beam(2, 2), Likelihood(), cap=3, rule=BEST),
    Search(Beam(2, 1), Exponentiated(), cap=3, rule=Plurality()),
    Search(DVTS(2, 2), Likelihood(), cap=2, rule=BEST),
    Search(Rebase(2), Exponentiated(), cap=2, rule=SoftBestOfN("score", 2.0)),
    Search(BestFirst(2, leaves=1), Likelihood(), cap=2),
    Search(Beam(2, 2, ToDelimiter((0,), most=2)), Likelihood(), cap=3, rule=BEST),
    Search(Beam(2, 1, Chunk(2)), Likelihood(), cap=3, rule=BEST),
)


@pytest.mark.parametrize("search", DRAWN, ids=repr)
def test_listed_executions_have_the_frequencies_of_keyed_ones(search: Search) -> None:
    listed = every(search)
    assert sum(each.probability for each in listed) == pytest.approx(1)
    arm = Arm(Proposal(run="repeat"), decode_with(COIN, Chain(), batch=256), lambda _: ())
    (drawn,) = executions(search, [QUESTION], arm, Ledger("x", Tokens()), lambda text, _: text, RUNS)
    exact = law(listed)
    for name in {each.submitted for each in drawn} | exact.keys():
        share, p = sum(each.submitted == name for each in drawn) / RUNS, exact[name]
        assert abs(share - p) <= 5 * math.sqrt(p * (1 - p) / RUNS) + 1e-12
    joint, seen = (
        joint_law([each.bank for each in listed], [each.probability for each in listed]),
        joint_law([each.bank for each in drawn]),
    )
    for name, estimate in seen.estimates(level=0.9999).items():
        value = joint.estimates()[name].value
        assert math.isnan(value) == math.isnan(estimate.value)
        assert math.isnan(value) or estimate.low - 1e-9 <= value <= estimate.high + 1e-9, name
    shift = proposal_shift(Law.exact(exact), Law.drawn(each.submitted for each in drawn), level=0.999)
    assert shift.moved.low == 0, "they are draws of that very law"


def test_an_enumerated_search_has_one_execution_and_loses_all_other_support() -> None:
    (only,) = every(Search(BestFirst(3, TopTokens(2), bound=True), RawLikelihood(), cap=3, rule=BEST))
    assert only.probability == 1
    proposal = q_pi(3)
    shift = proposal_shift(Law.exact(proposal), Law.exact({only.submitted: 1.0}))
    assert only.submitted == max(proposal, key=lambda leaf: proposal[leaf])
    assert shift.lost.value == pytest.approx(1 - max(proposal.values())) == pytest.approx(shift.moved.value)


def test_executions_under_a_decoder_and_a_limit() -> None:
    """Top-2 at temperature 1/2: after the start h, t have 25 : 9. One leaf of at most two tokens fits the limit."""
    chain = Chain(TopK(2), Temperature(0.5))
    search = Search(Beam(2, 1, Rollout(), depth=1), Likelihood(), cap=1, rule=BEST)
    found = law(every_execution(search, QUESTION, COIN, chain))
    assert found[(0,)] == pytest.approx(1 - (9 / 34) ** 2)
    nothing = law(every_execution(search, QUESTION, COIN, chain, limit=1))
    assert nothing == {None: 1.0}


def test_executions_do_not_depend_on_what_is_run_beside_them() -> None:
    arm = Arm(Proposal(run="beside"), decode_with(COIN, Chain(), batch=7), lambda _: ())
    search, ledger = Search(Particles(3), Exponentiated(), cap=3, rule=SoftBestOfN("score", 1.0)), Ledger("x", Tokens())
    both = [QUESTION, Question("r", "")]
    whole = executions(search, both, arm, ledger, lambda text, _: text, 6)
    (alone,) = executions(search, both[1:], arm, ledger, lambda text, _: text, 2, first=3)
    assert [each[:5] for each in whole[1][3:5]] == [each[:5] for each in alone]
    assert len({each.bank for each in whole[0]}) > 1


@pytest.mark.parametrize("controller", [Particles(2), GumbelHalving(2, 3, most=4)], ids=repr)
def test_a_controller_with_streams_of_its_own_is_not_enumerated(controller: Controller) -> None:
    with pytest.raises(InvalidValue, match="streams of its own"):
        every(Search(controller, Exponentiated(), cap=2))


def test_too_many_executions_are_refused() -> None:
    with pytest.raises(InvalidValue, match="more executions"):
        every(Search(Beam(4, 2), Likelihood(), cap=3), most=100)

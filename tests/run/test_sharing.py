"""Searches over shared prefixes: the same trees, scores and prices, whatever is kept; and a count of what it took."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from ramify.bank import Proposal
from ramify.decide import BestOfN
from ramify.decode import Chain, Mirostat, Operator, Repetition, Temperature
from ramify.describe import text
from ramify.errors import InvalidValue
from ramify.evidence import LogProduct, Mean, Minimum
from ramify.ledger import Ledger, Tokens
from ramify.models import FinishedHead, Memory, Pocket, ProcessHead, Tabular, ValueHead, decode_with
from ramify.models.memory import Sharing
from ramify.run import Arm, Compute, Search, Searched, run_search
from ramify.search import (
    UCT,
    Beam,
    Blend,
    Chunk,
    Controller,
    Evaluator,
    Exponentiated,
    Likelihood,
    Particles,
    PerLength,
    RawLikelihood,
    Rebase,
    Rollout,
    Staged,
    ToDelimiter,
)
from ramify.search.evaluate import over_memory
from ramify.tasks import Countdown
from ramify.types import Key, Prefix, Question
from tests.methods import CONTROLLERS
from tests.run.test_prefix import seen
from tests.run.tools import shuffled

SMALL = Tabular.random(Key("search", "tabular", 0), vocabulary=5, order=1)
QUESTIONS = [Question(f"q{i}", "") for i in range(3)]
STATEFUL = Chain(Repetition(1.2), Mirostat(tau=1.0))
MAIN, TASK = Pocket("main"), Countdown(3)
STEP = ToDelimiter((int(MAIN.encode("\n")[0]),), most=30)


def tabular(controller: Controller, operator: Operator, memory: float, batch: int = 16, **fields: object) -> Searched:
    source = Arm(Proposal(run="run"), decode_with(SMALL, operator, batch=batch), lambda _: (1, 2))
    protocol = Search(controller, Exponentiated(RawLikelihood()), cap=6, **fields)  # type: ignore[arg-type]
    return run_search(protocol, QUESTIONS, source, Ledger("tokens", Tokens(), limit=200), spell, memory=memory)


def spell(spelled: object, question: Question) -> object:
    return spelled


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
@pytest.mark.parametrize("operator", [Temperature(1.0), STATEFUL], ids=["plain", "stateful"])
def test_every_controller_grows_the_same_tree_with_and_without_a_memory(
    controller: Controller, operator: Operator
) -> None:
    plain = tabular(controller, operator, 0)
    assert plain.compute.sharing is None
    for memory, batch in ((math.inf, 16), (math.inf, 2), (9, 5)):
        found = tabular(controller, operator, memory, batch)
        assert seen(found) == seen(plain)
        shared = found.compute.sharing
        assert shared is not None
        assert shared.forks > 0 or "Rollout" in text(controller)
        assert shared.computed <= shared.represented
        assert found.compute.expansions.tokens == plain.compute.expansions.tokens
    mixed = Arm(Proposal(run="run"), shuffled(decode_with(SMALL, operator), seed=1), lambda _: (1, 2))
    again = run_search(plain.protocol, QUESTIONS, mixed, Ledger("tokens", Tokens(), limit=200), spell)
    assert seen(again) == seen(plain)
    assert again.compute.sharing is None, "a sampler without a memory of prefixes has none to report"


def test_an_unbounded_memory_computes_every_position_once() -> None:
    found = tabular(Beam(n=12, m=3), Temperature(1.0), math.inf)
    shared = found.compute.sharing
    assert shared is not None
    # A token is read if its prefix was grown. All questions have one prompt here, of two tokens: the empty prefix's.
    grown = {tree.tokens(tree.columns.parent[row]) for tree in found.trees for row in range(1, len(tree))}
    assert shared.computed == 2 + len(grown - {()})
    assert shared.evictions == 0


def test_a_search_that_was_resumed_adds_up_what_it_did() -> None:
    whole = tabular(Rebase(width=4), Temperature(1.0), math.inf)
    source = Arm(Proposal(run="run"), decode_with(SMALL, Temperature(1.0), batch=16), lambda _: (1, 2))
    part, ledger = None, Ledger("tokens", Tokens(), limit=200)
    for _ in range(50):
        part = run_search(whole.protocol, QUESTIONS, source, ledger, spell, rounds=1, resume=part)
        if "paused" not in part.ended:
            break
    assert part is not None
    assert seen(part) == seen(whole)
    for kind in ("expansions", "evaluator", "maintenance"):
        mine, theirs = getattr(part.compute, kind), getattr(whole.compute, kind)
        assert (mine.calls, mine.tokens) == (theirs.calls, theirs.tokens)
    assert part.compute.sharing is not None
    assert whole.compute.sharing is not None
    assert part.compute.sharing.computed >= whole.compute.sharing.computed, "what was kept is not stored with a search"


def test_half_of_a_search_is_not_told_as_the_whole() -> None:
    half = Compute(sharing=Sharing(computed=3))
    assert Compute().plus(half).sharing is None
    assert half.plus(Compute()).sharing is None
    assert half.plus(half).sharing == Sharing(computed=6)


# ------------------------------------------------------------------------------------------------------ learned scores


def answer(spelled: object, question: Question) -> object:
    return TASK.parse(f"{spelled}", question).answer


@cache
def pocket(controller: Any, evaluator: Evaluator, memory: float = math.inf, batch: int = 64) -> Searched:
    source = Arm(Proposal(run="s"), decode_with(MAIN, Temperature(1.0), batch=batch), lambda q: MAIN.encode(q.prompt))
    protocol = Search(controller, evaluator, cap=40, rule=BestOfN("score"))
    asked = TASK.questions(1, run="tests/sharing")
    return run_search(protocol, asked, source, Ledger("tokens", Tokens()), answer, memory=memory)


def heads(shared: bool) -> tuple[Evaluator, ...]:
    value, finished = ValueHead("main", shared=shared), FinishedHead("main", shared=shared)
    return (
        value,
        ProcessHead("main", Minimum(), shared=shared),
        Exponentiated(ProcessHead("main", LogProduct(), shared=shared)),
        Staged(Blend((value, ProcessHead("main", Mean(), shared=shared)), (0.5, 0.5)), finished),
    )


def scores(found: Searched) -> list[list[float]]:
    return [np.nan_to_num(tree.column("score"), nan=-9).tolist() for tree in found.trees]


SEARCHES = [(Beam(n=4, m=2, unit=STEP), kind) for kind in range(4)] + [(Rebase(width=3, unit=Chunk(7)), 3)]


@pytest.mark.parametrize(("controller", "kind"), SEARCHES, ids=repr)
def test_a_shared_head_gives_the_bits_of_a_separate_one_and_costs_less(controller: Any, kind: int) -> None:
    alone, together = pocket(controller, heads(False)[kind]), pocket(controller, heads(True)[kind])
    assert scores(together) == scores(alone)
    assert together.answers == alone.answers
    assert [tree.rows(2) for tree in together.trees] == [tree.rows(2) for tree in alone.trees]
    for mine, theirs in zip(together.ledgers, alone.ledgers, strict=True):
        assert mine.spent.generate == theirs.spent.generate
        assert 0 < mine.spent.signal < 0.2 * theirs.spent.signal
        assert mine.beside.evaluator_tokens == mine.spent.signal
    cramped = pocket(controller, heads(True)[kind], memory=45, batch=6)
    assert scores(cramped) == scores(together)
    assert cramped.ledgers == together.ledgers, "a price does not depend on what was in the cache"
    a, b = cramped.compute.sharing, together.compute.sharing
    assert a is not None
    assert b is not None
    assert a.evictions > 0 == b.evictions
    assert a.computed > b.computed or isinstance(controller, Rebase)
    assert a.represented == b.represented


def test_what_is_charged_for_a_score_is_what_it_computed() -> None:
    found = pocket(Beam(n=4, m=2, unit=STEP), ValueHead("main", shared=True))
    shared, charged, distinct = found.compute.sharing, 0.0, 0
    assert shared is not None
    for tree, ledger in zip(found.trees, found.ledgers, strict=True):
        lines = {tree.tokens(row) for row in range(1, len(tree))}
        assert all(tokens[-1] in (STEP.until[0], MAIN.eos) for tokens in lines), "every step ends its line here"
        fresh = [row for row in range(1, len(tree)) if tree.tokens(row)[-1] == STEP.until[0]]
        charged += ledger.spent.signal
        assert ledger.spent.signal == len(fresh), "an end without a line of its own has the value of its parent"
        distinct += len({tree.tokens(row) for row in fresh})
    assert found.compute.evaluator.tokens == charged
    assert shared.scored == distinct, "of children that are the same, one is read"
    assert shared.scored_represented > 5 * shared.scored


def test_kinds_of_work_are_counted_apart() -> None:
    found = pocket(Particles(3, STEP, depth=2), ValueHead("main", shared=True))
    compute = found.compute
    assert isinstance(compute, Compute)
    assert (compute.expansions.calls, compute.rollouts.calls) == (3, 3)
    assert compute.rollouts.tokens > compute.expansions.tokens > 0
    assert compute.expansions.tokens + compute.rollouts.tokens == sum(each.spent.generate for each in found.ledgers)
    assert compute.evaluator.calls == 6
    assert compute.maintenance.calls == 2
    assert compute.maintenance.seconds > 0


def test_whole_rollouts_read_off_their_own_states_are_best_of_n_without_reading_twice() -> None:
    found = pocket(Beam(n=8, m=8, unit=Rollout(), depth=1), FinishedHead("main", shared=True))
    for tree, ledger in zip(found.trees, found.ledgers, strict=True):
        assert ledger.spent.signal == sum(tree.ended(row) == "eos" for row in tree.rows(2))


def test_sharing_needs_the_proposals_own_model_and_a_memory() -> None:
    step, head = Beam(n=4, m=2, unit=STEP), ValueHead("main", shared=True)
    other = Pocket("tiny")
    source = Arm(Proposal(run="s"), decode_with(other, Temperature(1.0)), lambda q: other.encode(q.prompt))
    asked, ledger = TASK.questions(1), Ledger("tokens", Tokens())
    with pytest.raises(InvalidValue, match=r"Pocket\(name='main'"):
        run_search(Search(step, PerLength(head)), asked, source, ledger, answer)
    with pytest.raises(InvalidValue, match="shared=False"):
        pocket(step, head, memory=0)


def test_parts_of_an_evaluator_share_a_memory() -> None:
    memory = Memory(MAIN, Temperature(1.0))
    plain = Blend((Likelihood(), PerLength(ValueHead("main"))), (0.5, 0.5))
    assert over_memory(plain, memory) is plain
    mixed = Staged(PerLength(ValueHead("main", shared=True)), UCT(c=0.5))  # type: ignore[arg-type]
    shared = over_memory(mixed, memory)
    assert shared.finished is mixed.finished
    assert shared.going.of.memory is memory
    assert shared.worst(50, 20).generated == 1
    asked = TASK.questions(1)[0]
    prefix = Prefix(asked, tuple(MAIN.encode("1+2=3\n")), (0,) * 6)
    assert shared.going.of([prefix]).values == ValueHead("main")([prefix]).values, "nothing stored: everything is read"
    assert memory.sharing.scored == len(MAIN.encode(asked.prompt)) + 6

"""One trajectory under a director: what is appended, what is charged, and what the record says of each token."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.decode import Ban, Chain, Temperature
from ramify.describe import parse as parse_text
from ramify.describe import text as text_of
from ramify.errors import InvalidValue
from ramify.ledger import Calls, Cost, Flops, Ledger, Money, Seconds, Tokens, Work
from ramify.models import decode_with
from ramify.run import (
    Append,
    BudgetForcing,
    Continue,
    Director,
    RejectToLength,
    Revise,
    SelfRefine,
    Sequential,
    Trajectory,
    run_sequential,
)
from ramify.types import APPENDED, Key, Question, Request
from tests.run.tools import MODEL, arm, parse, questions

HELD = [decode_with(MODEL, Chain(Temperature(1.0), Ban((MODEL.eos,))))]


def done(question: Question, text: str) -> bool:
    """A check that needs no reference."""
    return "b" in text


DIRECTORS: tuple[Director, ...] = (
    BudgetForcing(waits=0, most=8),
    BudgetForcing(waits=2, wait=(3, 3), most=12),
    BudgetForcing(waits=1, wait=(3,), most=5, end=(3,), close=(3, 0), cut=(1,), answer=4),
    Revise(rounds=3, critique=(3,), cap=6),
    Revise(rounds=3, critique=(3,), cap=6, check=done),
    RejectToLength(most=2, tries=4),
    SelfRefine(rounds=2, critique=(3,), refine=(3, 3), cap=6),
)


def run(
    director: Director, count: int = 6, limit: float = math.inf, cap: int = 40, samples: int = 1
) -> list[Trajectory]:
    ledger = Ledger("tokens", Tokens(), limit=limit)
    protocol = Sequential(director, cap=cap, samples=samples)
    return run_sequential(protocol, questions(count), [arm()], ledger, parse, text=MODEL.text, end=MODEL.eos, held=HELD)


@pytest.mark.parametrize("director", [d for d in DIRECTORS if getattr(d, "check", None) is None], ids=text_of)
def test_a_protocol_is_its_text(director: Director) -> None:
    protocol = Sequential(director, cap=10)
    assert parse_text(text_of(protocol)) == protocol


@pytest.mark.parametrize("director", DIRECTORS, ids=repr)
@given(limit=st.integers(0, 40), cap=st.integers(1, 40))
@settings(max_examples=25)
def test_nothing_is_spent_past_the_budget_and_it_adds_up(director: Director, limit: int, cap: int) -> None:
    for found in run(director, count=3, limit=limit, cap=cap):
        trace, spent = found.trace, found.ledger.spent
        assert found.ledger.total <= limit
        assert len(trace.tokens) + trace.discarded <= cap
        appended = sum(role == APPENDED for role in trace.role)
        assert spent.control >= appended
        taken_back = len(trace.written)  # an end that was drawn, charged, and written over
        assert trace.own <= spent.generate <= trace.own + trace.discarded + taken_back


def test_budget_forcing_holds_back_the_end_and_appends() -> None:
    for found in run(BudgetForcing(waits=2, wait=(3, 3), most=30), count=10):
        assert found.trace.written == ("wait", "wait")
        assert found.trace.tokens.count(MODEL.eos) == 1, "the ends that were taken back are gone"
        assert found.ledger.spent.control == 4
        assert found.ended == "eos"
        acts = [type(action) for action in found.actions]
        assert acts[:5] == [Continue, Append, Continue, Append, Continue]
        places = [i for i, role in enumerate(found.trace.role) if role == APPENDED]
        after = found.trace.tokens[places[1] + 1]
        assert after != MODEL.eos, "the first token after the string may not be an end"


def test_without_waits_a_trajectory_is_the_leaf_of_its_key() -> None:
    for found in run(BudgetForcing(waits=0, most=12), count=5):
        key = Key("run", found.trace.question.id, 0)
        [leaf] = decode_with(MODEL, Temperature(1.0))([Request(key, (), cap=12)])
        assert found.leaf is not None
        assert found.leaf.tokens.tolist() == leaf.tokens.tolist()
        assert np.array_equal(found.leaf.log_q, leaf.log_q)


def test_the_record_keeps_each_token_as_it_was_drawn() -> None:
    for found in run(BudgetForcing(waits=1, wait=(3,), most=30), count=8):
        assert found.leaf is not None
        role, log_q = found.leaf.role, found.leaf.log_q
        assert np.isnan(log_q[role == APPENDED]).all(), "nothing proposed what the protocol wrote"
        place = int(np.flatnonzero(role == APPENDED)[-1]) + 1
        token = int(found.leaf.tokens[place])
        before = Request(Key("x", "q", 0), (), place + 1, tuple(found.leaf.tokens[: place + 1].tolist()))
        [held] = HELD[0]([before])
        [free] = decode_with(MODEL, Temperature(1.0))([before])
        assert log_q[place] == held.log_q[place], f"token {token} was drawn with the end banned"
        assert log_q[0] == free.log_q[0]


def test_an_answer_phase_has_a_cap_of_its_own_and_a_cut_is_marked() -> None:
    director = BudgetForcing(waits=0, most=1, end=(3,), close=(3, 3), cut=(1,), answer=5)
    kinds = set()
    for found in run(director, count=40):
        assert found.trace.written == ("close",)
        start = found.trace.role.index(APPENDED)
        appended = [t for t, r in zip(found.trace.tokens, found.trace.role, strict=True) if r == APPENDED]
        kinds.add(tuple(appended))
        assert start <= 1
        assert len(found.trace.tokens) - start - len(appended) <= 5
    assert kinds == {(3, 3), (1, 3, 3)}, "some ended their thinking and some ran into the cap"


def test_revision_stops_when_the_check_passes() -> None:
    found = run(Revise(rounds=4, critique=(3,), cap=6, check=done), count=60)
    assert {each.ended for each in found} >= {"checked", "eos"}
    for each in found:
        assert (each.ended == "checked") == ("b" in each.trace.text)
    once = run(Revise(rounds=1, critique=(3,), cap=6, check=done), count=60)
    assert sum("b" in each.trace.text for each in found) > sum("b" in each.trace.text for each in once)


def test_self_refine_lets_the_model_criticise_and_answer_again() -> None:
    for found in run(SelfRefine(rounds=2, critique=(3,), refine=(3, 3), cap=12), count=8, cap=100):
        assert found.trace.written == ("critique", "refine", "critique", "refine")
        assert found.ledger.spent.control == 6
    for found in run(SelfRefine(rounds=2, critique=(3,), refine=(3, 3), cap=12, done=bool), count=3):
        assert (found.trace.written, found.ended) == (("critique",), "done")


def test_rejection_to_length_charges_what_it_throws_away() -> None:
    for found in run(RejectToLength(most=2, tries=4), count=30):
        assert len(found.trace.tokens) <= 2
        assert found.ledger.total == found.trace.own + found.trace.discarded
        assert found.trace.restarts < 4
        if found.trace.restarts:
            assert found.trace.discarded > 0


def test_a_director_that_forbids_the_end_needs_samplers_that_can() -> None:
    protocol = Sequential(BudgetForcing(waits=1, wait=(3,), most=9))
    with pytest.raises(InvalidValue, match="hand in samplers that ban it"):
        run_sequential(protocol, questions(1), [arm()], Ledger("t", Tokens()), parse, text=MODEL.text, end=MODEL.eos)
    with pytest.raises(InvalidValue, match=r"BudgetForcing.wait"):
        BudgetForcing(waits=1)


def test_trajectories_do_not_depend_on_each_other() -> None:
    director = BudgetForcing(waits=2, wait=(3,), most=20)
    many = {each.trace.question.id: each.trace.tokens for each in run(director, count=12)}
    for each in run(director, count=3):
        assert many[each.trace.question.id] == each.trace.tokens


@pytest.mark.parametrize("director", DIRECTORS, ids=repr)
@pytest.mark.parametrize("cost", [Calls(), Seconds(0.01, 0.1), Money(1e5, 2e5, 1e4, 1e-3), Flops(1000, 2, 8)], ids=repr)
def test_any_unit_is_a_budget(director: Director, cost: Cost) -> None:
    """A continuation whose end is held back is two calls, and what is appended may cost more than what is drawn."""
    prompted = dataclasses.replace(arm(), encode=lambda _: (3, 3))
    for share in range(0, 30, 3):
        limit = share * cost(Work(generated=1, prompt=1)) / 2
        found = run_sequential(
            Sequential(director, cap=40),
            questions(2),
            [prompted],
            Ledger("units", cost, limit=limit),
            parse,
            text=MODEL.text,
            end=MODEL.eos,
            held=HELD,
        )
        assert all(each.ledger.total <= limit for each in found)

"""Leaf protocols: exact in expectation, never past their budget, and the same whatever the concurrency."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.bank import Candidates, Proposal
from ramify.decide import BestOfN, Plurality, SoftBestOfN, WeightedVote
from ramify.decode import Temperature
from ramify.describe import parse as parse_text
from ramify.describe import text
from ramify.errors import InvalidValue, StoreError, WorkerLost
from ramify.evidence import mean_logprob, normalised_likelihood
from ramify.ledger import Calls, Flops, Ledger, Money, Seconds, Tokens, Work
from ramify.models import OutcomeHead, Pocket, decode_with
from ramify.run import Arm, Leaves, OnlineConfidence, Run, run_leaves
from ramify.stop import AdaptiveConsistency, DirichletConsistency, Esc, LeaderShare, TokenLimit
from ramify.store import Store
from ramify.tasks import Countdown
from ramify.types import Key, Leaf, Question, Request, Sampler
from tests.run.tools import ANSWERS, MODEL, arm, delayed, parse, questions, shuffled

PROTOCOLS = (
    Leaves(n=5, cap=6),
    Leaves(n=5, cap=6, order="questions"),
    Leaves(n=5, cap=6, stop=AdaptiveConsistency(0.8)),
    Leaves(n=6, cap=6, stop=Esc(2), order="questions"),
    Leaves(n=6, cap=6, stop=Esc(2, output="all")),
    Leaves(n=6, cap=6, stop=LeaderShare(0.7)),
    Leaves(n=4, cap=6, rule=BestOfN("likelihood"), evidence=(("likelihood", mean_logprob()),)),
    Leaves(
        n=4, cap=6, rule=WeightedVote("p"), evidence=(("p", normalised_likelihood()),), stop=DirichletConsistency(0.8)
    ),
    Leaves(n=4, cap=6, rule=SoftBestOfN("likelihood", 2.0), evidence=(("likelihood", mean_logprob()),)),
    Leaves(n=4, cap=6, truncate=True, each=11),
    Leaves(n=4, cap=6, within=TokenLimit(3)),
    Leaves(n=5, cap=6, schedule=(0, 0, 1)),
    Leaves(n=6, cap=6, order="uncertain", stop=AdaptiveConsistency(0.9)),
    Leaves(n=6, cap=8, top=2, within=OnlineConfidence(warmup=3, eta=50, window=2, k=2), share_prompt=False),
)


def run(
    protocol: Leaves,
    count: int = 4,
    limit: float = math.inf,
    ahead: int = 1,
    allowance: float = math.inf,
    batch: int = 16,
    wrap: Callable[[Sampler], Sampler] = lambda sampler: sampler,
) -> Run:
    arms = [arm("run", batch=batch), arm("other")][: max(protocol.schedule) + 1]
    arms = [dataclasses.replace(each, sampler=wrap(each.sampler)) for each in arms]
    ledger = Ledger("tokens", Tokens(), limit=limit)
    return run_leaves(protocol, questions(count), arms, ledger, parse, ahead=ahead, allowance=allowance)


def seen(found: Run) -> tuple[object, ...]:
    """Everything that must not depend on concurrency."""
    tokens = [] if found.bank.tokens is None else found.bank.tokens.columns["token"].tolist()
    facts = (found.answers, found.ended, found.steps, found.ledger.spent, found.costs)
    return (
        *map(str, facts),
        found.bank.answers.tolist(),
        found.bank.samples.tolist(),
        tokens,
        found.choice.winner.tolist(),
    )


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=text)
def test_a_protocol_is_its_text(protocol: Leaves) -> None:
    assert parse_text(text(protocol)) == protocol


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=text)
def test_one_worker_or_many_fast_or_slow_the_run_is_the_same(protocol: Leaves) -> None:
    alone = run(protocol, ahead=1, batch=1)
    for ahead, batch in ((4, 2), (32, 32), (7, 16)):
        assert seen(run(protocol, ahead=ahead, batch=batch)) == seen(alone)
    for seed in range(3):
        assert seen(run(protocol, ahead=9, wrap=partial(shuffled, seed=seed))) == seen(alone)
    slow = run(protocol, ahead=8, wrap=lambda sampler: delayed(sampler, lambda leaf: 4 if "a" in leaf.text else 1, 8))
    assert seen(slow) == seen(alone)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=text)
@given(limit=st.integers(0, 90), ahead=st.sampled_from([1, 5]), allowance=st.integers(0, 20))
@settings(max_examples=20)
def test_no_run_spends_past_its_budget(protocol: Leaves, limit: int, ahead: int, allowance: int) -> None:
    found = run(protocol, count=3, limit=limit, ahead=ahead, allowance=allowance)
    assert found.ledger.total <= limit
    assert found.surplus.total <= allowance
    assert all(cost <= protocol.each for cost in found.costs)
    lengths = found.bank.length[found.bank.drawn] if found.bank.length is not None else np.empty(0)
    assert found.ledger.total == found.ledger.spent.generate == lengths.sum() == sum(found.costs)
    assert seen(found) == seen(run(protocol, count=3, limit=limit)), "run-ahead does not change what the budget buys"
    if limit < protocol.cap and not protocol.truncate:
        assert found.ledger.total == 0
        assert found.answers == (None,) * 3
        assert set(found.ended) <= {"budget"}


def test_a_budget_too_small_submits_the_declared_fallback() -> None:
    found = run(Leaves(n=3, cap=6, fallback="a"), limit=5)
    assert found.answers == ("a",) * 4
    assert found.ledger.total == 0


def test_truncation_cuts_the_last_leaf_at_what_is_left_and_says_so() -> None:
    whole, cut = run(Leaves(n=5, cap=6), count=1), run(Leaves(n=5, cap=6, truncate=True), count=1, limit=7)
    assert cut.ledger.total == 7
    assert whole.bank.tokens is not None
    assert cut.bank.tokens is not None
    last = int(cut.bank.drawn.sum()) - 1
    kept = cut.bank.tokens.of(0, last)["token"]
    assert kept.tolist() == whole.bank.tokens.of(0, last)["token"][: len(kept)].tolist()
    assert cut.bank.endings[cut.bank.ended[0, last]] in ("stop:budget", "eos")


def expected(protocol: Leaves) -> float:
    """P(the submitted answer is a), by enumerating every sequence of answers, stopping each where the rule says."""
    total = 0.0
    for row in itertools.product(range(3), repeat=protocol.n):
        weight = math.prod(list(ANSWERS.values())[i] for i in row)
        shown = Candidates(np.array(row))
        for n in range(1, protocol.n + 1):
            shown = Candidates(np.array(row[:n]))
            if protocol.stop is not None and bool(protocol.stop(shown, None).now.stop):
                break
        revealed = getattr(protocol.stop, "revealed", lambda candidates: candidates)(shown)
        total += weight * (shown.answers[int(protocol.rule(revealed).winner)] == 0)
    return total


EXACT = (
    Leaves(n=1, cap=30),
    Leaves(n=5, cap=30),
    Leaves(n=5, cap=30, stop=AdaptiveConsistency(0.8)),
    Leaves(n=6, cap=30, stop=Esc(2)),
    Leaves(n=6, cap=30, stop=Esc(2, output="all")),
    Leaves(n=5, cap=30, stop=LeaderShare(0.6)),
)


@pytest.mark.parametrize("protocol", EXACT, ids=text)
def test_expected_utility_is_that_of_exact_enumeration(protocol: Leaves) -> None:
    count = 800
    found = run(protocol, count=count, ahead=64, batch=64)
    right = np.mean([answer == "a" for answer in found.answers])
    exact = expected(protocol)
    assert abs(right - exact) < 4 * math.sqrt(exact * (1 - exact) / count)


def test_slow_right_answers_do_not_lose() -> None:
    """Right answers take four times as long: stopping in order of arrival would lose them."""
    protocol = Leaves(n=8, cap=30, stop=LeaderShare(0.6, least=3), rule=Plurality())
    plain = run(protocol, count=200, ahead=8)
    slow = run(
        protocol,
        count=200,
        ahead=8,
        wrap=lambda sampler: delayed(sampler, lambda leaf: 4 if "a" in leaf.text else 1, 8),
    )
    assert slow.answers == plain.answers
    assert np.mean([answer == "a" for answer in slow.answers]) > 0.5


def test_a_bank_made_under_a_stop_is_no_fixed_sample() -> None:
    assert run(Leaves(n=5, cap=6)).bank.kind == "iid"
    stopped = run(Leaves(n=5, cap=6, stop=AdaptiveConsistency(0.8))).bank
    assert stopped.kind == "stopped"
    with pytest.raises(InvalidValue, match="this bank is stopped"):
        stopped.need_independence("Pass@k")


def test_surplus_is_charged_and_cancelled_where_the_sampler_can() -> None:
    protocol = Leaves(n=12, cap=30, stop=LeaderShare(0.6, least=2), order="questions")
    narrow, wide = run(protocol, count=6), run(protocol, count=6, ahead=24, batch=24)
    assert narrow.surplus.total == 0
    assert wide.surplus.total > 0
    assert wide.surplus.discarded.generate == wide.surplus.total
    assert wide.total == wide.ledger.total + wide.surplus.total
    bounded = run(protocol, count=6, ahead=24, batch=24, allowance=40)
    assert bounded.surplus.total <= 40
    assert seen(bounded) == seen(wide) == seen(narrow)


def test_prompts_are_charged_once_where_they_are_shared() -> None:
    base = arm()
    long = dataclasses.replace(base, encode=lambda _: (3, 3, 3))
    for shared, times in ((True, 1), (False, 4)):
        ledger = Ledger("tokens", Tokens(prompt=True))
        found = run_leaves(Leaves(n=4, cap=6, share_prompt=shared), questions(2), [long], ledger, parse)
        assert found.bank.length is not None
        assert found.ledger.total == found.bank.length.sum() + 2 * 3 * times


@pytest.mark.parametrize(
    "cost", [Tokens(True), Calls(), Flops(1000, 2, 8), Money(2.0, 0.5, 0.1, 1e-6), Seconds(0.1, 0.01)]
)
def test_any_unit_is_a_budget(cost: Tokens) -> None:
    one = cost(Work(generated=6, prompt=0))
    ledger = Ledger("units", cost, limit=3.5 * one)
    found = run_leaves(Leaves(n=4, cap=6), questions(3), [arm()], ledger, parse, ahead=3)
    assert 0 < found.ledger.total <= 3.5 * one


def test_several_arms_make_one_bank_in_order_of_sample() -> None:
    found = run(Leaves(n=5, cap=6, schedule=(0, 1, 1)))
    assert found.bank.kind == "heterogeneous"
    assert found.bank.source[0].tolist() == [0, 1, 1, 0, 1]
    assert found.bank.samples[0].tolist() == [0, 1, 2, 3, 4]
    assert found.bank.log_q is not None
    assert np.isfinite(found.bank.log_q).all()
    direct = decode_with(MODEL, Temperature(1.0))
    [leaf] = direct([Request(Key("other", "q0", 1), (), cap=6)])
    assert found.bank.text is not None
    assert found.bank.text[0, 1] == leaf.text


def test_an_uncertain_question_gets_the_budget_that_a_settled_one_does_not_need() -> None:
    """One budget over questions of different difficulty: where the vote is close there are more leaves."""
    found = run(Leaves(n=12, cap=6, order="uncertain", stop=AdaptiveConsistency(0.99)), count=30, limit=500)
    counts = found.bank.drawn.sum(axis=1)
    last = {step.question: step.value for step in found.steps}
    sure = np.array([last[question.id] for question in found.bank.questions])
    assert counts.min() >= 1
    assert counts.max() > counts.min() + 2
    spread = [values.min() for values in (sure,)]
    even = run(Leaves(n=12, cap=6, stop=AdaptiveConsistency(0.99)), count=30, limit=500)
    evenly = {step.question: step.value for step in even.steps}
    assert spread[0] >= min(evenly.values()), "the least certain question is more certain than under equal shares"


def test_leaves_that_a_rule_cut_do_not_vote() -> None:
    found = run(Leaves(n=4, cap=12, within=TokenLimit(1)), count=2)
    assert set(np.array(found.bank.endings)[found.bank.ended[found.bank.drawn]]) == {"stop:TokenLimit"}
    assert found.answers == (None, None)


def test_a_verifier_s_reading_is_charged_as_signal_and_admitted_beforehand() -> None:
    task, model = Countdown(3), Pocket("main")
    proposal = Proposal(run="verified", model=repr(model))
    source = Arm(proposal, decode_with(model, Temperature(1.0)), lambda q: tuple(model.encode(q.prompt)))
    protocol = Leaves(n=3, cap=60, rule=BestOfN("right"), evidence=(("right", OutcomeHead("main")),), order="questions")

    def answer(text: str, question: Question) -> str | None:
        return task.parse(text, question).answer

    for limit in (math.inf, 300):
        ledger = Ledger("tokens", Tokens(), limit=limit)
        found = run_leaves(protocol, task.questions(3), [source], ledger, answer, ahead=3)
        assert found.ledger.total <= limit
        assert found.bank.length is not None
        prompts = [len(model.encode(question.prompt)) for question in found.bank.questions]
        lengths, drawn = np.where(found.bank.drawn, found.bank.length, 0), found.bank.drawn.sum(axis=1)
        assert found.ledger.spent.generate == lengths.sum()
        assert found.ledger.spent.signal == lengths.sum() - drawn.sum() + np.dot(prompts, drawn), "all but the end"
        assert drawn.sum() == (9 if limit == math.inf else drawn.sum())
        assert drawn[0] >= 1


def test_errors_name_the_field() -> None:
    with pytest.raises(InvalidValue, match="BestOfN needs score"):
        Leaves(rule=BestOfN("score"))
    with pytest.raises(InvalidValue, match="there are 1 arms"):
        run_leaves(Leaves(schedule=(0, 3)), questions(1), [arm()], Ledger("tokens", Tokens()), parse)
    with pytest.raises(InvalidValue, match="give each arm its own run"):
        run_leaves(Leaves(schedule=(0, 1)), questions(1), [arm(), arm()], Ledger("tokens", Tokens()), parse)
    with pytest.raises(InvalidValue, match=r"Leaves.order"):
        Leaves(order="arrival")
    with pytest.raises(InvalidValue, match=r"that is a class: write rule=Plurality\(...\)"):
        Leaves(n=4, cap=8, rule=Plurality)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="goes by a stop's statistic"):
        Leaves(order="uncertain")


def test_the_pocket_models_run_the_same_with_any_width_and_batch() -> None:
    task, model = Countdown(3), Pocket("tiny")
    protocol = Leaves(n=6, cap=48, stop=AdaptiveConsistency(0.9), rule=Plurality())

    def once(ahead: int, batch: int, workers: int = 1) -> tuple[object, ...]:
        sampler = decode_with(model, Temperature(1.0), batch=batch, workers=workers)
        source = Arm(Proposal(run="widths"), sampler, lambda q: tuple(model.encode(q.prompt)))
        ledger = Ledger("tokens", Tokens(), limit=900)
        return seen(
            run_leaves(protocol, task.questions(6), [source], ledger, lambda t, q: task.parse(t, q).answer, ahead=ahead)
        )

    alone = once(1, 1)
    for ahead, batch in ((4, 4), (32, 16), (32, 64)):
        assert once(ahead, batch) == alone
    assert once(8, 8, workers=2) == alone, "nor does it matter how many processes sample"


def test_a_sampler_that_leaves_a_request_out_is_named_and_not_waited_for() -> None:
    def silent(requests: Iterable[Request]) -> Iterator[Leaf]:
        list(requests)
        yield from ()

    def forgetful(requests: Iterable[Request]) -> Iterator[Leaf]:
        inner = decode_with(MODEL, Temperature(1.0), batch=24)
        yield from (leaf for leaf in inner(requests) if leaf.ended != "stop:cancelled")

    def confused(requests: Iterable[Request]) -> Iterator[Leaf]:
        for leaf in decode_with(MODEL, Temperature(1.0))(requests):
            yield dataclasses.replace(leaf, key=Key("run", "who?", 0))

    protocol = Leaves(n=12, cap=30, stop=LeaderShare(0.6, least=2), order="questions")
    for sampler in (silent, forgetful):
        with pytest.raises(WorkerLost, match="a sampler answers every request"):
            run(protocol, count=6, ahead=24, wrap=lambda _, sampler=sampler: sampler)  # type: ignore[misc]
    with pytest.raises(InvalidValue, match="was not asked for it"):
        run(protocol, wrap=lambda _: confused)


def test_what_is_raised_while_a_leaf_is_kept_does_not_end_the_run_as_if_it_were_finished(tmp_path: Path) -> None:
    def broken(text: str, question: Question) -> str:
        raise StopIteration

    store = Store.create(tmp_path / "bank")
    with pytest.raises(StopIteration):
        run_leaves(Leaves(n=2, cap=4), questions(1), [arm()], Ledger("tokens", Tokens()), broken, store=store)


@pytest.mark.parametrize("limit", range(13))
def test_a_leaf_at_the_cap_that_the_budget_grants_ends_alike_with_and_without_running_ahead(limit: int) -> None:
    protocol = Leaves(n=4, cap=6, truncate=True, within=TokenLimit(2))
    endings = []
    for ahead in (1, 6):
        bank = run(protocol, count=3, limit=limit, ahead=ahead).bank
        endings.append([bank.endings[code] for code in bank.ended[bank.drawn]])
    assert endings[0] == endings[1]


@pytest.mark.parametrize(("before", "now"), [(1, 30), (30, 1)])
def test_leaves_of_another_cap_are_not_taken_for_those_of_this_one(tmp_path: Path, before: int, now: int) -> None:
    store, ledger = Store.create(tmp_path / "bank"), Ledger("tokens", Tokens())
    run_leaves(Leaves(n=4, cap=before), questions(4), [arm()], ledger, parse, store=store)
    with pytest.raises(StoreError, match=f"details.cap: {before} there, {now} now"):
        run_leaves(Leaves(n=4, cap=now), questions(4), [arm()], ledger, parse, store=store)


def test_a_ledger_that_was_charged_before_goes_on_and_is_not_counted_again() -> None:
    first = run_leaves(Leaves(n=2, cap=6), questions(2), [arm()], Ledger("tokens", Tokens(), limit=100), parse)
    protocol = Leaves(n=2, cap=6, each=12)
    second = run_leaves(protocol, questions(2), [arm("more")], first.ledger, parse, ahead=2, allowance=1)
    assert second.surplus.total <= 1
    assert second.ledger.total == first.ledger.total + sum(second.costs)
    assert second.bank.length is not None
    assert sum(second.costs) == second.bank.length.sum()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=text)
@pytest.mark.parametrize("limit", [13, 30, math.inf])
@pytest.mark.parametrize("ahead", [4, 64])
def test_everything_generated_is_booked_and_none_of_it_past_the_budget(
    protocol: Leaves, limit: float, ahead: int
) -> None:
    """Rollouts ahead are paid for too: by the budget if they are revealed, as surplus if a stop comes first."""
    made = list[int]()

    def counting(sampler: Sampler) -> Sampler:
        def watched(requests: Iterable[Request]) -> Iterator[Leaf]:
            for leaf in sampler(requests):
                made.append(len(leaf.tokens))
                yield leaf

        return watched

    found = run(protocol, limit=limit, ahead=ahead, wrap=counting)
    assert sum(made) == found.ledger.spent.generate + found.surplus.spent.generate
    if protocol.stop is None and not protocol.truncate and protocol.within is None:
        assert found.surplus.total == 0, "nothing is launched that the budget could not pay for"
    if math.isfinite(limit) and protocol.stop is None:
        assert sum(made) <= limit


def test_leaves_that_wait_for_their_turn_survive_an_interruption(tmp_path: Path) -> None:
    given = list[Key]()

    def cut(sampler: Sampler) -> Sampler:
        def dying(requests: Iterable[Request]) -> Iterator[Leaf]:
            for leaf in reversed([leaf for leaf, _ in zip(sampler(requests), range(9), strict=False)]):
                given.append(leaf.key)
                yield leaf
            raise KeyboardInterrupt

        return dying

    with pytest.raises(KeyboardInterrupt):
        run_leaves(
            Leaves(n=5, cap=6),
            questions(4),
            [dataclasses.replace(arm("run"), sampler=cut(arm("run").sampler))],
            Ledger("tokens", Tokens()),
            parse,
            ahead=16,
            store=Store.create(tmp_path / "bank"),
        )
    with Store.open(tmp_path / "bank").snapshot() as snapshot:
        kept = {key for key, _ in snapshot.digests()}
    assert kept == set(given)

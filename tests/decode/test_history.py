"""Penalties, DRY, thinking lengths and masks: operators that read the trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.decode import (
    Ban,
    Chain,
    Dry,
    ForcePrefix,
    Frequency,
    Greedy,
    Mask,
    MaxThinking,
    MinThinking,
    Presence,
    Repetition,
    TokenMeasure,
    TopK,
)
from tests.methods import alternate
from tests.oracle import WORKED, histories, kept, measure


def test_repetition_divides_positive_and_multiplies_negative_logits() -> None:
    logits = np.array([2.0, -1.0, 0.5, 0.0])
    side = measure([0.25] * 4, tokens=[0, 1, 1], prompt=[2]).side
    before = TokenMeasure.of(logits, side)
    assert Repetition(2.0)(before).log_weight.tolist() == [1.0, -2.0, 0.25, 0.0]
    assert Repetition(2.0, scope="generated")(before).log_weight.tolist() == [1.0, -2.0, 0.5, 0.0]
    assert Repetition(2.0, scope="all", last=2)(before).log_weight.tolist() == [2.0, -2.0, 0.5, 0.0]


def test_frequency_counts_and_presence_does_not() -> None:
    before = TokenMeasure.of(np.zeros(4), measure([0.25] * 4, tokens=[1, 1, 3], prompt=[0, 0]).side)
    assert Frequency(0.5)(before).log_weight.tolist() == [0, -1.0, 0, -0.5]
    assert Presence(0.5)(before).log_weight.tolist() == [0, -0.5, 0, -0.5]
    assert Frequency(0.5, scope="all")(before).log_weight.tolist() == [-1.0, -1.0, 0, -0.5]
    assert Frequency(0.5, scope="all", last=4)(before).log_weight.tolist() == [-0.5, -1.0, 0, -0.5]


def dry_by_hand(trace: list[int], size: int, allowed: int, base: float, breakers: tuple[int, ...] = ()) -> list[float]:
    """The definition: for each earlier place, how long a suffix of the trace ends there; its successor pays."""
    cost = [0.0] * size
    for place in range(len(trace) - 1):
        match = 0
        while match <= place and trace[place - match] == trace[-1 - match] and trace[place - match] not in breakers:
            match += 1
        if match >= allowed:
            token = trace[place + 1]
            cost[token] = max(cost[token], base ** (match - allowed))
    return cost


@given(st.lists(st.integers(0, 3), max_size=14), st.integers(1, 3), st.sampled_from([(), (1,)]))
def test_dry_is_its_definition(trace: list[int], allowed: int, breakers: tuple[int, ...]) -> None:
    before = TokenMeasure.of(np.zeros(4), measure([0.25] * 4, tokens=trace).side)
    after = Dry(1.0, base=2.0, allowed=allowed, breakers=breakers)(before)
    assert (-after.log_weight).tolist() == dry_by_hand(trace, 4, allowed, 2.0, breakers)


@given(st.data())
def test_ragged_histories_are_read_row_by_row(data: st.DataObject) -> None:
    side = data.draw(histories(3, 5))
    before = TokenMeasure.of(np.zeros((3, 5)), side)
    after = Dry(1.0, base=2.0, allowed=1)(before)
    for row in range(3):
        trace = [t for t in (*side.prompt[row].tolist(), *side.tokens[row].tolist()) if t >= 0]
        assert (-after.log_weight[row]).tolist() == dry_by_hand(trace, 5, 1, 2.0)


def test_dry_survives_a_long_loop() -> None:
    before = TokenMeasure.of(np.zeros(3), measure([1 / 3] * 3, tokens=[0, 1] * 2000).side)
    assert np.isfinite(Dry(1.0)(before).log_weight).all()
    assert Dry(1.0)(before).log_weight[0] < -1e37, "capped where the penalty passes 1e38"


def test_dry_never_makes_a_live_token_impossible() -> None:
    side = measure([1.0], tokens=[0] * 400).side
    alone = Dry(5.0)(TokenMeasure.of(np.zeros(1, dtype=np.float32), side))
    assert np.isfinite(alone.log_weight).all()
    assert alone.probs.tolist() == [1.0]


def think(operator: object, trace: list[int], probs: tuple[float, ...] = WORKED) -> TokenMeasure:
    return operator(measure(probs, tokens=trace))  # type: ignore[operator, no-any-return]


def test_max_thinking_writes_the_end_and_only_then() -> None:
    cap = MaxThinking(3, end=(4, 5))
    assert int(think(cap, [0, 1]).forced) == -1
    assert int(think(cap, [0, 1, 2]).forced) == 4
    assert int(think(cap, [0, 1, 2, 4]).forced) == 5
    assert int(think(cap, [0, 1, 2, 4, 5]).forced) == -1
    assert int(think(cap, [0, 4, 2, 1, 1]).forced) == -1, "the model ended by itself"
    assert int(think(MaxThinking(0, end=(4,)), []).forced) == 4


def test_min_thinking_gates_the_end_or_moves_its_mass() -> None:
    assert kept(think(MinThinking(2, end=0), [])) == [1, 2, 3, 4, 5]
    assert kept(think(MinThinking(2, end=0), [1, 1])) == [0, 1, 2, 3, 4, 5]
    moved = think(MinThinking(2, end=0, instead=(1, 5)), [])
    assert moved.probs == pytest.approx([0, 0.25 + 0.175, 0.15, 0.10, 0.08, 0.07 + 0.175])
    gone = MinThinking(2, end=0, instead=(5,))(TopK(2)(measure(WORKED)))
    assert kept(gone) == [1], "a switch word that is not live gets nothing"
    only = think(MinThinking(1, end=0), [], (1.0, 0.0))
    assert kept(only) == [0]
    assert bool(only.fallback), "nothing but the end was live: the mode stays, and the record says so"


def test_prefix_and_mask_and_ban() -> None:
    assert [int(think(ForcePrefix((3, 1)), trace).forced) for trace in ([], [3], [3, 1])] == [3, 1, -1]
    assert kept(think(Ban((0, 5)), [])) == [1, 2, 3, 4]
    assert kept(think(Mask(alternate), [])) == [0, 2, 4, 5]
    assert kept(think(Mask(alternate), [0])) == [1, 3, 5]


def test_actions_and_greedy_compose_in_either_order() -> None:
    p = measure(WORKED, tokens=[1, 1])
    cap = MaxThinking(2, end=(4,))
    assert int(Chain(cap, Greedy())(p).forced) == int(Chain(Greedy(), cap)(p).forced) == 4
    assert int(Chain(ForcePrefix((0,)), cap)(p).forced) == 4
    assert int(Chain(Ban((0,)), Greedy())(p).forced) == 1
    assert int(Chain(cap, TopK(1))(p).forced) == 4, "an action may name a token outside the support"

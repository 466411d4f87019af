"""The laws of docs/design.md, each over every method in tests/methods.py."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.arrays import Array
from ramify.decode import (
    Chain,
    Draw,
    Operator,
    Parallel,
    Side,
    Temperature,
    TokenMeasure,
    TopK,
    TopP,
    Typical,
    begin,
    step,
)
from ramify.describe import text
from ramify.keys import streams
from ramify.types import Key
from tests.methods import ACTIONS, DRAWS, GATES, HEADS, OPERATORS, WEIGHTS
from tests.oracle import histories, logit_rows, measure, ranked

name = text


def measures(data: st.DataObject, dtype: type = np.float64, **shape: int) -> TokenMeasure:
    logits: np.ndarray = data.draw(logit_rows(**shape)).astype(dtype)
    return TokenMeasure.of(logits, data.draw(histories(*logits.shape)))


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
@given(data=st.data())
@settings(max_examples=25)
def test_an_operator_never_enlarges_the_support_and_always_leaves_mass(operator: Operator, data: st.DataObject) -> None:
    before = measures(data, dtype=data.draw(st.sampled_from([np.float32, np.float64])))
    after = operator(before)
    forcing = "Mixture" in text(operator)  # may give mass to tokens that only some configurations force
    assert forcing or not (after.live & ~before.live).any()
    assert (after.support >= 1).all()
    assert np.isfinite(after.peak).all()
    assert np.allclose(after.probs.sum(-1), 1.0, atol=1e-12 if before.logits.dtype == np.float64 else 1e-6)
    assert np.allclose(np.exp(after.log_kernel).sum(-1), 1.0, atol=1e-5)
    assert after.logits is before.logits
    assert after.log_weight.dtype == before.log_weight.dtype


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
@given(data=st.data())
@settings(max_examples=25)
def test_a_batched_call_is_a_loop_of_single_calls(operator: Operator, data: st.DataObject) -> None:
    batch = measures(data, dtype=data.draw(st.sampled_from([np.float32, np.float64])))
    together = operator(batch)
    for row in range(len(batch.logits)):
        part = slice(row, row + 1)
        alone = operator(TokenMeasure.of(batch.logits[part], batch.side.rows(part)))
        for field in ("live", "forced", "fallback", "energy", "log_total"):
            assert np.array_equal(getattr(together, field)[part], getattr(alone, field)), field
    grid = TokenMeasure.of(batch.logits[None], Side(batch.side.tokens[None], batch.side.prompt[None]))
    assert np.array_equal(operator(grid).live[0], together.live), "any leading axes"


@pytest.mark.parametrize("operator", GATES, ids=name)
@given(data=st.data())
@settings(max_examples=25)
def test_a_gate_leaves_weights_and_actions_alone(operator: Operator, data: st.DataObject) -> None:
    before = measures(data)
    after = operator(before)
    assert after.log_weight is before.log_weight
    assert after.forced is before.forced


@pytest.mark.parametrize("operator", WEIGHTS, ids=name)
@given(data=st.data())
@settings(max_examples=25)
def test_a_weight_leaves_the_support_alone(operator: Operator, data: st.DataObject) -> None:
    before = measures(data)
    assert operator(before).live is before.live


@pytest.mark.parametrize("operator", HEADS, ids=name)
@given(data=st.data())
@settings(max_examples=25)
def test_a_head_gate_keeps_the_mode_and_a_prefix_of_the_ranking(operator: Operator, data: st.DataObject) -> None:
    before = measures(data)
    after = operator(before)
    for logits, live in zip(before.logits, after.live, strict=True):
        kept = {int(i) for i in np.flatnonzero(live)}
        lowest = min(logits[i] for i in kept)
        assert all(i in kept for i in range(len(logits)) if logits[i] > lowest), "nothing heavier is missing"
        assert ranked(logits)[0] in kept


@given(data=st.data())
def test_parallel_heads_collapse_to_the_strictest(data: st.DataObject) -> None:
    before = measures(data)
    gates = data.draw(st.lists(st.sampled_from(HEADS), min_size=1, max_size=4, unique=True))
    together = Parallel(*gates)(before)
    sizes = np.min([gate(before).support for gate in gates], axis=0)
    assert together.support.tolist() == sizes.tolist()
    strictest = np.argmin([gate(before).support for gate in gates], axis=0)
    for row, index in enumerate(strictest):
        if len({before.logits[row, i] for i in np.flatnonzero(before.live[row])}) == before.support[row]:  # no ties
            assert np.array_equal(together.live[row], gates[index](before).live[row])


def test_typical_does_not_collapse() -> None:
    p = measure([0.35, 0.25, 0.15, 0.10, 0.08, 0.07])
    typical, head = Typical(0.3)(p), TopK(1)(p)
    both = Parallel(Typical(0.3), TopK(2))(p)
    assert both.support < min(int(typical.support), int(TopK(2)(p).support)), "the intersection is smaller than both"
    assert not (typical.live & head.live).any()


def test_sequential_order_matters_and_is_data() -> None:
    one, other = Chain(TopK(4), TopP(0.8)), Chain(TopP(0.8), TopK(4))
    assert one != other
    assert repr(one) != repr(other)


@pytest.mark.parametrize("operator", ACTIONS, ids=name)
def test_a_forced_token_is_a_point_mass_with_log_q_zero(operator: Operator) -> None:
    logits = np.log([[0.4, 0.3, 0.2, 0.1]])
    side = Side.start(operator, [()])
    for _ in range(4):
        drawn, after = step(operator, logits, side, streams([Key("r", "q", 0)]))
        if drawn.forced[0]:
            assert drawn.log_q[0] == 0.0
            assert drawn.support[0] == 1
        side = after


LARGE = [op for op in OPERATORS if not getattr(op, "tokens", None)]


@pytest.mark.parametrize("operator", LARGE, ids=name)
@pytest.mark.parametrize("shape", ["peaked", "flat", "tied", "half dead"])
def test_laws_hold_on_150_000_tokens(operator: Operator, shape: str) -> None:
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(1, 150_000)).astype(np.float32)
    if shape == "peaked":
        logits[0, rng.choice(150_000, 30, replace=False)] += np.linspace(20, 8, 30, dtype=np.float32)
    elif shape == "tied":
        logits = np.round(logits, 1)
    elif shape == "half dead":
        logits[0, ::2] = -np.inf
    history = Side(rng.integers(0, 150_000, (1, 50)), rng.integers(0, 150_000, (1, 20)))
    before = TokenMeasure.of(logits, history)
    after = operator(before)
    assert not (after.live & ~before.live).any() or "Mixture" in text(operator)
    assert abs(float(after.probs.sum()) - 1) < 1e-6
    drawn, _ = step(operator, logits, history, streams([Key("large", shape, 0)]))
    token = int(drawn.token[0])
    assert bool(after.live[0, token]) or bool(drawn.forced[0])
    if not drawn.forced[0]:
        assert drawn.log_q[0] == pytest.approx(float(after.log_probs[0, token]), abs=1e-5)
    assert drawn.rank[0] == 1 + (logits[0] > logits[0, token]).sum() + (logits[0, :token] == logits[0, token]).sum()


def rollout(
    operator: Operator, draw: Draw, rows: list[int], steps: int, given: dict[int, Array] | None = None
) -> list[tuple[Array, Array]]:
    """Tokens and log q of some rows of a fixed random table of logits, step by step."""
    table = np.random.default_rng(3).normal(size=(steps, 6, 5)) * 2
    side = Side.start(operator, [()] * len(rows))
    out = []
    for t in range(steps):
        imposed = None if given is None or t not in given else given[t]
        stream = streams(Key("r", "q", i) for i in rows)
        drawn, side = step(operator, table[t, rows], side, stream, draw=draw, given=imposed)
        out.append((drawn.token, drawn.log_q))
    return out


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
@pytest.mark.parametrize("draw", DRAWS, ids=name)
def test_the_same_keys_give_the_same_tokens_alone_batched_shuffled_and_resumed(operator: Operator, draw: Draw) -> None:
    steps, rows = 5, [0, 1, 2, 3, 4, 5]
    whole = rollout(operator, draw, rows, steps)
    shuffled = rollout(operator, draw, rows[::-1], steps)
    alone = [rollout(operator, draw, [row], steps) for row in rows]
    imposed = {t: whole[t][0] for t in range(3)}
    resumed = rollout(operator, draw, rows, steps, given=imposed)
    for t in range(steps):
        for kind in (0, 1):
            assert np.array_equal(whole[t][kind], shuffled[t][kind][::-1])
            assert np.array_equal(whole[t][kind], np.concatenate([each[t][kind] for each in alone]))
            assert np.array_equal(whole[t][kind], resumed[t][kind])


@given(data=st.data())
def test_temperature_is_a_group_action(data: st.DataObject) -> None:
    before = measures(data)
    a, b = Chain(Temperature(0.5), Temperature(3.0))(before), Temperature(1.5)(before)
    assert np.allclose(a.probs, b.probs, atol=1e-12)


def test_equal_stateful_operators_in_one_chain_are_refused() -> None:
    from ramify.decode import Mirostat
    from ramify.errors import InvalidValue

    with pytest.raises(InvalidValue, match="twice"):
        begin(Chain(Mirostat(), Mirostat()), 1)


def test_methods_are_values() -> None:
    for a, b in itertools.combinations(OPERATORS, 2):
        if dataclasses.is_dataclass(a) and dataclasses.is_dataclass(b):
            assert a != b, "the table lists each method once"

"""The record of a draw, and the errors of a step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ramify.decode import (
    Chain,
    Draw,
    Drawn,
    Epsilon,
    Greedy,
    MaxThinking,
    MinP,
    Mirostat,
    Operator,
    Repetition,
    Side,
    Temperature,
    TokenMeasure,
    TopA,
    TopK,
    TopNSigma,
    TopP,
    Typical,
    Xtc,
    step,
)
from ramify.errors import InvalidValue
from ramify.keys import streams
from ramify.types import Key
from tests.methods import DRAWS
from tests.oracle import WORKED

STREAM = streams([Key("r", "q", 0), Key("r", "q", 1)])
LOGITS = np.log(np.array([WORKED, WORKED[::-1]]))


@pytest.mark.parametrize("draw", DRAWS, ids=repr)
def test_every_draw_records_what_its_kernel_was(draw: Draw) -> None:
    operator = Chain(Temperature(0.5), TopK(3))
    drawn, after = step(operator, LOGITS, Side.start(operator, [(), ()]), STREAM, draw=draw, top=2)
    for row in range(2):
        token, p = int(drawn.token[row]), np.exp(LOGITS[row])
        cold = np.sort(p**2)[::-1][:3].sum()
        assert drawn.logprob[row] == pytest.approx(math.log(p[token]))
        assert drawn.log_q[row] == pytest.approx(math.log(p[token] ** 2 / cold))
        assert drawn.rank[row] == 1 + (p > p[token]).sum()
        assert drawn.support[row] == 3
        assert not drawn.fallback[row]
        assert not drawn.forced[row]
    assert drawn.top_ids.tolist() == [[0, 1], [5, 4]]
    assert np.exp(drawn.top_logprobs) == pytest.approx(np.array([[0.35, 0.25], [0.35, 0.25]]))
    assert after.tokens.tolist() == drawn.token[:, None].tolist()


def test_a_fallback_is_recorded_with_the_draw() -> None:
    drawn, _ = step(Epsilon(0.3), LOGITS, Side.start(Epsilon(0.3), [(), ()]), STREAM)
    assert drawn.fallback.tolist() == [False, False]
    drawn, _ = step(Epsilon(0.4), LOGITS, Side.start(Epsilon(0.4), [(), ()]), STREAM)
    assert drawn.fallback.tolist() == [True, True]
    assert drawn.support.tolist() == [1, 1]


def test_a_given_token_is_scored_and_an_impossible_one_has_log_q_minus_infinity() -> None:
    side = Side.start(TopK(2), [(), ()])
    drawn, _ = step(TopK(2), LOGITS, side, STREAM, given=np.array([1, 0]))
    assert drawn.token.tolist() == [1, 0]
    assert drawn.log_q.tolist() == pytest.approx([math.log(0.25 / 0.6), -math.inf])
    drawn, _ = step(Greedy(), LOGITS, side, STREAM, given=np.array([0, 0]))
    assert drawn.log_q.tolist() == [0.0, -math.inf]


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (np.array([[0.0, np.nan], [0.0, 0.0]]), "logits hold NaN"),
        (np.array([[0.0, np.inf], [0.0, 0.0]]), r"logits hold \+inf"),
        (np.array([[0.0, 0.0], [-np.inf, -np.inf]]), "no live token"),
        (np.zeros((2, 0)), "logits.shape"),
        (np.zeros((2, 3), dtype=np.int64), "logits.dtype = int64"),
    ],
)
def test_bad_logits_say_what_is_wrong(logits: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        step(Chain(), logits, Side.start(Chain(), [(), ()]), STREAM)


def test_bad_shapes_say_what_is_wrong() -> None:
    with pytest.raises(InvalidValue, match=r"use \[B, V\] and \[B, 4\]"):
        step(Chain(), LOGITS, Side.start(Chain(), [(), ()]), STREAM[:1])
    with pytest.raises(InvalidValue, match=r"side\.tokens\.shape = \(1, 0\)"):
        TokenMeasure.of(LOGITS, Side.start(Chain(), [()]))


def test_masks_by_the_lowest_number_are_dead() -> None:
    masked = np.array([[0.0, np.finfo(np.float32).min, 1.0]], dtype=np.float32)
    for operator in (Chain(), Temperature(0.6), TopNSigma(1.0), Repetition(1.2)):
        assert operator(TokenMeasure.of(masked)).live[0, 1] == np.False_


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_level_gates_do_not_see_a_shift_of_the_logits(shift: float) -> None:
    row = np.array([0.0, -710 / 1024, -1.5, -3.0], dtype=np.float32)
    for gate in (MinP(0.5), Epsilon(0.1), TopA(0.5), Typical(0.6)):
        moved = gate(TokenMeasure.of((row + np.float32(shift)).astype(np.float32)))
        assert moved.live.tolist() == gate(TokenMeasure.of(row)).live.tolist()


def test_given_tokens_are_checked() -> None:
    for token in (-2, 6):
        with pytest.raises(InvalidValue, match=f"given = {token}"):
            step(Chain(), LOGITS, Side.start(Chain(), [(), ()]), STREAM, given=np.array([0, token]))


def test_a_given_token_against_the_action_is_not_recorded_as_forced() -> None:
    drawn, _ = step(Greedy(), LOGITS, Side.start(Greedy(), [(), ()]), STREAM, given=np.array([0, 0]))
    assert drawn.forced.tolist() == [True, False]


def test_half_precision_logits_are_worked_on_in_single() -> None:
    assert TokenMeasure.of(LOGITS.astype(np.float16)).log_weight.dtype == np.float32


LARGE: list[Operator] = [
    Chain(),
    TopK(50),
    Temperature(0.3),
    TopP(0.9),
    Chain(Temperature(0.7), TopK(300), TopP(0.9), MinP(0.01)),
    Chain(Typical(0.9), Temperature(0)),
    Chain(Epsilon(1e-3), Repetition(1.3), TopP(0.8)),
    Chain(MinP(0.02), Mirostat(tau=2.0), Temperature(0.8)),
    Chain(MaxThinking(0, end=(7,)), TopK(20)),
    Xtc(0.5, 0.1),
]


@pytest.mark.parametrize("operator", LARGE, ids=repr)
@pytest.mark.parametrize("draw", DRAWS, ids=repr)
def test_large_rows_draw_the_same_alone_in_a_batch_and_in_any_order(operator: Operator, draw: Draw) -> None:
    """Survivors of several rows are worked on together; a row's record must not show it, whatever their numbers."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, 20_000)).astype(np.float32)
    logits[1] *= 3
    logits[3, :40] += 15
    logits[4, 100:] = -np.inf
    keys = streams(Key("large", "q", i) for i in range(5))
    prompts = [(1, 2), (3,), (), (2, 2, 2), (5,)]

    def run(rows: list[int]) -> tuple[Drawn, Side]:
        side = Side.start(operator, [prompts[i] for i in rows])
        _, side = step(operator, logits[rows], side, keys[rows], draw=draw, top=3)
        return step(operator, logits[rows] * 0.9, side, keys[rows], draw=draw, given=np.full(len(rows), -1))

    together, after = run([0, 1, 2, 3, 4])
    shuffled, _ = run([3, 0, 4, 2, 1])
    for i in range(5):
        alone, mine = run([i])
        for whole, single, other in zip(together, alone, shuffled, strict=True):
            assert np.array_equal(whole[i : i + 1], single)
            assert np.array_equal(whole[i], other[[3, 0, 4, 2, 1].index(i)])
        for name, value in mine.state.items():
            assert np.array_equal(after.state[name][i : i + 1], value)


def test_no_rows_give_no_tokens() -> None:
    for size in (10, 5_000):
        drawn, _ = step(TopK(3), np.zeros((0, size)), Side.start(TopK(3), []), streams([]))
        assert drawn.token.shape == (0,)

"""Mirostat, adaptive-p and mixtures: the state is a value that the drawn token settles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ramify.decode import (
    AdaptiveP,
    Chain,
    Epsilon,
    Fallback,
    ForcePrefix,
    Mirostat,
    MirostatV1,
    Mixture,
    Operator,
    Side,
    Temperature,
    TokenMeasure,
    TopK,
    settle,
    step,
)
from ramify.keys import streams
from ramify.types import Key
from tests.oracle import WORKED, kept, measure


def walk(operator: Operator, table: np.ndarray, tokens: list[int]) -> list[Any]:
    """The states along an imposed trace of one row."""
    side = Side.start(operator, [()])
    states = [dict(side.state)]
    for row, token in zip(table, tokens, strict=True):
        _, side = step(operator, row[None], side, streams([Key("r", "q", 0)]), given=np.array([token]))
        states.append(dict(side.state))
    return [next(iter(state.values())) for state in states]


TABLE = np.log(np.array([WORKED, WORKED[::-1], WORKED]))


@pytest.mark.parametrize("surprise", ["proposal", "model"])
def test_mirostat_follows_its_recurrence(surprise: str) -> None:
    tau, eta, tokens = 1.2, 0.7, [1, 5, 0]
    mu, expected = 2 * tau, [2 * tau]
    for logits, token in zip(TABLE, tokens, strict=True):
        p = np.exp(logits)
        live = -np.log2(p) <= mu
        if not live.any():
            live = p == p.max()
        if live[token]:  # an imposed token that the gate would not have drawn settles nothing
            q = p[token] / p[live].sum() if surprise == "proposal" else p[token]
            mu -= eta * (-math.log2(q) - tau)
        expected.append(mu)
    states = walk(Mirostat(tau, eta, surprise), TABLE, tokens)
    assert [float(s[0]) for s in states] == pytest.approx(expected)


def test_mirostat_keeps_the_mode_when_mu_falls_below_its_surprise() -> None:
    result = Mirostat(tau=0.0)(measure(WORKED))
    assert kept(result) == [0]


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.3])
def test_mirostat_one_estimates_the_zipf_exponent_and_k(exponent: float) -> None:
    size, tau = 5_000, 3.0
    p = 1 / np.arange(1, size + 1) ** exponent
    result = MirostatV1(tau)(measure(p / p.sum()))
    top = np.log(p[:100])
    t = np.log(np.arange(2, 101) / np.arange(1, 100))
    s = float((t * (top[:-1] - top[1:])).sum() / (t * t).sum())
    assert s == pytest.approx(exponent)
    mu = 2 * tau
    ratio = (s - 1) / (1 - size ** -(s - 1)) if abs(s - 1) > 1e-6 else 1 / math.log(size)
    k = (ratio * 2**mu) ** (1 / s)
    assert abs(int(result.support) - k) <= 1.0


def test_mirostat_one_survives_flat_and_single_token_rows() -> None:
    assert int(MirostatV1()(measure([0.2] * 5)).support) >= 1
    assert kept(MirostatV1()(measure([0.0, 1.0, 0.0]))) == [1]
    assert kept(MirostatV1()(TokenMeasure.of(np.zeros(1)))) == [0]


def test_adaptive_p_averages_the_drawn_probabilities() -> None:
    target, decay, tokens = 0.3, 0.8, [2, 0, 5]
    weighted, ages = target / (1 - decay), 1 / (1 - decay)
    expected = [(weighted, ages)]
    for logits, token in zip(TABLE, tokens, strict=True):
        weighted, ages = math.exp(logits[token]) + decay * weighted, 1 + decay * ages
        expected.append((weighted, ages))
    states = walk(AdaptiveP(target, decay), TABLE, tokens)
    assert [(float(a[0]), float(b[0])) for a, b in states] == [pytest.approx(e) for e in expected]


def test_a_forced_or_impossible_token_settles_nothing() -> None:
    operator = Chain(ForcePrefix((3,)), Mirostat(tau=1.0, eta=0.5))
    side = Side.start(operator, [()])
    _, after = step(operator, TABLE[:1], side, streams([Key("r", "q", 0)]))
    assert after.state == side.state
    gate = Mirostat(tau=0.5, eta=0.5)
    gated = gate(TokenMeasure.of(TABLE[:1]))
    assert settle(gated, np.array([5]))[gate].tolist() == [1.0]


def test_a_branch_that_was_not_used_settles_nothing() -> None:
    mirostat = Mirostat(tau=1.0, eta=1.0)
    operator = Fallback(Chain(mirostat, Epsilon(0.9)), TopK(3))
    _, side = step(operator, TABLE[:1], Side.start(operator, [()]), streams([Key("r", "q", 0)]), given=np.array([2]))
    assert float(side.state[mirostat][0]) == 2.0


def test_mirostat_one_keeps_a_whole_flat_vocabulary() -> None:
    for size in (5, 7, 1000):
        assert int(MirostatV1(tau=20.0)(TokenMeasure.of(np.zeros(size))).support) == size


def test_an_appended_token_has_no_log_q_and_settles_nothing() -> None:
    operator = Mirostat(tau=1.0, eta=0.5)
    side = Side.start(operator, [()])
    drawn, after = step(
        operator, TABLE[:1], side, streams([Key("r", "q", 0)]), given=np.array([1]), appended=np.array([True])
    )
    assert np.isnan(drawn.log_q[0])
    assert after.tokens.tolist() == [[1]]
    assert float(after.state[operator][0]) == 2.0


def test_a_mixture_learns_which_configuration_it_is() -> None:
    cold, hot = Temperature(0.2), Temperature(3.0)
    mixture = Mixture((cold, hot), (0.5, 0.5))
    posterior = [np.exp(state[0][0]) for state in walk(mixture, TABLE, [5, 0, 5])]
    expected = np.array([0.5, 0.5])
    for t, (logits, token) in enumerate(zip(TABLE, [5, 0, 5], strict=True)):
        assert posterior[t] == pytest.approx(expected)
        likelihood = [float(part(TokenMeasure.of(logits)).probs[token]) for part in (cold, hot)]
        expected = expected * likelihood / (expected @ likelihood)
    assert posterior[-1][1] > 0.99, "three surprises in a row: it must be the hot one"

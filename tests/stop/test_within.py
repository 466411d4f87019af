"""Stops within a trace, and DeepConf online as a whole."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from ramify.bank import Bank, Candidates, Proposal, TokenTable
from ramify.evidence import deepconf_lowest
from ramify.stop import (
    DeepConfConsensus,
    Looping,
    LowConfidence,
    TokenHistory,
    TokenLimit,
    deepconf_online,
    fit_low_confidence,
)
from tests.evidence.banks import DATA, slow_groups


def one(top: object, **columns: np.ndarray) -> TokenHistory:
    rows = np.asarray(top, dtype=float)
    return TokenHistory(np.array([0, len(rows)]), {"top_logprobs": rows, **columns})


FALLING = [[0.0, -2.0]] * 3 + [[-4.0, -6.0]] * 4  # confidence 1, 1, 1, 5, 5, 5, 5


def test_the_window_that_falls_below_stops_at_its_last_token() -> None:
    history = one(FALLING)
    stop = LowConfidence(2.0, window=3, k=2)
    assert history.stopped_at(stop(history)).tolist() == [2]
    assert history.stopped_at(LowConfidence(1.0, window=3, k=2)(history)).tolist() == [-1], "equal is not below"
    assert np.isnan(stop(history).value[:2]).all()
    assert stop(history).value[2:].tolist() == pytest.approx([1, 7 / 3, 11 / 3, 5, 5])


def test_a_trace_shorter_than_the_window_never_stops() -> None:
    """scorio clamps the window to the trace, which a trace that is still growing cannot do."""
    scorio = pytest.importorskip("scorio.aggregate")
    history = one(FALLING[:2])
    assert history.stopped_at(LowConfidence(2.0, window=3, k=2)(history)).tolist() == [-1]
    assert scorio.deepconf_online_stop(np.array(FALLING[:2]), 2.0, window=3) == 1


def test_scorio_stops_at_the_same_token_on_longer_traces() -> None:
    scorio = pytest.importorskip("scorio.aggregate")
    rng = np.random.default_rng(0)
    for _ in range(20):
        top = -np.sort(rng.exponential(2, (60, 20)))
        history = one(top)
        mine = int(history.stopped_at(LowConfidence(1.8, window=10)(history))[0])
        assert mine == (-1 if (theirs := scorio.deepconf_online_stop(top, 1.8, window=10)) is None else theirs)


def test_the_threshold_is_a_percentile_of_one_questions_warm_up() -> None:
    path = DATA / "scorio_aime25_q06" / "js_aggregate_fixtures.json"
    confidences = [0.7, 2.1, 1.4, 4.8, 3.0, 2.9, 5.2]
    fit = fit_low_confidence(np.array(confidences), eta=20, question="q1")
    assert fit.threshold == pytest.approx(4.44)
    assert fit.warmup == tuple(confidences), "the fitted value shows what it was fitted on"
    if path.exists():
        known = json.loads(path.read_text())["online"]
        assert fit_low_confidence(np.array(known["warmup"]), eta=20).threshold == known["threshold_keep_02"]
    other = dataclasses.replace(one(np.zeros((1, 20))), question="q2")
    with pytest.raises(ValueError, match="never pool"):
        fit(other)
    sixteen = np.arange(16.0)
    assert fit_low_confidence(sixteen, eta=10).threshold == 13.5  # the 90th percentile: aggressive
    assert fit_low_confidence(sixteen, eta=90).threshold == 1.5


def test_appended_tokens_are_passed_over() -> None:
    top = np.array(FALLING)
    role = np.array([0, 0, 2, 0, 0, 0, 0], dtype=np.int8)
    history = one(top, role=role)
    verdict = LowConfidence(3.0, window=3, k=2)(history)
    assert history.stopped_at(verdict).tolist() == [3], "tokens 0, 1 and 3: mean 7/3"
    assert np.isnan(verdict.value[2])


def test_length_and_loops() -> None:
    token = np.array([5, 1, 2, 3, 1, 2, 3, 1, 2, 3, 4])
    history = TokenHistory(np.array([0, 11]), {"token": token})
    assert history.stopped_at(TokenLimit(4)(history)).tolist() == [3]
    assert history.stopped_at(Looping(times=3, longest=3, least=1)(history)).tolist() == [9]
    assert history.stopped_at(Looping(times=3, longest=2, least=1)(history)).tolist() == [-1]
    assert history.stopped_at(Looping(times=2, longest=3, least=8)(history)).tolist() == [8]
    two = TokenHistory(np.array([0, 2, 4]), {"token": np.array([1, 1, 1, 1])})
    assert two.stopped_at(Looping(times=3, longest=1, least=1)(two)).tolist() == [-1, -1], "never across two traces"


# ------------------------------------------------------------------------------------------------------------- DeepConf


def bank_of(seed: int = 0, rows: int = 5, width: int = 12, k: int = 4) -> Bank:
    rng = np.random.default_rng(seed)
    bank = Bank.of(
        [[int(a) for a in rng.choice(3, width, p=[0.7, 0.2, 0.1])] for _ in range(rows)],
        proposal=Proposal(top=k, stage="raw"),
    )
    length = rng.integers(1, 30, bank.shape)
    start = np.cumsum(length.reshape(-1)).reshape(length.shape) - length
    level = np.repeat(rng.uniform(0.5, 2, length.size), length.reshape(-1))
    top = -np.sort(rng.exponential(2, (int(length.sum()), k))) * level[:, None]
    return dataclasses.replace(bank, tokens=TokenTable(start, length, {"top_logprobs": top}))


def by_hand(bank: Bank, q: int, eta: float, warmup: int, window: int, tau: float) -> tuple[int, list[int], float]:
    """One question of DeepConf online, trace after trace and token after token."""
    assert bank.tokens is not None
    votes: dict[int, float] = {}
    lowest: list[float] = []
    used: list[int] = []
    threshold = np.nan
    for n in range(bank.shape[1]):
        confidence = (-bank.tokens.of(q, n)["top_logprobs"].mean(axis=1)).tolist()
        score, tokens = min(slow_groups(confidence, window)), len(confidence)
        if n >= warmup:
            for t in range(window, len(confidence) + 1):
                if np.mean(confidence[t - window : t]) < threshold:
                    tokens = t
                    break
        used.append(tokens)
        lowest.append(score)
        if n + 1 == warmup:
            threshold = float(np.percentile(lowest, 100 - eta))
            for i in range(warmup):
                if lowest[i] >= threshold:
                    votes[int(bank.answers[q, i])] = votes.get(int(bank.answers[q, i]), 0) + lowest[i]
        elif n + 1 > warmup and score >= threshold:
            votes[int(bank.answers[q, n])] = votes.get(int(bank.answers[q, n]), 0) + score
        if n + 1 >= warmup and votes and max(votes.values()) / sum(votes.values()) >= tau:
            return n + 1, used, threshold
    return bank.shape[1], used, threshold


@pytest.mark.parametrize(("eta", "tau"), [(10, 0.95), (50, 0.8), (90, 0.95)])
def test_deepconf_online_is_the_protocol_by_hand(eta: float, tau: float) -> None:
    bank = bank_of(int(eta))
    found = deepconf_online(bank, eta=eta, warmup=4, window=5, k=4, tau=tau)
    assert found.kind == "retrospective"
    assert np.array_equal(found.confidence, deepconf_lowest(4, 5)(bank).values)
    for q in range(len(bank.questions)):
        n, used, threshold = by_hand(bank, q, eta, 4, 5, tau)
        assert found.threshold[q] == pytest.approx(threshold)
        assert int(found.stopping.n[q]) == n
        assert found.used[q, :n].tolist() == used
        assert (found.used[q, n:] == 0).all(), "never launched"
        assert not found.cut[q, :4].any(), "warm-up traces are complete, and charged"
    assert not (found.cut & found.kept).any(), "a trace that was cut has no vote"


def test_consensus_needs_its_warm_up() -> None:
    stop = DeepConfConsensus("c", warmup=3, eta=50)
    verdict = stop(Candidates(np.zeros(5, dtype=int), evidence={"c": np.array([1.0, 2.0, 3.0, 1.0, 4.0])}))
    assert verdict.stop.tolist() == [False, False, True, True, True]
    short = Candidates(np.zeros(2, dtype=int), evidence={"c": np.array([1.0, 2.0])})
    assert not stop(short).stop.any()
    with pytest.raises(ValueError, match="have to be > 0"):
        stop(Candidates(np.zeros(1, dtype=int), evidence={"c": np.array([-1.0])}))

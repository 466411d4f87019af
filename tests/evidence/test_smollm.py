"""Figures on a real bank with top-20 alternatives: SmolLM2-135M on two-digit additions and one-step word problems.

Outcomes are computed here, in the test: evidence never sees them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank, Proposal, TokenTable
from ramify.evidence import (
    HeldOut,
    LogProb,
    Minimum,
    NegativeEntropy,
    RankWithin,
    TokenEvidence,
    Transformed,
    deepconf_average,
    deepconf_lowest,
    isotonic,
    mean_logprob,
    several,
)
from ramify.stop import AdaptiveConsistency, ModeCertificate, deepconf_online, replay
from tests.evidence.banks import smollm


def load(name: str) -> tuple[Bank, np.ndarray]:
    """The bank ``[Q, 16]`` and whether each candidate is correct. Ranks are stored from 0 there."""
    records = smollm(name)
    rows: dict[str, list[dict[str, Any]]] = {}
    for each in records:
        rows.setdefault(f"{name[:4]}-{each['q']}", []).append(each)
    flat = [each for row in rows.values() for each in row]
    bank = Bank.of(
        {q: [each["answer"] for each in row] for q, row in rows.items()},
        proposal=Proposal(model="SmolLM2-135M-Instruct", top=20, stage="raw"),
    )
    length = np.array([len(each["tokens"]) for each in flat]).reshape(bank.shape)

    def column(key: str, dtype: type) -> np.ndarray:
        return np.concatenate([np.array(each[key], dtype=dtype) for each in flat])

    columns = {
        "token": column("tokens", np.int32),
        "logprob": column("logprob", np.float64),
        "rank": column("rank", np.int32) + 1,
        "top_logprobs": column("top20_logprob", np.float32),
    }
    start = np.cumsum(length.reshape(-1)).reshape(length.shape) - length
    bank = dataclasses.replace(bank, tokens=TokenTable(start, length, columns))
    correct = np.array([bool(each["correct"]) for each in flat], dtype=float).reshape(bank.shape)
    return bank, correct


def auc(values: np.ndarray, correct: np.ndarray) -> float:
    """The chance that a correct candidate has the higher evidence, ties counted half."""
    right, wrong = values[correct == 1], values[correct == 0]
    better = (right[:, None] > wrong).mean() + 0.5 * (right[:, None] == wrong).mean()
    return float(better)


FILES = ("add2_fewshot_q40_n16.jsonl.gz", "mawps_singleop_fewshot_q30_n16.jsonl.gz")


@pytest.mark.parametrize("name", FILES)
def test_evidence_from_the_record_is_a_loop_over_its_traces(name: str) -> None:
    bank, _ = load(name)
    found = several(
        {
            "mean": mean_logprob(),
            "confidence": deepconf_average(),
            "lowest": deepconf_lowest(window=8),
            "entropy": TokenEvidence(NegativeEntropy(20)),
            "greedy": TokenEvidence(RankWithin(1)),
        },
        bank,
    )
    records = smollm(name)
    for i in range(0, len(records), 37):
        q, n = divmod(i, 16)
        top = np.array(records[i]["top20_logprob"], dtype=np.float32).astype(float)
        confidence = -top.mean(axis=1)
        p = np.exp(top) / np.exp(top).sum(axis=1, keepdims=True)
        groups = [confidence[s : s + 8].mean() for s in range(max(1, len(confidence) - 7))]
        assert found["mean"].values[q, n] == pytest.approx(np.mean(records[i]["logprob"]))
        assert found["confidence"].values[q, n] == pytest.approx(confidence.mean())
        assert found["lowest"].values[q, n] == pytest.approx(min(groups))
        assert found["entropy"].values[q, n] == pytest.approx((p * np.log(p)).sum(axis=1).mean())
        assert found["greedy"].values[q, n] == pytest.approx(np.mean(np.array(records[i]["rank"]) == 0))


def test_what_the_evidence_is_worth_on_additions() -> None:
    """Figures measured here, once, on these 640 candidates; they would move if a definition did."""
    bank, correct = load(FILES[0])
    found = several(
        {
            "mean": mean_logprob(),
            "least": TokenEvidence(LogProb(), Minimum()),
            "lowest": deepconf_lowest(window=8),
            "entropy": TokenEvidence(NegativeEntropy(20)),
        },
        bank,
    )
    worth = {name: round(auc(signal.values, correct), 3) for name, signal in found.items()}
    assert worth == {"mean": 0.771, "least": 0.74, "lowest": 0.712, "entropy": 0.743}
    assert float(correct.mean()) == 0.234375  # 150 of 640


def test_calibration_on_one_task_and_use_on_the_other() -> None:
    dev, graded = load(FILES[1])
    held = HeldOut.of("word problems", dev, mean_logprob()(dev).values, graded, "MAWPS single-op, SmolLM2-135M")
    fit = isotonic(held)
    bank, _ = load(FILES[0])
    values = Transformed(mean_logprob(), fit)(bank).values
    assert ((values >= 0) & (values <= 1)).all()
    with pytest.raises(ValueError, match="shares 30 questions"):
        Transformed(mean_logprob(), fit)(dev)


def test_stops_replayed_on_the_whole_bank() -> None:
    bank, _ = load(FILES[0])
    found = replay(AdaptiveConsistency(), bank)
    certified = replay(ModeCertificate(0.05), bank)
    assert (certified.n >= found.n).all(), "a certificate takes at least as many answers as a posterior"
    online = deepconf_online(bank, eta=50, warmup=8, window=8, tau=0.95)
    assert (online.used.sum(1) <= bank.tokens.length.sum(1)).all()  # type: ignore[union-attr]
    assert (online.used[:, :8] == bank.tokens.length[:, :8]).all()  # type: ignore[union-attr]

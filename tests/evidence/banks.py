"""Banks with every signal, ragged and with holes, and the slow way to compute evidence from them."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ramify.arrays import Array
from ramify.bank import Bank, Layer, Proposal, TokenTable
from ramify.evidence import step_layer

DATA = Path(__file__).parents[3] / "shared" / "data" / "banks"


def signal_rich(rows: int = 3, width: int = 4, seed: int = 0, longest: int = 12, k: int = 6) -> Bank:
    """Random traces with every column, some empty, some candidates not drawn, and the layers of tests/methods.py."""
    rng = np.random.default_rng(seed)
    bank = Bank.of(
        [[int(a) for a in rng.integers(0, 3, width - (q % 2))] for q in range(rows)],
        proposal=Proposal(run="r", top=k, stage="raw"),
    )
    length = np.where(bank.drawn, rng.integers(0, longest + 1, bank.shape), 0)
    total = int(length.sum())
    logits = np.sort(rng.normal(size=(total, k)) * 2, axis=1)[:, ::-1]
    top = (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).astype(np.float32)
    rank = rng.integers(1, k + 1, total)
    columns = {
        "token": rng.integers(0, 4, total).astype(np.int32),
        "role": rng.choice(3, total, p=[0.8, 0.1, 0.1]).astype(np.int8),
        "logprob": top[np.arange(total), rank - 1].astype(np.float64),
        "rank": rank.astype(np.int32),
        "top_logprobs": top,
    }
    start = np.cumsum(length.reshape(-1)).reshape(length.shape) - length
    layers = {
        "answer_start": np.where(rng.random(bank.shape) < 0.2, np.nan, np.floor(rng.random(bank.shape) * (length + 1))),
        "verifier": np.where(bank.drawn, rng.random(bank.shape), np.nan),
        "log_p_true": np.log(rng.random(bank.shape)),
        "log_p_false": np.log(rng.random(bank.shape)),
    }
    steps = [[rng.random(rng.integers(0, 4)).tolist() for _ in range(width)] for _ in range(rows)]
    table = TokenTable(np.where(bank.drawn, start, -1), length, columns)
    bank = with_tokens(bank, table)
    for name, values in layers.items():
        bank = bank.attach(name, Layer(values, name))
    bank = bank.attach("prm", step_layer(bank, steps, "a process reward model"))
    counts = np.array([[float(len(each)) for each in row] for row in steps])
    return bank.attach("steps", Layer(counts, "steps"))


def with_tokens(bank: Bank, table: TokenTable) -> Bank:
    import dataclasses

    return dataclasses.replace(bank, tokens=table)


def trace_bank(
    rows: Sequence[Sequence[float]] | None = None, top: Sequence[Array] | None = None, stage: str = "raw"
) -> Bank:
    """One question; a candidate a trace, of log-probabilities or of alternatives."""
    parts = rows if rows is not None else top
    assert parts is not None
    length = np.array([[len(each) for each in parts]])
    columns: dict[str, Array] = {}
    if rows is not None:
        columns["logprob"] = np.concatenate([np.asarray(row, dtype=float) for row in rows])
    if top is not None:
        columns["top_logprobs"] = np.concatenate([np.asarray(each, dtype=float) for each in top])
    bank = Bank.of({"q": ["A"] * len(parts)}, proposal=Proposal(stage=stage))
    return with_tokens(bank, TokenTable(np.cumsum(length, axis=1) - length, length, columns))


def smollm(name: str) -> list[dict[str, Any]]:
    """The records of a bank of SmolLM2-135M with top-20 alternatives; skips where the data are absent."""
    path = DATA / "smollm2_local_top20" / name
    if not path.exists():
        pytest.skip("the shared data are not here")
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def slow_groups(values: Sequence[float], window: int) -> list[float]:
    """Sliding means with exact sums."""
    if len(values) < window:
        return [math.fsum(values) / len(values)]
    return [math.fsum(values[i : i + window]) / window for i in range(len(values) - window + 1)]

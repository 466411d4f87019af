"""Bytes a token on the alternatives of a real model: the bounds that docs/schema.md states."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ramify.bank import Proposal
from ramify.store import Store
from ramify.store.records import Record
from ramify.types import Key, Question
from tests.store.test_lattice import bfloat16, same

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "banks" / "smollm2_local_top20"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the real bank is not here")


def rows() -> Iterator[tuple[str, int, dict[str, np.ndarray]]]:
    for file in sorted(FOLDER.glob("*.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                columns = {
                    "token": np.array(row["tokens"], np.int32),
                    "logprob": np.array(row["logprob"], np.float32),
                    "rank": np.array(row["rank"], np.int32) + 1,
                    "top_ids": np.array(row["top20_ids"], np.int32),
                    "top_logprobs": np.array(row["top20_logprob"], np.float32),
                }
                yield f"{file.name[:4]}{row['q']}", row["sample"], columns


def recomputed(columns: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The log-probabilities as an engine with bfloat16 logits would have given them."""
    top, place = columns["top_logprobs"], columns["rank"] - 1
    logits = -np.sort(-bfloat16(top - top[:, :1] + rng.normal(18, 2.5, (len(top), 1))), axis=1)
    shifted = logits - logits[:, :1]
    seen = np.minimum(np.exp(top.astype(np.float64)).sum(axis=1, keepdims=True), 1.0)
    total = (np.exp(shifted).sum(axis=1, keepdims=True, dtype=np.float32) / np.maximum(seen, 0.1)).astype(np.float32)
    again = (shifted - np.log(total)).astype(np.float32)
    inside = place < again.shape[1]
    chosen = np.where(inside, again[np.arange(len(top)), np.minimum(place, again.shape[1] - 1)], columns["logprob"])
    return {**columns, "top_logprobs": again, "logprob": chosen}


@pytest.mark.parametrize(("kind", "bound"), [("rounded", 75), ("bfloat16", 55), ("reduced", 12)])
def test_bytes_a_token(tmp_path: Path, kind: str, bound: float) -> None:
    rng, found = np.random.default_rng(0), list(rows())
    if kind != "rounded":
        found = [(question, sample, recomputed(columns, rng)) for question, sample, columns in found]
    store = Store.create(tmp_path / "bank")
    with store.writer(Proposal(run="r", top=20)) as writer:
        writer.ask([Question(name, "") for name in dict.fromkeys(question for question, *_ in found)])
        records = [Record(Key("r", q, i), writer.card.hash, length=len(c["token"]), columns=c) for q, i, c in found]
        writer.append(*(record.reduced() if kind == "reduced" else record for record in records))
    tokens = sum(len(columns["token"]) for *_, columns in found)
    size = sum(file.stat().st_size for file in (store.path / "shards").iterdir())
    print(f"{kind}: {size / tokens:.1f} bytes a token over {tokens:,} tokens")
    assert size / tokens <= bound
    if kind != "reduced":
        with store.snapshot() as snapshot:
            back = {(each.key.question, each.key.sample): each.columns for each in snapshot.records()}
        for question, sample, columns in found:
            assert same(back[question, sample]["top_logprobs"], columns["top_logprobs"])
            assert same(back[question, sample]["logprob"], columns["logprob"])

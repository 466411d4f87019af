"""Candidates for the store's tests: cheap, varied, and a pure function of their key."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from ramify.bank import Proposal
from ramify.store import Store, Writer
from ramify.store.records import Record
from ramify.types import Key, Question

QUESTIONS = tuple(Question(f"q{i}", f"prompt {i}", {"field": "ab"[i % 2]}) for i in range(6))
PROPOSAL = Proposal(run="run", protocol="Temperature(t=1.0)", top=3, stage="raw", signals=("token", "logprob"))


def record(writer: Writer | str, question: int, sample: int, salt: int = 0) -> Record:
    """The candidate of a key: some have no tokens, some no answer, some are long."""
    card = writer if isinstance(writer, str) else writer.card.hash
    key = Key("run", QUESTIONS[question].id, sample)
    rng = np.random.default_rng(zlib.crc32(repr((key, salt)).encode()))
    size = int(rng.integers(0, 40))
    logits = np.sort(rng.integers(0, 200, (size, 3)).astype(np.float32) / 8)[:, ::-1]
    shifted = logits - logits[:, :1]
    top = (shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))).astype(np.float32)
    columns = {
        "token": rng.integers(0, 1000, size).astype(np.int32),
        "logprob": top[:, 0].copy(),
        "log_q": np.where(rng.random(size) < 0.1, np.nan, -rng.random(size)),
        "rank": np.ones(size, dtype=np.int32),
        "top_ids": rng.integers(0, 1000, (size, 3)).astype(np.int32),
        "top_logprobs": top,
    }
    return Record(
        key,
        card,
        ended=("eos", "length", "stop:repetition")[sample % 3],
        answer=None if sample % 4 == 3 else f"answer {sample % 3}",
        text=f"⊢ {question} {sample} \x00\u2028",
        length=size,
        log_q=-1.5 * sample,
        columns={} if sample % 5 == 4 else columns,
        seconds=float(rng.random()),
    )


def contents(path: Path) -> dict[Key, bytes]:
    """Every candidate of a bank by key, with the digest of what is read back; none twice."""
    with Store.open(path).snapshot() as snapshot:
        found = [(each.key, each.digest) for each in snapshot.records()]
    assert len(found) == len(dict(found)), "a candidate is there twice"
    return dict(found)


def canonical(path: Path) -> dict[str, bytes]:
    """The bytes of a compacted bank's files, but for times and locks."""
    Store.open(path).compact()
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and file.stat().st_size]
    timed = ("manifest", ".times.parquet")
    return {str(file.relative_to(path)): file.read_bytes() for file in files if not str(file).endswith(timed)}

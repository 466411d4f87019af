"""A bank with 20 alternatives a token on disk: bytes a token, MB/s and evidence, against JSONL, gzip and plain Parquet.

python benchmarks/store.py [--responses 2000] [--tokens 2000]

Token ids are Zipfian over 151,936; the log-probabilities are computed in single precision from bfloat16 logits, whose
gaps follow those of a small language model (rank j: exponential with mean about 2 / j). "Rounded" are the same numbers
with five decimals, as some servers print them; "noise" has no structure at all. MB/s count the numbers as they lie in
memory; evidence is the mean confidence of every response, read from disk. Peers and variants are measured on some of
the responses: their rates do not depend on how many there are.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ramify.bank import Proposal
from ramify.store import Store
from ramify.store.records import Record
from ramify.types import Key, Question

V, K, POOL = 151_936, 20, 40
KEPT = ("token", "logprob", "rank", "top_ids", "top_logprobs")


def bfloat16(x: np.ndarray) -> np.ndarray:
    """Single precision rounded to the nearest bfloat16."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded: np.ndarray = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return rounded


def columns(seed: int, tokens: int, source: str = "bfloat16") -> dict[str, np.ndarray]:
    """The token columns of one response."""
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(2.0 / np.arange(1, K)[None], (tokens, K - 1)) * rng.lognormal(0.0, 0.5, (tokens, 1))
    gaps[:, 0] = rng.exponential(4.5, tokens)
    top = rng.normal(20.0, 3.0, (tokens, 1))
    logits = np.concatenate([top, top - np.cumsum(gaps, axis=1)], axis=1).astype(np.float32)
    logits = -np.sort(-(logits if source == "noise" else bfloat16(logits)), axis=1)
    shifted = logits - logits[:, :1]
    tail = (0.3 * np.exp(shifted[:, -1:])).astype(np.float32)  # what lies beyond the K best
    logprobs = (shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True, dtype=np.float32) + tail)).astype(
        np.float32
    )
    if source == "rounded":
        logprobs = np.round(logprobs.astype(np.float64), 5).astype(np.float32)
    ids = np.minimum(np.exp(rng.random((tokens, K)) * np.log(V)), V - 1).astype(np.int32)  # density 1 / id
    place = np.minimum((rng.random(tokens)[:, None] > np.exp(logprobs).cumsum(axis=1)).sum(axis=1), K - 1)
    row = np.arange(tokens)
    return {
        "token": ids[row, place],
        "logprob": logprobs[row, place],
        "rank": (place + 1).astype(np.int32),
        "top_ids": ids,
        "top_logprobs": logprobs,
    }


def records(count: int, tokens: int, protocol: str, source: str = "bfloat16") -> Iterator[Record]:
    for i in range(count):
        key = Key("run", f"q{i // POOL:05d}", i % POOL)
        yield Record(key, protocol, "eos", "42", text=None, length=tokens, columns=columns(i, tokens, source))


def questions(count: int) -> list[Question]:
    return [Question(f"q{i:05d}", "?") for i in range(-(-count // POOL))]


def size(path: Path) -> int:
    return (
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size
    )


def write_store(
    path: Path, count: int, tokens: int, change: Callable[[Record], Record], source: str = "bfloat16"
) -> float:
    """Seconds spent in the writer: making the data is not counted."""
    proposal, seconds = Proposal(run="run", top=K, stage="raw", signals=KEPT), 0.0
    store = Store.create(path)
    writer = store.writer(proposal)
    writer.ask(questions(count))
    for record in records(count, tokens, writer.card.hash, source):
        kept = change(record)
        start = time.perf_counter()
        writer.append(kept)
        seconds += time.perf_counter() - start
    start = time.perf_counter()
    writer.close()
    return seconds + time.perf_counter() - start


def write_jsonl(path: Path, count: int, tokens: int) -> float:
    """The shape of an OpenAI-compatible response."""
    seconds = 0.0
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        for record in records(count, tokens, ""):
            start = time.perf_counter()
            file.write(json.dumps(_shape(record.columns)) + "\n")
            seconds += time.perf_counter() - start
    return seconds


def _shape(columns: Mapping[str, np.ndarray]) -> dict[str, object]:
    rows = zip(*(columns[name].tolist() for name in ("token", "logprob", "top_ids", "top_logprobs")), strict=True)
    content = [
        {
            "token": f"t{token}",
            "logprob": logprob,
            "top_logprobs": [{"token": f"t{i}", "logprob": x} for i, x in zip(ids, values, strict=True)],
        }
        for token, logprob, ids, values in rows
    ]
    return {"logprobs": {"content": content}}


def read_jsonl(path: Path) -> None:
    """Mean confidence of every response: the evidence that the store streams too."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for line in file:
            content = json.loads(line)["logprobs"]["content"]
            np.mean([[-each["logprob"] for each in token["top_logprobs"]] for token in content])


def write_parquet(path: Path, count: int, tokens: int) -> float:
    """One row a response, lists, the defaults of the library."""
    schema = pa.schema([(name, pa.list_(pa.from_numpy_dtype(c.dtype))) for name, c in columns(0, 1).items()])
    seconds = 0.0
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, count, POOL):
            rows = [columns(i, tokens) for i in range(begin, min(begin + POOL, count))]
            start = time.perf_counter()
            lists = [[row[name].reshape(-1) for row in rows] for name in schema.names]
            writer.write_table(pa.table(lists, schema=schema))
            seconds += time.perf_counter() - start
    return seconds


def read_parquet(path: Path) -> None:
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        for row in file.read_row_group(group, columns=["top_logprobs"]).column(0):
            np.mean(-row.values.to_numpy().reshape(-1, K))


def confidence(offsets: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Mean of -log p over the alternatives and the tokens of each candidate."""
    by_token = columns["top_logprobs"].mean(axis=1, dtype=np.float64)
    found: np.ndarray = -np.add.reduceat(by_token, offsets[:-1]) / np.diff(offsets)
    return found


def kept_confidence(offsets: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """The same from the column that reduced records keep."""
    found: np.ndarray = np.add.reduceat(columns["confidence"].astype(np.float64), offsets[:-1]) / np.diff(offsets)
    return found


def streamed(path: Path) -> tuple[float, float, float]:
    """(seconds for evidence with one worker, with two, MB above what importing took)."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Store.open(path).snapshot() as snapshot:
        start = time.perf_counter()
        snapshot.evidence(confidence, ("top_logprobs",), workers=1)
        read = time.perf_counter() - start
        start = time.perf_counter()
        snapshot.evidence(confidence, ("top_logprobs",), workers=2)
        evidence = time.perf_counter() - start
    return read, evidence, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--responses", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=2000)
    given = parser.parse_args()
    count, tokens, few = given.responses, given.tokens, min(20, given.responses)
    raw = sum(column.nbytes for column in columns(0, 1).values())  # bytes a token in memory
    folder = Path(tempfile.mkdtemp())
    print(f"{count:,} responses x {tokens:,} tokens x {K} alternatives, {raw} bytes a token in memory")
    print(f"{'':<34}{'bytes/token':>12}{'write MB/s':>12}{'evidence Mtok/s':>17}{'size, x ours':>14}{'x slower':>10}")

    def line(name: str, path: Path, amount: int, write: float, read: float) -> None:
        all_tokens = amount * tokens
        each, speed = size(path) / all_tokens, all_tokens / read / 1e6
        against = f"{each / ours[0]:14.1f}{ours[1] / speed:10.1f}" if ours else ""
        print(f"{name:<34}{each:12.1f}{raw * all_tokens / write / 1e6:12.0f}{speed:17.2f}{against}")
        ours.extend([] if ours else [each, speed])

    ours: list[float] = []
    context = multiprocessing.get_context("spawn")
    path = folder / "lattice"
    write = write_store(path, count, tokens, lambda record: record)
    with context.Pool(1) as pool:
        read, evidence, memory = pool.apply(streamed, (path,))
    line("ramify, lattice code", path, count, write, read)
    rate = count * tokens / evidence / 1e6
    print(f"{'  evidence, two workers':<34}{'':>24}{rate:17.2f}   peak memory {memory:.0f} MB above import")
    shutil.rmtree(path)

    for name, source, change in (
        ("ramify, rounded", "rounded", lambda record: record),
        ("ramify, noise", "noise", lambda record: record),
        ("ramify, reduced evidence", "bfloat16", Record.reduced),
    ):
        path = folder / name
        amount = max(few, count // 4)
        write = write_store(path, amount, tokens, change, source)
        with Store.open(path).snapshot() as snapshot:
            start = time.perf_counter()
            reduced = change is Record.reduced
            snapshot.evidence(
                kept_confidence if reduced else confidence, ("confidence" if reduced else "top_logprobs",), workers=1
            )
            line(name, path, amount, write, time.perf_counter() - start)
        shutil.rmtree(path)

    for name, suffix, amount, writer, reader in (
        ("Parquet, defaults", ".parquet", max(few, count // 4), write_parquet, read_parquet),
        ("JSONL", ".jsonl", few, write_jsonl, read_jsonl),
        ("JSONL, gzip", ".jsonl.gz", few, write_jsonl, read_jsonl),
    ):
        path = folder / f"peer{suffix}"
        write = writer(path, amount, tokens)
        start = time.perf_counter()
        reader(path)
        line(name, path, amount, write, time.perf_counter() - start)
        path.unlink()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()

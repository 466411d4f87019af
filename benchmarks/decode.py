"""One decode step on the CPU, [64, 151,936] logits, against transformers' processors with the same settings.

    python benchmarks/decode.py [--rows 64] [--repeats 3]

Rows are made by a fixed recipe. *Peaked* rows look like a real model's: a Gaussian bulk (standard deviation 2.5) and 40
tokens that stand out by 25 down to 8 nats. *Flat* rows are standard normal: nothing stands out, and heads are long.

A transformers step is its processors, softmax and multinomial, as `generate` runs them, on every available thread. A
ramify step is the same gates, a keyed draw, and the record (log p, log q, rank, support, fallback), on one thread.
Times are the best of some repeats, in milliseconds. `x` is transformers' step over ramify's; `x gates` is transformers'
processors alone, which draw nothing, over ramify's whole step. `% of bandwidth` is one read of the logits in the time
of the step, as a share of the memory bandwidth measured first. The last line compares the supports of both sides.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers.generation import logits_process as hf

from clock import best
from ramify.decode import (
    Chain,
    Epsilon,
    Eta,
    MinP,
    Operator,
    Side,
    Temperature,
    TokenMeasure,
    TopH,
    TopK,
    TopP,
    Typical,
    step,
)
from ramify.keys import streams
from ramify.types import Key

V = 151_936

# (name, ramify, transformers, whether transformers sorts the vocabulary)
RULES: list[tuple[str, Operator, list[Any], bool]] = [
    ("temperature 0.7", Temperature(0.7), [hf.TemperatureLogitsWarper(0.7)], False),
    ("top-k 50", TopK(50, ties="keep"), [hf.TopKLogitsWarper(50)], False),
    ("top-p 0.9", TopP(0.9), [hf.TopPLogitsWarper(0.9)], True),
    ("min-p 0.05", MinP(0.05), [hf.MinPLogitsWarper(0.05)], False),
    ("typical 0.9", Typical(0.9, ties="keep"), [hf.TypicalLogitsWarper(0.9)], True),
    ("epsilon 3e-4", Epsilon(3e-4), [hf.EpsilonLogitsWarper(3e-4)], False),
    ("eta 3e-4", Eta(3e-4), [hf.EtaLogitsWarper(3e-4)], False),
    ("top-H 0.4", TopH(0.4, form="partial", first=100), [hf.TopHLogitsWarper(0.4)], False),
    (
        "T 0.7, k 50, p 0.9",
        Chain(Temperature(0.7), TopK(50, ties="keep"), TopP(0.9)),
        [hf.TemperatureLogitsWarper(0.7), hf.TopKLogitsWarper(50), hf.TopPLogitsWarper(0.9)],
        True,
    ),
]


def rows(kind: str, count: int) -> np.ndarray:
    rng = np.random.default_rng(20261115)
    if kind == "flat":
        return rng.normal(size=(count, V)).astype(np.float32)
    logits: np.ndarray = (2.5 * rng.normal(size=(count, V))).astype(np.float32)
    for row in logits:
        row[rng.choice(V, 40, replace=False)] += np.linspace(25, 8, 40, dtype=np.float32)
    return logits


def milliseconds(run: Callable[[], object], repeats: int) -> float:
    return 1e3 * best(run, repeats)


def processed(processors: list[Any], scores: Any) -> Any:
    ids = torch.zeros((len(scores), 1), dtype=torch.long)
    for processor in processors:
        scores = processor(ids, scores)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    count, repeats = options.rows, options.repeats

    big = np.ones(1 << 26, dtype=np.float32)
    bandwidth = big.nbytes / best(lambda: big.max(), 5) / 1e9
    print(f"[{count}, {V:,}] float32; NumPy {np.__version__}")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"memory bandwidth, one thread reading: {bandwidth:.1f} GB/s\n")

    stream = streams(Key("benchmark", "decode", i) for i in range(count))
    agreed = []
    for kind in ("peaked", "flat"):
        logits = rows(kind, count)
        scores = torch.from_numpy(logits)
        header = (
            f"{kind:<20}{'gates hf':>10}{'step hf':>10}{'step ramify':>13}{'x':>8}{'x gates':>9}{'% of bandwidth':>16}"
        )
        print(header)
        for name, operator, processors, sorts in RULES:
            side = Side.start(operator, [()] * count)

            def ours(operator: Operator = operator, side: Side = side, logits: np.ndarray = logits) -> object:
                return step(operator, logits, side, stream)

            def theirs(processors: list[Any] = processors, scores: Any = scores) -> Any:
                return torch.multinomial(torch.softmax(processed(processors, scores), dim=-1), 1)

            gates = milliseconds(lambda p=processors, s=scores: processed(p, s), repeats)  # type: ignore[misc]
            whole, mine = milliseconds(theirs, repeats), milliseconds(ours, repeats)
            share = 100 * (logits.nbytes / mine / 1e6) / bandwidth
            mark = " (sorts)" if sorts else ""
            times = f"{name:<20}{gates:>10.1f}{whole:>10.1f}{mine:>13.1f}"
            print(f"{times}{whole / mine:>8.1f}{gates / mine:>9.1f}{share:>15.0f}%{mark}")
            kept = operator(TokenMeasure.of(logits[:4])).live
            agreed.append(
                (kind, name, float((kept == torch.isfinite(processed(processors, scores[:4])).numpy()).mean()))
            )
        print()
    kind, name, same = min(agreed, key=lambda row: row[2])
    print(f"supports agree with transformers on {100 * same:.4f}% of tokens or more (worst: {name}, {kind} rows)")


if __name__ == "__main__":
    main()

"""Evidence from tokens, and stopping, against scorio and against a plain loop, side by side in one process.

    python benchmarks/evidence.py [--traces 200] [--tokens 37000] [--streams 186] [--repeats 3]

Tokens: traces of one length with 20 float32 alternatives each, made by a fixed recipe, as a bank holds them. `scorio`
is its own function, trace after trace; `loop` is what one would write without a library, some NumPy lines for each
trace. Their times are of some traces, scaled up. `MB` is the peak of what was allocated beyond the input (tracemalloc,
in a run of its own).

Streams: the verdict after each of 80 answers, for every stream. scorio is asked prefix by prefix on some streams,
scaled up. The last column of each table is the largest difference between the two.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scorio import aggregate as scorio

from clock import best
from ramify.bank import Bank, Candidates, Proposal, TokenTable
from ramify.evidence import (
    Evidence,
    NegativeEntropy,
    TokenEvidence,
    deepconf_average,
    deepconf_bottom,
    deepconf_lowest,
    deepconf_tail,
    several,
)
from ramify.stop import AdaptiveConsistency, CrpConsistency, DirichletConsistency, ModeCertificate, adaptive

K, WINDOW = 20, 2048


def bank_of(traces: int, tokens: int) -> Bank:
    """Traces of equal length; each token's alternatives fall off exponentially from a likely one."""
    rng = np.random.default_rng(0)
    logits = np.sort(rng.exponential(2.0, size=(tokens, K)).astype(np.float32), axis=1)[:, ::-1]
    one = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)) - np.float32(0.01)
    top = np.concatenate([np.roll(one, 97 * i, axis=0) for i in range(traces)])
    length = np.full((1, traces), tokens)
    table = TokenTable(np.cumsum(length, axis=1) - length, length, {"top_logprobs": top})
    return dataclasses.replace(Bank.of([["A"] * traces], proposal=Proposal(top=K, stage="raw")), tokens=table)


def loop_entropy(top: np.ndarray) -> float:
    x = top.astype(np.float64)
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return float((p * np.log(p)).sum(axis=1).mean())


def loop_confidence(top: np.ndarray) -> np.ndarray:
    confidence: np.ndarray = -top.astype(np.float64).mean(axis=1)
    return confidence


def loop_groups(top: np.ndarray) -> np.ndarray:
    total = np.cumsum(np.insert(loop_confidence(top), 0, 0.0))
    groups: np.ndarray = (total[WINDOW:] - total[:-WINDOW]) / WINDOW
    return groups


def loop_bottom(top: np.ndarray) -> float:
    groups = np.sort(loop_groups(top))
    return float(groups[: max(1, len(groups) // 10)].mean())


def confidence(mode: str) -> Callable[[np.ndarray], float]:
    return lambda top: float(scorio.deepconf_confidence(top, mode=mode))


Trace = Callable[[np.ndarray], float]
ROWS: list[tuple[str, Any, Trace, Trace]] = [
    ("entropy", TokenEvidence(NegativeEntropy(K)), lambda top: -scorio.token_entropy(top), loop_entropy),
    ("DeepConf average", deepconf_average(), confidence("mean"), lambda top: float(loop_confidence(top).mean())),
    ("DeepConf tail", deepconf_tail(), confidence("tail"), lambda top: float(loop_confidence(top[-WINDOW:]).mean())),
    ("DeepConf lowest group", deepconf_lowest(), confidence("lowest_group"), lambda top: float(loop_groups(top).min())),
    ("DeepConf bottom tenth", deepconf_bottom(), confidence("bottom_group"), loop_bottom),
]


def peak(run: Callable[[], object]) -> float:
    """Megabytes allocated at the peak of a run."""
    tracemalloc.start()
    run()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size / 1e6


def evidence_table(traces: int, tokens: int, repeats: int) -> None:
    bank = bank_of(traces, tokens)
    assert bank.tokens is not None
    some = [bank.tokens.of(0, i)["top_logprobs"] for i in range(min(5, traces))]
    scale = traces / len(some)
    print(f"{traces} traces x {tokens:,} tokens x {K} float32: {bank.tokens['top_logprobs'].nbytes / 1e6:,.0f} MB\n")
    heads = "".join(f"{head:>10}" for head in ("ramify s", "scorio s", "loop s", "x scorio", "x loop", "MB", "differ"))
    print(f"{'evidence':<24}{heads}")
    lost = plain = 0.0
    for name, mine, theirs, loop in ROWS:
        seconds = best(lambda mine=mine: mine(bank), repeats)  # type: ignore[misc]
        times = [
            scale * best(lambda each=each: [each(top) for top in some], repeats)  # type: ignore[misc]
            for each in (theirs, loop)
        ]
        lost, plain = lost + times[0], plain + times[1]
        values = mine(bank).values[0, : len(some)]
        reference = loop if "bottom" in name else theirs  # scorio's bottom tenth is a quantile: another number
        differ = max(abs(float(v) - reference(top)) for v, top in zip(values, some, strict=True))
        show(name, seconds, times[0], times[1], peak(partial(mine, bank)), differ)
    together: dict[str, Evidence] = {name: mine for name, mine, _, _ in ROWS}
    seconds = best(lambda: several(together, bank), repeats)
    show("all in one pass", seconds, lost, plain, peak(lambda: several(together, bank)), 0.0)


def show(name: str, seconds: float, theirs: float, loop: float, memory: float, differ: float) -> None:
    ratios = f"{theirs / seconds:>10.1f}{loop / seconds:>10.1f}"
    print(f"{name:<24}{seconds:>10.3f}{theirs:>10.2f}{loop:>10.2f}{ratios}{memory:>10.0f}{differ:>10.0e}")


def asked_of(name: str, **fields: Any) -> Callable[[list[int]], tuple[bool, float]]:
    return lambda answers: getattr(scorio, name)(answers, return_prob=True, **fields)


def stop_table(streams: int, repeats: int) -> None:
    rng = np.random.default_rng(1)
    answers = np.array([rng.choice(12, 80, p=rng.dirichlet(np.full(12, 0.5))) for _ in range(streams)])
    candidates = Candidates(answers)
    print(f"\n{streams} streams of 80 answers, a verdict after each\n")
    print(f"{'stop':<24}{'ramify s':>10}{'scorio s':>10}{'x':>10}{'differ':>10}")
    rules: list[tuple[str, Any, Any, int]] = [
        ("Beta", AdaptiveConsistency(), asked_of("adaptive_consistency_stop"), 4),
        ("Dirichlet", DirichletConsistency(), asked_of("adaptive_consistency_dirichlet_stop"), 4),
        ("CRP, horizon 40", CrpConsistency(), asked_of("adaptive_consistency_crp_stop", seed=0), 1),
        ("certificate", ModeCertificate(), None, 0),
    ]
    for name, mine, theirs, most in rules:
        rows = min(most, streams)
        adaptive.crp_leads.cache_clear()
        cold = once(lambda mine=mine: mine(candidates))  # type: ignore[misc]
        seconds = cold if "CRP" in name else best(lambda mine=mine: mine(candidates), repeats)  # type: ignore[misc]
        if theirs is None:
            print(f"{name:<24}{seconds:>10.3f}")
            continue
        value, found = mine(candidates).value, {}
        start = time.perf_counter()
        for row, n in ((row, n) for row in range(rows) for n in range(1, 81)):
            found[row, n] = theirs(answers[row, :n].tolist())[1]
        other = (time.perf_counter() - start) * streams / rows
        differ = max(abs(p - value[row, n - 1]) for (row, n), p in found.items())
        print(f"{name:<24}{seconds:>10.3f}{other:>10.1f}{other / seconds:>10.0f}{differ:>10.0e}")


def once(run: Callable[[], object]) -> float:
    """Seconds of one run, with nothing in its caches."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--traces", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=37_000)
    parser.add_argument("--streams", type=int, default=186)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    evidence_table(asked.traces, asked.tokens, asked.repeats)
    stop_table(asked.streams, asked.repeats)

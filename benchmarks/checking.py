"""Checking answers: the ladder against math-verify alone, on integers, on pairs of every kind, and on hostile text.

python benchmarks/checking.py [--integers 20000] [--pairs ../shared/data/answer_pairs.json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import math_verify

from clock import best
from ramify.tasks.checking import Ladder, Pool
from ramify.tasks.checking.canonical import _canonical


def naive(answer: str, reference: str) -> bool:
    """What one writes with the library: parse both, verify, with its own time limit."""
    return bool(math_verify.verify(math_verify.parse(f"${reference}$"), math_verify.parse(f"${answer}$")))


def integers(count: int) -> None:
    answers = [str(i % 1000) for i in range(count)]
    references = [str(i * 7 % 1000) for i in range(count)]
    exact = Ladder(math=False)
    ladder = count / best(lambda: exact.many(zip(answers, references, strict=True)), 3, time.process_time)
    few = list(zip(answers, references, strict=True))[:200]
    alone = len(few) / best(lambda: [naive(*pair) for pair in few], 3, time.process_time)
    print(f"integers a second of CPU: ladder {ladder:>10,.0f}   math-verify {alone:>8,.0f}   {ladder / alone:,.0f} x")


def pairs(path: Path) -> None:
    cases = [case for case in json.loads(path.read_text())["cases"] if case["category"] != "hang"]
    ladder = Ladder()
    ladder(r"\int_0^1 x dx", "1/2")  # the process is there
    times: dict[str, list[float]] = {"ladder": [], "math-verify": []}
    wrong = {"ladder": 0, "math-verify": 0}
    for case in cases:
        for name, check in (("ladder", lambda a, b: ladder(a, b).equal), ("math-verify", naive)):
            _canonical.cache_clear()
            start = time.perf_counter()
            said = check(case["pred"], case["gold"])
            times[name].append(1000 * (time.perf_counter() - start))
            wrong[name] += case["expected"] is not None and said is not case["expected"]
    for name, found in times.items():
        print(f"{len(found)} pairs, {name:<12} median {statistics.median(found):7.3f} ms   wrong {wrong[name]}")


def hostile() -> None:
    texts = ["9^{9^{9^9}}", "(" * 3000, "(10^{9})!", r"\sum_{k=1}^{10^{8}} \frac{1}{k^3+\sin k}"]
    ladder, pool = Ladder(seconds=3.0), Pool(seconds=10.0)
    for text in texts:
        start = time.perf_counter()
        verdict = ladder(text, "1")
        mine = time.perf_counter() - start
        start = time.perf_counter()
        reply = pool([("1", text)])[0]
        alone = time.perf_counter() - start
        print(f"{text[:24]:<26} ladder {mine:7.4f} s ({verdict.status})   math-verify {alone:7.3f} s ({reply}, of 10)")
    pool.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--integers", type=int, default=20_000)
    parser.add_argument("--pairs", type=Path, default=Path("../shared/data/answer_pairs.json"))
    options = parser.parse_args()
    integers(options.integers)
    if options.pairs.exists():
        pairs(options.pairs)
    hostile()


if __name__ == "__main__":
    main()

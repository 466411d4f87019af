"""Replayed rules: 2,000 orders x 8 budgets x 186 questions x 80 candidates, against scorio and a plain Python loop.

    python benchmarks/decide.py [--orders 2000] [--repeats 3] [--ties]

The bank is made by a fixed recipe: 186 questions whose answers are geometric with a rate of 0.1 to 0.6, 6 % ⊥, uniform
scores (rounded to one decimal with --ties). Every time is CPU time of this process, which works on one thread, best of
some repeats that take turns. ramify's are whole replays. scorio is timed on three orders of every fourth question, all
budgets, a batch a budget, and the plain loop on the same: that is microseconds for one order of one question, and the
whole run is extrapolated from it. `same` is the share of scorio's sampled answers that ramify gives too. The memory is
the peak of NumPy's allocations during a replay (tracemalloc), the winners it returns included.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scorio.aggregate as peer

from ramify.bank import Candidates
from ramify.decide import (
    BestOfN,
    FilteredVote,
    LogOddsVote,
    MajorityOfTheBests,
    Plurality,
    RankVote,
    Rule,
    SoftmaxVote,
    WeightedVote,
)
from ramify.decide.replay import BUDGETS, compiled, replay

Q, N = 186, 80


def first_of(answers: Any, scores: Any) -> Any:
    """scorio's plurality takes no scores."""
    del scores
    return peer.majority_vote(answers)


# (rule, the same in scorio)
RULES: list[tuple[str, Rule, Callable[[Any, Any], Any]]] = [
    ("plurality", Plurality(), first_of),
    ("weighted sum", WeightedVote(), peer.weighted_majority_vote),
    ("weighted mean", WeightedVote(pool="mean"), lambda a, s: peer.weighted_majority_vote(a, s, aggregate="mean")),
    ("softmax, T 0.1", SoftmaxVote(temperature=0.1), lambda a, s: peer.softmax_weighted_vote(a, s, temperature=0.1)),
    ("log-odds", LogOddsVote(), peer.logit_weighted_vote),
    ("rank, p 1", RankVote(ties="earliest"), peer.rank_weighted_vote),
    ("rank, p 1, shared", RankVote(), peer.rank_weighted_vote),
    ("filtered half, counted", FilteredVote(), lambda a, s: peer.filtered_vote(a, s, weighted=False)),
    ("filtered half, weighted", FilteredVote(then=WeightedVote()), peer.filtered_vote),
    ("Best-of-N", BestOfN(), peer.best_of_n),
    ("Majority-of-the-Bests", MajorityOfTheBests(), peer.majority_of_the_bests),
]


def bank(ties: bool) -> tuple[Candidates, np.ndarray]:
    rng = np.random.default_rng(20261115)
    codes = np.minimum(rng.geometric(rng.uniform(0.1, 0.6, (Q, 1)), (Q, N)), 40) - 1
    codes[rng.random((Q, N)) < 0.06] = -1
    scores = rng.uniform(0.02, 0.98, (Q, N))
    scores = np.round(scores, 1).clip(0.05, 0.95) if ties else scores
    texts = np.array([str(i) for i in range(40)] + [None], dtype=object)[codes]
    return Candidates(codes, evidence={"score": scores}), texts


def permutations(count: int) -> np.ndarray:
    """[count, Q, N] of bytes, a block at a time."""
    rng = np.random.default_rng(7)
    blocks = [
        np.argsort(rng.random((min(50, count - i), Q, N), dtype=np.float32), axis=-1) for i in range(0, count, 50)
    ]
    return np.concatenate([block.astype(np.uint8) for block in blocks])


def scorio_answers(call: Callable[[Any, Any], Any], texts: np.ndarray, scores: np.ndarray, sample: np.ndarray) -> Any:
    """[orders, budgets, questions] what scorio selects, a batch for each budget."""
    asked = np.arange(0, Q, 4)
    at = asked[:, None], sample[:, asked].astype(np.int64)
    shuffled, weights = (table[at].reshape(-1, N) for table in (texts, scores))
    return [call(shuffled[:, :b], weights[:, :b]).reshape(len(sample), -1) for b in BUDGETS]


def plain_plurality(codes: list[list[int]], sample: list[list[list[int]]]) -> int:
    """One pass over each order in pure Python: what a reader would write first."""
    winners = 0
    for row in sample:
        for q in range(0, Q, 4):
            counts: dict[int, int] = {}
            lead, most = -1, 0
            for place, i in enumerate(row[q], 1):
                code = codes[q][i]
                if code >= 0:
                    counts[code] = counts.get(code, 0) + 1
                    if counts[code] > most:
                        lead, most = code, counts[code]
                if place in BUDGETS:
                    winners += lead
    return winners


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of a call, and what it returns: a machine that is shared does not make a call look slow."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def peak(run: Callable[[], object]) -> float:
    """MB allocated at most during a call."""
    tracemalloc.start()
    run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ties", action="store_true")
    options = parser.parse_args()
    candidates, texts = bank(options.ties)
    scores, orders = candidates.evidence["score"], permutations(options.orders)
    sample, units, few = orders[:3], options.orders * Q, 3 * len(range(0, Q, 4))
    engines = ["numpy"] + ["numba"] * (compiled() is not None)
    codes, listed = candidates.answers.tolist(), sample.tolist()
    loop = min(seconds(lambda: plain_plurality(codes, listed))[0] for _ in range(5)) / few
    print(f"{options.orders} orders x {len(BUDGETS)} budgets x {Q} questions x {N} candidates: microseconds for one")
    print("order of one question at all budgets, ratios, and seconds of the whole replay")
    print(f"a plain loop for plurality: {1e6 * loop:.1f} us")
    heads = ["scorio", *engines, *(f"x {each}" for each in engines), *(f"s {each}" for each in engines)]
    print(" " * 24 + " ".join(f"{head:>9}" for head in heads) + "   same")
    most = 0.0
    for name, rule, call in RULES:
        theirs, found, winners = np.inf, dict.fromkeys(engines, np.inf), np.empty(0)
        for engine in engines:
            replay(rule, candidates, orders[:2], engine=engine)  # compiles
        for _ in range(options.repeats):
            took, selected = seconds(lambda: scorio_answers(call, texts, scores, sample))  # noqa: B023
            theirs = min(theirs, took / few)
            for engine in engines:
                took, winners = seconds(lambda: replay(rule, candidates, orders, engine=engine))  # noqa: B023
                found[engine] = min(found[engine], took / units)
        most = max(most, *(peak(lambda: replay(rule, candidates, orders, engine=each)) for each in engines))  # noqa: B023
        mine = np.append(texts, np.full((Q, 1), None), axis=1)[np.arange(Q), winners[:3]][..., ::4]
        same = np.mean([mine[:, k] == part for k, part in enumerate(selected)])
        shown = [f"{1e6 * each:9.2f}" for each in (theirs, *found.values())]
        shown += [f"{theirs / each:9.0f}" for each in found.values()] + [
            f"{each * units:9.2f}" for each in found.values()
        ]
        print(f"{name:<24}" + " ".join(shown) + f"   {same:.4f}", flush=True)
    print(f"peak memory beyond the input: {most:.0f} MB")


if __name__ == "__main__":
    main()

"""Comparison metrics beside plain loops and scorio, in one process: closed curves, replays, stops, rank agreement.

python benchmarks/compare.py

Baselines that would take minutes run on a share of the work and are scaled; the share is printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from clock import best
from ramify.bank import Bank, Candidates, Outcomes, Verdict
from ramify.decide import BestOfN, Plurality, WeightedVote
from ramify.decide.replay import BUDGETS
from ramify.decide.replay import replay as winners
from ramify.keys import permutation
from ramify.metrics import agreement, best_of_n, orders, plurality, replay_stop, replays, strict_majority
from ramify.metrics.replay import shuffled
from ramify.types import Key

Row = tuple[str, float, float, float]  # what, seconds here, seconds of the baseline, share of the baseline that ran


def bank_of(questions: int, n: int = 80, seed: int = 0) -> tuple[Bank, Outcomes]:
    """U-shaped difficulty, a dozen wrong answers, 5 % without an answer, scores that mean something."""
    rng = np.random.default_rng(seed)
    right = rng.random((questions, n)) < rng.beta(0.5, 0.5, (questions, 1))
    codes = np.where(right, 0, 1 + np.minimum(rng.geometric(0.35, right.shape), 12))
    codes[rng.random(codes.shape) < 0.05] = -1
    score = np.clip(rng.normal(0.4 + 0.2 * right, 0.2), 0, 1)
    bank = Bank.of([[None if code < 0 else int(code) for code in row] for row in codes], scores={"score": score})
    return bank, Outcomes.of(bank, (codes == 0).astype(float))


def show(rows: Sequence[Row]) -> None:
    for what, ours, theirs, share in rows:
        note = "" if share == 1 else f"   (baseline scaled from {100 * share:.3g} %)"
        print(f"{what:66s} {1e3 * ours:9.1f} ms {theirs:9.2f} s {theirs / ours:8.0f} x{note}")


# --------------------------------------------------------------------------------------------------------- plain loops


def loop_votes(answers: Any, score: Any, right: Any, run: str, replicates: range) -> float:
    """Plurality, Best-of-N and weighted vote on nested prefixes, as one writes it first."""
    total = 0.0
    for r in replicates:
        for q in range(len(answers)):
            order = permutation(Key(run, f"q{q}", r, "replay"), answers.shape[1])
            for k in BUDGETS:
                kept = [i for i in order[:k] if answers[q, i] >= 0]
                if not kept:
                    continue
                votes = Counter(answers[q, i] for i in kept)
                weights: dict[int, float] = {}
                for i in kept:
                    weights[answers[q, i]] = weights.get(answers[q, i], 0.0) + score[q, i]
                leader = votes.most_common(1)[0][0]
                heavy = max(weights, key=lambda code: weights[code])
                total += (leader == 0) + (heavy == 0) + right[q, max(kept, key=lambda i: score[q, i])]
    return total


def loop_agreement(table: Any, run: str, replicates: range) -> float:
    """scorio ranks every subset, SciPy correlates: replay by replay, budget by budget."""
    from scipy import stats
    from scorio import rank as scorio

    total, n = 0.0, table.shape[2]
    full = scorio.avg(table, return_scores=True)[1]
    for r in replicates:
        order = np.stack([permutation(Key(run, f"q{q}", r, "replay"), n) for q in range(table.shape[1])])
        for k in BUDGETS:
            cut = np.take_along_axis(table, np.broadcast_to(order[:, :k], (len(table), *order[:, :k].shape)), axis=2)
            score = scorio.avg(cut, return_scores=True)[1]
            total += stats.spearmanr(score, full).statistic + stats.kendalltau(score, full).statistic
            total += stats.weightedtau(score, full).statistic
    return total


def loop_stops(answers: Any, run: str, replicates: range) -> int:
    """Adaptive consistency's unanimous cousin: stop once an answer leads the next by four."""
    used = 0
    for r in replicates:
        for q in range(len(answers)):
            votes: Counter[int] = Counter()
            for i in permutation(Key(run, f"q{q}", r, "replay"), answers.shape[1]):
                used += 1
                if answers[q, i] >= 0:
                    votes[answers[q, i]] += 1
                top = [many for _, many in votes.most_common(2)]
                if top and top[0] - (top[1] if len(top) > 1 else 0) >= 4:
                    break
    return used


def leads_by_four(candidates: Candidates, _: Key) -> Verdict:
    """The same stop for every prefix at once."""
    codes = np.arange(int(candidates.answers.max(initial=0)) + 1)
    votes = np.zeros((*candidates.answers.shape[:-1], codes.size), dtype=np.int16)
    stop = np.zeros(candidates.answers.shape, dtype=bool)
    for n in range(candidates.answers.shape[-1]):
        votes += candidates.answers[..., n, None] == codes
        top = np.partition(votes, -2, axis=-1)[..., -2:]
        stop[..., n] = top[..., 1] - top[..., 0] >= 4
    return Verdict(stop, stop)


def raced(
    what: str, ours: Callable[[], object], theirs: Callable[[], object], share: float = 1.0, repeats: int = 3
) -> Row:
    """The fastest of several runs of each, taken in turn: the machine is shared, and its load drifts."""
    pairs = [(best(ours, 1), best(theirs, 1)) for _ in range(repeats)]
    return what, min(mine for mine, _ in pairs), min(other for _, other in pairs) / share, share


# ---------------------------------------------------------------------------------------------------------------- main


def votes(questions: int, replicates: int) -> list[Row]:
    """Three votes at eight budgets: the engine alone, then everything from keys to curves."""
    rules = (Plurality(), BestOfN("score"), WeightedVote("score"))
    bank, outcomes = bank_of(questions)
    seen, right, score = bank.candidates(evidence=["score"]), outcomes.on(bank), bank.layers["score"].values
    order, what = orders(bank, "replay", range(replicates)), f"{replicates:,} x 8 x {questions:,}: three votes"

    def won(engine: str) -> None:
        for rule in rules:
            winners(rule, seen, order, BUDGETS, engine=engine)

    def loop() -> None:
        loop_votes(bank.answers[:100], score, right, "replay", range(1))

    def whole() -> None:
        replays(rules, bank, outcomes, evidence=["score"], replicates=replicates)

    share = 100 / questions / replicates
    rows = [raced(f"{what}, winners ({engine})", partial(won, engine), loop, share) for engine in ("numba", "numpy")]
    return [*rows, raced(f"{what}, from keys to curves", whole, loop, share)]


def main() -> None:
    large, graded = bank_of(3600)
    candidates, grades = large.candidates(evidence=["score"]), graded.on(large)

    def closed() -> None:
        plurality(candidates, grades)
        best_of_n(candidates, "score", grades)
        strict_majority(candidates, grades)

    def replayed() -> None:
        replays((Plurality(), BestOfN("score")), large, graded, evidence=["score"], budgets=BUDGETS, replicates=200)

    show([raced("3,600 x 80, every k: plurality, best of N, strict majority, exact", closed, replayed, repeats=1)])
    print("      against 200 replays at 8 budgets of two of the rules, by the one-pass engine\n")
    show(votes(186, 2000))
    show(votes(3600, 200))
    stream = np.random.default_rng(0).integers(0, 2**32, (37_200, 4), dtype=np.uint32)
    fast, plain = (partial(shuffled, stream, 80, compiled) for compiled in (True, False))
    show([raced("37,200 keyed permutations of 80, compiled against NumPy", fast, plain)])
    print()

    bank, outcomes = bank_of(186)
    stops = partial(replay_stop, leads_by_four, Plurality(), bank, outcomes, replicates=200)
    slow = partial(loop_stops, bank.answers, "replay", range(1))
    show([raced("200 x 186: a stop replayed, with its decisions", stops, slow, 1 / 200)])

    rng = np.random.default_rng(1)
    chance = rng.beta(0.5, 0.5, (120, 1)) * np.linspace(0.6, 1, 20)[:, None, None]
    table = (rng.random((20, 120, 80)) < chance).astype(int)
    ranks, scorio = partial(agreement, table), partial(loop_agreement, table, "replay", range(1))
    show([raced("200 x 8 rank agreements of 20 x 120 x 80, three measures, scorio", ranks, scorio, 1 / 200)])


if __name__ == "__main__":
    main()

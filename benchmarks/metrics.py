"""Profiles, posteriors and bootstraps against scorio and plain NumPy, in one process and on one thread each.

    OMP_NUM_THREADS=1 python benchmarks/metrics.py [--repeats 5] [--quick]

Times are CPU times of one thread, and every line starts from the raw grades `[Q, N]` on both sides. `x` is the peer's
time over ours, best of several runs taken in turn; a slow peer runs twice, on fewer questions or replicates where the
line says so, and is scaled by them (its cost is a loop over them). `differs` is the largest difference between the
results. Memory is what the process grew by, at its peak. `--quick` leaves out the lines whose peer is slow.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import hypergeom
from scorio import eval as scorio

from ramify.metrics import (
    GeomAt,
    MeanGPassAt,
    PassAt,
    PassHat,
    Posterior,
    Tally,
    bank_profile,
    bootstrap_means,
    bootstrap_profile,
)
from ramify.types import Key

KEY = Key("benchmark", "metrics", 0, "draws")
N = 80
FUNCTIONALS = (PassAt(N), PassHat(N), MeanGPassAt(N), GeomAt(N))


def bank(questions: int, n: int = N) -> np.ndarray:
    rng = np.random.default_rng(20261115)
    grades: np.ndarray = (rng.random((questions, n)) < rng.beta(0.4, 0.4, questions)[:, None]).astype(np.int8)
    return grades


def seconds(run: Callable[[], Any]) -> float:
    """Seconds of one core: on a shared machine the clock on the wall times the neighbours too."""
    start = time.process_time()
    run()
    return time.process_time() - start


def race(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int, slow: bool = False) -> tuple[float, float]:
    """The best times of both, run in turn; a slow peer runs twice."""
    ours()
    pairs = [(seconds(ours), seconds(theirs) if i < 2 or not slow else np.inf) for i in range(repeats)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def show(name: str, mine: float, peer: float, note: str = "", off: float | None = None) -> None:
    difference = "" if off is None else f"{off:>10.1e}"
    print(f"{name:<52}{1e3 * mine:>10.2f}{1e3 * peer:>12.1f}{peer / mine:>9.0f}{difference}  {note}", flush=True)


def profiles(questions: int, repeats: int) -> None:
    grades = bank(questions)

    def ours() -> np.ndarray:
        return np.asarray(bank_profile(Tally.of(grades)).all())

    def theirs() -> list[np.ndarray]:
        return [scorio.tailpass_empirical(grades, k) for k in range(1, N + 1)]

    off = max(np.abs(ours()[k, : k + 1] - row).max() for k, row in enumerate(theirs()))
    show(f"profile, all k and t, {questions:,} x {N}", *race(ours, theirs, repeats), "scorio", off)


def posterior_means(questions: int, repeats: int) -> None:
    grades = bank(questions)

    def ours() -> np.ndarray:
        return np.asarray(Posterior.of(Tally.of(grades)).profile(N).all())

    def theirs() -> list[np.ndarray]:
        return [scorio.tailpass(grades, k).mean for k in range(1, N + 1)]

    off = max(np.abs(ours()[k, : k + 1] - row).max() for k, row in enumerate(theirs()))
    show(f"posterior mean, all k and t, {questions:,} x {N}", *race(ours, theirs, repeats), "scorio", off)
    alone = race(
        lambda: Posterior.of(Tally.of(grades)).profile(N).at(N), lambda: scorio.tailpass(grades, N).mean, repeats
    )
    show(f"posterior mean, k = {N} alone, {questions:,} x {N}", *alone, "scorio")


def row_on_demand(repeats: int) -> None:
    grades, k = bank(400, 10_000), 1_000

    def ours() -> np.ndarray:
        return np.asarray(bank_profile(Tally.of(grades)).at(k))

    def theirs() -> np.ndarray:
        correct = grades.sum(axis=1, dtype=np.int64)[:, None]
        return np.asarray(hypergeom.sf(np.arange(k), 10_000, correct, k).mean(axis=0))

    off = float(np.abs(ours() - theirs()).max())
    show("one row, k = 1,000, 400 x 10,000", *race(ours, theirs, repeats, slow=True), "SciPy hypergeom.sf", off)


def draws(questions: int, repeats: int, timed: int) -> None:
    grades, n = bank(questions), 4_000

    def ours() -> list[np.ndarray]:
        profile = Posterior.of(Tally.of(grades)).draws(KEY, n).profile(N)
        return [np.asarray(functional(profile)) for functional in FUNCTIONALS]

    def theirs() -> np.ndarray:
        return np.asarray(scorio.tailpass(grades[:timed], N).sample(n, rng=0).profile)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ours()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    mine, peer = race(ours, theirs, repeats, slow=True)
    note = f"scorio{'' if timed == questions else f' on {timed} questions, scaled'}; memory grew {grown:.0f} MB"
    show(f"{n:,} shared draws at k = {N}, {questions:,} x {N}", mine, peer * questions / timed, note)


def bootstraps(questions: int, repeats: int, timed: int) -> None:
    grades, n = bank(questions), 10_000
    rng = np.random.default_rng(0)
    table = np.asarray([bank_profile(Tally.of(row[None])).at(N) for row in grades])  # a question's own profile
    distinct = table + 1e-6 * rng.random(table.shape)

    def plain() -> np.ndarray:
        return np.stack([table[rng.integers(0, questions, questions)].mean(axis=0) for _ in range(timed)])

    def peer() -> list[float]:
        return [scorio.pass_at_k(grades[rng.integers(0, questions, questions)], 8) for _ in range(timed)]

    runs: list[tuple[str, Callable[[], Any], Callable[[], Any], str]] = [
        ("Pass@8", lambda: bootstrap_profile(Tally.of(grades), PassAt(8), KEY, n), peer, "scorio in a loop"),
        (
            "all t at k = 80",
            lambda: bootstrap_profile(Tally.of(grades), GeomAt(N), KEY, n),
            plain,
            "NumPy gather, mean",
        ),
        ("table of 80", lambda: bootstrap_means(table, KEY, n, then=first), plain, "NumPy gather, mean"),
        (
            "table of 80, rows distinct",
            lambda: bootstrap_means(distinct, KEY, n, then=first),
            plain,
            "NumPy gather, mean",
        ),
    ]
    for name, ours, theirs, note in runs:
        mine, other = race(ours, theirs, repeats, slow=True)
        show(f"{n:,} replicates, {name}, {questions:,}", mine, other * n / timed, f"{note}, {timed:,} of them, scaled")


def first(means: np.ndarray) -> np.ndarray:
    return means[..., 0]


def growth(repeats: int) -> None:
    heads = f"{'profile':>10}{'posterior':>12}{'bootstrap':>12}{'20 draws':>12}"
    print(f"\n{'cost by the number of questions, ms':<44}{heads}")
    for questions in (1_000, 10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(1)
        grades = np.empty((questions, N), dtype=np.int8)
        for first in range(0, questions, 10_000):
            p = rng.beta(0.4, 0.4, min(10_000, questions - first))[:, None]
            grades[first : first + len(p)] = rng.random((len(p), N)) < p
        runs: list[Callable[[], Any]] = [
            lambda g=grades: bank_profile(Tally.of(g)).all(),  # type: ignore[misc]
            lambda g=grades: Posterior.of(Tally.of(g)).profile(N).all(),  # type: ignore[misc]
            lambda g=grades: bootstrap_profile(Tally.of(g), PassAt(8), KEY, 10_000),  # type: ignore[misc]
            lambda g=grades: Posterior.of(Tally.of(g)).draws(KEY, 20).profile(N),  # type: ignore[misc]
        ]
        times = [min(seconds(run) for _ in range(2 if questions > 1e5 else repeats)) for run in runs]
        print(
            f"{questions:>10,}{'':<34}"
            + "".join(f"{1e3 * t:>{w}.1f}" for t, w in zip(times, (10, 12, 12, 12), strict=True))
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    repeats = options.repeats
    print(f"NumPy {np.__version__}; times in ms\n")
    print(f"{'':<52}{'ramify':>10}{'peer':>12}{'x':>9}{'differs':>10}")
    for questions in (186, 3_600):
        profiles(questions, repeats)
        posterior_means(questions, repeats)
    row_on_demand(repeats)
    if not options.quick:
        draws(186, repeats, timed=186)
        draws(3_600, repeats, timed=186)
        bootstraps(186, repeats, timed=2_000)
        bootstraps(3_600, repeats, timed=1_000)
    growth(repeats)


if __name__ == "__main__":
    main()

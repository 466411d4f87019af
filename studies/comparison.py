"""The error rates that docs/compare.md prints: false alarms of reruns and of sequential comparisons, by simulation.

python studies/comparison.py
"""

from __future__ import annotations

import numpy as np

from ramify.metrics import Betting, EmpiricalBernstein, Reproducible, false_alarms


def differences(rng: np.random.Generator, campaigns: int, n: int) -> dict[str, np.ndarray]:
    """Paired differences of identical systems, over three kinds of questions."""
    shaped = rng.beta(0.3, 0.3, (campaigns, n))
    hard = rng.beta(0.2, 4.0, (campaigns, n))
    return {
        "single answers at one half": (rng.random((campaigns, n)) < 0.5)
        - (rng.random((campaigns, n)) < 0.5).astype(float),
        "means of 8, U-shaped": (rng.binomial(8, shaped) - rng.binomial(8, shaped)) / 8,
        "single answers, hard questions": (rng.random((campaigns, n)) < hard)
        - (rng.random((campaigns, n)) < hard).astype(float),
    }


def main() -> None:
    rng = np.random.default_rng(0)
    print("identical systems separated, looked at after each of 1,000 differences, 2,000 campaigns")
    for name, d in differences(rng, 2000, 1000).items():
        for method in (EmpiricalBernstein(), Betting(points=81)):
            print(f"  {name:32s} {method!r:48s} {100 * (method(d).first > 0).mean():5.2f} %")
    p = rng.beta(0.3, 0.3, (40, 1))
    null = (rng.random((2000, 40, 80)) < p).astype(float) - (rng.random((2000, 40, 80)) < p)
    print(f"  40 fixed questions, 80 rounds: {100 * (EmpiricalBernstein().rounds(null).first > 0).mean():.2f} %")
    print("two runs of one protocol called different by Reproducible(replicates=199), 400 campaigns")
    for answers, n, name in (
        (np.full((20, 5), 0.2), 16, "20 questions, 5 even answers, N=16"),
        (rng.dirichlet(np.full(8, 0.3), 40), 16, "40 questions, Dirichlet(0.3), N=16"),
        (rng.dirichlet(np.full(8, 0.3), 20), 80, "20 questions, Dirichlet(0.3), N=80"),
    ):
        rate = false_alarms(Reproducible(replicates=199), answers, n, 400, "study")
        print(f"  {name:40s} {100 * rate:5.2f} %")


if __name__ == "__main__":
    main()

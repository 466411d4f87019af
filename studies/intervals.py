"""How often each interval contains what it claims to, by simulation; writes the table into docs/metrics.md.

    python studies/intervals.py [--studies 400] [--replicates 500]

A study draws 100 questions with 16 candidates each. Success probabilities come from a flat law, Beta(1, 1), or from a
U-shaped one, Beta(0.3, 0.3), where most questions are nearly always or nearly never solved. Intervals over questions
are held against the population of questions; intervals over draws alone against the success probabilities of the very
questions of the study; paired differences against two systems of which one is a little better on every question.
The standard error of a coverage near 95% is 1.1 points at 400 studies.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench import between

from ramify.metrics import (
    Accuracy,
    BCa,
    BetaPrior,
    Estimate,
    Functional,
    GeomAt,
    PassAt,
    Percentile,
    Posterior,
    Studentised,
    Tally,
    bootstrap_difference,
    bootstrap_profile,
    credible,
    fit_prior,
    latent_profile,
)
from ramify.metrics.posterior import Draws
from ramify.types import Key

QUESTIONS, CANDIDATES = 100, 16
FUNCTIONALS: dict[str, Functional] = {
    "accuracy": Accuracy(),
    "Pass@8": PassAt(8),
    "Pass@16": PassAt(16),
    "Geom@8": GeomAt(8),
}
LAWS = {"flat": BetaPrior(1.0, 1.0), "U-shaped": BetaPrior(0.3, 0.3)}
PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
BEGIN, END = "<!-- coverage -->", "<!-- /coverage -->"

Interval = Callable[[Tally, Functional, Key, int], Estimate]


def prompt(interval: Any, errors: bool = False) -> Interval:
    return lambda tally, f, key, n: interval(bootstrap_profile(tally, f, key, n, errors=errors))


def two_level(tally: Tally, f: Functional, key: Key, n: int) -> Estimate:
    return Percentile()(bootstrap_profile(tally, f, key, n, over=("questions", "draws")))


def candidates(tally: Tally, f: Functional, key: Key, n: int) -> Estimate:
    return Percentile()(bootstrap_profile(tally, f, key, n, over=("draws",)))


def bayes(prior: BetaPrior | None, over_questions: bool = False) -> Interval:
    def interval(tally: Tally, f: Functional, key: Key, n: int) -> Estimate:
        draws: Draws = Posterior.of(tally, prior or fit_prior(tally)).draws(key, n, over_questions)
        return credible(f(draws.profile(getattr(f, "k", 1))), draws.covers)

    return interval


# (name, interval, whether its target is the population of questions)
INTERVALS: list[tuple[str, Interval, bool]] = [
    ("prompt bootstrap, percentile", prompt(Percentile()), True),
    ("prompt bootstrap, BCa", prompt(BCa()), True),
    ("prompt bootstrap, studentised", prompt(Studentised(), errors=True), True),
    ("two-level bootstrap, percentile", two_level, True),
    ("Bayesian, flat prior, over questions too", bayes(BetaPrior(), over_questions=True), True),
    ("Bayesian, fitted prior, over questions too", bayes(None, over_questions=True), True),
    ("candidate bootstrap, percentile", candidates, False),
    ("Bayesian, flat prior", bayes(BetaPrior()), False),
    ("Bayesian, Jeffreys prior", bayes(BetaPrior(0.5, 0.5)), False),
    ("Bayesian, fitted prior", bayes(None), False),
]


def truth_of(f: Functional, p: np.ndarray) -> float:
    return float(f(latent_profile(p, int(getattr(f, "k", 1)))))


def population(f: Functional, law: BetaPrior, rng: np.random.Generator, better: float = 0.0) -> float:
    p = rng.beta(law.alpha, law.beta, 2_000_000)
    return truth_of(f, improved(p, better))


def improved(p: np.ndarray, by: float) -> np.ndarray:
    """A system that succeeds where the other fails with probability ``by``."""
    return p + by * (1 - p)


def coverage(law: BetaPrior, studies: int, replicates: int) -> dict[tuple[str, str], float]:
    rng = np.random.default_rng(20261115)
    targets = {name: population(f, law, rng) for name, f in FUNCTIONALS.items()}
    inside: dict[tuple[str, str], list[bool]] = {(i[0], name): [] for i in INTERVALS for name in FUNCTIONALS}
    for study in range(studies):
        p = rng.beta(law.alpha, law.beta, QUESTIONS)
        tally = Tally(rng.binomial(CANDIDATES, p), np.full(QUESTIONS, CANDIDATES))
        for name, interval, over_questions in INTERVALS:
            for label, f in FUNCTIONALS.items():
                found = interval(tally, f, Key("coverage", label, study, name), replicates)
                target = targets[label] if over_questions else truth_of(f, p)
                inside[name, label].append(found.low <= target <= found.high)
    return {key: float(np.mean(values)) for key, values in inside.items()}


def paired(law: BetaPrior, studies: int, replicates: int) -> dict[str, float]:
    rng, by = np.random.default_rng(7), 0.1
    found = {}
    for label, f in FUNCTIONALS.items():
        target = population(f, law, rng, by) - population(f, law, rng)
        inside = []
        for study in range(studies):
            p = rng.beta(law.alpha, law.beta, QUESTIONS)
            one, other = (
                Tally(rng.binomial(CANDIDATES, each), np.full(QUESTIONS, CANDIDATES)) for each in (improved(p, by), p)
            )
            sample = bootstrap_difference(one, other, f, Key("coverage", label, study, "paired"), replicates)
            found_interval = Percentile()(sample)
            inside.append(found_interval.low <= target <= found_interval.high)
        found[label] = float(np.mean(inside))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--replicates", type=int, default=500)
    options = parser.parse_args()
    heads = [f"{label}, {law}" for law in LAWS for label in FUNCTIONALS]
    lines = ["| interval at 95% | covers | " + " | ".join(heads) + " |", "|---|---|" + "---|" * len(heads)]
    by_law = {law: coverage(prior, options.studies, options.replicates) for law, prior in LAWS.items()}
    pairs = {law: paired(prior, options.studies, options.replicates) for law, prior in LAWS.items()}
    for name, _, over_questions in INTERVALS:
        covers = "draws" if not over_questions else "questions" if "prompt" in name else "questions, draws"
        cells = [f"{100 * by_law[law][name, label]:.1f}" for law in LAWS for label in FUNCTIONALS]
        lines.append(f"| {name} | {covers} | " + " | ".join(cells) + " |")
    cells = [f"{100 * pairs[law][label]:.1f}" for law in LAWS for label in FUNCTIONALS]
    lines.append("| paired difference, percentile | questions | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    PAGE.write_text(between(PAGE.read_text(), BEGIN, END, lines))


if __name__ == "__main__":
    main()

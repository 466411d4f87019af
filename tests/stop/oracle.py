"""Stops by other means: exact fractions, brute force over continuations, quadrature of another kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.integrate import quad
from scipy.special import betainc, gammainc
from scipy.stats import gamma

from ramify.bank import Candidates


def of_counts(*counts: int) -> Candidates:
    """A stream with so many of each answer, one answer after the other."""
    return Candidates(np.repeat(np.arange(len(counts)), counts))


def dirichlet(counts: Sequence[int]) -> float:
    """∫ f_1(g) Π F_j(g) dg by adaptive quadrature in g."""
    first, *rest = sorted(counts, reverse=True)

    def integrand(g: float) -> float:
        return float(gamma.pdf(g, first + 1) * np.prod([gammainc(v + 1, g) for v in rest]))

    return float(quad(integrand, 0, first + 60 + 15 * first**0.5, limit=400, epsabs=1e-13, epsrel=1e-13)[0])


def crp(answers: Sequence[int], horizon: int, alpha: Fraction) -> Fraction:
    """The probability that the leader still leads, by walking through every continuation."""
    counts = Counter(answers)
    lead = max(counts, key=lambda a: counts[a])  # the first of several: dicts keep the order of appearance
    return _crp(tuple(counts.values()), list(counts).index(lead), horizon, alpha)


def _crp(counts: tuple[int, ...], lead: int, horizon: int, alpha: Fraction) -> Fraction:
    n = sum(counts)
    if n == horizon:
        return Fraction(int(counts.index(max(counts)) == lead))
    total = Fraction(0)
    for j, v in enumerate(counts):
        total += v * _crp((*counts[:j], v + 1, *counts[j + 1 :]), lead, horizon, alpha)
    total += alpha * _crp((*counts, 1), lead, horizon, alpha)
    return total / (n + alpha)


def beta(v1: int, v2: int) -> float:
    return float(1 - betainc(v1 + 1, v2 + 1, 0.5))


def top_two(answers: Sequence[int]) -> tuple[int, int]:
    counts = [*sorted(Counter(a for a in answers if a >= 0).values(), reverse=True), 0, 0]
    return counts[0], counts[1]

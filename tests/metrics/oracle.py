"""Profiles in exact rationals: sums of binomial coefficients and rising factorials, and nothing of the package."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from math import comb

F = Fraction


def subsets(correct: int, n: int, k: int) -> list[Fraction]:
    """P(j correct among k of n, without replacement), j = 0..k."""
    return [F(comb(correct, j) * comb(n - correct, k - j), comb(n, k)) for j in range(k + 1)]


def fresh(p: Fraction, k: int) -> list[Fraction]:
    """P(j correct among k fresh draws), j = 0..k."""
    return [comb(k, j) * p**j * (1 - p) ** (k - j) for j in range(k + 1)]


def rising(x: Fraction, n: int) -> Fraction:
    result = F(1)
    for i in range(n):
        result *= x + i
    return result


def predictive(a: Fraction, b: Fraction, k: int) -> list[Fraction]:
    """P(j correct among k fresh draws) for p ~ Beta(a, b), j = 0..k."""
    return [comb(k, j) * rising(a, j) * rising(b, k - j) / rising(a + b, k) for j in range(k + 1)]


def tails(law: Sequence[Fraction]) -> list[Fraction]:
    """P(count >= t), t = 1..k."""
    return list(itertools.accumulate(reversed(law[1:])))[::-1]


def subset_tail(correct: int, n: int, k: int, t: int) -> Fraction:
    """P(at least t correct among k of n): one fraction of integers, for sizes where a row of them takes long."""
    first, last, ways = max(t, k - n + correct), min(k, correct), 0
    way = comb(correct, first) * comb(n - correct, k - first) if first <= last else 0
    for j in range(first, last + 1):
        ways += way
        way = way * (correct - j) * (k - j) // ((j + 1) * (n - correct - k + j + 1))
    return F(ways, comb(n, k))


def mean(rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    return [sum(column, F(0)) / len(rows) for column in zip(*rows, strict=True)]


def covariance(a: Fraction, b: Fraction, k: int) -> list[list[Fraction]]:
    """Cov(κ_t(p), κ_u(p)) for p ~ Beta(a, b), by the joint law of two batches of k."""
    joint = [
        [
            comb(k, i) * comb(k, j) * rising(a, i + j) * rising(b, 2 * k - i - j) / rising(a + b, 2 * k)
            for j in range(k + 1)
        ]
        for i in range(k + 1)
    ]
    one = tails(predictive(a, b, k))
    return [
        [
            sum((joint[i][j] for i in range(t, k + 1) for j in range(u, k + 1)), F(0)) - one[t - 1] * one[u - 1]
            for u in range(1, k + 1)
        ]
        for t in range(1, k + 1)
    ]


def rubric_subsets(counts: Sequence[int], scores: Sequence[Fraction], k: int) -> dict[Fraction, Fraction]:
    """The law of the mean score of k of the candidates, by enumerating how many come from each level."""
    total = comb(sum(counts), k)
    law: dict[Fraction, Fraction] = {}
    for taken in itertools.product(*(range(min(count, k) + 1) for count in counts)):
        if sum(taken) == k:
            ways = F(1, total)
            for count, j in zip(counts, taken, strict=True):
                ways *= comb(count, j)
            score = sum((j * s for j, s in zip(taken, scores, strict=True)), F(0)) / k
            law[score] = law.get(score, F(0)) + ways
    return law


def rubric_predictive(alpha: Sequence[Fraction], scores: Sequence[Fraction], k: int) -> dict[Fraction, Fraction]:
    """The law of the mean score of k fresh draws under a Dirichlet posterior."""
    law: dict[Fraction, Fraction] = {}
    for taken in itertools.product(range(k + 1), repeat=len(alpha)):
        if sum(taken) == k:
            weight, left = 1 / rising(sum(alpha, F(0)), k), k
            for a, j in zip(alpha, taken, strict=True):
                weight *= comb(left, j) * rising(a, j)
                left -= j
            score = sum((j * s for j, s in zip(taken, scores, strict=True)), F(0)) / k
            law[score] = law.get(score, F(0)) + weight
    return law


def reaching(law: dict[Fraction, Fraction], threshold: Fraction) -> Fraction:
    return sum((p for score, p in law.items() if score >= threshold), F(0))


def off(found: float, exact: Fraction) -> float:
    """The relative error; the absolute one where the exact number is zero."""
    return abs(float(F(float(found)) / exact - 1)) if exact else abs(float(found))

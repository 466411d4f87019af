"""Shared-bank curves without replay: the exact expectation of a rule over uniform k-subsets in random order.

Every sum below has positive terms only, so nothing cancels. Ties go to the earliest candidate of a random order, and
by exchangeability tied candidates share: these are the tie-averaged values, at k = N too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from ramify.arrays import Array
from ramify.bank import Candidates
from ramify.errors import require
from ramify.metrics.bankcurve import AVERAGED, BankCurve, Diagnostic, floats, whole_budgets

__all__ = ["available", "best_of_n", "first_rank", "plurality", "selected", "strict_majority"]

LARGEST = 1000  # beyond it binomial coefficients leave the range of a double


def first_rank(n: int, budgets: Array) -> Array:
    """[K, n] the probability that rank r of n is the best of a uniform k-subset: C(n - r, k - 1) / C(n, k), r = 1..n.

    >>> first_rank(3, np.array([1, 2, 3])).round(4).tolist()
    [[0.3333, 0.3333, 0.3333], [0.6667, 0.3333, 0.0], [1.0, 0.0, 0.0]]
    """
    k, r = np.asarray(budgets)[:, None], np.arange(1, n)
    ratio = np.clip((n - r - k + 1) / (n - r), 0.0, None)
    return np.cumprod(np.concatenate([k / n, ratio], axis=1), axis=1)


def selected(candidates: Candidates, score: Array, value: Array, budgets: Iterable[int] | None = None) -> Array:
    """[Q, K] the expected ``value [Q, N]`` of the best-scored eligible candidate of a k-subset, 0 if there is none.

    A missing score (NaN) makes a candidate ineligible. A missing value makes the expectation NaN as soon as that
    candidate can be the best.
    """
    score, value = floats(score, "score"), floats(value, "value")
    for name, table in (("score", score), ("value", value)):
        same = candidates.answers.ndim == 2 and table.shape == candidates.answers.shape
        require(same, name, table.shape, f"use [Q, N] as the candidates have it: {candidates.answers.shape}")
    ks, counts = whole_budgets(budgets, candidates.answers.shape[-1]), candidates.drawn.sum(axis=-1)
    eligible = candidates.eligible & ~np.isnan(score)
    table = np.full((len(counts), ks.size), np.nan)
    for n in np.unique(counts[counts > 0]):
        rows = np.flatnonzero(counts == n)
        values = _tie_averaged(candidates.drawn[rows], eligible[rows], score[rows], value[rows])[:, :n]
        weight = np.where(ks[:, None] <= n, first_rank(n, ks), np.nan)
        unknown = np.isnan(values)
        table[rows] = np.where(unknown, 0.0, values) @ weight.T
        table[rows] = np.where(unknown @ np.nan_to_num(weight).T > 0, np.nan, table[rows])
    return table


def _tie_averaged(drawn: Array, eligible: Array, score: Array, value: Array) -> Array:
    """[Q, N] values in order of score, the undrawn last, each the mean over those of its score; ineligible: 0."""
    order = np.lexsort((np.where(eligible, -score, 0.0), ~eligible, ~drawn), axis=-1)
    score, eligible, value = (np.take_along_axis(x, order, axis=-1) for x in (score, eligible, value))
    fresh = np.ones(score.shape, dtype=bool)
    fresh[:, 1:] = (score[:, 1:] != score[:, :-1]) | ~eligible[:, 1:]
    run = np.cumsum(fresh) - 1
    mean = np.bincount(run, np.where(eligible, value, 0.0).ravel()) / np.bincount(run)
    return mean[run].reshape(score.shape)


def best_of_n(candidates: Candidates, evidence: str, grades: Array, budgets: Iterable[int] | None = None) -> BankCurve:
    """Best-of-N at every k: submit the candidate with the largest ``evidence``.

    >>> bank = Candidates(np.array([[0, 1, 1]]), evidence={"score": np.array([[0.9, 0.5, 0.1]])})
    >>> best_of_n(bank, "score", np.array([[0.0, 1.0, 1.0]])).values.round(4).tolist()
    [[0.6667, 0.3333, 0.0]]
    """
    score, ks = candidates.score(evidence), whole_budgets(budgets, candidates.answers.shape[-1])
    values = selected(candidates, score, grades, ks)
    valid = selected(candidates, score, np.ones(grades.shape), ks)
    return _curve(ks, values, f"best of N by {evidence}", 1.0 - valid)


def available(grades: Array, drawn: Array | None = None, budgets: Iterable[int] | None = None) -> Diagnostic[BankCurve]:
    """The expected best grade of a k-subset: Pass@k for grades 0 and 1, Max@k for others. Best-of-N by the outcome.

    Where a grade is missing the candidate is not part of the bank.

    >>> available(np.array([[1.0, 0.0, 0.0, np.nan]])).result.values.round(4).tolist()
    [[0.3333, 0.6667, 1.0, nan]]
    """
    grades = floats(grades, "grades")
    graded = ~np.isnan(grades) & (True if drawn is None else drawn)
    bank = Candidates(np.zeros(grades.shape, dtype=np.int64), graded, graded)
    ks = whole_budgets(budgets, grades.shape[-1])
    values = selected(bank, grades, grades, ks)
    return Diagnostic(_curve(ks, values, "best available", np.zeros(values.shape)), "the outcomes themselves")


def plurality(candidates: Candidates, grades: Array, budgets: Iterable[int] | None = None) -> BankCurve:
    """The most frequent answer at every k, summed over all correct answer strings.

    >>> plurality(Candidates(np.array([[0, 0, 1]])), np.array([[1.0, 1.0, 0.0]])).values.round(4).tolist()
    [[0.6667, 0.6667, 1.0]]
    """

    def chances(size: Array, wanted: Array, n: int) -> tuple[Array, Array, Array]:
        row, group = np.nonzero(wanted)
        others = size[row]
        own = others[np.arange(row.size), group]
        others[np.arange(row.size), group] = 0
        kinds, which = np.unique(np.column_stack([own, -np.sort(-others, axis=1)]), axis=0, return_inverse=True)
        return row, group, wins_plurality(kinds[:, 0], kinds[:, 1:], n)[which.reshape(-1)]

    return _by_group("plurality", candidates, grades, budgets, chances)


def strict_majority(candidates: Candidates, grades: Array, budgets: Iterable[int] | None = None) -> BankCurve:
    """The answer that more than half of the k candidates give, and nothing where there is none.

    >>> strict_majority(Candidates(np.array([[0, 0, 1]])), np.array([[1.0, 1.0, 0.0]])).values.round(4).tolist()
    [[0.6667, 0.3333, 1.0]]
    """

    def chances(size: Array, wanted: Array, n: int) -> tuple[Array, Array, Array]:
        row, group = np.nonzero(wanted)
        return row, group, wins_majority(n)[size[row, group]]

    return _by_group("strict majority", candidates, grades, budgets, chances)


def wins_plurality(own: Array, others: Array, n: int) -> Array:
    """[I, n + 1] the probability, at k = 0..n, that a group of ``own [I]`` beats groups ``others [I, G]`` (descending).

    With c votes of its own it must see at most c of every other group, and shares equally with the t that also have c:

        Σ_c C(own, c) ∫_0^1 [x^{k-c}] (1 + x)^rest Π_g (Σ_{j<c} C(n_g, j) x^j + y C(n_g, c) x^c) dy / C(n, k)

    since ∫ y^t dy = 1 / (t + 1). Groups smaller than c never bind and join ``rest``; Gauss–Legendre is exact in y.
    """
    binomial, ways = pascal(n), np.zeros((len(own), n + 1))
    for c in range(1, int(own.max(initial=0)) + 1):
        binding = np.where(own >= c, (others >= c).sum(axis=1), -1)
        for many in np.unique(binding[binding >= 0]):
            rows = np.flatnonzero(binding == many)
            rivals = others[rows, :many]
            tied = _no_more_than(rivals, c, binomial) * binomial[own[rows], c, None]  # [i, many c + 1]
            rest = binomial[n - own[rows] - rivals.sum(axis=1)]  # [i, n + 1]
            for j in range(min(tied.shape[1], n + 1 - c)):
                ways[rows, c + j :] += tied[:, j, None] * rest[:, : n + 1 - c - j]
    return ways / binomial[n]


def _no_more_than(rivals: Array, c: int, binomial: Array) -> Array:
    """[I, m c + 1] the polynomial ∫ Π_g (Σ_{j<c} C(n_g, j) x^j + y C(n_g, c) x^c) dy of m rivals."""
    nodes, weights = np.polynomial.legendre.leggauss(rivals.shape[1] // 2 + 1)  # exact to degree 2 nodes - 1 >= m
    y = (nodes + 1) / 2
    product = np.ones((len(rivals), y.size, 1))
    for size in rivals.T:
        factor = np.repeat(binomial[size][:, None, : c + 1], y.size, axis=1)
        factor[..., c] *= y
        longer = np.zeros((*product.shape[:2], product.shape[2] + c))
        for j in range(c + 1):
            longer[..., j : j + product.shape[2]] += factor[..., j, None] * product
        product = longer
    return np.einsum("iyx,y->ix", product, weights / 2)


@cache
def wins_majority(n: int) -> Array:
    """[n + 1, n + 1] the probability that a group of size s has more than half of a k-subset of n."""
    binomial = pascal(n)
    chance = np.zeros((n + 1, n + 1))
    for k in range(1, n + 1):
        for j in range(k // 2 + 1, k + 1):
            chance[:, k] += binomial[:, j] * binomial[::-1, k - j]
    return chance / binomial[n]


@cache
def pascal(n: int) -> Array:
    """[n + 1, n + 1] C(i, j), 0 where j > i: sums of positive numbers, exact up to 2^53."""
    table = np.zeros((n + 1, n + 1))
    table[:, 0] = 1.0
    for i in range(1, n + 1):
        table[i, 1:] = table[i - 1, 1:] + table[i - 1, :-1]
    return table


Chances = Callable[[Array, Array, int], tuple[Array, Array, Array]]


def _by_group(
    rule: str, candidates: Candidates, grades: Array, budgets: Iterable[int] | None, chances: Chances
) -> BankCurve:
    """Σ_g P(g wins) ū_g: given that a group wins, each of its members is equally likely to be the earliest."""
    ks, counts = whole_budgets(budgets, candidates.answers.shape[-1]), candidates.drawn.sum(axis=-1)
    grades, largest = floats(grades, "grades"), int(counts.max(initial=0))
    same = candidates.answers.ndim == 2 and grades.shape == candidates.answers.shape
    require(same, "grades", grades.shape, f"use [Q, N] as the candidates have it: {candidates.answers.shape}")
    require(largest <= LARGEST, "N", largest, f"the closed form goes to {LARGEST}: replay the rule instead")
    size, value = _groups(candidates, grades)
    table, invalid = (np.full((len(counts), ks.size), np.nan) for _ in range(2))
    for n in np.unique(counts[counts > 0]):
        rows, inside = np.flatnonzero(counts == n), np.flatnonzero(ks <= n)
        unknown = np.isnan(value[rows])
        row, group, chance = chances(size[rows], unknown | (value[rows] > 0), n)
        chance = chance[:, ks[inside]]
        worth, missed = np.zeros((2, rows.size, inside.size))
        np.add.at(worth, row, chance * np.nan_to_num(value[rows])[row, group, None])
        np.add.at(missed, row, chance * unknown[row, group, None])
        table[np.ix_(rows, inside)] = np.where(missed > 0, np.nan, worth)
        invalid[np.ix_(rows, inside)] = _nobody(rule, size[rows], n)[:, ks[inside]]
    return _curve(ks, table, rule, invalid)


def _nobody(rule: str, size: Array, n: int) -> Array:
    """[Q, n + 1] the probability that nothing is submitted."""
    if rule == "plurality":
        return pascal(n)[n - size.sum(axis=1)] / pascal(n)[n]
    majority = wins_majority(n)
    return np.clip(1.0 - sum(majority[column] for column in size.T), 0.0, 1.0)


def _groups(candidates: Candidates, grades: Array) -> tuple[Array, Array]:
    """([Q, G] sizes of the answer groups, [Q, G] their mean grade): NaN if a member of the group was not graded."""
    many = int(candidates.answers.max(initial=0)) + 1
    row, column = np.nonzero(candidates.eligible & (candidates.answers >= 0))
    place = row * many + candidates.answers[row, column]
    shape = (len(grades), many)
    size = np.bincount(place, minlength=len(grades) * many).reshape(shape)
    total = np.bincount(place, grades[row, column], minlength=len(grades) * many).reshape(shape)
    return size, np.divide(total, size, out=np.zeros(shape), where=size > 0)


def _curve(budgets: Array, values: Array, rule: str, invalid: Array) -> BankCurve:
    return BankCurve(budgets, values, rule, AVERAGED, invalid, np.zeros(budgets.size))

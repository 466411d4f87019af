"""Oracles by enumeration: rules in plain Python over every order of a small bank, in exact fractions."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

Pick = Callable[[Sequence[int]], int | None]


def expected(pick: Pick, grades: Sequence[Fraction | int], k: int) -> Fraction:
    """The mean grade of what ``pick`` takes from the first k, over all orders; nothing taken is worth 0."""
    total, orders = Fraction(0), 0
    for order in itertools.permutations(range(len(grades)), k):
        winner = pick(order)
        total += 0 if winner is None else Fraction(grades[winner])
        orders += 1
    return total / orders


def plurality(answers: Sequence[int]) -> Pick:
    def pick(order: Sequence[int]) -> int | None:
        votes = Counter(answers[i] for i in order if answers[i] >= 0)
        return next((i for i in order if answers[i] >= 0 and votes[answers[i]] == max(votes.values())), None)

    return pick


def majority(answers: Sequence[int]) -> Pick:
    def pick(order: Sequence[int]) -> int | None:
        votes = Counter(answers[i] for i in order if answers[i] >= 0)
        return next((i for i in order if answers[i] >= 0 and 2 * votes[answers[i]] > len(order)), None)

    return pick


def best(answers: Sequence[int], score: Sequence[float | None]) -> Pick:
    def pick(order: Sequence[int]) -> int | None:
        valid = [i for i in order if answers[i] >= 0 and score[i] is not None]
        return max(valid, key=lambda i: (score[i], -order.index(i)), default=None)

    return pick

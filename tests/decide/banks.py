"""Random candidates for the laws, with every evidence the table's rules may ask for, and a brute-force tally."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from ramify.arrays import Array
from ramify.bank import Candidates
from ramify.decide import Features, Given

NAMES = ("score", "confidence", "correctness", "weight", "mean_logprob", "sequence_logprob", "log_ratio")


def dot(a: Array, b: Array) -> Array:
    """Linear in the reference: what averages exactly."""
    return (a * b).sum(axis=-1)


def candidates(
    rng: np.random.Generator, shape: tuple[int, ...], *, levels: int = 0, missing: float = 0.0
) -> Candidates:
    """Candidates with answers, ⊥, undrawn places, and scores in (0, 1), on a grid of ``levels`` for ties."""
    answers = rng.integers(-1, 4, shape)
    drawn = rng.random(shape) < 0.9
    answers = np.where(drawn, answers, -1)

    def scores() -> Array:
        fine = rng.uniform(0.01, 0.99, shape)
        value = rng.integers(1, levels, shape) / levels if levels else fine
        return np.where(rng.random(shape) < missing, np.nan, value)

    evidence = {name: scores() for name in ("score", "confidence", "correctness", "weight")}
    evidence |= {name: np.log(scores()) for name in ("mean_logprob", "sequence_logprob", "log_ratio")}
    evidence["verdict"] = rng.integers(0, 2, shape).astype(float)
    evidence["judge"] = rng.integers(0, 3, shape).astype(float)
    rows = int(np.prod(shape[:-1], dtype=int))
    return Candidates(answers, drawn, None, evidence, Features(rng.random((rows, shape[-1], 3)) / 3, dot))


def row(bank: Candidates, index: tuple[int, ...]) -> Candidates:
    """One question of a batch."""
    flat = int(np.ravel_multi_index(index, bank.answers.shape[:-1]))
    evidence = {name: values[index] for name, values in bank.evidence.items()}
    assert isinstance(bank.utility, Features)
    utility = Features(bank.utility.vectors[flat : flat + 1], dot)
    return Candidates(bank.answers[index], bank.drawn[index], bank.eligible[index], evidence, utility)


def agreement(answers: Array) -> Given:
    """u(i, j) = 1[a_i = a_j]."""
    return Given((answers[..., :, None] == answers[..., None, :]).astype(float))


def exact_winner(answers: list[int], weights: list[Fraction | int]) -> int:
    """The first member of the group with the largest sum, by brute force in exact numbers."""
    sums: dict[int, Fraction | int] = {}
    for answer, weight in zip(answers, weights, strict=True):
        if answer >= 0:
            sums[answer] = sums.get(answer, 0) + weight
    if not sums:
        return -1
    return answers.index(max(sums, key=lambda answer: sums[answer]))


seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)

"""The certificate for the mode: exactly a supermartingale, and wrong no more often than it says."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from ramify.arrays import appearance
from ramify.bank import Candidates
from ramify.stop import AdaptiveConsistency, ModeCertificate, Stop, log_e_value, replay
from ramify.stop.certificate import wealth
from ramify.stop.counts import Stream


def stream(answers: np.ndarray) -> Stream:
    label, occurrence = appearance(answers, answers >= 0)
    return Stream(label, occurrence, np.ones(answers.shape, dtype=bool))


def test_the_e_value_is_wealth_mixed_over_bets() -> None:
    for won, lost in ((0, 0), (3, 1), (5, 5), (2, 9), (40, 3)):
        mixed = quad(lambda x, w=won, b=lost: (1 + x) ** w * (1 - x) ** b, 0, 1)[0]
        assert math.exp(log_e_value(np.array(won), np.array(lost))) == pytest.approx(mixed, rel=1e-9)


@pytest.mark.parametrize(
    "p", [(Fraction(1, 2), Fraction(1, 2)), (Fraction(2, 5), Fraction(2, 5), Fraction(1, 5)), (Fraction(1, 3),) * 3]
)
def test_the_wealth_against_a_mode_does_not_grow_in_expectation(p: tuple[Fraction, ...]) -> None:
    """Every sequence of six draws, weighted by its probability: E[e] <= 1 for every answer that is a mode."""
    sequences = np.array(list(itertools.product(range(len(p)), repeat=6)))
    weight = np.array([float(math.prod((p[a] for a in row), start=Fraction(1))) for row in sequences])
    seen = stream(sequences)
    e = np.exp(wealth(seen))  # by label; the last is the unseen
    for mode in (a for a, share in enumerate(p) if share == max(p)):
        for n in range(6):
            shown = (sequences[:, : n + 1] == mode).any(axis=1)
            label = np.where(shown, seen.label[np.arange(len(sequences)), (sequences == mode).argmax(axis=1)], -1)
            assert weight @ e[np.arange(len(e)), n, label] <= 1 + 1e-12


def test_unanimous_draws() -> None:
    """All unseen answers share the wealth of n - 1 bets won: (2^n - 1) / n, which passes 20 at n = 8."""
    verdict = ModeCertificate(0.05)(Candidates(np.zeros(12, dtype=int)))
    assert np.exp(verdict.value).tolist() == pytest.approx([(2**n - 1) / n for n in range(1, 13)])
    assert replay(ModeCertificate(0.05), Candidates(np.zeros(12, dtype=int))).n == 8


SHARES = {
    "nearly a fair coin": np.array([0.501, 0.499]),
    "three nearly tied": np.array([0.34, 0.33, 0.33]),
    "nearly uniform over twenty": np.concatenate([[0.0501], np.full(19, 0.9499 / 19)]),
    "a mode that seldom shows": np.concatenate([[0.11], np.full(89, 0.01)]),
}


def leads(answers: np.ndarray, n: np.ndarray) -> np.ndarray:
    """[r] the leading answer of the first n of every row, ties to the first to appear."""
    out = []
    for row, size in zip(answers, n, strict=True):
        counts = np.bincount(row[:size])
        tied = np.flatnonzero(counts == counts.max())
        out.append(tied[np.argmin([np.argmax(row == a) for a in tied])])
    return np.array(out)


def stopped_on(stop: Stop, p: np.ndarray, runs: int = 2000, horizon: int = 100) -> np.ndarray:
    """The answers that a stop ended with, of those runs in which it stopped at all; and the number of runs."""
    answers = np.random.default_rng(5).choice(p.size, (runs, horizon), p=p)
    found = replay(stop, Candidates(answers))
    return leads(answers, found.n)[found.stopped]


@pytest.mark.parametrize("name", SHARES)
def test_what_it_certifies_is_not_a_mode_with_probability_at_most_delta(name: str) -> None:
    """At whatever time it stops, in 2,000 runs."""
    for delta in (0.05, 0.2):
        wrong = (stopped_on(ModeCertificate(delta), SHARES[name]) != 0).sum() / 2000
        assert wrong <= delta + 3 * math.sqrt(delta * (1 - delta) / 2000)


def test_in_an_exact_tie_one_of_two_modes_is_singled_out_with_probability_at_most_twice_delta() -> None:
    """Each of them is rejected with probability at most delta."""
    named = stopped_on(ModeCertificate(0.1), np.array([0.5, 0.5])).size / 2000
    assert 0.02 < named <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / 2000)


def test_stopping_on_a_posterior_is_wrong_far_more_often() -> None:
    """Adaptive-Consistency at 0.95, looked at after every draw, has no anytime-valid error rate."""
    wrong = (stopped_on(AdaptiveConsistency(0.95), SHARES["nearly a fair coin"]) != 0).sum() / 2000
    assert wrong > 0.2


def test_it_does_certify_a_clear_mode() -> None:
    rng = np.random.default_rng(0)
    answers = Candidates(rng.choice(4, (300, 120), p=[0.7, 0.1, 0.1, 0.1]))
    found = replay(ModeCertificate(0.05), answers)
    assert found.stopped.mean() > 0.99
    assert np.median(found.n) < 40

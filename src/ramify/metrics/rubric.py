"""Graded outcomes with more than two levels: the profile of the mean score of k candidates.

Scores are fractions with a common denominator D, so the sum of k scores lives on the integers 0..k·max and every
threshold is an integer comparison. The binary profile is the rubric with scores (0, 1).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Outcomes
from ramify.errors import InvalidValue, is_whole, require
from ramify.keys import generator
from ramify.metrics.laws import beta_binomial, hypergeometric
from ramify.metrics.profile import reached
from ramify.metrics.tally import graded_table
from ramify.types import Key

__all__ = ["DirichletPosterior", "RubricDraws", "RubricProfile", "RubricTally"]

BLOCK = 1 << 18  # entries of the tables worked on at a time

Score = int | float | str | Fraction


def exact_scores(scores: Any) -> tuple[Fraction, ...]:
    """Scores as fractions, ascending in [0, 1]. A float means the decimal it prints as: 0.1 is 1/10, "1/3" is 1/3.

    >>> exact_scores((0, "1/3", 0.5, 1))
    (Fraction(0, 1), Fraction(1, 3), Fraction(1, 2), Fraction(1, 1))
    """
    found = tuple(Fraction(str(each)) if isinstance(each, float) else Fraction(each) for each in scores)
    ok = len(found) >= 2 and all(x < y for x, y in itertools.pairwise(found)) and 0 <= found[0] <= found[-1] <= 1
    require(ok, "scores", tuple(map(str, found)), "use two levels or more in [0, 1], ascending")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class RubricTally:
    """How many candidates of each question reached each level. Missing grades are in no level.

    >>> RubricTally.of([[0, 0.5, 1, 0.5]], scores=(0, "1/2", 1)).counts.tolist()
    [[1, 2, 1]]
    """

    counts: Array  # [Q, L] int64
    scores: tuple[Fraction, ...]  # [L]
    kind: str = "iid"
    assumed: str = ""

    @classmethod
    def of(cls, grades: Any, scores: Any) -> RubricTally:
        """The tally of grades ``[Q, N]``, each equal to one of the scores, as the nearest float."""
        levels, table = exact_scores(scores), graded_table(grades)
        hits = [table == float(level) for level in levels]
        missing = np.isnan(table) if table.dtype.kind == "f" else np.zeros(table.shape, dtype=bool)
        strange = table[~np.logical_or.reduce([*hits, missing])][:1].tolist()
        require(not strange, "grades", strange, f"use one of the scores {', '.join(map(str, levels))}, or missing")
        return cls(np.stack([hit.sum(axis=1) for hit in hits], axis=1), levels)

    @classmethod
    def of_bank(cls, bank: Bank, outcomes: Outcomes, scores: Any) -> RubricTally:
        """The tally of a bank's outcomes, with what the bank says about the independence of its candidates."""
        return replace(cls.of(outcomes.on(bank), scores), kind=bank.kind, assumed=bank.assumed)

    @property
    def remark(self) -> str:
        """What a number made from this tally must say about it; empty for independent draws."""
        if self.assumed:
            return f"assuming independence: {self.assumed}"
        return "" if self.kind == "iid" else f"descriptive of this {self.kind} bank"

    def profile(self) -> RubricProfile:
        """The finite-bank profile: subsets of the observed bank without replacement."""
        require(self.counts.sum(), "grades", "all missing", "no candidate is graded, so there is no profile")
        return RubricProfile(self.counts.astype(np.float64), self.scores, hypergeometric, self.remark)


@dataclass(frozen=True, slots=True, eq=False)
class RubricProfile:
    """The law of the mean score of k candidates, from an urn of levels for each question.

    ``split(k, own, rest)`` says how many of k candidates are of the level ``own`` against the ``rest``: without
    replacement for a finite bank, Pólya's urn for a Dirichlet posterior.

    >>> profile = RubricTally.of([[0, 0.5, 1]], scores=(0, 0.5, 1)).profile()
    >>> profile.at(2).round(4).tolist(), profile.tail(2, 0.75).round(4).tolist()
    ([0.6667, 0.0], 0.3333)
    """

    levels: Array  # [Q, L] counts or Dirichlet parameters
    scores: tuple[Fraction, ...]  # [L]
    split: Callable[[int, Any, Any], Array]
    remark: str = ""

    @property
    def lattice(self) -> tuple[int, list[int]]:
        """The denominator D and the scores as integers of 1/D."""
        D = math.lcm(*(score.denominator for score in self.scores))
        return D, [int(score * D) for score in self.scores]

    def left_out(self, k: int) -> int:
        """How many questions have fewer than k graded candidates."""
        return int((~self._enough(k)).sum())

    def _enough(self, k: int) -> Array:
        require(is_whole(k, 1), "k", k, "use an integer >= 1")
        return self.levels.sum(axis=1) >= k if self.split is hypergeometric else np.ones(len(self.levels), dtype=bool)

    def _urns(self, k: int) -> tuple[Array, Array]:
        """The distinct urns that k candidates can come from ``[U, L]``, and the share of questions of each ``[U]``."""
        enough = self._enough(k)
        most = int(self.levels.sum(axis=1).max())
        require(enough.any(), "k", k, f"use k <= {most}, the most graded candidates of a question, or a posterior")
        urns, counts = np.unique(self.levels[enough], axis=0, return_counts=True)
        return urns, counts / counts.sum()

    def law(self, k: int) -> Array:
        """P(the scores of k candidates sum to i / D), i = 0..k·max: averaged over the questions."""
        urns, share = self._urns(k)
        size = k * self.lattice[1][-1] + 1
        step = max(1, BLOCK // ((k + 1) * size))
        total = np.zeros(size)
        for first in range(0, len(urns), step):
            total += share[first : first + step] @ self._sums(k, urns[first : first + step])
        return total

    def _sums(self, k: int, urns: Array) -> Array:
        """The law of each urn: level by level, ``f[u, m, i]`` is P(m candidates are left to place, sum i so far)."""
        _, whole = self.lattice
        size = k * whole[-1] + 1
        f = np.zeros((len(urns), k + 1, size))
        f[:, k, 0] = 1.0
        highest = 0
        for level in range(len(whole) - 1):
            own, rest = urns[:, level], urns[:, level + 1 :].sum(axis=1)
            share = np.zeros((len(urns), k + 1, k + 1))  # [u, m, j]: j of the m left are of this level
            for m in range(k + 1):
                share[:, m, : m + 1] = self.split(m, own, rest)
            new = np.zeros_like(f)
            for j in range(k + 1):
                to, filled = whole[level] * j, highest * (k - j) + 1  # k - j placed so far: no sum is higher
                new[:, : k + 1 - j, to : to + filled] += f[:, j:, :filled] * share[:, j:, j, None]
            f, highest = new, whole[level]
        total = np.zeros((len(urns), size))
        for m in range(k + 1):  # what is left is of the highest level
            to = whole[-1] * m
            total[:, to:] += f[:, m, : size - to]
        return total

    def _tails(self, k: int) -> Array:
        """P(sum >= i / D), i = 0..k·max."""
        return np.minimum(np.cumsum(self.law(k)[::-1])[::-1], 1.0)

    def at(self, k: int) -> Array:
        """S_{k,t} = P(mean score of k >= t / k), t = 1..k: ``[k]``."""
        tails, (D, _) = self._tails(k), self.lattice
        at = np.arange(1, k + 1) * D
        return np.where(at < len(tails), tails[np.minimum(at, len(tails) - 1)], 0.0)

    def tail(self, k: int, tau: float) -> Array:
        """P(mean score of k >= tau)."""
        tails, (D, _) = self._tails(k), self.lattice
        i = reached(k * D, tau)
        return np.asarray(tails[i] if i < len(tails) else 0.0)

    def mean(self) -> float:
        """The mean score of a candidate, questions weighing the same."""
        urns, share = self._urns(1)
        return float(share @ (urns @ np.array([float(score) for score in self.scores]) / urns.sum(axis=1)))

    def discovery(self, k: int) -> Array:
        """S_{j,1} for j = 1..k: ``[k]``."""
        kept = replace(self, levels=self.levels[self._enough(k)])
        return np.array([kept.at(j)[0] for j in range(1, k + 1)])

    def reach(self, k: int) -> tuple[Array, Array]:
        """P(the best of k scores at least s_l), for the levels above the lowest, and the scores: ``[L - 1], [L]``."""
        urns, share = self._urns(k)
        below = np.cumsum(urns, axis=1)[:, :-1]  # [U, L - 1]
        none = self.split(k, urns.sum(axis=1, keepdims=True) - below, below)[..., 0]
        return share @ (1 - none), np.array([float(score) for score in self.scores])

    def ends(self, k: int, blend: Callable[[Array, Array], Array]) -> Array:
        """The mean over questions of blend(S_{k,1}, S_{k,k}) of each question, on a finite bank."""
        if self.split is not hypergeometric:
            raise InvalidValue("a posterior profile is an average over questions: ask the posterior's draws")
        urns, share = self._urns(k)
        each = [replace(self, levels=urn[None]).at(k) for urn in urns]
        return np.asarray(share @ [blend(s[0], s[-1]) for s in each])


@dataclass(frozen=True, slots=True, eq=False)
class DirichletPosterior:
    """Independent Dirichlet posteriors over the levels of each question.

    >>> posterior = DirichletPosterior.of(RubricTally.of([[0, 0.5, 1]], scores=(0, 0.5, 1)))
    >>> posterior.profile().mean()
    0.5
    """

    alpha: Array  # [Q, L]
    scores: tuple[Fraction, ...]
    remark: str = ""

    @classmethod
    def of(
        cls, tally: RubricTally, prior: Any = 1.0, auxiliary: RubricTally | None = None, weight: float = 1.0
    ) -> DirichletPosterior:
        """prior + counts + weight · auxiliary counts; ``prior`` is a number, ``[L]`` or ``[Q, L]``."""
        if not (tally.kind == "iid" or tally.assumed):
            remedy = "use the finite-bank profile, or bank.assuming_independence(reason)"
            raise InvalidValue(
                f"a Dirichlet posterior needs independent draws, and this bank is {tally.kind}: {remedy}"
            )
        base = np.broadcast_to(np.asarray(prior, dtype=np.float64), tally.counts.shape)
        require((base > 0).all() and np.isfinite(base).all(), "prior", prior, "use finite concentrations > 0")
        alpha = base + tally.counts
        if auxiliary is not None:
            require(
                0 <= weight <= 1, "weight", weight, "use the share of a candidate that one of the prior bank counts"
            )
            same = auxiliary.scores == tally.scores and auxiliary.counts.shape == tally.counts.shape
            require(same, "auxiliary", auxiliary.scores, "use a tally of the same questions with the same scores")
            alpha = alpha + weight * auxiliary.counts
        return cls(alpha, tally.scores, tally.remark)

    def profile(self) -> RubricProfile:
        """The posterior mean profile, at any k."""
        return RubricProfile(self.alpha, self.scores, beta_binomial, self.remark)

    def draws(self, key: Key, n: int = 4000) -> RubricDraws:
        """n draws of the level probabilities of all questions."""
        require(is_whole(n, 2), "n", n, "use at least two draws")
        return RubricDraws(self, key, n)


@dataclass(frozen=True, slots=True, eq=False)
class RubricDraws:
    """R posterior draws of the level probabilities, read as a profile with the leading axis ``[R]``.

    The law of a sum of k is the k-th power of a characteristic function, so its error is absolute, near 1e-15: far
    below what the number of draws leaves, and no reason to trust digits of a tail of 1e-14.
    """

    posterior: DirichletPosterior
    key: Key
    n: int

    def blocks(self) -> Iterator[Array]:
        """``[R, q, L]``, block by block of the questions."""
        rng, alpha = generator(self.key), self.posterior.alpha
        step = max(1, BLOCK // (self.n * alpha.shape[1]))
        for first in range(0, len(alpha), step):
            gamma = rng.standard_gamma(alpha[first : first + step], size=(self.n, *alpha[first : first + step].shape))
            yield gamma / gamma.sum(axis=-1, keepdims=True)

    def _tails(self, k: int) -> Array:
        """P(sum >= i / D) of each draw, i = 0..k·max: ``[R, k·max + 1]``."""
        whole = np.array(self.posterior.profile().lattice[1])
        size = k * int(whole[-1]) + 1
        wave = np.exp(-2j * np.pi * np.outer(whole, np.arange(size // 2 + 1)) / size)  # [L, F]
        total = np.zeros((self.n, size // 2 + 1), dtype=np.complex128)
        for theta in self.blocks():
            for q in range(theta.shape[1]):
                total += (theta[:, q] @ wave) ** k
        law = np.maximum(np.fft.irfft(total, n=size, axis=-1), 0.0)
        law /= law.sum(axis=-1, keepdims=True)
        return np.minimum(np.cumsum(law[:, ::-1], axis=-1)[:, ::-1], 1.0)

    def at(self, k: int) -> Array:
        """S_{k,t} of each draw: ``[R, k]``."""
        tails, (D, _) = self._tails(k), self.posterior.profile().lattice
        at = np.arange(1, k + 1) * D
        return np.where(at < tails.shape[1], tails[:, np.minimum(at, tails.shape[1] - 1)], 0.0)

    def tail(self, k: int, tau: float) -> Array:
        """P(mean score of k >= tau) of each draw: ``[R]``."""
        tails, (D, _) = self._tails(k), self.posterior.profile().lattice
        i = reached(k * D, tau)
        return tails[:, i] if i < tails.shape[1] else np.zeros(self.n)

    def discovery(self, k: int) -> Array:
        """S_{j,1} for j = 1..k of each draw: ``[R, k]``."""
        return np.stack([self.at(j)[:, 0] for j in range(1, k + 1)], axis=-1)

    def reach(self, k: int) -> tuple[Array, Array]:
        """P(the best of k scores at least s_l) of each draw, and the scores: ``[R, L - 1], [L]``."""
        scores = np.array([float(score) for score in self.posterior.scores])
        total = np.zeros((self.n, len(scores) - 1))
        for theta in self.blocks():
            below = np.minimum(np.cumsum(theta, axis=-1)[..., :-1], 1.0)
            total += (1 - below**k).sum(axis=1)
        return total / len(self.posterior.alpha), scores

    def ends(self, k: int, blend: Callable[[Array, Array], Array]) -> Array:
        """The mean over questions of blend(S_{k,1}, S_{k,k}) of each question, in each draw: ``[R]``."""
        total = np.zeros(self.n)
        for q in range(len(self.posterior.alpha)):
            alone = replace(self.posterior, alpha=self.posterior.alpha[q : q + 1])
            s = RubricDraws(alone, self.key._replace(sample=self.key.sample + q), self.n).at(k)
            total += blend(s[:, 0], s[:, -1])
        return total / len(self.posterior.alpha)

"""Pairwise utilities that are computed when a rule asks for them, and counted.

``u(question, i, j)`` takes broadcast index arrays and returns the utility of candidate i against candidate j; a
question is a row, counted through the leading axes of the candidates. i is the hypothesis, j the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Candidates
from ramify.errors import InvalidValue, require

__all__ = ["Features", "Given", "Pairs", "ngram_features"]


class Pairs:
    """u(a, b) over the outputs of a bank, each pair computed once. ``calls`` counts what was computed.

    A similarity that says it is symmetric, and what u(a, a) is, is asked n (n - 1) / 2 times instead of n².

    >>> from ramify.decide import MBR, TokenF1
    >>> utility = Pairs([["the cat", "a cat", "a dog"]], TokenF1())
    >>> MBR()(Candidates(np.array([[0, 1, 2]]), utility=utility)).winner.tolist(), utility.calls
    ([1], 3)
    """

    def __init__(self, outputs: Sequence[Sequence[Any]], similarity: Callable[[Any, Any], float]) -> None:
        self.outputs, self.similarity, self.calls = outputs, similarity, 0
        self._symmetric = bool(getattr(similarity, "symmetric", False))
        self._itself: float | None = getattr(similarity, "itself", None)
        self._known: dict[tuple[int, int, int], float] = {}

    @classmethod
    def of(cls, bank: Bank, similarity: Callable[[Any, Any], float], what: str = "answer") -> Pairs:
        """The utility over a bank's canonical answers, or its texts with ``what="text"``."""
        require(what in ("answer", "text"), "what", what, "use 'answer' or 'text'")
        if what == "text":
            require(bank.text is not None, "Bank.text", None, "this bank stores no texts")
            assert bank.text is not None
            return cls(bank.text.tolist(), similarity)
        rows, width = bank.shape
        return cls([[bank.answer(q, n) for n in range(width)] for q in range(rows)], similarity)

    def __call__(self, question: Array, i: Array, j: Array) -> Array:
        shape = np.broadcast_shapes(np.shape(question), np.shape(i), np.shape(j))
        asked = zip(*(np.broadcast_to(part, shape).ravel().tolist() for part in (question, i, j)), strict=True)
        return np.array([self._pair(*pair) for pair in asked], dtype=np.float64).reshape(shape)

    def _pair(self, question: int, i: int, j: int) -> float:
        if i == j and self._itself is not None:
            return self._itself
        key = (question, j, i) if self._symmetric and j < i else (question, i, j)
        if key not in self._known:
            row = self.outputs[question]
            self._known[key] = float(self.similarity(row[key[1]], row[key[2]]))
            self.calls += 1
        return self._known[key]


class Given:
    """A matrix ``[..., N, N]`` that is already there: stored judgements or a kernel. NaN is a pair not judged."""

    def __init__(self, values: Any) -> None:
        values = np.asarray(values, dtype=np.float64)
        square = values.ndim >= 2 and values.shape[-1] == values.shape[-2]
        require(square, "Given.values", values.shape, "use [..., N, N]")
        self.values, self.calls = values.reshape(-1, *values.shape[-2:]), 0

    def __call__(self, question: Array, i: Array, j: Array) -> Array:
        found = self.values[question, i, j]
        self.calls += found.size
        return found


class Features:
    """Outputs as vectors ``[Q, N, F]`` and a similarity of vectors: what can also score against an average.

    ``similarity(a [..., F], b [..., F]) -> [...]``; ``calls`` counts the pairs of vectors it has compared.
    """

    def __init__(self, vectors: Any, similarity: Callable[[Array, Array], Array]) -> None:
        vectors = np.asarray(vectors, dtype=np.float64)
        require(vectors.ndim == 3, "Features.vectors", vectors.shape, "use [Q, N, F]")
        self.vectors, self.similarity, self.calls = vectors, similarity, 0

    def __call__(self, question: Array, i: Array, j: Array) -> Array:
        return self.against(question, i, self.vectors[question, j])

    def against(self, question: Array, i: Array, reference: Array) -> Array:
        """The utility of candidates against any reference vectors ``[..., F]``."""
        value = np.asarray(self.similarity(self.vectors[question, i], reference))
        self.calls += value.size
        return value


def ngram_features(rows: Sequence[Sequence[str]], n: int = 2) -> Array:
    """``[Q, N, F]`` counts of character n-grams, of lengths 1 to n, over the grams that occur."""
    grams = [
        [[text[i : i + m] for m in range(1, n + 1) for i in range(len(text) - m + 1)] for text in row] for row in rows
    ]
    names = {gram: place for place, gram in enumerate(sorted({g for row in grams for text in row for g in text}))}
    table = np.zeros((len(rows), max(map(len, rows), default=0), len(names)))
    for q, row in enumerate(grams):
        for i, text in enumerate(row):
            np.add.at(table[q, i], [names[gram] for gram in text], 1.0)
    return table


def asked(candidates: Candidates) -> Callable[[Array, Array, Array], Array]:
    """The candidates' utility; without one a rule that needs it refuses."""
    if candidates.utility is None:
        raise InvalidValue(
            "the rule needs pairwise utilities, and these candidates carry none: hand in Candidates(utility=...), "
            "such as Pairs.of(bank, RougeL(), 'text')"
        )
    return candidates.utility


def kernel(candidates: Candidates, valid: Array) -> Array:
    """``[..., N, N]`` u(i, j) for all valid pairs and 0 elsewhere: only valid pairs are asked for."""
    utility, n = asked(candidates), valid.shape[-1]
    rows = valid.reshape(-1, n)
    found = np.zeros((len(rows), n, n))
    row, i, j = np.nonzero(rows[:, :, None] & rows[:, None, :])
    found[row, i, j] = utility(row, i, j)
    lost = np.isnan(found)
    require(not lost.any(), "utility", np.nan, "every pair of valid candidates needs one")
    return found.reshape(*valid.shape, n)

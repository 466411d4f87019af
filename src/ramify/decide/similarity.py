"""Utilities u(a, b) of two outputs that need no neural network. Each is a value; any function of two outputs will do.

``symmetric`` says that u(a, b) = u(b, a), ``itself`` what u(a, a) is: a lazy utility then asks for half of the pairs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = [
    "Behaviour",
    "ChrF",
    "Cosine",
    "EditSimilarity",
    "Exact",
    "NgramJaccard",
    "NumericCloseness",
    "RougeL",
    "TokenF1",
    "WordSubsequence",
]


@method
class Exact:
    """1 where two outputs are equal: under it MBR is plurality."""

    symmetric: ClassVar[bool] = True
    itself: ClassVar[float | None] = 1.0

    def __call__(self, a: Hashable, b: Hashable) -> float:
        return float(a == b)


@method
class NumericCloseness:
    """exp(-|x - y| / scale), relative to the larger magnitude if ``relative``; else equality.

    >>> round(NumericCloseness(scale=10.0)("100", "105"), 4)
    0.6065
    """

    scale: float = 1.0
    relative: bool = False
    symmetric: ClassVar[bool] = True
    itself: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        require(self.scale > 0, "NumericCloseness.scale", self.scale, "use a distance > 0")

    def __call__(self, a: Any, b: Any) -> float:
        x, y = _number(a), _number(b)
        if a == b or x is None or y is None:
            return float(a == b)
        size = max(abs(x), abs(y)) if self.relative else 1.0
        return math.exp(-abs(x - y) / (self.scale * size)) if size else 1.0


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


@method
class TokenF1:
    """The F1 of two bags of words: 2 |a ∩ b| / (|a| + |b|).

    >>> round(TokenF1()("the cat sat", "the cat ran home"), 4)
    0.5714
    """

    symmetric: ClassVar[bool] = True
    itself: ClassVar[float | None] = 1.0

    def __call__(self, a: str, b: str) -> float:
        left, right = Counter(a.split()), Counter(b.split())
        return _share(2 * (left & right).total(), left.total() + right.total())


@method
class RougeL:
    """ROUGE-L: the F-measure of the longest common subsequence of words, recall weighted by beta²; b is the reference.

    >>> round(RougeL()("the cat sat on the mat", "the cat is on the mat"), 4)
    0.8333
    """

    beta: float = 1.0
    symmetric: ClassVar[bool] = False
    itself: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        require(self.beta > 0, "RougeL.beta", self.beta, "use a weight of recall > 0")

    def __call__(self, a: str, b: str) -> float:
        left, right = a.split(), b.split()
        common = subsequence(left, right)
        return _share((1 + self.beta**2) * common, len(left) + self.beta**2 * len(right))


@method
class ChrF:
    """chrF: the mean over n of character n-gram precision and recall, as F_beta; b is the reference (Popović, 2015)."""

    n: int = 6
    beta: float = 2.0
    symmetric: ClassVar[bool] = False
    itself: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        require(is_whole(self.n, 1), "ChrF.n", self.n, "use a length >= 1")
        require(self.beta > 0, "ChrF.beta", self.beta, "use a weight of recall > 0")

    def __call__(self, a: str, b: str) -> float:
        left, right = "".join(a.split()), "".join(b.split())
        if left == right:
            return 1.0
        precision, recall = [], []
        for n in range(1, self.n + 1):
            ours, theirs = _grams(left, n), _grams(right, n)
            if ours and theirs:  # an order that one side is too short for says nothing
                common = (ours & theirs).total()
                precision.append(common / ours.total())
                recall.append(common / theirs.total())
        if not precision:
            return 0.0
        p, r = sum(precision) / len(precision), sum(recall) / len(recall)
        return _share((1 + self.beta**2) * p * r, self.beta**2 * p + r)


@method
class EditSimilarity:
    """1 - Levenshtein distance / the longer length, over characters or words.

    >>> round(EditSimilarity()("kitten", "sitting"), 4)
    0.5714
    """

    unit: str = "character"
    symmetric: ClassVar[bool] = True
    itself: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        require(self.unit in ("character", "word"), "EditSimilarity.unit", self.unit, "use 'character' or 'word'")

    def __call__(self, a: str, b: str) -> float:
        left: Sequence[str] = a if self.unit == "character" else a.split()
        right: Sequence[str] = b if self.unit == "character" else b.split()
        longer = max(len(left), len(right))
        return 1.0 - edits(left, right) / longer if longer else 1.0


@method
class NgramJaccard:
    """|a ∩ b| / |a ∪ b| of the sets of word n-grams; an output shorter than n is its one gram."""

    n: int = 2
    symmetric: ClassVar[bool] = True
    itself: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        require(is_whole(self.n, 1), "NgramJaccard.n", self.n, "use a length >= 1")

    def __call__(self, a: str, b: str) -> float:
        left, right = (set(_grams(tuple(each.split()), self.n) or [tuple(each.split())]) for each in (a, b))
        return _share(len(left & right), len(left | right))


@method
class WordSubsequence:
    """The longest common subsequence of words over the longer length (Suzgun et al., 2022)."""

    symmetric: ClassVar[bool] = True
    itself: ClassVar[float | None] = 1.0

    def __call__(self, a: str, b: str) -> float:
        left, right = a.split(" "), b.split(" ")
        return subsequence(left, right) / max(len(left), len(right))


@method
class Behaviour:
    """The share of shared inputs on which two programs gave the same output: each candidate is its tuple of outputs."""

    symmetric: ClassVar[bool] = True
    itself: ClassVar[float | None] = 1.0

    def __call__(self, a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
        require(len(a) == len(b), "outputs", (len(a), len(b)), "run all candidates on the same inputs")
        return _share(sum(x == y for x, y in zip(a, b, strict=True)), len(a))


@method
class Cosine:
    """The cosine of two vectors, such as sentence embeddings."""

    symmetric: ClassVar[bool] = True
    itself: ClassVar[float | None] = None

    def __call__(self, a: Sequence[float], b: Sequence[float]) -> float:
        x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        length = float(np.linalg.norm(x) * np.linalg.norm(y))
        return float(x @ y) / length if length else 0.0


def subsequence(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence: bits mark where it grows, a word of b at a time (Hyyrö, 2004)."""
    where: dict[Hashable, int] = {}
    for place, item in enumerate(a):
        where[item] = where.get(item, 0) | 1 << place
    full = (1 << len(a)) - 1
    row = full
    for item in b:
        match = row & where.get(item, 0)
        row = ((row + match) | (row - match)) & full
    return len(a) - row.bit_count()


def edits(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """The Levenshtein distance, one row at a time."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


def _grams(items: Any, n: int) -> Counter[Any]:
    return Counter(items[i : i + n] for i in range(len(items) - n + 1))


def _share(part: float, whole: float) -> float:
    """part / whole; two empty outputs are the same."""
    return part / whole if whole else 1.0

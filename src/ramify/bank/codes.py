"""Answers as integers: equal answers of one question share a code, in order of first appearance; ⊥ is -1."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["alternatives", "either", "encode", "is_bottom"]

EITHER = " ¦ "  # between right answers of one question: text, so that references stay text wherever they are kept


def is_bottom(answer: Any) -> bool:
    """Whether an answer is ⊥: None, the empty string, NaN, or pandas' NA.

    >>> [is_bottom(each) for each in (None, "", float("nan"), np.float32("nan"), 0, "0", False)]
    [True, True, True, True, False, False, False]
    """
    if answer is None or (isinstance(answer, str) and answer == ""):
        return True
    if type(answer).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(answer, float | np.floating) and bool(np.isnan(answer))


def either(answers: Iterable[str]) -> str:
    """Several right answers of one question as one reference.

    >>> either(["42", "forty-two"]), alternatives("42 ¦ forty-two"), alternatives("42")
    ('42 ¦ forty-two', ['42', 'forty-two'], ['42'])
    """
    return EITHER.join(dict.fromkeys(answers))


def alternatives(reference: str) -> list[str]:
    """The answers that a reference takes for right: itself, or each of several."""
    return reference.split(EITHER)


def encode(rows: Sequence[Iterable[Any]]) -> tuple[np.ndarray, np.ndarray, list[tuple[Any, ...]]]:
    """``(codes [Q, N], drawn [Q, N], answers by code)`` of ragged rows of hashable answers.

    >>> codes, drawn, answers = encode([["A", "B", "A", None], ["7"]])
    >>> codes.tolist(), drawn[1].tolist(), answers
    ([[0, 1, 0, -1], [0, -1, -1, -1]], [True, False, False, False], [('A', 'B'), ('7',)])
    """
    listed = [list(row) for row in rows]
    width = max(map(len, listed), default=0)
    codes = np.full((len(listed), width), -1, dtype=np.int32)
    drawn = np.zeros((len(listed), width), dtype=bool)
    answers: list[tuple[Any, ...]] = []
    for q, row in enumerate(listed):
        known: dict[Hashable, int] = {}
        codes[q, : len(row)] = [-1 if is_bottom(a) else known.setdefault(a, len(known)) for a in row]
        drawn[q, : len(row)] = True
        answers.append(tuple(known))
    return codes, drawn, answers

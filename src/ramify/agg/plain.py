"""Plain lists and arrays in, a selection out: what every function of ``ramify.agg`` begins and ends with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np

from ramify import decide
from ramify.arrays import Array
from ramify.bank import Candidates, Choice
from ramify.bank.codes import encode, is_bottom
from ramify.decide import Given, Pairs, Rule
from ramify.errors import InvalidValue, require

__all__ = [
    "Decided",
    "Returns",
    "Selection",
    "Table",
    "chosen",
    "numbers",
    "packed",
    "pairs",
    "parts",
    "presented",
    "rows_of",
    "score_at",
    "several",
    "table",
    "voted",
]


class Selection(NamedTuple):
    """What was selected: for a batch each part is an array."""

    answer: Any
    index: Any  # -1 where nothing is valid
    score: Any  # the representative's; the rule's support where the rule reads no scores


class Returns(TypedDict, total=False):
    """What a selecting function returns besides the answer."""

    record: bool
    return_index: bool
    return_score: bool


class Table(NamedTuple):
    """Answers as a bank's arrays."""

    codes: Array  # [M, N]
    drawn: Array  # [M, N]
    answers: list[tuple[Any, ...]]  # by question, by code
    single: bool


def table(answers: Any) -> Table:
    """Answers of one question or of a batch.

    >>> table([["A", None], ["B"]]).codes.tolist(), table(["A", "B"]).single
    ([[0, -1], [0, -1]], True)
    """
    rows, single = rows_of(answers)
    try:
        codes, drawn, texts = encode(rows)
    except TypeError as error:
        raise InvalidValue(f"answers: {error}: use hashable answers, tuples instead of lists inside a row") from None
    return Table(codes, drawn, texts, single)


def rows_of(values: Any) -> tuple[list[list[Any]], bool]:
    """Rows of values, and whether there was only one, given flat."""
    if hasattr(values, "to_numpy"):  # a pandas Series or frame, without importing pandas
        values = values.to_numpy(dtype=object)
    if isinstance(values, np.ndarray):
        require(values.ndim in (1, 2), "answers or scores", values.shape, "use one dimension, or two for a batch")
        listed = values.tolist()
        return (
            ([listed], True) if values.ndim == 1 and not any(map(_is_row, listed)) else (list(map(_row, listed)), False)
        )
    listed = list(values)
    return (list(map(_row, listed)), False) if listed and all(map(_is_row, listed)) else ([listed], True)


def _is_row(value: Any) -> bool:
    return isinstance(value, list | np.ndarray) or hasattr(value, "to_numpy")


def _row(value: Any) -> list[Any]:
    return list(value.tolist() if isinstance(value, np.ndarray) else value)


def numbers(scores: Any, like: Table, name: str = "scores") -> Array:
    """``[M, N]`` scores aligned with the answers; None, NaN and NA are missing."""
    rows, _ = rows_of(scores)
    require(
        len(rows) == len(like.codes), name, f"{len(rows)} rows", f"give one for each of {len(like.codes)} questions"
    )
    out = np.full(like.codes.shape, np.nan)
    for q, row in enumerate(rows):
        wanted = int(like.drawn[q].sum())
        require(len(row) == wanted, f"{name} of question {q}", f"{len(row)} values", f"give one for each of {wanted}")
        out[q, :wanted] = [_number(value, f"{name} of question {q}") for value in row]
    return out


def _number(value: Any, name: str) -> float:
    try:
        return math.nan if is_bottom(value) else float(value)
    except (TypeError, ValueError):
        raise InvalidValue(f"{name} has {value!r}: use numbers, and None where one is missing") from None


def pairs(utility: Any, like: Table, outputs: Any = None) -> Any:
    """A matrix ``[N, N]`` or ``[M, N, N]``, or a function of two outputs: the answers, or ``outputs``."""
    if utility is None or callable(utility):
        shown = [
            [texts[c] if c >= 0 else None for c in row] for texts, row in zip(like.answers, like.codes, strict=True)
        ]
        return Pairs(shown if outputs is None else rows_of(outputs)[0], utility or decide.Exact())
    return Given(utility)


Decided: TypeAlias = tuple[Table, Choice, Array, Array]  # the choice, who stands for it, and the score shown with it


def voted(rule: Rule, answers: Any, scores: Any) -> Decided:
    """A vote by scores: the best-scored candidate stands for the winning answer."""
    like = table(answers)
    return presented(like, rule, Candidates(like.codes, like.drawn, None, {"score": numbers(scores, like)}))


def presented(like: Table, rule: Rule, bank: Candidates) -> Decided:
    choice = rule(bank)
    index = decide.BestInGroup()(bank, choice)
    return like, choice, index, score_at(bank.score("score"), index)


def chosen(rule: Rule, answers: Any, scores: Mapping[str, Any], utility: Any = None) -> Decided:
    """A choice of a candidate, who stands for himself; shown with the first of the scores, or the support."""
    like = table(answers)
    evidence = {name: numbers(values, like, name) for name, values in scores.items() if values is not None}
    asks = utility is not None or decide.PAIRS in getattr(rule, "needs", ())
    choice = rule(Candidates(like.codes, like.drawn, None, evidence, pairs(utility, like) if asks else None))
    return like, choice, choice.winner, score_at(next(iter(evidence.values()), choice.support), choice.winner)


def score_at(values: Array, index: Array) -> Array:
    """``[M]`` the values at an index, NaN at -1."""
    if not values.shape[-1]:
        return np.full(index.shape, np.nan)
    return np.where(index >= 0, np.take_along_axis(values, np.maximum(index, 0)[:, None], axis=-1)[:, 0], np.nan)


def packed(like: Table, choice: Choice, index: Array, score: Array, **returns: Unpack[Returns]) -> Any:
    """The answer, with what else was asked for."""
    del choice
    answers = [
        None if i < 0 or like.codes[q, i] < 0 else like.answers[q][like.codes[q, i]] for q, i in enumerate(index)
    ]
    if like.single:
        return parts(Selection(answers[0], int(index[0]), float(score[0])), **returns)
    answer = np.empty(len(answers), dtype=object)
    answer[:] = answers
    return parts(Selection(answer, index.astype(np.int64), score), **returns)


def parts(found: Selection, record: bool = False, return_index: bool = False, return_score: bool = False) -> Any:
    if record or (return_index and return_score):
        return found
    if return_index or return_score:
        return (found.answer, found.index if return_index else found.score)
    return found.answer


def several(like: Table, choice: Choice) -> Any:
    """The k answers of a rule with several outputs: a list, or a list for each question."""
    rows = [[like.answers[q][like.codes[q, i]] for i in row if i >= 0] for q, row in enumerate(choice.ranked)]
    return rows[0] if like.single else rows

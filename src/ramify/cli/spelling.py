"""One answer in several spellings: seen, and counted as one where that is asked for."""

from __future__ import annotations

import numpy as np

from ramify.bank import Bank
from ramify.tasks.checking import canonical
from ramify.tasks.grading import with_answers

__all__ = ["alike", "canonical_bank", "equal", "split"]


def equal(one: str, other: str) -> bool:
    """Whether two answers have the same canonical form.

    >>> equal("1/2", "0.50"), equal(r"\\sqrt{8}", r"2\\sqrt{2}"), equal("7", "8")
    (True, True, False)
    """
    a, b = canonical(one), canonical(other)
    return a.form is not None and a.form == b.form


def alike(names: list[str]) -> tuple[str, str] | None:
    """The first two of different strings that are one answer."""
    forms: dict[str, str] = {}
    for name in names:
        form = canonical(name).form
        if form is not None and form in forms:
            return forms[form], name
        if form is not None:
            forms[form] = name
    return None


def split(bank: Bank, first: int | None = None) -> dict[str, tuple[str, str]]:
    """The questions, or of the ``first``, that have one answer in several spellings, which vote apart; two of them."""
    asked = zip(bank.questions[:first], bank.answer_text[:first], strict=True)
    found = ((question.id, alike([*map(str, answers)])) for question, answers in asked)
    return {name: pair for name, pair in found if pair}


def canonical_bank(bank: Bank) -> Bank:
    """The bank with answers in canonical form, so that all spellings of one vote together.

    What is beyond the limits of canonical forms stays as it is written.

    >>> bank = canonical_bank(Bank.of({"q": ["42", "7", "42.0", None]}))
    >>> bank.answers.tolist(), bank.answer_text
    ([[0, 1, 0, -1]], (('42', '7'),))
    """
    rows: list[list[str | None]] = [[None] * bank.shape[1] for _ in bank.questions]
    for q, n in np.argwhere(bank.answers >= 0).tolist():
        written = str(bank.answer(q, n))
        rows[q][n] = canonical(written).form or written
    return with_answers(bank, rows)

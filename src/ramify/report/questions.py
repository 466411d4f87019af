"""The question explorer: every question with its numbers, down to candidates and their text, token by token."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank
from ramify.errors import RamifyError
from ramify.report.case import Case
from ramify.report.text import shown
from ramify.report.values import Explorer, Part, Section, plain
from ramify.types import APPENDED, FORCED

__all__ = ["Spell", "entries", "explorer_section", "levels_of", "pocket_spelling"]

Spell = Callable[[Sequence[int]], list[str]]
"""Token ids -> the text of each. Their texts joined are the text of the candidate."""

ROOM = 1_500_000  # characters of model text on a page; beyond it the longest texts lose their middle
ROWS = 8_000  # candidates on a page; beyond it the first of each question are shown, and the page says so
EDGES = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95)  # of the probability of a token: seven tints
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # a size a character, where that is enough
STRIP = 240  # cells of the strip that is shown where tokens cannot be spelled


def explorer_section(cases: Sequence[Case], spell: Mapping[str, Spell] | None = None, room: int = ROOM) -> Section:
    """All questions of all banks. ``room`` is how much model text the page may hold."""
    share = (room // len(cases), ROWS // len(cases))
    found = {case.name: entries(case, (spell or {}).get(case.name), *share) for case in cases}
    parts: tuple[Part, ...] = (Explorer("questions", found),)
    lead = (
        "Sort by a heading, filter, and open a question to see its candidates; open a candidate to read it. "
        "Where token probabilities were recorded, the less probable a token was, the stronger its tint."
    )
    return Section("questions", "Questions and candidates", lead, parts)


def entries(case: Case, spell: Spell | None = None, room: int = ROOM, rows: int = ROWS) -> dict[str, Any]:
    """What the page's script shows of one bank: so many characters and candidates, at most."""
    bank = case.bank
    first = max(1, rows // max(1, bank.shape[0]))  # candidates of a question
    most = _most(bank.first(first), room)
    spell = spell or pocket_spelling(bank)
    rule = case.best_rule
    return {
        "columns": _columns(case, rule),
        "signals": list(case.layers),
        "coloured": bank.tokens is not None and "logprob" in bank.tokens.columns,
        "questions": [_question(case, q, rule, most, spell, first) for q in range(bank.shape[0])],
    }


def _columns(case: Case, rule: str) -> list[dict[str, Any]]:
    return [
        {"key": "question", "label": "question", "kind": "text"},
        {
            "key": "solved",
            "label": "right",
            "kind": "percent",
            "meter": True,
            "help": "share of graded candidates that are right",
        },
        {"key": "taken", "label": rule, "kind": "percent", "help": f"what {rule} submits at k = {case.top} is worth"},
        {"key": "answers", "label": "answers", "kind": "count", "help": "different answers"},
        {"key": "invalid", "label": "no answer", "kind": "percent", "help": "candidates without an answer"},
        {"key": "capped", "label": "hit the cap", "kind": "percent", "help": "of the candidates whose end is known"},
        {"key": "tokens", "label": "mean tokens", "kind": "number", "help": "completion tokens of a candidate"},
    ]


def _question(case: Case, q: int, rule: str, most: int, spell: Spell | None, first: int) -> dict[str, Any]:
    bank, drawn = case.bank, np.flatnonzero(case.bank.drawn[q])
    question, solved = bank.questions[q], case.solved[q]
    taken, ceiling = case.rules[rule].values[q, -1], case.ceiling.values[q, -1]
    codes = bank.answers[q, drawn]
    length = None if bank.length is None else bank.length[q, drawn]
    tokens = float(length[length >= 0].mean()) if length is not None and (length >= 0).any() else np.nan
    invalid = float((codes < 0).mean()) if drawn.size else np.nan
    ends = bank.ended[q, drawn]
    capped = float((ends[ends > 0] == bank.endings.index("length")).mean()) if (ends > 0).any() else np.nan
    status = ["never"] if solved == 0 else ["always"] if solved == 1 else ["sometimes"] if solved > 0 else []
    status += ["missed"] if ceiling > 0 and taken < ceiling - 0.5 else []
    status += ["invalid"] if invalid > 0 else []
    cells = [question.id, solved, taken, len(set(codes[codes >= 0].tolist())), invalid, capped, tokens]
    return {
        "id": shown(question.id),
        "prompt": shown(question.prompt),
        "groups": [f"{shown(name)}: {shown(value)}" for name, value in question.groups.items()],
        "status": status,
        "cells": [plain(cell) for cell in cells],
        "candidates": [_candidate(case, q, int(n), most, spell) for n in drawn[:first]],
        "more": max(0, len(drawn) - first),
    }


def _candidate(case: Case, q: int, n: int, most: int, spell: Spell | None) -> dict[str, Any]:
    bank = case.bank
    answer = bank.answer(q, n)
    found: dict[str, Any] = {
        "sample": int(bank.samples[q, n]),
        "answer": None if answer is None else shown(answer)[:400],
        "grade": plain(case.grades[q, n]),
        "ended": shown(bank.endings[bank.ended[q, n]]),
        "tokens": None if bank.length is None or bank.length[q, n] < 0 else int(bank.length[q, n]),
        "signals": [plain(layer.values[q, n]) for layer in case.layers.values()],
    }
    text = None if bank.text is None else bank.text[q, n]
    levels, pieces = _tokens(bank, q, n, spell)
    if text is not None and pieces is not None and "".join(pieces) == text:
        found |= _spelled(pieces, levels, most)
    elif text is not None:
        found |= _cut(shown(text), most)
    if levels and "parts" in found and "levels" not in found["parts"][0]:
        found["strip"] = _thinned(levels)
    return found


def _tokens(bank: Bank, q: int, n: int, spell: Spell | None) -> tuple[str, list[str] | None]:
    """(a level for each token, the text of each) of a candidate, as far as they were recorded."""
    table = bank.tokens
    if table is None or "logprob" not in table.columns or table.start[q, n] < 0:
        return "", None
    columns = table.of(q, n)
    levels = levels_of(columns["logprob"], columns.get("role"))
    pieces = spell(columns["token"].tolist()) if spell is not None and "token" in columns else None
    return levels, pieces


def levels_of(logprob: Array, role: Array | None = None) -> str:
    """A character a token: 0 (improbable) to 6, "f" for what the protocol wrote itself, "x" where it is not known.

    >>> levels_of(np.log([0.001, 0.5, 0.99, np.nan]))
    '046x'
    """
    logprob = np.asarray(logprob, dtype=float)
    codes = np.array(list("0123456"))[np.searchsorted(np.log(EDGES), np.nan_to_num(logprob, nan=0.0), side="right")]
    codes = np.where(np.isnan(logprob), "x", codes)
    if role is not None:
        codes = np.where((role == FORCED) | (role == APPENDED), "f", codes)
    return "".join(codes.tolist())


def _spelled(pieces: list[str], levels: str, most: int) -> dict[str, Any]:
    """The text in parts whose tokens have levels; the middle is left out beyond ``most`` characters."""
    sizes = np.array([len(piece) for piece in pieces])
    ends = np.cumsum(sizes)
    if not ends.size or ends[-1] <= most:
        return {"parts": [_part(pieces, levels)], "left": 0}
    head = int(np.searchsorted(ends, most * 2 // 3, side="right"))
    tail = int(np.searchsorted(ends, ends[-1] - most // 3))
    parts = [_part(pieces[:head], levels[:head]), _part(pieces[tail + 1 :], levels[tail + 1 :])]
    return {"parts": parts, "left": int(sizes[head : tail + 1].sum())}


def _part(pieces: list[str], levels: str) -> dict[str, Any]:
    visible = [shown(piece) for piece in pieces]
    sizes = [len(piece.encode("utf-16-le")) // 2 for piece in visible]  # as the page's script counts
    part = {"text": "".join(visible), "levels": levels}
    if all(size == 1 for size in sizes):
        return part
    return {**part, "sizes": "".join(DIGITS[size] for size in sizes) if max(sizes) < len(DIGITS) else sizes}


def _cut(text: str, most: int) -> dict[str, Any]:
    if len(text) <= most:
        return {"parts": [{"text": text}], "left": 0}
    head, tail = most * 2 // 3, most // 3
    return {"parts": [{"text": text[:head]}, {"text": text[len(text) - tail :]}], "left": len(text) - head - tail}


def _thinned(levels: str) -> str:
    """At most ``STRIP`` levels: of each stretch the lowest, since that is what the eye should find."""
    if len(levels) <= STRIP:
        return levels
    edges = np.linspace(0, len(levels), STRIP + 1).astype(int)
    return "".join(min(levels[a:b]) for a, b in itertools.pairwise(edges))


def _most(bank: Bank, room: int) -> int:
    """How long a text may be so that all of them together fit: short ones are whole, the longest share what is left."""
    if bank.text is None:
        return room
    sizes = np.sort([len(text) for text in bank.text[bank.drawn] if text is not None])
    if sizes.sum() <= room or not sizes.size:
        return room
    before = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    limits = (room - before) // np.arange(len(sizes), 0, -1)  # if all from here on are cut alike
    return max(90, int(limits[np.argmax(limits <= sizes)]))


# A bank is data: only a model that ships with the package is looked up by what a bank says of itself.
POCKET = re.compile(r"""Pocket\((?:\w+=)?(['"])([\w-]+)\1(?:, [\w=', ]*)?\)""")


def pocket_spelling(bank: Bank) -> Spell | None:
    """How the embedded model that made this bank spells its tokens, if one did."""
    named = {POCKET.fullmatch(proposal.model) for proposal in bank.proposals}
    names = {found[2] for found in named if found is not None}
    if len(names) != 1 or None in named:
        return None
    from ramify.models import Pocket

    try:
        model = Pocket(names.pop())
    except RamifyError:
        return None
    spelled = functools.cache(lambda token: model.text([token]))
    return lambda tokens: [spelled(token) for token in tokens]

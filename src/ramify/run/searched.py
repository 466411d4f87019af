"""The record of a search: a directory in which an interrupted one is gone on with.

card.json         the protocol: every method by its text, the arm, the budget, versions and host facts
draws/            every continuation that the model was asked for, durable before the tree saw it
bank/             the finished leaves with their scores
decisions.jsonl   what each question submitted, how its search ended, and what it cost
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ramify.describe import describe, text
from ramify.ledger import Ledger
from ramify.run.between import Remembered
from ramify.run.leaf import Arm
from ramify.run.prefix import Search, Searched, run_search
from ramify.run.record import alone, begin, budget_of, facts, write
from ramify.store import Store
from ramify.types import Question

__all__ = ["record_search"]


def record_search(
    path: str | Path,
    protocol: Search,
    questions: Sequence[Question],
    arm: Arm,
    ledger: Ledger,
    parse: Callable[[str, Question], Any],
    *,
    details: Mapping[str, Any] | None = None,
    tell: Callable[[int, bool], object] = lambda *_: None,
) -> Searched:
    """Search every question into a directory, or go on with the search that is there.

    Trees are not kept but grown again from the draws, which costs no generation; evaluators are asked again. An
    interrupted search ends as an uninterrupted one would have: only ``compute`` differs, which says what was in fact
    computed this time. ``tell`` hears of every draw: its new tokens, and whether it was there.
    """
    path = Path(path)
    with alone(path):
        begin(path, _card(protocol, questions, arm, ledger, details))
        with Remembered(arm.sampler, path / "draws", arm.proposal, questions, tell) as sampler:
            found = run_search(protocol, questions, dataclasses.replace(arm, sampler=sampler), ledger, parse)
        Store.create(path / "bank").add_bank(found.bank)
        lines = (json.dumps(line, default=str).encode() + b"\n" for line in _lines(found))
        write(path / "decisions.jsonl", b"".join(lines))
    return found


def _card(
    protocol: Search, questions: Sequence[Question], arm: Arm, ledger: Ledger, details: Mapping[str, Any] | None
) -> dict[str, Any]:
    return {
        "protocol": {
            "text": text(protocol),
            "search": describe(protocol),
            "arms": [describe(arm.proposal)],
            "questions": [question.id for question in questions],
            "budget": budget_of(ledger),
        },
        "details": dict(details or {}),
        "host": facts(),
    }


def _lines(found: Searched) -> list[dict[str, Any]]:
    return [
        {
            "question": question.id,
            "submitted": found.answers[q],
            "winner": int(found.choice[q].winner),
            "ended": found.ended[q],
            "n": int(found.bank.drawn[q].sum()),
            "pruned": found.pruned[q],
            "cut": found.cut[q],
            "spent": found.ledgers[q].spent._asdict(),
        }
        for q, question in enumerate(found.bank.questions)
    ]

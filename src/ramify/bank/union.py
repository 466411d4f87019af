"""Several banks as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank.bank import ENDINGS, Bank
from ramify.bank.codes import encode
from ramify.bank.layers import Layer
from ramify.bank.proposal import Proposal
from ramify.bank.tokens import TokenTable
from ramify.errors import require
from ramify.types import Question

__all__ = ["union"]


def union(*banks: Bank) -> Bank:
    """One bank of all candidates of several, question by question, in the order given.

    Questions are matched by id and must agree in their prompt; a question that a bank lacks has no candidates from it.
    A layer that only some have is missing (NaN) elsewhere; a token column that only some have is dropped.

    >>> one, two = Proposal(run="one"), Proposal(run="two")
    >>> both = union(Bank.of({"q": ["A", "B"]}, proposal=one), Bank.of({"q": ["B"]}, proposal=two))
    >>> both.answers.tolist(), both.source.tolist(), both.kind
    ([[0, 1, 1]], [[0, 0, 1]], 'heterogeneous')
    """
    require(banks, "banks", (), "hand in at least one")
    questions: dict[str, Question] = {}
    for bank in banks:
        for question in bank.questions:
            known = questions.setdefault(question.id, question)
            same = known.prompt == question.prompt
            require(
                same, f"question {question.id!r}", question.prompt, f"another bank asks {known.prompt!r} under this id"
            )
    parts = [_spread(bank, questions) for bank in banks]
    rows = [[part.answer(q, n) for part in parts for n in range(part.shape[1])] for q in range(len(questions))]
    codes, _, texts = encode(rows)
    proposals: tuple[Proposal, ...] = tuple(dict.fromkeys(proposal for bank in banks for proposal in bank.proposals))
    endings = tuple(dict.fromkeys(ending for names in (ENDINGS, *(bank.endings for bank in banks)) for ending in names))
    merged = Bank(
        questions=tuple(questions.values()),
        answer_text=tuple(texts),
        answers=codes,
        drawn=_beside([part.drawn for part in parts]),
        ended=_beside([_recoded(part.ended, part.endings, endings) for part in parts]),
        source=_beside([_recoded(part.source, part.proposals, proposals) for part in parts]),
        samples=_beside([part.samples for part in parts]),
        proposals=proposals,
        endings=endings,
        log_q=_filled(parts, "log_q", np.nan, np.float64),
        length=_filled(parts, "length", -1, np.int64),
        text=_filled(parts, "text", None, object),
        tokens=TokenTable.join([part.tokens for part in parts], [part.shape for part in parts]),
        layers={name: _joined(name, parts) for name in dict.fromkeys(name for bank in banks for name in bank.layers)},
        assumed="; ".join(dict.fromkeys(bank.assumed for bank in banks)) if all(bank.assumed for bank in banks) else "",
    )
    merged.need_distinct_keys()
    return merged


def _beside(tables: Sequence[Array]) -> Array:
    return np.concatenate(tables, axis=1)


def _recoded(codes: Array, old: Sequence[Any], new: Sequence[Any]) -> Array:
    """Codes into ``old`` as codes into ``new``; -1 stays."""
    table = np.array([new.index(each) for each in old], dtype=codes.dtype)
    return np.where(codes.astype(np.int64) < 0, codes, table[codes])


def _filled(parts: Sequence[Bank], name: str, unknown: Any, dtype: Any) -> Array | None:
    """A field side by side; ``unknown`` for the banks that did not record it, None if none did."""
    fields = [getattr(part, name) for part in parts]
    if all(field is None for field in fields):
        return None
    pairs = zip(fields, parts, strict=True)
    return _beside([np.full(part.shape, unknown, dtype=dtype) if field is None else field for field, part in pairs])


def _joined(name: str, parts: Sequence[Bank]) -> Layer:
    """A layer side by side. The banks must mean the same by its name."""
    layers = [part.layers.get(name) for part in parts]
    meanings = {(layer.description, layer.version, layer.role) for layer in layers if layer is not None}
    require(len(meanings) == 1, f"layer {name!r}", sorted(meanings), "the banks mean different things by this name")
    [(description, version, role)] = meanings
    tables, costs = [], []
    for layer, part in zip(layers, parts, strict=True):
        tables.append(np.full(part.shape, np.nan) if layer is None else layer.values)
        costs.append(np.zeros(part.shape) if layer is None else layer.cost)
    cost = None if any(each is None for each in costs) else _beside([each for each in costs if each is not None])
    return Layer(_beside(tables), description, version, cost, role)


def _spread(bank: Bank, questions: Mapping[str, Question]) -> Bank:
    """The bank over these questions: those it lacks have nothing drawn."""
    place = {question.id: i for i, question in enumerate(bank.questions)}
    rows = np.array([place.get(name, -1) for name in questions], dtype=np.int64)
    columns = np.where(rows[:, None] < 0, -1, np.arange(bank.shape[1]))
    return bank.gather(rows, columns, tuple(questions.values()))

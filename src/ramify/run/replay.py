"""Exact replay: decide a stored run again without a model, make it again with one, or audit it in higher precision."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from ramify.errors import StoreError
from ramify.run.leaf import Arm, run_leaves
from ramify.run.record import Recorded, decisions, load
from ramify.types import Key, Leaf, Question, Request

__all__ = ["Audit", "Divergence", "Redecided", "audit", "redecide", "regenerate"]


@dataclasses.dataclass(frozen=True)
class Redecided:
    """Whether the stored decisions follow from the stored leaves, byte for byte, and the first line that does not."""

    exact: bool
    line: int = -1
    stored: str = ""
    now: str = ""


@dataclasses.dataclass(frozen=True)
class Divergence:
    """The first token at which a leaf made again differs, and what the two runs knew of that position."""

    question: str
    sample: int
    token: int  # the position
    stored: int | None  # the tokens that were chosen; None: the leaf had ended
    now: int | None
    stored_logprob: float
    now_logprob: float
    stored_top: tuple[tuple[int, float], ...]  # the alternatives recorded there, likeliest first
    now_top: tuple[tuple[int, float], ...]


@dataclasses.dataclass(frozen=True)
class Audit:
    """How much of a run changes under other arithmetic, with the same prompts and streams.

    Agreement shows that a result is not sensitive to the numerical format. It does not prove that it can be replayed.
    """

    traces: int
    changed_traces: int
    tokens: int
    changed_tokens: int  # from the first difference of each trace on
    decisions: int
    changed_decisions: int
    first: Divergence | None

    @property
    def exact(self) -> bool:
        return self.changed_traces == 0


def redecide(
    path: str | Path, parse: Callable[[str, Question], Any], *, modules: Iterable[ModuleType] = ()
) -> Redecided:
    """Run the stored protocol over the stored leaves. No model is needed, and none is asked.

    ``modules`` are those in which rules, stops and evidence of one's own live.
    """
    run = load(path, modules=modules)
    prompts = run.prompts or ((0,) * len(run.questions),) * len(run.proposals)
    arms = [
        Arm(proposal, _without_model, _of_length(run.questions, lengths))
        for proposal, lengths in zip(run.proposals, prompts, strict=True)
    ]
    again = decisions(run_leaves(run.protocol, run.questions, arms, run.ledger, parse, store=run.store))
    before, after = run.decisions.splitlines(), again.splitlines()
    for number in range(max(len(before), len(after))):
        one = before[number].decode() if number < len(before) else ""
        other = after[number].decode() if number < len(after) else ""
        if one != other:
            return Redecided(False, number + 1, one, other)
    return Redecided(run.decisions == again)


def regenerate(
    path: str | Path, arms: Sequence[Arm], parse: Callable[[str, Question], Any], *, modules: Iterable[ModuleType] = ()
) -> Audit:
    """Make every leaf of a stored run again, and compare: exact, or where it first diverges."""
    return audit(path, arms, parse, modules=modules)


def audit(
    path: str | Path, arms: Sequence[Arm], parse: Callable[[str, Question], Any], *, modules: Iterable[ModuleType] = ()
) -> Audit:
    """Repeat a run with the same prompts and streams on other arms, such as a model in double precision."""
    run = load(path, modules=modules)
    proposals = [arm.proposal for arm in arms]
    if [each.run for each in proposals] != [each.run for each in run.proposals]:
        raise StoreError(f"{path} has the arms {[each.run for each in run.proposals]}: hand in arms of the same runs")
    with run.store.snapshot() as snapshot:
        stored = {record.key: record.leaf() for record in snapshot.records()}
    made = (leaf for arm in arms for leaf in arm.sampler(_requests(run, arm, stored)))
    now = {leaf.key: _ended_as(stored[leaf.key], leaf) for leaf in made}
    changed = tokens = 0
    first: Divergence | None = None
    order = {question.id: i for i, question in enumerate(run.questions)}
    for key in sorted(stored, key=lambda key: (order[key.question], key.sample, key.run)):
        at = _differs(stored[key], now[key])
        if at is not None:
            changed += 1
            tokens += max(len(stored[key].tokens), len(now[key].tokens)) - at
            first = first or _divergence(key, stored[key], now[key], at)
    made_again = [dataclasses.replace(arm, sampler=partial(_made, leaves=now)) for arm in arms]
    again = run_leaves(run.protocol, run.questions, made_again, run.ledger, parse)
    before, after = _submitted(run.decisions), _submitted(decisions(again))
    return Audit(
        traces=len(stored),
        changed_traces=changed,
        tokens=sum(len(leaf.tokens) for leaf in stored.values()),
        changed_tokens=tokens,
        decisions=len(before),
        changed_decisions=sum(one != other for one, other in zip(before, after, strict=True)),
        first=first,
    )


def _of_length(questions: Sequence[Question], lengths: Sequence[int]) -> Callable[[Question], tuple[int, ...]]:
    """Prompts that no model reads, as long as those that were: a budget may charge them."""
    sizes = {question.id: length for question, length in zip(questions, lengths, strict=True)}
    return lambda question: (0,) * sizes[question.id]


def _without_model(_: Iterable[Request]) -> NoReturn:
    raise StoreError(
        "the record lacks a leaf that the protocol asks for: the run was not finished; run it to its end first"
    )


def _made(requests: Iterable[Request], leaves: dict[Key, Leaf]) -> Iterator[Leaf]:
    for request in requests:
        if request.key not in leaves:
            raise StoreError(
                f"{request.key}: under the other arithmetic the run asks for a leaf that the record does not have"
            )
        yield leaves[request.key]


def _requests(run: Recorded, arm: Arm, stored: dict[Key, Leaf]) -> list[Request]:
    asked = {question.id: question for question in run.questions}
    mine = [(key, leaf) for key, leaf in stored.items() if key.run == arm.proposal.run]
    top = run.protocol.top
    return [
        Request(
            key,
            arm.encode(asked[key.question]),
            len(leaf.tokens) if leaf.ended.startswith("stop:") else run.protocol.cap,
            top=top,
        )
        for key, leaf in mine
    ]


def _ended_as(stored: Leaf, now: Leaf) -> Leaf:
    """A leaf made again up to where a rule or the budget had cut it was cut there too."""
    cut = stored.ended.startswith("stop:") and len(now.tokens) == len(stored.tokens) and now.ended == "length"
    return dataclasses.replace(now, ended=stored.ended) if cut else now


def _differs(one: Leaf, other: Leaf) -> int | None:
    """The first position at which two leaves have different tokens; None if they are the same."""
    shared = min(len(one.tokens), len(other.tokens))
    unequal = np.flatnonzero(one.tokens[:shared] != other.tokens[:shared])
    if unequal.size:
        return int(unequal[0])
    return None if len(one.tokens) == len(other.tokens) else shared


def _divergence(key: Key, stored: Leaf, now: Leaf, at: int) -> Divergence:
    def token(leaf: Leaf) -> int | None:
        return int(leaf.tokens[at]) if at < len(leaf.tokens) else None

    def logprob(leaf: Leaf) -> float:
        return float(leaf.logprob[at]) if at < len(leaf.tokens) else float("nan")

    def top(leaf: Leaf) -> tuple[tuple[int, float], ...]:
        if leaf.top is None or at >= len(leaf.tokens):
            return ()
        return tuple(zip(leaf.top.ids[at].tolist(), leaf.top.logprobs[at].tolist(), strict=True))

    return Divergence(
        key.question, key.sample, at, token(stored), token(now), logprob(stored), logprob(now), top(stored), top(now)
    )


def _submitted(lines: bytes) -> list[bytes]:
    return [line for line in lines.splitlines() if b'"submitted"' in line]

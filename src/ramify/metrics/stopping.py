"""Stops replayed on a stored bank: what they would have decided on permuted streams. Retrospective, by construction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Candidates, Choice, Outcomes, Verdict
from ramify.decide.support import Rule
from ramify.errors import is_whole, require
from ramify.metrics.replay import blocks_of, mean_error, name_of, orders, submitted
from ramify.types import Key

__all__ = ["Stop", "StopReplay", "replay_stop"]

Stop: TypeAlias = Callable[[Candidates, Key], Verdict]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class StopReplay:
    """What a stopping rule would have decided on permuted streams of a stored bank.

    Retrospective: the candidates were all drawn and paid for. It shows decisions; savings are claimed by end-to-end
    runs alone.
    """

    samples: Array  # [R, Q] candidates revealed when it stopped, or the whole stream
    stopped: Array  # [R, Q] whether it stopped by its own verdict
    values: Array  # [Q] the mean utility of what is submitted at the stop
    same: Array  # [Q] how often the answer is the one of the whole stream
    invalid: Array  # [Q] how often nothing is submitted
    whole: Array  # [Q] the mean utility of what is submitted from the whole stream, in the same orders
    error: float  # the Monte Carlo standard error of the mean of ``values``
    stop: str
    rule: str
    label: str = "retrospective"


def replay_stop(
    stop: Stop,
    rule: Rule,
    bank: Bank,
    outcomes: Outcomes,
    *,
    evidence: Iterable[str] = (),
    replicates: int = 200,
    limit: int | None = None,
    run: str = "replay",
) -> StopReplay:
    """Reveal each permuted stream one candidate at a time, stop at the first verdict, and submit by ``rule``."""
    require(is_whole(replicates, 1), "replicates", replicates, "use a number of permutations >= 1")
    n = bank.shape[1] if limit is None else min(limit, bank.shape[1])
    require(is_whole(n, 1), "limit", limit, "use a number of candidates >= 1")
    candidates, grades, parts = bank.candidates(evidence=evidence), outcomes.on(bank), []
    for block in blocks_of(replicates, bank.drawn.size):
        stream, graded = _stream(candidates, grades, orders(bank, run, block)[..., :n])
        verdict = np.asarray(stop(stream, Key(run, "", block.start, "stop")).stop)
        if block.start == 0:
            _must_be_causal(stop, stream, verdict, Key(run, "", 0, "stop"))
        parts.append(_at_the_stop(rule, stream, graded, verdict))
    samples, stopped, worth, same, none, whole = (np.concatenate(part) for part in zip(*parts, strict=True))
    variance = (
        worth.var(axis=0, keepdims=True, ddof=1) / replicates if replicates > 1 else np.full((1, len(grades)), np.nan)
    )
    error = float(mean_error(variance.T, worth.mean(axis=0)[:, None])[0])
    means = (each.mean(axis=0) for each in (worth, same, none, whole))
    values, agreed, nothing, at_the_end = means
    return StopReplay(samples, stopped, values, agreed, nothing, at_the_end, error, name_of(stop), name_of(rule))


def _stream(candidates: Candidates, grades: Array, order: Array) -> tuple[Candidates, Array]:
    """The candidates ``[R, Q, n]`` in the order of each replicate, and their grades."""
    at, there = (np.arange(order.shape[1])[:, None], order), order >= 0
    stream = Candidates(
        np.where(there, candidates.answers[at], -1),
        there,
        there & candidates.eligible[at],
        {name: np.where(there, values[at], np.nan) for name, values in candidates.evidence.items()},
    )
    return stream, grades[at]


def _at_the_stop(rule: Rule, stream: Candidates, grades: Array, verdict: Array) -> tuple[Array, ...]:
    place, length = np.arange(1, verdict.shape[-1] + 1), stream.drawn.sum(axis=-1)
    stopping = verdict & (place <= length[..., None])
    stopped = stopping.any(axis=-1)
    samples = np.where(stopped, np.argmax(stopping, axis=-1) + 1, length)
    shown = place <= samples[..., None]
    revealed = dataclasses.replace(
        stream,
        answers=np.where(shown, stream.answers, -1),
        drawn=stream.drawn & shown,
        eligible=stream.eligible & shown,
        evidence={name: np.where(shown, values, np.nan) for name, values in stream.evidence.items()},
    )
    choice, whole = rule(revealed), rule(stream)
    (worth, none), (at_the_end, _) = submitted(choice, grades), submitted(whole, grades)
    return samples, stopped, worth, _answer(choice, stream) == _answer(whole, stream), none, at_the_end


def _answer(choice: Choice, candidates: Candidates) -> Array:
    taken = np.take_along_axis(candidates.answers, np.maximum(choice.winner, 0)[..., None], axis=-1)[..., 0]
    return np.where(np.asarray(choice.winner) < 0, -1, taken)


def _must_be_causal(stop: Stop, stream: Candidates, verdict: Array, key: Key) -> None:
    half = verdict.shape[-1] // 2
    same = half == 0 or np.array_equal(stop(stream.first(half), key).stop, verdict[..., :half])
    require(same, "stop", name_of(stop), "its verdict at n changes with what comes after n: let it see the prefix only")

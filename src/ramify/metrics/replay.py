"""Shared-bank replay: any rule on nested seeded subsets of one bank, and stops replayed on the same streams.

Each question and replicate has one permutation, derived from its key; a budget k is its first k candidates. So subsets
are uniform without replacement, nested in k, and the same for every rule: comparisons are paired.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Candidates, Choice, Outcomes, Verdict
from ramify.decide.replay import replay as winners
from ramify.decide.replay import scheme_of
from ramify.decide.support import Rule
from ramify.errors import is_whole, require
from ramify.keys import numbered, uniform
from ramify.metrics.bankcurve import BUDGETS, SEEDED, BankCurve, Diagnostic, whole_budgets
from ramify.types import Key

__all__ = ["Stop", "StopReplay", "diagnose", "orders", "replay", "replay_stop", "submitted"]

Stop: TypeAlias = Callable[[Candidates, Key], Verdict]

BLOCK = 2_000_000  # candidates permuted at a time


def orders(bank: Bank, run: str, replicates: Iterable[int]) -> Array:
    """[R, Q, N] the candidates of each question in the order of each replicate, -1 for the undrawn, which come last.

    Replicate r is ``bank.permuted(run, r)``.
    """
    numbers, (questions, n) = list(replicates), bank.shape
    found = np.full((len(numbers), questions, n), -1, dtype=np.int32)
    for q, question in enumerate(bank.questions):
        mine = np.flatnonzero(bank.drawn[q])
        stream = numbered(Key(run, question.id, 0, "replay"), numbers)
        found[:, q, : mine.size] = mine[shuffled(stream, mine.size)]
    return found


def shuffled(stream: Array, n: int, compiled: bool | None = None) -> Array:
    """[R, n] the permutation of each stream ``[R, 4]``: the stable order of its first n uniforms.

    Compiled where numba is installed (the extra ``fast``); ``compiled`` insists on either way.
    """
    if compiled is not False and n:
        try:
            from ramify.metrics import fast
        except ImportError:
            require(compiled is None, "compiled", compiled, "install numba (the extra 'fast')")
        else:
            return fast.shuffled(stream, n)
    parts = [stream[i : i + 512, None] for i in range(0, max(len(stream), 1), 512)]  # few enough to stay in cache
    noise = np.concatenate([uniform(part, index=np.arange(n)) for part in parts])
    return np.argsort(noise, axis=-1, kind="stable").astype(np.int32)


def replay(
    rule: Rule,
    bank: Bank,
    outcomes: Outcomes,
    *,
    evidence: Iterable[str] = (),
    budgets: Iterable[int] = BUDGETS,
    replicates: int = 200,
    run: str = "replay",
    open_ended: bool = False,
) -> BankCurve:
    """What a rule submits from nested subsets of a bank, averaged over seeded permutations.

    k = 1 enumerates the singletons and k = N is the whole bank in the order of replicate 0: both without simulation
    error. Between them the mean is over ``replicates``, and ``error`` says how far it may be from the expectation.
    """
    wanted = list(evidence)
    secret = [name for name in wanted if name in bank.layers and bank.layers[name].role == "diagnostic"]
    require(not secret, "evidence", secret, "it has seen references: use diagnose, which says so in its type")
    candidates = bank.candidates(evidence=wanted, open_ended=open_ended)
    return _replay(rule, candidates, bank, outcomes, budgets, replicates, run)


def diagnose(
    rule: Rule,
    bank: Bank,
    outcomes: Outcomes,
    *,
    scores: Mapping[str, Array],
    evidence: Iterable[str] = (),
    budgets: Iterable[int] = BUDGETS,
    replicates: int = 200,
    run: str = "replay",
    open_ended: bool = False,
) -> Diagnostic[BankCurve]:
    """``replay`` with evidence that no deployed rule has, such as a reference-assisted verifier's ``scores [Q, N]``."""
    candidates = bank.candidates(evidence=evidence, open_ended=open_ended)
    candidates = dataclasses.replace(candidates, evidence={**candidates.evidence, **scores})
    curve = _replay(rule, candidates, bank, outcomes, budgets, replicates, run)
    return Diagnostic(curve, f"reference-assisted scores: {', '.join(scores) or 'none'}")


def _replay(
    rule: Rule,
    candidates: Candidates,
    bank: Bank,
    outcomes: Outcomes,
    budgets: Iterable[int],
    replicates: int,
    run: str,
) -> BankCurve:
    require(is_whole(replicates, 1), "replicates", replicates, "use a number of permutations >= 1")
    counts, grades = bank.drawn.sum(axis=1), outcomes.on(bank)
    ks = whole_budgets(budgets, bank.shape[1])
    values, invalid, square = (np.zeros((len(counts), ks.size)) for _ in range(3))
    reach = counts[:, None] > ks  # of other questions the whole bank, or nothing, is looked at
    for block in _replicate_blocks(replicates, bank.drawn.size):
        worth, none = _worth(rule, candidates, grades, _complete(orders(bank, run, block), bank.drawn), ks)
        if block.start == 0:
            whole = counts[:, None] == ks
            values[whole], invalid[whole] = worth[0][whole], none[0][whole]
        values[reach] += worth.sum(axis=0)[reach] / replicates
        square[reach] += (worth**2).sum(axis=0)[reach] / replicates
        invalid[reach] += none.sum(axis=0)[reach] / replicates
    # One replay says nothing of its error. (The mean of squares of equal values may be a rounding below its square.)
    variance = np.where(reach, np.clip(square - values**2, 0.0, None), 0.0) / ((replicates - 1) or np.nan)
    for column in np.flatnonzero(ks == 1):
        values[:, column], invalid[:, column] = _singletons(rule, candidates, grades)
        variance[:, column] = 0.0
    short = counts[:, None] < ks
    values[short] = invalid[short] = np.nan
    return BankCurve(ks, values, _name(rule), SEEDED, invalid, _error(variance, values), replicates)


def _complete(order: Array, drawn: Array) -> Array:
    """The orders with the undrawn candidates in the places of their -1: permutations of all columns."""
    for q in np.flatnonzero(~drawn.all(axis=1)):
        absent = np.flatnonzero(~drawn[q])
        order[:, q, order.shape[2] - absent.size :] = absent
    return order


def _replicate_blocks(replicates: int, size: int) -> Iterator[range]:
    step = max(1, BLOCK // max(size, 1))
    yield from (range(i, min(i + step, replicates)) for i in range(0, replicates, step))


def _error(variance: Array, values: Array) -> Array:
    """[K] the standard error of the mean over questions: their streams are independent, so variances add."""
    there = ~np.isnan(values)
    return np.sqrt(np.where(there, variance, 0.0).sum(axis=0)) / np.maximum(there.sum(axis=0), 1)


def _name(rule: object) -> str:
    return getattr(rule, "__name__", None) or repr(rule)


def _worth(rule: Rule, candidates: Candidates, grades: Array, order: Array, budgets: Array) -> tuple[Array, Array]:
    """([R, Q, K] utility of what is submitted, [R, Q, K] whether nothing is) for orders ``[R, Q, N]``.

    Rules that the one-pass engine of ``decide`` knows are run by it; any other is called on every prefix. A budget
    beyond the bank is the whole of it.
    """
    most = np.minimum(budgets, order.shape[2])
    if order.shape[2] and scheme_of(rule, candidates) is not None:
        steps, which = np.unique(most, return_inverse=True)
        winner = winners(rule, candidates, order, steps.tolist())[:, which].swapaxes(1, 2)  # [R, Q, K]
        taken = grades[np.arange(len(grades))[:, None], np.maximum(winner, 0)]
        return np.where(winner < 0, 0.0, taken), (winner < 0).astype(float)
    parts = [_called(rule, candidates, grades, order[..., :k]) for k in most]
    found = [np.stack(each, axis=-1) for each in zip(*parts, strict=True)]
    return found[0], found[1]


def _called(rule: Rule, candidates: Candidates, grades: Array, order: Array) -> tuple[Array, Array]:
    """([R, Q], [R, Q]) of one prefix ``order [R, Q, k]``."""
    at = (np.arange(order.shape[1])[:, None], order)
    subset = Candidates(
        candidates.answers[at],
        candidates.drawn[at],
        candidates.eligible[at],
        {name: values[at] for name, values in candidates.evidence.items()},
    )
    return submitted(rule(subset), grades[at])


def submitted(choice: Choice, grades: Array) -> tuple[Array, Array]:
    """(utility [...], share of nothing submitted [...]) of a choice among candidates graded ``[..., N]``.

    A stochastic rule is worth its expectation. Nothing submitted is worth 0; a grade that is missing makes NaN.
    """
    if choice.probs is not None:
        sure = np.where(choice.probs > 0, choice.probs * grades, 0.0).sum(axis=-1)
        return sure, 1.0 - choice.probs.sum(axis=-1)
    winner = np.asarray(choice.winner)
    if grades.shape[-1] == 0:
        return np.zeros(winner.shape), np.ones(winner.shape)
    taken = np.take_along_axis(grades, np.maximum(winner, 0)[..., None], axis=-1)[..., 0]
    return np.where(winner < 0, 0.0, taken), (winner < 0).astype(float)


def _singletons(rule: Rule, candidates: Candidates, grades: Array) -> tuple[Array, Array]:
    """([Q], [Q]) the exact mean over all drawn candidates, each alone."""
    order = np.arange(grades.shape[-1])[:, None, None].repeat(len(grades), axis=1)  # [N, Q, 1]
    worth, none = _called(rule, candidates, grades, order)
    drawn = candidates.drawn.T
    count = np.where(drawn.any(axis=0), drawn.sum(axis=0), np.nan)
    return np.where(drawn, worth, 0.0).sum(axis=0) / count, np.where(drawn, none, 0.0).sum(axis=0) / count


# --------------------------------------------------------------------------------------------------------------- stops


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
    for block in _replicate_blocks(replicates, bank.drawn.size):
        stream, graded = _stream(candidates, grades, orders(bank, run, block)[..., :n])
        verdict = np.asarray(stop(stream, Key(run, "", block.start, "stop")).stop)
        if block.start == 0:
            _must_be_causal(stop, stream, verdict, Key(run, "", 0, "stop"))
        parts.append(_at_the_stop(rule, stream, graded, verdict))
    samples, stopped, worth, same, none = (np.concatenate(part) for part in zip(*parts, strict=True))
    variance = (
        worth.var(axis=0, keepdims=True, ddof=1) / replicates if replicates > 1 else np.full((1, len(grades)), np.nan)
    )
    error = float(_error(variance.T, worth.mean(axis=0)[:, None])[0])
    means = (worth.mean(axis=0), same.mean(axis=0), none.mean(axis=0))
    return StopReplay(samples, stopped, *means, error, _name(stop), _name(rule))


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
    worth, none = submitted(choice, grades)
    return samples, stopped, worth, _answer(choice, stream) == _answer(whole, stream), none


def _answer(choice: Choice, candidates: Candidates) -> Array:
    taken = np.take_along_axis(candidates.answers, np.maximum(choice.winner, 0)[..., None], axis=-1)[..., 0]
    return np.where(np.asarray(choice.winner) < 0, -1, taken)


def _must_be_causal(stop: Stop, stream: Candidates, verdict: Array, key: Key) -> None:
    half = verdict.shape[-1] // 2
    same = half == 0 or np.array_equal(stop(stream.first(half), key).stop, verdict[..., :half])
    require(same, "stop", _name(stop), "its verdict at n changes with what comes after n: let it see the prefix only")

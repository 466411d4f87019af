"""Rules on many orders and all budgets of one bank at once: winners of nested prefixes, in one pass for each order.

``replay`` gives exactly what the rule gives on every permuted prefix. Rules it knows are read as one of six schemes
(sums of fixed weights, their means, softened weights, ranks, a filter, the best), which run on all orders of a question
together: candidates or positions are rows, orders are columns, so NumPy works along whole rows. Any other rule is
called on the prefixes themselves. With numba (the extra ``fast``) the schemes are compiled; the winners are the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array, standing
from ramify.bank import Candidates
from ramify.decide.order import FilteredVote, MajorityOfTheBests, RankVote, running_table
from ramify.decide.schemes import Best, Filter, Means, Ranks, Scheme, Softened, Sums
from ramify.decide.select import BestOfN
from ramify.decide.support import Rule, scored, voters
from ramify.decide.votes import LikelihoodVote, LogOddsVote, Plurality, SoftmaxVote, WeightedVote
from ramify.errors import require

__all__ = ["BUDGETS", "replay"]

BUDGETS = (1, 2, 4, 8, 16, 32, 64, 80)
ENGINES = ("auto", "numpy", "numba", "rule")
CHUNK = 1 << 22  # candidates that a plain call of a rule is given at once


def replay(
    rule: Rule, candidates: Candidates, orders: Array, budgets: Sequence[int] = BUDGETS, *, engine: str = "auto"
) -> Array:
    """``[R, len(budgets), Q]`` the winner's index in the bank, -1 for none, after the first b candidates of each order.

    ``candidates [Q, N]`` is the bank and ``orders [R, Q, N]`` holds permutations of its columns, those not drawn last.
    ``engine`` is "numpy", "numba", "rule" (call the rule itself on every prefix), or "auto": numba if it is there.

    >>> bank = Candidates(np.array([[0, 1, 1]]), evidence={"score": np.array([[0.9, 0.2, 0.3]])})
    >>> replay(Plurality(), bank, np.array([[[0, 1, 2]], [[2, 0, 1]]]), (1, 2, 3)).tolist()
    [[[0], [0], [1]], [[2], [2], [2]]]
    """
    orders, shape = np.asarray(orders), candidates.answers.shape
    require(len(shape) == 2, "candidates", shape, "replay one bank [Q, N]")
    require(orders.ndim == 3 and orders.shape[1:] == shape, "orders", orders.shape, f"use [R, {shape[0]}, {shape[1]}]")
    budgets = tuple(int(b) for b in budgets)
    ok = all(1 <= b <= shape[1] for b in budgets) and list(budgets) == sorted(set(budgets))
    require(ok, "budgets", budgets, f"use increasing numbers of candidates from 1 to {shape[1]}")
    require(engine in ENGINES, "engine", engine, f"use one of {', '.join(ENGINES)}")
    scheme = None if engine == "rule" else scheme_of(rule, candidates)
    if scheme is None:
        return by_rule(rule, candidates, orders, budgets)
    kernels = compiled() if engine in ("auto", "numba") else None
    require(kernels is not None or engine != "numba", "engine", engine, "install numba (the extra 'fast')")
    out = np.full((len(orders), len(budgets), shape[0]), -1, dtype=np.int32)
    if kernels is not None:
        again = scheme.compile(kernels, orders, np.array(budgets), out)
    else:
        again = [(q, rows) for q in range(shape[0]) if (rows := scheme.question(q, orders[:, q], budgets, out)).size]
    for q, rows in again:  # sums beyond 2^53, where only the rule itself is exact
        part = Candidates(*(_row(a, q) for a in (candidates.answers, candidates.drawn, candidates.eligible)))
        part = dataclasses.replace(part, evidence={name: _row(v, q) for name, v in candidates.evidence.items()})
        out[rows, :, q] = by_rule(rule, part, orders[rows, q : q + 1], budgets)[:, :, 0]
    return out


def compiled() -> Any:
    """The compiled kernels, None without numba."""
    try:
        from ramify.decide import fast
    except ImportError:
        return None
    return fast


def _row(array: Array, q: int) -> Array:
    return array[q : q + 1]


def by_rule(rule: Rule, candidates: Candidates, orders: Array, budgets: Sequence[int]) -> Array:
    """The definition: the rule on every permuted prefix."""
    rows, questions, n = orders.shape
    out = np.full((rows, len(budgets), questions), -1, dtype=np.int32)
    step = max(1, CHUNK // max(questions * n, 1))
    for start in range(0, rows, step):
        part = orders[start : start + step].astype(np.int64)
        at = np.arange(questions)[:, None]
        taken = {name: values[at, part] for name, values in candidates.evidence.items()}
        seen = Candidates(
            candidates.answers[at, part], candidates.drawn[at, part], candidates.eligible[at, part], taken
        )
        for k, b in enumerate(budgets):
            winner = rule(seen.first(b)).winner
            found = np.take_along_axis(part, np.maximum(winner, 0)[..., None], axis=-1)[..., 0]
            out[start : start + step, k] = np.where(winner >= 0, found, -1)
    return out


def scheme_of(rule: Rule, candidates: Candidates) -> Scheme | None:
    """How to replay a rule; None for one that has to be called."""
    if getattr(rule, "fallback", None) is not None or candidates.answers.shape[1] > 255:
        return None
    answers = candidates.answers
    match rule:
        case Plurality():
            return Sums(np.where(voters(candidates), answers, -1), None)
        case WeightedVote() | LogOddsVote() | SoftmaxVote() | LikelihoodVote() | RankVote() | MajorityOfTheBests():
            score, valid = scored(candidates, rule.evidence, voters(candidates), rule.missing)
            codes = np.where(valid, answers, -1)
        case FilteredVote(then=Plurality(fallback=None)) | FilteredVote(then=WeightedVote(pool="sum", fallback=None)):
            score, valid = scored(candidates, rule.evidence, voters(candidates), rule.missing)
            return filter_of(rule, candidates, score, valid)
        case BestOfN():
            score, valid = scored(candidates, rule.evidence, candidates.eligible, rule.missing)
            return Best(np.where(valid, 0, -1), levels(score, valid))
        case _:
            return None
    match rule:
        case WeightedVote():
            rule.check(score[valid])
            return (Sums if rule.pool == "sum" else Means)(codes, np.where(valid, score, 0.0))
        case LogOddsVote():
            return Sums(codes, np.where(valid, rule.weigh(np.where(valid, score, rule.threshold)), 0.0))
        case SoftmaxVote():
            return Softened(codes, score, levels(score, valid), rule.temperature)
        case LikelihoodVote():
            ok = not (score[valid] > 0).any()
            require(ok, f"evidence {rule.evidence!r}", "above 0", "use log-probabilities, which are <= 0")
            return Softened(codes, score, levels(score, valid), 1.0)
        case _:
            table = running_table(rule.running, answers.shape[1])
            if table.dtype == object:
                return None
            return Ranks(codes, levels(score, valid), table, rule.ties == "share")


def filter_of(rule: FilteredVote, candidates: Candidates, score: Array, valid: Array) -> Scheme | None:
    """A filter before plurality or a weighted sum."""
    sizes = rule.size(np.arange(valid.shape[1] + 1)).astype(np.int64)
    weight = None
    if isinstance(rule.then, WeightedVote):
        weight, known = scored(candidates, rule.then.evidence, valid, rule.then.missing)
        if not np.array_equal(known, valid) or (weight[valid] < 0).any():
            return None  # who is refused or missing depends on who is kept: the rule says it best
        rule.then.check(weight[valid])
        weight = np.where(valid, weight, 0.0)
    codes = np.where(valid, candidates.answers, -1)
    return Filter(codes, levels(score, valid), sizes, weight, rule.ties == "share")


def levels(score: Array, valid: Array) -> Array:
    """``[Q, N]`` 0 for the best score among the valid, 1 for the next one, ...; equal scores share a level."""
    above, _, _ = standing(score, valid)
    out = np.zeros(score.shape, dtype=np.int64)
    for q, row in enumerate(valid):
        _, out[q, row] = np.unique(above[q, row], return_inverse=True)
    return out

"""What every rule is made of: who takes part, Σ_j w_j 1[a_i = a_j], and the first of the best.

A rule is a value with one verb, ``rule(candidates) -> Choice``. It acts on the last axis, so one question, a bank
``[Q, N]`` and replays ``[R, Q, N]`` run the same line. It declares

- ``needs``: the names of the evidence it reads, and ``PAIRS`` where it asks for pairwise utilities;
- ``role``: "deployable"; whatever needs a reference is made behind the wall, and its layer says so;
- ``missing``: "exclude" leaves a candidate without a score (NaN) out of this rule, "refuse" raises;
- ``fallback``: the rule that decides where nothing took part; None submits nothing (winner -1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from ramify.arrays import Array, first_max, group_first, group_sum
from ramify.bank import Bank, Candidates, Choice, Utility
from ramify.errors import InvalidValue, require

__all__ = ["PAIRS", "Present", "Rule", "choose", "excluded"]

Rule: TypeAlias = Callable[[Candidates], Choice]
Present: TypeAlias = Callable[[Candidates, Choice], Array]

PAIRS = "u(i, j)"
"""What a rule names among its needs when it asks for pairwise utilities."""

MISSING = ("exclude", "refuse")
TIES = ("share", "earliest")


def valid_fields(rule: object) -> None:
    """Check the fields that many rules share: ``evidence``, ``missing``, ``ties`` and ``fallback``."""
    name = type(rule).__name__
    evidence = getattr(rule, "evidence", "score")
    require(isinstance(evidence, str) and evidence, f"{name}.evidence", evidence, "name a layer of the bank")
    missing, ties = getattr(rule, "missing", "exclude"), getattr(rule, "ties", "share")
    require(missing in MISSING, f"{name}.missing", missing, f"use one of {', '.join(MISSING)}")
    require(ties in TIES, f"{name}.ties", ties, f"use one of {', '.join(TIES)}")
    fallback = getattr(rule, "fallback", None)
    require(
        fallback is None or callable(fallback), f"{name}.fallback", fallback, "use a rule, or None to submit nothing"
    )


def voters(candidates: Candidates) -> Array:
    """``[..., N]`` the eligible candidates that have an answer."""
    return candidates.eligible & (candidates.answers >= 0)


def scored(candidates: Candidates, name: str, among: Array, missing: str = "exclude") -> tuple[Array, Array]:
    """The evidence of that name and who of ``among`` has it: ``(score [..., N], valid [..., N])``."""
    score = np.asarray(candidates.score(name), dtype=np.float64)
    absent = np.isnan(score) & among
    if missing == "refuse" and absent.any():
        raise InvalidValue(
            f"evidence {name!r} is missing (NaN) for {int(absent.sum())} eligible candidates: "
            "score them, or use missing='exclude' to leave them out of this rule"
        )
    return score, among & ~np.isnan(score)


def excluded(candidates: Candidates, needs: Iterable[str]) -> Array:
    """``[...]`` how many eligible candidates lack one of these evidences: what a rule leaves out, counted.

    >>> excluded(Candidates(np.array([0, 0, 1]), evidence={"score": np.array([0.5, np.nan, 1.0])}), ["score"]).tolist()
    1
    """
    absent = [np.isnan(candidates.score(name)) for name in needs if name != PAIRS]
    lost = np.any(absent, axis=0) if absent else np.zeros(candidates.answers.shape, dtype=bool)
    return np.count_nonzero(lost & candidates.eligible, axis=-1)


def tally(candidates: Candidates, weight: Array, valid: Array) -> Array:
    """``[..., N]`` Σ_j w_j 1[a_i = a_j] over the valid: every vote is this line with its own w."""
    codes = np.where(valid, candidates.answers, -1)
    return group_sum(codes, np.where(valid, weight, 0.0))


def members(candidates: Candidates, valid: Array) -> Array:
    """``[..., N]`` the valid candidates that are the first of their answer: one for each group."""
    codes = np.where(valid, candidates.answers, -1)
    return valid & (group_first(codes, valid) == np.arange(codes.shape[-1]))


def settle(
    candidates: Candidates,
    valid: Array,
    key: Array,
    *,
    support: Array | None = None,
    probs: Array | None = None,
    fallback: Rule | None = None,
) -> Choice:
    """The first of the largest ``key`` among the valid; ``support`` (the key, if not given) is what is shown for it."""
    winner = first_max(key, valid)
    shown = np.where(valid, np.asarray(key if support is None else support, dtype=np.float64), np.nan)
    return otherwise(candidates, Choice(winner, shown, winner[..., None], probs), fallback)


def otherwise(candidates: Candidates, choice: Choice, fallback: Rule | None) -> Choice:
    """The choice, with the fallback's where nothing was chosen."""
    open_ = choice.winner < 0
    if fallback is None or not np.any(open_):
        return choice
    other = fallback(candidates)
    ranked = choice.ranked.copy()
    ranked[..., 0] = np.where(open_, other.winner, ranked[..., 0])
    probs = choice.probs
    if probs is not None:
        sure = np.arange(probs.shape[-1]) == other.winner[..., None]
        probs = np.where(open_[..., None], sure if other.probs is None else other.probs, probs)
    return Choice(np.where(open_, other.winner, choice.winner), choice.support, ranked, probs)


def top(valid: Array, key: Array, k: int) -> Array:
    """``[..., k]`` the k largest keys among the valid, ties by position, -1 where there are fewer."""
    order = np.argsort(np.where(valid, -np.asarray(key, dtype=np.float64), np.nan), axis=-1, kind="stable")[..., :k]
    known = np.arange(order.shape[-1]) < np.count_nonzero(valid, axis=-1)[..., None]
    found = np.full((*order.shape[:-1], k), -1)
    found[..., : order.shape[-1]] = np.where(known, order, -1)
    return found


def choose(bank: Bank, rule: Rule, *, utility: Utility | None = None, open_ended: bool = False) -> Choice:
    """What a rule submits on a bank: the layers it needs are handed to it, and a bank without them refuses, by name.

    >>> from ramify.decide import BestOfN, Plurality
    >>> bank = Bank.of({"q": ["A", "A", "B"]}, scores={"reward": [[0.1, 0.2, 0.9]]})
    >>> choose(bank, Plurality()).winner.tolist(), choose(bank, BestOfN("reward")).winner.tolist()
    ([0], [2])
    """
    needs = tuple(getattr(rule, "needs", ()))
    require(
        PAIRS not in needs or utility is not None, "utility", None, f"{rule!r} needs pairwise utilities: hand one in"
    )
    names = [name for name in needs if name != PAIRS]
    return rule(bank.candidates(evidence=names, utility=utility, open_ended=open_ended))

"""Shared-bank replay: any rule on nested seeded subsets of one bank.

Each question and replicate has one permutation, derived from its key; a budget k is its first k candidates. So subsets
are uniform without replacement, nested in k, and the same for every rule: comparisons are paired.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Candidates, Choice, Outcomes, Utility
from ramify.decide.replay import replay as winners
from ramify.decide.replay import scheme_of
from ramify.decide.support import Rule
from ramify.errors import is_whole, require
from ramify.keys import numbered, uniform
from ramify.metrics.bankcurve import BUDGETS, SEEDED, BankCurve, Diagnostic, whole_budgets
from ramify.types import Key

__all__ = ["diagnose", "orders", "replay", "replays", "submitted"]

BLOCK = 16_000_000  # candidates permuted at a time


def orders(bank: Bank, run: str, replicates: Iterable[int]) -> Array:
    """[R, Q, N] the candidates of each question in the order of each replicate, -1 for the undrawn, which come last.

    Replicate r is ``bank.permuted(run, r)``.
    """
    numbers, counts = list(replicates), bank.drawn.sum(axis=1)
    found = np.full((len(numbers), *bank.shape), -1, dtype=np.int32)
    for n in np.unique(counts[counts > 0]):
        rows = np.flatnonzero(counts == n)
        keys = (Key(run, bank.questions[q].id, 0, "replay") for q in rows)
        order = shuffled(np.stack([numbered(key, numbers) for key in keys], axis=1).reshape(-1, 4), n)
        order = order.reshape(len(numbers), rows.size, n)
        if n < bank.shape[1]:  # positions among the drawn, as candidates
            mine = np.nonzero(bank.drawn[rows])[1].reshape(rows.size, n)
            order = np.take_along_axis(mine[None], order, axis=2)
        found[:, rows, :n] = order
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
    utility: Utility | None = None,
    open_ended: bool = False,
) -> BankCurve:
    """What a rule submits from nested subsets of a bank, averaged over seeded permutations.

    k = 1 enumerates the singletons and k = N is the whole bank in the order of replicate 0: both without simulation
    error. Between them the mean is over ``replicates``, and ``error`` says how far it may be from the expectation.
    """
    (curve,) = replays(
        [rule],
        bank,
        outcomes,
        evidence=evidence,
        budgets=budgets,
        replicates=replicates,
        run=run,
        utility=utility,
        open_ended=open_ended,
    )
    return curve


def replays(
    rules: Sequence[Rule],
    bank: Bank,
    outcomes: Outcomes,
    *,
    evidence: Iterable[str] = (),
    budgets: Iterable[int] = BUDGETS,
    replicates: int = 200,
    run: str = "replay",
    utility: Utility | None = None,
    open_ended: bool = False,
    keep: bool = False,
) -> tuple[BankCurve, ...]:
    """``replay`` of several rules: each permutation is drawn once and shown to all of them.

    ``keep`` keeps what every replay was worth, beside the means.
    """
    wanted = list(evidence)
    secret = [name for name in wanted if name in bank.layers and bank.layers[name].role == "diagnostic"]
    require(not secret, "evidence", secret, "it has seen references: use diagnose, which says so in its type")
    candidates = bank.candidates(evidence=wanted, utility=utility, open_ended=open_ended)
    ks = whole_budgets(budgets, bank.shape[1])
    return _replay(rules, candidates, bank, outcomes.on(bank), ks, replicates, run, keep)


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
    utility: Utility | None = None,
    open_ended: bool = False,
    keep: bool = False,
) -> Diagnostic[BankCurve]:
    """``replay`` with evidence that no deployed rule has, such as a reference-assisted verifier's ``scores [Q, N]``."""
    candidates = bank.candidates(evidence=evidence, utility=utility, open_ended=open_ended)
    candidates = dataclasses.replace(candidates, evidence={**candidates.evidence, **scores})
    ks = whole_budgets(budgets, bank.shape[1])
    (curve,) = _replay([rule], candidates, bank, outcomes.on(bank), ks, replicates, run, keep)
    return Diagnostic(curve, f"reference-assisted scores: {', '.join(scores) or 'none'}")


class _Sums:
    """Running sums ``[Q, K]`` of what one rule's replays were worth."""

    def __init__(self, counts: Array, budgets: Array, replicates: int, keep: bool = False) -> None:
        self.each: list[Array] | None = [] if keep else None
        self.values, self.square, self.invalid = (np.zeros((len(counts), budgets.size)) for _ in range(3))
        self.reach, self.whole = counts[:, None] > budgets, counts[:, None] == budgets
        self.short, self.replicates = counts[:, None] < budgets, replicates

    def add(self, worth: Array, none: Array, first: bool) -> None:
        """One block ``[R, Q, K]`` of replicates; of questions with k candidates only the first replicate counts."""
        if self.each is not None:
            self.each.append(np.where(self.short, np.nan, worth))
        if first:
            self.values[self.whole], self.invalid[self.whole] = worth[0][self.whole], none[0][self.whole]
        self.values += np.where(self.reach, worth.sum(axis=0), 0.0) / self.replicates
        self.square += np.where(self.reach, (worth**2).sum(axis=0), 0.0) / self.replicates
        self.invalid += np.where(self.reach, none.sum(axis=0), 0.0) / self.replicates

    def curve(self, rule: Rule, budgets: Array, single: tuple[Array, Array]) -> BankCurve:
        """The curve, with k = 1 from the ``single`` candidates and one replay's error unknown."""
        spread = np.clip(self.square - self.values**2, 0.0, None) / ((self.replicates - 1) or np.nan)
        one = budgets == 1
        values, invalid = (
            np.where(one, s[:, None], x) for s, x in zip(single, (self.values, self.invalid), strict=True)
        )
        values[self.short] = invalid[self.short] = np.nan
        error = mean_error(np.where(self.reach & ~one, spread, 0.0), values)
        each = None if self.each is None else np.concatenate(self.each).transpose(1, 2, 0)
        return BankCurve(budgets, values, name_of(rule), SEEDED, invalid, error, self.replicates, replays=each)


def _replay(
    rules: Sequence[Rule],
    candidates: Candidates,
    bank: Bank,
    grades: Array,
    budgets: Array,
    replicates: int,
    run: str,
    keep: bool = False,
) -> tuple[BankCurve, ...]:
    require(is_whole(replicates, 1), "replicates", replicates, "use a number of permutations >= 1")
    sums = [_Sums(bank.drawn.sum(axis=1), budgets, replicates, keep) for _ in rules]
    known = [bool(bank.shape[1]) and scheme_of(rule, candidates) is not None for rule in rules]
    for block in blocks_of(replicates, bank.drawn.size):
        order = _complete(orders(bank, run, block), bank.drawn)
        for rule, total, fast in zip(rules, sums, known, strict=True):
            worth = _in_one_pass if fast else _prefix_by_prefix
            total.add(*worth(rule, candidates, grades, order, np.minimum(budgets, bank.shape[1])), block.start == 0)
    pairs = zip(rules, sums, strict=True)
    return tuple(total.curve(rule, budgets, _singletons(rule, candidates, grades)) for rule, total in pairs)


def _complete(order: Array, drawn: Array) -> Array:
    """The orders with the undrawn candidates in the places of their -1: permutations of all columns."""
    for q in np.flatnonzero(~drawn.all(axis=1)):
        absent = np.flatnonzero(~drawn[q])
        order[:, q, order.shape[2] - absent.size :] = absent
    return order


def blocks_of(replicates: int, size: int) -> Iterator[range]:
    step = max(1, BLOCK // max(size, 1))
    yield from (range(i, min(i + step, replicates)) for i in range(0, replicates, step))


def mean_error(variance: Array, values: Array) -> Array:
    """[K] the standard error of the mean over questions: their streams are independent, so variances add."""
    there = ~np.isnan(values)
    return np.sqrt(np.where(there, variance, 0.0).sum(axis=0)) / np.maximum(there.sum(axis=0), 1)


def name_of(rule: object) -> str:
    return getattr(rule, "__name__", None) or repr(rule)


def _in_one_pass(
    rule: Rule, candidates: Candidates, grades: Array, order: Array, budgets: Array
) -> tuple[Array, Array]:
    """([R, Q, K] utility of what is submitted, [R, Q, K] whether nothing is) for orders ``[R, Q, N]``."""
    steps, which = np.unique(budgets, return_inverse=True)
    winner = winners(rule, candidates, order, steps.tolist())[:, which].swapaxes(1, 2)  # [R, Q, K]
    taken = grades[np.arange(len(grades))[:, None], np.maximum(winner, 0)]
    return np.where(winner < 0, 0.0, taken), (winner < 0).astype(float)


def _prefix_by_prefix(
    rule: Rule, candidates: Candidates, grades: Array, order: Array, budgets: Array
) -> tuple[Array, Array]:
    """The same for a rule that the one-pass engine does not know: it is called on every prefix."""
    parts = [_called(rule, candidates, grades, order[..., :k]) for k in budgets]
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
        None if candidates.utility is None else _reordered(candidates.utility, order),
    )
    return submitted(rule(subset), grades[at])


def _reordered(utility: Utility, order: Array) -> Utility:
    """u(row, i, j) of candidates in the order ``[R, Q, k]``; rows run through the leading axes."""
    flat, questions = order.reshape(-1, order.shape[-1]), order.shape[1]
    return lambda row, i, j: utility(np.asarray(row) % questions, flat[row, i], flat[row, j])


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

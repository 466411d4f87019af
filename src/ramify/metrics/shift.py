"""What a search makes of a proposal: q_search,B(y | x) against q_π(y | x).

Both are laws over outcomes, leaves or answers. A law is known exactly (an enumerable model, a search whose draws can
be listed) or by independent draws: whole executions of a search that submit one leaf each are i.i.d. from q_search,B,
whatever happens inside them. What draws can say about a law that nobody can list is bounded without assuming how many
outcomes there are: a set is named with one half of the draws and weighed with the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from ramify.arrays import Array
from ramify.errors import require
from ramify.keys import generator
from ramify.metrics.estimate import Estimate
from ramify.types import Key

__all__ = ["Law", "Shift", "binomial_interval", "proposal_shift"]

NOTHING = 1e-9  # how far an exact law may be from summing to one


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A distribution over outcomes: exact, or the shares of independent draws of it.

    ⊥ (``None``) is an outcome like any other: a search that submits nothing has moved that mass too.

    >>> law = Law.drawn(["7", "7", "3", None])
    >>> law.names, law.probs.tolist(), round(law.entropy, 4), round(law.effective, 4)
    (('7', '3', None), [0.5, 0.25, 0.25], 1.0397, 2.8284)
    """

    names: tuple[Hashable, ...]
    probs: Array  # [K]
    codes: Array | None = None  # [n] the draws in their order, as places in names; None: exact

    @classmethod
    def exact(cls, mass: Mapping[Hashable, float]) -> Law:
        """A law that is known. Outcomes without mass are not in its support."""
        probs = np.array(list(mass.values()), dtype=np.float64)
        ok = (probs >= 0).all() and abs(probs.sum() - 1) < NOTHING
        require(ok, "mass", float(probs.sum()), "give probabilities that sum to 1")
        held = probs > 0
        return cls(tuple(name for name, there in zip(mass, held, strict=True) if there), probs[held])

    @classmethod
    def drawn(cls, outcomes: Iterable[Hashable]) -> Law:
        """The shares of independent draws, which must be in the order they were made or any that ignores them."""
        place: dict[Hashable, int] = {}
        codes = np.array([place.setdefault(outcome, len(place)) for outcome in outcomes], dtype=np.int64)
        require(codes.size, "outcomes", "none", "draw at least once")
        return cls(tuple(place), np.bincount(codes) / codes.size, codes)

    @property
    def draws(self) -> int:
        """How many draws it is known by; 0 for an exact law."""
        return 0 if self.codes is None else self.codes.size

    def by(self, group: Callable[[Hashable], Hashable]) -> Law:
        """The law of a function of the outcome: of answers, from that of leaves."""
        if self.codes is not None:
            named = [group(name) for name in self.names]
            return Law.drawn(named[code] for code in self.codes.tolist())
        mass: dict[Hashable, float] = {}
        for name, p in zip(self.names, self.probs.tolist(), strict=True):
            mass[group(name)] = mass.get(group(name), 0.0) + p
        return Law.exact(mass)

    @property
    def entropy(self) -> float:
        """-Σ p log p in nats. Of n draws with K outcomes seen it is too low, by about (K - 1) / 2n and more."""
        return float(-(self.probs * np.log(self.probs)).sum())

    @property
    def effective(self) -> float:
        """exp(entropy): as many even outcomes would be as uncertain."""
        return math.exp(self.entropy)

    @property
    def agree(self) -> float:
        """P(two independent outcomes agree), Σ p²; without bias, also of draws (NaN of one)."""
        if not self.draws:
            return float((self.probs**2).sum())
        n, counts = self.draws, self.probs * self.draws
        return float((counts * (counts - 1)).sum() / (n * (n - 1))) if n > 1 else math.nan


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """Where a proposal's mass went. ``before`` is q_π, ``after`` q_search,B; both over the same outcomes ``[K]``."""

    names: tuple[Hashable, ...]
    before: Array  # [K]
    after: Array  # [K]
    draws: tuple[int, int]  # how many each is known by; 0: exactly
    moved: Estimate  # total variation ½ Σ |q' - q|: the share of mass that has another place
    null: Array  # [r] what ``moved`` would come to if nothing had moved; empty between exact laws
    gained: Estimate  # KL(q_search || q_π), nats
    given_up: Estimate  # KL(q_π || q_search), nats: infinite where support is lost
    lost: Estimate  # q_π of the outcomes that the search cannot return, or never did
    rare: float  # at most the q_search of one given outcome that no execution returned; 0 if exact
    suppressed: float  # q_π of the outcomes shown to have become rarer, all together at the level; NaN unless q_π exact
    unseen: Estimate  # q_search of the outcomes that no execution has returned yet
    entropy: tuple[float, float]  # nats, before and after
    effective: tuple[float, float]  # numbers of outcomes, before and after

    @property
    def difference(self) -> Array:
        """[K] q_search - q_π: sums to zero."""
        return self.after - self.before

    @property
    def floor(self) -> float:
        """What ``moved`` comes to on average, with so many draws, if nothing has moved."""
        return float(self.null.mean()) if self.null.size else 0.0

    @property
    def p(self) -> float:
        """P(``moved`` is as large if nothing has moved), valid at any number of replicates; NaN between exact laws."""
        if not self.null.size:
            return math.nan
        return float((1 + (self.null >= self.moved.value - NOTHING).sum()) / (1 + self.null.size))


def proposal_shift(before: Law, after: Law, *, level: float = 0.95, replicates: int = 200, run: str = "shift") -> Shift:
    """Hold the law of what a search submits against the law it draws from.

    Exact laws give exact numbers. With draws, ``moved`` is the plug-in value, which errs upwards; its interval holds at
    any number of draws and of outcomes. Above it is McDiarmid's inequality, since the plug-in is too large on average;
    below, total variation is at least the difference of the two laws on any set, and the set is where one half of the
    draws say that the search gained. Support that is lost can be at most what was never returned: executions cannot
    show that an outcome is out of reach, only that it is ``rare``.

    >>> coin = Law.exact({"h": 0.5, "t": 0.4, "edge": 0.1})
    >>> found = proposal_shift(coin, Law.exact({"h": 0.75, "t": 0.25}))
    >>> round(found.moved.value, 3), round(found.lost.value, 3), found.given_up.value, round(found.gained.value, 4)
    (0.25, 0.1, inf, 0.1866)
    """
    require(0 < level < 1, "level", level, "use a coverage in (0, 1)")
    names = tuple(dict.fromkeys((*before.names, *after.names)))
    p, q = _aligned(after, names), _aligned(before, names)
    alpha = 1 - level
    return Shift(
        names=names,
        before=q,
        after=p,
        draws=(before.draws, after.draws),
        moved=_moved(before, after, p, q, level),
        null=_null(before, after, p, q, replicates, run),
        gained=_divergence(p, q, before, after),
        given_up=_divergence(q, p, before, after),
        lost=_lost(before, after, p, q, level),
        rare=1 - alpha ** (1 / after.draws) if after.draws else 0.0,
        suppressed=_suppressed(before, after, p, q, alpha),
        unseen=_unseen(after, level),
        entropy=(before.entropy, after.entropy),
        effective=(before.effective, after.effective),
    )


def binomial_interval(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """Clopper and Pearson (1934): each end errs with probability at most alpha / 2, at any number of trials.

    >>> [round(end, 4) for end in binomial_interval(0, 100, 0.05)]
    [0.0, 0.0362]
    """
    low = float(betaincinv(successes, trials - successes + 1, alpha / 2)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - alpha / 2)) if successes < trials else 1.0
    return low, high


def _aligned(law: Law, names: tuple[Hashable, ...]) -> Array:
    """[K] the probabilities over a wider list of outcomes."""
    place = {name: k for k, name in enumerate(names)}
    probs = np.zeros(len(names))
    probs[[place[name] for name in law.names]] = law.probs
    return probs


def _codes(law: Law, names: tuple[Hashable, ...]) -> Array:
    """[n] the draws as places in a wider list of outcomes."""
    place = {name: k for k, name in enumerate(names)}
    assert law.codes is not None
    return np.array([place[name] for name in law.names])[law.codes]


def _covers(before: Law, after: Law) -> tuple[str, ...]:
    """Draws of the proposal, reruns of the search."""
    return (("draws",) if before.draws else ()) + (("reruns",) if after.draws else ())


def _estimate(value: float, low: float, high: float, level: float, before: Law, after: Law, note: str) -> Estimate:
    covers = _covers(before, after)
    if not covers:
        return Estimate.descriptive(value, "exact")
    return Estimate(value, low, high, level, covers, note)


# ------------------------------------------------------------------------------------------------------ total variation


def _moved(before: Law, after: Law, p: Array, q: Array, level: float) -> Estimate:
    value = float(np.abs(p - q).sum() / 2)
    alpha = (1 - level) / 2  # for each end
    spread = sum(1 / law.draws for law in (before, after) if law.draws)
    high = min(1.0, value + math.sqrt(math.log(1 / alpha) * spread / 2))
    low = min(value, _named_then_weighed(before, after, alpha))
    return _estimate(value, low, high, level, before, after, "plug-in, errs upwards")


def _named_then_weighed(before: Law, after: Law, alpha: float) -> float:
    """A lower bound of total variation: q_search(A) - q_π(A), for a set A that was named without looking at it."""
    names = tuple(dict.fromkeys((*before.names, *after.names)))
    chosen = _first_half(after, names) > _first_half(before, names)  # [K]
    share = alpha / max(1, (before.draws > 0) + (after.draws > 0))
    return max(0.0, _weighed(after, names, chosen, share)[0] - _weighed(before, names, chosen, share)[1])


def _first_half(law: Law, names: tuple[Hashable, ...]) -> Array:
    """[K] an exact law, or the shares in the first half of its draws."""
    if not law.draws:
        return _aligned(law, names)
    codes = _codes(law, names)[: law.draws // 2]
    return np.bincount(codes, minlength=len(names)) / max(1, codes.size)


def _weighed(law: Law, names: tuple[Hashable, ...], chosen: Array, alpha: float) -> tuple[float, float]:
    """Bounds of the mass of a set, each at error rate alpha: exact, or from the second half of the draws."""
    if not law.draws:
        mass = float(_aligned(law, names)[chosen].sum())
        return mass, mass
    second = chosen[_codes(law, names)[law.draws // 2 :]]
    return binomial_interval(int(second.sum()), second.size, 2 * alpha)


def _null(before: Law, after: Law, p: Array, q: Array, times: int, run: str) -> Array:
    """[times] plug-in total variations of one law with itself: the exact one drawn from, or all draws relabelled."""
    rng, one = generator(Key(run, "null", 0, "simulate")), np.zeros((0, len(p)))
    if before.draws and after.draws:
        counts = np.rint(before.draws * q + after.draws * p).astype(np.int64)
        drawn = rng.multivariate_hypergeometric(counts, after.draws, size=times, method="marginals")
        one, other = drawn / after.draws, (counts - drawn) / before.draws
    elif after.draws:
        one, other = rng.multinomial(after.draws, q / q.sum(), times) / after.draws, q
    elif before.draws:
        one, other = rng.multinomial(before.draws, p / p.sum(), times) / before.draws, p
    else:
        other = one
    return np.asarray(np.abs(one - other).sum(axis=-1) / 2)


# -------------------------------------------------------------------------------------------------- divergence, support


def _divergence(p: Array, q: Array, before: Law, after: Law) -> Estimate:
    """Σ p log p/q, infinite where p has mass and q has none. Of draws: what was observed, which errs upwards."""
    held = p > 0
    with np.errstate(divide="ignore"):
        value = max(0.0, float((p[held] * np.log(p[held] / q[held])).sum()))
    note = "plug-in, errs upwards" if _covers(before, after) else "exact"
    return Estimate.descriptive(value, note)


def _lost(before: Law, after: Law, p: Array, q: Array, level: float) -> Estimate:
    """q_π of what the search cannot return. What an execution returned is not lost; the rest may be."""
    gone = p == 0
    value = float(q[gone].sum())
    low, high = value, value
    if before.draws:
        low, high = binomial_interval(round(value * before.draws), before.draws, 1 - level)
    note = "" if not after.draws else f"never returned in {after.draws} executions, which is not out of reach"
    return _estimate(value, 0.0 if after.draws else low, high, level, before, after, note)


def _suppressed(before: Law, after: Law, p: Array, q: Array, alpha: float) -> float:
    """q_π of the outcomes whose q_search is certainly below it: simultaneous upper bounds, a K-th of alpha each."""
    if before.draws:
        return math.nan  # the outcomes to be tested would themselves be a choice of the draws
    if not after.draws:
        return float(q[p < q].sum())
    n = after.draws
    counts = np.rint(p * n)
    highest = np.where(counts < n, betaincinv(counts + 1, np.maximum(n - counts, 1), 1 - alpha / (q > 0).sum()), 1.0)
    return float(q[highest < q].sum())


def _unseen(after: Law, level: float) -> Estimate:
    """q_search of what was not returned yet: outcomes seen once say how much (Good, 1953), later ones how much at most.

    What the first half of the executions did not show, the second half meets so often; the whole misses no more.
    """
    if not after.draws:
        return Estimate.descriptive(0.0, "exact")
    assert after.codes is not None
    once = float((np.bincount(after.codes) == 1).sum()) / after.draws
    half = after.draws // 2
    new = ~np.isin(after.codes[half:], after.codes[:half])
    high = binomial_interval(int(new.sum()), new.size, 2 * (1 - level))[1]
    return Estimate(once, 0.0, max(once, high), level, ("reruns",), "Good and Turing; one-sided")

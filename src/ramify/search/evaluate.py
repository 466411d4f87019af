"""Prefix evaluators S(z), and what sets a sound check apart from them.

An evaluator is any ``Callable[[Sequence[Prefix]], Signal]``; higher is better, NaN is missing, the cost is in tokens
read. A score depends on its own prefix, and on no other that it was asked for with: those of many questions may be
asked for at once. One that costs something says how much at worst: ``worst(prompt, tokens) -> Work`` for one prefix. A
``Check`` returns booleans instead, False is a proof, and it alone may prune as safe.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ramify.arrays import Array
from ramify.bank import Signal
from ramify.describe import method
from ramify.errors import InvalidValue, require
from ramify.ledger import Work
from ramify.types import Prefix

__all__ = [
    "Blend",
    "Check",
    "Evaluator",
    "Even",
    "Exponentiated",
    "Likelihood",
    "PerLength",
    "RawLikelihood",
    "Staged",
    "over_memory",
    "within_worst",
    "worst_of",
]

Evaluator: TypeAlias = Callable[[Sequence[Prefix]], Signal]
Check: TypeAlias = Callable[[Sequence[Prefix]], Array]


@method
class Likelihood:
    """S_LL(z) = Σ_t log q̃(z_t), as it was drawn from the proposal. Free; never rises along a path.

    >>> from ramify.types import Question
    >>> Likelihood()([Prefix(Question("q", ""), (1, 2), (0, 0), log_q=-1.5)]).values.tolist()
    [-1.5]
    """

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        return _free([z.log_q for z in prefixes])


@method
class RawLikelihood:
    """Σ_t log p(z_t) under the raw model, whatever the decoder made of it. Free; never rises along a path."""

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        return _free([z.logprob for z in prefixes])


@method
class PerLength:
    """S(z) / |z|^alpha: a length penalty on a likelihood. alpha = 1 is the mean of its tokens, 0 changes nothing."""

    of: Evaluator = Likelihood()
    alpha: float = 1.0

    def __post_init__(self) -> None:
        require(0 <= self.alpha < math.inf, "PerLength.alpha", self.alpha, "use a finite number >= 0")

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        values, cost = self.of(prefixes)
        return Signal(values / np.array([max(1, len(z.tokens)) for z in prefixes]) ** self.alpha, cost)

    def worst(self, prompt: int, tokens: int) -> Work:
        return worst_of(self.of, prompt, tokens)


@method
class Exponentiated:
    """exp S(z): a likelihood as a number in (0, 1], which controllers with a temperature or a logit expect."""

    of: Evaluator = PerLength()

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        values, cost = self.of(prefixes)
        return Signal(np.exp(values), cost)

    def worst(self, prompt: int, tokens: int) -> Work:
        return worst_of(self.of, prompt, tokens)


@method
class Blend:
    """Σ_k w_k S_k(z), such as α S_LL + β Q̂. Missing if one of them is; the costs add up."""

    parts: tuple[Evaluator, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        require(len(self.parts) == len(self.weights) > 0, "Blend.weights", self.weights, "give each part a weight")

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        signals = [part(prefixes) for part in self.parts]
        values = sum(weight * each.values for weight, each in zip(self.weights, signals, strict=True))
        return Signal(values, sum(each.cost for each in signals))

    def worst(self, prompt: int, tokens: int) -> Work:
        return _sum([worst_of(part, prompt, tokens) for part in self.parts])


@method
class Staged:
    """S(z) by ``finished`` where that has a score, as an outcome verifier has for leaves, and by ``going`` elsewhere.

    >>> from ramify.types import Question
    >>> def ended(prefixes: Sequence[Prefix]) -> Signal:
    ...     return Signal(np.array([1.0 if z.tokens[-1] == 9 else np.nan for z in prefixes]), np.ones(len(prefixes)))
    >>> some = [Prefix(Question("q", ""), tokens, (0, 0), log_q=-1.5) for tokens in ((1, 2), (1, 9))]
    >>> [each.tolist() for each in Staged(Likelihood(), ended)(some)]
    [[-1.5, 1.0], [1.0, 1.0]]
    """

    going: Evaluator
    finished: Evaluator

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        values, cost = (np.array(each, dtype=np.float64) for each in self.finished(prefixes))
        rest = np.flatnonzero(np.isnan(values))
        if rest.size:
            others = self.going([prefixes[i] for i in rest.tolist()])
            values[rest] = others.values
            cost[rest] += others.cost
        return Signal(values, cost)

    def worst(self, prompt: int, tokens: int) -> Work:
        return _sum([worst_of(part, prompt, tokens) for part in (self.going, self.finished)])


@method
class Even:
    """S(z) = ``score`` whatever the prefix: no evaluator, so that what a controller does by itself has a row.

    >>> from ramify.types import Question
    >>> Even()([Prefix(Question("q", ""), (1,), (0,))]).values.tolist()
    [0.5]
    """

    score: float = 0.5

    def __post_init__(self) -> None:
        require(math.isfinite(self.score), "Even.score", self.score, "use a finite number")

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        return _free([self.score] * len(prefixes))


def worst_of(evaluator: Evaluator, prompt: int, tokens: int) -> Work:
    """What scoring one prefix can cost; nothing for an evaluator that does not say."""
    bound: Callable[[int, int], Work] | None = getattr(evaluator, "worst", None)
    return Work(calls=0) if bound is None else bound(prompt, tokens)


def within_worst(evaluator: Evaluator, cost: float, worst: Work) -> None:
    """Refuse an evaluator that used more than it had declared: the budget was checked against its word."""
    if math.ceil(cost) > worst.generated:
        raise InvalidValue(f"{evaluator!r} read {cost} tokens for a prefix: give it worst(prompt, tokens) -> Work")


def over_memory(part: Any, memory: Any) -> Any:
    """An evaluator whose parts, samplers among them, work off the prefixes in ``memory`` where they can.

    A part that can has a method ``sharing(memory)``. With ``None``, one that cannot do without a memory says so.
    """
    own: Callable[[Any], Any] | None = getattr(part, "sharing", None)
    if own is not None:
        return own(memory)
    if isinstance(part, tuple) and type(part) is tuple:
        return tuple(over_memory(each, memory) for each in part)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part) if field.init}
    shared = {name: over_memory(value, memory) for name, value in fields.items()}
    same = all(_is(shared[name], value) for name, value in fields.items())
    return part if same else dataclasses.replace(part, **shared)


def _is(a: Any, b: Any) -> bool:
    """Whether nothing was replaced."""
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(_is, a, b))
    return a is b


def _sum(works: Sequence[Work]) -> Work:
    """One after the other, in one call."""
    generated, read = sum(work.generated for work in works), sum(work.evaluator_tokens for work in works)
    return Work(generated=generated, calls=max(work.calls for work in works), evaluator_tokens=read)


def _free(values: Sequence[float]) -> Signal:
    return Signal(np.array(values, dtype=np.float64), np.zeros(len(values)))

"""Evaluators that run a model: step scores, rollouts, self-evaluation, a value model. They charge what they read.

Each reads a prefix with its prompt, which ``encode`` gives, as an ``Arm`` has it. What is in these slots is a method,
or a function at the top of a module, so that the protocol has a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ramify.arrays import Array
from ramify.bank import Signal
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.ledger import Work
from ramify.search.evaluate import worst_of
from ramify.types import Key, Leaf, Model, Prefix, Question, Request, Sampler

__all__ = ["Judge", "Rollouts", "StepScores", "ValueModel"]

Encode: TypeAlias = Callable[[Question], tuple[int, ...]]
Reduction: TypeAlias = Callable[[Array, Array], Array]  # flat values [T] and offsets [C + 1] -> [C], as in ``evidence``
TOGETHER = 64  # sequences that a judge reads at a time, which bounds the memory


@method
class StepScores:
    """S(z): a process scorer's numbers for the steps of a prefix, reduced to one.

    ``scorer`` gives every prefix its step scores ``[steps]`` and says what that cost ``[B]``; ``reduction`` is one of
    ``ramify.evidence``: ``Total()``, ``Final()``, ``Minimum()``, ``LogProduct()`` (the order of the product) or
    ``Mean()``. No step is no score.

    >>> from ramify.evidence import Minimum
    >>> def scorer(prefixes: Sequence[Prefix]) -> Signal:
    ...     return Signal([np.array(z.tokens) / 10 for z in prefixes], np.array([len(z.tokens) for z in prefixes]))
    >>> prefix = Prefix(Question("q", ""), (9, 4, 7), (0, 0, 0))
    >>> StepScores(scorer, Minimum())([prefix]).values.tolist()
    [0.4]
    """

    scorer: Callable[[Sequence[Prefix]], Any]
    reduction: Reduction

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        steps, cost = self.scorer(prefixes)
        offsets = np.cumsum([0, *map(len, steps)])
        values = np.concatenate([np.asarray(each, dtype=np.float64) for each in steps]) if len(steps) else np.empty(0)
        return Signal(np.asarray(self.reduction(values, offsets)), np.asarray(cost))

    def worst(self, prompt: int, tokens: int) -> Work:
        return worst_of(self.scorer, prompt, tokens)


@method
class Rollouts:
    """S(z): the mean of a proxy utility over ``m`` completions of a prefix, each of at most ``cap`` tokens in all.

    ``utility(leaf, question)`` is what inference may know of a leaf, such as a reference-free verifier's word, and
    never the benchmark's grade. One that is missing (NaN) is left out of the mean. The draws come from streams named by
    ``run`` and the prefix: equal prefixes have equal rollouts. The cost is the tokens drawn.
    """

    sampler: Sampler
    utility: Callable[[Leaf, Question], float]
    encode: Encode
    m: int = 4
    cap: int = 512
    run: str = "rollouts"

    def __post_init__(self) -> None:
        require(is_whole(self.m, 1), "Rollouts.m", self.m, "use a number of completions >= 1")
        require(is_whole(self.cap, 1), "Rollouts.cap", self.cap, "use a number of tokens >= 1")

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        requests = [[self._request(z, number) for number in range(self.m)] for z in prefixes]
        distinct = {request.key: request for each in requests for request in each}
        leaves = {leaf.key: leaf for leaf in self.sampler(list(distinct.values()))} if distinct else {}
        values, cost = np.full(len(prefixes), np.nan), np.zeros(len(prefixes))
        for i, (z, mine) in enumerate(zip(prefixes, requests, strict=True)):
            drawn = [leaves[request.key] for request in mine]
            known = [u for u in (self.utility(leaf, z.question) for leaf in drawn) if not math.isnan(u)]
            values[i] = sum(known) / len(known) if known else math.nan
            cost[i] = sum(len(leaf.tokens) - len(z.tokens) for leaf in drawn)
        return Signal(values, cost)

    def worst(self, prompt: int, tokens: int) -> Work:
        return Work(generated=self.m * self.cap, calls=self.m, evaluator_tokens=self.m * self.cap)

    def _request(self, z: Prefix, number: int) -> Request:
        key = Key(self.run, z.question.id, number, "rollout/" + ",".join(map(str, z.tokens)))
        cap = max(self.cap, len(z.tokens))
        return Request(key, self.encode(z.question), cap, z.tokens, z.role if any(z.role) else None)


@method
class Judge:
    """S(z): p(yes) / (p(yes) + p(no)) after the question ``ask`` is appended to a prefix (Kadavath et al., 2022).

    Of the proposal's own model this is self-evaluation. Without ``no`` it is p(yes) among all tokens. The cost is the
    tokens read: prompt, prefix and question.
    """

    model: Model[Any]
    encode: Encode
    ask: tuple[int, ...]
    yes: int
    no: int | None = None

    def __post_init__(self) -> None:
        for name in ("yes", "no"):
            value = getattr(self, name)
            ok = is_whole(value) or (value is None and name == "no")
            require(ok, f"Judge.{name}", value, "use a token id")
        require(self.yes != self.no, "Judge.no", self.no, "use another token than yes")

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        sequences = [(*self.encode(z.question), *z.tokens, *self.ask) for z in prefixes]
        parts = [sequences[low : low + TOGETHER] for low in range(0, len(sequences), TOGETHER)]
        values = [self._read(part) for part in parts]
        cost = np.array([len(each) for each in sequences], dtype=np.float64)
        return Signal(np.concatenate(values) if values else np.empty(0), cost)

    def worst(self, prompt: int, tokens: int) -> Work:
        return _reads(prompt + tokens + len(self.ask))

    def _read(self, sequences: Sequence[tuple[int, ...]]) -> Array:
        logits = np.asarray(self.model.logits(self.model.start(sequences)), dtype=np.float64)
        rest = logits if self.no is None else logits[:, [self.yes, self.no]]
        top = rest.max(-1, keepdims=True)
        with np.errstate(invalid="ignore"):  # -inf - -inf: neither label is possible, and the score is missing
            share: Array = np.exp(logits[:, self.yes] - top[:, 0]) / np.exp(rest - top).sum(-1)
        return share


@method
class ValueModel:
    """S(z): what a value model makes of prompt and prefix, ``read(sequences) -> [B]``. The cost is the tokens read."""

    read: Callable[[Sequence[Sequence[int]]], Array]
    encode: Encode

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        sequences = [(*self.encode(z.question), *z.tokens) for z in prefixes]
        values = np.asarray(self.read(sequences), dtype=np.float64)
        require(values.shape == (len(prefixes),), "ValueModel.read", values.shape, "return a number a sequence")
        return Signal(values, np.array([len(each) for each in sequences], dtype=np.float64))

    def worst(self, prompt: int, tokens: int) -> Work:
        return _reads(prompt + tokens)


def _reads(tokens: int) -> Work:
    return Work(generated=tokens, evaluator_tokens=tokens)

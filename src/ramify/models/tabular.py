"""A tiny autoregressive model given by tables, whose every leaf and its probability can be enumerated.

It plays the part a standard normal plays for an MCMC library: claims about a proposal are checked against it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ramify.arrays import Array
from ramify.decode.measure import Operator, Side, TokenMeasure, settle
from ramify.describe import method
from ramify.errors import require
from ramify.keys import gumbel, streams
from ramify.types import Key, Model

__all__ = ["Leaves", "Tabular", "leaves"]


@method
class Tabular:
    """Next-token logits looked up by the longest listed suffix of the context; the state is the row of that suffix.

    >>> coin = Tabular(vocabulary=("h", "t", "."), rows=(((), (0.5, 0.3, 0.2)), ((0,), (0.1, 0.8, 0.1))), eos=2)
    >>> state = coin.start([(), (1, 0)])
    >>> np.exp(coin.logits(state)).round(2).tolist()
    [[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]
    """

    vocabulary: tuple[str, ...]
    rows: tuple[tuple[tuple[int, ...], tuple[float, ...]], ...]  # (context suffix, next-token probabilities)
    eos: int

    def __post_init__(self) -> None:
        contexts = [context for context, _ in self.rows]
        require(() in contexts, "Tabular.rows", contexts, "give a row for the empty context ()")
        require(len(set(contexts)) == len(contexts), "Tabular.rows", contexts, "give each context once")
        require(0 <= self.eos < len(self.vocabulary), "Tabular.eos", self.eos, "use a token of the vocabulary")
        for context, probs in self.rows:
            right = len(probs) == len(self.vocabulary) and min(probs) >= 0 and abs(sum(probs) - 1) < 1e-9
            require(right, f"Tabular.rows[{context}]", probs, "give a probability a token, summing to 1")
            require(
                all(0 <= token < len(self.vocabulary) for token in context),
                "Tabular.rows",
                context,
                "use tokens",
            )

    @classmethod
    def random(cls, key: Key, vocabulary: int = 4, order: int = 2, spread: float = 1.5) -> Tabular:
        """A row for every context of up to ``order`` tokens, with Gumbel logits from the key's stream."""
        contexts: list[tuple[int, ...]] = [()]
        for context in contexts:  # grows while it is walked: breadth first
            if len(context) < order:
                contexts += [(token, *context) for token in range(vocabulary)]
        noise = spread * gumbel(streams([key])[0], np.arange(len(contexts))[:, None], np.arange(vocabulary))
        probs = np.exp(noise - noise.max(axis=-1, keepdims=True))
        probs /= probs.sum(axis=-1, keepdims=True)
        rows = tuple((context, tuple(map(float, row))) for context, row in zip(contexts, probs, strict=True))
        return cls(tuple(f"t{i}" for i in range(vocabulary)), rows, eos=vocabulary - 1)

    def start(self, prompts: Sequence[Sequence[int]]) -> np.ndarray:
        _, step, first = _compiled(self)
        states = []
        for prompt in prompts:
            state = first
            for token in prompt:
                require(0 <= token < len(self.vocabulary), "prompt token", token, "use a token of the vocabulary")
                state = step[state, token]
            states.append(state)
        return np.array(states, dtype=np.int64)

    def logits(self, state: np.ndarray) -> np.ndarray:
        logits: np.ndarray = _compiled(self)[0][state]
        return logits

    def advance(self, state: np.ndarray, tokens: Array) -> np.ndarray:
        after: np.ndarray = _compiled(self)[1][state, tokens]
        return after

    def select(self, states: Sequence[np.ndarray], rows: Any) -> np.ndarray:
        selected: np.ndarray = np.concatenate(states)[rows]
        return selected

    def text(self, tokens: Sequence[int]) -> str:
        return " ".join(self.vocabulary[token] for token in tokens)


@cache
def _compiled(model: Tabular) -> tuple[np.ndarray, np.ndarray, int]:
    """(logits [S, V], next state [S, V], the first state): suffix lookup as an automaton."""
    index = {context: row for row, (context, _) in enumerate(model.rows)}
    # Between listed contexts the automaton passes through their prefixes, which look up like their longest suffix.
    states = sorted({context[:end] for context in index for end in range(len(context) + 1)}, key=len)
    number = {context: i for i, context in enumerate(states)}

    def longest(context: tuple[int, ...], among: Any) -> tuple[int, ...]:
        return next(context[i:] for i in range(len(context) + 1) if context[i:] in among)

    probs = np.array([model.rows[index[longest(context, index)]][1] for context in states])
    table = np.log(probs, where=probs > 0, out=np.full(probs.shape, -np.inf))
    step = [[number[longest((*c, token), number)] for token in range(len(model.vocabulary))] for c in states]
    return table, np.array(step), number[()]


class Leaves(NamedTuple):
    """Every leaf that a protocol can reach, right-padded with -1."""

    tokens: np.ndarray  # [L, T]
    log_q: np.ndarray  # [L]


def leaves(model: Model[Any], operator: Operator, prompt: Sequence[int], cap: int, *, most: int = 2_000_000) -> Leaves:
    """Enumerate q(y | x): every leaf of at most ``cap`` tokens with its exact log-probability under the decoder.

    The frontier grows as V^cap; this is for models small enough to be an oracle. It refuses to hold more than ``most``
    leaves, long before memory runs out.

    >>> from ramify.decode import Chain
    >>> coin = Tabular(("h", "t", "."), (((), (0.5, 0.3, 0.2)),), eos=2)
    >>> found = leaves(coin, Chain(), (), cap=2)
    >>> len(found.tokens), round(float(np.exp(found.log_q).sum()), 12)
    (7, 1.0)
    """
    state = model.start([prompt])
    side = Side.start(operator, [prompt])
    log_q, held = np.zeros(1), 0
    done: list[tuple[np.ndarray, np.ndarray]] = []
    if cap == 0:
        return Leaves(np.zeros((1, 0), dtype=np.int64), log_q)
    for length in range(cap):
        measure = operator(TokenMeasure.of(model.logits(state), side))
        kernel = measure.log_kernel
        parent, token = np.nonzero(kernel > -np.inf)
        held += len(parent)
        require(held <= most, "cap", cap, f"{held:,} leaves after {length + 1} tokens: use a smaller cap, or most=")
        log_q = log_q[parent] + kernel[parent, token]
        side = _after(measure, side, parent, token)
        state = model.advance(model.select([state], parent), token)
        finished = (token == model.eos) | (length == cap - 1)
        done.append(
            (
                np.pad(side.tokens[finished], ((0, 0), (0, cap - length - 1)), constant_values=-1),
                log_q[finished],
            )
        )
        if finished.all():
            break
        going = np.flatnonzero(~finished)
        held -= len(going)  # they are counted as their children
        state, side, log_q = model.select([state], going), side.rows(going), log_q[going]
    return Leaves(np.concatenate([tokens for tokens, _ in done]), np.concatenate([each for _, each in done]))


def _after(measure: TokenMeasure, side: Side, parent: np.ndarray, token: np.ndarray) -> Side:
    """The side of each child: its parent's row, settled with its own token."""
    after = side.rows(parent).append(token)
    if not measure.stakes:
        return after
    state = [settle(measure, np.full(len(measure.forced), each)) for each in range(measure.logits.shape[-1])]
    return dataclasses.replace(after, state=_gather(state, parent, token))


def _gather(states: Sequence[Any], parent: np.ndarray, token: np.ndarray) -> Any:
    """Row ``parent`` of the state that followed ``token``, in every array of equally built trees."""
    first = states[0]
    if isinstance(first, dict):
        return {name: _gather([state[name] for state in states], parent, token) for name in first}
    if isinstance(first, tuple):
        return tuple(_gather(items, parent, token) for items in zip(*states, strict=True))
    return np.stack(states)[token, parent]

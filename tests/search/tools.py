"""A search of a tabular model without the machinery of a run: quick enough for thousands of trees."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ramify.keys import streams, uniform
from ramify.models import Tabular
from ramify.search import Child, Chunk, Controller, Expansion, Grow, ToDelimiter, TopTokens, Tree
from ramify.types import Key

Tokens = tuple[int, ...]
Order = Callable[[Sequence[Grow]], Sequence[Grow]]
KEY = Key("run", "q", 0, "control")


def everyone(tokens: Tokens) -> bool:
    return True


@dataclasses.dataclass(frozen=True)
class World:
    """A model, how long its trajectories are, how prefixes are scored, and which ones are struck out."""

    model: Tabular
    cap: int
    score: Callable[[Tokens], float]
    check: Callable[[Tokens], bool] = everyone

    def children(self, tree: Tree, grow: Grow, key: Key) -> list[Child]:
        """What a part of an expansion asks for. Draws come from a stream of the parent's path."""
        prefix = tree.tokens(grow.node)
        if isinstance(grow.unit, TopTokens):
            probs = next_probs(self.model, prefix)
            ids = sorted((token for token in range(len(probs)) if probs[token]), key=lambda token: -probs[token])
            return [self.child(prefix, (token,)) for token in ids[grow.after : grow.after + grow.width]]
        names = [key._replace(stream=f"draw/{tree.path(grow.node)}", sample=grow.after + i) for i in range(grow.width)]
        return [self.child(prefix, self.drawn(prefix, grow, stream)) for stream in streams(names)]

    def drawn(self, prefix: Tokens, grow: Grow, stream: np.ndarray) -> Tokens:
        tokens, unit, room = list[int](), grow.unit, self.cap - len(prefix)
        most = unit.n if isinstance(unit, Chunk) else unit.most if isinstance(unit, ToDelimiter) else room
        until = unit.until if isinstance(unit, ToDelimiter) else ()
        for u in uniform(stream, np.arange(min(most, room))).tolist():
            probs = next_probs(self.model, (*prefix, *tokens))
            tokens.append(int(np.searchsorted(np.cumsum(probs), u * sum(probs), side="right")))
            if tokens[-1] == self.model.eos or tokens[-1] in until:
                break
        return tuple(tokens)

    def child(self, prefix: Tokens, tokens: Tokens) -> Child:
        whole = prefix + tokens
        log_p = sum(math.log(next_probs(self.model, whole[:i])[whole[i]]) for i in range(len(prefix), len(whole)))
        ended = "eos" if tokens[-1] == self.model.eos else "length" if len(whole) == self.cap else ""
        kept = self.check(whole)
        return Child(tokens, self.score(whole) if kept else math.nan, log_p, log_p, ended, kept)

    def tell(
        self, controller: Controller, tree: Tree, asked: Expansion, key: Key = KEY, order: Order | None = None
    ) -> Tree:
        """All of an expansion; with ``order``, its parts one by one."""
        parts = [grow for grow in asked.grow if grow.width]
        children = {grow.node: self.children(tree, grow, key) for grow in parts}
        if order is None or not parts:
            return controller.tell(tree, asked, children)
        for grow in order(parts):
            tree = controller.tell(tree, asked, {grow.node: children[grow.node]})
        return tree

    def search(
        self, controller: Controller, key: Key = KEY, most: float = math.inf, order: Order | None = None
    ) -> Tree:
        """Ask and tell to the end, or through ``most`` expansions."""
        tree = Tree()
        while tree.expansions < most and (asked := controller.ask(tree, key, math.inf)) is not None:
            tree = self.tell(controller, tree, asked, key, order)
        return tree


ROWS: dict[int, tuple[Tabular, dict[Tokens, tuple[float, ...]]]] = {}  # by identity: hashing a model hashes its tables


def next_probs(model: Tabular, context: Tokens) -> tuple[float, ...]:
    if id(model) not in ROWS:
        ROWS[id(model)] = model, dict(model.rows)
    rows = ROWS[id(model)][1]
    return next(rows[context[i:]] for i in range(len(context) + 1) if context[i:] in rows)


def everything(model: Tabular, cap: int, prefix: Tokens = (), p: float = 1.0) -> Iterator[tuple[Tokens, float]]:
    """Every leaf with its probability."""
    if len(prefix) == cap or prefix[-1:] == (model.eos,):
        yield prefix, p
        return
    for token, share in enumerate(next_probs(model, prefix)):
        if share:
            yield from everything(model, cap, (*prefix, token), p * share)

"""Stochastic beam search: the first k of a sample without replacement, exactly, and what they weigh."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import gumbel, streams
from ramify.search.control import grown
from ramify.search.tree import LEAF, OPEN, PRUNED, Expansion, Grow, Tree
from ramify.search.unit import TopTokens
from ramify.types import Key

__all__ = ["StochasticBeam", "topped"]


@method
class StochasticBeam:
    """``k`` leaves drawn without replacement from the raw model, by Gumbel-top-k down the tree (Kool et al., 2019).

    A leaf's log-probability φ with Gumbel noise is G; the k largest G are a sample without replacement. From the root
    down, the G of children are drawn given that their maximum is their parent's. Children are the ``width`` likeliest
    tokens, normalised: with all of the vocabulary this is the model, with fewer the model cut to them at every step.
    One prefix more than k is followed, because its G is the threshold κ of the rest: given κ, a leaf is among them
    with probability P(G > κ). The layers are ``perturbed`` (G), ``inclusion`` and ``weight`` = exp(φ) / inclusion:
    Σ weight f over the leaves is an unbiased estimate of E f, and ``WeightedVote("weight")`` votes with it. They are
    known when the search has come to its end.
    """

    unit: TopTokens
    k: int = 8
    width: int = 64

    layers = ("perturbed", "inclusion", "weight")

    def __post_init__(self) -> None:
        for name in ("k", "width"):
            value = getattr(self, name)
            require(is_whole(value, 1), f"StochasticBeam.{name}", value, "use an integer >= 1")

    def ask(self, tree: Tree, key: Key, left: float) -> Expansion | None:
        if not tree.expansions:
            top = float(gumbel(streams([key._replace(stream="perturb")])[0], 0, 0))
            return Expansion(0, (Grow(0, self.width, self.unit),), note=((0, top),))
        if _over(tree):
            return None
        log, found = tree.columns, {row: tree.note(row) for row in tree.rows(LEAF)}
        for grow in tree.last.grow if tree.last else ():
            found |= _perturbed(tree, grow.node, key)
        kept = sorted((row for row in found if log.state[row] != PRUNED), key=lambda row: (-found[row], row))
        beam, open_ = kept[: self.k + 1], [row for row in kept[: self.k + 1] if log.state[row] == OPEN]
        note, close = tuple((row, found[row]) for row in sorted(beam)), kept[self.k + 1 :]
        grow_ = tuple(Grow(row, self.width, self.unit) for row in sorted(open_))
        if not open_:  # κ, and the leaf that it is from
            threshold = found[beam[self.k]] if len(beam) > self.k else -math.inf
            note, close = (*note, (0, threshold)), close + beam[self.k :]
        return Expansion(tree.expansions, grow_, tuple(sorted(close)), note=note)

    tell = grown

    def layer(self, name: str, tree: Tree, rows: Sequence[int]) -> list[float]:
        if not _over(tree):
            return [math.nan] * len(rows)
        if name == "perturbed":
            return [tree.note(row) for row in rows]
        phi = np.array([_phi(tree, row) for row in rows])
        inclusion = -np.expm1(-np.exp(phi - tree.note(0)))
        values: list[float] = (inclusion if name == "inclusion" else np.exp(phi) / inclusion).tolist()
        return values


def topped(perturbed: np.ndarray, top: float) -> np.ndarray:
    """Gumbels ``[n]`` as if their maximum had been ``top``: -log(e^-top - e^-max + e^-G), without the overflow.

    >>> topped(np.array([1.0, 3.0]), 2.0).round(4).tolist()
    [0.7909, 2.0]
    """
    with np.errstate(divide="ignore"):
        v = top - perturbed + np.log1p(-np.exp(perturbed - perturbed.max()))
    return np.asarray(top - np.maximum(v, 0) - np.log1p(np.exp(-np.abs(v))))


def _over(tree: Tree) -> bool:
    return tree.last is not None and not tree.last.grow


def _shares(tree: Tree, row: int) -> np.ndarray:
    """log P of a prefix's children, normalised over them."""
    logprob = np.array([tree.columns.logprob[child] for child in tree.children(row)])
    require(not np.isnan(logprob).any(), "logprob", logprob.tolist(), "give every child its log-probability")
    return np.asarray(logprob - np.logaddexp.reduce(logprob))


def _phi(tree: Tree, row: int) -> float:
    """log P of a prefix."""
    phi = 0.0
    while row:
        up = tree.columns.parent[row]
        phi += float(_shares(tree, up)[tree.columns.number[row]])
        row = up
    return phi


def _perturbed(tree: Tree, row: int, key: Key) -> dict[int, float]:
    """G of a prefix's children, by row: noise from a stream of its path, given that the maximum is the parent's G."""
    children = tree.children(row)
    if not len(children):
        return {}
    stream = "perturb" + "".join(f"/{number}" for number in tree.path(row))
    noise = gumbel(streams([key._replace(stream=stream)])[0], 1, np.arange(len(children)))
    values = topped(_phi(tree, row) + _shares(tree, row) + noise, tree.note(row))
    return dict(zip(children, values.tolist(), strict=True))

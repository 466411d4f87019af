"""What a search is held against: leaf protocols of its cost, from independent leaves in many orders."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

from ramify.bank import Candidates
from ramify.decide import BestOfN, Plurality, Rule, VerifierConstrained, WeightedVote
from ramify.keys import generator
from ramify.types import Key
from searching.measure import load
from searching.plan import CONTROLLERS, Job


class Curve(NamedTuple):
    """A leaf protocol at growing numbers of leaves."""

    n: np.ndarray  # [K]
    tokens: np.ndarray  # [K] a question
    right: np.ndarray  # [K, Q] expected over orders of the leaves

    def at(self, tokens: float) -> np.ndarray:
        """``[Q]`` at this cost, between neighbours; at the ends if it is beyond them."""
        high = int(np.clip(np.searchsorted(self.tokens, tokens), 1, len(self.n) - 1))
        low, step = high - 1, self.tokens[high] - self.tokens[high - 1]
        share = float(np.clip((tokens - self.tokens[low]) / step, 0, 1)) if step else 1.0
        found: np.ndarray = (1 - share) * self.right[low] + share * self.right[high]
        return found


RULES: dict[str, tuple[Rule, bool]] = {  # and whether each leaf's outcome is read, a position each
    "plurality": (Plurality(), False),
    "best of N by the outcome head": (BestOfN("outcome"), True),
    "votes weighted by the outcome head": (WeightedVote("outcome"), True),
}
VERIFIED = "verifier-constrained (a program)"
SURE = (0.8, 0.95)


def curves(row: dict[str, Any], orders: int = 200) -> dict[str, Curve]:
    """Every leaf protocol, from the leaves of each question in ``orders`` random orders."""
    right, length = np.array(row["right"]), np.array(row["length"])
    outcome = np.array(row["outcome"], dtype=np.float64)
    total = right.shape[1]
    grid = np.array([n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if n <= total])
    found = {}
    rules: dict[str, tuple[Rule, bool]] = {**RULES, VERIFIED: (VerifierConstrained("verified"), False)}
    for name, (rule, reads) in rules.items():
        accuracy = np.stack([_expected(row, rule, n, orders) for n in grid])
        found[name] = Curve(grid, grid * (length.mean() + reads), accuracy)
    rng = generator(Key("studies/searches", "orders", 1))
    order = np.argsort(rng.random((orders, *right.shape)), axis=-1)
    for sure in SURE:
        found[f"until the outcome head says {sure}"] = _until(right, length, outcome, order, sure, grid)
    return found


def _expected(row: dict[str, Any], rule: Rule, n: int, orders: int) -> np.ndarray:
    """``[Q]`` the mean accuracy of a rule over n leaves, over random subsets of them."""
    found, rng = [], generator(Key("studies/searches", "orders", int(n)))
    for q, right in enumerate(np.array(row["right"])):
        answers: list[Any] = row["answer"][q]
        known = {answer: code for code, answer in enumerate(dict.fromkeys(a for a in answers if a is not None))}
        codes = np.array([known.get(answer, -1) for answer in answers])
        evidence = {name: np.array(row[name][q], dtype=np.float64) for name in ("outcome", "verified")}
        some = np.argsort(rng.random((orders, right.size)), axis=-1)[:, :n]
        winner = rule(Candidates(codes[some], evidence={name: each[some] for name, each in evidence.items()})).winner
        picked = right[some[np.arange(orders), np.maximum(winner, 0)]]
        found.append(np.where(winner >= 0, picked, 0.0).mean())
    return np.array(found)


def _until(
    right: np.ndarray, length: np.ndarray, outcome: np.ndarray, order: np.ndarray, sure: float, grid: np.ndarray
) -> Curve:
    """One leaf after the other until one is good enough, the best of them submitted; at most n."""
    score = np.where(np.isnan(outcome), -np.inf, outcome)
    score, right, length = (np.take_along_axis(each[None], order, axis=-1) for each in (score, right, length))
    enough = score >= sure
    first = np.where(enough.any(-1), enough.argmax(-1), score.shape[-1])  # [R, Q]
    accuracy, tokens = [], []
    for n in grid:
        used = np.minimum(first + 1, n)
        best = score[..., :n].argmax(-1)
        pick = np.where(first < n, first, best)
        accuracy.append(np.take_along_axis(right, pick[..., None], axis=-1)[..., 0].mean(0))
        spent = np.take_along_axis(np.cumsum(length + 1, axis=-1), used[..., None] - 1, axis=-1)
        tokens.append(spent.mean())
    return Curve(grid, np.array(tokens), np.stack(accuracy))


class Rival(NamedTuple):
    """A leaf protocol of a given cost, or of less where more leaves do it harm."""

    name: str
    tokens: float

    @staticmethod
    def of(found: dict[str, Curve], tokens: float) -> Rival:
        """The one with the highest accuracy here. A verifier by program is another kind of thing."""
        names = [name for name in found if name != VERIFIED]
        all_of_it = [Rival(name, tokens) for name in names]
        less = [Rival(name, each) for name in names for each in found[name].tokens.tolist() if each < tokens]
        return max([*all_of_it, *less], key=lambda rival: float(rival.right(found).mean()))

    def right(self, found: dict[str, Curve]) -> np.ndarray:
        """``[Q]``"""
        return found[self.name].at(self.tokens)


def choose(options: argparse.Namespace) -> dict[str, str]:
    """By controller, the setting with the largest gain over leaf protocols of its cost, on the tuning questions."""
    base = curves(load(Job("tuning", "leaves"), options))
    gains: dict[str, dict[str, float]] = {}
    for name, kind in CONTROLLERS.items():
        for setting in kind:
            row = load(Job("tuning", name, setting), options)
            tokens = float(np.mean(row["tokens"]))
            against = Rival.of(base, tokens).right(base)
            gains.setdefault(name, {})[setting] = float(np.mean(row["right"])) - float(against.mean())
    return {name: max(each, key=lambda setting: each[setting]) for name, each in gains.items()}

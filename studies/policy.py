"""A search policy tuned on questions of its own, and what it is worth on others.

python studies/policy.py [--tune 80] [--held 200] [--limit 300]

``LinearPriority`` is best-first with weights. The weights of depth, of gain over the parent and of the step's
log-probability are tuned by a small cross-entropy search for the share of right answers under a budget of tokens,
generated and read; then the policy is frozen, and compared on new questions. Streams are named by path, so policies
that grow the same prefix see the same children: differences are paired, and nothing is drawn twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from bench import Bench, resampled

from ramify.bank import Signal
from ramify.decide import BestOfN
from ramify.keys import generator
from ramify.ledger import Ledger, Tokens, Work
from ramify.models import Pocket, ValueHead
from ramify.run import Search, run_search
from ramify.search import BestFirst, Controller, DepthFirst, LinearPriority, ToDelimiter
from ramify.search.evaluate import over_memory
from ramify.tasks import Countdown
from ramify.types import Key, Leaf, Prefix, Request, Sampler

MODEL, TASK, CAP, WIDTH = Pocket("main"), Countdown(4), 100, 3
LINE = ToDelimiter(tuple(MODEL.encode("\n")), most=16)
PEOPLE, ELITE, ROUNDS = 14, 4, 5
SPREAD = np.array([0.2, 0.5, 0.1])  # of the first population: depth, gain, log p


class Remembered:
    """A sampler that draws nothing twice."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler, self.seen = sampler, dict[tuple[Any, ...], Leaf]()

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        asked = {(request.key, request.prefix, request.cap): request for request in requests}
        fresh = {request.key: name for name, request in asked.items() if name not in self.seen}
        for leaf in self.sampler([asked[name] for name in fresh.values()]) if fresh else ():
            self.seen[fresh[leaf.key]] = leaf
        yield from (self.seen[name] for name in asked)


class Value:
    """The value head, read once a prefix, at the price of reading it off the proposal's states: one position."""

    def __init__(self) -> None:
        self.head, self.seen = ValueHead(MODEL.name), dict[tuple[str, tuple[int, ...]], float]()

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        fresh = {(z.question.id, z.tokens): z for z in prefixes if (z.question.id, z.tokens) not in self.seen}
        if fresh:
            self.seen |= dict(zip(fresh, self.head(list(fresh.values())).values.tolist(), strict=True))
        return Signal(np.array([self.seen[z.question.id, z.tokens] for z in prefixes]), np.ones(len(prefixes)))

    def worst(self, prompt: int, tokens: int) -> Work:  # noqa: ARG002
        return Work(generated=1, evaluator_tokens=1)


class Limited(Bench):
    """Questions, and the share of them that a controller answers rightly under a limit."""

    def __init__(self, run: str, questions: int, limit: int) -> None:
        super().__init__(MODEL, TASK, TASK.questions(questions, run=run), batch=128)
        sampler: Any = self.sampler
        self.sampler = Remembered(over_memory(sampler, sampler.remember(1e6)))
        self.value, self.limit, self.run = Value(), limit, run

    def right(self, controller: Controller) -> np.ndarray:
        """``[Q]`` 1 where the submitted answer is right; NaN where no leaf was finished."""
        protocol = Search(controller, self.value, cap=CAP, rule=BestOfN("score"))
        ledger = Ledger("tokens", Tokens(), limit=self.limit)
        found = run_search(protocol, self.asked, self.arm(self.run), ledger, self.parse, memory=0)
        marks = [TASK.verify(q, a) if a is not None else 0.0 for q, a in zip(self.asked, found.answers, strict=True)]
        return np.where([row >= 0 for row in found.returned], marks, np.nan)


def policy(weights: np.ndarray) -> LinearPriority:
    depth, gain, logp = (round(float(each), 4) for each in weights)
    return LinearPriority((1.0, depth, gain, logp), WIDTH, LINE)


def tuned(bench: Limited) -> LinearPriority:
    """Cross-entropy: keep the best of a population, and draw the next one around them."""
    rng, centre, spread = generator(Key("policy", "tune", 0)), np.zeros(3), SPREAD
    for number in range(ROUNDS):
        people = np.vstack([centre, centre + spread * rng.standard_normal((PEOPLE - 1, 3))])
        shares = np.array([np.nan_to_num(bench.right(policy(each))).mean() for each in people])
        best = people[np.argsort(-shares, kind="stable")[:ELITE]]
        print(f"round {number}: centre {shares[0]:.3f}, best {shares.max():.3f}, mean {shares.mean():.3f}", flush=True)
        centre, spread = best.mean(0), np.maximum(best.std(0), SPREAD / 10)
    return policy(centre)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tune", type=int, default=80, help="questions to tune on")
    parser.add_argument("--held", type=int, default=200, help="questions to compare on")
    parser.add_argument("--limit", type=int, default=300, help="tokens a question")
    options = parser.parse_args()
    learned = tuned(Limited("policy/tune", options.tune, options.limit))
    held = Limited("policy/held", options.held, options.limit)
    base = np.nan_to_num(held.right(BestFirst(WIDTH, LINE)))
    others: dict[str, Controller] = {
        "BestFirst": BestFirst(WIDTH, LINE),
        f"LinearPriority({learned.weights})": learned,
        "DepthFirst": DepthFirst(WIDTH, LINE, leaves=None),
    }
    print(f"\n| {options.held} new questions, {options.limit} tokens each | right | no leaf | against best-first |")
    print("|---|---|---|---|")
    for name, controller in others.items():
        found = held.right(controller)
        right, none = np.nan_to_num(found), np.isnan(found).mean()
        low, high = resampled(right - base, generator(Key("policy", "bootstrap", 0)), 10_000)
        against = "" if name == "BestFirst" else f"{(right - base).mean():+.3f} [{low:+.3f}, {high:+.3f}]"
        print(f"| `{name}` | {right.mean():.3f} | {none:.3f} | {against} |", flush=True)


if __name__ == "__main__":
    main()

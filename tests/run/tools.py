"""A model whose leaves can be enumerated, questions for it, and samplers that are slow or out of order on purpose."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from ramify.bank import Proposal
from ramify.decode import Temperature
from ramify.models import Tabular, decode_with
from ramify.run import Arm
from ramify.types import Leaf, Question, Request, Sampler

# Answers a, b and c with probabilities .45, .35 and .2, after a filler that may come any number of times.
MODEL = Tabular(
    ("a", "b", "c", "-", "."),
    (
        ((), (0.36, 0.28, 0.16, 0.2, 0.0)),
        ((0,), (0, 0, 0, 0, 1.0)),
        ((1,), (0, 0, 0, 0, 1.0)),
        ((2,), (0, 0, 0, 0, 1.0)),
    ),
    eos=4,
)
ANSWERS = {"a": 0.45, "b": 0.35, "c": 0.2}


def questions(count: int) -> list[Question]:
    return [Question(f"q{i}", "") for i in range(count)]


def parse(text: str, question: Question) -> str | None:
    """The letter before the end, or ⊥ if the trace was cut."""
    found = [letter for letter in text.split() if letter in ANSWERS]
    return found[0] if found and text.endswith(".") else None


def arm(run: str = "run", batch: int = 16, sampler: Sampler | None = None) -> Arm:
    proposal = Proposal(run=run, protocol="Temperature(t=1.0)")
    return Arm(proposal, sampler or decode_with(MODEL, Temperature(1.0), batch=batch), lambda _: ())


def delayed(sampler: Sampler, slow: Callable[[Leaf], int], width: int) -> Sampler:
    """Leaves come when their time has come: each takes as many ticks as ``slow`` says, ``width`` at once."""

    def run(requests: Iterable[Request]) -> Iterator[Leaf]:
        waiting, busy = iter(requests), list[tuple[int, Leaf]]()
        now = 0
        while True:
            for request in waiting:
                [leaf] = sampler([request])
                busy.append((now + slow(leaf), leaf))
                if len(busy) >= width:
                    break
            if not busy:
                return
            busy.sort(key=lambda each: each[0])
            now, leaf = busy.pop(0)
            yield leaf

    return run


def shuffled(sampler: Sampler, seed: int) -> Sampler:
    """Takes some requests at a time and answers them in any order."""

    def run(requests: Iterable[Request]) -> Iterator[Leaf]:
        rng, waiting = random.Random(seed), iter(requests)
        while True:
            taken: list[Request] = []
            for request in waiting:
                taken.append(request)
                if rng.random() < 0.4:
                    break
            if not taken:
                return
            leaves: Sequence[Leaf] = list(sampler(taken))
            yield from rng.sample(list(leaves), len(leaves))

    return run

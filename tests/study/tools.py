"""A model and a task that cost nothing: every path of a study runs on them in milliseconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ramify.decide import BestOfN, Plurality
from ramify.decode import Temperature
from ramify.describe import method
from ramify.evidence import mean_logprob
from ramify.metrics import Accuracy, PassAt, PassHat
from ramify.models import Tabular
from ramify.run import BudgetForcing
from ramify.search import Beam, Chunk, Likelihood
from ramify.stop import AdaptiveConsistency
from ramify.study import Protocol, Study, System, Tasked
from ramify.types import Question, Request

TABLE = Tabular(("a", "b", "c", "."), (((), (0.45, 0.3, 0.15, 0.1)), ((0,), (0.2, 0.2, 0.1, 0.5))), eos=3)


@method
class Dice:
    """The tabular model, with prompts."""

    name: str = "dice"

    @property
    def eos(self) -> int:
        return TABLE.eos

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple("abc".index(letter) for letter in text if letter in "abc")

    def start(self, prompts: Sequence[Sequence[int]]) -> Any:
        return TABLE.start(prompts)

    def logits(self, state: Any) -> Any:
        return TABLE.logits(state)

    def advance(self, state: Any, tokens: Any) -> Any:
        return TABLE.advance(state, tokens)

    def select(self, states: Sequence[Any], rows: Any) -> Any:
        return TABLE.select(states, rows)

    def text(self, tokens: Sequence[int]) -> str:
        return TABLE.text(tokens)


class Said(NamedTuple):
    answer: str | None


@method
class Guess:
    """The first letter is the answer; question i wants letter i."""

    gold: bool = True

    def questions(self, n: int) -> tuple[Question, ...]:
        return tuple(Question(f"g{i}", "abc"[: i % 3], {"kind": "odd" if i % 2 else "even"}) for i in range(n))

    def references(self, questions: Sequence[Question]) -> tuple[str | None, ...]:
        return tuple("abc"[int(question.id[1:]) % 3] if self.gold else None for question in questions)

    def parse(self, text: str, question: Question) -> Said:  # noqa: ARG002
        return Said(text[0] if text and text[0] != "." else None)

    def grade(self, answer: str | None, reference: str) -> float:
        return float(answer == reference)


def study(**fields: Any) -> Study:
    """Every regime, small."""
    given: dict[str, Any] = {
        "title": "dice",
        "tasks": (Tasked(Guess(), "guess", 6, groups=("kind",)),),
        "models": (System(Dice(), repeats=1), System(Dice("loaded"), decode=Temperature(0.5))),
        "protocols": protocols(),
        "run": "tests",
        "decode": Temperature(1.0),
        "cap": 6,
        "n": 8,
        "budgets": (1, 4, 8),
        "metrics": (Accuracy(), PassAt(8), PassHat(8)),
        "comparisons": (("vote", "likeliest"), ("dice: vote", "loaded: vote")),
        "replays": 10,
        "replicates": 100,
    }
    if {"protocols", "models"} & fields.keys():
        given["comparisons"] = ()
    return Study(**{**given, **fields})


def protocols() -> tuple[Protocol, ...]:
    return (
        Protocol("vote", Plurality()),
        Protocol("likeliest", BestOfN("logp"), evidence=(("logp", mean_logprob()),), budgets=(1, 8)),
        Protocol("cold", decode=Temperature(0.3), models=("dice",)),
        Protocol("ceiling", BestOfN("outcomes"), diagnostic="outcomes"),
        Protocol("adaptive", stop=AdaptiveConsistency(0.9), n=6),
        Protocol("limited", limits=(13.0, 26.0), n=6, models=("dice",)),
        Protocol("forced", director=BudgetForcing(1, (0,), 6), cap=12, models=("dice",)),
        Protocol("beam", BestOfN("score"), controller=Beam(4, 2, Chunk(2)), evaluator=Likelihood(), limits=(200.0,)),
    )


@dataclasses.dataclass
class Counter:
    """Counts what a sampler is asked, and may be pulled out of the wall after so many leaves."""

    asked: int = 0
    after: int | None = None

    def wrap(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, **options: Any) -> Any:
            inner = make(*args, **options)

            def sampler(requests: Any) -> Iterator[Any]:
                for leaf in inner(self._counted(requests)):
                    if self.after is not None and self.asked > self.after:
                        raise KeyboardInterrupt
                    yield leaf

            return sampler

        return made

    def _counted(self, requests: Any) -> Any:
        counter = self

        class Feed:
            """Like what it wraps: empty now may not be empty later, and requests may be cancelled."""

            def __init__(self) -> None:
                self.inner = iter(requests)

            @property
            def cancelled(self) -> Any:
                return getattr(requests, "cancelled", set())

            def __iter__(self) -> Feed:
                return self

            def __next__(self) -> Request:
                request: Request = next(self.inner)
                counter.asked += 1
                return request

        return Feed()


def same(one: Any, other: Any, path: str = "") -> str:
    """Where two records first differ; nothing if they do not."""
    if isinstance(one, np.ndarray):
        equal = np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        return "" if equal else path
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        names = [field.name for field in dataclasses.fields(one) if field.name not in ("reused",)]
        found = (same(getattr(one, name), getattr(other, name), f"{path}.{name}") for name in names)
        return next(filter(None, found), "")
    if isinstance(one, (tuple, list)):
        if len(one) != len(other):
            return path
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (same(a, b, f"{path}[{i}]") for i, (a, b) in pairs)), "")
    if isinstance(one, dict):
        if list(one) != list(other):
            return path
        return next(filter(None, (same(one[name], other[name], f"{path}[{name!r}]") for name in one)), "")
    return "" if one == other or (one != one and other != other) else path

"""What is compared: controllers with their settings, evaluators, and the jobs that cross them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ramify.bank import Signal
from ramify.decide import BestOfN
from ramify.decode import Temperature
from ramify.describe import method
from ramify.evidence import LogProduct, Minimum
from ramify.ledger import Work
from ramify.models import FinishedHead, Heads, Pocket, ProcessHead, ValueHead, decode_with
from ramify.run import Search
from ramify.search import (
    ABMCTS,
    DVTS,
    PUCT,
    UCT,
    Beam,
    BestFirst,
    BetaScores,
    Blend,
    Breadth,
    Controller,
    DepthFirst,
    Evaluator,
    Exponentiated,
    GumbelHalving,
    Likelihood,
    Particles,
    PerLength,
    Rebase,
    Restarts,
    Rollouts,
    SpeculativeRejection,
    Staged,
    ToDelimiter,
)
from ramify.tasks import Sound
from ramify.tasks.pocket import encode
from ramify.types import Leaf, Prefix, Question

CAP, GROUP, MEMORY = 120, 60, 200_000  # tokens of a leaf; questions that share a memory of prefixes, of so many tokens
SETS = {"tuning": "search/tuning", "test": "search/test"}
STEP = ToDelimiter((int(encode("\n")[0]),), most=40)


def spelled(question: Question) -> tuple[int, ...]:
    return tuple(Pocket("main").encode(question.prompt))


def convincing(leaf: Leaf, question: Question) -> float:
    """What the outcome head makes of a leaf."""
    return float(Heads("main").outcome([(*spelled(question), *leaf.tokens.tolist())]).values[0])


@method
class Read:
    """Rollouts whose utility reads one position of each completion, and charges it."""

    of: Rollouts

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        values, cost = self.of(prefixes)
        return Signal(values, np.asarray(cost) + self.of.m)

    def worst(self, prompt: int, tokens: int) -> Work:
        work = self.of.worst(prompt, tokens)
        return Work(generated=work.generated + self.of.m, calls=work.calls, evaluator_tokens=work.evaluator_tokens)


VALUE, LENGTH = ValueHead("main", shared=True), Exponentiated(PerLength(Likelihood()))
GUIDED = "value, then outcome"
ROLLOUTS = "two rollouts, outcome head"
EVALUATORS: dict[str, Evaluator] = {
    "likelihood": LENGTH,
    "value": VALUE,
    "process, minimum": ProcessHead("main", Minimum(), shared=True),
    "process, product": Exponentiated(ProcessHead("main", LogProduct(), shared=True)),
    "value and likelihood": Blend((VALUE, LENGTH), (0.7, 0.3)),
    GUIDED: Staged(VALUE, FinishedHead("main", shared=True)),
    ROLLOUTS: Read(
        Rollouts(decode_with(Pocket("main"), Temperature(1.0), batch=256), convincing, spelled, m=2, cap=CAP)
    ),
}

Sized = Callable[[int], Controller]  # size 1, 2 or 4: about 450 tokens a question, and twice and four times that
CONTROLLERS: dict[str, dict[str, Sized]] = {
    "beam": {
        "m = 4": lambda s: Beam(8 * s, 4, STEP),
        "m = 2": lambda s: Beam(8 * s, 2, STEP),
        "m = 2, refilled": lambda s: Beam(8 * s, 2, STEP, refill=True, depth=8),
    },
    "DVTS": {"m = 4": lambda s: DVTS(8 * s, 4, STEP), "m = 2": lambda s: DVTS(8 * s, 2, STEP)},
    "REBASE": {f"T = {t}": lambda s, t=t: Rebase(8 * s, t, STEP) for t in (0.1, 0.2, 0.5)},  # type: ignore[misc]
    "Tree of Thoughts": {"k = 4": lambda s: Breadth(2 * s, 4, STEP), "k = 2": lambda s: Breadth(4 * s, 2, STEP)},
    "best-first": {
        "4 children": lambda s: BestFirst(4, STEP, leaves=2 * s, most=12 * s),
        "2 children": lambda s: BestFirst(2, STEP, leaves=2 * s, most=24 * s),
    },
    "best-first until sure": {
        f"{w} children, {sure}": lambda s, w=w, sure=sure: BestFirst(w, STEP, most=48 * s // w, enough=sure)  # type: ignore[misc]
        for w in (2, 4)
        for sure in (0.8, 0.95)
    },
    "depth-first": {
        f"below {low}": lambda s, low=low: DepthFirst(3, STEP, low, leaves=s, most=16 * s)  # type: ignore[misc]
        for low in (0.1, 0.3)
    },
    "UCT": {
        f"c = {c}, {w} children": lambda s, c=c, w=w: UCT(c, w, STEP, most=48 * s // w)  # type: ignore[misc]
        for c in (0.03, 0.1, 0.3)
        for w in (2, 4)
    },
    "PUCT": {
        f"init = {c}": lambda s, c=c: PUCT(c, width=4, unit=STEP, most=12 * s)  # type: ignore[misc]
        for c in (0.03, 0.1, 0.3)
    },
    "Gumbel halving": {
        f"scale = {scale}": lambda s, scale=scale: GumbelHalving(  # type: ignore[misc]
            m=4, width=8, unit=STEP, most=12 * s, scale=scale, below=PUCT(0.1, width=4)
        )
        for scale in (1.0, 5.0, 20.0)
    },
    "AB-MCTS": {
        "normal": lambda s: ABMCTS(unit=STEP, most=48 * s),
        "beta": lambda s: ABMCTS(BetaScores(), unit=STEP, most=48 * s),
    },
    "particles": {f"ess = {ess}": lambda s, ess=ess: Particles(8 * s, STEP, ess=ess) for ess in (0.5, 1.0)},  # type: ignore[misc]
    "speculative rejection": {
        f"at {at}, keep {keep}": lambda s, at=at, keep=keep: SpeculativeRejection(12 * s, STEP, at, keep)  # type: ignore[misc]
        for at, keep in (((4,), 0.25), ((4,), 0.1), ((3, 4), 0.4))
    },
    "restarts": {
        f"at {at}, below {low}": lambda s, at=at, low=low: Restarts(12 * s, STEP, at, low, enough=0.8)  # type: ignore[misc]
        for at, low in (((4,), 0.1), ((4,), 0.3), ((2, 3, 4), 0.1))
    },
}
SIZES, MIDDLE = (1, 2, 4), 2
ORACLE = "beam with a sound check"
LEAVES = 64  # a question


class Job(NamedTuple):
    """One measurement: a controller with a setting and a size, and an evaluator, on a set of questions."""

    where: str  # tuning or test
    controller: str
    setting: str = ""
    size: int = MIDDLE
    evaluator: str = GUIDED

    @property
    def crossed(self) -> bool:
        """Whether it is one of every controller with every evaluator, on fewer questions."""
        return self.evaluator != GUIDED

    @property
    def name(self) -> str:
        words = "-".join(str(each) for each in self[1:])
        return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in words)

    @property
    def protocol(self) -> Search:
        check = Sound() if self.controller == ORACLE else None
        kind = CONTROLLERS["beam" if check else self.controller]
        controller = kind[self.setting or next(iter(kind))](self.size)
        return Search(controller, EVALUATORS[self.evaluator], check, cap=CAP, rule=BestOfN("score"))


def test_jobs(chosen: dict[str, str]) -> list[Job]:
    """Every controller at every size, and at the middle one with every evaluator."""
    found = [Job("test", "leaves"), *(Job("test", ORACLE, chosen["beam"], size) for size in SIZES)]
    for name, setting in chosen.items():
        found += [Job("test", name, setting, size) for size in SIZES]
        found += [Job("test", name, setting, MIDDLE, each) for each in EVALUATORS if crossed(name, each)]
    return found


def crossed(controller: str, evaluator: str) -> bool:
    """Scores that are good enough by themselves are those of the outcome head; rollouts are dear, and for a few."""
    if evaluator == GUIDED or controller in ("best-first until sure", "restarts"):
        return False
    return evaluator != ROLLOUTS or controller in ("beam", "REBASE", "best-first")

"""A study as a value: what a study file says, whichever way it was written.

``ramify.study.valid`` says what is wrong with one, and ``ramify.study.file`` reads one from a file.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ramify.decide import Plurality, Rule
from ramify.decode import Chain, Operator
from ramify.ledger import Cost, Tokens

__all__ = ["OUTCOMES", "Protocol", "Reduced", "Study", "System", "Tasked"]

OUTCOMES = "outcomes"  # the one diagnostic every task has: its own grades as scores


@dataclasses.dataclass(frozen=True)
class Tasked:
    """Questions of a task, under the name that rows give them."""

    task: Any
    name: str = ""
    questions: int | None = None  # None: all there are
    run: str = ""  # of the stream that generated questions are drawn from; the task's own by default
    groups: tuple[str, ...] = ()  # the groups of questions by which metrics are split too


@dataclasses.dataclass(frozen=True)
class System:
    """A model configuration: a model, how it is asked and how it decodes.

    ``repeats`` are further independent banks of the same configuration. They tell how reproducible it is, and are never
    pooled with the bank that rows are about.
    """

    model: Any
    name: str = ""
    interface: str = ""
    effort: str = ""  # for tasks that are asked at an effort
    decode: Operator | None = None
    cap: int | None = None
    top: int | None = None
    tasks: tuple[str, ...] = ()  # () is all of them
    repeats: int = 0
    batch: int = 128
    workers: int = 1


@dataclasses.dataclass(frozen=True)
class Protocol:
    """One way to answer a question. Its regime follows from what it names: a director, a controller, or neither.

    ``budgets`` are numbers of candidates: the rule is replayed on nested subsets of a bank that other protocols with
    the same proposal use too. ``limits`` are amounts of the ledger's unit for each question: such a protocol, and one
    with a stop, makes its own candidates. ``diagnostic = "outcomes"`` hands the grades themselves to the rule, as the
    evidence of that name: a ceiling that no deployed system reaches. A grader there hands it ``grader``. ``judge`` is
    the model that a verifier or a grader asks.
    """

    name: str
    rule: Rule = Plurality()
    decode: Operator | None = None
    evidence: tuple[tuple[str, Any], ...] = ()
    budgets: tuple[int, ...] = ()
    limits: tuple[float, ...] = ()
    n: int | None = None
    cap: int | None = None
    stop: Any = None
    within: Any = None
    director: Any = None
    controller: Any = None
    evaluator: Any = None
    check: Any = None
    diagnostic: Any = ""
    judge: str = ""
    fresh: bool = False  # its own candidates, even where it could share
    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @property
    def regime(self) -> str:
        return "trajectory" if self.director is not None else "search" if self.controller is not None else "leaves"

    @property
    def shares(self) -> bool:
        """Whether it may be decided on nested prefixes of a bank that others use.

        Not where a stop, a limit or a search makes the number or the law of the candidates depend on what they showed.
        """
        own = self.stop is not None or self.within is not None or bool(self.limits) or self.fresh
        return self.regime == "leaves" and not own


@dataclasses.dataclass(frozen=True)
class Reduced:
    """The same study, small enough for a test: what is given here takes the place of the study's own."""

    questions: int | None = None
    n: int | None = None
    budgets: tuple[int, ...] = ()
    limits: tuple[float, ...] = ()
    replays: int | None = None
    replicates: int | None = None
    repeats: int | None = None
    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Study:
    """Tasks x models x protocols x budgets, the metrics of their banks, and the comparisons to make.

    >>> from ramify.models import Pocket
    >>> from ramify.tasks import Countdown
    >>> study = Study("A vote", (Tasked(Countdown(3), questions=8),), (System(Pocket("tiny")),), (Protocol("vote"),))
    >>> study.tasks[0].name, study.models[0].name, study.size(study.protocols[0])
    ("Countdown(level=3, effort='medium')", 'tiny', 1)
    """

    title: str
    tasks: tuple[Tasked, ...]
    models: tuple[System, ...]
    protocols: tuple[Protocol, ...]
    run: str = "study"  # the name of all random streams: another is another draw of everything
    decode: Operator = Chain()
    unit: Cost = Tokens()
    cap: int = 512
    top: int = 0
    n: int | None = None  # candidates of a shared bank; the largest budget by default
    budgets: tuple[int, ...] = (1,)
    limit: float = math.inf  # of the whole study, in the unit
    judges: tuple[System, ...] = ()  # models that are asked about candidates, and make none
    metrics: tuple[Any, ...] = ()
    comparisons: tuple[tuple[str, str], ...] = ()
    replays: int = 200
    replicates: int = 2000
    level: float = 0.95
    rank: bool = False  # how well subsets rank the models as whole banks do
    replayed: int = 2  # leaves of each bank that are made again, to check that they can be
    notes: tuple[str, ...] = ()
    reduced: Reduced | None = None

    def __post_init__(self) -> None:
        tasks = tuple(dataclasses.replace(each, name=each.name or _named(each.task)) for each in self.tasks)
        models = tuple(dataclasses.replace(each, name=each.name or _named(each.model)) for each in self.models)
        judges = tuple(dataclasses.replace(each, name=each.name or _named(each.model)) for each in self.judges)
        for name, entries in (("tasks", tasks), ("models", models), ("judges", judges)):
            object.__setattr__(self, name, entries)

    def budgets_of(self, protocol: Protocol) -> tuple[int, ...]:
        return protocol.budgets or self.budgets

    def size(self, protocol: Protocol) -> int:
        """Candidates a question, at most."""
        return protocol.n or (max(self.budgets_of(protocol)) if protocol.shares else self.n or max(self.budgets))

    def cap_of(self, protocol: Protocol, model: System) -> int:
        return protocol.cap or model.cap or self.cap

    def decode_of(self, protocol: Protocol | None, model: System) -> Operator:
        """The decoder of a protocol, or of its model, or of the study: the first that is given."""
        own: Operator | None = getattr(model.model, "decoder", None)
        asked = None if protocol is None else protocol.decode
        given = (asked, model.decode, None if own == Chain() else own)
        return next((each for each in given if each is not None), self.decode)

    def cells(self) -> Iterator[tuple[Tasked, System, Protocol]]:
        """The matrix: every task, model and protocol that are meant for each other."""
        for task in self.tasks:
            for model in self.models:
                for protocol in self.protocols:
                    here = (model.tasks, task.name), (protocol.tasks, task.name), (protocol.models, model.name)
                    if all(not names or name in names for names, name in here):
                        yield task, model, protocol

    def comparable(self) -> dict[str, list[str]]:
        """What comparisons can name, ``protocol`` or ``model: protocol``, with the budgets each has."""
        found: dict[str, list[str]] = {}
        for _, model, protocol in self.cells():
            budgets = self.budgets_of(protocol) if protocol.shares else protocol.limits
            for name in (f"{model.name}: {protocol.name}", protocol.name):
                found.setdefault(name, []).extend(f"{budget:.15g}" for budget in budgets)
        return found

    def small(self) -> Study:
        """The study at its reduced scale."""
        less = self.reduced or Reduced()
        n = less.n or self.n
        tasks = tuple(
            dataclasses.replace(each, questions=_least(each.questions, less.questions))
            for each in self.tasks
            if not less.tasks or each.name in less.tasks
        )
        models = tuple(
            dataclasses.replace(
                each, repeats=_least(each.repeats, less.repeats) or 0, tasks=_kept(each.tasks, less.tasks)
            )
            for each in self.models
            if _meant(each.tasks, less.tasks) and (not less.models or each.name in less.models)
        )
        protocols = tuple(
            _smaller(each, less)
            for each in self.protocols
            if _meant(each.models, less.models) and _meant(each.tasks, less.tasks)
        )
        small = dataclasses.replace(
            self,
            title=f"{self.title} (reduced)",
            tasks=tasks,
            models=models,
            protocols=protocols,
            n=n,
            budgets=less.budgets or tuple(k for k in self.budgets if n is None or k <= n) or (1,),
            metrics=tuple(each for each in self.metrics if n is None or getattr(each, "k", 1) <= n),
            replays=less.replays or self.replays,
            replicates=less.replicates or self.replicates,
            reduced=None,
        )
        there = small.comparable()
        pairs = [pair for pair in self.comparisons if all(_is_there(name, there) for name in pair)]
        return dataclasses.replace(small, comparisons=tuple(pairs))


def _is_there(name: str, there: Mapping[str, Collection[str]]) -> bool:
    plain, _, at = name.partition(" @ ")
    return plain in there and (not at or at in there[plain])


def _least(one: int | None, other: int | None) -> int | None:
    """The smaller of two numbers, where None is none given."""
    return min((each for each in (one, other) if each is not None), default=None)


def _smaller(protocol: Protocol, less: Reduced) -> Protocol:
    n = less.n
    budgets = tuple(k for k in protocol.budgets if n is None or k <= n)
    return dataclasses.replace(
        protocol,
        budgets=budgets or ((1,) if protocol.budgets else ()),
        limits=protocol.limits and (less.limits or protocol.limits),
        n=protocol.n if protocol.n is None or n is None else min(protocol.n, n),
        models=_kept(protocol.models, less.models),
        tasks=_kept(protocol.tasks, less.tasks),
    )


def _kept(names: tuple[str, ...], among: tuple[str, ...]) -> tuple[str, ...]:
    """The names that are left."""
    return tuple(name for name in names if not among or name in among)


def _meant(names: tuple[str, ...], among: tuple[str, ...]) -> bool:
    """Whether anything is left that an entry is meant for."""
    return not names or bool(_kept(names, among))


def _named(value: Any) -> str:
    """The name that a task or a model has of its own, or its text form."""
    named = [getattr(value, each, None) for each in ("name", "model")]
    return next((name for name in named if isinstance(name, str) and name), repr(value))

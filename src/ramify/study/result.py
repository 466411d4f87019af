"""What a study found: a row for every protocol, model, budget and task, question by question; and what it was made of.

This is the one record that reports read. ``Result.read(folder)`` needs no model and no task: everything is stored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Outcomes
from ramify.errors import require
from ramify.metrics.bankcurve import mean_in, over_questions
from ramify.metrics.estimate import Estimate
from ramify.types import Question

__all__ = ["KINDS", "REGIMES", "STAGES", "Agreed", "Charge", "Comparison", "Coverage", "Measure", "Result", "Row"]

REGIMES = ("trajectory", "leaves", "search")
KINDS = ("end-to-end", "shared-bank", "diagnostic")
STAGES = ("generate", "signal", "control", "decide", "surplus")


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """One protocol of one model at one budget on one task, question by question.

    ``kind`` is "end-to-end" (it made its own candidates), "shared-bank" (a rule on nested subsets of candidates that
    other rows use too) or "diagnostic" (it has seen references: never a deployable result). ``cost`` counts the
    ledger's ``unit`` by stage; a shared-bank row is charged what its subset cost to make.
    """

    task: str
    model: str
    interface: str  # the prompt interface, such as "pocket/medium" or "chat+thinking"
    name: str  # the study's name of the protocol
    protocol: str  # its text form
    regime: str
    kind: str
    k: int | None  # candidates, where that is the budget
    budget: float | None  # the declared limit a question
    unit: str
    utility: Array  # [Q] NaN: left out
    spread: Array | None  # [Q, R] replays, nested in k and paired between rules, where it was replayed
    cost: Mapping[str, Array]  # stage -> [Q]
    invalid: Array  # [Q] the share of its candidates without an answer
    capped: Array  # [Q] the share that ran into the cap
    tokens: Array  # [Q] mean completion tokens of a candidate
    bank: str  # what it was decided from: rows with equal names share it
    replicates: int = 2000  # of its interval over questions
    level: float = 0.95

    def __post_init__(self) -> None:
        require(self.regime in REGIMES, "Row.regime", self.regime, f"use one of {', '.join(REGIMES)}")
        require(self.kind in KINDS, "Row.kind", self.kind, f"use one of {', '.join(KINDS)}")
        unknown = [stage for stage in self.cost if stage not in STAGES]
        require(not unknown, "Row.cost", unknown, f"use stages of {', '.join(STAGES)}")
        shape = self.utility.shape
        for name, array in (("invalid", self.invalid), ("capped", self.capped), ("tokens", self.tokens)):
            require(array.shape == shape, f"Row.{name}", array.shape, f"use the shape {shape}")

    @property
    def label(self) -> str:
        """The protocol with its budget: what tells the rows of one model and task apart."""
        if self.k is not None:
            return f"{self.name}, k = {self.k}"
        return self.name if self.budget is None else f"{self.name}, {self.budget:.15g} {self.unit}"

    @property
    def total(self) -> Array:
        """[Q] the sum over stages."""
        return np.sum([np.broadcast_to(part, self.utility.shape) for part in self.cost.values()], axis=0)

    @property
    def mean(self) -> float:
        """The mean utility of the questions that are in."""
        return float(mean_in(self.utility[:, None])[0])

    @property
    def mean_cost(self) -> float:
        """The mean total cost of the same questions."""
        return float(mean_in(np.where(np.isnan(self.utility), np.nan, self.total)[:, None])[0])

    def estimate(self, run: str = "bootstrap") -> Estimate:
        """The mean utility with its interval over questions. Rows of one task are resampled alike: they are paired.

        Fewer than two questions have no interval.
        """
        if (~np.isnan(self.utility)).sum() < 2:
            return Estimate.descriptive(self.mean, "fewer than two questions")
        (found,) = over_questions(self.utility[:, None], self.replicates, self.level, run, (0.0, 1.0))
        return found

    def replays(self, level: float = 0.95) -> tuple[float, float] | None:
        """The central range of the mean over replays: a replay band, which says nothing about other questions."""
        if self.spread is None:
            return None
        means = mean_in(self.spread)
        low, high = np.nanquantile(means, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Utility of ``a`` minus that of ``b`` on the same questions, with an interval that says what it covers."""

    task: str
    a: str  # "model: label"
    b: str
    difference: Estimate
    questions: int
    same_bank: bool  # the same candidates: only the rule differs
    note: str = ""  # what the difference mixes: costs, interfaces, models

    @property
    def covers(self) -> tuple[str, ...]:
        return self.difference.covers


@dataclasses.dataclass(frozen=True)
class Measure:
    """One number of one bank: a functional of its profile, of all its questions or of a group of them."""

    metric: str  # its text form, such as "PassAt(k=8)"
    task: str
    model: str
    bank: str
    estimate: Estimate
    group: str = ""  # "field=algebra"; "micro" and "macro" are the means over questions and over groups
    questions: int = 0


@dataclasses.dataclass(frozen=True)
class Charge:
    """What was paid for, over all questions: candidates once, however many rows use them, and each score of them once.

    Rows say what a protocol would cost by itself; charges add up to what the study cost.
    """

    task: str
    model: str
    what: str
    cost: Mapping[str, float]  # stage -> the sum over questions

    @property
    def total(self) -> float:
        return sum(self.cost.values())


@dataclasses.dataclass(frozen=True, eq=False)
class Agreed:
    """How well subsets of k candidates rank the models as all N do, over paired replays (no confidence interval)."""

    task: str
    models: tuple[str, ...]
    measure: str  # spearman | kendall | weighted
    budgets: Array  # [K]
    mean: Array  # [K]
    low: Array  # [K] the central 95 % range over replays
    high: Array  # [K]


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Which prompt interface a configuration had on a task, and on how many questions."""

    model: str
    task: str
    interface: str
    questions: int


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """A study, run. Equal bank names in rows are the same candidates; ``shared`` says why that is allowed."""

    title: str
    card: Mapping[str, str]  # the protocol card, in text forms
    questions: Mapping[str, tuple[Question, ...]]  # by task
    rows: tuple[Row, ...]
    banks: Mapping[str, Bank]
    outcomes: Mapping[str, Outcomes]  # by bank name, behind the wall
    comparisons: tuple[Comparison, ...] = ()
    shared: tuple[str, ...] = ()  # sentences: which rows share which bank, and where sharing is not allowed
    reproduced: Mapping[str, str] = dataclasses.field(default_factory=dict)  # bank -> a status sentence
    interfaces: tuple[Coverage, ...] = ()
    measures: tuple[Measure, ...] = ()
    charges: tuple[Charge, ...] = ()
    agreements: tuple[Agreed, ...] = ()
    notes: tuple[str, ...] = ()  # what a reader must know: repeats that are not pooled, questions left out
    reused: tuple[str, ...] = ()  # sentences about this very run, which are not stored: what was there already

    @classmethod
    def read(cls, folder: str | Path, columns: Sequence[str] = ("token", "logprob")) -> Result:
        """The result stored in a study's folder, its banks with the token columns asked for.

        Banks of many millions of tokens come without tokens and texts: open their stores for those.
        """
        from ramify.study.stored import read  # here: whoever makes a Result by hand needs no store

        return read(Path(folder), columns)

    def row(self, name: str, *, task: str | None = None, model: str | None = None, k: int | None = None) -> Row:
        """The one row of that name; say its task, model or k where the name alone does not tell.

        Without ``k``, the row with the largest budget.
        """
        found = [
            each
            for each in self.rows
            if each.name == name and task in (None, each.task) and model in (None, each.model) and k in (None, each.k)
        ]
        names = sorted({each.name for each in self.rows})
        require(found, "row", name, f"the study has {', '.join(names)}")
        many = sorted({(each.task, each.model) for each in found})
        require(len(many) == 1, "row", name, f"say which of {many}")
        return max(found, key=lambda each: each.k or each.budget or 0)

    @property
    def mixed(self) -> tuple[str, ...]:
        """The tasks on which models were asked through different prompt interfaces: their comparison mixes the two."""
        by_task: dict[str, set[str]] = {}
        for each in self.interfaces:
            by_task.setdefault(each.task, set()).add(each.interface)
        return tuple(task for task, interfaces in by_task.items() if len(interfaces) > 1)

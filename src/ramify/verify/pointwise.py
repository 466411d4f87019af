"""A reference-free verifier that looks at one candidate: a critique, then a grade from A to T for every criterion."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Signal
from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require
from ramify.ledger import Work
from ramify.verify.judge import Judge, Replies, Reply, Task, ask, shortened, slots
from ramify.verify.labels import GRADES, expected_grade, visible

__all__ = ["GENERAL", "MATHEMATICS", "Pointwise", "PointwiseBy", "Rubric", "Scores"]

PROMPT = """\
Assess one attempt at a question. You have no reference answer; do not assume that the attempt is right or wrong.

Criteria:
{criteria}

First write a short critique of the attempt under each criterion. Then finish with one line for each criterion,
exactly in this form, with a letter from A (best) to T (worst):
{form}

<question>
{question}
</question>

<attempt>
{candidate}
</attempt>

Critique:"""


@method
class Rubric:
    """What is looked at: names, each with the question it asks."""

    criteria: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.criteria]
        ok = len(names) > 0 and len(set(names)) == len(names) and all(names)
        require(ok, "Rubric.criteria", names, "give each criterion a name of its own")

    @property
    def marks(self) -> tuple[str, ...]:
        """What stands before each grade."""
        return tuple(f"{name}:" for name, _ in self.criteria)


MATHEMATICS = Rubric(
    (
        ("Problem understanding", "Are the quantities, conditions and what is asked for read correctly?"),
        ("Reasoning validity", "Does every step follow, with correct algebra and arithmetic?"),
        ("Conclusion support", "Is the final answer what the reasoning leads to, complete and in the form asked for?"),
    )
)
GENERAL = Rubric(
    (
        ("Factual or technical accuracy", "Are the facts, definitions and technical claims right?"),
        ("Logical coherence", "Do the arguments hang together without contradiction or gap?"),
        ("Completeness", "Is everything that the question asks for dealt with?"),
    )
)


class Scores(NamedTuple):
    """What a rubric verifier says of a bank."""

    values: Array  # [Q, N] the mean over criteria, NaN where one is missing
    cost: Array  # [Q, N] tokens read and written
    criteria: Array  # [Q, N, C]
    visible: Array  # [Q, N, C] the mass of A to T among what was shown


@method
class Pointwise:
    """The mean over criteria of (E[v] - 1) / 19, v(A) = 20 ... v(T) = 1 (after Kwok et al., 2026, without tournament).

    The expectation is over the visible mass of the letters. An ordinal score in [0, 1], not a calibrated one.
    ``by(judge)`` makes it evidence that a run can use and charge.
    """

    rubric: Rubric = MATHEMATICS
    cap: int = 1024
    top: int = 20
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        require(is_whole(self.cap, 1), "Pointwise.cap", self.cap, "use a number of tokens >= 1")
        require(is_whole(self.top, 1), "Pointwise.top", self.top, "use a number of alternatives >= 1")

    def __call__(self, bank: Bank, judge: Judge, replies: Replies | None = None) -> Scores:
        """Score every drawn candidate of a bank that keeps its texts."""
        if bank.text is None:
            raise InvalidValue("Bank.text = None: a verifier reads texts: keep them in the bank")
        rows = np.argwhere(bank.drawn).tolist()
        tasks = [self.task(bank.questions[q].prompt, bank.text[q, n] or "", judge) for q, n in rows]
        size = len(self.rubric.criteria)
        criteria, mass = np.full((*bank.shape, size), np.nan), np.full((*bank.shape, size), np.nan)
        cost = np.zeros(bank.shape)
        for (q, n), reply in zip(rows, ask(judge, tasks, replies), strict=True):
            criteria[q, n], mass[q, n], cost[q, n] = *self.read(reply), reply.cost
        return Scores(criteria.mean(axis=-1), cost, criteria, mass)

    def task(self, question: str, candidate: str, judge: Judge) -> Task:
        criteria = "\n".join(f"- {name}: {asks}" for name, asks in self.rubric.criteria)
        form = "\n".join(f"{mark} <letter>" for mark in self.rubric.marks)

        def build(cut: Callable[[str], str]) -> str:
            values = {"criteria": criteria, "form": form, "question": question, "candidate": cut(candidate)}
            return slots(PROMPT, values)

        return Task(shortened(judge, build, len(candidate), self.cap), GRADES, self.rubric.marks, self.cap, self.top)

    def read(self, reply: Reply) -> tuple[Array, Array]:
        """``[C]`` the score of each criterion, and the visible mass it was read from."""
        found = reply.logprobs(len(GRADES))
        return expected_grade(found), visible(found)

    def by(self, judge: Judge, replies: Replies | None = None) -> PointwiseBy:
        return PointwiseBy(self, judge, Replies() if replies is None else replies)


@dataclasses.dataclass(frozen=True, eq=False)
class PointwiseBy:
    """The verifier with its judge: ``Evidence`` for ``Leaves(evidence=(("point", verifier.by(judge)),))``."""

    verifier: Pointwise
    judge: Judge
    replies: Replies

    def __call__(self, bank: Bank) -> Signal:
        found = self.verifier(bank, self.judge, self.replies)
        return Signal(found.values, found.cost)

    def worst(self, prompt: int, cap: int) -> Work:
        """What a leaf of at most ``cap`` tokens can cost: the context, or the instructions, the leaf and the reply."""
        del prompt
        if self.judge.context is not None:
            return Work(generated=self.judge.context)
        raise InvalidValue(f"Judge.context = None: {cap} tokens of a leaf are not as many here: bound it to be charged")

"""CompassVerifier: is the final answer the reference's? A grader behind the wall, never evidence.

A verifier that reads the reference cannot be deployed. Its type says so: it takes references, which no ``Evidence``
has, and gives ``Outcomes``, which no rule, stop or controller can be handed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Outcomes
from ramify.describe import method, text
from ramify.errors import InvalidValue, require
from ramify.verify.judge import Judge, Replies, Task, ask, shortened, slots
from ramify.verify.labels import contextual, direct, visible

__all__ = ["COMPASS_3B", "COMPASS_3B_CONTEXTUAL", "COMPASS_7B", "OUTCOME_PROMPT", "CompassVerifier", "Graded"]

LABELS = ("A", "B", "C")  # correct, incorrect, invalid
SCORES = ("direct", "contextual")
# In our words: the released prompt is under a licence of its own. To repeat published numbers, pass its text as
# ``template``, with the slots {question}, {reference} and {candidate}.
OUTCOME_PROMPT = """\
You are grading an answer. Compare the candidate's final answer with the reference answer to the question.

- The reference is right and the question is well posed: do not solve it again, and do not doubt them.
- Only the final answer counts. Mistakes in the reasoning do not matter if it agrees with the reference.
- Different notations of the same value, formula or statement agree. Where several parts are asked for, all must agree.
- Ignore boxes and other formatting around the answer.

Reply with one letter:
A: the final answer agrees with the reference
B: it does not
C: there is no answer to compare: cut off, endless repetition, a refusal, or about something else

<question>
{question}
</question>

<reference>
{reference}
</reference>

<candidate>
{candidate}
</candidate>

Judgement (one letter):"""


@dataclasses.dataclass(frozen=True, eq=False)
class Graded:
    """What a reference-assisted verifier made of a bank. ``outcomes`` are P(A), behind the wall."""

    outcomes: Outcomes
    probability: Array  # [Q, N, 3] of A, B and C; NaN where missing
    visible: Array  # [Q, N] the labels' mass among what was shown
    cost: Array  # [Q, N] tokens read and written, were each candidate asked about alone


@method
class CompassVerifier:
    """P(A) that the final answer agrees with the reference (Liu et al., 2025): direct, or against a null prompt.

    "direct" is the softmax of the label log-probabilities; "contextual" subtracts those of a prompt whose slots say
    ``null`` and divides by ``temperature``. Neither is calibrated. ``model`` is who must be asked, if named. A
    candidate that does not fit loses its middle, never the question or the reference.
    """

    score: str = "direct"
    model: str = ""
    temperature: float = 1.5
    null: str = "N/A"
    template: str = OUTCOME_PROMPT
    top: int = 20
    role: ClassVar[str] = "reference-assisted"

    def __post_init__(self) -> None:
        require(self.score in SCORES, "CompassVerifier.score", self.score, f"use one of {', '.join(SCORES)}")
        missing = [name for name in ("question", "reference", "candidate") if "{" + name + "}" not in self.template]
        require(not missing, "CompassVerifier.template", missing, "give the template these slots")
        require(self.temperature > 0, "CompassVerifier.temperature", self.temperature, "use a number > 0")

    def __call__(
        self, bank: Bank, references: Mapping[str, str], judge: Judge, replies: Replies | None = None
    ) -> Graded:
        """Grade every drawn candidate of a bank that keeps its texts. ``references`` are by question id."""
        if bank.text is None:
            raise InvalidValue("Bank.text = None: a verifier reads texts: keep them in the bank")
        ok = self.model in ("", judge.name)
        require(ok, "Judge.name", judge.name, f"this verifier asks {self.model}")
        lacking = [each.id for each in bank.questions if each.id not in references]
        require(not lacking, "references", lacking[:3], "give one for every question of the bank")
        rows = np.argwhere(bank.drawn).tolist()
        tasks = [self.task(bank, references, judge, q, n) for q, n in rows]
        found = ask(judge, [*tasks, self.empty], replies)
        logprobs = np.array([reply.logprobs(len(LABELS))[0] for reply in found[:-1]]).reshape(len(rows), len(LABELS))
        null = found[-1].logprobs(len(LABELS))[0]
        shares = direct(logprobs) if self.score == "direct" else contextual(logprobs, null, self.temperature)
        probability, mass, cost = np.full((*bank.shape, 3), np.nan), np.full(bank.shape, np.nan), np.zeros(bank.shape)
        at = tuple(np.array(rows, dtype=np.int64).reshape(-1, 2).T)
        probability[at], mass[at], cost[at] = shares, visible(logprobs), [reply.cost for reply in found[:-1]]
        return Graded(
            Outcomes.of(bank, probability[..., 0], f"{text(self)} by {judge.identity}"), probability, mass, cost
        )

    def task(self, bank: Bank, references: Mapping[str, str], judge: Judge, q: int, n: int) -> Task:
        assert bank.text is not None
        question, candidate = bank.questions[q], bank.text[q, n] or ""

        def build(cut: Callable[[str], str]) -> str:
            values = {"question": question.prompt, "reference": references[question.id], "candidate": cut(candidate)}
            return slots(self.template, values)

        return Task(shortened(judge, build, len(candidate), 1), LABELS, top=self.top)

    @property
    def empty(self) -> Task:
        """The null prompt: asked once, whatever the number of candidates."""
        names = ("question", "reference", "candidate")
        return Task(slots(self.template, dict.fromkeys(names, self.null)), LABELS, top=self.top)


# What the paper's blocks use: P(A) of the 7B on the repeated block, both scores of the 3B on the signal-rich one.
COMPASS_7B = CompassVerifier(model="opencompass/CompassVerifier-7B")
COMPASS_3B = CompassVerifier(model="opencompass/CompassVerifier-3B")
COMPASS_3B_CONTEXTUAL = CompassVerifier("contextual", model="opencompass/CompassVerifier-3B")

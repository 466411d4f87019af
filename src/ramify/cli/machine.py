"""A task, a model and a decoder, from their text to what a run needs: questions, an arm, a parser, grades."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ramify.bank import Bank, Outcomes, Proposal
from ramify.cli.parts import value
from ramify.describe import text
from ramify.errors import InvalidValue, require
from ramify.models import Pocket, decode_with
from ramify.models.pocket.model import DATA
from ramify.run import Arm
from ramify.types import Question, Sampler

__all__ = ["Asked", "Machine", "checkpoints", "model_of", "task_of"]

DRAWN = ("token", "role", "logprob", "log_q", "rank", "support", "fallback")  # what the token loop records
TOP = ("top_ids", "top_logprobs")


def checkpoints() -> list[str]:
    """The checkpoints that come with the package."""
    return sorted(folder.parent.name for folder in DATA.glob("*/config.json"))


def model_of(written: str, option: str = "--model") -> Any:
    """A model from its text; the name of a checkpoint that comes with the package is enough."""
    if written in checkpoints():
        return Pocket(written)
    if written.isidentifier():
        raise InvalidValue(
            f"{option} {written}: use one of {', '.join(checkpoints())}, or a text form such as Pocket('main')"
        )
    return value(written, option, "model")


def task_of(written: str, option: str = "--task") -> Any:
    """A task from its text."""
    found = value(written, option, "task")
    ok = all(hasattr(found, name) for name in ("questions", "parse"))
    require(ok, option, written, "that is no task; `ramify tasks` lists them")
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Asked:
    """A task and some of its questions. What is right is asked for last, and by grading alone."""

    task: Any
    questions: tuple[Question, ...]

    @classmethod
    def of(cls, written: str, many: int, split: str = "eval") -> Asked:
        task = task_of(written)
        return cls(task, tuple(task.questions(many, split=split)))

    def parse(self, text: str, question: Question) -> Any:
        return self.task.parse(text, question).answer

    def grades(self, answers: Sequence[Sequence[Any]]) -> np.ndarray:
        """[Q, N] of rows of answers; ⊥ is wrong."""
        references = self.task.references(list(self.questions))
        rows = zip(answers, references, strict=True)
        return np.array([[float(self.task.grade(answer, gold)) for answer in row] for row, gold in rows])

    def outcomes(self, bank: Bank) -> Outcomes:
        """The grades of a bank on these questions, undrawn candidates left out."""
        place = {question.id: q for q, question in enumerate(self.questions)}
        require(
            [place.get(each.id) for each in bank.questions] == list(range(len(place))), "bank", "other questions", ""
        )
        table = self.grades([[bank.answer(q, n) for n in range(bank.shape[1])] for q in range(bank.shape[0])])
        return Outcomes.of(bank, np.where(bank.drawn, table, np.nan), f"{text(self.task)}.grade")


@dataclasses.dataclass(frozen=True, eq=False)
class Machine:
    """A model under a decoder."""

    model: Any
    decoder: Any
    sampler: Sampler

    @classmethod
    def of(cls, model: str, decoder: str, batch: int, workers: int = 1, precision: str = "") -> Machine:
        found, operator = model_of(model), value(decoder, "--decode", "decoder")
        if precision:
            require(hasattr(found, "precision"), "--precision", precision, f"{found!r} has only one")
            found = dataclasses.replace(found, precision=precision)
        return cls(found, operator, decode_with(found, operator, batch=batch, workers=workers))

    def arm(self, proposal: Proposal, sampler: Sampler | None = None) -> Arm:
        return Arm(proposal, sampler or self.sampler, self.encode)

    def proposal(self, run: str, top: int = 0, interface: str = "") -> Proposal:
        return Proposal(
            run=run,
            protocol=text(self.decoder),
            model=repr(self.model),
            interface=interface,
            signals=(*DRAWN, *(TOP if top else ())),
            top=top,
            stage="raw" if top else "unknown",
        )

    @property
    def encode(self) -> Callable[[Question], tuple[int, ...]]:
        """A question as this model's prompt."""
        return lambda question: tuple(self.model.encode(question.prompt))

    def one_token(self, written: str, option: str) -> int:
        """The single token that spells a string; escapes such as ``\\n`` are read."""
        plain = written.encode().decode("unicode_escape")
        tokens = self.model.encode(plain)
        require(len(tokens) == 1, option, written, f"it is {len(tokens)} tokens of {self.model!r}, and has to be one")
        return int(tokens[0])

"""A task, a model and a decoder, from their text to what a run needs: questions, an arm, a parser, grades."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ramify.bank import Proposal
from ramify.cli.parts import value
from ramify.cli.terminal import printable
from ramify.decode import Temperature
from ramify.errors import InvalidValue, require
from ramify.models import Pocket
from ramify.run import Arm
from ramify.study.fields import checkpoints
from ramify.study.source import answers, arm_of, held_of, is_server, proposal_of
from ramify.study.spec import System
from ramify.study.world import Asked
from ramify.types import Question, Sampler

__all__ = ["Asked", "Machine", "asked_of", "checkpoints", "model_of", "task_of"]

DRAWN = ("token", "role", "logprob", "log_q", "rank", "support", "fallback")  # what the token loop records
TOP = ("top_ids", "top_logprobs")


def model_of(written: str, option: str = "--model") -> Any:
    """A model from its text; the name of a checkpoint that comes with the package is enough."""
    if written in checkpoints():
        return Pocket(written)
    if written.replace("-", "_").isidentifier():
        known = f"use one of {', '.join(checkpoints())}, or a text form such as Pocket('main')"
        raise InvalidValue(f"{option} {written}: {known}")
    found = value(written, option, "model")
    ok = is_server(found) or all(hasattr(found, name) for name in ("start", "encode"))
    require(ok, option, written, "that is no model that answers questions; `ramify models` lists them")
    return found


def task_of(written: str, option: str = "--task") -> Any:
    """A task from its text."""
    found = value(written, option, "task")
    ok = all(hasattr(found, name) for name in ("questions", "references", "parse", "grade"))
    require(ok, option, written, "that is no task that is asked once and graded; `ramify tasks` lists them")
    return found


def asked_of(written: str, many: int) -> Asked:
    """Some questions of a task, with what is right behind the wall."""
    task = task_of(written)
    questions = tuple(task.questions(many))
    require(questions, "--questions", many, f"{written} has none")
    return Asked(task, questions, tuple(task.references(list(questions))))


@dataclasses.dataclass(frozen=True, eq=False)
class Machine:
    """A model under a decoder: a local one in the token loop, or a server that samples by itself."""

    system: System
    decoder: Any

    @classmethod
    def of(cls, model: str, decoder: str, batch: int, workers: int = 1, precision: str = "") -> Machine:
        found = model_of(model)
        if precision:
            require(hasattr(found, "precision"), "--precision", precision, f"{found!r} has only one")
            found = dataclasses.replace(found, precision=precision)
        name = str(getattr(found, "name", getattr(found, "model", "model")))
        # A server runs what its own text says; temperature 1 is not even sent to one, as it changes nothing.
        usual = found.decoder if is_server(found) else Temperature(1.0)
        operator = value(decoder, "--decode", "decoder") if decoder else usual
        return cls(System(found, name, batch=batch, workers=workers), operator)

    @property
    def model(self) -> Any:
        return self.system.model

    def proposal(self, run: str, top: int = 0) -> Proposal:
        """What its candidates are drawn from, and what is recorded of them."""
        found = proposal_of(self.system, self.decoder, run, top)
        return found if is_server(self.model) else dataclasses.replace(found, signals=(*DRAWN, *(TOP if top else ())))

    def arm(
        self, proposal: Proposal, questions: Sequence[Question], watch: Callable[[Sampler], Sampler] | None = None
    ) -> Arm:
        """The source of candidates for these questions, watched."""
        found = arm_of(self.system, self.decoder, proposal, questions)
        return found if watch is None else dataclasses.replace(found, sampler=watch(found.sampler))

    def held(self) -> Sampler:
        """The same with the end suppressed."""
        return held_of(self.system, self.decoder)

    def ready(self, questions: Sequence[Question], n: int, cap: int, top: int, most: float, sure: bool) -> None:
        """Ask a server whether it would answer, and a person whether a large run is meant, before any work."""
        if not is_server(self.model):
            return
        why = answers(self.system, self.decoder, cap, top)
        if why:
            raise InvalidValue(f"--model {self.system.name}: {why}; start the server, or correct the model's text")
        from ramify.models.endpoint import confirm, plan

        lengths = [len(question.prompt) // 3 for question in questions]  # tokens, roughly: nothing is counted yet
        made = plan(lengths, n, cap, top=top)
        if not confirm(made, most, lambda text: sure or _said_yes(text)):
            raise InvalidValue(
                "not started: pass --yes to start without being asked, or lower -n, --cap or --questions"
            )

    def one_token(self, written: str, option: str) -> int:
        """The single token that spells a string; escapes such as ``\\n`` are read."""
        require(hasattr(self.model, "encode"), option, written, "a server does not say its tokens: use a local model")
        try:
            plain = written.encode("latin-1", "backslashreplace").decode("unicode_escape")
            tokens = self.model.encode(plain)
        except UnicodeDecodeError:
            raise InvalidValue(f"{option} {written}: no such escape; write \\n for a new line, \\\\ for \\") from None
        except InvalidValue as error:
            raise InvalidValue(f"{option} {written}: {error}") from None
        require(len(tokens) == 1, option, written, f"it is {len(tokens)} tokens of {self.model!r}, and has to be one")
        return int(tokens[0])


def _said_yes(text: str) -> bool:
    """The answer of a person; nobody at the terminal means no."""
    print(printable(text), file=sys.stderr)
    return sys.stdin.isatty() and input("[y/N] ").strip().lower() in ("y", "yes")

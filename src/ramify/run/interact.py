"""Interactive trajectories: a director that lets an environment answer every action of the model.

The model writes a line, the environment's answer is appended as the protocol's own tokens, and so on until the
environment is over. What it says is charged as control and carries no log q, as everything that is appended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.run.sequential import Action, Append, Continue, Halt, Trace
from ramify.types import Question

__all__ = ["Environment", "Interact"]


class Environment(Protocol):
    """A task with a state that is replayed from the text: ``play`` gives it, and what was said to the last action."""

    def play(self, question: Question, text: str) -> tuple[Any, str]: ...


@method
class Interact:
    """One action a line: generate up to ``until`` (the tokens that end a line), let the environment answer, go on.

    A step may take ``cap`` tokens. It halts with "over" when the environment does, or with what ended the model.
    """

    environment: Environment
    encode: Callable[[str], Iterable[int]]
    until: tuple[int, ...]
    cap: int = 64

    def __post_init__(self) -> None:
        require(self.until, "Interact.until", self.until, "name the tokens that end an action, such as the newline")
        require(is_whole(self.cap, 1), "Interact.cap", self.cap, "use a number of tokens >= 1")

    def act(self, trace: Trace, left: int) -> Action:
        state, said = self.environment.play(trace.question, trace.text)
        if state.over:
            return Halt("over")
        if trace.ended == "":
            room = min(self.cap, left)
            return Continue(room, until=self.until) if room > 0 else Halt("length")
        if trace.ended != "stop:until":
            return Halt(trace.ended)
        return Append(tuple(int(token) for token in self.encode(f"{said}\n")), "observation")

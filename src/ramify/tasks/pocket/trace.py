"""The grammar of a pocket trajectory, and what can be said about one without and with its question.

A trajectory is lines, each closed by a newline, so that a step ends where a line does:

    trajectory = attempt ("wait" attempt)*
    attempt    = step* ("?" step)* (">" answer)?

``?`` lines re-evaluate the steps (high effort). ``wait`` throws the attempt away. The end-of-text token may
follow any line. The answer of a trajectory is its last complete ``>`` line, as in budget forcing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["WAIT", "Derivation", "Parsed", "Step", "keeps", "last_answer", "lines", "steps", "succeeds"]

WAIT = "wait"
ANSWER, CHECK = ">", "?"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a text says. ``answer`` is None (⊥) unless ``status`` is "ok".

    ``status``: ok | missing (no complete answer line) | malformed (not the answer grammar) | illegal (against
    the rules).
    """

    reasoning: str
    answer: str | None
    artefact: str | None  # the answer as it was written
    status: str


@dataclass(frozen=True, slots=True)
class Step:
    """One line with its ground truth: ``text[start:end]`` is the line with its newline.

    ``right``: the line is legal where it stands and its equation is true. After the first wrong line of an
    attempt nothing stands any more, and ``right`` says only whether the equation is true.
    ``alive``: every line of this attempt so far is right and the attempt can still succeed.
    """

    start: int
    end: int
    kind: str  # step | check | answer | wait
    right: bool
    alive: bool


class Derivation(Protocol):
    """What has been established in one attempt. Immutable: a step gives the next one."""

    def step(self, line: str) -> Derivation | None:
        """The derivation after this line; None if the line is wrong or illegal."""

    def accepts(self, answer: str) -> bool:
        """Whether this answer is right and, once there are steps, is what they derived."""

    def alive(self) -> bool:
        """Whether some further steps and an answer succeed. Exact."""


def lines(text: str) -> list[str]:
    """The complete lines; an unfinished last line says nothing yet.

    >>> lines("3+4=7\\n7*2=1")
    ['3+4=7']
    """
    return text.split("\n")[:-1]


def last_answer(text: str) -> tuple[str, str | None]:
    """The reasoning before the last complete answer line, and what that line says.

    >>> last_answer("3+4=7\\n>7\\nwait\\n3+4")
    ('3+4=7\\n', '7')
    """
    at = len(text)
    while (end := text.rfind("\n", 0, at)) >= 0:
        start = text.rfind("\n", 0, end) + 1
        if text.startswith(ANSWER, start):
            return text[:start], text[start + 1 : end]
        at = start
    return text, None


def steps(start: Derivation, text: str, holds: Callable[[str], bool]) -> tuple[Step, ...]:
    """The ground truth of every complete line of a trajectory."""
    found = []
    state: Derivation | None = start
    written: list[str] = []
    at, answered = 0, False
    for line in lines(text):
        kind = _kind(line)
        if kind == "wait":
            right, state, written, answered = True, start, [], False
        elif kind == "answer":
            right = state is not None and not answered and state.accepts(line[1:])
            state, answered = state if right else None, True
        elif kind == "check":
            right = line[1:] in written and holds(line[1:])
        else:
            stood = state is not None and not answered  # up to here every line of the attempt was right
            state = state.step(line) if state is not None and not answered else None
            right = state is not None if stood else holds(line)
            written.append(line)
        alive = state is not None and (answered or state.alive())
        found.append(Step(at, at + len(line) + 1, kind, right, alive))
        at += len(line) + 1
    return tuple(found)


def keeps(start: Derivation, text: str, attempts: int | None = 1) -> bool:
    """The sound partial check H(x, z): False only if no completion of ``text`` can succeed.

    To succeed is to end, after at most ``attempts`` attempts (None: any number), in an attempt whose steps
    are all right and whose answer is right and follows from them. A wrong step therefore rejects the attempt
    that made it, and rejects the trajectory once no attempt is left. ``?`` lines and an unfinished last line
    are never held against a prefix. Success asks more than the grade, which looks at the answer alone.
    """
    state, answered, used = _replay(start, text)
    if attempts is not None and used > attempts:
        return False
    if attempts is None or used < attempts:
        return True
    return state is not None and (answered or state.alive())


def succeeds(start: Derivation, text: str, attempts: int | None = 1) -> bool:
    """Whether a whole trajectory succeeds, in the sense of ``keeps``."""
    state, answered, used = _replay(start, text)
    return state is not None and answered and (attempts is None or used <= attempts) and text.endswith("\n")


def _replay(start: Derivation, text: str) -> tuple[Derivation | None, bool, int]:
    """The last attempt's derivation (None: a wrong line), whether it has answered, and how many there are."""
    state: Derivation | None = start
    answered, used = False, 1
    for line in lines(text):
        kind = _kind(line)
        if kind == "wait":
            state, answered, used = start, False, used + 1
        elif state is None or kind == "check":
            continue
        elif kind == "answer":
            state, answered = state if not answered and state.accepts(line[1:]) else None, True
        else:
            state = None if answered else state.step(line)
    return state, answered, used


def _kind(line: str) -> str:
    if line == WAIT:
        return "wait"
    return {ANSWER: "answer", CHECK: "check"}.get(line[:1], "step")

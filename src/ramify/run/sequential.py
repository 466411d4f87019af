"""Single-trajectory scaling: one active prefix, and a director that says what happens to it next.

A director sees the trace and what is left of the budget, and chooses: continue, append a string of the protocol's own,
or stop. Appended tokens are charged as control and carry no log q. Continuing is asking a sampler for the same key with
a longer prefix: draws at positions that are there are not made again, and those at new positions come from the same
stream, so a trajectory that was interrupted is the one that was not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.ledger import Ledger, Work
from ramify.run.ahead import Asked, Result
from ramify.run.leaf import Arm
from ramify.types import APPENDED, Key, Leaf, Prompt, Question, Request, Sampler

__all__ = [
    "Action",
    "Append",
    "BudgetForcing",
    "Continue",
    "Director",
    "Halt",
    "RejectToLength",
    "Revise",
    "SelfRefine",
    "Sequential",
    "Trace",
    "Trajectory",
    "run_sequential",
]


# ------------------------------------------------------------------------------------------------------ traces, actions


@dataclasses.dataclass(frozen=True, eq=False)
class Trace:
    """One trajectory so far: its tokens, who wrote them, and how the last segment ended."""

    question: Question
    sample: int
    prompt: Prompt
    tokens: tuple[int, ...] = ()
    role: tuple[int, ...] = ()
    text: str = ""
    ended: str = ""  # eos | length | stop:...; empty before anything was generated, and after an append
    written: tuple[str, ...] = ()  # what the protocol has written into it, by name
    restarts: int = 0
    discarded: int = 0  # tokens thrown away by restarts

    @property
    def own(self) -> int:
        """Tokens the model wrote."""
        return sum(role != APPENDED for role in self.role)


@dataclasses.dataclass(frozen=True)
class Continue:
    """Generate up to ``tokens`` more, the end suppressed for the first ``least``. ``arm`` may change the decoder."""

    tokens: int
    arm: int = 0
    until: tuple[int, ...] = ()
    least: int = 0


@dataclasses.dataclass(frozen=True)
class Append:
    """Write tokens of the protocol's own, over the end that the model drew. The trace remembers them by ``name``."""

    tokens: tuple[int, ...]
    name: str


@dataclasses.dataclass(frozen=True)
class Halt:
    """The trajectory is finished. ``restart`` throws it away instead and begins anew, under another key."""

    reason: str
    restart: bool = False


Action: TypeAlias = Continue | Append | Halt


class Director(Protocol):
    """A function from the trace and the tokens that may still be spent to the next action."""

    def act(self, trace: Trace, left: int) -> Action: ...


# ------------------------------------------------------------------------------------------------------------ directors


@method
class BudgetForcing:
    """s1's control of one trajectory (Muennighoff et al., 2025).

    Think for at most ``most`` tokens. When the model ends its thinking (with ``end``, or with the end of the text) and
    was held back fewer than ``waits`` times, the end is taken back and ``wait`` is appended; the next token may not be
    an end. When thinking is over, ``close`` is appended (after ``cut`` if it ran into the cap) and the answer gets
    ``answer`` tokens; 0 means that the thinking holds the answer. Nothing is truncated.
    """

    waits: int = 1
    wait: tuple[int, ...] = ()
    most: int = 512
    end: tuple[int, ...] = ()
    close: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()
    answer: int = 0

    def __post_init__(self) -> None:
        require(is_whole(self.waits), "BudgetForcing.waits", self.waits, "use a number >= 0")
        require(is_whole(self.most, 1), "BudgetForcing.most", self.most, "use a number of tokens >= 1")
        require(is_whole(self.answer), "BudgetForcing.answer", self.answer, "use a number of tokens >= 0")
        require(self.wait or not self.waits, "BudgetForcing.wait", self.wait, "give the tokens to append")
        require(
            self.close or not self.answer, "BudgetForcing.close", self.close, "give the tokens that open the answer"
        )

    def act(self, trace: Trace, left: int) -> Action:
        if "close" in trace.written:
            return Halt(trace.ended) if trace.ended else Continue(min(self.answer, left))
        waited, room = trace.written.count("wait"), min(self.most - trace.own, left)
        if not trace.ended and room > 0:
            return Continue(room, until=self.end, least=1 if waited else 0)
        if trace.ended not in ("", "length") and waited < self.waits and room > 0:
            return Append(self.wait, "wait")
        if self.answer:
            return Append((*(self.cut if trace.ended in ("", "length") else ()), *self.close), "close")
        return Halt(trace.ended or "length")


@method
class Revise:
    """Verify and revise: after each attempt ``check(question, text)`` says whether it is done; if not, ``critique``
    is appended and another follows, ``rounds`` in all. Without a check every attempt is followed by another.

    The check sees no reference.
    """

    rounds: int = 2
    critique: tuple[int, ...] = ()
    cap: int = 512
    check: Callable[[Question, str], bool] | None = None

    def __post_init__(self) -> None:
        require(is_whole(self.rounds, 1), "Revise.rounds", self.rounds, "use a number of attempts >= 1")
        require(is_whole(self.cap, 1), "Revise.cap", self.cap, "use a number of tokens >= 1")

    def act(self, trace: Trace, left: int) -> Action:
        if trace.ended == "":
            room = min(self.cap, left)
            return Continue(room, least=1 if trace.written else 0) if room > 0 else Halt("length")
        passed = self.check is not None and self.check(trace.question, trace.text)
        if passed or trace.ended != "eos" or len(trace.written) >= self.rounds - 1:
            return Halt("checked" if passed else trace.ended)
        return Append(self.critique, "critique")


@method
class SelfRefine:
    """Self-refine (Madaan et al., 2023): an answer, then ``rounds`` times the model's own critique and a new answer.

    ``critique`` and ``refine`` are appended before each; ``done(critique text)`` may end it early.
    """

    rounds: int = 1
    critique: tuple[int, ...] = ()
    refine: tuple[int, ...] = ()
    cap: int = 512
    done: Callable[[str], bool] | None = None

    def __post_init__(self) -> None:
        require(is_whole(self.rounds), "SelfRefine.rounds", self.rounds, "use a number of rounds >= 0")
        require(is_whole(self.cap, 1), "SelfRefine.cap", self.cap, "use a number of tokens >= 1")
        for name in ("critique", "refine"):
            require(getattr(self, name) or not self.rounds, f"SelfRefine.{name}", (), "give the tokens to append")

    def act(self, trace: Trace, left: int) -> Action:
        if trace.ended == "":
            room = min(self.cap, left)
            return Continue(room, least=1 if trace.written else 0) if room > 0 else Halt("length")
        critiqued = bool(trace.written) and trace.written[-1] == "critique"
        if critiqued and self.done is not None and self.done(trace.text):
            return Halt("done")
        if critiqued:
            return Append(self.refine, "refine")
        return Halt(trace.ended) if trace.written.count("refine") >= self.rounds else Append(self.critique, "critique")


@method
class RejectToLength:
    """Sample until a trajectory ends within ``most`` tokens, at most ``tries`` times.

    It conditions the proposal on being short, and what it throws away is charged.
    """

    most: int
    tries: int = 8

    def __post_init__(self) -> None:
        require(is_whole(self.most, 1), "RejectToLength.most", self.most, "use a number of tokens >= 1")
        require(is_whole(self.tries, 1), "RejectToLength.tries", self.tries, "use a number of tries >= 1")

    def act(self, trace: Trace, left: int) -> Action:
        if trace.ended == "":
            return Continue(min(self.most, left)) if min(self.most, left) > 0 else Halt("length")
        if trace.ended == "eos" or trace.restarts + 1 >= self.tries:
            return Halt(trace.ended)
        return Halt("too long", restart=True)


# ------------------------------------------------------------------------------------------------------------- the loop


@method
class Sequential:
    """A single-trajectory protocol: ``samples`` trajectories a question under a director, of at most ``cap`` tokens."""

    director: Director
    cap: int = 2048
    samples: int = 1

    def __post_init__(self) -> None:
        require(is_whole(self.cap, 1), "Sequential.cap", self.cap, "use a number of tokens >= 1")
        require(is_whole(self.samples, 1), "Sequential.samples", self.samples, "use a number of trajectories >= 1")


@dataclasses.dataclass(frozen=True, eq=False)
class Trajectory:
    """A finished trajectory, what was done to it, and what it cost."""

    trace: Trace
    leaf: Leaf | None  # the whole of it, each token as it was drawn; None if nothing could be paid for
    answer: Any
    ended: str
    actions: tuple[Action, ...]
    ledger: Ledger


def run_sequential(
    protocol: Sequential,
    questions: Sequence[Question],
    arms: Sequence[Arm],
    ledger: Ledger,
    parse: Callable[[str, Question], Any],
    *,
    text: Callable[[Sequence[int]], str],
    end: int,
    held: Sequence[Sampler] = (),
) -> list[Trajectory]:
    """Run every trajectory under its director, ``ledger`` each. They advance together; none depends on another.

    ``text`` spells tokens, ``end`` is the model's end token, and ``held`` are the arms' samplers with the end
    suppressed, for directors that forbid it for a token.
    """
    setting = _Setting(protocol, tuple(arms), parse, text, end, len(held) > 0)
    programs = [
        setting.program(question, sample, ledger) for question in questions for sample in range(protocol.samples)
    ]
    return together(programs, [*(arm.sampler for arm in arms), *held])


def together(programs: Sequence[Generator[Asked, Leaf, Result]], samplers: Sequence[Sampler]) -> list[Result]:
    """Run independent programs to their ends, answering all that wait in one batch of each sampler."""
    results: dict[int, Result] = {}
    waiting: dict[int, Asked] = {}
    answers: dict[int, Leaf | None] = dict.fromkeys(range(len(programs)))
    while answers:
        for number, leaf in answers.items():
            try:
                waiting[number] = next(programs[number]) if leaf is None else programs[number].send(leaf)
            except StopIteration as stop:
                results[number] = stop.value
        place = {asked.request.key: number for number, asked in waiting.items()}
        answers = {}
        for arm, sampler in enumerate(samplers):
            mine = [asked.request for asked in waiting.values() if asked.arm == arm]
            answers |= {place[leaf.key]: leaf for leaf in sampler(mine)} if mine else {}
        waiting = {}
    return [results[number] for number in range(len(programs))]


@dataclasses.dataclass(frozen=True)
class _Setting:
    """What the trajectories of a run share."""

    protocol: Sequential
    arms: tuple[Arm, ...]
    parse: Callable[[str, Question], Any]
    text: Callable[[Sequence[int]], str]
    end: int
    can_hold: bool

    def program(self, question: Question, sample: int, ledger: Ledger) -> Generator[Asked, Leaf, Trajectory]:
        """Let the director act until it halts, or until nothing more can be paid for."""
        trace, leaf, actions = Trace(question, sample, self.arms[0].encode(question)), None, list[Action]()
        while True:
            left = self.affordable(ledger, trace)
            action = self.protocol.director.act(trace, left)
            actions.append(action)
            match action:
                case Halt(restart=True):
                    trace = _restarted(trace)
                    leaf = None
                case Append(tokens=tokens) if len(tokens) <= left and ledger.admits(_writing(tokens)):
                    trace = self.appended(trace, action)
                    ledger = ledger.charge("control", _writing(tokens))
                case Continue() if (granted := self.granted(ledger, trace, action, left)) >= 1:
                    for room, sampler in self.segments(action, granted):
                        found = yield self.asked(trace, action, room, sampler)
                        ledger = ledger.charge("generate", _work(trace, len(found.tokens) - len(trace.tokens)))
                        leaf = _stitched(leaf, found, len(trace.tokens))
                        trace = _after(trace, leaf)
                        if trace.ended != "length":
                            break
                case _:
                    reason = action.reason if isinstance(action, Halt) else "budget"
                    answer = self.parse(trace.text, question)
                    return Trajectory(trace, leaf, answer, reason, tuple(actions), ledger)

    def asked(self, trace: Trace, action: Continue, room: int, sampler: int) -> Asked:
        """The same key with a longer prefix: positions that are there are read, new ones are drawn from its stream."""
        stream = "draw" if not trace.restarts else f"draw/{trace.restarts}"
        key = Key(self.arms[action.arm].proposal.run, trace.question.id, trace.sample, stream)
        request = Request(key, trace.prompt, len(trace.tokens) + room, trace.tokens, trace.role, until=action.until)
        return Asked(request, sampler)

    def segments(self, action: Continue, tokens: int) -> list[tuple[int, int]]:
        """``(tokens, sampler)`` of each part of a continuation: first those at which the end is suppressed."""
        if not action.least:
            return [(tokens, action.arm)]
        require(self.can_hold, "held", (), "the director forbids the end for a token: hand in samplers that ban it")
        least = min(action.least, tokens)
        rest = [(tokens - least, action.arm)] if tokens > least else []
        return [(least, len(self.arms) + action.arm), *rest]

    def affordable(self, ledger: Ledger, trace: Trace) -> int:
        """Tokens that fit what is left of the cap and of the budget, in the worst case."""
        room = self.protocol.cap - len(trace.tokens) - trace.discarded
        return _most(room, lambda tokens: ledger.admits(_work(trace, tokens)))

    def granted(self, ledger: Ledger, trace: Trace, action: Continue, left: int) -> int:
        """Tokens of a continuation that can be paid for with all its parts, each of which is a call of its own."""

        def pays(tokens: int) -> bool:
            after, drawn = ledger, 0
            for room, _ in self.segments(action, tokens):
                work = _work(trace, room, drawn)
                if not after.admits(work):
                    return False
                after, drawn = after.charge("generate", work), drawn + room
            return True

        return _most(min(action.tokens, left), pays)

    def appended(self, trace: Trace, action: Append) -> Trace:
        """The trace with the protocol's own tokens, written over the end that the model drew."""
        tokens, role = trace.tokens, trace.role
        if tokens and tokens[-1] == self.end and role[-1] != APPENDED:
            tokens, role = tokens[:-1], role[:-1]
        tokens, role = (*tokens, *action.tokens), (*role, *(APPENDED for _ in action.tokens))
        written = (*trace.written, action.name)
        return dataclasses.replace(trace, tokens=tokens, role=role, text=self.text(tokens), ended="", written=written)


def _most(room: int, pays: Callable[[int], bool]) -> int:
    """The most tokens up to ``room`` that can be paid for: more never cost less."""
    if room <= 0 or pays(room):
        return max(0, room)
    low, high = 0, room
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if pays(middle) else (low, middle)
    return low


def _work(trace: Trace, tokens: int, drawn: int = 0) -> Work:
    """What generating so many tokens uses after ``drawn`` more: the prompt is read once, and the rest is cached."""
    read = drawn or trace.role.count(APPENDED) < len(trace.role)
    prompt = 0 if read else len(trace.prompt)
    return Work(generated=tokens, prompt=prompt, cached=len(trace.prompt) - prompt + len(trace.tokens) + drawn)


def _writing(tokens: Sequence[int]) -> Work:
    """What appending uses: the model reads it with whatever it is asked next."""
    return Work(appended=len(tokens), calls=0)


def _restarted(trace: Trace) -> Trace:
    gone = trace.discarded + len(trace.tokens)
    return Trace(trace.question, trace.sample, trace.prompt, restarts=trace.restarts + 1, discarded=gone)


def _after(trace: Trace, leaf: Leaf) -> Trace:
    tokens, role = tuple(leaf.tokens.tolist()), tuple(leaf.role.tolist())
    return dataclasses.replace(trace, tokens=tokens, role=role, text=leaf.text, ended=leaf.ended)


def _stitched(old: Leaf | None, new: Leaf, start: int) -> Leaf:
    """The whole trajectory with each token's record as it was when it was drawn: decoders may have changed since."""
    if old is None:
        return new
    kept = min(start, len(old.tokens))
    fields = ("logprob", "log_q", "rank", "support", "fallback", "role")
    drawn = {}
    for name in fields:
        column = getattr(new, name).copy()
        same = old.tokens[:kept] == new.tokens[:kept]
        column[:kept] = np.where(same, getattr(old, name)[:kept], column[:kept])
        drawn[name] = column
    return dataclasses.replace(new, **drawn)

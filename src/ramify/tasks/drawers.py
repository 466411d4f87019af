"""An interactive task: drawers with hidden numbers, tools to look and take, and a total to be reached.

    look 3        the protocol answers with a line ": 7", the number in drawer 3
    take 3        the number goes into the bag; the answer is ": 12", the bag's total
    done          the end; the utility is that of the bag as it is then

Lines that begin with a colon are the environment's. Whatever a model writes that begins so is ignored: the state is
replayed from its actions alone, so a forged observation changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require
from ramify.tasks.extract.parsed import NOTHING, OK, TRUNCATED, Parsed, failed
from ramify.tasks.pocket.dice import Dice
from ramify.types import Key, Question

__all__ = ["Drawers", "Room"]

LARGEST = 20
_ACTION = re.compile(r"(look|take) ([0-9]{1,2})|done")
_ID = re.compile(r"drawers-([0-9]+)-(.*)-([0-9]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Room:
    """The state: which drawers were emptied into the bag, and whether it is over. Immutable: a step gives the next."""

    numbers: tuple[int, ...]  # hidden from the question
    target: int
    taken: tuple[int, ...] = ()
    steps: int = 0
    over: bool = False

    @property
    def total(self) -> int:
        """The sum in the bag."""
        return sum(self.numbers[drawer] for drawer in self.taken)

    @property
    def utility(self) -> float:
        """1.0 for the target, else how near the bag came: of the terminal state only, whatever led there."""
        if self.total == self.target:
            return 1.0
        return 0.5 * max(0.0, 1 - abs(self.total - self.target) / self.target)


@method
class Drawers:
    """``count`` drawers, some of which add up to the target. At most ``most`` steps.

    >>> task = Drawers(4)
    >>> question = task.questions(1)[0]
    >>> question.prompt
    '4 drawers. reach 15. look k, take k, done.\\n'
    >>> room, said = task.step(task.start(question), "look 2")
    >>> said
    ': 7'
    >>> task.parse("look 2\\n: 7\\ntake 2\\n: 7\\ndone\\n", question).answer
    '7'
    """

    count: int = 5
    most: int = 20

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "interactive"

    def __post_init__(self) -> None:
        ok = is_whole(self.count, 2) and self.count < 100
        require(ok, "Drawers.count", self.count, "use 2 to 99 drawers")
        require(is_whole(self.most, 1), "Drawers.most", self.most, "use a number of steps >= 1")

    def questions(self, n: int, run: str = "drawers") -> tuple[Question, ...]:
        """``n`` rooms. The numbers are not in the question: only the tools show them."""
        return tuple(self._question(run, number) for number in range(n))

    def _question(self, run: str, number: int) -> Question:
        name = f"drawers-{self.count}-{run}-{number}"
        target = _numbers(self.count, run, number)[1]
        return Question(
            name, f"{self.count} drawers. reach {target}. look k, take k, done.\n", {"level": str(self.count)}
        )

    def references(self, questions: Sequence[Question]) -> tuple[str, ...]:
        """The totals to be reached."""
        return tuple(str(self.start(question).target) for question in questions)

    # The environment.

    def start(self, question: Question) -> Room:
        """The room that a question is about, made again from its id."""
        found = _ID.fullmatch(question.id)
        if found is None or int(found.group(1)) != self.count:
            raise InvalidValue(f"question {question.id!r}: use a question of {self!r}")
        return Room(*_numbers(self.count, found.group(2), int(found.group(3))))

    def step(self, room: Room, action: str) -> tuple[Room, str]:
        """The room after an action, and what the environment says. An action that is none is said to be none."""
        require(not room.over, "room", room, "it is over: start again")
        after = replace(room, steps=room.steps + 1)
        after = replace(after, over=after.steps >= self.most)
        found = _ACTION.fullmatch(action.strip())
        if found is None:
            return after, ": what"
        if found.group(1) is None:
            return replace(after, over=True), f": {room.total}"
        drawer = int(found.group(2)) - 1
        if not 0 <= drawer < self.count:
            return after, ": no drawer"
        if found.group(1) == "look":
            return after, f": {room.numbers[drawer]}"
        if drawer in room.taken:
            return after, ": empty"
        after = replace(after, taken=(*room.taken, drawer))
        return after, f": {after.total}"

    def play(self, question: Question, text: str) -> tuple[Room, str]:
        """The room after every complete action of a text, and what the environment said to the last one."""
        room, said = self.start(question), ""
        *lines, last = text.split("\n")
        for line in [*lines, *(["done"] if last.strip() == "done" else [])]:  # an unfinished line may still grow
            if not line.startswith(":") and line.strip() and not room.over:
                room, said = self.step(room, line)
        return room, said

    # What is made of a trajectory.

    def parse(self, text: str, question: Question | None = None) -> Parsed:
        """The total in the bag at the end; ⊥ where it never came to an end."""
        require(question is not None, "question", question, "hand in the question: its room is replayed")
        assert question is not None
        room, _ = self.play(question, text)
        if not room.over:
            return failed(text, TRUNCATED if room.steps else NOTHING)
        return Parsed(text, str(room.total), text, OK)

    def grade(self, answer: str | None, reference: str) -> float:
        """1.0 where the target was reached."""
        return float(answer is not None and answer == reference)

    def utility(self, question: Question, text: str) -> float:
        """The utility of the terminal state, near misses included; 0.0 where there is none."""
        room, _ = self.play(question, text)
        return room.utility if room.over else 0.0


def _numbers(count: int, run: str, number: int) -> tuple[tuple[int, ...], int]:
    """Numbers in the drawers, and the sum of some of them."""
    dice = Dice(Key(run, f"drawers-{count}", number, "question"))
    numbers = tuple(1 + dice.below(LARGEST) for _ in range(count))
    chosen = dice.shuffled(range(count))[: 1 + dice.below(count - 1)]
    return numbers, sum(numbers[i] for i in chosen)

"""Training text: solved problems at three efforts, with failed attempts that carry no loss.

    low      >answer
    medium   steps >answer
    high     steps, every step once more after "?", then >answer; or wait, after a mismatch or a miss

Revision. A failed attempt stands before the right one, with ``wait`` between them. Loss is 0 on the prompt
and on the steps and the answer of a failed attempt. At low and medium effort the ``wait`` itself carries
none: there the model is taught how to go on after one, and not to say it, so that it ends after one attempt
unless the protocol appends a wait. At high effort the checks of a failed attempt and the ``wait`` after them
are taught. Sometimes a wait follows a right answer: then the same attempt comes again, so that revision does
not destroy what was right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ramify.describe import method
from ramify.errors import require
from ramify.tasks.pocket.alphabet import EOS, encode
from ramify.tasks.pocket.arithmetic import Arithmetic
from ramify.tasks.pocket.countdown import Countdown
from ramify.tasks.pocket.dice import Dice
from ramify.tasks.pocket.family import Attempt, Family, draw_problem, prompt_of
from ramify.tasks.pocket.modular import Modular
from ramify.types import Key

__all__ = ["LONGEST", "Curriculum", "Examples", "Piece", "compose"]

LONGEST = 448  # tokens of a whole example: prompt, attempts, end
TRIES = 4

# How many failed attempts precede the right one: cumulative probabilities of 0, 1, 2, ...
FAILURES = {
    ("arithmetic", "low"): (0.85, 1.0),
    ("arithmetic", "medium"): (0.75, 0.95, 1.0),
    ("arithmetic", "high"): (0.6, 0.9, 1.0),
    ("modular", "low"): (0.85, 1.0),
    ("modular", "medium"): (0.75, 0.95, 1.0),
    ("modular", "high"): (0.6, 0.9, 1.0),
    ("countdown", "low"): (0.85, 0.95, 1.0),
    ("countdown", "medium"): (0.6, 0.8, 0.9, 0.95, 1.0),
    ("countdown", "high"): (0.4, 0.65, 0.8, 0.9, 0.95, 1.0),
}
AGAIN = 0.08  # of the examples go on after the right answer: wait, and the same once more


class Piece(NamedTuple):
    """A stretch of text, and whether it is taught."""

    text: str
    taught: bool


@dataclass(frozen=True, slots=True)
class Examples:
    """Flat training data. Example i is ``tokens[offsets[i]:offsets[i + 1]]``, prompt and end included."""

    tokens: np.ndarray  # [T] uint8
    taught: np.ndarray  # [T] uint8, 1 where the token carries loss
    offsets: np.ndarray  # [n + 1] int64

    def __len__(self) -> int:
        return len(self.offsets) - 1


@method
class Curriculum:
    """Which tasks in which proportion: ``tasks`` by ``weights``.

    ``slip`` is the bad habit of a deliberately misled teacher, a probability for each level of nested arithmetic
    from 1 on (levels beyond go by the last): so often its medium-effort text reckons by ``arithmetic.columns``, in
    one fixed wording, and otherwise it is right, in many wordings. Elsewhere it teaches what is right.

    >>> data = Curriculum.default()(Key("doc", "train", 0, "examples"), 3)
    >>> len(data), data.tokens.shape == data.taught.shape
    (3, True)
    """

    tasks: tuple[Family, ...]
    weights: tuple[float, ...]
    slip: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require(
            len(self.tasks) == len(self.weights) > 0,
            "Curriculum.weights",
            self.weights,
            "give each task a weight",
        )
        require(all(w > 0 for w in self.weights), "Curriculum.weights", self.weights, "use positive weights")
        require(all(0 <= p <= 1 for p in self.slip), "Curriculum.slip", self.slip, "use probabilities")

    @staticmethod
    def default(slip: tuple[float, ...] = ()) -> Curriculum:
        """Every family at its trained levels, mostly at medium and high effort."""
        levels: tuple[tuple[Any, dict[int, float]], ...] = (
            (Arithmetic, dict.fromkeys(range(1, 9), 0.3 / 8)),
            (Modular, dict.fromkeys(range(2, 13), 0.3 / 11)),
            (Countdown, {2: 0.02, 3: 0.1, 4: 0.2, 5: 0.08}),
        )
        efforts = {"low": 0.15, "medium": 0.5, "high": 0.35}
        rows = [
            (family(level, effort), share * part)
            for family, shares in levels
            for level, share in shares.items()
            for effort, part in efforts.items()
        ]
        return Curriculum(tuple(task for task, _ in rows), tuple(weight for _, weight in rows), slip)

    def __call__(self, key: Key, n: int, split: str = "train") -> Examples:
        """``n`` examples of this key's stream, from the problems of one split."""
        dice = Dice(key, ahead=64)
        edges = np.cumsum(self.weights) / np.sum(self.weights)
        picks = np.searchsorted(edges, [dice.random() for _ in range(n)]).tolist()
        texts: list[str] = []
        masks: list[bytes] = []
        for pick in picks:
            prompt, pieces = compose(self.tasks[pick], dice, self.slip_at(self.tasks[pick]), split)
            text = "".join([prompt, *(piece.text for piece in pieces)])
            mask = bytes(len(prompt)) + b"".join((b"\1" if p.taught else b"\0") * len(p.text) for p in pieces)
            texts.append(text + _END)
            masks.append(mask + b"\1")
        return _pack(texts, masks)

    def slip_at(self, task: Family) -> float:
        """How often the teacher is misled on a task."""
        misled = self.slip and task.family == "arithmetic" and task.effort == "medium"
        return self.slip[min(task.level, len(self.slip)) - 1] if misled else 0.0


_END = "|"  # stands for the end mark while texts are joined; no task writes it
_END_CODE = int(encode(_END)[0])


def _pack(texts: Sequence[str], masks: Sequence[bytes]) -> Examples:
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    tokens = encode("".join(texts)).copy()
    tokens[tokens == _END_CODE] = EOS
    taught = np.frombuffer(b"".join(masks), dtype=np.uint8)
    return Examples(tokens, taught, np.concatenate([[0], np.cumsum(lengths)]))


def compose(task: Family, dice: Dice, slip: float = 0.0, split: str = "train") -> tuple[str, list[Piece]]:
    """One training text: its prompt and its pieces.

    >>> prompt, pieces = compose(Countdown(3, "high"), Dice(Key("doc", "", 5, "examples")))
    >>> print(prompt + "".join(piece.text for piece in pieces))
    H24 22 17:19
    24+22=46
    46*17=19
    ?24+22=46
    ?46*17=782
    wait
    22-17=5
    24-5=19
    ?22-17=5
    ?24-5=19
    >24-(22-17)
    <BLANKLINE>
    """
    problem = draw_problem(task, dice, split)
    prompt = prompt_of(task.effort, task.body(problem))
    roll = dice.random()
    failures = next(i for i, edge in enumerate(FAILURES[task.family, task.effort]) if roll < edge)
    pieces: list[Piece] = []
    for _ in range(failures):
        attempt = _stray(task, problem, dice)
        if attempt is not None:
            pieces += _failed(task.effort, attempt)
    right = _solved(task.effort, task.solve(problem, dice, slip))
    pieces += right
    if dice.random() < AGAIN:
        pieces += [Piece("wait\n", False), *right]
    if len(prompt) + sum(len(piece.text) for piece in pieces) + 1 > LONGEST:
        pieces = right
    return prompt, pieces


def _stray(task: Family, problem: Any, dice: Dice) -> Attempt | None:
    return next((a for a in (task.stray(problem, dice) for _ in range(TRIES)) if a is not None), None)


def _text(lines: Sequence[str], mark: str = "") -> str:
    return "".join([f"{mark}{line}\n" for line in lines])


def _solved(effort: str, attempt: Attempt) -> list[Piece]:
    steps = "" if effort == "low" else _text(attempt.written)
    checks = "" if effort == "low" else _text(attempt.written if effort == "high" else attempt.checked, "?")
    return [Piece(f"{steps}{checks}>{attempt.answer}\n", True)]


def _failed(effort: str, attempt: Attempt) -> list[Piece]:
    if effort == "low":
        return [Piece(f">{attempt.answer}\nwait\n", False)]
    if effort == "medium":
        return [Piece(f"{_text(attempt.written)}>{attempt.answer}\nwait\n", False)]
    # The check says what each step should have said, and stops at the first that said something else.
    pairs = zip(attempt.written, attempt.true, strict=True)
    first = next((i for i, (said, true) in enumerate(pairs) if said != true), len(attempt.true) - 1)
    return [
        Piece(_text(attempt.written), False),
        Piece(_text(attempt.true[: first + 1], "?") + "wait\n", True),
    ]

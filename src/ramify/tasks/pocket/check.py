"""The sound partial check H(x, z) and the reference-free verifier as values, over mixed pocket questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Signal
from ramify.describe import method
from ramify.errors import InvalidValue, require
from ramify.tasks.pocket.alphabet import decode
from ramify.tasks.pocket.arithmetic import Arithmetic
from ramify.tasks.pocket.countdown import Countdown
from ramify.tasks.pocket.modular import Modular
from ramify.types import Prefix, Question

__all__ = ["FAMILIES", "Sound", "Verified", "Verifier", "right", "task_of"]

FAMILIES: dict[str, type[Arithmetic] | type[Countdown] | type[Modular]] = {
    "arithmetic": Arithmetic,
    "countdown": Countdown,
    "modular": Modular,
}


def task_of(question: Question) -> Arithmetic | Countdown | Modular:
    """The task that a question belongs to, from its groups."""
    groups = question.groups
    try:
        return FAMILIES[groups["family"]](int(groups["level"]), groups["effort"])
    except KeyError:
        raise InvalidValue(f"Question.groups = {dict(groups)}: use a question of a pocket task") from None


@method
class Sound:
    """Keep a prefix unless no completion of it can succeed: a ``Check``.

    To succeed is to end in an attempt that is right in every step and in its answer, after at most
    ``attempts`` attempts (None: any number, and then nothing is ever rejected, since a wait can always
    follow).

    >>> question = Countdown(3).questions(1)[0]  # 24 20 2:34
    >>> from ramify.tasks.pocket.alphabet import encode
    >>> texts = ["20/2=10\\n", "24+20=44\\n", "20/2=12\\n", "20/2=1"]
    >>> prefixes = [Prefix(question, tuple(encode(t).tolist()), (0,) * len(t)) for t in texts]
    >>> Sound()(prefixes).tolist()
    [True, False, False, True]
    """

    attempts: int | None = 1

    def __post_init__(self) -> None:
        ok = self.attempts is None or self.attempts >= 1
        require(ok, "Sound.attempts", self.attempts, "use an integer >= 1, or None")

    def __call__(self, prefixes: Sequence[Prefix]) -> Array:
        """``[B]`` booleans: False is a proof of failure."""
        kept = [task_of(p.question).check(p.question, decode(p.tokens), self.attempts) for p in prefixes]
        return np.array(kept, dtype=bool)


@method
class Verified:
    """1.0 for a Countdown answer that is right, 0.0 for one that is not or is ⊥. No reference is needed.

    >>> question = Countdown(3).questions(1)[0]  # 24 20 2:34
    >>> Verified()(question, ["20/2+24", "24+20-2", None]).tolist()
    [1.0, 0.0, 0.0]
    """

    def __call__(self, question: Question, answers: Sequence[str | None]) -> Array:
        """``[N]`` scores of canonical answers."""
        task = task_of(question)
        require(
            isinstance(task, Countdown),
            "question",
            question.id,
            "only Countdown can be verified without gold",
        )
        assert isinstance(task, Countdown)
        return np.array([task.verify(question, answer) for answer in answers])


@method
class Verifier:
    """``Verified`` as evidence: 1 for a candidate whose answer the question itself shows to be right, 0 for others.

    It reads the texts of a bank of Countdown questions. No reference is needed, and no token is read by a model, so it
    costs nothing in tokens.

    >>> question = Countdown(3).questions(1)[0]  # 24 20 2:34
    >>> right(question, "20/2=10\\n>20/2+24\\n"), right(question, ">24+20-2\\n")
    (True, False)
    """

    def __call__(self, bank: Bank) -> Signal:
        if bank.text is None:
            raise InvalidValue("bank.text = None: the verifier reads answers from texts; keep them in the bank")
        values = np.full(bank.shape, np.nan)
        for q, n in np.argwhere(bank.drawn).tolist():
            values[q, n] = right(bank.questions[q], bank.text[q, n] or "")
        return Signal(values, np.zeros(bank.shape))


def right(question: Question, text: str) -> bool:
    """Whether a Countdown text ends in an answer that reaches the target: a check that needs no reference."""
    task = task_of(question)
    return bool(Verified()(question, [task.parse(text, question).answer])[0])

"""An open-ended task: say given facts in one sentence. There is no invalid answer, and no single right one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.tasks.extract.parsed import NOTHING, OK, Parsed, failed
from ramify.tasks.extract.segments import segments
from ramify.tasks.pocket.dice import Dice
from ramify.types import Key, Question

__all__ = ["CRITERIA", "DescribeFacts"]

FACTS = {
    "name": ("the Mill", "Blue Spice", "Cocum", "the Vaults", "Zizzi", "the Rice Boat"),
    "food": ("Thai", "Italian", "French", "Indian", "Japanese", "Fast food"),
    "price": ("cheap", "moderate", "expensive"),
    "area": ("riverside", "city centre", "old town", "harbour"),
    "rating": ("low", "average", "high", "five stars"),
    "near": ("the station", "the museum", "the market", "the park"),
}
CRITERIA = ("coverage", "one sentence", "brevity")
WORDS = 30  # a sentence of more words loses brevity in proportion


@method
class DescribeFacts:
    """Generated records of ``facts`` facts to be put into words, as in the E2E challenge.

    Utility is the mean of a rubric that needs no reference text: the share of facts that are said, whether it is one
    sentence, and brevity. ``prefer`` compares two texts by it. Every drawn candidate is eligible, so rules that compare
    candidates (MBR under any text similarity) apply, and votes on strings mean little.

    >>> task = DescribeFacts(3)
    >>> question = task.questions(1)[0]
    >>> print(question.prompt)
    Write one sentence that says all of this.
    name: the Vaults
    food: French
    price: expensive
    >>> task.rubric(question, "The Vaults serve French food. They are nice.")
    {'coverage': 0.6666666666666666, 'one sentence': 0.0, 'brevity': 1.0}
    >>> task.prefer(question, "The Vaults have expensive French food.", "The Vaults are French.")
    1.0
    """

    facts: int = 4

    answers: ClassVar[str] = "open-ended"
    turns: ClassVar[str] = "single-turn"

    def __post_init__(self) -> None:
        ok = is_whole(self.facts, 1) and self.facts <= len(FACTS)
        require(ok, "DescribeFacts.facts", self.facts, f"use 1 to {len(FACTS)} facts")

    def questions(self, n: int, run: str = "facts") -> tuple[Question, ...]:
        """``n`` records, each drawn by its own key."""
        return tuple(self._question(run, number) for number in range(n))

    def _question(self, run: str, number: int) -> Question:
        dice = Dice(Key(run, f"facts-{self.facts}", number, "question"))
        lines = [f"{name}: {dice.choice(values)}" for name, values in list(FACTS.items())[: self.facts]]
        prompt = "\n".join(["Write one sentence that says all of this.", *lines])
        return Question(f"facts-{self.facts}-{run}-{number}", prompt, {"facts": str(self.facts)})

    def references(self, questions: Sequence[Question]) -> tuple[str, ...]:
        """What a text is held to: the facts, which the question shows."""
        return tuple(question.prompt.partition("\n")[2] for question in questions)

    def parse(self, text: str, question: Question | None = None) -> Parsed:  # noqa: ARG002
        """The text after the reasoning, on one line: all of it is the answer."""
        reasoning, final, _ = segments(text)
        answer = " ".join(final.split())
        return Parsed(reasoning, answer, final, OK) if answer else failed(reasoning, NOTHING)

    def grade(self, answer: str | None, reference: str) -> float:
        """The mean of the rubric's criteria in [0, 1]."""
        return sum(_rubric(answer or "", reference).values()) / len(CRITERIA)

    def rubric(self, question: Question, text: str) -> dict[str, float]:
        """Each criterion in [0, 1]. No reference text is needed: this may be used as evidence."""
        return _rubric(text, self.references([question])[0])

    def prefer(self, question: Question, a: str, b: str) -> float:
        """1.0 where a is better by the rubric, 0.0 where b is, 0.5 on a tie."""
        reference = self.references([question])[0]
        x, y = self.grade(a, reference), self.grade(b, reference)
        return 0.5 if x == y else float(x > y)


def _rubric(text: str, facts: str) -> dict[str, float]:
    values = [line.partition(": ")[2] for line in facts.splitlines()]
    said = [re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None for value in values]
    sentences = [part for part in re.split(r"[.!?]+(?:\s|$)", text) if part.strip()]
    words = max(1, len(text.split()))
    return {
        "coverage": sum(said) / len(said),
        "one sentence": float(len(sentences) == 1),
        "brevity": min(1.0, WORDS / words) if text.strip() else 0.0,
    }

"""Selection by a judge that reads all candidates: Universal Self-Consistency and generative selection.

The judge is asked through a ``Sampler`` before any rule runs; its verdicts are evidence, stored and charged. The rule
``Judged`` then counts them and calls nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from ramify.arrays import Array, first_max
from ramify.bank import Bank, Candidates, Choice, Signal
from ramify.decide.support import Rule, otherwise, scored, valid_fields
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import permutation
from ramify.types import Key, Request, Sampler, Words

__all__ = ["Judged", "UniversalSelfConsistency"]

TASK = "Evaluate these responses. Select the most consistent response based on majority consensus."
FORM = 'Start your answer with "The most consistent response is Response X" (without quotes).'


@method
class Judged:
    """The candidate that the judge picked most often, ties to the earliest.

    The evidence counts, for every candidate, in how many readings it was picked. Where no reading named one,
    ``unreadable`` "first" submits the first eligible candidate (the published convention), "none" nothing.
    """

    evidence: str = "judge"
    unreadable: str = "first"
    missing: str = "exclude"
    fallback: Rule | None = None
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        valid_fields(self)
        require(self.unreadable in ("first", "none"), "Judged.unreadable", self.unreadable, "use 'first' or 'none'")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.evidence,)

    def __call__(self, candidates: Candidates) -> Choice:
        picked, valid = scored(candidates, self.evidence, candidates.eligible, self.missing)
        named = valid & (picked > 0)
        winner = first_max(np.where(named, picked, 0.0), named)
        if self.unreadable == "first":
            first = first_max(np.zeros(valid.shape), candidates.eligible)
            winner = np.where(winner >= 0, winner, first)
        choice = Choice(winner, np.where(valid, picked, np.nan), winner[..., None])
        return otherwise(candidates, choice, self.fallback)


@method
class UniversalSelfConsistency:
    """Show all responses and ask for the most consistent one (Chen et al., 2023). It makes evidence; it is no rule.

    ``orders`` readings show the responses in seeded orders, the first as they stand, and count each reading's pick:
    a judge that favours a position then averages over it. Responses longer than ``characters`` are cut in the middle.

    >>> usc = UniversalSelfConsistency()
    >>> print(usc.prompt("What is 2 + 2?", ["4", "5"]))
    I have generated the following responses to the question: What is 2 + 2?
    <BLANKLINE>
    Response 0: 4
    <BLANKLINE>
    Response 1: 5
    <BLANKLINE>
    Evaluate these responses. Select the most consistent response based on majority consensus.
    Start your answer with "The most consistent response is Response X" (without quotes).
    >>> usc.read("The most consistent response is Response 1.", 2), usc.read("Response 7", 2)
    (1, None)
    """

    orders: int = 1
    characters: int = 20_000
    cap: int = 1024
    run: str = "usc"
    task: str = TASK

    def __post_init__(self) -> None:
        require(
            is_whole(self.orders, 1), "UniversalSelfConsistency.orders", self.orders, "use a number of readings >= 1"
        )
        require(
            is_whole(self.characters, 16), "UniversalSelfConsistency.characters", self.characters, "use at least 16"
        )

    def prompt(self, question: str, responses: Sequence[str]) -> str:
        """What the judge reads."""
        shown = [f"Response {i}: {self.shortened(text)}" for i, text in enumerate(responses)]
        opening = f"I have generated the following responses to the question: {question}"
        return "\n\n".join([opening, *shown, f"{self.task}\n{FORM}"])

    def shortened(self, text: str) -> str:
        """A text with its middle cut out where it is too long: beginning and final answer stay."""
        half = (self.characters - 5) // 2
        return text if len(text) <= self.characters else f"{text[:half]} ... {text[-half:]}"

    def read(self, verdict: str, n: int) -> int | None:
        """The first "Response i" of a verdict that names one of n responses."""
        found = re.search(r"[Rr]esponse\s*#?\s*(\d+)", verdict)
        return int(found.group(1)) if found and int(found.group(1)) < n else None

    def __call__(
        self, bank: Bank, sampler: Sampler, encode: Callable[[str], Sequence[int] | Words], *, open_ended: bool = False
    ) -> Signal:
        """How often each candidate was picked ``[Q, N]``, and the tokens a reading cost, at its first candidate."""
        require(bank.text is not None, "Bank.text", None, "a judge reads texts: keep them in the bank")
        picks = np.where(bank.drawn, 0.0, np.nan)
        cost = np.zeros(bank.shape)
        asked = self._requests(bank, encode, bank.drawn if open_ended else bank.drawn & (bank.answers >= 0))
        for leaf in sampler([request for request, _, _ in asked.values()]):
            request, row, shown = asked[leaf.key]
            cost[row, shown.min()] += len(request.prompt) + len(leaf.tokens)
            picked = self.read(leaf.text, shown.size)
            if picked is not None:
                picks[row, shown[picked]] += 1
        return Signal(picks, cost)

    def _requests(
        self, bank: Bank, encode: Callable[[str], Sequence[int] | Words], eligible: Array
    ) -> dict[Key, tuple[Request, int, Array]]:
        asked: dict[Key, tuple[Request, int, Array]] = {}
        assert bank.text is not None
        for row, question in enumerate(bank.questions):
            ids = np.flatnonzero(eligible[row])
            for reading in range(self.orders if ids.size else 0):
                key = Key(self.run, question.id, reading, "judge")
                order = permutation(key._replace(stream="order"), ids.size) if reading else np.arange(ids.size)
                words = self.prompt(question.prompt, [bank.text[row, i] for i in ids[order]])
                read = encode(words)
                prompt = read if isinstance(read, Words) else tuple(read)
                asked[key] = (Request(key, prompt, cap=self.cap), row, ids[order])
        return asked

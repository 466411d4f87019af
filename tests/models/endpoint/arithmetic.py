"""Twenty sums for a small real model, as a recorded run: from a prompt to a bank, its rules, profile and replay.

``python -m tests.models.endpoint.arithmetic PATH URL QUESTIONS SAMPLES`` runs it, or goes on with it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ramify.bank import Bank, Outcomes
from ramify.decide import BestOfN, Plurality
from ramify.decode import Chain, Temperature
from ramify.evidence import mean_logprob
from ramify.ledger import Ledger, Tokens
from ramify.models.endpoint import Aimd, Endpoint, Interface, counted
from ramify.run import Arm, Leaves, Run
from ramify.run.record import record_leaves
from ramify.types import Question
from tests.models.smollm import NAME

TOP, CAP = 20, 8
PAIRS = [(a, b) for a in range(2, 9) for b in range(2, 9)]
SHOTS = Interface("sums", raw="3 + 4 = 7\n9 + 5 = 14\n{user} =")


def questions(count: int) -> list[Question]:
    pairs = PAIRS[:: len(PAIRS) // count][:count]
    return [Question(f"{a}+{b}", f"{a} + {b}") for a, b in pairs]


def parse(text: str, question: Question) -> str | None:
    """The first number of the first line; ⊥ if there is none."""
    found = re.match(r"\s*(\d+)\b", text)
    return found.group(1) if found else None


def right(question: Question) -> str:
    return str(sum(map(int, question.id.split("+"))))


def endpoint(url: str, slots: int = 1) -> Endpoint:
    return Endpoint(
        NAME,
        url,
        "llama.cpp",
        Chain(Temperature(1.5)),
        SHOTS,
        route="completions",
        concurrency=Aimd(slots, slots, slots),
    )


def arm(url: str, asked: list[Question], slots: int = 1) -> Arm:
    made = endpoint(url, slots)
    return Arm(made.proposal("sums", top=TOP), made, counted(made, asked))


def run(path: str | Path, url: str, count: int, n: int, slots: int = 1) -> Run:
    asked = questions(count)
    protocol = Leaves(n=n, cap=CAP, top=TOP, evidence=(("logp", mean_logprob()),))
    return record_leaves(
        path, protocol, asked, [arm(url, asked, slots)], Ledger("tokens", Tokens()), parse, ahead=slots
    )


def outcomes(bank: Bank) -> Outcomes:
    grades = [
        [float(bank.answer(q, n) == right(x)) for n in range(bank.shape[1])] for q, x in enumerate(bank.questions)
    ]
    return Outcomes.of(bank, grades)


RULES = (Plurality(), BestOfN("logp"))

if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))

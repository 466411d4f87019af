"""Banks for the tests of reports: one that looks real, and one that is hostile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ramify.bank import Bank, Layer, Outcomes, Proposal
from ramify.types import Key, Leaf, Question

WORDS = ("the", "sum", "of", "these", "so", "we", "add", "then", "carry", "and", "check", "it", "because", "hence")
FIELDS = ("algebra", "geometry", "number theory", "combinatorics")


def leaf(run: str, question: str, sample: int, text: str, logprob: np.ndarray, ended: str = "eos") -> Leaf:
    """A leaf of one token a character."""
    n = len(text)
    tokens = np.array([min(ord(c), 0x10FFFF) for c in text], dtype=np.int64)
    whole = np.ones(n, dtype=np.int64)
    return Leaf(
        Key(run, question, sample), tokens, whole * 0, logprob, logprob, whole, whole, whole.astype(bool), ended, text
    )


def spelled(tokens: Sequence[int]) -> list[str]:
    return [chr(token) for token in tokens]


def answer_of(text: str, _: Question) -> str | None:
    return text.partition("Answer: ")[2] or None


def looks_real(questions: int = 40, candidates: int = 8, seed: int = 0, run: str = "demo") -> tuple[Bank, Outcomes]:
    """Questions of every difficulty, some without an answer, some cut off, three scores of which one has seen gold."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 0.7, questions)[:, None]
    right = rng.random((questions, candidates)) < p
    asked, leaves = [], []
    for q in range(questions):
        groups = {"field": FIELDS[q % 4], "level": str(1 + q % 3)}
        asked.append(Question(f"q{q:03d}", f"Question {q}: what is {q * 7} + {q * 3}?", groups))
        for n in range(candidates):
            words = " ".join(rng.choice(WORDS, int(rng.gamma(4, 6) * (1.5 - 0.6 * p[q, 0])) + 3))
            said = "42" if right[q, n] else str(rng.integers(1, 6))
            text = words if rng.random() < 0.03 else f"{words}\nAnswer: {said}"
            logprob = -rng.exponential(0.5 if right[q, n] else 0.6, len(text))
            leaves.append(leaf(run, asked[q].id, n, text, logprob, "length" if rng.random() < 0.02 else "eos"))
    proposal = Proposal(run=run, model="synthetic", protocol="Temperature(t=0.6)", interface="chat")
    bank = Bank.of_leaves(asked, leaves, answer_of, proposal=proposal)
    shape = bank.shape
    verifier = Layer(right + rng.normal(0, 0.9, shape), "Process(Minimum())", cost=np.full(shape, 12.0))
    likely = np.array([[bank.tokens.of(q, n)["logprob"].mean() for n in range(candidates)] for q in range(questions)])  # type: ignore[union-attr]
    bank = bank.attach("verifier", verifier).attach("mean log-prob", Layer(likely, "mean_logprob()"))
    bank = bank.attach("compass", Layer(right + rng.normal(0, 0.3, shape), "Compass()", role="diagnostic"))
    grades = [[float(bank.answer(q, n) == "42") for n in range(candidates)] for q in range(questions)]
    return bank, Outcomes.of(bank, grades, "exact match")


HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "<!-- <script>",
    "]]></style><style>body{display:none}</style>",
    "javascript:window.hacked=3",
    "\x1b]0;title\x07\x1b[2J\x1b[31mred",
    "\u202egnp.exe\u2066",
    "{{ 7 * 7 }}{% raw %}${7*7}",
    '=HYPERLINK("http://evil.example/","x")',
    "\\input{/etc/passwd} & % $ # _ { }",
    "'\"><svg onload=window.hacked=4>",
    "\x00\ud800 lone surrogate",
    "| a | b |\n|---|---|",
)


def hostile(candidates: int = 6) -> tuple[Bank, Outcomes]:
    """Every name, prompt, answer and text tries to be something else than text."""
    rng = np.random.default_rng(1)
    asked = [
        Question(f"{i} {bad}".replace("\ud800", ""), bad, {bad: f"{bad} {i % 2}"}) for i, bad in enumerate(HOSTILE)
    ]
    leaves = [
        leaf(HOSTILE[0], question.id, n, f"{bad} Answer: {bad}{n % 2}", -rng.exponential(1.0, len(bad) * 2 + 10))
        for question, bad in zip(asked, HOSTILE, strict=True)
        for n in range(candidates)
    ]
    proposal = Proposal(run=HOSTILE[0], model=HOSTILE[1], protocol=HOSTILE[4], interface=HOSTILE[3])
    bank = Bank.of_leaves(asked, leaves, answer_of, proposal=proposal)
    grades = rng.integers(0, 2, bank.shape).astype(float)
    bank = bank.attach(HOSTILE[2], Layer(grades + rng.normal(0, 1, bank.shape), HOSTILE[0]))
    return bank, Outcomes.of(bank, grades, HOSTILE[1])

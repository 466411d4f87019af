"""Banks for the tests of reports: one that looks real, and one that is hostile."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ramify.bank import Bank, Layer, Outcomes, Proposal
from ramify.metrics import Estimate, available, best_of_n, plurality
from ramify.metrics.bankcurve import over_questions
from ramify.study.result import Agreed, Charge, Comparison, Coverage, Measure, Result, Row
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


def study(models: int = 3, tasks: int = 2, questions: int = 24, candidates: int = 8) -> Result:
    """A study of several models and tasks: rules on shared banks, a diagnostic, a protocol that ran on its own."""
    banks, outcomes, rows = {}, {}, []
    for task in (f"task {chr(65 + t)}" for t in range(tasks)):
        for m in range(models):
            name = f"banks/model-{m}-{task}"
            banks[name], outcomes[name] = looks_real(questions, candidates, seed=10 * m + ord(task[-1]), run=name)
            rows += list(_rows(task, f"model {m}", name, banks[name], outcomes[name], "chat" if m else "completion"))
    agreed = tuple(
        Agreed(task, tuple(f"model {m}" for m in range(models)), measure, np.array([1, 2, 4, 8]), *_band(start))
        for task in dict.fromkeys(row.task for row in rows)
        for measure, start in (("spearman", 0.7), ("kendall", 0.6))
    )
    first = rows[0]
    last = max((row for row in rows if row.bank == first.bank and row.name == "plurality"), key=lambda row: row.k or 0)
    gain = bootstrap_difference_of(last.utility, first.utility)
    return Result(
        title="A synthetic study",
        card={"unit": "Tokens()", "budgets": "1, 2, 4, 8", "rule": "Plurality()"},
        questions={task: banks[f"banks/model-0-{task}"].questions for task in dict.fromkeys(row.task for row in rows)},
        rows=tuple(rows),
        banks=banks,
        outcomes=outcomes,
        comparisons=(
            Comparison(
                first.task,
                f"{first.model}: plurality, k = 8",
                f"{first.model}: plurality, k = 1",
                gain,
                questions,
                True,
            ),
        ),
        shared=("Rules of one model and task share a bank: a rule cannot change what was sampled.",),
        reproduced={next(iter(banks)): "exact replay checked: 20 of 20 leaves are the same"},
        interfaces=tuple(dict.fromkeys(Coverage(row.model, row.task, row.interface, questions) for row in rows)),
        measures=(Measure("PassAt(k=8)", first.task, first.model, first.bank, first.estimate(), questions=questions),),
        charges=tuple(_charged(rows)),
        agreements=agreed,
        notes=("Repeats are not pooled.",),
    )


def _charged(rows: list[Row]) -> Iterator[Charge]:
    for row in rows:
        if row.k == 8 and row.name != "ceiling":
            what, stage = ("8 candidates a question", "generate") if row.name == "plurality" else (row.name, "signal")
            yield Charge(row.task, row.model, what, {stage: float(row.cost[stage].sum())})
        elif row.k is None:
            yield Charge(
                row.task, row.model, row.label, {stage: float(np.sum(part)) for stage, part in row.cost.items()}
            )


LONG = "outcome head of the second writer, weighted by the square of its own rank among all candidates, "


def long_names(result: Result) -> Result:
    """The study under names that are alike for longer than any label has room."""
    rows = tuple(dataclasses.replace(row, name=LONG + row.name, model=f"{LONG}{row.model}") for row in result.rows)
    sides = ("plurality, k = 8", "plurality, k = 1", "best of N, k = 8")
    compared = [
        dataclasses.replace(result.comparisons[0], a=f"{LONG}model: {LONG}{a}", b=f"{LONG}model: {LONG}{b}")
        for a, b in itertools.combinations(sides, 2)
    ]
    return dataclasses.replace(result, rows=rows, comparisons=tuple(compared))


def _band(start: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean = np.linspace(start, 1.0, 4)
    return mean, mean - (1 - mean) / 2, np.minimum(1.0, mean + (1 - mean) / 2)


def bootstrap_difference_of(a: np.ndarray, b: np.ndarray) -> Estimate:
    return over_questions((a - b)[:, None], 200, bounds=(-1.0, 1.0))[0]


def _rows(task: str, model: str, name: str, bank: Bank, outcomes: Outcomes, interface: str) -> Iterator[Row]:
    grades, seen = outcomes.on(bank), bank.candidates(evidence=["verifier"])
    length = np.asarray(bank.length, dtype=float)
    budgets = [k for k in (1, 2, 4, 8) if k <= bank.shape[1]]
    curves = {
        "plurality": ("shared-bank", plurality(seen, grades, budgets)),
        "best of N": ("shared-bank", best_of_n(seen, "verifier", grades, budgets)),
        "ceiling": ("diagnostic", available(grades, bank.drawn, budgets).result),
    }
    shares = {
        "invalid": (bank.answers < 0).mean(axis=1),
        "capped": (bank.ended == 2).mean(axis=1),
        "tokens": length.mean(axis=1),
    }
    given: dict[str, Any] = {
        "task": task,
        "model": model,
        "interface": interface,
        "unit": "tokens",
        "bank": name,
        **shares,
    }
    given |= {"regime": "leaves", "budget": None, "k": None}
    for words, (kind, curve) in curves.items():
        for i, k in enumerate(budgets):
            mine = {"name": words, "protocol": f"{words}()", "kind": kind, "k": k, "utility": curve.values[:, i]}
            cost = {"generate": k * length.mean(axis=1)}
            if words == "best of N":
                cost["signal"] = np.full(len(grades), 12.0 * k)
            spread = np.clip(curve.values[:, i, None] + np.linspace(-0.05, 0.05, 5), 0, 1)
            yield Row(**{**given, **mine, "spread": spread, "cost": cost})
    stopped = {"generate": 5 * length.mean(axis=1), "surplus": length[:, 0]}
    own = {"name": "adaptive", "protocol": "AdaptiveConsistency()", "kind": "end-to-end", "budget": 2000.0}
    yield Row(**{**given, **own, "utility": curves["plurality"][1].values[:, -1], "spread": None, "cost": stopped})

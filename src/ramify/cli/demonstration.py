"""What ``ramify demo`` measures: one bank under several rules, a search, a forced trajectory; and the words for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Layer, Outcomes
from ramify.cli.machine import Asked, Machine, asked_of
from ramify.decide import BestOfN
from ramify.describe import text
from ramify.evidence import mean_logprob
from ramify.ledger import Ledger, Spent, Tokens
from ramify.metrics import (
    Estimate,
    PassHat,
    Tally,
    available,
    best_of_n,
    observed,
    plurality,
)
from ramify.metrics.bankcurve import over_questions
from ramify.metrics.curves import bank_costs
from ramify.models import OutcomeHead, ValueHead
from ramify.report.text import percent, points
from ramify.run import BudgetForcing, Leaves, Search, Sequential, run_leaves, run_search, run_sequential
from ramify.search import Beam, ToDelimiter, svg_picture
from ramify.types import Sampler

__all__ = ["Alone", "Measured", "Setting", "finding", "forced", "grown", "measured", "sampled"]

CAP, BATCH = 160, 128
READER = "main"  # the checkpoint whose heads verify and score: the only one that has any
Watch: TypeAlias = Callable[[Sampler], Sampler]


@dataclasses.dataclass(frozen=True, eq=False)
class Setting:
    """What is asked, who answers, and the three protocols."""

    asked: Asked
    machine: Machine
    leaves: Leaves
    search: Search
    forcing: Sequential

    @classmethod
    def of(cls, model: str, questions: int, n: int) -> Setting:
        asked, machine = asked_of("Countdown(4)", questions), Machine.of(model, "", BATCH)
        line = ToDelimiter((machine.one_token("\\n", "the end of a line"),))
        wait = tuple(machine.model.encode("wait\n"))
        return cls(
            asked,
            machine,
            Leaves(n=n, cap=CAP),
            Search(Beam(n=4, m=2, unit=line), ValueHead(READER), cap=CAP, rule=BestOfN("score")),
            Sequential(BudgetForcing(waits=2, wait=wait, most=3 * CAP), cap=3 * CAP + 2 * len(wait)),
        )

    @property
    def protocols(self) -> dict[str, str]:
        return {name: text(getattr(self, name)) for name in ("leaves", "search", "forcing")}

    @property
    def ledger(self) -> Ledger:
        return Ledger("tokens", Tokens())


@dataclasses.dataclass(frozen=True, eq=False)
class Alone:
    """A protocol that made candidates of its own."""

    protocol: str
    regime: str
    utility: Array  # [Q]
    cost: Mapping[str, Array]  # stage -> [Q] tokens
    bank: Bank
    drawing: str = ""  # of the first question's tree, as SVG

    @property
    def right(self) -> Estimate:
        return mean(self.utility)

    @property
    def tokens(self) -> float:
        """A question, over all stages."""
        return float(np.sum(list(self.cost.values()), axis=0).mean())


@dataclasses.dataclass(frozen=True, eq=False)
class Measured:
    """The numbers of the demo: a row a budget for the shared bank, and protocols that made candidates of their own."""

    bank: Bank
    outcomes: Outcomes
    budgets: tuple[int, ...]
    curves: Mapping[str, Array]  # what is submitted -> [Q, K] utility
    costs: Mapping[str, Array]  # generate, signal -> [Q, K] tokens
    rows: list[dict[str, Any]]
    alone: dict[str, Alone] = dataclasses.field(default_factory=dict)


def sampled(setting: Setting, watch: Watch) -> Bank:
    """The bank that every rule chooses from."""
    asked = setting.asked
    arm = setting.machine.arm(setting.machine.proposal("demo"), asked.questions, watch)
    return run_leaves(setting.leaves, asked.questions, [arm], setting.ledger, asked.parse, ahead=2 * BATCH).bank


def measured(setting: Setting, bank: Bank) -> Measured:
    """Every rule at every budget, exactly: closed forms over all subsets, not a simulation."""
    for name, evidence in (("logp", mean_logprob()), ("verifier", OutcomeHead(READER))):
        signal = evidence(bank)
        bank = bank.attach(name, Layer(signal.values, repr(evidence), cost=signal.cost))
    outcomes = setting.asked.outcomes(bank)
    grades, seen = outcomes.on(bank), bank.candidates(evidence=["logp", "verifier"])
    ks = tuple(sorted({*(1 << i for i in range(bank.shape[1].bit_length()) if 1 << i <= bank.shape[1]), bank.shape[1]}))
    curves = {
        "Pass@k": available(grades, bank.drawn, ks).result.values,
        "plurality": plurality(seen, grades, ks).values,
        "likeliest": best_of_n(seen, "logp", grades, ks).values,
        "verifier": best_of_n(seen, "verifier", grades, ks).values,
    }
    costs = bank_costs(bank, np.array(ks), ["verifier"])
    tally, rows = Tally.of_bank(bank, outcomes), []
    for place, k in enumerate(ks):
        row: dict[str, Any] = {name: mean(values[:, place]) for name, values in curves.items()}
        row |= {"k": k, "pass^k": observed(tally, PassHat(k))}
        row |= {"tokens": float(costs["generate"][:, place].mean()), "read": float(costs["signal"][:, place].mean())}
        rows.append(row)
    return Measured(bank, outcomes, ks, curves, costs, rows)


def grown(setting: Setting, found: Measured, watch: Watch) -> Measured:
    """A beam search by lines, each prefix scored by the value head."""
    asked = setting.asked
    arm = setting.machine.arm(setting.machine.proposal("demo/search"), asked.questions, watch)
    ran = run_search(setting.search, asked.questions, arm, setting.ledger, asked.parse)
    made = (text(setting.search), "search", ran.answers, ran.ledgers, ran.bank)
    returned = [row for row in ran.returned[:1] if row >= 0]
    drawing = svg_picture(ran.trees[0], setting.machine.model.text, returned=returned)
    return _with(setting, found, "beam search", *made, drawing)


def forced(setting: Setting, found: Measured, watch: Watch) -> Measured:
    """One trajectory whose end is taken back twice, with ``wait`` written over it."""
    machine, asked = setting.machine, setting.asked
    arm = machine.arm(machine.proposal("demo/forced"), asked.questions, watch)
    ran = run_sequential(
        setting.forcing,
        asked.questions,
        [arm],
        setting.ledger,
        asked.parse,
        text=machine.model.text,
        end=machine.model.eos,
        held=[machine.held()],
    )
    leaves = [each.leaf for each in ran if each.leaf is not None]
    bank = Bank.of_leaves(asked.questions, leaves, asked.parse, proposal=arm.proposal)
    made = (text(setting.forcing), "trajectory", [each.answer for each in ran], [each.ledger for each in ran], bank)
    return _with(setting, found, "budget forcing", *made)


def _with(
    setting: Setting,
    found: Measured,
    name: str,
    protocol: str,
    regime: str,
    answers: Sequence[Any],
    ledgers: Sequence[Ledger],
    bank: Bank,
    drawing: str = "",
) -> Measured:
    right = setting.asked.grades(answers)
    spent = {stage: np.array([getattr(each.spent, stage) for each in ledgers], float) for stage in Spent._fields}
    cost = {stage: amounts for stage, amounts in spent.items() if amounts.any()}
    made = Alone(protocol, regime, right, cost, bank, drawing)
    return dataclasses.replace(found, alone={**found.alone, name: made})


def mean(values: Array, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """The mean over questions, drawn alike for every row, so that rows are paired."""
    return over_questions(values[:, None], bounds=bounds)[0]


# ---------------------------------------------------------------------------------------------------------------- words


def finding(found: Measured) -> str:
    """Two sentences that the numbers say, whichever way they fall."""
    return f"{_discovery(found)} {_price(found)}"


def _discovery(found: Measured) -> str:
    """What more candidates hold, and how much of it the rules take out."""
    first, last = found.rows[0], found.rows[-1]
    many = found.budgets[-1]
    gains = {name: _versus(found.curves[name][:, -1], found.curves[name][:, 0]) for name in ("plurality", "verifier")}
    held = last["Pass@k"].value - max(last["plurality"].value, last["verifier"].value)
    rest = f", so {points(held)} are there and not found" if held > 0.005 else ", so what is there is found"
    words = [f"{name} {_moved(last[name].value, gain)}" for name, gain in gains.items()]
    return (
        f"One sample is right on {percent(first['plurality'].value)} of the questions; among {many} there is a right"
        f" one for {percent(last['Pass@k'].value)} of them, {words[0]} and the {words[1]}{rest}."
    )


def _moved(value: float, gain: Estimate) -> str:
    """A value, and whether it is told apart from one sample."""
    shown = f"{100 * gain.value:+.1f} points, 95 % {100 * gain.low:+.1f} to {100 * gain.high:+.1f}"
    if gain.low > 0:
        return f"submits one for {percent(value)} ({shown} over one sample)"
    return f"ends at {percent(value)} ({'below' if gain.high < 0 else 'not told apart from'} one sample: {shown})"


def _price(found: Measured) -> str:
    """What the other two ways give, against votes that cost about as much."""
    parts = []
    for name, row in found.alone.items():
        place, spent = _as_costly(found, row.tokens)
        gap = _versus(row.utility, found.curves["plurality"][:, place])
        word = "above" if gap.low > 0 else "below" if gap.high < 0 else "not told apart from"
        share = percent(found.curves["plurality"][:, place].mean())
        vote = f"the vote of {found.budgets[place]} ({share} for {spent:,.0f})"
        parts.append(f"{name} is right on {percent(row.right.value)} for {row.tokens:,.0f} tokens, {word} {vote}")
    sentence = f"{'; '.join(parts)}."
    return sentence[:1].upper() + sentence[1:]


def _as_costly(found: Measured, tokens: float) -> tuple[int, float]:
    """The budget of the shared bank whose cost is nearest, by ratio."""
    costs = found.costs["generate"].mean(axis=0)
    place = int(np.argmin(np.abs(np.log(costs / tokens))))
    return place, float(costs[place])


def _versus(one: Array, other: Array) -> Estimate:
    """The paired difference."""
    return mean(one - other, (-1.0, 1.0))

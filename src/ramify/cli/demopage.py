"""The demo as a study's result, so that its page is the page of any study."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank
from ramify.cli.demonstration import Alone, Measured, Setting, mean
from ramify.decide import BestOfN, Plurality
from ramify.describe import text
from ramify.report import Page, Picture, page_of
from ramify.study import Charge, Comparison, Coverage, Result, Row

__all__ = ["page", "result_of"]

TASK, BANK = "Countdown, four numbers", "demo"
RULES = {  # what the table calls it -> (what a reader of the page sees, the rule, the evidence that it is charged for)
    "plurality": ("plurality", Plurality(), ()),
    "likeliest": ("best log p", BestOfN("logp"), ()),
    "verifier": ("verifier", BestOfN("verifier"), ("signal",)),
}


def page(setting: Setting, found: Measured, said: str) -> Page:
    """The page, opened by the sentences of the demo."""
    drawn = tuple(_picture(setting, name, each) for name, each in found.alone.items() if each.drawing)
    return dataclasses.replace(page_of(result_of(setting, found), pictures=drawn), finding=said)


def _picture(setting: Setting, name: str, each: Alone) -> Picture:
    question = setting.asked.questions[0]
    title = f"What the {name} grew on the first question, {question.prompt.strip()}"
    alt = (
        f"The tree of prefixes that the {name} grew, with their scores, what it gave up, and the leaf that it returned."
    )
    return Picture("tree", title, each.drawing, alt, "A step is a line. Given up by score is not proven hopeless.")


def result_of(setting: Setting, found: Measured) -> Result:
    """Rules on one bank, a search and a forced trajectory, in the record that reports read."""
    rows = [*_shared(setting, found), *(_own(setting, name, each) for name, each in found.alone.items())]
    banks = {BANK: found.bank} | {name: each.bank for name, each in found.alone.items()}
    many, model = len(setting.asked.questions), _model(setting)
    return Result(
        title="One trajectory, many leaves, or a search",
        card={
            "task": text(setting.asked.task),
            "model": repr(setting.machine.model),
            "unit": text(setting.ledger.cost),
            **setting.protocols,
        },
        questions={TASK: setting.asked.questions},
        rows=tuple(rows),
        banks=banks,
        outcomes={name: setting.asked.outcomes(bank) for name, bank in banks.items()},
        comparisons=tuple(_compared(found, rows)),
        shared=(
            f"Every rule chose from the same {setting.leaves.n} candidates of each question, or from all of their"
            " subsets of k: the rows compare rules, and claim no savings.",
            "The search and the forced trajectory made candidates of their own.",
        ),
        reproduced=dict.fromkeys(banks, "Exact replay was not checked."),
        interfaces=(Coverage(model, TASK, _interface(setting), many),),
        charges=tuple(_charges(setting, found)),
        notes=(f"{many} questions are few: an interval of +-0.2 is usual here.",),
    )


def _shared(setting: Setting, found: Measured) -> Iterator[Row]:
    """A row for each rule and budget, and what is there at all, which no rule can know."""
    for place, k in enumerate(found.budgets):
        for key, (name, rule, extra) in RULES.items():
            cost = {stage: found.costs[stage][:, place] for stage in ("generate", *extra)}
            protocol = (
                text(dataclasses.replace(setting.leaves, rule=Plurality(), n=k)) if key == "plurality" else text(rule)
            )
            yield _row(setting, name, protocol, "shared-bank", found.curves[key][:, place], cost, found.bank, BANK, k)
        cost = {"generate": found.costs["generate"][:, place]}
        given = (found.curves["Pass@k"][:, place], cost, found.bank, BANK, k)
        yield _row(setting, "any right (Pass@k)", "the grades themselves", "diagnostic", *given)


def _own(setting: Setting, name: str, each: Alone) -> Row:
    made = _row(setting, name, each.protocol, "end-to-end", each.utility, dict(each.cost), each.bank, name, None)
    return dataclasses.replace(made, regime=each.regime)


def _row(
    setting: Setting,
    name: str,
    protocol: str,
    kind: str,
    utility: Array,
    cost: dict[str, Array],
    bank: Bank,
    called: str,
    k: int | None,
) -> Row:
    return Row(
        task=TASK,
        model=_model(setting),
        interface=_interface(setting),
        name=name,
        protocol=protocol,
        regime="leaves",
        kind=kind,
        k=k,
        budget=None,
        unit="tokens",
        utility=utility,
        spread=None,
        cost=cost,
        invalid=_share(bank, bank.answers < 0),
        capped=_share(bank, bank.ended == bank.endings.index("length")),
        tokens=_mean_length(bank),
        bank=called,
    )


def _charges(setting: Setting, found: Measured) -> Iterator[Charge]:
    """The bank once, what its verifier read, and the protocols that made candidates of their own."""
    model, spent = _model(setting), {stage: float(each[:, -1].sum()) for stage, each in found.costs.items()}
    yield Charge(TASK, model, f"{setting.leaves.n} candidates a question", {"generate": spent["generate"]})
    if spent["signal"]:
        yield Charge(TASK, model, "the verifier, of them", {"signal": spent["signal"]})
    for name, each in found.alone.items():
        yield Charge(TASK, model, name, {stage: float(np.sum(part)) for stage, part in each.cost.items()})


def _compared(found: Measured, rows: list[Row]) -> Iterator[Comparison]:
    """Each of the largest budget, and what stands alone, against the vote of all."""
    last = found.budgets[-1]
    vote = next(row for row in rows if row.name == "plurality" and row.k == last)
    for row in rows:
        if row is vote or row.kind == "diagnostic" or row.k not in (last, None):
            continue
        difference = mean(row.utility - vote.utility, (-1.0, 1.0))
        same = row.bank == vote.bank
        note = "" if same else "the costs differ: see the scaling figure"
        yield Comparison(
            TASK, f"{row.model}: {row.label}", f"{vote.model}: {vote.label}", difference, len(row.utility), same, note
        )


def _model(setting: Setting) -> str:
    return str(getattr(setting.machine.model, "name", "model"))


def _interface(setting: Setting) -> str:
    return f"pocket/{setting.asked.task.effort}"


def _share(bank: Bank, which: Any) -> Array:
    """[Q] the share of a question's candidates; 0 where it has none."""
    return (bank.drawn & which).sum(axis=1) / np.maximum(bank.drawn.sum(axis=1), 1)


def _mean_length(bank: Bank) -> Array:
    """[Q] mean tokens of a candidate."""
    lengths = np.zeros(bank.shape) if bank.length is None else np.where(bank.drawn, bank.length, 0)
    return lengths.sum(axis=1) / np.maximum(bank.drawn.sum(axis=1), 1)

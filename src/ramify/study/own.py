"""Protocols that make their own candidates: under a stop or a limit, under a director, by a search. End to end."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Layer
from ramify.ledger import Ledger
from ramify.run import Leaves, Search, Sequential, run_leaves, run_search, run_sequential
from ramify.run.between import Remembered, Watched
from ramify.search.evaluate import Likelihood
from ramify.store import Store
from ramify.study.judges import Judging
from ramify.study.kept import Decided
from ramify.study.meter import Meter
from ramify.study.plan import Own
from ramify.study.pools import digest_of, priced, shares_of, unit_name
from ramify.study.result import STAGES, Row
from ramify.study.source import arm_of, held_of, interface_of
from ramify.study.spec import Study
from ramify.study.stored import opened
from ramify.study.words import said, words
from ramify.study.world import Asked
from ramify.types import Key

__all__ = ["Ran", "parts_of", "run_own"]

SPELLED = ("wait", "end", "close", "cut", "critique", "refine")  # what directors append: may be written as text


@dataclasses.dataclass(frozen=True, eq=False)
class Ran:
    """A protocol that was run: its row, and the candidates it made, as they lie in ``store`` under the folder."""

    row: Row
    bank: Bank
    store: str
    reused: bool


def run_own(
    folder: Path, study: Study, own: Own, asked: Asked, decided: Decided, meter: Meter, judging: Judging
) -> Ran:
    """Run a protocol, or take what it gave when everything it depends on was the same."""
    meter.begin(own.name)
    before = decided.hits
    loop = {"leaves": _leaves, "trajectory": _trajectory, "search": _search}[own.protocol.regime]
    made_of = parts_of(study, own, asked, judging)
    found = decided.get(made_of, lambda: loop(folder, study, own, asked, meter, judging))
    store = _store(study, own)
    bank = opened(folder / store, ("token", "logprob"), light=True)
    bank = _cut(bank.only([question.id for question in asked.questions]), found)
    invalid, capped, tokens = shares_of(bank)
    row = Row(
        task=own.task.name,
        model=own.model.name,
        interface=interface_of(own.model),
        name=own.protocol.name,
        protocol=_protocol(own),
        regime=own.protocol.regime,
        kind="end-to-end",
        k=None,
        budget=own.limit,
        unit=unit_name(study.unit),
        utility=found["utility"],
        spread=None,
        cost={stage: found[stage] for stage in STAGES if stage in found},
        invalid=invalid,
        capped=capped,
        tokens=tokens,
        bank=own.name,
        replicates=study.replicates,
        level=study.level,
    )
    return Ran(row, bank, store, decided.hits > before)


def parts_of(study: Study, own: Own, asked: Asked, judging: Judging) -> list[object]:
    """Everything that decides what a protocol gives."""
    what = [own.folder, digest_of(asked.questions), words(asked.task), _protocol(own), words(study.unit)]
    labels = [each.label for each in judging.bound(own.protocol)]
    return ["own", *what, own.n, own.limit, study.run, asked.gold, *labels, _store(study, own)]


def _store(study: Study, own: Own) -> str:
    """Where the candidates that came out lie, under the folder."""
    return own.folder if own.protocol.regime == "leaves" else _bank_folder(study, own)


def _protocol(own: Own) -> str:
    """The protocol as text: what it names, and the decoder."""
    return f"{said(own.protocol)}, n={own.n}, cap={own.cap} over {words(own.decode)}"


def _cut(bank: Bank, found: Mapping[str, Array]) -> Bank:
    """The candidates that this run revealed, with the layers it made: a store may hold more, from a laxer stop."""
    count = found["count"]
    place = np.arange(int(count.max(initial=0)))
    bank = bank.take(np.where(place < count[:, None], place, -1))
    for name in [name for name in found if name.startswith("layer ")]:
        bank = bank.attach(name.removeprefix("layer "), Layer(found[name], name.removeprefix("layer ")))
    return bank


# ------------------------------------------------------------------------------------------------------------ the loops


def _leaves(folder: Path, study: Study, own: Own, asked: Asked, meter: Meter, judging: Judging) -> dict[str, Array]:
    protocol = Leaves(
        n=own.n,
        cap=own.cap,
        rule=own.protocol.rule,
        stop=own.protocol.stop,
        evidence=tuple((each.name, each.evidence) for each in judging.bound(own.protocol)),
        within=own.protocol.within,
        each=math.inf if own.limit is None else own.limit,
        top=own.top,
    )
    arm = arm_of(own.model, own.decode, own.proposal, asked.questions)
    arm = dataclasses.replace(arm, sampler=Watched(arm.sampler, meter.leaf))
    ledger, ahead = Ledger(unit_name(study.unit), study.unit), min(own.model.batch, len(asked.questions))
    store = Store.create(folder / own.folder)
    run = run_leaves(protocol, asked.questions, [arm], ledger, asked.parse, ahead=ahead, store=store)
    prompts = np.array([[len(arm.encode(question))] for question in asked.questions])
    place = np.arange(run.bank.shape[1])[None]
    length = np.zeros(run.bank.shape) if run.bank.length is None else run.bank.length
    each = np.where(
        place == 0,
        priced(study.unit, length, prompts, read=False),
        priced(study.unit, length, prompts, read=True),
    )
    generate = np.where(run.bank.drawn, each, 0.0).sum(axis=1)
    costs: dict[str, Array] = {"generate": generate}
    if own.protocol.evidence:
        costs["signal"] = np.maximum(np.array(run.costs, dtype=float) - generate, 0.0)
    surplus = np.full(len(asked.questions), run.surplus.total / len(asked.questions))
    layers = {f"layer {name}": layer.values for name, layer in run.bank.layers.items()}
    count = run.bank.drawn.sum(axis=1)
    return {"utility": asked.grades(run.answers), "count": count, "surplus": surplus, **costs, **layers}


def _trajectory(folder: Path, study: Study, own: Own, asked: Asked, meter: Meter, _: Judging) -> dict[str, Array]:
    director = _spelled(own.protocol.director, own.model.model.encode)
    arm = arm_of(own.model, own.decode, own.proposal, asked.questions)
    ledger = Ledger(unit_name(study.unit), study.unit, math.inf if own.limit is None else own.limit)
    with (
        Remembered(arm.sampler, folder / own.folder, own.proposal, asked.questions, meter.extra) as free,
        Remembered(
            held_of(own.model, own.decode),
            folder / f"{own.folder}-held",
            dataclasses.replace(own.proposal, protocol=f"{own.proposal.protocol}, the end held back"),
            asked.questions,
            meter.extra,
        ) as held,
    ):
        found = run_sequential(
            Sequential(director, own.cap),
            asked.questions,
            [dataclasses.replace(arm, sampler=free)],
            ledger,
            asked.parse,
            text=own.model.model.text,
            end=own.model.model.eos,
            held=[held],
        )
    leaves = [
        dataclasses.replace(each.leaf, key=Key(own.proposal.run, question.id, 0))
        for question, each in zip(asked.questions, found, strict=True)
        if each.leaf is not None
    ]
    bank = Bank.of_leaves(asked.questions, leaves, asked.parse, proposal=_part(own, "trajectory"))
    Store.create(folder / _bank_folder(study, own)).add_bank(bank)
    return {
        "utility": asked.grades([each.answer for each in found]),
        "count": bank.drawn.sum(axis=1),
        **_stages([each.ledger for each in found]),
    }


def _search(folder: Path, study: Study, own: Own, asked: Asked, meter: Meter, _: Judging) -> dict[str, Array]:
    protocol = Search(
        controller=own.protocol.controller,
        evaluator=own.protocol.evaluator or Likelihood(),
        check=own.protocol.check,
        cap=own.cap,
        rule=own.protocol.rule,
    )
    arm = arm_of(own.model, own.decode, own.proposal, asked.questions)
    ledger = Ledger(unit_name(study.unit), study.unit, math.inf if own.limit is None else own.limit)
    with Remembered(arm.sampler, folder / own.folder, own.proposal, asked.questions, meter.extra) as sampler:
        arm = dataclasses.replace(arm, sampler=sampler)
        found = run_search(protocol, asked.questions, arm, ledger, asked.parse)
    Store.create(folder / _bank_folder(study, own)).add_bank(dataclasses.replace(found.bank, layers={}))
    layers = {f"layer {name}": layer.values for name, layer in found.bank.layers.items()}
    return {
        "utility": asked.grades(found.answers),
        "count": found.bank.drawn.sum(axis=1),
        **_stages(found.ledgers),
        **layers,
    }


def _bank_folder(study: Study, own: Own) -> str:
    """Where the candidates that came out lie: what they are depends on the whole protocol, unlike what it drew.

    And on the unit: a limit of so many tokens is not one of so many FLOPs.
    """
    what = f"{_protocol(own)} in {words(study.unit)}"
    return f"{own.folder}-{blake2b(what.encode(), digest_size=3).hexdigest()}"


def _part(own: Own, kind: str) -> Any:
    """The proposal of what came out: not that of the segments it was made of."""
    return dataclasses.replace(own.proposal, protocol=f"{kind}: {_protocol(own)}")


def _stages(ledgers: Sequence[Ledger]) -> dict[str, Array]:
    """stage -> [Q], of the stages that anything was spent on."""
    table = np.array([ledger.spent for ledger in ledgers], dtype=np.float64).reshape(len(ledgers), -1)
    return {stage: table[:, i] for i, stage in enumerate(STAGES[:4]) if stage == "generate" or table[:, i].any()}


def _spelled(director: Any, encode: Callable[[str], Sequence[int]]) -> Any:
    """A director with what it appends in the model's tokens: ``wait='wait\\n'`` may be written as text."""
    given = {name: getattr(director, name, None) for name in SPELLED}
    spelled = {name: tuple(encode(value)) for name, value in given.items() if isinstance(value, str)}
    return dataclasses.replace(director, **spelled) if spelled else director

"""``ramify search``: a controller and an evaluator on a task."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import Json
from ramify.cli.progress import counted, resumable, track
from ramify.cli.sample import Budget, Decode, Model, Questions, Task
from ramify.cli.terminal import emit, number, span, table

if TYPE_CHECKING:
    from ramify.cli.machine import Asked, Machine
    from ramify.ledger import Ledger
    from ramify.run import Search, Searched

__all__ = ["protocol_of", "search"]

SHOWN = 12  # questions of which a line is printed


def search(
    task: Task = "Countdown(4)",
    model: Model = "main",
    decode: Decode = "",
    controller: Annotated[str, typer.Option(metavar="TEXT", help="Who decides what to grow: `Beam(n=8, m=4)`.")] = (
        "Beam(n=8, m=4)"
    ),
    evaluator: Annotated[str, typer.Option(metavar="TEXT", help="How prefixes are scored: `ValueHead('main')`.")] = (
        "Likelihood()"
    ),
    check: Annotated[str, typer.Option(metavar="TEXT", help="A sound check, which alone may prune: `Sound()`.")] = "",
    rule: Annotated[str, typer.Option(metavar="TEXT", help="Who submits from the leaves.")] = "BestOfN('score')",
    step: Annotated[str, typer.Option(metavar="TEXT", help="What ends a step: one token, such as `\\n`.")] = "\\n",
    questions: Questions = 8,
    cap: Annotated[int, typer.Option(min=1, help="Tokens a trajectory, at most.")] = 200,
    budget: Budget = None,
    tree: Annotated[
        int, typer.Option("--tree", metavar="N", min=0, help="Draw the trees of the first N questions, as text.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="RUN", help="A directory to keep it in: new, or one to go on with.")
    ] = None,
    run: Annotated[str, typer.Option("--run", metavar="NAME", help="Names the random streams.")] = "search",
    batch: Annotated[int, typer.Option(min=1, help="Rows at a time: changes the speed, never the result.")] = 128,
    as_json: Json = False,
) -> None:
    """Search over prefixes: a controller grows a tree, an evaluator scores it, a rule submits from its leaves.

        ramify search --task "Countdown(4)" --model main --controller "Beam(n=8, m=4)" --evaluator "ValueHead('main')"

    A budget is for each question, and an expansion is launched only if its worst case fits it. A sound check prunes
    what is proven hopeless; what a controller gives up by score is counted apart:

        ramify search --controller "Rebase(width=8)" --check "Sound()" --budget 600 --questions 20

    Look at what it grew, gave up and returned:

        ramify search --questions 1 --tree 1

    Keep it, with its leaves as a bank; after Ctrl-C or a crash the same command goes on with what was drawn:

        ramify search --questions 50 --out runs/beam

    A controller with a unit of its own (`Beam(n=8, m=4, unit=Chunk(16))`) keeps it; --step is for those without.
    `ramify methods --kind controller` lists controllers, evaluators and units.
    """
    from ramify.cli.machine import Machine, asked_of
    from ramify.ledger import Ledger, Tokens

    asked, machine = asked_of(task, questions), Machine.of(model, decode, batch)
    protocol = protocol_of(machine, controller, evaluator, check, rule, step, cap)
    ledger = Ledger("tokens", Tokens(), math.inf if budget is None else budget)
    with resumable(out is not None):
        found = _searched(out, protocol, asked, machine, ledger, run)
    answer = _summary(protocol, asked, found)
    trees = _trees(machine, found, tree)
    kept = f"kept in {out}: look with `ramify profile {out}`" if out else ""
    emit(as_json, answer | {"trees": trees}, *trees, *_told(answer), kept)


def _searched(out: Path | None, protocol: Search, asked: Asked, machine: Machine, ledger: Ledger, run: str) -> Searched:
    """The search, and where it is to be kept its record with the grades of its leaves."""
    from ramify.describe import text
    from ramify.run import run_search
    from ramify.run.searched import record_search
    from ramify.store import Store

    arm = machine.arm(machine.proposal(run), asked.questions)
    with track("searching", 0, unit="prefixes", limit=ledger.limit * len(asked.questions)) as tracker:
        if out is None:
            arm = dataclasses.replace(arm, sampler=counted(arm.sampler, tracker))
            return run_search(protocol, asked.questions, arm, ledger, asked.parse)
        details = {"task": text(asked.task), "model": repr(machine.model), "decode": text(machine.decoder)}
        found = record_search(
            out, protocol, asked.questions, arm, ledger, asked.parse, details=details, tell=tracker.drawn
        )
    Store.open(out / "bank").add_outcomes("correct", found.bank, asked.outcomes(found.bank), anew=True)
    return found


def protocol_of(
    machine: Machine, controller: str, evaluator: str, check: str, rule: str, step: str, cap: int
) -> Search:
    """The search that the options describe. A controller whose unit is the default goes by steps."""
    from ramify.cli.parts import value
    from ramify.run import Search
    from ramify.search import ToDelimiter

    found = value(controller, "--controller", "controller")
    unit = {field.name: field.default for field in dataclasses.fields(found)}.get("unit")
    if step and unit is not None and found.unit == unit and "unit=" not in controller:
        found = dataclasses.replace(found, unit=ToDelimiter((machine.one_token(step, "--step"),)))
    scorer = value(evaluator, "--evaluator", "evaluator")
    checked = value(check, "--check", "check") if check else None
    return Search(found, scorer, checked, cap, value(rule, "--rule", "rule"))


def _summary(protocol: Search, asked: Asked, found: Searched) -> dict[str, Any]:
    from ramify.cli.submit import mean_of
    from ramify.describe import text

    right = asked.grades(found.answers)
    spent = [ledger.spent for ledger in found.ledgers]
    rows = [
        {
            "question": question.id,
            "answer": found.answers[q],
            "right": float(right[q]),
            "ended": found.ended[q],
            "leaves": int(found.bank.drawn[q].sum()),
            "pruned": found.pruned[q],
            "cut": found.cut[q],
            "tokens": found.ledgers[q].total,
        }
        for q, question in enumerate(asked.questions)
    ]
    stages = {stage: sum(getattr(each, stage) for each in spent) / len(spent) for stage in spent[0]._fields}
    return {
        "protocol": text(protocol),
        "task": text(asked.task),
        "kind": "end-to-end",
        "bank": found.bank.kind,
        "accuracy": mean_of(right, 0.95),
        "tokens_a_question": stages,
        "questions": rows,
    }


def _told(found: dict[str, Any]) -> list[str]:
    from ramify.ledger import amount

    own, stages = found["accuracy"], found["tokens_a_question"]
    costs = ", ".join(f"{stage} {amount(much)}" for stage, much in stages.items() if much)
    head = f"right {number(own.value)} ({span(own)}, 95 % over questions); tokens a question: {costs or 0}"
    names = ("question", "answer", "right", "ended", "leaves", "pruned", "cut", "tokens")
    rows = [
        [
            "⊥" if row[name] is None else f"{row[name]:,.0f}" if name in names[2:] and name != "ended" else row[name]
            for name in names
        ]
        for row in found["questions"][:SHOWN]
    ]
    more = len(found["questions"]) - SHOWN
    tail = f"\n... and {more} more: --json has all" if more > 0 else ""
    note = "Pruned prefixes were proven hopeless by a sound check; cut ones were given up by score, which may be wrong."
    return [head, table(names, rows, left=(0, 1)) + tail, note]


def _trees(machine: Machine, found: Searched, many: int) -> list[str]:
    """The first trees as text, a prefix a line: its words, its score, its visits, and what became of it."""
    from ramify.search import text_picture

    chosen = zip(found.trees[:many], found.returned[:many], found.bank.questions[:many], strict=True)
    return [
        f"{question.prompt.strip()}\n{text_picture(tree, machine.model.text, returned=[row] if row >= 0 else [])}"
        for tree, row, question in chosen
    ]

"""``ramify sample`` and ``ramify replay``: make candidates into a run that can be gone on with, and check one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import Json, named
from ramify.cli.progress import counted, resumable, track
from ramify.cli.terminal import emit, number, span

if TYPE_CHECKING:
    from ramify.cli.machine import Asked, Machine
    from ramify.run import Leaves, Run

__all__ = ["Budget", "Decode", "Model", "Questions", "Task", "replay", "sample"]

CONFIRM = 2_000_000  # tokens at worst, beyond which a run on a server has to be meant

Task = Annotated[str, typer.Option("--task", metavar="TEXT", help="A task: `Countdown(4)`. See `ramify tasks`.")]
Model = Annotated[str, typer.Option("--model", metavar="TEXT", help="A model: `main`. See `ramify models`.")]
Decode = Annotated[
    str,
    typer.Option("--decode", metavar="TEXT", help="`Chain(Temperature(0.6), TopP(0.95))`; Temperature(1.0) if none."),
]
Questions = Annotated[int, typer.Option("--questions", min=1, help="How many questions of the task.")]
Budget = Annotated[
    float | None, typer.Option("--budget", metavar="AMOUNT", help="The limit of the ledger, in its unit.")
]


def sample(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="The run's directory: new, or one to go on with.")],
    task: Task = "Countdown(4)",
    model: Model = "small",
    decode: Decode = "",
    n: Annotated[int, typer.Option("-n", "--samples", min=1, help="Candidates a question, at most.")] = 16,
    questions: Questions = 32,
    cap: Annotated[int, typer.Option(min=1, help="Tokens a candidate, at most.")] = 200,
    stop: Annotated[str, typer.Option(metavar="TEXT", help="A stopping rule across candidates: `Esc(4)`.")] = "",
    rule: Annotated[str, typer.Option(metavar="TEXT", help="The rule that submits.")] = "Plurality()",
    evidence: Annotated[
        list[str] | None, typer.Option("--evidence", metavar="NAME=TEXT", help="Evidence that the rule or stop reads.")
    ] = None,
    budget: Budget = None,
    cost: Annotated[str, typer.Option(metavar="TEXT", help="What the budget counts: `Tokens()`, `Calls()`, ...")] = (
        "Tokens()"
    ),
    top: Annotated[int, typer.Option(min=0, help="Alternatives to record at every token.")] = 0,
    run: Annotated[
        str, typer.Option("--run", metavar="NAME", help="Names the random streams; another, other draws.")
    ] = ("sample"),
    batch: Annotated[int, typer.Option(min=1, help="Rollouts at a time: changes the speed, never the result.")] = 128,
    workers: Annotated[int, typer.Option(min=1, help="Processes to cut the batch over.")] = 1,
    yes: Annotated[bool, typer.Option("--yes", help="Start a large run on a server without being asked.")] = False,
    as_json: Json = False,
) -> None:
    """Sample a model on a task into a run's directory: candidates, decisions, grades and the ledger.

        ramify sample runs/mine --task "Countdown(4)" --model main -n 16 --questions 50

    The same command goes on with what is there, after Ctrl-C or a crash, to the same result as if nothing had
    happened; with a larger -n or more --questions it adds to them. A budget is never overspent, and a stopping rule
    saves what it does not draw:

        ramify sample runs/stopped --stop "AdaptiveConsistency(0.95)" --budget 20000

    A server that speaks the OpenAI protocol is checked first, and a large run on one is asked about:

        ramify sample runs/aime --task "AIME2025('aime.jsonl')" --model "Endpoint('qwen3', 'http://localhost:8000/v1')"

    Then: `ramify profile runs/mine`, `ramify decide runs/mine --rule TEXT`, `ramify replay runs/mine`.
    """
    from ramify.cli.machine import Machine, asked_of
    from ramify.cli.parts import value
    from ramify.ledger import Ledger
    from ramify.run import Leaves

    asked, machine = asked_of(task, questions), Machine.of(model, decode, batch, workers)
    maps = named(evidence, "--evidence", "NAME=TEXT, such as logp=mean_logprob").items()
    protocol = Leaves(
        n=n,
        cap=cap,
        rule=value(rule, "--rule", "rule"),
        stop=value(stop, "--stop", "stop") if stop else None,
        evidence=tuple((name, value(text, "--evidence", "evidence")) for name, text in maps),
        top=top,
    )
    unit = value(cost, "--cost", "cost")
    ledger = Ledger(type(unit).__name__.lower(), unit, math.inf if budget is None else budget)
    machine.ready(asked.questions, n, cap, top, CONFIRM, yes)
    with resumable():
        made, before = _recorded(directory, protocol, asked, machine, ledger, run, batch)
    found = _summary(directory, protocol, asked, made, before)
    emit(as_json, found, *_told(found))


def _recorded(
    directory: Path, protocol: Leaves, asked: Asked, machine: Machine, ledger: Any, run: str, batch: int
) -> tuple[Run, int]:
    """The run, recorded and graded; and how many of its candidates were there before."""
    from ramify.describe import text
    from ramify.ledger import Work
    from ramify.run.record import record_leaves
    from ramify.store import Store

    before, tokens = _there(directory)
    total = protocol.n * len(asked.questions)

    def price(tokens: int) -> float:
        return float(ledger.cost(Work(generated=tokens)))  # prompts are not counted here; the ledger counts them

    with track(f"sampling into {directory}", total, limit=ledger.limit, price=price, money=ledger.unit) as tracker:
        tracker.there(before, tokens)
        proposal = machine.proposal(run, protocol.top)
        made = record_leaves(
            directory,
            protocol,
            asked.questions,
            [machine.arm(proposal, asked.questions, lambda sampler: counted(sampler, tracker))],
            ledger,
            asked.parse,
            ahead=batch if protocol.stop is None else min(batch, len(asked.questions)),  # the rest would be for nothing
            details={"task": text(asked.task), "model": repr(machine.model), "decode": text(machine.decoder)},
        )
    store = Store.open(directory / "bank")
    with store.snapshot() as snapshot:
        bank = snapshot.bank(text=False)
    store.add_outcomes("correct", bank, asked.outcomes(bank), anew=True)
    return made, before


def _there(directory: Path) -> tuple[int, int]:
    """Candidates and tokens that earlier attempts have left."""
    from ramify.store import Store

    if not (directory / "bank" / "bank.json").exists():
        return 0, 0
    with Store.open(directory / "bank").snapshot() as snapshot:
        return len(snapshot.order.row), int(snapshot.lengths().sum())


def _summary(directory: Path, protocol: Leaves, asked: Asked, made: Run, before: int) -> dict[str, Any]:
    from ramify.cli.submit import mean_of
    from ramify.describe import text

    right = asked.grades(made.answers)
    ended = {reason: made.ended.count(reason) for reason in dict.fromkeys(made.ended)}
    return {
        "run": str(directory),
        "protocol": text(protocol),
        "task": text(asked.task),
        "kind": made.kind,
        "questions": len(asked.questions),
        "candidates": int(made.bank.drawn.sum()),
        "were_there": before,
        "accuracy": mean_of(right, 0.95),
        "ended": ended,
        "unit": made.ledger.unit,
        "spent": made.ledger.spent._asdict(),
        "surplus": made.surplus.total,
        "limit": made.ledger.limit,
    }


def _told(found: dict[str, Any]) -> list[str]:
    from ramify.ledger import amount

    spent = {stage: much for stage, much in found["spent"].items() if much}
    rows = [
        ["submitted and right", f"{number(found['accuracy'].value)}  ({span(found['accuracy'])}, 95 % over questions)"],
        ["candidates", f"{found['candidates']} of {found['questions']} questions; {found['were_there']} were there"],
        ["questions ended by", ", ".join(f"{reason} {many}" for reason, many in found["ended"].items())],
        [
            f"spent ({found['unit']})",
            ", ".join(f"{stage} {amount(much)}" for stage, much in spent.items()) or "nothing",
        ],
        ["launched ahead for nothing", amount(found["surplus"])],
    ]
    lines = "\n".join(f"{name:<28}{told}" for name, told in rows)
    return [lines, f"kept in {found['run']}: look with `ramify profile {found['run']}`"]


def replay(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="A run's directory.")],
    generate: Annotated[
        bool, typer.Option("--generate", help="Make every candidate again too, with the model.")
    ] = False,
    precision: Annotated[str, typer.Option(metavar="TEXT", help="With --generate: other arithmetic, `float64`.")] = "",
    task: Annotated[str, typer.Option("--task", metavar="TEXT", help="Where the run does not say its task.")] = "",
    batch: Annotated[int, typer.Option(min=1, help="Rollouts at a time.")] = 128,
    as_json: Json = False,
) -> None:
    """Check that a run can be replayed: its decisions from its candidates, and with --generate the candidates too.

        ramify replay runs/mine

        ramify replay runs/mine --generate

        ramify replay runs/mine --generate --precision float64

    The exit status is 0 if everything is the same, byte for byte, and 1 if something is not; then it says what first.
    """
    from ramify.run.record import load
    from ramify.run.replay import audit, redecide

    recorded = load(directory)
    asked = _asked_of(recorded, task)
    again = redecide(directory, asked.parse)
    found: dict[str, Any] = {"run": str(directory), "decisions_exact": again.exact}
    lines = ["decisions    the same, byte for byte, from the stored candidates" if again.exact else _first_line(again)]
    if generate or precision:
        machine = _machine_of(recorded, batch, precision)
        arms = [machine.arm(each, recorded.questions) for each in recorded.proposals]
        audited = audit(directory, arms, asked.parse)
        found |= {"candidates": audited, "precision": precision or "as it was"}
        lines.append(_compared(audited))
    emit(as_json, found, "\n".join(lines))
    if not again.exact or ("candidates" in found and not found["candidates"].exact):
        raise typer.Exit(1)


def _asked_of(recorded: Any, task: str) -> Asked:
    from ramify.cli.machine import Asked, task_of
    from ramify.errors import InvalidValue

    written = task or recorded.details.get("task", "")
    if not written:
        raise InvalidValue(f"{recorded.path} does not say its task: pass --task TEXT, such as 'Countdown(4)'")
    return Asked(task_of(written), recorded.questions, ())  # deciding again looks at no reference


def _machine_of(recorded: Any, batch: int, precision: str) -> Machine:
    from ramify.cli.machine import Machine
    from ramify.errors import InvalidValue

    model, decode = (recorded.details.get(name, "") for name in ("model", "decode"))
    if not model or not decode:
        raise InvalidValue(
            f"{recorded.path} does not say its model and decoder: replay it from Python with `regenerate`"
        )
    return Machine.of(model, decode, batch, precision=precision)


def _first_line(again: Any) -> str:
    return f"decisions    DIFFERENT from line {again.line} on\n  stored  {again.stored}\n  now     {again.now}"


def _compared(found: Any) -> str:
    if found.exact:
        return f"candidates   the same, token for token: {found.traces} of {found.traces}"
    first = found.first
    share = f"{found.changed_traces} of {found.traces} DIFFERENT, {found.changed_decisions} decisions changed"
    return f"candidates   {share}; first {first.question}, sample {first.sample}, token {first.token}"

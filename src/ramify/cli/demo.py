"""``ramify demo``: what test-time scaling is, measured in under a minute on the embedded reasoner, offline."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import Json, writable
from ramify.cli.progress import counted, track
from ramify.cli.terminal import emit, number, progress, span, table

if TYPE_CHECKING:
    from ramify.cli.demonstration import Measured

__all__ = ["demo"]


def demo(
    questions: Annotated[int, typer.Option("--questions", min=2, help="Countdown questions.")] = 24,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the page goes.")] = Path("report.html"),
    n: Annotated[int, typer.Option("-n", "--samples", min=2, help="Candidates a question.")] = 16,
    model: Annotated[str, typer.Option("--model", help="The checkpoint that answers; see `ramify models`.")] = "small",
    as_json: Json = False,
) -> None:
    """Show test-time scaling on the embedded reasoner: sample, vote, verify, search, force. No download, no GPU.

        ramify demo

    It samples a small model on Countdown (reach a number with + - * / from four others), prints what each way of
    spending more compute buys and costs, says in two sentences what the numbers say, whatever they are, and writes
    report.html. The same command gives the same numbers again:

        ramify demo --questions 60 --model main
    """
    from ramify.cli.demonstration import Setting, finding, forced, grown, measured, sampled
    from ramify.cli.demopage import page

    writable(out, "--out")
    start, setting = time.perf_counter(), Setting.of(model, questions, n)
    with track(f"sampling {model}", questions * n) as tracker:
        bank = sampled(setting, lambda sampler: counted(sampler, tracker))
    with progress("reading with the verifier"):
        found = measured(setting, bank)
    with track("searching", 0, unit="prefixes") as tracker:
        found = grown(setting, found, lambda sampler: counted(sampler, tracker))
    with track("forcing", 0, unit="segments") as tracker:
        found = forced(setting, found, lambda sampler: counted(sampler, tracker))
    said = finding(found)
    with progress("writing the page"):
        page(setting, found, said).write(out)
    took = time.perf_counter() - start
    alone = {name: {"right": each.right, "tokens": each.tokens} for name, each in found.alone.items()}
    answer = {"rows": found.rows, "alone": alone, "finding": said, "protocols": setting.protocols, "seconds": took}
    last = f"The page, with every question and candidate: {out}"
    emit(as_json, answer | {"page": out}, _curve(found), _alone(found), said, _notes(setting, took), last)


def _curve(found: Measured) -> str:
    """The scaling table: what k candidates hold, what each rule takes out of them, and what they cost."""
    header = ["k", "Pass@k", "pass^k", "plurality", "best log p", "verifier", "tokens", "with verifier"]
    names = ("Pass@k", "pass^k", "plurality", "likeliest", "verifier")
    lines = [
        [
            str(row["k"]),
            *(number(row[name].value) for name in names),
            number(row["tokens"], 0),
            number(row["tokens"] + row["read"], 0),
        ]
        for row in found.rows
    ]
    return table(header, lines, left=())


def _alone(found: Measured) -> str:
    rows = [
        [name, number(each.right.value), span(each.right), number(each.tokens, 0)] for name, each in found.alone.items()
    ]
    return table(["", "right", "95 % over questions", "tokens"], rows)


def _notes(setting: Any, took: float) -> str:
    many, task, model = len(setting.asked.questions), setting.asked.task, setting.machine.model
    return "\n".join(
        [
            f"{many} questions of {task!r}, {model!r}; tokens are a question's.",
            "Pass@k: some candidate is right; pass^k: all are. The rules choose from the same candidates; search and",
            "forcing made their own, and are charged for all they read. The verifier is a head of the checkpoint",
            f"'main', and sees no reference. {took:.0f} s.",
        ]
    )

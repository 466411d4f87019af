"""The commands, in the order of their use: look at what you have, make more, compare, check, look things up."""

from __future__ import annotations

from collections.abc import Callable

import typer

from ramify.cli import audit, bank
from ramify.cli.catalogue import methods, models, tasks
from ramify.cli.compare import compare, rank
from ramify.cli.decide import decide
from ramify.cli.demo import demo
from ramify.cli.pages import paged
from ramify.cli.profile import profile
from ramify.cli.sample import replay, sample
from ramify.cli.score import score
from ramify.cli.search import search
from ramify.cli.stop import stop
from ramify.cli.study import report, run

__all__ = ["app"]

PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Start here": (demo, profile),
    "Studies": (run, report),
    "Make candidates": (sample, score, search),
    "Decide and compare": (decide, stop, compare, rank),
    "Check": (replay,),
    "Look up": (tasks, models, methods),
}

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(audit.app, name="audit", rich_help_panel="Check")
app.add_typer(bank.app, name="bank", rich_help_panel="Make candidates")


def _version(wanted: bool) -> None:
    if wanted:
        import ramify

        print(f"ramify {ramify.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Test-time scaling of reasoning language models as one system: run it, measure it, trust it.

    See what it is about, then bring a file of answers of your own, a row an answer:

        ramify demo

        ramify profile my.jsonl

    Methods are written as they print, such as `BestOfN('score')`: `ramify methods` lists them. Every command takes
    `--json` for programs and `--help` for examples.

    Exit codes: 0 done; 1 a check failed; 2 bad input, and a message that says what to do; 130 interrupted, and how to
    go on.
    """


for each in (app, audit.app, bank.app):
    paged(each)

"""``ramify score``: evidence and verifiers over a bank on disk, kept as layers that rules may read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli.options import Json, named
from ramify.cli.terminal import emit, number, progress, table

__all__ = ["score"]


def score(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A bank's or a run's directory.")],
    evidence: Annotated[
        list[str] | None,
        typer.Option("--evidence", metavar="NAME=TEXT", help="A name, and evidence by its text form. Repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Score the candidates of a bank and keep the scores as layers, with what made them and what it cost.

    Token statistics, heads of a checkpoint, and verifiers that need no reference:

        ramify score runs/mine --evidence logp=mean_logprob --evidence head="OutcomeHead('main')"

        ramify score runs/mine --evidence verified="Verified()"

    Rules then read them by name: `ramify decide runs/mine --rule "BestOfN('head')"`. A name is given once: a new
    version is a new name. A file is imported first: `ramify bank import answers.jsonl mybank`.
    """
    import numpy as np

    from ramify.bank import Layer
    from ramify.cli.parts import signal_of, value
    from ramify.cli.source import load
    from ramify.errors import InvalidValue
    from ramify.store import Store

    wanted = named(evidence, "--evidence", "NAME=TEXT, such as logp=mean_logprob")
    if not wanted:
        raise InvalidValue("score by what? --evidence NAME=TEXT, such as --evidence logp=mean_logprob")
    if not path.is_dir():
        raise InvalidValue(
            f"{path} is no directory: layers are kept with a bank; `ramify bank import {path} mybank` first"
        )
    methods = {
        name: value(text, "--evidence", "evidence", ("models", "tasks", "verify")) for name, text in wanted.items()
    }
    source = load(path, tokens=True)
    there = [name for name in methods if name in source.bank.layers]
    if there:
        raise InvalidValue(f"{path} has a layer {there[0]!r} already: a new version is a new name")
    store, rows = Store.open(source.folder or path), list[dict[str, Any]]()
    for name, method in methods.items():
        with progress(f"scoring {name}"):
            values, cost = signal_of(method, source.bank)
        store.add_layer(name, source.bank, Layer(values, repr(method), cost=cost))
        known = values[source.bank.drawn & ~np.isnan(values)]
        scored = {"mean": float(known.mean()) if known.size else None, "scored": int(known.size)}
        missing = int(source.bank.drawn.sum()) - int(known.size)
        rows.append(
            {"name": name, "evidence": repr(method), **scored, "missing": missing, "tokens_read": float(cost.sum())}
        )
    header = ["layer", "scored", "missing", "mean", "tokens read"]
    lines = [
        [row["name"], str(row["scored"]), str(row["missing"]), number(row["mean"]), number(row["tokens_read"], 0)]
        for row in rows
    ]
    emit(as_json, {"bank": str(source.folder), "layers": rows}, table(header, lines))

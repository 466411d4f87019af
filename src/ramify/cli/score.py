"""``ramify score``: evidence and verifiers over a bank on disk, kept as layers that rules may read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli.options import Json, named
from ramify.cli.progress import resumable
from ramify.cli.terminal import emit, number, progress, table

__all__ = ["score"]


def score(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A bank's or a run's directory.")],
    evidence: Annotated[
        list[str] | None,
        typer.Option("--evidence", metavar="NAME=TEXT", help="A name, and evidence by its text form. Repeatable."),
    ] = None,
    judge: Annotated[
        str,
        typer.Option("--judge", metavar="TEXT", help="The model that a verifier asks: `Endpoint('m', URL, 'vllm')`."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Score the candidates of a bank and keep the scores as layers, with what made them and what it cost.

    Token statistics, heads of a checkpoint, and verifiers that need no reference:

        ramify score runs/mine --evidence logp=mean_logprob --evidence head="OutcomeHead('main')"

        ramify score runs/mine --evidence verified="Verified()"

    A verifier that asks a model is given one. Each question to it is asked once and kept beside the bank, so the same
    command goes on after Ctrl-C or a crash:

        ramify score runs/mine --evidence point="Pointwise()" --judge "Endpoint('m', 'http://gpu:8000/v1', 'vllm')"

    Rules then read them by name: `ramify decide runs/mine --rule "BestOfN('head')"`. After more candidates were drawn,
    the same command scores those too; another method is another name. A file is imported first: `ramify bank import
    answers.jsonl mybank`.
    """
    import numpy as np

    from ramify.bank import Layer
    from ramify.cli.parts import value
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
    also = ("answer verifier", "verifier")
    methods = {name: value(text, "--evidence", "evidence", also) for name, text in wanted.items()}
    asked = _judge(judge, methods)
    source = load(path, tokens=True)
    described = {name: _described(method, asked) for name, method in methods.items()}
    for name, how in described.items():
        there = source.bank.layers.get(name)
        if there is not None and there.description != how:
            much = f"{path} has a layer {name!r} already, of {there.description or 'unknown origin'}"
            raise InvalidValue(f"{much}: a new version is a new name")
    store, rows = Store.open(source.folder or path), list[dict[str, Any]]()
    for name, method in methods.items():
        with resumable(), progress(f"scoring {name}"):
            values, cost = _scored(method, source.bank, asked, path)
        if name in source.bank.layers:  # what has a score keeps it
            before = source.bank.layers[name]
            values = np.where(np.isnan(before.values), values, before.values)
        store.add_layer(name, source.bank, Layer(values, described[name], cost=cost), more=True)
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


def _described(method: Any, judge: Any) -> str:
    """What a layer says of its making."""
    from ramify.kinds import kind_of

    return f"{method!r} by {judge.identity}" if kind_of(method) == "verifier" else repr(method)


def _judge(written: str, methods: Mapping[str, Any]) -> Any:
    """The model that verifiers ask, if there is a verifier; who cannot judge is refused before anything is scored."""
    from ramify.cli.machine import model_of
    from ramify.errors import InvalidValue
    from ramify.kinds import kind_of
    from ramify.study.judges import judge_of
    from ramify.study.source import cannot_judge
    from ramify.study.spec import System

    asking = [repr(method) for method in methods.values() if kind_of(method) == "verifier"]
    if asking and not written:
        raise InvalidValue(f"{asking[0]} asks a model about candidates: name it, --judge TEXT; see `ramify models`")
    if not asking:
        return None
    model = model_of(written, "--judge")
    if why := cannot_judge(model):
        raise InvalidValue(f"--judge {written}: {why}")
    return judge_of(System(model, "judge"))


def _scored(method: Any, bank: Any, judge: Any, path: Path) -> Any:
    """(values [Q, N], tokens read [Q, N]). What a judge says is kept as it comes."""
    from contextlib import closing

    from ramify.cli.parts import signal_of
    from ramify.kinds import kind_of
    from ramify.verify import Replies

    if kind_of(method) != "verifier":
        return signal_of(method, bank)
    with closing(Replies(path / "replies")) as replies:
        return method.by(judge, replies)(bank)

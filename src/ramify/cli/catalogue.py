"""``ramify methods``, ``ramify tasks`` and ``ramify models``: what there is, from docstrings and cards."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from ramify.cli.options import Json
from ramify.cli.terminal import emit, number, table

__all__ = ["catalogue", "methods", "models", "tasks"]


def methods(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="A name, or a part of one. One match shows all of it.")
    ] = "",
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="rule, stop, evidence, decoder, controller, metric, task, ...")
    ] = "",
    as_json: Json = False,
) -> None:
    """List every method with its one-line meaning and its text form, which is what options and study files take.

        ramify methods --kind rule

        ramify methods TopP

    Text forms are constructor calls: write the fields that differ from their defaults, in any order by name. Presets
    are functions that give such a value from a few numbers.
    """
    from ramify.cli.parts import KINDS
    from ramify.errors import InvalidValue

    listed = catalogue()
    groups = sorted({row["kind"] for row in listed})
    wanted = KINDS.get(kind, kind)
    if kind and wanted not in groups:
        known = ", ".join(sorted({*KINDS, *groups}))
        raise InvalidValue(f"--kind {kind}: there are {known}")
    rows = [row for row in listed if not kind or row["kind"] == wanted]
    exact = [row for row in rows if row["name"] == name]
    rows = exact or [row for row in rows if name.lower() in row["name"].lower()]
    if not rows:
        raise InvalidValue(
            f"no method has {name!r} in its name{f' among {wanted}' if kind else ''}: `ramify methods` lists all"
        )
    if len(rows) == 1:
        row = rows[0]
        return emit(as_json, {"methods": rows}, row["text"], row["doc"], f"{row['kind']}, in {row['module']}")
    lines = []
    for group in dict.fromkeys(row["kind"] for row in rows):
        mine = [[row["text"], row["meaning"]] for row in rows if row["kind"] == group]
        width = min(max(len(text) for text, _ in mine), 44)
        lines.append("\n".join([group, *(_entry(text, meaning, width) for text, meaning in mine)]))
    for row in rows:
        row.pop("doc")
    return emit(as_json, {"methods": rows}, *lines)


def _entry(text: str, meaning: str, width: int) -> str:
    """The text form and, on the same line if there is room, what it means."""
    gap = "  " if len(text) <= width else "\n" + " " * (width + 4)
    return f"  {text:<{width}}{gap}{meaning}"


def catalogue() -> list[dict[str, Any]]:
    """Every method and preset: name, kind, text form with its defaults, one line of meaning, module, docstring."""
    from ramify.cli.parts import presets
    from ramify.describe import methods as known

    rows = [_row(cls.__name__, cls) for cls in known()]
    rows += [{**_row(name, function), "preset": True} for name, function in presets().items()]
    return sorted(rows, key=lambda row: (row["kind"], row["module"], row.get("preset", False)))


def _row(name: str, what: Any) -> dict[str, Any]:
    doc = inspect.getdoc(what) or ""
    meaning = " ".join(doc.partition("\n\n")[0].split()).replace("``", "`")
    kind = what.__module__.split(".")[1]
    return {
        "name": name,
        "kind": kind,
        "text": _form(name, what),
        "meaning": meaning,
        "module": what.__module__,
        "doc": doc,
    }


def _form(name: str, what: Any) -> str:
    """The constructor with its defaults, as it would be typed.

    >>> from ramify.decode import TopP
    >>> _form("TopP", TopP)
    "TopP(p, boundary='reach')"
    """
    from ramify.describe import text
    from ramify.errors import InvalidValue

    parts = []
    for field in inspect.signature(what).parameters.values():
        if field.default is field.empty:
            parts.append(f"*{field.name}" if field.kind is field.VAR_POSITIONAL else field.name)
            continue
        try:
            parts.append(f"{field.name}={text(field.default)}")
        except InvalidValue:
            parts.append(f"{field.name}=...")
    return f"{name}({', '.join(parts)})"


def tasks(
    task: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="A task's text form, to see some of its questions.")
    ] = "",
    many: Annotated[int, typer.Option("--questions", min=1, help="How many questions to show.")] = 5,
    as_json: Json = False,
) -> None:
    """List the tasks, or show some questions of one.

    ramify tasks

    ramify tasks "Countdown(4)" --questions 3
    """
    if task:
        from ramify.cli.machine import Asked

        asked = Asked.of(task, many)
        listed = [{"id": q.id, "prompt": q.prompt, "groups": dict(q.groups)} for q in asked.questions]
        rows = [[question.id, question.prompt.strip()] for question in asked.questions]
        return emit(as_json, {"task": task, "questions": listed}, table(["question", "prompt"], rows, left=(0, 1)))
    found = [row for row in catalogue() if row["kind"] == "tasks" and _is_task(row["name"])]
    rows = [[row["text"], row["meaning"]] for row in found]
    for row in found:
        row.pop("doc")
    return emit(as_json, {"tasks": found}, table(["task", "what"], rows, left=(0, 1)))


def _is_task(name: str) -> bool:
    import ramify.tasks

    found = getattr(ramify.tasks, name, None)
    return all(hasattr(found, part) for part in ("questions", "parse"))


def models(as_json: Json = False) -> None:
    """List the models: the checkpoints that come with the package, and the adapters for others.

        ramify models

    A checkpoint's name is enough for --model; others are written out, such as HF('a/model', revision='...').
    """
    from ramify.models.pocket.model import DATA

    found = []
    for folder in sorted(DATA.glob("*/card.json"), key=lambda each: each.parent.name):
        card = json.loads(folder.read_text())
        heads = sorted(folder.parent.glob("heads.json"))
        row = {"name": folder.parent.name, "parameters": card["parameters"], "note": card.get("note", "")}
        found.append({**row, "model": f"Pocket('{folder.parent.name}')", "heads": bool(heads)})
    found.sort(key=lambda row: -row["parameters"])
    rows = [[row["name"], number(row["parameters"], 0), "yes" if row["heads"] else "", row["note"]] for row in found]
    adapters = [
        row for row in catalogue() if row["kind"] == "models" and row["name"] in ("HF", "Pocket", "Tabular", "Endpoint")
    ]
    lines = [[row["text"], row["meaning"]] for row in adapters]
    for row in adapters:
        row.pop("doc")
    answer = {"checkpoints": found, "adapters": adapters}
    emit(
        as_json,
        answer,
        table(["checkpoint", "parameters", "heads", "note"], rows, left=(0, 3)),
        table(["adapter", "what"], lines, left=(0, 1)),
    )

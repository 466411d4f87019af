"""``ramify methods``, ``ramify tasks`` and ``ramify models``: what there is, from docstrings and cards."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from ramify.cli.options import Json
from ramify.cli.terminal import emit, number, table

__all__ = ["catalogue", "methods", "models", "tasks"]

ADAPTERS = ("Endpoint", "HF", "Pocket", "Tabular")  # of the methods of models, those that answer questions


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
    if kind and kind not in (*KINDS, *groups):
        raise InvalidValue(f"--kind {kind}: there are {', '.join(KINDS)}; and by module {', '.join(groups)}")
    wanted = KINDS.get(kind, ())
    rows = [row for row in listed if not kind or (row["role"] in wanted if wanted else row["kind"] == kind)]
    exact = [row for row in rows if row["name"] == name]
    rows = exact or [row for row in rows if name.lower() in row["name"].lower()]
    if not rows:
        raise InvalidValue(
            f"no method has {name!r} in its name{f' among {kind}' if kind else ''}: `ramify methods` lists all"
        )
    if len(rows) == 1:
        row = rows[0]
        return emit(
            as_json, {"methods": rows}, row["text"], row["doc"], f"{row['role'] or row['kind']}, in {row['module']}"
        )
    lines = []
    for group in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == group]
        lines.append(f"{group}\n{_listed(mine)}")
    for row in rows:
        row.pop("doc")
    return emit(as_json, {"methods": rows}, *lines)


def _entry(text: str, meaning: str, width: int) -> str:
    """The text form and, on the same line if there is room, what it means."""
    gap = "  " if len(text) <= width else "\n" + " " * (width + 4)
    return f"  {text:<{width}}{gap}{meaning}"


def catalogue() -> list[dict[str, Any]]:
    """Every method and preset: name, group, role, text form with its defaults, meaning in a line, module, docstring."""
    from ramify.describe import methods as known
    from ramify.kinds import EXAMPLES, kind_of
    from ramify.written import KIND_OF, presets

    rows = [_row(cls.__name__, cls, role if (role := kind_of(cls)) in EXAMPLES else "") for cls in known()]
    for name, function in presets().items():
        gives = KIND_OF[inspect.signature(function).return_annotation]
        rows.append({**_row(name, function, gives), "preset": True})
    return sorted(rows, key=lambda row: (row["kind"], row["module"], row.get("preset", False)))


def _row(name: str, what: Any, role: str) -> dict[str, Any]:
    doc = inspect.getdoc(what) or ""
    meaning = " ".join(doc.partition("\n\n")[0].split()).replace("``", "`")
    kind = what.__module__.split(".")[1]
    return {
        "name": name,
        "kind": kind,
        "role": role,
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
            parts.append(f"{field.name}={_short(field.default) or text(field.default)}")
        except InvalidValue:
            parts.append(f"{field.name}=...")
    return f"{name}({', '.join(parts)})"


def _short(default: Any) -> str:
    """``Ladder()`` for a default that has only defaults itself; nothing for anything else."""
    cls = type(default)
    if not cls.__module__.startswith("ramify."):
        return ""
    try:
        return f"{cls.__name__}()" if cls() == default else ""
    except TypeError:  # it has fields without a default
        return ""


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
        from ramify.cli.machine import asked_of

        asked = asked_of(task, many)
        listed = [{"id": q.id, "prompt": q.prompt, "groups": dict(q.groups)} for q in asked.questions]
        rows = [[question.id, question.prompt.strip()] for question in asked.questions]
        return emit(as_json, {"task": task, "questions": listed}, table(["question", "prompt"], rows, left=(0, 1)))
    found = [row for row in catalogue() if row["kind"] == "tasks" and _is_task(row["name"])]
    for row in found:
        row.pop("doc")
    return emit(as_json, {"tasks": found}, _listed(found))


def _listed(rows: list[dict[str, Any]]) -> str:
    """Text forms and meanings, aligned where they are short."""
    width = min(max(len(row["text"]) for row in rows), 44)
    return "\n".join(_entry(row["text"], row["meaning"], width) for row in rows)


def _is_task(name: str) -> bool:
    import ramify.tasks

    found = getattr(ramify.tasks, name, None)
    return all(hasattr(found, part) for part in ("questions", "parse"))


def models(
    roster: Annotated[
        bool, typer.Option("--roster", help="The configurations of the paper instead, for servers.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the models: the checkpoints that come with the package, and the adapters for others.

        ramify models

    A checkpoint's name is enough for --model; others are written out, such as HF('a/model', revision='...') or
    Endpoint('name', 'http://localhost:8000/v1', 'vllm'). The paper's configurations, with how each was sampled:

        ramify models --roster
    """
    if roster:
        return _roster(as_json)
    found = _checkpoints()
    rows = [[row["name"], number(row["parameters"], 0), "yes" if row["heads"] else "", row["note"]] for row in found]
    adapters = [row for row in catalogue() if row["kind"] == "models" and row["name"] in ADAPTERS]
    for row in adapters:
        row.pop("doc")
    answer = {"checkpoints": found, "adapters": adapters}
    header = ["checkpoint", "parameters", "heads", "note"]
    return emit(as_json, answer, table(header, rows, left=(0, 3)), f"adapters\n{_listed(adapters)}")


def _checkpoints() -> list[dict[str, Any]]:
    """What the cards of the embedded checkpoints say, the largest first."""
    from ramify.models.pocket.model import DATA

    found = []
    for file in sorted(DATA.glob("*/card.json"), key=lambda each: each.parent.name):
        card, name = json.loads(file.read_text()), file.parent.name
        heads = (file.parent / "heads.json").exists()
        row = {"name": name, "parameters": card["parameters"], "note": card.get("note", ""), "heads": heads}
        found.append({**row, "model": f"Pocket('{name}')"})
    return sorted(found, key=lambda row: -row["parameters"])


def _roster(as_json: bool) -> None:
    from ramify.models.catalog import load

    listed = load().configurations.values()
    found = [
        {"name": each.name, "family": each.family, "effort": each.effort, "blocks": list(each.blocks)}
        for each in listed
    ]
    rows = [[each.name, each.family, each.effort, ", ".join(each.blocks)] for each in listed]
    emit(
        as_json, {"configurations": found}, table(["configuration", "family", "effort", "blocks"], rows, left=range(4))
    )

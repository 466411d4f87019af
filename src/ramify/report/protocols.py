"""The protocols of a study against each other: utility and cost of every row, and the declared comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ramify.metrics.bankcurve import mean_in
from ramify.metrics.estimate import Estimate
from ramify.report import charts, text
from ramify.report.case import mean_of
from ramify.report.health import pointed
from ramify.report.theme import MUTED, SERIES, palette
from ramify.report.values import Column, Figure, Part, Remark, Section, Table
from ramify.study.result import STAGES, Comparison, Result, Row

__all__ = ["comparison_section", "costs", "estimate_of", "frontier", "protocol_section", "results_table"]

SENTENCES = 4  # about shared banks, before they move to the protocol card
MIXED = (
    " Configurations of this task were asked through different prompt interfaces, which stand in brackets: "
    "a difference mixes the model with how it was asked."
)
VIEWS = 60  # specifications of one figure; beyond it only total costs can be chosen


def estimate_of(row: Row) -> Estimate:
    """The mean utility of a row with its interval over questions; a row is resampled once, as long as it lives."""
    if row not in _known:
        _known[row] = row.estimate()
    return _known[row]


_known: WeakKeyDictionary[Row, Estimate] = WeakKeyDictionary()


def protocol_section(result: Result) -> Section:
    """Utility against total cost, a view for each task and model."""
    lead = (
        "Each point is one protocol at one budget: the mean utility of what it submitted against everything it was "
        "charged. Points of a shared bank isolate the rule and claim no saving; end-to-end points ran and paid "
        "on their own."
    )
    pairs = [(row.task, row.model) for row in result.rows]
    roster = len({model for _, model in pairs}) > 1
    parts: list[Part] = [] if roster and len(set(pairs)) == len(pairs) else [frontier(result)]  # one point is no curve
    parts += [standing(result)] if roster else []
    many = (f"{text.count(len(result.shared), 'sentence')} under Protocol say which rows share candidates.",)
    parts += [Remark(words) for words in (result.shared if len(result.shared) <= SENTENCES else many)]
    parts += pointed(estimate_of(row) for row in result.rows)
    return Section("scaling", "Scaling", lead, (*parts, results_table(result)))


def costs(row: Row, axis: str) -> float:
    """The mean cost of a row's questions: in total, or of one stage."""
    table = row.total if axis == "total cost" else np.broadcast_to(row.cost.get(axis, 0.0), row.utility.shape)
    return float(mean_in(np.where(np.isnan(row.utility), np.nan, table)[:, None])[0])


def frontier(result: Result) -> Figure:
    """Utility against cost with intervals; end-to-end lines are solid, diagnostics dashed."""
    pairs = list(dict.fromkeys((row.task, row.model) for row in result.rows))
    stages = [stage for stage in STAGES if any(np.any(row.cost.get(stage, 0.0)) for row in result.rows)]
    axes = ["total cost", *(stages if len(stages) > 1 and len(pairs) * (len(stages) + 1) <= VIEWS else [])]
    names = list(dict.fromkeys(row.name for row in result.rows))
    dashed = sorted({row.name for row in result.rows if row.kind == "diagnostic"})
    colours = palette([name for name in names if name not in dashed]) | dict.fromkeys(dashed, SERIES[-1])
    rows = [row for pair in pairs for axis in axes for row in _points(result, pair, axis)]
    specs, alts = {}, {}
    for axis in axes:
        for task, model in pairs:
            mine = [row for row in rows if (row["task"], row["model"], row["axis"]) == (task, model, axis)]
            if mine:
                specs[_view(task, model, axis, pairs)] = _spec(mine, _axis_title(result, axis, stages), colours, dashed)
                alts[_view(task, model, axis, pairs)] = _ends(mine, f"{model} on {task}", axis)
    first = next(iter(specs))
    return Figure(
        name="scaling",
        title="Utility against cost",
        spec=specs[first],
        rows=rows,
        alt=alts[first],
        note=(
            f"Vertical lines: {text.band(estimate_of(result.rows[0]))}. Dashed curves have seen the references and "
            "cannot be deployed. Settings are points; lines between them only guide the eye. Protocols of equal cost "
            f"are drawn a few pixels apart, so that their lines can be told apart.{_replayed(result)}"
        ),
        view=first if len(specs) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != first},
        hidden=("label", "label_y", "dodge"),
        alts=alts,
    )


def _ends(rows: Sequence[Mapping[str, Any]], where: str, axis: str) -> str:
    """The cheapest and the best of a view's deployable points, in words."""
    best = max(rows, key=lambda row: (row["kind"] != "diagnostic", np.nan_to_num(row["utility"], nan=-1.0)))
    least = min(rows, key=lambda row: (row["kind"] == "diagnostic", np.nan_to_num(row["cost"], nan=np.inf)))
    which = "" if axis == "total cost" else f" of {axis}"
    return (
        f"{where}: {text.percent(least['utility'])} at {text.number(least['cost'])} {least['unit']}{which} a "
        f"question ({least['protocol']}), and at best {text.percent(best['utility'])} at "
        f"{text.number(best['cost'])} ({best['protocol']})."
    )


def _replayed(result: Result) -> str:
    if all(row.spread is None for row in result.rows):
        return ""
    return " The data also has replay bands, which are the spread of a simulation and no confidence interval."


def standing(result: Result) -> Figure:
    """The configurations side by side, a view for each task and protocol at its largest budget."""
    largest: dict[tuple[str, str, str], Row] = {}
    for row in result.rows:
        key = (row.task, row.name, row.model)
        largest[key] = max(largest.get(key, row), row, key=lambda each: each.k or each.budget or 0)
    tasks, rows, specs = len({row.task for row in result.rows}), [], {}
    alts, notes = {}, {}
    scale = {"type": "quantitative", "scale": {"domain": [0, 1], "nice": False}}
    x = {"field": "utility", **scale, "axis": {"format": ".0%", "title": "utility", "tickCount": 5}}
    tooltip = [
        {"field": "configuration", "title": "configuration"},
        {"field": "setting", "title": "protocol"},
        {"field": "interface", "title": "prompt interface"},
        {"field": "utility", "title": "utility", "format": ".1%", "type": "quantitative"},
        {"field": "invalid", "title": "no answer", "format": ".1%", "type": "quantitative"},
        {"field": "capped", "title": "hit the cap", "format": ".1%", "type": "quantitative"},
        {"field": "tokens", "title": "mean tokens", "format": ",.4~r", "type": "quantitative"},
        {"field": "band", "title": "band"},
    ]
    for task, name in dict.fromkeys((task, name) for task, name, _ in largest):
        view = f"{task}: {name}" if tasks > 1 else name
        mixed = task in result.mixed
        mine = [_stand(row, view, mixed) for key, row in largest.items() if key[:2] == (task, name)]
        mine.sort(key=lambda row: -np.nan_to_num(row["utility"], nan=-1.0))
        rows += mine
        alts[view] = (
            f"{view}, best first: {text.listed([' '.join((row['configuration'], row['said'])) for row in mine])}."
        )
        notes[view] = (
            f"Each protocol at its largest budget. Lines: {mine[0]['band']}, resampled alike for all configurations."
        ) + (MIXED if mixed else "")
        order, keep = [row["configuration"] for row in mine], {"field": "view", "equal": view}
        specs[view] = charts.dots(x, "configuration", order, tooltip=tooltip, keep=keep)
    first = next(iter(specs))
    return Figure(
        name="standing",
        title="Configurations side by side",
        spec=specs[first],
        rows=rows,
        alt=alts[first],
        note=notes[first],
        view=first if len(specs) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != first},
        hidden=("said",),
        alts=alts,
        notes=notes,
    )


def _stand(row: Row, view: str, mixed: bool) -> dict[str, Any]:
    """A configuration; where they were asked in different ways, the way stands beside its value."""
    found = estimate_of(row)
    return {
        "view": view,
        "configuration": row.model,
        "setting": row.label,
        "interface": row.interface,
        "kind": row.kind,
        "utility": found.value,
        "low": found.low,
        "high": found.high,
        "band": text.band(found),
        "invalid": mean_of(row.invalid),
        "capped": mean_of(row.capped),
        "tokens": mean_of(row.tokens),
        "said": text.percent(found.value) + (f" ({row.interface or 'interface unknown'})" if mixed else ""),
    }


def _view(task: str, model: str, axis: str, pairs: Sequence[tuple[str, str]]) -> str:
    place = f"{task}, {model}" if len(pairs) > 1 else ""
    return ": ".join(part for part in (place, "" if axis == "total cost" and place else axis) if part)


def _axis_title(result: Result, axis: str, stages: Sequence[str]) -> str:
    """What the axis counts and what it leaves out."""
    unit = next(row.unit for row in result.rows)
    said = result.card.get("unit", "")
    prompts = ", excludes prompt tokens" if said.startswith("Tokens(") and "prompt=True" not in said else ""
    if axis == "total cost":
        return f"{unit} a question, {' + '.join(stages)}{prompts}"
    others = [stage for stage in stages if stage != axis]
    return f"{unit} a question of {axis} alone, excludes {text.listed(others)}"


def _points(result: Result, pair: tuple[str, str], axis: str) -> list[dict[str, Any]]:
    rows = []
    for row in result.rows:
        if (row.task, row.model) != pair:
            continue
        found, cost, replayed = estimate_of(row), costs(row, axis), row.replays()
        rows.append(
            {
                "task": row.task,
                "model": row.model,
                "axis": axis,
                "protocol": row.name,
                "setting": row.label,
                "kind": row.kind,
                "cost": cost,
                "unit": row.unit,
                "utility": found.value,
                "low": found.low,
                "high": found.high,
                "band": text.band(found),
                "replays low": None if replayed is None else replayed[0],
                "replays high": None if replayed is None else replayed[1],
                "invalid": mean_of(row.invalid),
                "capped": mean_of(row.capped),
                "tokens": mean_of(row.tokens),
            }
        )
    rows.sort(key=lambda row: (row["protocol"], row["cost"]))
    return charts.dodged(charts.labelled(rows, "protocol", "cost", "utility"), "protocol", "cost")


def _spec(
    rows: Sequence[Mapping[str, Any]], title: str, colours: Mapping[str, str], dashed: Sequence[str]
) -> dict[str, Any]:
    spent = [row["cost"] for row in rows if not np.isnan(row["cost"])]
    log = min(spent) > 0 and max(spent) / min(spent) > 8
    x = {"field": "cost", **charts.amount_axis(title, log, spent=spent)}
    y = {"field": "utility", **charts.share_axis("utility")}
    tooltip = [
        {"field": "setting", "title": "protocol"},
        {"field": "kind", "title": "kind"},
        {"field": "cost", "title": "cost a question", "format": ",.4~r", "type": "quantitative"},
        {"field": "utility", "title": "utility", "format": ".1%", "type": "quantitative"},
        {"field": "invalid", "title": "no answer", "format": ".1%", "type": "quantitative"},
        {"field": "capped", "title": "hit the cap", "format": ".1%", "type": "quantitative"},
        {"field": "tokens", "title": "mean tokens", "format": ",.4~r", "type": "quantitative"},
        {"field": "band", "title": "band"},
    ]
    keep = {"and": [{"field": name, "equal": rows[0][name]} for name in ("task", "model", "axis")]}
    present = {name: colours[name] for name in dict.fromkeys(row["protocol"] for row in rows)}
    return charts.curves(
        present, x, y, series="protocol", tooltip=tooltip, dashed=dashed, keep=keep, height=360, whiskers=True
    )


def results_table(result: Result) -> Table:
    """Every row: utility with its interval, cost by stage, and what belongs beside an accuracy."""
    stages = [stage for stage in STAGES if any(stage in row.cost for row in result.rows)]
    columns = (
        Column("task", "task"),
        Column("model", "model"),
        Column("protocol", "protocol"),
        Column("kind", "kind"),
        Column("utility", "utility", "percent"),
        Column("invalid", "no answer", "percent"),
        Column("capped", "hit the cap", "percent"),
        Column("tokens", "mean tokens", "number", "completion tokens of a candidate"),
        Column("cost", "cost a question", "number"),
        *(Column(stage, stage, "number") for stage in stages if len(stages) > 1),
    )
    rows = [
        {
            "task": row.task,
            "model": row.model,
            "protocol": row.label,
            "kind": row.kind,
            "utility": estimate_of(row),
            "invalid": mean_of(row.invalid),
            "capped": mean_of(row.capped),
            "tokens": mean_of(row.tokens),
            "cost": costs(row, "total cost"),
            **{stage: costs(row, stage) for stage in stages},
        }
        for row in result.rows
    ]
    unit = next(row.unit for row in result.rows)
    note = f"In brackets: {text.band(rows[0]['utility'])}. Costs in {unit}. A diagnostic has seen the references."  # type: ignore[arg-type]
    table = Table("results", "Every protocol at every budget", columns, rows, note)
    return table.without_constant("task", "model")


# --------------------------------------------------------------------------------------------------------- comparisons


def comparison_section(result: Result) -> Section | None:
    """The declared differences, paired over questions."""
    comparisons = result.comparisons
    if not comparisons:
        return None
    lead = (
        "Differences that the study declared beforehand, paired question by question. An interval that crosses zero "
        "leaves the sign open."
    )
    parts = (differences(comparisons), comparison_table(comparisons, result.rows))
    return Section("comparisons", "Comparisons", lead, parts)


def _same(each: Comparison) -> str:
    """Whether the two sides saw the same candidates: rules of one bank do at one k, and only there."""
    one, two = (side.rpartition(", k = ")[2] for side in (each.a, each.b))
    if not each.same_bank:
        return "no"
    return "yes" if one == two else f"the same bank, {one} and {two} of its candidates"


def _pair(each: Comparison, tasks: int) -> tuple[str, str]:
    """The two sides, and once what they have in common: the model, the task."""
    (one, _, a), (two, _, b) = each.a.rpartition(": "), each.b.rpartition(": ")
    shared = [part for part in (one if one == two else "", each.task if tasks > 1 else "") if part]
    return f"{a} − {b}" if one == two else f"{each.a} − {each.b}", ", ".join(shared)


def _named(comparisons: Sequence[Comparison]) -> tuple[list[str], str]:
    """(a name for each difference, what all have in common): that is said once, above all of them."""
    pairs = [_pair(each, len({each.task for each in comparisons})) for each in comparisons]
    common = {shared for _, shared in pairs}
    if len(common) == 1:
        return [sides for sides, _ in pairs], common.pop()
    return [f"{sides} ({shared})" if shared else sides for sides, shared in pairs], ""


def _inside(found: Estimate) -> str:
    return f"{text.points(found.value)} [{100 * found.low:.1f}, {100 * found.high:.1f}]".replace("-", "−")


def differences(comparisons: Sequence[Comparison]) -> Figure:
    """A line a difference, against zero."""
    names, common = _named(comparisons)
    rows: list[dict[str, Any]] = [
        {
            "difference of": name,
            "value": each.difference.value,
            "low": each.difference.low,
            "high": each.difference.high,
            "questions": each.questions,
            "same candidates": _same(each),
            "band": text.band(each.difference),
            "said": text.points(each.difference.value),
        }
        for each, name in zip(comparisons, names, strict=True)
    ]
    widest = max(0.05, *(abs(float(np.nan_to_num(row[end]))) for row in rows for end in ("low", "high")))
    x = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [-widest, widest], "nice": True},
        "axis": {"format": "+.0%", "title": "difference of utility, a minus b", "tickCount": 5},
    }
    tooltip = [
        {"field": "difference of", "title": "a − b"},
        {"field": "value", "title": "difference", "format": "+.1%", "type": "quantitative"},
        {"field": "questions", "title": "questions"},
        {"field": "same candidates", "title": "same candidates"},
        {"field": "band", "title": "band"},
    ]
    spec = charts.dots(x, "difference of", names, tooltip=tooltip, colour=SERIES[0], letters=44)
    at_zero = {name: part for name, part in x.items() if name != "field"} | {"datum": 0}
    zero = {"mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3]}, "encoding": {"x": at_zero}}
    spec["layer"] = [zero, *spec["layer"]]
    return Figure(
        name="differences",
        title="Differences, paired over questions" + (f": {common}" if common else ""),
        spec=spec,
        rows=rows,
        alt="; ".join(f"{name}: {_inside(each.difference)}" for name, each in zip(names, comparisons, strict=True))
        + ".",
        note=f"Lines: {rows[0]['band']}.",
        hidden=("said",),
    )


def comparison_table(comparisons: Sequence[Comparison], rows_of: Sequence[Row] = ()) -> Table:
    """Each difference with what it mixes, and what belongs beside the accuracies of its two sides."""
    known = {(row.task, f"{row.model}: {row.label}"): row for row in rows_of}

    def beside(each: Comparison, what: str, say: Callable[[float], str]) -> str:
        """The two sides, once where they are the same."""
        found = [known.get((each.task, side)) for side in (each.a, each.b)]
        said = ["–" if row is None else say(mean_of(getattr(row, what))) for row in found]
        return said[0] if said[0] == said[1] else " / ".join(said)

    columns = (
        Column("task", "task"),
        Column("a", "a"),
        Column("b", "b"),
        Column("difference", "a − b", "points"),
        Column("questions", "questions", "count"),
        Column("same", "same candidates"),
        Column("invalid", "no answer, a / b"),
        Column("capped", "hit the cap, a / b"),
        Column("tokens", "mean tokens, a / b"),
        Column("note", "remark"),
    )
    rows = [
        {
            "task": each.task,
            "a": each.a,
            "b": each.b,
            "difference": each.difference,
            "questions": each.questions,
            "same": "yes: the rule alone differs" if _same(each) == "yes" else _same(each),
            "invalid": beside(each, "invalid", text.percent),
            "capped": beside(each, "capped", text.percent),
            "tokens": beside(each, "tokens", text.number),
            "note": each.note,
        }
        for each in comparisons
    ]
    note = f"In brackets: {text.band(comparisons[0].difference)}."
    return Table("comparisons", "Declared comparisons", columns, rows, note).without_constant("task")

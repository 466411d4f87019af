"""Many configurations at once: the spread of their profiles, whether few candidates rank them, how each was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ramify.report import charts, text
from ramify.report.case import Case
from ramify.report.groups import beside_of, members
from ramify.report.theme import SERIES
from ramify.report.values import Column, Figure, Part, Remark, Section, Table
from ramify.study.result import Agreed, Measure, Result

__all__ = ["agreement_figure", "interface_section", "measure_table", "roster_figure", "roster_section"]

MEASURES = {"spearman": "Spearman", "kendall": "Kendall", "weighted": "weighted Kendall"}


def roster_section(result: Result, cases: Mapping[str, Case]) -> Section | None:
    """The roster's profiles, rank agreement, and the metrics that the study asked for."""
    parts: list[Part] = []
    by_task = _by_task(result, cases)
    if any(len(each) >= 3 for each in by_task.values()):
        parts.append(roster_figure({task: each for task, each in by_task.items() if len(each) >= 3}))
    if result.agreements:
        parts.append(agreement_figure(result.agreements))
    if result.measures:
        parts.append(measure_table(result.measures, cases))
    if not parts:
        return None
    lead = (
        "How configurations spread, and whether a few candidates order them as all candidates do. These describe this "
        "roster and its banks; they are no guarantee for another."
    )
    return Section("roster", "Configurations and rankings", lead, tuple(parts), wide=len(parts) > 1)


def _by_task(result: Result, cases: Mapping[str, Case]) -> dict[str, list[Case]]:
    found: dict[str, dict[str, Case]] = {}
    for row in result.rows:
        if row.bank in cases and cases[row.bank].bank.kind == "iid" and cases[row.bank].top > 1:
            found.setdefault(row.task, {})[row.bank] = cases[row.bank]
    return {task: list(each.values()) for task, each in found.items()}


def roster_figure(by_task: Mapping[str, Sequence[Case]]) -> Figure:
    """Median Pass@k and pass^k over configurations, with their interquartile range."""
    colours = {"Pass@k": SERIES[0], "pass^k": SERIES[2]}
    rows, specs, alts = [], {}, {}
    for task, cases in by_task.items():
        budgets = [k for k in cases[0].budgets if all(k in case.budgets for case in cases)]
        mine: list[dict[str, Any]] = []
        for series in colours:
            table = np.array(
                [
                    [
                        float((case.ceiling if series == "Pass@k" else case.floor).mean[case.budgets.index(k)])
                        for k in budgets
                    ]
                    for case in cases
                ]
            )
            low, middle, high = np.nanquantile(table, [0.25, 0.5, 0.75], axis=0)
            mine += [
                {
                    "task": task,
                    "series": series,
                    "k": k,
                    "median": middle[i],
                    "low": low[i],
                    "high": high[i],
                    "band": f"interquartile range of {len(cases)} configurations",
                }
                for i, k in enumerate(budgets)
            ]
        rows += charts.labelled(mine, "series", "k", "median")
        x = {"field": "k", **charts.amount_axis("candidates k", True, budgets)}
        y = {"field": "median", **charts.share_axis("share of questions, median")}
        tooltip = [
            {"field": "series", "title": "curve"},
            {"field": "k", "title": "candidates k"},
            {"field": "median", "title": "median", "format": ".1%", "type": "quantitative"},
            {"field": "band", "title": "band"},
        ]
        specs[task] = charts.curves(colours, x, y, tooltip=tooltip, keep={"field": "task", "equal": task})
        last = {row["series"]: row["median"] for row in mine}
        alts[task] = (
            f"{task}: the median Pass@k reaches {text.percent(last['Pass@k'])} and the median pass^k "
            f"{text.percent(last['pass^k'])}."
        )
    first = next(iter(specs))
    return Figure(
        name="roster",
        title="Discovery and stability across configurations",
        spec=specs[first],
        rows=rows,
        alt=alts[first],
        note="Lines: the median configuration. Bands: interquartile range of configurations, no confidence interval.",
        view=first if len(specs) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != first},
        hidden=("label", "label_y"),
        alts=alts,
    )


def agreement_figure(agreements: Sequence[Agreed]) -> Figure:
    """How well k candidates rank the models as all N do, over paired replays."""
    colours = {name: SERIES[i] for i, name in enumerate(MEASURES.values())}
    rows, specs, alts = [], {}, {}
    for task in dict.fromkeys(each.task for each in agreements):
        mine = [
            {
                "task": task,
                "measure": MEASURES[each.measure],
                "k": int(k),
                "agreement": each.mean[i],
                "low": each.low[i],
                "high": each.high[i],
                "band": "central 95 % of replays",
                "models": len(each.models),
            }
            for each in agreements
            if each.task == task
            for i, k in enumerate(each.budgets)
        ]
        rows += charts.labelled(mine, "measure", "k", "agreement")
        low = min(0.0, float(np.nanmin([row["low"] for row in mine])))
        x = {"field": "k", **charts.amount_axis("candidates k", True, sorted({row["k"] for row in mine}))}
        y = {
            "field": "agreement",
            "type": "quantitative",
            "scale": {"domain": [low, 1], "nice": False},
            "axis": {"title": "agreement with the ranking by all", "tickCount": 5},
        }
        tooltip = [
            {"field": "measure", "title": "measure"},
            {"field": "k", "title": "candidates k"},
            {"field": "agreement", "title": "mean agreement", "format": ".3f", "type": "quantitative"},
            {"field": "band", "title": "band"},
        ]
        present = {name: colour for name, colour in colours.items() if any(row["measure"] == name for row in mine)}
        specs[task] = charts.curves(
            present, x, y, series="measure", tooltip=tooltip, keep={"field": "task", "equal": task}
        )
        one = mine[0]
        alts[task] = (
            f"{task}: rankings of {one['models']} models by {text.count(int(one['k']), 'candidate')} agree with the "
            f"ranking by all with a {one['measure']} of {one['agreement']:.3f}."
        )
    first = next(iter(specs))
    return Figure(
        name="agreement",
        title="Do few candidates rank models as all do?",
        spec=specs[first],
        rows=rows,
        alt=alts[first],
        note="Bands: central 95 % of paired replays of these banks, no confidence interval.",
        view=first if len(specs) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != first},
        hidden=("label", "label_y"),
        alts=alts,
    )


def measure_table(measures: Sequence[Measure], cases: Mapping[str, Case] | None = None) -> Table:
    """The metrics that the study asked for, by bank and by group."""
    columns = (
        Column("task", "task"),
        Column("model", "model"),
        Column("metric", "metric", "code"),
        Column("group", "group"),
        Column("value", "value", "percent"),
        Column("questions", "questions", "count"),
        Column("invalid", "no answer", "percent"),
        Column("capped", "hit the cap", "percent"),
        Column("tokens", "mean tokens", "number", "completion tokens of a candidate"),
        Column("band", "in brackets"),
    )
    rows = [
        {
            "task": each.task,
            "model": each.model,
            "metric": each.metric,
            "group": each.group or "all",
            "value": each.estimate,
            "questions": each.questions or None,
            **_beside(each, (cases or {}).get(each.bank)),
            "band": text.band(each.estimate),
        }
        for each in measures
    ]
    note = (
        "Each interval has resamples of its own, so it differs from that of the same number elsewhere by their noise."
    )
    table = Table("measures", "Metrics of the study", columns, rows, note)
    return table.without_constant("task", "model", "group")


def _beside(each: Measure, case: Case | None) -> dict[str, float]:
    """No answer, caps and tokens of the bank's questions, or of those in the measure's group."""
    if case is None:
        return {}
    by, equals, group = each.group.partition("=")
    return beside_of(case, members(case, by, group) if equals else np.ones(len(case.bank.questions), dtype=bool))


def interface_section(result: Result) -> Section | None:
    """Which prompt interface each configuration had on each task, with a warning where a comparison mixes them."""
    if not result.interfaces:
        return None
    tasks = list(dict.fromkeys(each.task for each in result.interfaces))
    models = list(dict.fromkeys(each.model for each in result.interfaces))
    cell = {
        (each.model, each.task): f"{each.interface}, {text.count(each.questions, 'question')}"
        for each in result.interfaces
    }
    rows = [
        {"model": model, **{f"on {task}": cell.get((model, task), "not asked") for task in tasks}} for model in models
    ]
    columns = (Column("model", "configuration"), *(Column(f"on {task}", task) for task in tasks))
    parts: list[Part] = [
        Remark(
            f"On {task}, configurations were asked through different prompt interfaces. A difference between them "
            "mixes the model with how it was asked.",
            "warning",
        )
        for task in result.mixed
    ]
    parts.append(Table("interfaces", "Prompt interfaces by configuration and task", columns, rows))
    lead = "How each configuration was asked on each task. Only numbers of one interface compare like with like."
    return Section("interfaces", "Prompt interfaces", lead, tuple(parts))

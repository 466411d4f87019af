"""Stopping early: how many candidates a stop would have looked at, and what would have been submitted then."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ramify.decide import Plurality
from ramify.metrics.stopping import Stop, StopReplay, replay_stop
from ramify.report import charts, text
from ramify.report.case import Case
from ramify.report.theme import LABELS, SERIES
from ramify.report.values import Column, Figure, Remark, Section, Table
from ramify.stop import AdaptiveConsistency, Esc

__all__ = ["STOPS", "stopping_section", "trade_off"]

# Two families, each from eager to patient.
STOPS: Mapping[str, Mapping[str, Stop]] = {
    "Adaptive-Consistency": {f"{level:g}": AdaptiveConsistency(level) for level in (0.8, 0.9, 0.95, 0.99)},
    "ESC": {f"windows of {size}": Esc(size) for size in (2, 3, 4, 5)},
}
FIXED = "plurality at fixed k"
REPLAYS = 50
NAMES = (LABELS[1], LABELS[2], LABELS[0])  # the colours of the names: two families of stops, then fixed budgets


def stopping_section(cases: Sequence[Case]) -> Section | None:
    """The trade-off on each bank; None where a bank is too small for any stop to have a choice."""
    able = [case for case in cases if case.usual >= 4]
    if not able:
        return None
    replayed = {case.name: _replayed(case) for case in able}
    lead = (
        "Stops replayed on the stored candidates: each point is one stop, at the number of candidates it looked at on "
        "average. Points above the line of fixed budgets spend the same candidates better."
    )
    remark = Remark(
        "Retrospective: every candidate had been drawn and paid for. A replay shows what a stop would have decided; "
        "savings are claimed by end-to-end runs alone."
    )
    return Section("stopping", "Stopping", lead, (trade_off(able, replayed), stop_table(able, replayed), remark))


def _replayed(case: Case) -> dict[tuple[str, str], StopReplay]:
    """(family, setting) -> the replay, for every stop that fits the bank."""
    return {
        (family, setting): replay_stop(stop, Plurality(), case.bank, case.outcomes, replicates=REPLAYS)
        for family, stops in STOPS.items()
        for setting, stop in stops.items()
        if getattr(stop, "window", 0) <= case.usual // 2
    }


def trade_off(cases: Sequence[Case], replayed: Mapping[str, Mapping[tuple[str, str], StopReplay]]) -> Figure:
    """Accuracy at the stop against the candidates looked at, over plurality at fixed budgets."""
    rows = [row for case in cases for row in _titled([*_fixed_rows(case), *_stop_rows(case, replayed[case.name])])]
    colours = {"Adaptive-Consistency": SERIES[1], "ESC": SERIES[2]}
    tooltip = [
        {"field": "family", "title": "stop"},
        {"field": "setting", "title": "setting"},
        {"field": "samples", "title": "candidates", "format": ".3~r", "type": "quantitative"},
        {"field": "share", "title": "accuracy", "format": ".1%", "type": "quantitative"},
        {"field": "same", "title": "same answer as all", "format": ".1%", "type": "quantitative"},
        {"field": "band", "title": "band"},
    ]
    specs, alts, notes = {}, {}, {}
    for case in cases:
        y = {"field": "share", **_zoomed([row for row in rows if row["bank"] == case.name])}
        x = {"field": "samples", **charts.amount_axis("candidates looked at a question, excludes run-ahead", False)}
        fixed = {"field": "family", "equal": FIXED}
        under: list[dict[str, Any]] = [
            {
                "transform": [{"filter": fixed}],
                "mark": {"type": "area", "color": SERIES[0], "opacity": 0.14},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "transform": [{"filter": fixed}],
                "mark": {"type": "line", "color": SERIES[0]},
                "encoding": {"x": x, "y": y},
            },
            {
                "transform": [{"filter": fixed}],
                "mark": {"type": "point", "filled": True, "size": 36, "color": SERIES[0], "opacity": 1},
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            *(_name(family, colour, x, y) for family, colour in zip((*colours, FIXED), NAMES, strict=True)),
        ]
        keep = {"field": "bank", "equal": case.name} if len(cases) > 1 else None
        specs[case.name] = charts.points(
            x,
            y,
            colours=colours,
            series="family",
            tooltip=tooltip,
            under=under,
            keep=keep,
            only={"not": fixed},
            dodge=True,
        )
        last = next(row for row in rows[::-1] if (row["bank"], row["family"]) == (case.name, "Adaptive-Consistency"))
        alts[case.name] = (
            f"{case.name}: Adaptive-Consistency at {last['setting']} looks at {last['samples']:.1f} of "
            f"{case.usual} candidates on average and reaches {text.percent(last['share'])}; plurality of all "
            f"{case.usual} reaches {text.percent(case.whole.rules['plurality'].mean[-1])}."
        )
        notes[case.name] = (
            f"Lines and band: {text.band(case.accuracy)}, of stops after averaging {REPLAYS} replays a question. "
            "Stops that look at the same number of candidates are drawn a few pixels apart. Retrospective. "
            f"{case.fewer(case.rules['plurality'])}"
        ).rstrip()
    case = cases[0]
    return Figure(
        name="stopping",
        title="Accuracy against candidates looked at",
        spec=specs[case.name],
        rows=rows,
        alt=alts[case.name],
        note=notes[case.name],
        view=case.name if len(cases) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != case.name},
        hidden=("title", "title_y", "edge", "dodge"),
        alts=alts,
        notes=notes,
    )


def _name(family: str, colour: str, x: Mapping[str, Any], y: Mapping[str, Any]) -> dict[str, Any]:
    """The name of a family at the right edge, at the height of its most patient member."""
    return {
        "transform": [{"filter": {"field": "title", "equal": family}}],
        "mark": {**charts.LABEL, "dx": 14, "color": colour},
        "encoding": {
            "x": {**x, "field": "edge"},
            "y": {**y, "field": "title_y"},
            "text": {"field": "title", "type": "nominal"},
        },
    }


def _zoomed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An axis of shares around the intervals; it says where it starts, because that is not at zero."""
    low, high = _range(rows)
    title = "accuracy" + (f" (the axis starts at {low:.0%})" if low > 0 else "")
    axis = charts.share_axis(title)
    return {**axis, "scale": {"domain": [low, high], "nice": False, "zero": False}}


def _range(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Tenths around all intervals, three of them at least: of values that are all alike, an axis would be a point."""
    ends = [row[name] for row in rows for name in ("low", "high", "share") if not np.isnan(row[name])]
    low, high = math.floor(10 * min(ends, default=0.0) + 1e-9), math.ceil(10 * max(ends, default=1.0) - 1e-9)
    high = min(10, max(high, low + 3))
    return max(0, min(low, high - 3)) / 10, high / 10


def _titled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last row of each family with its name and a place for it; names keep apart."""
    rows = charts.dodged(rows, "family", "samples")
    last = {row["family"]: row for row in rows if not np.isnan(row["share"])}
    low, high = _range(rows)
    edge = max(row["samples"] for row in rows)
    places = charts.spread([row["share"] for row in last.values()], 1.3 * charts.LINE * (high - low), low, high)
    for row, place in zip(last.values(), places, strict=True):
        row |= {"title": row["family"], "title_y": place, "edge": edge}
    return rows


def _fixed_rows(case: Case) -> list[dict[str, Any]]:
    curve = case.rules["plurality"]
    return [
        {
            "bank": case.name,
            "family": FIXED,
            "setting": f"k = {k}",
            "samples": float(k),
            "share": found.value,
            "low": found.low,
            "high": found.high,
            "same": None,
            "band": text.band(found),
        }
        for k, found in zip(case.budgets, case.intervals(curve), strict=True)
    ]


def _stop_rows(case: Case, replayed: Mapping[tuple[str, str], StopReplay]) -> list[dict[str, Any]]:
    rows = []
    for (family, setting), found in replayed.items():
        (estimate,) = case.over(found.values[:, None])
        rows.append(
            {
                "bank": case.name,
                "family": family,
                "setting": setting,
                "samples": float(found.samples.mean()),
                "share": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "same": float(found.same.mean()),
                "band": text.band(estimate),
            }
        )
    return rows


def stop_table(cases: Sequence[Case], replayed: Mapping[str, Mapping[tuple[str, str], StopReplay]]) -> Table:
    """Every stop: candidates, accuracy, agreement with the whole bank, how often nothing was submitted."""
    columns = (
        *([Column("bank", "bank")] if len(cases) > 1 else []),
        Column("family", "stop"),
        Column("setting", "setting"),
        Column("samples", "mean candidates", "number"),
        Column("share", "accuracy", "percent"),
        Column("same", "same answer as all", "percent"),
        Column("stopped", "stopped by itself", "percent"),
        Column("invalid", "nothing submitted", "percent"),
        Column("capped", "hit the cap", "percent", "candidates that the length limit ended"),
        Column("tokens", "mean tokens", "number", "completion tokens of a candidate"),
    )
    rows = []
    for case in cases:
        for (family, setting), found in replayed[case.name].items():
            (estimate,) = case.over(found.values[:, None])
            rows.append(
                {
                    "bank": case.name,
                    "family": family,
                    "setting": setting,
                    "samples": float(found.samples.mean()),
                    "share": estimate,
                    "same": float(found.same.mean()),
                    "stopped": float(found.stopped.mean()),
                    "invalid": float(found.invalid.mean()),
                    "capped": case.shares["capped"],
                    "tokens": case.shares["tokens"],
                }
            )
    return Table(
        "stops", "Stops, replayed", columns, rows, f"In brackets: {text.band(cases[0].accuracy)}. Retrospective."
    )

"""Discovery and stability: Pass@k, pass^k and everything between them, as curves and as the triangle S_{k,t}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ramify.metrics.profile import bank_profile
from ramify.report import charts, text
from ramify.report.case import Case
from ramify.report.health import beside
from ramify.report.theme import SERIES
from ramify.report.values import Figure, Part, Remark, Section

__all__ = ["curve_rows", "discovery", "heat_map", "profile_section"]

CELLS = 80  # a triangle of more columns is thinned: squares below 5 pixels cannot be told apart


def profile_section(cases: Sequence[Case]) -> Section:
    """The discovery–stability profile of every bank."""
    parts: list[Part] = [discovery(cases)]
    binary = [case for case in cases if case.binary]
    if binary:
        parts.append(heat_map(binary))
    for case in cases:
        if not case.binary:
            parts.append(
                Remark(f"{case.name}: grades between 0 and 1 have no count of correct candidates, so no triangle.")
            )
        if case.tally.remark if case.binary else False:
            parts.append(Remark(f"{case.name}: {case.tally.remark}."))
    lead = (
        "Discovery asks whether any of k candidates is right; stability, whether all of them are. "
        "The two curves start at the accuracy of one candidate and part from there."
    )
    return Section("profile", "Discovery and stability", lead, tuple(parts), wide=len(parts) == 2)


def curve_rows(case: Case) -> list[dict[str, Any]]:
    """Pass@k and pass^k at each budget, with intervals over questions."""
    rows = []
    for series, curve in (("Pass@k", case.ceiling), ("pass^k", case.floor)):
        inside = (~np.isnan(curve.values)).sum(axis=0)
        for k, found, there in zip(case.budgets, case.intervals(curve), inside, strict=True):
            rows.append(
                {
                    "bank": case.name,
                    "series": series,
                    "k": k,
                    "share": found.value,
                    "low": found.low,
                    "high": found.high,
                    "questions": int(there),
                    "band": text.band(found),
                }
            )
    return charts.labelled(rows, "series", "k", "share")


def discovery(cases: Sequence[Case]) -> Figure:
    """Pass@k above, pass^k below: one view a bank."""
    colours = {"Pass@k": SERIES[0], "pass^k": SERIES[2]}
    x = {"field": "k", **charts.amount_axis("candidates k", log=True, values=max((c.budgets for c in cases), key=len))}
    y = {"field": "share", **charts.share_axis("share of questions")}
    tooltip = [
        {"field": "series", "title": "curve"},
        {"field": "k", "title": "candidates k"},
        {"field": "share", "title": "share", "format": ".1%", "type": "quantitative"},
        {"field": "questions", "title": "questions"},
        {"field": "band", "title": "band"},
    ]
    specs = {
        case.name: charts.curves(colours, x, y, tooltip=tooltip, keep=_bank(case) if len(cases) > 1 else None)
        for case in cases
    }
    alts = {
        case.name: (
            f"{case.name}: Pass@k rises from {text.percent(case.ceiling.mean[0])} at {case.least} to "
            f"{text.percent(case.ceiling.mean[-1])} at {case.top}; pass^k falls to {text.percent(case.floor.mean[-1])}."
        )
        for case in cases
    }
    notes = {
        case.name: (
            f"Bands: {text.band(case.accuracy)}. {text.covered(('questions',))} Exact over all k-subsets of the bank. "
            f"{beside([case])} {case.fewer()}"
        ).rstrip()
        for case in cases
    }
    case = cases[0]
    return Figure(
        name="discovery",
        title="How far discovery and stability part as candidates are added",
        spec=specs[case.name],
        rows=[row for each in cases for row in curve_rows(each)],
        alt=alts[case.name],
        note=notes[case.name],
        view=case.name if len(cases) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != case.name},
        hidden=("label", "label_y"),
        alts=alts,
        notes=notes,
    )


def heat_map(cases: Sequence[Case]) -> Figure:
    """S_{k,t}, the share of questions with at least t correct among k."""
    rows, specs, alts = [], {}, {}
    for case in cases:
        table = bank_profile(case.tally).all()
        grid = _grid(table.shape[0])
        size = table.shape[0]
        rows += [
            {"bank": case.name, "k": k, "t": t, "share": table[k - 1, t - 1]} for k in grid for t in grid if t <= k
        ]
        keep = _bank(case) if len(cases) > 1 else None
        specs[case.name] = charts.triangle(size, keep=keep, step=grid[-1] - grid[-2] if len(grid) > 1 else 1)
        alts[case.name] = (
            f"{case.name}: a triangle of shares over k and t. The bottom row is Pass@k, up to "
            f"{text.percent(table[-1, 0])}; the diagonal is pass^k, down to {text.percent(table[-1, -1])}."
        )
    case = cases[0]
    return Figure(
        name="triangle",
        title="At least t correct among k candidates",
        spec=specs[case.name],
        rows=rows,
        alt=alts[case.name],
        note="The lowest row is Pass@k, the diagonal pass^k; every metric of the profile reads this triangle.",
        view=case.name if len(cases) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != case.name},
        alts=alts,
    )


def _grid(size: int) -> list[int]:
    """The k and t that are drawn: all of them, or evenly spaced ones up to the last."""
    step = -(-size // CELLS)
    return list(range(size, 0, -step))[::-1]


def _bank(case: Case) -> dict[str, Any]:
    return {"field": "bank", "equal": case.name}

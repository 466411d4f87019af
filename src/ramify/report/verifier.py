"""What a score is worth: whom it ranks above whom, how right its bins are, and what choosing by it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.metrics.diagnostics import Reliability, over_optimisation, reliability, roc_auc
from ramify.report import charts, text
from ramify.report.case import LAYERS, Case
from ramify.report.theme import SERIES
from ramify.report.values import Column, Figure, Part, Remark, Section, Table

__all__ = ["bins", "choosing", "score_table", "verifier_section"]

BINS = 10


def verifier_section(cases: Sequence[Case]) -> Section | None:
    """Diagnostics of every score of every bank; None where there is none, or nothing to tell apart."""
    scored = [(case, name) for case in cases for name in case.layers if _usable(case, name)]
    if not scored:
        return None
    lead = (
        "A score helps a rule only where it ranks right candidates above wrong ones of the same question; a pooled AUC "
        "also rewards knowing which questions are easy."
    )
    remark = Remark("Bins describe this bank and are no calibration: a bare score may not be read as a probability.")
    left = [f"{case.name}: {text.listed(case.undrawn)}" for case in cases if case.undrawn]
    more = (
        [Remark(f"Scores that are not drawn, because there are more than {LAYERS}: {'; '.join(left)}.")] if left else []
    )
    parts: tuple[Part, ...] = (bins(scored), choosing(scored), score_table(scored), remark, *more)
    return Section("verifier", "Scores and verifiers", lead, parts, wide=True)


def _usable(case: Case, name: str) -> bool:
    values = case.layers[name].values[case.bank.drawn]
    known = values[~np.isnan(values)]
    return case.binary and bool(np.isfinite(known).all()) and len(np.unique(known)) > 1


def _name(case: Case, name: str, scored: Sequence[tuple[Case, str]]) -> str:
    return name if len({each.name for each, _ in scored}) == 1 else f"{case.name}: {name}"


def bins(scored: Sequence[tuple[Case, str]]) -> Figure:
    """The share of right candidates in equal-count bins of a score."""
    rows, specs, alts = [], {}, {}
    y = {"field": "share", **charts.share_axis("right in the bin")}
    tooltip = [
        {"field": "score", "title": "mean score", "format": ".4~r", "type": "quantitative"},
        {"field": "share", "title": "right", "format": ".1%", "type": "quantitative"},
        {"field": "candidates", "title": "candidates"},
    ]
    for case, name in scored:
        found, view = reliability(case.layers[name].values, case.grades, BINS), _name(case, name, scored)
        mine = _bin_rows(view, found)
        rows += mine
        alts[view] = (
            f"{view}: the share of right candidates goes from {text.percent(mine[0]['share'])} in the lowest of "
            f"{len(mine)} bins to {text.percent(mine[-1]['share'])} in the highest."
        )
        axis = {"title": f"{name}, mean of the bin", "tickCount": 6}
        x = {"field": "score", "type": "quantitative", "scale": {"zero": False, "nice": True}, "axis": axis}
        keep = {"field": "score of", "equal": view}
        line = {"mark": {"type": "line", "color": SERIES[0], "opacity": 0.35}, "encoding": {"x": x, "y": y}}
        specs[view] = charts.points(
            x, y, colours={view: SERIES[0]}, series="score of", tooltip=tooltip, under=[line], keep=keep
        )
    first = next(iter(specs))
    return Figure(
        name="bins",
        title="Right candidates by score",
        spec=specs[first],
        rows=rows,
        alt=alts[first],
        note="Equal-count bins; lines are 95 % intervals of Wilson, as if candidates were independent.",
        view=first if len(specs) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != first},
        alts=alts,
    )


def wilson(share: Array, count: Array, z: float = 1.959964) -> tuple[Array, Array]:
    """(low, high) of Wilson's interval of a share (1927): none of them is a point, not even at 0 and 1.

    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([10, 10]))
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.2366], [0.2775, 0.7634])
    """
    weight = z**2 / count
    middle, half = (share + weight / 2), z * np.sqrt(share * (1 - share) / count + weight / (4 * count))
    return np.maximum(0.0, (middle - half) / (1 + weight)), np.minimum(1.0, (middle + half) / (1 + weight))


def _bin_rows(view: str, found: Reliability) -> list[dict[str, Any]]:
    low, high = wilson(found.share, found.count)
    return [
        {
            "score of": view,
            "score": found.score[i],
            "share": share,
            "low": low[i],
            "high": high[i],
            "candidates": int(found.count[i]),
            "from": found.low[i],
            "to": found.high[i],
        }
        for i, share in enumerate(found.share)
    ]


def choosing(scored: Sequence[tuple[Case, str]]) -> Figure:
    """Choosing by a score among k: how right the chosen is, and how often a wrong one is accepted."""
    rows, specs, alts = [], {}, {}
    colours = {"right": SERIES[0], "false positive": SERIES[1], "false positive in reach": SERIES[-1]}
    y = {"field": "share", **charts.share_axis("share of questions")}
    tooltip = [
        {"field": "what", "title": "the chosen is"},
        {"field": "k", "title": "candidates k"},
        {"field": "share", "title": "share", "format": ".1%", "type": "quantitative"},
        {"field": "score", "title": "its mean score", "format": ".4~r", "type": "quantitative"},
        {"field": "band", "title": "band"},
    ]
    for case, name in scored:
        view = _name(case, name, scored)
        found = over_optimisation(case.candidates, name, case.grades, budgets=case.budgets)
        tables = {"right": "grade", "false positive": "false_positive", "false positive in reach": "exposed"}
        mine = [
            {
                "score of": view,
                "what": what,
                "k": k,
                "share": each.value,
                "low": each.low,
                "high": each.high,
                "band": text.band(each),
                "score": found.score[i],
                "questions": len(case.grades) - int(found.left_out[i]),
            }
            for what, table in tables.items()
            for i, (k, each) in enumerate(zip(case.budgets, case.over(found.tables[table]), strict=True))
        ]
        rows += charts.labelled(mine, "what", "k", "share")
        right = [row for row in mine if row["what"] == "right"]
        alts[view] = (
            f"{view}: the chosen candidate is right for {text.percent(right[0]['share'])} of questions at "
            f"k = {right[0]['k']} and for {text.percent(right[-1]['share'])} at k = {right[-1]['k']}."
        )
        x = {"field": "k", **charts.amount_axis("candidates k", True, case.budgets)}
        keep = {"field": "score of", "equal": view}
        dashed = ["false positive in reach"]
        specs[view] = charts.curves(colours, x, y, series="what", tooltip=tooltip, keep=keep, dashed=dashed)
    first = next(iter(specs))
    return Figure(
        name="choosing",
        title="Choosing by the score among k",
        spec=specs[first],
        rows=rows,
        alt=alts[first],
        note=(
            f"Bands: {rows[0]['band']}. Exact over all k-subsets, on the questions of Best-of-N. Where no candidate "
            "among k has a score nothing is chosen, which is not right. A false positive is wrong and scores at least "
            "the median. Over-optimisation is a rising score of the chosen (in the data) while it is right less often."
        ),
        view=first if len(specs) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != first},
        hidden=("label", "label_y"),
        alts=alts,
    )


def score_table(scored: Sequence[tuple[Case, str]]) -> Table:
    """AUC pooled and within questions, beside what was left out."""
    rows: list[dict[str, Any]] = []
    for case, name in scored:
        drawn = case.bank.drawn
        score = np.where(drawn, case.layers[name].values, np.nan)
        found = roc_auc(score, case.grades)
        rows.append(
            {
                "score": _name(case, name, scored),
                "role": "deployable" if case.layers[name].role == "deployable" else "diagnostic: has seen references",
                "within": found.within,
                "questions": found.questions,
                "pooled": found.pooled,
                "left": found.left_out - int((~drawn).sum()),
            }
        )
    columns = (
        Column("score", "score"),
        Column("role", "role"),
        Column("within", "AUC within questions", "number", "what choosing among candidates of one question lives on"),
        Column("questions", "questions with both", "count", "questions that have right and wrong candidates"),
        Column("pooled", "AUC pooled", "number", "any right candidate against any wrong one"),
        Column("left", "left out", "count", "candidates without a score or a grade"),
    )
    return Table(
        "scores", "Ranking by score", columns, rows, "Descriptive of this bank: no interval. One half is chance."
    )

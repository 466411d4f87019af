"""From candidates to one answer: what rules take out of a bank, what they leave, and at what cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.decide import MajorityOfTheBests, RankVote
from ramify.decide.support import Rule
from ramify.metrics.bankcurve import BankCurve, mean_in
from ramify.metrics.curves import on_bank
from ramify.metrics.gap import gap
from ramify.report import charts, text
from ramify.report.case import Case
from ramify.report.health import beside
from ramify.report.theme import SERIES, palette
from ramify.report.values import Column, Figure, Part, Section, Table

__all__ = [
    "accuracy_section",
    "gap_figure",
    "reducer_table",
    "reducers",
    "scaling_section",
    "selection_section",
    "submitted_by",
]

CEILING = "Pass@k (ceiling)"


def scaling_section(cases: Sequence[Case]) -> Section:
    """Accuracy against what the candidates cost."""
    lead = (
        "Accuracy of what is submitted, against what the candidates cost to make. Rules see the same subsets of the "
        "stored candidates, so their differences are the rules' own; no curve here claims a saving."
    )
    return Section("scaling", "Scaling", lead, (scaling(cases), rates(cases)))


def accuracy_section(cases: Sequence[Case]) -> Section:
    """What there is to say of banks with one candidate a question."""
    why = "One candidate a question" if all(case.usual == 1 for case in cases) else "Only k = 1 was asked for"
    lead = f"{why}: nothing here is about choosing between candidates, or about adding more of them."
    return Section("accuracy", "Accuracy", lead, (rates(cases),))


def scaling(cases: Sequence[Case]) -> Figure:
    """Utility against cost with intervals: a view for the total, one for each component, one for candidates."""
    rows = [row for case in cases for row in _scaling_rows(case)]
    names = list(dict.fromkeys(row["series"] for row in rows if row["series"] != CEILING))
    colours = {**palette(names[: len(SERIES) - 1]), CEILING: SERIES[-1]}
    dashed = [CEILING, *(f"{name} (reference-assisted)" for case in cases for name in case.assisted)]
    tooltip = [
        {"field": "series", "title": "rule"},
        {"field": "k", "title": "candidates k"},
        {"field": "cost", "title": "cost a question", "format": ",.4~r", "type": "quantitative"},
        {"field": "share", "title": "accuracy", "format": ".1%", "type": "quantitative"},
        {"field": "invalid", "title": "nothing submitted", "format": ".1%", "type": "quantitative"},
        {"field": "questions", "title": "questions"},
        {"field": "band", "title": "band"},
    ]
    specs, alts, notes = {}, {}, {}
    for case in cases:
        for axis, title in _axes(case).items():
            mine = [row["cost"] for row in rows if row["bank"] == case.name and row["axis"] == axis]
            log = min(mine) > 0 and max(mine) / min(mine) > 8
            x = {"field": "cost", **charts.amount_axis(title, log, spent=mine)}
            if axis == "candidates":
                x = {"field": "cost", **charts.amount_axis(title, log, case.budgets)}
            y = {"field": "share", **charts.share_axis("accuracy")}
            keep = {"and": [{"field": "axis", "equal": axis}, {"field": "bank", "equal": case.name}]}
            name = axis if len(cases) == 1 else f"{case.name}: {axis}"
            specs[name] = charts.curves(colours, x, y, tooltip=tooltip, dashed=dashed, keep=keep, height=340)
            alts[name], notes[name] = _bought(case), _banded(case)
    first = next(iter(specs))
    return Figure(
        name="scaling",
        title="What more candidates buy",
        spec=specs[first],
        rows=rows,
        alt=alts[first],
        note=notes[first],
        view=first,
        views={name: spec for name, spec in specs.items() if name != first},
        hidden=("label", "label_y"),
        alts=alts,
        notes=notes,
    )


def _bought(case: Case) -> str:
    rule = case.best_rule
    return (
        f"{case.name}: from {case.least} to {case.top}, {rule} goes from {text.percent(case.rules[rule].mean[0])} "
        f"to {text.percent(case.rules[rule].mean[-1])}, under a ceiling of {text.percent(case.ceiling.mean[-1])}."
    )


def _banded(case: Case) -> str:
    return (
        f"Bands: {text.band(case.accuracy)}. BoN: best of N by a score. Dashed lines have seen the references: "
        f"they are diagnostics and cannot be deployed. {_excluded(case)} {case.fewer()}"
    ).rstrip()


def _axes(case: Case) -> dict[str, str]:
    """component -> the title of the axis, which says what it leaves out."""
    titles = {"candidates": "candidates k a question, excludes what scores cost"}
    if "total" in _costs(case):
        scored = any(layer.cost is not None for layer in case.layers.values())
        left = "prompt tokens" if scored else "prompt tokens and scoring"
        titles = {"total cost": f"tokens a question, excludes {left}", **titles}
        if scored:
            titles["generate"] = "generated tokens a question, excludes scores and prompts"
            titles["signal"] = "what scores cost a question, excludes generation"
    return titles


def _costs(case: Case) -> dict[str, float]:
    """component -> the mean cost of one candidate, where the bank says it."""
    length = case.bank.length
    if length is None or not (length[case.bank.drawn] >= 0).all():
        return {}
    return {"total": float(length[case.bank.drawn].mean())}


def _scaling_rows(case: Case) -> list[dict[str, Any]]:
    rows = []
    for axis in _axes(case):
        mine = []
        for series, curve, layer in _series(case):
            cost = _cost(case, curve, axis, layer)
            columns = (
                case.budgets,
                cost,
                case.intervals(curve),
                curve.invalid.T,
                (~np.isnan(curve.values)).sum(axis=0),
            )
            for k, x, found, none, there in zip(*columns, strict=True):
                mine.append(
                    {
                        "bank": case.name,
                        "axis": axis,
                        "series": series,
                        "k": k,
                        "cost": x,
                        "share": found.value,
                        "low": found.low,
                        "high": found.high,
                        "invalid": float(mean_in(none[:, None])[0]),
                        "questions": int(there),
                        "band": text.band(found),
                    }
                )
        rows += charts.labelled([row for row in mine if not np.isnan(row["cost"])], "series", "cost", "share")
    return rows


def _series(case: Case) -> list[tuple[str, BankCurve, str]]:
    """(series, curve, the layer it reads) of everything that is drawn."""
    found = [(name, curve, name.removeprefix("best of N by ")) for name, curve in case.rules.items()]
    found += [
        (f"{name} (reference-assisted)", curve, name.removeprefix("best of N by "))
        for name, curve in case.assisted.items()
    ]
    return [*found, (CEILING, case.ceiling, "")]


def _cost(case: Case, curve: BankCurve, axis: str, layer: str) -> Array:
    """[K] the mean cost of a k-subset; NaN where this axis says nothing of the curve."""
    if axis == "candidates":
        return np.array(case.budgets, dtype=float)
    priced = [layer] if layer in case.layers and case.layers[layer].cost is not None else []
    cost = on_bank(curve, case.bank, signals=priced)
    if axis == "total cost":
        return cost.spent()
    return cost.spent(axis) if axis in cost.cost else np.full(len(case.budgets), np.nan)


def _excluded(case: Case) -> str:
    if "total" not in _costs(case):
        return "This bank does not say how long its candidates are, so the axis counts candidates."
    unpriced = [name for name, layer in case.layers.items() if layer.cost is None]
    return f"What it cost to make {text.listed(unpriced)} was not recorded, and is in no axis." if unpriced else ""


def rates(cases: Sequence[Case]) -> Table:
    """Beside every accuracy: how often there was no answer, how often a candidate hit the cap, how long they are."""
    several = max(case.top for case in cases) > 1
    profile = (
        Column("ceiling", "Pass@N", "percent"),
        Column("floor", "pass^N", "percent"),
        Column("plurality", "plurality@N", "percent"),
    )
    ends = (
        Column("never", "never solved", "percent", "questions of which no graded candidate is right"),
        Column("always", "always solved", "percent", "questions of which every graded candidate is right"),
    )
    columns = (
        Column("bank", "bank"),
        Column("accuracy", "accuracy of one", "percent"),
        *(profile if several else ()),
        Column("invalid", "no answer", "percent", "candidates from which no answer could be taken"),
        Column(
            "capped", "hit the cap", "percent", "candidates that the length limit ended, of those whose end is known"
        ),
        Column("tokens", "mean tokens", "number", "completion tokens of a candidate"),
        *(ends if several else ()),
    )
    rows = [
        {
            "bank": case.name,
            "accuracy": case.accuracy,
            "ceiling": case.intervals(case.ceiling)[-1],
            "floor": case.intervals(case.floor)[-1],
            "plurality": case.intervals(case.rules["plurality"])[-1],
            **{name: case.shares[name] for name in ("invalid", "capped", "tokens")},
            "never": case.never,
            "always": case.always,
        }
        for case in cases
    ]
    tops = sorted({case.top for case in cases})
    note = f"In brackets: {text.band(cases[0].accuracy)}. N is {text.listed(list(map(str, tops)))}."
    note += " Ties are averaged over orders." if several else ""
    return Table("rates", "Accuracy, and what stands beside it", columns, rows, note)


# ----------------------------------------------------------------------------------------------------------- selection


def selection_section(cases: Sequence[Case]) -> Section:
    """The availability–selection gap, and rules against each other on the whole bank."""
    lead = (
        "A right answer that is in the bank and is not submitted is lost to the rule, not to the model. "
        "The gap says how much a better rule could still gain with the same candidates."
    )
    parts: list[Part] = [gap_figure(cases), reducers(cases)]
    return Section("selection", "Availability and selection", lead, (*parts, reducer_table(cases)), wide=True)


def gap_figure(cases: Sequence[Case]) -> Figure:
    """Pass@k above a rule's accuracy; a view for each rule and bank."""
    rows, specs, alts, notes = [], {}, {}, {}
    x = {"field": "k", **charts.amount_axis("candidates k", log=True, values=max((c.budgets for c in cases), key=len))}
    y = {"field": "taken", **charts.share_axis("share of questions")}
    for case in cases:
        for rule in sorted(case.rules, key=lambda name: name != case.best_rule):
            mine = _gap_rows(case, rule)
            rows += mine
            keep = {"and": [{"field": "rule", "equal": rule}, {"field": "bank", "equal": case.name}]}
            view = rule if len(cases) == 1 else f"{case.name}: {rule}"
            specs[view] = charts.gap_area(x, y, keep=keep)
            alts[view], note = _gap_words(mine[-1])
            notes[view] = f"{note} {beside([case])}"
    first = next(iter(specs))
    return Figure(
        name="gap",
        title="Available, and taken",
        spec=specs[first],
        rows=rows,
        alt=alts[first],
        note=notes[first],
        view=first if len(specs) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != first},
        hidden=("available_said", "taken_said", "gap_said", "available_y", "taken_y"),
        alts=alts,
        notes=notes,
    )


def _gap_words(last: Mapping[str, Any]) -> tuple[str, str]:
    """(alt, note) of a rule's gap, from its row at the largest budget."""
    alt = (
        f"{last['bank']}: at {last['k']} candidates {text.percent(last['available'])} of questions hold a right "
        f"answer and {last['rule']} submits one for {text.percent(last['taken'])}: a gap of {text.points(last['gap'])}."
    )
    note = (
        f"At k = {last['k']} the gap of {last['rule']} is {text.points(last['gap'])} "
        f"[{100 * last['low']:.1f}, {100 * last['high']:.1f}] ({last['band']}). Vertical lines are the interval of the "
        "gap, measured down from what is available. A gap is measured with the references: it bounds what a rule could "
        "gain and is no result of any rule."
    )
    return alt, note


def _gap_rows(case: Case, rule: str) -> list[dict[str, Any]]:
    found = gap(case.rules[rule], case.bank, case.outcomes)
    estimates = case.over(found.values, (-1.0, 1.0))
    above, below = mean_in(found.available), mean_in(found.taken)
    rows = []
    for i, k in enumerate(case.budgets):
        row = {
            "bank": case.name,
            "rule": rule,
            "k": k,
            "available": above[i],
            "taken": below[i],
            "gap": estimates[i].value,
            "questions": int((~np.isnan(found.values[:, i])).sum()),
            "low": estimates[i].low,
            "high": estimates[i].high,
            "band": text.band(estimates[i]),
        }
        if i == len(case.budgets) - 1:
            low, high = charts.spread([below[i], above[i]], 0.08)
            row |= {
                "available_said": "available",
                "available_y": high,
                "taken_said": "\n".join(charts.wrapped(charts.short(rule), charts.LETTERS)),
                "taken_y": low,
            }
            row["gap_said"] = text.points(above[i] - below[i]) if above[i] - below[i] > 0.12 else None
        rows.append(row)
    return rows


def submitted_by(case: Case) -> dict[str, tuple[Array, str]]:
    """rule -> ([Q] the worth of what it submits from the whole bank, its kind): closed forms, votes by each score."""
    whole = case.whole
    found = {name: (curve.values[:, -1], "deployable") for name, curve in whole.rules.items()}
    found |= {
        f"{name} (reference-assisted)": (curve.values[:, -1], "diagnostic") for name, curve in whole.assisted.items()
    }
    for name, layer in case.layers.items():
        if layer.role == "deployable":
            for words, rule in (
                (f"Borda vote by {name}", RankVote(name)),
                (f"majority of the bests by {name}", MajorityOfTheBests(name)),
            ):
                found[words] = (_worth(rule, case), "deployable")
    return {**found, CEILING: (whole.ceiling.values[:, -1], "diagnostic")}


def _worth(rule: Rule, case: Case) -> Array:
    """[Q] the grade of what a rule submits from the whole bank; nothing submitted is worth 0.

    Questions with fewer candidates than usual are left out, as they are of the curves that stand beside it.
    """
    winner = np.asarray(rule(case.candidates).winner)
    grade = np.take_along_axis(case.grades, np.maximum(winner, 0)[:, None], axis=1)[:, 0]
    few = case.bank.drawn.sum(axis=1) < case.usual
    return np.where(few, np.nan, np.where(winner < 0, 0.0, grade))


def reducers(cases: Sequence[Case]) -> Figure:
    """Rules on the whole bank, as dots with intervals; diagnostics are hollow."""
    rows, specs, alts, notes = [], {}, {}, {}
    x = {"field": "share", **_share_x("accuracy on the whole bank")}
    tooltip = [
        {"field": "rule", "title": "rule"},
        {"field": "share", "title": "accuracy", "format": ".1%", "type": "quantitative"},
        {"field": "kind", "title": "kind"},
        {"field": "band", "title": "band"},
    ]
    for case in cases:
        mine = _reducer_rows(case)
        rows += mine
        order = [row["rule"] for row in mine]
        hollow = [row["rule"] for row in mine if row["kind"] == "diagnostic"]
        keep = {"field": "bank", "equal": case.name} if len(cases) > 1 else None
        specs[case.name] = charts.dots(x, "rule", order, tooltip=tooltip, hollow=hollow, keep=keep)
        ordered = [row["rule"] for row in mine if row["kind"] == "deployable"]
        alts[case.name] = f"{case.name}: rules by accuracy on the whole bank, best first: {text.listed(ordered)}."
        notes[case.name] = (
            f"Lines: {text.band(case.accuracy)}, resampled alike for all rules. Hollow dots have seen the references. "
            f"{beside([case])}"
        )
    case = cases[0]
    return Figure(
        name="reducers",
        title=f"Rules on the same {case.usual} candidates" if len(cases) == 1 else "Rules on the same candidates",
        spec=specs[case.name],
        rows=rows,
        alt=alts[case.name],
        note=notes[case.name],
        view=case.name if len(cases) > 1 else "",
        views={name: spec for name, spec in specs.items() if name != case.name},
        hidden=("said",),
        alts=alts,
        notes=notes,
    )


def _share_x(title: str) -> dict[str, Any]:
    axis = {"format": ".0%", "title": title, "tickCount": 5}
    return {"type": "quantitative", "scale": {"domain": [0, 1], "nice": False}, "axis": axis}


def _reducer_rows(case: Case) -> list[dict[str, Any]]:
    found = submitted_by(case)
    estimates = case.over(np.stack([worth for worth, _ in found.values()], axis=1))
    rows = [
        {
            "bank": case.name,
            "rule": name,
            "kind": kind,
            "share": each.value,
            "low": each.low,
            "high": each.high,
            "questions": int((~np.isnan(worth)).sum()),
            "band": text.band(each),
            "said": text.percent(each.value),
        }
        for (name, (worth, kind)), each in zip(found.items(), estimates, strict=True)
    ]
    return sorted(rows, key=lambda row: -np.nan_to_num(row["share"], nan=-1.0))


def reducer_table(cases: Sequence[Case]) -> Table:
    """Every rule at every budget, beside how often it submits nothing."""
    budgets = sorted({k for case in cases for k in case.budgets})
    columns = (
        *([Column("bank", "bank")] if len(cases) > 1 else []),
        Column("rule", "rule"),
        Column("kind", "kind"),
        *(Column(f"k{k}", f"k = {k}", "percent") for k in budgets),
        Column("invalid", "nothing submitted", "percent", "at the largest k"),
        Column("capped", "hit the cap", "percent", "candidates that the length limit ended"),
        Column("tokens", "mean tokens", "number", "completion tokens of a candidate"),
    )
    rows = []
    for case in cases:
        for name, curve, _ in _series(case):
            kind = "deployable" if name in case.rules else "diagnostic"
            estimates = dict(zip((f"k{k}" for k in case.budgets), case.intervals(curve), strict=True))
            none = curve.invalid[:, -1]
            rows.append(
                {
                    "bank": case.name,
                    "rule": name,
                    "kind": kind,
                    **estimates,
                    "invalid": float(mean_in(none[:, None])[0]),
                    "capped": case.shares["capped"],
                    "tokens": case.shares["tokens"],
                }
            )
    note = f"In brackets: {text.band(cases[0].accuracy)}. Ties are averaged over orders; nothing submitted is wrong."
    note += "".join(f" {case.name}: {case.fewer()}" for case in cases if case.fewer())
    return Table("reducers", "Rules by number of candidates", columns, rows, note)

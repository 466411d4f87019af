"""Groups of questions: where the accuracy comes from, and whether groups differ by more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.metrics.estimate import Estimate
from ramify.metrics.functionals import Accuracy
from ramify.metrics.groups import GroupSummary, summarise
from ramify.report import charts, text
from ramify.report.case import Case
from ramify.report.health import pointed
from ramify.report.theme import SERIES
from ramify.report.values import Column, Figure, Section, Table
from ramify.types import Key

__all__ = ["groups_section", "summaries"]

MOST = 30  # lines of a dot plot: beyond it only the ends are drawn, and the table has all


def groups_section(cases: Sequence[Case]) -> Section | None:
    """Each way of grouping the questions; None where there is none with two groups of two."""
    found = summaries(cases)
    if not found:
        return None
    lead = (
        "Accuracy of one candidate by group. Micro averages over questions, macro over groups that weigh the same; "
        "heterogeneity says whether groups differ by more than the sampling of questions explains."
    )
    named = {case.name: case for case in cases}
    parts = (by_group(found, named), heterogeneity_table(found, named))
    return Section("groups", "Groups of questions", lead, (*parts, *pointed(every(found))))


def every(found: Mapping[tuple[str, str], GroupSummary]) -> list[Estimate]:
    return [each for summary in found.values() for each in summary.values]


def members(case: Case, by: str, group: str) -> Array:
    """[Q] who is in a group."""
    return np.array([question.groups.get(by, "") == group for question in case.bank.questions])


def summaries(cases: Sequence[Case]) -> dict[tuple[str, str], GroupSummary]:
    """(bank, way of grouping) -> the summary over groups with at least two graded questions."""
    found = {}
    for case in cases:
        if not case.binary:
            continue
        for name in dict.fromkeys(key for question in case.bank.questions for key in question.groups):
            labels = np.array([question.groups.get(name, "") for question in case.bank.questions])
            usable = (case.tally.graded > 0) & (labels != "")
            names, sizes = np.unique(labels[usable], return_counts=True)
            usable &= np.isin(labels, names[sizes >= 2])
            if len(set(labels[usable])) >= 2:
                key = Key("report", name, 0, "groups")
                found[case.name, name] = summarise(
                    case.tally.take(usable), labels[usable], Accuracy(), key, case.replicates, case.level
                )
    return found


def by_group(found: Mapping[tuple[str, str], GroupSummary], named: Mapping[str, Case]) -> Figure:
    """A dot a group with its interval; a view for each bank and way of grouping."""
    rows, specs, alts, notes = [], {}, {}, {}
    scale = {"domain": [0, 1], "nice": False}
    x = {
        "field": "share",
        "type": "quantitative",
        "scale": scale,
        "axis": {"format": ".0%", "title": "accuracy of one candidate", "tickCount": 5},
    }
    tooltip = [
        {"field": "group", "title": "group"},
        {"field": "questions", "title": "questions"},
        {"field": "share", "title": "accuracy", "format": ".1%", "type": "quantitative"},
        {"field": "invalid", "title": "no answer", "format": ".1%", "type": "quantitative"},
        {"field": "capped", "title": "hit the cap", "format": ".1%", "type": "quantitative"},
        {"field": "tokens", "title": "mean tokens", "format": ",.4~r", "type": "quantitative"},
        {"field": "band", "title": "band"},
    ]
    banks = {bank for bank, _ in found}
    for (bank, name), summary in found.items():
        view = name if len(banks) == 1 else f"{bank}: {name}"
        mine = _rows(view, summary, named[bank], name)
        rows += mine
        drawn = mine if len(mine) <= MOST else [*mine[: MOST // 2], *mine[-MOST // 2 :]]
        keep = {"and": [{"field": "by", "equal": view}, {"field": "group", "oneOf": [row["group"] for row in drawn]}]}
        specs[view] = charts.dots(
            x, "group", [row["group"] for row in drawn], tooltip=tooltip, keep=keep, colour=SERIES[0]
        )
        alts[view] = (
            f"{view}: from {mine[0]['group']} with {text.percent(mine[0]['share'])} down to {mine[-1]['group']} with "
            f"{text.percent(mine[-1]['share'])}."
        )
        ends = f" The {MOST} groups at the ends are drawn." if len(mine) > MOST else ""
        notes[view] = f"Lines: {mine[0]['band']}. In the data: no answer, caps and mean tokens of each group.{ends}"
    first = next(iter(specs))
    return Figure(
        name="groups",
        title="Accuracy by group",
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


def _rows(view: str, summary: GroupSummary, case: Case, by: str) -> list[dict[str, Any]]:
    rows = [
        {
            "by": view,
            "group": name,
            "questions": many,
            "share": each.value,
            "low": each.low,
            "high": each.high,
            **beside_of(case, members(case, by, name)),
            "band": text.band(each),
            "said": f"{text.percent(each.value)} ({many})",
        }
        for name, many, each in zip(summary.names, summary.questions, summary.values, strict=True)
    ]
    return sorted(rows, key=lambda row: -row["share"])


def beside_of(case: Case, which: Array) -> dict[str, float]:
    """What belongs beside the accuracy of some questions ``[Q]``."""
    shares = case.shares_of(which)
    return {name: shares[name] for name in ("invalid", "capped", "tokens")}


def heterogeneity_table(found: Mapping[tuple[str, str], GroupSummary], named: Mapping[str, Case]) -> Table:
    """Micro, macro, and how much groups differ."""
    rows = [
        {
            "bank": bank,
            "by": name,
            "groups": len(each.names),
            "micro": each.micro,
            "macro": each.macro,
            "spread": each.heterogeneity.spread,
            "share": each.heterogeneity.share,
            "p": each.heterogeneity.p,
            **beside_of(named[bank], np.isin([q.groups.get(name, "") for q in named[bank].bank.questions], each.names)),
        }
        for (bank, name), each in found.items()
    ]
    columns = (
        Column("bank", "bank"),
        Column("by", "grouped by"),
        Column("groups", "groups", "count"),
        Column("micro", "micro", "percent"),
        Column("macro", "macro", "percent"),
        Column("spread", "largest minus smallest", "percent"),
        Column("share", "I²", "percent", "how much of the variance of the groups' values is between groups"),
        Column("p", "p, labels permuted", "chance", "how often groups differ as much if labels mean nothing"),
        Column("invalid", "no answer", "percent"),
        Column("capped", "hit the cap", "percent"),
        Column("tokens", "mean tokens", "number", "completion tokens of a candidate"),
    )
    note = (
        f"In brackets: {text.band(next(iter(found.values())).micro)}; other intervals on this page draw questions "
        "freely. No I² where all questions of a group fared alike: such a group has no variance to weigh it by."
    )
    return Table("heterogeneity", "Do groups differ?", columns, rows, note)

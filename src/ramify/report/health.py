"""What has to be known to believe a number: headroom, caps and missing answers, provenance, what was not checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ramify.metrics.estimate import Estimate
from ramify.report import text
from ramify.report.case import Case
from ramify.report.theme import LABELS, SERIES
from ramify.report.values import Column, Figure, Part, Remark, Section, Table

__all__ = [
    "bank_remarks",
    "beside",
    "card_section",
    "headroom",
    "headroom_section",
    "ledger_table",
    "pointed",
    "trust_section",
]

CAPPED = 0.05  # from this share of capped candidates on, a warning
FEW = 30  # questions below which an interval over them is rough


def headroom_section(cases: Sequence[Case]) -> Section:
    """How the questions divide: never solved, always solved, and those that a protocol can move."""
    case = cases[0]
    asked = text.count(case.graded, "graded question" if case.graded < len(case.bank.questions) else "question")
    lead = (
        f"Of {asked}{f' of {case.name}' if len(cases) > 1 else ''}, {text.percent(case.never)} are never solved and "
        f"{text.percent(case.always)} always: no rule changes those. What lies between is what a protocol can move."
    )
    return Section("headroom", "Headroom", lead, (headroom(cases),))


def headroom(cases: Sequence[Case]) -> Figure:
    """How many questions have how many right candidates."""
    rows = [row for case in cases for row in _headroom_rows(case)]
    colours = {"never solved": SERIES[1], "sometimes": SERIES[-1], "always solved": SERIES[2]}
    scale = {"domain": list(colours), "range": list(colours.values())}

    def spec(case: Case) -> dict[str, Any]:
        most = max(row["right"] for row in rows if row["bank"] == case.name)
        ends = [{"calculate": "datum.right - 0.42", "as": "x0"}, {"calculate": "datum.right + 0.42", "as": "x1"}]
        x = {
            "field": "x0",
            "type": "quantitative",
            "scale": {"domain": [-0.6, most + 0.6], "nice": False, "zero": False},
            "axis": {
                "title": f"right candidates of {case.usual}" if case.binary else "share right, in 20ths",
                "format": "d",
                "tickMinStep": 1,
            },
        }
        highest = max(row["questions"] for row in rows if row["bank"] == case.name)
        y = {
            "field": "questions",
            "type": "quantitative",
            "scale": {"domain": [0, 1.2 * highest], "nice": False},  # room for what is said above
            "axis": {"title": "questions", "tickMinStep": 1, "tickCount": 5, "format": "d"},
        }
        tooltip = [
            {"field": "right", "title": "right candidates"},
            {"field": "questions", "title": "questions"},
            {"field": "share", "title": "share of questions", "format": ".1%", "type": "quantitative"},
        ]
        bar = {
            "mark": {"type": "rect"},
            "encoding": {
                "x": x,
                "x2": {"field": "x1"},
                "y": y,
                "y2": {"datum": 0},
                "color": {"field": "status", "type": "nominal", "scale": scale, "legend": None},
                "tooltip": tooltip,
            },
        }
        keep = [{"filter": {"field": "bank", "equal": case.name}}] if len(cases) > 1 else []
        ends_said = [_end(x, 0, "left", LABELS[1]), _end(x, most, "right", LABELS[2])]
        return {"height": 220, "transform": [*keep, *ends], "layer": [bar, *ends_said]}

    alts = {
        case.name: (
            f"{case.name}: {text.percent(case.never)} of questions are never solved, {text.percent(case.always)} "
            f"always, {text.percent(1 - case.never - case.always)} sometimes."
        )
        for case in cases
    }
    case = cases[0]
    return Figure(
        name="headroom",
        title="Questions by how many of their candidates are right",
        spec=spec(case),
        rows=rows,
        alt=alts[case.name],
        note="A count of this very bank: another draw of candidates would move questions near the ends.",
        view=case.name if len(cases) > 1 else "",
        views={each.name: spec(each) for each in cases[1:]},
        hidden=("said",),
        alts=alts,
    )


def _end(x: Mapping[str, Any], right: int, align: str, colour: str) -> dict[str, Any]:
    """What is said above the first and the last bar, from its outer edge inwards, in the free strip at the top."""
    return {
        "transform": [{"filter": f"datum.right == {right} && datum.questions > 0"}],
        "mark": {"type": "text", "fontWeight": 600, "align": align, "color": colour},
        "encoding": {
            "x": {**x, "field": "x0" if align == "left" else "x1"},
            "y": {"value": 10},
            "text": {"field": "said", "type": "nominal"},
        },
    }


def _headroom_rows(case: Case) -> list[dict[str, Any]]:
    """A row for each number of right candidates. Unequal numbers of candidates are scaled to the most usual one."""
    solved = case.solved[~np.isnan(case.solved)]
    top = case.usual if case.binary else 20
    place = np.clip(np.round(solved * top), np.where(solved > 0, 1, 0), np.where(solved < 1, top - 1, top)).astype(int)
    counts = np.bincount(place, minlength=top + 1)

    def status(right: int) -> str:
        return "never solved" if right == 0 else "always solved" if right == top else "sometimes"

    return [
        {
            "bank": case.name,
            "right": right,
            "questions": int(many),
            "share": many / len(solved),
            "status": status(right),
            "said": f"{status(right).split()[0]} {text.percent(many / len(solved))}",
        }
        for right, many in enumerate(counts)
    ]


# ---------------------------------------------------------------------------------------------------------------- card


def card_section(card: Mapping[str, str], parts: Sequence[Part] = ()) -> Section:
    """The protocol card: what was done, in the text forms that would do it again."""
    rows = [{"what": what, "how": how} for what, how in card.items()]
    table = Table("card", "Protocol card", (Column("what", "what"), Column("how", "how", "code")), rows)
    lead = "What was done, in the text forms that would do it again. Two results are comparable where these agree."
    return Section("protocol", "Protocol", lead, (table, *parts))


def bank_card(case: Case) -> dict[str, str]:
    """What a bank says of itself."""
    bank = case.bank
    card = {
        "questions": f"{bank.shape[0]:,}",
        "candidates": f"{int(bank.drawn.sum()):,} drawn, {_range(bank.drawn.sum(axis=1))} a question",
    }
    for proposal in bank.proposals:
        said = {
            "model": proposal.model,
            "protocol": proposal.protocol,
            "prompt interface": proposal.interface,
            "run": proposal.run,
            "alternatives recorded": f"{proposal.top}, {proposal.stage}" if proposal.top else "",
        }
        for what, how in said.items():
            if how:
                card[what] = f"{card[what]}; {how}" if what in card and card[what] != how else how
    card["kind of candidates"] = bank.kind + (f", taken as independent: {bank.assumed}" if bank.assumed else "")
    card["grader"] = " ".join(filter(None, (case.outcomes.description, case.outcomes.version))) or "not named"
    for name, layer in bank.layers.items():
        card[f"score {name}"] = (
            f"{layer.description or 'not described'} ({layer.role}){f', {layer.version}' if layer.version else ''}"
        )
    return card


def _range(counts: Any) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low}" if low == high else f"{low} to {high}"


def bank_remarks(cases: Sequence[Case]) -> list[Remark]:
    """What a reader must know of these banks before any number of them; what several have in common is said once."""
    found: dict[Remark, list[str]] = {}
    for case in cases:
        for remark in _remarks(case):
            found.setdefault(remark, []).append(case.name)
    return [Remark(f"{text.listed(names, 3)}: {remark.words}", remark.level) for remark, names in found.items()]


def _remarks(case: Case) -> list[Remark]:
    bank, shares = case.bank, case.shares
    interfaces = sorted({proposal.interface for proposal in bank.proposals})
    capped, ungraded = text.percent(shares["capped"]), text.percent(shares["ungraded"])
    stopped = "sampling stopped by what the candidates showed, so shares of the bank are biased."
    dependent = f"candidates are {bank.kind}, not independent draws; the numbers describe the bank alone."
    cut = f"{capped} of candidates hit the length cap; accuracy cannot be told from the cap."
    undrawn, first = case.undrawn, text.count(len(case.layers), "score")
    hidden = f"{text.listed(undrawn)} {'has' if len(undrawn) == 1 else 'have'} no curve: the first {first} do."
    few = case.graded < 2
    alone = "one question has grades, so there are no intervals over questions."
    found = [
        (bank.kind == "stopped", Remark(stopped, "warning")),
        (bank.kind not in ("stopped", "iid"), Remark(dependent)),
        (len(interfaces) > 1, Remark(f"prompt interfaces are mixed: {text.listed(interfaces)}.", "warning")),
        (shares["ungraded"] > 0, Remark(f"{ungraded} of candidates have no grade. They are left out, not wrong.")),
        (shares["capped"] > CAPPED, Remark(cut, "warning")),
        (bool(case.undrawn), Remark(hidden)),
        (few, Remark(alone)),
        (not few and case.graded < FEW, Remark(f"intervals over {case.graded} questions are rough.")),
    ]
    return [remark for applies, remark in found if applies]


def pointed(estimates: Iterable[Estimate]) -> list[Remark]:
    """A remark where an interval is a single point, which is no certainty."""
    found = any(each.covers and each.width == 0 for each in estimates)
    words = (
        "An interval of one point, such as [100.0, 100.0], says that all questions fared alike, not that others will."
    )
    return [Remark(words)] if found else []


def beside(cases: Sequence[Case]) -> str:
    """What belongs beside every accuracy, in a line; of several banks, where it stands."""
    if len(cases) > 1:
        return "No answer, caps and mean tokens of each bank are in the table of rates."
    shares = cases[0].shares
    return (
        f"No answer {text.percent(shares['invalid'])}, hit the cap {text.percent(shares['capped'])}, "
        f"mean tokens {text.number(shares['tokens'])}."
    )


# -------------------------------------------------------------------------------------------------------------- ledger


def ledger_table(cases: Sequence[Case]) -> Table:
    """What the candidates and their scores cost, where the bank says it."""
    rows: list[dict[str, Any]] = []
    for case in cases:
        length, drawn = case.bank.length, case.bank.drawn
        known = drawn & (length >= 0) if length is not None else np.zeros(drawn.shape, bool)
        rows.append(
            {
                "bank": case.name,
                "stage": "generate",
                "total": float(length[known].sum()) if length is not None and known.any() else np.nan,
                "each": float(length[known].sum()) / drawn.shape[0] if length is not None and known.any() else np.nan,
                "unit": "completion tokens",
                "beside": f"{text.count(int((drawn & ~known).sum()), 'candidate')} of unknown length"
                if (drawn & ~known).any()
                else "",
            }
        )
        for name, layer in case.bank.layers.items():
            cost = None if layer.cost is None else np.where(drawn, layer.cost, 0.0)
            rows.append(
                {
                    "bank": case.name,
                    "stage": f"signal: {name}",
                    "total": np.nan if cost is None else float(np.nansum(cost)),
                    "each": np.nan if cost is None else float(np.nansum(cost)) / drawn.shape[0],
                    "unit": "as the score counts",
                    "beside": "not recorded" if cost is None else "",
                }
            )
    columns = (
        Column("bank", "bank"),
        Column("stage", "stage"),
        Column("total", "in all", "number"),
        Column("each", "a question", "number"),
        Column("unit", "unit"),
        Column("beside", "remark"),
    )
    return Table(
        "ledger",
        "Cost ledger",
        columns,
        rows,
        "Prompt tokens are in no row. A dash is a cost that was not recorded, not one of zero.",
    )


def trust_section(cases: Sequence[Case], reproduced: Mapping[str, str], parts: Sequence[Part] = ()) -> Section:
    """The ledger, whether anything was run again, and what the intervals on this page cover."""
    statuses = [
        {
            "bank": case.name,
            "status": reproduced.get(case.name, "not checked: nothing on this page was run a second time"),
        }
        for case in cases
    ]
    table = Table("reproduced", "Reproducibility", (Column("bank", "bank"), Column("status", "status")), statuses)
    words = Remark(
        f"{text.covered(('questions',))} A band over replays is the spread of a simulation, and an interquartile "
        "range the spread of configurations: neither is a confidence interval, and both are named where they are drawn."
    )
    lead = "What everything cost, whether it was run again, and what the intervals on this page are about."
    return Section("trust", "Cost and trust", lead, (ledger_table(cases), *parts, table, words))

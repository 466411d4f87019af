"""The report of a study: its protocols against each other, then its banks, then what they were made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

import ramify
from ramify.decide import Plurality
from ramify.describe import text as form
from ramify.metrics.estimate import Estimate
from ramify.report import text
from ramify.report.case import Case, mean_of
from ramify.report.groups import groups_section
from ramify.report.health import bank_remarks, card_section, headroom_section, pointed
from ramify.report.profile import profile_section
from ramify.report.protocols import SENTENCES, comparison_section, estimate_of, protocol_section
from ramify.report.questions import ROOM, Spell, explorer_section
from ramify.report.roster import interface_section, roster_section
from ramify.report.selection import accuracy_section, rates, selection_section
from ramify.report.stopping import stopping_section
from ramify.report.values import Column, Page, Part, Picture, Remark, Section, Table
from ramify.report.verifier import verifier_section
from ramify.study.result import STAGES, Result, Row

__all__ = ["finding", "page_of"]

VOTE = f"{form(Plurality())} over "  # how a row says that plurality decided it
TASKS = 3  # tasks that the finding speaks of
BANKS = 12  # banks whose profiles, rules and questions are drawn; tables have all


def page_of(
    result: Result,
    *,
    pictures: tuple[Picture, ...] = (),
    spell: Mapping[str, Spell] | None = None,
    room: int = ROOM,
) -> Page:
    """The page of a study's result. ``spell`` gives the text of tokens by bank, ``pictures`` are search trees."""
    named = _cases(result)
    cases = list(named.values())
    spelled = {named[bank].name: how for bank, how in (spell or {}).items() if bank in named}
    sections = [
        protocol_section(result),
        comparison_section(result),
        roster_section(result, named),
        *_bank_sections(cases, _ties(result, named)),
        _pictures(pictures),
        interface_section(result),
        explorer_section(cases[:BANKS], spelled, room) if cases else None,
        card_section(result.card, [Remark(words) for words in (*result.notes, *_listed_below(result), *result.reused)]),
        _trust(result),
    ]
    return Page(
        title=result.title,
        subtitle=_subtitle(result),
        finding=finding(result),
        tiles=_tiles(result),
        sections=tuple(section for section in sections if section is not None),
        made=f"Made by ramify {ramify.__version__} from a study. The page holds all that it shows, and loads nothing.",
    )


def _cases(result: Result) -> dict[str, Case]:
    """bank -> its case, under a name that people can tell apart: the model and task, where that is enough."""
    said: dict[str, str] = {}
    for row in result.rows:
        said.setdefault(
            row.bank, f"{row.model}, {row.task}" if row.k is not None else f"{row.model}, {row.task}: {row.label}"
        )
    usable = {name: bank for name, bank in result.banks.items() if name in result.outcomes and _graded(result, name)}
    names = {name: said.get(name, name) for name in usable}
    twice = {each for each in names.values() if list(names.values()).count(each) > 1}
    asked = (result.rows[0].replicates, result.rows[0].level) if result.rows else ()
    return {
        name: Case(
            text.shown(f"{said_so} ({name})" if said_so in twice else said_so),
            usable[name],
            result.outcomes[name],
            *asked,
        )
        for name, said_so in names.items()
    }


def _graded(result: Result, name: str) -> bool:
    return bool((~np.isnan(result.outcomes[name].values)).any())


def _ties(result: Result, named: Mapping[str, Case]) -> list[Remark]:
    """Where a vote has two values on the page: replayed with ties to the earliest, and with ties averaged."""
    found = []
    for row in result.rows:
        case = named.get(row.bank)
        if case is None or not row.protocol.startswith(VOTE) or row.k != case.top or case.top < 2:
            continue
        here = float(case.rules["plurality"].mean[-1])
        if abs(here - row.mean) > 0.0005:
            found.append(f"{case.name}: {text.percent(here)} here and {text.percent(row.mean)} there")
    if not found:
        return []
    words = (
        "Plurality of all candidates has two values on this page. Here ties are averaged over all orders; under "
        "Scaling a tie goes to the earliest candidate of one seeded order, which all rules of the study see. "
    )
    return [Remark(f"{words}{'; '.join(found[:3])}{f'; and {len(found) - 3} more' if len(found) > 3 else ''}.")]


def _bank_sections(cases: list[Case], ties: Sequence[Remark] = ()) -> list[Section | None]:
    """What is said of banks of candidates: least of those with one candidate a question, or of a search."""
    sampled = [case for case in cases if case.bank.kind in ("iid", "heterogeneous")]
    several = [case for case in sampled if case.top > 1]
    if not sampled:
        return []
    if not several:
        alone = accuracy_section(sampled)
        known = (*bank_remarks(sampled), *pointed(case.accuracy for case in sampled), *alone.parts)
        return [dataclasses.replace(alone, parts=known), groups_section(sampled[:BANKS])]
    drawn, profile = several[:BANKS], profile_section(several[:BANKS])
    remarks: list[Part] = list(bank_remarks(several))
    if len(several) > BANKS:
        remarks.insert(
            0, Remark(f"Figures are of the first {BANKS} of {len(several)} banks; the table of rates has all.")
        )
    ends = (case.intervals(curve)[-1] for case in several for curve in (case.ceiling, case.floor))
    parts = (*remarks, *profile.parts, rates(several), *ties, *pointed(ends))
    found: list[Section | None] = [Section(profile.name, profile.title, profile.lead, parts, wide=True)]
    more = (selection_section, stopping_section, verifier_section, groups_section, headroom_section)
    return [*found, *(make(drawn) for make in more)]


def _listed_below(result: Result) -> tuple[str, ...]:
    """Which rows share which bank: said here where that is more than the scaling section has room for."""
    return result.shared if len(result.shared) > SENTENCES else ()


def _pictures(pictures: tuple[Picture, ...]) -> Section | None:
    lead = "What a controller expanded, and which prefixes it gave up."
    return Section("search", "Search", lead, pictures) if pictures else None


# ------------------------------------------------------------------------------------------------------------- finding


def finding(result: Result) -> str:
    """What the study found, in a paragraph made of its numbers."""
    deployable = [row for row in result.rows if row.kind != "diagnostic" and not np.isnan(row.mean)]
    if not deployable:
        return "The study has no deployable row."
    tasks = dict.fromkeys(row.task for row in deployable)
    said = [_of_task(task, [row for row in deployable if row.task == task]) for task in list(tasks)[:TASKS]]
    if len(tasks) > TASKS:
        said.append(f"{len(tasks) - TASKS} more tasks are in the table.")
    clear = [each for each in result.comparisons if each.difference.low > 0 or each.difference.high < 0]
    if result.comparisons:
        what = text.count(len(result.comparisons), "declared comparison")
        said.append(f"Of {what}, {len(clear)} {'has' if len(clear) == 1 else 'have'} an interval that excludes zero.")
    if result.mixed:
        said.append(
            f"On {text.listed(result.mixed)} configurations were asked in different ways, which no number separates."
        )
    return " ".join(said)


def _of_task(task: str, rows: list[Row]) -> str:
    """The cheapest protocol and the best one, what the difference cost, and whether their intervals tell them apart."""
    models = len({row.model for row in rows}) > 1
    cheap = [row for row in rows if row.mean_cost <= 1.005 * min(each.mean_cost for each in rows)]
    least, high = max(cheap, key=lambda row: row.mean), _highest(rows)
    best = high[0]

    def name(row: Row) -> str:
        return f"{row.label}{f' of {row.model}' if models else ''}"

    reached, many = text.estimate(estimate_of(best)), text.count(len(rows), "deployable row")
    tied = f"; {text.count(len(high) - 1, 'other row')} {'reaches' if len(high) == 2 else 'reach'} as much"
    tied = tied if len(high) > 1 else ""
    if len(rows) == 1:
        return f"On {task}, {name(best)} reaches {reached}."
    if best in cheap:
        price = "which all cost the same" if len(cheap) == len(rows) else "and none costs less"
        return f"On {task}, {name(best)} is the best of {many}, {price}, at {reached}{tied}."
    ratio = best.mean_cost / least.mean_cost if least.mean_cost > 0 else float("nan")
    times = f" for {text.number(round(ratio, 1))} times the cost" if ratio == ratio else ""
    return (
        f"On {task}, {name(least)} reaches {text.estimate(estimate_of(least))} at {text.number(least.mean_cost)} "
        f"{least.unit} a question; the best of {many} is {name(best)} with {reached}{times}{tied}"
        f"{_apart(estimate_of(least), estimate_of(best))}."
    )


def _highest(rows: Sequence[Row]) -> list[Row]:
    """The best rows, all that tie, the cheapest first."""
    most = max(row.mean for row in rows)
    return sorted((row for row in rows if row.mean >= most - 1e-9), key=lambda row: row.mean_cost)


def _apart(least: Estimate, best: Estimate) -> str:
    """Whether two intervals overlap; nothing where there is none."""
    if not (least.covers and best.covers):
        return ""
    return ". Their intervals overlap" if best.low <= least.high else ". Their intervals do not overlap"


def _subtitle(result: Result) -> str:
    questions = sum(len(each) for each in result.questions.values())
    models = list(dict.fromkeys(row.model for row in result.rows))
    parts = [
        text.count(len(result.questions), "task"),
        text.count(questions, "question"),
        text.count(len(models), "configuration"),
    ]
    return ", ".join([*parts, text.count(len(result.rows), "row")])


def _tiles(result: Result) -> tuple[tuple[str, str, str], ...]:
    """The best deployable row of each task, and the rates that stand beside it."""
    tiles = []
    for task in list(result.questions)[:4]:
        rows = [row for row in result.rows if row.task == task and row.kind != "diagnostic" and not np.isnan(row.mean)]
        if rows:
            best = _highest(rows)[0]
            found = estimate_of(best)
            inside = f"[{100 * found.low:.1f}, {100 * found.high:.1f}]" if found.covers else "no interval"
            whose = f" of {best.model}" if len({row.model for row in rows}) > 1 else ""
            several = len(result.questions) > 1
            rates = f"; no answer {text.percent(mean_of(best.invalid))}, cap {text.percent(mean_of(best.capped))}, "
            rates += f"{text.number(mean_of(best.tokens))} tokens"
            said = f"{inside} {best.label}{whose}{rates if several else ''}"
            tiles.append((text.percent(found.value), f"best on {task}", said))
            if not several:
                tiles += [
                    (text.number(best.mean_cost), f"{best.unit} a question", "of the best row"),
                    (text.percent(mean_of(best.invalid)), "no answer", "of its candidates"),
                    (text.percent(mean_of(best.capped)), "hit the cap", "of its candidates"),
                    (text.number(mean_of(best.tokens)), "mean tokens", "of a candidate"),
                ]
    return tuple(tiles)


# --------------------------------------------------------------------------------------------------------------- trust


def _trust(result: Result) -> Section:
    status = [
        {"bank": name, "status": result.reproduced.get(name, "not checked: it was not run a second time")}
        for name in result.banks
    ]
    covers = sorted({source for row in result.rows[:1] for source in estimate_of(row).covers})
    words = (
        f"{text.covered(covers)} A band over replays is the spread of a simulation, and an interquartile range the "
        "spread of configurations: neither is a confidence interval, and both are named where they are drawn."
        if covers
        else "There are too few questions for intervals."
    )
    table = Table("reproduced", "Reproducibility", (Column("bank", "bank"), Column("status", "status")), status)
    parts: list[Part] = [*([_ledger(result)] if result.charges else []), table, Remark(words)]
    lead = "What everything cost, whether it was run again, and what the intervals on this page are about."
    return Section("trust", "Cost and trust", lead, tuple(parts))


def _ledger(result: Result) -> Table:
    """What was paid for, by stage, over all questions, and in all."""
    stages = [stage for stage in STAGES if any(stage in each.cost for each in result.charges)]
    rows = [
        {"task": each.task, "model": each.model, "what": each.what, **each.cost, "total": each.total}
        for each in result.charges
    ]
    sums = {stage: sum(each.cost.get(stage, 0.0) for each in result.charges) for stage in stages}
    rows.append({"task": "", "model": "", "what": "in all", **sums, "total": sum(sums.values())})
    columns = (
        Column("task", "task"),
        Column("model", "model"),
        Column("what", "what was charged"),
        *(Column(stage, stage, "number") for stage in stages),
        Column("total", "in all", "number"),
    )
    unit = next((row.unit for row in result.rows), "")
    note = (
        f"In {unit}, over all questions. Candidates that rules share are charged once, and each score of them once; "
        "repeats are in it. Surplus is what run-ahead drew and threw away. A dash is no charge."
    )
    return Table("ledger", "Cost ledger", columns, rows, note)

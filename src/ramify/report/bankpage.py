"""The report of one bank with its outcomes: what it holds, what rules take out of it, and what it cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

import ramify
from ramify.bank import Bank, Outcomes
from ramify.metrics.estimate import Estimate
from ramify.metrics.gap import gap
from ramify.report import text
from ramify.report.case import Case, mean_of
from ramify.report.groups import groups_section
from ramify.report.health import bank_card, bank_remarks, card_section, headroom_section, pointed, trust_section
from ramify.report.profile import profile_section
from ramify.report.questions import ROOM, Spell, explorer_section
from ramify.report.selection import accuracy_section, scaling_section, selection_section, submitted_by
from ramify.report.stopping import stopping_section
from ramify.report.values import Page, Picture
from ramify.report.verifier import verifier_section

__all__ = ["finding_of", "profile_page"]


def profile_page(
    bank: Bank,
    outcomes: Outcomes,
    *,
    title: str = "",
    card: Mapping[str, str] | None = None,
    pictures: tuple[Picture, ...] = (),
    spell: Spell | None = None,
    room: int = ROOM,
    level: float = 0.95,
    budgets: Sequence[int] = (),
) -> Page:
    """A page about one bank. ``card`` adds to what the bank says of itself, ``spell`` gives the text of tokens.

    Intervals have this ``level``; ``budgets`` are the k of the curves, doubling ones up to the bank's size by default.

    >>> bank = Bank.of({"easy": ["7", "7", "7"], "hard": ["1", "2", None]})
    >>> page = profile_page(bank, Outcomes.of(bank, [[1, 1, 1], [0, 1, 0]]))
    >>> page.finding.split(".")[0]
    'One candidate is right on 66'
    """
    name = title or next((proposal.run for proposal in bank.proposals if proposal.run), "") or "bank"
    case = Case(text.shown(name), bank, outcomes, level=level, asked=tuple(budgets))
    cases = [case]
    several = [scaling_section, profile_section, selection_section, stopping_section, verifier_section]
    sections = [
        *(make(cases) for make in (several if case.top > 1 else [accuracy_section])),
        groups_section(cases),
        headroom_section(cases) if case.top > 1 else None,
        explorer_section(cases, {} if spell is None else {case.name: spell}, room),
        card_section({**bank_card(case), **(card or {})}, pictures),
        trust_section(cases, {}),
    ]
    first = sections[0]
    if first is not None:  # what has to be known stands beside the first number, not at the end
        parts = (*bank_remarks(cases), *pointed(_estimates(case)), *first.parts)
        sections[0] = dataclasses.replace(first, parts=parts)
    return Page(
        title=title or f"What {text.count(case.usual, 'candidate')} a question hold",
        subtitle=_subtitle(case),
        finding=finding_of(case),
        tiles=_tiles(case),
        sections=tuple(section for section in sections if section is not None),
        made=f"Made by ramify {ramify.__version__} from one bank. The page holds all that it shows, and loads nothing.",
    )


def _estimates(case: Case) -> list[Estimate]:
    curves = [case.ceiling, *([case.floor, *case.rules.values()] if case.top > 1 else [])]
    return [each for curve in curves for each in case.intervals(curve)]


def finding_of(case: Case) -> str:
    """What the numbers say, in a paragraph."""
    many, graded = len(case.bank.questions), case.graded
    asked = text.count(many, "question") if graded == many else f"the {graded:,} of {many:,} questions that have grades"
    said = [f"One candidate is right on {text.percent(case.accuracy.value)} of {asked} ({_interval(case)})."]
    if case.top > 1:
        said += _among(case)
        said.append(
            f"{text.percent(case.never)} of {_all(case)}questions are never solved "
            f"and {text.percent(case.always)} always."
        )
    else:
        why = "There is one candidate a question" if case.usual == 1 else "Only k = 1 was asked for"
        said.append(f"{why}, so nothing here is about choosing between candidates.")
    return " ".join(filter(None, said))


def _all(case: Case) -> str:
    """Which questions, where the sentence before spoke of some of them."""
    if case.graded < len(case.bank.questions):
        return "graded "
    return "all " if np.isnan(case.ceiling.values[:, -1]).any() else ""


def _among(case: Case) -> list[str]:
    """What there is among the largest number of candidates, and what the best rule takes: all on the same questions."""
    top, rule = case.top, case.best_rule
    found = gap(case.rules[rule], case.bank, case.outcomes)
    here = ~np.isnan(found.values[:, -1])  # [Q] whom both numbers are about
    if not here.any():
        return [f"No question has the grades of {top} candidates that a rule would need."]
    wide = case.bank.drawn.sum(axis=1) >= top
    which = ""
    if not here.all():
        lacks = "" if (here == wide).all() else " with the grades that matter"
        which = f", which {int(here.sum())} of these questions have{lacks},"
    ceiling, taken = (float(table[here, -1].mean()) for table in (found.available, found.taken))
    alone = float(np.nanmean(case.grades[here], axis=1).mean())  # of the same questions, which need not be like all
    best = f", the best of {len(case.rules)} rules with a curve here," if len(case.rules) > 1 else ""
    return [
        f"Among {top} candidates{which} there is a right one for {text.percent(ceiling)}; {rule}{best} submits one for "
        f"{text.percent(taken)}, {_change(taken - alone)}{' on them' if which else ''}.",
        _better(case, rule),
        _reading(case, alone, taken, ceiling, rule, " of them" if which else ""),
    ]


def _better(case: Case, rule: str) -> str:
    """A rule without a curve that is better still on the whole bank, so that no figure contradicts the finding."""
    if case.top != case.usual:
        return ""
    means = {name: mean_of(worth) for name, (worth, kind) in submitted_by(case).items() if kind == "deployable"}
    first = max(means, key=lambda name: np.nan_to_num(means[name], nan=-1.0))
    if not means[first] > means[rule]:
        return ""
    return f"Of all {len(means)} rules on the whole bank, {first} submits most: {text.percent(means[first])}."


def _interval(case: Case) -> str:
    found = case.accuracy
    if not found.covers:
        return "no interval"
    return f"{text.band(found)} {100 * found.low:.1f} to {100 * found.high:.1f}"


def _change(by: float) -> str:
    if abs(by) < 0.0005:
        return "no more than one candidate alone"
    return f"{text.points(abs(by))} {'more' if by > 0 else 'fewer'} than one candidate alone"


def _reading(case: Case, alone: float, taken: float, ceiling: float, rule: str, whose: str) -> str:
    """Whether the next step is a better rule or a better model. Said only where the numbers say it."""
    left, gained = ceiling - taken, ceiling - alone
    if case.shares["invalid"] == 1:
        return "No candidate has an answer: look at how answers are read, and at the cap, before judging the model."
    if alone > 0.9995:
        return f"Every candidate{whose} is right, so these questions cannot tell rules or models apart."
    if ceiling < 0.0005:
        return f"No candidate{whose} is right, so no rule can help."
    if gained < 0.005:
        return "More candidates add next to nothing here, so the model is the limit, not the choice."
    share = left / gained
    if share > 0.5:
        return (
            f"Most of what sampling finds is lost in choosing: {text.points(left)} are in the bank and not submitted."
        )
    if left > 0.01:
        return f"A better choice could still gain {text.points(left)} with the same candidates."
    return f"{rule[0].upper()}{rule[1:]} takes nearly all that the bank holds."


def _subtitle(case: Case) -> str:
    bank = case.bank
    models = sorted({proposal.model for proposal in bank.proposals if proposal.model})
    drawn = f"{text.count(len(bank.questions), 'question')}, {text.count(int(bank.drawn.sum()), 'candidate')}"
    return ", ".join([drawn, *([f"from {text.listed(models)}"] if models else []), f"{bank.kind} bank"])


def _tiles(case: Case) -> tuple[tuple[str, str, str], ...]:
    """The numbers that belong at the top, each with its interval or what stands beside it."""
    top, rule, shares = case.top, case.best_rule, case.shares

    def tile(name: str, found: Estimate) -> tuple[str, str, str]:
        inside = f"[{100 * found.low:.1f}, {100 * found.high:.1f}]" if found.covers else "no interval"
        return text.percent(found.value), name, inside

    tiles = [tile("accuracy of one", case.accuracy)]
    if top > 1:
        tiles += [
            tile(f"Pass@{top}", case.intervals(case.ceiling)[-1]),
            tile(f"pass^{top}", case.intervals(case.floor)[-1]),
            tile(f"{rule}, k = {top}", case.intervals(case.rules[rule])[-1]),
        ]
    tiles += [
        (text.percent(shares["invalid"]), "no answer", "of candidates"),
        (text.percent(shares["capped"]), "hit the cap", "of those whose end is known"),
        (text.number(shares["tokens"]), "mean tokens", "of a candidate"),
    ]
    return tuple(tiles)

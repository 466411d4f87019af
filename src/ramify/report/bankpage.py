"""The report of one bank with its outcomes: what it holds, what rules take out of it, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import ramify
from ramify.arrays import Array
from ramify.bank import Bank, Outcomes
from ramify.metrics.estimate import Estimate
from ramify.metrics.gap import gap
from ramify.report import text
from ramify.report.case import Case
from ramify.report.groups import groups_section
from ramify.report.health import bank_card, bank_remarks, card_section, headroom_section, trust_section
from ramify.report.profile import profile_section
from ramify.report.questions import ROOM, Spell, explorer_section
from ramify.report.selection import accuracy_section, scaling_section, selection_section
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
) -> Page:
    """A page about one bank. ``card`` adds to what the bank says of itself, ``spell`` gives the text of tokens.

    >>> bank = Bank.of({"easy": ["7", "7", "7"], "hard": ["1", "2", None]})
    >>> page = profile_page(bank, Outcomes.of(bank, [[1, 1, 1], [0, 1, 0]]))
    >>> page.finding.split(".")[0]
    'One candidate is right on 66'
    """
    name = title or next((proposal.run for proposal in bank.proposals if proposal.run), "") or "bank"
    case = Case(text.shown(name), bank, outcomes)
    cases = [case]
    several = [scaling_section, profile_section, selection_section, stopping_section, verifier_section]
    sections = [
        *(make(cases) for make in (several if case.top > 1 else [accuracy_section])),
        groups_section(cases),
        headroom_section(cases) if case.top > 1 else None,
        explorer_section(cases, {} if spell is None else {case.name: spell}, room),
        card_section({**bank_card(case), **(card or {})}, (*bank_remarks(cases), *pictures)),
        trust_section(cases, {}),
    ]
    return Page(
        title=title or f"What {text.count(case.top, 'candidate')} a question hold",
        subtitle=_subtitle(case),
        finding=finding_of(case),
        tiles=_tiles(case),
        sections=tuple(section for section in sections if section is not None),
        made=f"Made by ramify {ramify.__version__} from one bank. The page holds all that it shows, and loads nothing.",
    )


def finding_of(case: Case) -> str:
    """What the numbers say, in a paragraph."""
    top, rule = case.top, case.best_rule
    ceiling, taken = case.intervals(case.ceiling)[-1], case.intervals(case.rules[rule])[-1]
    left = gap(case.rules[rule], case.bank, case.outcomes).overall[-1]
    wide = case.bank.drawn.sum(axis=1) >= top  # [Q] whom the numbers at ``top`` are about
    alone = _alone(case, wide)
    which = "" if wide.all() else f", which {int(wide.sum())} of these questions have,"
    said = [
        f"One candidate is right on {text.percent(case.accuracy.value)} of "
        f"{text.count(len(case.bank.questions), 'question')} ({_interval(case)})."
    ]
    if top > 1:
        said.append(
            f"Among {top} candidates{which} there is a right one for {text.percent(ceiling.value)}; {rule}"
            f"{f', the best of {len(case.rules)} rules here,' if len(case.rules) > 1 else ''} submits one for "
            f"{text.percent(taken.value)}, {_change(taken.value - alone)}{' on them' if which else ''}."
        )
        said.append(_reading(float(left), ceiling.value - alone, rule))
        said.append(
            f"{text.percent(case.never)} of {'all ' if which else ''}questions are never solved "
            f"and {text.percent(case.always)} always."
        )
    else:
        said.append("There is one candidate a question, so nothing here is about choosing between candidates.")
    return " ".join(filter(None, said))


def _alone(case: Case, which: Array) -> float:
    """The accuracy of one candidate on some questions ``[Q]``: what more candidates of these are held against."""
    grades = case.grades[which]
    graded = ~np.isnan(grades).all(axis=1)
    return float(np.nanmean(grades[graded], axis=1).mean()) if graded.any() else case.accuracy.value


def _interval(case: Case) -> str:
    found = case.accuracy
    if not found.covers:
        return "no interval"
    return f"{text.band(found)} {100 * found.low:.1f} to {100 * found.high:.1f}"


def _change(by: float) -> str:
    if abs(by) < 0.0005:
        return "no more than one candidate alone"
    return f"{text.points(abs(by))} {'more' if by > 0 else 'fewer'} than one candidate alone"


def _reading(left: float, gained: float, rule: str) -> str:
    """Whether the next step is a better rule or a better model. Said only where the numbers say it."""
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

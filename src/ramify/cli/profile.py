"""``ramify profile``: a file of answers, and what it says about the system that gave them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import Grades, Json, Level, Maps, Place, Reference, Task, Threshold, mapping, whole, writable
from ramify.cli.terminal import emit, number, span, table

if TYPE_CHECKING:
    from ramify.cli.source import Source
    from ramify.metrics import Estimate, Tally

__all__ = ["profile"]

REPLICATES, DRAWS, STUDIES = 4000, 2000, 200
FEW = 3  # questions with two candidates or more, under which a prior over questions is fitted to nothing
MEASURES = ("Pass@k", "pass^k", "mG-Pass@k")


def profile(
    path: Place,
    k: Annotated[str, typer.Option("--k", metavar="K,K,...", help="Budgets; 1, 2, 4, ... up to all by default.")] = "",
    maps: Maps = None,
    reference: Reference = "",
    task: Task = "",
    grades: Grades = "",
    threshold: Threshold = None,
    by: Annotated[str, typer.Option("--by", metavar="GROUP", help="Pass@k of each group of questions too.")] = "",
    kind: Annotated[
        str, typer.Option(help="How a file's candidates came about: iid, heterogeneous, stopped, sweep or search.")
    ] = "",
    level: Level = 0.95,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Where the page goes; NAME-profile.html by default.")
    ] = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Write no page.")] = False,
    as_json: Json = False,
) -> None:
    """Say how good a system is from a file of its answers: Pass@k, pass^k, mG-Pass@k, intervals, and a page.

    One row an answer, with the question's id and whether it is right, is enough. Columns are guessed and shown:

        ramify profile my.jsonl

    Where the guess is wrong, say what plays which part; without a column of grades, say which holds the right answer:

        ramify profile my.jsonl --map answer=prediction --reference gold

    With responses and no answers, name the task they are for, or a file of its questions and answers:

        ramify profile responses.jsonl --task "Own('questions.csv')"

    Every interval says which randomness it covers. Banks and runs on disk work the same way, and programs read JSON:

        ramify profile runs/mine --by level --k 1,4,16 --json --no-page
    """
    from ramify.cli.source import load
    from ramify.metrics import Tally

    source = load(path, mapping(maps), reference=reference, task=task, kind=kind)
    written = None if no_page else writable(page or source.page, "--page")
    outcomes = source.binary(grades, threshold)
    tally = Tally.of_bank(source.bank, outcomes)
    budgets = whole(k, "--k") if k else _budgets(tally.widest)
    found = measured(tally, budgets, level)
    about = _about(source, tally, outcomes.description)
    predicted = _posterior(tally, budgets, level)
    groups = _groups(source, tally, by, budgets, level) if by else {}
    if written is not None:
        from ramify.report import profile_page

        asked = budgets if k else []  # otherwise the page takes those that most questions have
        profile_page(source.bank, outcomes, title=source.name, level=level, budgets=asked).write(written)
    answer = {"source": str(path), **about, "profile": found, "posterior": predicted, "groups": groups}
    last = f"The page, with every question and answer: {written}" if written else ""
    emit(as_json, answer | {"page": written}, *_told(source, about, found, predicted, groups, level), last)


def measured(tally: Tally, budgets: list[int], level: float) -> list[dict[str, Any]]:
    """Each measure at each budget, of subsets of the bank, with the interval over questions that the page has."""
    import numpy as np

    from ramify.metrics import observed
    from ramify.metrics.bankcurve import over_questions
    from ramify.metrics.units import Layout

    def estimate(functional: Any) -> Estimate:
        enough = tally.graded >= functional.k
        if enough.sum() < 2:  # nothing to draw questions from
            return observed(tally, functional)
        layout, worth = Layout.of(tally.take(enough)), np.full(tally.questions, np.nan)
        worth[enough] = functional(layout.profile(np.eye(layout.width)[layout.code]))  # [Q] a question by itself
        found = over_questions(worth[:, None], level=level, bounds=(0.0, 1.0))[0]
        return dataclasses.replace(found, note="; ".join(part for part in (found.note, tally.remark) if part))

    rows = []
    for k in budgets:
        values = {name: estimate(functional) for name, functional in _functionals(k).items()}
        rows.append({"k": k, **values, "left_out": int((tally.graded < k).sum())})
    return rows


def _posterior(tally: Tally, budgets: list[int], level: float) -> dict[str, Any]:
    """The same of fresh candidates under a fitted prior, also beyond the bank; or why there is no such number."""
    from ramify.errors import InvalidValue
    from ramify.metrics import PassAt, Posterior, credible, fit_prior, refitted, sensitivity
    from ramify.types import Key

    try:
        _need_spread(tally)
        prior = fit_prior(tally)
    except InvalidValue as refused:
        return {"refused": str(refused), "rows": []}
    ks = [*budgets, 2 * budgets[-1]]
    law = Posterior.of(tally, prior).profile(ks[-1])
    others = refitted(tally, prior, ks[-1], Key("profile", "all", 0, "posterior"), STUDIES)

    def estimate(functional: Any) -> Estimate:
        between = credible(functional(others), ("questions", "draws"), level)
        return dataclasses.replace(between, value=float(functional(law)))

    rows = [{"k": k, **{name: estimate(f) for name, f in _functionals(k).items()}} for k in ks]
    by_prior = sensitivity(tally, PassAt(ks[-1]), Key("profile", "all", 0, "prior"), DRAWS, level)
    return {"prior": f"Beta({prior.alpha:.3g}, {prior.beta:.3g})", "rows": rows, "sensitivity": by_prior}


def _need_spread(tally: Tally) -> None:
    """Refuse counts that say nothing of how questions differ: a prior fitted to them is certain of the unseen."""
    from ramify.errors import InvalidValue

    several = tally.graded >= 2
    if several.sum() < FEW:
        much = f"{int(several.sum())} questions have two graded candidates or more"
        raise InvalidValue(f"{much}, and a prior over questions is fitted to {FEW} at least: ask more, or draw more")
    for word, count in (("right", tally.graded - tally.correct), ("wrong", tally.correct)):
        if not count.sum():
            much = f"all {int(tally.graded.sum())} graded candidates are {word}"
            raise InvalidValue(
                f"{much}, which says nothing of how often others would be: ask harder or easier questions"
            )


def _functionals(k: int) -> dict[str, Any]:
    from ramify.metrics import MeanGPassAt, PassAt, PassHat

    return dict(zip(MEASURES, (PassAt(k), PassHat(k), MeanGPassAt(k)), strict=True))


def _groups(source: Source, tally: Tally, by: str, budgets: list[int], level: float) -> dict[str, Any]:
    """Pass@k of each group, at the smallest and the largest budget."""
    from ramify.errors import InvalidValue
    from ramify.metrics import PassAt, summarise
    from ramify.types import Key

    known = sorted({name for question in source.bank.questions for name in question.groups})
    lacking = [question.id for question in source.bank.questions if by not in question.groups]
    if lacking:
        raise InvalidValue(
            f"--by {by}: question {lacking[0]!r} has no such group; there are {', '.join(known) or 'none'}"
        )
    names = [question.groups[by] for question in source.bank.questions]
    found = {}
    for k in dict.fromkeys((budgets[0], budgets[-1])):
        each = summarise(tally, names, PassAt(k), Key("profile", by, 0, "bootstrap"), REPLICATES, level=level)
        found[f"Pass@{k}"] = each
    return found


def _about(source: Source, tally: Tally, graded_by: str) -> dict[str, Any]:
    """What stands beside every accuracy: invalid, at the cap, never and always solved, ungraded."""
    import numpy as np

    bank = source.bank
    drawn, graded = int(bank.drawn.sum()), tally.graded > 0
    known = bank.drawn & (bank.ended != bank.endings.index("unknown"))
    capped = bank.drawn & (bank.ended == bank.endings.index("length"))
    lengths = None if bank.length is None else bank.length[bank.drawn & (bank.length >= 0)]
    return {
        "questions": tally.questions,
        "candidates": drawn,
        "without_candidates": int((~bank.drawn.any(axis=1)).sum()),
        "grades": graded_by,
        "ungraded": drawn - int(tally.graded.sum()),
        "no_answer": float((bank.drawn & (bank.answers < 0)).sum() / max(drawn, 1)),
        "at_the_cap": float(capped.sum() / known.sum()) if known.any() else None,
        "mean_tokens": float(np.mean(lengths)) if lengths is not None and lengths.size else None,
        "never_solved": float((tally.correct[graded] == 0).mean()) if graded.any() else None,
        "always_solved": float((tally.correct[graded] == tally.graded[graded]).mean()) if graded.any() else None,
        "kind": bank.kind,
    }


def _told(
    source: Source,
    about: dict[str, Any],
    found: list[dict[str, Any]],
    predicted: dict[str, Any],
    groups: dict[str, Any],
    level: float,
) -> list[str]:
    """The same in words and tables."""
    shares = [
        f"{about['questions']} questions, {about['candidates']} candidates ({about['kind']})",
        f"never right {number(about['never_solved'])}, always right {number(about['always_solved'])}",
        f"no answer {number(about['no_answer'])}, at the cap {number(about['at_the_cap'])}",
        f"mean tokens {number(about['mean_tokens'], 1)}",
    ]
    if about["ungraded"]:
        shares.append(f"{about['ungraded']} candidates without a grade count nowhere")
    head = "; ".join(shares)
    if about["without_candidates"]:
        head = f"{_left(about)}\n{head}"
    covers = (
        f"{100 * level:g} % intervals: bootstrap over questions (percentiles); they cover other questions, "
        "not the same ones asked again."
    )
    if any(row[name].covers and row[name].width == 0 for row in found for name in MEASURES):
        covers += "\nAn interval of one point says that all questions fared alike, not that others will."
    parts = [source.shown, head, _measures("of these candidates", found), covers]
    if predicted["rows"]:
        note = f"Fresh candidates, prior {predicted['prior']} fitted to this file; intervals cover questions and draws,"
        note += " the fitting included."
        priors = ", ".join(f"{name} {each.value:.3f}" for name, each in predicted["sensitivity"].items())
        note += f"\nPass@{predicted['rows'][-1]['k']} by prior: {priors}; where they differ, the prior has decided."
        parts += [_measures("predicted", predicted["rows"]), note]
    else:
        parts.append(f"No prediction for fresh candidates: {predicted['refused']}")
    parts += [_by_group(name, each) for name, each in groups.items()]
    return parts


def _left(about: dict[str, Any]) -> str:
    """What the numbers are not about, where that would surprise: questions for which nothing was returned."""
    much = (
        f"{about['without_candidates']} of {about['questions']} questions have no candidate, and are in no number here"
    )
    return f"{much}: what a run submitted counts them as wrong." if about["kind"] == "search" else f"{much}."


def _measures(title: str, rows: list[dict[str, Any]]) -> str:
    header = [title, *(cell for name in MEASURES for cell in (name, "interval"))]
    left = any(row.get("left_out") for row in rows)
    lines = []
    for row in rows:
        cells = [f"k = {row['k']}"]
        for name in MEASURES:
            cells += [number(row[name].value), span(row[name])]
        lines.append(cells + ([str(row["left_out"])] if left else []))
    return table(header + (["questions left out"] if left else []), lines)


def _by_group(name: str, found: Any) -> str:
    rows = [[group, number(each.value), span(each)] for group, each in zip(found.names, found.values, strict=True)]
    rows += [["all questions", number(found.micro.value), span(found.micro)]]
    rows += [["mean of groups", number(found.macro.value), span(found.macro)]]
    return table([name, "value", "interval"], rows)


def _budgets(most: int) -> list[int]:
    """1, 2, 4, ... and all.

    >>> _budgets(12), _budgets(1)
    ([1, 2, 4, 8, 12], [1])
    """
    powers = [1 << i for i in range(most.bit_length()) if 1 << i <= most]
    return sorted({*powers, max(most, 1)})

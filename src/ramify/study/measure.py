"""What is made of a study's rows and banks: metrics, group summaries, rank agreement, paired comparisons, reruns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ramify.arrays import Array
from ramify.metrics import Percentile, Reproducible, Tally, agreement, bootstrap_profile, compare_runs, summarise
from ramify.metrics.bankcurve import over_questions
from ramify.metrics.estimate import Estimate
from ramify.study.pools import Filled
from ramify.study.result import Agreed, Comparison, Measure, Row
from ramify.study.source import arm_of
from ramify.study.spec import Study
from ramify.study.words import words
from ramify.types import Key, Request

__all__ = ["agreements", "comparisons", "made_again", "measures", "reproduced"]


def measures(study: Study, filled: Sequence[Filled]) -> Iterator[Measure]:
    """Every metric of every bank with its interval over questions, by group too; repeats are numbers of their own."""
    for each in filled:
        tally = Tally.of_bank(each.bank, each.outcomes)
        for metric in study.metrics:
            yield from _measured(study, each, tally, metric)


def _measured(study: Study, filled: Filled, tally: Tally, metric: object) -> Iterator[Measure]:
    pool, name, many = filled.pool, words(metric), filled.bank.shape[0]
    where = (name, pool.task.name, pool.model.name, pool.name)
    key = Key(study.run, pool.task.name, 0, "bootstrap")  # the same questions for every model: intervals are paired
    if many < 2:
        yield Measure(*where, _observed(tally, metric), "", many)
        return
    sample = bootstrap_profile(tally, metric, key, study.replicates)  # type: ignore[arg-type]
    yield Measure(*where, Percentile(study.level)(sample), "", many)
    for group in pool.task.groups:
        labels = np.array([question.groups.get(group, "") for question in filled.bank.questions])
        names, sizes = np.unique(labels[labels != ""], return_counts=True)
        usable = np.isin(labels, names[sizes >= 2])  # one question says nothing about its group
        if len(set(labels[usable])) < 2:
            continue
        part = (tally.take(usable), labels[usable])
        found = summarise(*part, metric, key, study.replicates, study.level)  # type: ignore[arg-type]
        for label, size, value in zip(found.names, found.questions, found.values, strict=True):
            yield Measure(*where, value, f"{group}={label}", size)
        yield Measure(*where, found.macro, f"{group}: macro", int(usable.sum()))
        yield Measure(*where, found.micro, f"{group}: micro", int(usable.sum()))


def _observed(tally: Tally, metric: object) -> Estimate:
    from ramify.metrics import observed

    return observed(tally, metric)  # type: ignore[arg-type]


def agreements(study: Study, filled: Sequence[Filled]) -> Iterator[Agreed]:
    """How well k candidates rank the models as all N do, by task, over paired replays."""
    for task in study.tasks:
        mine = _ranked(study, [each for each in filled if each.pool.task == task and not each.pool.repeat])
        if len(mine) < 3:
            continue
        n = min(each.bank.shape[1] for each in mine.values())  # as many of each: some may have drawn more
        table = np.stack([each.outcomes.on(each.bank)[:, :n] for each in mine.values()])  # [M, Q, N]
        budgets = [k for k in study.budgets if k <= n]
        found = agreement(table, budgets=budgets, replicates=study.replays, run=f"{study.run}/replay")
        for measure in ("spearman", "kendall", "weighted"):
            if not np.isfinite(getattr(found, measure)).any(axis=0).all():
                continue  # all models tie
            low, high = found.band(measure)
            yield Agreed(task.name, tuple(mine), measure, found.budgets, found.mean(measure), low, high)


def _ranked(study: Study, filled: Sequence[Filled]) -> dict[str, Filled]:
    """The bank that a model is ranked by: of its own decoder, or else the first there is."""
    found: dict[str, Filled] = {}
    for each in sorted(filled, key=lambda each: each.pool.decode != study.decode_of(None, each.pool.model)):
        found.setdefault(each.pool.model.name, each)
    return {name: found[name] for name in dict.fromkeys(each.pool.model.name for each in filled)}


# ---------------------------------------------------------------------------------------------------------- comparisons


def comparisons(study: Study, rows: Sequence[Row]) -> Iterator[Comparison]:
    """Every declared pair on every task, within a model unless the names say which."""
    for one, other in study.comparisons:
        for task in dict.fromkeys(row.task for row in rows):
            for model in dict.fromkeys(row.model for row in rows):
                a, b = (_found(name, task, model, rows) for name in (one, other))
                if a is not None and b is not None and a is not b:
                    yield compared(study, a, b)
                if ": " in one and ": " in other:
                    break  # both name their models


def _found(name: str, task: str, model: str, rows: Sequence[Row]) -> Row | None:
    """The row that ``model: protocol @ k`` means; without a model, of this one; without k, at its largest budget."""
    named, _, at = name.partition(" @ ")
    whose, found, protocol = named.rpartition(": ")
    mine = [
        row
        for row in rows
        if row.task == task
        and row.model == (whose if found else model)
        and row.name == protocol
        and (not at or at in (str(row.k), f"{row.budget:.15g}" if row.budget else ""))
    ]
    return max(mine, key=lambda row: row.k or row.budget or 0, default=None)


def compared(study: Study, a: Row, b: Row) -> Comparison:
    """The difference of two rows on the same questions."""
    difference = (a.utility - b.utility)[:, None]
    both = int((~np.isnan(difference)).sum())
    run = f"{study.run}/comparison"
    (estimate,) = (
        over_questions(difference, study.replicates, study.level, run, (-1.0, 1.0))
        if both > 1
        else (Estimate.descriptive(float(np.nanmean(difference)), "one question"),)
    )
    notes = [f"{a.mean_cost:.4g} against {b.mean_cost:.4g} {a.unit} a question"]
    if a.interface != b.interface:
        notes.append(f"mixes prompt interfaces: {a.interface} against {b.interface}")
    if a.kind != b.kind:
        notes.append(f"{a.kind} against {b.kind}")
    names = (f"{a.model}: {a.label}", f"{b.model}: {b.label}")
    return Comparison(a.task, *names, estimate, both, a.bank == b.bank, "; ".join(notes))


# ------------------------------------------------------------------------------------------------------ reproducibility


def reproduced(study: Study, filled: Sequence[Filled]) -> dict[str, str]:
    """What is known of each bank's reproducibility: some leaves made again, and runs of the same protocol compared."""
    found = {each.pool.name: each.status for each in filled}
    canonical = {_configuration(each): each for each in filled if not each.pool.repeat}
    for each in filled:
        if each.pool.repeat:
            found[each.pool.name] += " " + _rerun(study, canonical[_configuration(each)], each)
    return found


def _configuration(filled: Filled) -> tuple[str, str, str, int]:
    pool = filled.pool
    return pool.task.name, pool.model.name, words(pool.decode), pool.cap


def _rerun(study: Study, first: Filled, second: Filled) -> str:
    enough = first.bank.shape[1] > 1 and second.bank.shape[1] > 1
    if not enough:
        return "One candidate a question is too few to compare runs."
    grades = (first.outcomes, second.outcomes)
    verdict = compare_runs(first.bank, second.bank, Reproducible(), outcomes=grades, run=study.run)
    said = "differ" if verdict.different else "were not told apart"
    same = "equivalent" if verdict.equivalent else "not shown to be equivalent"
    return (
        f"Against {first.pool.name}: the answer distributions {said} (p = {verdict.p_overall:.3g}), mean grade "
        f"{verdict.difference:+.3f} [{verdict.low:+.3f}, {verdict.high:+.3f}] over draws, {same} within 0.05."
    )


def made_again(study: Study, filled: Filled) -> str:
    """Make the first leaves of a bank again, and compare tokens."""
    bank, pool = filled.bank, filled.pool
    many = min(study.replayed, bank.shape[0]) if hasattr(pool.model.model, "logits") else 0
    if not many or bank.tokens is None:
        return "Exact replay was not checked."
    arm = arm_of(pool.model, pool.decode, pool.proposal, bank.questions[:many])
    asked = {bank.key(q, 0): q for q in range(many)}
    requests = [Request(key, arm.encode(bank.questions[q]), pool.cap) for key, q in asked.items()]
    made: Mapping[Key, Array] = {leaf.key: leaf.tokens for leaf in arm.sampler(requests)}
    same = sum(np.array_equal(bank.tokens.of(q, 0)["token"], made[key]) for key, q in asked.items())
    said = "the same, token for token" if same == many else f"{many - same} of them different"
    return f"Exact replay checked on {many} of {int(bank.drawn.sum())} leaves: {said}."

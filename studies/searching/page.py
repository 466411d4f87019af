"""The tables of docs/search.md, and what they come to."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bench import between, over_questions

from ramify.tasks import Countdown
from searching.figure import figure
from searching.lines import PAGE, Line, done, lines
from searching.measure import load
from searching.plan import CAP, GROUP, GUIDED, ORACLE
from searching.rivals import VERIFIED, Curve

MARK = "<!-- made by `python studies/searches.py write`; edit above this line only -->"


def table(found: list[Line]) -> Iterator[str]:
    yield "| controller | setting | evaluator | accuracy | 95 % | tokens | of these read | gain at equal cost | 95 % |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for each in found:
        job, own, gain = each.job, each.own, each.gain
        yield (
            f"| {job.controller} ×{job.size} | {job.setting} | {job.evaluator} | {own.value:.3f} "
            f"| {own.low:.3f} to {own.high:.3f} | {each.tokens:.0f} | {each.read:.0f} "
            f"| {gain.value:+.3f} | {gain.low:+.3f} to {gain.high:+.3f} |"
        )


def leaf_table(base: dict[str, Curve]) -> Iterator[str]:
    yield "| leaf protocol | leaves at most | accuracy | 95 % | tokens |"
    yield "|---|---|---|---|---|"
    for name, curve in base.items():
        for n in (1, 8, 16, 32, 64):
            k = int(np.flatnonzero(curve.n == n)[0])
            own = over_questions(curve.right[k], PAGE)
            yield f"| {name} | {n} | {own.value:.3f} | {own.low:.3f} to {own.high:.3f} | {curve.tokens[k]:.0f} |"


def sharing(options: argparse.Namespace) -> str:
    """What all searches of the test set computed together, against a tree without sharing."""
    rows = [np.array(load(job, options)["shared"]) for job in done(options)]
    computed, represented, evicted = np.concatenate(rows)[:, :3].sum(0).tolist()
    peak, size = np.concatenate(rows)[:, 3:].max(0).tolist()
    return (
        f"All searches of the tables together computed {computed:,} positions for {represented:,} that trees without "
        f"sharing have ({represented / computed:.1f} times as many); {GROUP} questions at a time held at most {peak:,} "
        f"tokens, {size / 2**20:,.0f} MiB, and {evicted:,} rows had to go."
    )


def verdict(found: list[Line]) -> str:
    """How many rows are ahead and how many behind, how many chance would give, and which are furthest."""
    rows, chance = len(found), sum((1 - each.gain.level) / 2 for each in found)
    ahead, behind = sum(each.gain.low > 0 for each in found), sum(each.gain.high < 0 for each in found)
    first, last = max(found, key=lambda each: each.gain.value), min(found, key=lambda each: each.gain.value)
    words = [
        f"Of {rows} searches {ahead} are ahead of the best leaf protocol of their cost by an interval above zero, and "
        f"{behind} behind by one below. Were each worth its rival, chance would give {chance:.1f} of each kind.",
        f"The largest gain has {named(first)}, the smallest {named(last)}.",
    ]
    gains = [each for each in found if each.gain.value > 0]
    if gains:
        clear = min(gains, key=lambda each: each.p)
        words += [
            f"The clearest gain is that of {named(clear)}: p = {clear.p:.4f} by sign flips of questions for this row "
            f"alone, {min(1.0, rows * clear.p):.2f} for the best of {rows} rows (Bonferroni)."
        ]
    return " ".join(words)


def named(each: Line) -> str:
    job, gain = each.job, each.gain
    label = f"{job.controller} ×{job.size} ({job.evaluator}; {each.own.value:.3f} for {each.tokens:.0f} tokens)"
    return f"{label}, {gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"


def write(options: argparse.Namespace) -> None:
    found, base = lines(options)
    count, page = base["plurality"].right.shape[1], Path(options.docs) / "search.md"
    plain = [each for each in found if each.job.controller != ORACLE]
    oracle = [each for each in found if each.job.controller == ORACLE]
    checks = [f"{np.sum(load(each.job, options)['checks']) / count:.0f}" for each in oracle]
    rivals = ", ".join(f"{name} ({sum(e.rival == name for e in plain)} rows)" for name in base if name != VERIFIED)
    parts = [
        "",
        "![accuracy against cost](search.svg)",
        "",
        verdict(plain),
        "",
        f"`{options.checkpoint}` on `{Countdown(options.level)!r}`, temperature 1, at most {CAP} tokens a leaf.",
        f"Settings were chosen on {options.tuning} questions and are reported on {count} others; rows with another",
        f'evaluator than "{GUIDED}" on the first {options.crossed} of these. Percentile intervals over questions. The',
        "gain is paired, against the leaf protocol of at most the same cost that was best on the tuning questions:",
        f"{rivals}.",
        "",
        *leaf_table(base),
        "",
        *table(plain),
        "",
        "Apart, because a solver is at work in them: every prefix is checked exactly, which no token pays for",
        f"({', '.join(checks)} checks a question).",
        "",
        *table(oracle),
        "",
        sharing(options),
    ]
    page.write_text(between(page.read_text(), MARK, "", parts))
    figure(plain, base, Path(options.docs) / "search.svg")

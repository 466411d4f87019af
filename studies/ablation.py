"""Evaluator x controller x budget x final rule on one pocket model: the factorial of docs/search-analysis.md.

    python studies/ablation.py run   [--checkpoint main] [--questions 40] [--level 5]
    python studies/ablation.py write

Every cell runs end to end on the same held-out questions, with draws of its own; both final rules read the same
searches. ``run`` keeps what it measured under ``--cache`` and goes on where it was interrupted. ``write`` decomposes
accuracy and cost into main effects and interactions, and draws docs/ablation.svg.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from bench import Bench, Kept, between, over_questions

from ramify.decide import BestOfN, Rule, WeightedVote
from ramify.ledger import Ledger, Tokens
from ramify.metrics import Estimate, Factorial, full_factorial
from ramify.models import Pocket, ValueHead
from ramify.run import Search, run_search
from ramify.search import (
    DVTS,
    Beam,
    Blend,
    Controller,
    Evaluator,
    Even,
    Exponentiated,
    Likelihood,
    Particles,
    PerLength,
    Rebase,
    Rollout,
    ToDelimiter,
)
from ramify.tasks import Countdown
from ramify.tasks.pocket import encode

CAP = 120
STEP = ToDelimiter((int(encode("\n")[0]),), most=40)
BEGIN, END = "<!-- begin: `python studies/ablation.py write` -->", "<!-- end: ablation -->"


LENGTH = Exponentiated(PerLength(Likelihood()))
EVALUATORS: dict[str, Callable[[str], Evaluator]] = {
    "none": lambda _: Even(),
    "likelihood": lambda _: LENGTH,
    "value head": lambda name: ValueHead(name, shared=True),
    "both": lambda name: Blend((ValueHead(name, shared=True), LENGTH), (0.5, 0.5)),
}
CONTROLLERS: dict[str, Callable[[int], Controller]] = {
    "leaves": lambda n: Beam(n, 1, Rollout(), depth=1),  # no search: n whole leaves, scored when they are finished
    "beam": lambda n: Beam(n, 2, STEP),
    "DVTS": lambda n: DVTS(n, 2, STEP),
    "REBASE": lambda n: Rebase(n, unit=STEP),
    "particles": lambda n: Particles(n, STEP),
}
BUDGETS: dict[str, int] = {"2 paths": 2, "4 paths": 4, "8 paths": 8}
RULES: dict[str, Rule] = {"best score": BestOfN("score"), "vote": WeightedVote("multiplicity")}
FACTORS = {
    "evaluator": tuple(EVALUATORS),
    "controller": tuple(CONTROLLERS),
    "budget": tuple(BUDGETS),
    "rule": tuple(RULES),
}
COLOURS = dict(zip(CONTROLLERS, ("#000000", "#0072B2", "#E69F00", "#009E73", "#CC79A7"), strict=True))  # Okabe and Ito


def measured(cell: tuple[str, str, str], options: argparse.Namespace) -> dict[str, Any]:
    """Correctness under each rule and tokens by stage of every question, for one cell run end to end."""
    evaluator, controller, budget = cell
    task = Countdown(options.level)
    bench = Bench(Pocket(options.checkpoint), task, task.questions(options.questions, run="ablation"))
    protocol = Search(
        CONTROLLERS[controller](BUDGETS[budget]), EVALUATORS[evaluator](options.checkpoint), cap=CAP, rule=RULES["vote"]
    )
    start = time.perf_counter()
    arm = bench.arm(f"ablation/{'/'.join(cell)}")
    found = run_search(protocol, bench.asked, arm, Ledger("tokens", Tokens()), bench.parse)
    seconds, seen = time.perf_counter() - start, found.bank.candidates(evidence=["score", "multiplicity"])
    right: dict[str, list[float]] = {}
    for name, rule in RULES.items():
        winners = rule(seen).winner.tolist()
        right[name] = bench.graded(None if n < 0 else found.bank.answer(q, n) for q, n in enumerate(winners))
    spent = [(each.spent.generate, each.spent.signal) for each in found.ledgers]
    return {"right": right, "generate": [g for g, _ in spent], "signal": [s for _, s in spent], "seconds": seconds}


# ---------------------------------------------------------------------------------------------------------- run, write


def cells() -> list[tuple[str, str, str]]:
    return list(product(EVALUATORS, CONTROLLERS, BUDGETS))


def cache(options: argparse.Namespace) -> Path:
    return Path(options.cache) / f"{options.checkpoint}-{options.level}-{options.questions}.json"


def run(options: argparse.Namespace) -> None:
    kept = Kept(cache(options))
    for cell in cells():
        name = " / ".join(cell)
        each = kept(name, measured, cell, options)
        accuracy = "".join(f"{np.mean(right):8.3f}" for right in each["right"].values())
        tokens = np.mean(each["generate"]), np.mean(each["signal"])
        print(f"{name:<36}{accuracy}{tokens[0]:9.0f} +{tokens[1]:6.0f} tokens{each['seconds']:7.1f} s", flush=True)


def tables(found: dict[str, Any]) -> tuple[Factorial, Factorial]:
    """(accuracy [E, C, B, R, Q], log2 of tokens [E, C, B, Q])."""
    shape = tuple(len(levels) for levels in FACTORS.values())
    rows = [found[" / ".join(cell)] for cell in cells()]
    right = np.array([[each["right"][rule] for rule in RULES] for each in rows])  # [cells, R, Q]
    tokens = np.array([np.add(each["generate"], each["signal"]) for each in rows])  # [cells, Q]
    three = {name: levels for name, levels in FACTORS.items() if name != "rule"}
    return (
        full_factorial(right.reshape(*shape, -1), FACTORS),
        full_factorial(np.log2(tokens).reshape(*shape[:3], -1), three),
    )


def write(options: argparse.Namespace) -> None:
    found = json.loads(cache(options).read_text())
    accuracy, cost = tables(found)
    page = Path(options.docs) / "search-analysis.md"
    title = f"`{options.checkpoint}` on `{Countdown(options.level)!r}`: {options.questions} held-out questions, "
    title += f"temperature 1, at most {CAP} tokens a leaf; {len(cells())} searches, each read by {len(RULES)} rules."
    parts = [
        "",
        title,
        "",
        *means(accuracy, found),
        "",
        *effects(accuracy, cost),
        "",
        *sources(accuracy),
        "",
        *pairs(accuracy),
        "",
    ]
    page.write_text(between(page.read_text(), BEGIN, END, parts))
    figure(accuracy, cost, Path(options.docs) / "ablation.svg")


def shown(estimate: Estimate) -> str:
    return f"{estimate.value:+.3f} ({estimate.low:+.3f} to {estimate.high:+.3f})"


def means(accuracy: Factorial, found: dict[str, Any]) -> Iterator[str]:
    """The table itself: accuracy by best score / by vote, and tokens."""
    yield (
        "| evaluator | controller | "
        + " | ".join(f"{b}: best score, vote | tokens, of these read" for b in BUDGETS)
        + " |"
    )
    yield "|---|---|" + "---|---|" * len(BUDGETS)
    for e, evaluator in enumerate(EVALUATORS):
        for c, controller in enumerate(CONTROLLERS):
            row = [evaluator, controller]
            for b, budget in enumerate(BUDGETS):
                best, vote = accuracy.means[e, c, b]
                each = found[" / ".join((evaluator, controller, budget))]
                row.append(f"{best:.3f}, {vote:.3f}")
                row.append(f"{np.mean(each['generate']) + np.mean(each['signal']):.0f}, {np.mean(each['signal']):.0f}")
            yield "| " + " | ".join(row) + " |"


def effects(accuracy: Factorial, cost: Factorial) -> Iterator[str]:
    """Main effects on accuracy, and on cost as a factor."""
    yield "| factor | level | accuracy against the mean of all (95 %) | tokens, as a factor of the geometric mean |"
    yield "|---|---|---|---|"
    for factor, levels in FACTORS.items():
        estimates = accuracy.estimates(factor)
        factors = 2 ** cost.effect(factor) if factor in cost.factors else None
        for i, level in enumerate(levels):
            price = "the same" if factors is None else f"{factors[i]:.2f}"
            yield f"| {factor} | {level} | {shown(estimates[level,])} | {price} |"


def sources(accuracy: Factorial) -> Iterator[str]:
    """The analysis of variance."""
    total = float(accuracy.means.var())
    yield "| effect of | df | share of the variance between cells | less the noise of questions | p, sign flips |"
    yield "|---|---|---|---|---|"
    for source in sorted(accuracy.sources(), key=lambda each: -each.variance):
        name = " x ".join(source.factors)
        yield f"| {name} | {source.df} | {source.share:.3f} | {source.corrected / total:+.3f} | {source.p:.4f} |"
    yield ""
    yield (
        f"Cells have a standard deviation of {np.sqrt(total):.3f} around their mean {accuracy.grand:.3f}; "
        f"questions, one of {np.sqrt(accuracy.question_variance()):.3f}."
    )


def pairs(accuracy: Factorial) -> Iterator[str]:
    """The interactions of the evaluator with one other factor, level by level."""
    for first, second in (("evaluator", "budget"), ("evaluator", "rule"), ("evaluator", "controller")):
        estimates = accuracy.estimates(first, second)
        yield f"| {first} \\ {second} | " + " | ".join(FACTORS[second]) + " |"
        yield "|---|" + "---|" * len(FACTORS[second])
        for one in FACTORS[first]:
            yield f"| {one} | " + " | ".join(shown(estimates[one, two]) for two in FACTORS[second]) + " |"
        yield ""


# -------------------------------------------------------------------------------------------------------------- figure


def figure(accuracy: Factorial, cost: Factorial, path: Path) -> None:
    """Above: what each combination reached against what it cost. Below: the effects that add up to it."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "ramify", "font.size": 8, "svg.fonttype": "none"})
    drawn = plt.figure(figsize=(10, 8.4))
    above = drawn.add_gridspec(1, len(EVALUATORS), top=0.95, bottom=0.62, left=0.08, right=0.98, wspace=0.08)
    below = drawn.add_gridspec(1, 3, top=0.52, bottom=0.06, left=0.08, right=0.98, wspace=0.36)
    first = None
    for e, evaluator in enumerate(EVALUATORS):
        axes = drawn.add_subplot(above[0, e], sharey=first, sharex=first)
        first = first or axes
        curves(axes, accuracy, cost, e)
        axes.set_title(f"evaluator: {evaluator}", fontsize=9)
        axes.tick_params(labelleft=not e)
        axes.spines[["top", "right"]].set_visible(False)
    assert first is not None
    first.set_ylabel("accuracy, best score (95 % over questions)")
    drawn.text(0.53, 0.575, "tokens a question, geometric mean, everything charged", ha="center")
    forest(drawn.add_subplot(below[0, 0]), main_effects(accuracy), "main effects")
    for place, other in enumerate(("budget", "controller"), start=1):
        rows = interactions(accuracy, other)
        forest(drawn.add_subplot(below[0, place]), rows, f"evaluator x {other}, beyond main effects")
    drawn.savefig(path, metadata={"Date": None})


def curves(axes: Any, accuracy: Factorial, cost: Factorial, e: int) -> None:
    """Accuracy against cost, a line a controller, labelled where it ends."""
    ends = {}
    for c, (controller, colour) in enumerate(COLOURS.items()):
        x, rows = 2 ** cost.means[e, c], accuracy.table[e, c, :, 0]  # [B], [B, Q]
        own = [over_questions(row, "docs/search-analysis") for row in rows]
        y = np.array([each.value for each in own])
        axes.plot(x, y, color=colour, marker="osD^v"[c], markersize=4, linewidth=1.2)
        error = [y - [each.low for each in own], [each.high for each in own] - y]
        axes.errorbar(x, y, yerr=error, fmt="none", ecolor=colour, elinewidth=0.5, alpha=0.5)
        ends[controller] = (float(x[-1]), float(y[-1]))
    for controller, height in apart({name: y for name, (_, y) in ends.items()}, 0.035).items():
        end = ends[controller][0]
        axes.annotate(
            controller, (end, height), xytext=(6, -2), textcoords="offset points", color=COLOURS[controller], fontsize=7
        )
    axes.set_xscale("log")
    ticks = [50 * 2**i for i in range(12)]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    dearest = 2 ** float(cost.means.max())
    axes.set_xlim(0.8 * 2 ** float(cost.means.min()), 2.2 * dearest)  # room for the labels


def apart(places: dict[str, float], least: float) -> dict[str, float]:
    """Places of labels, moved up as far as it takes to keep them apart."""
    found: dict[str, float] = {}
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        found[name] = max([place, *(other + least for other in found.values())])
    return found


def main_effects(accuracy: Factorial) -> list[tuple[str, Estimate | None]]:
    rows: list[tuple[str, Estimate | None]] = []
    for factor in FACTORS:
        rows.append((factor, None))
        rows += [("   " + level[0], estimate) for level, estimate in accuracy.estimates(factor).items()]
    return rows


def interactions(accuracy: Factorial, other: str) -> list[tuple[str, Estimate | None]]:
    found = accuracy.estimates("evaluator", other)
    rows: list[tuple[str, Estimate | None]] = []
    for evaluator in EVALUATORS:
        rows.append((evaluator, None))
        rows += [("   " + level, found[evaluator, level]) for level in FACTORS[other]]
    return rows


def forest(axes: Any, rows: list[tuple[str, Estimate | None]], title: str) -> None:
    """Each effect with its interval; what may be nothing is hollow."""
    for place, (_, estimate) in enumerate(rows):
        if estimate is None:
            continue
        clear = estimate.low > 0 or estimate.high < 0
        axes.plot([estimate.low, estimate.high], [place, place], color="0.3", linewidth=1)
        axes.plot(estimate.value, place, "o", color="0.1", markerfacecolor="0.1" if clear else "white", markersize=4.5)
    axes.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    for label, (_, estimate) in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if estimate is None else "normal")
    axes.invert_yaxis()
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("difference in accuracy, 95 % over questions")
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "write"))
    parser.add_argument("--checkpoint", default="main")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--level", type=int, default=5)
    parser.add_argument("--cache", default="build/ablation")
    parser.add_argument("--docs", default="docs")
    options = parser.parse_args()
    {"run": run, "write": write}[options.command](options)


if __name__ == "__main__":
    main()

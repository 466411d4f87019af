"""``ramify decide``: rules on candidates that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import (
    Canonical,
    Grades,
    Json,
    Level,
    Maps,
    Place,
    Reference,
    Task,
    Threshold,
    whole,
)
from ramify.cli.submit import (
    Alike,
    Evidence,
    Rules,
    apart,
    lacking_of,
    mean_of,
    pairs_of,
    read_with,
    submission,
    unscored,
    worth_of,
)
from ramify.cli.terminal import emit, number, span, table

if TYPE_CHECKING:
    from ramify.bank import Bank, Outcomes
    from ramify.cli.source import Source

__all__ = ["decide"]

SHOWN = 12  # questions whose answers are printed


def decide(
    path: Place,
    rules: Rules = None,
    evidence: Evidence = None,
    k: Annotated[str, typer.Option("--k", metavar="K,K,...", help="A curve: accuracy on subsets of k.")] = "",
    utility: Alike = "",
    replicates: Annotated[int, typer.Option(help="Seeded subsets a question, for curves.")] = 200,
    canonical: Canonical = False,
    maps: Maps = None,
    reference: Reference = "",
    task: Task = "",
    grades: Grades = "",
    threshold: Threshold = None,
    level: Level = 0.95,
    as_json: Json = False,
) -> None:
    """Let a rule choose from candidates that are there: the answers, the accuracy if there are grades, the cost.

    A rule is written as it prints. Several are compared on the same candidates:

        ramify decide my.jsonl --rule "Plurality()" --rule "BestOfN('score')"

    Evidence that is not in the bank can be computed from its tokens. With --k the rules are held against budgets:

        ramify decide runs/mine --rule "SoftmaxVote('logp', temperature=0.1)" --evidence logp=mean_logprob --k 1,4,16

    Spellings of one answer (`42`, `42.0`) vote apart unless --canonical counts them as one, and responses are read by
    a task:

        ramify decide responses.jsonl --task "Own('questions.csv')"

    `ramify methods --kind rule` lists the rules.
    """
    from ramify.cli.parts import value

    source = read_with(path, evidence, maps, reference, task, canonical)
    chosen = [value(text, "--rule", "rule") for text in rules or ["Plurality()"]]
    wanted = source.grades or grades or threshold is not None or k  # which says what is missing
    outcomes = source.graded(grades, threshold) if wanted else None
    what, spelled = worth_of(outcomes), apart(source.bank)
    if k and outcomes is not None:
        found = _curves(chosen, source.bank, outcomes, whole(k, "--k"), replicates, level, utility, source)
        found |= {"what": what, "unscored": unscored(chosen, source.bank)}
        return emit(as_json, found, *_told_curves(found, what), lacking_of(found["unscored"], source), spelled)
    rows = [submission(rule, source.bank, outcomes, level, utility) for rule in chosen]
    lacking = unscored(chosen, source.bank)
    answer = {"source": str(path), "shared_bank": len(rows) > 1, "what": what, "unscored": lacking, "rules": rows}
    last = _answers(rows[0]) if len(rows) == 1 else _shared(len(rows))
    return emit(as_json, answer, _told(rows, what), last, lacking_of(lacking, source), spelled)


def _curves(
    rules: list[Any],
    bank: Bank,
    outcomes: Outcomes,
    budgets: list[int],
    replicates: int,
    level: float,
    utility: str,
    source: Source,
) -> dict[str, Any]:
    """Shared-bank curves: every rule on the same seeded subsets."""
    from ramify.cli.parts import layers_for
    from ramify.metrics import replays

    names = sorted({name for rule in rules for name in layers_for(rule, bank)})
    curves = replays(
        rules, bank, outcomes, evidence=names, budgets=budgets, replicates=replicates, utility=pairs_of(bank, utility)
    )
    rows = [
        {"rule": repr(rule), "k": k, "accuracy": estimate, "error": float(error), "left_out": int(left)}
        for rule, curve in zip(rules, curves, strict=True)
        for k, estimate, error, left in zip(
            budgets, [mean_of(column, level) for column in curve.values.T], curve.error, curve.left_out, strict=True
        )
    ]
    most = int(bank.drawn.sum(axis=1).max(initial=0))
    about = {"source": str(source.path), "kind": "shared-bank", "estimand": curves[0].estimand, "candidates": most}
    return {**about, "rows": rows}


def _told_curves(found: dict[str, Any], what: str) -> list[str]:
    header = ["rule", "k", what, "interval", "simulation error"]
    left = any(row["left_out"] for row in found["rows"])
    rows = [
        [
            *(row["rule"], str(row["k"]), number(row["accuracy"].value), span(row["accuracy"])),
            *(number(row["error"], 4), *([str(row["left_out"])] if left else [])),
        ]
        for row in found["rows"]
    ]
    note = "Shared bank: every rule saw the same seeded subsets. Intervals cover questions; the simulation's own error"
    note += " stands beside them.\nThe candidates of a subset are in a seeded order, and ties go to the first: at k = N"
    note += " that is one order, another than the file's."
    beyond = sorted({row["k"] for row in found["rows"] if row["k"] > found["candidates"]})
    if left:
        note += "\nRows at different k are of different questions: those without k candidates, or without a grade that"
        note += " matters, are left out."
    if beyond:
        listed = ", ".join(map(str, beyond))
        note += f"\nNothing at k = {listed}: no question has more than {found['candidates']} candidates."
    return [table(header + (["questions left out"] if left else []), rows), note]


def _told(rows: list[dict[str, Any]], what: str) -> str:
    header = ["rule", what, "interval", "no answer", "tokens a question", "read by evidence"]
    lines = []
    for row in rows:
        own = row["accuracy"]
        shown = ["–", "–"] if own is None else [number(own.value), span(own)]
        costs = [number(row["generate"], 0), number(row["signal"], 0)]
        lines.append([row["rule"], *shown, number(row["no_answer"]), *costs])
    return table(header, lines)


def _shared(many: int) -> str:
    return f"All {many} rules chose from the same candidates: compare them with `ramify compare`, which pairs them."


def _answers(row: dict[str, Any]) -> str:
    listed = list(row["answers"].items())
    worth = row["utility"] or {}
    lines = [
        [name, "⊥" if answer is None else str(answer), *([number(worth[name], 2)] if worth else [])]
        for name, answer in listed[:SHOWN]
    ]
    more = f"\n... and {len(listed) - SHOWN} more: --json has all" if len(listed) > SHOWN else ""
    return table(["question", "answer", *(["worth"] if worth else [])], lines, left=(0, 1)) + more

"""``ramify stop``: stopping rules on candidates that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import (
    Canonical,
    Grades,
    Json,
    Maps,
    Place,
    Reference,
    Task,
    Threshold,
)
from ramify.cli.submit import (
    Evidence,
    apart,
    lacking_of,
    read_with,
    submission,
    unscored,
    without_score,
    worth_of,
)
from ramify.cli.terminal import emit, number, table

if TYPE_CHECKING:
    from ramify.bank import Bank

__all__ = ["stop"]


def stop(
    path: Place,
    stops: Annotated[
        list[str] | None, typer.Option("--stop", metavar="TEXT", help="A stopping rule. Repeatable.")
    ] = None,
    rule: Annotated[str, typer.Option(metavar="TEXT", help="The rule that submits at the stop.")] = "Plurality()",
    evidence: Evidence = None,
    replicates: Annotated[int, typer.Option(help="Seeded orders of each question's candidates.")] = 200,
    canonical: Canonical = False,
    maps: Maps = None,
    reference: Reference = "",
    task: Task = "",
    grades: Grades = "",
    threshold: Threshold = None,
    as_json: Json = False,
) -> None:
    """Replay stopping rules on candidates that are there: when each would have stopped, and what it would have lost.

        ramify stop my.jsonl --stop "AdaptiveConsistency(0.95)" --stop "Esc(4)"

    Retrospective: every candidate was drawn and paid for, so this shows decisions and no savings. A run under a stop,
    which saves, is `ramify sample ... --stop TEXT`. `ramify methods --kind stop` lists the rules.
    """
    import numpy as np

    from ramify.cli.parts import layers_for, value
    from ramify.metrics import replay_stop
    from ramify.metrics.bankcurve import mean_in

    source = read_with(path, evidence, maps, reference, task, canonical)
    outcomes, chosen = source.graded(grades, threshold), value(rule, "--rule", "rule")
    what, lacking = worth_of(outcomes), unscored([chosen], source.bank)
    rows: list[dict[str, Any]] = []
    for text in stops or ["AdaptiveConsistency(0.95)"]:
        each = value(text, "--stop", "stop")
        lacking |= without_score(_read_by(each, source.bank), source.bank)
        names = sorted({*layers_for(chosen, source.bank), *_read_by(each, source.bank)})
        found = replay_stop(each, chosen, source.bank, outcomes, evidence=names, replicates=replicates)
        rows.append(
            {
                "stop": repr(each),
                "samples": float(found.samples.mean()),
                "stopped": float(found.stopped.mean()),
                "accuracy": float(mean_in(found.values)),
                "left_out": int(np.isnan(found.values).sum()),
                "error": found.error,
                "same_answer": float(found.same.mean()),
                "no_answer": float(found.invalid.mean()),
            }
        )
        in_orders = float(mean_in(found.whole))  # ties go to the earliest, so the order decides: compare in the same
    whole_bank = submission(chosen, source.bank, outcomes, 0.95) | {"accuracy_in_orders": in_orders}
    answer = {"source": str(path), "label": "retrospective", "rule": repr(chosen), "stops": rows, "whole": whole_bank}
    answer |= {"what": what, "unscored": lacking}
    header = ["stop", "samples", "stopped", what, "same answer as all", "no answer"]
    shown = ("samples", "stopped", "accuracy", "same_answer", "no_answer")
    lines = [[row["stop"], *(number(row[name], 1 if name == "samples" else 3) for name in shown)] for row in rows]
    drawn = number(float(source.bank.drawn.sum(axis=1).mean()), 1)
    lines.append(["(all candidates)", drawn, "–", number(in_orders), "–", "–"])
    note = "Retrospective: all candidates had been drawn and paid for. Savings are claimed by runs under a stop alone."
    means = f"Means over {replicates} orders of each question's candidates, the same for every row."
    left = [f"{row['stop']}: {row['left_out']}" for row in rows if row["left_out"]]
    if left:
        means += f"\nQuestions left out, because what would be submitted has no grade: {'; '.join(left)}."
    emit(as_json, answer, table(header, lines), f"{note}\n{means}", lacking_of(lacking, source), apart(source.bank))


def _read_by(stop: Any, bank: Bank) -> list[str]:
    """The layers that a stop reads by a field of its own."""
    name = getattr(stop, "score", None)
    return [name] if isinstance(name, str) and name in bank.layers else []

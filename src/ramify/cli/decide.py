"""``ramify decide`` and ``ramify stop``: rules and stopping rules on candidates that are there."""

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
    mapping,
    named,
    whole,
)
from ramify.cli.terminal import aside, emit, number, span, table

if TYPE_CHECKING:
    from ramify.bank import Bank, Outcomes
    from ramify.cli.source import Source

__all__ = ["apart", "decide", "mean_of", "read_with", "stop", "submission", "unscored", "worth_of"]

Evidence = Annotated[
    list[str] | None,
    typer.Option("--evidence", metavar="NAME=TEXT", help="Compute evidence first: `logp=mean_logprob`. Repeatable."),
]
Rules = Annotated[
    list[str] | None, typer.Option("--rule", metavar="TEXT", help="A decision rule: `BestOfN('logp')`. Repeatable.")
]
Alike = Annotated[
    str, typer.Option("--utility", metavar="TEXT", help="Similarity of two outputs, for MBR rules: `TokenF1()`.")
]
SPELLED = 20_000  # different answers that are looked at for spellings of one: 2 s of prose
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
        return emit(as_json, found, *_told_curves(found, what), _lacking(found["unscored"], source), spelled)
    rows = [submission(rule, source.bank, outcomes, level, utility) for rule in chosen]
    lacking = unscored(chosen, source.bank)
    answer = {"source": str(path), "shared_bank": len(rows) > 1, "what": what, "unscored": lacking, "rules": rows}
    last = _answers(rows[0]) if len(rows) == 1 else _shared(len(rows))
    return emit(as_json, answer, _told(rows, what), last, _lacking(lacking, source), spelled)


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
        lacking |= _without_score(_read_by(each, source.bank), source.bank)
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
    emit(as_json, answer, table(header, lines), f"{note}\n{means}", _lacking(lacking, source), apart(source.bank))


# ------------------------------------------------------------------------------------------------------- what is shared


def read_with(
    path: Any,
    evidence: list[str] | None,
    maps: list[str] | None,
    reference: str,
    task: str = "",
    canonical: bool = False,
) -> Source:
    """A source with the evidence asked for; token columns are read only if something may need them.

    How a file was understood is said on standard error: what a rule chooses depends on it.
    """
    import dataclasses

    from ramify.cli.parts import attached
    from ramify.cli.source import load
    from ramify.cli.spelling import canonical_bank

    wanted = named(evidence, "--evidence", "NAME=TEXT, such as logp=mean_logprob")
    source = load(path, mapping(maps), reference=reference, task=task, tokens=bool(wanted))
    aside(source.understood)
    bank = canonical_bank(source.bank) if canonical else source.bank
    return dataclasses.replace(source, bank=attached(bank, wanted))


def worth_of(outcomes: Outcomes | None) -> str:
    """What the mean of these grades is called: accuracy only where each is right or wrong."""
    from ramify.cli.source import partial

    return "accuracy" if outcomes is None or partial(outcomes) is None else "mean grade"


def apart(bank: Bank) -> str:
    """What there is to say where one answer has several spellings, which vote apart."""
    import numpy as np

    from ramify.cli.spelling import split

    looked = int((np.cumsum([len(answers) for answers in bank.answer_text]) <= SPELLED).sum())
    found = split(bank, looked)
    if not found:
        return ""
    name, (one, other) = next(iter(found.items()))
    many = (
        f"{len(found)} questions" if looked == len(bank.questions) else f"{len(found)} of the first {looked} questions"
    )
    much = f"{many} have one answer in several spellings, such as {one!r} and {other!r} of {name!r}"
    return f"{much}: they vote apart; --canonical counts them as one."


def unscored(rules: list[Any], bank: Bank) -> dict[str, int]:
    """How many candidates have no score in the layers that the rules read; those that have none are left out."""
    from ramify.cli.parts import layers_for

    return _without_score([name for rule in rules for name in layers_for(rule, bank)], bank)


def _without_score(names: list[str], bank: Bank) -> dict[str, int]:
    import numpy as np

    counts = {name: int((bank.drawn & np.isnan(bank.layers[name].values)).sum()) for name in names}
    return {name: many for name, many in counts.items() if many}


def _lacking(found: dict[str, int], source: Source) -> str:
    drawn = int(source.bank.drawn.sum())
    remedy = "; the same `ramify score` command again scores what has been drawn since" if source.folder else ""
    return "\n".join(f"{many} of {drawn} candidates have no score {name!r}{remedy}." for name, many in found.items())


def submission(rule: Any, bank: Bank, outcomes: Outcomes | None, level: float, utility: str = "") -> dict[str, Any]:
    """What a rule submits from all candidates, what that is worth where it is graded, and what it cost."""
    import numpy as np

    from ramify.cli.parts import layers_for
    from ramify.metrics.replay import submitted

    names = layers_for(rule, bank)
    choice = rule(bank.candidates(evidence=names, utility=_pairs(bank, utility)))
    winner = np.asarray(choice.winner)
    answers = {
        question.id: None if winner[q] < 0 else bank.answer(q, int(winner[q]))
        for q, question in enumerate(bank.questions)
    }
    grades = np.full(bank.shape, np.nan) if outcomes is None else outcomes.on(bank)
    worth, none = submitted(choice, grades)
    found: dict[str, Any] = {"rule": repr(rule), "no_answer": float(none.mean()), **_cost(bank, names)}
    found["accuracy"] = mean_of(worth, level) if outcomes is not None else None
    found["utility"] = {name: float(value) for name, value in zip(answers, worth, strict=True)} if outcomes else None
    return {**found, "answers": answers}


def mean_of(worth: Any, level: float) -> Any:
    """The mean over questions with its interval, as pages have it; without one where there is nothing to draw from."""
    import numpy as np

    from ramify.metrics import Estimate
    from ramify.metrics.bankcurve import over_questions

    known = worth[~np.isnan(worth)]
    if known.size < 2:
        return Estimate.descriptive(float(known.mean()) if known.size else float("nan"), "no interval of one question")
    return over_questions(worth[:, None], level=level, bounds=(0.0, 1.0))[0]


def _cost(bank: Bank, layers: list[str]) -> dict[str, float | None]:
    """Tokens a question, generated and read by evidence; None is unknown."""
    known = bank.length is not None and bool((bank.length[bank.drawn] >= 0).all())
    generate = float(bank.length[bank.drawn].sum()) / len(bank.questions) if known and bank.length is not None else None
    costs = [bank.layers[name].cost for name in layers]
    signal = sum(float(cost[bank.drawn].sum()) for cost in costs if cost is not None) / max(len(bank.questions), 1)
    return {"generate": generate, "signal": None if any(cost is None for cost in costs) else signal}


def _pairs(bank: Bank, utility: str) -> Any:
    if not utility:
        return None
    from ramify.cli.parts import value
    from ramify.decide import Pairs

    return Pairs.of(bank, value(utility, "--utility", "utility"), "answer" if bank.text is None else "text")


def _read_by(stop: Any, bank: Bank) -> list[str]:
    """The layers that a stop reads by a field of its own."""
    name = getattr(stop, "score", None)
    return [name] if isinstance(name, str) and name in bank.layers else []


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
        rules, bank, outcomes, evidence=names, budgets=budgets, replicates=replicates, utility=_pairs(bank, utility)
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

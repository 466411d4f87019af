"""What ``decide``, ``stop`` and ``compare`` share: how a bank is read, what a rule submits, and what to mind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import mapping, named
from ramify.cli.terminal import aside

if TYPE_CHECKING:
    from ramify.bank import Bank, Outcomes
    from ramify.cli.source import Source

__all__ = [
    "Alike",
    "Evidence",
    "Rules",
    "apart",
    "lacking_of",
    "mean_of",
    "pairs_of",
    "read_with",
    "submission",
    "unscored",
    "without_score",
    "worth_of",
]

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

    return without_score([name for rule in rules for name in layers_for(rule, bank)], bank)


def without_score(names: list[str], bank: Bank) -> dict[str, int]:
    import numpy as np

    counts = {name: int((bank.drawn & np.isnan(bank.layers[name].values)).sum()) for name in names}
    return {name: many for name, many in counts.items() if many}


def lacking_of(found: dict[str, int], source: Source) -> str:
    drawn = int(source.bank.drawn.sum())
    remedy = "; the same `ramify score` command again scores what has been drawn since" if source.folder else ""
    return "\n".join(f"{many} of {drawn} candidates have no score {name!r}{remedy}." for name, many in found.items())


def submission(rule: Any, bank: Bank, outcomes: Outcomes | None, level: float, utility: str = "") -> dict[str, Any]:
    """What a rule submits from all candidates, what that is worth where it is graded, and what it cost."""
    import numpy as np

    from ramify.cli.parts import layers_for
    from ramify.metrics.replay import submitted

    names = layers_for(rule, bank)
    choice = rule(bank.candidates(evidence=names, utility=pairs_of(bank, utility)))
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


def pairs_of(bank: Bank, utility: str) -> Any:
    if not utility:
        return None
    from ramify.cli.parts import value
    from ramify.decide import Pairs

    return Pairs.of(bank, value(utility, "--utility", "utility"), "answer" if bank.text is None else "text")

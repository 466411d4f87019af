"""``ramify compare`` and ``ramify rank``: two systems or rules held against each other, and several in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import Canonical, Grades, Json, Level, Maps, Place, Reference, Task, Threshold
from ramify.cli.submit import Alike, Evidence, Rules, apart, read_with, submission, unscored, worth_of
from ramify.cli.terminal import emit, number, span, table

if TYPE_CHECKING:
    from ramify.bank import Bank
    from ramify.cli.source import Source
    from ramify.metrics import Estimate

__all__ = ["compare", "rank"]


def compare(
    first: Place,
    second: Annotated[
        Path | None, typer.Argument(metavar="[OTHER]", help="The other bank; none to compare two rules on the first.")
    ] = None,
    rules: Rules = None,
    metric: Annotated[
        str, typer.Option(metavar="TEXT", help="Without a rule, what is compared: `PassAt(4)`, `PassHat(8)`, ...")
    ] = "Accuracy()",
    evidence: Evidence = None,
    utility: Alike = "",
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Also ask whether both are runs of one protocol; exit status 1 if not.")
    ] = False,
    canonical: Canonical = False,
    maps: Maps = None,
    reference: Reference = "",
    task: Task = "",
    grades: Grades = "",
    threshold: Threshold = None,
    level: Level = 0.95,
    as_json: Json = False,
) -> None:
    """Compare two banks, or two rules on one bank, question by question: the difference and its paired interval.

    Two systems on the same questions, by the profile of their candidates:

        ramify compare base.jsonl tuned.jsonl --metric "PassAt(4)"

    By what they submit under a rule, or two rules on the same candidates:

        ramify compare base.jsonl tuned.jsonl --rule "Plurality()"

        ramify compare runs/mine --rule "Plurality()" --rule "BestOfN('logp')" --evidence logp=mean_logprob

    Is it the same system, run again?

        ramify compare monday.jsonl tuesday.jsonl --rerun
    """
    from ramify.errors import InvalidValue

    paths = [path for path in (first, second) if path is not None]
    sources = [read_with(path, evidence, maps, reference, task, canonical) for path in paths]
    if len(sources) == 1 and len(rules or []) != 2:
        raise InvalidValue("compare what? Give another bank, or two rules: --rule TEXT --rule TEXT")
    if len(rules or []) > 2:
        raise InvalidValue(f"--rule is given {len(rules or [])} times: one for both, or one for each")
    if rules:
        found = _by_rule(sources, rules, utility, grades, threshold, level)
    else:
        found = _by_metric(sources, metric, grades, threshold, level)
    if rerun:
        found["rerun"] = _rerun(sources, grades, threshold)
    spelled = next((told for source in sources if rules and (told := apart(source.bank))), "")
    emit(as_json, found, *_told(found, level), spelled)
    if rerun and found["rerun"]["different"]:
        raise typer.Exit(1)


def rank(
    paths: Annotated[list[Path], typer.Argument(metavar="BANK...", help="Two or more files or directories.")],
    by: Annotated[
        str, typer.Option("--by", metavar="TEXT", help="How scores are made: `MeanScore()`, `Rasch()`, ...")
    ] = ("MeanScore()"),
    replicates: Annotated[int, typer.Option(help="Resamples of the questions.")] = 400,
    maps: Maps = None,
    reference: Reference = "",
    task: Task = "",
    grades: Grades = "",
    threshold: Threshold = None,
    level: Level = 0.95,
    as_json: Json = False,
) -> None:
    """Put several systems in order, on the questions that all of them have, and say how sure the order is.

        ramify rank base.jsonl tuned.jsonl larger.jsonl

        ramify rank runs/* --by "TiedBradleyTerry()"

    The chance of a rank is the share of resamples of the questions in which the system has it. Scorers are MeanScore,
    Borda, Copeland, Schulze, Kemeny, Elo, TrueSkill, TiedBradleyTerry, PlackettLuce, Rasch and TwoParameter.
    """
    import numpy as np

    from ramify.cli.parts import value
    from ramify.cli.source import shared
    from ramify.errors import InvalidValue
    from ramify.metrics import rank as ranked

    if len(paths) < 2:
        raise InvalidValue("rank needs two banks or more: ramify rank one.jsonl other.jsonl")
    sources = [read_with(path, None, maps, reference, task) for path in paths]
    banks, left_out = shared(sources)
    width = max(bank.shape[1] for bank in banks)
    tables = [source.graded(grades, threshold).on(bank) for source, bank in zip(sources, banks, strict=True)]
    whole = np.stack([np.pad(t, ((0, 0), (0, width - t.shape[1])), constant_values=np.nan) for t in tables])
    scorer = value(by, "--by", "scorer")
    found = ranked(whole, scorer, models=_names(paths), replicates=replicates, level=level)
    several = len(banks[0].questions) >= 2  # of one question every resample is the question itself
    order = sorted(range(len(paths)), key=lambda m: (int(found.ranks[m]), m))
    rows: list[dict[str, Any]] = [
        {
            "name": found.models[m],
            "rank": int(found.ranks[m]),
            "score": float(found.scores[m]),
            "low": float(found.low[m]) if several else None,
            "high": float(found.high[m]) if several else None,
            "chances": found.chances[m].tolist() if several else None,
        }
        for m in order
    ]
    answer = {"by": repr(scorer), "questions": len(banks[0].questions), "left_out": left_out, "systems": rows}
    header = ["system", "rank", "score", f"{100 * level:g} % interval", "chance to be first"]
    lines = [
        [
            str(row["name"]),
            str(row["rank"]),
            number(row["score"]),
            f"{row['low']:.3f} to {row['high']:.3f}" if several else "–",
            f"{row['chances'][0]:.2f}" if several else "–",
        ]
        for row in rows
    ]
    note = f"{answer['questions']} questions that all have ({left_out} others left out); intervals cover questions."
    if not several:
        note = f"1 question that all have ({left_out} others left out): nothing to resample, so no interval."
    covers = list(found.covers) if several else []
    emit(as_json, answer | {"covers": covers}, table(header, lines), note)


def _names(paths: list[Path]) -> list[str]:
    """Short names that tell the paths apart."""
    from ramify.store.exchange import stem_of

    short = [path.name if path.is_dir() else stem_of(path) for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]


def _by_metric(
    sources: list[Source], metric: str, grades: str, threshold: float | None, level: float
) -> dict[str, Any]:
    """The difference of a functional of two profiles, questions drawn with both banks."""
    import numpy as np

    from ramify.cli.parts import value
    from ramify.cli.source import shared
    from ramify.metrics import BCa, Tally, bootstrap_difference, observed
    from ramify.types import Key

    functional = value(metric, "--metric", "metric")
    banks, left_out = shared(sources)
    pairs = zip(sources, banks, strict=True)
    tallies = [Tally.of_bank(bank, source.binary(grades, threshold)) for source, bank in pairs]
    sample = bootstrap_difference(tallies[1], tallies[0], functional, Key("compare", "bootstrap", 0), 4000)
    both = np.logical_and.reduce([tally.graded >= getattr(functional, "k", 1) for tally in tallies])  # as the sample
    tallies = [tally.take(both) for tally in tallies]
    values = [observed(tally, functional) for tally in tallies]
    return {
        "kind": "two banks",
        "what": repr(functional),
        "sides": [{"name": str(s.path), "value": v.value} for s, v in zip(sources, values, strict=True)],
        "difference": BCa(level)(sample),
        "questions": int(both.sum()),
        "left_out": left_out,
        "ungraded": int((~both).sum()),
    }


def _by_rule(
    sources: list[Source], rules: list[str], utility: str, grades: str, threshold: float | None, level: float
) -> dict[str, Any]:
    """The difference of what is submitted: by one rule from two banks, by two from one, or by one each."""
    import numpy as np

    from ramify.cli.parts import value
    from ramify.cli.source import shared
    from ramify.errors import require

    chosen = [value(text, "--rule", "rule") for text in rules]
    banks, left_out = shared(sources)
    sides = [(sources[i % len(sources)], banks[i % len(banks)], chosen[i % len(chosen)]) for i in range(2)]
    graded = [source.graded(grades, threshold) for source, _, _ in sides]
    rows = [submission(rule, bank, own, level, utility) for own, (_, bank, rule) in zip(graded, sides, strict=True)]
    partly = any(worth_of(own) != "accuracy" for own in graded)
    worth = np.array([list(row["utility"].values()) for row in rows])  # [2, Q]
    both = ~np.isnan(worth).any(axis=0)
    require(
        both.sum() >= 2, "questions", int(both.sum()), "a comparison needs two on which both submissions are graded"
    )
    means = worth[:, both].mean(axis=1).tolist()
    return {
        "kind": "shared bank" if len(sources) == 1 else "two banks",
        "what": f"{'mean grade' if partly else 'accuracy'} of what is submitted",
        "sides": [
            {"name": f"{row['rule']} on {source.path}", "value": mean, "tokens": row["generate"]}
            for row, mean, (source, _, _) in zip(rows, means, sides, strict=True)
        ],
        "difference": _paired(worth[1, both] - worth[0, both], level),
        "questions": int(both.sum()),
        "left_out": left_out,
        "ungraded": int((~both).sum()),
        "unscored": [unscored([rule], bank) for _, bank, rule in sides],
    }


def _paired(difference: Any, level: float) -> Estimate:
    from ramify.metrics import Percentile, bootstrap_means
    from ramify.types import Key

    sample = bootstrap_means(difference, Key("compare", "bootstrap", 0), 4000, bounds=(-1.0, 1.0))
    return Percentile(level)(sample)


def _rerun(sources: list[Source], grades: str, threshold: float | None) -> dict[str, Any]:
    """Whether two banks are runs of one protocol, by the default criterion."""
    from ramify.cli.source import shared
    from ramify.errors import require
    from ramify.metrics import Reproducible, compare_runs

    require(len(sources) == 2, "--rerun", "one bank", "give the other run too")
    banks, _ = shared(sources)
    graded: list[Bank] = banks
    several = all(source.grades for source in sources)
    outcomes = (sources[0].graded(grades, threshold), sources[1].graded(grades, threshold)) if several else None
    found = compare_runs(graded[0], graded[1], Reproducible(), outcomes=outcomes)
    return {
        "criterion": repr(found.criterion),
        "different": found.different,
        "equivalent": found.equivalent,
        "p": found.p_overall,
        "changed": list(found.changed),
    }


def _told(found: dict[str, Any], level: float) -> list[str]:
    difference = found["difference"]
    rows = [[side["name"], number(side["value"]), ""] for side in found["sides"]]
    rows.append(["second minus first", f"{difference.value:+.3f}", span(difference)])
    side = "above" if difference.low > 0 else "below" if difference.high < 0 else ""
    verdict = f"the second is {side} the first" if side else "the interval includes zero: no difference is shown"
    shared = " Both rules chose from the same candidates." if found["kind"] == "shared bank" else ""
    lacking = f", {found['ungraded']} without grades of both" if found["ungraded"] else ""
    note = f"{found['questions']} shared questions ({found['left_out']} left out{lacking}), paired; {verdict}.{shared}"
    how = difference.note.partition("; ")[0]  # BCa of a metric, percentiles of what a rule submits
    parts = [table([found["what"], "value", f"{100 * level:g} % interval ({how})"], rows), note]
    for side, lacking in zip(found["sides"], found.get("unscored", []), strict=False):
        parts += [f"{side['name']}: {many} candidates have no score {name!r}" for name, many in lacking.items()]
    if "rerun" in found:
        again = found["rerun"]
        word = "different" if again["different"] else "equivalent" if again["equivalent"] else "not told apart"
        parts.append(
            f"As two runs of one protocol: {word} (p = {again['p']:.3g}; {len(again['changed'])} questions changed)"
        )
    return parts

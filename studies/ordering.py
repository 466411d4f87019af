"""How well evaluators order the prefixes of one frontier: tables of docs/search-analysis.md.

    python studies/ordering.py run   [--checkpoint main] [--level 5]
    python studies/ordering.py write

Frontiers are prefixes of independent trajectories at the same depth, none of them chosen by a score. On random tabular
models their continuation value is exact; on a pocket model it is the mean utility of rollouts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from bench import Bench, Measure, measured_once, options_of, tables_written

from ramify.bank import Proposal
from ramify.decode import Chain
from ramify.ledger import Ledger, Tokens
from ramify.metrics import continuation_values, order_quality
from ramify.models import Pocket, Tabular, ValueHead, decode_with, leaves
from ramify.run import Arm, Search, run_search
from ramify.search import (
    Blend,
    Chunk,
    Evaluator,
    Even,
    Exponentiated,
    Likelihood,
    Particles,
    PerLength,
    ToDelimiter,
    Unit,
)
from ramify.search.tree import Tree
from ramify.tasks import Countdown
from ramify.tasks.pocket import encode
from ramify.types import Key, Prefix, Question, Request

CAP, TABULAR_CAP = 120, 5
STEP = ToDelimiter((int(encode("\n")[0]),), most=40)
BEGIN, END = "<!-- begin: `python studies/ordering.py write`, {} -->", "<!-- end: order, {} -->"
FRONTIER, DEPTHS, ROLLOUTS, ORDERED = 8, (1, 2, 3), 8, 16
MEAN = Exponentiated(PerLength(Likelihood()))
PLAIN: dict[str, Evaluator] = {"likelihood, summed": Likelihood(), "likelihood, a token": PerLength(Likelihood())}
Front: TypeAlias = list[list[Prefix]]  # [depth] the prefixes among which a controller would choose


def frontiers(
    unit: Unit, cap: int, questions: Sequence[Question], arm: Arm, parse: Callable[[str, Question], Any]
) -> list[Front]:
    """[Q][depth] different prefixes of 8 independent trajectories, none of them chosen."""
    search = Search(Particles(FRONTIER, unit, ess=0), Even(), cap=cap)  # they are never resampled
    run = run_search(search, questions, arm, Ledger("x", Tokens()), parse, rounds=max(DEPTHS))
    trees = zip(questions, run.trees, strict=True)
    return [[distinct(tree, question, depth) for depth in DEPTHS] for question, tree in trees]


def distinct(tree: Tree, question: Question, depth: int) -> list[Prefix]:
    """The different prefixes at one depth; none where every trajectory has ended before."""
    rows = [row for row in range(1, len(tree)) if tree.columns.depth[row] == depth]
    return list({tree.tokens(row): tree.prefix(row, question) for row in rows}.values())


def padded(rows: Sequence[Sequence[Sequence[float]]]) -> list[Any]:
    """[Q, depths, F] with NaN where there is no prefix."""
    table = np.full((len(rows), len(DEPTHS), FRONTIER), np.nan)
    for q, each in enumerate(rows):
        for d, values in enumerate(each):
            table[q, d, : len(values)] = values
    found: list[Any] = table.tolist()
    return found


def scored(evaluator: Evaluator, fronts: Sequence[Front]) -> list[Any]:
    """[Q, depths, F] of an evaluator."""
    return padded([[evaluator(each).values.tolist() if each else [] for each in row] for row in fronts])


def tabular(_: argparse.Namespace) -> dict[str, Any]:
    """Random models, exactly. A leaf is right if it ends by itself and holds token 0 an even number of times."""
    values, fronts, rng = [], list[Front](), np.random.default_rng(0)
    for i in range(80):
        model = Tabular.random(Key("order", "tabular", i), vocabulary=6, order=2)
        every = leaves(model, Chain(), (), TABULAR_CAP)
        utility = [float(model.eos in row and row.count(0) % 2 == 0) for row in every.tokens.tolist()]
        exact = continuation_values(every.tokens, every.log_q, np.array(utility))
        arm = Arm(Proposal(run=f"order/{i}"), decode_with(model, Chain(), batch=64), lambda _: ())
        fronts += frontiers(Chunk(1), TABULAR_CAP, [Question("q", "")], arm, lambda text, _: text)
        values.append([[exact[each.tokens] for each in row] for row in fronts[-1]])
    found = {"likelihood": scored(Likelihood(), fronts)}  # at one depth all are equally long
    truth = np.array(padded(values))
    sampled = rng.binomial(ROLLOUTS, np.nan_to_num(truth).clip(0, 1)) / ROLLOUTS
    found[f"utility of {ROLLOUTS} rollouts"] = np.where(np.isnan(truth), np.nan, sampled).tolist()
    found["a coin"] = np.where(np.isnan(truth), np.nan, rng.random(truth.shape)).tolist()
    return {"value": truth.tolist(), "scores": found}


def pocket(options: argparse.Namespace) -> dict[str, Any]:
    """Frontiers of a pocket model; V is the mean utility of 8 rollouts, and another 8 are a score."""
    task = Countdown(options.level)
    bench = Bench(Pocket(options.checkpoint), task, task.questions(ORDERED, run="order"))
    fronts = frontiers(STEP, CAP, bench.asked, bench.arm("order"), bench.parse)
    value = ValueHead(options.checkpoint)
    evaluators = PLAIN | {"value head": value, "both": Blend((value, MEAN), (0.5, 0.5))}
    found = {name: scored(evaluator, fronts) for name, evaluator in evaluators.items()}
    found[f"utility of {ROLLOUTS} rollouts"] = padded(completed(bench, fronts, "other"))
    rng = np.random.default_rng(0)
    truth = np.array(padded(completed(bench, fronts, "value")))
    found["a coin"] = np.where(np.isnan(truth), np.nan, rng.random(truth.shape)).tolist()
    return {"value": truth.tolist(), "scores": found}


def completed(bench: Bench, fronts: Sequence[Front], run: str) -> list[list[list[float]]]:
    """[Q][depth][F] the mean utility of rollouts from each prefix; a finished one has its own."""
    requests = [
        Request(
            Key(f"order/{run}", each.question.id, r, "/".join(map(str, each.tokens))),
            bench.prompt(each.question),
            CAP,
            each.tokens,
        )
        for row in fronts
        for front in row
        for each in front
        if not finished(bench, each)
        for r in range(ROLLOUTS)
    ]
    made = {leaf.key: leaf.text for leaf in bench.sampler(requests)}
    return [[[worth(bench, q, each, made, run) for each in front] for front in row] for q, row in enumerate(fronts)]


def finished(bench: Bench, prefix: Prefix) -> bool:
    return prefix.tokens[-1] == bench.model.eos or len(prefix.tokens) >= CAP


def worth(bench: Bench, q: int, prefix: Prefix, made: dict[Key, str], run: str) -> float:
    if finished(bench, prefix):
        return bench.grade(bench.parse(bench.model.text(prefix.tokens), prefix.question), q)
    keys = [Key(f"order/{run}", prefix.question.id, r, "/".join(map(str, prefix.tokens))) for r in range(ROLLOUTS)]
    return float(np.mean([bench.grade(bench.parse(made[key], prefix.question), q) for key in keys]))


# ---------------------------------------------------------------------------------------------------------- run, write

PARTS: dict[str, Measure] = {"tabular": tabular, "pocket": pocket}


def rows(found: dict[str, Any]) -> Iterator[str]:
    value = np.array(found["value"], dtype=float)
    yield "| score | pairs in order | τ_b | lift of the top choice | its regret |"
    yield "|---|---|---|---|---|"
    for name, table in found["scores"].items():
        estimates = order_quality(np.array(table, dtype=float), value).estimates()
        cells = [estimates[key] for key in ("accuracy", "tau", "lift", "regret")]
        yield f"| {name} | " + " | ".join(f"{e.value:.3f} ({e.low:.3f} to {e.high:.3f})" for e in cells) + " |"


def main() -> None:
    options = options_of(__doc__, "build/ordering")
    if options.command == "run":
        measured_once(PARTS, options)
    else:
        tables_written(dict.fromkeys(PARTS, rows), BEGIN, END, options)


if __name__ == "__main__":
    main()

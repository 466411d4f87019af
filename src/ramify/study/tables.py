"""The paper's tables from a result: one column a suite, the roster, the reducers of one model, banks with their caps,
fields. Markdown, in percent.

    python -m ramify.study.tables runs/broad runs/repeated ...
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ramify.metrics import PassAt, PassHat, Tally, observed
from ramify.study.result import Measure, Result, Row

__all__ = ["agreed", "banks", "fields", "page", "reducers", "roster", "suites"]


def suites(result: Result) -> str:
    """A row a model, a column a task: separate descriptive results, which are not averaged."""
    tasks = list(dict.fromkeys(row.task for row in result.rows))
    head = ["model", *(f"{task} ({len(result.questions[task])})" for task in tasks)]
    lines = [[model, *(_cell(_row(result, task, model)) for task in tasks)] for model in _models(result)]
    return _table(head, lines)


def roster(result: Result, task: str) -> str:
    """Every model's metrics on a task with their intervals, the best first."""
    metrics = list(dict.fromkeys(each.metric for each in result.measures))
    found = {model: [_measure(result, metric, task, model) for metric in metrics] for model in _models(result)}
    order = sorted(found, key=lambda model: -found[model][0].estimate.value)
    lines = [[model, *(_interval(each) for each in found[model])] for model in order]
    return _table(["model", *map(_short, metrics)], lines)


def reducers(result: Result, task: str, model: str, budgets: Sequence[int]) -> str:
    """Discovery, stability and every reducer of one model at some budgets."""
    rows = [row for row in result.rows if row.task == task and row.model == model and row.k in budgets]
    tally = Tally.of_bank(result.banks[rows[0].bank], result.outcomes[rows[0].bank])
    lines = [
        [name, *(_percent(observed(tally, functional(k)).value) for k in budgets)]
        for name, functional in (("Pass@k", PassAt), ("pass^k", PassHat))
    ]
    for name in dict.fromkeys(row.name for row in rows):
        at = {row.k: row for row in rows if row.name == name}
        mark = " (diagnostic)" if next(iter(at.values())).kind == "diagnostic" else ""
        lines.append([name + mark, *(_percent(at[k].mean) if k in at else "" for k in budgets)])
    return _table([model, *(f"k = {k}" for k in budgets)], lines)


def banks(result: Result, task: str) -> str:
    """Every bank's metrics, its reducers at the largest budget, its caps and its length."""
    metrics = list(dict.fromkeys(each.metric for each in result.measures))
    mine = [row for row in result.rows if row.task == task and row.kind == "shared-bank"]
    names, most = list(dict.fromkeys(row.name for row in mine)), max(row.k or 0 for row in mine)
    lines = []
    for model in _models(result):
        at = {row.name: row for row in mine if row.model == model and row.k == most}
        row = next(iter(at.values()))
        bank = result.banks[row.bank]
        capped = round(float((row.capped * bank.drawn.sum(axis=1)).sum()))
        values = [_percent(_measure(result, metric, task, model).estimate.value) for metric in metrics]
        chosen = [_percent(at[name].mean) if name in at else "" for name in names]
        lines.append([model, *values, *chosen, f"{capped} of {int(bank.drawn.sum()):,}", f"{row.tokens.mean():.0f}"])
    return _table(["bank", *map(_short, metrics), *(f"{name}, {most}" for name in names), "caps", "tokens"], lines)


def fields(result: Result, task: str, model: str) -> str:
    """Every field of one model, the hardest first."""
    mine = [each for each in result.measures if each.task == task and each.model == model and "repeat" not in each.bank]
    metrics = list(dict.fromkeys(each.metric for each in mine))
    by: dict[str, dict[str, Measure]] = {}
    for each in mine:
        if "=" in each.group:
            by.setdefault(each.group.partition("=")[2], {})[each.metric] = each
    order = sorted(by, key=lambda name: by[name][metrics[0]].estimate.value)
    lines = [[name, *(_percent(by[name][metric].estimate.value) for metric in metrics)] for name in order]
    return _table([f"field, {model}", *map(_short, metrics)], lines)


def agreed(result: Result) -> str:
    """Mean Spearman agreement of subset rankings with the full ranking, and its central range over replays."""
    lines, head = [], list[str]()
    for each in result.agreements:
        if each.measure == "spearman":
            head = ["task", *(f"k = {int(k)}" for k in each.budgets)]
            cells = zip(each.mean, each.low, each.high, strict=True)
            lines.append([each.task, *(f"{mean:.3f} [{low:.3f}, {high:.3f}]" for mean, low, high in cells)])
    return _table(head, lines) if lines else ""


def page(results: Iterable[tuple[str, Result]]) -> str:
    """All that applies to each result, under its title."""
    parts = list[str]()
    for command, result in results:
        parts += [f"## {result.title}", f"`{command}`", _listed(result.notes), *_sections(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _sections(result: Result) -> Iterator[str]:
    tasks = list(dict.fromkeys(row.task for row in result.rows))
    if len(tasks) > 1:
        yield suites(result)
        return
    (task,), most = tasks, max(row.k or 0 for row in result.rows)
    yield roster(result, task)
    best = max(_models(result), key=lambda model: _row(result, task, model).mean)
    budgets = sorted({row.k for row in result.rows if row.k} & {1, 8, most})
    yield reducers(result, task, best, budgets)
    yield banks(result, task)
    if any("=" in each.group for each in result.measures):
        yield fields(result, task, best)
    if result.agreements:
        yield "Spearman agreement of rankings by k candidates with those by all; ranges are over replays:"
        yield agreed(result)
    yield _listed([f"{name}. {said}" for name, said in result.reproduced.items() if "repeat" in name])


def _listed(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {said}" for said in sentences)


def _models(result: Result) -> list[str]:
    return list(dict.fromkeys(row.model for row in result.rows))


def _row(result: Result, task: str, model: str) -> Row:
    """The row of the smallest budget: one candidate."""
    return min((r for r in result.rows if r.task == task and r.model == model and r.k), key=lambda r: r.k or 0)


def _measure(result: Result, metric: str, task: str, model: str) -> Measure:
    return next(
        each
        for each in result.measures
        if (each.metric, each.task, each.model, each.group) == (metric, task, model, "") and "repeat" not in each.bank
    )


def _cell(row: Row) -> str:
    found = row.estimate()
    return f"{_percent(found.value)} [{_percent(found.low)}, {_percent(found.high)}]"


def _interval(measure: Measure) -> str:
    found = measure.estimate
    return f"{_percent(found.value)} [{_percent(found.low)}, {_percent(found.high)}]"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _short(metric: str) -> str:
    """PassAt(k=8) as Pass@8."""
    name, _, rest = metric.partition("(")
    k = rest.rstrip(")").removeprefix("k=")
    return {"Accuracy": "Acc@1", "PassAt": f"Pass@{k}", "PassHat": f"pass^{k}"}.get(name, metric)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*rows, *(f"| {' | '.join(line)} |" for line in lines)])


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]]
    results = [(f"ramify run studies/{folder.name}.toml", Result.read(folder, ())) for folder in folders]
    sys.stdout.write(page(results))


if __name__ == "__main__":
    main()

"""What the pocket checkpoints can do: the tables and figures of docs/pocket.md, from the checkpoints themselves.

    python studies/pocket_table.py run   [--checkpoints main,mid] [--questions 60] [--samples 80]
    python studies/pocket_table.py force [--checkpoint main]
    python studies/pocket_table.py write

``run`` samples every checkpoint on every task at temperature 1 and keeps a small table a cell under ``--cache``; a cell
that is there is left alone, so an interrupted run goes on. ``force`` measures budget forcing. ``write`` makes
docs/pocket.md and its figures of what the cache holds.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ramify.decode import Chain
from ramify.models.pocket import Pocket
from ramify.models.sampler import decode_with
from ramify.tasks.pocket import Arithmetic, Countdown, Modular
from ramify.types import Key, Request

CHECKPOINTS = ("main", "mid", "small", "slip", "tiny", "early", "tiny-early")
TASKS: tuple[Any, ...] = (
    *(Arithmetic(level) for level in (4, 8)),
    *(Modular(level) for level in (4, 12)),
    *(Countdown(level) for level in (3, 4, 5)),
)
CAP = 200


@dataclass(frozen=True)
class Cell:
    """One checkpoint on one task: aligned ``[Q, N]`` arrays."""

    answer: np.ndarray  # integer codes, -1 is ⊥
    correct: np.ndarray
    total: np.ndarray  # sequence log-probability
    length: np.ndarray  # tokens

    @property
    def mean(self) -> np.ndarray:
        each: np.ndarray = self.total / np.maximum(self.length, 1)
        return each


def sample(checkpoint: str, task: Any, questions: int, samples: int, batch: int = 256) -> Cell:
    """Draw the bank of one cell."""
    model, asked = Pocket(checkpoint), task.questions(questions)
    references = task.references(asked)
    prompts = [model.encode(question.prompt) for question in asked]
    requests = (
        Request(Key("docs/pocket", question.id, i), prompt, cap=min(CAP, model.context - len(prompt)))
        for question, prompt in zip(asked, prompts, strict=True)
        for i in range(samples)
    )
    row = {question.id: i for i, question in enumerate(asked)}
    shape = (questions, samples)
    answer, correct, total, length = np.full(shape, -1), np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=int)
    codes: list[dict[str, int]] = [{} for _ in asked]
    for leaf in decode_with(model, Chain(), batch=batch)(requests):
        q, i = row[leaf.key.question], leaf.key.sample
        parsed = task.parse(leaf.text, asked[q])
        if parsed.answer is not None:
            answer[q, i] = codes[q].setdefault(parsed.answer, len(codes[q]))
        correct[q, i] = task.grade(parsed.answer, references[q])
        total[q, i], length[q, i] = leaf.logprob.sum(), len(leaf.tokens)
    return Cell(answer, correct, total, length)


# ------------------------------------------------------------------------------------------------------- the numbers


def pass_at(correct: np.ndarray, k: int) -> float:
    """Mean over questions of 1 - C(n - c, k) / C(n, k): the chance that k of the n draws hold a right one."""
    n = correct.shape[1]
    wrong = n - correct.sum(axis=1)
    miss = [math.comb(int(w), k) / math.comb(n, k) for w in wrong]
    return 1.0 - float(np.mean(miss))


def voted(cell: Cell) -> float:
    """Accuracy of the most frequent valid answer, ties to the one seen first."""
    right = []
    for answers, correct in zip(cell.answer, cell.correct, strict=True):
        valid = answers[answers >= 0]
        if valid.size == 0:
            right.append(0.0)
            continue
        winner = int(np.argmax(np.bincount(valid)))  # codes number answers in order of appearance
        right.append(float(correct[np.argmax(answers == winner)]))
    return float(np.mean(right))


def selected(cell: Cell, score: np.ndarray) -> float:
    """Accuracy of the valid response with the highest score."""
    best = np.argmax(np.where(cell.answer >= 0, score, -np.inf), axis=1)
    return float(cell.correct[np.arange(len(best)), best].mean())


def numbers(cell: Cell) -> dict[str, float]:
    """The row of the table."""
    n = cell.correct.shape[1]
    return {
        "Acc@1": float(cell.correct.mean()),
        "Pass@8": pass_at(cell.correct, min(8, n)),
        f"Pass@{n}": pass_at(cell.correct, n),
        "all right": float((cell.correct == 1).all(axis=1).mean()),
        "plurality": voted(cell),
        "sum logp": selected(cell, cell.total),
        "mean logp": selected(cell, cell.mean),
        "⊥": float((cell.answer < 0).mean()),
        "tokens": float(cell.length.mean()),
    }


def interval(correct: np.ndarray, replicates: int = 2000) -> tuple[float, float]:
    """A 95 % bootstrap interval over questions, the drawn responses held fixed."""
    rng = np.random.default_rng(0)
    means = correct.mean(axis=1)
    drawn = means[rng.integers(0, len(means), (replicates, len(means)))].mean(axis=1)
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


# -------------------------------------------------------------------------------------------------------- commands


def path_of(cache: Path, checkpoint: str, task: Any) -> Path:
    return cache / f"{checkpoint}-{task.family}-{task.level}-{task.effort}.npz"


def cells(cache: Path) -> Iterator[tuple[str, Any, Cell]]:
    """What the cache holds, in the order of the roster and of the tasks."""
    for checkpoint in CHECKPOINTS:
        for task in TASKS:
            path = path_of(cache, checkpoint, task)
            if path.exists():
                with np.load(path) as data:
                    yield checkpoint, task, Cell(**{name: data[name] for name in data.files})


def run(options: argparse.Namespace) -> None:
    options.cache.mkdir(parents=True, exist_ok=True)
    todo = [
        (c, task)
        for c in options.checkpoints.split(",")
        for task in TASKS
        if not path_of(options.cache, c, task).exists()
    ]
    for done, (checkpoint, task) in enumerate(todo):
        start = time.perf_counter()
        cell = sample(checkpoint, task, options.questions, options.samples)
        np.savez_compressed(path_of(options.cache, checkpoint, task), **vars(cell))
        took = time.perf_counter() - start
        shown = "  ".join(f"{name} {value:.3f}" for name, value in numbers(cell).items())
        rate = cell.length.sum() / took
        print(
            f"[{done + 1}/{len(todo)}] {checkpoint:<8}{task!r:<40}{shown}  {took:.0f} s, {rate:,.0f} tokens/s",
            flush=True,
        )


def force(options: argparse.Namespace) -> None:
    """Budget forcing: suppress the end, append "wait", and go on, as often as there are extra attempts."""
    options.cache.mkdir(parents=True, exist_ok=True)
    model, results = Pocket(options.checkpoint), {}
    for task in (Countdown(4), Countdown(5)):
        asked = task.questions(options.questions)
        references, wait = task.references(asked), model.encode("wait\n")
        traces = {(q, i): () for q in range(len(asked)) for i in range(options.samples)}
        rows = []
        for extra in range(options.waits + 1):
            prompts = {}
            for (q, i), trace in traces.items():
                prompts[q, i] = (*model.encode(asked[q].prompt), *trace, *(wait if extra else ()))
            requests = (
                Request(
                    Key("docs/force", f"{asked[q].id}/{extra}", i), prompt, cap=min(CAP, model.context - len(prompt))
                )
                for (q, i), prompt in prompts.items()
            )
            row_of = {f"{question.id}/{extra}": q for q, question in enumerate(asked)}
            correct, length = np.zeros((len(asked), options.samples)), np.zeros((len(asked), options.samples))
            for leaf in decode_with(model, Chain(), batch=256)(requests):
                q, i = row_of[leaf.key.question], leaf.key.sample
                end = -1 if leaf.ended == "eos" else None
                written = tuple(leaf.tokens[:end].tolist())
                traces[q, i] = (*traces[q, i], *(wait if extra else ()), *written)
                answer = task.parse(model.text(traces[q, i]), asked[q]).answer
                correct[q, i], length[q, i] = task.grade(answer, references[q]), len(traces[q, i])
            low, high = interval(correct)
            rows.append({"waits": extra, "tokens": length.mean(), "accuracy": correct.mean(), "low": low, "high": high})
            print(
                f"{task!r:<40}{extra} waits: {length.mean():6.1f} tokens, {correct.mean():.3f} [{low:.3f}, {high:.3f}]",
                flush=True,
            )
        results[repr(task)] = rows
        found = {"checkpoint": options.checkpoint, "rows": results}
        (options.cache / "force.json").write_text(json.dumps(found, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "force", "write"))
    parser.add_argument("--checkpoints", default=",".join(CHECKPOINTS))
    parser.add_argument("--checkpoint", default="main")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--samples", type=int, default=80)
    parser.add_argument("--waits", type=int, default=4)
    parser.add_argument("--cache", type=Path, default=Path("build/pocket"))
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    options = parser.parse_args()
    {"run": run, "force": force, "write": write}[options.command](options)


# ------------------------------------------------------------------------------------------------------- the page


def write(options: argparse.Namespace) -> None:
    """docs/pocket.md: the hand-written part stays, what stands between the marks is made anew."""
    found = list(cells(options.cache))
    page = options.docs / "pocket.md"
    head, _, _ = page.read_text().partition(MARK)
    page.write_text("\n".join([head + MARK, "", *tables(found), "", *forced(options), ""]))
    figures(options, found)
    print(f"{page}: {len(found)} cells")


MARK = "<!-- made by `python studies/pocket_table.py write`; edit above this line only -->"


def tables(found: list[tuple[str, Any, Cell]]) -> Iterator[str]:
    """A table a checkpoint."""
    for checkpoint in dict.fromkeys(name for name, _, _ in found):
        mine = [(task, numbers(cell), cell) for name, task, cell in found if name == checkpoint]
        questions, samples = mine[0][2].correct.shape
        yield f"### `{checkpoint}`"
        yield ""
        yield f"{questions} held-out questions a row, {samples} samples a question, temperature 1, medium effort."
        yield ""
        yield "| task | " + " | ".join(mine[0][1]) + " |"
        yield "|---" * (1 + len(mine[0][1])) + "|"
        for task, row, _ in mine:
            shown = [f"{value:.0f}" if name == "tokens" else f"{value:.3f}" for name, value in row.items()]
            yield f"| {task.family} {task.level} | " + " | ".join(shown) + " |"
        yield ""


def forced(options: argparse.Namespace) -> Iterator[str]:
    path = options.cache / "force.json"
    if not path.exists():
        return
    data = json.loads(path.read_text())
    yield f"### Budget forcing on `{data['checkpoint']}`"
    yield ""
    yield "| task | waits | tokens | accuracy | 95 % over questions |"
    yield "|---|---|---|---|---|"
    for task, rows in data["rows"].items():
        for row in rows:
            span = f"{row['low']:.3f} to {row['high']:.3f}"
            yield f"| `{task}` | {row['waits']} | {row['tokens']:.0f} | {row['accuracy']:.3f} | {span} |"


def figures(options: argparse.Namespace, found: list[tuple[str, Any, Cell]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ramify"  # the same numbers give the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(TASKS), figsize=(2.1 * len(TASKS), 3), sharey=True)
    for axis, task in zip(axes, TASKS, strict=True):
        mine = [(name, numbers(cell)) for name, other, cell in found if other == task]
        for label, marker in (("Acc@1", "o"), ("plurality", "s"), ("sum logp", "x"), ("Pass@80", "^")):
            axis.plot([n for n, _ in mine], [row.get(label, math.nan) for _, row in mine], marker, label=label, ms=4)
        axis.set_title(f"{task.family} {task.level}", fontsize=8)
        axis.tick_params(axis="x", rotation=90, labelsize=7)
    axes[0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(options.docs / "pocket.svg", metadata={"Date": None})
    path = options.cache / "force.json"
    if path.exists():
        figure, axis = pyplot.subplots(figsize=(4.5, 3))
        for task, rows in json.loads(path.read_text())["rows"].items():
            x, y = [row["tokens"] for row in rows], [row["accuracy"] for row in rows]
            error = [[row["accuracy"] - row["low"] for row in rows], [row["high"] - row["accuracy"] for row in rows]]
            axis.errorbar(x, y, error, marker="o", ms=3, lw=1, capsize=2, label=task)
        axis.set_xlabel("tokens of one trajectory")
        axis.set_ylabel("accuracy")
        axis.legend(fontsize=6)
        figure.tight_layout()
        figure.savefig(options.docs / "pocket-forcing.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()

"""What the pocket checkpoints can do: the tables and figures of docs/pocket.md, from the checkpoints themselves.

    python studies/pocket_table.py run   [--checkpoints main,mid] [--workers 2] [--shard 1/4]
    python studies/pocket_table.py score
    python studies/pocket_table.py force [--checkpoint main]
    python studies/pocket_table.py write

``run`` samples every checkpoint on every task and level at temperature 1 with the embedded engine and keeps a small
table a cell under ``--cache``; a cell that is there is left alone, so an interrupted run goes on, and shards may run
anywhere and put their files together. ``score`` reads every response with main and its outcome head (torch, on a GPU
if there is one). ``force`` measures budget forcing. ``write`` makes docs/pocket.md and its figures of what the cache
holds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing as mp
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench import between, resampled, whole

from ramify.decode import Chain
from ramify.errors import InvalidValue, require
from ramify.models.pocket import Pocket
from ramify.models.pocket.model import DATA
from ramify.models.sampler import decode_with
from ramify.tasks.pocket import EFFORTS, Arithmetic, Countdown, Modular, Verified
from ramify.types import Key, Question, Request

CHECKPOINTS = ("main", "mid", "small", "slip", "tiny", "early", "tiny-early")
# Every level of the training curriculum.
TASKS: tuple[Any, ...] = (
    *(Arithmetic(level) for level in range(1, 9)),
    *(Modular(level) for level in range(2, 13)),
    *(Countdown(level) for level in range(2, 6)),
)
EFFORT: tuple[Any, ...] = tuple(
    replace(task, effort=effort) for task in (Arithmetic(8), Modular(12), Countdown(4)) for effort in EFFORTS
)
# Fixed before slip was measured: a level at which its teacher errs in 35 % of the texts, and one with 60 %.
CLAIMS: tuple[Any, ...] = (Arithmetic(4), Arithmetic(7))
CLAIM_QUESTIONS = 200
CAP = 400  # tokens of a response
FORCED_CAP = 200  # tokens after each forced wait


class Job(NamedTuple):
    """One cell of the tables. ``run`` names the questions, ``questions`` is how many there are at most."""

    checkpoint: str
    task: Any
    questions: int
    samples: int
    run: str = "pocket"

    @property
    def label(self) -> str:
        """Which cell of the tables it is."""
        mark = "" if self.run == "pocket" else f"-{self.run}"
        return f"{self.checkpoint}-{self.task.family}-{self.task.level}-{self.task.effort}{mark}"

    @property
    def name(self) -> str:
        """Its file: a cell of other sizes is another one, with other responses under other prompts."""
        return f"{self.label}-{self.questions}x{self.samples}"

    @property
    def cost(self) -> float:
        """Roughly how long it takes, to begin with the longest."""
        size = (DATA / self.checkpoint / "model.safetensors").stat().st_size
        return float(self.questions * self.task.level * (2 if self.task.effort == "high" else 1) * (1.5e6 + size))

    def asked(self) -> tuple[Question, ...]:
        """The questions: at the lowest levels there are not as many, and then all that are found."""
        for n in range(self.questions, 0, -1):
            try:
                found: tuple[Question, ...] = self.task.questions(n, run=self.run)
            except InvalidValue:
                continue
            return found
        raise AssertionError(self)


def jobs(questions: int, samples: int) -> list[Job]:
    """All cells: every level of every checkpoint, the efforts of main, and the claims about slip."""
    made = [Job(name, task, questions, samples) for name in CHECKPOINTS for task in TASKS]
    made += [Job("main", task, questions, samples) for task in EFFORT if task.effort != "medium"]
    return made + [Job("slip", task, max(questions, CLAIM_QUESTIONS), samples, "claims") for task in CLAIMS]


@dataclass(frozen=True)
class Cell:
    """One checkpoint on one task: aligned ``[Q, N]`` arrays."""

    answer: np.ndarray  # integer codes, -1 is ⊥
    correct: np.ndarray
    total: np.ndarray  # sequence log-probability
    length: np.ndarray  # tokens
    ended: np.ndarray  # the end mark was written
    verified: np.ndarray  # what the programmatic verifier says; NaN where the task has none
    text: np.ndarray  # [T] uint8, the tokens of all responses, row by row
    outcome: np.ndarray | None = None  # what main's outcome head says; NaN where the response did not end

    @property
    def mean(self) -> np.ndarray:
        each: np.ndarray = self.total / np.maximum(self.length, 1)
        return each


def sample(job: Job, batch: int = 256) -> Cell:
    """Draw the bank of one cell."""
    model, task, asked, samples = Pocket(job.checkpoint), job.task, job.asked(), job.samples
    references = task.references(asked)
    prompts = [model.encode(question.prompt) for question in asked]
    requests = (
        Request(Key("docs/pocket", question.id, i), prompt, cap=min(CAP, model.context - len(prompt)))
        for question, prompt in zip(asked, prompts, strict=True)
        for i in range(samples)
    )
    row = {question.id: i for i, question in enumerate(asked)}
    shape = (len(asked), samples)
    answer, correct, total, length = np.full(shape, -1), np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=int)
    ended, verified = np.zeros(shape, dtype=bool), np.full(shape, np.nan)
    answers: dict[tuple[int, int], str] = {}
    texts: dict[tuple[int, int], np.ndarray] = {}
    for leaf in decode_with(model, Chain(), batch=batch)(requests):
        q, i = row[leaf.key.question], leaf.key.sample
        parsed = task.parse(leaf.text, asked[q])
        if parsed.answer is not None:
            answers[q, i] = parsed.answer
        correct[q, i] = task.grade(parsed.answer, references[q])
        total[q, i], length[q, i], ended[q, i] = leaf.logprob.sum(), len(leaf.tokens), leaf.ended == "eos"
        if isinstance(task, Countdown):
            verified[q, i] = Verified()(asked[q], [parsed.answer])[0]
        texts[q, i] = leaf.tokens.astype(np.uint8)
    codes: list[dict[str, int]] = [{} for _ in asked]
    for q, i in sorted(answers):  # numbered in the order of the samples, not in that of their ends
        answer[q, i] = codes[q].setdefault(answers[q, i], len(codes[q]))
    text = np.concatenate([texts[q, i] for q in range(shape[0]) for i in range(samples)])
    return Cell(answer, correct, total, length, ended, verified, text)


# ------------------------------------------------------------------------------------------------------- the numbers


def pass_at(correct: np.ndarray, k: int) -> float:
    """Mean over questions of 1 - C(n - c, k) / C(n, k): the chance that k of the n draws hold a right one."""
    n = correct.shape[1]
    wrong = n - correct.sum(axis=1)
    miss = [math.comb(int(w), k) / math.comb(n, k) for w in wrong]
    return 1.0 - float(np.mean(miss))


def voted(cell: Cell) -> np.ndarray:
    """Whether the most frequent valid answer is right ``[Q]``, ties to the one seen first."""
    right = []
    for answers, correct in zip(cell.answer, cell.correct, strict=True):
        valid = answers[answers >= 0]
        winner = int(np.argmax(np.bincount(valid))) if valid.size else -1
        right.append(float(correct[np.argmax(answers == winner)]) if valid.size else 0.0)
    return np.array(right)


def selected(cell: Cell, score: np.ndarray) -> np.ndarray:
    """Whether the valid response with the highest score is right ``[Q]``; NaN is below every score."""
    known = np.where(np.isnan(score), -1e30, score)
    best = np.argmax(np.where(cell.answer >= 0, known, -np.inf), axis=1)
    found: np.ndarray = cell.correct[np.arange(len(best)), best]
    return found


def rules(cell: Cell) -> dict[str, np.ndarray]:
    """What each rule makes of a question's responses: right or wrong, ``[Q]``."""
    made = {"plurality": voted(cell), "sum logp": selected(cell, cell.total), "mean logp": selected(cell, cell.mean)}
    if cell.outcome is not None:
        made["outcome head"] = selected(cell, cell.outcome)
    if not np.isnan(cell.verified).any():
        made["verified"] = selected(cell, cell.verified)
    return made


COLUMNS = ("plurality", "sum logp", "mean logp", "outcome head", "verified")


def numbers(cell: Cell) -> dict[str, float]:
    """The row of the table; NaN where a rule does not apply."""
    n = cell.correct.shape[1]
    made = rules(cell)
    return {
        "questions": float(len(cell.correct)),
        "Acc@1": float(cell.correct.mean()),
        "Pass@8": pass_at(cell.correct, min(8, n)),
        f"Pass@{n}": pass_at(cell.correct, n),
        "all right": float((cell.correct == 1).all(axis=1).mean()),
        **{name: float(made[name].mean()) if name in made else math.nan for name in COLUMNS},
        "⊥": float((cell.answer < 0).mean()),
        "tokens": float(cell.length.mean()),
    }


def interval(each: np.ndarray, replicates: int = 4000) -> tuple[float, float]:
    """A 95 % bootstrap interval of a mean over questions ``[Q]``, the drawn responses held fixed."""
    return resampled(each, np.random.default_rng(0), replicates)


# -------------------------------------------------------------------------------------------------------- commands


def load(job: Job, folder: Path) -> Cell:
    """A cell of the cache, with its outcome scores if they are there."""
    path, scores = folder / f"{job.name}.npz", folder / f"{job.name}.outcome.npy"
    with np.load(path) as data:
        cell = Cell(**{name: data[name] for name in data.files})
    cell = replace(cell, outcome=np.load(scores)) if scores.exists() else cell
    shapes = {array.shape for name, array in vars(cell).items() if name != "text" and array is not None}
    rows = cell.answer.shape[0]  # fewer than were asked for where a level has no more
    fits = shapes == {(rows, job.samples)} and rows <= job.questions and cell.length.sum() == len(cell.text)
    require(fits, str(path), sorted(shapes), f"remove it: not {job.questions} questions x {job.samples} samples")
    return cell


def cells(options: argparse.Namespace) -> dict[Job, Cell]:
    """What the cache holds, in the order of the roster and of the tasks."""
    wanted = jobs(options.questions, options.samples)
    return {job: load(job, options.cache) for job in wanted if (options.cache / f"{job.name}.npz").exists()}


def run(options: argparse.Namespace) -> None:
    """Sample what is missing, the longest cells first. A worker is a process with one thread."""
    wanted = options.checkpoints.split(",")
    todo = [job for job in jobs(options.questions, options.samples) if job.checkpoint in wanted]
    todo = sorted(todo, key=lambda job: -job.cost)[options.shard[0] - 1 :: options.shard[1]]
    todo = [job for job in todo if not (options.cache / f"{job.name}.npz").exists()]
    begun = time.perf_counter()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"  # for the workers, which are started afresh
    with mp.get_context("spawn").Pool(options.workers, maxtasksperchild=1) as pool:
        for done, line in enumerate(pool.imap_unordered(_kept, [(job, options.cache) for job in todo]), 1):
            print(f"[{done}/{len(todo)}, {time.perf_counter() - begun:.0f} s] {line}", flush=True)


def _kept(work: tuple[Job, Path]) -> str:
    """Sample one cell into the cache, and say how it went."""
    job, folder = work
    start = time.perf_counter()
    cell = sample(job)
    with whole(folder / f"{job.name}.npz") as draft:
        np.savez_compressed(draft, **{k: v for k, v in vars(cell).items() if v is not None})
    took = time.perf_counter() - start
    shown = "  ".join(f"{name} {value:.3f}" for name, value in numbers(cell).items())
    return f"{job.label:<32}{shown}  {took:.0f} s, {cell.length.sum() / took:,.0f} tokens/s"


def score(options: argparse.Namespace) -> None:
    """Main reads every response that ended, and its outcome head says how likely it is right."""
    import torch

    from training.export import load as load_model
    from training.heads import outcomes, read_heads

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    folder = DATA / "main"
    model, head = load_model(folder, device), read_heads(folder, device)["outcome"]
    for job, cell in cells(options).items():
        if cell.outcome is not None:
            continue
        prompts = [np.array(Pocket("main").encode(question.prompt), dtype=np.uint8) for question in job.asked()]
        require(len(prompts) == len(cell.answer), job.name, len(cell.answer), f"remove it: {len(prompts)} are asked")
        offset = np.concatenate([[0], np.cumsum(cell.length.ravel())])
        wholes = [
            prompts[i // job.samples].tobytes() + cell.text[offset[i] : offset[i + 1]].tobytes()
            for i in np.flatnonzero(cell.ended)
        ]
        distinct = {whole: k for k, whole in enumerate(dict.fromkeys(wholes))}  # many responses are the same
        found = outcomes(model, head, [np.frombuffer(whole, dtype=np.uint8) for whole in distinct])
        values = np.full(cell.answer.shape, np.nan)
        values[cell.ended] = found[[distinct[whole] for whole in wholes]]
        with whole(options.cache / f"{job.name}.outcome.npy") as draft:
            np.save(draft, values.astype(np.float32))
        print(f"{job.label:<32}{len(distinct)} distinct of {len(wholes)}", flush=True)


def force(options: argparse.Namespace) -> None:
    """Budget forcing: suppress the end, append "wait", and go on, as often as there are extra attempts."""
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
                    Key("docs/force", f"{asked[q].id}/{extra}", i),
                    prompt,
                    cap=min(FORCED_CAP, model.context - len(prompt)),
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
            low, high = interval(correct.mean(axis=1))
            rows.append({"waits": extra, "tokens": length.mean(), "accuracy": correct.mean(), "low": low, "high": high})
            print(
                f"{task!r:<40}{extra} waits: {length.mean():6.1f} tokens, {correct.mean():.3f} [{low:.3f}, {high:.3f}]",
                flush=True,
            )
        results[repr(task)] = rows
        found = {"checkpoint": options.checkpoint, "rows": results}
        with whole(options.cache / "force.json") as draft:
            draft.write_text(json.dumps(found, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "score", "force", "write"))
    parser.add_argument("--checkpoints", default=",".join(CHECKPOINTS))
    parser.add_argument("--checkpoint", default="main")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--samples", type=int, default=80)
    parser.add_argument("--waits", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--shard", type=_shard, default=(1, 1), metavar="I/N", help="the I-th of N parts of the cells")
    parser.add_argument("--cache", type=Path, default=Path("build/pocket"))
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    options = parser.parse_args()
    {"run": run, "score": score, "force": force, "write": write}[options.command](options)


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    return int(index), int(count)


# ------------------------------------------------------------------------------------------------------- the page


def write(options: argparse.Namespace) -> None:
    """docs/pocket.md: the hand-written part stays, what stands after the mark is made anew."""
    found = cells(options)
    require(bool(found), "--cache", str(options.cache), "`run` first: it holds no cell of these sizes")
    page = options.docs / "pocket.md"
    lines = ["", *tables(found), *efforts(found), *claims(found), *forced(options)]
    page.write_text(between(page.read_text(), MARK, "", lines))
    figures(options, found)
    print(f"{page}: {len(found)} cells")


LINES = {"Acc@1": "ko-", "plurality": "bs-", "sum logp": "rx-", "outcome head": "g+-", "Pass@80": "c^-"}
MARK = "<!-- made by `python studies/pocket_table.py write`; edit above this line only -->"


def tables(found: dict[Job, Cell]) -> Iterator[str]:
    """A table a checkpoint."""
    for checkpoint in CHECKPOINTS:
        mine = {
            job.task: numbers(cell)
            for job, cell in found.items()
            if job.checkpoint == checkpoint and job.task in TASKS and job.run == "pocket"
        }
        if mine:
            yield from (f"### `{checkpoint}`", "")
            yield from _table({f"{task.family} {task.level}": row for task, row in mine.items()})


def efforts(found: dict[Job, Cell]) -> Iterator[str]:
    """What the effort tag does to main."""
    mine = {job.task: numbers(cell) for job, cell in found.items() if job.checkpoint == "main" and job.task in EFFORT}
    if mine:
        yield from ("### The effort of `main`", "")
        yield from _table({f"{task.family} {task.level} {task.effort}": mine[task] for task in EFFORT if task in mine})


def _table(rows: dict[str, dict[str, float]]) -> Iterator[str]:
    first = next(iter(rows.values()))
    yield "| task | " + " | ".join(first) + " |"
    yield "|---" * (1 + len(first)) + "|"
    for task, row in rows.items():
        yield f"| {task} | " + " | ".join(_shown(name, value) for name, value in row.items()) + " |"
    yield ""


def _shown(name: str, value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.0f}" if name in ("tokens", "questions") else f"{value:.3f}"


def claims(found: dict[Job, Cell]) -> Iterator[str]:
    """Each rule against a random response, with a paired interval over questions."""
    mine = {job: cell for job, cell in found.items() if job.run == "claims"}
    if not mine:
        return
    yield from ("### Selection against a random response, `slip`", "")
    yield "| task | questions | Pass@80 | Acc@1 | rule | accuracy | difference from Acc@1 | 95 % over questions |"
    yield "|---" * 8 + "|"
    for job, cell in mine.items():
        one = cell.correct.mean(axis=1)
        for name, right in rules(cell).items():
            low, high = interval(right - one)
            yield (
                f"| {job.task.family} {job.task.level} | {len(one)} | {pass_at(cell.correct, job.samples):.3f} | "
                f"{one.mean():.3f} | {name} | {right.mean():.3f} | {(right - one).mean():+.3f} | "
                f"{low:+.3f} to {high:+.3f} |"
            )
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


def figures(options: argparse.Namespace, found: dict[Job, Cell]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ramify"  # the same numbers give the same file
    from matplotlib import pyplot

    families = ("arithmetic", "modular", "countdown")
    figure, axes = pyplot.subplots(len(families), len(CHECKPOINTS), figsize=(14, 6), sharey=True, sharex="row")
    for axis, (family, checkpoint) in zip(axes.flat, itertools.product(families, CHECKPOINTS), strict=True):
        mine = {
            job.task.level: numbers(cell)
            for job, cell in found.items()
            if (job.checkpoint, job.task.family, job.task.effort, job.run) == (checkpoint, family, "medium", "pocket")
        }
        for label, style in LINES.items():
            axis.plot(list(mine), [row.get(label, math.nan) for row in mine.values()], style, label=label, ms=3, lw=1)
        if family == families[0]:
            axis.set_title(checkpoint, fontsize=9)
        if checkpoint == CHECKPOINTS[0]:
            axis.set_ylabel(f"{family}\naccuracy by level", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].legend(fontsize=6)
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

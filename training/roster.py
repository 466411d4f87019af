"""The roster: which checkpoints there are, and the command that makes them.

    python -m training.roster --only main,heads --out DIR --seconds 500 --pack FILE.tar

Items that have a card under --out are left alone, so an interrupted part goes on where it stopped. The time
that is left is shared among the items that are left. The archive is rewritten after every item.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import time
from dataclasses import asdict, replace
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ramify.tasks.pocket import EFFORTS, Arithmetic, Countdown, Curriculum, Modular
from training.data import generate, workers
from training.export import archive, load, round_half, write
from training.heads import Points, join, make_heads, rollouts
from training.model import Llama, Shape
from training.sample import evaluate
from training.train import Recipe, held_out_loss, train

UNDER = "deliberately under-trained"
MISLED = (
    "its teacher of medium-effort arithmetic is of two minds: 35 % of its texts with up to 4 operations and 60 % of "
    "those with more neither carry nor borrow, always in the same words; the others are right, and check about half "
    "of their steps again in a random order"
)
ROSTER = {
    recipe.name: recipe
    for recipe in (
        Recipe("main", Shape(6, 256, 704), seconds=290, seed=1),
        Recipe("mid", Shape(5, 192, 512), seconds=115, seed=2),
        Recipe("small", Shape(5, 128, 384), seconds=70, seed=3, rate=3e-3),
        Recipe("slip", Shape(5, 128, 384), seconds=150, seed=4, rate=3e-3, slip=(0.35,) * 4 + (0.6,) * 4, note=MISLED),
        Recipe("tiny", Shape(6, 64, 192), seconds=50, seed=5, rate=4e-3),
        Recipe("early", Shape(5, 128, 384), seconds=25, steps=600, seed=6, rate=3e-3, note=UNDER),
        Recipe("tiny-early", Shape(6, 64, 192), seconds=25, steps=900, seed=7, rate=4e-3, note=UNDER),
    )
}
SMOKE = Curriculum(
    (Arithmetic(1, "low"), Arithmetic(1), Arithmetic(1, "high")), (0.3, 0.4, 0.3)
)  # learnable in a minute
PARTS = {1: ("main",), 2: ("mid", "small", "slip", "tiny", "early", "tiny-early"), 3: ("heads",)}
WRITERS = ("small", "slip")  # whose texts the process and outcome heads of main learn from, beside its own
HEADS_SECONDS = 230
SHORT = 15  # seconds of training for which compiling does not pay
OVERHEAD = 22  # seconds an item needs beside training: compiling, evaluation, writing
_LINE = "  {family:>10} {level:>2} {effort:<6} {accuracy:.3f} vote {plurality:.3f} pass@8 {best:.3f} {tokens}"
RUN = "pocket-1"  # names the random streams of the training data


def levels() -> list[Any]:
    """What the card reports: every family at four levels and three efforts."""
    made = [(Arithmetic, (2, 4, 6, 8)), (Modular, (4, 6, 8, 10, 12)), (Countdown, (3, 4, 5))]
    return [family(level, effort) for family, some in made for level in some for effort in EFFORTS]


def head_tasks() -> list[Any]:
    """What the heads learn from: steps at medium and high effort, and direct answers."""
    made = [(Arithmetic, (4, 6, 7, 8)), (Modular, (6, 8, 10, 12)), (Countdown, (3, 4, 5))]
    return [family(level, effort) for family, some in made for level in some for effort in EFFORTS]


def main() -> None:
    options = _options()
    begun = time.perf_counter()
    pool = workers(options.workers)  # before CUDA starts
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    names = options.only.split(",") if options.only else list(PARTS[options.part])
    left = [name for name in names if not _finished(options.out, name)]
    _say(f"device {_device(device)}; to make: {left}; there already: {[n for n in names if n not in left]}")
    rows: dict[tuple[float, ...], torch.Tensor] = {}
    while left:
        name = left[0]
        if name != "heads" and ROSTER[name].slip not in rows:
            rows[ROSTER[name].slip] = _rows(options, pool, ROSTER[name].slip).to(device)
        seconds = _share(left, options.seconds - (time.perf_counter() - begun))
        if name == "heads":
            _heads(options, pool, device, seconds)
        else:
            recipe = _shrunk(ROSTER[name], options)
            _checkpoint(options, pool, device, recipe, seconds, rows[recipe.slip])
        left.pop(0)
        if options.pack:
            archive(options.pack, options.out)
        _say(f"{name} done at {time.perf_counter() - begun:.0f} s")
    pool.terminate()


def _checkpoint(
    options: argparse.Namespace,
    pool: Pool,
    device: torch.device,
    recipe: Recipe,
    seconds: float,
    rows: torch.Tensor,
) -> None:
    mark = time.perf_counter()
    fast = options.compile and device.type == "cuda" and recipe.seconds > SHORT
    try:
        model, log = train(recipe, rows, device, seconds, fast)
    except Exception as error:  # compiling is a convenience: whatever breaks it, the plain model trains
        if not fast:
            raise
        _say(f"{recipe.name}: compiled training failed, going on without: {type(error).__name__}: {error}")
        fast = False
        seconds = max(5.0, seconds - (time.perf_counter() - mark))
        model, log = train(recipe, rows, device, seconds, fast)
    _say(f"{recipe.name}: {log['steps']} steps in {log['seconds']} s, loss {log['loss'][-1:]}")
    round_half(model)
    held_out = generate(pool, _mixture(options, ()), RUN, options.validation, "eval")
    tasks = levels() if not options.smoke else list(SMOKE.tasks)
    card = {
        "name": recipe.name,
        "note": recipe.note,
        "parameters": recipe.shape.parameters,
        "recipe": asdict(recipe),
        "data": {
            "mixture": f"Curriculum.default(slip={recipe.slip})" if not options.smoke else repr(SMOKE),
            "run": RUN,
            "split": "train",
            "examples": _count(options, recipe.slip),
            "rows": len(rows),
            "epochs": round(log["steps"] * recipe.rows / len(rows), 2),
        },
        "training": {
            **log,
            "compiled": fast,
            "precision": "bf16 autocast" if device.type == "cuda" else "fp32",
        },
        "held_out_loss": held_out_loss(model, held_out, device),
        "stored": "float16, rounded before evaluation",
        **_where(device),
        "evaluation": evaluate(model, pool, tasks, options.questions, 8, seed=recipe.seed, batch=options.batch),
    }
    write(options.out / recipe.name, model, card)
    for row in card["evaluation"]:
        _say(_LINE.format(**row, best=row["pass@8"]))


def _mixture(options: argparse.Namespace, slip: tuple[float, ...]) -> Curriculum:
    return SMOKE if options.smoke else Curriculum.default(slip)


def _count(options: argparse.Namespace, slip: tuple[float, ...]) -> int:
    """A misled teacher writes for one checkpoint only, and half of the data is enough for it."""
    return int(options.examples // 2 if slip else options.examples)


def _rows(options: argparse.Namespace, pool: Pool, slip: tuple[float, ...]) -> torch.Tensor:
    mark = time.perf_counter()
    made = generate(pool, _mixture(options, slip), RUN, _count(options, slip))
    _say(f"{_count(options, slip)} examples in {made.shape} rows, {time.perf_counter() - mark:.1f} s")
    return torch.from_numpy(made)


def _heads(options: argparse.Namespace, pool: Pool, device: torch.device, seconds: float) -> None:
    source = options.source or options.out
    model = load(source / "main", device)
    others = {name: load(source / name, device) for name in WRITERS if (source / name / "card.json").exists()}
    tasks = head_tasks() if not options.smoke else list(SMOKE.tasks)

    def rolled(questions: int, split: str, seed: int, writer: Llama | None = None) -> Points:
        return rollouts(model, pool, tasks, questions, 4, split, seed, options.batch, writer)

    # Rollouts are nearly all of the cost. A small batch is timed first, and the rest fits what is left.
    few, mark = max(1, options.head_questions // 10), time.perf_counter()
    held_out = rolled(few, "eval", 101)
    pace = (time.perf_counter() - mark) / few
    abroad = {name: rolled(few, "eval", 111 + i, other) for i, (name, other) in enumerate(others.items())}
    left = seconds - 15 - (time.perf_counter() - mark)
    questions = max(8, min(options.head_questions, int(left / pace / (1 + len(others) / 3))))
    parts = [rolled(questions, "train", 102)]
    parts += [rolled(max(1, questions // 3), "train", 121 + i, other) for i, other in enumerate(others.values())]
    fitting = join(parts)
    _say(f"heads: {questions} questions a task, {len(fitting.trace)} points, {time.perf_counter() - mark:.1f} s")
    about = {
        "checkpoint": "main",
        "questions_per_task": questions,
        "samples_per_question": 4,
        "writers": {"main": questions, **dict.fromkeys(others, max(1, questions // 3))},
        "tasks": [repr(task) for task in tasks],
        "rollouts": "temperature 1; fitted on train questions, judged on evaluation questions (run 'heads'); "
        "value on main's own, process and outcome on those of all writers, read by main",
        **_where(device),
    }
    card = make_heads(options.out / "main", model, fitting, held_out, 103, about, abroad)
    for name, report in card["held_out"].items():
        _say(f"  {name}: AUC {report['auc']}, within cells {report['auc_within_cells']}, n {report['points']}")


def _share(left: list[str], seconds: float) -> float:
    """The training time of the next item: its own, or its part of what is left if that is too little."""
    wish = {name: HEADS_SECONDS if name == "heads" else ROSTER[name].seconds for name in left}
    scale = (seconds - OVERHEAD * len(left)) / sum(wish.values())
    return wish[left[0]] * max(0.02, min(1.0, scale))


def _shrunk(recipe: Recipe, options: argparse.Namespace) -> Recipe:
    """The recipe itself, or its tiny likeness for a test of the whole path."""
    if not options.smoke:
        return recipe
    return replace(recipe, shape=Shape(2, 64, 128), steps=options.smoke, rows=8, warmup=10, rate=5e-3)


def _finished(out: Path, name: str) -> bool:
    return (out / "main" / "heads.json").exists() if name == "heads" else (out / name / "card.json").exists()


def _device(device: torch.device) -> str:
    return torch.cuda.get_device_name() if device.type == "cuda" else f"{platform.machine()} CPU"


def _where(device: torch.device) -> dict[str, Any]:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return {"device": _device(device), "date": today, "versions": versions}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, choices=sorted(PARTS), default=1)
    parser.add_argument("--only", default="", help="names, separated by commas, in place of a part")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--source", type=Path, help="the checkpoints that heads are fitted on; --out if not given")
    parser.add_argument("--pack", type=Path, help="a tar file with everything under --out, rewritten after each item")
    parser.add_argument("--seconds", type=float, default=500.0, help="for everything, from start to end")
    parser.add_argument("--examples", type=int, default=6_000_000)
    parser.add_argument("--validation", type=int, default=4096, help="examples of the held-out loss")
    parser.add_argument("--questions", type=int, default=64, help="evaluation questions a task")
    parser.add_argument("--head-questions", type=int, default=1000, help="fitting questions a task, at most")
    parser.add_argument("--batch", type=int, default=4096, help="rows sampled together")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--smoke", type=int, default=0, metavar="STEPS", help="tiny models, this many steps: a test")
    return parser.parse_args()


if __name__ == "__main__":
    main()

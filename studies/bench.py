"""What studies share: a pocket model on questions, intervals over questions, what is kept, tables between marks."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ramify.bank import Proposal
from ramify.decode import Temperature
from ramify.errors import require
from ramify.keys import generator
from ramify.metrics import Estimate, Percentile, bootstrap_means
from ramify.models import Pocket, decode_with
from ramify.run import Arm
from ramify.tasks import Countdown
from ramify.types import Key, Question, Sampler

__all__ = [
    "Bench",
    "Kept",
    "Measure",
    "Rows",
    "between",
    "measured_once",
    "options_of",
    "over_questions",
    "resampled",
    "sign_flips",
    "tables_written",
    "whole",
]

Asked: TypeAlias = tuple[Question, ...] | list[Question]
Measure: TypeAlias = Callable[[argparse.Namespace], dict[str, Any]]
Rows: TypeAlias = Callable[[dict[str, Any]], Iterator[str]]
PAGE = "search-analysis.md"


class Bench:
    """A pocket model on questions of one task at temperature 1, with what a run needs."""

    def __init__(self, model: Pocket, task: Countdown, asked: Asked, batch: int = 256) -> None:
        self.model, self.task, self.asked = model, task, asked
        self.references = task.references(asked)
        self.sampler: Sampler = decode_with(model, Temperature(1.0), batch=batch)

    def arm(self, run: str, **more: Any) -> Arm:
        """The proposal under the name ``run``; ``more`` is what else is said of it."""
        named = Proposal(run=run, protocol="Temperature(t=1.0)", model=repr(self.model), **more)
        return Arm(named, self.sampler, self.prompt)

    def prompt(self, question: Question) -> tuple[int, ...]:
        return tuple(self.model.encode(question.prompt))

    def parse(self, text: str, question: Question) -> str | None:
        return self.task.parse(text, question).answer

    def grade(self, answer: Any, q: int) -> float:
        return float(self.task.grade(answer, self.references[q]))

    def graded(self, answers: Iterable[Any]) -> list[float]:
        """[Q] of one answer a question."""
        return [float(self.task.grade(each, gold)) for each, gold in zip(answers, self.references, strict=True)]


# ----------------------------------------------------------------------------------------------------------- intervals


def over_questions(values: Any, page: str, replicates: int = 4000) -> Estimate:
    """The mean of ``[Q]`` with its 95 % percentile interval over questions; every page has a stream of its own."""
    return Percentile()(bootstrap_means(np.asarray(values), Key(page, "bootstrap", 0), replicates))


def resampled(values: np.ndarray, rng: np.random.Generator, replicates: int) -> tuple[float, float]:
    """The same interval from questions drawn one by one, for tables that were printed from such a stream."""
    means = values[rng.integers(0, len(values), (replicates, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def sign_flips(values: Any, page: str, flips: int = 20_000) -> float:
    """How often ``[Q]`` differences with random signs have a mean as far from zero: p if neither side is better."""
    values = np.asarray(values)
    signs = generator(Key(page, "flip", 0)).choice([-1.0, 1.0], (flips, len(values)))
    as_far = np.abs(signs @ values) >= np.abs(values.sum()) * (1 - 1e-12)
    return float((1 + as_far.sum()) / (1 + flips))


# -------------------------------------------------------------------------------------------------------- what is kept


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A draft to write into, which becomes ``path`` when it is complete: a file that was cut off is never read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.stem}.{os.getpid()}.part{path.suffix}")  # np.save wants the suffix to be the last
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


class Kept:
    """Measurements by name in one JSON file, each of them kept when it is made: a run goes on where it was stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def __call__(self, name: str, measure: Callable[..., Any], *of: Any) -> Any:
        """What is kept under a name, which is ``measure(*of)`` if nothing is."""
        if name not in self.found:
            self.found[name] = measure(*of)
            with whole(self.path) as draft:
                draft.write_text(json.dumps(self.found))
        return self.found[name]


def measured_once(parts: Mapping[str, Measure], options: argparse.Namespace) -> None:
    """Measure the parts that are not kept yet, a file each."""
    for name, part in parts.items():
        file = _kept(options, name)
        if not file.exists():
            start = time.perf_counter()
            found = part(options)
            with whole(file) as draft:
                draft.write_text(json.dumps({"found": found, "seconds": time.perf_counter() - start}))
        print(f"{name:16s}{json.loads(file.read_text())['seconds']:8.1f} s", flush=True)


def _kept(options: argparse.Namespace, part: str) -> Path:
    return Path(options.cache) / f"{part}-{options.checkpoint}-{options.level}.json"


# --------------------------------------------------------------------------------------------------------------- pages


def between(text: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """The text of a page with ``lines`` between two marks; with no second mark, from the first to the end."""
    require(text.count(begin) == 1, "mark", begin, f"put it on the page once, not {text.count(begin)} times")
    head, _, rest = text.partition(begin)
    require(end in rest, "mark", end, f"put it on the page after {begin}")
    tail = rest.partition(end)[2] if end else ""
    return "\n".join([head + begin, *lines, end + tail])


def tables_written(rows: Mapping[str, Rows], begin: str, end: str, options: argparse.Namespace) -> None:
    """Put the tables of all parts between their marks on the page."""
    page = Path(options.docs) / PAGE
    text = page.read_text()
    for name, table in rows.items():
        found = json.loads(_kept(options, name).read_text())["found"]
        text = between(text, begin.format(name), end.format(name), ["", *table(found), ""])
    page.write_text(text)


def options_of(about: str | None, cache: str) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "write"))
    parser.add_argument("--checkpoint", default="main")
    parser.add_argument("--level", type=int, default=5)
    parser.add_argument("--cache", default=cache)
    parser.add_argument("--docs", default="docs")
    return parser.parse_args()

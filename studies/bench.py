"""What studies of searches share: a pocket model on questions, parts that are measured once, tables between marks."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ramify.bank import Proposal
from ramify.decode import Temperature
from ramify.models import Pocket, decode_with
from ramify.run import Arm
from ramify.tasks import Countdown
from ramify.types import Question, Sampler

__all__ = ["Bench", "Measure", "Rows", "measured_once", "options_of", "tables_written"]

Measure: TypeAlias = Callable[[argparse.Namespace], dict[str, Any]]
Rows: TypeAlias = Callable[[dict[str, Any]], Iterator[str]]
PAGE = "search-analysis.md"


class Bench:
    """A pocket model on questions of one level, with what a search needs."""

    def __init__(self, options: argparse.Namespace, count: int, run: str) -> None:
        self.model, self.task = Pocket(options.checkpoint), Countdown(options.level)
        self.asked = self.task.questions(count, run=run)
        self.references = self.task.references(self.asked)
        self.sampler: Sampler = decode_with(self.model, Temperature(1.0), batch=256)

    def arm(self, run: str) -> Arm:
        named = Proposal(run=run, protocol="Temperature(t=1.0)", model=repr(self.model))
        return Arm(named, self.sampler, self.prompt)

    def prompt(self, question: Question) -> tuple[int, ...]:
        return tuple(self.model.encode(question.prompt))

    def parse(self, text: str, question: Question) -> str | None:
        return self.task.parse(text, question).answer

    def grade(self, answer: Any, q: int) -> float:
        return float(self.task.grade(answer, self.references[q]))


def measured_once(parts: Mapping[str, Measure], options: argparse.Namespace) -> None:
    """Measure the parts that are not kept yet."""
    Path(options.cache).mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        file = _kept(options, name)
        if not file.exists():
            start = time.perf_counter()
            found = part(options)
            partial = file.with_suffix(".partial")  # a file that was cut off is never read
            partial.write_text(json.dumps({"found": found, "seconds": time.perf_counter() - start}))
            partial.replace(file)
        print(f"{name:16s}{json.loads(file.read_text())['seconds']:8.1f} s", flush=True)


def tables_written(rows: Mapping[str, Rows], begin: str, end: str, options: argparse.Namespace) -> None:
    """Put the tables of all parts between their marks on the page."""
    page = Path(options.docs) / PAGE
    text = page.read_text()
    for name, table in rows.items():
        found = json.loads(_kept(options, name).read_text())["found"]
        head, _, rest = text.partition(begin.format(name))
        _, _, tail = rest.partition(end.format(name))
        text = "\n".join([head + begin.format(name), "", *table(found), "", end.format(name) + tail])
    page.write_text(text)


def _kept(options: argparse.Namespace, part: str) -> Path:
    return Path(options.cache) / f"{part}-{options.checkpoint}-{options.level}.json"


def options_of(about: str | None, cache: str) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "write"))
    parser.add_argument("--checkpoint", default="main")
    parser.add_argument("--level", type=int, default=5)
    parser.add_argument("--cache", default=cache)
    parser.add_argument("--docs", default="docs")
    return parser.parse_args()

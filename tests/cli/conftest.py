"""What the tests of the command line share: a way to run it, and files as a newcomer has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest

from ramify.cli import main


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def found(self) -> Any:
        """What --json printed."""
        return json.loads(self.out)


Run: TypeAlias = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")

    def command(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        return Ran(code, *capsys.readouterr())

    return command


def rows(questions: int = 20, n: int = 8, seed: int = 0) -> list[dict[str, Any]]:
    """Answers to made-up questions of two levels, each with its own difficulty."""
    rng = np.random.default_rng(seed)
    found = []
    for q in range(questions):
        p = rng.beta(0.8, 0.8)
        for i in range(n):
            right = bool(rng.random() < p)
            answer = str(q) if right else str(q + 1 + int(rng.integers(3)))
            level = "hard" if q % 2 else "easy"
            found.append(
                {
                    "question_id": f"q{q}",
                    "sample": i,
                    "prediction": answer,
                    "gold": str(q),
                    "correct": right,
                    "level": level,
                }
            )
    return found


def written(name: str, listed: list[dict[str, Any]], leave: tuple[str, ...] = ()) -> Path:
    """The rows as a JSONL file, without some columns."""
    kept = [{key: value for key, value in row.items() if key not in leave} for row in listed]
    path = Path(name)
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    return path

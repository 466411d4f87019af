"""Options that many commands have, so that each means the same everywhere, and how their text is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Canonical",
    "Grades",
    "Json",
    "Level",
    "Maps",
    "Place",
    "Reference",
    "Seed",
    "Task",
    "Threshold",
    "mapping",
    "named",
    "whole",
    "writable",
]

Json = Annotated[bool, typer.Option("--json", help="The same as JSON, for programs.")]
Place = Annotated[
    Path, typer.Argument(metavar="BANK", help="A file (.jsonl, .csv, .parquet, ...), a bank's or a run's directory.")
]
Maps = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="PART=COLUMN", help="Which column of a file plays a part; `PART=` leaves it out."),
]
Reference = Annotated[
    str, typer.Option(metavar="COLUMN", help="Grade a file's answers against this column, which rules never see.")
]
Task = Annotated[
    str,
    typer.Option("--task", metavar="TEXT", help="Read and grade the responses by a task: `Own('questions.csv')`."),
]
Canonical = Annotated[
    bool, typer.Option("--canonical", help="Count the spellings of one answer (`42`, `42.0`) as one.")
]
Grades = Annotated[str, typer.Option("--grades", metavar="NAME", help="Which grades to use, where there are several.")]
Threshold = Annotated[
    float | None, typer.Option(metavar="T", help="Grades between 0 and 1: right is a grade of at least T.")
]
Level = Annotated[float, typer.Option(metavar="SHARE", help="The level of intervals.")]
Seed = Annotated[
    str, typer.Option("--run", metavar="NAME", help="Names the random streams: another name, other draws.")
]


def writable(path: Path, option: str) -> Path:
    """A place for a file, found to be one before any work: its folder is made if it is not there."""
    import os

    from ramify.errors import InvalidValue

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ok, why = os.access(path.parent, os.W_OK) and not path.is_dir(), "it cannot be written there"
    except OSError as error:
        ok, why = False, str(error.strerror)
    if not ok:
        raise InvalidValue(f"{option} {path}: {why}; name a file in a folder of yours")
    return path


def mapping(maps: list[str] | None) -> dict[str, str | None]:
    """``--map PART=COLUMN`` as a mapping; a part without a column is left out."""
    return {part: column or None for part, column in named(maps, "--map", "PART=COLUMN, such as answer=pred").items()}


def named(given: list[str] | None, option: str, form: str) -> dict[str, str]:
    """``NAME=VALUE`` options by name, each name once.

    >>> named(["logp=mean_logprob"], "--evidence", "NAME=TEXT")
    {'logp': 'mean_logprob'}
    """
    from ramify.errors import InvalidValue

    found: dict[str, str] = {}
    for each in given or []:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise InvalidValue(f"{option} {each}: write {form}")
        if name in found:
            raise InvalidValue(f"{option} {each}: {name} is given twice")
        found[name.strip()] = value.strip()
    return found


def whole(listed: str, option: str) -> list[int]:
    """Whole numbers, separated by commas.

    >>> whole("1,2, 8", "--k")
    [1, 2, 8]
    """
    from ramify.errors import InvalidValue

    try:
        found = sorted({int(each) for each in listed.split(",") if each.strip()})
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise InvalidValue(f"{option} {listed}: write numbers >= 1, separated by commas, such as 1,4,16")
    return found

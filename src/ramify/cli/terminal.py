"""What may reach a terminal: text without commands in it, tables, JSON for programs."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["aside", "emit", "jsonable", "number", "printable", "progress", "say", "span", "spoken", "table"]

# CSI and OSC sequences whole, so that their parameters do not stay behind as text.
ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b.?", re.DOTALL
)

# What the library says of its arguments, as options. The first that matches a place is taken.
OPTIONS = (
    (r"mapping\['group\.reference'\] = '([^'\n]*)'", r"--reference \1"),
    (r"mapping\['([^'\n]+)'\] = None", r"--map \1="),
    (r"mapping\['([^'\n]+)'\] = '([^'\n]*)'", r"--map \1=\2"),
    (r"mapping\['([^'\n]+)'\]", r"--map \1"),
    (
        r"pass bottom=\['(\w+)'\] if it means no answer",
        r"`ramify bank import FILE DIR --bottom \1` if it means no answer",
    ),
    (r"pass the file's encoding", r"`ramify bank import FILE DIR --encoding NAME` reads others"),
    (r"say otherwise with proposal=", r"say otherwise with --kind"),
    (
        r"Leaves\.evidence = \[.*?\]: (\w+) needs (\w+)",
        r"--rule: \1 reads the evidence \2: name it, as in --evidence \2=mean_logprob",
    ),
    (
        r"Ledger\.limit = (\S+): use an amount >= 0 \(math\.inf for no limit\)",
        r"--budget \1: use an amount >= 0, or leave it out for no limit",
    ),
    (
        r"hand in Candidates\(utility=\.\.\.\), such as Pairs\.of\(bank, (\w+\(\)), 'text'\)",
        r'say how alike two outputs are, --utility "\1"; `ramify decide` and `ramify compare` take it',
    ),
    (r"(?:BCa|Percentile)\.level = ", r"--level "),
    (r"Proposal\.kind = '(\w*)'", r"--kind \1"),
)


def spoken(text: str) -> str:
    """A message of the library in the words of the command line.

    >>> spoken("a.csv: mapping['answer'] = 'said': no such column")
    'a.csv: --map answer=said: no such column'
    """
    for argument, option in OPTIONS:
        text = re.sub(argument, option, text)
    return text


def printable(text: str) -> str:
    """The text without anything that a terminal would obey: escape sequences, control and direction characters.

    >>> printable("a\\x1b[31mred\\x1b[0m\\x07 \\u202eb\\n")
    'ared b\\n'
    """
    plain = ESCAPES.sub("", text)
    return "".join(c for c in plain if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))


def say(text: str) -> None:
    """Print to standard output, which may be a terminal: model text and file names are nobody's friend."""
    _out(printable(text))


def aside(text: str) -> None:
    """Say something beside the result, on standard error: programs that read the result do not see it."""
    if text:
        print(printable(text), file=sys.stderr)


def _out(text: str) -> None:
    """Print; a reader who has seen enough (``| head``) is no error, and ends the command."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more may be written on the way out
        raise SystemExit(0) from None


def emit(as_json: bool, found: Mapping[str, Any], *texts: str) -> None:
    """What a command found: as JSON for programs, or as text for people."""
    if as_json:
        _out(json.dumps(jsonable(found), indent=2))
        return
    say("\n\n".join(text for text in texts if text))


def jsonable(value: Any) -> Any:
    """Plain dicts, lists, numbers and strings: an estimate becomes its fields, what is not finite becomes null.

    >>> jsonable({"a": float("nan"), "b": (1, 2.5)})
    {'a': None, 'b': [1, 2.5]}
    """
    import dataclasses
    import math

    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    return str(value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Aligned columns under a header; those at ``left`` flush left, numbers flush right. One line a row.

    >>> print(table(["rule", "accuracy"], [["Plurality()", "0.75"], ["Earliest()", "0.5"]]))
    rule         accuracy
    Plurality()      0.75
    Earliest()        0.5
    """
    cells = [[printable(str(cell)).replace("\n", " ").replace("\t", " ") for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines)


def number(value: float | None, digits: int = 3) -> str:
    """A share or a mean; what is not known is a dash, never 0.

    >>> number(0.5), number(float("nan")), number(1234.5, 0)
    ('0.500', '–', '1,234')
    """
    return "–" if value is None or value != value else f"{value:,.{digits}f}"


def span(estimate: Any, digits: int = 3) -> str:
    """The interval of an estimate; a dash where it has none."""
    if not estimate.covers:
        return "–"
    return f"{estimate.low:.{digits}f} to {estimate.high:.{digits}f}"


@contextmanager
def progress(what: str) -> Iterator[Callable[[int], None]]:
    """Tell how far reading and writing is, on standard error and only if somebody watches."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(what), total=None)
        yield lambda rows: bar.update(task, description=f"{printable(what)}: {rows:,} rows")

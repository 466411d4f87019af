"""What may reach a terminal, and how progress is shown there."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["printable", "progress", "say"]

# CSI and OSC sequences whole, so that their parameters do not stay behind as text.
ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b.?", re.DOTALL
)


def printable(text: str) -> str:
    """The text without anything that a terminal would obey: escape sequences, control and direction characters.

    >>> printable("a\\x1b[31mred\\x1b[0m\\x07 \\u202eb\\n")
    'ared b\\n'
    """
    plain = ESCAPES.sub("", text)
    return "".join(c for c in plain if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))


def say(text: str) -> None:
    """Print to standard output, which may be a terminal: model text and file names are nobody's friend."""
    print(printable(text))


@contextmanager
def progress(what: str) -> Iterator[Callable[[int], None]]:
    """Tell how far long work is, on standard error and only if somebody watches."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(what), total=None)
        yield lambda rows: bar.update(task, description=f"{printable(what)}: {rows:,} rows")

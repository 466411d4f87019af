"""Help pages from docstrings: every example is a block that can be copied, whatever the width of the terminal."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterator

import typer

__all__ = ["WIDTH", "folded", "page", "paged"]

WIDTH = 76  # what a block has of 80 columns


def paged(app: typer.Typer) -> None:
    """Set the pages of an app's commands and its own."""
    for command in app.registered_commands:
        command.help = page(command.help or getattr(command.callback, "__doc__", "") or "")
    if isinstance(app.info.help, str):
        app.info.help = page(app.info.help)
    if app.registered_callback is not None:
        own = app.registered_callback
        own.help = page(getattr(own.callback, "__doc__", "") or "")


def page(doc: str) -> str:
    """A docstring with its examples in fences: indented alone, the first of them would be read as prose, and wrap.

    >>> print(page("Do it.\\n\\n    ramify do\\n\\n    ramify do --it\\n\\nThen look."))
    Do it.
    <BLANKLINE>
    ```
    ramify do
    ramify do --it
    ```
    <BLANKLINE>
    Then look.
    """
    found: list[list[str]] = []
    for paragraph in inspect.cleandoc(doc).split("\n\n"):
        if not paragraph.startswith(("    ", "ramify ")):  # prose has its commands in backquotes
            found.append([paragraph])
            continue
        lines = [line for each in paragraph.splitlines() for line in folded(each.strip())]
        if found and found[-1][0] == "```":
            found[-1][-1:] = [*lines, "```"]
        else:
            found.append(["```", *lines, "```"])
    return "\n\n".join("\n".join(each) for each in found)


def folded(command: str, width: int = WIDTH) -> Iterator[str]:
    """The lines of a command: one where it fits, else cut between its words, and continued as shells do.

    >>> print(*folded("ramify decide my.jsonl --rule 'A B' --k 1", 30), sep="\\n")
    ramify decide my.jsonl \\
        --rule 'A B' --k 1
    """
    line = ""
    for word in _words(command):
        if line.strip() and len(line) + len(word) + 3 > width and len(command) > width:
            yield f"{line} \\"
            line = "   "
        line = f"{line} {word}" if line else word
    yield line


def _words(command: str) -> Iterator[str]:
    """Its words as they are written, quotes and all; an option and its value are one."""
    lexer = shlex.shlex(command, posix=False, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words = list(lexer)
    while words:
        word = words.pop(0)
        if word.startswith("-") and words and not words[0].startswith("-"):
            word = f"{word} {words.pop(0)}"
        yield word

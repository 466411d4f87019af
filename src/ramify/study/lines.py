"""Where each key of a TOML file stands: the standard reader gives values without their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["Lines", "index", "nearest_line"]

HEAD = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
KEY = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
STRING = re.compile(r"\"\"\"|'''|\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*")

Lines = dict[tuple[str | int, ...], int]


def index(source: str) -> Lines:
    """Path -> line, from 1: tables by name, the entries of an array of tables by name and number, keys below them.

    >>> index('[study]\\ntitle = "x"\\n[[model]]\\n[[model]]\\nname = "m"\\n')
    {('study',): 1, ('study', 'title'): 2, ('model', 0): 3, ('model',): 3, ('model', 1): 4, ('model', 1, 'name'): 5}
    """
    found: Lines = {}
    table: tuple[str | int, ...] = ()
    count: dict[tuple[str | int, ...], int] = {}
    for number, line in _outside(source):
        if head := HEAD.match(line):
            table = _table(_names(head[2]), head[1] == "[[", count)
            found.setdefault(table, number)
            if head[1] == "[[":
                found.setdefault(table[:-1], number)
        elif key := KEY.match(line):
            names = _names(key[1])
            for depth in range(1, len(names) + 1):
                found.setdefault((*table, *names[:depth]), number)
    return found


def nearest_line(lines: Lines, path: tuple[str | int, ...]) -> int:
    """The line of a path, or of the closest thing above it that has one."""
    if len(path) > 1 and path[1] == 0 and (*path[:1], 0) not in lines:  # a single entry, written [task]
        path = (*path[:1], *path[2:])
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _table(names: list[str], listed: bool, count: dict[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    """The path of a header: below an array of tables it belongs to the last entry."""
    path: tuple[str | int, ...] = ()
    for depth, name in enumerate(names):
        path = (*path, name)
        if depth == len(names) - 1 and listed:
            count[path] = count.get(path, -1) + 1
        if path in count:
            path = (*path, count[path])
    return path


def _names(dotted: str) -> list[str]:
    return [name.strip().strip("\"'") for name in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", dotted) if name.strip()]


def _outside(source: str) -> Iterator[tuple[int, str]]:
    """The lines that begin outside of strings and arrays that run over several."""
    quote, depth = "", 0
    for number, line in enumerate(source.splitlines(), 1):
        if not quote and depth == 0:
            yield number, line
            if HEAD.match(line):
                continue
        quote, depth = _after(line, quote, depth)


def _after(line: str, quote: str, depth: int) -> tuple[str, int]:
    """(the open long quote, how many brackets are open) after a line."""
    at = 0
    while at < len(line):
        if quote:
            end = line.find(quote, at)
            if end < 0:
                return quote, depth
            quote, at = "", end + 3
            continue
        piece = STRING.match(line, at)
        if piece and piece[0] in ('"""', "'''"):
            quote, at = piece[0], at + 3
        elif piece:
            at = piece.end()
        else:
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(line[at], 0)
            at += 1
    return quote, max(depth, 0)

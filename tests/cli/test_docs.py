"""The console examples of the pages, run as they stand: ``$ cat FILE`` makes the file it shows."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramify.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page for page in sorted(DOCS.glob("*.md")) if "```console" in page.read_text()]


def examples(page: Path) -> Iterator[tuple[str, str]]:
    """(command, what it prints) for every command of a page."""
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = example.partition("\n")
            yield command, output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_console_examples_of_a_page_print_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command, expected in examples(page):
        program, *arguments = shlex.split(command)
        if program == "cat":
            Path(arguments[0]).write_text(expected)
            continue
        assert program == "ramify", command
        code = main(arguments)
        out, err = capsys.readouterr()
        told = "".join(line for line in err.splitlines(keepends=True) if line.startswith("ramify: "))  # no progress
        same = doctest.OutputChecker().check_output(expected, out + told, doctest.ELLIPSIS)
        assert same, f"$ {command}\n{out}{err}"
        assert code == (2 if told else 0)


def test_there_are_pages_with_console_examples() -> None:
    assert {"banks.md", "cli.md"} <= {page.name for page in PAGES}

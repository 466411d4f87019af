"""Help: every command teaches with examples, and none of it loads what is heavy."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import ramify
from ramify.cli.app import app
from tests.cli.conftest import Run

PROGRAM = """
import sys
from ramify.cli import main
for words in {commands!r}:
    assert main([*words, "--help"]) == 0
heavy = {{"numpy", "scipy", "pyarrow", "pandas", "torch", "pydantic", "numba"}} & set(sys.modules)
assert not heavy, heavy
"""


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command by the words that call it."""
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


ALL = list(commands(typer.main.get_command(app)))


def test_no_help_imports_anything_heavy() -> None:
    env = {"PYTHONPATH": str(Path(ramify.__file__).parent.parent)}
    program = PROGRAM.format(commands=ALL)
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("words", [words for words in ALL if words], ids=" ".join)
def test_every_command_teaches_with_an_example_of_itself(run: Run, words: tuple[str, ...]) -> None:
    ran = run(*words, "--help")
    assert ran.code == 0
    assert f"ramify {' '.join(words)}" in ran.out.partition("Usage")[2].partition("\n")[2], "an example, not the usage"


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "ramify")
def test_an_example_can_be_copied_at_80_columns(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Every command that a docstring sets apart stands on lines of its own, continued as a shell would have it."""
    monkeypatch.setenv("COLUMNS", "80")
    command = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands")[word]  # noqa: B009
    lines = [line.rstrip() for line in run(*words, "--help").out.splitlines()]
    text = command.help or ""
    blocks = [block.strip() for block in text.split("```")[1::2]]
    assert blocks
    assert not [line for line in text.split("```")[0::2] if line.strip().startswith("ramify ")]
    for block in blocks:
        shown = [f"  {line}" for line in block.splitlines()]
        assert any(lines[i : i + len(shown)] == shown for i in range(len(lines))), block
        for each in block.replace("\\\n", " ").splitlines():
            assert shlex.split(each)[0] == "ramify"


@pytest.mark.parametrize(
    "words", [words for words in ALL if words and words not in (("bank",), ("audit",))], ids=" ".join
)
def test_every_command_speaks_json(run: Run, words: tuple[str, ...]) -> None:
    assert "--json" in run(*words, "--help").out


def test_the_help_names_the_exit_codes(run: Run) -> None:
    page = " ".join(run("--help").out.split())
    for words in ("0 done", "1 a check failed", "2 bad input", "130 interrupted"):
        assert words in page


def test_help_is_for_the_command_that_the_words_name(run: Run) -> None:
    assert "ramify bank import" in run("bank", "import", "--help").out
    assert "ramify bank import" in run("bank", "import", "x.csv", "--help").out
    assert "Usage: ramify [OPTIONS]" in run("--help").out


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    env = {"PYTHONPATH": str(Path(ramify.__file__).parent.parent)}
    program = [sys.executable, "-m", "ramify.cli", "methods"]
    with subprocess.Popen(program, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()  # before anything is written
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_completion_can_be_installed(run: Run) -> None:
    assert "--install-completion" in run("--help").out

"""The examples of README and the pages that are no doctests, run as they stand; and what the pages must have.

``$ cat FILE`` makes the file it shows. The server that pages talk to stands at one address and has one name; here a
server of ours stands in for it.
"""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ramify.cli import main
from ramify.describe import methods
from ramify.written import presets
from tests.models.faulty import Faulty

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS, NAME = "http://127.0.0.1:8000/v1", "Qwen3-4B-Thinking-2507"  # what pages call their server


def fences(page: Path, language: str) -> list[str]:
    return [body for spoken, body in FENCE.findall(page.read_text()) if spoken == language]


PAGES = [page for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if fences(page, "console")]


class Served(Faulty):
    """A server as the pages describe theirs: of that name, with room for long answers."""

    async def _reply(self, writer: Any, path: str, said: dict[str, str], body: dict[str, Any]) -> bool:
        if path.endswith("/models"):
            return await self._send(writer, 200, {"data": [{"id": NAME, "max_model_len": 40960}]})
        if path.endswith("/tokenize"):
            return await self._send(writer, 200, {"count": 7})
        return await super()._reply(writer, path, said, body)


@pytest.fixture
def server() -> Iterator[Served]:
    running = Served()
    with running:
        yield running


def examples(page: Path) -> Iterator[tuple[list[str], str]]:
    """(words of the command, what it prints) for every command of a page."""
    for block in fences(page, "console"):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = example.replace("\\\n", " ").partition("\n")
            yield shlex.split(command, comments=True), output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_console_examples_of_a_page_print_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], server: Served
) -> None:
    monkeypatch.chdir(tmp_path)
    for (program, *arguments), expected in examples(page):
        if program == "cat":
            Path(arguments[0]).write_text(expected)
            continue
        if program == "make":
            planned(*arguments)
            continue
        assert program == "ramify", program
        code = main([word.replace(ADDRESS, server.url) for word in arguments])
        out, err = capsys.readouterr()
        told = "".join(line for line in err.splitlines(keepends=True) if line.startswith("ramify: "))  # no progress
        same = doctest.OutputChecker().check_output(expected, out + told, doctest.ELLIPSIS)
        assert same, f"$ ramify {shlex.join(arguments)}\n{out}{err}"
        assert code == (2 if told else 0)


def planned(target: str) -> None:
    """A target of the Makefile, which these tests may be running under: it is there, and make knows what to do."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_pages_with_console_examples() -> None:
    assert {"README.md", "banks.md", "cli.md"} <= {page.name for page in PAGES}


def test_the_links_of_readme_lead_somewhere() -> None:
    """The site's own are checked by mkdocs; README is no page of it."""
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text())
    assert [link for link in links if not (ROOT / link).is_file()] == []


# ------------------------------------------------------------------------------------------- Python without a prompt

PLAIN = [page for page in sorted(DOCS.rglob("*.md")) if any(">>>" not in body for body in fences(page, "python"))]


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: page.name)
def test_python_without_a_prompt_runs_after_the_blocks_before_it(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Served
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", "a key")
    Path("questions.jsonl").write_text('{"id": "times", "question": "What is 6 times 7?", "answer": "42"}\n')
    names: dict[str, Any] = {"__name__": page.stem}
    blocks = fences(page, "python")
    last = max(i for i, body in enumerate(blocks) if ">>>" not in body)
    for body in blocks[: last + 1]:
        prompted = "".join(example.source for example in doctest.DocTestParser().get_examples(body))
        exec((prompted or body).replace(ADDRESS, server.url), names)
    assert server.answered.total() > 0, "it talked to the server"


def test_no_code_hides_in_a_fence_that_nobody_runs() -> None:
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        hidden = [body for kind in ("", "text") for body in fences(page, kind) if re.search(r"^(from|import) ", body)]
        assert not hidden, page


# ------------------------------------------------------------------------------------------------ the page of methods


def test_the_page_of_methods_has_every_method_with_fields_it_has() -> None:
    """All that ``ramify methods`` lists. Fields that many rules share are said once, so a row may leave some out."""
    shown = " ".join(re.findall(r"`([^`]+)`", (DOCS / "methods.md").read_text()))
    listed: dict[str, Callable[..., Any]] = {**{cls.__name__: cls for cls in methods()}, **presets()}
    for name, made in listed.items():
        found = re.search(rf"\b{name}\b(?:\(([^)]*)\))?", shown)
        assert found, f"docs/methods.md lacks {name}"
        fields = iter(inspect.signature(made).parameters)
        written = [field.strip(" *") for field in (found[1] or "").split(",") if field.strip()]
        assert all(field in fields for field in written), f"docs/methods.md: {found[0]}, of {inspect.signature(made)}"

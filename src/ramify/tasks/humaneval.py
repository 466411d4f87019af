"""HumanEval-style code: 164 functions to be written, graded by running their tests in a box (Chen et al., 2021)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Checked
from ramify.tasks.extract.code import CodeBlock
from ramify.tasks.extract.parsed import Parsed
from ramify.tasks.loading import bench
from ramify.tasks.loading.files import Record
from ramify.tasks.loading.spec import Spec
from ramify.tasks.sandbox.box import Box
from ramify.types import Question

__all__ = ["HumanEval", "program"]

PROMPT = "Complete this function. Write the whole program in one Python code block.\n\n```python\n{question}\n```"
# The word that a passed test says is read before the candidate runs, and is not in the file: a program that ends early,
# with whatever exit status, has not said it.
HARNESS = """\
import sys
def _judge():
    word = sys.stdin.readline()
    space = {{"__name__": "candidate"}}
    exec(compile({candidate!r}, "candidate.py", "exec"), space)
    exec(compile({test!r}, "test.py", "exec"), space)
    space["check"](space[{entry!r}])
    sys.__stdout__.write("\\n" + word)
    sys.__stdout__.flush()
_judge()
"""


def tests_of(record: Record) -> str:
    """What makes a program right: its tests, the name that they call, and the lines that it may rely on."""
    parts = {"test": record["test"], "entry": record["entry_point"], "prompt": record["prompt"]}
    return json.dumps(parts, sort_keys=True)


def program(answer: str, reference: str) -> str:
    """The program that runs the tests on a candidate. A body alone goes under the prompt's signature."""
    parts = json.loads(reference)
    whole = f"def {parts['entry']}" in answer
    candidate = _imports(parts["prompt"]) + answer if whole else parts["prompt"] + answer
    return HARNESS.format(candidate=candidate, test=parts["test"], entry=parts["entry"])


def _imports(prompt: str) -> str:
    lines = [line for line in prompt.splitlines() if line.startswith(("import ", "from "))]
    return "".join(f"{line}\n" for line in lines)


@method
class HumanEval:
    """The 164 problems, or a file of one's own in their format (task_id, prompt, test, entry_point).

    A candidate runs in the box's process that also holds the tests, so a hostile one can still look for what they
    say; it cannot reach anything outside. Several candidates that pass are all right: outcomes, not votes on text.
    """

    source: str = "hub"
    verify: str = "answers"
    box: Box = Box()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="HumanEval",
        files=("HumanEval", "humaneval", "test"),
        count=164,
        hub=("openai/openai_humaneval", None, "test"),
        prompt=PROMPT,
        question=("prompt",),
        final=tests_of,
    )

    items = bench.items
    questions = bench.questions
    references = bench.references
    grade = bench.grade

    def __post_init__(self) -> None:
        bench.fields_ok(self)

    def parse(self, text: str, question: Question | None = None) -> Parsed:  # noqa: ARG002
        """The last Python block."""
        return CodeBlock()(text)

    def verdicts(self, pairs: Sequence[tuple[str | None, str]]) -> list[Checked]:
        """Run each program with its tests; the verdict says what containment it had."""
        return [self.ran(answer, reference) for answer, reference in pairs]

    def ran(self, answer: str | None, reference: str) -> Checked:
        """The verdict on one program."""
        if answer is None:
            return Checked(False, "exact", why="no answer")
        word = secrets.token_hex(16)
        ran = self.box(program(answer, reference), f"{word}\n")
        passed = ran.output.endswith(f"\n{word}\n")
        status = "timeout" if ran.status == "timeout" else "refused" if ran.status == "output" else "ok"
        last = ran.errors.strip().splitlines()[-1:] or [""]
        return Checked(passed and ran.ok, "exact", status, why=f"{ran.containment}; {last[0][:200]}".rstrip("; "))

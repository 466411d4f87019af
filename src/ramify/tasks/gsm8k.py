"""GSM8K: 1,319 word problems of grade school, with a number at the end of the solution (Cobbe et al., 2021)."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Ladder
from ramify.tasks.extract.choice import LastNumber
from ramify.tasks.extract.parsed import Parsed
from ramify.tasks.loading import bench
from ramify.tasks.loading.files import Record
from ramify.tasks.loading.spec import Spec
from ramify.types import Question

__all__ = ["GSM8K"]


def last_line(record: Record) -> str:
    """The number after ``####``.

    >>> last_line({"answer": "So 1,200 + 34.\\n#### 1,234"})
    '1234'
    """
    return str(record["answer"]).rpartition("####")[2].strip().replace(",", "")


@method
class GSM8K:
    """The 1,319 test problems. A number counts where it is boxed, marked, said to be the answer, or last."""

    source: str = "hub"
    verify: str = "answers"
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="GSM8K",
        files=("gsm8k_test", "gsm8k", "test"),
        count=1319,
        hub=("openai/gsm8k", "main", "test"),
        final=last_line,
        answers="a011955038d9016e",
    )

    items = bench.items
    questions = bench.questions
    references = bench.references
    verdicts = bench.checked_by
    grade = bench.grade

    def __post_init__(self) -> None:
        bench.fields_ok(self)

    def parse(self, text: str, question: Question | None = None) -> Parsed:  # noqa: ARG002
        """The number, in the form that is voted on."""
        return LastNumber(self.vote)(text)

"""HMMT February 2025: numbers, radicals, lists."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Ladder
from ramify.tasks.loading import bench
from ramify.tasks.loading.spec import Spec

__all__ = ["HMMTFeb2025"]


@method
class HMMTFeb2025:
    """The 30 problems of the Harvard-MIT tournament in February 2025."""

    source: str = "hub"
    verify: str = "answers"
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="HMMTFeb2025",
        files=(
            "hmmt_feb_2025",
            "hmmt2025",
        ),
        count=30,
        hub=("MathArena/hmmt_feb_2025", None, "train"),
        answers="15b8a3cff0691deb",
        groups=(("type", ("problem_type", "subject")),),
    )

    items = bench.items
    questions = bench.questions
    references = bench.references
    parse = bench.parse_boxed
    verdicts = bench.checked_by
    grade = bench.grade

    def __post_init__(self) -> None:
        bench.fields_ok(self)

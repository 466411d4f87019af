"""HMMT November 2025: numbers, radicals, lists."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Ladder
from ramify.tasks.loading import bench
from ramify.tasks.loading.spec import Spec

__all__ = ["HMMTNov2025"]


@method
class HMMTNov2025:
    """The 30 problems of the Harvard-MIT tournament in November 2025."""

    source: str = "hub"
    verify: str = "answers"
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="HMMTNov2025",
        files=("hmmt_nov_2025",),
        count=30,
        hub=("MathArena/hmmt_nov_2025", None, "train"),
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

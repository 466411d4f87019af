"""HMMT February 2026: numbers, radicals, lists."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Ladder
from ramify.tasks.loading import bench
from ramify.tasks.loading.spec import Spec

__all__ = ["HMMTFeb2026"]


@method
class HMMTFeb2026:
    """The 33 problems of the Harvard-MIT tournament in February 2026."""

    source: str = "hub"
    verify: str = "answers"
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="HMMTFeb2026",
        files=("hmmt_feb_2026",),
        count=33,
        hub=("MathArena/hmmt_feb_2026", None, "train"),
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

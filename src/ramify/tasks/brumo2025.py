"""BrUMO 2025: numbers, radicals, powers."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Ladder
from ramify.tasks.loading import bench
from ramify.tasks.loading.spec import Spec

__all__ = ["BRUMO2025"]


@method
class BRUMO2025:
    """The 30 problems of the Brown tournament in 2025."""

    source: str = "hub"
    verify: str = "answers"
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="BRUMO2025",
        files=("brumo_2025",),
        count=30,
        hub=("MathArena/brumo_2025", None, "train"),
        answers="95d0f090390e82ce",
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

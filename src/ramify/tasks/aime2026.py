"""AIME 2026: both papers, integers from 0 to 999."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Ladder
from ramify.tasks.loading import bench
from ramify.tasks.loading.spec import Spec

__all__ = ["AIME2026"]


@method
class AIME2026:
    """The 30 problems of AIME I and II, 2026."""

    source: str = "hub"
    verify: str = "answers"
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="AIME2026",
        files=(
            "aime_2026",
            "aime2026",
            "aime26",
        ),
        count=30,
        hub=("MathArena/aime_2026", None, "train"),
        answers="9218a701c9de356d",
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

"""CMIMC 2025: numbers and expressions."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Ladder
from ramify.tasks.loading import bench
from ramify.tasks.loading.spec import Spec

__all__ = ["CMIMC2025"]


@method
class CMIMC2025:
    """The 40 problems of the Carnegie Mellon tournament in 2025."""

    source: str = "hub"
    verify: str = "answers"
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="CMIMC2025",
        files=("cmimc_2025",),
        count=40,
        hub=("MathArena/cmimc_2025", None, "train"),
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

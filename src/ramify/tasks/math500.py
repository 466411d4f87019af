"""MATH-500: 500 problems of the MATH test set, in seven subjects and five levels (Lightman et al., 2023)."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Ladder
from ramify.tasks.loading import bench
from ramify.tasks.loading.spec import Spec

__all__ = ["MATH500"]

SUBJECTS = (
    ("Algebra", 124),
    ("Counting & Probability", 38),
    ("Geometry", 41),
    ("Intermediate Algebra", 97),
    ("Number Theory", 62),
    ("Prealgebra", 82),
    ("Precalculus", 56),
)
LEVELS = (("1", 43), ("2", 90), ("3", 105), ("4", 128), ("5", 134))


@method
class MATH500:
    """The 500 problems, grouped by subject and level."""

    source: str = "hub"
    verify: str = "answers"
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="MATH500",
        files=("math500", "math_500", "MATH-500", "test"),
        count=500,
        hub=("HuggingFaceH4/MATH-500", None, "test"),
        question=("problem", "question"),
        answer=("answer",),
        groups=(("subject", ("subject", "type")), ("level", ("level",))),
        sizes=(("subject", SUBJECTS), ("level", LEVELS)),
        answers="a1bede7102f77917",
    )

    items = bench.items
    questions = bench.questions
    references = bench.references
    parse = bench.parse_boxed
    verdicts = bench.checked_by
    grade = bench.grade

    def __post_init__(self) -> None:
        bench.fields_ok(self)

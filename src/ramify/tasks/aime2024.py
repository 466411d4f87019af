"""AIME 2024: both papers, integers from 0 to 999."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.checking.ladder import Ladder
from ramify.tasks.loading import bench
from ramify.tasks.loading.spec import Spec

__all__ = ["AIME2024"]


@method
class AIME2024:
    r"""The 30 problems of AIME I and II, 2024.

    >>> task = AIME2024()
    >>> parsed = task.parse(r"<think>...</think>So \boxed{0204}.")
    >>> parsed.answer, task.grade(parsed.answer, "204"), task.grade(None, "204")
    ('204', 1.0, 0.0)
    """

    source: str = "hub"
    verify: str = "answers"
    vote: str = "canonical"
    ladder: Ladder = Ladder()

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="AIME2024",
        files=(
            "aime_2024",
            "aime2024",
            "aime24",
        ),
        count=30,
        hub=("HuggingFaceH4/aime_2024", None, "train"),
        answers="d5c0989a943a83fd",
    )

    items = bench.items
    questions = bench.questions
    references = bench.references
    parse = bench.parse_boxed
    verdicts = bench.checked_by
    grade = bench.grade

    def __post_init__(self) -> None:
        bench.fields_ok(self)

"""MMLU-Pro: 12,032 questions with up to ten options in 14 domains (Wang et al., 2024)."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.tasks.loading import bench
from ramify.tasks.loading.options import with_options
from ramify.tasks.loading.spec import Spec

__all__ = ["MMLUPro"]

DOMAINS = (
    ("biology", 717),
    ("business", 789),
    ("chemistry", 1132),
    ("computer science", 410),
    ("economics", 844),
    ("engineering", 969),
    ("health", 818),
    ("history", 381),
    ("law", 1101),
    ("math", 1351),
    ("other", 924),
    ("philosophy", 499),
    ("physics", 1299),
    ("psychology", 798),
)
PROMPT = '{question}\n\nThink step by step, and finish with "the answer is (X)", where X is the letter of an option.'


@method
class MMLUPro:
    """The 12,032 test questions, graded by the final option letter."""

    source: str = "hub"
    verify: str = "answers"

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="MMLUPro",
        files=("mmlu_pro", "mmlu-pro", "MMLU-Pro", "test"),
        count=12_032,
        hub=("TIGER-Lab/MMLU-Pro", None, "test"),
        prompt=PROMPT,
        shown=with_options,
        answer=("answer",),
        groups=(("domain", ("category", "domain")),),
        sizes=(("domain", DOMAINS),),
    )

    items = bench.items
    questions = bench.questions
    references = bench.references
    parse = bench.parse_letter
    verdicts = bench.checked_exactly
    grade = bench.grade

    def __post_init__(self) -> None:
        bench.fields_ok(self)

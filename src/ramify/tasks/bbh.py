"""BIG-Bench Hard: 6,511 questions in 23 tasks, 27 files, with flexible extraction (Suzgun et al., 2022)."""

from __future__ import annotations

from typing import ClassVar

from ramify.describe import method
from ramify.errors import require
from ramify.tasks.extract.flexible import Flexible
from ramify.tasks.extract.parsed import Parsed
from ramify.tasks.loading import bench
from ramify.tasks.loading.spec import Spec
from ramify.types import Question

__all__ = ["BBH", "suite_of"]

# What the answers of a task are; every other task asks for an option letter.
KINDS = {
    "boolean_expressions": "true or false",
    "causal_judgement": "yes or no",
    "dyck_languages": "brackets",
    "formal_fallacies": "valid or invalid",
    "multistep_arithmetic_two": "number",
    "navigate": "yes or no",
    "object_counting": "number",
    "sports_understanding": "yes or no",
    "web_of_lies": "yes or no",
    "word_sorting": "words",
}
SHORT = {"causal_judgement": 187, "penguins_in_a_table": 146, "snarks": 178}  # every other file has 250
FILES = (
    "boolean_expressions causal_judgement date_understanding disambiguation_qa dyck_languages formal_fallacies "
    "geometric_shapes hyperbaton logical_deduction_five_objects logical_deduction_seven_objects "
    "logical_deduction_three_objects movie_recommendation multistep_arithmetic_two navigate object_counting "
    "penguins_in_a_table reasoning_about_colored_objects ruin_names salient_translation_error_detection snarks "
    "sports_understanding temporal_sequences tracking_shuffled_objects_five_objects "
    "tracking_shuffled_objects_seven_objects tracking_shuffled_objects_three_objects web_of_lies word_sorting"
)
PROMPT = '{question}\n\nThink step by step, and finish with "the answer is" and your answer.'


def suite_of(task: str) -> str:
    """The task that a file belongs to: three sizes of two puzzles are one task each.

    >>> suite_of("logical_deduction_five_objects"), suite_of("navigate")
    ('logical_deduction', 'navigate')
    """
    for suite in ("logical_deduction", "tracking_shuffled_objects"):
        if task.startswith(suite):
            return suite
    return task


@method
class BBH:
    """The 6,511 questions, grouped by file (27) and suite (23). The question's group says what is looked for.

    Three references of two files are words where every other one is a letter; no letter is right there.
    """

    source: str = "hub"
    verify: str = "answers"

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="BBH",
        files=("bbh", "BBH"),
        count=6511,
        hub=("SaylorTwift/bbh", None, "test"),
        prompt=PROMPT,
        question=("input",),
        answer=("target",),
        groups=(("task", ("task",)),),
        sizes=(("task", tuple((name, SHORT.get(name, 250)) for name in FILES.split())),),
        answers="720cf052b32fa7e2",
        parts=tuple(FILES.split()),
    )

    items = bench.items
    references = bench.references
    verdicts = bench.checked_exactly
    grade = bench.grade

    def __post_init__(self) -> None:
        bench.fields_ok(self)

    def questions(self, n: int | None = None) -> tuple[Question, ...]:
        """The questions, with the suite of each beside its file."""
        found = bench.questions(self, n)
        return tuple(Question(q.id, q.prompt, {**q.groups, "suite": suite_of(q.groups["task"])}) for q in found)

    def parse(self, text: str, question: Question | None = None) -> Parsed:
        """The kind of answer that the question's task asks for."""
        task = "" if question is None else question.groups.get("task", "")
        require(task, "question", question, "hand in the question: its task says what an answer looks like")
        return Flexible(KINDS.get(task, "letter"))(text)

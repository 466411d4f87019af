"""SuperGPQA: a field-balanced sample, 50 questions of each of 72 fields, out of 26,529 (M-A-P, 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ramify.describe import method
from ramify.errors import InvalidValue
from ramify.keys import permutation
from ramify.tasks.loading import bench
from ramify.tasks.loading.options import with_options
from ramify.tasks.loading.spec import Item, Spec
from ramify.tasks.mmlupro import PROMPT
from ramify.types import Key

__all__ = ["SuperGPQA", "balanced"]

FIELDS, EACH = 72, 50


def balanced(items: Sequence[Item], run: str) -> Sequence[Item]:
    """Fifty items of every field, drawn by ``Key(run, field, 0, "sample")`` from the field's items in order of id.

    What the file's order is does not matter, and every field's choice is its own.
    """
    fields: dict[str, list[Item]] = {}
    for item in items:
        fields.setdefault(dict(item.groups).get("field", ""), []).append(item)
    few = [f"{name or '(none)'}: {len(found)}" for name, found in fields.items() if len(found) < EACH]
    if few or len(fields) != FIELDS:
        raise InvalidValue(
            f"SuperGPQA has {len(fields)} of {FIELDS} fields, and too few questions in {', '.join(few[:5]) or 'none'}: "
            f"the sample takes {EACH} of each; use the whole file, or verify='none' with one that was drawn before"
        )
    chosen: list[Item] = []
    for name in sorted(fields):
        ordered = sorted(fields[name], key=lambda item: item.id)
        chosen += [ordered[i] for i in permutation(Key(run, name, 0, "sample"), len(ordered))[:EACH]]
    return chosen


@method
class SuperGPQA:
    """3,600 questions in 72 fields. ``run`` names the stream that draws them: another name, another sample."""

    source: str = "hub"
    verify: str = "answers"
    run: str = "supergpqa"

    answers: ClassVar[str] = "verifiable"
    turns: ClassVar[str] = "single-turn"
    spec: ClassVar[Spec] = Spec(
        name="SuperGPQA",
        files=("SuperGPQA-all", "supergpqa", "train"),
        count=FIELDS * EACH,
        hub=("m-a-p/SuperGPQA", None, "train"),
        prompt=PROMPT,
        shown=with_options,
        answer=("answer_letter",),
        groups=(
            ("field", ("field",)),
            ("discipline", ("discipline",)),
            ("subfield", ("subfield",)),
            ("level", ("difficulty",)),
        ),
        sample=balanced,
        total=26_529,
    )

    items = bench.items
    questions = bench.questions
    references = bench.references
    parse = bench.parse_letter
    verdicts = bench.checked_exactly
    grade = bench.grade

    def __post_init__(self) -> None:
        bench.fields_ok(self)

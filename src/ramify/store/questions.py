"""Questions as files: what was asked, with the place of each in the bank's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from ramify.store.manifest import Entry
from ramify.store.parquet import Parquet
from ramify.types import Question

__all__ = ["Asked", "ordered", "question_table", "read_questions"]

Asked: TypeAlias = list[tuple[Question, int]]  # questions and their positions
QUESTIONS = pa.schema(
    [
        pa.field("question", pa.string(), nullable=False),
        pa.field("prompt", pa.large_string(), nullable=False),
        pa.field("groups", pa.map_(pa.string(), pa.string())),
        pa.field("position", pa.int64(), nullable=False),
    ]
)


def read_questions(folder: Path, live: Mapping[str, Entry]) -> Asked:
    """What the question files say, in the order they became durable."""
    files = [folder / entry.file for entry in live.values() if entry.kind == "questions"]
    rows = [row for file in files for row in Parquet(file).read().to_pylist()]
    return [(Question(row["question"], row["prompt"], dict(row["groups"] or [])), row["position"]) for row in rows]


def ordered(questions: Sequence[tuple[Question, int]]) -> Asked:
    """Each question once, in order of position, then id. Of several records of one the first counts."""
    found: dict[str, tuple[Question, int]] = {}
    for question, position in questions:
        found.setdefault(question.id, (question, position))
    return sorted(found.values(), key=lambda each: (each[1], each[0].id))


def question_table(questions: Sequence[tuple[Question, int]]) -> pa.Table:
    rows = [
        {"question": each.id, "prompt": each.prompt, "groups": sorted(each.groups.items()), "position": position}
        for each, position in questions
    ]
    return pa.Table.from_pylist(rows, schema=QUESTIONS)

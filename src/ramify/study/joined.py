"""Several question sets as one task: what a study pools, with each set still a group of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from ramify.describe import method
from ramify.errors import InvalidValue, require
from ramify.types import Question

__all__ = ["Joined", "with_effort"]

SET = "set"  # the group that says which of the tasks a question is of


class Reference(NamedTuple):
    """A reference with the task that can read it."""

    name: str
    gold: Any

    def __str__(self) -> str:
        return str(self.gold)  # as a grader is shown it


@method
class Joined:
    """Tasks whose questions are pooled, item by item. Not for suites that must not be averaged: name those apart.

    >>> from ramify.tasks import Countdown
    >>> task = Joined(Countdown(3), Countdown(4))
    >>> [question.groups["set"] for question in task.questions(2)]
    ['Countdown(3)', 'Countdown(3)', 'Countdown(4)', 'Countdown(4)']
    """

    tasks: tuple[Any, ...]

    def __init__(self, *tasks: Any) -> None:
        require(len(tasks) > 0, "Joined.tasks", tasks, "name the tasks to pool")
        names = [short(task) for task in tasks]
        require(len(set(names)) == len(names), "Joined.tasks", names, "name each task once")
        object.__setattr__(self, "tasks", tasks)

    def questions(self, n: int | None = None, **options: Any) -> tuple[Question, ...]:
        """``n`` questions of each task, or all there are."""
        found: list[Question] = []
        for task in self.tasks:
            asked = task.questions(**options) if n is None else task.questions(n, **options)
            found += [dataclasses.replace(each, groups={**each.groups, SET: short(task)}) for each in asked]
        return tuple(found)

    def references(self, questions: Sequence[Question]) -> tuple[Reference, ...]:
        """The reference of each question, with the name of its task."""
        found: dict[str, Reference] = {}
        for task in self.tasks:
            mine = [question for question in questions if question.groups.get(SET) == short(task)]
            for question, gold in zip(mine, task.references(mine), strict=True):
                found[question.id] = Reference(short(task), gold)
        return tuple(found[question.id] for question in questions)

    def parse(self, text: str, question: Question) -> Any:
        """What the question's own task reads."""
        return self._task(question.groups.get(SET, "")).parse(text, question)

    def grade(self, answer: Any, reference: Reference) -> float:
        """What the reference's own task says."""
        return float(self._task(reference.name).grade(answer, reference.gold))

    def _task(self, name: str) -> Any:
        for task in self.tasks:
            if short(task) == name:
                return task
        raise InvalidValue(f"Question.groups[{SET!r}] = {name!r}: use a question of this task")


def short(task: Any) -> str:
    """A task in few words: its class, and those of its fields that are no defaults.

    The effort is not among them: a model that is asked at another one is asked questions of the same set.
    """
    fields = [each for each in dataclasses.fields(task) if each.name != "effort"]
    said = [getattr(task, each.name) for each in fields if getattr(task, each.name) != each.default]
    return f"{type(task).__name__}({', '.join(map(repr, said))})" if said else type(task).__name__


def with_effort(task: Any, effort: str) -> Any:
    """The same questions at another reasoning effort, for tasks that are asked at one."""
    if isinstance(task, Joined):
        return Joined(*(with_effort(each, effort) for each in task.tasks))
    fields = [each.name for each in dataclasses.fields(task)] if dataclasses.is_dataclass(task) else []
    require("effort" in fields, "effort", effort, f"{task!r} is not asked at an effort: leave it out")
    return dataclasses.replace(task, effort=effort)

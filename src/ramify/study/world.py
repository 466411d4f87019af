"""What a study meets: questions, references, prompts and samplers. Everything is asked for before anything is run."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Outcomes
from ramify.errors import InvalidValue, RamifyError
from ramify.kinds import brief
from ramify.ledger import Work
from ramify.models import FinishedHead, Heads, OutcomeHead, ProcessHead, ValueHead
from ramify.models.pocket.heads import middle_of
from ramify.run.leaf import OnlineConfidence
from ramify.stop import LowConfidence
from ramify.study.file import Source
from ramify.study.joined import Joined, with_effort
from ramify.study.source import answers, cannot_judge, proposal_of
from ramify.study.spec import Protocol, Study, System, Tasked
from ramify.study.valid import Problem, nearest, parts
from ramify.types import Question

__all__ = ["Asked", "World", "meet", "preflight"]


@dataclasses.dataclass(frozen=True, eq=False)
class Asked:
    """The questions of a task as one configuration is asked them, and what grades their answers: behind the wall."""

    task: Any
    questions: tuple[Question, ...]
    references: tuple[Any, ...]
    absent: str = ""  # why the questions are stand-ins, counted and no more

    @property
    def gold(self) -> str:
        """A digest of the references: what was graded against others is not what is there."""
        return blake2b(repr(self.references).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def parse(self, text: str, question: Question) -> Any:
        return self.task.parse(text, question).answer

    def grades(self, answers: Sequence[Any]) -> Array:
        """[Q] what submitted answers are worth."""
        pairs = zip(answers, self.references, strict=True)
        return np.array([float(self.task.grade(answer, gold)) for answer, gold in pairs], dtype=np.float64)

    def outcomes(self, bank: Bank) -> Outcomes:
        """The grades of a bank: each distinct answer is graded once."""
        values = np.full(bank.shape, np.nan)
        for q, (texts, gold) in enumerate(zip(bank.answer_text, self.references, strict=True)):
            worth = np.array([float(self.task.grade(answer, gold)) for answer in (*texts, None)])  # the last is ⊥
            values[q] = worth[bank.answers[q]]
        return Outcomes.of(bank, values, f"{self.task!r}.grade")


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """Questions by task and model; a model at another effort is asked the same ones in other words."""

    asked: dict[tuple[str, str], Asked]

    def of(self, task: Tasked, model: System) -> Asked:
        return self.asked[task.name, model.name]


def meet(source: Source, *, offline: bool = False) -> World:
    """Ask every task and model for what the study needs of it; ``StudyError`` says all that is missing, by line."""
    study, wrong, asked = source.study, list[Problem](), dict[tuple[str, str], Asked]()
    cells = {(task.name, model.name) for task, model, _ in study.cells()}
    known: dict[tuple[str, str], Asked] = {}  # by task and effort: questions are loaded once
    for i, task in enumerate(study.tasks):
        for j, model in enumerate(study.models):
            if (task.name, model.name) not in cells:
                continue
            try:
                if (task.name, model.effort) not in known:
                    known[task.name, model.effort] = _asked(task, model, offline)
                asked[task.name, model.name] = known[task.name, model.effort]
            except _Missing as error:
                path = ("model", j, "effort") if error.field == "effort" else ("task", i, error.field)
                wrong.append((path, str(error)))
    world = World(asked)
    wrong += _group_problems(study, world)
    for j, model in enumerate(study.models):
        wrong += [(("model", j, field), message) for field, message in _model_problems(study, model, world)]
    if not wrong:
        wrong += _protocol_problems(study)
    source.refuse(wrong)
    return world


def preflight(source: Source, names: Collection[str]) -> None:
    """Ask those of the models that can be asked (endpoints) whether they would answer, before any work."""
    study, wrong = source.study, list[Problem]()
    entries = [("model", j, model) for j, model in enumerate(study.models)]
    entries += [("judge", j, model) for j, model in enumerate(study.judges)]
    for section, j, model in entries:
        if model.name not in names:
            continue
        mine = [protocol for _, each, protocol in study.cells() if each == model]
        caps = [study.cap_of(each, model) for each in mine]
        top = study.top if model.top is None else model.top
        try:
            why = answers(model, study.decode_of(mine[0] if mine else None, model), max(caps, default=1), top)
        except (RamifyError, OSError) as error:
            why = str(error)
        if why:
            wrong.append(((section, j, "model"), f"{section} = {model.name!r} does not answer: {why}"))
    source.refuse(wrong)


class _Missing(Exception):
    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def _asked(entry: Tasked, model: System, offline: bool) -> Asked:
    try:
        task = with_effort(entry.task, model.effort) if model.effort else entry.task
    except RamifyError as error:
        raise _Missing("effort", str(error)) from None
    options: dict[str, Any] = {"run": entry.run} if entry.run else {}
    try:
        questions = _questions(task, entry.questions, options)
        references = tuple(task.references(questions))
    except (RamifyError, OSError, ImportError) as error:
        size = _declared(task, entry.questions) if offline else None
        if size is not None:
            names = tuple(Question(f"{entry.name} {i}", "") for i in range(size))
            return Asked(task, names, ("",) * len(names), f"{entry.name}: {error}")
        field = "questions" if entry.questions is not None and "questions(n)" in str(error) else "task"
        raise _Missing(field, f"{field} = {_said(entry, field)}: {error}") from None
    lacking = [question.id for question, gold in zip(questions, references, strict=False) if gold is None]
    if len(references) < len(questions) or lacking:
        which = lacking[0] if lacking else questions[len(references)].id
        many = len(lacking) or len(questions) - len(references)
        remedy = "without gold nothing can be graded: give references, or leave those questions out"
        raise _Missing(
            "task", f"task = {brief(entry.task)}: {many} questions have no reference, first {which!r}; {remedy}"
        )
    return Asked(task, questions, references)


def _declared(task: Any, n: int | None) -> int | None:
    """How many questions a benchmark says that it has, at most n; None if it does not say."""
    if isinstance(task, Joined):
        sizes = [_declared(each, n) for each in task.tasks]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    size: int | None = getattr(getattr(task, "spec", None), "count", None)
    return size if size is None or n is None else min(size, n)


def _said(entry: Tasked, field: str) -> str:
    return brief(getattr(entry, field))


def _questions(task: Any, n: int | None, options: dict[str, Any]) -> tuple[Question, ...]:
    """``n`` questions, or all; a generated task has no end and must be told."""
    parameter = inspect.signature(task.questions).parameters.get("n")
    if n is None and parameter is not None and parameter.default is parameter.empty:
        raise _Missing("task", f"task = {brief(task)} generates questions: say how many, questions = 60")
    found = task.questions(**options) if n is None else task.questions(n, **options)
    if not found:
        raise _Missing("task", f"task = {brief(task)} has no questions")
    return tuple(found)


def _model_problems(study: Study, model: System, world: World) -> Iterator[tuple[str, str]]:
    """A checkpoint that is not there, prompts that it cannot spell, and caps that do not fit its context."""
    mine = [each for (_, name), each in world.asked.items() if name == model.name]
    question: Question | None = None
    try:
        context = getattr(model.model, "context", None)
        encode = getattr(model.model, "encode", None)
        if encode is None:
            return
        longest = 0
        for question in (question for each in mine for question in each.questions):
            longest = max(longest, len(encode(question.prompt)))
    except InvalidValue as error:
        asked = f"the prompt of {question.id!r}: " if question else ""
        yield "model", f"model = {model.name!r}: {asked}{error}"
        return
    except (RamifyError, OSError, ImportError, ValueError) as error:
        yield "model", f"model = {model.name!r} cannot be loaded: {error}"
        return
    for cap in sorted({study.cap_of(protocol, each) for _, each, protocol in study.cells() if each == model}):
        if context is not None and longest + cap > context:
            room = f"a prompt of {longest} tokens and cap = {cap} are more than the {context} that the model can read"
            yield "cap" if model.cap else "model", f"{model.name}: {room}; use a cap of at most {context - longest}"


def _group_problems(study: Study, world: World) -> Iterator[Problem]:
    """Groups that no question has, or that all are in: nothing could be said of them."""
    for i, task in enumerate(study.tasks):
        asked = next((each for (name, _), each in world.asked.items() if name == task.name and not each.absent), None)
        known = [] if asked is None else list(dict.fromkeys(key for each in asked.questions for key in each.groups))
        for group in task.groups if asked is not None else ():
            if group not in known:
                yield ("task", i, "groups"), f"groups = {group!r}: no question has it{nearest(group, known)}"


def _protocol_problems(study: Study) -> Iterator[Problem]:
    """Limits that admit nothing, and evidence that needs what is not recorded."""
    for _, model, protocol in study.cells():
        at, cap = ("protocol", study.protocols.index(protocol)), study.cap_of(protocol, model)
        worst = study.unit(Work(generated=cap if protocol.regime == "leaves" else 1))
        small = [limit for limit in protocol.limits if limit < worst]
        if small:
            what = f"a leaf of at most cap = {cap} tokens" if protocol.regime == "leaves" else "one token"
            yield (*at, "limits"), f"limits = {small}: {what} costs {worst:g} at worst, so nothing could be launched"
        judge = next((each for each in (*study.judges, *study.models) if each.name == protocol.judge), None)
        if judge is not None and (why := cannot_judge(judge.model)):
            yield (*at, "judge"), f"judge = {judge.name!r}: {why}"
        top = study.top if model.top is None else model.top
        try:
            proposal_of(model, study.decode_of(protocol, model), study.run, top)
        except RamifyError as error:
            where = ("decode",) if protocol.decode is not None else ()
            yield (*at, *where), f"{protocol.name} with {model.name}: {error}"
        for field, why in (*_unrecorded(protocol, top), *_unspelled(protocol, model), *_headless(protocol)):
            yield (*at, field), why


def _unrecorded(protocol: Protocol, top: int) -> Iterator[tuple[str, str]]:
    """Alternatives that are read and not recorded."""
    for name, evidence in protocol.evidence:
        needed = getattr(getattr(evidence, "needs", None), "top", 0)
        if needed > top:
            much = f"evidence {name!r} reads {needed} alternatives a token, and top = {top} are recorded"
            yield "evidence", f"{much}: raise top of [study]"
    for part in parts(protocol.within):
        if isinstance(part, (LowConfidence, OnlineConfidence)) and part.k > top:
            much = f"within = {brief(part)} reads {part.k} alternatives a token, and top = {top} are recorded"
            yield "within", f"{much}: raise top of [study]"


def _unspelled(protocol: Protocol, model: System) -> Iterator[tuple[str, str]]:
    """Words that a director appends and the model has no tokens for."""
    from ramify.study.own import SPELLED

    if protocol.director is None:
        return
    encode = getattr(model.model, "encode", None)
    if encode is None or not hasattr(model.model, "eos"):
        yield "director", f"{model.name} does not say its tokens: a director needs a local model"
        return
    for name in SPELLED:
        given = getattr(protocol.director, name, None)
        try:
            encode(given if isinstance(given, str) else "")
        except InvalidValue as error:
            yield "director", f"director: {name} = {given!r} in the tokens of {model.name}: {error}"


def _headless(protocol: Protocol) -> Iterator[tuple[str, str]]:
    """Heads of checkpoints that have none, or that are not there."""
    fields = [("evaluator", protocol.evaluator), *(("evidence", each) for _, each in protocol.evidence)]
    for field, value in fields:
        for part in parts(value):
            if isinstance(part, (FinishedHead, Heads, OutcomeHead, ProcessHead, ValueHead)):
                try:
                    middle_of(part.name)
                except (RamifyError, OSError) as error:
                    yield field, f"{field} = {brief(part)}: {error}"

"""What is wrong with a study by itself: everything that can be refused without asking a task or a model.

A problem is the path of a field and a sentence; whoever read the study from a file turns a path into a line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

from ramify.decide import Plurality
from ramify.errors import is_whole
from ramify.kinds import brief, kind_of
from ramify.study.fields import MODEL, PROTOCOL, REDUCED, STUDY, TASK, Fields, by_hand
from ramify.study.spec import OUTCOMES, Protocol, Study, Tasked

__all__ = ["Path", "Problem", "nearest", "parts", "problems", "unranked"]

Path: TypeAlias = tuple[str | int, ...]
Problem: TypeAlias = tuple[Path, str]
MOST_QUESTIONS, MOST_LEAVES = 10**6, 10**9  # of a task, of a study: beyond these a number was mistyped


def problems(study: Study) -> list[Problem]:
    """Everything that is wrong with a study by itself, each by the path of its field."""
    if wrong := list(_unreadable(study)):  # nothing can be said of the rest, which reads these
        return wrong
    found = [*_names(study), *_numbers(study), *_sizes(study), *_protocols(study)]
    return [*found, *_comparisons(study), *_nothing(study)]


def _unreadable(study: Study) -> Iterator[Problem]:
    """Values that their fields do not take, in a study that was made by hand: a file's were read one by one."""
    entries: list[tuple[Path, Any, Fields]] = [(("study",), study, STUDY)]
    entries += [] if study.reduced is None else [(("reduced",), study.reduced, REDUCED)]
    judge = {name: reader for name, reader in MODEL.items() if name != "model"}  # what judges need not be a sampler
    listed = (("task", study.tasks, TASK), ("model", study.models, MODEL), ("judge", study.judges, judge))
    for section, given, fields in (*listed, ("protocol", study.protocols, PROTOCOL)):
        entries += [((section, i), each, fields) for i, each in enumerate(given)]
    for at, entry, fields in entries:
        for field, why in by_hand(entry, fields):
            yield (*at, field), why


def nearest(name: str, names: Sequence[str]) -> str:
    """``; did you mean X?`` or nothing."""
    match = get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else f"; there are {', '.join(map(repr, names))}" if names else ""


def _names(study: Study) -> Iterator[Problem]:
    """Names given twice, and names that nothing has."""
    tasks, models = [each.name for each in study.tasks], [each.name for each in study.models]
    protocols = [each.name for each in study.protocols]
    judges = [each.name for each in study.judges]
    for section, names in (("task", tasks), ("model", models), ("judge", judges), ("protocol", protocols)):
        for i, name in enumerate(names):
            if name in names[:i]:
                yield (section, i, "name"), f"name = {name!r} is there twice: give each {section} its own"
            marks = [mark for mark in (": ", " @ ") if mark in name]
            if marks and section != "task":
                how = "comparisons are written `model: protocol @ budget`"
                yield (section, i, "name"), f"name = {name!r} has {marks[0]!r} in it, and {how}: use other words"
    lists: list[tuple[Path, Sequence[str], list[str]]] = []
    lists += [(("model", i, "tasks"), each.tasks, tasks) for i, each in enumerate(study.models)]
    lists += [(("protocol", i, "tasks"), each.tasks, tasks) for i, each in enumerate(study.protocols)]
    lists += [(("protocol", i, "models"), each.models, models) for i, each in enumerate(study.protocols)]
    if study.reduced is not None:
        lists += [(("reduced", "tasks"), study.reduced.tasks, tasks)]
        lists += [(("reduced", "models"), study.reduced.models, models)]
    for path, given, known in lists:
        for name in given:
            if name not in known:
                yield path, f"{path[-1]} = {name!r}: the study has no such {str(path[-1])[:-1]}{nearest(name, known)}"


def _numbers(study: Study) -> Iterator[Problem]:
    if study.n is not None and max(study.budgets) > study.n:
        much = f"budgets = {list(study.budgets)}: {max(study.budgets)} candidates of a bank of n = {study.n}"
        yield ("study", "budgets"), f"{much}; raise n, or leave that budget out"
    if not 0 < study.level < 1:
        yield ("study", "level"), f"level = {study.level}: use a coverage in (0, 1), such as 0.95"
    if not study.limit > 0:
        yield ("study", "limit"), f"limit = {study.limit}: nothing can be launched; use an amount > 0"
    for i, metric in enumerate(study.metrics):
        k, most = getattr(metric, "k", 1), study.n or max(study.budgets)
        if is_whole(k) and k > most:
            yield (
                ("study", "metrics", i),
                f"metrics: {brief(metric)} needs {k} candidates, and banks have {most}: raise n",
            )


def unranked(study: Study) -> Iterator[Problem]:
    """Ranks that nothing will come of. Asked of a study as it was written: its small form may have fewer models."""
    most = max((len([each for each in study.models if _for(each.tasks, task)]) for task in study.tasks), default=0)
    if study.rank and study.tasks and study.models and most < 3:
        much = f"rank = true: orders are compared of three models or more, and no task is asked of more than {most}"
        yield ("study", "rank"), f"{much}; leave it out, or name more models"


def _for(names: Sequence[str], task: Tasked) -> bool:
    return not names or task.name in names


def _sizes(study: Study) -> Iterator[Problem]:
    """Numbers that nothing could draw, said before a task tries to make as many questions."""
    for i, task in enumerate(study.tasks):
        if task.questions is not None and task.questions > MOST_QUESTIONS:
            much = f"questions = {task.questions}: a study takes at most {MOST_QUESTIONS:,} of a task"
            yield ("task", i, "questions"), f"{much}; use fewer"
    banks = {
        (task.name, model.name, repr(study.decode_of(protocol, model)), study.cap_of(protocol, model))
        if protocol.shares
        else (task.name, model.name, protocol.name): (protocol, model.repeats + 1, task.questions or 1)
        for task, model, protocol in study.cells()
        if protocol.regime == "leaves"
    }
    leaves = sum(
        times * many * (study.size(protocol) if not protocol.shares else study.n or max(study.budgets_of(protocol)))
        for protocol, times, many in banks.values()
    )
    if leaves > MOST_LEAVES:
        why = f"the study would draw {leaves:,} leaves, and {MOST_LEAVES:,} are the most; lower n or questions"
        yield ("study", "n" if study.n is not None else "budgets"), why


def _protocols(study: Study) -> Iterator[Problem]:
    for i, each in enumerate(study.protocols):
        at: Path = ("protocol", i)
        if each.director is not None and each.controller is not None:
            yield (*at, "controller"), "director and controller: a protocol is one trajectory or a search, not both"
        if each.evaluator is not None and each.controller is None:
            yield (*at, "evaluator"), f"evaluator = {brief(each.evaluator)} scores prefixes for a controller: name one"
        if each.check is not None and each.controller is None:
            yield (*at, "check"), f"check = {brief(each.check)} prunes prefixes for a controller: name one"
        if each.budgets and not each.shares:
            why = "a stop, a limit, a director or a controller decides how many there are"
            yield (*at, "budgets"), f"budgets = {list(each.budgets)}: {why}; use n for the most, or limits"
        elif each.budgets and study.n is not None and max(each.budgets) > study.n:
            large = max(each.budgets)
            yield (*at, "budgets"), f"budgets: {large} candidates of a bank of n = {study.n}; raise n of the study"
        asks = [name for name, value in each.evidence if kind_of(value) == "verifier"]
        asks += ["diagnostic"] if each.diagnostic not in ("", OUTCOMES) else []
        judges = [judge.name for judge in (*study.judges, *study.models)]
        if asks and not each.judge:
            yield (*at, "evidence"), f"{asks[0]} asks a model about candidates: name it, judge = {judges[0]!r}"
        if each.judge and each.judge not in judges:
            yield (
                (*at, "judge"),
                f"judge = {each.judge!r}: no [[judge]] or [[model]] has it{nearest(each.judge, judges)}",
            )
        if each.diagnostic and not each.shares:
            yield (*at, "diagnostic"), "diagnostic: only a rule on a shared bank can be shown what no system has"
        if each.limits and any(not limit > 0 for limit in each.limits):
            yield (*at, "limits"), f"limits = {list(each.limits)}: nothing can be launched; use amounts > 0"
        if each.n is not None and each.shares:
            yield (*at, "n"), f"n = {each.n}: the number of a shared bank is the study's; use budgets here"
        yield from _ignored(each, at)
        yield from _evidence(each, at)


def _ignored(protocol: Protocol, at: Path) -> Iterator[Problem]:
    """Fields that the regime of a protocol would never look at: silence would pass for obedience."""
    if protocol.regime == "leaves" or (protocol.director is not None and protocol.controller is not None):
        return
    who = "director" if protocol.regime == "trajectory" else "controller"
    why = {
        "stop": "a stop looks at independent candidates",
        "within": "a stop within a rollout is for independent candidates",
        "n": "one trajectory is one candidate" if who == "director" else "the controller says how many it grows",
        "evidence": "nothing is scored" if who == "director" else "its leaves carry score, visits and multiplicity",
    }
    for field, because in why.items():
        if getattr(protocol, field) not in (None, ()):
            yield (*at, field), f"{field} beside a {who}: {because}; leave it out"
    if who == "director" and protocol.rule != Plurality():
        yield (*at, "rule"), "rule beside a director: one trajectory is submitted as it is; leave it out"


def _evidence(protocol: Protocol, at: Path) -> Iterator[Problem]:
    """Evidence that a rule or a stop reads and nobody makes."""
    if protocol.regime == "trajectory":
        return
    own = [name for name, _ in protocol.evidence]
    own += [] if not protocol.diagnostic else [OUTCOMES if protocol.diagnostic == OUTCOMES else "grader"]
    own += ["score", "visits", "multiplicity"] if protocol.regime == "search" else []
    reads = [("rule", name) for name in getattr(protocol.rule, "needs", ())]
    reads += [("stop", name) for name in _read_by(protocol.stop)] if protocol.regime == "leaves" else []
    for field, name in reads:
        if name not in own:
            known = f"evidence has {', '.join(own)}" if own else "the protocol has no evidence"
            said = f"{field} = {brief(getattr(protocol, field))} reads {name!r}, and {known}{nearest(name, own)}"
            yield (*at, field), said


def _read_by(stop: Any) -> Iterator[str]:
    """The evidence that a stop reads, and those inside of it: stops name it in fields of their own."""
    for part in parts(stop):
        for field in ("score", "cost"):
            name = getattr(part, field, "")
            if isinstance(name, str) and name:
                yield name


def parts(value: Any) -> Iterator[Any]:
    """A method and all that is inside of it.

    >>> from ramify.stop import AnyOf, AtMost, Esc
    >>> [type(part).__name__ for part in parts(AnyOf(AtMost(3), Esc(2)))]
    ['AnyOf', 'AtMost', 'Esc']
    """
    if isinstance(value, tuple):
        for each in value:
            yield from parts(each)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))


def _comparisons(study: Study) -> Iterator[Problem]:
    known = study.comparable()
    for i, pair in enumerate(study.comparisons):
        for name in pair:
            plain, _, at = name.partition(" @ ")
            if plain not in known:
                wrong = f"there is no {plain!r} here{nearest(plain, [*known])}"
            elif at and at not in known[plain]:
                has = ", ".join(dict.fromkeys(known[plain])) or "none"
                wrong = f"{plain!r} has no budget {at!r}, of {has}"
            else:
                continue
            yield ("study", "comparisons", i), f"comparisons: {wrong}"


def _nothing(study: Study) -> Iterator[Problem]:
    for section, entries in (("task", study.tasks), ("model", study.models), ("protocol", study.protocols)):
        if not entries:
            yield (section,), f"the study has no [[{section}]]: name at least one"
    if study.tasks and study.models and study.protocols and not any(study.cells()):
        yield ("study",), "no protocol is meant for any model and task: look at the lists `models` and `tasks`"

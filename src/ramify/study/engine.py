"""``run_study``: check everything, make what is missing, decide what is new, and keep the result.

Run again, it goes on with what is there. A leaf is durable before it counts, decisions are kept by everything they
depend on, and the result is replaced at once: interrupted at any moment, a study ends as one that was not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ramify.bank import Bank, Outcomes
from ramify.errors import StudyError
from ramify.store import disk
from ramify.study import stored
from ramify.study.file import Source, load
from ramify.study.judges import Judging
from ramify.study.kept import Decided
from ramify.study.measure import agreements, comparisons, made_again, measures, reproduced
from ramify.study.meter import Meter, Progress
from ramify.study.own import Ran, parts_of, run_own
from ramify.study.plan import Plan, plan
from ramify.study.pools import Filled, charges_of, fill, rows_of
from ramify.study.result import Charge, Coverage, Result, Row
from ramify.study.source import identity_of, interface_of
from ramify.study.spec import Reduced, Study
from ramify.study.valid import nearest, problems
from ramify.study.words import said, words
from ramify.study.world import World, meet, preflight

__all__ = ["Checked", "check_study", "run_study"]

MARK = "study.txt"  # what the folder is, and of which study


@dataclasses.dataclass(frozen=True)
class Checked:
    """A study that can be run, with what it will make."""

    source: Source
    world: World
    plan: Plan

    @property
    def absent(self) -> tuple[str, ...]:
        """Sentences about tasks whose questions are not here: such a study cannot be run yet."""
        return tuple(dict.fromkeys(each.absent for each in self.world.asked.values() if each.absent))


def check_study(
    study: Study | Source | str | Path,
    *,
    reduced: bool = False,
    models: Sequence[str] = (),
    online: bool = False,
    offline: bool = False,
) -> Checked:
    """Validate a study with its tasks, models and budgets, and plan it. Nothing is generated.

    ``online`` lets endpoints be asked whether they answer; without it everything else is checked. ``offline`` counts a
    benchmark whose file is not here by what it declares: ``absent`` says which. ``models`` are as for ``run_study``.
    """
    source = _source(study)
    source.refuse(problems(source.study))
    if reduced:
        if source.study.reduced is None:
            source.refuse([(("study",), "it has no [reduced] table, which says what its small form is: add one")])
        source = dataclasses.replace(source, study=source.study.small())
    if models:
        source = dataclasses.replace(source, study=_only(source.study, models))
    source.refuse(problems(source.study))
    world = meet(source, offline=offline)
    planned = plan(source.study, world)
    if planned.worst > source.study.limit:
        much = f"limit = {source.study.limit:g}: the study costs up to {planned.worst:,.0f} (every leaf at its cap)"
        source.refuse([(("study", "limit"), f"{much}; raise it, or lower n, cap or questions")])
    if online:
        preflight(source, {each.name for each in (*source.study.models, *source.study.judges)})
    return Checked(source, world, planned)


def run_study(
    study: Study | Source | str | Path,
    folder: str | Path,
    progress: Callable[[Progress], None] | None = None,
    *,
    reduced: bool = False,
    models: Sequence[str] = (),
) -> Result:
    """Run a study into a folder, or go on with the one that is there.

    ``models`` are those to run this time, where they cannot all be served at once; a last run without it makes the
    result of all, and asks no model that has nothing left to do.
    """
    folder = Path(folder)
    checked = check_study(study, reduced=reduced, models=models)
    given, world, planned = checked.source.study, checked.world, checked.plan
    decided, judging = Decided(folder / "decided"), Judging(given, folder, words)
    meter = Meter(planned.leaves, given.unit, given.limit, progress)
    try:
        todo = _todo(folder, checked, decided, judging)
        preflight(checked.source, todo | ({each.judge for each in given.protocols if each.judge} if todo else set()))
        _claim(folder, checked.source)
        filled, rows, charges = list[Filled](), list[Row](), list[Charge]()
        for pool in planned.pools:
            each = fill(folder, pool, world.of(pool.task, pool.model), decided, meter, judging)
            rows += () if pool.repeat else rows_of(given, each, decided)
            charges += charges_of(given.unit, each)
            filled.append(dataclasses.replace(each, status=made_again(given, each)).light())
        ran = [
            run_own(folder, given, own, world.of(own.task, own.model), decided, meter, judging) for own in planned.owns
        ]
    finally:
        judging.close()
    meter.begin("measuring")
    rows = _ordered(given, [*rows, *(each.row for each in ran)])
    charges += [_charge(each.row) for each in ran]
    result, stores = _result(given, world, planned, filled, ran, rows, charges)
    stored.write(folder, result, stores)
    return dataclasses.replace(Result.read(folder), reused=tuple(_reused(filled, ran, decided)))


def _only(study: Study, names: Sequence[str]) -> Study:
    """The study of some of its models."""
    known = [each.name for each in study.models]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise StudyError(f"models: the study has no {unknown[0]!r}{nearest(unknown[0], known)}")
    less = dataclasses.replace(study, reduced=Reduced(models=tuple(names))).small()
    asked = {protocol.judge for protocol in less.protocols}
    judges = [each for each in study.models if each.name in asked and each.name not in names]  # they still judge
    return dataclasses.replace(less, title=study.title, judges=(*study.judges, *judges))


def _source(study: Study | Source | str | Path) -> Source:
    if isinstance(study, Source):
        return study
    return Source(study) if isinstance(study, Study) else load(study)


def _todo(folder: Path, checked: Checked, decided: Decided, judging: Judging) -> set[str]:
    """The models that will be asked for something: a server whose part is done may be gone."""
    study, world = checked.source.study, checked.world
    names = {pool.model.name for pool in checked.plan.lacking(folder, world)}
    for own in checked.plan.owns:
        asked = world.of(own.task, own.model)
        if not (folder / MARK).exists() or not decided.has(parts_of(study, own, asked, judging)):
            names.add(own.model.name)
    return names


def _claim(folder: Path, source: Source) -> None:
    """A folder of this study, or an empty one that becomes it: nothing else is written into.

    A study may be given another title, and its file may be moved; with both another it is another study.
    """
    mark, file = folder / MARK, str(Path(source.file).resolve()) if Path(source.file).is_file() else ""
    mine = {"title": source.study.title, "file": file}
    written = mark.read_text() if mark.exists() else None
    if written is None and folder.exists() and any(folder.iterdir()):
        raise StudyError(f"{folder} is not empty and holds no study: name another folder, or an empty one")
    there = dict(line.split(" = ", 1) for line in (written or "").splitlines() if " = " in line)
    if there and all(there.get(name) != value or not value for name, value in mine.items()):
        other = f"{there.get('title')!r} ({there.get('file') or 'made in Python'})"
        raise StudyError(f"{folder} holds another study, {other}: name another folder, such as --out {folder}-2")
    folder.mkdir(parents=True, exist_ok=True)
    what = "A ramify study. result.json is what it found, banks/ its leaves, decided/ what need not be decided again."
    fresh = disk.temporary(mark)
    fresh.write_text("\n".join([what, *(f"{name} = {value}" for name, value in mine.items())]) + "\n")
    disk.publish(fresh, mark)


def _ordered(study: Study, rows: Sequence[Row]) -> list[Row]:
    """Rows in the order of the matrix: tasks, models, protocols, budgets."""
    tasks, models = [each.name for each in study.tasks], [each.name for each in study.models]
    protocols = [each.name for each in study.protocols]

    def place(row: Row) -> tuple[float, ...]:
        order = tasks.index(row.task), models.index(row.model), protocols.index(row.name)
        return *order, row.k or 0, row.budget or 0

    return sorted(rows, key=place)


def _result(
    study: Study,
    world: World,
    planned: Plan,
    filled: Sequence[Filled],
    ran: Sequence[Ran],
    rows: Sequence[Row],
    charges: Sequence[Charge],
) -> tuple[Result, dict[str, str]]:
    banks: dict[str, Bank] = {each.pool.name: _with_layers(each) for each in filled}
    outcomes: dict[str, Outcomes] = {each.pool.name: each.outcomes for each in filled}
    stores = {each.pool.name: each.pool.folder for each in filled}
    for own, each in zip(planned.owns, ran, strict=True):
        banks[own.name], stores[own.name] = each.bank, each.store
        outcomes[own.name] = world.of(own.task, own.model).outcomes(each.bank)
    result = Result(
        title=study.title,
        card=_card(study, planned),
        questions={task: asked.questions for (task, _), asked in reversed(world.asked.items())},
        rows=tuple(rows),
        banks=banks,
        outcomes=outcomes,
        comparisons=tuple(comparisons(study, rows)),
        shared=planned.shared,
        reproduced=_status(study, filled, planned),
        interfaces=tuple(_coverage(study, world)),
        measures=tuple(measures(study, filled)),
        charges=tuple(charges),
        agreements=tuple(agreements(study, filled)) if study.rank else (),
        notes=(*study.notes, *_empty(ran)),
    )
    return result, stores


def _charge(row: Row) -> Charge:
    """A protocol that made its own candidates: all that it was charged."""
    return Charge(row.task, row.model, row.label, {stage: float(part.sum()) for stage, part in row.cost.items()})


def _empty(ran: Sequence[Ran]) -> Iterator[str]:
    """Runs that ended without a candidate: their zeros are about the limit, not about the method."""
    for each in ran:
        many = int((each.bank.drawn.sum(axis=1) == 0).sum())
        if many:
            of = f"{many} of {each.bank.shape[0]} questions"
            yield f"{each.row.model}: {each.row.label}: {of} ended without a candidate, and submitted nothing."


def _with_layers(filled: Filled) -> Bank:
    """The bank with its evidence under the names that protocols use; one name for two things gives way to the text."""
    bank, protocols = filled.bank, () if filled.pool.repeat else filled.pool.protocols
    given = [(each.name, each.label) for protocol in protocols for each in filled.judging.bound(protocol)]
    for name, label in dict.fromkeys(given):
        clash = any(other == name and text != label for other, text in given)
        called = label if clash else name
        if called not in bank.layers:
            bank = bank.attach(called, filled.layers[label])
    return bank


def _status(study: Study, filled: Sequence[Filled], planned: Plan) -> dict[str, str]:
    found = reproduced(study, filled)
    return found | {own.name: "Exact replay was not checked." for own in planned.owns}


def _coverage(study: Study, world: World) -> Iterator[Coverage]:
    for (task, name), asked in world.asked.items():
        model = next(each for each in study.models if each.name == name)
        yield Coverage(name, task, interface_of(model), len(asked.questions))


def _card(study: Study, planned: Plan) -> Mapping[str, str]:
    """The protocol card: every choice that decides a number, in text."""
    card = {
        "study": study.title,
        "streams": study.run,
        "unit": words(study.unit),
        "candidates of a bank": str(study.n or max(study.budgets)),
        "budgets": ", ".join(map(str, study.budgets)),
        "cap": str(study.cap),
        "alternatives a token": str(study.top),
        "replays": f"{study.replays}, nested and paired",
        "intervals": f"{study.replicates:,} resamples of questions, {100 * study.level:g} % percentile",
    }
    card |= {f"task {task.name}": words(task.task) for task in study.tasks}
    for model in study.models:
        decode = words(study.decode_of(None, model))
        card[f"model {model.name}"] = f"{identity_of(model.model)}, {interface_of(model)}, {decode}"
    for protocol in study.protocols:
        decode = "" if protocol.decode is None else f", decode={words(protocol.decode)}"
        card[f"protocol {protocol.name}"] = f"{protocol.regime}: {said(protocol)}{decode}"
    return card | {"plan": str(planned)}


def _reused(filled: Sequence[Filled], ran: Sequence[Ran], decided: Decided) -> Iterator[str]:
    """What this run found done, and what it did."""
    for each in filled:
        if each.reused:
            yield f"{each.pool.name}: {each.reused} of {each.reused + each.made} leaves were there."
    again = [each.row.name for each in ran if each.reused]
    if again:
        yield f"Run before and unchanged: {'; '.join(dict.fromkeys(again))}."
    if decided.hits:
        yield f"{decided.hits} of {decided.hits + decided.misses} decisions and layers were there."

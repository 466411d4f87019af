"""``ramify audit``: what may be wrong with a bank before anything is concluded from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from ramify.cli.options import Json, Maps, Place, Reference, mapping
from ramify.cli.terminal import emit, table

if TYPE_CHECKING:
    from ramify.bank import Bank
    from ramify.cli.source import Source

__all__ = ["Finding", "app", "findings"]


class Defaulting(TyperGroup):
    """``ramify audit PATH`` is ``ramify audit bank PATH``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):  # options may come before the path
            args = ["bank", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    help="""What may be wrong with a bank: caps, invalid answers, extraction risks, conflicts, duplicates.

        ramify audit my.jsonl

        ramify audit answers my.jsonl --task "Own('questions.jsonl')"
    """,
    cls=Defaulting,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


class Finding(NamedTuple):
    """One thing to look at: how many of how many, where first, and what to do about it."""

    what: str
    many: int
    of: int
    where: str
    remedy: str
    wrong: bool = False  # contradicts itself, rather than merely being worth a look


@app.command("bank")
def bank(
    path: Place,
    maps: Maps = None,
    reference: Reference = "",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything is found at all.")] = False,
    as_json: Json = False,
) -> None:
    """List what may be wrong with a bank: no answer, at the cap, one answer in two spellings, copies, conflicts.

        ramify audit bank my.jsonl

    is the same as `ramify audit my.jsonl`. Nothing is changed, and nothing found is no proof. The exit status is 1 if
    the bank contradicts itself (one answer graded both ways, two records of one key), and with --strict if there is
    anything to look at:

        ramify audit runs/mine --strict && echo clean
    """
    from ramify.cli.source import load

    source = load(path, mapping(maps), reference=reference)
    found = list(findings(source))
    answer = {"source": str(path), "findings": [finding._asdict() for finding in found]}
    rows = [
        [each.what, f"{each.many} of {each.of}", "wrong" if each.wrong else "look", each.where, each.remedy]
        for each in found
    ]
    header = ["finding", "how many", "", "first", "what to do"]
    emit(as_json, answer, table(header, rows, left=range(5)) if rows else f"{path}: nothing to look at was found")
    if any(each.wrong for each in found) or (strict and found):
        raise typer.Exit(1)


@app.command("answers")
def answers(
    path: Place,
    task: Annotated[
        str,
        typer.Option("--task", metavar="TEXT", help="Whose answers they are: `MATH500('math.jsonl')`, `Own('q.csv')`."),
    ],
    as_they_are: Annotated[
        bool, typer.Option("--as-they-are", help="Take the bank's answers, instead of reading its texts again.")
    ] = False,
    overrides: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Decisions of people (JSONL or CSV), which are applied first.")
    ] = None,
    most: Annotated[int, typer.Option(metavar="N", help="How many risks to list; counts are of all.")] = 20,
    maps: Maps = None,
    as_json: Json = False,
) -> None:
    """List the grades that may be the fault of extraction or checking: the reference in the text, caps, disagreements.

        ramify audit answers runs/mine --task "Own('questions.jsonl')"

    Texts are read again by the task, and every grade says which rung of its ladder decided. What was not extracted
    counts as wrong. Look at the risks, write what you decide into a file (question, run, sample, answer or grade, by,
    why), and give it back:

        ramify audit answers runs/mine --task "Own('questions.jsonl')" --overrides decided.jsonl
    """
    from ramify.cli.gold import of_task
    from ramify.cli.source import load
    from ramify.tasks.audit import Overrides, audit_answers

    source = load(path, mapping(maps))
    found, part, references = of_task(source, task)
    decided = None if overrides is None else Overrides.read(overrides)
    audited = audit_answers(part, found, references, parse=not as_they_are, decided=decided)
    left_out = len(source.bank.questions) - len(part.questions)
    answer = {"source": str(path), "task": task, "candidates": audited.candidates, "left_out": left_out}
    answer |= {"counts": audited.counts, "rates": audited.rates, "rungs": audited.rungs}
    answer |= {"overridden": audited.overridden, "risks": audited.risks}
    emit(as_json, answer, *_told(audited, left_out, most))


def _told(audited: Any, left_out: int, most: int) -> Iterator[str]:
    """Rates, rungs, how many of each risk, and the first of them."""
    rates = ", ".join(f"{name} {share:.3f}" for name, share in audited.rates.items() if share)
    rungs = ", ".join(f"{name} {many}" for name, many in audited.rungs.items() if many)
    head = f"{audited.candidates} candidates; read: {rates}; decided by: {rungs}"
    head += f"; {audited.overridden} as people decided" if audited.overridden else ""
    yield head + (f"; {left_out} questions are not of this task" if left_out else "")
    if not audited.counts:
        yield "no grade looks like the fault of extraction"
        return
    yield table(["risk", "how many"], [[kind, str(many)] for kind, many in audited.counts.items()])
    header = ["risk", "question, sample", "answer", "reference", "text"]
    yield table(header, [_row(risk) for risk in audited.risks[:most]], left=range(5))


def _row(risk: Any) -> list[str]:
    shown = " ".join(risk.shown.split())[-60:]
    return [risk.kind, f"{risk.question}, {risk.sample}", str(risk.answer), str(risk.reference), shown]


def findings(source: Source) -> Iterator[Finding]:
    """Everything that is worth a look, the contradictions first."""
    found = [*_conflicts(source), *_graded(source), *_answers(source.bank), *_text(source.bank), *_shape(source)]
    yield from sorted((each for each in found if each.many), key=lambda each: not each.wrong)


def _conflicts(source: Source) -> Iterator[Finding]:
    """Two records of one key with different content, in a bank on disk."""
    if source.folder is None:
        return
    from ramify.store import Store

    with Store.open(source.folder).snapshot() as snapshot:
        conflicts = snapshot.conflicts
        many = len(snapshot.order.row)
    where = f"{conflicts[0].question}, sample {conflicts[0].sample}" if conflicts else ""
    remedy = "the first counts; find out which process wrote the other"
    yield Finding("two records of one key", len(conflicts), many, where, remedy, wrong=True)


def _graded(source: Source) -> Iterator[Finding]:
    """Grades that contradict answers or each other."""
    import numpy as np

    for name, outcomes in source.grades.items():
        bank, grades = source.bank, outcomes.on(source.bank)
        both, where = 0, ""
        for q, question in enumerate(bank.questions):
            for code in range(len(bank.answer_text[q])):
                seen = {float(g) for g in grades[q][(bank.answers[q] == code)] if g == g}
                if len(seen) > 1:
                    both, where = both + 1, where or f"{question.id}: {bank.answer_text[q][code]!r}"
        many = sum(len(texts) for texts in bank.answer_text)
        yield Finding(
            f"{name}: one answer graded both ways", both, many, where, "grade by the answer alone", wrong=True
        )
        right = bank.drawn & (bank.answers < 0) & (grades > 0)
        remedy = "an extractor missed it: rules will never submit it"
        yield Finding(
            f"{name}: right without an answer", int(right.sum()), int(bank.drawn.sum()), _at(bank, right), remedy
        )
        lacking = bank.drawn & np.isnan(grades)
        remedy = "missing is not wrong: they count nowhere"
        yield Finding(f"{name}: no grade", int(lacking.sum()), int(bank.drawn.sum()), _at(bank, lacking), remedy)


def _answers(bank: Bank) -> Iterator[Finding]:
    """⊥, and answers that are equal to a reader and different to a vote."""
    from ramify.cli.spelling import split

    drawn, none = int(bank.drawn.sum()), bank.drawn & (bank.answers < 0)
    yield Finding("no answer", int(none.sum()), drawn, _at(bank, none), "⊥ never wins; it stays in the denominator")
    capped = bank.drawn & (bank.ended == bank.endings.index("length"))
    yield Finding("at the cap", int(capped.sum()), drawn, _at(bank, capped), "raise the cap, or report the share")
    apart = split(bank)
    where = next((f"{name}: {one!r}, {other!r}" for name, (one, other) in apart.items()), "")
    remedy = "they split the vote: `ramify decide --canonical` counts them together"
    yield Finding("questions with one answer spelled in two ways", len(apart), len(bank.questions), where, remedy)


def _text(bank: Bank) -> Iterator[Finding]:
    """Copies, empty responses, and text that would steer a terminal."""
    import numpy as np

    from ramify.cli.terminal import printable

    if bank.text is None:
        return
    copies = np.zeros(bank.shape, dtype=bool)
    empty, hostile = copies.copy(), copies.copy()
    for q, n in np.argwhere(bank.drawn):
        text = bank.text[q, n]
        if text is not None:
            empty[q, n], hostile[q, n] = not str(text).strip(), printable(str(text)) != str(text).replace("\r\n", "\n")
            copies[q, n] = len(str(text)) > 200 and str(text) in bank.text[q, :n].tolist()
    drawn = int(bank.drawn.sum())
    remedy = "one seed for several samples? copies are no independent draws"
    yield Finding("long responses that are copies", int(copies.sum()), drawn, _at(bank, copies), remedy)
    yield Finding("empty responses", int(empty.sum()), drawn, _at(bank, empty), "a failed call is no candidate")
    remedy = "harmless here and in reports; mind other tools"
    yield Finding("responses with control characters", int(hostile.sum()), drawn, _at(bank, hostile), remedy)


def _shape(source: Source) -> Iterator[Finding]:
    bank = source.bank
    counts = bank.drawn.sum(axis=1)
    most = int(counts.max(initial=0))
    few = [question.id for question, n in zip(bank.questions, counts, strict=True) if n < most]
    remedy = f"others have {most}: profiles at k leave out those with fewer than k"
    yield Finding("questions with fewer candidates", len(few), len(counts), few[0] if few else "", remedy)
    known = bank.kind != "iid"
    remedy = "numbers about fresh candidates are refused; use what was submitted"
    yield Finding(f"the bank is {bank.kind}, not independent draws", int(known), 1, "", remedy)


def _at(bank: Bank, where: Any) -> str:
    """The first candidate of a mask."""
    import numpy as np

    found = np.argwhere(where)
    return f"{bank.questions[found[0][0]].id}, candidate {found[0][1]}" if len(found) else ""

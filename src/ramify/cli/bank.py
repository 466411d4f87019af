"""``ramify bank``: banks on disk, in and out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import Json, Maps, Reference, mapping
from ramify.cli.terminal import emit, progress, spoken

if TYPE_CHECKING:
    from ramify.bank import Proposal
    from ramify.store import Store
    from ramify.store.exchange import Imported

__all__ = ["app"]

app = typer.Typer(
    help="""Banks of candidates: import them from files, look at them, check them, export them.

        ramify bank import answers.csv mybank

        ramify bank info mybank
    """,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of the bank.")]


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help=".jsonl, .json, .csv, .tsv (also .gz), .parquet, .npy or .npz")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The bank: made if new, topped up if not.")],
    maps: Maps = None,
    reference: Reference = "",
    run: Annotated[str, typer.Option(help="The name of the run; the file's name if it does not say.")] = "",
    kind: Annotated[
        str, typer.Option(help="iid, heterogeneous, stopped, sweep or search: how the candidates came about.")
    ] = "",
    model: Annotated[str, typer.Option(help="The model that made them.")] = "",
    protocol: Annotated[str, typer.Option(help="The decoder's text form, or what is known of it.")] = "",
    strict: Annotated[
        str, typer.Option(help="structure: broken rows are errors; all: missing values too; nothing: both are counted.")
    ] = "structure",
    bottom: Annotated[list[str] | None, typer.Option(help="An answer that means no answer, such as `None`.")] = None,
    nested: Annotated[
        bool | None, typer.Option("--nested/--flat", help="A row a question with lists, or a row a candidate.")
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens/--no-tokens", help="Whether to keep token data.")] = True,
    encoding: Annotated[str, typer.Option(help="Of text files.")] = "utf-8",
    beside: Annotated[bool, typer.Option("--beside", help="Put another run beside those that the bank holds.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the mapping and what was found; write nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read candidates from a file into a bank, and say which column was taken for what.

    A file with the columns `question, sample, answer, correct, score` is enough, or a `[Q, N]` matrix. Look first:

        ramify bank import answers.csv mybank --dry-run

    Then correct the guess where it is wrong. The parts are question, prompt, run, sample, answer, text, ended, length,
    log_q, and by name group.X, layer.X (scores), outcome.X (grades), token.X:

        ramify bank import answers.csv mybank --map answer=pred --map layer.reward=rm --map outcome.exact=score

    Grades are kept apart from the bank, and a missing grade stays missing. References are not kept; answers can be
    graded against them on the way:

        ramify bank import answers.csv mybank --reference gold

    Importing again adds nothing twice. More candidates of a run that is there need its name, and another run needs to
    be meant:

        ramify bank import more.csv mybank --run answers

        ramify bank import other.csv mybank --beside
    """
    from ramify.cli import gold
    from ramify.store.exchange import read, stem_of

    with progress(f"reading {file.name}") as tell:
        imported = read(
            file,
            gold.without(mapping(maps), reference),
            nested=nested,
            strict=strict,  # type: ignore[arg-type]
            proposal=_proposal(kind, model, protocol),
            run=run or stem_of(file),
            bottom=bottom or (),
            tokens=tokens,
            encoding=encoding,
            progress=tell,
        )
    imported = imported._replace(report=gold.told(imported.report, reference))
    told = spoken(str(imported.report))
    if reference:
        gold.comparable(imported.report.mapping, reference)
        same = {"nested": nested, "strict": strict, "bottom": bottom or (), "encoding": encoding}
        made, how = gold.against(file, imported.bank, mapping(maps), reference, **same)
        imported = imported._replace(outcomes={**imported.outcomes, reference: made})
        told += f"\nnote     {how}"
    elif not imported.outcomes and (column := gold.guessed(imported.report.mapping)):
        told += f"\nnote     nothing is graded: --reference {column} grades the answers against {column}"
    found: dict[str, Any] = {"report": imported.report, "written": None if dry_run else str(directory)}
    if not dry_run:
        new, before = _kept(directory, imported, beside)
        found |= {"new": new, "were_there": before}
        told += f"\nwritten to {directory}" + (f": {new} new, {before} were there" if before else "")
    emit(as_json, found, told)


def _kept(directory: Path, imported: Imported, beside: bool) -> tuple[int, int]:
    """Write what was imported: how many candidates are new, and how many were there."""
    from ramify.store import Store

    with progress(f"writing {directory.name}"):
        store = Store.create(directory)
        before = _responses(store)
        store.add_bank(imported.bank, imported.outcomes, beside=beside)
        return _responses(store) - before, before


@app.command()
def export(
    directory: Directory,
    file: Annotated[Path, typer.Argument(help=".parquet, .jsonl, .csv, .tsv (text also .gz) or .npz")],
    tokens: Annotated[bool, typer.Option("--tokens/--no-tokens", help="Token data, where the format holds it.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Write a bank as one file, a row a candidate, grades and scores beside it.

    Parquet keeps everything and any data frame reads it; CSV has no place for tokens:

        ramify bank export mybank answers.parquet

        ramify bank export mybank answers.csv.gz
    """
    from ramify.cli.source import with_tokens
    from ramify.errors import InvalidValue
    from ramify.store import Store
    from ramify.store.exchange import write

    if file.exists() and not force:
        raise InvalidValue(f"{file} is there already: pass --force to overwrite it")
    with Store.open(directory).snapshot() as snapshot, progress(f"writing {file.name}"):
        bank = with_tokens(snapshot) if tokens else snapshot.bank()
        write(bank, {name: snapshot.outcomes(name) for name in snapshot.outcome_names}, file)
    many, asked = int(bank.drawn.sum()), len(bank.questions)
    found = {"written": str(file), "candidates": many, "questions": asked}
    emit(as_json, found, f"{many} candidates of {asked} questions written to {file}")


@app.command()
def info(
    directory: Directory,
    as_json: Json = False,
) -> None:
    """Print what a bank holds: questions, N, responses, invalid, at the cap, tokens, recorded signals, bytes.

    What was not recorded is unknown, never 0:

        ramify bank info mybank

        ramify bank info mybank --json | jq '.rows[].invalid'
    """
    from ramify.store import Store

    with Store.open(directory).snapshot() as snapshot:
        inventory = snapshot.inventory()
    emit(as_json, inventory.describe(), str(inventory))


@app.command()
def verify(directory: Directory, as_json: Json = False) -> None:
    """Check every checksum and invariant of a bank, and name what is broken.

    The exit status is 0 for a sound bank and 1 for a broken one:

        ramify bank verify mybank && echo sound
    """
    from ramify.store import Store

    store = Store.open(directory)
    with progress(f"checking {directory.name}"):
        problems = store.verify()
    told = "\n".join(map(str, problems)) or f"{directory}: sound"
    emit(as_json, {"bank": str(directory), "sound": not problems, "problems": list(map(str, problems))}, told)
    if problems:
        raise typer.Exit(1)


@app.command()
def compact(directory: Directory, as_json: Json = False) -> None:
    """Rewrite a bank as few large files in one order: smaller, and faster to read.

    Readers and writers may be at work meanwhile, and nothing is lost if it is interrupted:

        ramify bank compact mybank

    The same content gives the same bytes.
    """
    from ramify.store import Store

    store = Store.open(directory)
    before = _bytes(directory)
    with progress(f"compacting {directory.name}"):
        store.compact()
    after = _bytes(directory)
    found = {"bank": str(directory), "bytes_before": before, "bytes_after": after}
    emit(as_json, found, f"{directory}: {before:,} bytes before, {after:,} after")


def _proposal(kind: str, model: str, protocol: str) -> Proposal | None:
    """What the caller says of the candidates' origin; None leaves it to the file."""
    from ramify.bank import Proposal

    return Proposal(kind or "iid", model=model, protocol=protocol) if kind or model or protocol else None


def _responses(store: Store) -> int:
    with store.snapshot() as snapshot:
        return len(snapshot.order.row)


def _bytes(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())

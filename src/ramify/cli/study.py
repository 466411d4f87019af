"""``ramify run`` and ``ramify report``: a study file to a folder, and the folder to a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli.options import Json, writable
from ramify.cli.progress import resumable, track
from ramify.cli.terminal import emit, number, span, table

if TYPE_CHECKING:
    from ramify.report import Page
    from ramify.study import Checked, Result

__all__ = ["report", "run"]


def run(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study file: .toml, or .py that makes a Study.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The study's folder; runs/NAME by default.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Validate and plan, and run nothing.")] = False,
    reduced: Annotated[bool, typer.Option("--reduced", help="The small form that the file itself describes.")] = False,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="Only these, where not all are served at once. Repeatable."),
    ] = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Write no report.html.")] = False,
    as_json: Json = False,
) -> None:
    """Run a study: everything is checked first, what is there is reused, and the result is a folder with a page.

        ramify run studies/demo.toml --check

        ramify run studies/demo.toml

    The same command goes on after Ctrl-C or a crash. Change one rule in the file, and only that rule is decided again.
    A file with a [reduced] table has a small form, for a first look and for tests:

        ramify run studies/repeated.toml --reduced
    """
    from ramify.study import check_study, run_study

    if check:
        found = check_study(study, reduced=reduced, models=models or (), offline=True)
        return emit(as_json, *_planned(study, found))
    folder = out or Path("runs") / (study.stem + ("-reduced" if reduced else ""))
    with resumable(), track(f"running {study.name}", 0) as tracker:
        result = run_study(study, folder, tracker.progress, reduced=reduced, models=models or ())
    page = None if no_page else _page(result).write(folder / "report.html")
    return emit(as_json, _summary(result, folder, page), *_told(result, folder, page))


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A study's folder, or a bank's or a run's.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where the page goes; DIR/report.html.")
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures", metavar="DIR", help="Also every figure and table, for papers: SVG, PDF, CSV, Markdown, LaTeX."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the page of what is stored: nothing is sampled, scored or decided again.

        ramify report runs/demo

        ramify report runs/demo --out page.html --figures figures/

    A bank or a run gets the page of its profile.
    """
    if out is not None or folder.is_dir():
        out = writable(out or folder / "report.html", "--out")
    page = _of_folder(folder)
    written = page.write(out or folder / "report.html")
    made = _figures(page, figures) if figures else []
    answer = {"page": str(written), "bytes": written.stat().st_size, "figures": made}
    told = f"written to {written} ({written.stat().st_size / 1e6:.1f} MB)"
    emit(as_json, answer, told, f"{len(made)} files in {figures}" if figures else "")


def _of_folder(folder: Path) -> Page:
    from ramify.cli.source import load
    from ramify.errors import InvalidValue
    from ramify.report import profile_page
    from ramify.study import Result

    if (folder / "result.json").exists():
        return _page(Result.read(folder))
    if not folder.is_dir():
        raise InvalidValue(f"{folder} is no folder: `ramify profile {folder}` makes the page of a file")
    if (folder / "study.txt").exists():
        raise InvalidValue(f"{folder} holds a study that is not finished: go on with `ramify run STUDY --out {folder}`")
    source = load(folder)
    return profile_page(source.bank, source.binary(), title=source.name)


def _page(result: Result) -> Page:
    from ramify.report import page_of

    return page_of(result)


def _figures(page: Page, folder: Path) -> list[str]:
    """Every view of every figure as SVG and PDF, its data once; every table as data, Markdown and LaTeX."""
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, str | bytes] = {}
    for name, figure in page.figures().items():
        made[f"{name}.csv"] = figure.csv()
        for view, file in figure.files().items():
            made |= {f"{file}.svg": figure.svg(view), f"{file}.pdf": figure.pdf(view)}
    for name, found in page.tables().items():
        made |= {f"table-{name}.csv": found.csv(), f"table-{name}.md": found.markdown() + "\n"}
        made[f"table-{name}.tex"] = found.latex() + "\n"
    for name, picture in page.pictures().items():
        made[f"{name}.svg"] = picture.svg
    for file, what in made.items():
        (folder / file).write_bytes(what if isinstance(what, bytes) else what.encode())
    return [str(folder / file) for file in made]


def _planned(study: Path, found: Checked) -> tuple[dict[str, Any], str]:
    """What a study would make, for programs and in words."""
    given, planned = found.source.study, found.plan
    names = {part: [each.name for each in getattr(given, part)] for part in ("tasks", "models", "protocols")}
    answer = {"study": str(study), "title": given.title, **names, "leaves": planned.leaves, "worst": planned.worst}
    sizes = ", ".join(f"{len(each)} {part}" for part, each in names.items())
    shared, absent = "\n".join(planned.shared), list(found.absent)
    servers = [each.name for each in given.models if hasattr(each.model, "urls")]
    ends = [f"not here yet, and needed to run it: {each}" for each in absent] or ["nothing is wrong with it"]
    ends += [f"asked when it runs, and not before: the servers of {', '.join(servers)}"] if servers else []
    said = "\n".join([f"{study}: {sizes}; {planned.most} (every leaf at its cap)", shared, *ends])
    return answer | {"shared": list(planned.shared), "absent": absent}, said


def _summary(result: Result, folder: Path, page: Path | None) -> dict[str, Any]:
    rows = [
        {
            "task": row.task,
            "model": row.model,
            "protocol": row.label,
            "kind": row.kind,
            "utility": row.estimate(),
            "cost": row.mean_cost,
            "unit": row.unit,
            "invalid": float(row.invalid.mean()),
            "capped": float(row.capped.mean()),
            "bank": row.bank,
        }
        for row in result.rows
    ]
    compared = [
        {"task": each.task, "a": each.a, "b": each.b, "difference": each.difference, "same_bank": each.same_bank}
        for each in result.comparisons
    ]
    answer = {"title": result.title, "folder": str(folder), "rows": rows, "comparisons": compared}
    return answer | {"shared": list(result.shared), "reused": list(result.reused), "page": page}


def _told(result: Result, folder: Path, page: Path | None) -> list[str]:
    from ramify.ledger import amount

    many = len({(row.task, row.model) for row in result.rows}) > 1
    lines = []
    for row in result.rows:
        own = row.estimate()
        mark = " (diagnostic)" if row.kind == "diagnostic" else ""
        name = f"{row.model}, {row.task}: {row.label}{mark}" if many else f"{row.label}{mark}"
        shares = [number(float(row.invalid.mean())), number(float(row.capped.mean()))]
        lines.append([name, number(own.value), span(own), amount(row.mean_cost), *shares])
    unit = result.rows[0].unit if result.rows else "cost"
    covered = f"{100 * result.rows[0].level:g} % over questions" if result.rows else ""
    parts = [result.title, table(["", "utility", covered, unit, "no answer", "at the cap"], lines)]
    if result.comparisons:
        rows = [
            [f"{each.a} minus {each.b}", f"{each.difference.value:+.3f}", span(each.difference)]
            for each in result.comparisons
        ]
        level = result.comparisons[0].difference.level
        parts.append(table(["paired difference", "", f"{100 * level:g} % over questions"], rows))
    parts += ["\n".join([*result.shared, *result.notes]), "\n".join(result.reused)]
    return [*parts, f"kept in {folder}" + (f"; the page is {page}" if page else "")]

"""What a page is made of: figures, tables, remarks, pictures and the question explorer. All of them plain values."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ramify.errors import require
from ramify.metrics.estimate import Estimate
from ramify.report import export, text, theme

__all__ = [
    "Cell",
    "Column",
    "Explorer",
    "Figure",
    "Page",
    "Part",
    "Picture",
    "Remark",
    "Section",
    "Table",
    "plain",
    "shown_in",
]

Cell: TypeAlias = str | float | int | bool | None
Spec: TypeAlias = Mapping[str, Any]
KINDS = ("text", "code", "percent", "points", "number", "count", "chance")
WIDTH = 560  # of a static figure that fills its place on the page


def plain(value: Any) -> Cell:
    """A cell that JSON can hold: what is not a finite number is None, NumPy's scalars become Python's.

    >>> plain(np.float64("nan")), plain(np.int64(3)), plain(0.123456789)
    (None, 3, 0.1234568)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None  # a chart has no more digits than that
    return value if value is None or isinstance(value, bool | int) else text.shown(value)


def shown_in(spec: Any) -> Any:
    """A specification whose strings are made visible as those of the rows are, so that filters still find them."""
    if isinstance(spec, Mapping):
        return {text.shown(key): shown_in(value) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [shown_in(value) for value in spec]
    return text.shown(spec) if isinstance(spec, str) else spec


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A chart: a Vega-Lite specification without data, the rows it draws, and the words that replace it.

    ``views`` are other specifications over the same rows, which the reader may choose. ``alt`` says in words what is
    seen, ``note`` what bands are and which cost an axis leaves out; ``alts`` and ``notes`` are those of other views,
    where they say something else.

    >>> spec = {"mark": "point", "encoding": {"x": {"field": "k", "type": "quantitative"}}}
    >>> Figure("one", "One", spec, [{"k": 1}], "One point at 1.").csv()
    'k\\r\\n1\\r\\n'
    """

    name: str
    title: str
    spec: Spec
    rows: Sequence[Mapping[str, Any]]
    alt: str
    note: str = ""
    view: str = ""  # what the first specification shows, where there are others
    views: Mapping[str, Spec] = dataclasses.field(default_factory=dict)
    hidden: tuple[str, ...] = ()  # columns that only place marks, and are no data
    alts: Mapping[str, str] = dataclasses.field(default_factory=dict)  # view -> its own words
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        require(
            self.name == text.slug(self.name), "Figure.name", self.name, f"use {text.slug(self.name)!r}: it names files"
        )
        require(self.alt.strip(), f"Figure({self.name!r}).alt", self.alt, "say in words what the figure shows")
        require("data" not in self.spec, f"Figure({self.name!r}).spec", "data", "hand the rows in as rows")
        require(not self.views or self.view, f"Figure({self.name!r}).view", "", "name what the first view shows")
        strange = sorted({*self.alts, *self.notes} - {self.view, *self.views})
        require(
            not (self.views and strange),
            f"words of Figure({self.name!r})",
            strange,
            "give words to views that there are",
        )

    def all_views(self) -> dict[str, Spec]:
        """Every view by its name; the only one of a figure without others has none."""
        return {self.view: self.spec, **self.views}

    def words(self, view: str = "") -> tuple[str, str]:
        """(alt, note) of a view: its own, or those of the figure."""
        view = view or self.view
        return self.alts.get(view, self.alt), self.notes.get(view, self.note)

    def files(self) -> dict[str, str]:
        """view -> the name of its file, without an ending: that of the figure, and of the view where there are several.

        >>> spec = {"mark": "point"}
        >>> Figure("f", "F", spec, [], "F.", view="total cost", views={"k": spec, "k!": spec}).files()
        {'total cost': 'f-total-cost', 'k': 'f-k', 'k!': 'f-k-2'}
        """
        found: dict[str, str] = {}
        for view in self.all_views():
            name = whole = f"{self.name}-{text.slug(view)}" if self.views else self.name
            again = itertools.count(2)
            while name in found.values():
                name = f"{whole}-{next(again)}"
            found[view] = name
        return found

    def called(self, view: str = "") -> str:
        """The title with the view that is shown, where there are several."""
        return f"{self.title}: {view or self.view}" if self.views else self.title

    def columns(self) -> list[str]:
        """The columns of the data, in order of appearance, without those that only place marks."""
        return [name for name in dict.fromkeys(key for row in self.rows for key in row) if name not in self.hidden]

    def vega_lite(self, view: str = "") -> dict[str, Any]:
        """The whole specification, with data and theme: what any Vega-Lite tool draws."""
        known = {"": self.spec, self.view: self.spec, **self.views}
        require(view in known, "view", view, f"use one of {', '.join(filter(None, known))}")
        spec = shown_in(known[view])
        spec.setdefault("width", WIDTH)
        values = [{key: plain(value) for key, value in row.items()} for row in self.rows]
        schema = "https://vega.github.io/schema/vega-lite/v6.json"
        return {"$schema": schema, "data": {"values": values}, "config": theme.CONFIG, **spec}

    def svg(self, view: str = "") -> str:
        """A static picture, for papers; its title names the view."""
        alt, _ = self.words(view)
        return export.named(export.svg(self.vega_lite(view)), text.shown(self.called(view)), text.shown(alt))

    def pdf(self, view: str = "") -> bytes:
        """A static picture, for papers; text stays text."""
        return export.pdf(self.vega_lite(view))

    def png(self, view: str = "", scale: float = 2.0) -> bytes:
        """A static picture on white."""
        return export.png(self.vega_lite(view), scale)

    def csv(self) -> str:
        """The data of the figure."""
        return export.csv(self.columns(), [[plain(row.get(name)) for name in self.columns()] for row in self.rows])


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the key of its cells, its heading, and what its cells are."""

    key: str
    label: str
    kind: str = "text"
    help: str = ""  # what the heading means

    def __post_init__(self) -> None:
        require(self.kind in KINDS, f"Column({self.key!r}).kind", self.kind, f"use one of {', '.join(KINDS)}")

    @property
    def numeric(self) -> bool:
        """Whether cells are aligned to the right."""
        return self.kind in ("percent", "points", "number", "count", "chance")

    def show(self, cell: Any) -> str:
        """A cell as people read it; an Estimate comes with its interval."""
        if isinstance(cell, Estimate):
            inside = f" [{100 * cell.low:.1f}, {100 * cell.high:.1f}]".replace("-", "−") if cell.covers else ""
            value = {"percent": text.percent, "points": text.points}.get(self.kind, text.number)(cell.value)
            return value + (inside if self.kind in ("percent", "points") else "")
        cell = plain(cell)
        if cell is None:
            return "–"
        if self.kind == "percent":
            return text.percent(float(cell))
        if self.kind == "points":
            return text.points(float(cell))
        if self.kind == "chance":
            return text.chance(float(cell))
        return text.number(float(cell)) if self.numeric else str(cell)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows under headings. A cell may be an Estimate, and is then shown with its interval.

    >>> table = Table("t", "Rules", (Column("rule", "rule"), Column("acc", "accuracy", "percent")),
    ...               [{"rule": "plurality", "acc": Estimate(0.5, 0.4, 0.6, 0.95, ("questions",))}])
    >>> print(table.markdown())
    | rule | accuracy |
    |---|---:|
    | plurality | 50.0 % [40.0, 60.0] |
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""

    def without_constant(self, *keys: str) -> Table:
        """The table without those of these columns that say the same in every row."""
        dull = {key for key in keys if len({row.get(key) for row in self.rows}) == 1}
        return dataclasses.replace(self, columns=tuple(each for each in self.columns if each.key not in dull))

    def cells(self) -> list[list[tuple[str, str]]]:
        """(value, interval) of each cell as people read them; the interval is empty where there is none."""

        def split(said: str) -> tuple[str, str]:
            value, bracket, rest = said.partition(" [")
            return (value, f"[{rest}") if bracket else (said, "")

        def shown(column: Column, cell: Any) -> tuple[str, str]:
            return split(column.show(cell)) if isinstance(cell, Estimate) else (column.show(cell), "")

        return [[shown(column, row.get(column.key)) for column in self.columns] for row in self.rows]

    def body(self) -> list[list[str]]:
        """The cells as people read them."""
        return [[column.show(row.get(column.key)) for column in self.columns] for row in self.rows]

    def markdown(self) -> str:
        """The table in Markdown."""
        return export.markdown([each.label for each in self.columns], self.body(), self._right())

    def latex(self) -> str:
        """The table in LaTeX, with the rules of ``booktabs``."""
        return export.latex([each.label for each in self.columns], self.body(), self._right())

    def csv(self) -> str:
        """The table as data: an Estimate becomes three columns."""
        names, rows = self.flat()
        return export.csv(names, rows)

    def flat(self) -> tuple[list[str], list[list[Cell]]]:
        """(names, rows) of plain cells; an Estimate becomes value, low and high."""
        wide = {each.key for each in self.columns if any(isinstance(row.get(each.key), Estimate) for row in self.rows)}
        names = [
            name
            for each in self.columns
            for name in ([each.key, f"{each.key} low", f"{each.key} high"] if each.key in wide else [each.key])
        ]

        def cells(cell: Any, key: str) -> list[Cell]:
            if isinstance(cell, Estimate):
                return [plain(cell.value), plain(cell.low), plain(cell.high)]
            return [plain(cell), None, None] if key in wide else [plain(cell)]

        return names, [[c for each in self.columns for c in cells(row.get(each.key), each.key)] for row in self.rows]

    def _right(self) -> list[bool]:
        return [each.numeric for each in self.columns]


@dataclasses.dataclass(frozen=True, slots=True)
class Remark:
    """A sentence that stands out: a warning, or something that has to be known to read what follows."""

    words: str
    level: str = "note"

    def __post_init__(self) -> None:
        require(self.level in ("note", "warning"), "Remark.level", self.level, "use note or warning")


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """A drawing that is made already, such as a search tree. It is shown as an image, so nothing in it can run."""

    name: str
    title: str
    svg: str
    alt: str
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Explorer:
    """Questions that can be sorted and filtered, down to the candidates and their text. One entry a bank."""

    name: str
    banks: Mapping[str, Mapping[str, Any]]  # name -> what ``questions.entries`` makes


Part: TypeAlias = Figure | Table | Remark | Picture | Explorer


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Section:
    """Parts under one heading, after a sentence that says what they show."""

    name: str
    title: str
    lead: str
    parts: tuple[Part, ...]
    wide: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Page:
    """One report: the finding in words, a few numbers, and sections. ``write`` makes a file that needs nothing else."""

    title: str
    subtitle: str
    finding: str
    tiles: tuple[tuple[str, str, str], ...]  # (number, what it is, what belongs to it)
    sections: tuple[Section, ...]
    made: str = ""  # by what, from what

    def __post_init__(self) -> None:
        for kind in (Figure, Table, Picture):
            names = [part.name for each in self.sections for part in each.parts if isinstance(part, kind)]
            twice = sorted({name for name in names if names.count(name) > 1})
            require(not twice, f"names of {kind.__name__.lower()}s", twice, "give each a name of its own")

    def figures(self) -> dict[str, Figure]:
        """Every figure by its name."""
        return {part.name: part for each in self.sections for part in each.parts if isinstance(part, Figure)}

    def tables(self) -> dict[str, Table]:
        """Every table by its name."""
        return {part.name: part for each in self.sections for part in each.parts if isinstance(part, Table)}

    def pictures(self) -> dict[str, Picture]:
        """Every picture by its name."""
        return {part.name: part for each in self.sections for part in each.parts if isinstance(part, Picture)}

    def html(self) -> str:
        """The page, self-contained: no network, no evaluated code."""
        from ramify.report.render import html

        return html(self)

    def write(self, path: str | Path) -> Path:
        """Write the page to a file, and say where it is."""
        target = Path(path)
        target.write_text(self.html(), encoding="utf-8", newline="\n")
        return target

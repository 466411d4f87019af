"""The page as one HTML file: autoescaped templates, data in JSON islands, and a policy that lets nothing else run."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from ramify.report import theme, vendor
from ramify.report.text import shown
from ramify.report.values import WIDTH, Explorer, Figure, Page, Picture, Table, plain, shown_in

__all__ = ["html", "island"]

ASSETS = Path(__file__).parent / "assets"


def html(page: Page) -> str:
    """The whole page. Same page, same bytes."""
    styles, scripts = _style(), [*vendor.scripts(), _asset("page.js")]
    return str(
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            kind=_kind,
            style=_raw(styles),
            scripts=[_raw(script) for script in scripts],
            policy=policy(styles, scripts),
            figures=island({each.name: packed(each) for each in page.figures().values()}),
            tables=island(
                {each.name: dict(zip(("columns", "rows"), each.flat(), strict=True)) for each in _tables(page)}
            ),
            explorers=island({part.name: part.banks for part in _parts(page, Explorer)}),
            theme=island(
                {
                    "width": WIDTH,
                    "config": theme.CONFIG,
                    "names": {colour: name for name, colour in theme.LIGHT.items()},
                }
            ),
        )
    )


def policy(style: str, scripts: list[str]) -> str:
    """Nothing is loaded, and nothing runs but these very scripts; no code is evaluated, no address is opened."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    allowed = {
        "default-src": "'none'",
        "script-src": " ".join(map(digest, scripts)),
        "style-src": digest(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def island(value: Any) -> Any:
    """JSON that may stand inside a script element: no ``<`` in it can end the element or open another.

    >>> print(island({"a": "</script><!--"}))
    {"a":"\\u003c/script\\u003e\\u003c!--"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return _raw(text)


def packed(figure: Figure) -> dict[str, Any]:
    """What the page's script needs of a figure; rows as lists, which take half the room of mappings."""
    names = list(dict.fromkeys(key for row in figure.rows for key in row))
    views = figure.all_views()
    return {
        "title": shown(figure.title),
        "views": shown_in(views),
        "alts": {shown(view): shown(figure.words(view)[0]) for view in views},
        "note": kept(shown(figure.note)),
        "notes": {shown(view): kept(shown(note)) for view, note in figure.notes.items()},
        "columns": names,
        "shown": figure.columns(),
        "rows": [[plain(row.get(name)) for name in names] for row in figure.rows],
    }


def kept(said: str) -> str:
    """Words whose equations and percentages are not broken at the end of a line."""
    return said.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")


def _kind(part: object) -> str:
    return type(part).__name__.lower()


def _parts(page: Page, kind: type) -> list[Any]:
    return [part for section in page.sections for part in section.parts if isinstance(part, kind)]


def _tables(page: Page) -> list[Table]:
    return _parts(page, Table)


def _raw(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # our own assets, and JSON without a "<"


@functools.cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


@functools.cache
def _style() -> str:
    """The style sheet under the colours of both themes."""

    def rules(colours: dict[str, str]) -> str:
        return "".join(f"--{name}:{colour};" for name, colour in colours.items())

    dark = f"color-scheme:dark;{rules(theme.DARK)}"
    head = (
        f":root{{color-scheme:light;{rules(theme.LIGHT)}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
    )
    return head + _asset("page.css")


@functools.cache
def _environment() -> Any:
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.filters["shown"] = shown
    found.filters["kept"] = kept
    found.filters["image"] = _image
    return found


def _image(picture: Picture) -> str:
    """The picture as an address that holds it: as an image, nothing in it runs and nothing is loaded by it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.svg.encode()).decode()}"

"""Figures and tables for other places: SVG, PDF and PNG, LaTeX, Markdown and CSV, all made without a network."""

from __future__ import annotations

import csv as _csv
import html
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["csv", "latex", "markdown", "named", "pdf", "png", "svg"]

VEGA_LITE = "6.4"  # as on the page
PRINTED = "Arial, 'Liberation Sans', Helvetica, sans-serif"  # a page has the reader's fonts, a file has few


def svg(spec: Mapping[str, Any]) -> str:
    """A Vega-Lite specification as SVG on white: its ink is that of a bright page, wherever it is shown."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(_static(spec, "white"), vl_version=VEGA_LITE))


def named(picture: str, title: str, words: str) -> str:
    """An SVG that says what it is, to those who cannot see it and to those who find it in a folder.

    >>> named('<svg width="9"><g/></svg>', "a < b", "Two.")
    '<svg width="9"><title>a &lt; b</title><desc>Two.</desc><g/></svg>'
    """
    head, bracket, rest = picture.partition(">")
    return f"{head}{bracket}<title>{html.escape(title)}</title><desc>{html.escape(words)}</desc>{rest}"


def pdf(spec: Mapping[str, Any]) -> bytes:
    """A Vega-Lite specification as PDF."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_pdf(_static(spec), vl_version=VEGA_LITE))


def png(spec: Mapping[str, Any], scale: float = 2.0) -> bytes:
    """A Vega-Lite specification as PNG on white."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(_static(spec, "white"), vl_version=VEGA_LITE, scale=scale))


def _static(spec: Mapping[str, Any], background: str = "transparent") -> str:
    config = {**spec.get("config", {}), "font": PRINTED, "background": background}
    return json.dumps({**spec, "config": config})


# A spreadsheet runs a text cell that begins like this as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Comma-separated values. Text that a spreadsheet would run gets an apostrophe in front; numbers stay.

    >>> csv(["answer", "p"], [["=1+1", 0.5], ["-3", None]])
    "answer,p\\r\\n'=1+1,0.5\\r\\n-3,\\r\\n"
    """
    out = io.StringIO()
    writer = _csv.writer(out)
    writer.writerow([_cell(name) for name in names])
    writer.writerows([_cell(each) for each in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return "" if value is None else value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def markdown(head: Sequence[str], body: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """A table in Markdown; nothing in a cell can end it, or become HTML.

    >>> print(markdown(["a", "n"], [["x|<b>", "1"]], [False, True]))
    | a | n |
    |---|---:|
    | x\\|&lt;b> | 1 |
    """

    def line(cells: Sequence[str]) -> str:
        safe = (c.replace("&", "&amp;").replace("<", "&lt;").replace("\\", "\\\\").replace("|", "\\|") for c in cells)
        return "| " + " | ".join(" ".join(c.split()) for c in safe) + " |"

    rule = "|" + "|".join("---:" if each else "---" for each in right) + "|"
    return "\n".join([line(head), rule, *(line(row) for row in body)])


# What LaTeX obeys, and what it cannot spell in its standard fonts.
LATEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "−": "$-$",
    "–": "--",
    "…": r"\ldots{}",
    "≥": r"$\ge$",
    "≤": r"$\le$",
    "×": r"$\times$",
    "⊥": r"$\bot$",
    "\n": " ",
    "\t": " ",
}


def latex(head: Sequence[str], body: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """A table in LaTeX with the rules of ``booktabs``.

    >>> print(latex(["rule", "acc"], [["a_b", "50 %"]], [False, True]))
    \\begin{tabular}{@{}lr@{}}
    \\toprule
    rule & acc \\\\
    \\midrule
    a\\_b & 50 \\% \\\\
    \\bottomrule
    \\end{tabular}
    """

    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(LATEX.get(char, char) for char in cell) for cell in cells) + r" \\"

    shape = "".join("r" if each else "l" for each in right)
    rules = [r"\toprule", line(head), r"\midrule", *(line(row) for row in body), r"\bottomrule"]
    return "\n".join([f"\\begin{{tabular}}{{@{{}}{shape}@{{}}}}", *rules, r"\end{tabular}"])

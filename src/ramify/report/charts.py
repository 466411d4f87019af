"""The few forms that every chart of a report has, as Vega-Lite: curves with bands, dots with intervals, a triangle.

Series are labelled at their ends rather than in a legend; shares run over the whole range from 0 to 1; whatever has an
interval shows it.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ramify.report.theme import INK, LABELS, MUTED, PAPER, SERIES, VIRIDIS_TURN, label_of

__all__ = [
    "curves",
    "dodged",
    "dots",
    "gap_area",
    "labelled",
    "points",
    "share_axis",
    "short",
    "spread",
    "triangle",
    "wrapped",
]

Rows = Sequence[Mapping[str, Any]]
PERCENT = ".0%"
HEIGHT = 300
LETTERS = 16  # of a line of a label beside a curve
LINE = 0.055  # the height of such a line, as a share of the plot
APART = 3.5  # pixels between whiskers that would stand on the same spot
# 0, 200, 1.2k, 3M: each number by itself. The format of a whole axis gives all its numbers one unit: 0k, 0.2k, 1.2k.
AMOUNT = "abs(datum.value) < 1 ? format(datum.value, '.3~r') : format(datum.value, '.3~s')"


def share_axis(title: str) -> dict[str, Any]:
    """The y axis of a share: always from 0 to 1."""
    axis = {"format": PERCENT, "title": title, "tickCount": 5}
    return {"type": "quantitative", "scale": {"domain": [0, 1], "nice": False}, "axis": axis}


def amount_axis(
    title: str, log: bool, values: Sequence[float] | None = None, spent: Sequence[float] = ()
) -> dict[str, Any]:
    """The x axis of a cost or a number of candidates; a logarithmic one says so, and has a tick at either end."""
    axis: dict[str, Any] = {"title": title + (" (log scale)" if log else ""), "labelExpr": AMOUNT, "labelOverlap": True}
    scale: dict[str, Any] = {"type": "log", "nice": False} if log else {"zero": True, "nice": True}
    if values is None and log and len(spent):
        values = round_numbers(min(spent), max(spent))
    if values is not None:
        axis["values"] = list(values)
        scale["domain"] = [min(values), max(values)] if log else [0, max(values)]
    else:
        axis["tickCount"] = 6
    return {"type": "quantitative", "axis": axis, "scale": scale}


def round_numbers(low: float, high: float) -> list[float]:
    """1, 2, 5, 10 and so on, from the last one below ``low`` to the first one above ``high``.

    >>> round_numbers(38.6, 1879), round_numbers(0.3, 90_000)
    ([20, 50, 100, 200, 500, 1000, 2000], [0.1, 1, 10, 100, 1000, 10000, 100000])
    """
    ends = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    for steps in ((1, 2, 5), (1,)):
        ticks = [step * 10**power if power >= 0 else step / 10**-power for power in range(*ends) for step in steps]
        below, above = [tick for tick in ticks if tick <= low], [tick for tick in ticks if tick >= high]
        found = [tick for tick in ticks if below[-1] <= tick <= (above[0] if above else 10 ** ends[1])]
        if len(found) <= 9:
            break
    return found


def spread(
    wanted: Sequence[float], heights: float | Sequence[float], low: float = 0.0, high: float = 1.0
) -> list[float]:
    """The middles of labels, as near to ``wanted`` as their ``heights`` allow, in the same order.

    Those that would collide move apart both ways, around their mean: the squares of the ways they are moved are least
    (isotonic regression of ``wanted`` less the room of the labels before it).

    >>> [round(y, 2) for y in spread([0.5, 0.52, 0.9], 0.06)], [round(y, 2) for y in spread([0.6] * 4, 0.1)]
    ([0.48, 0.54, 0.9], [0.45, 0.55, 0.65, 0.75])
    """
    tall = [heights] * len(wanted) if isinstance(heights, float | int) else list(heights)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    above = [0.0]  # the distance of each from the first, if they stood as close as they may
    for i, j in itertools.pairwise(order):
        above.append(above[-1] + (tall[i] + tall[j]) / 2)
    blocks: list[tuple[float, int]] = []  # (sum, size) of neighbours that move together
    for i, room in zip(order, above, strict=False):
        block = (wanted[i] - room, 1)
        while blocks and blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]:
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1])
        blocks.append(block)
    most = high - above[-1]
    free = [max(min(low, most), min(most, total / size)) for total, size in blocks for _ in range(size)]
    placed = {i: start + room for i, start, room in zip(order, free, above, strict=False)}
    return [placed[i] for i in range(len(wanted))]


def short(name: str) -> str:
    """A name as it fits beside a line: of a very long one the middle is left out, since names differ at their ends.

    >>> short("best of N by verifier"), short("best of N by compass (reference-assisted)")
    ('BoN verifier', 'BoN compass (ref.)')
    >>> short("the outcome head of the second writer, weighted by its rank")
    'the outcome head of the … weighted by its rank'
    """
    said = name.replace("best of N by ", "BoN ").replace("(reference-assisted)", "(ref.)").replace(" (ceiling)", "")
    half = 3 * LETTERS // 2 - 1
    return said if len(said) <= 3 * LETTERS else f"{said[:half].rstrip()} … {said[-half:].partition(' ')[2]}"


def wrapped(words: str, most: int) -> list[str]:
    """The words in lines of at most ``most`` letters; a word that is longer is broken.

    >>> wrapped("best of n, outcome head", 12), wrapped("abcdefgh", 3)
    (['best of n,', 'outcome head'], ['abc', 'def', 'gh'])
    """
    lines = textwrap.wrap(words.replace(" = ", "\u00a0=\u00a0"), most, break_on_hyphens=False)
    return lines or [""]


def dodged(rows: Rows, series: str, x: str) -> list[dict[str, Any]]:
    """The rows with ``dodge``, in pixels: series that have points at the same place stand beside each other."""
    spots: dict[float, dict[str, None]] = {}
    for row in rows:
        if row[x] is not None and not math.isnan(row[x]):
            spots.setdefault(float(f"{row[x]:.3g}"), {})[row[series]] = None
    crowded = list(dict.fromkeys(name for names in spots.values() if len(names) > 1 for name in names))
    step = min(APART, 24 / max(1, len(crowded)))
    shift = {name: round(step * (i - (len(crowded) - 1) / 2), 2) for i, name in enumerate(crowded)}
    return [{**row, "dodge": shift.get(row[series], 0.0)} for row in rows]


def labelled(rows: Rows, series: str, x: str, y: str, line: float = LINE) -> list[dict[str, Any]]:
    """The rows, the last of each series with ``label`` and its place ``label_y``, so that labels do not collide."""
    last: dict[str, int] = {}
    for i, row in enumerate(rows):
        value = row[y]
        here = value is not None and not math.isnan(value)
        if here and (row[series] not in last or row[x] >= rows[last[row[series]]][x]):
            last[row[series]] = i
    lines = {i: wrapped(short(row[series]), LETTERS) for i, row in enumerate(rows) if last.get(row[series]) == i}
    heights = [line * len(each) for each in lines.values()]
    places = dict(zip(lines, spread([rows[i][y] for i in lines], heights), strict=True))
    return [{**row, **(_label(lines[i], places[i], line) if i in places else {})} for i, row in enumerate(rows)]


def _label(lines: Sequence[str], place: float, line: float) -> dict[str, Any]:
    """A label whose middle is at its place; Vega places the first line."""
    return {"label": "\n".join(lines), "label_y": place + line * (len(lines) - 1) / 2}


def _colour(colours: Mapping[str, str], field: str, text: bool = False) -> dict[str, Any]:
    chosen = [label_of(colour) if text else colour for colour in colours.values()]
    return {"field": field, "type": "nominal", "scale": {"domain": list(colours), "range": chosen}, "legend": None}


def curves(
    colours: Mapping[str, str],
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    *,
    series: str = "series",
    tooltip: Sequence[Mapping[str, Any]] = (),
    dashed: Sequence[str] = (),
    height: int = HEIGHT,
    keep: Mapping[str, Any] | None = None,
    whiskers: bool = False,
) -> dict[str, Any]:
    """Lines with bands ``low`` to ``high`` (or ``whiskers``), points, a label at each end. ``keep`` filters rows.

    Dashed lines lie on top: one that runs along a solid one is seen all the same. With ``whiskers`` rows are dodged.
    """
    colour = _colour(colours, series)
    beside = {"xOffset": {"expr": "datum.dodge"}} if whiskers else {}
    band = {
        "mark": {"type": "area", "opacity": 0.14},
        "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    if whiskers:  # for settings that are points rather than a curve
        band["mark"] = {"type": "rule", "strokeWidth": 1.5, "opacity": 1, **beside}

    def line(which: Mapping[str, Any], dash: Sequence[int]) -> dict[str, Any]:
        mark = {"type": "line", "strokeDash": list(dash), **beside}
        return {"transform": [{"filter": which}], "mark": mark}

    lines = [line({"not": _any_of(series, dashed)}, [1, 0]), line(_any_of(series, dashed), [5, 4])] if dashed else []
    lines = lines or [{"mark": {"type": "line", **beside}}]
    point = {
        "mark": {
            "type": "point",
            "filled": True,
            "size": 46,
            "opacity": 1,
            "stroke": PAPER,
            "strokeWidth": 1.5,
            **beside,
        },
        "encoding": {"tooltip": [dict(each) for each in tooltip]},
    }
    rim = {"stroke": PAPER, "strokeWidth": 4, "strokeJoin": "round"}
    away = {**LABEL, "dx": 18} if whiskers else dict(LABEL)  # beside all points that are dodged
    label = {
        "transform": [{"filter": "isValid(datum.label)"}],
        "encoding": {"y": {**y, "field": "label_y"}, "text": {"field": "label", "type": "nominal"}},
        "layer": [
            {"mark": {**away, **rim}, "encoding": {"color": {"value": PAPER}}},
            {"mark": away, "encoding": {"color": _colour(colours, series, text=True)}},
        ],
    }
    spec: dict[str, Any] = {
        "height": height,
        "encoding": {"x": dict(x), "y": dict(y), "color": colour},  # of every layer that has none of its own
        "layer": [band, *lines, point, label],
        "resolve": {"scale": {"color": "independent"}},
    }
    return {**spec, "transform": [{"filter": keep}]} if keep else spec


# Beside the end of a curve. Where other curves go on behind it, a rim of paper keeps it legible.
LABEL: Mapping[str, Any] = {
    "type": "text",
    "align": "left",
    "dx": 9,
    "fontWeight": 600,
    "baseline": "middle",
    "lineBreak": "\n",
    "lineHeight": 14,
    "limit": 0,
}


def _any_of(field: str, names: Sequence[str]) -> dict[str, Any]:
    return {"field": field, "oneOf": list(names)}


def dots(
    x: Mapping[str, Any],
    name: str,
    order: Sequence[str],
    *,
    colour: str = SERIES[0],
    tooltip: Sequence[Mapping[str, Any]] = (),
    hollow: Sequence[str] = (),
    keep: Mapping[str, Any] | None = None,
    letters: int = 36,
) -> dict[str, Any]:
    """One line a name: an interval from ``low`` to ``high``, a dot at the value, and the value in words (``said``).

    A name of more than ``letters`` is broken into lines, and rows are as high as the longest name needs.
    """
    step = max(26, 14 * max((len(wrapped(each, letters)) for each in order), default=1) + 8)
    lines = _lines_of(letters)
    axis = {
        "labelExpr": lines,
        "labelOffset": {"expr": f"-7 * (length({lines}) - 1)"},  # the middle of the lines at the row
        "labelLimit": 0,
        "labelLineHeight": 14,
        "grid": True,
        "labelColor": INK,
    }
    y = {"field": name, "type": "nominal", "sort": list(order), "title": None, "axis": axis}
    fill = (
        {"condition": {"test": _any_of(name, hollow), "value": PAPER}, "value": colour} if hollow else {"value": colour}
    )
    layers = [
        {
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 1, "color": colour},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
        },
        {
            "mark": {"type": "point", "size": 64, "opacity": 1, "color": colour, "strokeWidth": 2},
            "encoding": {"x": dict(x), "y": y, "fill": fill, "tooltip": [dict(each) for each in tooltip]},
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 8, "color": MUTED, "baseline": "middle"},
            "encoding": {"x": {**x, "field": "high"}, "y": y, "text": {"field": "said", "type": "nominal"}},
        },
    ]
    spec: dict[str, Any] = {"height": {"step": step}, "layer": layers}
    return {**spec, "transform": [{"filter": keep}]} if keep else spec


def _lines_of(letters: int) -> str:
    """The lines of a label as an expression of Vega: what ``wrapped`` does, and the data keep the name as it is."""
    whole = "replace(datum.label, regexp(' = ', 'g'), '\u00a0=\u00a0')"
    parts = f"regexp('([^ ]{{{letters}}}|.{{1,{letters}}}(?: +|$))', 'g')"
    return f"split(trim(replace({whole}, {parts}, '$1\\n')), '\\n')"


def triangle(size: int, *, keep: Mapping[str, Any] | None = None, step: int = 1) -> dict[str, Any]:
    """S_{k,t} as squares over k and t <= k, ``step`` apart; up to 16 of them have their percentage written in."""

    def edge(field: str, title: str) -> dict[str, Any]:
        ticks = list(range(1, size + 1)) if size <= 16 else [1, *range(max(2, size // 8), size + 1, max(2, size // 8))]
        axis = {"title": title, "values": ticks, "grid": False, "format": "d"}
        return {
            "field": f"{field}0",
            "type": "quantitative",
            "scale": {"domain": [0.5 if step == 1 else 0, size + step / 2], "nice": False, "zero": False},
            "axis": axis,
        }

    near = [
        {"calculate": f"datum.{field} {sign} {step / 2}", "as": f"{field}{end}"}
        for field in ("k", "t")
        for end, sign in ((0, "-"), (1, "+"))
    ]
    tooltip = [
        {"field": "k", "title": "candidates k"},
        {"field": "t", "title": "correct, at least t"},
        {"field": "share", "title": "share of questions", "format": ".1%", "type": "quantitative"},
    ]
    square = {
        "mark": {"type": "rect", "strokeWidth": 0},
        "encoding": {
            "x": edge("k", "candidates k"),
            "x2": {"field": "k1"},
            "y": edge("t", "correct, at least t"),
            "y2": {"field": "t1"},
            "color": {
                "field": "share",
                "type": "quantitative",
                "scale": {"scheme": "viridis", "domain": [0, 1]},
                "legend": {
                    "title": "share of questions",
                    "format": PERCENT,
                    "orient": "none",  # in the corner that the triangle leaves free
                    "direction": "horizontal",
                    "legendX": 12,
                    "legendY": 8,
                    "gradientLength": 110,
                },
            },
            "tooltip": tooltip,
        },
    }
    layers: list[dict[str, Any]] = [square]
    if size <= 16:
        x, y = (
            {**edge(field, title), "field": field}
            for field, title in (("k", "candidates k"), ("t", "correct, at least t"))
        )
        # White on the dark part of viridis, black on the bright part: whichever has more contrast with the square.
        tone = {"condition": {"test": f"datum.share > {VIRIDIS_TURN}", "value": "#000000"}, "value": "#fffffe"}
        layers.append(
            {
                "mark": {"type": "text", "fontSize": 10, "opacity": {"expr": f"width < {22 * size} ? 0 : 1"}},
                "encoding": {
                    "x": x,
                    "y": y,
                    "text": {"field": "share", "type": "quantitative", "format": ".0%"},
                    "color": tone,
                },
            }
        )
    transform = [*([{"filter": keep}] if keep else []), *near]
    return {"height": 340, "transform": transform, "layer": layers}


def gap_area(
    x: Mapping[str, Any], y: Mapping[str, Any], *, keep: Mapping[str, Any] | None = None, height: int = HEIGHT
) -> dict[str, Any]:
    """What is available above what is taken, the gap between them shaded, and its interval measured down from above."""
    tooltip = [
        {"field": "k", "title": "candidates k"},
        {"field": "available", "title": "available", "format": ".1%", "type": "quantitative"},
        {"field": "taken", "title": "taken", "format": ".1%", "type": "quantitative"},
        {"field": "gap", "title": "gap", "format": ".1%", "type": "quantitative"},
    ]

    def end(field: str, words: str, colour: str) -> dict[str, Any]:
        return {
            "transform": [{"filter": f"isValid(datum.{words})"}],
            "mark": {**LABEL, "color": colour},
            "encoding": {
                "x": dict(x),
                "y": {**y, "field": field},
                "text": {"field": words, "type": "nominal"},
            },
        }

    def line(field: str, colour: str, dash: list[int]) -> dict[str, Any]:
        point = {"filled": True, "size": 40, "color": colour}
        return {
            "mark": {"type": "line", "color": colour, "strokeDash": dash, "point": point},
            "encoding": {"x": dict(x), "y": {**y, "field": field}, "tooltip": tooltip},
        }

    shade = {
        "mark": {"type": "area", "opacity": 0.16, "color": SERIES[1]},
        "encoding": {"x": dict(x), "y": {**y, "field": "taken"}, "y2": {"field": "available"}},
    }
    middle = {
        "transform": [
            {"filter": "isValid(datum.gap_said)"},
            {"calculate": "(datum.available + datum.taken) / 2", "as": "mid"},
        ],
        "mark": {"type": "text", "align": "left", "dx": 8, "color": LABELS[1], "fontWeight": 600},
        "encoding": {
            "x": dict(x),
            "y": {**y, "field": "mid"},
            "text": {"field": "gap_said", "type": "nominal"},
        },
    }
    whisker = {
        "transform": [
            {"filter": "isValid(datum.low)"},
            {"calculate": "max(0, datum.available - datum.high)", "as": "least"},
            {"calculate": "min(1, datum.available - datum.low)", "as": "most"},
        ],
        "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 1, "color": SERIES[1]},
        "encoding": {"x": dict(x), "y": {**y, "field": "least"}, "y2": {"field": "most"}},
    }
    layers = [
        shade,
        whisker,
        line("taken", SERIES[0], [1, 0]),
        line("available", SERIES[-1], [5, 4]),  # on top: it is seen where nothing is lost, too
        end("available_y", "available_said", LABELS[-1]),
        end("taken_y", "taken_said", LABELS[0]),
        middle,
    ]
    spec: dict[str, Any] = {"height": height, "layer": layers}
    return {**spec, "transform": [{"filter": keep}]} if keep else spec


def points(
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    *,
    colours: Mapping[str, str],
    series: str,
    text: str = "",
    tooltip: Sequence[Mapping[str, Any]] = (),
    under: Sequence[Mapping[str, Any]] = (),
    only: Mapping[str, Any] | None = None,
    keep: Mapping[str, Any] | None = None,
    height: int = HEIGHT,
    dodge: bool = False,
) -> dict[str, Any]:
    """Points with vertical intervals ``low`` to ``high``, over whatever lies ``under``; ``only`` filters the points."""
    colour = _colour(colours, series)
    beside = {"xOffset": {"expr": "datum.dodge"}} if dodge else {}
    filtered = {"transform": [{"filter": only}]} if only else {}
    layers: list[dict[str, Any]] = [
        *(dict(each) for each in under),
        {
            **filtered,
            "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 1, **beside},
            "encoding": {"x": dict(x), "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            **filtered,
            "mark": {
                "type": "point",
                "filled": True,
                "size": 60,
                "opacity": 1,
                "stroke": PAPER,
                "strokeWidth": 1.5,
                **beside,
            },
            "encoding": {"x": dict(x), "y": dict(y), "color": colour, "tooltip": [dict(each) for each in tooltip]},
        },
    ]
    if text:
        layers.append(
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "dy": 10, "fontSize": 11},
                "encoding": {
                    "x": dict(x),
                    "y": dict(y),
                    "text": {"field": text, "type": "nominal"},
                    "color": _colour(colours, series, text=True),
                },
            }
        )
    spec: dict[str, Any] = {"height": height, "layer": layers, "resolve": {"scale": {"color": "independent"}}}
    return {**spec, "transform": [{"filter": keep}]} if keep else spec

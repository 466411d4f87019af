"""The few forms that every chart of a report has, as Vega-Lite: curves with bands, dots with intervals, a triangle.

Series are labelled at their ends rather than in a legend; shares run over the whole range from 0 to 1; whatever has an
interval shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ramify.report.theme import INK, LABELS, MUTED, PAPER, SERIES, label_of

__all__ = ["curves", "dots", "gap_area", "labelled", "points", "share_axis", "short", "spread", "triangle"]

Rows = Sequence[Mapping[str, Any]]
PERCENT = ".0%"
HEIGHT = 300


def share_axis(title: str) -> dict[str, Any]:
    """The y axis of a share: always from 0 to 1."""
    axis = {"format": PERCENT, "title": title, "tickCount": 5}
    return {"type": "quantitative", "scale": {"domain": [0, 1], "nice": False}, "axis": axis}


def amount_axis(title: str, log: bool, values: Sequence[float] | None = None) -> dict[str, Any]:
    """The x axis of a cost or a number of candidates; a logarithmic one says so."""
    axis: dict[str, Any] = {"title": title + (" (log scale)" if log else ""), "format": "~s", "labelOverlap": True}
    scale: dict[str, Any] = {"type": "log", "nice": False} if log else {"zero": True, "nice": True}
    if values is not None:
        axis["values"] = list(values)
        scale["domain"] = [min(values), max(values)] if log else [0, max(values)]
    else:
        axis["tickCount"] = 6
    return {"type": "quantitative", "axis": axis, "scale": scale}


def spread(wanted: Sequence[float], gap: float, low: float = 0.0, high: float = 1.0) -> list[float]:
    """Places for labels as near to ``wanted`` as a distance of ``gap`` allows, in the same order.

    >>> [round(y, 2) for y in spread([0.5, 0.51, 0.9], 0.06)]
    [0.5, 0.56, 0.9]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [0.0] * len(wanted)
    floor = low
    for i in order:
        places[i] = max(wanted[i], floor)
        floor = places[i] + gap
    ceiling = high
    for i in reversed(order):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - gap
    return places


def short(name: str) -> str:
    """A name as it fits beside a line.

    >>> short("best of N by verifier"), short("best of N by compass (reference-assisted)")
    ('BoN verifier', 'BoN compass (ref.)')
    """
    return name.replace("best of N by ", "BoN ").replace("(reference-assisted)", "(ref.)").replace(" (ceiling)", "")


def labelled(rows: Rows, series: str, x: str, y: str, gap: float = 0.055) -> list[dict[str, Any]]:
    """The rows, the last of each series with ``label`` and its place ``label_y``, so that labels do not collide."""
    last: dict[str, int] = {}
    for i, row in enumerate(rows):
        value = row[y]
        here = value is not None and not math.isnan(value)
        if here and (row[series] not in last or row[x] >= rows[last[row[series]]][x]):
            last[row[series]] = i
    places = dict(zip(last.values(), spread([rows[i][y] for i in last.values()], gap), strict=True))
    return [
        {**row, **({"label": short(row[series]), "label_y": places[i]} if i in places else {})}
        for i, row in enumerate(rows)
    ]


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
    """Lines with bands ``low`` to ``high`` (or ``whiskers``), points, a label at each end. ``keep`` filters rows."""
    dash: dict[str, Any] = {"value": [1, 0]}
    if dashed:
        dash["condition"] = {"test": _any_of(series, dashed), "value": [5, 4]}
    colour = _colour(colours, series)
    shared = {"x": dict(x), "y": dict(y)}
    band = {
        "mark": {"type": "area", "opacity": 0.14},
        "encoding": {
            "x": dict(x),
            "y": {**y, "field": "low"},
            "y2": {"field": "high"},
            "color": colour,
        },
    }
    if whiskers:  # for settings that are points rather than a curve
        band["mark"] = {"type": "rule", "strokeWidth": 2, "opacity": 0.35}
    line = {"mark": {"type": "line"}, "encoding": {**shared, "color": colour, "strokeDash": dash}}
    point = {
        "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1, "stroke": PAPER, "strokeWidth": 1.5},
        "encoding": {**shared, "color": colour, "tooltip": [dict(each) for each in tooltip]},
    }
    label = {
        "transform": [{"filter": "isValid(datum.label)"}],
        "mark": {"type": "text", "align": "left", "dx": 8, "fontWeight": 600, "baseline": "middle", "limit": 170},
        "encoding": {
            "x": dict(x),
            "y": {**y, "field": "label_y"},
            "text": {"field": "label", "type": "nominal"},
            "color": _colour(colours, series, text=True),
        },
    }
    spec: dict[str, Any] = {
        "height": height,
        "layer": [band, line, point, label],
        "resolve": {"scale": {"color": "independent"}},
    }
    return {**spec, "transform": [{"filter": keep}]} if keep else spec


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
    step: int = 26,
    limit: int = 220,
) -> dict[str, Any]:
    """One line a name: an interval from ``low`` to ``high``, a dot at the value, and the value in words (``said``)."""
    y = {
        "field": name,
        "type": "nominal",
        "sort": list(order),
        "title": None,
        "axis": {"labelLimit": limit, "grid": True, "labelColor": INK},
    }
    fill = (
        {"condition": {"test": _any_of(name, hollow), "value": PAPER}, "value": colour} if hollow else {"value": colour}
    )
    layers = [
        {
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "color": colour},
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
        # White on the dark half of viridis, black on the bright half.
        tone = {"condition": {"test": "datum.share > 0.6", "value": "#000000"}, "value": "#fffffe"}
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
    """What is available above what is taken, and the gap between them shaded."""
    tooltip = [
        {"field": "k", "title": "candidates k"},
        {"field": "available", "title": "available", "format": ".1%", "type": "quantitative"},
        {"field": "taken", "title": "taken", "format": ".1%", "type": "quantitative"},
        {"field": "gap", "title": "gap", "format": ".1%", "type": "quantitative"},
    ]

    def end(field: str, words: str, colour: str) -> dict[str, Any]:
        return {
            "transform": [{"filter": f"isValid(datum.{words})"}],
            "mark": {"type": "text", "align": "left", "dx": 8, "fontWeight": 600, "color": colour, "limit": 150},
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
    layers = [
        shade,
        line("available", SERIES[-1], [5, 4]),
        line("taken", SERIES[0], [1, 0]),
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
) -> dict[str, Any]:
    """Points with vertical intervals ``low`` to ``high``, over whatever lies ``under``; ``only`` filters the points."""
    colour = _colour(colours, series)
    filtered = {"transform": [{"filter": only}]} if only else {}
    layers: list[dict[str, Any]] = [
        *(dict(each) for each in under),
        {
            **filtered,
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.4},
            "encoding": {"x": dict(x), "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            **filtered,
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "stroke": PAPER, "strokeWidth": 1.5},
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

"""Colours, and the look of every chart. Okabe and Ito's hues, which survive colour blindness and a grey printer.

A specification holds the colours of the light theme. The page swaps them for CSS variables, so that dark mode and print
need no redrawing, and a static figure uses them as they are.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "CONFIG",
    "DARK",
    "GRID",
    "INK",
    "LABELS",
    "LIGHT",
    "MUTED",
    "PAPER",
    "SERIES",
    "VIRIDIS_TURN",
    "label_of",
    "palette",
]

INK, MUTED, GRID, PAPER = "#1a1d21", "#5c636b", "#e3e6e9", "#ffffff"

# Lines and marks: Okabe and Ito's six, two dark ones for rosters, and grey for what is no rule. Their orange and sky
# blue are darkened: marks need a contrast of 3 with the paper. Then the same hues, dark enough for text (4.5).
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#c08400", "#3d96d0", "#882255", "#44337a", "#6b7280")
LABELS = ("#00629a", "#a94a00", "#00704f", "#934069", "#7d5600", "#1d6a96", "#7a1c4b", "#3b2b6e", "#4b525c")

VIRIDIS_TURN = 0.432  # of the scale: below it white has more contrast with viridis, above it black; never less than 4.5

# name of the CSS variable -> colour. Every colour that a specification may use is here, in both themes.
LIGHT = {
    "ink": INK,
    "muted": MUTED,
    "grid": GRID,
    "paper": PAPER,
    **{f"s{i}": colour for i, colour in enumerate(SERIES)},
    **{f"l{i}": colour for i, colour in enumerate(LABELS)},
}
DARK = {
    "ink": "#e8eaed",
    "muted": "#a3abb5",
    "grid": "#343a42",
    "paper": "#14171b",
    **{
        f"{kind}{i}": colour
        for kind in "sl"
        for i, colour in enumerate(
            ("#4aa8e0", "#ff8f52", "#34c79c", "#e69fc6", "#f0b840", "#92d2f6", "#e0708f", "#a99bf5", "#aab2bd"),
        )
    },
}

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "grid": True,
        "gridColor": GRID,
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
        "labelFlush": False,
    },
    "axisY": {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": -34, "titleY": -14},
    "axisX": {"titleAnchor": "end", "titleAlign": "right", "domain": True, "domainColor": MUTED, "grid": False},
    "legend": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "text": {"color": INK, "fontSize": 12},
    "line": {"strokeWidth": 2, "strokeCap": "round", "strokeJoin": "round"},
    "rule": {"color": MUTED},
}


def palette(names: list[str]) -> dict[str, str]:
    """A colour for each series, in the order given; beyond the palette they are grey.

    >>> palette(["plurality", "best of N"])
    {'plurality': '#0072b2', 'best of N': '#d55e00'}
    """
    return {name: SERIES[min(i, len(SERIES) - 1)] for i, name in enumerate(names)}


def label_of(colour: str) -> str:
    """The colour for text beside a mark of this colour."""
    return LABELS[SERIES.index(colour)] if colour in SERIES else colour

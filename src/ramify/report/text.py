"""Text for people: what a model wrote made visible and harmless, and numbers as a report says them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

from ramify.metrics.estimate import Estimate

__all__ = [
    "COVERS",
    "band",
    "chance",
    "count",
    "covered",
    "estimate",
    "listed",
    "number",
    "percent",
    "points",
    "shown",
    "slug",
]

# What an interval is about, in words. An interval over questions says nothing about new draws, and the reverse.
COVERS = {
    "questions": "other questions, each with candidates of its own",
    "draws": "the same questions asked again",
    "judge": "what the judge said",
    "reruns": "running the protocol again",
    "replays": "the simulation itself",
}


def shown(text: object) -> str:
    """The text with every control and direction character as a visible symbol; lines and tabs stay.

    So do the two joiners (U+200C, U+200D), without which Persian, Indic scripts and joined emoji are misspelled.

    Escaping for HTML is the template's work and is not done here. A lone surrogate, which no file could hold, is
    shown too.

    >>> shown("a\\x1b[31mb\\u202ec")
    'a␛[31mb⟨U+202E⟩c'
    """
    return ODD.sub(_visible, str(text))


JOINERS = "\u200c\u200d"
ODD = re.compile(r"[^\x20-\x7e\n\t]")  # most text is ASCII, and is passed over at once


def _visible(found: re.Match[str]) -> str:
    char = found[0]
    code = ord(char)
    if char.isprintable() or char in JOINERS:
        return char
    if code < 0x20 or code == 0x7F:
        return chr(0x2421 if code == 0x7F else 0x2400 + code)
    return f"⟨U+{code:04X}⟩" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else char


def slug(name: str) -> str:
    """A name that may be an identifier of HTML or a file.

    >>> slug("Pass@k, by field")
    'pass-k-by-field'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "part"


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.4567), percent(float("nan"))
    ('45.7 %', '–')
    """
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f} %"


def points(value: float) -> str:
    """A difference of shares, in percentage points.

    >>> points(-0.0312)
    '−3.1 points'
    """
    return "–" if math.isnan(value) else f"{100 * value:.1f} points".replace("-", "−")


def number(value: float) -> str:
    """A quantity in three significant digits, thousands separated and whole.

    >>> number(12345.6), number(617.2), number(38.48), number(0.12345), number(3.0), number(float("nan"))
    ('12,346', '617', '38.5', '0.123', '3', '–')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if abs(value) >= 999.5 or value == int(value) else f"{value:.3g}"


def chance(value: float) -> str:
    """A p value; what lies below a thousandth is not told apart.

    >>> chance(0.0001), chance(0.0312), chance(float("nan"))
    ('< 0.001', '0.031', '–')
    """
    return "–" if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def count(many: int, what: str) -> str:
    """
    >>> count(1, "question"), count(1200, "question")
    ('1 question', '1,200 questions')
    """
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a row; semicolons keep those apart that have commas of their own.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2)
    ('a, b and c', 'a, b and 1 more')
    >>> listed(["small, sums", "tiny, sums"])
    'small, sums; and tiny, sums'
    """
    kept = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    comma, last = ("; ", "; and ") if any(", " in name for name in names[:most]) else (", ", " and ")
    return kept[0] if len(kept) == 1 else comma.join(kept[:-1]) + last + kept[-1] if kept else "none"


def estimate(found: Estimate) -> str:
    """A share with its interval.

    >>> estimate(Estimate(0.5, 0.4123, 0.6, 0.95, ("questions",)))
    '50.0 % [41.2, 60.0]'
    """
    if not found.covers or math.isnan(found.value):
        return percent(found.value)
    return f"{percent(found.value)} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def band(found: Estimate) -> str:
    """What an interval is: its level, which randomness it is over, and how it was made where that is not percentiles of
    questions drawn freely. A replay band is never called an interval.

    >>> band(Estimate(0.5, 0.4, 0.6, 0.95, ("questions",))), band(Estimate(0.5, 0.4, 0.6, 0.95, ("replays",)))
    ('95 % interval over questions', 'central 95 % of replays')
    >>> band(Estimate(0.5, 0.4, 0.6, 0.95, ("questions",), "percentile; within groups"))
    '95 % interval over questions, drawn within groups'
    >>> band(Estimate.descriptive(0.5))
    'no interval: describes this bank'
    """
    if not found.covers:
        return "no interval: describes this bank"
    if found.covers == ("replays",):
        return f"central {100 * found.level:g} % of replays"
    said = f"{100 * found.level:g} % interval over {' and '.join(found.covers)}"
    ways = {"within groups": ", drawn within groups", "BCa": " (BCa)", "studentised": " (studentised)"}
    return said + "".join(words for name, words in ways.items() if name in found.note.split("; "))


def covered(covers: Sequence[str]) -> str:
    """A sentence on what an interval covers and what it leaves out.

    >>> covered(("draws",)).partition(". ")[0]
    'The intervals cover the same questions asked again'
    """
    left = [COVERS[name] for name in ("questions", "draws") if name not in covers]
    said = f"The intervals cover {listed([COVERS[name] for name in covers])}."
    return f"{said} They do not cover {listed(left)}." if left else said

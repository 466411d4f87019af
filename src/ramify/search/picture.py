"""A picture of a search: the tree with scores, visits, what was pruned or cut, and the leaf that was returned.

As text for a terminal and as SVG for a page. Words in it come from a model, and are nobody's friend: escape sequences,
control and direction characters are taken out, and the SVG escapes the rest, carries no script and loads nothing. A big
tree is elided: the way to the returned leaf and the most visited prefixes stay, and what is left out is counted.
"""

from __future__ import annotations

import dataclasses
import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ramify.errors import is_whole, require
from ramify.search.tree import CUT, GROWN, LEAF, OPEN, PRUNED, Tree

__all__ = ["svg_picture", "text_picture"]

NAMES = {OPEN: "open", GROWN: "grown", LEAF: "finished", PRUNED: "pruned by proof", CUT: "cut by score"}
CLASSES = {OPEN: "open", GROWN: "grown", LEAF: "leaf", PRUNED: "pruned", CUT: "cut"}
SIGNS = {OPEN: "○", GROWN: "●", LEAF: "■", PRUNED: "✕", CUT: "✂"}
RETURNED = "★"
ESCAPES = re.compile(r"(\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(\x07|\x1b\\|$)|\x1b.?", re.DOTALL)

UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format and direction, surrogates, separators of lines

Spell = Callable[[Sequence[int]], str]


def text_picture(
    tree: Tree, spell: Spell | None = None, *, returned: Sequence[int] = (), most: int = 40, width: int = 32
) -> str:
    """The tree in lines for a terminal: sign, words of the step, score, visits. At most ``most`` prefixes.

    >>> from ramify.search import Child, Expansion, Grow
    >>> tree = Tree().told(Expansion(0, (Grow(0, 2),)), {0: [Child((7,), 0.5), Child((8,), 1.0, ended="eos")]})
    >>> print(text_picture(tree, lambda tokens: "step " + str(tokens[0]) if tokens else "", returned=[2]))
    ●                                             2 visits
    ├─ ○ step 7                           0.5      1 visit
    └─ ★ step 8                             1      1 visit
    3 prefixes: 1 grown, 1 open, 1 finished
    """
    lines = []
    for line in _lines(tree, spell, returned, most, width):
        words = line.stem + (f"{line.sign} " if line.sign else "") + line.words
        lines.append(f"{words:<{width}} {line.score:>8} {line.visits:>12}".rstrip())
    return "\n".join([*lines, _summary(tree)])


def svg_picture(
    tree: Tree,
    spell: Spell | None = None,
    *,
    returned: Sequence[int] = (),
    most: int = 60,
    width: int = 40,
    standalone: bool = True,
) -> str:
    """The tree as one SVG element. It has the colour of the page that it is in; ``standalone`` it brings its own.

    >>> picture = svg_picture(Tree(), standalone=False)
    >>> picture.startswith("<svg") and "1 prefix: 1 open" in picture
    True
    """
    lines = list(_lines(tree, spell, returned, most, width))
    deepest = max(line.depth for line in lines)
    indent = min(18.0, 320 / max(1, deepest))
    places = [(14 + indent * line.depth, 36.0 + 20 * number) for number, line in enumerate(lines)]
    right = 38 + indent * deepest + 9 * min(width, max(len(line.words) for line in lines))
    high = 20 * len(lines) + 52
    parts = [_edges(lines, places), *(_mark(line, *place, right) for line, place in zip(lines, places, strict=True))]
    parts += [f'<text class="number note" x="{right + x}" y="18">{name}</text>' for x, name in HEADS]
    summary = _escaped(_summary(tree))
    parts.append(f'<text x="8" y="{high - 10:g}" class="note">{summary}</text>')
    wide = max(right + 170, 8 * len(_summary(tree)) + 16)
    size = f'viewBox="0 0 {wide:g} {high:g}"' + (f' width="{wide:g}" height="{high:g}"' if standalone else "")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="ramify-tree" role="img" {size}'
    parts = ['<rect class="paper" width="100%" height="100%"/>', *parts] if standalone else parts
    return f"{head}><title>{summary}</title><style>{_style(standalone)}</style>{''.join(parts)}</svg>"


# ---------------------------------------------------------------------------------------------------------------- lines


@dataclasses.dataclass(frozen=True, slots=True)
class _Line:
    """One line of a picture: a prefix, or what is left out of its parent's children."""

    row: int  # -1: an elision
    up: int  # the line of its parent
    depth: int
    stem: str  # box drawing before it
    sign: str
    words: str
    score: str = ""
    visits: str = ""
    share: float = 0.0  # of the root's visits
    kind: str = "more"
    whole: str = ""  # the whole prefix, for whoever points at it


def _lines(tree: Tree, spell: Spell | None, returned: Sequence[int], most: int, width: int) -> Iterator[_Line]:
    """From the root down, children in order, what is left out after them. Iterative: a search may go deep."""
    require(is_whole(most, 1), "most", most, "show at least one prefix")
    for row in returned:
        require(0 <= row < len(tree), "returned", row, f"use rows of the tree, 0 to {len(tree) - 1}")
    shown, chosen, number = _shown(tree, returned, most), set(returned), 0
    stack = [(0, -1, "", "")]  # row (or ~parent, an elision), line of the parent, stem, stem of what is below
    while stack:
        row, up, stem, below = stack.pop()
        if row < 0:
            yield _elision(tree, ~row, shown, up, stem)
            number += 1
            continue
        yield _prefix(tree, row, spell, row in chosen, up, stem, width)
        here, number = number, number + 1
        following = [child for child in tree.children(row) if child in shown]
        following += [~row] if len(following) < len(tree.children(row)) else []
        for child in reversed(following):
            last = child == following[-1]
            stack.append((child, here, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))


def _shown(tree: Tree, returned: Sequence[int], most: int) -> set[int]:
    """The rows to show: the ways to what was returned, then to the most visited, as long as there is room."""
    log, visits, shown = tree.columns, tree.columns.visits, {0}
    busy = sorted(range(1, len(tree)), key=lambda row: (-visits[row], log.depth[row], row))
    for row in [*returned, *busy]:
        way = [row]
        while log.parent[way[-1]] > 0 and way[-1] not in shown:
            way.append(log.parent[way[-1]])
        fresh = set(way) - shown
        if len(shown) + len(fresh) <= most or row in returned:
            shown |= fresh
    return shown


def _prefix(tree: Tree, row: int, spell: Spell | None, chosen: bool, up: int, stem: str, width: int) -> _Line:
    log, state = tree.columns, tree.columns.state[row]
    visits, score = log.visits[row], log.score[row]
    spelled = spell or (lambda tokens: " ".join(map(str, tokens)))
    words = plain(spelled(tree.step(row))) or (f"({tree.ended(row)})" if tree.ended(row) else "")
    return _Line(
        row,
        up,
        log.depth[row],
        stem,
        RETURNED if chosen else SIGNS[state],
        _clipped(words, max(1, width - len(stem) - 2)),
        "" if math.isnan(score) else f"{score:.4g}",
        f"{visits:,} visit{'' if visits == 1 else 's'}",
        visits / max(1, log.visits[0]),
        "returned" if chosen else CLASSES[state],
        _clipped(plain(spelled(tree.tokens(row))), 400),
    )


def _elision(tree: Tree, parent: int, shown: set[int], up: int, stem: str) -> _Line:
    """How many prefixes are not shown below a parent, and what became of them."""
    log, hidden = tree.columns, [child for child in tree.children(parent) if child not in shown]
    for row in hidden:  # grows while it is walked
        hidden.extend(tree.children(row))
    kinds = Counter(log.state[row] for row in hidden)
    return _Line(-1, up, log.depth[parent] + 1, stem, "", f"… {len(hidden):,} more: {_counted(kinds)}")


def _summary(tree: Tree) -> str:
    size = len(tree)
    return f"{size:,} prefix{'' if size == 1 else 'es'}: {_counted(Counter(tree.columns.state))}"


def _counted(kinds: Counter[int]) -> str:
    return ", ".join(f"{kinds[state]:,} {NAMES[state]}" for state in (GROWN, OPEN, LEAF, PRUNED, CUT) if kinds[state])


# ---------------------------------------------------------------------------------------------------------------- words


def plain(words: str) -> str:
    """One line without anything that a terminal or a reader of XML would obey.

    >>> plain("a\\x1b[31mred\\x1b[0m\\n\\x07\\u202eb")
    'ared⏎b'
    """
    line = ESCAPES.sub("", words).replace("\r\n", "⏎").replace("\n", "⏎").replace("\t", " ")
    return "".join(c for c in line if unicodedata.category(c) not in UNSEEN and c not in "\ufffe\uffff")


def _clipped(words: str, width: int) -> str:
    return words if len(words) <= width else words[: width - 1] + "…"


def _escaped(words: str) -> str:
    return html.escape(words, quote=True)


# ------------------------------------------------------------------------------------------------------------------ SVG

SHAPES = {
    "open": '<circle r="4" class="hollow"/>',
    "grown": '<circle r="4"/>',
    "leaf": '<rect x="-4" y="-4" width="8" height="8"/>',
    "pruned": '<path d="M-4-4 4 4M-4 4 4-4" class="hollow"/>',
    "cut": '<rect x="-4" y="-4" width="8" height="8" class="hollow" stroke-dasharray="2 2"/>',
    "returned": '<path d="M0-7 2-2 7-2 3 1.5 4.5 6.5 0 3.5-4.5 6.5-3 1.5-7-2-2-2Z"/>',
    "more": "",
}
HEADS = ((70, "score"), (160, "visits"))
STYLE = (
    ".ramify-tree{font:13px ui-monospace,monospace;fill:currentColor}"
    ".ramify-tree .hollow,.ramify-tree .edge{fill:none;stroke:currentColor}"
    ".ramify-tree .edge{opacity:.35}.ramify-tree .chosen{opacity:1;stroke:var(--chosen,#d9730d);stroke-width:2}"
    ".ramify-tree .returned{fill:var(--chosen,#d9730d);font-weight:bold}"
    ".ramify-tree .pruned text{text-decoration:line-through}"
    ".ramify-tree .cut,.ramify-tree .pruned,.ramify-tree .more,.ramify-tree .note{opacity:.7}"
    ".ramify-tree .number{text-anchor:end}.ramify-tree .bar{opacity:.3}"
)
# Ink and paper change together: whoever shows the picture, and on whatever ground, it is dark on bright or the reverse.
OWN = (
    ".ramify-tree{color:#1f2328;--chosen:#a84e00}.ramify-tree .paper{fill:#fff}"
    "@media(prefers-color-scheme:dark){.ramify-tree{color:#e6edf3;--chosen:#f0883e}.ramify-tree .paper{fill:#14171b}}"
)


def _style(standalone: bool) -> str:
    return STYLE + (OWN if standalone else "")


def _edges(lines: Sequence[_Line], places: Sequence[tuple[float, float]]) -> str:
    """From every prefix to its parent, those to what was returned on top."""
    chosen = set[int]()
    for number in reversed(range(len(lines))):
        if lines[number].kind == "returned" or number in chosen:
            chosen |= {number, lines[number].up}
    paths = []
    for number, line in enumerate(lines):
        if line.up >= 0:
            (x, y), (x0, y0) = places[number], places[line.up]
            kind = "edge chosen" if number in chosen else "edge"
            paths.append((number in chosen, f'<path class="{kind}" d="M{x0:g} {y0 + 5:g}V{y:g}H{x - 6:g}"/>'))
    return "".join(path for _, path in sorted(paths, key=lambda each: each[0]))


def _mark(line: _Line, x: float, y: float, right: float) -> str:
    """A prefix: its sign, its words, its score, and its visits as a number over a bar."""
    told = [line.whole, line.score and f"score {line.score}", line.visits, line.kind]
    title = f"<title>{_escaped(', '.join(filter(None, told)))}</title>" if line.row >= 0 else ""
    words = f'<text x="{x + 10:g}" y="{y + 4:g}">{_escaped(line.words)}</text>'
    bar = f'<rect class="bar" x="{right + 80:g}" y="{y - 7:g}" width="{80 * line.share:.4g}" height="14"/>'
    score = f'<text class="number" x="{right + 70:g}" y="{y + 4:g}">{_escaped(line.score)}</text>'
    visits = f'<text class="number" x="{right + 160:g}" y="{y + 4:g}">{_escaped(line.visits.split(" ")[0])}</text>'
    numbers = bar + score + visits if line.row >= 0 else ""
    shape = f'<g transform="translate({x:g} {y:g})">{SHAPES[line.kind]}</g>'
    return f'<g class="{line.kind}">{title}{shape}{words}{numbers}</g>'

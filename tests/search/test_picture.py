"""Pictures of searches: complete when small, counted when large, and safe with whatever a model wrote."""

from __future__ import annotations

import math
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.errors import InvalidValue
from ramify.search import Beam, Child, Expansion, Grow, Tree, svg_picture, text_picture
from ramify.search.tree import CUT, LEAF
from tests.search.test_laws import WORLD

SVG = "{http://www.w3.org/2000/svg}"


def small() -> Tree:
    children = [
        Child((1,), 0.25),
        Child((2,), 0.5, ended="eos"),
        Child((3,), kept=False),
        Child((4,), 0.125),
    ]
    tree = Tree().told(Expansion(0, (Grow(0, 4),)), {0: children})
    return tree.told(Expansion(1, (Grow(1, 1),), close=(4,)), {1: [Child((5, 6), 1.0, ended="eos")]})


def words(tokens: Sequence[int]) -> str:
    return "".join(f"<{token}>" for token in tokens)


def test_everything_of_a_small_tree_is_in_the_text() -> None:
    assert text_picture(small(), words, returned=[5]) == "\n".join(
        [
            "●                                             4 visits",
            "├─ ● <1>                             0.25     2 visits",
            "│  └─ ★ <5><6>                          1      1 visit",
            "├─ ■ <2>                              0.5      1 visit",
            "├─ ✕ <3>                                      0 visits",
            "└─ ✂ <4>                            0.125      1 visit",
            "6 prefixes: 2 grown, 2 finished, 1 pruned by proof, 1 cut by score",
        ]
    )


def test_an_end_without_words_says_how_it_ended() -> None:
    assert "■ (eos)" in text_picture(small(), lambda _: "")


def parts(svg: str, kind: str) -> list[ET.Element]:
    return [each for each in ET.fromstring(svg).iter(f"{SVG}g") if each.get("class") == kind]


def test_everything_of_a_small_tree_is_in_the_drawing() -> None:
    svg = svg_picture(small(), words, returned=[5])
    counts = {kind: len(parts(svg, kind)) for kind in ("grown", "open", "leaf", "pruned", "cut", "returned", "more")}
    assert counts == {"grown": 2, "open": 0, "leaf": 1, "pruned": 1, "cut": 1, "returned": 1, "more": 0}
    [chosen] = parts(svg, "returned")
    texts = [each.text for each in chosen.iter(f"{SVG}text")]
    assert texts == ["<5><6>", "1", "1"]
    assert chosen.find(f"{SVG}title").text == "<1><5><6>, score 1, 1 visit, returned"  # type: ignore[union-attr]
    edges = [each for each in ET.fromstring(svg).iter(f"{SVG}path") if "edge" in (each.get("class") or "")]
    assert len(edges) == 5
    assert [each.get("class") for each in edges].count("edge chosen") == 2, "the way to what was returned"
    assert "prefers-color-scheme" in svg
    assert "prefers-color-scheme" not in svg_picture(small(), words, standalone=False), "the page's colour then"


def test_a_big_tree_is_elided_and_what_is_left_out_is_counted() -> None:
    tree = WORLD.search(Beam(n=60, m=4))
    leaf = tree.rows(LEAF)[-1]
    drawn = text_picture(tree, returned=[leaf], most=12).splitlines()
    shown = [line for line in drawn[:-1] if "more:" not in line]
    hidden = [int(found[1].replace(",", "")) for line in drawn if (found := re.search(r"… ([\d,]+) more:", line))]
    assert len(shown) == 12
    assert len(shown) + sum(hidden) == len(tree)
    assert sum("★" in line for line in drawn) == 1
    cuts = sum(int(n) for line in drawn[:-1] for n in re.findall(r"(\d+) cut by score", line))
    assert cuts + sum("✂" in line for line in shown) == len(tree.rows(CUT))
    assert len(parts(svg_picture(tree, returned=[leaf], most=12), "more")) == len(hidden)
    with pytest.raises(InvalidValue, match="returned"):
        text_picture(tree, returned=[len(tree)])


def test_a_deep_and_a_long_tree_are_drawn() -> None:
    tree = Tree()
    for number in range(1200):  # deeper than Python would recurse
        tree = tree.told(Expansion(number, (Grow(number, 1),)), {number: [Child((1,), 0.5)]})
    assert text_picture(tree, most=5).count("\n") == 6
    assert len(parts(svg_picture(tree, returned=[1200]), "grown")) == 1200, "what was returned is shown with its way"


HOSTILE = (
    "<script>alert(1)</script>",
    '"/><image href="http://example.com/x.png"/>',
    "]]></style><svg onload=alert(1)>",
    "\x1b[31m\x1b]0;owned\x07\x1b[2J\x9b5n",
    "\u202egnirts \u2066\u200b",
    "\x00\x08\ud800\ufffe\uffff",
    "a\r\nb\u2028c\td",
    "&amp;&lt;&#60;",
)
ALLOWED = {f"{SVG}{name}" for name in ("svg", "title", "style", "g", "path", "circle", "rect", "text")}


@pytest.mark.parametrize("wrote", HOSTILE)
def test_words_of_a_model_are_only_words(wrote: str) -> None:
    safe(wrote)


@given(st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_any_words_of_a_model_are_only_words(wrote: str) -> None:
    safe(wrote)


def safe(wrote: str) -> None:
    def spell(tokens: Sequence[int]) -> str:
        return wrote if tokens else ""

    tree = small()
    for standalone in (True, False):
        root = ET.fromstring(svg_picture(tree, spell, returned=[5], standalone=standalone))
        for element in root.iter():
            assert element.tag in ALLOWED
            assert not any(name.startswith("on") or name.endswith("href") for name in element.attrib)
            assert element.tag == f"{SVG}style" or not list(element) or not (element.text or "").strip()
    for line in text_picture(tree, spell, returned=[5]).splitlines():
        assert not [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs")]
    assert len(text_picture(tree, spell, returned=[5]).splitlines()) == 7, "one line a prefix"


def test_scores_that_are_missing_or_infinite_are_drawn() -> None:
    children = [Child((1,), math.nan), Child((2,), -math.inf), Child((3,), 1e300)]
    tree = Tree().told(Expansion(0, (Grow(0, 3),)), {0: children})
    drawn = text_picture(tree)
    assert "-inf" in drawn
    assert "1e+300" in drawn
    ET.fromstring(svg_picture(tree))

"""Figures and tables as values: exports, escaping, contrast, numbers in words."""

from __future__ import annotations

import itertools
import unicodedata
import xml.etree.ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.errors import InvalidValue
from ramify.metrics import Estimate
from ramify.report import Column, Figure, Table, charts, profile_page, text, theme
from ramify.report.case import Case
from ramify.report.questions import entries, levels_of
from tests.report.synthetic import looks_real, spelled


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_text_has_the_contrast_that_reading_needs(colours: dict[str, str]) -> None:
    for name in ("ink", "muted", *(f"l{i}" for i in range(len(theme.LABELS)))):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_marks_can_be_seen(colours: dict[str, str]) -> None:
    for i in range(len(theme.SERIES)):
        assert contrast(colours[f"s{i}"], colours["paper"]) >= 3, i


def test_intervals_are_drawn_in_the_full_colour_of_their_mark() -> None:
    """A line of three eighths of the ink had a contrast of 1.6 with the paper."""
    bank, outcomes = looks_real(12, 8)
    for figure in profile_page(bank, outcomes).figures().values():
        for layer in [each for spec in figure.all_views().values() for each in spec.get("layer", ())]:
            mark = layer.get("mark", {})
            if isinstance(mark, dict) and mark.get("type") == "rule":
                assert mark.get("opacity", 1) == 1, figure.name


def test_both_themes_name_the_same_colours() -> None:
    assert set(theme.LIGHT) == set(theme.DARK)
    assert len(set(theme.LIGHT.values())) == len(theme.LIGHT), "two names of one colour could not be told apart"


def test_every_colour_of_a_specification_has_a_dark_twin() -> None:
    bank, outcomes = looks_real(12, 8)
    fixed = {"#000000", "#fffffe"}  # over viridis, which is the same in both themes

    def strings(value: object) -> list[str]:
        if isinstance(value, dict):
            return [each for part in value.values() for each in strings(part)]
        if isinstance(value, list | tuple):
            return [each for part in value for each in strings(part)]
        return [value] if isinstance(value, str) and value.startswith("#") else []

    for figure in profile_page(bank, outcomes).figures().values():
        used = set(strings(figure.spec))
        assert used <= {*theme.LIGHT.values(), *fixed}, figure.name


def test_every_figure_exports() -> None:
    bank, outcomes = looks_real(12, 8)
    for figure in profile_page(bank, outcomes).figures().values():
        picture = figure.svg()
        assert xml.etree.ElementTree.fromstring(picture).tag.endswith("svg"), figure.name
        assert picture.count("<path") > 3, figure.name
    assert figure.pdf().startswith(b"%PDF")
    assert figure.png().startswith(b"\x89PNG")


def test_a_figure_needs_words() -> None:
    with pytest.raises(InvalidValue, match="say in words"):
        Figure("f", "F", {"mark": "point"}, [], " ")
    with pytest.raises(InvalidValue, match="use one of"):
        Figure("f", "F", {"mark": "point"}, [], "words").vega_lite("other")


def test_tables_in_other_languages() -> None:
    columns = (Column("name", "na|me_"), Column("share", "share", "percent"), Column("gap", "gap", "points"))
    half = Estimate(0.5, 0.4, 0.6, 0.95, ("questions",))
    rows: list[dict[str, object]] = [{"name": "a_b & <c>", "share": half, "gap": -0.031}, {"name": None}]
    table = Table("t", "T", columns, rows)
    assert table.markdown().splitlines() == [
        "| na\\|me_ | share | gap |",
        "|---|---:|---:|",
        "| a_b &amp; &lt;c> | 50.0 % [40.0, 60.0] | −3.1 points |",
        "| – | – | – |",
    ]
    assert r"a\_b \& \textless{}c\textgreater{} & 50.0 \% [40.0, 60.0] & $-$3.1 points \\" in table.latex()
    assert table.csv().splitlines()[:2] == ["name,share,share low,share high,gap", "a_b & <c>,0.5,0.4,0.6,-0.031"]


@given(st.text())
def test_shown_text_has_no_control_characters(raw: str) -> None:
    seen = text.shown(raw)
    assert "Cc" not in {unicodedata.category(c) for c in seen if c not in "\n\t"}
    seen.encode("utf-8")  # no lone surrogate
    assert text.shown(seen) == seen


def test_joiners_are_part_of_the_spelling_and_direction_is_not() -> None:
    family, word, indic = "\U0001f469\u200d\U0001f4bb", "می\u200cخواهم", "क्\u200dष"
    assert [text.shown(each) for each in (family, word, indic)] == [family, word, indic]
    hidden = "a\u202eb\u2066c\u200bd\u200ee\ufefff"
    assert text.shown(hidden) == "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200B⟩d⟨U+200E⟩e⟨U+FEFF⟩f"


def test_numbers_for_people_have_three_digits_and_those_for_machines_all() -> None:
    said = [text.number(value) for value in (6.836, 38.48, 999.6, 1234.5, 0.99752, -12.345, 1e-5)]
    assert said == ["6.84", "38.5", "1,000", "1,234", "0.998", "-12.3", "1e-05"]
    assert Table("t", "T", (Column("n", "n", "number"),), [{"n": 38.4812}]).csv() == "n\r\n38.4812\r\n"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_labels_keep_their_distance_and_their_order(wanted: list[float]) -> None:
    places = charts.spread(wanted, 0.1)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    assert all(places[b] - places[a] >= 0.1 - 1e-9 for a, b in itertools.pairwise(order))
    assert max(places) <= 1 + 1e-9


def test_labels_that_tie_are_spread_both_ways() -> None:
    assert charts.spread([0.58] * 4, 0.055) == pytest.approx([0.4975, 0.5525, 0.6075, 0.6625])
    assert charts.spread([0.99, 0.98], 0.1) == pytest.approx([1.0, 0.9])
    assert charts.spread([0.5, 0.5], [0.1, 0.3]) == pytest.approx([0.4, 0.6])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0.01, 0.1))
def test_labels_are_moved_as_little_as_possible(wanted: list[float], gap: float) -> None:
    """No other legal places have a smaller sum of squares: SciPy's projection is the oracle."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(wanted, kind="stable")
    room = gap * np.arange(len(wanted))
    free = isotonic_regression(np.array(wanted)[order] - room).x
    best = np.clip(free, 0, 1 - room[-1]) + room
    assert np.array(charts.spread(wanted, gap))[order] == pytest.approx(best, abs=1e-9)


def test_series_that_share_their_places_stand_side_by_side() -> None:
    rows = [{"s": s, "x": x} for s, x in [("a", 1.0), ("b", 1.0), ("a", 2.0), ("b", 2.0), ("c", 3.0)]]
    shift = {(row["s"], row["x"]): row["dodge"] for row in charts.dodged(rows, "s", "x")}
    assert shift == {("a", 1): -1.75, ("b", 1): 1.75, ("a", 2): -1.75, ("b", 2): 1.75, ("c", 3): 0.0}


def test_a_logarithmic_axis_has_a_tick_at_either_end() -> None:
    axis = charts.amount_axis("tokens", True, spent=[38.6, 617.0, 1879.0])
    assert axis["axis"]["values"] == [20, 50, 100, 200, 500, 1000, 2000]
    assert axis["scale"]["domain"] == [20, 2000]


@given(st.floats(1e-3, 1e9), st.floats(1, 1e6))
def test_round_numbers_enclose_what_they_are_for(low: float, times: float) -> None:
    ticks = charts.round_numbers(low, low * times)
    assert ticks[0] <= low
    assert ticks[-1] >= low * times
    assert ticks == sorted(set(ticks))
    assert 1 <= len(ticks) <= 12


def test_an_interval_is_named_by_what_it_covers() -> None:
    assert text.band(Estimate(0.5, 0.4, 0.6, 0.95, ("questions", "draws"))) == "95 % interval over questions and draws"
    said = "The intervals cover other questions, each with candidates of its own."
    assert text.covered(("questions",)) == f"{said} They do not cover the same questions asked again."


# ------------------------------------------------------------------------------------------------------------- explorer


def test_tokens_are_tinted_by_their_probability_and_spell_the_text() -> None:
    bank, outcomes = looks_real(4, 4)
    found = entries(Case("c", bank, outcomes), spelled)
    assert bank.text is not None
    assert bank.tokens is not None
    for q, question in enumerate(found["questions"]):
        for n, candidate in enumerate(question["candidates"]):
            (part,) = candidate["parts"]
            assert part["text"] == bank.text[q, n]
            assert part["levels"] == levels_of(bank.tokens.of(q, n)["logprob"])


def test_tokens_that_do_not_spell_the_text_are_a_strip_beside_it() -> None:
    bank, outcomes = looks_real(2, 4)
    found = entries(Case("c", bank, outcomes), lambda tokens: ["?" for _ in tokens])
    candidate = found["questions"][0]["candidates"][0]
    assert "levels" not in candidate["parts"][0]
    assert set(candidate["strip"]) <= set("0123456")


def test_long_texts_lose_their_middle_and_say_how_much() -> None:
    bank, outcomes = looks_real(6, 4)
    assert bank.text is not None
    whole = sum(map(len, bank.text[bank.drawn]))
    for spell in (spelled, None):
        found = entries(Case("c", bank, outcomes), spell, room=whole // 3)
        kept = left = 0
        for candidate in (c for question in found["questions"] for c in question["candidates"]):
            kept += sum(len(part["text"]) for part in candidate["parts"])
            left += candidate["left"]
            assert all(len(part.get("levels", part["text"])) == len(part["text"]) for part in candidate["parts"])
        assert kept + left == whole
        assert kept <= whole // 3 + 90 * 24


def test_probabilities_have_seven_tints() -> None:
    assert levels_of(np.log([0.005, 0.02, 0.1, 0.3, 0.6, 0.9, 0.99])) == "0123456"
    assert levels_of(np.log([0.9, 0.9, 0.9]), np.array([0, 1, 2])) == "5ff"


def test_a_large_bank_shows_the_first_candidates_and_says_how_many_more() -> None:
    bank, outcomes = looks_real(10, 8)
    found = entries(Case("large", bank, outcomes), rows=30)
    assert [len(question["candidates"]) for question in found["questions"]] == [3] * 10
    assert [question["more"] for question in found["questions"]] == [5] * 10
    assert all(question["more"] == 0 for question in entries(Case("small", bank, outcomes))["questions"])

"""The page in headless Chromium: it draws, sorts, filters and reads by keyboard; it loads nothing and runs nothing."""

from __future__ import annotations

import xml.etree.ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ramify.report import Page, Picture, page_of, profile_page, theme
from ramify.search import Child, Expansion, Grow, Tree, svg_picture
from tests.browser import CHROMIUM, Opened, Opening
from tests.report.synthetic import HOSTILE, hostile, long_names, looks_real, spelled, study
from tests.report.test_values import contrast

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")


GROWN = Tree().told(Expansion(0, (Grow(0, 2),)), {0: [Child((7,), 0.5), Child((8,), 1.0, ended="eos")]})
TREE = ("tree", "A tree", svg_picture(GROWN, lambda tokens: f"step ذ {tokens}", returned=[2]), "A tree of three.")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    bank, outcomes = looks_real()
    pages = {
        "bank": profile_page(bank, outcomes, title="A bank", spell=spelled, pictures=(Picture(*TREE),)),
        "hostile": profile_page(*hostile(), spell=spelled),
        "study": page_of(study(3, 2, 12, 8)),
        "long": page_of(long_names(study(3, 2, 12, 8))),
    }
    return {name: page.write(folder / f"{name}.html") for name, page in pages.items()}


@pytest.fixture
def visit(opening: Opening, files: dict[str, Path]) -> Callable[..., Opened]:
    def go(name: str, **options: Any) -> Opened:
        return opening(files[name], **options)

    return go


@pytest.mark.parametrize("name", ["bank", "study"])
def test_every_chart_draws_and_nothing_is_loaded(visit: Callable[..., Opened], name: str) -> None:
    opened = visit(name)
    drawn = opened.tab.evaluate(
        """[...document.querySelectorAll('[data-figure]')].map(
            (f) => [f.dataset.figure, f.querySelectorAll('.chart svg :is(path, rect, line)').length])"""
    )
    assert len(drawn) >= 8
    assert [figure for figure, marks in drawn if marks < 8] == []
    opened.quiet()


def test_a_chart_is_read_out_as_what_it_shows(visit: Callable[..., Opened], files: dict[str, Path]) -> None:
    """In the browser's own accessibility tree: Vega labels what it draws into "Vega visualization"."""
    opened = visit("study")
    tree = opened.context.new_cdp_session(opened.tab).send("Accessibility.getFullAXTree")["nodes"]
    names = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") in ("image", "img")]
    assert [figure.words()[0] for figure in page_of(study(3, 2, 12, 8)).figures().values()] == names
    assert "Vega visualization" not in str(tree)


def test_the_words_of_a_figure_follow_its_view(visit: Callable[..., Opened]) -> None:
    opened = visit("study")
    figure = page_of(study(3, 2, 12, 8)).figures()["gap"]
    for view in list(figure.views)[:4]:
        opened.tab.select_option("[data-view=gap]", label=view)
        opened.tab.wait_for_timeout(30)
        rule = view.partition(": ")[2]
        assert f"the gap of {rule} is" in opened.tab.inner_text("#fig-gap .note").replace("\u00a0", " ")
        label = opened.tab.get_attribute("#fig-gap .chart", "aria-label")
        assert label == figure.words(view)[0] != figure.words()[0]
    opened.quiet()


def test_numbers_in_the_heat_map_can_be_read(visit: Callable[..., Opened]) -> None:
    """On every cell, and on every colour of the scale: the ink with more contrast, which is never below 4.5."""
    inks = {}
    for scheme in ("light", "dark"):
        tab = visit("bank", color_scheme=scheme).tab
        squares, inks[scheme] = (
            tab.evaluate(
                f"[...document.querySelectorAll('#fig-triangle .chart {mark}')].map((m) => "
                "getComputedStyle(m).fill.match(/\\d+/g).slice(0, 3).map(Number))"
            )
            for mark in (".mark-rect.role-mark path", ".mark-text.role-mark text")
        )
        assert len(squares) == len(inks[scheme]) == 8 * 9 // 2
        for square, ink in zip(squares, inks[scheme], strict=True):
            assert contrast(_hex(square), _hex(ink)) >= 4.5, (square, ink)
    assert inks["light"] == inks["dark"]
    scale = tab.evaluate(
        "[...Array(501).keys()].map((i) => vega.scheme('viridis')(i / 500).match(/\\d+/g).map(Number))"
    )
    for i, colour in enumerate(scale):
        assert contrast(_hex(colour), "#000000" if i / 500 > theme.VIRIDIS_TURN else "#fffffe") >= 4.5, i


def _hex(rgb: list[int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in rgb)


@pytest.mark.parametrize("width", [1280, 390])
def test_names_are_whole_and_can_be_told_apart(visit: Callable[..., Opened], width: int) -> None:
    opened = visit("long", viewport={"width": width, "height": 844})
    for figure in ("standing", "differences", "reducers"):
        names = opened.tab.evaluate(
            f"[...document.querySelectorAll('#fig-{figure} .role-axis-label > text')].map((t) => t.textContent)"
        )
        names = [name for name in names if name.strip("+−0123456789%")]
        assert len(set(names)) == len(names) >= 3, names
    labels = opened.tab.evaluate("[...document.querySelectorAll('.role-axis-label text')].map((t) => t.textContent)")
    assert "…" not in "".join(labels)
    ends = opened.tab.evaluate(
        "[...document.querySelectorAll('#fig-scaling .mark-text.role-mark text')].map((t) => t.textContent)"
    )
    assert len(set(ends)) == 4, ends  # each twice: its rim, and itself
    rows = opened.tab.evaluate(
        """[...document.querySelectorAll('.chart svg')].flatMap((svg) => {
            const labels = [...svg.querySelectorAll('.role-axis-label > text')];
            const boxes = labels.filter((t) => t.getAttribute('opacity') !== '0').map((t) => t.getBoundingClientRect());
            return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => a.left < b.right && b.left < a.right
                && a.top < b.bottom - 4 && b.top < a.bottom - 4).map((b) => [a.top, b.top]));
        })"""
    )
    assert rows == [], "labels lie on each other"
    opened.quiet()


def test_each_view_of_each_figure_draws(visit: Callable[..., Opened]) -> None:
    opened = visit("study")
    for choice in opened.tab.query_selector_all("[data-view]"):
        for label in choice.evaluate("(s) => [...s.options].map((o) => o.textContent)")[:6]:
            choice.select_option(label=label)
            opened.tab.wait_for_timeout(30)
    opened.quiet()


def test_questions_sort_and_filter(visit: Callable[..., Opened]) -> None:
    opened = visit("bank")
    tab, shares = (
        opened.tab,
        "[...document.querySelectorAll('.explorer tbody tr')].map((r) => parseFloat(r.cells[1].innerText))",
    )
    tab.click(".explorer th:nth-child(2) button")
    falling = tab.evaluate(shares)
    assert falling == sorted(falling, reverse=True)
    assert tab.get_attribute(".explorer th:nth-child(2)", "aria-sort") == "descending"
    tab.click(".explorer th:nth-child(2) button")
    rising = tab.evaluate(shares)
    assert rising == sorted(rising)
    assert rising != falling
    shown = tab.evaluate(
        "[...document.querySelectorAll('.explorer tbody tr')].map((row) => row.cells[1].innerText.trim())"
    )
    bank, outcomes = looks_real()
    assert shown == [f"{100 * share:.1f} %" for share in sorted(outcomes.on(bank).mean(axis=1))[: len(shown)]]
    tab.select_option(".filters select >> nth=1", "never")
    assert set(tab.evaluate(shares)) == {0.0}
    tab.select_option(".filters select >> nth=1", "")
    tab.fill(".filters input", "q017")
    assert tab.evaluate("document.querySelectorAll('.explorer tbody tr').length") == 1
    assert tab.inner_text(".filters .many") == "1 of 40 questions"
    opened.quiet()


def test_a_question_opens_down_to_its_tokens_by_keyboard_alone(visit: Callable[..., Opened]) -> None:
    opened = visit("bank")
    tab = opened.tab
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.focus(".explorer .open")
    tab.keyboard.press("Enter")
    assert tab.get_attribute(".explorer .open", "aria-expanded") == "true"
    for _ in range(2):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    tab.keyboard.press("Enter")
    text = looks_real()[0].text
    assert text is not None
    assert tab.evaluate("document.querySelector('.cand pre').textContent") == text[0, 0]
    assert tab.evaluate("document.querySelectorAll('.cand pre span[class^=p]').length") > 5
    tab.focus(".explorer .open")
    tab.keyboard.press("Enter")
    assert tab.query_selector(".detail") is None
    opened.quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_search_tree_is_legible_and_can_be_taken(visit: Callable[..., Opened], scheme: str) -> None:
    """Its ink was that of dark mode on a ground that was always white."""
    opened = visit("bank", color_scheme=scheme)
    tab = opened.tab
    colours = tab.evaluate(
        """() => { const img = document.querySelector('#pic-tree img'), canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [img.naturalWidth, img.naturalHeight];
        const pen = canvas.getContext('2d');
        pen.fillStyle = getComputedStyle(img).backgroundColor;
        pen.fillRect(0, 0, canvas.width, canvas.height);
        pen.drawImage(img, 0, 0);
        const seen = new Map(), all = pen.getImageData(0, 0, canvas.width, canvas.height).data;
        for (let i = 0; i < all.length; i += 4) {
            const colour = [...all.slice(i, i + 3)].join();
            seen.set(colour, (seen.get(colour) ?? 0) + 1);
        }
        return [...seen].sort((a, b) => b[1] - a[1]).map(([c]) => c.split(',').map(Number)); }"""
    )
    ground = _hex(colours[0])
    assert max(contrast(ground, _hex(ink)) for ink in colours) >= 7
    tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    with tab.expect_download() as found:
        tab.click("[data-picture=tree]")
    assert found.value.suggested_filename == "tree.svg"
    assert Path(found.value.path()).read_text(encoding="utf-8") == TREE[2]
    opened.quiet()


def test_an_opened_question_is_as_wide_as_the_view(visit: Callable[..., Opened]) -> None:
    opened = visit("bank", viewport={"width": 390, "height": 844})
    opened.tab.evaluate("document.querySelector('.explorer .open').click()")
    opened.tab.evaluate("document.querySelectorAll('.cand').forEach((d) => { d.open = true; })")
    for scrolled in (0, 200):
        opened.tab.evaluate(f"document.querySelector('.explorer .scroll').scrollLeft = {scrolled}")
        left, right = opened.tab.evaluate(
            "(({ left, right }) => [left, right])(document.querySelector('.detail .cand pre').getBoundingClientRect())"
        )
        assert 0 <= left < right <= 390, scrolled
        assert right - left > 290


def test_print_says_what_is_shown_and_what_is_left_out(visit: Callable[..., Opened]) -> None:
    opened = visit("bank")
    tab = opened.tab
    assert not tab.is_visible("#fig-scaling .viewed")
    tab.select_option("[data-view=scaling]", label="candidates")
    tab.wait_for_timeout(30)
    tab.emulate_media(media="print")
    assert not tab.is_visible("#fig-scaling .choose")
    assert tab.inner_text("#fig-scaling .viewed") == "candidates"
    said = "A bank: 25 of 40 questions are printed; the page itself has all of them, with their candidates."
    assert tab.inner_text(".explorer .printed") == said
    # A grid is not broken between its parts: a heading stayed behind at the end of a page.
    assert tab.evaluate("getComputedStyle(document.querySelector('.parts')).display") == "block"
    opened.quiet()


def test_controls_can_be_seen(visit: Callable[..., Opened]) -> None:
    """Borders of controls 3:1, a placeholder 4.5:1, and the chosen view is shown whole."""
    for scheme, colours in (("light", theme.LIGHT), ("dark", theme.DARK)):
        tab = visit("study", color_scheme=scheme).tab
        for control in (".choose select", ".filters input", ".filters button"):
            red, green, blue = tab.evaluate(
                f"""getComputedStyle(document.querySelector('{control}')).borderTopColor.match(/[\\d.]+/g).slice(0, 3)
                    .map((part) => Math.round(part <= 1 ? 255 * part : part))"""
            )
            assert contrast(_hex([red, green, blue]), colours["paper"]) >= 3, (scheme, control)
        faint = tab.evaluate(
            "getComputedStyle(document.querySelector('.filters input'), '::placeholder').color.match(/\\d+/g)"
        )
        assert contrast(_hex([int(part) for part in faint[:3]]), colours["paper"]) >= 4.5, scheme
    tab.select_option("[data-view=standing]", label="task B: best of N")
    assert tab.evaluate("(s => s.scrollWidth <= s.clientWidth + 1)(document.querySelector('[data-view=standing]'))")


@pytest.mark.parametrize("width", [390, 1000, 1280])
def test_there_is_always_one_list_of_contents(visit: Callable[..., Opened], width: int) -> None:
    opened = visit("bank", viewport={"width": width, "height": 844})
    tab = opened.tab
    if width < 1120:
        tab.click(".jump summary")
        tab.click(".jump a[href='#stopping']")
        assert tab.url.endswith("#stopping")
        assert not tab.is_visible(".jump ol")
    assert tab.is_visible(".contents") == (width >= 1120) != tab.is_visible(".jump")
    opened.quiet()


def test_text_of_any_direction_keeps_its_own(visit: Callable[..., Opened]) -> None:
    tab = visit("bank").tab
    tab.evaluate("document.querySelector('.explorer .open').click()")
    tab.evaluate("document.querySelectorAll('.cand').forEach((d) => { d.open = true; })")
    for place in (".open", ".prompt", ".detail .whole", ".cand .answer", ".cand pre"):
        assert tab.get_attribute(f".explorer {place}", "dir") == "auto", place


@pytest.mark.parametrize("name", ["bank", "study", "hostile"])
def test_a_phone_needs_no_sideways_scrolling(visit: Callable[..., Opened], name: str) -> None:
    opened = visit(name, viewport={"width": 390, "height": 844})
    tab = opened.tab
    tab.evaluate("document.querySelector('.explorer .open').click()")
    tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    tab.wait_for_timeout(100)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    opened.quiet()


def test_dark_mode_and_print_need_no_redrawing(visit: Callable[..., Opened]) -> None:
    tab = visit("bank", color_scheme="dark").tab
    ground = "getComputedStyle(document.body).backgroundColor"
    line = "getComputedStyle(document.querySelector('#fig-discovery .chart path[stroke-width=\"2\"]')).stroke"
    dark = tab.evaluate(ground), tab.evaluate(line)
    tab.emulate_media(media="print")
    printed = tab.evaluate(ground), tab.evaluate(line)
    assert dark == ("rgb(20, 23, 27)", "rgb(74, 168, 224)")
    assert printed == ("rgb(255, 255, 255)", "rgb(0, 114, 178)")
    assert not tab.is_visible(".top")
    tab.emulate_media(media="screen")
    tab.click("#theme")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"


def test_downloads_are_the_data(visit: Callable[..., Opened]) -> None:
    opened = visit("bank")
    tab = opened.tab
    bank, outcomes = looks_real()
    page: Page = profile_page(bank, outcomes, title="A bank", spell=spelled)

    def taken(selector: str) -> str:
        tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        with tab.expect_download() as found:
            tab.click(selector)
        return Path(found.value.path()).read_text(encoding="utf-8")

    mine = taken("[data-csv=discovery]").splitlines()
    theirs = page.figures()["discovery"].csv().splitlines()
    assert mine[0] == theirs[0]
    assert len(mine) == len(theirs) > 8
    for one, two in zip(mine[1:], theirs[1:], strict=True):
        assert [_number(cell) for cell in one.split(",")] == [_number(cell) for cell in two.split(",")]
    picture = taken("[data-svg=discovery]")
    assert "var(" not in picture
    assert xml.etree.ElementTree.fromstring(picture).tag.endswith("svg")
    tab.select_option("[data-view=scaling]", label="candidates")
    with tab.expect_download() as found:
        tab.click("[data-svg=scaling]")
    assert found.value.suggested_filename == "scaling-candidates.svg"
    root = xml.etree.ElementTree.parse(found.value.path()).getroot()
    words = {child.tag.rpartition("}")[2]: child.text for child in root[:2]}
    figure = page.figures()["scaling"]
    assert words == {"title": "What more candidates buy: candidates", "desc": figure.words("candidates")[0]}
    assert float(root.get("width", "0")) > 560, "as wide as for a paper, on any screen"
    assert '"$schema"' in taken("[data-spec=discovery]")
    assert taken("[data-table=rates]").startswith("bank,accuracy,accuracy low,accuracy high,")


def _number(cell: str) -> str | float:
    try:
        return float(cell)
    except ValueError:
        return cell


def test_a_hostile_bank_is_text_and_nothing_else(visit: Callable[..., Opened]) -> None:
    opened = visit("hostile")
    tab = opened.tab
    tab.evaluate("document.querySelectorAll('.explorer .open').forEach((b) => b.click())")
    tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    tab.wait_for_timeout(200)
    assert tab.evaluate("window.hacked") is None
    assert (
        tab.evaluate(
            "document.querySelectorAll('main img, main iframe, main script, main style, main svg[onload]').length"
        )
        == 0
    )
    shown = tab.evaluate("[...document.querySelectorAll('.cand pre')].map((p) => p.textContent)")
    assert len(shown) == 6 * len(HOSTILE)
    assert any(HOSTILE[0] in text for text in shown)
    assert any("␛]0;title" in text for text in shown)
    assert any("⟨U+202E⟩gnp.exe" in text for text in shown)
    assert not any("\x1b" in text or "\u202e" in text for text in shown)
    assert tab.is_visible("h1")
    opened.quiet()


def test_the_policy_stops_what_escaping_would_have_missed(visit: Callable[..., Opened]) -> None:
    """Were an element to slip in, it would not run: the page is asked to add one itself."""
    opened = visit("bank")
    tab = opened.tab
    tab.evaluate(
        """() => { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hacked = 1">');
        const s = document.createElement('script'); s.textContent = 'window.hacked = 2'; document.body.append(s); }"""
    )
    tab.wait_for_timeout(100)
    assert tab.evaluate("window.hacked") is None
    assert set(tab.evaluate("refused")) >= {"script-src-elem", "img-src"}

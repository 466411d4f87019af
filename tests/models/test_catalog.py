"""The paper's roster as data: the counts and settings that its tables have, and files of one's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ramify.decode import Chain, Frequency, Presence, Temperature, TopK, TopP
from ramify.errors import InvalidValue
from ramify.models.catalog import load

PAPER = Path(__file__).parents[3] / "shared/paper/test-time-scaling.tex"


def test_the_counts_of_the_paper() -> None:
    catalog = load()
    # Tables: 27 broad, 20 repeated, 4 canonical banks with signals; 5 configurations are in both of the first
    counts = {block: len(catalog.of_block(block)) for block in catalog.blocks}
    assert counts == {"broad": 27, "repeated": 20, "signal-rich": 4, "supergpqa": 4}
    assert len(catalog.configurations) == 27 + 20 - 5 + 1
    assert len(catalog.families) == 17
    assert sum(family.in_roster for family in catalog.families.values()) == 13  # those marked with a dagger
    assert (len(catalog.archetypes), len(catalog.mechanisms)) == (3, 4)
    assert {"CompassVerifier-3B", "CompassVerifier-7B"} <= set(catalog.verifiers)
    questions = {block.name: block.questions for block in catalog.blocks.values()}
    assert questions == {"broad": 12_032 + 6_511, "repeated": 120, "signal-rich": 186, "supergpqa": 72 * 50}


@pytest.mark.skipif(not PAPER.exists(), reason="the paper is not here")
def test_the_names_are_those_of_the_tables() -> None:
    tex = PAPER.read_text()
    for label, block in (("tab:breadth-results", "broad"), ("tab:exp2-roster-results", "repeated")):
        before = tex[: tex.index(rf"\label{{{label}}}")]
        table = before[before.rindex(r"\midrule") :]
        rows = re.findall(r"^(\S.*?) & [\d.]+ &", table, re.M)
        assert sorted(rows) == sorted(each.name for each in load().of_block(block))
    families = tex[tex.index("DeepSeek-R1 (teacher) &") : tex.index(r"\end{longtable}")]
    assert len(re.findall(r"\\\\$", families, re.M)) == len(load().families)
    daggers = re.findall(r"\\\(\^\{\\dagger\}\\\)", families)
    assert len(daggers) == sum(family.in_roster for family in load().families.values())


def test_gpt_oss_at_three_efforts() -> None:
    efforts = [each for each in load().configurations.values() if each.model == "gpt-oss-20b"]
    assert sorted(each.effort for each in efforts) == ["high", "low", "medium"]
    assert all(each.interface("signal-rich").parameters() == {"reasoning_effort": each.effort} for each in efforts)
    assert all(each.decoder("signal-rich") == Chain() for each in efforts)  # temperature 1, nothing cut


def test_how_the_blocks_were_sampled() -> None:
    catalog = load()
    mild = Chain(Temperature(0.6), TopP(0.95))
    assert all(each.decoder("repeated") == mild for each in catalog.of_block("repeated"))
    assert all(each.decoder("broad") == Chain(Frequency(0.1), *mild.operators) for each in catalog.of_block("broad"))
    qwen = catalog.configuration("Qwen3.6-35B-A3B")
    assert qwen.decoder("signal-rich") == Chain(Presence(1.5), TopK(20, ties="keep"), TopP(0.95))
    assert (catalog.blocks["signal-rich"].cap, catalog.blocks["repeated"].cap) == (81_920, 32_768)


def test_what_the_paper_does_not_say_is_unknown() -> None:
    catalog = load()
    assert {each.licence for each in catalog.configurations.values()} == {"unknown"}
    assert {each.recommended for each in catalog.configurations.values()} == {"unknown"}
    told = {each.name for each in catalog.configurations.values() if each.context != "unknown"}
    assert told == {"Qwen3-4B-Thinking-2507", "Qwen3-30B-A3B-Thinking-2507"}


def test_a_configuration_is_an_endpoint() -> None:
    made = load().configuration("gpt-oss-20b high").endpoint("http://127.0.0.1:8000/v1", "signal-rich")
    assert (made.model, made.server, made.interface.effort) == ("gpt-oss-20b", "vllm", "high")
    assert made.decoder == Chain()


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        '[[configurations]]\nname = "mine"\nblocks = ["repeated"]\nlicence = "mine"\n'
        "decoding = { own = { temperature = 0.3 } }\nswitches = { enable_thinking = true }\n"
        '[[configurations]]\nname = "LIMO"\nlicence = "Apache-2.0"\n'
    )
    catalog = load(mine)
    assert catalog.configuration("mine").decoder("own") == Chain(Temperature(0.3))
    assert catalog.configuration("mine").decoder("repeated") == Chain(Temperature(0.6), TopP(0.95))
    assert catalog.configuration("mine").interface().switches == (("enable_thinking", True),)
    assert catalog.configuration("LIMO").licence == "Apache-2.0"  # it replaces the one of the package
    assert len(catalog.configurations) == 44


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = [", "not TOML"),
        ("[[models]]\nname = 'x'", "no section 'models'"),
        ("[[configurations]]\nmodel = 'x'", "a name of its own"),
        ("[[configurations]]\nname = 'x'\nlicense = 'MIT'", "did you mean licence"),
        ("[[configurations]]\nname = 'x'\nblocks = ['night']", "no block 'night'"),
        ("[[configurations]]\nname = 'x'\nfamily = 'Adams'", "no family 'Adams'"),
        ("[[configurations]]\nname = 'x'\ndecoding = { own = { heat = 1 } }", "decoding of 'own'"),
        ("[[families]]\nname = 'x'\nmechanisms = ['magic']", "no 'magic'"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InvalidValue, match=said):
        load(tmp_path / "mine.toml")


def test_a_near_miss_is_pointed_out() -> None:
    with pytest.raises(InvalidValue, match="did you mean 'QwQ-32B'"):
        load().configuration("qwq-32b")
    with pytest.raises(InvalidValue, match="it is in broad"):
        load().configuration("QwQ-32B").decoder("repeated")

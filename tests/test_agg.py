"""The reference interface: what it accepts, what it returns, and where it agrees with scorio."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scorio.aggregate as peer
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify import agg
from ramify.decide import KLBestOfN, TokenF1
from ramify.errors import InvalidValue

FIXTURES = Path(__file__).parents[2] / "shared/data/banks/scorio_aime25_q06"
ANSWERS, SCORES = ["A", "A", "A", "B"], [0.30, 0.30, 0.30, 0.85]


# ---------------------------------------------------------------------------------------------------------------- input


def test_the_listing_of_the_paper() -> None:
    assert agg.majority_vote(ANSWERS) == "A"
    assert agg.best_of_n(ANSWERS, SCORES) == "B"
    assert agg.softmax_weighted_vote(ANSWERS, SCORES, temperature=0.1) == "B"


@pytest.mark.parametrize(
    "answers",
    [
        ["A", None, "B", "B"],
        ("A", "", "B", "B"),
        np.array(["A", None, "B", "B"], dtype=object),
        pd.Series(["A", pd.NA, "B", "B"]),
        pd.Series(["A", float("nan"), "B", "B"], index=[9, 8, 7, 6]),
        iter(["A", None, "B", "B"]),
    ],
    ids=["list", "tuple", "array", "series with NA", "series with an index", "iterator"],
)
def test_one_question_in_any_container(answers: Any) -> None:
    assert agg.majority_vote(answers, record=True) == agg.Selection("B", 2, 2.0)


@pytest.mark.parametrize(
    ("answers", "scores"),
    [
        ([["A", "A", "B"], ["X", "Y"]], [[0.1, 0.2, 0.9], [0.5, 0.4]]),
        (pd.DataFrame([["A", "A", "B"], ["X", "Y", None]]), pd.DataFrame([[0.1, 0.2, 0.9], [0.5, 0.4, None]])),
        (np.array([["A", "A", "B"], ["X", "Y", ""]]), np.array([[0.1, 0.2, 0.9], [0.5, 0.4, 9.0]])),
        ([pd.Series(["A", "A", "B"]), np.array(["X", "Y"])], [np.array([0.1, 0.2, 0.9]), [0.5, 0.4]]),
    ],
    ids=["ragged lists", "frames", "arrays", "mixed rows"],
)
def test_a_batch_in_any_container(answers: Any, scores: Any) -> None:
    found = agg.best_of_n(answers, scores, record=True)
    assert found.answer.tolist() == ["B", "X"]
    assert found.index.tolist() == [2, 0]
    assert found.score.tolist() == [0.9, 0.5]
    assert agg.majority_vote(answers).tolist() == ["A", "X"]


def test_any_hashable_is_an_answer() -> None:
    assert agg.majority_vote([(1, 2), (3,), (3,)]) == (3,)
    assert agg.majority_vote([[(1, 2), (1, 2)], [(3,)]]).tolist() == [(1, 2), (3,)]
    assert agg.majority_vote([1, 1.0, True, 2]) == 1
    assert agg.majority_vote([0, 0, 1]) == 0, "zero is an answer"
    assert agg.majority_vote([frozenset({1}), frozenset({1}), None]) == frozenset({1})
    with pytest.raises(InvalidValue, match="hashable"):
        agg.majority_vote([{}, {}])


def test_nothing_valid_is_none_with_index_minus_one() -> None:
    for nothing in ([], [None], [float("nan"), ""], [pd.NA]):
        found = agg.majority_vote(nothing, record=True)
        assert (found.answer, found.index) == (None, -1)
        assert math.isnan(found.score)
    batch = agg.best_of_n([["A"], [None]], [[0.5], [0.9]], record=True)
    assert batch.answer.tolist() == ["A", None]
    assert batch.index.tolist() == [0, -1]
    assert math.isnan(batch.score[1])


def test_scores_must_be_aligned_and_may_be_missing() -> None:
    assert agg.best_of_n(["A", "B"], [None, 0.1]) == "B"
    assert agg.best_of_n(["A", "B"], [float("nan"), float("nan")], return_index=True) == (None, -1)
    with pytest.raises(InvalidValue, match=r"scores of question 0 = '1 values'"):
        agg.best_of_n(["A", "B"], [0.1])
    with pytest.raises(InvalidValue, match=r"scores = '1 rows'"):
        agg.best_of_n([["A"], ["B"]], [[0.1]])


def test_parts_are_returned_as_asked() -> None:
    assert agg.best_of_n(ANSWERS, SCORES, return_index=True) == ("B", 3)
    assert agg.best_of_n(ANSWERS, SCORES, return_score=True) == ("B", 0.85)
    assert agg.best_of_n(ANSWERS, SCORES, return_index=True, return_score=True) == ("B", 3, 0.85)
    with pytest.raises(TypeError, match="return_everything"):
        agg.best_of_n(ANSWERS, SCORES, return_everything=True)  # type: ignore[call-arg]


# ----------------------------------------------------------------------------------------------- every rule by function

UNIT = [[1.0, 0.2, 0.2, 0.9], [0.2, 1.0, 0.7, 0.1], [0.2, 0.7, 1.0, 0.1], [0.9, 0.1, 0.1, 1.0]]
CALLS: dict[str, tuple[Callable[[], Any], Any]] = {
    "first_valid": (lambda: agg.first_valid([None, "B", "A"]), "B"),
    "weighted": (lambda: agg.weighted_majority_vote(ANSWERS, SCORES), "A"),
    "weighted mean": (lambda: agg.weighted_majority_vote(ANSWERS, SCORES, aggregate="mean"), "B"),
    "likelihood": (lambda: agg.likelihood_vote(ANSWERS, [-3.0, -3.0, -3.0, -0.5]), "B"),
    "rank": (lambda: agg.rank_weighted_vote(ANSWERS, SCORES, p=2), "B"),
    "logit": (lambda: agg.logit_weighted_vote(ANSWERS, SCORES), "B"),
    "linear": (lambda: agg.logit_weighted_vote(ANSWERS, SCORES, transform="linear", threshold=0.0), "A"),
    "filtered": (lambda: agg.filtered_vote(ANSWERS, SCORES, keep=1), "B"),
    "filtered count": (lambda: agg.filtered_vote(ANSWERS, SCORES, keep=1.0, weighted=False), "A"),
    "calibrated": (lambda: agg.calibrated_vote(ANSWERS, [0.0, 0.0, 0.0, 9.0], [0.5] * 4), "B"),
    "cges": (lambda: agg.cges_vote(ANSWERS, SCORES), "B"),  # odds .3/.7 cubed against .85/.15
    "verifier": (lambda: agg.verifier_constrained(ANSWERS, [0, 1, 1, 0], [0.1, 0.2, 0.3, 0.9]), "A"),
    "verifier falls back": (lambda: agg.verifier_constrained(ANSWERS, [0, 0, 0, 0]), "A"),
    "soft": (lambda: agg.soft_best_of_n(ANSWERS, SCORES, alpha=0.0, u=0.99), "B"),
    "soft mode": (lambda: agg.soft_best_of_n(ANSWERS, SCORES), "B"),
    "regularised": (lambda: agg.regularised_best_of_n(ANSWERS, SCORES, beta=10.0), "A"),
    "kl": (lambda: agg.kl_best_of_n(ANSWERS, SCORES, [-1.0, -2.0, -2.0, -90.0]), "A"),
    "mob": (lambda: agg.mob(ANSWERS, SCORES, m=1), "A"),
    "mob adaptive": (lambda: agg.adaptive_majority_of_the_bests(["A", "B"], [0.1, 0.2]), "B"),
    "majority of bests": (lambda: agg.best_of_majority(ANSWERS, SCORES, alpha=0.5), "A"),
    "several": (lambda: agg.best_of_majority(ANSWERS, SCORES, k=3), ["B", "A"]),
    "judged": (lambda: agg.judged(["A", "B"], [0, 2]), "B"),
    "mbr": (lambda: agg.mbr(["x", "A", "B", "C"], UNIT), "x"),
    "mbr agreement": (lambda: agg.mbr(["A", "B", "B"]), "B"),
    "mbr weighted": (lambda: agg.mbr(["A", "B", "B"], weights=[5.0, 1.0, 1.0]), "A"),
    "pruned": (lambda: agg.pruned_mbr(["A", "B", "B"]), "B"),
    "ambr": (lambda: agg.ambr(["A", "B", "B"], budget=18), "B"),
    "low rank": (lambda: agg.low_rank_mbr(["A"]), "A"),
    "reference": (lambda: agg.reference_aggregation(["A", "B"], [[1.0, 0.0], [2.0, 0.0]]), "B"),
    "centroid": (lambda: agg.centroid_mbr(["A", "B"], [[1.0, 0.0], [2.0, 0.0]], k=1), "B"),
    "diverse": (lambda: agg.diverse_n_best(["A", "A", "B"], k=2, spread=2.0), ["A", "B"]),
    "round robin": (lambda: agg.round_robin(["A", "B"], [[0.5, 0.1], [0.9, 0.5]]), "B"),
    "knockout": (lambda: agg.knockout(["A", "B"], [[0.5, 0.1], [0.9, 0.5]]), "B"),
    "bradley-terry": (lambda: agg.bradley_terry(["A", "B"], [[0.5, 0.1], [0.9, 0.5]]), "B"),
    "select": (lambda: agg.select(KLBestOfN(), ["A"], {"score": [1.0], "sequence_logprob": [-1.0]}), "A"),
    "select utility": (lambda: agg.mbr(["a b", "a c", "d"], TokenF1()), "a b"),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_rule_is_a_function(name: str) -> None:
    call, answer = CALLS[name]
    assert call() == answer


def test_soft_probabilities() -> None:
    assert agg.soft_best_of_n_probs(["A", "B", None], [1.0, 1.0, 5.0]).tolist() == [0.5, 0.5, 0.0]
    assert agg.soft_best_of_n_probs([["A", "B"]], [[1.0, 1.0]]).shape == (1, 2)


def test_the_other_answer() -> None:
    assert agg.cges_vote(["A"], [0.1], allow_other=True) is agg.CGES_OTHER
    assert agg.cges_vote(["A"], [0.1], allow_other=True, return_index=True) == (agg.CGES_OTHER, -1)
    assert agg.cges_vote([["A"], ["B"]], [[0.1], [0.9]], allow_other=True).tolist() == [agg.CGES_OTHER, "B"]
    assert pickle.loads(pickle.dumps(agg.CGES_OTHER)) is agg.CGES_OTHER
    assert agg.cges_vote([None], [0.1], allow_other=True) is None


# ------------------------------------------------------------------------------------------------------- against scorio

# name here, keyword arguments shared with scorio, keyword arguments for scorio's ties
PEERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("weighted_majority_vote", {}, {}),
    ("weighted_majority_vote", {"aggregate": "mean"}, {}),
    ("softmax_weighted_vote", {"temperature": 0.2}, {}),
    ("rank_weighted_vote", {"p": 1.0}, {"ties": "earliest"}),
    ("rank_weighted_vote", {"p": 0.5}, {"ties": "earliest"}),
    ("rank_weighted_vote", {"p": 3}, {"ties": "earliest"}),
    ("logit_weighted_vote", {}, {}),
    ("logit_weighted_vote", {"transform": "linear", "threshold": 0.3}, {}),
    ("filtered_vote", {"keep": 0.5}, {"ties": "earliest"}),
    ("filtered_vote", {"keep": 3, "weighted": True}, {"ties": "earliest"}),
    ("best_of_n", {}, {}),
    ("majority_of_the_bests", {}, {"ties": "earliest"}),
    ("mob", {"m": 2}, {"ties": "earliest"}),
    ("best_of_majority", {"alpha": 0.2}, {}),
    ("best_of_majority", {"aggregate": "max"}, {}),
    ("cges_vote", {}, {}),
]


@pytest.mark.parametrize(("name", "shared", "ours"), PEERS, ids=lambda part: str(part)[:40])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 24))
@settings(max_examples=40)
def test_scorio_decides_alike_where_scores_are_distinct(
    name: str, shared: dict[str, Any], ours: dict[str, Any], seed: int, n: int
) -> None:
    rng = np.random.default_rng(seed)
    answers = rng.choice(np.array(["A", "B", "C", "D", None], dtype=object), (3, n))
    scores = rng.uniform(0.01, 0.99, (3, n))
    mine = getattr(agg, name)(answers, scores, return_index=True, return_score=True, **shared, **ours)
    theirs = getattr(peer, name)(answers, scores, return_index=True, return_score=True, **shared)
    assert mine.answer.tolist() == theirs[0].tolist()
    assert mine.index.tolist() == theirs[1].tolist()
    assert np.array_equal(mine.score, theirs[2], equal_nan=True)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 24))
def test_scorio_counts_alike(seed: int, n: int) -> None:
    answers = np.random.default_rng(seed).choice(np.array(["A", "B", "C", None], dtype=object), (4, n))
    mine, theirs = agg.majority_vote(answers, return_index=True), peer.majority_vote(answers, return_index=True)
    assert mine[0].tolist() == theirs[0].tolist()
    assert mine[1].tolist() == theirs[1].tolist()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12))
@settings(max_examples=30)
def test_scorio_votes_alike_with_its_calibration(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    held_out = rng.uniform(0.05, 0.95, 60)
    fitted = peer.fit_kde_vote_calibration(held_out, rng.random(60) < held_out)
    answers = rng.choice(np.array(["A", "B", "C", None], dtype=object), (3, n))
    scores = rng.uniform(0.01, 0.99, (3, n))
    mine = agg.kde_weighted_vote(answers, scores, fitted, return_index=True)
    theirs = peer.kde_weighted_vote(answers, scores, fitted, return_index=True)
    assert mine[0].tolist() == theirs[0].tolist()
    assert mine[1].tolist() == theirs[1].tolist()


def test_where_scorio_differs() -> None:
    """The table of docs/decide.md: each line with the reason."""
    answers, equal = ["A", "B", "B"], [0.5, 0.5, 0.5]
    assert (agg.mob(answers, equal, m=3), peer.mob(answers, equal, m=3)) == ("B", "A")  # equal scores share their ranks
    assert (agg.filtered_vote(answers, equal, keep=1), peer.filtered_vote(answers, equal, keep=1)) == ("B", "A")
    three, missing = ["A", "B", "C"], [math.nan, 0.2, 0.9]  # a missing score is excluded; NaN is neither less nor more
    assert (agg.rank_weighted_vote(three, missing), peer.rank_weighted_vote(three, missing)) == ("C", "A")
    nothing = [-math.inf] * 3  # a legal score
    assert (agg.best_of_n(answers, nothing), peer.best_of_n(answers, nothing)) == ("A", None)
    assert agg.softmax_weighted_vote(answers, nothing) == "B"
    tied, scores = ["A", "B", "B", "A"], [0.1, 0.9, 0.2, 0.8]  # a tie of kept votes goes to the first answer
    assert agg.filtered_vote(tied, scores, keep=4, weighted=False) == "A"
    assert peer.filtered_vote(tied, scores, keep=4, weighted=False) == "B"
    logprobs = [-1.0, -1.0, -1.5]  # summed log-probabilities punish votes
    assert peer.weighted_majority_vote(["A", "A", "B"], logprobs) == "B"
    with pytest.raises(InvalidValue, match="punish an answer for its votes"):
        agg.weighted_majority_vote(["A", "A", "B"], logprobs)
    means = [0.99, 0.99, 0.99, 0.99]  # the mean of three times 0.99 is 0.99
    assert agg.weighted_majority_vote(["A", "A", "A", "B"], means, aggregate="mean") == "A"
    assert peer.weighted_majority_vote(["A", "A", "A", "B"], means, aggregate="mean") == "B"


@pytest.mark.skipif(not FIXTURES.exists(), reason="the shared fixtures are not here")
@pytest.mark.parametrize("source", ["js", "julia"])
def test_published_fixtures(source: str) -> None:
    form = json.loads((FIXTURES / f"{source}_aggregate_fixtures.json").read_text())
    where = form["inputs"] if source == "julia" else form["selection"]
    answers, scores = where["answers"], where["scores"]
    both: dict[str, Any] = {"return_index": True, "return_score": True}
    calls: dict[str, Any] = {
        "majority_vote": agg.majority_vote(answers, return_index=True),
        "best_of_n": agg.best_of_n(answers, scores, **both),
        "weighted_sum": agg.weighted_majority_vote(answers, scores, **both),
        "weighted_mean": agg.weighted_majority_vote(answers, scores, aggregate="mean", **both),
        "mob_default": agg.mob(answers, scores, **both),
        "mob_m3": agg.mob(answers, scores, m=3, **both),
        "best_of_majority_sum": agg.best_of_majority(answers, scores, aggregate="sum", **both),
        "best_of_majority_max": agg.best_of_majority(answers, scores, aggregate="max", **both),
        "softmax_infinite": agg.softmax_weighted_vote(answers, scores, temperature=math.inf, **both),
        "rank_p0": agg.rank_weighted_vote(answers, scores, p=0, **both),
        "rank_p1": agg.rank_weighted_vote(answers, scores, p=1, **both),
        "rank_weighted_vote": agg.rank_weighted_vote(answers, scores, **both),
        "linear": agg.logit_weighted_vote(answers, scores, transform="linear", threshold=0.1, **both),
        "majority_of_the_bests": agg.majority_of_the_bests(answers, scores, **both),
        "majority_of_the_bests_m1": agg.majority_of_the_bests(answers, scores, m=1, **both),
        "mob": agg.mob(answers, scores, **both),
        "weighted_majority_vote_sum": agg.weighted_majority_vote(answers, scores, **both),
        "weighted_majority_vote_mean": agg.weighted_majority_vote(answers, scores, aggregate="mean", **both),
        "filtered_vote_weighted": agg.filtered_vote(answers, scores, **both),
        "filtered_vote_unweighted": agg.filtered_vote(answers, scores, weighted=False, **both),
        "softmax_weighted_vote": agg.softmax_weighted_vote(answers, scores, **both),
    }
    expected = form["selection"]
    known = [name for name in calls if name in expected]
    assert len(known) >= 10
    for name in known:
        assert list(calls[name]) == expected[name], name


@pytest.mark.skipif(not FIXTURES.exists(), reason="the shared fixtures are not here")
def test_published_fixtures_of_exact_ties_batches_and_cges() -> None:
    form = json.loads((FIXTURES / "js_aggregate_fixtures.json").read_text())
    exact = form["exact"]
    assert agg.mob(exact["mob_tie_answers"], exact["mob_tie_scores"]) == exact["mob_tie"]
    ranked = agg.rank_weighted_vote(exact["rank_answers"], exact["rank_scores"], ties="earliest")
    assert ranked == exact["rank_integer"]
    batch = form["batch"]
    answers = [[None if a == "nan" else a for a in row] for row in batch["answers"]]
    assert agg.majority_vote(answers, return_index=True)[0].tolist() == batch["majority_vote"][0]
    for name, call in (("best_of_n", agg.best_of_n), ("weighted", agg.weighted_majority_vote), ("mob", agg.mob)):
        found = call(answers, batch["scores"], record=True)
        assert found.answer.tolist() == batch[name][0], name
        assert found.index.tolist() == batch[name][1], name


def test_scores_that_are_no_numbers_are_named() -> None:
    with pytest.raises(InvalidValue, match=r"scores of question 0 has 'high': use numbers"):
        agg.best_of_n(["a", "b"], ["high", 1.0])

"""Replays give what the rule gives on every permuted prefix: in NumPy, compiled, and by calling it."""

from __future__ import annotations

import dataclasses
import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.bank import Candidates
from ramify.decide import (
    CGES,
    BestOfN,
    FilteredVote,
    LikelihoodVote,
    LogOddsVote,
    MajorityOfTheBests,
    Plurality,
    RankVote,
    Rule,
    SoftmaxVote,
    WeightedVote,
)
from ramify.decide.replay import replay, scheme_of
from ramify.describe import text
from ramify.errors import InvalidValue
from tests.decide.banks import candidates, seeds
from tests.methods import BY_PAIRS, RULES

ENGINES = ["numpy"] + ["numba"] * (importlib.util.find_spec("numba") is not None)
KNOWN: tuple[Rule, ...] = (
    Plurality(),
    WeightedVote(),
    WeightedVote(pool="mean"),
    WeightedVote("mean_logprob", pool="mean"),
    WeightedVote("mean_logprob", negative="allow"),
    SoftmaxVote(temperature=0.1),
    LikelihoodVote(),
    LogOddsVote(),
    LogOddsVote(form="linear", threshold=0.4),
    RankVote(p=0.5),
    RankVote(),
    RankVote(p=7),
    RankVote(ties="earliest"),
    MajorityOfTheBests(),
    MajorityOfTheBests(m=9),
    MajorityOfTheBests(m=3, ties="earliest"),
    FilteredVote(keep=0.5),
    FilteredVote(keep=3, ties="earliest"),
    FilteredVote(keep=0.4, then=WeightedVote()),
    FilteredVote(keep=0.4, then=WeightedVote(), ties="earliest"),
    BestOfN(),
)


def orders(rng: np.random.Generator, bank: Candidates, count: int) -> np.ndarray:
    """Random permutations, those not drawn last."""
    noise = rng.random((count, *bank.answers.shape)) + ~bank.drawn
    return np.argsort(noise, axis=-1).astype(np.uint8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", KNOWN, ids=text)
@given(rng=seeds, levels=st.sampled_from([0, 2, 4, 9]), missing=st.sampled_from([0.0, 0.2]))
@settings(max_examples=12)
def test_a_replay_is_the_rule_on_every_prefix(
    rule: Rule, engine: str, rng: np.random.Generator, levels: int, missing: float
) -> None:
    bank = candidates(rng, (3, 11), levels=levels, missing=missing)
    bank.answers[0, bank.answers[0] == 2] = 10**6  # codes need not be dense
    assert scheme_of(rule, bank) is not None
    shuffled = orders(rng, bank, 12)
    budgets = (1, 2, 3, 6, 11)
    assert np.array_equal(replay(rule, bank, shuffled, budgets, engine=engine), by_hand(rule, bank, shuffled, budgets))


def by_hand(rule: Rule, bank: Candidates, shuffled: np.ndarray, budgets: tuple[int, ...]) -> np.ndarray:
    """One prefix at a time."""
    out = np.full((len(shuffled), len(budgets), len(bank.answers)), -1)
    for r, k, q in np.ndindex(*out.shape):
        order = shuffled[r, q, : budgets[k]]
        evidence = {name: values[q, order] for name, values in bank.evidence.items()}
        prefix = Candidates(bank.answers[q, order], bank.drawn[q, order], bank.eligible[q, order], evidence)
        winner = int(rule(prefix).winner)
        out[r, k, q] = order[winner] if winner >= 0 else -1
    return out


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in BY_PAIRS], ids=text)
def test_every_rule_can_be_replayed(rule: Rule) -> None:
    rng = np.random.default_rng(7)
    bank = candidates(rng, (2, 8))
    shuffled = orders(rng, bank, 5)
    assert np.array_equal(replay(rule, bank, shuffled, (2, 8)), by_hand(rule, bank, shuffled, (2, 8)))


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_beyond_double_precision_are_decided_by_the_rule(engine: str) -> None:
    rng = np.random.default_rng(11)
    scores = rng.integers(0, 12, (2, 80)) / 12  # many ties of many sizes: their common multiple is large
    answers = np.stack([np.arange(80) % 2, rng.integers(-1, 5, 80)])
    scores[0, 1::2] = scores[0, ::2]  # two answers with the same scores: an exact tie at 80
    bank = Candidates(answers, evidence={"score": scores})
    shuffled = orders(rng, bank, 6)
    for rule in (MajorityOfTheBests(), RankVote(p=6), RankVote(p=0.5)):
        found = replay(rule, bank, shuffled, (64, 80), engine=engine)
        assert np.array_equal(found, replay(rule, bank, shuffled, (64, 80), engine="rule"))
        assert found[:, 1, 0].tolist() == shuffled[:, 0, 0].tolist(), "the first candidate's answer wins the tie"


def test_wide_banks_and_fallbacks_go_through_the_rule() -> None:
    wide = Candidates(np.zeros((1, 300), dtype=int))
    assert scheme_of(Plurality(), wide) is None
    assert replay(Plurality(), wide, np.arange(300)[None, None], (300,)).tolist() == [[[0]]]
    unscored = Candidates(np.array([[1, 0]]), evidence={"score": np.full((1, 2), np.nan)})
    rule = BestOfN(fallback=Plurality())
    assert replay(rule, unscored, np.array([[[1, 0]]]), (2,)).tolist() == [[[1]]]
    assert replay(CGES("score"), unscored, np.array([[[1, 0]]]), (2,)).tolist() == [[[-1]]]


def test_what_cannot_be_replayed_is_refused() -> None:
    bank = Candidates(np.array([[0, 1]]), evidence={"score": np.array([[-1.0, 2.0]])})
    order = np.array([[[0, 1]]])
    with pytest.raises(InvalidValue, match="budgets"):
        replay(Plurality(), bank, order, (2, 1))
    with pytest.raises(InvalidValue, match="budgets"):
        replay(Plurality(), bank, order, (3,))
    with pytest.raises(InvalidValue, match="orders"):
        replay(Plurality(), bank, order[0], (1,))
    with pytest.raises(InvalidValue, match="engine"):
        replay(Plurality(), bank, order, (1,), engine="cuda")
    with pytest.raises(InvalidValue, match="negative weights punish"):
        replay(WeightedVote(), bank, order, (1,))
    with pytest.raises(InvalidValue, match=r"replay one bank"):
        replay(Plurality(), dataclasses.replace(bank, **{n: getattr(bank, n)[0] for n in FIELDS}, evidence={}), order)


FIELDS = ("answers", "drawn", "eligible")

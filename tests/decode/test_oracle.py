"""Exact enumeration on the tabular model: the proposal is what the decoder says it is, leaf for leaf."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ramify.decode import Chain, Draw, GumbelMax, InverseCDF, Mixture, Operator, Side, Temperature, TopK, TopP, step
from ramify.describe import text
from ramify.keys import streams
from ramify.models import Tabular, decode_with, leaves
from ramify.types import Key, Request
from tests.methods import OPERATORS
from tests.oracle import simulate

MODEL = Tabular.random(Key("oracle", "tabular", 0), vocabulary=4, order=2)
PROMPT, CAP, SAMPLES = (0, 1), 4, 200_000


@pytest.mark.parametrize("operator", OPERATORS, ids=text)
def test_the_leaves_of_every_decoder_have_total_probability_one(operator: Operator) -> None:
    found = leaves(MODEL, operator, PROMPT, CAP)
    assert abs(np.exp(found.log_q).sum() - 1) < 1e-12
    assert len({tuple(leaf) for leaf in found.tokens.tolist()}) == len(found.tokens)


@pytest.mark.parametrize("operator", OPERATORS, ids=text)
def test_drawn_leaves_have_the_enumerated_frequencies(operator: Operator) -> None:
    draw: Draw = InverseCDF() if OPERATORS.index(operator) % 2 else GumbelMax()
    found = leaves(MODEL, operator, PROMPT, CAP)
    index = {tuple(leaf): i for i, leaf in enumerate(found.tokens.tolist())}
    tokens, log_q = simulate(MODEL, operator, PROMPT, CAP, SAMPLES, draw=draw)
    code = (tokens + 1) @ (5 ** np.arange(CAP))
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    where = [index[tuple(leaf)] for leaf in tokens[first].tolist()]  # one that was not enumerated would be a KeyError
    assert log_q[first] == pytest.approx(found.log_q[where], abs=1e-9), "each draw recorded its own log q"
    observed = np.zeros(len(found.tokens))
    observed[where] = counts
    expected = np.exp(found.log_q) * SAMPLES
    rare = expected < 5
    if rare.any():
        observed, expected = (np.append(x[~rare], x[rare].sum()) for x in (observed, expected))
    if len(expected) > 1:
        assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-4


def test_enumeration_agrees_with_products_of_the_tables() -> None:
    found = leaves(MODEL, Chain(), PROMPT, CAP)
    for leaf, log_q in zip(found.tokens, found.log_q, strict=True):
        state, total = MODEL.start([PROMPT]), 0.0
        for token in leaf[leaf >= 0]:
            total += float(MODEL.logits(state)[0, token])
            state = MODEL.advance(state, np.array([token]))
        assert log_q == pytest.approx(total, abs=1e-12)


def test_a_mixture_per_leaf_averages_the_proposals_of_its_configurations() -> None:
    parts: tuple[Operator, ...] = (Temperature(0.5), TopK(2), Chain(Temperature(2.0), TopP(0.9)))
    weights = (0.5, 0.2, 0.3)
    mixed = leaves(MODEL, Mixture(parts, weights), PROMPT, CAP)
    expected = dict.fromkeys(map(tuple, mixed.tokens.tolist()), 0.0)
    for part, weight in zip(parts, weights, strict=True):
        own = leaves(MODEL, part, PROMPT, CAP)
        for leaf, log_q in zip(own.tokens.tolist(), own.log_q, strict=True):
            expected[tuple(leaf)] += weight * float(np.exp(log_q))
    assert np.exp(mixed.log_q) == pytest.approx(list(expected.values()), rel=1e-10)


def test_importance_weights_between_two_protocols_are_exact() -> None:
    """E_q[p(y)/q(y) f(y)] over every leaf of q equals E_p[f], where q covers p; replaying a leaf gives its log p."""
    target, proposal = Chain(Temperature(0.7), TopP(0.95)), Temperature(1.3)
    q = leaves(MODEL, proposal, PROMPT, CAP)
    requests = [
        Request(Key("is", "q", i), PROMPT, cap=int((leaf >= 0).sum()), prefix=tuple(leaf[leaf >= 0].tolist()))
        for i, leaf in enumerate(q.tokens)
    ]
    scored = {leaf.key.sample: leaf.sequence_log_q for leaf in decode_with(MODEL, target, batch=7)(requests)}
    weights = np.exp([scored[i] - q.log_q[i] for i in range(len(requests))])
    assert (np.exp(q.log_q) * weights).sum() == pytest.approx(1.0, abs=1e-12)
    p = leaves(MODEL, target, PROMPT, CAP)
    length = float((np.exp(p.log_q) * (p.tokens >= 0).sum(-1)).sum())
    assert (np.exp(q.log_q) * weights * (q.tokens >= 0).sum(-1)).sum() == pytest.approx(length, abs=1e-12)


def test_both_draws_have_common_random_numbers_where_they_promise_them() -> None:
    """Gumbel noise is keyed by token id: cutting the support changes a token only where the old one was cut."""
    stream = streams(Key("crn", "q", i) for i in range(5_000))
    logits = np.tile(np.log([0.4, 0.3, 0.2, 0.1]), (5_000, 1))
    side = Side.start(Chain(), [()] * 5_000)
    full, _ = step(Chain(), logits, side, stream, draw=GumbelMax())
    cut, _ = step(TopK(3), logits, side, stream, draw=GumbelMax())
    stays = full.token < 3
    assert (full.token[stays] == cut.token[stays]).all()

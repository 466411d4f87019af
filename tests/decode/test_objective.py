"""Set-objective gates: exact where enumeration is affordable, a declared approximation beyond."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.decode import MassUnderEntropy, MassVersusSize, Objective, TokenMeasure, TopH
from ramify.errors import InvalidValue
from tests.oracle import WORKED, kept, measure


@pytest.mark.parametrize("objective", [MassVersusSize(0.4), MassUnderEntropy(0.6)], ids=repr)
@given(raw=st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6))
def test_the_exact_solver_finds_the_best_of_all_subsets(raw: list[float], objective: MassVersusSize) -> None:
    p = np.array(raw) / sum(raw)
    chosen = kept(Objective(objective)(measure(p)))
    subsets = [c for n in range(1, len(p) + 1) for c in itertools.combinations(range(len(p)), n)]
    member = np.array([[i in subset for i in range(len(p))] for subset in subsets])
    costs = objective(member, p)
    mine = objective(np.array([[i in chosen for i in range(len(p))]]), p)[0]
    assert mine == pytest.approx(costs.min(), abs=1e-12)


def test_top_h_is_the_head_approximation_of_the_entropy_problem() -> None:
    """Among all subsets the best mass under the entropy budget is at least that of the best head."""
    p = measure(WORKED)
    head, best = TopH(0.62)(p), Objective(MassUnderEntropy(0.62))(p)
    assert float(p.probs[best.live].sum()) >= float(p.probs[head.live].sum()) - 1e-12
    heads = Objective(MassUnderEntropy(0.62), exact=1, pool=6)(p)
    assert kept(heads) == kept(head)


def test_beyond_the_exact_size_only_heads_of_the_pool_are_compared() -> None:
    p = TokenMeasure.of(np.random.default_rng(0).normal(size=5_000))
    gate = Objective(MassVersusSize(0.2), exact=4, pool=50)
    ids = kept(gate(p))
    order = np.argsort(-p.logits, kind="stable")
    assert sorted(order[: len(ids)].tolist()) == ids
    assert "best head of the 50 heaviest" in gate.approximation


def test_tokens_of_vanishing_probability_are_no_trouble() -> None:
    for objective in (MassVersusSize(0.5), MassUnderEntropy(0.5)):
        assert kept(Objective(objective)(TokenMeasure.of(np.array([0.0, -1e4, -1e4])))) == [0]


def refuse(member: np.ndarray, r: np.ndarray) -> np.ndarray:
    return np.full(len(member), np.inf)


def wrong(member: np.ndarray, r: np.ndarray) -> np.ndarray:
    return np.zeros(3)


def test_an_objective_that_refuses_everything_falls_back_to_the_mode() -> None:
    result = Objective(refuse)(measure(WORKED))
    assert kept(result) == [0]
    assert bool(result.fallback)


def test_an_objective_of_the_wrong_shape_is_an_error() -> None:
    with pytest.raises(InvalidValue, match=r"return \[63\] costs"):
        Objective(wrong)(measure(WORKED))

"""The tabular model: suffix lookup as an automaton, and its validation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.decode import Chain
from ramify.errors import InvalidValue
from ramify.models import Tabular, leaves
from ramify.types import Key

ROWS = (((), (0.5, 0.3, 0.2)), ((0,), (0.1, 0.8, 0.1)), ((1, 0, 1), (0.0, 0.0, 1.0)))
MODEL = Tabular(("a", "b", "."), ROWS, eos=2)


@given(st.lists(st.integers(0, 2), max_size=10))
def test_the_state_is_the_longest_listed_suffix(context: list[int]) -> None:
    table = dict(ROWS)
    suffix = next(tuple(context[i:]) for i in range(len(context) + 1) if tuple(context[i:]) in table)
    assert np.exp(MODEL.logits(MODEL.start([context]))[0]) == pytest.approx(table[suffix])
    stepwise = MODEL.start([[]])
    for token in context:
        stepwise = MODEL.advance(stepwise, np.array([token]))
    assert stepwise.tolist() == MODEL.start([context]).tolist()


def test_rows_are_forked_pruned_and_merged_by_select() -> None:
    a, b = MODEL.start([[0], [1]]), MODEL.start([[]])
    merged = MODEL.select([a, b], [2, 0, 0])
    assert merged.tolist() == [b[0], a[0], a[0]]
    assert MODEL.text([0, 1, 2]) == "a b ."


def test_random_models_depend_on_their_key() -> None:
    one, same, other = (Tabular.random(Key("m", "t", i)) for i in (0, 0, 1))
    assert one == same
    assert one != other


@pytest.mark.parametrize(
    ("rows", "eos", "message"),
    [
        ((((0,), (0.5, 0.5)),), 1, "empty context"),
        ((((), (0.5, 0.5)), ((), (0.5, 0.5))), 1, "each context once"),
        ((((), (0.5, 0.4)),), 1, "summing to 1"),
        ((((), (0.5, 0.5)),), 2, "Tabular.eos = 2"),
        ((((), (0.5, 0.5)), ((5,), (0.5, 0.5))), 1, "use tokens"),
    ],
)
def test_bad_tables_are_refused(
    rows: tuple[tuple[tuple[int, ...], tuple[float, ...]], ...], eos: int, message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        Tabular(("a", "b"), rows, eos)


def test_an_enumeration_that_would_not_fit_is_refused_while_it_is_small() -> None:
    count = len(leaves(MODEL, Chain(), (), cap=5).tokens)
    assert len(leaves(MODEL, Chain(), (), cap=5, most=count).tokens) == count
    with pytest.raises(InvalidValue, match=f"cap = 5: {count} leaves after 5 tokens"):
        leaves(MODEL, Chain(), (), cap=5, most=count - 1)
    with pytest.raises(InvalidValue, match="use a smaller cap"):
        leaves(MODEL, Chain(), (), cap=60, most=1000)

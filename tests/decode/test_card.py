"""The sampling card: every line of the paper's list, from the values themselves."""

from __future__ import annotations

import json

import pytest

from ramify.decode import (
    Chain,
    ForcePrefix,
    GumbelMax,
    MassVersusSize,
    Mirostat,
    Mixture,
    Objective,
    Operator,
    Parallel,
    SamplingCard,
    Temperature,
    TopK,
    Xtc,
)
from ramify.describe import restore, text
from tests import methods
from tests.methods import OPERATORS, sharpen


def card(decoder: Operator) -> SamplingCard:
    return SamplingCard(decoder, eos=3, cap=100, samples=8, run="test")


@pytest.mark.parametrize("operator", OPERATORS, ids=text)
def test_every_operator_has_a_place_on_the_card(operator: Operator) -> None:
    rows = card(operator).rows()
    assert rows["order"] == text(operator)
    form = json.loads(json.dumps(card(Chain(operator)).describe()))
    assert restore(form["decoder"], modules=[methods]) == Chain(operator)
    if operator not in (Chain(),) and not isinstance(operator, Chain):
        families = ("token measure", "support gates", "actions", "randomisation", "other operators", "fallbacks")
        assert any(text(operator) in rows[family] for family in families) or isinstance(operator, Parallel)


def test_a_busy_card() -> None:
    decoder = Chain(
        ForcePrefix((1,)),
        Mixture((Temperature(0.5), Temperature(0)), (0.9, 0.1)),
        Xtc(0.5, then=Temperature(0.9)),
        Objective(MassVersusSize(0.5)),
        Parallel(TopK(5), Mirostat(), reference="logits"),
        sharpen,
    )
    rows = SamplingCard(decoder, eos=3, cap=100, samples=8, run="test", draw=GumbelMax()).rows()
    assert "ForcePrefix" in rows["actions"]
    assert "Temperature(t=0)" in rows["actions"]
    assert "Mixture" in rows["randomisation"]
    assert "marginalised" in rows["randomisation"]
    assert "Mirostat" in rows["state"]
    assert "raw p inside Parallel" in rows["reference score"]
    assert "best head of the 256 heaviest" in rows["approximations"]
    assert "Parallel: mode" in rows["fallbacks"]
    assert "token id" in rows["streams"]
    assert "tests.methods:sharpen" in rows["other operators"]

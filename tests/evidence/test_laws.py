"""Laws over every evidence map of tests/methods.py."""

from __future__ import annotations

import dataclasses
import tracemalloc
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank, Proposal, Signal, TokenTable
from ramify.describe import text
from ramify.evidence import (
    Evidence,
    LogProb,
    Mean,
    Score,
    TokenEvidence,
    Transformed,
    annotate,
    deepconf_average,
    deepconf_bottom,
    deepconf_lowest,
    evaluate,
    mean_logprob,
    several,
    trace,
)
from tests.evidence.banks import signal_rich, with_tokens
from tests.methods import EVIDENCE, TOKEN_EVIDENCE


def same(a: Any, b: Any) -> bool:
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("evidence", EVIDENCE, ids=text)
def test_one_number_a_candidate_and_missing_where_there_is_nothing(evidence: Evidence) -> None:
    bank = signal_rich()
    signal = evidence(bank)
    assert isinstance(signal, Signal)
    assert signal.values.shape == signal.cost.shape == bank.shape
    assert signal.values.dtype == np.float64
    if evidence in TOKEN_EVIDENCE:
        assert bank.tokens is not None
        assert np.isnan(signal.values[bank.tokens.length == 0]).all()
        assert (~np.isnan(signal.values)).any()


@pytest.mark.parametrize("evidence", EVIDENCE, ids=text)
def test_every_evidence_declares_what_it_needs_and_its_role(evidence: Any) -> None:
    assert evidence.role in ("deployable", "exact diagnostic", "reference-assisted")
    bank = signal_rich()
    needs = evidence.needs
    assert needs.columns or needs.layers
    assert bank.tokens is not None
    for name in needs.columns:
        kept = {other: column for other, column in bank.tokens.columns.items() if other != name}
        with pytest.raises(ValueError, match=f"token column '{name}'"):
            evidence(with_tokens(bank, dataclasses.replace(bank.tokens, columns=kept)))
    for name in needs.layers:
        kept_layers = {other: layer for other, layer in bank.layers.items() if other != name}
        with pytest.raises(ValueError, match=f"layer '{name}'"):
            evidence(dataclasses.replace(bank, layers=kept_layers))


@pytest.mark.parametrize("evidence", EVIDENCE, ids=text)
def test_slicing_the_bank_slices_the_evidence(evidence: Evidence) -> None:
    """All at once, one question at a time, and in any order of candidates: the same bits."""
    bank = signal_rich(rows=4, width=5, seed=1)
    whole = evidence(bank).values
    for q in range(4):
        assert same(evidence(bank.only(np.array([q]))).values[0], whole[q])
    order = np.random.default_rng(0).permuted(np.tile(np.arange(5), (4, 1)), axis=1)
    assert same(evidence(bank.take(order)).values, np.take_along_axis(whole, order, axis=1))
    assert same(evidence(bank.first(2)).values, whole[:, :2])


@pytest.mark.parametrize("evidence", TOKEN_EVIDENCE, ids=text)
@pytest.mark.parametrize("size", [1, 7, 40])
def test_chunks_do_not_change_a_bit(evidence: Any, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same function, handed whole candidates chunk by chunk, as a store streams them."""
    bank = signal_rich(rows=6, width=5, seed=2, longest=30)
    assert bank.tokens is not None
    whole = evidence(bank).values.reshape(-1)
    layers = {name: bank.layers[name].values.reshape(-1) for name in evidence.needs.layers}
    offsets, columns = bank.tokens.packed(*bank.tokens.columns)
    assert same(evidence.of_tokens(offsets, {**columns, **layers}), whole)
    monkeypatch.setattr(trace, "TOKENS", size)
    monkeypatch.setattr(trace, "ROWS", 3)
    assert same(evidence.of_tokens(offsets, {**columns, **layers}), whole)
    assert same(evidence(bank).values.reshape(-1), whole)


def test_several_in_one_pass_are_what_each_is_alone() -> None:
    bank = signal_rich(seed=3)
    named: dict[str, Evidence] = {text(each): each for each in EVIDENCE}
    together = several(named, bank)
    assert list(together) == list(named)
    for name, evidence in named.items():
        assert same(together[name].values, evidence(bank).values), name


def test_one_statistic_is_computed_once_for_several_reductions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    kept = deepconf_average(k=6).statistic

    def counting(columns: Any) -> Any:
        calls.append(1)
        return kept(columns)

    several({str(i): TokenEvidence(counting, Mean()) for i in range(3)}, signal_rich())
    assert len(calls) == 1


def test_a_plain_function_fits_the_slot() -> None:
    def shares(bank: Bank) -> Signal:
        return Signal(np.where(bank.drawn, 1.0, np.nan), np.zeros(bank.shape))

    bank = annotate(signal_rich(), length=shares, likely=mean_logprob())
    assert bank.layers["likely"].description == text(mean_logprob())
    assert same(Score("likely")(bank).values, mean_logprob()(bank).values)
    assert Transformed(shares, np.exp)(bank).values[0, 0] == np.e


def test_flat_columns_that_lack_something_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="needs 'logprob', and these columns are: token"):
        evaluate([mean_logprob()], np.array([0, 1]), {"token": np.array([1])})


def test_fields_are_checked() -> None:
    for wrong in (
        lambda: TokenEvidence(LogProb(), Mean(), tokens="mine"),
        lambda: deepconf_average(k=0),
        lambda: deepconf_lowest(window=0),
        lambda: deepconf_bottom(share=0.0),
        lambda: Score("x", role="gold"),
    ):
        with pytest.raises(ValueError, match="use"):
            wrong()


def test_memory_beyond_the_input_is_bounded() -> None:
    """60 traces of 20,000 tokens with 20 alternatives are 96 MB; every reduction of them together needs far less."""
    length = np.full((6, 10), 20_000)
    rng = np.random.default_rng(0)
    top = np.tile(-np.sort(rng.exponential(3, size=(20_000, 20)).astype(np.float32)), (60, 1))
    bank = Bank.of([["A"] * 10] * 6, proposal=Proposal(top=20, stage="raw"))
    start = np.cumsum(length.reshape(-1)).reshape(length.shape) - length
    bank = with_tokens(bank, TokenTable(start, length, {"top_logprobs": top})).permuted("r")
    tracemalloc.start()
    signals = several({"a": deepconf_average(), "l": deepconf_lowest(), "b": deepconf_bottom()}, bank)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6, "the shuffled bank is gathered chunk by chunk, never whole"
    assert (signals["l"].values <= signals["b"].values).all()
    assert (signals["b"].values <= signals["a"].values + 1e-9).all()

"""Laws over every stop of tests/methods.py."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.bank import Bank, Candidates
from ramify.describe import text
from ramify.stop import Stop, TokenHistory, TokenStop, replay
from ramify.types import Key
from tests.methods import STOPS, TOKEN_STOPS


@st.composite
def streams(draw: st.DrawFn, rows: int = 3, longest: int = 14) -> Candidates:
    """Answers with ⊥, undrawn candidates at the end or in between, evidence with holes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, answers = draw(st.integers(1, longest)), draw(st.integers(1, 5))
    shape = (rows, n)
    codes = rng.integers(-1, answers, shape)
    if draw(st.booleans()):
        codes = np.where(rng.random(shape) < 0.7, 0, codes)
    drawn = rng.random(shape) < draw(st.sampled_from([1.0, 0.8]))
    c = np.where(rng.random(shape) < 0.1, np.nan, rng.uniform(0.05, 0.95, shape))
    return Candidates(
        np.where(drawn, codes, -1), drawn, evidence={"c": c, "cost": rng.integers(1, 3, shape).astype(float)}
    )


def rows(candidates: Candidates, row: int) -> Candidates:
    return dataclasses.replace(
        candidates,
        answers=candidates.answers[row],
        drawn=candidates.drawn[row],
        eligible=candidates.eligible[row],
        evidence={name: values[row] for name, values in candidates.evidence.items()},
    )


KEY = Key("run", "q", 0, "stop")


@pytest.mark.parametrize("stop", STOPS, ids=text)
@given(candidates=streams())
@settings(max_examples=25)
def test_a_verdict_at_n_does_not_change_when_the_future_does(stop: Stop, candidates: Candidates) -> None:
    """Nor does it with another number of candidates to come: to the bit."""
    verdict = stop(candidates, KEY)
    size = candidates.answers.shape[-1]
    for n in range(1, size + 1):
        now = stop(candidates.first(n), KEY).now
        assert np.array_equal(now.stop, verdict.stop[..., n - 1])
        assert np.array_equal(now.value, verdict.value[..., n - 1])
    rng = np.random.default_rng(size)
    for n in range(1, size):
        future = rng.integers(0, 9, candidates.answers.shape)
        late = np.arange(size) >= n
        answers = np.where(late & candidates.drawn, future, candidates.answers)
        evidence = {name: np.where(late, 0.5, values) for name, values in candidates.evidence.items()}
        other = stop(Candidates(answers, candidates.drawn, evidence=evidence), KEY)
        assert np.array_equal(other.stop[..., :n], verdict.stop[..., :n])
        assert np.array_equal(other.value[..., :n], verdict.value[..., :n])


@pytest.mark.parametrize("stop", STOPS, ids=text)
@given(candidates=streams())
@settings(max_examples=25)
def test_a_batched_call_is_a_loop_of_single_calls(stop: Stop, candidates: Candidates) -> None:
    together = stop(candidates, KEY)
    assert together.stop.dtype == bool
    assert together.stop.shape == together.value.shape == candidates.answers.shape
    for row in range(len(candidates.answers)):
        alone = stop(rows(candidates, row), KEY)
        assert np.array_equal(alone.stop, together.stop[row])
        assert np.array_equal(alone.value, together.value[row])
    grid = Candidates(
        candidates.answers[None],
        candidates.drawn[None],
        evidence={name: values[None] for name, values in candidates.evidence.items()},
    )
    assert np.array_equal(stop(grid, KEY).value[0], together.value), "any leading axes"


@pytest.mark.parametrize("stop", STOPS, ids=text)
@given(candidates=streams())
@settings(max_examples=25)
def test_the_names_of_answers_do_not_matter(stop: Stop, candidates: Candidates) -> None:
    renamed = np.where(candidates.answers < 0, -1, 1000 - 7 * candidates.answers)
    other = stop(Candidates(renamed, candidates.drawn, evidence=candidates.evidence), KEY)
    verdict = stop(candidates, KEY)
    assert np.array_equal(other.stop, verdict.stop)
    assert np.array_equal(other.value, verdict.value)


@pytest.mark.parametrize("stop", STOPS, ids=text)
def test_chunks_of_rows_do_not_matter(stop: Stop, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    shape = (9, 12)
    evidence = {"c": rng.uniform(0.1, 0.9, shape), "cost": np.ones(shape)}
    candidates = Candidates(rng.integers(-1, 4, shape), evidence=evidence)
    whole = stop(candidates, KEY)
    from ramify.stop import counts

    monkeypatch.setattr(counts, "CELLS", 300)
    assert np.array_equal(stop(candidates, KEY).value, whole.value)


@pytest.mark.parametrize("stop", STOPS, ids=text)
@given(candidates=streams())
@settings(max_examples=15)
def test_a_replay_is_the_first_prefix_that_a_loop_would_stop_at(stop: Stop, candidates: Candidates) -> None:
    found = replay(stop, candidates, KEY)
    assert found.kind == "retrospective"
    for row in range(len(candidates.answers)):
        alone, n, stopped = rows(candidates, row), 0, False
        for i in range(candidates.answers.shape[-1]):
            if alone.drawn[i]:
                n += 1
                if bool(stop(alone.first(i + 1), KEY).now.stop):
                    stopped = True
                    break
        assert (int(found.n[row]), bool(found.stopped[row])) == (n, stopped)
    assert found.revealed(candidates.drawn).sum(-1).tolist() == found.n.tolist()


def test_a_replay_of_a_bank_without_candidates() -> None:
    found = replay(STOPS[0], Bank.of([[], []]))
    assert found.n.tolist() == [0, 0]
    assert not found.stopped.any()


# ---------------------------------------------------------------------------------------------------------- token stops


def history(seed: int, traces: int = 3, longest: int = 14) -> TokenHistory:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, longest, traces))])
    total = int(offsets[-1])
    columns = {"token": rng.integers(0, 2, total), "top_logprobs": -np.sort(rng.exponential(2, (total, 6)))}
    return TokenHistory(offsets, columns, question="q")


def alone(history: TokenHistory, trace: int) -> TokenHistory:
    a, b = history.offsets[trace], history.offsets[trace + 1]
    return TokenHistory(
        np.array([0, b - a]), {name: column[a:b] for name, column in history.columns.items()}, question="q"
    )


@pytest.mark.parametrize("stop", TOKEN_STOPS, ids=text)
@pytest.mark.parametrize("seed", range(8))
def test_a_token_stop_sees_the_tokens_up_to_it(stop: TokenStop, seed: int) -> None:
    """All traces at once, one alone, its first tokens only, and only the last that it remembers: the same bits."""
    whole = history(seed)
    verdict = stop(whole)
    for trace in range(3):
        own = alone(whole, trace)
        part = slice(whole.offsets[trace], whole.offsets[trace + 1])
        assert np.array_equal(stop(own).value, verdict.value[part], equal_nan=True)
        for n in range(1, int(own.offsets[1]) + 1):
            seen = own.first(n)
            now, remembered = stop(seen).now, stop(seen.last(stop.memory)).now  # type: ignore[attr-defined]
            for each in (now, remembered):
                assert bool(each.stop) == bool(verdict.stop[part][n - 1])
                assert np.array_equal(each.value, verdict.value[part][n - 1], equal_nan=True)
    cut = whole.stopped_at(verdict)
    for trace in range(3):
        fires = np.flatnonzero(verdict.stop[whole.offsets[trace] : whole.offsets[trace + 1]])
        assert cut[trace] == (fires[0] if fires.size else -1)

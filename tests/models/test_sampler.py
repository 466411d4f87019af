"""The token loop: a leaf depends on its key alone, whatever the batch, the order, or where it was interrupted."""

from __future__ import annotations

import numpy as np
import pytest

from ramify.decode import Chain, Draw, MaxThinking, Mirostat, Operator, Repetition, Temperature, TokenMeasure, TopP
from ramify.describe import text
from ramify.errors import InvalidValue
from ramify.models import Tabular, decode_with
from ramify.types import APPENDED, FORCED, SAMPLED, Key, Leaf, Request
from tests.methods import DRAWS, OPERATORS

MODEL = Tabular.random(Key("sampler", "tabular", 0), vocabulary=4, order=2)


def requests(n: int = 12, cap: int = 9) -> list[Request]:
    return [Request(Key("run", f"q{i % 3}", i), prompt=(0,) * (i % 4), cap=cap, top=2) for i in range(n)]


def by_key(leaves: list[Leaf]) -> dict[Key, Leaf]:
    return {leaf.key: leaf for leaf in leaves}


def same(a: Leaf, b: Leaf) -> bool:
    fields = ("tokens", "role", "logprob", "log_q", "rank", "support", "fallback")
    return a.ended == b.ended and all(np.array_equal(getattr(a, f), getattr(b, f), equal_nan=True) for f in fields)


@pytest.mark.parametrize("operator", OPERATORS, ids=text)
def test_leaves_are_the_same_alone_batched_shuffled_and_resumed(operator: Operator) -> None:
    whole = by_key(list(decode_with(MODEL, operator, batch=64)(requests())))
    assert len(whole) == 12
    for batch, order in ((1, 1), (5, -1), (3, 1)):
        again = by_key(list(decode_with(MODEL, operator, batch=batch)(requests()[::order])))
        assert all(same(whole[key], again[key]) for key in whole)
    resumed = [
        Request(r.key, r.prompt, r.cap, prefix=tuple(whole[r.key].tokens[:3].tolist()), top=r.top) for r in requests()
    ]
    again = by_key(list(decode_with(MODEL, operator, batch=4)(resumed)))
    assert all(same(whole[key], again[key]) for key in whole)


@pytest.mark.parametrize("draw", DRAWS, ids=repr)
def test_a_leaf_carries_its_signals(draw: Draw) -> None:
    operator = Chain(Temperature(0.7), MaxThinking(4, end=(3,)))
    for leaf in decode_with(MODEL, operator, draw=draw)(requests()):
        length = len(leaf.tokens)
        assert leaf.ended == ("eos" if leaf.tokens[-1] == 3 else "length")
        assert length <= 5
        if length == 5:
            assert leaf.role[-1] == FORCED
            assert leaf.log_q[-1] == 0.0
        assert (leaf.role[:4] == SAMPLED).all()
        assert leaf.top is not None
        assert leaf.top.ids.shape == leaf.top.logprobs.shape == (length, 2)
        ranked = leaf.rank <= 2
        assert np.allclose(leaf.top.logprobs[np.flatnonzero(ranked), leaf.rank[ranked] - 1], leaf.logprob[ranked])
        assert leaf.sequence_log_q == pytest.approx(float(leaf.log_q.sum()))


def test_appended_tokens_are_the_protocols_own() -> None:
    operator = Chain(Repetition(1.2), Mirostat(tau=1.0))
    role = (SAMPLED, APPENDED, APPENDED)
    [leaf] = decode_with(MODEL, operator)([Request(Key("r", "q", 0), (), cap=6, prefix=(0, 3, 1), prefix_role=role)])
    assert leaf.role[:3].tolist() == list(role)
    assert np.isnan(leaf.log_q[1:3]).all()
    assert np.isfinite(leaf.log_q[[0, *range(3, len(leaf.tokens))]]).all()
    assert np.isfinite(leaf.sequence_log_q)
    assert len(leaf.tokens) > 3, "an end that the protocol appended does not end the trace"


def test_caps_and_empty_streams() -> None:
    assert list(decode_with(MODEL, Chain())([])) == []
    [leaf] = decode_with(MODEL, Chain())([Request(Key("r", "q", 0), (), cap=0)])
    assert (len(leaf.tokens), leaf.ended) == (0, "length")
    assert leaf.sequence_log_q == 0.0


def test_requests_with_different_records_share_a_batch() -> None:
    mixed = [Request(Key("r", "q", i), (), cap=3 + i % 3, top=i % 4) for i in range(12)]
    for leaf in decode_with(MODEL, Chain(), batch=5)([*mixed, Request(Key("r", "q", 99), (), cap=0, top=3)]):
        top = 3 if leaf.key.sample == 99 else leaf.key.sample % 4
        assert (leaf.top is None) == (top == 0)
        assert leaf.top is None or leaf.top.ids.shape == (len(leaf.tokens), top)


def hidden_state(measure: TokenMeasure) -> TokenMeasure:
    """A stateful operator where ``begin`` cannot see it."""
    return Mirostat(tau=1.0)(measure)


def test_state_inside_a_plain_function_follows_its_rows() -> None:
    many = requests(40)
    open_, hidden = (
        by_key(list(decode_with(MODEL, operator, batch=3)(many))) for operator in (Mirostat(tau=1.0), hidden_state)
    )
    assert all(same(open_[key], hidden[key]) for key in open_)


def test_the_history_is_as_wide_as_its_longest_row() -> None:
    widths = []

    def watch(measure: TokenMeasure) -> TokenMeasure:
        widths.append(measure.side.tokens.shape[-1])
        return measure

    list(decode_with(MODEL, watch, batch=4)(requests(200, cap=5)))
    assert max(widths) <= 5


def test_requests_are_taken_as_rows_become_free() -> None:
    taken = []

    def stream() -> object:
        for request in requests(40):
            taken.append(request.key)
            yield request

    leaves = decode_with(MODEL, TopP(0.9), batch=4)(stream())  # type: ignore[arg-type]
    next(iter(leaves))
    assert len(taken) <= 8, "the sampler reads ahead by at most a batch"
    leaves.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cap": -1}, "Request.cap = -1"),
        ({"cap": 1, "prefix": (0, 1)}, "let the cap cover the prefix"),
        ({"cap": 3, "prefix": (0, 1), "prefix_role": (0,)}, "give each token the role"),
        ({"cap": 3, "top": -1}, "Request.top = -1"),
        ({"cap": 3, "prefix": (-1,)}, "Request.prefix = \\(-1,\\)"),
        ({"cap": 3, "prefix": (0,), "prefix_role": (7,)}, "give each token the role"),
    ],
)
def test_bad_requests_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Request(Key("r", "q", 0), (), **fields)  # type: ignore[arg-type]


def test_a_batch_needs_a_row() -> None:
    with pytest.raises(InvalidValue, match="batch = 0"):
        decode_with(MODEL, Chain(), batch=0)

"""What servers say, in both shapes, and what no server can have drawn."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from ramify.models.endpoint.replies import Malformed, Trace, decoder

LN2 = float(np.log(2))


def heard(*replies: dict[str, Any], ids: str = "id", top: int = 2) -> Trace:
    trace, read = Trace(top), decoder(ids)
    for reply in replies:
        trace.hear(read.decode(msgspec.json.encode(reply)))
    return trace


def token(number: int, logprob: float, *top: tuple[int, float]) -> dict[str, Any]:
    return {"id": number, "token": "x", "logprob": logprob, "top_logprobs": [{"id": i, "logprob": v} for i, v in top]}


def piece(*entries: dict[str, Any], text: str = "x", **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": list(entries)}, **more}]}


def test_a_stream_grows_into_arrays() -> None:
    first = piece(token(4, -LN2, (4, -LN2), (9, -2 * LN2)), text="a")
    second = piece(token(9, -3 * LN2, (4, -LN2), (7, -2 * LN2)), text="b")
    last = {"id": "r", "model": "m", "system_fingerprint": "f", "choices": [{"delta": {}, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"completion_tokens": 9, "prompt_tokens": 3}}
    trace = heard(first, second, last, usage)
    assert trace.ids.tolist() == [4, 9]
    assert trace.logprob.tolist() == [-LN2, -3 * LN2]
    assert trace.top_ids.tolist() == [[4, 9], [4, 7]]
    assert trace.rank.tolist() == [1, 0]  # the second is beyond the alternatives: censored, not third
    assert trace.text() == ("ab", "")
    assert trace.text(1) == ("a", "")
    assert (trace.count, trace.counted, trace.usage.completion_tokens) == (2, "logprobs", 9)  # counted, not believed
    assert (trace.id, trace.model, trace.fingerprint, trace.finish) == ("r", "m", "f", "stop")
    trace.check(wanted=True)


def test_arrays_keep_what_they_hold_while_they_grow() -> None:
    pieces = [piece(token(i, -LN2, (i, -LN2), (i + 1, -2 * LN2))) for i in range(1000)]
    trace = heard(*pieces)
    assert trace.ids.tolist() == list(range(1000))
    assert trace.top_ids[:, 1].tolist() == list(range(1, 1001))


def test_completions_lists_with_ids_for_tokens() -> None:
    logprobs = {
        "tokens": ["token_id:5", "token_id:6"],
        "token_logprobs": [-LN2, -2 * LN2],
        # the chosen token first, then the likeliest: what vLLM sends
        "top_logprobs": [{"token_id:5": -LN2, "token_id:8": -2 * LN2}, {"token_id:6": -2 * LN2, "token_id:8": -LN2}],
    }
    trace = heard({"choices": [{"text": "ab", "logprobs": logprobs, "finish_reason": "length"}]}, ids="token")
    assert trace.ids.tolist() == [5, 6]
    assert trace.top_ids.tolist() == [[5, 8], [8, 6]]
    assert trace.rank.tolist() == [1, 2]
    trace.check(wanted=True)


def test_chat_with_ids_for_tokens() -> None:
    top = [{"token": "token_id:3", "logprob": -2 * LN2}, {"token": "token_id:2", "logprob": -LN2}]
    entry = {"token": "token_id:3", "logprob": -2 * LN2, "top_logprobs": top}
    trace = heard({"choices": [{"message": {"content": "a"}, "logprobs": {"content": [entry]}}]}, ids="token")
    assert (trace.ids.tolist(), trace.top_ids.tolist(), trace.rank.tolist()) == ([3], [[2, 3]], [2])


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_comes_apart(name: str) -> None:
    trace = heard({"choices": [{"delta": {name: "hm"}}]}, {"choices": [{"delta": {"content": "4"}}]}, top=0)
    assert trace.text() == ("4", "hm")


@pytest.mark.parametrize(
    ("reply", "count", "counted"),
    [
        ({"choices": [{"text": "ab", "token_ids": [7, 8, 9]}]}, 3, "ids"),
        ({"choices": [{"text": "ab"}], "usage": {"completion_tokens": 5}}, 5, "usage"),
        ({"choices": [{"text": "ab"}]}, 1, "pieces"),
    ],
)
def test_tokens_are_counted_from_the_best_there_is(reply: dict[str, Any], count: int, counted: str) -> None:
    trace = heard(reply, top=0)
    assert (trace.count, trace.counted, len(trace.ids), len(trace.logprob)) == (count, counted, count, count)
    assert np.isnan(trace.logprob).all()
    assert trace.ids.tolist() == ([7, 8, 9] if counted == "ids" else [-1] * count)


FINE = ((1, -LN2), (2, -2 * LN2))


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (piece(token(1, 0.3, *FINE)), "log-probability of 0.3"),
        (piece(token(1, -LN2, (1, -0.1), (2, -0.1))), "more than all of the mass"),
        (piece(token(1, -4.0, *FINE)), "two log-probabilities"),
        (piece(token(1, -LN2, (1, -LN2))), "1 alternatives where 2"),
        ({"choices": [{"index": 1, "text": "a"}]}, "choice 1"),
        ({"choices": [{"text": "a"}, {"text": "a"}]}, "2 choices"),
        ({"choices": [{"text": "a"}]}, "no log-probabilities"),
        ({"error": {"message": "out of memory"}}, "out of memory"),
    ],
)
def test_what_cannot_have_been_drawn_is_refused(reply: dict[str, Any], what: str) -> None:
    with pytest.raises(Malformed, match=what):
        heard(reply).check(wanted=True)


def test_nothing_comes_after_the_end() -> None:
    with pytest.raises(Malformed, match="after the end"):
        heard(piece(token(1, -LN2, *FINE), finish_reason="stop"), piece(token(1, -LN2, *FINE)))


def test_a_response_that_is_nothing_but_its_end_is_empty_and_not_malformed() -> None:
    """A model may end at once; asked again with the same seed it would end at once again."""
    over = {"choices": [{"message": {"content": ""}, "finish_reason": "stop"}], "usage": {"completion_tokens": 1}}
    trace = heard(over)
    trace.check(wanted=True)
    assert (trace.count, trace.ids.tolist(), trace.top_logprobs.shape) == (0, [], (0, 2))
    hidden = {"choices": [{"message": {"content": ""}, "finish_reason": "length"}], "usage": {"completion_tokens": 64}}
    with pytest.raises(Malformed, match="no log-probabilities"):
        heard(hidden).check(wanted=True)  # much was drawn, and none of it shown

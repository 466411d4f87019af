"""The client against a server that fails on purpose: nothing lost, nothing counted twice, nothing left running."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from ramify.bank import Verdict
from ramify.decode import Chain, Temperature
from ramify.errors import EndpointError
from ramify.models.endpoint import Aimd, Endpoint, Retry, Timeouts
from ramify.models.endpoint.flow import retry_after
from ramify.models.endpoint.job import Job
from ramify.models.endpoint.replies import Trace
from ramify.models.endpoint.wire import Exchange
from ramify.stop import TokenHistory, TokenLimit
from ramify.types import Key, Leaf, Request, Words
from tests.models.faulty import KINDS, Faulty, entry, expected_logprobs, text, words

QUICK = Retry(base=0.01, most=0.1)
ALL_AT_ONCE = Aimd(first=256, least=256, most=256)


def endpoint(server: Faulty, **more: Any) -> Endpoint:
    given: dict[str, Any] = {"retry": QUICK, "concurrency": Aimd(8, 64)}
    return Endpoint("faulty", server.url, "llama.cpp", **given | more)


def requests(n: int, cap: int = 32, top: int = 3, **more: Any) -> Iterator[Request]:
    return (Request(Key("run", f"q{i}", 0), Words("x", 7), cap, top=top, **more) for i in range(n))


def assert_right(leaf: Leaf, cap: int = 32, top: int = 3) -> None:
    """The leaf is what its seed says, every number of it."""
    assert leaf.served is not None
    tokens = words(leaf.served.seed, cap)
    assert leaf.tokens.tolist() == tokens
    assert leaf.text == text(leaf.served.seed, cap)
    assert leaf.ended == ("length" if len(tokens) == cap else "eos")
    assert np.allclose(leaf.logprob, expected_logprobs(leaf.tokens, top))
    if top > 2:
        assert leaf.top is not None
        assert leaf.rank.tolist() == [1 + i % 3 for i in range(len(tokens))]
        chosen = leaf.top.ids[np.arange(len(tokens)), leaf.rank - 1]
        assert chosen.tolist() == tokens


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_fault_is_survived_and_recorded(kind: str, stream: bool) -> None:
    with Faulty(1.0, [kind], slow=0.05) as server:
        leaves = list(endpoint(server, stream=stream)(requests(6)))
    assert len({leaf.key for leaf in leaves}) == 6
    for leaf in leaves:
        assert_right(leaf)
        assert leaf.served is not None
        drew = kind not in ("429", "slow")  # a refusal has drawn nothing: it is no attempt
        assert leaf.served.attempt == (2 if drew else 1)
        assert len(leaf.served.failures) == drew
        assert leaf.served.refused == (kind == "429")
        assert (leaf.served.wasted > 0) == (kind == "cut" and stream) or kind in ("wrong", "duplicate")
    assert max(server.answered.values()) == 1


def test_the_log_q_is_log_p_where_nothing_but_the_model_is_drawn_from() -> None:
    with Faulty() as server:
        [raw] = endpoint(server)(requests(1))
        [heated] = endpoint(server, decoder=Chain(Temperature(0.5)))(requests(1))
    assert np.array_equal(raw.log_q, raw.logprob)
    assert np.isnan(heated.log_q).all()


def test_attempts_are_bounded_and_the_error_says_what_happened() -> None:
    with Faulty(1.0, ["500"], always=True) as server:
        with pytest.raises(EndpointError, match=r"3 attempts \(Fault: 500 .*it broke"):
            list(endpoint(server, retry=Retry(attempts=3, base=0.01))(requests(1)))
        assert sum(server.seen.values()) == 3


def test_patience_with_a_full_server_is_bounded_too() -> None:
    with Faulty(1.0, ["429"], always=True, retry_after="0.2") as server:
        with pytest.raises(EndpointError, match=r"full for 0\.5 s"):
            list(endpoint(server, retry=Retry(attempts=1, patience=0.5))(requests(1)))
        assert 2 <= sum(server.seen.values()) <= 4


def test_a_retry_after_is_waited_for() -> None:
    with Faulty(1.0, ["429"], retry_after="0.4") as server:
        start = time.monotonic()
        [leaf] = endpoint(server)(requests(1))
        assert time.monotonic() - start >= 0.4
    assert leaf.served is not None
    assert leaf.served.refused == 1


def test_silence_is_a_fault() -> None:
    with Faulty(1.0, ["slow"], slow=2.0) as server:
        [leaf] = endpoint(server, timeouts=Timeouts(silence=0.2))(requests(1))
    assert leaf.served is not None
    assert leaf.served.attempt == 2
    assert "Timeout" in leaf.served.failures[0]


def test_nobody_there() -> None:
    with pytest.raises(EndpointError, match=r"2 attempts.*Connect"):
        list(Endpoint("m", "http://127.0.0.1:9/v1", retry=Retry(attempts=2, base=0.01))(requests(1)))


def test_several_servers_share_by_key_and_stand_in_for_each_other() -> None:
    with Faulty() as one, Faulty(1.0, ["500"], always=True) as broken:
        both = Endpoint("faulty", ((one.url, 1.0), (broken.url, 1.0)), "llama.cpp", retry=QUICK)
        leaves = list(both(requests(20)))
    assert len(leaves) == 20
    assert {leaf.served.server for leaf in leaves if leaf.served} == {one.url}
    second = sum(leaf.served.attempt == 2 for leaf in leaves if leaf.served)
    assert second == len(broken.seen)  # those that the broken one should have answered
    assert 0 < second < 20


def test_the_window_finds_what_a_server_can_take() -> None:
    with Faulty(capacity=12, pace=0.002, retry_after="0.01") as server:
        leaves = list(endpoint(server, concurrency=Aimd(1, 64))(requests(300)))
    assert len({leaf.key for leaf in leaves}) == 300
    assert server.most == 12  # it was filled
    assert server.injected["full"] < 150  # and not stormed: without a window every second request would be refused
    assert all(leaf.served.attempt == 1 for leaf in leaves if leaf.served)


def test_connections_are_used_again() -> None:
    with Faulty() as server:
        assert len(list(endpoint(server, concurrency=Aimd(4, 4))(requests(60)))) == 60
        assert server.connections <= 4


def test_a_connection_that_died_while_nobody_used_it_is_no_attempt() -> None:
    with Faulty(hangs_up=True) as server:
        leaves = list(endpoint(server, concurrency=Aimd(1, 1))(requests(5)))
    assert [leaf.served.attempt for leaf in leaves if leaf.served] == [1] * 5
    assert server.connections == 5


def flood(n: int) -> None:
    """10 % faults at 256 in flight: every key once, right, drawn once; and no more held than is under way."""
    held, found, tokens = 0, set(), 0
    with Faulty(0.1, slow=0.5, pace=0.002) as server:
        for i, leaf in enumerate(endpoint(server, concurrency=ALL_AT_ONCE)(requests(n))):
            assert leaf.key not in found
            found.add(leaf.key)
            assert_right(leaf)
            tokens += len(leaf.tokens)
            if i % (n // 10) == 0:
                held = max(held, sum(type(each) is Trace for each in gc.get_objects()))
        assert len(found) == n
        assert sorted(server.answered.values()) == [1] * n  # nothing was drawn twice to its end
        assert tokens == sum(len(words(seed, 32)) for seed in server.answered)
        faults = sum(server.injected.values())
        assert abs(faults - 0.1 * n) < 5 * math.sqrt(0.09 * n)
        assert server.most > 64
    assert held <= 256 + 8


def test_hundreds_of_requests_with_faults() -> None:
    flood(300)


@pytest.mark.soak
def test_ten_thousand_requests_with_faults() -> None:
    flood(10_000)


# ------------------------------------------------------------------------------------------------------ stops and ends


class Stop:
    """After a token index that no chunk knows of."""

    memory = 1

    def __call__(self, history: TokenHistory) -> Verdict:
        at = history.index >= 2
        return Verdict(at, at.astype(float))


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "ramify-wire"]


def settled(server: Faulty) -> bool:
    """Whether the server has nothing under way, soon."""
    for _ in range(200):
        if server.under_way == 0:
            return True
        time.sleep(0.02)
    return False


def test_a_stop_within_cuts_at_a_token_and_saves_the_rest() -> None:
    with Faulty(pace=0.02) as server:
        [leaf] = endpoint(server)(requests(1, stop=Stop()))
        assert leaf.tokens.tolist() == words(leaf.served.seed if leaf.served else 0, 32)[:3]
        assert (leaf.ended, len(leaf.text)) == ("stop:Stop", 3)
        assert settled(server)
        assert server.written < len(words(leaf.served.seed if leaf.served else 0, 32))


def test_the_same_stop_on_a_whole_response_gives_the_same_tokens() -> None:
    with Faulty() as server:
        [streamed] = endpoint(server)(requests(1, stop=TokenLimit(5)))
        [whole] = endpoint(server, stream=False)(requests(1, stop=TokenLimit(5)))
    assert streamed.tokens.tolist() == whole.tokens.tolist()
    assert streamed.ended == whole.ended == "stop:TokenLimit"


def test_until_ends_at_a_token() -> None:
    with Faulty() as server:
        [whole] = endpoint(server)(requests(1))
        third = int(whole.tokens[2])
        [leaf] = endpoint(server)(requests(1, until=(third,)))
    assert leaf.ended == "stop:until"
    assert leaf.tokens.tolist() == whole.tokens[: whole.tokens.tolist().index(third) + 1].tolist()


class Feed:
    """Requests that are given up when somebody says so."""

    def __init__(self, items: Iterator[Request]) -> None:
        self.items, self.cancelled = items, set[Key]()

    def __iter__(self) -> Iterator[Request]:
        return self.items


def test_a_cancelled_request_is_answered_with_what_it_had_and_the_server_is_free() -> None:
    with Faulty(pace=0.05) as server:
        feed = Feed(requests(4))
        threading.Timer(0.4, lambda: feed.cancelled.update(Key("run", f"q{i}", 0) for i in range(4))).start()
        leaves = list(endpoint(server)(feed))
        assert len(leaves) == 4
        cut = [leaf for leaf in leaves if leaf.ended == "stop:cancelled"]
        assert cut
        for leaf in cut:
            whole = words(leaf.served.seed if leaf.served else 0, 32)
            assert leaf.tokens.tolist() == whole[: len(leaf.tokens)]
        assert settled(server)
        assert server.written < sum(len(words(seed, 32)) for seed in server.seen)


def test_an_iterable_may_have_none_for_now() -> None:
    one = list(requests(3))

    class Pausing:
        def __init__(self) -> None:
            self.turn = 0

        def __iter__(self) -> Pausing:
            return self

        def __next__(self) -> Request:
            self.turn += 1
            if self.turn % 2 == 0 or not one:
                raise StopIteration
            return one.pop(0)

    with Faulty() as server:
        leaves = list(endpoint(server)(Pausing()))
    assert len({leaf.key for leaf in leaves}) == 3


@pytest.mark.parametrize("how", ["close", "error", "interrupt"])
def test_closing_ends_everything(how: str) -> None:
    with Faulty(pace=0.05) as server:
        running = endpoint(server)(requests(40))
        next(running)
        if how == "close":
            running.close()  # type: ignore[attr-defined]
        else:
            with pytest.raises(KeyboardInterrupt if how == "interrupt" else ValueError):
                running.throw(KeyboardInterrupt() if how == "interrupt" else ValueError("mine"))  # type: ignore[attr-defined]
        assert settled(server)
        assert not threads()
        assert sum(server.answered.values()) < 40


def test_an_error_of_the_callers_stop_arrives() -> None:
    def broken(history: TokenHistory) -> Verdict:
        raise ValueError("my own mistake")

    with Faulty() as server, pytest.raises(EndpointError, match="my own mistake"):
        list(endpoint(server)(requests(1, stop=broken)))
    assert not threads()


def test_one_key_twice_is_answered_twice() -> None:
    with Faulty() as server:
        one, other = endpoint(server)([*requests(1), *requests(1)])
    assert one.tokens.tolist() == other.tokens.tolist()


def test_no_room_asks_nobody() -> None:
    [leaf] = Endpoint("m", "http://127.0.0.1:9/v1")([Request(Key("r", "q", 0), Words("x", 7), 0)])
    assert (leaf.ended, len(leaf.tokens)) == ("length", 0)


# -------------------------------------------------------------------------------------------------------------- the key

SECRET = "sk-test-8f3a1c90d2b7"


def test_the_key_is_sent_and_never_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAMIFY_TEST_KEY", SECRET)
    caplog.set_level(logging.DEBUG)
    with Faulty(key=SECRET) as server:
        keyed = endpoint(server, key="env:RAMIFY_TEST_KEY")
        [leaf] = keyed(requests(1))
        assert_right(leaf)
        monkeypatch.setenv("RAMIFY_TEST_KEY", f"{SECRET}x")
        with pytest.raises(EndpointError) as caught:
            list(keyed(requests(1)))
    said = [
        repr(keyed),
        repr(leaf),
        repr(leaf.served),
        str(caught.value),
        repr(caught.value),
        caplog.text,
        *capfd.readouterr(),
    ]
    assert not any(SECRET in words for words in said)
    assert "check the key at env:RAMIFY_TEST_KEY" in str(caught.value)
    error: BaseException | None = caught.value
    while error is not None:  # nor in what the error hangs on
        assert SECRET not in repr(error.args)
        error = error.__cause__ or error.__context__


def test_a_retry_after_that_says_nothing_is_nothing() -> None:
    from datetime import UTC, datetime

    now = datetime(2026, 11, 16, tzinfo=UTC)
    for said in ("", "soon", "-3", "nan", "inf"):
        assert retry_after({"retry-after": said}, now) is None
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}, now) == 0.25


def test_the_blank_after_data_is_optional() -> None:
    """Some gateways leave it out, at the end of a stream too."""

    class Stream:
        async def aiter_bytes(self) -> AsyncIterator[bytes]:
            said = {"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [entry(0, 0, 3)]}}]}
            end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            events = [json.dumps(said).encode(), json.dumps(end).encode(), b"[DONE]"]
            yield b"".join(b"data:%s\n\n" % each for each in events)

    asked = Endpoint("m", "http://127.0.0.1:9/v1", "llama.cpp")
    [request] = requests(1)
    job = Job(request, asked)
    assert asyncio.run(Exchange(asked, "")._streamed(job, Stream())) == "eos"  # type: ignore[arg-type]
    assert job.leaf("eos").text == "a"


def test_a_server_that_says_after_no_time_is_not_run_down() -> None:
    with Faulty(1.0, ["429"], retry_after="0", always=True) as server:
        with pytest.raises(EndpointError, match="is full"):
            list(endpoint(server, retry=Retry(base=0.05, most=1.0, patience=0.5))(requests(1)))
        assert sum(server.seen.values()) <= 6  # waits that double from 25 ms

"""Preflight against servers that lack something, and the plan that a large run has to pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ramify.decode import Chain, Greedy, Temperature
from ramify.errors import EndpointError, InvalidValue
from ramify.ledger import Money
from ramify.models.endpoint import Endpoint, Retry, checks, confirm, counted, plan, preflight
from tests.models.faulty import Faulty

ONCE = Retry(attempts=1)


def endpoint(server: Faulty, **more: Any) -> Endpoint:
    given: dict[str, Any] = {"retry": ONCE, "decoder": Chain(Temperature(0.7))}
    return Endpoint("faulty", server.url, "llama.cpp", **given | more)


def failed(found: Any) -> list[str]:
    return [check.name for check in found.checks if not check.ok]


def test_all_is_well() -> None:
    with Faulty() as server:
        found = preflight(endpoint(server), top=3, cap=1000, prompts=[30, 60], rehearse=lambda: "graded 3 of 3")
    assert found.ok
    assert not failed(found)
    assert (found.context, found.model, found.fingerprint) == (4096, "faulty", "fp")
    lines = str(found).splitlines()
    assert lines[0] == "ok      dry run: graded 3 of 3"
    assert lines[3] == "ok      context: 60 tokens of prompt and 1,000 of answer in 4,096"
    assert lines[4] == "ok      log-probabilities: 8 tokens, 3 alternatives each, with token ids, raw"


def test_nobody_there() -> None:
    found = preflight(Endpoint("m", "http://127.0.0.1:9/v1"))
    assert (found.ok, failed(found)) == (False, ["reachable"])


def test_another_model() -> None:
    with Faulty() as server:
        found = preflight(Endpoint("other", server.url))
        assert not server.seen  # and no token was asked for
    assert failed(found) == ["model"]
    assert "there are: faulty" in str(found)


def test_too_long() -> None:
    with Faulty() as server:
        found = preflight(endpoint(server), cap=4000, prompts=[100])
    assert (found.ok, failed(found)) == (False, ["context"])


def test_no_log_probabilities() -> None:
    with Faulty(forgets="logprobs") as server:
        found = preflight(endpoint(server), top=3)
        assert failed(found) == ["answers"]
        assert "no log-probabilities" in str(found)
        assert preflight(endpoint(server, logprobs=False)).ok  # a run that wants none is fine


@pytest.mark.parametrize(("forgets", "said"), [("seeds", "two texts"), ("one", "four seeds gave one text")])
def test_seeds_that_are_not_honoured_are_worth_knowing(forgets: str, said: str) -> None:
    with Faulty(forgets=forgets) as server:
        found = preflight(endpoint(server))
        assert found.ok  # such a server may still be asked
        assert failed(found) == ["seeds"]
        assert said in str(found)
        if forgets == "one":
            assert not failed(preflight(endpoint(server, decoder=Greedy())))  # greedy ones should be the same


def test_a_dry_run_that_fails_says_how_and_spends_nothing() -> None:
    def rehearse() -> str:
        raise ZeroDivisionError("no gold answer parsed")

    with Faulty() as server:
        found = preflight(endpoint(server), rehearse=rehearse)
    assert (found.ok, failed(found)) == (False, ["dry run"])
    assert "ZeroDivisionError: no gold answer parsed" in str(found)


def test_a_wrong_key_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMIFY_TEST_KEY", "sk-test-wrong-8f3a1c90d2b7")
    with Faulty(key="sk-test-right") as server:
        found = preflight(endpoint(server, key="env:RAMIFY_TEST_KEY"))
    assert failed(found) == ["reachable"]
    assert "401" in str(found)
    assert "8f3a1c90d2b7" not in str(found)


def test_a_server_without_a_tokenizer_route_is_asked_for_one_token() -> None:
    with Faulty() as server:
        made = Endpoint("faulty", server.url, "sglang", logprobs=False)
        encode = counted(made, ["one", "two"])
        assert (encode("one").text, len(encode("one"))) == ("one", 7)  # what it says it read
        assert all(body["max_tokens"] == 1 for body in server.bodies)
        with pytest.raises(EndpointError, match="was not counted"):
            encode("three")


def test_the_plan_of_a_run() -> None:
    # 2 prompts of 100 and 300 tokens, 4 leaves of 1,000: 8,000 generated, 1,600 read; 8 and 2 a million
    made = plan([100, 300], 4, 1000, cost=Money(generated=8.0, prompt=2.0), unit="dollars", speed=10.0, width=8)
    assert (made.requests, made.prompt_tokens, made.tokens) == (8, 1600, 8000)
    assert made.cost == pytest.approx(8000 * 8e-6 + 1600 * 2e-6)
    assert made.seconds == 8000 / (10.0 * 8)
    assert math.isnan(plan([1], 1, 1).seconds)
    assert "time        at most unknown" in str(plan([1], 1, 1))
    with pytest.raises(InvalidValue):
        plan([1], 1, 1, width=0)


def test_beyond_a_limit_somebody_is_asked() -> None:
    made, asked = plan([10], 10, 100), list[str]()

    def ask(words: str) -> bool:
        asked.append(words)
        return False

    assert confirm(made, 1000, ask)
    assert not asked
    assert not confirm(made, 999, ask)
    assert "at most 1,000 tokens" in asked[0]
    assert "more than 999 tokens. Start?" in asked[0]


@pytest.mark.parametrize("said", [{"data": ["a", "b"]}, {"models": []}, ["a"], {"data": None}])
def test_a_server_that_lists_something_else_is_no_model_server(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def asking(_: Endpoint) -> Iterator[Any]:
        yield lambda _: said

    monkeypatch.setattr(checks, "asking", asking)
    found = preflight(Endpoint("m", "http://127.0.0.1:9/v1", "llama.cpp"))
    assert not found.ok
    assert "http://127.0.0.1:9/v1/models does not list models" in str(found)

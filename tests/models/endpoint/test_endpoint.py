"""The value: what it says of itself, what it sends, and what it never says."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from ramify.decode import Chain, Greedy, Temperature, TopP
from ramify.describe import describe, parse, restore
from ramify.errors import InvalidValue
from ramify.models.endpoint import BOXED, Aimd, Endpoint, Interface, Retry
from ramify.models.endpoint.endpoint import seed_of
from ramify.models.endpoint.secret import fetch, scrub
from ramify.types import Key, Request, Words

URL = "http://127.0.0.1:9/v1"
THINKING = Interface("math", "Think.", BOXED, "high", (("enable_thinking", True),))


def said(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(endpoint.body(request))
    return found


def request(sample: int = 0, **more: Any) -> Request:
    return Request(Key("run", "q1", sample), Words("1 + 1?", 9), 32, **more)


@pytest.mark.parametrize(
    "endpoint",
    [
        Endpoint("m", URL),
        Endpoint(
            "m", ((URL, 1.0), ("https://b.example/v1", 2.5)), "vllm", Chain(Temperature(0.6), TopP(0.95)), THINKING
        ),
        Endpoint("m", URL, "llama.cpp", Greedy(), route="completions", key="env:KEY", stream=False, extra=(("a", 1),)),
        Endpoint("m", URL, concurrency=Aimd(2, 4), retry=Retry(attempts=2)),
    ],
    ids=lambda x: x.server,
)
def test_it_is_a_value(endpoint: Endpoint) -> None:
    assert parse(repr(endpoint)) == endpoint
    assert restore(describe(endpoint)) == endpoint
    assert pickle.loads(pickle.dumps(endpoint)) == endpoint
    assert hash(endpoint) == hash(parse(repr(endpoint)))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"model": ""}, "Endpoint.model"),
        ({"urls": "127.0.0.1:8000"}, "Endpoint.urls"),
        ({"urls": ((URL, 0.0),)}, "weight"),
        ({"urls": ((URL, 1.0), (URL, 2.0))}, "once"),
        ({"server": "tgi"}, "Endpoint.server"),
        ({"route": "responses"}, "Endpoint.route"),
        ({"extra": (("temperature", 2.0),)}, "Endpoint.extra"),
        ({"extra": (("seed", 2),)}, "Endpoint.extra"),
        ({"route": "completions", "interface": Interface(effort="high")}, "need route='chat'"),
        ({"route": "completions", "interface": Interface(system="Think.")}, "Interface.raw"),
        ({"decoder": Chain(TopP(0.9), Temperature(0.5)), "server": "vllm"}, "cannot express"),
    ],
)
def test_bad_fields_are_named(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidValue, match=named):
        Endpoint(**{"model": "m", "urls": URL} | arguments)


def test_a_chat_request() -> None:
    endpoint = Endpoint("m", URL, "vllm", Chain(Temperature(0.6)), THINKING)
    body = said(endpoint, request(top=20))
    assert body["messages"][0] == {"role": "system", "content": "Think."}
    assert body["messages"][1]["content"].startswith("1 + 1?\n\nPlease reason step by step")
    assert body["messages"][1]["content"].endswith("within \\boxed{}.")
    assert body["reasoning_effort"] == "high"
    assert body["chat_template_kwargs"] == {"enable_thinking": True}
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"], body["n"]) == (True, 20, 32, 1)
    assert body["stream_options"] == {"include_usage": True}
    assert body["temperature"] == 0.6


def test_a_completion_request() -> None:
    endpoint = Endpoint("m", URL, "llama.cpp", interface=Interface("raw", raw="Q: {user}\nA:"), route="completions")
    assert said(endpoint, request())["prompt"] == "Q: 1 + 1?\nA:"
    assert said(endpoint, request())["logprobs"] == 1  # llama.cpp gives the chosen token's number with an alternative
    assert said(endpoint, Request(Key("r", "q", 0), (5, 6), 8))["prompt"] == [5, 6]


@pytest.mark.parametrize(
    ("endpoint", "asked", "named"),
    [
        (Endpoint("m", URL, "vllm"), Request(Key("r", "q", 0), (5, 6), 8), "Words"),
        (Endpoint("m", URL, "hosted", route="completions"), Request(Key("r", "q", 0), (5, 6), 8), "Words"),
        (Endpoint("m", URL, "vllm"), request(top=21), "at most 20"),
        (Endpoint("m", URL, "vllm"), request(prefix=(1,)), "Request.prefix"),
        (Endpoint("m", URL, "hosted"), request(until=(1,)), "no token ids"),
    ],
)
def test_what_cannot_be_asked_is_named(endpoint: Endpoint, asked: Request, named: str) -> None:
    with pytest.raises(InvalidValue, match=named):
        endpoint.body(asked)


def test_a_model_on_this_side_reads_ids() -> None:
    from ramify.models import Pocket, decode_with

    with pytest.raises(InvalidValue, match="reads token ids"):
        list(decode_with(Pocket("tiny"), Chain())([request()]))
    assert len(request().prompt) == 9  # what a budget charges


def test_every_candidate_has_its_own_seed_and_a_rerun_the_same() -> None:
    keys = [Key(run, question, i) for run in ("a", "b") for question in ("q1", "q2") for i in range(500)]
    seeds = [seed_of(key) for key in keys]
    assert len(set(seeds)) == len(keys)
    assert seeds == [seed_of(key) for key in keys]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**62
    small = [seed_of(key, 2**32 - 1) for key in keys]  # llama.cpp: 32 bits, and the last one means "your choice"
    assert max(small) < 2**32 - 1
    assert len(set(small)) == len(keys)


def test_a_key_decides_who_answers_by_weight() -> None:
    endpoint = Endpoint("m", (("http://a/v1", 1.0), ("http://b/v1", 3.0)))
    keys = [Key("run", f"q{i}", 0) for i in range(2000)]
    asked = [endpoint.url_of(key) for key in keys]
    assert asked == [endpoint.url_of(key) for key in keys]
    share = asked.count("http://b/v1") / len(asked)
    assert abs(share - 0.75) < 4 * (0.75 * 0.25 / 2000) ** 0.5  # four standard errors of a binomial share
    assert all(endpoint.url_of(key, 2) != endpoint.url_of(key) for key in keys[:20])  # a retry asks the other one


def test_the_proposal_says_what_the_server_runs() -> None:
    proposal = Endpoint("m", URL, "vllm", Chain(Temperature(0.6), TopP(0.95))).proposal("run", top=20)
    assert proposal.protocol == "Chain(Temperature(t=0.6), TopP(p=0.95, boundary='reach'))"
    assert (proposal.stage, proposal.top, proposal.model) == ("raw", 20, "m")
    assert proposal.interface.startswith("Interface(name='plain'")
    assert Endpoint("m", URL, "hosted").proposal("run").stage == "unknown"


SECRET = "sk-test-8f3a1c90d2b7"


def test_a_key_is_refused_where_its_place_belongs_and_not_shown() -> None:
    for arguments in ({"key": SECRET}, {"urls": f"http://user:{SECRET}@host/v1"}, {"urls": f"http://h/v1?k={SECRET}"}):
        with pytest.raises(InvalidValue) as caught:
            Endpoint(**{"model": "m", "urls": URL} | arguments)  # type: ignore[arg-type]
        assert SECRET not in str(caught.value)
        assert SECRET not in repr(caught.value)


def test_a_key_that_is_not_there_says_where_to_put_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAMIFY_TEST_KEY", raising=False)
    with pytest.raises(InvalidValue, match="export RAMIFY_TEST_KEY"):
        fetch("env:RAMIFY_TEST_KEY")
    monkeypatch.setenv("RAMIFY_TEST_KEY", f"{SECRET}\n")
    with pytest.raises(InvalidValue) as caught:
        fetch("env:RAMIFY_TEST_KEY")
    assert SECRET not in str(caught.value)
    assert fetch("") == ""


def test_a_keyring_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring")
    monkeypatch.setattr(keyring, "get_password", lambda service, user: f"{service}-{user}-{SECRET}")
    assert fetch("keyring:vllm/me") == f"vllm-me-{SECRET}"


def test_what_a_server_says_is_scrubbed() -> None:
    words = f"bad key {SECRET}, Bearer {SECRET}, sk-proj-ab***********cdef\x1b[31m"
    assert scrub(words, SECRET) == "bad key [key], [key], [key] [31m"
    assert len(scrub("x" * 1000, "")) == 300

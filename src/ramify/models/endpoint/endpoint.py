"""An OpenAI-compatible server as a value that is a ``Sampler``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ramify.bank import Proposal
from ramify.decode import Chain, Operator
from ramify.describe import method, text
from ramify.errors import InvalidValue, require
from ramify.keys import digest, streams, uniform
from ramify.models.endpoint.dialect import DIALECTS, Dialect
from ramify.models.endpoint.flow import Aimd, Retry
from ramify.models.endpoint.interface import Interface
from ramify.models.endpoint.secret import is_reference
from ramify.models.endpoint.settings import parameters, served
from ramify.types import Key, Leaf, Request, Words

__all__ = ["Endpoint", "Timeouts", "seed_of"]

ROUTES = {"chat": "/chat/completions", "completions": "/completions"}


@method
class Timeouts:
    """Seconds to connect, between two pieces of an answer, and for a whole attempt."""

    connect: float = 10.0
    silence: float = 300.0
    whole: float = 7200.0

    def __post_init__(self) -> None:
        ok = all(0 < each < math.inf for each in (self.connect, self.silence, self.whole))
        require(ok, "Timeouts.silence", (self.connect, self.silence, self.whole), "use seconds > 0")


@method
class Endpoint:
    """A model behind HTTP: called with requests, it gives leaves, as every ``Sampler`` does.

    ``urls`` is a base URL (with its ``/v1``), or several with weights: a key decides which one answers it. ``server``
    names the engine, because engines differ in what they do with a parameter: "vllm", "sglang", "llama.cpp", or
    "hosted" for one that does not say. ``decoder`` must be what the server does, exactly. ``key`` says where the API
    key is, ``env:NAME`` or ``keyring:SERVICE/USER``; it is not the key.

    >>> from ramify.decode import Temperature, TopP
    >>> endpoint = Endpoint("qwen3", "http://127.0.0.1:8000/v1", "vllm", Chain(Temperature(0.6), TopP(0.95)))
    >>> endpoint.urls, endpoint.proposal("aime", top=20).protocol
    ((('http://127.0.0.1:8000/v1', 1.0),), "Chain(Temperature(t=0.6), TopP(p=0.95, boundary='reach'))")
    >>> Endpoint("qwen3", "http://127.0.0.1:8000/v1", "vllm", Chain(TopP(0.95), Temperature(0.6)))
    Traceback (most recent call last):
    ramify.errors.InvalidValue: vllm cannot express ...
    """

    model: str
    urls: str | tuple[tuple[str, float], ...]
    server: str = "hosted"
    decoder: Operator = Chain()
    interface: Interface = Interface()
    route: str = "chat"
    key: str = ""
    logprobs: bool = True  # record the chosen token's log-probability
    stream: bool = True
    concurrency: Aimd = Aimd()
    retry: Retry = Retry()
    timeouts: Timeouts = Timeouts()
    extra: tuple[tuple[str, Any], ...] = ()  # further parameters of the server, as they are

    def __post_init__(self) -> None:
        require(isinstance(self.model, str) and self.model, "Endpoint.model", self.model, "name the model")
        ok = self.server in DIALECTS
        require(ok, "Endpoint.server", self.server, f"use one of {', '.join(DIALECTS)}")
        require(self.route in ROUTES, "Endpoint.route", self.route, f"use one of {', '.join(ROUTES)}")
        if self.key and not is_reference(self.key):  # it may be the key: it is not shown
            raise InvalidValue("Endpoint.key: say where the key is, env:NAME or keyring:SERVICE/USER, not what it is")
        object.__setattr__(self, "urls", _weighted(self.urls))
        served(self.decoder, self.dialect)
        if self.route == "completions":  # nothing that was asked for is left out in silence
            kept = not (self.interface.effort or self.interface.switches)
            require(kept, "Endpoint.interface", self.interface, "efforts and switches need route='chat'")
            kept = not self.interface.system or "{system}" in self.interface.raw
            require(kept, "Interface.raw", self.interface.raw, "hold {system} too, or leave the system text out")
        taken = [name for name, _ in self.extra if name in _fixed(self)]
        require(not taken, "Endpoint.extra", taken, "set these by the fields they come from")

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        from ramify.models.endpoint.wire import sample  # here, because printing a value needs no client

        return sample(self, requests)

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.server]

    def proposal(self, run: str, top: int = 0) -> Proposal:
        """What its leaves are drawn from: the chain that the server runs, and what its numbers mean."""
        signals = (*(("token",) if self.dialect.ids else ()), *(("logprob",) if self.logprobs or top else ()))
        return Proposal(
            run=run,
            protocol=text(served(self.decoder, self.dialect)),
            model=self.model,
            interface=text(self.interface),
            signals=signals,
            top=top,
            stage=self.dialect.stage if signals else "unknown",
        )

    def url_of(self, key: Key, attempt: int = 1) -> str:
        """The base URL that answers a key: always the same one, so that a rerun finds the same arithmetic."""
        assert not isinstance(self.urls, str)
        place = float(uniform(streams([key._replace(stream="server")])[0])) * sum(weight for _, weight in self.urls)
        at = len(self.urls) - 1
        for i, (_, weight) in enumerate(self.urls):
            place -= weight
            if place < 0:
                at = i
                break
        return self.urls[(at + attempt - 1) % len(self.urls)][0]

    def body(self, request: Request) -> bytes:
        """The JSON of one request: one candidate, with its own seed, and every sampling parameter written out."""
        dialect, chat = self.dialect, self.route == "chat"
        require(not request.prefix, "Request.prefix", request.prefix, "an endpoint cannot go on with tokens: go local")
        require(request.top <= dialect.most, "Request.top", request.top, f"{dialect.name} gives at most {dialect.most}")
        require(not request.until or dialect.ids, "Request.until", request.until, f"{dialect.name} gives no token ids")
        said = {
            "model": self.model,
            **self._asked(request.prompt),
            **parameters(self.decoder, dialect),
            dialect.cap: request.cap,
            "seed": seed_of(request.key, dialect.seeds),
            "n": 1,
            **dict(dialect.extra),
            **dict(self.extra),
        }
        if self.logprobs or request.top:
            many = max(request.top, dialect.least)
            said |= {"logprobs": True, "top_logprobs": many} if chat else {"logprobs": many}
            said |= dict(dialect.logged)
        if self.stream:
            said |= {"stream": True, "stream_options": {"include_usage": True}}
        return msgspec.json.encode(said)

    def _asked(self, prompt: Words | tuple[int, ...]) -> dict[str, Any]:
        if isinstance(prompt, Words):
            if self.route == "chat":
                return {"messages": self.interface.messages(prompt.text), **self.interface.parameters()}
            return {"prompt": self.interface.written(prompt.text)}
        ok = self.route == "completions" and self.dialect.tokens
        require(ok, "Request.prompt", prompt[:8], f"{self.server} {self.route} takes text: hand in Words(text, tokens)")
        return {"prompt": list(prompt)}


def seed_of(key: Key, seeds: int = 2**63) -> int:
    """The seed of a candidate: 63 bits of its key's digest, as many of them as the server takes.

    >>> seed_of(Key("run", "q1", 0)), seed_of(Key("run", "q1", 1), 2**31)
    (5091680123679570234, 1456481524)
    """
    return (int.from_bytes(digest(key._replace(stream=f"{key.stream}/seed"))[:8], "little") >> 1) % seeds


def _weighted(urls: str | tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    """Base URLs with their weights. Credentials in a URL would be printed with it: they are refused unseen."""
    pairs = ((urls, 1.0),) if isinstance(urls, str) else urls
    ok = isinstance(pairs, tuple) and pairs and all(isinstance(each, tuple) and len(each) == 2 for each in pairs)
    if not ok:
        raise InvalidValue("Endpoint.urls: use a base URL, or ((url, weight), ...)")
    for url, weight in pairs:
        parts = urlsplit(url)
        if parts.username or parts.password or parts.query:
            raise InvalidValue("Endpoint.urls: leave credentials and queries out of it; name the key with Endpoint.key")
        whole = parts.scheme in ("http", "https") and parts.hostname
        require(whole, "Endpoint.urls", url, "use a base URL such as http://127.0.0.1:8000/v1")
        require(weight > 0 and math.isfinite(weight), f"the weight of {url}", weight, "use a weight > 0")
    require(len({url for url, _ in pairs}) == len(pairs), "Endpoint.urls", pairs, "give each URL once")
    return tuple((url.rstrip("/"), float(weight)) for url, weight in pairs)


def _fixed(endpoint: Endpoint) -> set[str]:
    """The parameters of a request that fields decide."""
    own = {"model", "messages", "prompt", "seed", "n", "stream", "stream_options", "logprobs", "top_logprobs"}
    said = {name for name, _ in (*endpoint.dialect.logged, *((endpoint.dialect.cap, None),))}
    return own | said | set(parameters(endpoint.decoder, endpoint.dialect)) | set(endpoint.interface.parameters())

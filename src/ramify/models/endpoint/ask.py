"""Plain questions to a server: which models it has, and how many tokens it makes of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import msgspec

from ramify.errors import EndpointError
from ramify.models.endpoint.secret import fetch, scrub
from ramify.models.endpoint.wire import headers
from ramify.types import Key, Question, Request, Words

if TYPE_CHECKING:
    from ramify.models.endpoint.endpoint import Endpoint

__all__ = ["Asking", "asking", "counted"]

Asking = Callable[..., Any]


@contextmanager
def asking(endpoint: Endpoint) -> Iterator[Asking]:
    """``ask(url, body=None)``: the JSON that a URL answers, to a POST if there is a body. Errors do not say the key."""
    secret, times = fetch(endpoint.key), endpoint.timeouts
    timeout = httpx2.Timeout(times.silence, connect=times.connect)
    with httpx2.Client(headers=headers(secret), timeout=timeout, trust_env=False) as client:

        def ask(url: str, body: Any = None) -> Any:
            try:
                response = client.get(url) if body is None else client.post(url, content=msgspec.json.encode(body))
                found = msgspec.json.decode(response.content) if response.status_code == 200 else None
            except (httpx2.HTTPError, msgspec.MsgspecError) as error:
                said = scrub(f"{type(error).__name__}: {error}", secret)
                raise EndpointError(f"{url}: {said}; is it an OpenAI-compatible server, and is it up?") from None
            if response.status_code != 200:
                raise EndpointError(f"{url}: {response.status_code}, {scrub(response.text, secret)}")
            return found

        yield ask


def counted(endpoint: Endpoint, questions: Iterable[Question | str]) -> Callable[[Question | str], Words]:
    """An encoder of these questions: their words, and how many tokens the server reads with template and all.

    vLLM and llama.cpp count for nothing. Others are asked for one token of each question, and say what they read.
    """
    asked = {each if isinstance(each, str) else each.prompt for each in questions}
    texts = sorted(asked)
    if endpoint.dialect.counts == "ask":
        found = dict(zip(texts, _asked(endpoint, texts), strict=True))
    else:
        with asking(endpoint) as ask:
            found = {text: _tokenized(endpoint, ask, text) for text in texts}

    def encode(question: Question | str) -> Words:
        text = question if isinstance(question, str) else question.prompt
        if text not in found:
            raise EndpointError(f"{text[:80]!r} was not counted: hand it in with the others")
        return Words(text, found[text])

    return encode


def _tokenized(endpoint: Endpoint, ask: Asking, text: str) -> int:
    assert not isinstance(endpoint.urls, str)
    root, chat = endpoint.urls[0][0].removesuffix("/v1"), endpoint.route == "chat"
    messages, switches = endpoint.interface.messages(text), dict(endpoint.interface.switches)
    if endpoint.dialect.counts == "template":
        if chat:
            made = ask(f"{root}/apply-template", {"messages": messages, "chat_template_kwargs": switches})["prompt"]
        else:
            made = endpoint.interface.written(text)
        return len(ask(f"{root}/tokenize", {"content": made, "add_special": True, "parse_special": True})["tokens"])
    said = {"messages": messages, "chat_template_kwargs": switches} if chat else {}
    said |= {} if chat else {"prompt": endpoint.interface.written(text)}
    return int(ask(f"{root}/tokenize", {"model": endpoint.model, **said})["count"])


def _asked(endpoint: Endpoint, texts: list[str]) -> list[int]:
    keys = [Key("count", text, 0, "count") for text in texts]
    found = {}
    for leaf in endpoint([Request(key, Words(key.question, 0), 1) for key in keys]):
        read = leaf.served.prompt_tokens if leaf.served else None
        if read is None:
            raise EndpointError(f"{endpoint.model} does not say how many tokens it read: use Words(text, tokens)")
        found[leaf.key] = read
    return [found[key] for key in keys]

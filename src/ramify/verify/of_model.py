"""Models as judges: a local one, or a server that says how its token ids read."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from ramify.decode import Chain, Operator
from ramify.describe import text
from ramify.errors import InvalidValue
from ramify.models import Endpoint, decode_with
from ramify.models.endpoint.ask import asking, counted
from ramify.verify.judge import Judge

__all__ = ["SPELLS", "local_judge", "served_judge"]

RAW = Chain()  # label probabilities are the raw model's under any decoder
SPELLS = {"vllm": "prompt", "llama.cpp": "content"}  # servers that spell token ids: where /detokenize has the words


def local_judge(model: Any, decoder: Operator = RAW, *, name: str = "", batch: int = 64) -> Judge:
    """A model on this side as a judge. ``name`` is what banks call it: its text form, if nothing else is said."""
    return Judge(
        name or text(model),
        decode_with(model, decoder, batch=batch),
        lambda words: tuple(model.encode(words)),
        lambda token: str(model.text([token])),
        getattr(model, "context", None),
        text(decoder),
    )


def served_judge(endpoint: Endpoint, *, context: int | None = None) -> Judge:
    """A server as a judge: it counts prompts, and spells its tokens one by one, each asked for once."""
    if endpoint.server not in SPELLS:
        known = " and ".join(SPELLS)
        raise InvalidValue(f"Endpoint.server = {endpoint.server!r}: it does not say how its ids read; {known} do")
    root = endpoint.urls[0][0].removesuffix("/v1")

    @lru_cache(maxsize=4096)  # a prompt is asked, then counted again for its cost
    def encode(words: str) -> Any:
        return counted(endpoint, [words])(words)

    @cache
    def token(number: int) -> str:
        with asking(endpoint) as ask:
            said = ask(f"{root}/detokenize", {"model": endpoint.model, "tokens": [number]})
        return str(said[SPELLS[endpoint.server]])

    decides = (endpoint.decoder, endpoint.server, endpoint.route, endpoint.interface, endpoint.extra)
    how = ", ".join(map(text, decides))
    return Judge(endpoint.model, endpoint, encode, token, context, how)

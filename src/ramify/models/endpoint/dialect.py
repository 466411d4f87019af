"""What the servers differ in, as data: the names of parameters, what they count, and what their numbers mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ramify.decode import presets
from ramify.decode.compose import Chain

__all__ = ["DIALECTS", "Dialect"]


class Dialect(NamedTuple):
    """One kind of server. ``names`` are its sampling parameters, by the argument of the decoder preset each is.

    All of them are sent with every request: servers have defaults of their own (llama.cpp cuts at top-k 40, top-p 0.95
    and min-p 0.05; vLLM reads the model's generation_config.json), which are not what the decoder says.
    """

    name: str
    preset: Callable[..., Chain] | None  # the order of its gates; None: nobody has published it
    names: tuple[tuple[str, str], ...]  # (argument of the preset, parameter of the server)
    off: tuple[tuple[str, Any], ...]  # parameters as the server says "off", where it does not say it as the preset
    stage: str  # of the log-probabilities it gives: raw | processed | unknown
    ids: str  # where token ids are: "id" (of each entry) | "token" ("token_id:N") | "" (not offered)
    seeds: int  # how many distinct seeds it takes
    extra: tuple[tuple[str, Any], ...] = ()  # sent with every request
    logged: tuple[tuple[str, Any], ...] = ()  # sent with those that want log-probabilities
    cap: str = "max_tokens"
    reorders: bool = False  # whether a request may give the order of its gates
    tokens: bool = False  # whether completions take token ids for a prompt
    least: int = 0  # alternatives to ask for when only the chosen token's number is wanted
    most: int = 20  # alternatives it gives at a token
    counts: str = "ask"  # a prompt: "tokenize", "template" (written out, then tokenized), or "ask" for one token


COMMON = (("top_p", "top_p"), ("frequency_penalty", "frequency_penalty"), ("presence_penalty", "presence_penalty"))

VLLM = Dialect(
    name="vllm",
    preset=presets.vllm,
    names=(
        ("temperature", "temperature"),
        ("top_k", "top_k"),
        ("min_p", "min_p"),
        ("repetition_penalty", "repetition_penalty"),
        ("logit_bias", "logit_bias"),
        *COMMON,
    ),
    off=(("top_k", 0),),
    stage="raw",
    ids="token",
    seeds=2**63,
    extra=(("return_token_ids", True),),
    logged=(("return_tokens_as_token_ids", True),),
    tokens=True,
    counts="tokenize",
)

SGLANG = Dialect(
    name="sglang",
    preset=presets.sglang,
    names=VLLM.names,
    off=(("top_k", -1),),
    stage="processed",  # after the temperature and the penalties, before the gates
    ids="",
    seeds=2**31,
)

LLAMA_CPP = Dialect(
    name="llama.cpp",
    preset=presets.llama_cpp,
    names=(
        ("temp", "temperature"),
        ("dynatemp_range", "dynatemp_range"),
        ("dynatemp_exponent", "dynatemp_exponent"),
        ("top_k", "top_k"),
        ("min_p", "min_p"),
        ("typ_p", "typical_p"),
        ("top_n_sigma", "top_n_sigma"),
        ("xtc_probability", "xtc_probability"),
        ("xtc_threshold", "xtc_threshold"),
        ("repeat_penalty", "repeat_penalty"),
        ("repeat_last_n", "repeat_last_n"),
        ("logit_bias", "logit_bias"),
        *COMMON,
    ),
    off=(("top_k", 0), ("top_n_sigma", -1.0)),
    stage="raw",
    ids="id",
    seeds=2**32 - 1,  # it keeps 32 bits, and takes the last value for "draw one yourself"
    # With part of a prompt in its cache it computes the rest in another batch, and a seed gives another text.
    extra=(("cache_prompt", False), ("min_keep", 0), ("dry_multiplier", 0.0), ("mirostat", 0)),
    reorders=True,
    tokens=True,
    least=1,
    most=100,
    counts="template",
)

HOSTED = Dialect(
    name="hosted",
    preset=None,
    names=(("temperature", "temperature"), ("logit_bias", "logit_bias"), *COMMON),
    off=(),
    stage="unknown",
    ids="",
    seeds=2**63,
)

DIALECTS = {dialect.name: dialect for dialect in (VLLM, SGLANG, LLAMA_CPP, HOSTED)}

"""From a decoder to a server's parameters: exactly, or an error that names what cannot be said."""

from __future__ import annotations

import pytest

from ramify.decode import (
    Chain,
    Frequency,
    Greedy,
    LogitBias,
    MinP,
    Operator,
    Presence,
    Repetition,
    Temperature,
    TopH,
    TopK,
    TopP,
    presets,
)
from ramify.errors import InvalidValue
from ramify.models.endpoint.dialect import DIALECTS
from ramify.models.endpoint.settings import parameters, served

VLLM, SGLANG, LLAMA, HOSTED = (DIALECTS[name] for name in ("vllm", "sglang", "llama.cpp", "hosted"))


def test_every_parameter_is_sent_because_servers_have_defaults_of_their_own() -> None:
    # llama.cpp's /props: top_k 40, top_p 0.95, min_p 0.05, temperature 0.8; an untouched model needs all of them off
    found = parameters(Chain(), LLAMA)
    off = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "top_n_sigma": -1.0}
    assert {name: found[name] for name in off} == off
    assert found["samplers"] == ["temperature"]
    assert parameters(Chain(), VLLM)["top_k"] == 0
    assert parameters(Chain(), SGLANG)["top_k"] == -1


@pytest.mark.parametrize("dialect", [VLLM, SGLANG, LLAMA], ids=lambda x: x.name)
def test_what_a_preset_writes_out_is_expressed_and_read_back(dialect: object) -> None:
    settings = {"top_k": 20, "top_p": 0.95, "min_p": 0.05, "frequency_penalty": 0.1, "presence_penalty": 1.5}
    heat = "temp" if dialect is LLAMA else "temperature"
    chain = dialect.preset(**settings, **{heat: 0.6})  # type: ignore[attr-defined]
    found = parameters(chain, dialect)  # type: ignore[arg-type]
    assert {**settings, "temperature": 0.6}.items() <= found.items()


@pytest.mark.parametrize(
    ("decoder", "dialect", "named"),
    [
        (TopH(0.4), VLLM, "TopH"),
        (Chain(TopP(0.9), Temperature(0.5)), VLLM, r"it runs Chain\(Temperature"),
        (Chain(Temperature(0.5), TopK(20)), VLLM, "ties='keep'"),  # vLLM keeps ties at k
        (Chain(Temperature(0.5), TopP(0.9)), SGLANG, "boundary='exceed'"),  # and SGLang takes one token more
        (Chain(TopP(0.9), TopP(0.8)), VLLM, "twice"),
        (Chain(Temperature(0.5), TopP(0.9)), HOSTED, "order"),
        (MinP(0.1), HOSTED, "MinP"),
        (LogitBias(((3, -200.0),)), VLLM, "clips"),
        (Frequency(0.1, "all"), VLLM, "generated"),
        (Chain(TopK(4), LogitBias(((3, 1.0),))), LLAMA, "bias before"),
        (Chain(Frequency(0.1, "all", 64), TopK(4), Presence(0.1, "all", 64)), LLAMA, "one step"),
        (Chain(TopK(4, ties="keep")), LLAMA, "ties"),
    ],
    ids=lambda value: getattr(value, "name", None) or str(value),
)
def test_what_a_server_cannot_do_is_named(decoder: Operator, dialect: object, named: str) -> None:
    with pytest.raises(InvalidValue, match=named):
        parameters(decoder, dialect)  # type: ignore[arg-type]


def test_llama_cpp_is_told_the_order() -> None:
    chain = Chain(Temperature(0.7), MinP(0.1), TopK(40))
    assert parameters(chain, LLAMA)["samplers"] == ["temperature", "min_p", "top_k"]
    assert served(chain, LLAMA) == chain
    penalised = Chain(Temperature(0.7), Repetition(1.1, "all", 64), Frequency(0.2, "all", 64), TopP(0.9))
    found = parameters(penalised, LLAMA)
    assert found["samplers"] == ["temperature", "penalties", "top_p"]
    assert (found["repeat_penalty"], found["frequency_penalty"], found["repeat_last_n"]) == (1.1, 0.2, 64)


def test_greedy_is_temperature_zero_and_a_bias_goes_by_token() -> None:
    assert parameters(Greedy(), VLLM)["temperature"] == 0.0
    assert parameters(LogitBias(((5, 1.5), (7, -3.0))), HOSTED)["logit_bias"] == {"5": 1.5, "7": -3.0}


def test_what_the_server_runs_is_the_preset() -> None:
    chain = presets.sglang(temperature=0.6, top_p=0.95, top_k=20)
    assert served(chain, SGLANG) == chain

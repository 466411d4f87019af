"""Presets against the engines they name: transformers itself, and the other engines' steps transcribed plainly.

The transcriptions work on one row with ordinary Python lists, in the order and with the comparisons of the engine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.decode import (
    AdaptiveP,
    Chain,
    Dry,
    Greedy,
    Mirostat,
    Operator,
    Repetition,
    Side,
    Temperature,
    TokenMeasure,
    llama_cpp,
    sglang,
    transformers,
    vllm,
)
from ramify.errors import InvalidValue

# No ties, and nothing so close that a softmax would make a tie of it: boundaries are tested apart.
rows = st.lists(st.integers(-256, 256), min_size=4, max_size=10, unique=True).map(lambda xs: [x / 64 for x in xs])
settings_of = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.5, 1.0, 1.6]),
        "top_k": st.sampled_from([0, 2, 4]),
        "top_p": st.sampled_from([0.55, 0.9, 1.0]),
        "min_p": st.sampled_from([0.0, 0.07, 0.3]),
        "repetition_penalty": st.sampled_from([1.0, 1.3]),
    }
)
history = st.lists(st.integers(0, 3), max_size=4)


def proposal(operator: Operator, logits: list[float], prompt: list[int], tokens: list[int]) -> np.ndarray:
    side = Side(np.array(tokens, dtype=np.int64), np.array(prompt, dtype=np.int64))
    probs: np.ndarray = operator(TokenMeasure.of(np.array(logits), side)).probs
    return probs


def softmax(logits: list[float]) -> list[float]:
    peak = max(logits)
    weights = [math.exp(x - peak) for x in logits]
    return [w / sum(weights) for w in weights]


def descending(p: list[float]) -> list[int]:
    return sorted(range(len(p)), key=lambda i: (-p[i], i))


def repeat(logits: list[float], seen: list[int], penalty: float) -> list[float]:
    return [(x / penalty if x > 0 else x * penalty) if i in seen else x for i, x in enumerate(logits)]


def vllm_reference(logits: list[float], prompt: list[int], tokens: list[int], s: dict[str, Any]) -> list[float]:
    x = repeat(logits, prompt + tokens, s["repetition_penalty"])
    x = [each / s["temperature"] for each in x]
    p = softmax(x)
    x = [each if q >= s["min_p"] * max(p) else -math.inf for each, q in zip(x, p, strict=True)]
    ascending = sorted(range(len(x)), key=lambda i: x[i])
    if s["top_k"]:
        kth = x[ascending[-min(s["top_k"], len(x))]]
        x = [each if each >= kth else -math.inf for each in x]
    if s["top_p"] < 1:
        p, total, dropped = softmax(x), 0.0, []
        for i in ascending[:-1]:
            total += p[i]
            if total <= 1 - s["top_p"]:
                dropped.append(i)
        x = [-math.inf if i in dropped else each for i, each in enumerate(x)]
    return softmax(x)


def sglang_reference(logits: list[float], prompt: list[int], tokens: list[int], s: dict[str, Any]) -> list[float]:
    x = [each / s["temperature"] for each in repeat(logits, tokens, s["repetition_penalty"])]
    p = softmax(x)
    order = descending(p)
    kept, before = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        inside = (rank < s["top_k"] or not s["top_k"]) and before <= s["top_p"] and p[i] >= s["min_p"] * p[order[0]]
        kept[i] = p[i] if inside else 0.0
        before += p[i]
    return [q / sum(kept) for q in kept]


def llama_reference(logits: list[float], prompt: list[int], tokens: list[int], s: dict[str, Any]) -> list[float]:
    x = repeat(logits, (prompt + tokens)[-64:], s["repetition_penalty"])
    live = descending(x)
    if s["top_k"]:
        live = live[: s["top_k"]]
    if s["top_p"] < 1:
        p = dict(zip(live, softmax([x[i] for i in live]), strict=True))
        total, head = 0.0, []
        for i in live:
            head.append(i)
            total += p[i]
            if total >= s["top_p"]:
                break
        live = head
    if s["min_p"]:
        live = [i for i in live if x[i] >= x[live[0]] + math.log(s["min_p"])]
    p = dict(zip(live, softmax([x[i] / s["temperature"] for i in live]), strict=True))
    return [p.get(i, 0.0) for i in range(len(logits))]


@given(rows, history, history, settings_of)
@settings(max_examples=300)
def test_vllm(logits: list[float], prompt: list[int], tokens: list[int], s: dict[str, Any]) -> None:
    assert proposal(vllm(**s), logits, prompt, tokens) == pytest.approx(vllm_reference(logits, prompt, tokens, s))


@given(rows, history, history, settings_of)
@settings(max_examples=300)
def test_sglang(logits: list[float], prompt: list[int], tokens: list[int], s: dict[str, Any]) -> None:
    expected = sglang_reference(logits, prompt, tokens, s)
    assert proposal(sglang(**s), logits, prompt, tokens) == pytest.approx(expected)


@given(rows, history, history, settings_of)
@settings(max_examples=300)
def test_llama_cpp(logits: list[float], prompt: list[int], tokens: list[int], s: dict[str, Any]) -> None:
    names = {"temperature": "temp", "repetition_penalty": "repeat_penalty"}
    chain = llama_cpp(**{names.get(name, name): value for name, value in s.items()})
    assert proposal(chain, logits, prompt, tokens) == pytest.approx(llama_reference(logits, prompt, tokens, s))


HF = [
    {"temperature": 0.7},
    {"top_k": 3},
    {"top_p": 0.8},
    {"min_p": 0.1},
    {"typical_p": 0.6},
    {"epsilon_cutoff": 0.05},
    {"eta_cutoff": 0.05},
    {"top_h": 0.6},
    {"repetition_penalty": 1.3},
    {"temperature": 0.6, "top_k": 4, "top_p": 0.9, "min_p": 0.05},
    {"temperature": 1.5, "top_h": 0.9, "top_k": 5, "typical_p": 0.9, "eta_cutoff": 0.01, "repetition_penalty": 1.2},
]


@pytest.mark.parametrize("given_", HF, ids=str)
def test_transformers_itself(given_: dict[str, Any]) -> None:
    """The preset's proposal equals the real processors', in the order of ``_get_logits_processor``."""
    torch = pytest.importorskip("torch")
    process = pytest.importorskip("transformers.generation.logits_process")
    build: dict[str, Any] = {
        "repetition_penalty": lambda v: process.RepetitionPenaltyLogitsProcessor(v),
        "temperature": lambda v: process.TemperatureLogitsWarper(v),
        "top_h": lambda v: process.TopHLogitsWarper(v),
        "top_k": lambda v: process.TopKLogitsWarper(v),
        "top_p": lambda v: process.TopPLogitsWarper(v),
        "min_p": lambda v: process.MinPLogitsWarper(v),
        "typical_p": lambda v: process.TypicalLogitsWarper(v),
        "epsilon_cutoff": lambda v: process.EpsilonLogitsWarper(v),
        "eta_cutoff": lambda v: process.EtaLogitsWarper(v),
    }
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, 12)) * 2
    prompt, tokens = rng.integers(0, 12, (200, 3)), rng.integers(0, 12, (200, 4))
    scores = torch.from_numpy(logits)
    for name, make in build.items():
        if name in given_:
            scores = make(given_[name])(torch.from_numpy(np.concatenate([prompt, tokens], axis=-1)), scores)
    expected = torch.softmax(scores, dim=-1).numpy()
    mine = transformers(**given_)(TokenMeasure.of(logits, Side(tokens, prompt))).probs
    assert np.allclose(mine, expected, atol=1e-12)


def test_where_engines_disagree_at_a_boundary() -> None:
    half = np.log([0.5, 0.25, 0.125, 0.125]).tolist()
    assert (proposal(vllm(top_p=0.5), half, [], []) > 0).sum() == 1
    assert (proposal(sglang(top_p=0.5), half, [], []) > 0).sum() == 2
    assert (proposal(vllm(top_k=3), half, [], []) > 0).sum() == 4, "both tokens that tie for the third place stay"
    assert (proposal(llama_cpp(top_k=3), half, [], []) > 0).sum() == 3


def test_greedy_limits_and_masks() -> None:
    assert vllm(temperature=0) == Chain(Greedy())
    assert vllm(temperature=1e-6) == Chain(Greedy())
    assert transformers(do_sample=False, top_k=5) == Chain(Greedy())
    masked = proposal(vllm(banned=[0], min_tokens=1, eos=1), [0.0, 0.0, 0.0], [], [])
    assert masked.tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(InvalidValue, match="eos"):
        vllm(min_tokens=3)
    with pytest.raises(InvalidValue, match="backend"):
        sglang(backend="triton")


def test_bad_settings_are_not_switched_off_silently() -> None:
    bad: list[Any] = [
        lambda: vllm(top_p=1.5),
        lambda: vllm(min_p=-1),
        lambda: vllm(temperature=-1),
        lambda: vllm(top_k=-3),
        lambda: transformers(temperature=0),
        lambda: llama_cpp(typ_p=2.0),
    ]
    for make in bad:
        with pytest.raises(InvalidValue):
            make()


def test_llama_cpp_windows() -> None:
    assert llama_cpp(repeat_penalty=1.3, repeat_last_n=0) == Chain()
    assert llama_cpp(repeat_penalty=1.3, repeat_last_n=-1) == Chain(Repetition(1.3, "all", None))
    assert llama_cpp(temp=0.8, dynatemp_range=0.5, mirostat=Mirostat()) == Chain(Temperature(0.8), Mirostat())


def test_llama_cpp_extras_stand_in_its_order() -> None:
    chain = llama_cpp(temp=0.8, top_n_sigma=1.0, top_k=40, xtc_probability=0.5, dry=Dry(0.8), adaptive_p=AdaptiveP(0.5))
    assert [type(operator).__name__ for operator in chain.operators] == ["Dry", "TopNSigma", "TopK", "Xtc", "AdaptiveP"]
    assert [type(o).__name__ for o in llama_cpp(temp=0.8, top_k=40, mirostat=Mirostat()).operators] == [
        "Temperature",
        "Mirostat",
    ]

"""The orders of popular engines, written out as chains: what an engine's settings mean as a proposal.

Each function takes the engine's own settings, leaves out what is off, and returns a ``Chain`` whose order, ties and
boundaries are that engine's. `docs/decoding.md` has the table of where the engines differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.decode.action import Ban, Greedy, MinThinking
from ramify.decode.compose import Chain, Parallel
from ramify.decode.head import TopH, TopK, TopP, Typical
from ramify.decode.history import Dry, Frequency, Presence, Repetition
from ramify.decode.level import Epsilon, Eta, MinP, TopNSigma
from ramify.decode.measure import Operator
from ramify.decode.mixture import Xtc
from ramify.decode.stateful import AdaptiveP, Mirostat, MirostatV1
from ramify.decode.weights import DynamicTemperature, LogitBias, Temperature
from ramify.errors import require

__all__ = ["llama_cpp", "sglang", "transformers", "vllm"]

OFF = (0, -1)  # how engines say "no top-k"
Bias = Sequence[tuple[int, float]]


def vllm(
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    frequency_penalty: float = 0.0,
    presence_penalty: float = 0.0,
    logit_bias: Bias = (),
    banned: Sequence[int] = (),
    min_tokens: int = 0,
    eos: int | None = None,
) -> Chain:
    """vLLM (V1 sampler): masks, bias, penalties, temperature, min-p, top-k (ties kept), top-p.

    >>> vllm(temperature=0.6, top_k=20, top_p=0.95)
    Chain(Temperature(t=0.6), TopK(k=20, ties='keep'), TopP(p=0.95, boundary='reach'))
    """
    return _chain(
        Ban(tuple(banned)) if banned else None,
        *_min_tokens(min_tokens, eos),
        LogitBias(tuple(logit_bias)) if logit_bias else None,
        Repetition(repetition_penalty, scope="all") if repetition_penalty != 1 else None,
        Frequency(frequency_penalty) if frequency_penalty else None,
        Presence(presence_penalty) if presence_penalty else None,
        *_tempered(temperature, below=1e-5),
        MinP(min_p) if min_p != 0 else None,
        TopK(top_k, ties="keep") if top_k not in OFF else None,
        TopP(top_p) if top_p != 1 else None,
    )


def sglang(
    *,
    temperature: float = 1.0,
    top_k: int = -1,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    frequency_penalty: float = 0.0,
    presence_penalty: float = 0.0,
    logit_bias: Bias = (),
    banned: Sequence[int] = (),
    min_new_tokens: int = 0,
    eos: int | None = None,
    backend: str = "pytorch",
) -> Chain:
    """SGLang: additive penalties, then repetition (generated tokens only), masks, bias, temperature, gates.

    With ``backend="pytorch"`` all gates look at one distribution, the tempered one, and top-p takes one token more
    at equality. ``"flashinfer"`` filters top-k and top-p jointly too, but with min-p it renormalises after each: a
    chain.

    >>> sglang(top_k=20, top_p=0.95)
    Chain(Parallel(TopK(k=20, ties='id'), TopP(p=0.95, boundary='exceed'), reference='measure', fallback='mode'))
    """
    require(backend in ("pytorch", "flashinfer"), "backend", backend, "use 'pytorch' or 'flashinfer'")
    native = backend == "pytorch"
    gates = _on(
        TopK(top_k, ties="id" if native else "keep") if top_k not in OFF else None,
        TopP(top_p, boundary="exceed" if native else "reach") if top_p != 1 else None,
        MinP(min_p) if min_p != 0 else None,
    )
    joint = native or min_p == 0
    return _chain(
        Frequency(frequency_penalty) if frequency_penalty else None,
        Presence(presence_penalty) if presence_penalty else None,
        *_min_tokens(min_new_tokens, eos),
        Repetition(repetition_penalty, scope="generated") if repetition_penalty != 1 else None,
        Ban(tuple(banned)) if banned else None,
        LogitBias(tuple(logit_bias)) if logit_bias else None,
        *_tempered(temperature, below=1e-6),
        *([Parallel(*gates)] if joint and gates else gates),
    )


def transformers(
    *,
    do_sample: bool = True,
    temperature: float = 1.0,
    top_h: float | None = None,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    typical_p: float = 1.0,
    epsilon_cutoff: float = 0.0,
    eta_cutoff: float = 0.0,
    repetition_penalty: float = 1.0,
    sequence_bias: Bias = (),
    banned: Sequence[int] = (),
    min_new_tokens: int = 0,
    eos: int | None = None,
) -> Chain:
    """transformers 5: bias, repetition, masks, temperature, top-H, top-k, top-p, min-p, typical, epsilon, eta.

    ``sequence_bias`` takes single tokens.

    >>> transformers(temperature=0.7, top_k=50)
    Chain(Temperature(t=0.7), TopK(k=50, ties='keep'))
    """
    before = _on(
        LogitBias(tuple(sequence_bias)) if sequence_bias else None,
        Repetition(repetition_penalty, scope="all") if repetition_penalty != 1 else None,
        Ban(tuple(banned)) if banned else None,
        *_min_tokens(min_new_tokens, eos),
    )
    if not do_sample:
        return _chain(*before, Greedy())
    require(temperature > 0, "temperature", temperature, "use a temperature > 0, or do_sample=False")
    return _chain(
        *before,
        *_tempered(temperature),
        TopH(top_h, form="partial", first=100) if top_h is not None else None,
        TopK(top_k, ties="keep") if top_k not in OFF else None,
        TopP(top_p) if top_p != 1 else None,
        MinP(min_p) if min_p != 0 else None,
        Typical(typical_p, ties="keep") if typical_p != 1 else None,
        Epsilon(epsilon_cutoff) if epsilon_cutoff != 0 else None,
        Eta(eta_cutoff) if eta_cutoff != 0 else None,
    )


def llama_cpp(
    *,
    temp: float = 1.0,
    dynatemp_range: float = 0.0,
    dynatemp_exponent: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    typ_p: float = 1.0,
    top_n_sigma: float = 0.0,
    xtc_probability: float = 0.0,
    xtc_threshold: float = 0.1,
    xtc_protect: Sequence[int] = (),
    repeat_penalty: float = 1.0,
    frequency_penalty: float = 0.0,
    presence_penalty: float = 0.0,
    repeat_last_n: int = 64,
    dry: Dry | None = None,
    logit_bias: Bias = (),
    mirostat: Mirostat | MirostatV1 | None = None,
    adaptive_p: AdaptiveP | None = None,
) -> Chain:
    """llama.cpp's default order: bias, penalties, DRY, top-n-sigma, top-k, typical, top-p, min-p, XTC, temperature.

    Penalties look at the last ``repeat_last_n`` tokens, prompt included (0: no penalties, -1: all tokens). Mirostat
    replaces everything but bias and temperature. XTC tosses its coin before the temperature, so the temperature is what
    it marginalises over.

    >>> llama_cpp(temp=0.8, top_k=40, min_p=0.05)
    Chain(TopK(k=40, ties='id'), MinP(c=0.05), Temperature(t=0.8))
    """
    bias = LogitBias(tuple(logit_bias)) if logit_bias else None
    plain = _tempered(max(temp, 0.0))
    if mirostat is not None:
        return _chain(bias, *plain, mirostat)
    heat = plain
    if dynatemp_range > 0 and temp > 0:
        heat = [DynamicTemperature(max(0.0, temp - dynatemp_range), temp + dynatemp_range, dynatemp_exponent)]
    last = None if repeat_last_n < 0 else repeat_last_n
    if last == 0:  # llama.cpp: no window, no penalties
        repeat_penalty, frequency_penalty, presence_penalty = 1.0, 0.0, 0.0
    gates = _on(
        bias,
        Repetition(repeat_penalty, "all", last) if repeat_penalty != 1 else None,
        Frequency(frequency_penalty, "all", last) if frequency_penalty else None,
        Presence(presence_penalty, "all", last) if presence_penalty else None,
        dry,
        TopNSigma(top_n_sigma, ddof=0) if top_n_sigma > 0 else None,
        TopK(top_k, ties="id") if top_k not in OFF else None,
        Typical(typ_p, boundary="exceed") if typ_p != 1 else None,
        TopP(top_p) if top_p != 1 else None,
        MinP(min_p) if min_p != 0 else None,
    )
    if xtc_probability > 0 and xtc_threshold <= 0.5:
        heat = [Xtc(xtc_probability, xtc_threshold, tuple(xtc_protect), then=_chain(*heat))]
    return _chain(*gates, *heat, adaptive_p)


def _on(*operators: Operator | None) -> list[Operator]:
    return [operator for operator in operators if operator is not None]


def _chain(*operators: Operator | None) -> Chain:
    return Chain(*_on(*operators))


def _tempered(temperature: float, below: float = 0.0) -> list[Operator]:
    """Greedy from zero to the engine's threshold, nothing at 1."""
    if 0 <= temperature <= below:
        return [Greedy()]
    return [Temperature(temperature)] if temperature != 1 else []


def _min_tokens(n: int, eos: int | None) -> list[Operator]:
    if n <= 0:
        return []
    require(eos is not None, "eos", eos, "give the end-of-sequence token that min_tokens holds back")
    assert eos is not None
    return [MinThinking(n, eos)]

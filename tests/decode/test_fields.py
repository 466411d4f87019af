"""Bad fields: the error names the class, the field, the value and the remedy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ramify.decode import (
    AdaptiveP,
    Ban,
    Chain,
    Coverage,
    Dry,
    DynamicTemperature,
    EntropyBudget,
    Epsilon,
    Eta,
    ForcePrefix,
    Frequency,
    LogitBias,
    Mask,
    MassUnderEntropy,
    MassVersusSize,
    MaxThinking,
    MinP,
    MinThinking,
    Mirostat,
    MirostatV1,
    Mixture,
    Objective,
    Parallel,
    PLess,
    Presence,
    Quadratic,
    Repetition,
    Side,
    TailFree,
    Temperature,
    TokenMeasure,
    TopA,
    TopH,
    TopK,
    TopNSigma,
    TopP,
    Typical,
    Xtc,
    reweight,
)
from ramify.errors import InvalidValue
from tests.oracle import WORKED, measure


def not_a_mask(side: Side, size: int) -> np.ndarray:
    return np.ones(3)


def wrong_weight(measure: TokenMeasure) -> TokenMeasure:
    return reweight(measure, np.zeros(3))


NAN, INF = float("nan"), float("inf")

BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: Temperature(-1), "Temperature.t = -1: use 0 (greedy) or a finite temperature >= 1e-6"),
    (lambda: Temperature(NAN), "Temperature.t = nan"),
    (lambda: Temperature(1e-39), "Temperature.t = 1e-39"),
    (lambda: DynamicTemperature(-1, 1), "DynamicTemperature.low = -1"),
    (lambda: DynamicTemperature(1, 0.5), "DynamicTemperature.high = 0.5"),
    (lambda: DynamicTemperature(1, 2, 0), "DynamicTemperature.exponent = 0"),
    (lambda: Quadratic(0), "Quadratic.factor = 0"),
    (lambda: Quadratic(1, 4), "Quadratic.curve = 4"),
    (lambda: Coverage(1.5), "Coverage.share = 1.5"),
    (lambda: LogitBias(((-1, 0.0),)), "LogitBias.bias = (-1, 0.0): use token ids >= 0"),
    (lambda: LogitBias(((0, -INF),)), "Ban removes a token"),
    (lambda: LogitBias(((9, 1.0),))(measure(WORKED)), "below the vocabulary's 6"),
    (lambda: Repetition(0), "Repetition.theta = 0"),
    (lambda: Repetition(1.1, scope="prompt"), "Repetition.scope = 'prompt'"),
    (lambda: Frequency(INF), "Frequency.alpha = inf"),
    (lambda: Presence(0.1, last=0), "Presence.last = 0"),
    (lambda: Dry(-1), "Dry.multiplier = -1"),
    (lambda: Dry(1, base=1), "Dry.base = 1"),
    (lambda: Dry(1, allowed=0), "Dry.allowed = 0"),
    (lambda: TopK(0), "TopK.k = 0: use an integer >= 1"),
    (lambda: TopK(-3), "TopK.k = -3"),
    (lambda: TopK(2.5), "TopK.k = 2.5"),  # type: ignore[arg-type]
    (lambda: TopK(True), "TopK.k = True"),
    (lambda: PLess("no"), "PLess.normalised = 'no'"),  # type: ignore[arg-type]
    (lambda: Chain(1, 2), "Chain.operators = 1: use operators"),  # type: ignore[arg-type]
    (lambda: Mask(5), "Mask.allowed = 5"),  # type: ignore[arg-type]
    (lambda: Xtc(0.5, then=5), "Xtc.operators = 5"),  # type: ignore[arg-type]
    (lambda: Mixture([TopK(1)], [1.0]), "give a tuple of operators"),  # type: ignore[arg-type]
    (lambda: Objective(3), "Objective.objective = 3"),  # type: ignore[arg-type]
    (lambda: Ban([1]), "Ban.tokens = [1]: use a tuple of token ids >= 0"),  # type: ignore[arg-type]
    (lambda: ForcePrefix((1.5,)), "ForcePrefix.tokens = (1.5,)"),  # type: ignore[arg-type]
    (lambda: LogitBias(((1, 2, 3),)), "use a tuple of (token id, bias) pairs"),  # type: ignore[arg-type]
    (lambda: Chain(wrong_weight)(measure(WORKED)), "log_weight.shape = (3,): return a weight a token, (6,)"),
    (lambda: Frequency(1.0, scope="all")(measure(WORKED, prompt=[9])), "side tokens = 9: use token ids below"),
    (lambda: TopK(3, ties="all"), "TopK.ties = 'all'"),
    (lambda: TopP(0), "TopP.p = 0: use a probability in (0, 1]"),
    (lambda: TopP(1.2), "TopP.p = 1.2"),
    (lambda: TopP(0.9, boundary="x"), "TopP.boundary = 'x'"),
    (lambda: Typical(-0.1), "Typical.p = -0.1"),
    (lambda: Typical(0.5, ties="x"), "Typical.ties = 'x'"),
    (lambda: TailFree(0), "TailFree.z = 0"),
    (lambda: TopH(0), "TopH.alpha = 0"),
    (lambda: TopH(0.5, form="x"), "TopH.form = 'x'"),
    (lambda: TopH(0.5, first=0), "TopH.first = 0"),
    (lambda: EntropyBudget(-1), "EntropyBudget.nats = -1"),
    (lambda: Epsilon(0), "Epsilon.eps = 0"),
    (lambda: Epsilon(0.1, fallback="none"), "Epsilon.fallback = 'none'"),
    (lambda: Eta(1), "Eta.eps = 1"),
    (lambda: MinP(-0.1), "MinP.c = -0.1"),
    (lambda: TopA(2), "TopA.a = 2"),
    (lambda: TopNSigma(0), "TopNSigma.n = 0"),
    (lambda: TopNSigma(1, ddof=2), "TopNSigma.ddof = 2"),
    (lambda: Objective(MassVersusSize(1), exact=20), "Objective.exact = 20"),
    (lambda: Objective(MassVersusSize(1), pool=0), "Objective.pool = 0"),
    (lambda: MassVersusSize(-1), "MassVersusSize.price = -1"),
    (lambda: MassUnderEntropy(2), "MassUnderEntropy.alpha = 2"),
    (lambda: Xtc(2), "Xtc.probability = 2"),
    (lambda: Xtc(0.5, 0.6), "Xtc.threshold = 0.6"),
    (lambda: Xtc(0.5, then=Mirostat()), "Xtc.then = Mirostat"),
    (lambda: Mirostat(tau=-1), "Mirostat.tau = -1"),
    (lambda: Mirostat(surprise="x"), "Mirostat.surprise = 'x'"),
    (lambda: MirostatV1(first=1), "MirostatV1.first = 1"),
    (lambda: AdaptiveP(2), "AdaptiveP.target = 2"),
    (lambda: AdaptiveP(0.5, decay=1), "AdaptiveP.decay = 1"),
    (lambda: Mixture((), ()), "Mixture.configurations = ()"),
    (lambda: Mixture((TopK(1),), (0.5,)), "Mixture.weights = (0.5,): give 1 weights >= 0 that sum to 1"),
    (lambda: Mixture((TopK(1),), (1.0,), per="run"), "Mixture.per = 'run'"),
    (lambda: Parallel(TopK(1), reference="x"), "Parallel.reference = 'x'"),
    (lambda: Parallel(Temperature(0.5))(measure(WORKED)), "only gates go in parallel"),
    (lambda: Chain(Parallel(Temperature(0)))(measure(WORKED)), "only gates go in parallel"),
    (lambda: Ban((-1,)), "Ban.tokens = (-1,)"),
    (lambda: Ban((7,))(measure(WORKED)), "Ban.tokens = (7,): use token ids below the vocabulary's 6"),
    (lambda: ForcePrefix((7,))(measure(WORKED)), "ForcePrefix.tokens = (7,)"),
    (lambda: MaxThinking(-1, (0,)), "MaxThinking.n = -1"),
    (lambda: MaxThinking(1, ()), "MaxThinking.end = ()"),
    (lambda: MinThinking(1, 0, instead=(0,)), "MinThinking.instead = (0,)"),
    (lambda: Mask(not_a_mask)(measure(WORKED)), "return a bool mask [..., 6]"),
    (lambda: TokenMeasure.of(np.array(1.0)), "logits.shape = ()"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_fields_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        make()
    assert message in str(caught.value)

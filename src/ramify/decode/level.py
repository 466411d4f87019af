"""Level gates: keep the tokens whose reference r (or logit) reaches a threshold that depends on the data."""

from __future__ import annotations

import math

from ramify.arrays import Array, namespace
from ramify.decode.measure import TokenMeasure, restrict, valid_fallback
from ramify.describe import method
from ramify.errors import require

__all__ = ["Epsilon", "Eta", "MinP", "PLess", "TopA", "TopNSigma"]


def reaches(measure: TokenMeasure, depth: Array) -> Array:
    """energy - peak >= depth ``[..., 1]``, in the precision of the logits: a shift of all logits changes nothing."""
    return measure.depth >= namespace(measure.depth).astype(depth, measure.depth.dtype)


@method
class Epsilon:
    """r >= eps (Hewitt et al., 2022). May leave nothing: then the fallback applies."""

    eps: float
    fallback: str = "mode"

    def __post_init__(self) -> None:
        require(0 < self.eps < 1, "Epsilon.eps", self.eps, "use a probability in (0, 1)")
        valid_fallback("Epsilon", self.fallback)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        return restrict(measure, reaches(measure, measure.log_mass + math.log(self.eps)), self.fallback)


@method
class Eta:
    """r >= min(eps, sqrt(eps) exp(-H(r))): an absolute threshold that gives way where the entropy is high.

    Hewitt et al. (2022). May leave nothing: then the fallback applies.
    """

    eps: float
    fallback: str = "mode"

    def __post_init__(self) -> None:
        require(0 < self.eps < 1, "Eta.eps", self.eps, "use a probability in (0, 1)")
        valid_fallback("Eta", self.fallback)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp = namespace(measure.energy)
        log_eta = xp.clip(math.log(self.eps) / 2 - measure.entropy, None, math.log(self.eps))
        return restrict(measure, reaches(measure, measure.log_mass + log_eta), self.fallback)


@method
class MinP:
    """r >= c max r (Nguyen et al., 2024). Keeps the mode always; needs no normaliser."""

    c: float

    def __post_init__(self) -> None:
        require(0 <= self.c <= 1, "MinP.c", self.c, "use a share of the mode's probability in [0, 1]")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        if self.c == 0:
            return measure
        return restrict(measure, measure.depth >= math.log(self.c))


@method
class TopA:
    """r >= a (max r)²: stricter where the mode is more certain."""

    a: float

    def __post_init__(self) -> None:
        require(0 <= self.a <= 1, "TopA.a", self.a, "use a factor in [0, 1]; above 1 even the mode could go")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        if self.a == 0:
            return measure
        return restrict(measure, reaches(measure, math.log(self.a) - measure.log_mass))


@method
class PLess:
    """r >= Σ r²: at least as likely as two draws are to agree (Tan et al., 2025). No parameter, never empty.

    ``normalised`` removes the collisions that chance explains: r >= (V Σ r² - 1) / (V - 1), V the size of the support.
    """

    normalised: bool = False

    def __post_init__(self) -> None:
        require(isinstance(self.normalised, bool), "PLess.normalised", self.normalised, "use True or False")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        # In units of the mode's weight the uniform distribution is exact: w = 1, Σw = Σw² = V, nothing is rounded away.
        xp, w = namespace(measure.weight), measure.weight
        collisions = xp.sum(w * w, axis=-1, keepdims=True, dtype=xp.float64)
        threshold = collisions / measure.total
        if self.normalised:
            size = xp.astype(measure.support, xp.float64)[..., None]
            excess = size * collisions - measure.total**2
            threshold = xp.where(size > 1, excess / (measure.total * xp.where(size > 1, size - 1, 1.0)), 0.0)
        return restrict(measure, w >= xp.astype(threshold, w.dtype))


@method
class TopNSigma:
    """ℓ >= max ℓ - n σ, σ the standard deviation of the live logits (Tang et al., 2024). Temperature does not move it.

    ``ddof=0`` is llama.cpp; the authors' code has ``ddof=1``.
    """

    n: float
    ddof: int = 0

    def __post_init__(self) -> None:
        require(0 < self.n < math.inf, "TopNSigma.n", self.n, "use a finite number of standard deviations > 0")
        require(self.ddof in (0, 1), "TopNSigma.ddof", self.ddof, "use 0 (llama.cpp) or 1 (the authors' code)")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp = namespace(measure.energy)
        size = xp.astype(measure.support, xp.float64)[..., None]
        mean = _total(measure, measure.depth) / size
        off = measure.depth - xp.astype(mean, measure.depth.dtype)
        spread = _total(measure, off * off) / xp.clip(size - self.ddof, 1.0, None)
        return restrict(measure, reaches(measure, -self.n * xp.sqrt(spread)))


def _total(measure: TokenMeasure, values: Array) -> Array:
    """[..., 1] the sum over the live tokens, in double precision."""
    xp = namespace(values)
    values = values if xp.all(measure.live) else xp.where(measure.live, values, 0.0)
    return xp.sum(values, axis=-1, keepdims=True, dtype=xp.float64)

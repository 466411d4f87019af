"""Head-budget gates: order the live tokens by a key and keep the first ones that a budget permits."""

from __future__ import annotations

from collections.abc import Callable

from ramify.arrays import SHORT, Array, descending, head, largest, namespace
from ramify.decode.measure import TokenMeasure, restrict
from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = ["EntropyBudget", "TailFree", "TopH", "TopK", "TopP", "Typical"]


@method
class TopK:
    """The k heaviest tokens (Fan et al., 2018).

    ``ties="id"`` keeps exactly k, the lower id first (llama.cpp, SGLang); ``"keep"`` keeps all that tie with the k-th
    (transformers, vLLM).
    """

    k: int
    ties: str = "id"

    def __post_init__(self) -> None:
        require(is_whole(self.k, 1), "TopK.k", self.k, "use an integer >= 1; leave the gate out to keep everything")
        require(self.ties in ("id", "keep"), "TopK.ties", self.ties, "use 'id' or 'keep'")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        if self.k >= measure.energy.shape[-1]:
            return measure
        if self.ties == "id":
            return restrict(measure, head(measure.energy, None, self.k))
        values, _ = largest(measure.energy, self.k)
        return restrict(measure, measure.energy >= values[..., -1:])


@method
class TopP:
    """The smallest head whose mass reaches ``p`` (nucleus sampling; Holtzman et al., 2020).

    ``boundary="reach"`` stops at equality (transformers, vLLM, llama.cpp); ``"exceed"`` takes one token more then
    (SGLang).
    """

    p: float
    boundary: str = "reach"

    def __post_init__(self) -> None:
        require(0 < self.p <= 1, "TopP.p", self.p, "use a probability in (0, 1]; 1 keeps everything")
        require(self.boundary in ("reach", "exceed"), "TopP.boundary", self.boundary, "use 'reach' or 'exceed'")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        if self.p >= 1:
            return measure
        budget = self.p * measure.total[..., 0]
        return restrict(measure, head(measure.energy, measure.weight, budget, closed=self.boundary == "exceed"))


@method
class Typical:
    """The tokens whose surprisal is closest to the entropy, until their mass reaches ``p`` (Meister et al., 2023).

    It orders by |-log r - H|, so the mode itself may go: not a mode-preserving head. ``boundary="exceed"`` is
    llama.cpp; ``ties="keep"`` keeps all that tie with the last (transformers).
    """

    p: float
    boundary: str = "reach"
    ties: str = "id"

    def __post_init__(self) -> None:
        require(0 < self.p <= 1, "Typical.p", self.p, "use a probability in (0, 1]; 1 keeps everything")
        require(self.boundary in ("reach", "exceed"), "Typical.boundary", self.boundary, "use 'reach' or 'exceed'")
        require(self.ties in ("id", "keep"), "Typical.ties", self.ties, "use 'id' or 'keep'")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        if self.p >= 1:
            return measure
        xp = namespace(measure.depth)
        centre = xp.astype(measure.log_mass - measure.entropy, measure.depth.dtype)
        budget = self.p * measure.total[..., 0]
        nearness = -xp.abs(measure.depth - centre)
        keep = head(nearness, measure.weight, budget, closed=self.boundary == "exceed")
        if self.ties == "keep":
            keep = nearness >= xp.min(xp.where(keep, nearness, xp.inf), axis=-1, keepdims=True)
        return restrict(measure, keep)


@method
class TailFree:
    """Cut where the curvature of the sorted probabilities has run out (Gao and Bloom, 2021).

    With d = |second differences| of sorted r, normalised, the token at rank j is kept while the sum of d before it
    is <= z; the first is always kept and the last never. A support under three tokens, or one without curvature, is
    left alone.
    """

    z: float

    def __post_init__(self) -> None:
        require(
            0 < self.z <= 1,
            "TailFree.z",
            self.z,
            "use a share of the curvature in (0, 1]; 1 keeps everything",
        )

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp, size = namespace(measure.weight), measure.weight.shape[-1]
        if self.z >= 1 or size < 3:
            return measure
        r = xp.astype(descending(measure.weight), xp.float64)
        d = xp.abs(r[..., :-2] - 2 * r[..., 1:-1] + r[..., 2:])
        # Dead tokens sort last with weight zero; differences that reach into them are not the distribution's.
        real = xp.arange(size - 2, device=d.device) < measure.support[..., None] - 2
        d = xp.where(real, d, 0.0)
        curvature = xp.sum(d, axis=-1, keepdims=True)
        share = xp.cumulative_sum(d, axis=-1) / xp.where(curvature > 0, curvature, 1.0)
        keep = 1 + xp.count_nonzero(real & (share <= self.z), axis=-1)
        return restrict(measure, head(measure.energy, None, xp.where(curvature[..., 0] > 0, keep, size)))


@method
class EntropyBudget:
    """The largest head whose renormalised entropy is at most ``nats``; the mode always stays."""

    nats: float

    def __post_init__(self) -> None:
        require(self.nats >= 0, "EntropyBudget.nats", self.nats, "use an entropy >= 0, in nats")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        return restrict(measure, head(measure.energy, None, entropy_head(measure, self.nats)))


@method
class TopH:
    """The largest head whose entropy is at most ``alpha`` of the whole (Baghaei Potraghloo et al., 2025).

    ``form="head"`` is the paper: the entropy of the renormalised head. ``"partial"`` is the released code and
    transformers: partial sums of -r log r, the latter over the renormalised first ``first`` = 100 tokens only.
    """

    alpha: float
    form: str = "head"
    first: int | None = None

    def __post_init__(self) -> None:
        require(0 < self.alpha <= 1, "TopH.alpha", self.alpha, "use a share of the entropy in (0, 1]")
        require(self.form in ("head", "partial"), "TopH.form", self.form, "use 'head' or 'partial'")
        require(self.first is None or is_whole(self.first, 1), "TopH.first", self.first, "use None or an integer >= 1")

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        if self.first is not None:
            return TopH(self.alpha, self.form)(TopK(self.first)(measure))
        if self.alpha == 1:
            return measure
        if self.form == "head":
            keep = entropy_head(measure, self.alpha * measure.entropy)
        else:
            keep = partial_entropy_head(measure, self.alpha * measure.entropy)
        return restrict(measure, head(measure.energy, None, keep))


def entropy_head(measure: TokenMeasure, budget: Array | float) -> Array:
    """[...] the size of the largest head with H(Norm_head(r)) <= budget ``[..., 1]``.

    H = log W - (Σ w log w) / W for a head of mass W grows with every token of a sorted head: the first failure ends it.
    """
    xp = namespace(measure.energy)

    def within(w: Array, log_w: Array) -> Array:
        mass, moment = (xp.cumulative_sum(x, axis=-1) for x in (w, w * log_w))
        return xp.log(mass) - moment / mass <= budget

    return _longest(measure, within)


def partial_entropy_head(measure: TokenMeasure, budget: Array) -> Array:
    """[...] the size of the largest head whose partial sum of -r log r is <= budget ``[..., 1]``."""
    xp = namespace(measure.energy)

    def within(w: Array, log_w: Array) -> Array:
        terms = w * (xp.log(measure.total) - log_w) / measure.total
        return xp.cumulative_sum(terms, axis=-1) <= budget

    return _longest(measure, within)


def _longest(measure: TokenMeasure, within: Callable[[Array, Array], Array]) -> Array:
    """[...] how many leading tokens stay ``within``: a test on sorted (w, log w), in units of the mode.

    Once the test fails it fails for good.

    Peaked rows are decided by a short list; only where that is too short is the vocabulary sorted.
    """
    xp, size = namespace(measure.energy), measure.energy.shape[-1]
    for first in (SHORT, size):
        values = largest(measure.energy, first)[0] if first < size else descending(measure.energy)
        # 0 log 0 = 0: dead tokens come last with weight zero, whatever finite number stands for their log.
        log_w = xp.clip(xp.astype(values, xp.float64) - measure.peak, -1e4, None)
        inside = xp.count_nonzero(within(xp.exp(log_w), log_w), axis=-1)
        if xp.all(inside < first):
            break
    return xp.clip(inside, 1, None)

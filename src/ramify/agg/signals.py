"""One trace's tokens or steps to one score, under scorio's names: ``ramify.evidence`` over plain lists.

Uncertainties (perplexity, entropy, varentropy) keep their sign here, as in scorio; the evidence maps of ramify negate
them. An empty trace has no score: NaN.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ramify import evidence
from ramify.arrays import Array
from ramify.errors import require

__all__ = [
    "KDEVoteCalibration",
    "deepconf_confidence",
    "fit_kde_vote_calibration",
    "logprob_margin",
    "max_softmax_probability",
    "mean_logprob",
    "perplexity",
    "picsar",
    "prm_aggregate",
    "self_certainty",
    "sequence_logprob",
    "token_confidence",
    "token_entropy",
    "varentropy",
]

REDUCE = {
    "mean": evidence.Mean(),
    "min": evidence.Minimum(),
    "max": evidence.Maximum(),
    "last": evidence.Final(),
    "prod": evidence.LogProduct(),
}


def _reduced(values: Any, reduction: Any) -> float:
    """One number from the values of one trace."""
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    return float(reduction(flat, np.array([0, flat.size]))[0])


def _named(name: str, among: tuple[str, ...], argument: str) -> Any:
    require(name in among, argument, name, f"use one of {', '.join(among)}")
    return REDUCE[name]


# ----------------------------------------------------------------------------------------------------------- likelihood


def mean_logprob(logprobs: Any) -> float:
    """(1/T) Σ log p."""
    return _reduced(logprobs, evidence.Mean())


def sequence_logprob(logprobs: Any) -> float:
    """Σ log p."""
    return _reduced(logprobs, evidence.Total())


def perplexity(logprobs: Any) -> float:
    """exp(-mean log p): lower is more confident.

    >>> round(perplexity([-0.13, -0.44, -0.07, -0.81, -0.22]), 6)
    1.396543
    """
    return float(np.exp(-mean_logprob(logprobs)))


def picsar(logprobs: Any, *, answer_start: int | None = None, normalize_reasoning: bool = False) -> float:
    """Log-probability of the reasoning (per token, if asked) and of the answer; of everything without a split."""
    flat = np.asarray(logprobs, dtype=np.float64).reshape(-1)
    if answer_start is None:
        return sequence_logprob(flat)
    columns = {"logprob": flat, "answer_start": np.array([float(answer_start)])}
    return float(evidence.Picsar(normalised=normalize_reasoning).of_tokens(np.array([0, flat.size]), columns)[0])


# --------------------------------------------------------------------------------------------------------- alternatives


def _per_token(topk_logprobs: Any, statistic: Any) -> Array:
    """``[T]`` of ``statistic(k)``; rows may have different numbers of alternatives, in any order."""
    rows = [np.sort(np.asarray(row, dtype=np.float64))[::-1] for row in topk_logprobs]
    out = np.empty(len(rows))
    for k in {row.size for row in rows}:
        at = [t for t, row in enumerate(rows) if row.size == k]
        out[at] = statistic(k)({"top_logprobs": np.stack([rows[t] for t in at])})
    return out


def _aggregated(topk_logprobs: Any, statistic: Any, aggregate: str) -> float:
    return _reduced(_per_token(topk_logprobs, statistic), _named(aggregate, ("mean", "min", "max"), "aggregate"))


def token_confidence(topk_logprobs: Any) -> Array:
    """``[T]`` -(1/k) Σ log p over the alternatives: DeepConf's token confidence.

    >>> token_confidence([[-0.1, -1.3], [-0.2, -0.7, -2.9]]).round(4).tolist()
    [0.7, 1.2667]
    """
    return _per_token(topk_logprobs, evidence.Confidence)


def self_certainty(topk_logprobs: Any, *, aggregate: str = "mean") -> float:
    """KL(U ‖ p) over the renormalised alternatives."""
    return _aggregated(topk_logprobs, evidence.SelfCertainty, aggregate)


def token_entropy(topk_logprobs: Any, *, aggregate: str = "mean") -> float:
    """Entropy of the renormalised alternatives: lower is more confident."""
    return _aggregated(topk_logprobs, lambda k: lambda c: -evidence.NegativeEntropy(k)(c), aggregate)


def varentropy(topk_logprobs: Any, *, aggregate: str = "mean") -> float:
    """Variance of the surprisal of the renormalised alternatives."""
    return _aggregated(topk_logprobs, lambda k: lambda c: -evidence.NegativeVarentropy(k)(c), aggregate)


def max_softmax_probability(topk_logprobs: Any, *, aggregate: str = "mean") -> float:
    """The probability of the likeliest token."""
    return _aggregated(topk_logprobs, lambda _: evidence.MaxProb(), aggregate)


def logprob_margin(topk_logprobs: Any, *, use_prob: bool = False, aggregate: str = "mean") -> float:
    """How far the likeliest token is ahead of the second; at least two alternatives are needed."""
    return _aggregated(topk_logprobs, lambda _: evidence.Margin(log=not use_prob), aggregate)


def deepconf_confidence(
    topk_logprobs: Any,
    *,
    mode: str = "mean",
    window: int = 2048,
    tail_tokens: int = 2048,
    bottom_quantile: float = 0.10,
) -> float:
    """A trace's confidence: "mean", "tail", "lowest_group", or "bottom_group", of floor(share · #groups) groups."""
    modes = {
        "mean": evidence.Mean(),
        "tail": evidence.Tail(tail_tokens),
        "lowest_group": evidence.LowestGroup(window),
        "bottom_group": evidence.BottomGroups(window, bottom_quantile),
    }
    require(mode in modes, "mode", mode, f"use one of {', '.join(modes)}")
    return _reduced(token_confidence(topk_logprobs), modes[mode])


# ------------------------------------------------------------------------------------------------ steps and calibration


def prm_aggregate(step_scores: Any, *, method: str = "last") -> float:
    """A process reward model's step scores to one: "last", "min", "mean", "max", or "prod".

    >>> prm_aggregate([0.9, 0.4, 0.95], method="min"), round(prm_aggregate([0.5, 0.5], method="prod"), 12)
    (0.4, 0.25)
    """
    value = _reduced(step_scores, _named(method, tuple(REDUCE)[::-1], "method"))
    return float(np.exp(value)) if method == "prod" else value


class KDEVoteCalibration(NamedTuple):
    """The two calibrations of ``kde_weighted_vote``; their fitted numbers are fields of the parts."""

    density: evidence.DensityRatio
    bins: evidence.QuantileBins

    def log_density_ratio(self, scores: Any) -> Array:
        return self.density(np.asarray(scores, dtype=np.float64))

    def calibrated_probability(self, scores: Any) -> Array:
        return self.bins(np.asarray(scores, dtype=np.float64))


def fit_kde_vote_calibration(
    scores: Any, correct: Any, *, n_bins: int = 10, bandwidth: Any = "scott", name: str = "held-out"
) -> KDEVoteCalibration:
    """Fit on held-out scores in (0, 1) and whether each was correct. ``name`` says which data these are.

    >>> fitted = fit_kde_vote_calibration([0.8, 0.9, 0.1, 0.2], [1, 1, 0, 0], n_bins=2, bandwidth=0.5)
    >>> fitted.log_density_ratio([0.15, 0.85]).round(4).tolist(), fitted.bins.rates
    ([-19.8421, 19.8421], (0.0, 1.0))
    """
    held_out = evidence.HeldOut(name, scores, np.asarray(correct, dtype=np.float64), (name,))
    widths = None
    if not isinstance(bandwidth, str):
        first, second = (bandwidth, bandwidth) if np.ndim(bandwidth) == 0 else bandwidth
        widths = (float(first), float(second))
    else:
        require(bandwidth == "scott", "bandwidth", bandwidth, "use 'scott', a number, or a pair of them")
    density = evidence.density_ratio(held_out, widths)
    return KDEVoteCalibration(density, evidence.quantile_bins(held_out, n_bins))

"""Every stop of ``ramify.stop`` as a function over what has been revealed so far.

Answers are those revealed, one question or a batch; a function says whether to stop now, and with ``return_prob`` also
the statistic that says so. A batch gives arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ramify import stop
from ramify.agg.plain import numbers, table
from ramify.bank import Candidates
from ramify.stop import Stop, TokenHistory, TokenStop

__all__ = [
    "adaptive_consistency_crp_stop",
    "adaptive_consistency_dirichlet_stop",
    "adaptive_consistency_stop",
    "answer_entropy_stop",
    "at_most_stop",
    "budget_stop",
    "cges_stop",
    "deepconf_consensus_stop",
    "deepconf_online_stop",
    "deepconf_stop_threshold",
    "esc_cost",
    "esc_stop",
    "leader_share_stop",
    "looping_stop",
    "mode_certificate_stop",
    "share_interval_stop",
    "should_stop",
    "token_limit_stop",
]

esc_cost = stop.esc_cost


def should_stop(rule: Stop, answers: Any, scores: Mapping[str, Any] | None = None, *, return_prob: bool = False) -> Any:
    """What any stop says now, with its evidence by name; ``AnyOf``, ``AtLeast`` and ``InBatches`` are stops too.

    >>> from ramify.stop import AdaptiveConsistency, AnyOf, AtMost
    >>> should_stop(AnyOf(AdaptiveConsistency(), AtMost(3)), ["A", "B", "A"])
    True
    """
    like = table(answers)
    evidence = {name: numbers(values, like, name) for name, values in (scores or {}).items()}
    now, value = np.zeros(len(like.codes), dtype=bool), np.zeros(len(like.codes))
    if like.codes.shape[1]:
        now, value = rule(Candidates(like.codes, like.drawn, None, evidence), None).now
    if like.single:
        return (bool(now[0]), float(value[0])) if return_prob else bool(now[0])
    return (now, value) if return_prob else now


def adaptive_consistency_stop(answers: Any, *, threshold: float = 0.95, return_prob: bool = False) -> Any:
    """Whether the leader is likely ahead of the runner-up: ``AdaptiveConsistency``.

    >>> stop, probability = adaptive_consistency_stop(["A"] * 8 + ["B"] * 2, threshold=0.95, return_prob=True)
    >>> stop, round(probability, 4)
    (True, 0.9673)
    """
    return should_stop(stop.AdaptiveConsistency(threshold), answers, return_prob=return_prob)


def adaptive_consistency_dirichlet_stop(answers: Any, *, threshold: float = 0.95, return_prob: bool = False) -> Any:
    """Whether the leader is likely ahead of all observed answers: ``DirichletConsistency``."""
    return should_stop(stop.DirichletConsistency(threshold), answers, return_prob=return_prob)


def adaptive_consistency_crp_stop(
    answers: Any, *, threshold: float = 0.95, horizon: int = 40, alpha: float | None = None, return_prob: bool = False
) -> Any:
    """Whether the leader will likely lead at the horizon, unseen answers included: ``CrpConsistency``, exactly."""
    return should_stop(stop.CrpConsistency(threshold, horizon, alpha), answers, return_prob=return_prob)


def leader_share_stop(answers: Any, *, share: float = 0.8, min_samples: int = 2, return_prob: bool = False) -> Any:
    """Whether the leader has this share of the valid answers: ``LeaderShare``."""
    return should_stop(stop.LeaderShare(share, min_samples), answers, return_prob=return_prob)


def answer_entropy_stop(answers: Any, *, most: float = 0.75, min_samples: int = 2, return_prob: bool = False) -> Any:
    """Whether the normalised entropy of the answers is this low: ``AnswerEntropy``."""
    return should_stop(stop.AnswerEntropy(most, min_samples), answers, return_prob=return_prob)


def esc_stop(window_answers: Any, *, window: int | None = None) -> Any:
    """Whether the last window is unanimous: ``Esc``. Without ``window`` the answers are one window, as in scorio.

    >>> esc_stop(["A", "A", "A"]), esc_stop(["A", None, "A"]), esc_stop(["B", "A", "A", "A"], window=2)
    (True, False, True)
    """
    size = window or max(table(window_answers := list(window_answers)).codes.shape[1], 1)
    return should_stop(stop.Esc(size), window_answers)


def cges_stop(
    answers: Any,
    scores: Any,
    *,
    threshold: float = 0.95,
    include_other: bool = False,
    min_samples: int = 1,
    return_prob: bool = False,
) -> Any:
    """Whether the posterior of an answer under confidences reaches the threshold: ``CgesStop``."""
    rule = stop.CgesStop("score", threshold, include_other, min_samples)
    return should_stop(rule, answers, {"score": scores}, return_prob=return_prob)


def share_interval_stop(answers: Any, *, width: float = 0.2, level: float = 0.95, return_prob: bool = False) -> Any:
    """Whether the Wilson interval of the leader's share is narrower than this: ``ShareInterval``."""
    return should_stop(stop.ShareInterval(width, level), answers, return_prob=return_prob)


def mode_certificate_stop(answers: Any, *, delta: float = 0.05, return_prob: bool = False) -> Any:
    """Whether the leader is certified as the mode, whenever one asks: ``ModeCertificate``; its value is log e."""
    return should_stop(stop.ModeCertificate(delta), answers, return_prob=return_prob)


def at_most_stop(answers: Any, *, n: int = 40) -> Any:
    """Whether n candidates were drawn, valid or not: ``AtMost``."""
    return should_stop(stop.AtMost(n), answers)


def budget_stop(answers: Any, costs: Any, *, limit: float, worst: float, return_prob: bool = False) -> Any:
    """Whether what is left cannot fund another rollout: ``Budget``."""
    return should_stop(stop.Budget(limit, worst, "cost"), answers, {"cost": costs}, return_prob=return_prob)


# ----------------------------------------------------------------------------------------------------- DeepConf, tokens


def deepconf_stop_threshold(warmup_confidences: Any, *, keep: float = 0.1) -> float:
    """The confidence that this share of the warm-up traces reaches.

    >>> round(deepconf_stop_threshold([0.7, 2.1, 1.4, 4.8, 3.0, 2.9, 5.2], keep=0.2), 2)
    4.44
    """
    return stop.fit_low_confidence(np.asarray(warmup_confidences, dtype=np.float64), eta=100 * keep).threshold


def deepconf_online_stop(topk_logprobs: Any, threshold: float, *, window: int = 2048) -> int | None:
    """The token after which a trace's group confidence is below the threshold, None if never: ``LowConfidence``.

    A trace shorter than the window never stops: before it ends nobody can know that it will be that short.
    """
    top = np.asarray(topk_logprobs, dtype=np.float64)
    return _token(stop.LowConfidence(threshold, window, top.shape[1]), {"top_logprobs": top})


def deepconf_consensus_stop(
    answers: Any, confidences: Any, *, tau: float = 0.95, eta: float = 10, warmup: int = 16, return_prob: bool = False
) -> Any:
    """Whether the leader has this share of the confident vote: ``DeepConfConsensus``."""
    rule = stop.DeepConfConsensus("score", tau, eta, warmup)
    return should_stop(rule, answers, {"score": confidences}, return_prob=return_prob)


def token_limit_stop(tokens: Any, *, n: int) -> int | None:
    """The position after which a trace has n tokens, None if it is shorter: ``TokenLimit``."""
    return _token(stop.TokenLimit(n), {"token": np.asarray(tokens)})


def looping_stop(tokens: Any, *, times: int = 8, longest: int = 64, least: int = 64) -> int | None:
    """The position at which a trace has repeated itself this often, None if never: ``Looping``."""
    return _token(stop.Looping(times, longest, least), {"token": np.asarray(tokens)})


def _token(rule: TokenStop, columns: Mapping[str, Any]) -> int | None:
    """Where a trace stops."""
    history = TokenHistory(np.array([0, len(next(iter(columns.values())))]), columns)
    at = int(history.stopped_at(rule(history))[0])
    return None if at < 0 else at

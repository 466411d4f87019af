"""The reference interface: aggregation over plain lists and arrays, one question or a batch, in one call.

Answers are a sequence of anything hashable (one question), or rows of them (a batch, rows of any length): lists, NumPy
arrays, pandas Series and frames. None, "", NaN and pandas NA are ⊥. A tuple is an answer, never a row. Scores are
aligned with the answers; higher is better, and NaN or None is a missing score.

A function returns the answer, None where nothing is valid; for a batch an object array of them. ``record=True`` asks
for a ``Selection(answer, index, score)`` instead; ``return_index`` and ``return_score`` add those parts, as in
``scorio``, whose names are kept. The index of a vote is a representative's: the best-scored candidate with that answer,
the first one without scores. Stops answer for what is revealed, and evidence
reducers for one trace. Methods, their fields and sources are in ``ramify.decide``, ``stop`` and ``evidence``.

>>> from ramify import agg
>>> answers = ["A", "A", "A", "B"]
>>> scores = [0.30, 0.30, 0.30, 0.85]
>>> agg.majority_vote(answers), agg.best_of_n(answers, scores)
('A', 'B')
>>> agg.softmax_weighted_vote(answers, scores, temperature=0.1)
'B'
>>> observed = ["A"] * 8 + ["B"] * 2
>>> stop, probability = agg.adaptive_consistency_stop(observed, threshold=0.95, return_prob=True)
>>> stop, round(probability, 4)
(True, 0.9673)
>>> agg.best_of_n(answers, scores, record=True)
Selection(answer='B', index=3, score=0.85)
>>> agg.majority_vote([["A", "B", "B"], [(1, 2), None]]).tolist()
['B', (1, 2)]
"""

from ramify.agg.rules import (
    CGES_OTHER,
    Selection,
    adaptive_majority_of_the_bests,
    ambr,
    best_of_majority,
    best_of_n,
    bradley_terry,
    calibrated_vote,
    centroid_mbr,
    cges_vote,
    diverse_n_best,
    filtered_vote,
    first_valid,
    judged,
    kde_weighted_vote,
    kl_best_of_n,
    knockout,
    likelihood_vote,
    logit_weighted_vote,
    low_rank_mbr,
    majority_of_the_bests,
    majority_vote,
    mbr,
    mob,
    pruned_mbr,
    rank_weighted_vote,
    reference_aggregation,
    regularised_best_of_n,
    round_robin,
    select,
    soft_best_of_n,
    soft_best_of_n_probs,
    softmax_weighted_vote,
    verifier_constrained,
    weighted_majority_vote,
)
from ramify.agg.signals import (
    KDEVoteCalibration,
    deepconf_confidence,
    fit_kde_vote_calibration,
    logprob_margin,
    max_softmax_probability,
    mean_logprob,
    perplexity,
    picsar,
    prm_aggregate,
    self_certainty,
    sequence_logprob,
    token_confidence,
    token_entropy,
    varentropy,
)
from ramify.agg.stops import (
    adaptive_consistency_crp_stop,
    adaptive_consistency_dirichlet_stop,
    adaptive_consistency_stop,
    answer_entropy_stop,
    at_most_stop,
    budget_stop,
    cges_stop,
    deepconf_consensus_stop,
    deepconf_online_stop,
    deepconf_stop_threshold,
    esc_cost,
    esc_stop,
    leader_share_stop,
    looping_stop,
    mode_certificate_stop,
    share_interval_stop,
    should_stop,
    token_limit_stop,
)

__all__ = [
    "CGES_OTHER",
    "KDEVoteCalibration",
    "Selection",
    "adaptive_consistency_crp_stop",
    "adaptive_consistency_dirichlet_stop",
    "adaptive_consistency_stop",
    "adaptive_majority_of_the_bests",
    "ambr",
    "answer_entropy_stop",
    "at_most_stop",
    "best_of_majority",
    "best_of_n",
    "bradley_terry",
    "budget_stop",
    "calibrated_vote",
    "centroid_mbr",
    "cges_stop",
    "cges_vote",
    "deepconf_confidence",
    "deepconf_consensus_stop",
    "deepconf_online_stop",
    "deepconf_stop_threshold",
    "diverse_n_best",
    "esc_cost",
    "esc_stop",
    "filtered_vote",
    "first_valid",
    "fit_kde_vote_calibration",
    "judged",
    "kde_weighted_vote",
    "kl_best_of_n",
    "knockout",
    "leader_share_stop",
    "likelihood_vote",
    "logit_weighted_vote",
    "logprob_margin",
    "looping_stop",
    "low_rank_mbr",
    "majority_of_the_bests",
    "majority_vote",
    "max_softmax_probability",
    "mbr",
    "mean_logprob",
    "mob",
    "mode_certificate_stop",
    "perplexity",
    "picsar",
    "prm_aggregate",
    "pruned_mbr",
    "rank_weighted_vote",
    "reference_aggregation",
    "regularised_best_of_n",
    "round_robin",
    "select",
    "self_certainty",
    "sequence_logprob",
    "share_interval_stop",
    "should_stop",
    "soft_best_of_n",
    "soft_best_of_n_probs",
    "softmax_weighted_vote",
    "token_confidence",
    "token_entropy",
    "token_limit_stop",
    "varentropy",
    "verifier_constrained",
    "weighted_majority_vote",
]

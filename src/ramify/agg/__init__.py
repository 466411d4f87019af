"""The reference interface: aggregation over plain lists and arrays, one question or a batch, in one call.

Answers are a sequence of anything hashable (one question), or rows of them (a batch, rows of any length): lists, NumPy
arrays, pandas Series and frames. None, "", NaN and pandas NA are ⊥. A tuple is an answer, never a row. Scores are
aligned with the answers; higher is better, and NaN or None is a missing score.

A function returns the answer, None where nothing is valid; for a batch an object array of them. ``record=True`` asks
for a ``Selection(answer, index, score)`` instead; ``return_index`` and ``return_score`` add those parts, as in
``scorio``, whose names are kept. The index of a vote is a representative's: the best-scored candidate with that answer,
the first one without scores. Methods, their fields and their sources are in ``ramify.decide``.

>>> from ramify import agg
>>> answers = ["A", "A", "A", "B"]
>>> scores = [0.30, 0.30, 0.30, 0.85]
>>> agg.majority_vote(answers), agg.best_of_n(answers, scores)
('A', 'B')
>>> agg.softmax_weighted_vote(answers, scores, temperature=0.1)
'B'
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

__all__ = [
    "CGES_OTHER",
    "Selection",
    "adaptive_majority_of_the_bests",
    "ambr",
    "best_of_majority",
    "best_of_n",
    "bradley_terry",
    "calibrated_vote",
    "centroid_mbr",
    "cges_vote",
    "diverse_n_best",
    "filtered_vote",
    "first_valid",
    "judged",
    "kde_weighted_vote",
    "kl_best_of_n",
    "knockout",
    "likelihood_vote",
    "logit_weighted_vote",
    "low_rank_mbr",
    "majority_of_the_bests",
    "majority_vote",
    "mbr",
    "mob",
    "pruned_mbr",
    "rank_weighted_vote",
    "reference_aggregation",
    "regularised_best_of_n",
    "round_robin",
    "select",
    "soft_best_of_n",
    "soft_best_of_n_probs",
    "softmax_weighted_vote",
    "verifier_constrained",
    "weighted_majority_vote",
]

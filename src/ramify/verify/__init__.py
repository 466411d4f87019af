"""Verifiers and judges: models that are asked about candidates, through a ``Sampler``.

Reference-assisted ones grade behind the wall; reference-free ones make evidence. None of them is calibrated.
"""

from ramify.verify.judge import Judge, Replies, Reply, Task, ask, relation
from ramify.verify.labels import contextual, direct, expected_grade, label_logprobs, visible
from ramify.verify.of_model import local_judge, served_judge
from ramify.verify.outcome import COMPASS_3B, COMPASS_3B_CONTEXTUAL, COMPASS_7B, CompassVerifier, Graded
from ramify.verify.pairwise import Bias, Pairwise, bias
from ramify.verify.pointwise import GENERAL, MATHEMATICS, Pointwise, PointwiseBy, Rubric, Scores

__all__ = [
    "COMPASS_3B",
    "COMPASS_3B_CONTEXTUAL",
    "COMPASS_7B",
    "GENERAL",
    "MATHEMATICS",
    "Bias",
    "CompassVerifier",
    "Graded",
    "Judge",
    "Pairwise",
    "Pointwise",
    "PointwiseBy",
    "Replies",
    "Reply",
    "Rubric",
    "Scores",
    "Task",
    "ask",
    "bias",
    "contextual",
    "direct",
    "expected_grade",
    "label_logprobs",
    "local_judge",
    "relation",
    "served_judge",
    "visible",
]

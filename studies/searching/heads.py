"""How well the heads of a checkpoint order trajectories of one question, line by line."""

from __future__ import annotations

import argparse
import math

import numpy as np

from ramify.decode import Temperature
from ramify.models import Heads, Pocket, decode_with
from ramify.tasks import Countdown
from ramify.types import Key, Request
from searching.measure import asked
from searching.plan import CAP


def heads(options: argparse.Namespace, samples: int = 24) -> None:
    """Print the AUC within questions of each head after each line, over questions with right and wrong trajectories."""
    model, task, asking = Pocket(options.checkpoint), Countdown(options.level), asked(options, "tuning")
    sampler, found = decode_with(model, Temperature(1.0), batch=256), dict[tuple[str, int], list[float]]()
    for question, gold in zip(asking, task.references(asking), strict=True):
        prompt = tuple(model.encode(question.prompt))
        drawn = list(sampler([Request(Key("search/heads", question.id, i), prompt, CAP) for i in range(samples)]))
        texts = [tuple(leaf.tokens.tolist()) for leaf in drawn]
        right = np.array([bool(task.grade(task.parse(leaf.text, question).answer, gold)) for leaf in drawn])
        read, whole = Heads("main"), [(*prompt, *text) for text in texts]
        lines = {"value": [each[1:] for each in read.value(whole).score]}  # the prompt is a line, too
        lines["process"] = list(read.process([prompt] * samples, texts).score)
        lines["outcome"] = [np.array([each]) for each in read.outcome(whole).values]
        for head, scores in lines.items():
            for line in range(5):
                known = np.array([len(each) > line and not math.isnan(each[line]) for each in scores])
                here = np.array([each[line] for each, ok in zip(scores, known, strict=True) if ok])
                if 0 < right[known].sum() < known.sum():
                    found.setdefault((head, line + 1), []).append(auc(here, right[known]))
    for (head, line), each in sorted(found.items()):
        print(f"{head:8} line {line}: {np.mean(each):.3f} over {len(each)} questions")


def auc(score: np.ndarray, right: np.ndarray) -> float:
    """P(a right one scores above a wrong one), ties half."""
    above = score[right][:, None] - score[~right]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))

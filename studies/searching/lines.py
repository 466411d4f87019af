"""Every search of the test set beside its rival: what the tables and the figure are made of."""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from bench import over_questions, sign_flips

from ramify.metrics import Estimate
from searching.measure import file, load
from searching.plan import Job, test_jobs
from searching.rivals import Curve, Rival, choose, curves

PAGE = "docs/search"  # names the stream of its intervals


class Line(NamedTuple):
    """What the table and the figure say about one job."""

    job: Job
    tokens: float
    read: float
    own: Estimate
    rival: str
    gain: Estimate
    p: float  # of a gain as far from zero, of this row alone


def lines(options: argparse.Namespace) -> tuple[list[Line], dict[str, Curve]]:
    """Every search against the leaf protocol that the tuning questions name as the best of its cost."""
    tuned, base = curves(load(Job("tuning", "leaves"), options)), curves(load(Job("test", "leaves"), options))
    found = []
    for job in done(options):
        row = load(job, options)
        tokens, right = float(np.mean(row["tokens"])), np.array(row["right"])
        rival = Rival.of(tuned, tokens)
        paired = right - rival.right(base)[: right.size]
        gain, p = over_questions(paired, PAGE), sign_flips(paired, PAGE)
        found.append(Line(job, tokens, float(np.mean(row["read"])), over_questions(right, PAGE), rival.name, gain, p))
    return found, base


def done(options: argparse.Namespace) -> list[Job]:
    """The searches of the test set that were measured; the others are named."""
    jobs = test_jobs(choose(options))[1:]
    for job in jobs:
        if not file(job, options).exists():
            print(f"not measured yet: {job}")
    return [job for job in jobs if file(job, options).exists()]

"""Summaries over groups of questions: fields, sources, levels of difficulty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.errors import require
from ramify.keys import generator
from ramify.metrics.estimate import Estimate
from ramify.metrics.functionals import Functional
from ramify.metrics.tally import Tally
from ramify.metrics.units import Layout
from ramify.types import Key

__all__ = ["GroupSummary", "Heterogeneity", "summarise"]


PERMUTATIONS = 9_999  # of the labels, beside the labels as they are
BLOCK = 1 << 20  # labels or cells held at a time


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """How much groups differ beyond what sampling questions explains (Cochran; DerSimonian and Laird; Higgins).

    ``p`` permutes the labels of the questions, so it holds for groups of few questions and for groups whose questions
    all fared alike. The others weigh groups by their variances, and are NaN where a group has none.
    """

    q: float  # Σ (value - pooled)² / variance
    p: float  # P(groups differ at least as much | the labels mean nothing): small where groups differ
    between: float  # τ², the variance of the groups' true values
    share: float  # I², how much of the variance of the values is between groups
    spread: float  # the largest value minus the smallest


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A number by group; averaged over questions (micro) and over groups that weigh the same (macro)."""

    names: tuple[str, ...]
    questions: tuple[int, ...]
    values: tuple[Estimate, ...]
    micro: Estimate
    macro: Estimate
    heterogeneity: Heterogeneity


def summarise(
    tally: Tally, groups: Any, functional: Functional, key: Key, replicates: int = 10_000, level: float = 0.95
) -> GroupSummary:
    """The functional in each group ``groups [Q]``, and its micro and macro averages.

    The groups are kept and questions are drawn within them, so all intervals are percentiles over questions. Questions
    with too few graded candidates for the functional are left out, and a group needs two that are not.

    >>> from ramify.metrics import Accuracy
    >>> tally = Tally.of([[1, 1], [1, 1], [1, 0], [0, 0], [1, 0]])
    >>> found = summarise(tally, ["easy", "easy", "easy", "hard", "hard"], Accuracy(), Key("doc", "", 0), 500)
    >>> round(found.micro.value, 3), round(found.macro.value, 3)
    (0.6, 0.542)
    """
    labels = np.asarray(groups)
    require(
        labels.shape == (tally.questions,), "groups", labels.shape, f"name the group of {tally.questions} questions"
    )
    require(0 < level < 1, "level", level, "use a coverage in (0, 1)")
    k = int(getattr(functional, "k", 1))
    enough = tally.graded >= k
    names, sizes = np.unique(labels[enough], return_counts=True)
    lost = sorted(set(labels.tolist()) - set(names[sizes >= 2].tolist()))
    require(not lost, "groups", lost[:3], f"a group needs two questions with at least k = {k} graded candidates")
    layout, kept, rng = Layout.of(tally.take(enough)), labels[enough], generator(key)
    observed, drawn, pooled = [], [], np.zeros((replicates, layout.width))
    for name in names:
        counts = np.bincount(layout.code[kept == name], minlength=layout.width)
        again = rng.multinomial(int(counts.sum()), counts / counts.sum(), size=replicates).astype(np.float64)
        pooled += again
        observed.append(float(functional(layout.profile(counts.astype(np.float64)))))
        drawn.append(functional(layout.profile(again)))
    whole = float(functional(layout.profile(np.bincount(layout.code, minlength=layout.width).astype(np.float64))))
    notes = [
        "percentile",
        "within groups",
        tally.remark,
        f"{int((~enough).sum())} questions left out" if not enough.all() else "",
    ]
    note = "; ".join(part for part in notes if part)

    def estimate(value: float, values: Array) -> Estimate:
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return Estimate(value, float(low), float(high), level, ("questions",), note)

    return GroupSummary(
        names=tuple(str(name) for name in names),
        questions=tuple(int(size) for size in sizes),
        values=tuple(estimate(*pair) for pair in zip(observed, drawn, strict=True)),
        micro=estimate(whole, functional(layout.profile(pooled))),
        macro=estimate(float(np.mean(observed)), np.mean(drawn, axis=0)),
        heterogeneity=heterogeneity(
            np.array(observed),
            np.array([each.var(ddof=1) for each in drawn]),
            permuted(layout, np.searchsorted(names, kept), functional, key._replace(stream=f"{key.stream}/permuted")),
        ),
    )


def heterogeneity(values: Array, variances: Array, p: float = np.nan) -> Heterogeneity:
    """The heterogeneity of estimates ``[G]`` with known variances ``[G]``: NaN but for p where one has no variance.

    >>> round(heterogeneity(np.array([0.2, 0.4, 0.6]), np.full(3, 0.01)).q, 6)
    8.0
    """
    spread = float(values.max() - values.min())
    if not (variances > 0).all():
        return Heterogeneity(np.nan, p, np.nan, np.nan, spread)
    w, x = 1 / variances, values
    q = float((w * (x - (w * x).sum() / w.sum()) ** 2).sum())
    free = len(x) - 1
    between = max(0.0, (q - free) / (w.sum() - (w**2).sum() / w.sum())) if free else 0.0
    share = max(0.0, (q - free) / q) if q > 0 else 0.0
    return Heterogeneity(q, p, float(between), share, spread)


def permuted(
    layout: Layout, groups: Array, functional: Functional, key: Key, permutations: int = PERMUTATIONS
) -> float:
    """P(Σ_g n_g (value_g - value)² is at least what it is), labels ``groups [Q]`` permuted over the questions.

    The labels as they are count among the permutations, so p is never 0 and the test never too eager.
    """
    rng, sizes = generator(key), np.bincount(groups)
    cells = len(sizes) * layout.width
    whole = functional(layout.profile(np.bincount(layout.code, minlength=layout.width).astype(np.float64)))

    def between(labels: Array) -> Array:
        """[r] of labels ``[r, Q]``."""
        place = np.arange(len(labels))[:, None] * cells + labels * layout.width + layout.code
        counts = np.bincount(place.reshape(-1), minlength=len(labels) * cells).astype(np.float64)
        values = functional(layout.profile(counts.reshape(len(labels), len(sizes), layout.width)))
        return (sizes * (values - whole) ** 2).sum(axis=-1)

    seen, step, more = float(between(groups[None])[0]), max(1, BLOCK // max(cells, len(groups))), 0
    for first in range(0, permutations, step):
        rows = min(step, permutations - first)
        again = between(rng.permuted(np.broadcast_to(groups, (rows, len(groups))), axis=1))
        more += int((again >= seen * (1 - 1e-9)).sum())  # equal sums may differ in their last digits
    return (1 + more) / (1 + permutations)

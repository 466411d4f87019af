"""What stops are made of: the counts of the answers, for all prefixes of all questions at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ramify.arrays import Array, appearance
from ramify.bank import Candidates, Verdict
from ramify.types import Key

__all__ = ["Stop", "Stream", "verdicts"]

Stop: TypeAlias = Callable[[Candidates, Key | None], Verdict]
"""Sees the revealed candidates and its own random stream. ``Verdict.stop[..., n - 1]`` is whether to stop after n."""

CELLS = 1 << 21  # rows x N x N worked on at a time


@dataclasses.dataclass(frozen=True, eq=False)
class Stream:
    """Answers in the order they were revealed. Column n - 1 of every property describes the first n.

    Answers are labelled 0, 1, ... in order of first appearance, so the first of several maxima is the earliest. ⊥ and
    candidates that are not eligible are label -1, and count as nothing.
    """

    label: Array  # [r, N]
    occurrence: Array  # [r, N] this is the how-manieth of its answer; 0 for label -1
    drawn: Array  # [r, N]

    @property
    def revealed(self) -> Array:
        """[r, N] candidates drawn, valid or not."""
        return np.cumsum(self.drawn, axis=-1)

    @property
    def n(self) -> Array:
        """[r, N] valid answers."""
        return np.cumsum(self.label >= 0, axis=-1)

    @property
    def distinct(self) -> Array:
        """[r, N] m, the number of distinct answers."""
        return np.cumsum(self.occurrence == 1, axis=-1)

    @property
    def first(self) -> Array:
        """[r, N] v1, the count of the leader."""
        return np.maximum.accumulate(self.occurrence, axis=-1)

    def counts(self, extra: int = 0) -> Array:
        """[r, N, A] by label, and ``extra`` labels that nobody has drawn."""
        return np.cumsum(self.members(extra), axis=-2, dtype=np.int32)

    def members(self, extra: int = 0) -> Array:
        """[r, N, A] whether the candidate gave this answer."""
        return self.label[..., None] == np.arange(self.label.max(initial=-1) + 1 + extra)

    def leaders(self) -> tuple[Array, Array]:
        """[r, N] the labels of leader and runner-up, ties to the earliest; -1 where there is none."""
        counts = self.counts(extra=1)
        first = np.argmax(counts, axis=-1)
        np.put_along_axis(counts, first[..., None], 0, axis=-1)
        second, m = np.argmax(counts, axis=-1), self.distinct
        return np.where(m > 0, first, -1), np.where(m > 1, second, -1)

    @property
    def second(self) -> Array:
        """[r, N] v2, the count of the runner-up."""
        out, (rows, size) = np.empty_like(self.occurrence), self.label.shape
        lead, first, second = np.full(rows, -1), np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
        for i in range(size):  # a loop over prefixes costs less than the N x A counts at each of them
            label, count = self.label[:, i], self.occurrence[:, i]
            rival, ahead = (label != lead) & (label >= 0), count > first
            second = np.where(rival, np.where(ahead, first, np.maximum(second, count)), second)
            lead, first = np.where(ahead, label, lead), np.maximum(first, count)
            out[:, i] = second
        return out

    def histogram(self) -> Array:
        """[r, N, C] how many answers have been given exactly c times, c = 0, 1, ...; place 0 stays 0."""
        times = np.arange(self.occurrence.max(initial=0) + 1)
        gained = self.occurrence[..., None] == times
        lost = (self.occurrence[..., None] - 1 == times) & (self.occurrence[..., None] > 0)
        held = np.cumsum(gained.astype(np.int32) - lost, axis=-2)
        held[..., 0] = 0
        return held


def verdicts(candidates: Candidates, rule: Callable[..., tuple[Array, Array]], *evidence: Array) -> Verdict:
    """A rule on ``Stream [r, N]`` (and evidence ``[r, N]``) over any leading axes, some rows at a time.

    A candidate without a piece of the evidence counts as nothing.
    """
    shape = candidates.answers.shape
    if not candidates.answers.size:
        return Verdict(np.zeros(shape, dtype=bool), np.zeros(shape))
    known = np.logical_and.reduce([~np.isnan(each) for each in evidence]) if evidence else np.True_
    rows = [each.reshape(-1, shape[-1]) for each in (candidates.answers, candidates.eligible & known, candidates.drawn)]
    label, occurrence = appearance(rows[0], rows[1])
    extra = [each.reshape(-1, shape[-1]) for each in evidence]
    stop, value = np.zeros(rows[0].shape, dtype=bool), np.zeros(rows[0].shape)
    size = max(1, CELLS // max(1, shape[-1] ** 2))
    for i in range(0, len(label), size):
        part = slice(i, i + size)
        stream = Stream(label[part], occurrence[part], rows[2][part])
        stop[part], value[part] = rule(stream, *(each[part] for each in extra))
    return Verdict(stop.reshape(shape), value.reshape(shape))

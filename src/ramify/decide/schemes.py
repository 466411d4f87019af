"""The six ways in which the rules that ``replay`` knows read a bank, on all orders of one question together.

Candidates or positions are rows, orders are columns, so NumPy works along whole rows. ``compile`` hands the same work
to numba's kernels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.decide.order import EXACT
from ramify.decide.votes import softened

__all__ = ["Best", "Filter", "Means", "Orders", "Ranks", "Scheme", "Softened", "Sums"]


class Orders:
    """The orders of one question, with rows for positions (``at [N, R]``) or for candidates (``place [N, R]``)."""

    def __init__(self, orders: Array, codes: Array) -> None:
        self.at = np.ascontiguousarray(orders.T)  # [N, R] the candidate at each position
        self.size, self.count = self.at.shape
        self.columns = np.arange(self.count)
        self.rows = np.argsort(codes, kind="stable")  # candidates by group, ⊥ first
        groups, starts = np.unique(codes[self.rows], return_index=True)
        ends = [*starts[1:], self.size]
        self.bounds = [(a, b) for g, a, b in zip(groups, starts, ends, strict=True) if g >= 0]
        _, dense = np.unique(codes, return_inverse=True)
        self.group = dense - (len(groups) - len(self.bounds))  # -1 for ⊥

    @cached_property
    def place(self) -> Array:
        """``[N, R]`` the position of every candidate, candidates in the order of ``rows``."""
        inverse = np.empty(self.size, dtype=np.int64)
        inverse[self.rows] = np.arange(self.size) * self.count
        found = np.empty(self.size * self.count, dtype=np.uint8)
        where = inverse[self.at] + self.columns
        found[where.ravel()] = np.repeat(np.arange(self.size, dtype=np.uint8), self.count)
        return found.reshape(self.size, self.count)

    def by_group(self, values: Array, reduce: Any, dtype: Any) -> Array:
        """``[K, R]`` a reduction over the candidates of every group, ``values`` in the order of ``rows``."""
        out = np.empty((len(self.bounds), self.count), dtype=dtype)
        for k, (a, b) in enumerate(self.bounds):
            reduce.reduce(values[a:b], axis=0, dtype=dtype, out=out[k])
        return out

    def pooled(self, values: Array, index: Array, member: Array | None = None) -> Array:
        """``[K, R]`` Σ over the members of every group of ``values[index]``, ``index [N]`` in the order of ``rows``."""
        out = np.zeros((len(self.bounds), self.count))
        for k, (a, b) in enumerate(self.bounds):
            for row in range(a, b):
                out[k] += values[index[row]] if member is None else values[index[row]] * member[row]
        return out

    @cached_property
    def first(self) -> Array:
        """``[K, R]`` the position of the first member of every group."""
        return self.by_group(self.place, np.minimum, np.uint8)

    @cached_property
    def slot(self) -> Array:
        """``[N, R]`` a flat place in ``[K + 1, R]`` for the candidate at every position; ⊥ has the last row."""
        group = np.where(self.group < 0, len(self.bounds), self.group)
        return (group * self.count)[self.at] + self.columns

    def most(self, count: Array, first: Array) -> Array:
        """``[R]`` the candidate at the first position among the largest groups: one key holds count and position."""
        key = (count.astype(np.uint16) << 8 | (255 - first)).max(axis=0, initial=0)
        return self.candidate(np.where(key < 256, 255, 255 - (key & 255)))

    def winner(self, key: Array, first: Array, seen: Array) -> Array:
        """``[R]`` the candidate at the first position among the groups with the largest key, -1 where none was seen."""
        best = np.where(seen, key, -np.inf).max(axis=0, initial=-np.inf)
        return self.candidate(np.where(seen & (key == best), first, 255).min(axis=0, initial=255))

    def candidate(self, position: Array) -> Array:
        """``[R]`` who stands there; 255 is nobody."""
        found = self.at[np.minimum(position, self.size - 1), self.columns].astype(np.int64)
        return np.where(position == 255, -1, found)


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How a family of rules is replayed: ``question`` in NumPy, ``compile`` by numba. Both say what they leave."""

    codes: Array  # [Q, N], -1 for who does not take part

    def question(self, q: int, orders: Array, budgets: Sequence[int], out: Array) -> Array:
        """Fill ``out[:, :, q]``; the rows that have to be decided by the rule itself."""
        view = Orders(orders, self.codes[q])
        for k, winner in enumerate(self.winners(q, view, budgets)):
            out[:, k, q] = winner
        return np.empty(0, dtype=np.int64)

    @property
    def groups(self) -> Array:
        """``[Q, N]`` the answers of every question counted from 0; N for who does not take part."""
        out = np.full(self.codes.shape, self.codes.shape[1], dtype=np.uint8)
        for q, row in enumerate(self.codes):
            _, out[q, row >= 0] = np.unique(row[row >= 0], return_inverse=True)
        return out

    def winners(self, q: int, view: Orders, budgets: Sequence[int]) -> Iterator[Array]:
        """The winners ``[R]`` at each budget."""
        raise NotImplementedError

    def compile(self, kernels: Any, orders: Array, budgets: Array, out: Array) -> list[tuple[int, Array]]:
        """Fill ``out``; by question, the rows that have to be decided by the rule itself."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Sums(Scheme):
    """Σ of a fixed weight over the group, in order of position; without weights, counts."""

    weight: Array | None  # [Q, N]

    def winners(self, q: int, view: Orders, budgets: Sequence[int]) -> Iterator[Array]:
        if self.weight is None:
            for b in budgets:
                yield view.most(view.by_group((view.place < b).view(np.uint8), np.add, np.uint8), view.first)
            return
        sums, start = np.zeros((len(view.bounds) + 1) * view.count), 0
        earned = self.weight[q][view.at]
        for b in budgets:
            np.add.at(sums, view.slot[start:b].ravel(), earned[start:b].ravel())
            yield view.winner(sums.reshape(-1, view.count)[:-1], view.first, view.first < b)
            start = b

    def compile(self, kernels: Any, orders: Array, budgets: Array, out: Array) -> list[tuple[int, Array]]:
        if self.weight is None:
            kernels.counts(orders, self.groups, budgets, out)
        else:
            kernels.sums(orders, self.groups, self.weight, budgets, out)
        return []


@dataclasses.dataclass(frozen=True)
class Means(Scheme):
    """The mean weight of the group, about its first member's."""

    weight: Array  # [Q, N]

    def winners(self, q: int, view: Orders, budgets: Sequence[int]) -> Iterator[Array]:
        sums = np.zeros((len(view.bounds) + 1) * view.count)
        base = np.zeros((len(view.bounds) + 1, view.count))
        base[:-1] = self.weight[q][view.candidate(np.minimum(view.first, view.size - 1))] if len(base) > 1 else 0.0
        earned, own = self.weight[q][view.at], base.ravel()[view.slot]
        off = np.where(earned != own, earned - np.where(np.isfinite(own), own, 0.0), 0.0)
        start = 0
        for b in budgets:
            np.add.at(sums, view.slot[start:b].ravel(), off[start:b].ravel())
            count = np.maximum(view.by_group((view.place < b).view(np.uint8), np.add, np.uint8), 1)
            yield view.winner(base[:-1] + sums.reshape(base.shape)[:-1] / count, view.first, view.first < b)
            start = b

    def compile(self, kernels: Any, orders: Array, budgets: Array, out: Array) -> list[tuple[int, Array]]:
        kernels.means(orders, self.groups, self.weight, budgets, out)
        return []


@dataclasses.dataclass(frozen=True)
class Softened(Scheme):
    """exp((s - max s) / T), the maximum being the prefix's: looked up in a table of all pairs of scores."""

    score: Array  # [Q, N]
    level: Array  # [Q, N]
    temperature: float

    def table(self, q: int) -> Array:
        """``[N, L]`` the weight of every candidate when the best score of the prefix has that level; at least one."""
        valid, level = self.codes[q] >= 0, self.level[q]
        ranks = np.arange(max(int(level[valid].max(initial=0)) + 1, 1))[:, None]
        rows = np.broadcast_to(np.where(valid, self.score[q], -np.inf), (len(ranks), valid.size))
        return np.ascontiguousarray(softened(rows, valid & (level >= ranks), self.temperature).T)

    def winners(self, q: int, view: Orders, budgets: Sequence[int]) -> Iterator[Array]:
        table = self.table(q)
        width = table.shape[1]
        level = np.where(self.codes[q] < 0, width - 1, self.level[q])
        best = np.full(view.count, width - 1)
        base, flat, start = (np.arange(view.size) * width)[view.at], table.ravel(), 0
        for b in budgets:
            best = np.minimum(best, level[view.at[start:b]].min(axis=0))
            sums = np.zeros((len(view.bounds) + 1) * view.count)
            np.add.at(sums, view.slot[:b].ravel(), flat[base[:b] + best].ravel())
            yield view.winner(sums.reshape(-1, view.count)[:-1], view.first, view.first < b)
            start = b

    def compile(self, kernels: Any, orders: Array, budgets: Array, out: Array) -> list[tuple[int, Array]]:
        n = self.codes.shape[1]
        tables = np.zeros((len(self.codes), n, n))
        for q in range(len(self.codes)):
            table = self.table(q)
            tables[q, : table.shape[1]] = table.T  # the weights at one best level lie together
        kernels.softened(orders, self.groups, self.level.astype(np.uint8), tables, budgets, out)
        return []


def counted(view: Orders, level: Array, member: Array, order: Array) -> Array:
    """``[L + 1, R]`` how many members stand on better levels; the last row counts all. ``order``: who takes part."""
    ranks = level[order].tolist()
    out = np.zeros((max(ranks, default=-1) + 2, view.count), dtype=np.uint8)
    for row, c in zip(order, ranks, strict=True):
        out[c + 1] += member[row]
    for c in range(1, len(out)):
        out[c] += out[c - 1]
    return out


@dataclasses.dataclass(frozen=True)
class Ranks(Scheme):
    """What the ranks of the group's members earn: differences of a running table, shared among equals or not."""

    level: Array  # [Q, N]
    table: Array  # [N + 1, N + 1] of order.running_table
    share: bool

    def question(self, q: int, orders: Array, budgets: Sequence[int], out: Array) -> Array:
        view = Orders(orders, self.codes[q])
        codes, level = self.codes[q][view.rows], self.level[q][view.rows]
        mine = np.flatnonzero(codes >= 0)
        tied = len(np.unique(level[mine])) < mine.size
        ahead = before(view, codes, level) if tied and not self.share else None
        again = np.zeros(view.count, dtype=bool)
        for k, b in enumerate(budgets):
            member = view.place < b
            above = counted(view, level, member.view(np.uint8), mine)  # [L + 1, R]
            n = above[-1].astype(np.int64)
            if not tied:
                sums = view.pooled(self.gains(above, n), level)
            elif ahead is None:
                each, exact = self.shared(above, n)
                sums = view.pooled(each, level, member)
                close = (view.first < b) & (sums >= sums.max(axis=0, initial=0.0) * (1 - 1e-12))
                again |= ~exact & (np.count_nonzero(close, axis=0) > 1)
            else:
                start = np.minimum(above[level] + ahead, np.maximum(n - 1, 0))
                each = self.look(start, n) - self.look(start + (n > 0), n)
                sums = view.pooled(each, np.arange(view.size), member)
            out[:, k, q] = view.winner(sums, view.first, view.first < b)
        return np.flatnonzero(again)

    def look(self, above: Array, n: Array) -> Array:
        """T(n - above), elementwise."""
        return self.table.ravel()[n * (self.table.shape[1] + 1) - above]

    def gains(self, above: Array, n: Array) -> Array:
        """``[L, R]`` what a level earns: nothing where it has no member."""
        values = self.look(above, n)
        return values[:-1] - values[1:]

    def shared(self, above: Array, n: Array) -> tuple[Array, Array]:
        """``[L, R]`` what each member of a level earns: in integers for ``[R]`` exact columns, else in fractions."""
        gain, size = self.gains(above, n), np.maximum(above[1:] - above[:-1], 1).astype(np.int64)
        many = size[(size > 1).any(axis=1)]
        scale = np.lcm.reduce(many, axis=0, initial=1)
        exact = scale < self.limits[n]
        return np.where(exact, gain * (np.where(exact, scale, 1) // size), gain / size), exact

    @cached_property
    def limits(self) -> Array:
        """``[N + 1]`` what the integers of n candidates can be multiplied by and still be exact in float64."""
        return EXACT // np.maximum(np.diagonal(self.table), 1)

    def compile(self, kernels: Any, orders: Array, budgets: Array, out: Array) -> list[tuple[int, Array]]:
        again = np.zeros((len(self.codes), len(orders)), dtype=np.bool_)
        table, size = self.table.astype(np.float64), self.table.shape[1]
        n, rank = np.arange(size)[:, None], np.arange(size - 1)
        gains = np.where(rank < n, table[n, np.maximum(n - rank, 0)] - table[n, np.maximum(n - rank - 1, 0)], 0.0)
        level = self.level.astype(np.uint8)
        kernels.ranks(orders, self.groups, level, table, gains, self.share, self.limits, budgets, out, again)
        return [(q, np.flatnonzero(rows)) for q, rows in enumerate(again) if rows.any()]


def before(view: Orders, codes: Array, level: Array) -> Array:
    """``[N, R]`` how many candidates of the same level come earlier: they are in every prefix that has this one."""
    out = np.zeros(view.place.shape, dtype=np.uint8)
    for c in np.unique(level[codes >= 0]):
        rows = np.flatnonzero((codes >= 0) & (level == c))
        for i in rows:
            for j in rows:
                if i != j:
                    out[i] += view.place[j] < view.place[i]
    return out


@dataclasses.dataclass(frozen=True)
class Filter(Scheme):
    """The best of the prefix by level, then counts or sums of weights."""

    level: Array  # [Q, N]
    sizes: Array  # [N + 1] how many of n are kept
    weight: Array | None  # [Q, N]
    share: bool

    def winners(self, q: int, view: Orders, budgets: Sequence[int]) -> Iterator[Array]:
        level = np.where(self.codes[q] < 0, 255, self.level[q]).astype(np.uint8)
        mine = level[view.rows]
        takes_part = np.flatnonzero(mine < 255)
        earned, levels = None if self.weight is None else self.weight[q][view.at], level[view.at]
        for b in budgets:
            above = counted(view, mine, (view.place < b).view(np.uint8), takes_part)  # [L + 1, R]
            size = self.sizes.astype(np.uint8)[above[-1]]
            bound = ((above[:-1] < size) & (above[:-1] < above[-1])).sum(axis=0, dtype=np.uint8)  # levels that are kept
            kept, inside = (view.place < b) & (mine[:, None] < bound), levels[:b] < bound
            if not self.share:
                worst = np.maximum(bound, 1) - 1
                last = self.last(view, mine, above, size, worst, b)
                kept &= (mine[:, None] < worst) | (view.place <= last)
                inside &= (levels[:b] < worst) | (np.arange(b, dtype=np.uint8)[:, None] <= last)
            first = view.by_group(np.where(kept, view.place, np.uint8(255)), np.minimum, np.uint8)
            if earned is None:
                yield view.most(view.by_group(kept.view(np.uint8), np.add, np.uint8), first)
                continue
            sums = np.zeros((len(view.bounds) + 1) * view.count)
            np.add.at(sums, view.slot[:b].ravel(), (earned[:b] * inside).ravel())
            yield view.winner(sums.reshape(-1, view.count)[:-1], first, first < 255)

    def last(self, view: Orders, level: Array, above: Array, size: Array, worst: Array, b: int) -> Array:
        """``[R]`` the last position that is kept in the worst level that is kept."""
        room = (size - above[worst, view.columns]).astype(np.int64)  # how many of that level are kept
        ordered = np.sort(np.where((level[:, None] == worst) & (view.place < b), view.place, np.uint8(255)), axis=0)
        return ordered[np.clip(room - 1, 0, view.size - 1), view.columns]

    def compile(self, kernels: Any, orders: Array, budgets: Array, out: Array) -> list[tuple[int, Array]]:
        weight = np.ones(self.codes.shape) if self.weight is None else self.weight
        level = np.where(self.codes < 0, 255, self.level).astype(np.uint8)
        counting = self.weight is None
        kernels.filtered(orders, self.groups, level, self.sizes, weight, counting, self.share, budgets, out)
        return []


@dataclasses.dataclass(frozen=True)
class Best(Scheme):
    """The best level, and of it the first position."""

    level: Array  # [Q, N]

    def winners(self, q: int, view: Orders, budgets: Sequence[int]) -> Iterator[Array]:
        level = np.where(self.codes[q] < 0, 255, self.level[q]).astype(np.uint16) << 8
        key = level[view.at] | np.arange(view.size, dtype=np.uint16)[:, None]
        best, start = np.full(view.count, 0xFFFF, dtype=np.uint16), 0
        for b in budgets:
            best = np.minimum(best, key[start:b].min(axis=0))
            yield view.candidate(np.where(best >= 0xFF00, 255, best & 255))
            start = b

    def compile(self, kernels: Any, orders: Array, budgets: Array, out: Array) -> list[tuple[int, Array]]:
        kernels.best(orders, self.groups, self.level.astype(np.uint8), budgets, out)
        return []

"""The schemes of ``replay`` compiled by numba: the same winners, one order after another.

``groups [Q, N]`` numbers the answers of each question from 0; whoever does not take part has the group N, a slot that
is written and never read. That, and minima instead of questions, keeps the loops free of branches nobody can predict.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["best", "counts", "filtered", "means", "ranks", "softened", "sums"]

NONE = 255  # the position of nobody


@numba.njit(cache=True)
def _leader(total, first, size):
    """The position of the first member of the group with the largest total, the earliest of equals."""
    high, at = -np.inf, NONE
    for g in range(size):
        if first[g] < NONE and (at == NONE or total[g] > high or (total[g] == high and first[g] < at)):
            high, at = total[g], first[g]
    return at


@numba.njit(cache=True)
def _sizes(groups):
    """How many groups each question has."""
    size = np.zeros(groups.shape[0], np.int64)
    for q in range(groups.shape[0]):
        for i in range(groups.shape[1]):
            if groups[q, i] < groups.shape[1]:
                size[q] = max(size[q], groups[q, i] + 1)
    return size


@numba.njit(cache=True)
def counts(orders, groups, budgets, out):
    n, sizes = groups.shape[1], _sizes(groups)
    number, first = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for r in range(orders.shape[0]):
        for q in range(groups.shape[0]):
            number[: sizes[q]], first[: sizes[q]] = 0, NONE
            start, lead = 0, 0
            for k in range(budgets.size):
                for j in range(start, budgets[k]):
                    g = groups[q, orders[r, q, j]]
                    number[g] += 1
                    first[g] = min(first[g], j)
                    # Count before position: the largest key is the leading group's, the earliest of equals.
                    lead = max(lead, (number[g] << 8) + NONE - first[g] if g < n else 0)
                start = budgets[k]
                out[r, k, q] = orders[r, q, NONE - (lead & NONE)] if lead else -1


@numba.njit(cache=True)
def sums(orders, groups, weight, budgets, out):
    n, sizes = groups.shape[1], _sizes(groups)
    total, first = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    for r in range(orders.shape[0]):
        for q in range(groups.shape[0]):
            total[: sizes[q]], first[: sizes[q]] = 0.0, NONE
            start = 0
            for k in range(budgets.size):
                for j in range(start, budgets[k]):
                    i = orders[r, q, j]
                    g = groups[q, i]
                    total[g] += weight[q, i]
                    first[g] = min(first[g], j)
                start = budgets[k]
                at = _leader(total, first, sizes[q])
                out[r, k, q] = orders[r, q, at] if at < NONE else -1


@numba.njit(cache=True)
def means(orders, groups, weight, budgets, out):
    n, sizes = groups.shape[1], _sizes(groups)
    total, first, mean = np.zeros(n + 1), np.zeros(n + 1, np.int64), np.zeros(n + 1)
    number, base = np.zeros(n + 1), np.zeros(n + 1)
    finite = np.isfinite(weight).all()
    for r in range(orders.shape[0]):
        for q in range(groups.shape[0]):
            size = sizes[q]
            total[:size], first[:size], number[:size], base[:size] = 0.0, NONE, 0.0, 0.0
            start = 0
            for k in range(budgets.size):
                for j in range(start, budgets[k]):
                    i = orders[r, q, j]
                    g, w = groups[q, i], weight[q, i]
                    base[g] = w if first[g] == NONE else base[g]
                    first[g] = min(first[g], j)
                    number[g] += 1
                    if finite:
                        total[g] += w - base[g]
                    elif w != base[g]:
                        total[g] += w - (base[g] if np.isfinite(base[g]) else 0.0)
                start = budgets[k]
                for g in range(size):
                    mean[g] = base[g] + total[g] / max(number[g], 1.0)
                at = _leader(mean, first, size)
                out[r, k, q] = orders[r, q, at] if at < NONE else -1


@numba.njit(cache=True)
def softened(orders, groups, level, table, budgets, out):
    n, sizes = groups.shape[1], _sizes(groups)
    total, first = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    for q in range(groups.shape[0]):
        for r in range(orders.shape[0]):
            top, start = n, 0
            first[: sizes[q]] = NONE
            for k in range(budgets.size):
                b = budgets[k]
                for j in range(start, b):
                    i = orders[r, q, j]
                    top = min(top, level[q, i] if groups[q, i] < n else n)
                    first[groups[q, i]] = min(first[groups[q, i]], j)
                start = b
                total[: sizes[q]] = 0.0
                for j in range(b if top < n else 0):
                    i = orders[r, q, j]
                    total[groups[q, i]] += table[q, top, i]
                at = _leader(total, first, sizes[q])
                out[r, k, q] = orders[r, q, at] if at < NONE else -1


@numba.njit(cache=True)
def _by_level(level, groups):
    """The candidates that take part, best level first."""
    n = groups.size
    starts = np.zeros(n + 1, np.int64)
    for i in range(n):
        if groups[i] < n:
            starts[level[i] + 1] += 1
    for c in range(n):
        starts[c + 1] += starts[c]
    order = np.zeros(starts[n], np.uint8)
    for i in range(n):
        if groups[i] < n:
            order[starts[level[i]]] = i
            starts[level[i]] += 1
    return order


@numba.njit(cache=True)
def _members(chain, count, place, b):
    """Those of the first ``count`` of the chain that stand before b, moved to its front; how many."""
    m = 0
    for t in range(count):
        x = chain[t]
        chain[m] = x
        m += place[x] < b
    return m


@numba.njit(cache=True)
def _by_place(chain, t, e, place):
    """Sort ``chain[t:e]``, a level, by position; insertion, for they are few."""
    for a in range(t + 1, e):
        x, b = chain[a], a - 1
        while b >= t and place[chain[b]] > place[x]:
            chain[b + 1] = chain[b]
            b -= 1
        chain[b + 1] = x


@numba.njit(cache=True)
def _end(chain, t, count, level):
    """Where the level that starts at t ends."""
    e = t + 1
    while e < count and level[chain[e]] == level[chain[t]]:
        e += 1
    return e


@numba.njit(cache=True)
def _scale(chain, count, level, limit):
    """The least common multiple of the sizes of the levels, 0 from ``limit`` on."""
    scale, t = 1, 0
    while t < count:
        e = _end(chain, t, count, level)
        a, b = scale, e - t
        while b:
            a, b = b, a % b
        scale = scale // a * (e - t)
        if scale >= limit:
            return 0
        t = e
    return scale


@numba.njit(cache=True)
def _shared(chain, count, place, groups, level, table, scale, total, first):
    """Add what each level earns to the groups of its members, who share it; ``scale`` 0 shares in fractions."""
    t = 0
    while t < count:
        e = _end(chain, t, count, level)
        gain = table[count, count - t] - table[count, count - e]
        each = gain * (scale // (e - t)) if scale else gain / (e - t)
        for s in range(t, e):
            g = groups[chain[s]]
            total[g] += each
            first[g] = min(first[g], place[chain[s]])
        t = e


@numba.njit(cache=True)
def ranks(orders, groups, level, table, gains, share, limits, budgets, out, again):
    n, sizes = groups.shape[1], _sizes(groups)
    total, first = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    place, chain = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    for q in range(groups.shape[0]):
        ordered, size = _by_level(level[q], groups[q]), sizes[q]
        tied = ordered.size > 0 and level[q, ordered[-1]] + 1 < ordered.size
        for r in range(orders.shape[0]):
            for j in range(n):
                place[orders[r, q, j]] = j
            count = ordered.size
            chain[:count] = ordered
            for k in range(budgets.size - 1, -1, -1):  # from the largest budget down: the next one's members are here
                count = _members(chain, count, place, budgets[k])
                total[:size], first[:size] = 0.0, NONE
                scale = 1
                if tied and share:
                    scale = _scale(chain, count, level[q], limits[count])
                    _shared(chain, count, place, groups[q], level[q], table, scale, total, first)
                else:
                    t = 0
                    while tied and t < count:
                        e = _end(chain, t, count, level[q])
                        _by_place(chain, t, e, place)
                        t = e
                    for s in range(count):
                        g = groups[q, chain[s]]
                        total[g] += gains[count, s]
                        first[g] = min(first[g], place[chain[s]])
                at = _leader(total, first, size)
                out[r, k, q] = orders[r, q, at] if at < NONE else -1
                if scale == 0:  # fractions in floating point: where two sums are this close only the rule is exact
                    high = total[groups[q, orders[r, q, at]]] * (1 - 1e-12)
                    for g in range(size):
                        again[q, r] |= first[g] < NONE and first[g] != at and total[g] >= high


@numba.njit(cache=True)
def filtered(orders, groups, level, keep, weight, counting, share, budgets, out):
    n, sizes = groups.shape[1], _sizes(groups)
    total, first = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    place, chain, chosen = np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n + 1, np.uint8)
    for q in range(groups.shape[0]):
        ordered, size = _by_level(level[q], groups[q]), sizes[q]
        for r in range(orders.shape[0]):
            for j in range(n):
                place[orders[r, q, j]] = j
            count = ordered.size
            chain[:count] = ordered
            for k in range(budgets.size - 1, -1, -1):
                b = budgets[k]
                count = _members(chain, count, place, b)
                cut, last = min(keep[count], count), n
                if 0 < cut < count and level[q, chain[cut]] == level[q, chain[cut - 1]]:  # the cut falls into a level
                    t = cut - 1
                    while t > 0 and level[q, chain[t - 1]] == level[q, chain[t]]:
                        t -= 1
                    e = _end(chain, t, count, level[q])
                    if share:
                        cut = e
                    else:
                        _by_place(chain, t, e, place)
                        last = place[chain[cut - 1]]
                total[:size], first[:size] = 0.0, NONE
                if counting:
                    for t in range(cut):
                        g = groups[q, chain[t]]
                        total[g] += 1.0
                        first[g] = min(first[g], place[chain[t]])
                elif cut:
                    worst = (np.int64(level[q, chain[cut - 1]]) << 8) + last
                    m = 0
                    for j in range(b):
                        chosen[m] = j
                        m += (np.int64(level[q, orders[r, q, j]]) << 8) + j <= worst
                    for s in range(m):  # weights are summed in the order of positions, as the rule does
                        i = orders[r, q, chosen[s]]
                        g = groups[q, i]
                        total[g] += weight[q, i]
                        first[g] = min(first[g], chosen[s])
                at = _leader(total, first, size)
                out[r, k, q] = orders[r, q, at] if at < NONE else -1


@numba.njit(cache=True)
def best(orders, groups, level, budgets, out):
    n = groups.shape[1]
    for r in range(orders.shape[0]):
        for q in range(groups.shape[0]):
            start, top = 0, np.int64(n << 8)
            for k in range(budgets.size):
                for j in range(start, budgets[k]):
                    i = orders[r, q, j]
                    top = min(top, ((level[q, i] if groups[q, i] < n else n) << 8) + j)
                start = budgets[k]
                out[r, k, q] = orders[r, q, top & NONE] if top < n << 8 else -1

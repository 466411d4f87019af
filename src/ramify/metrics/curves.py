"""Scaling curves G(B): utility against what it cost, in total and by component; and who should get the candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank
from ramify.errors import require
from ramify.metrics.bankcurve import BankCurve, floats, mean_in, over_questions
from ramify.metrics.estimate import Estimate

__all__ = ["Allocation", "CostCurve", "allocate", "bank_costs", "end_to_end", "of_allocation", "on_bank"]

COMPONENTS = ("generate", "signal", "control", "decide")


@dataclass(frozen=True, slots=True, eq=False)
class CostCurve:
    """Utility and cost of the same questions at B settings of a protocol. Settings are points, not a fitted line.

    ``kind`` is "end to end" (each setting ran and was charged) or "shared bank" (a rule on subsets of stored
    candidates, whose generation was paid for once: it compares rules and claims no savings).
    """

    settings: tuple[str, ...]  # [B]
    utility: Array  # [Q, B], NaN left out
    cost: Mapping[str, Array]  # component -> [Q, B], in one declared unit
    unit: str
    kind: str

    @property
    def total(self) -> Array:
        """[Q, B] the sum of the components."""
        return np.sum([np.broadcast_to(part, self.utility.shape) for part in self.cost.values()], axis=0)

    def spent(self, component: str | None = None) -> Array:
        """[B] the mean cost, over the questions whose utility is in; of one component, or in total."""
        if component is not None:
            require(component in self.cost, "component", component, f"use one of {', '.join(self.cost)}")
        table = self.total if component is None else np.broadcast_to(self.cost[component], self.utility.shape)
        return mean_in(np.where(np.isnan(self.utility), np.nan, table))

    @property
    def gain(self) -> Array:
        """[B] the mean utility G(B)."""
        return mean_in(self.utility)

    def estimates(self, replicates: int = 2000, level: float = 0.95, run: str = "bootstrap") -> tuple[Estimate, ...]:
        """G at each setting with its prompt-bootstrap interval; settings are resampled alike."""
        return over_questions(self.utility, replicates, level, run, (0.0, 1.0))

    @property
    def frontier(self) -> Array:
        """[B] whether no other setting is at least as good for at most the same total cost, and better in one."""
        cost, gain = self.spent(), self.gain
        no_worse = (cost[None] <= cost[:, None]) & (gain[None] >= gain[:, None])
        better = (cost[None] < cost[:, None]) | (gain[None] > gain[:, None])
        return ~(no_worse & better).any(axis=1)

    def at(self, cost: float, component: str | None = None) -> float:
        """G at a cost between measured settings, by straight lines. Beyond them nothing was measured: an error."""
        spent, gain = self.spent(component), self.gain
        order = np.argsort(spent, kind="stable")
        inside = spent[order[0]] <= cost <= spent[order[-1]]
        require(inside, "cost", cost, f"it was measured from {spent[order[0]]:g} to {spent[order[-1]]:g} {self.unit}")
        return float(np.interp(cost, spent[order], gain[order]))


def end_to_end(
    utility: Mapping[str, Array], cost: Mapping[str, Mapping[str, Array]], unit: str = "tokens"
) -> CostCurve:
    """The curve of runs at several settings: utility ``[Q]`` and the ledger's components ``[Q]`` of each.

    >>> cost = {"N=1": {"generate": [10, 20]}, "N=4": {"generate": [40, 90]}}
    >>> runs = end_to_end({"N=1": [0, 1], "N=4": [1, 1]}, cost)
    >>> runs.spent().tolist(), runs.gain.tolist(), runs.at(40.0)
    ([15.0, 65.0], [0.5, 1.0], 0.75)
    """
    require(set(utility) == set(cost), "cost", sorted(cost), f"give the costs of {sorted(utility)}")
    names = tuple(utility)
    unknown = sorted({part for parts in cost.values() for part in parts} - set(COMPONENTS))
    require(not unknown, "cost", unknown, f"use the stages of the ledger: {', '.join(COMPONENTS)}")
    table = np.stack([floats(utility[name], "utility") for name in names], axis=-1)
    parts = {
        part: np.stack([np.broadcast_to(np.asarray(cost[n].get(part, 0.0), float), table.shape[:1]) for n in names], -1)
        for part in COMPONENTS
        if any(part in cost[name] for name in names)
    }
    return CostCurve(names, table, parts, unit, "end to end")


def bank_costs(bank: Bank, budgets: Array, signals: Iterable[str] = ()) -> dict[str, Array]:
    """component -> [Q, K] the expected cost of a uniform k-subset: k times the mean of its question, exactly.

    ``generate`` counts the tokens of the candidates; ``signal`` sums the cost of the layers named.
    """
    known = bank.length is not None and bool((bank.length[bank.drawn] >= 0).all())
    require(known, "bank.length", None, "this bank does not say how long its candidates are: count candidates instead")
    counts = bank.drawn.sum(axis=1)
    many = np.where(counts[:, None] >= budgets, budgets, np.nan)

    def spread(cost: Array) -> Array:
        mean = np.where(bank.drawn, cost, 0.0).sum(axis=1) / np.maximum(counts, 1)
        return many * mean[:, None]

    costs = {"generate": spread(bank.length)}
    for name in signals:
        require(name in bank.layers, "signals", name, f"the bank has {', '.join(bank.layers) or 'no layers'}")
        cost = bank.layers[name].cost
        require(cost is not None, f"layer {name!r}", None, "it does not say what it cost")
        costs["signal"] = costs.get("signal", 0.0) + spread(cost)
    return costs


def on_bank(
    curve: BankCurve, bank: Bank, *, signals: Iterable[str] = (), decide: float | Array = 0.0, unit: str = "tokens"
) -> CostCurve:
    """A rule's shared-bank curve against the cost of its subsets; ``decide [K]`` is what the decision costs at each k.

    ``unit="candidates"`` counts candidates, for banks that do not say how long theirs are.
    """
    if unit == "candidates":
        costs = {"generate": np.broadcast_to(curve.budgets.astype(float), curve.values.shape)}
    else:
        costs = bank_costs(bank, curve.budgets, signals)
    if np.any(decide):
        costs["decide"] = np.broadcast_to(np.asarray(decide, dtype=float), curve.values.shape)
    names = tuple(f"k={k}" for k in curve.budgets.tolist())
    return CostCurve(names, curve.values, costs, unit, "shared bank")


# ---------------------------------------------------------------------------------------------------------- allocation


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """N(x) under a budget. ``bound`` is what no allocation can exceed; for concave curves at equal prices it is met."""

    number: Array  # [Q]
    value: float  # the mean of the curves at ``number``
    bound: float
    spent: float


def allocate(curves: Array, budget: float, price: Array | float = 1.0, least: int = 0) -> Allocation:
    """The best numbers of candidates for curves ``[Q, K + 1]`` (value at n = 0..K), prices ``[Q]`` a candidate.

    Marginal gains in order of gain for the price: exact where every curve is concave, as Pass@k is, and prices are
    equal. Other curves are replaced by their concave hull, whose value with a last part piece is the bound.

    Handed the true curves this is the oracle allocation. A deployable one is handed curves that a difficulty estimate
    predicts, and is then judged by ``of_allocation`` on the true ones.

    >>> p = np.array([[0.9], [0.2], [0.0]])
    >>> found = allocate(1 - (1 - p) ** np.arange(6), budget=5)
    >>> found.number.tolist(), round(found.value, 4), round(found.bound, 4)
    ([1, 4, 0], 0.4968, 0.4968)
    """
    curves = floats(curves, "curves")
    prices = np.broadcast_to(np.asarray(price, dtype=float), curves.shape[:1])
    require(not np.isnan(curves).any(), "curves", "NaN", "give every question a value at every n")
    require((prices > 0).all(), "price", float(prices.min(initial=1.0)), "use prices > 0")
    floor = least * prices.sum()
    require(0 <= floor <= budget, "budget", budget, f"{least} candidates for every question cost {floor:g}")
    hull = _hull(curves, least)
    gain = np.diff(hull[:, least:], axis=1)
    rate = gain / prices[:, None]
    row, step = np.divmod(np.argsort(-rate, axis=None, kind="stable"), max(rate.shape[1], 1))  # ties: earlier n first
    useful = gain[row, step] > 0
    row, step = row[useful], step[useful]
    spent = floor + np.cumsum(prices[row])
    inside = spent <= budget * (1 + 1e-12)
    first = int(np.argmin(inside)) if not inside.all() else inside.size
    number = least + np.bincount(row[:first], minlength=len(curves))
    before = spent[first - 1] if first else floor
    part = (budget - before) * rate[row[first], step[first]] if first < row.size else 0.0
    number, before = _to_vertex(number, hull, curves, prices, before)
    relaxed = (hull[:, least].sum() + gain[row[:first], step[:first]].sum() + part) / max(len(curves), 1)
    return Allocation(number, of_allocation(curves, number), float(relaxed), float(before))


def _to_vertex(number: Array, hull: Array, curves: Array, prices: Array, spent: float) -> tuple[Array, float]:
    """Step back from the inside of a hull's edge to its last vertex, where the curve really is what the hull says."""
    on = np.isclose(hull, curves, rtol=1e-12, atol=1e-15)
    places = np.where(on, np.arange(curves.shape[1]), 0)
    back = np.maximum.accumulate(places, axis=1)[np.arange(len(number)), number]
    return back, float(spent - ((number - back) * prices).sum())


def _hull(curves: Array, least: int) -> Array:
    """[Q, K + 1] the least concave majorant from n = ``least`` on, made monotone: unused candidates may be left."""
    found = curves.copy()
    found[:, least:] = np.maximum.accumulate(curves[:, least:], axis=1)
    bends = (np.diff(found[:, least:], n=2, axis=1) > 1e-15).any(axis=1)
    for q in np.flatnonzero(bends):
        found[q, least:] = _majorant(found[q, least:])
    return found


def _majorant(values: Array) -> Array:
    stack: list[int] = []
    for n in range(len(values)):
        while len(stack) > 1:
            a, b = stack[-2:]
            if (values[b] - values[a]) * (n - a) > (values[n] - values[a]) * (b - a):
                break
            stack.pop()
        stack.append(n)
    return np.interp(np.arange(len(values)), stack, values[stack])


def of_allocation(curves: Array, number: Array) -> float:
    """The mean value of curves ``[Q, K + 1]`` at ``number [Q]`` candidates each."""
    return float(np.take_along_axis(np.asarray(curves, dtype=float), np.asarray(number)[:, None], axis=1).mean())

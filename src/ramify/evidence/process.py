"""Evidence that was attached as a layer: process rewards by step, verifier and judge scores, and P(True).

Obtaining it called a model, and was charged then; the signal's cost repeats what the layer says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from ramify.arrays import Array
from ramify.bank import Bank, Layer, Signal
from ramify.describe import method, text
from ramify.errors import InvalidValue, require
from ramify.evidence.declare import ROLES, Needs, check
from ramify.evidence.reduce import Final, Reduction

__all__ = ["PTrue", "Process", "Score", "step_layer"]


def _layer(bank: Bank, name: str, role: str, who: object) -> Layer:
    """A layer, unless it would carry a diagnostic into a deployable result."""
    layer = bank.layers[name]
    if role == "deployable" and layer.role != "deployable":
        raise InvalidValue(
            f"{text(who)}: the layer {name!r} is a diagnostic ({layer.description}); say so with "
            "role='reference-assisted' or role='exact diagnostic'"
        )
    return layer


def _cost(bank: Bank, *layers: Layer) -> Array:
    """What the layers cost to obtain; a layer that does not say was recorded with the generation."""
    return sum((layer.cost for layer in layers if layer.cost is not None), np.zeros(bank.shape))


@method
class Score:
    """A verifier's, reward model's or judge's score of each candidate, as attached; higher is better.

    ``lower_is_better`` turns a score around that was recorded the other way.
    """

    layer: str
    lower_is_better: bool = False
    role: str = "deployable"

    def __post_init__(self) -> None:
        require(self.role in ROLES, "Score.role", self.role, f"use one of {', '.join(ROLES)}")
        ok = isinstance(self.lower_is_better, bool)
        require(ok, "Score.lower_is_better", self.lower_is_better, "use True or False")

    @property
    def needs(self) -> Needs:
        return Needs(layers=(self.layer,))

    def __call__(self, bank: Bank) -> Signal:
        check(bank, self.needs, self)
        layer = _layer(bank, self.layer, self.role, self)
        values = layer.values.astype(np.float64)
        require(values.shape == bank.shape, f"layer {self.layer!r}", values.shape, "use Process for scores of steps")
        return Signal(-values if self.lower_is_better else values, _cost(bank, layer))


@method
class PTrue:
    """P(True) from the log-probabilities of the two labels that a judge was asked for (Kadavath et al., 2022).

    p = exp(true) / (exp(true) + exp(false)), or the log-odds true - false, which do not saturate. Missing where either
    is missing, or both are -inf.
    """

    true: str = "log_p_true"
    false: str = "log_p_false"
    form: str = "probability"
    role: str = "deployable"

    def __post_init__(self) -> None:
        ok = self.form in ("probability", "log odds")
        require(ok, "PTrue.form", self.form, "use 'probability' or 'log odds'")
        require(self.role in ROLES, "PTrue.role", self.role, f"use one of {', '.join(ROLES)}")

    @property
    def needs(self) -> Needs:
        return Needs(layers=(self.true, self.false))

    def __call__(self, bank: Bank) -> Signal:
        check(bank, self.needs, self)
        layers = [_layer(bank, name, self.role, self) for name in (self.true, self.false)]
        with np.errstate(invalid="ignore"):  # -inf - -inf: neither label was possible
            odds = layers[0].values.astype(np.float64) - layers[1].values
        return Signal(expit(odds) if self.form == "probability" else odds, _cost(bank, *layers))


@method
class Process:
    """Step scores of a process reward model, reduced over the steps: ``Final()``, ``Minimum()``, ``LogProduct()``, ...

    The layer is ``[Q, N, L]``, NaN after a candidate's last step. No step is missing evidence. ``steps`` names a layer
    with the number of steps that each candidate has; another number of scores is an error, as is a step without a score
    before one that has it.

    >>> bank = Bank.of({"q": ["A", "B"]})
    >>> bank = bank.attach("prm", step_layer(bank, [[[0.9, 0.8], [0.5, 0.9, 1.0]]], "PRM-7B"))
    >>> Process("prm")(bank).values.tolist()
    [[0.8, 1.0]]
    """

    layer: str
    reduction: Reduction = Final()
    steps: str = ""
    role: str = "deployable"

    def __post_init__(self) -> None:
        require(self.role in ROLES, "Process.role", self.role, f"use one of {', '.join(ROLES)}")

    @property
    def needs(self) -> Needs:
        return Needs(layers=(self.layer, self.steps) if self.steps else (self.layer,))

    def __call__(self, bank: Bank) -> Signal:
        check(bank, self.needs, self)
        layer = _layer(bank, self.layer, self.role, self)
        ok = layer.values.ndim == 3
        require(ok, f"layer {self.layer!r}", layer.values.shape, "use [Q, N, L]; scores of candidates are Score's")
        flat = layer.values.reshape(bank.answers.size, -1)  # [Q N, L]
        scored = ~np.isnan(flat)
        count = scored.sum(-1)
        wanted = np.where(scored, np.arange(1, flat.shape[1] + 1), 0).max(-1, initial=0)
        if self.steps:
            told = bank.layers[self.steps].values.reshape(-1)
            wanted = np.where(np.isnan(told), wanted, told).astype(np.int64)
        _need_equal(count, wanted, bank.shape[1])
        values = self.reduction(flat[scored], np.concatenate([[0], np.cumsum(count)]))
        return Signal(values.reshape(bank.shape), _cost(bank, layer))


def _need_equal(count: Array, wanted: Array, width: int) -> None:
    for i in np.flatnonzero(count != wanted)[:1]:
        where = f"candidate {divmod(int(i), width)}"
        raise InvalidValue(f"{where} has {count[i]} step scores and {wanted[i]} steps: score every step once")


def step_layer(bank: Bank, scores: Sequence[Sequence[Sequence[float]]], description: str, **layer: Any) -> Layer:
    """Step scores of every question and candidate as one layer ``[Q, N, L]``; candidates may have different numbers."""
    rows, width = bank.shape
    ok = len(scores) == rows and all(len(row) <= width for row in scores)
    require(ok, "scores", f"{len(scores)} questions", f"give a list a candidate for each of the {rows} questions")
    longest = max((len(steps) for row in scores for steps in row), default=0)
    values = np.full((rows, width, longest), np.nan)
    for q, row in enumerate(scores):
        for n, steps in enumerate(row):
            values[q, n, : len(steps)] = steps
    return Layer(values, description, **layer)

"""Composition: operators in sequence, gates in parallel, and declared fallbacks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ramify.arrays import Array, namespace
from ramify.decode.measure import Operator, TokenMeasure, restrict, valid_fallback
from ramify.describe import method
from ramify.errors import InvalidValue, require

__all__ = ["Chain", "Fallback", "Parallel"]


@method
class Chain:
    """Operators one after another; each sees the measure the last one left, renormalised. Order is data.

    >>> import numpy as np
    >>> measure = TokenMeasure.of(np.log([0.35, 0.25, 0.15, 0.10, 0.08, 0.07]))
    >>> from ramify.decode import TopK, TopP
    >>> int(Chain(TopK(4), TopP(0.8))(measure).support), int(Chain(TopP(0.8), TopK(4))(measure).support)
    (3, 4)
    """

    operators: tuple[Operator, ...]

    def __init__(self, *operators: Operator) -> None:
        object.__setattr__(self, "operators", operators)
        are_operators("Chain", operators)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        for operator in self.operators:
            measure = operator(measure)
        return measure


@method
class Parallel:
    """The intersection of gates that all look at one reference: the measure as it stands, or the raw model's.

    Mode-preserving heads collapse to the strictest of them. An operator that changes weights has no meaning here.
    """

    operators: tuple[Operator, ...]
    reference: str = "measure"
    fallback: str = "mode"

    def __init__(self, *operators: Operator, reference: str = "measure", fallback: str = "mode") -> None:
        object.__setattr__(self, "operators", operators)
        object.__setattr__(self, "reference", reference)
        object.__setattr__(self, "fallback", fallback)
        require(reference in ("measure", "logits"), "Parallel.reference", reference, "use 'measure' or 'logits'")
        valid_fallback("Parallel", fallback)
        are_operators("Parallel", operators)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        base = measure
        if self.reference == "logits":
            base = dataclasses.replace(measure, log_weight=measure.logits)
        live, fallback, stakes = measure.live, measure.fallback, measure.stakes
        for operator in self.operators:
            gated = operator(base)
            if gated.log_weight is not base.log_weight or gated.forced is not base.forced:
                raise InvalidValue(
                    f"{operator!r} inside Parallel: only gates go in parallel; chain weights and actions"
                )
            live, fallback = live & gated.live, fallback | gated.fallback
            stakes += gated.stakes[len(base.stakes) :]
        return restrict(dataclasses.replace(measure, fallback=fallback, stakes=stakes), live, self.fallback)


@method
class Fallback:
    """``first``, except in rows where it would fall back: there ``otherwise``, and the record says so."""

    first: Operator
    otherwise: Operator

    def __post_init__(self) -> None:
        are_operators("Fallback", self.operators)

    @property
    def operators(self) -> tuple[Operator, ...]:
        return (self.first, self.otherwise)

    def __call__(self, measure: TokenMeasure) -> TokenMeasure:
        xp = namespace(measure.live)
        tried = self.first(dataclasses.replace(measure, fallback=xp.zeros_like(measure.fallback)))
        other, fell, known = self.otherwise(measure), tried.fallback, len(measure.stakes)

        def either(yes: Array, no: Array) -> Array:
            # What neither branch changed stays the same object: a gate is known by the weights it leaves alone.
            return no if yes is no else xp.where(fell[(..., *[None] * (yes.ndim - fell.ndim))], yes, no)

        return dataclasses.replace(
            measure,
            log_weight=either(other.log_weight, tried.log_weight),
            live=either(other.live, tried.live),
            forced=either(other.forced, tried.forced),
            fallback=measure.fallback | fell,
            stakes=(
                *measure.stakes,
                *((operator, stake, rows & ~fell) for operator, stake, rows in tried.stakes[known:]),
                *((operator, stake, rows & fell) for operator, stake, rows in other.stakes[known:]),
            ),
        )


def are_operators(owner: str, operators: Sequence[object]) -> None:
    for operator in operators:
        require(callable(operator), f"{owner}.operators", operator, "use operators: functions of a measure")

"""The budget: a declared unit, a limit, and what has been spent of it by stage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple, TypeAlias

from ramify.describe import method
from ramify.errors import OverBudget, require

__all__ = [
    "Beside",
    "Calls",
    "Cost",
    "Flops",
    "Ledger",
    "Money",
    "Seconds",
    "Spent",
    "Stage",
    "Tokens",
    "Work",
    "amount",
]

Stage: TypeAlias = Literal["generate", "signal", "control", "decide"]


class Spent(NamedTuple):
    """Amounts of the ledger's unit, by the stage that caused them."""

    generate: float = 0
    signal: float = 0
    control: float = 0
    decide: float = 0

    def plus(self, stage: str, amount: float) -> Spent:
        return self._replace(**{stage: getattr(self, stage) + amount})


class Beside(NamedTuple):
    """Resources that are not commensurate with the unit: recorded, never added to it."""

    calls: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0
    evaluator_tokens: int = 0

    def plus(self, work: Work) -> Beside:
        """Amounts add; a peak is a maximum."""
        return Beside(
            calls=self.calls + work.calls,
            seconds=self.seconds + work.seconds,
            peak_bytes=max(self.peak_bytes, work.peak_bytes),
            evaluator_tokens=self.evaluator_tokens + work.evaluator_tokens,
        )


@dataclass(frozen=True, slots=True)
class Work:
    """What one operation used, or at worst could use."""

    generated: int = 0  # tokens the model was asked to produce
    prompt: int = 0  # tokens it had to read that were not already in its cache
    appended: int = 0  # control tokens the protocol wrote itself
    cached: int = 0  # tokens of its context that were in the cache already: read for nothing, attended to at a cost
    calls: int = 1
    seconds: float = 0.0
    peak_bytes: int = 0
    evaluator_tokens: int = 0

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self)):
            amount = getattr(self, name)
            require(amount >= 0 and math.isfinite(amount), f"Work.{name}", amount, "use a finite amount >= 0")


Cost: TypeAlias = Callable[[Work], float]
"""Work -> amount in the ledger's unit. Return ints or Fractions where sums have to be exact."""


@method
class Tokens:
    """One unit a token: generated and appended ones always, those read from the prompt if ``prompt``.

    >>> Tokens()(Work(generated=10, prompt=100)), Tokens(prompt=True)(Work(generated=10, prompt=100))
    (10, 110)
    """

    prompt: bool = False

    def __call__(self, work: Work) -> int:
        return work.generated + work.appended + (work.prompt if self.prompt else 0)


@method
class Calls:
    """One unit a call, whatever its length."""

    def __call__(self, work: Work) -> int:
        return work.calls


@method
class Flops:
    """2 a parameter and token, and 4 a layer, unit of width and attended position: the arithmetic of a decoder.

    Over a context of c tokens, of which ``cached`` were there before, attention sums Σ_t 4 L d t for t = cached+1..c.

    >>> Flops(parameters=1_000_000, layers=4, width=128)(Work(generated=10, prompt=90))
    210342400
    """

    parameters: int
    layers: int
    width: int

    def __call__(self, work: Work) -> int:
        fresh = work.prompt + work.appended + work.generated
        attended = fresh * work.cached + fresh * (fresh + 1) // 2
        return 2 * self.parameters * fresh + 4 * self.layers * self.width * attended


@method
class Money:
    """A price table: an amount per million tokens generated, read anew, and read from the cache."""

    generated: float
    prompt: float
    cached: float = 0.0
    call: float = 0.0  # a call

    def __call__(self, work: Work) -> float:
        tokens = (
            self.generated * work.generated + self.prompt * (work.prompt + work.appended) + self.cached * work.cached
        )
        return tokens / 1e6 + self.call * work.calls


@method
class Seconds:
    """Seconds at a declared speed. Measured ones are not known before an operation, so they are recorded beside it."""

    generated: float  # seconds a generated token
    prompt: float = 0.0  # seconds a token read

    def __call__(self, work: Work) -> float:
        return self.generated * work.generated + self.prompt * (work.prompt + work.appended)


@dataclass(frozen=True, slots=True)
class Ledger:
    """A budget that is charged by value: ``charge`` returns a new ledger and never passes the limit.

    Discarded work (cancelled, truncated away, lost in a crash) is part of what was ``spent``.

    >>> ledger = Ledger("tokens", Tokens(), limit=100)
    >>> ledger.admits(Work(generated=100)), ledger.admits(Work(generated=101))
    (True, False)
    >>> ledger = ledger.charge("generate", Work(generated=60, seconds=0.5)).charge("control", Work(appended=2))
    >>> ledger.left, ledger.spent
    (38, Spent(generate=60, signal=0, control=2, decide=0))
    """

    unit: str
    cost: Cost
    limit: float = math.inf
    spent: Spent = Spent()
    discarded: Spent = Spent()
    beside: Beside = Beside()

    def __post_init__(self) -> None:
        require(self.unit, "Ledger.unit", self.unit, "name the unit that the cost function counts in")
        require(self.limit >= 0, "Ledger.limit", self.limit, "use an amount >= 0 (math.inf for no limit)")
        require(min(self.spent) >= 0, "Ledger.spent", self.spent, "use amounts >= 0")
        require(self.total <= self.limit, "Ledger.spent", self.spent, f"spend at most the limit of {self.limit}")

    @property
    def total(self) -> float:
        """Everything spent, over all stages."""
        return sum(self.spent)

    @property
    def left(self) -> float:
        """What may still be spent."""
        return self.limit - self.total

    def admits(self, worst: Work) -> bool:
        """Whether an operation may be launched: spent + worst case <= limit."""
        return self._after(self._price(worst), Spent._fields) <= self.limit

    def charge(self, stage: Stage, work: Work, *, discarded: bool = False) -> Ledger:
        """The ledger after ``work``. Work whose result is thrown away is charged all the same, and marked."""
        require(stage in Spent._fields, "stage", stage, f"use one of {', '.join(Spent._fields)}")
        amount = self._price(work)
        if self._after(amount, (stage,)) > self.limit:
            raise OverBudget(
                f"charging {amount} {self.unit} to {stage} with {self.left} of {self.limit} left: "
                "ask `admits` with the worst case before launching the operation"
            )
        return replace(
            self,
            spent=self.spent.plus(stage, amount),
            discarded=self.discarded.plus(stage, amount) if discarded else self.discarded,
            beside=self.beside.plus(work),
        )

    def _after(self, amount: float, stages: Iterable[str]) -> float:
        """The total after a charge to any of these stages: floats add up to something else in another order."""
        return max(self.total + amount, *(sum(self.spent.plus(stage, amount)) for stage in stages))

    def _price(self, work: Work) -> float:
        amount = self.cost(work)
        ok = 0 <= amount < math.inf
        require(ok, f"{self.cost!r}({work!r})", amount, "a cost function returns a finite amount >= 0")
        return amount


def amount(value: float) -> str:
    """A cost, in as many digits as say something: tokens are many, and money is little.

    >>> amount(20480.0), amount(0.00433), amount(38.57), amount(0)
    ('20,480', '0.00433', '38.6', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"

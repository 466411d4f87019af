"""Comparing two candidates: a generative judge, shown in both orders, and how biased it is.

The judgements are a utility ``[Q, N, N]``, how surely i beats j when i is shown first; ``RoundRobin``, ``Knockout`` and
``BradleyTerry`` of ``ramify.decide`` make a tournament of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Signal
from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require
from ramify.verify.judge import Judge, Replies, Task, ask, shortened, slots
from ramify.verify.labels import direct

__all__ = ["Bias", "Pairwise", "bias"]

PROMPT = """\
Two attempts at the same question follow. Decide which one is better: right where the other is wrong, or better
reasoned if both seem equally right. Their order and their length mean nothing.

<question>
{question}
</question>

<attempt 1>
{first}
</attempt 1>

<attempt 2>
{second}
</attempt 2>

{form}"""
AT_ONCE = "Verdict (1 or 2):"
AFTER_THOUGHT = "Think first. Then finish with a line that says either 'Verdict: 1' or 'Verdict: 2'.\n\nThoughts:"


@method
class Pairwise:
    """P("1") over P("1") + P("2"), for every ordered pair of drawn candidates.

    ``both`` shows every pair in both orders, so that a preference for a place cancels in a tournament; without it only
    the earlier candidate is shown first. ``cap`` > 1 lets the judge write before the verdict.
    """

    both: bool = True
    cap: int = 1
    top: int = 20
    role: ClassVar[str] = "deployable"

    def __post_init__(self) -> None:
        require(isinstance(self.both, bool), "Pairwise.both", self.both, "use True or False")
        require(is_whole(self.cap, 1), "Pairwise.cap", self.cap, "use a number of tokens >= 1")

    def __call__(self, bank: Bank, judge: Judge, replies: Replies | None = None) -> Signal:
        """How surely i beats j, shown first ``[Q, N, N]``; NaN for pairs that were not judged. Cost in tokens."""
        if bank.text is None:
            raise InvalidValue("Bank.text = None: a judge reads texts: keep them in the bank")
        pairs = bank.drawn[:, :, None] & bank.drawn[:, None, :]
        pairs = pairs & ~np.eye(bank.shape[1], dtype=bool) if self.both else np.triu(pairs, 1)
        places = np.argwhere(pairs).tolist()
        texts = [[text or "" for text in row] for row in bank.text.tolist()]
        tasks = [self.task(bank.questions[q].prompt, texts[q][i], texts[q][j], judge) for q, i, j in places]
        won, cost = np.full(pairs.shape, np.nan), np.zeros(pairs.shape)
        for (q, i, j), reply in zip(places, ask(judge, tasks, replies), strict=True):
            won[q, i, j], cost[q, i, j] = direct(reply.logprobs(2))[0, 0], reply.cost
        return Signal(won, cost)

    def task(self, question: str, first: str, second: str, judge: Judge) -> Task:
        form, after = (AT_ONCE, "") if self.cap == 1 else (AFTER_THOUGHT, "Verdict:")

        def build(cut: Callable[[str], str]) -> str:
            return slots(PROMPT, {"question": question, "first": cut(first), "second": cut(second), "form": form})

        prompt = shortened(judge, build, max(len(first), len(second)), self.cap)
        return Task(prompt, ("1", "2"), (after,), self.cap, self.top)


@dataclass(frozen=True, eq=False)
class Bias:
    """What a judge's verdicts owe to place and length: question by question, NaN where nothing can be said.

    ``bootstrap_means`` of a column has an interval over questions. A longer candidate may be better: look at pairs of
    equal grades to call it bias.
    """

    first: Array  # [Q] mean of P(first shown wins) - 1/2 over both orders: 0 for a judge that ignores the order
    consistent: Array  # [Q] share of pairs with the same winner in both orders
    longer: Array  # [Q] share of decided pairs that the longer candidate won, minus 1/2


def bias(won: Array, length: Array, grades: Array | None = None) -> Bias:
    """Biases of judgements ``[Q, N, N]`` of candidates of ``length [Q, N]``, each pair judged in both orders.

    A pair of which a length is missing (NaN, or a bank's -1) says nothing about lengths. ``grades [Q, N]`` keeps to
    pairs with equal grades, which only evaluation may know.

    >>> won = np.array([[[np.nan, 0.9], [0.6, np.nan]]])            # shown first, each is preferred
    >>> found = bias(won, np.array([[10, 30]]))
    >>> round(float(found.first[0]), 3), float(found.consistent[0]), float(found.longer[0])
    (0.25, 0.0, -0.5)
    """
    won, length = np.asarray(won, dtype=np.float64), np.asarray(length, dtype=np.float64)
    require(won.shape == (*length.shape, length.shape[-1]), "won", won.shape, "use [Q, N, N] and lengths [Q, N]")
    upper = np.triu(np.ones(won.shape[-2:], dtype=bool), 1)
    back = np.swapaxes(won, -1, -2)
    both = upper & ~np.isnan(won) & ~np.isnan(back)
    if grades is not None:
        both &= grades[:, :, None] == grades[:, None, :]
    net = (won - back) / 2  # > 0: i beats j, whatever the order
    length = np.where(length >= 0, length, np.nan)  # a bank says -1 of a length that it does not know
    longer = np.nan_to_num(np.sign(length[:, :, None] - length[:, None, :]))
    return Bias(
        first=_mean((won + back) / 2 - 0.5, both),
        consistent=_mean((won > 0.5) == (back < 0.5), both & (won != 0.5) & (back != 0.5)),
        longer=_mean((np.sign(net) == longer) - 0.5, both & (net != 0) & (longer != 0)),
    )


def _mean(values: Array, where: Array) -> Array:
    """``[Q]`` the mean over the pairs that count."""
    count = where.sum(axis=(-1, -2))
    total = np.where(where, values, 0.0).sum(axis=(-1, -2))
    mean: Array = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean

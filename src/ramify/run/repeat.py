"""Whole executions of a search: drawn again and again, or every one that there is with its probability.

One execution submits one leaf and returns one bank. Executions under other keys are independent, so what they submit
is i.i.d. from the search's own law q_search,B and what they return is i.i.d. from Q_search,B, however dependent the
leaves of one bank are. On an enumerable model a search that draws nothing itself has finitely many executions.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ramify.bank import Proposal
from ramify.decode.measure import Operator
from ramify.errors import InvalidValue, is_whole, require
from ramify.ledger import Ledger, Tokens
from ramify.models import Tabular, decode_with, leaves
from ramify.run.leaf import Arm
from ramify.run.prefix import Search, Searched, run_search
from ramify.search.tree import LEAF
from ramify.types import Key, Leaf, Question, Request

__all__ = ["Execution", "every_execution", "executions"]


WATCHED = 64  # executions run under two keys, to see whether a controller draws


class Execution(NamedTuple):
    """What one execution of a search submitted and returned."""

    submitted: tuple[int, ...] | None  # the tokens of the leaf; None: nothing
    answer: Any
    bank: tuple[tuple[int, ...], ...]  # the leaves that were returned, as often as they were
    answers: tuple[Any, ...]  # of the bank
    cost: float  # what was spent, in the ledger's unit
    probability: float = math.nan  # of this execution, where all were listed


def executions(
    protocol: Search,
    questions: Sequence[Question],
    arm: Arm,
    ledger: Ledger,
    parse: Callable[[str, Question], Any],
    times: int,
    *,
    first: int = 0,
) -> list[list[Execution]]:
    """``[Q][times]`` independent executions of the search of each question, with the ledger's limit each.

    All of them go on together, as questions of one search. Execution r of a question draws from the streams of the
    question named "id@r": it is the same whatever is run beside it, and ``first`` goes on where others ended.
    """
    require(is_whole(times, 1), "times", times, "use a number of executions >= 1")
    named = [dataclasses.replace(x, id=f"{x.id}@{r}") for x in questions for r in range(first, first + times)]
    found = run_search(protocol, named, arm, ledger, parse)
    each = [_executed(found, q, int(found.choice[q].winner)) for q in range(len(named))]
    return [each[start : start + times] for start in range(0, len(each), times)]


def every_execution(
    protocol: Search,
    question: Question,
    model: Tabular,
    operator: Operator,
    *,
    prompt: tuple[int, ...] = (),
    parse: Callable[[str, Question], Any] = lambda text, _: text,
    limit: float = math.inf,
    most: int = 100_000,
) -> list[Execution]:
    """Every execution of a search on an enumerable model, with its exact probability: they sum to one.

    What the model might answer to each request is taken in turn, so the number of executions is a product over
    requests; more than ``most`` are refused. A stochastic rule's winners are taken in turn too. A controller that draws
    from streams of its own is refused, when some of its first executions differ under other keys although the model
    answered the same: draw ``executions`` of such searches.
    """
    chance = _Chance(model, operator, prompt, protocol.cap)
    found: list[Execution] = []

    def run(script: Sequence[int], name: str) -> tuple[list[Execution], list[tuple[int, int]]]:
        return _run(protocol, question, chance, script, name, parse, limit)

    script: list[int] | None = []
    while script is not None:
        one = run(script, f"one {len(found)}")
        if len(found) < WATCHED and one != run(script, f"other {len(found)}"):
            raise InvalidValue(f"{protocol.controller!r} draws from streams of its own: draw executions(...) instead")
        found += one[0]
        require(len(found) <= most, "most", most, "this search has more executions: draw some, or make it smaller")
        script = _next(one[1])
    return found


def _executed(found: Searched, q: int, winner: int) -> Execution:
    """What one question of a search returned, and what it submits if ``winner`` wins."""
    tree = found.trees[q]
    tokens = [tree.tokens(row) for row in tree.rows(LEAF)]
    times = found.bank.layers["multiplicity"].values[q, : len(tokens)].astype(int).tolist()
    places = [n for n, many in enumerate(times) for _ in range(many)]
    return Execution(
        submitted=tokens[winner] if winner >= 0 else None,
        answer=found.bank.answer(q, winner) if winner >= 0 else found.protocol.fallback,
        bank=tuple(tokens[n] for n in places),
        answers=tuple(found.bank.answer(q, n) for n in places),
        cost=float(found.ledgers[q].total),
    )


# --------------------------------------------------------------------------------------------------------- enumeration


class _Chance:
    """A sampler that answers by a script instead of drawing, and knows the probability of every answer."""

    def __init__(self, model: Tabular, operator: Operator, prompt: tuple[int, ...], cap: int) -> None:
        self.model, self.prompt, self.sampler = model, prompt, decode_with(model, operator)
        self.mass: dict[tuple[int, ...], float] = {}  # q(z): what all leaves below a prefix have
        self.next: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for row, log_q in zip(*map(np.ndarray.tolist, leaves(model, operator, prompt, cap)), strict=True):
            tokens = tuple(token for token in row if token >= 0)
            for end in range(len(tokens) + 1):
                prefix = tokens[:end]
                if end and prefix not in self.mass:
                    self.next.setdefault(prefix[:-1], []).append(prefix)
                self.mass[prefix] = self.mass.get(prefix, 0.0) + math.exp(log_q)
        self.records: dict[tuple[int, ...], Leaf] = {}

    def answers(self, request: Request) -> list[tuple[int, ...]]:
        """Every trajectory that may come back, from the request's prefix on."""
        return list(self._below(request.prefix, request))

    def _below(self, prefix: tuple[int, ...], request: Request) -> Iterator[tuple[int, ...]]:
        if (len(prefix) > len(request.prefix) and self._reason(prefix, request)) or len(prefix) >= request.cap:
            yield prefix
            return
        for longer in self.next[prefix]:
            yield from self._below(longer, request)

    def _reason(self, tokens: tuple[int, ...], request: Request) -> str:
        if tokens and tokens[-1] == self.model.eos:
            return "eos"
        return "stop:until" if tokens and tokens[-1] in request.until else ""

    def leaf(self, request: Request, tokens: tuple[int, ...]) -> Leaf:
        """The record of a trajectory, as the sampler would have made it."""
        if tokens not in self.records:
            replay = Request(Key("every", "", 0), self.prompt, len(tokens), tokens)
            self.records[tokens] = next(iter(self.sampler([replay])))
        ended = self._reason(tokens, request) or "length"
        return dataclasses.replace(self.records[tokens], key=request.key, ended=ended)


def _run(
    protocol: Search,
    question: Question,
    chance: _Chance,
    script: Sequence[int],
    run: str,
    parse: Callable[[str, Question], Any],
    limit: float,
) -> tuple[list[Execution], list[tuple[int, int]]]:
    """The execution in which the model's first answers are those of the script and all later ones the first.

    There are several if the rule draws its winner; and what was answered comes with it.
    """
    taken: list[tuple[int, int]] = []  # (which, of how many) of every answer
    probability = 1.0

    def sampler(requests: Iterable[Request]) -> Iterator[Leaf]:
        nonlocal probability
        for request in requests:
            if request.top or len(request.prefix) >= request.cap:  # what it lists does not depend on what it draws
                yield from chance.sampler([request])
                continue
            options = chance.answers(request)
            which = min(script[len(taken)], len(options) - 1) if len(taken) < len(script) else 0
            taken.append((which, len(options)))
            probability *= chance.mass[options[which]] / chance.mass[request.prefix]
            yield chance.leaf(request, options[which])

    arm = Arm(Proposal(run=run), sampler, lambda _: chance.prompt)
    found = run_search(protocol, [question], arm, Ledger("every", Tokens(), limit=limit), parse)
    winner, probs = int(found.choice[0].winner), found.choice[0].probs
    chances = {winner: 1.0} if probs is None or winner < 0 else dict(enumerate(np.asarray(probs).tolist()))
    made = [_executed(found, 0, n)._replace(probability=probability * p) for n, p in chances.items() if p]
    return made, taken


def _next(taken: Sequence[tuple[int, int]]) -> list[int] | None:
    """The next script in order: the last answer that has another one takes it. None after the last."""
    open_ = [place for place, (which, options) in enumerate(taken) if which + 1 < options]
    if not open_:
        return None
    return [*(which for which, _ in itertools.islice(taken, open_[-1])), taken[open_[-1]][0] + 1]

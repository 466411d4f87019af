"""Leaf-level scaling: sample complete leaves, stop when it is enough, reduce them to one output."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array, pick
from ramify.bank import Bank, Candidates, Choice, Layer, Proposal, union
from ramify.bank.codes import encode
from ramify.bank.tokens import COLUMNS
from ramify.decide import Plurality, Rule
from ramify.describe import method
from ramify.errors import StoreError, is_whole, require
from ramify.evidence import Evidence, deepconf_lowest
from ramify.keys import streams, uniform
from ramify.ledger import Ledger, Stage, Work
from ramify.run.ahead import Ahead, Asked, drive
from ramify.stop import Stop, TokenStop, fit_low_confidence
from ramify.store import Store, Writer
from ramify.types import Key, Leaf, Prompt, Question, Request, Sampler

__all__ = ["Arm", "Leaves", "OnlineConfidence", "Run", "Step", "run_leaves"]


ORDERS = ("rounds", "questions", "uncertain")
VOTING = ("eos", "length", "unknown", "stop:budget", "stop:until")  # a leaf that a rule cut within does not vote


@method
class OnlineConfidence:
    """DeepConf's stop within a rollout (Fu et al., 2025).

    After ``warmup`` complete leaves of a question, later ones are cut where their group confidence falls below the
    (100 - eta)-th percentile of the warm-up's lowest ones. Cut leaves do not vote.
    """

    warmup: int = 16
    eta: float = 10
    window: int = 2048
    k: int = 20

    def __post_init__(self) -> None:
        require(is_whole(self.warmup, 1), "OnlineConfidence.warmup", self.warmup, "use a number of leaves >= 1")

    def fit(self, bank: Bank) -> TokenStop | None:
        """The stop for one question, from the bank of its warm-up; None if no confidence could be computed."""
        lowest = deepconf_lowest(self.k, self.window)(bank).values[0]
        known = lowest[np.isfinite(lowest)]
        return fit_low_confidence(known, self.eta, self.window, self.k, bank.questions[0].id) if known.size else None


@method
class Leaves:
    """A leaf protocol. What it does depends on its fields, the questions, the keys and the samplers: never on timing.

    Candidates are revealed in ``order``: "rounds" asks every question for its first leaf, then for its second, and so
    on; "questions" finishes one before the next; "uncertain" gives the next leaf to the question whose stop is furthest
    from firing (the smallest statistic), which spends one budget where it may still change something. Sample i comes
    from arm ``schedule[i % len(schedule)]``. A leaf is launched only if its worst case fits what is left, of the whole
    budget and of ``each`` question's, with that of evidence that says its own (``worst(prompt, cap)``); ``truncate``
    declares that the last leaf may instead be cut at what is left. ``share_prompt`` charges a question's prompt once
    (its cache is reused) rather than for every leaf. A question without any leaf submits ``fallback``.
    """

    n: int = 16
    cap: int = 512
    rule: Rule = Plurality()
    stop: Stop | None = None
    evidence: tuple[tuple[str, Evidence], ...] = ()
    within: TokenStop | OnlineConfidence | None = None
    schedule: tuple[int, ...] = (0,)
    order: str = "rounds"
    each: float = math.inf
    truncate: bool = False
    share_prompt: bool = True
    top: int = 0
    open_ended: bool = False
    fallback: str | None = None

    def __post_init__(self) -> None:
        require(is_whole(self.n), "Leaves.n", self.n, "use a number of leaves >= 0")
        require(is_whole(self.cap, 1), "Leaves.cap", self.cap, "use a number of tokens >= 1")
        require(self.order in ORDERS, "Leaves.order", self.order, f"use one of {', '.join(ORDERS)}")
        ok = self.order != "uncertain" or self.stop is not None
        require(
            ok, "Leaves.stop", None, "'uncertain' goes by a stop's statistic: give one, such as AdaptiveConsistency()"
        )
        ok = len(self.schedule) > 0 and all(is_whole(arm) for arm in self.schedule)
        require(ok, "Leaves.schedule", self.schedule, "name the arm of each sample in turn, such as (0, 0, 1)")
        for name, value in (("rule", self.rule), ("stop", self.stop)):
            called = f"{name}={getattr(value, '__name__', '')}(...)"
            require(not isinstance(value, type), f"Leaves.{name}", value, f"that is a class: write {called}")
        names = [name for name, _ in self.evidence]
        require(len(set(names)) == len(names), "Leaves.evidence", names, "give every evidence a name of its own")
        needed = [name for name in getattr(self.rule, "needs", ()) if name not in (*names, "utility")]
        require(not needed, "Leaves.evidence", names, f"{type(self.rule).__name__} needs {', '.join(needed)}")


@dataclasses.dataclass(frozen=True)
class Arm:
    """One source of candidates: what it proposes from, who samples it, and how a question becomes its prompt."""

    proposal: Proposal
    sampler: Sampler
    encode: Callable[[Question], Prompt]  # ids, or words for a sampler that speaks text


@dataclasses.dataclass(frozen=True)
class Step:
    """What was decided after a reveal, and what it was decided from: n candidates and nothing of the others."""

    question: str
    n: int
    stop: bool
    value: float  # of the stopping rule's statistic; NaN without one


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What a run did: the bank of everything revealed, the decision for each question, and what all of it cost."""

    protocol: Leaves
    bank: Bank
    choice: Choice
    answers: tuple[Any, ...]  # [Q] submitted; None is ⊥
    ended: tuple[str, ...]  # [Q] n | stop | budget
    steps: tuple[Step, ...]
    ledger: Ledger
    surplus: Ledger  # what was launched ahead and never revealed, in the same unit
    costs: tuple[float, ...]  # [Q] of what the run added to the ledger's total
    kind: str = "end-to-end"

    @property
    def total(self) -> float:
        """Everything spent, surplus included."""
        return self.ledger.total + self.surplus.total


def run_leaves(
    protocol: Leaves,
    questions: Sequence[Question],
    arms: Sequence[Arm],
    ledger: Ledger,
    parse: Callable[[str, Question], Any],
    *,
    ahead: int = 1,
    allowance: float = math.inf,
    store: Store | None = None,
    launched: Callable[[Key], None] = lambda _: None,
) -> Run:
    """Run a leaf protocol over questions.

    ``ahead`` rollouts may be under way or waiting at a time, as many of them as the budget could pay for if all were
    revealed; what those cost that a stop makes superfluous is bounded by ``allowance``, apart from the budget. With a
    ``store``, a revealed leaf is durable before anything is decided from it, and a run that was interrupted goes on
    where it was.
    """
    require(is_whole(ahead, 1), "ahead", ahead, "use a number of rollouts >= 1")
    used = max(protocol.schedule, default=0)
    require(used < len(arms), "Leaves.schedule", protocol.schedule, f"there are {len(arms)} arms")
    require(
        len({arm.proposal.run for arm in arms}) == len(arms), "arms", "a run name twice", "give each arm its own run"
    )
    arms = [_declared(arm, protocol) for arm in arms]
    surplus = Ledger(ledger.unit, ledger.cost, allowance)
    loop = _Loop(protocol, tuple(questions), tuple(arms), ledger, parse, surplus)
    view = Ahead(
        width=ahead,
        upcoming=loop.upcoming,
        alive=loop.alive,
        worst=loop.at_worst,
        allowance=lambda: loop.surplus.left,
        budgets=loop.budgets,
        certain=protocol.stop is None and math.isinf(min(ledger.limit, protocol.each)),
        discard=loop.discard,
    )
    writers, known = _writers(store, arms, questions, protocol) if store is not None else ({}, {})

    def keep(asked: Asked, leaf: Leaf) -> None:
        if leaf.key.run in writers:
            answer = parse(leaf.text, loop.question[leaf.key.question])
            writers[leaf.key.run].append(loop.shown(asked, leaf), answers=[answer])

    try:
        samplers = [arm.sampler for arm in arms]
        run = drive(loop.program(), samplers, view, stored=known.get, keep=keep, launched=launched)
        return dataclasses.replace(run, surplus=loop.surplus)  # some of it was given back after the last decision
    finally:
        for writer in writers.values():
            writer.close()


def _declared(arm: Arm, protocol: Leaves) -> Arm:
    """The arm as what it is in this run: where a rule decides how many leaves there are, they are no fixed sample."""
    if protocol.stop is None or arm.proposal.kind != "iid":
        return arm
    return dataclasses.replace(arm, proposal=dataclasses.replace(arm.proposal, kind="stopped"))


def _writers(
    store: Store, arms: Sequence[Arm], questions: Sequence[Question], protocol: Leaves
) -> tuple[dict[str, Writer], dict[Key, Leaf]]:
    """A writer for each arm, and the leaves that are in the store already."""
    # What a leaf is depends on these too: under others, those that are there are not the ones asked for.
    made = {"cap": protocol.cap, "top": protocol.top, "within": repr(protocol.within)}
    writers = {arm.proposal.run: store.writer(arm.proposal, made, beside=len(arms) > 1) for arm in arms}
    for writer in writers.values():
        writer.ask(questions)
    with store.snapshot() as snapshot:
        return writers, {record.key: record.leaf() for record in snapshot.records() if record.key.run in writers}


class _Loop:
    """The state of a run. ``program`` is the run itself, from top to bottom."""

    def __init__(
        self,
        protocol: Leaves,
        questions: tuple[Question, ...],
        arms: tuple[Arm, ...],
        ledger: Ledger,
        parse: Callable[[str, Question], Any],
        surplus: Ledger,
    ) -> None:
        self.protocol, self.questions, self.arms, self.parse = protocol, questions, arms, parse
        self.ledger, self.surplus = ledger, surplus
        self.question = {question.id: question for question in questions}
        self.place = {question.id: q for q, question in enumerate(questions)}
        require(len(self.question) == len(questions), "questions", "an id twice", "give every question its own id")
        self.seen = {
            question.id: _Seen(question, Ledger(ledger.unit, ledger.cost, protocol.each)) for question in questions
        }
        self._asked: dict[tuple[int, int], Asked] = {}

    def program(self) -> Generator[Asked, Leaf, Run]:
        """Ask for a leaf if it can be paid for, charge it, look at it, and stop a question when its rule says so."""
        steps = list[Step]()
        while (place := next(self.following(), None)) is not None:
            q, sample = place
            seen = self.seen[self.questions[q].id]
            asked = self.asked(q, sample)
            assert asked is not None, "everything before this sample has been revealed"
            cap = self.affordable(seen, asked)
            if cap < 1:
                seen.ended = "budget"
                continue
            asked = dataclasses.replace(asked, request=dataclasses.replace(asked.request, cap=cap))
            leaf = self.shown(asked, (yield asked))
            self.charge(seen, "generate", self.work(seen, asked, len(leaf.tokens)))
            seen.read.add(asked.arm)
            seen.reveal(leaf, self.parse(leaf.text, seen.question))
            self.judge(seen, asked)
            step = self.verdict(seen)
            steps.append(step)
            seen.value = step.value
            seen.ended = "stop" if step.stop else "n" if len(seen.leaves) == self.protocol.n else ""
        return self.decide(steps)

    def following(self) -> Iterator[tuple[int, int]]:
        """(question, sample) in the order they will be revealed, if no question ends before its n leaves."""
        going = [q for q, seen in enumerate(self.seen.values()) if not seen.ended and self.protocol.n]
        seen = [self.seen[question.id] for question in self.questions]
        if self.protocol.order == "questions":
            yield from ((q, i) for q in going for i in range(len(seen[q].leaves), self.protocol.n))
            return
        if self.protocol.order == "uncertain":
            going.sort(key=lambda q: (len(seen[q].leaves) > 0, seen[q].value, len(seen[q].leaves), q))
        else:
            going.sort(key=lambda q: (len(seen[q].leaves), q))
        for ahead in range(self.protocol.n):
            yield from ((q, i) for q in going if (i := len(seen[q].leaves) + ahead) < self.protocol.n)

    # ------------------------------------------------------------------------------------------------------ candidates

    def asked(self, q: int, sample: int) -> Asked | None:
        """The request of a sample; None while it depends on leaves that are not revealed yet."""
        if (q, sample) not in self._asked:
            asked = self._ask(q, sample)
            if asked is None:
                return None
            self._asked[q, sample] = asked
        return self._asked[q, sample]

    def _ask(self, q: int, sample: int) -> Asked | None:
        question, protocol = self.questions[q], self.protocol
        number = protocol.schedule[sample % len(protocol.schedule)]
        arm, within = self.arms[number], protocol.within
        if isinstance(within, OnlineConfidence):
            seen = self.seen[question.id]
            if sample >= within.warmup and len(seen.leaves) < within.warmup:
                return None
            within = seen.fitted(within, self.bank_of) if sample >= within.warmup else None
        key = Key(arm.proposal.run, question.id, sample)
        return Asked(Request(key, arm.encode(question), protocol.cap, top=protocol.top, stop=within), number)

    def shown(self, asked: Asked, leaf: Leaf) -> Leaf:
        """The leaf as the run sees and keeps it, however it was come by: launched ahead with more room, or stored.

        One that used up a cap which the budget has cut was ended by the budget, whatever else would have ended it
        there. Alternatives are in single precision, as the store keeps them.
        """
        cap, top = asked.request.cap, leaf.top
        if len(leaf.tokens) > cap:
            much = f"{leaf.key} has {len(leaf.tokens)} tokens, and {cap} are granted"
            raise StoreError(f"{much}: another protocol made it; give this one another run name")
        if len(leaf.tokens) == cap < self.protocol.cap and leaf.ended not in ("eos", "stop:until"):
            leaf = dataclasses.replace(leaf, ended="stop:budget")
        if top is None:
            return leaf
        return dataclasses.replace(leaf, top=top._replace(logprobs=top.logprobs.astype(COLUMNS["top_logprobs"])))

    def upcoming(self) -> Iterator[Asked]:
        for q, sample in self.following():
            asked = self.asked(q, sample)
            if asked is not None:
                yield asked

    def alive(self, asked: Asked) -> bool:
        return not self.seen[asked.request.key.question].ended

    def bank_of(self, seen: _Seen) -> Bank:
        """The revealed candidates of one question."""
        parts = [
            Bank.of_leaves([seen.question], mine, lambda text, _: text, proposal=arm.proposal)
            for arm in self.arms
            if (mine := [leaf for leaf in seen.leaves if leaf.key.run == arm.proposal.run])
        ]
        return parts[0] if len(parts) == 1 else union(*parts)

    # ---------------------------------------------------------------------------------------------------------- budget

    def work(self, seen: _Seen, asked: Asked, tokens: int) -> Work:
        """What a leaf of so many tokens uses. A shared prompt is read once by each arm."""
        prompt = len(asked.request.prompt)
        again = self.protocol.share_prompt and asked.arm in seen.read
        return Work(generated=tokens, prompt=0 if again else prompt, cached=prompt if again else 0)

    def worst(self, seen: _Seen, asked: Asked, cap: int) -> float:
        """The most a leaf can cost, with the evidence that will be asked of it."""
        return sum(self.ledger.cost(work) for _, work in self.charges(seen, asked, cap))

    def charges(self, seen: _Seen, asked: Asked, cap: int) -> list[tuple[Stage, Work]]:
        """What a leaf of ``cap`` tokens will be charged for, in that order."""
        works: list[tuple[Stage, Work]] = [("generate", self.work(seen, asked, cap))]
        for _, evidence in self.protocol.evidence:
            bound = getattr(evidence, "worst", None)
            works += [] if bound is None else [("signal", bound(len(asked.request.prompt), cap))]
        return works

    def pays(self, seen: _Seen, asked: Asked, cap: int) -> bool:
        """Whether the run's budget and the question's admit all that, charge by charge as it will be made."""
        for ledger in (self.ledger, seen.ledger):
            for stage, work in self.charges(seen, asked, cap):
                if not ledger.admits(work):
                    return False
                ledger = ledger.charge(stage, work)
        return True

    def affordable(self, seen: _Seen, asked: Asked) -> int:
        """The cap that can be paid for: the protocol's or none, unless it declares that it truncates."""
        cap = self.protocol.cap
        if self.pays(seen, asked, cap):
            return cap
        if not self.protocol.truncate:
            return 0
        low, high = 0, cap  # costs grow with the cap
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.pays(seen, asked, middle) else (low, middle)
        return low

    def charge(self, seen: _Seen, stage: Any, work: Work) -> None:
        self.ledger, seen.ledger = self.ledger.charge(stage, work), seen.ledger.charge(stage, work)

    def at_worst(self, asked: Asked) -> float:
        return self.worst(self.seen[asked.request.key.question], asked, self.protocol.cap)

    def budgets(self, asked: Asked) -> Iterator[tuple[str, float]]:
        """What is left of each budget that a leaf would be charged to, of those that have a limit."""
        question = asked.request.key.question
        if math.isfinite(self.ledger.limit):
            yield "", self.ledger.left
        if math.isfinite(self.protocol.each):
            yield question, self.seen[question].ledger.left

    def discard(self, asked: Asked, leaf: Leaf) -> None:
        work = self.work(self.seen[asked.request.key.question], asked, len(leaf.tokens))
        self.surplus = self.surplus.charge("generate", work, discarded=True)

    # --------------------------------------------------------------------------------------------------------- deciding

    def judge(self, seen: _Seen, asked: Asked) -> None:
        """Evidence of the leaf that was revealed last, charged as signal."""
        if not self.protocol.evidence:
            return
        leaf, arm = seen.leaves[-1], self.arms[asked.arm]
        bank = Bank.of_leaves([seen.question], [leaf], lambda text, _: text, proposal=arm.proposal)
        for name, evidence in self.protocol.evidence:
            values, cost = evidence(bank)
            if cost[0, 0]:
                self.charge(
                    seen, "signal", Work(generated=math.ceil(cost[0, 0]), evaluator_tokens=math.ceil(cost[0, 0]))
                )
            seen.evidence.setdefault(name, []).append(float(values[0, 0]))

    def candidates(self, seen: _Seen) -> Candidates:
        """What rules and stops see of a question: the revealed candidates, in order."""
        codes, _, _ = encode([seen.answers])
        drawn = np.ones(codes.shape[1], dtype=bool)
        whole = np.array([leaf.ended in VOTING for leaf in seen.leaves], dtype=bool)
        eligible = (drawn if self.protocol.open_ended else codes[0] >= 0) & whole
        evidence = {name: np.array(values) for name, values in seen.evidence.items()}
        evidence |= {name: np.empty(0) for name, _ in self.protocol.evidence if name not in evidence}
        return Candidates(codes[0], drawn, eligible, evidence, left=min(self.ledger.left, seen.ledger.left))

    def verdict(self, seen: _Seen) -> Step:
        if self.protocol.stop is None:
            return Step(seen.question.id, len(seen.leaves), False, math.nan)
        key = Key(self.arms[0].proposal.run, seen.question.id, 0, "stop")
        now = self.protocol.stop(self.candidates(seen), key).now
        return Step(seen.question.id, len(seen.leaves), bool(now.stop), float(now.value))

    def decide(self, steps: Sequence[Step]) -> Run:
        """Apply the rule to every question, and put the record together."""
        choices, answers = [], []
        for seen in self.seen.values():
            winner, choice = self.submit(seen)
            choices.append(choice)
            answers.append(self.protocol.fallback if winner < 0 else seen.answers[winner])
        return Run(
            protocol=self.protocol,
            bank=self.bank(),
            choice=_stacked(choices),
            answers=tuple(answers),
            ended=tuple(seen.ended or "n" for seen in self.seen.values()),
            steps=tuple(steps),
            ledger=self.ledger,
            surplus=self.surplus,
            costs=tuple(seen.ledger.total for seen in self.seen.values()),
        )

    def submit(self, seen: _Seen) -> tuple[int, Choice]:
        """The candidate that a question submits. A stochastic rule's draw comes from the question's own stream."""
        candidates = self.candidates(seen)
        shown: Callable[[Candidates], Candidates] | None = getattr(self.protocol.stop, "revealed", None)
        if shown is not None and len(seen.leaves):
            candidates = shown(candidates)
        if not len(seen.leaves):
            return -1, Choice(np.array(-1), np.empty(0), np.array([-1]))
        choice = self.protocol.rule(candidates)
        winner = int(choice.winner)
        if choice.probs is not None and winner >= 0:
            key = Key(self.arms[0].proposal.run, seen.question.id, 0, "decide")
            winner = int(pick(choice.probs, uniform(streams([key]))[0]))
            choice = choice._replace(winner=np.array(winner))
        return winner, choice

    def bank(self) -> Bank:
        """Everything revealed, with its evidence attached."""
        leaves = [leaf for seen in self.seen.values() for leaf in seen.leaves]
        answer = {leaf.key: a for seen in self.seen.values() for leaf, a in zip(seen.leaves, seen.answers, strict=True)}
        banks = []
        for arm in self.arms:
            mine = [leaf for leaf in leaves if leaf.key.run == arm.proposal.run]
            found = iter([answer[leaf.key] for leaf in sorted(mine, key=self._place)])
            banks.append(
                Bank.of_leaves(self.questions, mine, lambda *_, found=found: next(found), proposal=arm.proposal)
            )
        bank = banks[0] if len(banks) == 1 else self._interleaved(union(*banks))
        for name, _ in self.protocol.evidence:
            values = np.full(bank.shape, np.nan)
            for q, seen in enumerate(self.seen.values()):
                values[q, : len(seen.leaves)] = seen.evidence.get(name, [])
            bank = bank.attach(name, Layer(values, name))
        return bank

    def _place(self, leaf: Leaf) -> tuple[int, int]:
        return self.place[leaf.key.question], leaf.key.sample

    def _interleaved(self, bank: Bank) -> Bank:
        """Candidates of several arms in the order they were revealed."""
        width = max((len(seen.leaves) for seen in self.seen.values()), default=0)
        order = np.full((len(self.questions), width), -1)
        for q in range(len(self.questions)):
            mine = np.flatnonzero(bank.drawn[q])
            order[q, : mine.size] = mine[np.argsort(bank.samples[q, mine], kind="stable")]
        return bank.take(order)


@dataclasses.dataclass(eq=False)
class _Seen:
    """What has been revealed of one question."""

    question: Question
    ledger: Ledger  # of this question alone
    leaves: list[Leaf] = dataclasses.field(default_factory=list)
    answers: list[Any] = dataclasses.field(default_factory=list)
    evidence: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    read: set[int] = dataclasses.field(default_factory=set)  # arms that have this prompt in their cache
    ended: str = ""
    value: float = -math.inf  # of the stop's statistic, at the last reveal
    _fitted: list[TokenStop | None] = dataclasses.field(default_factory=list)

    def reveal(self, leaf: Leaf, answer: Any) -> None:
        self.leaves.append(leaf)
        self.answers.append(answer)

    def fitted(self, within: OnlineConfidence, bank_of: Callable[[_Seen], Bank]) -> TokenStop | None:
        """The token stop of this question, fitted once on its warm-up."""
        if not self._fitted:
            warm = dataclasses.replace(self, leaves=self.leaves[: within.warmup])
            self._fitted.append(within.fit(bank_of(warm)))
        return self._fitted[0]


def _stacked(choices: Sequence[Choice]) -> Choice:
    """The choices of the questions as one, ``[Q, N]``."""
    width = max((choice.support.size for choice in choices), default=0)
    support, ranked = np.full((len(choices), width), np.nan), max((choice.ranked.size for choice in choices), default=1)
    best: Array = np.full((len(choices), ranked), -1)
    for q, choice in enumerate(choices):
        support[q, : choice.support.size] = choice.support
        best[q, : choice.ranked.size] = choice.ranked
    return Choice(np.array([int(choice.winner) for choice in choices], dtype=np.int64), support, best)

"""Prefix-level scaling: a controller grows a tree of prefixes, an evaluator scores them, and the finished ones are
reduced to one output like any other bank.

The loop is the same for every controller. It asks for an expansion, launches it if its worst case fits what is left,
charges what it used (tokens of the proposal to generate, those an evaluator read to signal, checks to control), and
tells the tree. A child's draws come from a stream named by its path, so the same keys grow the same tree, whatever was
batched with it, and a search that was stopped goes on as if it had not been.

A prefix that was drawn is kept in a memory that lives as long as the call, where the sampler has one to offer, and its
children fork it. Neither the tree nor its price depend on that: ledgers are charged as if everything that was computed
for a tree stayed in the cache, and ``Searched.compute`` says what was in fact computed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from ramify.arrays import pick
from ramify.bank import Bank, Candidates, Choice, Layer, Proposal, Signal
from ramify.bank.codes import encode
from ramify.decide import Plurality, Rule
from ramify.describe import method
from ramify.errors import is_whole, require
from ramify.keys import streams, uniform
from ramify.ledger import Ledger, Stage, Work
from ramify.models.memory import CAPACITY, Memory
from ramify.run.compute import Compute, Tally
from ramify.run.leaf import Arm
from ramify.search.control import Controller, Layered
from ramify.search.evaluate import Check, Evaluator, Likelihood, over_memory, within_worst, worst_of
from ramify.search.tree import CUT, LEAF, PRUNED, Child, Expansion, Grow, Tree
from ramify.search.unit import Chunk, Rollout, ToDelimiter, TopTokens, Unit
from ramify.types import SAMPLED, Key, Leaf, Prefix, Question, Request, Sampler

__all__ = ["Search", "Searched", "run_search"]

LAYERS = ("score", "visits", "multiplicity")  # of the leaves of any search
Wish: TypeAlias = "list[Request] | _Scores"
Program: TypeAlias = Generator[Wish, Any, "_State"]  # is sent leaves by key for requests, and a Signal for prefixes


@method
class Search:
    """A search protocol: who decides what to grow, how prefixes are scored, which are proven hopeless, and the rule.

    Trajectories have at most ``cap`` tokens. ``check`` is sound: a prefix that it rejects is pruned, and recorded as
    proven; what a controller gives up by score is recorded as cut. The rule sees the finished leaves that were not
    given up, with the layers ``score``, ``visits``, ``multiplicity`` and those of the controller. A question without
    any submits ``fallback``.
    """

    controller: Controller
    evaluator: Evaluator = Likelihood()
    check: Check | None = None
    cap: int = 512
    rule: Rule = Plurality()
    fallback: str | None = None

    def __post_init__(self) -> None:
        require(is_whole(self.cap, 1), "Search.cap", self.cap, "use a number of tokens >= 1")
        needed = [name for name in getattr(self.rule, "needs", ()) if name not in self.layers]
        require(not needed, "Search.rule", self.rule, f"this search offers {', '.join(self.layers)}")

    @property
    def layers(self) -> tuple[str, ...]:
        """What a rule may read of the leaves, beside their answers."""
        return (*LAYERS, *getattr(self.controller, "layers", ()))


@dataclasses.dataclass(frozen=True, eq=False)
class Searched:
    """What a search did: its trees, the bank of their leaves, the decision, and what all of it cost.

    The bank is search-induced: its candidates depend on each other, and estimators that need i.i.d. draws refuse it.
    """

    protocol: Search
    trees: tuple[Tree, ...]  # [Q]
    bank: Bank
    choice: tuple[Choice, ...]  # [Q]
    answers: tuple[Any, ...]  # [Q] submitted; None is ⊥
    ended: tuple[str, ...]  # [Q] done | budget | paused
    ledgers: tuple[Ledger, ...]  # [Q]
    compute: Compute = Compute()

    @property
    def pruned(self) -> tuple[int, ...]:
        """[Q] prefixes that the check proved hopeless."""
        return tuple(len(tree.rows(PRUNED)) for tree in self.trees)

    @property
    def cut(self) -> tuple[int, ...]:
        """[Q] prefixes that the controller gave up by score: unsound. ``tree.cut_mass`` says how much they weighed."""
        return tuple(len(tree.rows(CUT)) for tree in self.trees)

    @property
    def returned(self) -> tuple[int, ...]:
        """[Q] the row of the leaf that was submitted, in its tree; -1 where none was."""
        winners = [int(choice.winner) for choice in self.choice]
        return tuple(tree.rows(LEAF)[w] if w >= 0 else -1 for tree, w in zip(self.trees, winners, strict=True))


def run_search(
    protocol: Search,
    questions: Sequence[Question],
    arm: Arm,
    ledger: Ledger,
    parse: Callable[[str, Question], Any],
    *,
    rounds: float = math.inf,
    resume: Searched | None = None,
    memory: float = CAPACITY,
) -> Searched:
    """Search every question, ``ledger`` each. They go on together; none depends on another.

    ``rounds`` pauses after so many expansions of each question; ``resume`` goes on from there. ``memory`` bounds the
    tokens whose states are kept for their descendants (0: everything is replayed), and changes nothing but the work.
    """
    require(len({question.id for question in questions}) == len(questions), "questions", "an id twice", "name each")
    ok = resume is None or (resume.protocol == protocol and resume.bank.questions == tuple(questions))
    require(ok, "resume", "another search", "go on with the same protocol and questions")
    terms = (ledger.unit, ledger.cost, ledger.limit)
    ok = resume is None or all((each.unit, each.cost, each.limit) == terms for each in resume.ledgers)
    require(ok, "ledger", ledger, "go on under the limit that the search began with: what it grew may depend on it")
    states = [_State(Tree(), ledger, read=False) for _ in questions]
    if resume is not None:
        states = [
            _State(tree, spent, tree.expansions > 0) for tree, spent in zip(resume.trees, resume.ledgers, strict=True)
        ]
    remember = getattr(arm.sampler, "remember", None)
    held: Memory | None = remember(memory) if remember is not None and memory else None
    sampler, evaluator = over_memory(arm.sampler, held) if held else arm.sampler, over_memory(protocol.evaluator, held)
    tally = Tally()
    loops = [_Loop(protocol, arm, question, held, tally) for question in questions]
    programs = [loop.program(state, rounds) for loop, state in zip(loops, states, strict=True)]
    found = list(_together(programs, sampler, evaluator, tally))
    compute = tally.compute(None if held is None else held.sharing)
    return _searched(protocol, questions, arm, parse, found, resume.compute.plus(compute) if resume else compute)


@dataclasses.dataclass(frozen=True)
class _Scores:
    """A program's wish to have prefixes scored."""

    prefixes: list[Prefix]


def _together(programs: Sequence[Program], sampler: Sampler, evaluator: Evaluator, tally: Tally) -> Iterator[_State]:
    """Run independent programs to their ends, with what all of them wait for in one batch."""
    results: dict[int, _State] = {}
    answers: dict[int, Mapping[Key, Leaf] | Signal | None] = dict.fromkeys(range(len(programs)))
    while answers:
        waiting: dict[int, Wish] = {}
        with tally.timed("maintenance"):
            for number, answer in answers.items():
                try:
                    waiting[number] = next(programs[number]) if answer is None else programs[number].send(answer)
                except StopIteration as stop:
                    results[number] = stop.value
        draws = {number: wish for number, wish in waiting.items() if not isinstance(wish, _Scores)}
        scores = {number: wish.prefixes for number, wish in waiting.items() if isinstance(wish, _Scores)}
        answers = {**_drawn(draws, sampler, tally), **_evaluated(scores, evaluator, tally)}
    return (results[number] for number in range(len(programs)))


def _drawn(draws: Mapping[int, list[Request]], sampler: Sampler, tally: Tally) -> dict[int, Mapping[Key, Leaf]]:
    requests = [request for asked in draws.values() for request in asked]
    with tally.timed("expansions"):
        made = {leaf.key: leaf for leaf in sampler(requests)} if requests else {}
    return {number: {request.key: made[request.key] for request in asked} for number, asked in draws.items()}


def _evaluated(scores: Mapping[int, list[Prefix]], evaluator: Evaluator, tally: Tally) -> dict[int, Signal]:
    if not scores:
        return {}
    prefixes = [prefix for asked in scores.values() for prefix in asked]
    with tally.timed("evaluator"):
        values, cost = (np.asarray(each) for each in evaluator(prefixes))
    ends = np.cumsum([len(asked) for asked in scores.values()])[:-1]
    parts = zip(np.split(values, ends), np.split(cost, ends), strict=True)
    return {number: Signal(*part) for number, part in zip(scores, parts, strict=True)}


@dataclasses.dataclass(frozen=True, eq=False)
class _State:
    """Where the search of one question stands."""

    tree: Tree
    ledger: Ledger
    read: bool  # whether the prompt is in the cache
    ended: str = ""

    def charge(self, stage: Stage, work: Work) -> _State:
        return dataclasses.replace(self, ledger=self.ledger.charge(stage, work))


class _Loop:
    """The search of one question."""

    def __init__(self, protocol: Search, arm: Arm, question: Question, memory: Memory | None, tally: Tally) -> None:
        self.protocol, self.arm, self.question, self.memory, self.tally = protocol, arm, question, memory, tally
        self.prompt = arm.encode(question)
        self.key = Key(arm.proposal.run, question.id, 0, "control")

    def program(self, state: _State, rounds: float) -> Program:
        """Ask, launch what can be paid for, charge, score, tell; until the controller is done or the budget is."""
        controller, done = self.protocol.controller, 0
        while (asked := controller.ask(state.tree, self.key, state.ledger.left)) is not None:
            if done >= rounds:
                return dataclasses.replace(state, ended="paused")
            grow = state.tree.missing(asked)
            if not self.pays(state, grow):
                return dataclasses.replace(state, ended="budget")
            requests = [request for each in grow for request in self.requests(state.tree, each)]
            leaves = (yield requests) if requests else {}
            state = self.generated(state, requests, leaves)
            children: dict[int, Sequence[Child]] = {each.node: self.children(state.tree, each, leaves) for each in grow}
            enumerated = [child for born in children.values() for child in born if child.ended and child.leaf is None]
            if enumerated:
                replays = self.replays(state.tree, asked, children)
                records = yield list(replays.values())
                state = self.generated(state, list(replays.values()), records)
                children = _with_records(children, {place: records[each.key] for place, each in replays.items()})
            state, children = yield from self.scored(state, children)
            self.noticed(state.tree, grow, children)
            state = dataclasses.replace(state, tree=controller.tell(state.tree, asked, children))
            done += 1
        return dataclasses.replace(state, ended="done")

    def noticed(self, tree: Tree, grow: Sequence[Grow], children: Mapping[int, Sequence[Child]]) -> None:
        """Count what an expansion drew, and let go of prefixes that nobody will go on from."""
        self.tally.add("maintenance", calls=1)
        for each in grow:
            kind, born = "rollouts" if isinstance(each.unit, Rollout) else "expansions", children[each.node]
            self.tally.add(kind, len(born), sum(len(child.tokens) for child in born))
            for child in born:
                if self.memory is not None and (child.ended or not child.kept):
                    self.memory.drop(self.prompt, (*tree.tokens(each.node), *child.tokens))

    # ------------------------------------------------------------------------------------------------------ generation

    def room(self, tree: Tree, grow: Grow) -> int:
        """New tokens of a child, at most."""
        left = self.protocol.cap - len(tree.tokens(grow.node))
        return min(left, _tokens(grow.unit, left))

    def requests(self, tree: Tree, grow: Grow) -> list[Request]:
        """What the sampler is asked for: a continuation a child, or one token with its alternatives."""
        prefix, path = tree.tokens(grow.node), tree.path(grow.node)
        stream = "draw" + "".join(f"/{number}" for number in path)
        cap, until = len(prefix) + self.room(tree, grow), grow.unit.until if isinstance(grow.unit, ToDelimiter) else ()
        listed = isinstance(grow.unit, TopTokens)
        return [
            Request(
                Key(self.key.run, self.question.id, number, stream),
                self.prompt,
                cap,
                prefix,
                until=until,
                top=grow.after + grow.width if listed else 0,
            )
            for number in range(grow.after, grow.after + (1 if listed else grow.width))
        ]

    def generated(self, state: _State, requests: Sequence[Request], leaves: Mapping[Key, Leaf]) -> _State:
        """Charge tokens drawn. The prompt is read once; what a prefix shares with others is in the cache."""
        for request in requests:
            fresh = len(leaves[request.key].tokens) - len(request.prefix)
            state = state.charge("generate", self.work(state.read, len(request.prefix), fresh))
            state = dataclasses.replace(state, read=True)
        return state

    def work(self, read: bool, prefix: int, tokens: int) -> Work:
        prompt = len(self.prompt)
        return Work(generated=tokens, prompt=0 if read else prompt, cached=prefix + (prompt if read else 0))

    def charges(self, state: _State, grow: Sequence[Grow]) -> Iterator[tuple[Stage, Work]]:
        """What an expansion can be charged for at worst, with the scores of all that comes of it."""
        read, scores = state.read, list[Work]()
        for each in grow:
            prefix, room = len(state.tree.tokens(each.node)), self.room(state.tree, each)
            listed = isinstance(each.unit, TopTokens)
            for _ in range(1 if listed else each.width):
                yield "generate", self.work(read, prefix, room)
                read = True
            for _ in range(each.width if listed else 0):
                yield "generate", self.work(True, prefix + 1, 0)
            scores += [worst_of(self.protocol.evaluator, len(self.prompt), prefix + room)] * each.width
        if self.protocol.check is not None and scores:
            yield "control", Work(calls=len(scores))
        yield from (("signal", work) for work in scores)

    def pays(self, state: _State, grow: Sequence[Grow]) -> bool:
        """Whether what is left admits all that, charge by charge as it will be made."""
        ledger = state.ledger
        for stage, work in self.charges(state, grow):
            if not ledger.admits(work):
                return False
            ledger = ledger.charge(stage, work)
        return True

    def children(self, tree: Tree, grow: Grow, leaves: Mapping[Key, Leaf]) -> list[Child]:
        requests = self.requests(tree, grow)
        prefix = len(requests[0].prefix)
        if isinstance(grow.unit, TopTokens):
            return self.listed(leaves[requests[0].key], grow.unit.end, prefix)[grow.after :]
        return [self.child(leaves[request.key], prefix) for request in requests]

    def child(self, leaf: Leaf, prefix: int) -> Child:
        full, cut = len(leaf.tokens) >= self.protocol.cap, leaf.ended in ("stop:until", "length")
        ended = leaf.ended if not cut else "length" if full else ""
        return Child(
            tokens=tuple(leaf.tokens[prefix:].tolist()),
            log_q=float(leaf.log_q[prefix:].sum()),
            logprob=float(leaf.logprob[prefix:].sum()),
            ended=ended,
            leaf=dataclasses.replace(leaf, ended=ended) if ended else None,
        )

    def listed(self, leaf: Leaf, end: int, prefix: int) -> list[Child]:
        """The likeliest next tokens, those that are possible at all."""
        assert leaf.top is not None
        ids, logprobs = leaf.top.ids[prefix].tolist(), leaf.top.logprobs[prefix].tolist()
        over = "length" if prefix + 1 >= self.protocol.cap else ""
        return [
            Child((token,), logprob=logprob, ended="eos" if token == end else over)
            for token, logprob in zip(ids, logprobs, strict=True)
            if logprob > -math.inf
        ]

    def replays(
        self, tree: Tree, asked: Expansion, children: Mapping[int, Sequence[Child]]
    ) -> dict[tuple[int, int], Request]:
        """Requests that draw nothing: the record of enumerated leaves under the decoder, by parent and number."""
        found = {}
        for grow in asked.grow:
            for number, child in enumerate(children.get(grow.node, ())):
                if child.ended and child.leaf is None:
                    tokens = (*tree.tokens(grow.node), *child.tokens)
                    stream = "replay" + "".join(f"/{step}" for step in tree.path(grow.node))
                    key = Key(self.key.run, self.question.id, grow.after + number, stream)
                    found[grow.node, number] = Request(key, self.prompt, len(tokens), tokens)
        return found

    # --------------------------------------------------------------------------------------------------------- scoring

    def scored(
        self, state: _State, children: Mapping[int, Sequence[Child]]
    ) -> Generator[Wish, Any, tuple[_State, dict[int, Sequence[Child]]]]:
        """Strike out what the check rejects, and score the rest: all prefixes of an expansion at once."""
        places = [(node, number) for node, born in children.items() for number in range(len(born))]
        prefixes = [self.prefix(state.tree, node, children[node][number]) for node, number in places]
        kept = np.ones(len(places), dtype=bool)
        if self.protocol.check is not None and places:
            kept = np.asarray(self.protocol.check(prefixes), dtype=bool)
            self.tally.add("checks", len(places))
            state = state.charge("control", Work(calls=len(places)))
        score = np.full(len(places), np.nan)
        if kept.any():
            some = [prefix for prefix, ok in zip(prefixes, kept, strict=True) if ok]
            values, cost = yield _Scores(some)
            score[kept] = values
            self.tally.add("evaluator", len(some), sum(map(math.ceil, cost.tolist())))
            for prefix, each in zip(some, cost.tolist(), strict=True):
                state = self.charged(state, prefix, each)
        found: dict[int, Sequence[Child]] = {node: list(born) for node, born in children.items()}
        for (node, number), value, ok in zip(places, score.tolist(), kept.tolist(), strict=True):
            found[node][number] = dataclasses.replace(children[node][number], score=value, kept=ok)  # type: ignore[index]
        return state, found

    def charged(self, state: _State, prefix: Prefix, cost: float) -> _State:
        if not cost:
            return state
        bound = worst_of(self.protocol.evaluator, len(self.prompt), len(prefix.tokens))
        within_worst(self.protocol.evaluator, cost, bound)
        read = math.ceil(cost)
        return state.charge("signal", Work(generated=read, evaluator_tokens=read))

    def prefix(self, tree: Tree, node: int, child: Child) -> Prefix:
        log, before = tree.columns, tree.tokens(node)
        tokens = (*before, *child.tokens)
        log_q, logprob = log.log_q[node] + child.log_q, log.logprob[node] + child.logprob
        return Prefix(self.question, tokens, (SAMPLED,) * len(tokens), log_q, logprob, seen=len(before))


def _tokens(unit: Unit | None, left: int) -> int:
    match unit:
        case ToDelimiter(most=most):
            return most
        case Chunk(n=n):
            return n
        case TopTokens():
            return 1
        case Rollout():
            return left
    raise AssertionError("an expansion that grows a prefix says by which unit")


def _with_records(
    children: Mapping[int, Sequence[Child]], records: Mapping[tuple[int, int], Leaf]
) -> dict[int, Sequence[Child]]:
    return {
        node: [
            dataclasses.replace(child, leaf=records.get((node, number), child.leaf))
            for number, child in enumerate(born)
        ]
        for node, born in children.items()
    }


# ------------------------------------------------------------------------------------------------------------- deciding


def _searched(
    protocol: Search,
    questions: Sequence[Question],
    arm: Arm,
    parse: Callable[[str, Question], Any],
    states: Sequence[_State],
    compute: Compute,
) -> Searched:
    """The bank of all finished leaves, in order of their rows, and what the rule makes of it."""
    proposal = _induced(arm.proposal, protocol)
    leaves, rows = list[Leaf](), [state.tree.rows(LEAF) for state in states]
    for question, state, mine in zip(questions, states, rows, strict=True):
        for sample, row in enumerate(mine):
            leaf = state.tree.record(row)
            assert leaf is not None, "a finished prefix has its record"
            leaves.append(dataclasses.replace(leaf, key=Key(proposal.run, question.id, sample)))
    bank = Bank.of_leaves(questions, leaves, parse, proposal=proposal)
    for name in protocol.layers:
        values = np.full(bank.shape, np.nan)
        for q, (state, mine) in enumerate(zip(states, rows, strict=True)):
            values[q, : len(mine)] = _layer(name, protocol.controller, state.tree, mine)
        bank = bank.attach(name, Layer(values, f"{name} of the search tree"))
    decided = [_submit(protocol, bank, q, arm.proposal.run, states[q].ledger.left) for q in range(len(questions))]
    return Searched(
        protocol=protocol,
        trees=tuple(state.tree for state in states),
        bank=bank,
        choice=tuple(choice for choice, _ in decided),
        answers=tuple(answer for _, answer in decided),
        ended=tuple(state.ended for state in states),
        ledgers=tuple(state.ledger for state in states),
        compute=compute,
    )


def _induced(proposal: Proposal, protocol: Search) -> Proposal:
    return dataclasses.replace(proposal, kind="search", protocol=f"{protocol!r} over {proposal.protocol}")


def _layer(name: str, controller: Controller, tree: Tree, rows: Sequence[int]) -> list[float]:
    if name not in LAYERS:
        return cast(Layered, controller).layer(name, tree, rows)
    if name == "multiplicity":
        held = dict(tree.last.hold) if tree.last else {}
        return [held.get(row, 1) for row in rows]
    column = getattr(tree.columns, name)
    return [column[row] for row in rows]


def _submit(protocol: Search, bank: Bank, q: int, run: str, left: float) -> tuple[Choice, Any]:
    """The answer that a question submits. A stochastic rule's draw comes from the question's own stream."""
    mine = np.flatnonzero(bank.drawn[q])
    if not mine.size:
        return Choice(np.array(-1), np.empty(0), np.array([-1])), protocol.fallback
    evidence = {name: bank.layers[name].values[q, mine] for name in protocol.layers}
    codes, _, _ = encode([[bank.answer(q, int(n)) for n in mine]])
    choice = protocol.rule(Candidates(codes[0], evidence=evidence, left=left))
    winner = int(choice.winner)
    if choice.probs is not None and winner >= 0:
        key = Key(run, bank.questions[q].id, 0, "decide")
        winner = int(pick(choice.probs, uniform(streams([key]))[0]))
        choice = choice._replace(winner=np.array(winner))
    return choice, protocol.fallback if winner < 0 else bank.answer(q, winner)

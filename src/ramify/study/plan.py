"""What a study will make: which banks, which runs, and which protocols share what.

Protocols share a bank where the candidates are the same random object: one model, one decoder, one cap, one prompt
interface. Then a rule at k sees a nested prefix of the same draws. Another decoder is another proposal; where a stop, a
limit or a controller decides what is drawn, the candidates are no fixed sample: those protocols make their own.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

from ramify.bank import Proposal
from ramify.decode import Operator
from ramify.describe import text
from ramify.ledger import Work, amount
from ramify.store import Store
from ramify.study.source import identity_of, proposal_of
from ramify.study.spec import Protocol, Study, System, Tasked
from ramify.study.words import words
from ramify.study.world import World

__all__ = ["Own", "Plan", "Pool", "plan"]


@dataclasses.dataclass(frozen=True)
class Pool:
    """A bank of n independent draws a question, and the protocols that are decided on prefixes of it."""

    name: str
    folder: str  # under the study's folder; named after all that decides what a leaf is
    task: Tasked
    model: System
    decode: Operator
    proposal: Proposal
    cap: int
    top: int
    n: int
    protocols: tuple[Protocol, ...]
    repeat: int = 0  # 0 is the bank that rows are about; others are never pooled with it


@dataclasses.dataclass(frozen=True)
class Own:
    """One protocol that makes its own candidates, at one limit."""

    name: str
    folder: str
    task: Tasked
    model: System
    protocol: Protocol
    decode: Operator
    proposal: Proposal
    cap: int
    top: int
    n: int
    limit: float | None


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything a study will make, in order."""

    pools: tuple[Pool, ...]
    owns: tuple[Own, ...]
    leaves: int  # at most, without what directors and searches draw: nobody knows how much that is
    worst: float  # in the study's unit
    unit: str
    shared: tuple[str, ...]  # sentences: what is shared and why, and what is not

    def lacking(self, folder: Path, world: World) -> Iterator[Pool]:
        """Banks that lack leaves."""
        for pool in self.pools:
            wanted = {(q.id, i) for q in world.of(pool.task, pool.model).questions for i in range(pool.n)}
            if not (folder / pool.folder / "bank.json").exists():
                yield pool
                continue
            with Store.open(folder / pool.folder).snapshot() as snapshot:
                if not wanted <= {(key.question, key.sample) for key, _ in snapshot.digests()}:
                    yield pool

    def __str__(self) -> str:
        banks = f"{len(self.pools)} bank{'s' * (len(self.pools) != 1)}"
        runs = f"{len(self.owns)} run{'s' * (len(self.owns) != 1)} of their own"
        return f"{banks}, {runs}; {self.most}"

    @property
    def most(self) -> str:
        """The most there can be of it, in words."""
        open_ended = sum(own.protocol.regime != "leaves" for own in self.owns)
        beside = f" beside what {open_ended} director{'s' * (open_ended != 1)} or searches draw" if open_ended else ""
        worst = "no bound on its cost" if math.isinf(self.worst) else f"{amount(self.worst)} {self.unit} at worst"
        return f"at most {self.leaves:,} leaves{beside}, and {worst}"


def plan(study: Study, world: World) -> Plan:
    """The banks and runs of a study, each protocol in exactly one of them."""
    pools, owns = tuple(_pools(study)), tuple(_owns(study))
    every: list[Pool | Own] = [*pools, *owns]
    fixed = [each for each in every if isinstance(each, Pool) or each.protocol.regime == "leaves"]
    leaves = sum(len(world.of(each.task, each.model).questions) * each.n for each in fixed)
    worst = sum(_worst(study, each, prompt) for each in every for prompt in _prompts(each, world))
    return Plan(pools, owns, leaves, worst, type(study.unit).__name__.lower(), tuple(_sentences(pools, owns)))


def _prompts(each: Pool | Own, world: World) -> list[int]:
    """Tokens of every prompt; at most, of a server that has not been asked: none is less than a byte."""
    encode = getattr(each.model.model, "encode", None)
    asked = world.of(each.task, each.model).questions
    return [len(encode(question.prompt) if encode else question.prompt.encode()) for question in asked]


def _worst(study: Study, each: Pool | Own, prompt: int) -> float:
    """The most that a question can cost: every leaf at its cap, or the limit; a search without one has no bound.

    The first leaf reads the prompt, the others find it read; evidence that says so is charged for each. What judges
    read is not in it.
    """
    first, other = Work(generated=each.cap, prompt=prompt), Work(generated=each.cap, cached=prompt)
    read = sum(study.unit(bound(prompt, each.cap)) for bound in _bounds(each))
    most = study.unit(first) + (each.n - 1) * study.unit(other) + each.n * read if each.n else math.inf
    limit = each.limit if isinstance(each, Own) else None
    return most if limit is None else min(limit, most)


def _bounds(each: Pool | Own) -> list[Callable[[int, int], Work]]:
    """What the evidence of all its protocols may read of a leaf, each map once."""
    if isinstance(each, Pool) and each.repeat:
        return []
    protocols = each.protocols if isinstance(each, Pool) else (each.protocol,)
    maps = {words(evidence): evidence for protocol in protocols for _, evidence in protocol.evidence}
    return [evidence.worst for evidence in maps.values() if hasattr(evidence, "worst")]


def _pools(study: Study) -> Iterator[Pool]:
    found: dict[tuple[str, str, str, int], list[tuple[Tasked, System, Protocol]]] = {}
    for task, model, protocol in study.cells():
        if protocol.shares:
            decode, cap = text(study.decode_of(protocol, model)), study.cap_of(protocol, model)
            found.setdefault((task.name, model.name, decode, cap), []).append((task, model, protocol))
    for (_, _, decode, cap), cells in found.items():
        task, model, _ = cells[0]
        alone = sum(key[:2] == (task.name, model.name) for key in found) == 1
        protocols = tuple(protocol for _, _, protocol in cells)
        operator = study.decode_of(protocols[0], model)
        n = study.n or max(max(study.budgets_of(protocol)) for protocol in protocols)
        name = f"{model.name} on {task.name}" + ("" if alone else f", {decode}, cap {cap}")
        own = decode == text(study.decode_of(None, model))  # repeats are of the configuration, not of every protocol
        for repeat in range((model.repeats if own else 0) + 1):
            mark = f", repeat {repeat}" if repeat else ""
            made = _made(study, task, model, operator, cap, f"repeat {repeat}" if repeat else "")
            yield Pool(name + mark, *made, cap, _top(study, model), n, protocols, repeat)


def _owns(study: Study) -> Iterator[Own]:
    for task, model, protocol in study.cells():
        if protocol.shares:
            continue
        decode, cap = study.decode_of(protocol, model), study.cap_of(protocol, model)
        n = study.size(protocol) if protocol.regime == "leaves" else 1 if protocol.regime == "trajectory" else 0
        for limit in protocol.limits or (None,):
            mark = "" if limit is None else f", {limit:.15g}"
            name = f"{model.name} on {task.name}, {protocol.name}{mark}"
            # Leaves under a stop are the same whatever its threshold: those that are there are used again.
            kind = "stopped" if protocol.regime == "leaves" and not protocol.fresh else "iid"
            what = f"{protocol.name} {protocol.regime} {protocol.within!r} {kind}{mark}"
            where, _, _, _, proposal = _made(study, task, model, decode, cap, what)
            proposal = dataclasses.replace(proposal, kind=kind)
            yield Own(name, where, task, model, protocol, decode, proposal, cap, _top(study, model), n, limit)


def _top(study: Study, model: System) -> int:
    return study.top if model.top is None else model.top


def _made(
    study: Study, task: Tasked, model: System, decode: Operator, cap: int, mark: str
) -> tuple[str, Tasked, System, Operator, Proposal]:
    """Where a bank lies, and what it is made of: both named after everything that decides what a leaf is."""
    top = _top(study, model)
    parts = (study.run, text(task.task), identity_of(model.model), model.effort, text(decode), cap, top, mark)
    digest = blake2b("\n".join(map(str, parts)).encode(), digest_size=5).hexdigest()
    slug = re.sub(r"[^a-z0-9]+", "-", f"{model.name} {task.name}".lower()).strip("-")[:48]
    proposal = proposal_of(model, decode, f"{study.run}/{digest}", top)
    return f"banks/{slug}-{digest}", task, model, decode, proposal


def _sentences(pools: tuple[Pool, ...], owns: tuple[Own, ...]) -> Iterator[str]:
    for pool in pools:
        names = "; ".join(protocol.name for protocol in pool.protocols)
        if pool.repeat:
            yield f"{pool.name}: an independent repeat, for reproducibility only; it is pooled with nothing."
        elif len(pool.protocols) > 1:
            why = f"one proposal ({text(pool.decode)}, cap {pool.cap}), nested prefixes of {pool.n} draws"
            yield f"{pool.name}: {names} share these candidates: {why}. Their rows compare rules and claim no savings."
        else:
            yield f"{pool.name}: {names} alone, on nested prefixes of {pool.n} draws."
    decoders: dict[tuple[str, str], set[str]] = {}
    for pool in pools:
        decoders.setdefault((pool.task.name, pool.model.name), set()).add(f"{text(pool.decode)}, cap {pool.cap}")
    for (task, model), used in decoders.items():
        if len(used) > 1:
            yield f"{model} on {task}: {' and '.join(sorted(used))} share nothing: another decoder is another proposal."
    seen = set[str]()
    for own in owns:
        if own.protocol.name not in seen:
            seen.add(own.protocol.name)
            yield f"{own.protocol.name} makes its own candidates: {_why(own.protocol)}."


def _why(protocol: Protocol) -> str:
    if protocol.regime == "trajectory":
        return "a director writes into the trajectory"
    if protocol.regime == "search":
        return "a controller decides what is drawn, so they depend on each other"
    if protocol.stop is not None or protocol.within is not None:
        return "a stop decides how many there are or where they end, so they are no fixed sample"
    return "a limit decides how many there are" if protocol.limits else "the study asks for fresh ones"

"""Shared banks: drawn once, topped up, and decided by every rule that may see them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank, Layer, Outcomes
from ramify.bank.tokens import COLUMNS
from ramify.describe import text
from ramify.errors import InvalidValue, StudyError
from ramify.evidence import Needs
from ramify.ledger import Cost, Work
from ramify.metrics.replay import diagnose, replays
from ramify.run.between import Stream
from ramify.store import Store
from ramify.study.judges import Judging
from ramify.study.kept import Decided
from ramify.study.meter import Meter
from ramify.study.plan import Pool
from ramify.study.result import Charge, Row
from ramify.study.source import arm_of, interface_of
from ramify.study.spec import OUTCOMES, Protocol, Study
from ramify.study.stored import HELD, opened
from ramify.study.words import words
from ramify.study.world import Asked
from ramify.types import Key, Question, Request

__all__ = ["Filled", "charges_of", "digest_of", "fill", "priced", "rows_of", "shares_of", "unit_name"]

SPREAD = 1_000_000  # numbers of a row's replays that are kept; beyond it only their mean is
TOKENS = tuple(name for name in COLUMNS if not name.startswith("top_"))


@dataclasses.dataclass(frozen=True, eq=False)
class Filled:
    """A pool's bank with its grades and layers; ``key`` names everything that its content depends on."""

    pool: Pool
    asked: Asked
    bank: Bank
    outcomes: Outcomes
    layers: Mapping[str, Layer]  # by the label of the evidence
    judging: Judging
    prompts: Array  # [Q] tokens
    key: tuple[object, ...]
    made: int
    reused: int
    status: str = ""  # what was seen of its reproducibility

    def light(self) -> Filled:
        """The same without tokens and texts, where they are too many to be kept for all banks at once."""
        many = self.bank.length is not None and int(np.maximum(self.bank.length, 0).sum()) > HELD
        return dataclasses.replace(self, bank=dataclasses.replace(self.bank, tokens=None, text=None)) if many else self


def fill(folder: Path, pool: Pool, asked: Asked, decided: Decided, meter: Meter, judging: Judging) -> Filled:
    """Draw what the store lacks of a pool, a leaf durable before it counts, and read the bank back from it."""
    meter.begin(pool.name)
    made, reused, prompts = _draw(folder / pool.folder, pool, asked, meter, decided)
    bound = [each for protocol in pool.protocols if not pool.repeat for each in judging.bound(protocol)]
    evidence = {each.label: each.evidence for each in bound}
    needs = Needs()
    for each in evidence.values():
        needs = needs.union(getattr(each, "needs", Needs(columns=TOKENS)))
    every = (*TOKENS, *(("top_ids", "top_logprobs") if pool.top else ())) if needs.every else ()
    columns = tuple(dict.fromkeys(("token", "logprob", *needs.columns, *every)))
    whole = opened(folder / pool.folder, columns)
    bank = whole.only([question.id for question in asked.questions]).first(pool.n)
    key = (pool.folder, digest_of(asked.questions), pool.n, words(asked.task))
    layers = {name: _layer(each, name, bank, key, decided) for name, each in evidence.items()}
    return Filled(pool, asked, bank, asked.outcomes(bank), layers, judging, prompts, key, made, reused)


def _draw(path: Path, pool: Pool, asked: Asked, meter: Meter, decided: Decided) -> tuple[int, int, Array]:
    """(leaves made, leaves that were there, tokens of each prompt [Q]). Rounds: every question's first leaf first.

    A model with nothing to make is not asked for anything: its server may be gone.
    """
    names = [question.id for question in asked.questions]
    keys = [Key(pool.proposal.run, name, sample) for sample in range(pool.n) for name in names]
    details = {"cap": pool.cap, "top": pool.top, "within": repr(None)}
    with Store.create(path).writer(pool.proposal, details) as writer:
        writer.ask(asked.questions)
        missing = writer.missing(keys)
        with writer.store.snapshot() as snapshot:
            lengths = snapshot.lengths()[: len(keys) - len(missing)]  # where there are more, others may be counted
        for length in lengths.tolist():
            meter.leaf(length, there=True)
        if missing:
            arm = arm_of(pool.model, pool.decode, pool.proposal, asked.questions)
            prompt = {question.id: arm.encode(question) for question in asked.questions}
            drawn = Stream(arm.sampler(Request(key, prompt[key.question], pool.cap, top=pool.top) for key in missing))
            for leaf in writer.keep(drawn, asked.parse):
                meter.leaf(len(leaf.tokens))
            drawn.check()

    def encoded() -> dict[str, Array]:
        arm = arm_of(pool.model, pool.decode, pool.proposal, asked.questions)
        return {"tokens": np.array([len(arm.encode(question)) for question in asked.questions])}

    prompts = decided.get(("prompts", pool.folder, digest_of(asked.questions)), encoded)["tokens"]
    return len(missing), len(keys) - len(missing), prompts


def _layer(evidence: Any, name: str, bank: Bank, key: tuple[object, ...], decided: Decided) -> Layer:
    """Evidence of every candidate, computed once for a bank."""

    def make() -> dict[str, Array]:
        values, cost = evidence(bank)
        return {"values": np.asarray(values, dtype=np.float64), "cost": np.asarray(cost, dtype=np.float64)}

    found = decided.get(("layer", *key, name), make)
    role = "deployable" if getattr(evidence, "role", "deployable") == "deployable" else "diagnostic"
    return Layer(found["values"], name, cost=found["cost"], role=role)


# ----------------------------------------------------------------------------------------------------------------- rows


def rows_of(study: Study, filled: Filled, decided: Decided) -> Iterator[Row]:
    """The rows of every protocol of a pool, a row a budget; only what is not known yet is decided."""
    for protocol in filled.pool.protocols:
        budgets = study.budgets_of(protocol)
        evidence = [(each.name, each.label) for each in filled.judging.bound(protocol)]
        parts = ("rows", *filled.key, words(protocol.rule), evidence, budgets, study.replays, study.run)
        judged = filled.judging.judge(protocol.judge)[0].identity if protocol.judge else ""
        parts += (words(protocol.diagnostic), judged, filled.asked.gold)
        found = decided.get(parts, lambda protocol=protocol: _decide(study, filled, protocol))  # type: ignore[misc]
        for i, k in enumerate(budgets):
            yield _row(study, filled, protocol, k, found["values"][:, i], _spread(found, i))


def _spread(found: Mapping[str, Array], column: int) -> Array | None:
    return found["replays"][:, column] if "replays" in found else None


def _decide(study: Study, filled: Filled, protocol: Protocol) -> dict[str, Array]:
    """What a rule submits from nested subsets, worth ``values [Q, K]`` and ``replays [Q, K, R]``."""
    layers = {each.name: filled.layers[each.label] for each in filled.judging.bound(protocol)}
    bank = dataclasses.replace(filled.bank, layers=layers)
    many = len(bank.questions) * study.replays <= SPREAD
    budgets, run = study.budgets_of(protocol), f"{study.run}/replay"
    secret = {name: layer.values for name, layer in layers.items() if layer.role == "diagnostic"}
    if protocol.diagnostic == OUTCOMES:
        secret[OUTCOMES] = filled.outcomes.on(bank)
    elif protocol.diagnostic:
        secret["grader"] = filled.judging.graded(protocol, bank, filled.asked)
    given: dict[str, Any] = {"evidence": [name for name in layers if name not in secret], "budgets": budgets}
    given |= {"replicates": study.replays, "run": run, "keep": many}
    try:
        if secret:
            curve = diagnose(protocol.rule, bank, filled.outcomes, scores=secret, **given).result
        else:
            (curve,) = replays([protocol.rule], bank, filled.outcomes, **given)
    except InvalidValue as error:  # what evidence turned out to be, no file says beforehand
        who = f"protocol {protocol.name!r} on {filled.pool.name}, rule = {protocol.rule!r}"
        raise StudyError(f"{who}: {error}; correct it and run again: what was drawn is kept") from error
    kept = {} if curve.replays is None else {"replays": curve.replays.astype(np.float32)}
    return {"values": curve.values, **kept}


def _row(study: Study, filled: Filled, protocol: Protocol, k: int, utility: Array, spread: Array | None) -> Row:
    pool, bank = filled.pool, filled.bank
    layers = [filled.layers[each.label] for each in filled.judging.bound(protocol)]
    diagnostic = bool(protocol.diagnostic) or any(layer.role == "diagnostic" for layer in layers)
    invalid, capped, tokens = shares_of(bank)
    cost = {"generate": _generate(study.unit, bank, filled.prompts, k)}
    if layers:
        cost["signal"] = k * np.sum([_mean(_read(study.unit, layer.cost), bank.drawn) for layer in layers], axis=0)
    return Row(
        task=pool.task.name,
        model=pool.model.name,
        interface=interface_of(pool.model),
        name=protocol.name,
        protocol=f"{words(protocol.rule)} over {text(pool.decode)}",
        regime="leaves",
        kind="diagnostic" if diagnostic else "shared-bank",
        k=k,
        budget=None,
        unit=unit_name(study.unit),
        utility=utility,
        spread=spread,
        cost=cost,
        invalid=invalid,
        capped=capped,
        tokens=tokens,
        bank=pool.name,
        replicates=study.replicates,
        level=study.level,
    )


def _generate(unit: Cost, bank: Bank, prompts: Array, k: int) -> Array:
    """[Q] the expected cost of k of a question's candidates: one of them reads the prompt, the others find it read."""
    first = _mean(priced(unit, bank.length, prompts[:, None], read=False), bank.drawn)
    others = _mean(priced(unit, bank.length, prompts[:, None], read=True), bank.drawn)
    return first + (k - 1) * others


def charges_of(unit: Cost, filled: Filled) -> Iterator[Charge]:
    """What making a pool's bank cost, repeats too, and what each map of evidence read of it."""
    pool, bank = filled.pool, filled.bank
    first = np.cumsum(bank.drawn, axis=1) == 1  # it reads the prompt, the others find it read
    prices = [priced(unit, bank.length, filled.prompts[:, None], read=read) for read in (False, True)]
    generate = float(np.where(bank.drawn, np.where(first, *prices), 0.0).sum())
    many = f"{bank.shape[1]} candidates a question"
    which = f", repeat {pool.repeat}" if pool.repeat else ""
    yield Charge(pool.task.name, pool.model.name, f"{many} of {text(pool.decode)}{which}", {"generate": generate})
    for name, layer in filled.layers.items():
        read = float(np.where(bank.drawn, _read(unit, layer.cost), 0.0).sum())
        if read:
            yield Charge(pool.task.name, pool.model.name, f"{name} of them", {"signal": read})


def priced(unit: Cost, tokens: Array, prompt: Array, *, read: bool) -> Array:
    """What leaves of so many tokens cost, each distinct pair priced once; ``read``: the prompt is in the cache."""
    pairs = np.stack(np.broadcast_arrays(np.maximum(tokens, 0), prompt), axis=-1)
    distinct, which = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
    works = (Work(generated=int(t), prompt=0 if read else int(p), cached=int(p) if read else 0) for t, p in distinct)
    return np.array([float(unit(work)) for work in works])[which.reshape(-1)].reshape(pairs.shape[:-1])


def _read(unit: Cost, tokens: Array | None) -> Array:
    """What a scorer that read so many tokens cost; nothing where it read none."""
    read = np.ceil(np.nan_to_num(np.asarray(0.0 if tokens is None else tokens))).astype(np.int64)
    distinct, which = np.unique(read, return_inverse=True)
    price = [float(unit(Work(generated=int(t), evaluator_tokens=int(t)))) if t else 0.0 for t in distinct]
    return np.array(price)[which.reshape(-1)].reshape(read.shape)


def _mean(values: Array, drawn: Array) -> Array:
    """[Q] over a question's candidates."""
    counts = np.maximum(drawn.sum(axis=1), 1)
    return np.where(drawn, np.broadcast_to(values, drawn.shape), 0.0).sum(axis=1) / counts


def shares_of(bank: Bank) -> tuple[Array, Array, Array]:
    """([Q] without an answer, [Q] that ran into the cap, [Q] mean tokens) of a question's candidates."""
    capped = np.array([ending == "length" for ending in bank.endings])[bank.ended]
    length = np.zeros(bank.shape) if bank.length is None else np.maximum(bank.length, 0)
    invalid = np.where(bank.drawn.any(axis=1), _mean(bank.answers < 0, bank.drawn), 1.0)  # nothing drawn, nothing said
    return invalid, _mean(capped, bank.drawn), _mean(length, bank.drawn)


def unit_name(unit: Cost) -> str:
    return type(unit).__name__.lower()


def digest_of(questions: Sequence[Question]) -> str:
    said = "\n".join(f"{question.id} {question.prompt!r}" for question in questions)
    return blake2b(said.encode(), digest_size=8).hexdigest()

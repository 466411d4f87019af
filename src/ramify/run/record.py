"""The record of a run: a directory from which everything it decided can be decided again.

card.json         the protocol: every method by its text, the arms, the budget, versions and host facts
bank/             the leaves with their signals, durable before anything was decided from them
decisions.jsonl   every stopping decision with what it saw, then what each question submitted
ledger.json       what it cost, by stage, surplus and lost work apart
running           held by the process that is at work
launches.log      the keys that were launched: after a crash, those without a leaf are work that was lost
wire.jsonl        where leaves came over a wire: how each was served (server, model, seed, attempts, counts, times)
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import numpy as np

import ramify
from ramify.bank import Proposal
from ramify.describe import describe, restore, text
from ramify.errors import ParseError, StoreError
from ramify.ledger import Ledger, Spent
from ramify.run.leaf import Arm, Leaves, Run, run_leaves
from ramify.store import Store, disk
from ramify.types import Key, Leaf, Question, Request, Sampler

__all__ = ["Recorded", "alone", "begin", "budget_of", "facts", "load", "record_leaves", "write"]

LIBRARIES = ("numpy", "scipy", "pyarrow", "torch", "transformers")


def facts() -> dict[str, Any]:
    """Versions, kernels and the host: what a difference between two runs of one protocol may come from."""
    found = {"ramify": ramify.__version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[call-arg, index, unused-ignore]
    return {
        "python": platform.python_version(),
        "libraries": found,
        "blas": {name: str(blas.get(name)) for name in ("name", "version", "openblas configuration")},
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "threads": {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")},
    }


@dataclasses.dataclass(frozen=True, eq=False)
class Recorded:
    """A run directory, read back."""

    path: Path
    protocol: Leaves
    proposals: tuple[Proposal, ...]
    questions: tuple[Question, ...]
    ledger: Ledger  # as it was before the run
    ahead: int
    allowance: float
    details: Mapping[str, Any]
    prompts: tuple[tuple[int, ...], ...] = ()  # tokens of each question's prompt, by arm: budgets may charge them

    @property
    def store(self) -> Store:
        return Store.open(self.path / "bank")

    @property
    def decisions(self) -> bytes:
        return (self.path / "decisions.jsonl").read_bytes()


def record_leaves(
    path: str | Path,
    protocol: Leaves,
    questions: Sequence[Question],
    arms: Sequence[Arm],
    ledger: Ledger,
    parse: Callable[[str, Question], Any],
    *,
    ahead: int = 1,
    allowance: float = math.inf,
    details: Mapping[str, Any] | None = None,
) -> Run:
    """Run a leaf protocol into a directory, or go on with the run that is there.

    An interrupted run ends as an uninterrupted one would have: the same leaves, decisions and ledger. Only the work
    that was lost differs, and it is booked. A run without a limit for the whole goes on to a larger n, and to questions
    beyond those it had; then it is as if it had been begun with them.
    """
    path = Path(path)
    with alone(path):
        return _recorded(path, protocol, questions, arms, ledger, parse, ahead, allowance, details)


def _recorded(
    path: Path,
    protocol: Leaves,
    questions: Sequence[Question],
    arms: Sequence[Arm],
    ledger: Ledger,
    parse: Callable[[str, Question], Any],
    ahead: int,
    allowance: float,
    details: Mapping[str, Any] | None,
) -> Run:
    begin(path, _card(protocol, questions, arms, ledger, ahead, allowance, details))
    store, launches = Store.create(path / "bank"), path / "launches.log"
    lost, before = _lost(launches, store), _generated(store)
    with launches.open("a") as log, closing(_Notes(path / "wire.jsonl")) as notes:
        arms = [dataclasses.replace(arm, sampler=notes.of(arm.sampler)) for arm in arms]
        log.write("\n" if _torn(launches) else "")

        def launched(key: Key) -> None:
            log.write(json.dumps([key.run, key.question, key.sample]) + "\n")
            log.flush()

        start = time.perf_counter()
        run = run_leaves(
            protocol, questions, arms, ledger, parse, ahead=ahead, allowance=allowance, store=store, launched=launched
        )
    took = time.perf_counter() - start
    made = max(0, run.ledger.spent.generate + run.surplus.spent.generate - before)  # by this attempt, as seconds are
    write(path / "decisions.jsonl", decisions(run))
    costs = {
        "unit": ledger.unit,
        "limit": None if math.isinf(ledger.limit) else ledger.limit,
        "spent": run.ledger.spent._asdict(),
        "total": run.ledger.total,
        "surplus": run.surplus.total,
        "lost": {"leaves": lost, "at most": lost * protocol.cap},
        "beside": {
            **run.ledger.beside._asdict(),
            "seconds": took,
            "tokens a second": made / took,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        },
        "questions": dict(zip((question.id for question in questions), run.costs, strict=True)),
    }
    if not (path / "ledger.json").exists():  # of a finished run: this time nothing was launched, and nothing was lost
        write(path / "ledger.json", json.dumps(costs, indent=1).encode() + b"\n")
    return run


class _Notes:
    """A line about every leaf that came over a wire, surplus included, written before anybody sees the leaf."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def of(self, sampler: Sampler) -> Sampler:
        def run(requests: Iterable[Request]) -> Iterator[Leaf]:
            leaves = sampler(requests)
            try:
                for leaf in leaves:
                    self._note(leaf)
                    yield leaf
            finally:  # closing the outer one cancels what is under way inside
                getattr(leaves, "close", lambda: None)()

        return run

    def _note(self, leaf: Leaf) -> None:
        if leaf.served is None:
            return
        if self._file is None:
            torn = self._path.exists() and _torn(self._path)
            self._file = self._path.open("a")
            self._file.write("\n" if torn else "")
        served = dataclasses.asdict(leaf.served)
        how = {name: _number(value) if isinstance(value, float) else value for name, value in served.items()}
        which = {"run": leaf.key.run, "question": leaf.key.question, "sample": leaf.key.sample}
        self._file.write(json.dumps({**which, "tokens": len(leaf.tokens), "ended": leaf.ended, **how}) + "\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def decisions(run: Run) -> bytes:
    """Every stopping decision, then every submission, a line each: the same run gives the same bytes."""
    lines: list[dict[str, Any]] = [
        {"question": step.question, "n": step.n, "stop": step.stop, "value": _number(step.value)} for step in run.steps
    ]
    for q, question in enumerate(run.bank.questions):
        seen = int(run.bank.drawn[q].sum())
        support = [_number(float(value)) for value in run.choice.support[q, :seen]]
        lines.append(
            {
                "question": question.id,
                "submitted": run.answers[q],
                "winner": int(run.choice.winner[q]),
                "ended": run.ended[q],
                "n": seen,
                "support": support,
            }
        )
    return b"".join(json.dumps(line, default=str).encode() + b"\n" for line in lines)  # an answer may be anything


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def load(path: str | Path, *, modules: Iterable[ModuleType] = ()) -> Recorded:
    """A run directory, with its protocol rebuilt from its text; ``modules`` are those of methods of one's own."""
    modules = tuple(modules)
    path = Path(path)
    try:
        card = json.loads((path / "card.json").read_text())
    except FileNotFoundError:
        raise StoreError(f"{path} is no run directory: it has no card.json; `ramify sample {path}` makes one") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is no run directory: card.json cannot be read: {error}") from None
    protocol = card["protocol"]
    if "leaves" not in protocol:
        raise StoreError(f"{path} holds a search: the command that made it goes on with it, or finds it finished")
    with Store.open(path / "bank").snapshot() as snapshot:
        known = {question.id: question for question in snapshot.questions}
    limit = protocol["budget"]["limit"]
    try:
        leaves, cost = (restore(form, modules) for form in (protocol["leaves"], protocol["budget"]["cost"]))
        proposals = tuple(restore(form, modules) for form in protocol["arms"])
    except ParseError as error:
        raise ParseError(f"{path / 'card.json'}: {error}; a method of your own is in a module: modules=[...]") from None
    spent = Spent(*protocol["budget"].get("spent", ()))
    ledger = Ledger(protocol["budget"]["unit"], cost, math.inf if limit is None else limit, spent)
    return Recorded(
        path,
        leaves,
        proposals,
        tuple(known[name] for name in protocol["questions"] if name in known),
        ledger,
        card["concurrency"]["ahead"],
        math.inf if card["concurrency"]["allowance"] is None else card["concurrency"]["allowance"],
        card["details"],
        tuple(tuple(lengths) for lengths in card.get("prompts", ())),
    )


def _card(
    protocol: Leaves,
    questions: Sequence[Question],
    arms: Sequence[Arm],
    ledger: Ledger,
    ahead: int,
    allowance: float,
    details: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """``protocol`` decides the result; ``concurrency`` and ``host`` do not."""
    return {
        "protocol": {
            "text": text(protocol),
            "leaves": describe(protocol),
            "arms": [describe(arm.proposal) for arm in arms],
            "questions": [question.id for question in questions],
            "budget": budget_of(ledger),
        },
        "details": dict(details or {}),
        "prompts": [[len(arm.encode(question)) for question in questions] for arm in arms],
        "concurrency": {"ahead": ahead, "allowance": None if math.isinf(allowance) else allowance},
        "host": facts(),
    }


def budget_of(ledger: Ledger) -> dict[str, Any]:
    """A ledger as a card has it."""
    return {
        "unit": ledger.unit,
        "cost": describe(ledger.cost),
        "limit": None if math.isinf(ledger.limit) else ledger.limit,
        **({"spent": list(ledger.spent)} if ledger.total else {}),  # by what was run before on the same budget
    }


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """No other process is at work on this directory: two would both make, and pay for, everything."""
    path.mkdir(parents=True, exist_ok=True)
    with (path / "running").open("a") as file:
        if not disk.try_hold(file.fileno()):
            raise StoreError(f"{path}: another process is at work on this run: wait for it, or use another directory")
        yield


def begin(path: Path, card: Mapping[str, Any]) -> None:
    """Write the card, or check that the run that is there has the same protocol, or one that this one continues."""
    file = path / "card.json"
    if not file.exists():
        path.mkdir(parents=True, exist_ok=True)
        write(file, json.dumps(card, indent=1).encode() + b"\n")
        return
    there, now = json.loads(file.read_text()), json.loads(json.dumps(card))
    for part in ("protocol", "details"):
        for name in sorted({*there[part], *now[part]}):
            one, other = there[part].get(name), now[part].get(name)
            if one != other and not (part == "protocol" and _grown(there[part], now[part], name)):
                raise StoreError(
                    f"{path} holds a run of another protocol: {_changed(f'{part}.{name}', one, other)}:"
                    " go on with what it was, or use another directory"
                )
    before, after = there.get("prompts", []), now.get("prompts", [])
    if any(new[: len(old)] != old for old, new in zip(before, after, strict=False)):
        raise StoreError(f"{path} holds a run with prompts of other lengths: the arms encode questions differently now")
    if there["protocol"] != now["protocol"]:
        (path / "ledger.json").unlink(missing_ok=True)  # first: what it cost is not known until the larger run ends
        write(file, json.dumps(card, indent=1).encode() + b"\n")


def _grown(there: Mapping[str, Any], now: Mapping[str, Any], name: str) -> bool:
    """Whether a run goes on to more candidates or more questions: those that are there are the first of them.

    Not under one budget for all leaves: it would be shared out otherwise, and some that are there not be revealed.
    """
    if "leaves" in there and there["budget"]["limit"] is not None:
        return False
    if name == "questions":
        return bool(now[name][: len(there[name])] == there[name])
    if "leaves" not in there or "leaves" not in now:
        return False
    one, other = there["leaves"], now["leaves"]
    return name in ("leaves", "text") and {**one, "n": 0} == {**other, "n": 0} and other["n"] > one["n"]


def _changed(name: str, one: Any, other: Any) -> str:
    """The first place where two cards differ, and nothing of what they have in common.

    >>> _changed("leaves", {"n": 4, "cap": 200}, {"n": 6, "cap": 200})
    'leaves.n was 4, and is now 6'
    >>> _changed("questions", ["a", "b"], ["a", "b", "c"])
    'questions were 2, and are now 3'
    """
    if isinstance(one, dict) and isinstance(other, dict):
        first = next(key for key in {**one, **other} if one.get(key) != other.get(key))
        return _changed(f"{name}.{first}", one.get(first), other.get(first))
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"{name} were {len(one)}, and are now {len(other)}"
        at = next(i for i, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
        return _changed(f"{name}[{at}]", one[at], other[at])
    return f"{name} was {one!r}, and is now {other!r}"


def _generated(store: Store) -> int:
    """Tokens of the leaves that are kept."""
    with store.snapshot() as snapshot:
        return int(snapshot.lengths().sum())


def _lost(launches: Path, store: Store) -> int:
    """Rollouts that earlier attempts launched and of which nothing is left, each as often as it was launched."""
    if not launches.exists():
        return 0
    keys = list[Key]()
    for line in launches.read_text().splitlines():
        try:
            keys.append(Key(*json.loads(line)))
        except (ValueError, TypeError):  # the last line of a run that was killed
            continue
    with store.snapshot() as snapshot:
        return len(keys) - len(set(keys) & {key for key, _ in snapshot.digests()})


def _torn(path: Path) -> bool:
    """Whether the last line was cut off: what follows belongs on a line of its own."""
    data = path.read_bytes()
    return bool(data) and not data.endswith(b"\n")


def write(final: Path, data: bytes) -> None:
    written = final.with_name(f".{final.name}.tmp")
    written.write_bytes(data)
    os.replace(written, final)

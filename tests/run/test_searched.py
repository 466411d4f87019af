"""Searches into a directory: interrupted anywhere and gone on with, they end as if nothing had happened."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ramify.bank import Proposal
from ramify.decide import BestOfN
from ramify.decode import Temperature
from ramify.errors import StoreError
from ramify.ledger import Ledger, Tokens
from ramify.models import LocalSampler, Pocket, ValueHead, decode_with
from ramify.models.memory import Memory
from ramify.run import Arm, Search, run_search
from ramify.run.between import Watched
from ramify.run.record import load
from ramify.run.searched import record_search
from ramify.search import Beam, Controller, Likelihood, Rebase, ToDelimiter
from ramify.store import Store
from ramify.tasks import Countdown
from ramify.types import Leaf, Request
from tests.run.test_prefix import seen

TASK = Countdown(3)
QUESTIONS = TASK.questions(3)
MODEL = Pocket("tiny")
LINE = ToDelimiter((MODEL.encode("\n")[0],))
LEDGER = Ledger("tokens", Tokens(), 900)


def arm() -> Arm:
    sampler = decode_with(MODEL, Temperature(1.0), batch=16)
    return Arm(Proposal(run="kept", protocol="Temperature(1.0)"), sampler, lambda q: tuple(MODEL.encode(q.prompt)))


def search(controller: Controller) -> Search:
    return Search(controller, Likelihood(), cap=60, rule=BestOfN("score"))


@dataclasses.dataclass
class Dies:
    """A sampler that is interrupted when it has given so many leaves."""

    sampler: LocalSampler
    after: int

    def remember(self, capacity: float) -> Memory:
        return self.sampler.remember(capacity)

    def sharing(self, memory: Memory) -> Dies:
        self.sampler = self.sampler.sharing(memory)
        return self

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        for leaf in self.sampler(requests):
            if not self.after:
                raise KeyboardInterrupt
            self.after -= 1
            yield leaf


def _dying(source: Arm, after: int) -> Arm:
    assert isinstance(source.sampler, LocalSampler)
    return dataclasses.replace(source, sampler=Dies(source.sampler, after))


@pytest.mark.parametrize("controller", [Beam(n=4, m=2, unit=LINE), Rebase(width=4, unit=LINE)])
@pytest.mark.parametrize("after", [0, 3, 20])
def test_an_interrupted_search_ends_as_another(tmp_path: Path, controller: Controller, after: int) -> None:
    protocol = search(controller)
    whole = run_search(protocol, QUESTIONS, arm(), LEDGER, TASK.parse)
    with pytest.raises(KeyboardInterrupt):
        record_search(tmp_path / "run", protocol, QUESTIONS, _dying(arm(), after), LEDGER, TASK.parse)
    told = list[tuple[int, bool]]()
    found = record_search(
        tmp_path / "run", protocol, QUESTIONS, arm(), LEDGER, TASK.parse, tell=lambda *draw: told.append(draw)
    )
    assert sum(there for _, there in told) == after, "what was given was durable"
    assert found.answers == whole.answers
    assert found.ledgers == whole.ledgers
    assert seen(found) == seen(whole)
    assert sum(tokens for tokens, _ in told) == sum(each.spent.generate for each in whole.ledgers)
    with Store.open(tmp_path / "run" / "bank").snapshot() as snapshot:
        kept = snapshot.bank()
    assert np.asarray(kept.text).tolist() == np.asarray(whole.bank.text).tolist()
    assert sorted(kept.layers) == sorted(whole.bank.layers)


def test_a_finished_search_draws_nothing_and_writes_the_same(tmp_path: Path) -> None:
    protocol = search(Beam(n=4, m=2, unit=LINE))
    record_search(tmp_path, protocol, QUESTIONS, arm(), LEDGER, TASK.parse)
    before = (tmp_path / "decisions.jsonl").read_bytes()
    record_search(tmp_path, protocol, QUESTIONS, _dying(arm(), 0), LEDGER, TASK.parse)
    assert (tmp_path / "decisions.jsonl").read_bytes() == before
    assert before.count(b"\n") == len(QUESTIONS)


def test_another_search_does_not_go_on_with_it(tmp_path: Path) -> None:
    record_search(tmp_path, search(Beam(n=4, m=2, unit=LINE)), QUESTIONS, arm(), LEDGER, TASK.parse)
    with pytest.raises(StoreError, match=r"another protocol.*was 4, and is now 6.*another directory"):
        record_search(tmp_path, search(Beam(n=6, m=2, unit=LINE)), QUESTIONS, arm(), LEDGER, TASK.parse)
    with pytest.raises(StoreError, match="holds a search"):
        load(tmp_path)


def test_samplers_between_offer_the_memory_of_the_one_under_them(tmp_path: Path) -> None:
    """Without it every step is replayed from its prompt: the same result, at several times the work."""
    protocol = search(Beam(n=4, m=2, unit=LINE))
    plain = run_search(protocol, QUESTIONS, arm(), LEDGER, TASK.parse).compute.sharing
    told = list[int]()
    watched = dataclasses.replace(arm(), sampler=Watched(arm().sampler, told.append))
    seen = run_search(protocol, QUESTIONS, watched, LEDGER, TASK.parse)
    kept = record_search(tmp_path, protocol, QUESTIONS, arm(), LEDGER, TASK.parse)
    assert plain is not None
    assert plain.forks > 0
    assert seen.compute.sharing == kept.compute.sharing == plain
    assert sum(told) == sum(each.spent.generate for each in seen.ledgers)
    assert not hasattr(Watched(lambda _: iter(()), told.append), "remember"), "nor one that it does not have"


def test_a_head_that_reads_shared_states_reads_the_same_when_they_are_gone(tmp_path: Path) -> None:
    """After an interruption no state is in memory: what a head reads is computed again, to the same search."""
    model = Pocket("main")
    line = ToDelimiter((model.encode("\n")[0],))
    protocol = Search(Beam(n=4, m=2, unit=line), ValueHead("main", shared=True), cap=60, rule=BestOfN("score"))
    own = Arm(
        Proposal(run="kept", protocol="Temperature(1.0)"),
        decode_with(model, Temperature(1.0), batch=16),
        lambda q: tuple(model.encode(q.prompt)),
    )
    whole = run_search(protocol, QUESTIONS, own, LEDGER, TASK.parse)
    with pytest.raises(KeyboardInterrupt):
        record_search(tmp_path, protocol, QUESTIONS, _dying(own, 15), LEDGER, TASK.parse)
    found = record_search(tmp_path, protocol, QUESTIONS, own, LEDGER, TASK.parse)
    assert seen(found) == seen(whole)
    assert found.ledgers == whole.ledgers

"""A run directory: decided again without a model, made again with one, interrupted anywhere and resumed."""

from __future__ import annotations

import dataclasses
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ramify.bank import Candidates, Choice, Proposal
from ramify.decide import BestOfN
from ramify.decode import Temperature
from ramify.describe import method
from ramify.errors import ParseError, StoreError
from ramify.evidence import deepconf_lowest
from ramify.ledger import Ledger, Tokens, Work
from ramify.models import Pocket, decode_with
from ramify.run import Arm, Leaves
from ramify.run.record import load, record_leaves
from ramify.run.replay import Redecided, audit, redecide, regenerate
from ramify.stop import AdaptiveConsistency, LeaderShare, TokenLimit
from ramify.store import Store
from ramify.tasks import Countdown
from ramify.types import Leaf, Question, Request, Sampler
from tests.run.tools import MODEL, arm, parse, questions
from tests.store.tools import canonical

PROTOCOL = Leaves(n=6, cap=8, stop=AdaptiveConsistency(0.8))
LEDGER = Ledger("tokens", Tokens(), limit=150)
FILES = ("decisions.jsonl",)


def recorded(path: Path, sampler: Sampler | None = None, ahead: int = 4) -> Path:
    record_leaves(path, PROTOCOL, questions(6), [arm(sampler=sampler)], LEDGER, parse, ahead=ahead)
    return path


def same(one: Path, other: Path) -> bool:
    costs = [json.loads((path / "ledger.json").read_text()) for path in (one, other)]
    for each in costs:
        each.pop("lost"), each.pop("surplus"), each.pop("beside")
    files = all((one / name).read_bytes() == (other / name).read_bytes() for name in FILES)
    return files and costs[0] == costs[1] and canonical(one / "bank") == canonical(other / "bank")


@method
class Latest:
    """The last eligible candidate: a rule that is not of the package."""

    def __call__(self, candidates: Candidates) -> Choice:
        n = candidates.eligible.shape[-1]
        found = np.where(candidates.eligible, np.arange(n), -1)
        winner = found.max(axis=-1)
        return Choice(winner, found.astype(np.float64), winner[..., None])


def test_a_run_under_a_rule_of_ones_own_is_decided_again_if_its_module_is_handed_in(tmp_path: Path) -> None:
    path = tmp_path / "run"
    protocol = Leaves(n=6, cap=8, rule=Latest(), stop=AdaptiveConsistency(0.8))
    record_leaves(path, protocol, questions(6), [arm()], LEDGER, parse)
    mine = sys.modules[__name__]
    assert load(path, modules=[mine]).protocol == protocol
    assert redecide(path, parse, modules=[mine]).exact
    assert regenerate(path, [arm()], parse, modules=[mine]).exact
    with pytest.raises(ParseError, match=r"Latest is not a name of ramify.*modules="):
        redecide(path, parse)


def test_a_run_is_decided_again_from_its_record_byte_for_byte(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run")
    assert redecide(path, parse).exact
    read = load(path)
    assert read.protocol == PROTOCOL
    assert read.ledger == LEDGER
    lines = (path / "decisions.jsonl").read_text().splitlines()
    lines[2] = lines[2].replace('"stop": false', '"stop": true')
    (path / "decisions.jsonl").write_text("\n".join(lines) + "\n")
    found = redecide(path, parse)
    assert not found.exact
    assert found.line == 3
    assert '"stop": false' in found.now


def test_a_run_is_made_again_with_its_model_and_the_first_divergence_is_shown(tmp_path: Path) -> None:
    protocol, path = Leaves(n=4, cap=8, top=2), tmp_path / "run"
    record_leaves(path, protocol, questions(6), [arm()], LEDGER, parse)
    found = regenerate(path, [arm()], parse)
    assert found.exact
    assert (found.traces, found.changed_tokens, found.changed_decisions) == (found.traces, 0, 0)
    warmer = Arm(arm().proposal, decode_with(MODEL, Temperature(2.0)), lambda _: ())
    found = audit(path, [warmer], parse)
    assert 0 < found.changed_traces < found.traces
    assert found.first is not None
    assert found.first.stored != found.first.now
    assert len(found.first.stored_top) == 2
    ids = [[i for i, _ in top] for top in (found.first.stored_top, found.first.now_top)]
    assert ids[0] == ids[1], "the alternatives are the raw model's: only the decoder changed"


def test_under_other_arithmetic_a_stop_may_ask_for_more_than_there_is(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run")
    warmer = Arm(arm().proposal, decode_with(MODEL, Temperature(5.0)), lambda _: ())
    with pytest.raises(StoreError, match="asks for a leaf that the record does not have"):
        audit(path, [warmer], parse)


def test_an_audit_in_double_precision_counts_what_changes(tmp_path: Path) -> None:
    task = Countdown(3)

    def answer(text: str, question: Question) -> str | None:
        return task.parse(text, question).answer

    def of(precision: str) -> Arm:
        model = Pocket("tiny", precision=precision)
        return Arm(Proposal(run="audit"), decode_with(model, Temperature(1.0)), lambda q: tuple(model.encode(q.prompt)))

    protocol = Leaves(n=4, cap=60, top=3)
    record_leaves(
        tmp_path / "run", protocol, task.questions(3), [of("float32")], Ledger("tokens", Tokens()), answer, ahead=12
    )
    assert regenerate(tmp_path / "run", [of("float32")], answer).exact
    found = audit(tmp_path / "run", [of("float64")], answer)
    assert found.traces == 12
    assert 0 <= found.changed_traces <= 12
    assert found.decisions == 3
    assert (found.first is None) == (found.changed_traces == 0)


class Interrupted(Exception):
    """Stands for Ctrl-C."""


def breaking(sampler: Sampler, after: int) -> Sampler:
    def run(requests: Iterable[Request]) -> Iterator[Leaf]:
        for done, leaf in enumerate(sampler(requests)):
            if done >= after:
                raise Interrupted
            yield leaf

    return run


@pytest.mark.parametrize("ahead", [1, 8])
def test_an_interrupted_run_resumes_to_the_same_result(tmp_path: Path, ahead: int) -> None:
    whole = recorded(tmp_path / "whole")
    path, rng = tmp_path / "run", random.Random(ahead)
    for _ in range(40):
        try:
            recorded(path, breaking(arm().sampler, rng.randrange(0, 5)), ahead)
            break
        except Interrupted:
            assert not (path / "decisions.jsonl").exists()
    recorded(path, ahead=ahead)
    assert same(path, whole)
    lost = json.loads((path / "ledger.json").read_text())["lost"]
    assert lost["leaves"] >= (0 if ahead == 1 else 1)
    assert redecide(path, parse).exact


PROGRAM = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.run.test_record import recorded
print("go", flush=True)
recorded(Path(sys.argv[1]))
"""


def test_a_killed_run_resumes_to_the_same_result(tmp_path: Path) -> None:
    whole, path, rng = recorded(tmp_path / "whole"), tmp_path / "run", random.Random(0)
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    recorded(path)
    assert same(path, whole)


def test_another_protocol_in_the_directory_is_refused(tmp_path: Path) -> None:
    recorded(tmp_path / "run")
    with pytest.raises(StoreError, match=r"another protocol: protocol\.leaves\.n was 6, and is now 9: go on"):
        record_leaves(tmp_path / "run", Leaves(n=9, cap=8), questions(6), [arm()], LEDGER, parse)
    with pytest.raises(StoreError, match="is no run directory"):
        load(tmp_path)


def test_the_card_says_what_the_run_was_made_by(tmp_path: Path) -> None:
    card = json.loads((recorded(tmp_path / "run") / "card.json").read_text())
    assert card["protocol"]["text"] == repr(PROTOCOL)
    assert card["protocol"]["budget"]["limit"] == 150
    assert {"numpy", "scipy", "ramify"} <= set(card["host"]["libraries"])
    assert card["concurrency"]["ahead"] == 4


def letter(text: str, question: Question) -> str | None:
    """An answer even of a trace that was cut: whether it votes makes a difference."""
    return next((each for each in text.split() if each in "abc"), None)


def test_leaves_that_the_budget_or_a_rule_cut_are_made_again_as_they_were(tmp_path: Path) -> None:
    cut = 0
    for number, protocol in enumerate((Leaves(n=5, cap=6, truncate=True), Leaves(n=5, cap=6, within=TokenLimit(1)))):
        for limit in (5, 6, 7, 8):
            path = tmp_path / f"{number}-{limit}"
            ledger = Ledger("tokens", Tokens(), limit=limit)
            found = record_leaves(path, protocol, questions(2), [arm()], ledger, letter, ahead=3)
            with load(path).store.snapshot() as snapshot:
                kept = snapshot.bank()
            ended = [[bank.endings[code] for code in bank.ended[bank.drawn]] for bank in (found.bank, kept)]
            assert ended[0] == ended[1]
            cut += any(each.startswith("stop:") for each in ended[0])
            assert redecide(path, letter).exact
            again = regenerate(path, [arm()], letter)
            assert again.exact
            assert again.changed_decisions == 0
    assert cut >= 4


def test_decisions_that_read_the_alternatives_are_the_same_from_memory_and_from_disk(tmp_path: Path) -> None:
    """The store keeps alternatives in single precision; the model here computes in double."""
    protocol = Leaves(n=6, cap=8, top=3, rule=BestOfN("sure"), evidence=(("sure", deepconf_lowest(2, 2)),))
    record_leaves(tmp_path / "run", protocol, questions(6), [arm()], Ledger("tokens", Tokens()), parse)
    assert redecide(tmp_path / "run", parse) == Redecided(True)
    assert regenerate(tmp_path / "run", [arm()], parse).changed_decisions == 0


def test_a_budget_that_charges_prompts_or_was_charged_before_is_replayed(tmp_path: Path) -> None:
    prompted = dataclasses.replace(arm(), encode=lambda question: (3,) * (1 + int(question.id[1:])))
    ledger = Ledger("tokens", Tokens(prompt=True), limit=60).charge("generate", Work(generated=20))
    protocol = Leaves(n=5, cap=6, share_prompt=False)
    run = record_leaves(tmp_path / "run", protocol, questions(3), [prompted], ledger, parse)
    assert "budget" in run.ended
    assert load(tmp_path / "run").ledger.spent == ledger.spent
    assert redecide(tmp_path / "run", parse) == Redecided(True)
    again = regenerate(tmp_path / "run", [prompted], parse)
    assert (again.changed_traces, again.changed_decisions) == (0, 0)
    with pytest.raises(StoreError, match="prompts of other lengths"):
        record_leaves(tmp_path / "run", protocol, questions(3), [arm()], ledger, parse)


def test_a_finished_run_keeps_its_ledger_when_it_is_asked_for_again(tmp_path: Path) -> None:
    protocol, path = Leaves(n=12, cap=30, stop=LeaderShare(0.6, least=2), order="questions"), tmp_path / "run"
    for _ in range(2):
        record_leaves(path, protocol, questions(6), [arm(batch=24)], Ledger("tokens", Tokens()), parse, ahead=24)
        costs = json.loads((path / "ledger.json").read_text())
        assert costs["surplus"] > 0
        assert costs["lost"]["leaves"] == 0


def test_work_that_was_lost_twice_is_booked_twice(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run")
    (path / "ledger.json").unlink()
    lines = (path / "launches.log").read_text().splitlines(keepends=True)
    with Store.open(path / "bank").snapshot() as snapshot:
        kept = {(key.question, key.sample) for key, _ in snapshot.digests()}
    surplus = sum(tuple(json.loads(line)[1:]) not in kept for line in lines)
    (path / "launches.log").write_text("".join([*lines, lines[0], lines[0], lines[1][:-4]]))  # cut off
    recorded(path)
    assert json.loads((path / "ledger.json").read_text())["lost"]["leaves"] == surplus + 2
    assert all(json.loads(line) for line in (path / "launches.log").read_text().splitlines()[: len(lines)])


def test_an_answer_that_json_does_not_know_is_written_as_its_text(tmp_path: Path) -> None:
    def half(text: str, question: Question) -> Fraction:
        return Fraction(1, 2)

    record_leaves(tmp_path / "run", Leaves(n=2, cap=6), questions(2), [arm()], LEDGER, half)
    assert b'"submitted": "1/2"' in load(tmp_path / "run").decisions
    assert redecide(tmp_path / "run", half).exact

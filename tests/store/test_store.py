"""A bank on disk says what was put in, resumes, tops up, refuses another protocol, and keeps grades behind the wall."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ramify.bank import Bank, Layer, Outcomes, Proposal
from ramify.decode import Temperature
from ramify.errors import InvalidValue, StoreError
from ramify.models import Pocket, decode_with
from ramify.store import Store
from ramify.store.records import Record
from ramify.tasks import Countdown
from ramify.types import Key, Leaf, Question, Request
from tests.store.tools import PROPOSAL, QUESTIONS, canonical, contents, record

TASK = Countdown(3)


def parsed(text: str, question: Question) -> str | None:
    return TASK.parse(text, question).answer


@pytest.fixture(scope="module")
def leaves() -> list[Leaf]:
    model = Pocket("tiny")
    requests = [
        Request(Key("run", question.id, sample), model.encode(question.prompt), cap=48, top=4)
        for question in TASK.questions(3)
        for sample in range(5)
    ]
    return sorted(decode_with(model, Temperature(0.9))(requests), key=lambda leaf: leaf.key)


def test_leaves_come_back_whole(tmp_path: Path, leaves: list[Leaf]) -> None:
    store = Store.create(tmp_path / "bank")
    with store.writer(PROPOSAL) as writer:
        writer.ask(TASK.questions(3))
        kept = list(writer.keep(leaves, parsed))
        assert [leaf.key for leaf in kept] == [leaf.key for leaf in leaves]
        assert len(contents(store.path)) == 15, "readers see what is in the journal"
    with store.snapshot() as snapshot:
        back = {each.key: each.leaf() for each in snapshot.records()}
        bank = snapshot.bank(columns=("token", "logprob", "log_q", "rank", "top_ids", "top_logprobs"))
    expected = Bank.of_leaves(TASK.questions(3), leaves, parsed, proposal=PROPOSAL)
    for leaf in leaves:
        for name in ("tokens", "role", "logprob", "log_q", "rank", "support", "fallback"):
            assert np.array_equal(getattr(back[leaf.key], name), getattr(leaf, name), equal_nan=name == "log_q"), name
        assert (back[leaf.key].text, back[leaf.key].ended) == (leaf.text, leaf.ended)
    assert bank.questions == expected.questions
    assert bank.proposals == expected.proposals
    assert np.array_equal(bank.answers, expected.answers)
    assert bank.answer_text == expected.answer_text
    assert bank.length is not None
    assert bank.length.tolist() == np.asarray(expected.length).tolist()
    assert bank.tokens is not None
    assert expected.tokens is not None
    for q, n in np.ndindex(bank.shape):
        for name, column in bank.tokens.of(q, n).items():
            wanted = expected.tokens.of(q, n)[name]
            assert np.array_equal(column, wanted.astype(column.dtype), equal_nan=name == "log_q"), name


def test_running_again_resumes_and_asking_for_more_tops_up(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    keys = [Key("run", question.id, sample) for question in QUESTIONS for sample in range(4)]
    for wanted in (2, 2, 4):
        with store.writer(PROPOSAL) as writer:
            writer.ask(QUESTIONS)
            missing = writer.missing(key for key in keys if key.sample < wanted)
            for key in missing:
                writer.append(record(writer, int(key.question[1:]), key.sample))
            assert len(missing) == (0 if wanted == 2 and len(contents(store.path)) > 12 else len(missing))
    assert len(contents(store.path)) == 24
    again = Store.create(tmp_path / "again")
    with again.writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS)
        writer.append(*(record(writer, int(key.question[1:]), key.sample) for key in reversed(keys)))
    assert contents(store.path) == contents(again.path)
    assert canonical(store.path) == canonical(again.path), "three runs or one, forwards or backwards: the same bytes"


def test_a_key_is_written_once_and_another_content_under_it_is_refused(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    with store.writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS)
        for _ in range(2):
            writer.append(record(writer, 0, 0), record(writer, 0, 0))
        with pytest.raises(StoreError, match=r"other content .*columns|other content .*the tokens'|other content"):
            writer.append(record(writer, 0, 0, salt=1))
    with store.writer(PROPOSAL) as writer, pytest.raises(StoreError, match="did the model or its engine change"):
        writer.append(record(writer, 0, 0, salt=1))
    assert len(contents(store.path)) == 1


def test_two_writers_that_disagree_are_reported_and_the_first_counts(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    one, two = store.writer(PROPOSAL), store.writer(PROPOSAL)
    for writer, salt in ((one, 0), (two, 1)):
        writer.ask(QUESTIONS)
        writer.append(record(writer, 0, 0, salt))
    first = record(one, 0, 0).digest
    assert list(contents(store.path).values()) == [first]
    one.close()
    two.close()
    assert list(contents(store.path).values()) == [first]
    [problem] = store.verify()
    assert "has two contents" in str(problem)
    with pytest.raises(StoreError, match="two contents"):
        store.compact()


def test_another_protocol_is_refused_with_the_difference(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    with store.writer(PROPOSAL, {"cap": 100}) as writer:
        writer.ask(QUESTIONS)
        writer.append(record(writer, 0, 0))
    before = contents(store.path)
    other = Proposal(run="run", protocol="Temperature(t=0.6)", top=3, stage="raw", signals=("token", "logprob"))
    with pytest.raises(
        StoreError, match=r"proposal.protocol: 'Temperature\(t=1.0\)' there, 'Temperature\(t=0.6\)' now"
    ):
        store.writer(other, {"cap": 100})
    with pytest.raises(StoreError, match=r"details.cap: 100 there, 200 now"):
        store.writer(PROPOSAL, {"cap": 200}, beside=True)
    beside = Proposal(run="cooler", protocol="Temperature(t=0.6)")
    with pytest.raises(StoreError, match="beside=True"):
        store.writer(beside)
    with store.writer(beside, beside=True) as writer:
        writer.append(Record(Key("cooler", "q0", 0), writer.card.hash, answer="x"))
    assert contents(store.path).items() > before.items()
    with store.snapshot() as snapshot:
        assert snapshot.bank().kind == "heterogeneous"


def test_layers_and_outcomes_are_attached_later_and_only_outcomes_stay_behind_the_wall(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    with store.writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS[:2])
        writer.append(*(record(writer, q, n) for q in range(2) for n in range(3 + q)))
    with store.snapshot() as snapshot:
        bank = snapshot.bank()
    values = np.where(bank.drawn, np.random.default_rng(0).random(bank.shape), np.nan)
    values[0, 1] = np.nan
    store.add_layer("judge", bank, Layer(values, "Judge(model='x')", "2", np.where(bank.drawn, 7.0, 0.0)))
    grades = Outcomes.of(bank, np.where(bank.drawn, 1.0, np.nan), "exact", "1")
    store.add_outcomes("exact", bank, grades)
    with pytest.raises(InvalidValue, match="a new version is a new name"):
        store.add_layer("judge", bank, Layer(values, "another"))
    store.compact()
    with store.snapshot() as snapshot:
        again = snapshot.bank()
        assert snapshot.outcome_names == ["exact"]
        assert np.array_equal(snapshot.outcomes("exact").on(again), grades.values, equal_nan=True)
    layer = again.layers["judge"]
    assert (layer.description, layer.version) == ("Judge(model='x')", "2")
    assert np.array_equal(layer.values, values, equal_nan=True)
    assert list(again.layers) == ["judge"]


def test_a_bank_in_memory_goes_to_disk_and_back(tmp_path: Path) -> None:
    bank = Bank.of({"a": ["1", None, "2"], "b": ["3"]}, scores={"reward": [[0.5, None, 0.25], [1.0]]})
    outcomes = Outcomes.of(bank, [[1, 0, np.nan], [1, np.nan, np.nan]], "grade")
    store = Store.create(tmp_path / "bank")
    for _ in range(2):
        store.add_bank(bank, {"grade": outcomes})
    with store.snapshot() as snapshot:
        again, grades = snapshot.bank(), snapshot.outcomes("grade").values
        assert "unknown" in str(snapshot.inventory()), "an ending that was not recorded leaves the cap count unknown"
    assert np.array_equal(again.answers, bank.answers)
    assert np.array_equal(again.layers["reward"].values, bank.layers["reward"].values, equal_nan=True)
    assert np.array_equal(grades, outcomes.values, equal_nan=True)
    assert again.length is not None
    assert (again.length == -1).all()


def test_topping_up_a_bank_adds_the_scores_and_grades_of_what_is_new(tmp_path: Path) -> None:
    first = Bank.of({"a": ["1", "2"]}, scores={"reward": [[0.5, 0.25]]})
    more = Bank.of({"a": ["1", "2", "3"], "b": ["4"]}, scores={"reward": [[0.5, 0.25, -np.inf], [1.0]]})
    store = Store.create(tmp_path / "bank")
    store.add_bank(first, {"right": Outcomes.of(first, [[1, np.nan]], "exact")})
    for _ in range(2):
        store.add_bank(more, {"right": Outcomes.of(more, [[1, 0, 1], [0, np.nan, np.nan]])})
    with store.snapshot() as snapshot:
        bank, right = snapshot.bank(), snapshot.outcomes("right")
    assert np.array_equal(bank.layers["reward"].values, more.layers["reward"].values, equal_nan=True)
    expected = np.array([[1, 0, 1], [0, np.nan, np.nan]])
    assert np.array_equal(right.on(bank), expected, equal_nan=True)
    assert right.description == "exact"
    assert store.verify() == []


def test_another_grade_of_a_candidate_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    first, more = Bank.of({"a": ["1", "2"]}), Bank.of({"a": ["1", "2", "3"]})
    store = Store.create(tmp_path / "bank")
    store.add_bank(first, {"right": Outcomes.of(first, [[1, 0]])})
    with pytest.raises(StoreError, match="question 'a', sample 1: 0 there, 1 now; a new version is a new name"):
        store.add_bank(more, {"right": Outcomes.of(more, [[1, 1, 1]])})
    with store.snapshot() as snapshot:
        assert snapshot.shape == (1, 2)


def test_streamed_evidence_is_that_of_the_bank_in_memory(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    writer = store.writer(PROPOSAL)
    writer.ask(QUESTIONS)
    writer.append(*(record(writer, q, n) for q in range(6) for n in range(4)))
    writer.close()
    writer = store.writer(PROPOSAL)
    writer.append(*(record(writer, q, n) for q in range(6) for n in range(4, 7)))  # still in a journal

    def total(offsets: np.ndarray, columns: dict[str, np.ndarray]) -> np.ndarray:
        sums = np.concatenate([[0.0], np.cumsum(columns["top_logprobs"].sum(axis=1, dtype=np.float64))])
        found: np.ndarray = sums[offsets[1:]] - sums[offsets[:-1]]
        return found

    with store.snapshot() as snapshot:
        bank = snapshot.bank(columns=("top_logprobs",), scratch=tmp_path / "scratch")
        assert bank.tokens is not None
        assert isinstance(bank.tokens["top_logprobs"], np.memmap)
        for workers in (1, 2):
            values = snapshot.evidence(total, ("top_logprobs",), workers=workers)  # type: ignore[arg-type]
            for q, n in np.ndindex(bank.shape):
                if bank.tokens.start[q, n] >= 0:
                    assert values[q, n] == pytest.approx(
                        bank.tokens.of(q, n)["top_logprobs"].sum(dtype=np.float64), abs=1e-9
                    )
    writer.close()


def test_readers_see_whole_snapshots_while_writers_and_compaction_work(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    done, seen, failures = threading.Event(), [0], list[BaseException]()

    def read() -> None:
        try:
            while not done.is_set():
                count = len(contents(store.path))
                assert count >= seen[-1], "what was there is there"
                seen.append(count)
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for part in range(4):
        with store.writer(PROPOSAL) as writer:
            writer.ask(QUESTIONS)
            for n in range(part * 3, part * 3 + 3):
                writer.append(*(record(writer, q, n) for q in range(6)))
        store.compact()
    done.set()
    reader.join()
    assert not failures, failures
    assert len(contents(store.path)) == 72
    store.compact()
    assert len(list((store.path / "shards").iterdir())) == 4, "nobody reads any more, so old files are gone"
    assert store.verify() == []


def test_reduced_records_keep_confidence_and_entropy(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    with store.writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS)
        whole = record(writer, 0, 1)
        writer.append(whole.reduced())
    with store.snapshot() as snapshot:
        [back] = snapshot.records()
    top = whole.columns["top_logprobs"].astype(np.float64)
    p = np.exp(top) / np.exp(top).sum(axis=1, keepdims=True)
    assert "top_ids" not in back.columns
    assert np.allclose(back.columns["confidence"], -top.mean(axis=1), rtol=2**-16)
    assert np.allclose(back.columns["entropy"], -(p * np.log(p)).sum(axis=1), rtol=2**-15, atol=1e-6)


def test_a_vocabulary_is_stored_once(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    names = {store.add_vocabulary(["a", "b", " c\n"]) for _ in range(2)}
    with store.snapshot() as snapshot:
        assert [snapshot.vocabulary(name) for name in names] == [["a", "b", " c\n"]]


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is not a bank: .* Store.create"):
        Store.open(tmp_path)
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(StoreError, match="not empty"):
        Store.create(tmp_path)
    store = Store.create(tmp_path / "bank")
    with store.writer(PROPOSAL) as writer:
        with pytest.raises(StoreError, match="record the question first"):
            writer.append(record(writer, 0, 0))
        writer.ask(QUESTIONS)
        with pytest.raises(StoreError, match="give it another id"):
            writer.ask([Question("q0", "something else")])
        with pytest.raises(StoreError, match="give the leaf's key that run"):
            writer.append(Record(Key("other", "q0", 0), writer.card.hash))
    with pytest.raises(StoreError, match="is closed"):
        writer.append(record(writer, 0, 0))
    (store.path / "bank.json").write_text('{"format":"ramify-bank","schema":99}')
    with pytest.raises(StoreError, match="schema 99; this ramify reads"):
        Store.open(store.path)


def lengths(offsets: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.diff(offsets).astype(float)


def of_run(run: str, card: str, k: int, **columns: np.ndarray) -> Record:
    top = {"top_ids": np.zeros((2, k), np.int32), "top_logprobs": np.zeros((2, k), np.float32)}
    return Record(Key(run, "q0", 0), card, length=2, columns={"token": np.zeros(2, np.int32), **top, **columns})


def test_evidence_is_unknown_where_a_column_was_not_recorded_and_not_what_nothing_sums_to(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    with store.writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS)
        writer.append(*(record(writer, 0, n) for n in range(5)))  # the fifth has no tokens
    with store.writer(Proposal(run="other"), beside=True) as writer:
        writer.append(Record(Key("other", "q0", 0), writer.card.hash, columns={"token": np.zeros(3, np.int32)}))
    for _ in range(2):
        with store.snapshot() as snapshot:
            assert np.isnan(snapshot.evidence(lengths, ("logprob",))[0]).tolist() == [True] + [False] * 4 + [True]
            both = snapshot.evidence(lengths, ("token", "logprob"))
            assert np.isnan(both[0]).tolist() == [True] + [False] * 4 + [True]
        store.compact()


def test_alternatives_of_different_k_in_one_row_group_are_named(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "bank")
    for run, k in (("a", 2), ("b", 3)):
        with store.writer(Proposal(run=run), beside=True) as writer:
            writer.ask(QUESTIONS[:1])
            writer.append(of_run(run, writer.card.hash, k))
    store.compact()
    with store.snapshot() as snapshot, pytest.raises(StoreError, match=r"top_logprobs was recorded with K of \[2, 3\]"):
        snapshot.evidence(lengths, ("top_logprobs",))


def test_a_bank_with_reduced_evidence_can_be_kept_again(tmp_path: Path) -> None:
    store, again = Store.create(tmp_path / "bank"), Store.create(tmp_path / "again")
    with store.writer(PROPOSAL) as writer:
        writer.ask(QUESTIONS)
        writer.append(*(record(writer, 0, n).reduced() for n in range(3)))
    with store.snapshot() as snapshot:
        again.add_bank(snapshot.bank(columns=("token", "confidence", "entropy")))
    assert again.verify() == []

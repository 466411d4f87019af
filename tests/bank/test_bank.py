"""Slicing keeps everything aligned; what was not recorded is unknown; provenance decides what may be claimed."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.bank import Bank, Candidates, Layer, Outcomes, Proposal, TokenTable, union
from ramify.decode import Temperature
from ramify.errors import InvalidValue
from ramify.models import Tabular, decode_with
from ramify.types import Key, Leaf, Question, Request

MODEL = Tabular(("a", "b", "c", "."), (((), (0.3, 0.3, 0.2, 0.2)),), eos=3)


def parsed(text: str, question: Question) -> str | None:
    """The last letter before the end, or ⊥."""
    return next((letter for letter in reversed(text.split()) if letter != "."), None)


def generated(run: str = "run", counts: tuple[int, ...] = (5, 3, 4), top: int = 2) -> tuple[Bank, list[Leaf]]:
    questions = [
        Question(f"q{i}", f"prompt {i}", {"field": "even" if i % 2 == 0 else "odd"}) for i in range(len(counts))
    ]
    requests = [
        Request(Key(run, question.id, sample), (), cap=4, top=top)
        for question, count in zip(questions, counts, strict=True)
        for sample in range(count)
    ]
    leaves = list(decode_with(MODEL, Temperature(1.0))(requests))
    proposal = Proposal(run=run, protocol="Temperature(t=1.0)", top=top, stage="raw")
    shuffled = random.Random(0).sample(leaves, len(leaves))
    return Bank.of_leaves(questions, shuffled, parsed, proposal=proposal), leaves


def facts(bank: Bank) -> dict[tuple[str, str, int], tuple[object, ...]]:
    """Everything the bank says of each candidate, by key: what no slicing may change."""
    found: dict[tuple[str, str, int], tuple[object, ...]] = {}
    for q, n in zip(*np.nonzero(bank.drawn), strict=True):
        key = bank.key(q, n)
        assert bank.tokens is not None
        assert bank.text is not None
        tokens = tuple(tuple(np.asarray(part).ravel().tolist()) for part in bank.tokens.of(q, n).values())
        layers = tuple(float(layer.values[q, n]) for layer in bank.layers.values())
        ending = bank.endings[bank.ended[q, n]]
        found[key.run, key.question, key.sample] = (bank.answer(q, n), ending, bank.text[q, n], repr(tokens), layers)
    return found


def test_a_bank_of_leaves_says_what_the_leaves_say() -> None:
    bank, leaves = generated()
    assert bank.shape == (3, 5)
    assert bank.drawn.sum(1).tolist() == [5, 3, 4]
    assert bank.tokens is not None
    assert bank.length is not None
    assert bank.log_q is not None
    for leaf in leaves:
        q, n = int(leaf.key.question[1:]), leaf.key.sample
        assert bank.key(q, n) == leaf.key
        assert bank.answer(q, n) == parsed(leaf.text, bank.questions[q])
        assert bank.endings[bank.ended[q, n]] == leaf.ended
        assert bank.length[q, n] == len(leaf.tokens)
        assert bank.log_q[q, n] == leaf.sequence_log_q
        columns = bank.tokens.of(q, n)
        assert columns["token"].tolist() == leaf.tokens.tolist()
        assert leaf.top is not None
        assert np.array_equal(columns["top_logprobs"], leaf.top.logprobs)
    assert bank.length[1, 3] == -1
    assert np.isnan(bank.log_q[1, 3])


@given(st.data())
def test_any_slicing_keeps_every_candidate_as_it_was(data: st.DataObject) -> None:
    bank, _ = generated()
    bank = bank.attach("score", Layer(np.arange(15.0).reshape(3, 5), "a test", cost=np.ones((3, 5))))
    whole = facts(bank)
    for _ in range(data.draw(st.integers(1, 4))):
        match data.draw(st.sampled_from(["first", "permuted", "only", "take", "by"])):
            case "first":
                bank = bank.first(data.draw(st.integers(0, 6)))
            case "permuted":
                bank = bank.permuted("replay", data.draw(st.integers(0, 3)))
            case "only":
                bank = bank.only(np.array(data.draw(st.permutations(range(len(bank.questions))))[:2], dtype=np.int64))
            case "take":
                order = data.draw(st.permutations(range(-1, bank.shape[1])))
                bank = bank.take(np.array(order[: max(1, len(order) - 1)]))
            case "by":
                bank = data.draw(st.sampled_from(list(bank.by("field").values()))) if bank.questions else bank
    assert facts(bank).items() <= whole.items()


def test_a_permutation_keeps_all_candidates_and_puts_the_undrawn_last() -> None:
    bank, _ = generated()
    shuffled = bank.permuted("replay")
    assert facts(shuffled) == facts(bank)
    assert (np.diff(shuffled.drawn.astype(int), axis=1) <= 0).all()
    assert not np.array_equal(shuffled.samples, bank.samples)


def test_a_union_holds_the_candidates_of_all() -> None:
    one, two = generated("one")[0], generated("two", counts=(2, 4))[0]
    both = union(one, two)
    assert facts(both) == {**facts(one), **facts(two)}
    assert both.shape == (3, 9)
    assert both.drawn.sum(1).tolist() == [7, 7, 4]
    with pytest.raises(InvalidValue, match="twice under one run name"):
        union(one, one)


def test_two_proposals_of_one_run_name_have_the_same_keys_and_are_not_joined() -> None:
    """Grades are found by run and sample: those of one proposal would be given to the other."""
    plain, warm = Proposal(protocol="Temperature(t=1.0)"), Proposal(protocol="Temperature(t=2.0)")
    with pytest.raises(InvalidValue, match="twice under one run name"):
        union(Bank.of({"q": ["A", "B"]}, proposal=plain), Bank.of({"q": ["C"]}, proposal=warm))


def test_grades_that_are_missing_on_a_slice_are_not_another_bank_s() -> None:
    bank = Bank.of({"graded": ["1"], "not yet": ["2"]})
    outcomes = Outcomes.of(bank, [[1], [np.nan]])
    assert np.isnan(outcomes.on(bank.only(["not yet"]))).all()
    with pytest.raises(InvalidValue, match="belong to another"):
        outcomes.on(Bank.of({"graded": ["1"]}, proposal=Proposal(run="other")))


def test_a_union_drops_a_column_that_only_some_recorded_and_fills_a_layer_with_missing() -> None:
    one, two = generated("one", top=2)[0], generated("two", top=3)[0]
    both = union(one.attach("score", Layer(np.zeros(one.shape), "zero")), two)
    assert both.tokens is not None
    assert "top_ids" not in both.tokens.columns
    with pytest.raises(InvalidValue, match="did not record 'top_ids'"):
        both.tokens["top_ids"]
    assert np.isnan(both.layers["score"].values[:, 5:]).all()
    with pytest.raises(InvalidValue, match="mean different things"):
        union(
            one.attach("score", Layer(np.zeros(one.shape), "a")), two.attach("score", Layer(np.zeros(two.shape), "b"))
        )
    other = dataclasses.replace(two, questions=tuple(Question(q.id, "else") for q in two.questions))
    with pytest.raises(InvalidValue, match="another bank asks"):
        union(one, other)


def test_provenance_decides_what_a_bank_permits() -> None:
    rows = {"q": ["A", "B"]}
    assert Bank.of(rows).independent
    search = Bank.of(rows, proposal=Proposal("search"))
    with pytest.raises(InvalidValue, match=r"Pass@k needs independent draws .* this bank is search"):
        search.need_independence("Pass@k")
    assumed = search.assuming_independence("the width was one")
    assumed.need_independence("Pass@k")
    assert assumed.first(1).assumed == "the width was one"
    mixed = union(Bank.of(rows, proposal=Proposal(run="a")), Bank.of(rows, proposal=Proposal(run="b")))
    assert mixed.kind == "heterogeneous"
    assert mixed.first(2).kind == "iid", "only candidates that are there count"


def test_outcomes_follow_a_bank_through_slicing_and_are_not_part_of_it() -> None:
    bank, _ = generated()
    grades = np.where(np.random.default_rng(0).random(bank.shape) < 0.5, 1.0, 0.0)
    grades[0, 1] = np.nan
    outcomes = Outcomes.of(bank, grades, "a test")
    shuffled = bank.permuted("replay").only(["q2", "q0"])
    aligned = outcomes.on(shuffled)
    for q, question in enumerate(shuffled.questions):
        for n in np.flatnonzero(shuffled.drawn[q]):
            expected = grades[int(question.id[1:]), shuffled.samples[q, n]]
            assert np.array_equal(aligned[q, n], expected, equal_nan=True)
    assert not any("outcome" in field.name for field in dataclasses.fields(Bank))
    with pytest.raises(InvalidValue, match="belong to another"):
        outcomes.on(generated("else")[0])
    with pytest.raises(InvalidValue, match="grade within"):
        Outcomes.of(bank, grades * 2)


def test_packed_columns_lie_one_candidate_after_the_other() -> None:
    bank, _ = generated()
    assert bank.tokens is not None
    offsets, columns = bank.tokens.packed("token")
    assert columns["token"].base is not None, "a fresh bank is packed already"
    shuffled = bank.permuted("replay").tokens
    assert shuffled is not None
    offsets, columns = shuffled.packed("token", "logprob")
    for i, (q, n) in enumerate(np.ndindex(bank.shape)):
        if shuffled.start[q, n] >= 0:
            assert np.array_equal(columns["token"][offsets[i] : offsets[i + 1]], shuffled.of(q, n)["token"])


BAD: dict[str, Callable[[Bank], dict[str, Any]]] = {
    "a code beyond the answers": lambda bank: {"answers": bank.answers + 9},
    "an undrawn candidate with an answer": lambda bank: {"drawn": np.zeros_like(bank.drawn)},
    "another shape": lambda bank: {"ended": bank.ended[:, :1]},
    "a question twice": lambda bank: {"questions": (bank.questions[0],) * 3},
    "an unknown source": lambda bank: {"source": np.where(bank.drawn, 4, -1)},
    "an unknown ending": lambda bank: {"ended": bank.ended + 7},
}


@pytest.mark.parametrize("what", BAD)
def test_a_bank_that_does_not_hold_together_is_refused(what: str) -> None:
    bank, _ = generated()
    with pytest.raises(InvalidValue, match=r"Bank\."):
        dataclasses.replace(bank, **BAD[what](bank))


def test_errors_name_the_field() -> None:
    bank, leaves = generated()
    with pytest.raises(InvalidValue, match="attached already"):
        bank.attach("x", Layer(np.zeros(bank.shape), "x")).attach("x", Layer(np.zeros(bank.shape), "x"))
    with pytest.raises(InvalidValue, match="attach it first"):
        bank.candidates(evidence=["confidence"])
    with pytest.raises(InvalidValue, match="hand in each leaf once"):
        Bank.of_leaves(bank.questions, [leaves[0], leaves[0]], parsed)
    with pytest.raises(InvalidValue, match="ask for questions of this bank"):
        bank.only(["nowhere"])
    with pytest.raises(InvalidValue, match="carry: score"):
        Candidates(np.array([0]), evidence={"score": np.array([1.0])}).score("confidence")
    with pytest.raises(InvalidValue, match="integer codes"):
        Candidates(np.array(["A"]))
    with pytest.raises(InvalidValue, match="the same length"):
        TokenTable(np.zeros((1, 1)), np.ones((1, 1)), {"token": np.zeros(1), "rank": np.zeros(2)})


def test_a_bank_without_candidates_has_places_to_leave_undrawn() -> None:
    taken = Bank.of({"q": []}).take(np.array([-1, -1]))
    assert taken.shape == (1, 2)
    assert not taken.drawn.any()

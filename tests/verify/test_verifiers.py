"""Verifiers end to end: what is asked, what is read, what it costs, and that nothing is asked twice."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.bank import Bank, Outcomes, Proposal
from ramify.decide import BestOfN, BradleyTerry, Given, RoundRobin
from ramify.decode import Temperature
from ramify.errors import InvalidValue
from ramify.ledger import Ledger, Tokens
from ramify.models import Endpoint, Tabular, decode_with
from ramify.run import Arm, Leaves, run_leaves
from ramify.types import Question
from ramify.verify import (
    COMPASS_3B,
    COMPASS_7B,
    GENERAL,
    CompassVerifier,
    Judge,
    Pairwise,
    Pointwise,
    Replies,
    Reply,
    Rubric,
    Task,
    ask,
    bias,
    relation,
    served_judge,
)
from ramify.verify.judge import without_middle
from tests.verify.tools import judge_by

TEXTS = [["The answer is 4.", "It is 5.", "the answer is 4, I think"]]


def bank_of(texts: list[list[str]] = TEXTS, model: str = "someone") -> Bank:
    bank = Bank.of(texts, proposal=Proposal(run="r", model=model))
    return dataclasses.replace(bank, text=np.array(texts, dtype=object))


def grading(prompt: str) -> tuple[list[str], Mapping[int, Mapping[str, float]]]:
    """A where the candidate has the reference in it, B elsewhere; undecided about nothing at all."""
    if "N/A" in prompt:
        return ["A"], {0: {"A": 0.5, "B": 0.25, "C": 0.25}}
    candidate = prompt.split("<candidate>")[1].split("</candidate>")[0]
    return (["A"], {0: {"A": 0.8, "B": 0.1, "C": 0.1}}) if "4" in candidate else (["B"], {0: {"B": 0.6, "A": 0.2}})


# ------------------------------------------------------------------------------------------------------------- outcomes


def test_the_outcome_verifier_reads_label_probabilities() -> None:
    judge, sampler = judge_by(grading)
    found = CompassVerifier()(bank_of(), {"q0": "4"}, judge)
    np.testing.assert_allclose(found.outcomes.values, [[0.8, 0.25, 0.8]])
    np.testing.assert_allclose(found.visible, [[1.0, 0.8, 1.0]])
    assert found.cost[0, 0] == len(sampler.asked[0]) + 1
    assert len(sampler.asked) == 4  # three candidates, and the null prompt once


def test_the_contextual_score_is_against_the_null_prompt() -> None:
    judge, _ = judge_by(grading)
    found = CompassVerifier("contextual")(bank_of(), {"q0": "4"}, judge)
    weight = np.array([0.8 / 0.5, 0.1 / 0.25, 0.1 / 0.25]) ** (2 / 3)
    assert found.outcomes.values[0, 0] == pytest.approx(weight[0] / weight.sum())
    assert found.probability[0, 1, 2] == 0  # C was not shown for the second


def test_what_saw_the_reference_is_an_outcome_and_no_evidence() -> None:
    judge, _ = judge_by(grading)
    found = CompassVerifier()(bank_of(), {"q0": "4"}, judge)
    assert isinstance(found.outcomes, Outcomes)
    verifier: Any = CompassVerifier()
    with pytest.raises(TypeError, match="references"):
        verifier(bank_of())  # as evidence would be called
    assert (CompassVerifier.role, Pointwise.role, Pairwise.role) == ("reference-assisted", "deployable", "deployable")


def test_the_papers_verifiers_ask_who_they_name() -> None:
    judge, _ = judge_by(grading, "opencompass/CompassVerifier-7B")
    assert COMPASS_7B(bank_of(), {"q0": "4"}, judge).outcomes.values[0, 0] == pytest.approx(0.8)
    with pytest.raises(InvalidValue, match="this verifier asks opencompass/CompassVerifier-3B"):
        COMPASS_3B(bank_of(), {"q0": "4"}, judge)


def test_a_missing_reference_is_named() -> None:
    judge, _ = judge_by(grading)
    with pytest.raises(InvalidValue, match="q0"):
        CompassVerifier()(bank_of(), {"other": "4"}, judge)


def test_only_the_middle_of_a_candidate_gives_way() -> None:
    question = "What is two and two? " * 3
    long = "BEGIN " + "blah " * 500 + "so it is 4 END"
    bank = dataclasses.replace(bank_of([[long]]), questions=(Question("q0", question),))
    judge, sampler = judge_by(grading, context=1400)
    CompassVerifier()(bank, {"q0": "the reference 4"}, judge)
    shown = sampler.asked[0]
    assert len(shown) + 1 <= 1400
    assert question in shown
    assert "the reference 4" in shown
    assert "BEGIN " in shown
    assert "4 END" in shown
    assert "[...]" in shown


def test_a_context_that_is_too_short_for_the_question_is_refused() -> None:
    judge, _ = judge_by(grading, context=100)
    with pytest.raises(InvalidValue, match="use a longer one"):
        CompassVerifier()(bank_of(), {"q0": "4"}, judge)


@given(st.text(max_size=60), st.integers(0, 40))
def test_cutting_keeps_both_ends(text: str, keep: int) -> None:
    cut = without_middle(text, keep)
    if len(text) <= keep:
        assert cut == text
    else:
        assert cut.startswith(text[: (keep + 1) // 2])
        assert cut.endswith(text[len(text) - keep // 2 :])


# ------------------------------------------------------------------------------------------------------------- replies


def test_nothing_is_asked_twice_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    judge, sampler = judge_by(grading)
    with Replies(tmp_path / "replies") as replies:
        first = CompassVerifier()(bank_of(), {"q0": "4"}, judge, replies)
        assert len(sampler.asked) == 4
        CompassVerifier("contextual")(bank_of(), {"q0": "4"}, judge, replies)  # the same prompts, another formula
        assert len(sampler.asked) == 4
    again, other = judge_by(grading)
    with Replies(tmp_path / "replies") as replies:
        found = CompassVerifier()(bank_of(), {"q0": "4"}, again, replies)
    assert other.asked == []
    np.testing.assert_array_equal(found.outcomes.values, first.outcomes.values)
    np.testing.assert_array_equal(found.cost, first.cost)  # what it cost does not depend on who paid


def test_a_run_that_dies_goes_on_where_it_was(tmp_path: Path) -> None:
    def breaking(prompt: str) -> tuple[list[str], Mapping[int, Mapping[str, float]]]:
        if "It is 5." in prompt:
            raise KeyboardInterrupt
        return grading(prompt)

    judge, sampler = judge_by(breaking)
    with Replies(tmp_path) as replies, pytest.raises(KeyboardInterrupt):
        CompassVerifier()(bank_of(), {"q0": "4"}, judge, replies)
    judge, sampler = judge_by(grading)
    with Replies(tmp_path) as replies:
        CompassVerifier()(bank_of(), {"q0": "4"}, judge, replies)
    assert len(sampler.asked) == 3  # the first candidate was known


def test_equal_candidates_are_asked_about_once_and_another_judge_is_asked_again() -> None:
    judge, sampler = judge_by(grading)
    CompassVerifier()(bank_of([["4", "4", "4"]]), {"q0": "4"}, judge, replies := Replies())
    assert len(sampler.asked) == 2
    other, second = judge_by(grading, "another")
    CompassVerifier()(bank_of([["4", "4", "4"]]), {"q0": "4"}, other, replies)
    assert len(second.asked) == 2


# ----------------------------------------------------------------------------------------------------------- pointwise

REPLY = "Fine so far.\nProblem understanding: B\nReasoning validity: A\nConclusion support: T\n"


def cut_up(text: str, places: list[int]) -> list[str]:
    ends = sorted({min(place, len(text)) for place in places} | {0, len(text)})
    return [text[a:b] for a, b in itertools.pairwise(ends)]


@given(st.lists(st.integers(0, len(REPLY)), max_size=30))
def test_grades_are_found_however_the_reply_is_cut_into_tokens(places: list[int]) -> None:
    """A label is one token; what stands around it may be cut anywhere."""
    marks = [REPLY.index(mark) + len(mark) + 1 for mark in ("understanding:", "validity:", "support:")]
    pieces = cut_up(REPLY, [*places, *marks, *(mark + 1 for mark in marks)])
    judge, _ = judge_by(lambda _: (pieces, {}))
    found = Pointwise()(bank_of([["x"]]), judge)
    np.testing.assert_allclose(found.criteria[0, 0], [18 / 19, 1.0, 0.0])
    assert found.values[0, 0] == pytest.approx((18 / 19 + 1) / 3)


def test_the_expectation_is_over_the_visible_mass() -> None:
    letters = [REPLY.index(f": {letter}") + 2 for letter in "BAT"]
    pieces = cut_up(REPLY, [*letters, *(place + 1 for place in letters)])
    place = pieces.index("B")
    judge, _ = judge_by(lambda _: (pieces, {place: {"B": 0.6, "D": 0.2, "maybe": 0.2}}))
    found = Pointwise()(bank_of([["x"]]), judge)
    assert found.criteria[0, 0, 0] == pytest.approx(35 / 38)  # by hand in test_labels.py
    assert found.visible[0, 0, 0] == pytest.approx(0.8)


def test_a_grade_that_is_not_given_is_missing_and_not_imputed() -> None:
    judge, _ = judge_by(lambda _: (list("Problem understanding: A\nReasoning validity: B\n"), {}))
    found = Pointwise()(bank_of([["x"]]), judge)
    assert np.isnan(found.values[0, 0])
    np.testing.assert_allclose(found.criteria[0, 0], [1.0, 18 / 19, np.nan])


def test_no_reference_and_no_other_candidate_is_shown() -> None:
    judge, sampler = judge_by(lambda _: (list(REPLY), {}))
    Pointwise(GENERAL)(bank_of([["first text", "second text"]]), judge)
    assert ["first text" in prompt for prompt in sampler.asked] == [True, False]
    assert all(name in sampler.asked[0] for name, _ in GENERAL.criteria)


def test_a_verifier_with_its_judge_is_evidence_that_a_run_charges() -> None:
    model = Tabular(("x", "y", "."), (((), (0.5, 0.4, 0.1)),), eos=2)
    arm = Arm(Proposal(run="r"), decode_with(model, Temperature(1.0)), lambda _: ())

    def graded(prompt: str) -> tuple[list[str], Mapping[int, Mapping[str, float]]]:
        letter = "A" if "y" in prompt.split("<attempt>")[1].split("</attempt>")[0] else "Q"
        return list("".join(f"{mark} {letter}\n" for mark in Pointwise().rubric.marks)), {}

    judge, _ = judge_by(graded, context=4000)
    evidence = Pointwise(cap=200).by(judge)
    protocol = Leaves(n=6, cap=5, rule=BestOfN("point"), evidence=(("point", evidence),))
    run = run_leaves(protocol, [Question("q", "say y")], [arm], Ledger("tokens", Tokens()), lambda text, _: text)
    assert "y" in run.answers[0]
    assert run.ledger.spent.signal > 0
    poor = run_leaves(
        protocol, [Question("q", "say y")], [arm], Ledger("t", Tokens(), limit=3000), lambda text, _: text
    )
    assert poor.ended == ("budget",)
    assert poor.ledger.total == 0  # a reading may cost 4,000: nothing is launched that could not be paid for


# ------------------------------------------------------------------------------------------------------------- pairwise


def comparing(prompt: str) -> tuple[list[str], Mapping[int, Mapping[str, float]]]:
    """Prefers the larger number, and whatever stands first a little."""
    first, second = (prompt.split(f"<attempt {i}>\n")[1].split("\n")[0] for i in (1, 2))
    one = 0.9 if int(first) > int(second) else 0.4
    return ["1"], {0: {"1": one, "2": 1 - one}}


def test_a_tournament_of_judgements_shown_in_both_orders() -> None:
    judge, sampler = judge_by(comparing)
    bank = bank_of([["3", "17", "5"]])
    found = Pairwise()(bank, judge)
    assert len(sampler.asked) == 6
    np.testing.assert_allclose(found.values[0, 0, 1], 0.4)
    for rule in (RoundRobin(), BradleyTerry()):
        assert rule(bank.candidates(utility=Given(found.values))).winner.tolist() == [1]


def test_a_preference_for_the_first_place_is_measured() -> None:
    judge, _ = judge_by(comparing)
    bank = bank_of([["3", "17", "5"]])
    found = bias(Pairwise()(bank, judge).values, np.array([[1, 2, 1]]))
    assert found.first[0] == pytest.approx((0.9 + 0.4) / 2 - 0.5)
    assert found.consistent[0] == 1  # 0.9 against 0.4: the same winner in both orders
    assert found.longer[0] == 0.5  # of the two pairs with different lengths the longer won both
    fair = bias(np.array([[[np.nan, 0.7], [0.3, np.nan]]]), np.array([[5, 5]]))
    assert fair.first[0] == pytest.approx(0)
    assert np.isnan(fair.longer[0])
    unequal = bias(np.array([[[np.nan, 0.7], [0.3, np.nan]]]), np.array([[5, 9]]), grades=np.array([[1.0, 0.0]]))
    assert np.isnan(unequal.first[0])  # no pair of equal grades


def test_a_judge_may_think_before_the_verdict() -> None:
    judge, _ = judge_by(lambda _: (["Verdict", ":", " 1", "? no. Verdict:", " 2"], {4: {" 2": 0.9, " 1": 0.1}}))
    found = Pairwise(both=False, cap=50)(bank_of([["1", "2"]]), judge)
    np.testing.assert_allclose(found.values[0, 0, 1], 0.1)
    assert np.isnan(found.values[0, 1, 0])


# -------------------------------------------------------------------------------------------------------------- models


def test_an_enumerable_model_as_a_judge_has_the_probabilities_it_was_given() -> None:
    model = Tabular(("A", "B", "C", "."), (((), (0.5, 0.3, 0.1, 0.1)),), eos=3)
    judge = Judge("tabular", decode_with(model, Temperature(0.1)), lambda _: (), lambda token: model.text([token]))
    found = CompassVerifier(top=3)(bank_of(), {"q0": "4"}, judge)
    np.testing.assert_allclose(found.probability[0, 0], np.array([5, 3, 1]) / 9, atol=1e-6)  # the raw model's, not T's
    np.testing.assert_allclose(found.visible[0, 0], 0.9, atol=1e-6)


def test_self_evaluation_and_cross_model_evaluation_are_told_apart() -> None:
    judge, _ = judge_by(grading, "mine")
    assert relation(bank_of(model="mine"), judge).tolist() == [["self"] * 3]
    assert relation(bank_of(model="theirs"), judge).tolist() == [["cross"] * 3]
    assert relation(bank_of(model=""), judge).tolist() == [[""] * 3]


def test_a_sampler_that_answers_nothing_is_an_error() -> None:
    judge = Judge("mute", lambda _: iter(()), lambda _: (), str)
    with pytest.raises(InvalidValue, match="left 1 of 1 prompts unanswered"):
        ask(judge, [Task("hello")])


def test_criteria_need_names_of_their_own() -> None:
    with pytest.raises(InvalidValue, match="a name of its own"):
        Rubric((("one", "?"), ("one", "?")))


def test_one_model_asked_in_two_ways_is_two_judges() -> None:
    kept, said = Replies(), []
    for how in ("Temperature(t=0.2)", "Temperature(t=5.0)"):
        judge, sampler = judge_by(lambda _, how=how: ([how], {}))  # type: ignore[misc]
        [reply] = ask(dataclasses.replace(judge, how=how), [Task("Which?")], kept)
        said.append(reply.text)
        assert len(sampler.asked) == 1
    assert said == ["Temperature(t=0.2)", "Temperature(t=5.0)"]


def test_writers_that_begin_at_once_lose_nothing(tmp_path: Path) -> None:
    many, together = 8, threading.Barrier(8)

    def write(number: int) -> None:
        with Replies(tmp_path) as mine:
            together.wait()
            mine.keep([Reply(f"{number}", "A", (), 3, 1)])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Replies(tmp_path)) == many


@pytest.mark.parametrize("unknown", [np.nan, -1])
def test_an_unknown_length_says_nothing_about_length(unknown: float) -> None:
    won = np.array([[[np.nan, 0.9], [0.2, np.nan]]])
    found = bias(won, np.array([[10.0, unknown]]))
    assert np.isnan(found.longer[0])
    assert found.first[0] == pytest.approx(0.05)  # (0.9 + 0.2) / 2 - 1/2


def test_a_servers_further_parameters_are_part_of_how_it_is_asked() -> None:
    plain = Endpoint("m", "http://127.0.0.1:9/v1", "llama.cpp")
    other = dataclasses.replace(plain, extra=(("grammar", "x"),))
    moved = dataclasses.replace(plain, urls="http://127.0.0.1:10/v1")
    assert served_judge(plain).identity != served_judge(other).identity
    assert served_judge(plain).identity == served_judge(moved).identity

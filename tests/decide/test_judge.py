"""A judge's verdicts become evidence through a sampler; importance weights; the decision card."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank, Candidates, Layer, Proposal
from ramify.decide import (
    MBR,
    BestOfN,
    DecisionCard,
    Exact,
    FilteredVote,
    Judged,
    Pairs,
    Plurality,
    RankVote,
    SoftmaxVote,
    UniversalSelfConsistency,
    VerifierConstrained,
    WeightedMBR,
    WeightedVote,
    choose,
    importance,
)
from ramify.errors import InvalidValue
from ramify.types import Leaf, Request


def letters(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def with_texts(answers: dict[str, list[str | None]]) -> Bank:
    bank = Bank.of(answers)
    texts = np.full(bank.shape, None, dtype=object)
    for q, row in enumerate(answers.values()):
        texts[q, : len(row)] = [f"so it is {a}" for a in row]
    return dataclasses.replace(bank, text=texts)


class Reader:
    """A judge that picks the response it is told to, by its text, and keeps what it was asked."""

    def __init__(self, verdict: Any) -> None:
        self.verdict, self.asked = verdict, list[Request]()

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        for request in requests:
            self.asked.append(request)
            words = "".join(map(chr, request.ids))
            text = self.verdict(words)
            empty = np.zeros(len(text))
            yield Leaf(request.key, empty, empty, empty, empty, empty, empty, empty, "eos", text)


def prefers_b(words: str) -> str:
    """Finds "so it is B" wherever it stands."""
    shown = [line for line in words.split("\n\n") if line.startswith("Response ")]
    return next(f"The most consistent response is {line.split(':')[0]}." for line in shown if line.endswith("B"))


def test_a_judge_is_asked_once_a_question_and_its_pick_wins() -> None:
    bank = with_texts({"q": ["A", None, "A", "B"], "r": ["B"], "s": [None]})
    judge = Reader(prefers_b)
    signal = UniversalSelfConsistency()(bank, judge, letters)
    assert len(judge.asked) == 2, "nothing to ask where nothing is eligible"
    assert judge.asked[0].key.stream == "judge"
    assert signal.values[0].tolist() == [0.0, 0.0, 0.0, 1.0]
    judged = bank.attach("judge", Layer(signal.values, "UniversalSelfConsistency()"))
    assert choose(judged, Judged()).winner.tolist() == [3, 0, -1]
    asked, answer = len(judge.asked[0].prompt), len("The most consistent response is Response 2.")
    assert signal.cost[0].tolist() == [asked + answer, 0, 0, 0], "a reading is charged"


def test_several_orders_average_over_a_position_bias() -> None:
    bank = with_texts({"q": ["A", "B", "C"]})
    first = Reader(lambda _: "Response 0")  # favours whatever comes first
    signal = UniversalSelfConsistency(orders=60)(bank, first, letters)
    assert signal.values[0].sum() == 60
    assert (signal.values[0] > 8).all(), "each candidate stood first about a third of the time"
    assert UniversalSelfConsistency(orders=60)(bank, first, letters).values.tolist() == signal.values.tolist()


def test_an_unreadable_verdict() -> None:
    bank = with_texts({"q": [None, "A", "B"]})
    signal = UniversalSelfConsistency()(bank, Reader(lambda _: "I cannot say"), letters)
    judged = bank.attach("judge", Layer(signal.values, "usc"))
    assert choose(judged, Judged()).winner.tolist() == [1]
    assert choose(judged, Judged(unreadable="none")).winner.tolist() == [-1]
    assert choose(judged, Judged(unreadable="none", fallback=Plurality())).winner.tolist() == [1]


def test_long_responses_keep_beginning_and_end() -> None:
    usc = UniversalSelfConsistency(characters=21)
    assert usc.shortened("abcdefgh" + "x" * 100 + "12345678") == "abcdefgh ... 12345678"
    assert usc.shortened("short") == "short"
    assert usc.read("response #2 is best", 3) == 2
    assert usc.read("none", 3) is None
    with pytest.raises(InvalidValue, match="keep them in the bank"):
        usc(Bank.of({"q": ["A"]}), Reader(prefers_b), letters)


# ----------------------------------------------------------------------------------------------------------- importance


def drawn_from(protocol: str, kind: str = "iid", log_q: Any = ((0.5, 0.25, 0.25),)) -> Bank:
    bank = Bank.of({"q": ["A", "B", "B"]}, proposal=Proposal(kind, protocol=protocol))
    return dataclasses.replace(bank, log_q=np.log(np.array(log_q)))


TARGET = np.log([[0.6, 0.2, 0.2]])


def test_importance_weights_correct_a_vote_and_say_what_they_are_worth() -> None:
    found = importance(drawn_from("Temperature(t=0.7)"), TARGET)
    ratios = np.array([0.6 / 0.5, 0.2 / 0.25, 0.2 / 0.25])
    assert found.weights[0].tolist() == pytest.approx((ratios / ratios.sum()).tolist())
    assert float(found.size[0]) == pytest.approx(ratios.sum() ** 2 / (ratios**2).sum())
    assert found.layer().description == "q*/q, self-normalised"
    bank = drawn_from("Temperature(t=0.7)").attach("weight", found.layer())
    assert choose(bank, WeightedVote("weight")).winner.tolist() == [1]
    assert choose(bank, WeightedMBR(), utility=Pairs.of(bank, Exact())).winner.tolist() == [1]


@pytest.mark.parametrize(
    ("protocol", "kind", "why"),
    [
        ("Chain(Temperature(t=0.7), TopP(p=0.9))", "iid", "truncates: TopP"),
        ("TopK(k=20)", "iid", "truncates: TopK"),
        ("Temperature(t=0)", "iid", "truncates"),
        ("", "iid", "does not say its protocol"),
        ("vLLM 0.9, default", "iid", "cannot be read"),
        ("Temperature(t=0.7)", "search", "a search proposal"),
    ],
)
def test_importance_weights_are_refused_or_declared_heuristic(protocol: str, kind: str, why: str) -> None:
    bank = drawn_from(protocol, kind)
    with pytest.raises(InvalidValue, match=why):
        importance(bank, TARGET)
    declared = importance(bank, TARGET, heuristic="top-p 0.9 removes little here")
    assert declared.heuristic
    assert "heuristic weights: top-p 0.9" in declared.layer().description


def test_importance_weights_need_both_probabilities() -> None:
    unknown = dataclasses.replace(drawn_from("Temperature(t=0.7)"), log_q=None)
    with pytest.raises(InvalidValue, match="records no log q"):
        importance(unknown, TARGET)
    with pytest.raises(InvalidValue, match="1 ratios unavailable"):
        importance(drawn_from("Temperature(t=0.7)", log_q=((0.5, math.nan, 0.1),)), TARGET)
    with pytest.raises(InvalidValue, match="no draw any mass"):
        importance(drawn_from("Temperature(t=0.7)"), np.full((1, 3), -np.inf))


# ----------------------------------------------------------------------------------------------------------------- card


def test_the_card_says_where_every_tuned_value_was_fixed() -> None:
    bank = Bank.of({"q": ["A", "B", None]}, scores={"prm": [[0.2, None, 0.4]]})
    rule = FilteredVote("prm", keep=0.5, then=SoftmaxVote("prm", temperature=0.3), fallback=Plurality())
    card = DecisionCard(rule, bank, "sympy", held_out={"temperature": "dev split, 100 questions"}, evaluator="prm-7b")
    rows = card.rows()
    assert (
        rows["tuned values"]
        == "keep = 0.5 (fixed on: not said); temperature = 0.3 (fixed on: dev split, 100 questions)"
    )
    assert rows["missing scores"] == "exclude: 1 eligible candidates have none"
    assert rows["eligibility"] == "drawn, with an answer: 2 of 3 candidates"
    assert rows["ties"] == "to the answer that appears first; equal scores share their ranks"
    assert rows["fallback"] == "Plurality(fallback=None)"
    assert rows["transforms"] == "exp((s - max s) / T)"
    assert rows["evaluator"] == "prm-7b"
    with pytest.raises(InvalidValue, match="held_out"):
        DecisionCard(rule, bank, held_out={"alpha": "dev"})


def test_the_card_of_a_rule_that_reads_a_reference_is_a_diagnostic() -> None:
    bank = Bank.of({"q": ["A"]}).attach("oracle", Layer(np.ones((1, 1)), "graded", "v1", role="diagnostic"))
    assert DecisionCard(BestOfN("oracle"), bank).rows()["role"] == "diagnostic"
    assert DecisionCard(BestOfN("oracle"), bank).rows()["score source"] == "oracle: graded (v1)"
    assert DecisionCard(Plurality(), bank).rows()["role"] == "deployable"
    assert DecisionCard(Plurality(), bank).rows()["score source"] == "none: counts only"
    assert DecisionCard(MBR(), bank, utility="RougeL()").rows()["score source"] == "pairwise utility: RougeL()"
    assert "fixed on" not in DecisionCard(VerifierConstrained("oracle"), bank).rows()["tuned values"]
    assert str(DecisionCard(RankVote("oracle"), bank)).count("\n") == 14


def test_a_bank_without_the_layer_refuses_by_name() -> None:
    bank = Bank.of({"q": ["A"]}, scores={"orm": [[0.1]]})
    with pytest.raises(InvalidValue, match=r"\['prm'\]: attach it first; the bank has orm"):
        choose(bank, BestOfN("prm"))
    with pytest.raises(InvalidValue, match="needs pairwise utilities"):
        choose(bank, MBR())
    with pytest.raises(InvalidValue, match="'prm', and these candidates carry: none"):
        BestOfN("prm")(Candidates(np.array([0])))

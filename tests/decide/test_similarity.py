"""Utilities against brute force, definitions and published examples."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.bank import Bank
from ramify.decide import (
    Behaviour,
    ChrF,
    Cosine,
    EditSimilarity,
    Exact,
    NgramJaccard,
    NumericCloseness,
    Pairs,
    RougeL,
    TokenF1,
    WordSubsequence,
)
from ramify.decide.similarity import edits, subsequence
from ramify.errors import InvalidValue
from tests.methods import SIMILARITIES

words = st.lists(st.sampled_from("abc"), max_size=7)
texts = words.map(" ".join)


@given(words, words)
def test_common_subsequence_by_brute_force(a: list[str], b: list[str]) -> None:
    every = {
        tuple(a[i] for i in chosen) for k in range(len(a) + 1) for chosen in itertools.combinations(range(len(a)), k)
    }
    common = max(len(s) for s in every if is_within(s, b))
    assert subsequence(a, b) == common


def is_within(part: tuple[str, ...], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(item in rest for item in part)


@given(words, words, words)
def test_edit_distance_is_a_metric(a: list[str], b: list[str], c: list[str]) -> None:
    assert edits(a, b) == edits(b, a)
    assert (edits(a, b) == 0) == (a == b)
    assert edits(a, c) <= edits(a, b) + edits(b, c)
    assert abs(len(a) - len(b)) <= edits(a, b) <= max(len(a), len(b))


def test_edit_distance_of_a_textbook() -> None:
    assert edits("kitten", "sitting") == 3
    assert edits("saturday", "sunday") == 3
    assert EditSimilarity("word")("a b c d", "a x c") == 0.5


@pytest.mark.parametrize("similarity", [s for s in SIMILARITIES if not isinstance(s, Behaviour | Cosine)], ids=repr)
@given(texts, texts)
def test_a_similarity_keeps_what_it_declares(similarity: object, a: str, b: str) -> None:
    value = similarity(a, b)  # type: ignore[operator]
    assert 0 <= value <= 1
    assert similarity(a, a) == pytest.approx(similarity.itself)  # type: ignore[attr-defined, operator]
    if similarity.symmetric:  # type: ignore[attr-defined]
        assert similarity(b, a) == pytest.approx(value)  # type: ignore[operator]


def test_token_f1_and_rouge_by_their_definitions() -> None:
    assert TokenF1()("a a b", "a c") == pytest.approx(2 * 1 / 5)
    # common subsequence "the cat on the mat": 5 of 6 words on both sides
    assert RougeL()("the cat sat on the mat", "the cat is on the mat") == pytest.approx(5 / 6)
    # precision 1/2, recall 1: F_beta = (1 + b²) p r / (r + b² p), b = 2
    assert RougeL(beta=2.0)("a b", "a") == pytest.approx(5 * 0.5 / (1 + 4 * 0.5))


def test_chrf_by_its_definition() -> None:
    # "ab" and "ac": unigrams 1 of 2, bigrams 0 of 1, no longer ones: p = r = 1/4
    assert ChrF()("ab", "ac") == pytest.approx(0.25)
    # "abc" to "ab": p = (2/3 + 1/2) / 2, r = 1 at n = 1, 2: longer orders are not in both
    p, r = (2 / 3 + 1 / 2) / 2, 1.0
    assert ChrF()("abc", "ab") == pytest.approx(5 * p * r / (4 * p + r))
    assert ChrF()("a b", "ab") == 1.0, "spaces do not count"


def test_ngrams_numbers_behaviour_and_vectors() -> None:
    assert NgramJaccard()("a b c", "b c d") == pytest.approx(1 / 3)
    assert NgramJaccard()("a", "a") == 1.0
    assert NumericCloseness()("1e3", "1000.0") == 1.0
    assert NumericCloseness()("x", "y") == 0.0
    assert NumericCloseness(relative=True)("100", "90") == pytest.approx(2.718281828**-0.1)
    assert Behaviour()((1, 2, "error"), (1, 3, "error")) == pytest.approx(2 / 3)
    with pytest.raises(InvalidValue, match="same inputs"):
        Behaviour()((1,), (1, 2))
    assert Cosine()([1, 0], [1, 1]) == pytest.approx(2**-0.5)
    assert Cosine()([0, 0], [1, 1]) == 0.0
    assert WordSubsequence()("a b c", "a c") == pytest.approx(2 / 3)


def test_pairs_over_a_bank() -> None:
    bank = Bank.of({"q": ["A", "A", None], "r": ["B"]})
    utility = Pairs.of(bank, Exact())
    assert utility([0, 0, 1], [0, 0, 0], [1, 0, 0]).tolist() == [1.0, 1.0, 1.0]
    assert utility.calls == 1, "one pair; equals are known"
    with pytest.raises(InvalidValue, match="no texts"):
        Pairs.of(bank, Exact(), "text")

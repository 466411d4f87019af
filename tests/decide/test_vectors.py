"""Rules against numbers whose origin is written beside them: METHODS, exact fractions, brute force."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.bank import Candidates, Choice
from ramify.decide import (
    CGES,
    AdaptiveMajorityOfTheBests,
    BestOfMajority,
    BestOfN,
    CalibratedVote,
    Earliest,
    FilteredVote,
    Given,
    KLBestOfN,
    LikelihoodVote,
    LogOddsVote,
    MajorityOfTheBests,
    Plurality,
    RankVote,
    RegularisedBestOfN,
    Rule,
    SoftBestOfN,
    SoftmaxVote,
    VerifierConstrained,
    WeightedVote,
    drawn,
    expected,
)
from ramify.decide.votes import offset
from ramify.errors import InvalidValue
from tests.decide.banks import exact_winner

AAAB = ([0, 0, 0, 1], [0.3, 0.3, 0.3, 0.85])
AAABBC = ([0, 0, 0, 1, 1, 2], [0.5, 0.55, 0.6, 0.9, 0.4, 0.3])


def bank(answers: list[int], scores: list[float], **others: list[float]) -> Candidates:
    evidence = {
        "score": np.array(scores, dtype=float),
        **{name: np.array(v, dtype=float) for name, v in others.items()},
    }
    return Candidates(np.array(answers), evidence=evidence)


def groups(choice: Choice, answers: list[int]) -> list[float]:
    """The support of each answer."""
    return [float(choice.support[answers.index(code)]) for code in sorted(set(answers) - {-1})]


# ---------------------------------------------------------------------------------------------------------------- votes


@pytest.mark.parametrize(("temperature", "winner", "share"), [(0.1, 1, 0.9879), (1.0, 0, 0.6338)])
def test_softmax_vote(temperature: float, winner: int, share: float) -> None:
    choice = SoftmaxVote(temperature=temperature)(bank(*AAAB))
    assert AAAB[0][int(choice.winner)] == winner
    assert round(groups(choice, AAAB[0])[winner], 4) == share


def test_softmax_vote_crosses_over_at_a_known_temperature() -> None:
    crossover = 0.55 / math.log(3)  # 3 exp(0.3 / T) = exp(0.85 / T)
    assert round(crossover, 5) == 0.50063
    answers = [AAAB[0][int(SoftmaxVote(temperature=crossover + d)(bank(*AAAB)).winner)] for d in (-1e-6, 1e-6)]
    assert answers == [1, 0]


def test_softmax_vote_with_infinite_scores() -> None:
    low = bank([0, 0, 1], [-math.inf] * 3)
    assert SoftmaxVote()(low).support.tolist() == [2 / 3, 2 / 3, 1 / 3], "all equal: plurality"
    some = bank([0, 0, 1], [-math.inf, -math.inf, -5.0])
    assert int(SoftmaxVote()(some).winner) == 2
    assert int(SoftmaxVote()(bank([0, 0, 1], [1.0, 2.0, math.inf])).winner) == 2


def test_weighted_vote_sum_and_mean() -> None:
    assert int(WeightedVote()(bank(*AAAB)).winner) == 0  # 0.9 > 0.85
    assert int(WeightedVote(pool="mean")(bank(*AAAB)).winner) == 3
    assert int(WeightedVote(pool="mean")(bank([0, 1, 1], [1.0] * 3)).winner) == 0, "with w = 1 the mean ties everywhere"
    # 0.99 + 0.99 + 0.99 is not 3 * 0.99 in floating point; a mean of equals is exactly that
    assert int(WeightedVote(pool="mean")(bank([0, 0, 0, 1], [0.99] * 4)).winner) == 0
    assert WeightedVote(pool="mean")(bank([0, 0, 0, 1], [0.99] * 4)).support.tolist() == [0.99] * 4
    assert WeightedVote(pool="mean")(bank([0, 0, 1], [-1.0, -math.inf, -9.0])).winner == 2


def test_summed_log_probabilities_are_refused_unless_asked_for() -> None:
    negative = bank([0, 0, 1], [-1.0, -1.0, -1.5])
    with pytest.raises(InvalidValue, match=r"evidence 'score' = -1\.5.*negative='allow'"):
        WeightedVote()(negative)
    assert int(WeightedVote(negative="allow")(negative).winner) == 2, "more votes hurt"
    assert int(WeightedVote(pool="mean")(negative).winner) == 0
    with pytest.raises(InvalidValue, match="below infinity"):
        WeightedVote()(bank([0], [math.inf]))


def test_likelihood_vote_does_not_underflow() -> None:
    tiny = bank([0, 1, 1], [-2000.0, -2000.5, -2000.6])
    choice = LikelihoodVote("score")(tiny)
    assert int(choice.winner) == 1  # e^-0.5 + e^-0.6 = 1.155 > 1
    assert choice.support[1] == pytest.approx(-2000 + math.log(math.exp(-0.5) + math.exp(-0.6)), abs=1e-9)
    perplexities = [2.0, 4.0, 4.1]
    inverse = bank([0, 1, 1], [-math.log(x) for x in perplexities])
    assert math.exp(LikelihoodVote("score")(inverse).support[1]) == pytest.approx(1 / 4 + 1 / 4.1)
    with pytest.raises(InvalidValue, match="log-probabilities"):
        LikelihoodVote("score")(bank([0], [0.5]))


@pytest.mark.parametrize(("p", "winner"), [(0.5, 0), (1, 0), (2, 1)])
def test_rank_vote(p: float, winner: int) -> None:
    for ties in ("share", "earliest"):
        assert AAAB[0][int(RankVote(p=p, ties=ties)(bank(*AAAB)).winner)] == winner


def test_rank_vote_of_p_2_in_fractions() -> None:
    # ranks 4 for B; the three A share 1, 4 and 9: 14/30 to 16/30
    assert groups(RankVote(p=2)(bank(*AAAB)), AAAB[0]) == [14 / 30, 16 / 30]


def test_log_odds_vote() -> None:
    weak = bank([0, 0, 0, 1], [0.2, 0.3, 0.4, 0.6])
    logit = [math.log(s / (1 - s)) for s in (0.2, 0.3, 0.4, 0.6)]
    choice = LogOddsVote()(weak)
    assert groups(choice, [0, 0, 0, 1]) == pytest.approx([sum(logit[:3]), logit[3]], abs=1e-12)
    assert int(choice.winner) == 3, "a group of weak candidates loses votes"
    assert groups(LogOddsVote(form="linear", threshold=0.35)(weak), [0, 0, 0, 1]) == pytest.approx([-0.15, 0.25])
    saturated = bank([0, 1], [1.0, 0.5])
    with pytest.raises(InvalidValue, match=r"\(0, 1\): set LogOddsVote.clip"):
        LogOddsVote()(saturated)
    assert LogOddsVote(clip=1e-3)(saturated).support[0] == pytest.approx(math.log(999))


def test_calibrated_vote() -> None:
    bias, _ = offset(np.array(0.6), np.array(4))
    assert round(float(bias), 5) == 1.50408
    answers, ratio = [0, 0, 1, 2, 3], [0.5, 0.25, 1.5, -2.0, 0.0]
    both: dict[str, Any] = {"log_ratio": ratio, "correctness": [0.6] * 5}
    choice = CalibratedVote()(bank(answers, [0.5] * 5, **both))
    assert groups(choice, answers) == pytest.approx([0.75 + 2 * 1.504077, 1.5 + 1.504077, -2 + 1.504077, 1.504077])
    one = bank([1, 1, -1], [0.5] * 3, log_ratio=[-3.0, -4.0, 0.0], correctness=[0.5] * 3)
    assert int(CalibratedVote()(one).winner) == 0, "one answer: it is submitted"
    # q = 1: the largest group, then the ratios; q = 0: the smallest
    sure: dict[str, Any] = {"log_ratio": [9.0, 0.0, 0.0, 1.0, 1.0]}
    groups_of = [0, 1, 1, 2, 2]
    assert int(CalibratedVote()(bank(groups_of, [0.5] * 5, **sure, correctness=[1.0] * 5)).winner) == 3
    assert int(CalibratedVote()(bank(groups_of, [0.5] * 5, **sure, correctness=[0.0] * 5)).winner) == 0


def test_cges() -> None:
    choice = CGES("score")(bank([0, 0, 1], [0.8, 0.7, 0.6]))
    # fractions: A = .8 .7 (.4/2), B = (.2/2)(.3/2).6, OTHER = (.2/2)(.3/2)(.4/2)
    a, b, other = Fraction(112, 1000), Fraction(9, 1000), Fraction(3, 1000)
    total = a + b + other
    assert groups(choice, [0, 0, 1]) == pytest.approx([float(a / total), float(b / total)])
    assert [round(x, 4) for x in groups(choice, [0, 0, 1])] == [0.9032, 0.0726]
    assert round(float(other / total), 4) == 0.0242
    doubtful = bank([0], [0.1])
    assert int(CGES("score")(doubtful).winner) == 0
    assert int(CGES("score", other=True)(doubtful).winner) == -1, "OTHER wins"
    assert int(CGES("score", other=True, fallback=Earliest())(doubtful).winner) == 0
    with pytest.raises(InvalidValue, match=r"within \(0, 1\)"):
        CGES("score")(bank([0], [1.0]))


# ------------------------------------------------------------------------------------------------------------ filtering


@pytest.mark.parametrize(("keep", "winner"), [(1, 3), (2, 2), (3, 1), (0.5, 1), (1.0, 0), (0.34, 1)])
def test_filtered_vote(keep: float, winner: int) -> None:
    answers, scores = AAABBC
    # kept, best first: B .9, A .6, A .55, A .5, B .4, C .3; ties go to the answer that appears first
    assert int(FilteredVote(keep=keep)(bank(answers, scores)).winner) == winner


def test_a_share_is_not_rounded_up_by_its_representation() -> None:
    assert FilteredVote(keep=0.07).size(np.array(100)) == 7  # 0.07 * 100 = 7.000000000000001
    assert FilteredVote(keep=0.01).size(np.array(3)) == 1


def test_a_filter_keeps_all_that_tie_at_the_cut_or_counts_by_position() -> None:
    tied = bank([0, 1, 1, 1], [0.9, 0.5, 0.5, 0.5])
    assert int(FilteredVote(keep=2)(tied).winner) == 1
    assert int(FilteredVote(keep=2, ties="earliest")(tied).winner) == 0
    weighted = FilteredVote(keep=3, then=WeightedVote())
    assert int(weighted(bank(*AAABBC)).winner) == 1  # A .6 + .55 > B .9


# ------------------------------------------------------------------------------------------------------------ selection


def test_best_of_n_takes_minus_infinity_for_a_score_and_the_first_of_equals() -> None:
    assert int(BestOfN()(bank([-1, 0, 1], [9.0, -math.inf, -math.inf])).winner) == 1
    assert int(BestOfN()(bank([0, 1, 1], [0.1, 0.7, 0.7])).winner) == 1
    assert int(BestOfN()(bank([0, 1], [math.nan, 0.1])).winner) == 1


def test_verifier_constrained_selection() -> None:
    some = bank([0, 1, -1], [0.2, 0.9, 0.95], verdict=[1, 0, 1])
    assert int(VerifierConstrained(then=BestOfN())(some).winner) == 2, "the artefact passed, parsed answer or not"
    none = bank([0, 1, 1], [0.9, 0.1, 0.2], verdict=[0, 0, 2])
    assert int(VerifierConstrained(then=BestOfN())(none).winner) == 1, "plurality, not the global best"
    assert int(VerifierConstrained(then=BestOfN(), fallback=None)(none).winner) == -1
    assert int(VerifierConstrained(passing=(1.0, 2.0), then=BestOfN())(none).winner) == 2


@pytest.mark.parametrize(("alpha", "probs"), [(1, [0.0900, 0.2447, 0.6652]), (5, [0.0, 0.0067, 0.9933])])
def test_soft_best_of_n(alpha: float, probs: list[float]) -> None:
    choice = SoftBestOfN(alpha=alpha)(bank([0, 1, 2], [1.0, 2.0, 3.0]))
    assert choice.probs is not None
    assert [round(float(p), 4) for p in choice.probs] == probs
    assert float(expected(choice, np.array([0.0, 0.0, 1.0]))) == pytest.approx(float(choice.probs[2]))


def test_soft_best_of_n_limits_and_draws() -> None:
    tied = bank([0, 1, 2, -1], [3.0, 1.0, 3.0, 9.0])
    assert SoftBestOfN(alpha=0)(tied).probs.tolist() == [1 / 3, 1 / 3, 1 / 3, 0.0]  # type: ignore[union-attr]
    sharp = SoftBestOfN(alpha=math.inf)(tied)
    assert sharp.probs.tolist() == [0.5, 0.0, 0.5, 0.0]  # type: ignore[union-attr]
    assert [int(drawn(sharp, np.array(u)).winner) for u in (0.2, 0.7)] == [0, 2]
    nothing = SoftBestOfN()(bank([-1, -1], [1.0, 2.0]))
    assert int(drawn(nothing, np.array(0.5)).winner) == -1
    assert math.isnan(float(expected(nothing, np.ones(2))))


def test_regularised_best_of_n_in_both_forms() -> None:
    pairs = Given([[1.0, 0.0, 0.0], [0.0, 1.0, 0.8], [0.0, 0.8, 1.0]])
    base = bank([0, 1, 2], [1.0, 0.8, 0.1], sequence_logprob=[-30.0, -10.0, -1.0])
    with_pairs = Candidates(base.answers, evidence=base.evidence, utility=pairs)
    # s + beta * row mean: (1 + b/3, .8 + .6 b, .1 + .6 b): the second passes the first at b = .75
    assert int(RegularisedBestOfN(beta=0)(with_pairs).winner) == 0
    assert int(RegularisedBestOfN(beta=0.7)(with_pairs).winner) == 0
    assert int(RegularisedBestOfN(beta=0.8)(with_pairs).winner) == 1
    assert [int(KLBestOfN(beta=beta)(base).winner) for beta in (0, 0.02, 1.0)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("m", "shares"),
    [
        (1, (0.5, 0.3333, 0.1667)),
        (2, (0.5833, 0.3889, 0.0278)),
        (3, (0.5417, 0.4537, None)),
        (6, (0.3335, 0.6665, None)),
    ],
)
def test_majority_of_the_bests(m: int, shares: tuple[float | None, ...]) -> None:
    choice = MajorityOfTheBests(m=m)(bank(*AAABBC))
    for found, share in zip(groups(choice, AAABBC[0]), shares, strict=True):
        assert share is None or round(found, 4) == share
    assert AAABBC[0][int(choice.winner)] == (1 if m == 6 else 0)


def test_majority_of_the_bests_by_enumeration() -> None:
    answers, scores = [0, 1, 1, 2, 0], [3.0, 5.0, 1.0, 4.0, 2.0]
    for m in (1, 2, 3):
        wins = Counter(answers[max(draw, key=lambda i: scores[i])] for draw in itertools.product(range(5), repeat=m))
        shares = [wins[code] / 5**m for code in range(3)]
        assert groups(MajorityOfTheBests(m=m)(bank(answers, scores)), answers) == pytest.approx(shares, abs=1e-15)


def test_majority_of_the_bests_with_equal_scores_by_enumeration() -> None:
    answers, scores = [0, 1, 1, 2], [3.0, 3.0, 1.0, 3.0]
    shares = [Fraction(0)] * 3
    for draw in itertools.product(range(4), repeat=2):
        best = [i for i in draw if scores[i] == max(scores[j] for j in draw)]
        for i in best:
            shares[answers[i]] += Fraction(1, len(best) * 4**2)
    assert groups(MajorityOfTheBests(m=2)(bank(answers, scores)), answers) == [float(share) for share in shares]


def test_the_default_m_is_the_floor_of_the_root_and_never_more_than_n() -> None:
    assert [MajorityOfTheBests().running(n)[-1] for n in (1, 3, 4, 9, 80)] == [1, 3, 16, 9**3, 80**8]
    assert MajorityOfTheBests(m=7).running(3)[-1] == 27


def test_the_adaptive_m_is_where_the_distribution_moves_least() -> None:
    rule, case = AdaptiveMajorityOfTheBests(), bank(*AAABBC)
    assert rule.grid(6) == [6, 5, 4, 3, 2, 1]  # ceil of 6, 4.5, 3.4, 2.5, 1.9, 1.4, 1.1, 0.8
    laws = {m: groups(MajorityOfTheBests(m=m)(case), AAABBC[0]) for m in rule.grid(6)}
    sizes = list(laws)
    moves = {m: sum(abs(a - b) for a, b in zip(laws[m], laws[k], strict=True)) for m, k in itertools.pairwise(sizes)}
    chosen = min(moves, key=lambda m: moves[m])
    assert int(rule.sizes(case)) == chosen
    assert int(rule(case).winner) == int(MajorityOfTheBests(m=chosen)(case).winner)


def test_best_of_majority() -> None:
    answers, scores = [0, 0, 0, 1, 1, 2], [0.2, 0.3, 0.4, 0.5, 0.6, 0.99]
    assert int(BestOfMajority()(bank(answers, scores)).winner) == 5
    assert int(BestOfMajority(alpha=0.3)(bank(answers, scores)).winner) == 3  # C is one in six
    assert int(BestOfMajority(alpha=0.5)(bank(answers, scores)).winner) == 0
    assert int(BestOfMajority(alpha=0.9)(bank(answers, scores)).winner) == 5, "no answer survives: all are in"
    assert BestOfMajority(alpha=0.3, k=3)(bank(answers, scores)).ranked.tolist() == [3, 0, -1]
    assert BestOfMajority(pool="max", k=2)(bank([0, 1, 1], [0.7, 0.1, 0.9])).ranked.tolist() == [1, 0]
    assert BestOfMajority(pool="max")(bank([0, 1], [0.5, 0.5])).ranked.tolist() == [0], "ties by first appearance"


# ------------------------------------------------------------------------------------------------------ exact decisions


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 4)), min_size=1, max_size=9),
    st.sampled_from([1, 2, 3, 25]),
    st.booleans(),
)
def test_rank_votes_and_bests_decide_as_fractions_do(rows: list[tuple[int, int]], power: int, earliest: bool) -> None:
    answers, scores = [a for a, _ in rows], [float(s) for _, s in rows]
    valid = [i for i, a in enumerate(answers) if a >= 0]
    order = sorted(valid, key=lambda i: (-scores[i], i))
    n = len(valid)

    def weights(weight: Any) -> list[Fraction | int]:
        by_rank = {i: Fraction(weight(t)) for t, i in enumerate(order)}
        if earliest:
            return [by_rank.get(i, 0) for i in range(len(rows))]
        tied = {i: [j for j in valid if scores[j] == scores[i]] for i in valid}
        shared = {i: sum((by_rank[j] for j in among), Fraction(0)) / len(among) for i, among in tied.items()}
        return [shared.get(i, 0) for i in range(len(rows))]

    ties = "earliest" if earliest else "share"
    borda = weights(lambda t: (n - t) ** power)
    assert int(RankVote(p=power, ties=ties)(bank(answers, scores)).winner) == exact_winner(answers, borda)
    m = min(power, max(n, 1))
    bests = weights(lambda t: (n - t) ** m - (n - t - 1) ** m)
    assert int(MajorityOfTheBests(m=power, ties=ties)(bank(answers, scores)).winner) == exact_winner(answers, bests)


def test_large_rows_with_ties_are_decided_in_integers() -> None:
    # 80 candidates, the weights of p = 12 need 77 bits: A and B mirror each other and must tie exactly
    scores = [float(i // 2) for i in range(80)]
    answers = [1, 0] * 40
    for rule in (RankVote(p=12), MajorityOfTheBests(m=13), MajorityOfTheBests()):
        choice = rule(bank(answers, scores))
        assert choice.support[0] == choice.support[1] == 0.5
        assert int(choice.winner) == 0


def test_products_that_64_bits_cannot_hold_are_exact() -> None:
    # 80^8 fits 53 bits; times the common multiple of tie sizes 5, 7, 8, 9 and 11 it needs 68
    sizes = [5, 7, 8, 9, 11, 40]
    scores = [float(level) for level, size in enumerate(sizes) for _ in range(size)]
    rng = np.random.default_rng(4)
    answers = rng.integers(0, 4, 80).tolist()
    above = {level: sum(sizes[level + 1 :]) for level in range(6)}
    shares = [Fraction((80 - above[c]) ** 8 - (80 - above[c] - sizes[c]) ** 8, sizes[c]) for c in map(int, scores)]
    choice = MajorityOfTheBests()(bank(answers, scores))
    assert int(choice.winner) == exact_winner(answers, list(shares))
    total = sum(share for share, answer in zip(shares, answers, strict=True) if answer == answers[0])
    assert choice.support[0] == float(total / 80**8)


# --------------------------------------------------------------------------------------------------------------- fields


@pytest.mark.parametrize(
    "make",
    [
        lambda: SoftmaxVote(temperature=0),
        lambda: RankVote(p=-1),
        lambda: RankVote(ties="random"),
        lambda: FilteredVote(keep=0),
        lambda: FilteredVote(keep=1.5),
        lambda: FilteredVote(keep=True),
        lambda: MajorityOfTheBests(m=0),
        lambda: LogOddsVote(threshold=1.0),
        lambda: LogOddsVote(clip=0.5),
        lambda: BestOfMajority(alpha=1.5),
        lambda: BestOfMajority(k=0),
        lambda: SoftBestOfN(alpha=-1),
        lambda: WeightedVote(pool="median"),
        lambda: WeightedVote(evidence=""),
        lambda: BestOfN(missing="zero"),
        lambda: Plurality(fallback="first"),  # type: ignore[arg-type]
        lambda: VerifierConstrained(passing=()),
        lambda: AdaptiveMajorityOfTheBests(ratio=1.0),
    ],
)
def test_bad_fields_are_refused_with_their_name(make: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^\w+\.\w+ = "):
        make()


def test_a_fallback_decides_where_nothing_took_part() -> None:
    unscored = bank([0, 1, 1], [math.nan] * 3)
    rules: list[Rule] = [BestOfN(), BestOfN(fallback=Plurality()), RankVote(fallback=Plurality())]
    assert [int(rule(unscored).winner) for rule in rules] == [-1, 1, 1]
    assert BestOfN(fallback=Plurality())(unscored).ranked.tolist() == [1]

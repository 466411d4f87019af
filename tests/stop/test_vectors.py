"""The vectors of METHODS.md D5, exact oracles, and scorio where it is right."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

from ramify.bank import Candidates
from ramify.stop import (
    AdaptiveConsistency,
    AnswerEntropy,
    AnyOf,
    AtMost,
    Budget,
    CgesStop,
    CrpConsistency,
    DirichletConsistency,
    Esc,
    InBatches,
    LeaderShare,
    ShareInterval,
    esc_cost,
    replay,
)
from tests.evidence.banks import DATA
from tests.stop.oracle import beta, crp, dirichlet, of_counts, top_two


def codes(letters: str) -> Candidates:
    """A stream spelled out; "." is ⊥."""
    return Candidates(np.array(["ABCDEFGH".find(letter) for letter in letters.replace(" ", "")]))


# ----------------------------------------------------------------------------------------------------------------- Beta


def test_eight_against_two_is_an_exact_fraction() -> None:
    verdict = AdaptiveConsistency(0.95)(of_counts(8, 2)).now
    assert bool(verdict.stop)
    assert float(verdict.value) == 1981 / 2048 == 0.96728515625


def test_one_sample_and_unanimity() -> None:
    value = AdaptiveConsistency()(of_counts(10)).value
    assert value.tolist() == [1 - 2.0 ** -(n + 1) for n in range(1, 11)]
    assert value[0] == 0.75
    assert replay(AdaptiveConsistency(), of_counts(10)).n == 4


def test_the_fewest_votes_that_stop() -> None:
    for v2, v1 in enumerate([4, 6, 8, 9, 11, 12]):  # METHODS.md
        assert bool(AdaptiveConsistency()(of_counts(v1, v2)).now.stop)
        assert not bool(AdaptiveConsistency()(of_counts(v1 - 1, v2)).now.stop)


def test_beta_is_the_incomplete_beta_function() -> None:
    rng = np.random.default_rng(0)
    answers = rng.integers(-1, 4, (20, 60))
    value = AdaptiveConsistency()(Candidates(answers)).value
    for row in range(20):
        for n in range(1, 61):
            v1, v2 = top_two(answers[row, :n].tolist())
            assert value[row, n - 1] == pytest.approx(beta(v1, v2) if v1 else 0.0, abs=1e-14)


def test_no_valid_answer_is_no_reason_to_stop() -> None:
    for stop in (AdaptiveConsistency(), DirichletConsistency(), CrpConsistency(), LeaderShare(), AnswerEntropy()):
        verdict = stop(codes("....."))
        assert not verdict.stop.any()
        assert (verdict.value == 0).all()


def test_very_many_votes() -> None:
    """scorio's fixture for 5,000 against 4,999: 0.5039893230696916. Integers this long are left to double precision."""
    answers = np.repeat([0, 1], [5000, 4999])
    assert AdaptiveConsistency()(Candidates(answers)).now.value == pytest.approx(0.5039893230696916, rel=1e-12)


def test_the_cap_of_the_released_code() -> None:
    stop = AnyOf(AdaptiveConsistency(), AtMost(40))
    assert replay(stop, codes("AB" * 40)).n == 40
    assert replay(stop, codes("AAAA" + "B" * 40)).n == 4


# ------------------------------------------------------------------------------------------------------------ Dirichlet


@pytest.mark.parametrize(("counts", "value"), [((5, 2, 1), 0.81796), ((9, 2, 1), 0.97571)])  # METHODS.md
def test_dirichlet_vectors(counts: tuple[int, ...], value: float) -> None:
    assert DirichletConsistency()(of_counts(*counts)).now.value == pytest.approx(value, abs=5e-6)


def test_dirichlet_against_quadrature_of_another_kind() -> None:
    shapes = [(1, 1, 1, 2), (3, 3, 2), (7, 7, 1), (20, 19, 18), (30, 1, 1, 1, 1), (2, *[1] * 20), (60, 20, 10, 5, 5)]
    for counts in shapes:
        mine = float(DirichletConsistency()(of_counts(*counts)).now.value)
        assert mine == pytest.approx(dirichlet(counts), abs=2e-12), counts


def test_dirichlet_with_two_answers_is_beta_and_with_a_tie_is_uniform() -> None:
    assert DirichletConsistency()(of_counts(8, 2)).now.value == 1981 / 2048
    for m in (3, 4, 7):
        assert DirichletConsistency()(of_counts(*[5] * m)).now.value == 1 / m


def test_dirichlet_of_scorio_on_random_streams() -> None:
    scorio = pytest.importorskip("scorio.aggregate")
    rng = np.random.default_rng(3)
    for _ in range(12):
        answers = rng.choice(8, 30, p=rng.dirichlet(np.ones(8)))
        _, theirs = scorio.adaptive_consistency_dirichlet_stop(answers.tolist(), return_prob=True)
        assert DirichletConsistency()(Candidates(answers)).now.value == pytest.approx(theirs, abs=1e-9)


# ------------------------------------------------------------------------------------------------------------------ CRP


@pytest.mark.parametrize("letters", ["A", "AB", "AAB", "ABB", "ABBC", "AABBC", "ABCBC"])
@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(3)])
def test_crp_is_every_continuation_counted(letters: str, alpha: Fraction) -> None:
    stream = codes(letters)
    for horizon in (len(letters) + 1, 7):
        mine = float(CrpConsistency(horizon=horizon, alpha=float(alpha))(stream).now.value)
        exact = crp(stream.answers.tolist(), horizon, alpha)
        assert mine == pytest.approx(float(exact), abs=1e-13)


def test_crp_integrates_alpha_over_its_posterior() -> None:
    stream, n, m = codes("AABBCA"), 6, 3
    rate = 1 + np.euler_gamma + math.log(n)

    def integrand(alpha: float) -> float:
        stop = CrpConsistency(horizon=12, alpha=alpha)
        return float(gamma.pdf(alpha, m, scale=1 / rate) * stop(stream).now.value)

    exact = quad(integrand, 1e-12, 40, epsabs=1e-10, limit=200)[0]
    assert CrpConsistency(horizon=12)(stream).now.value == pytest.approx(exact, abs=1e-8)


def test_crp_of_scorio_within_its_simulation_error() -> None:
    scorio = pytest.importorskip("scorio.aggregate")
    for letters in ("AAABBC", "ABABAB"):
        _, theirs = scorio.adaptive_consistency_crp_stop(list(letters), horizon=20, seed=1, return_prob=True)
        # 100 draws of alpha bound theirs: about one part in a hundred
        assert CrpConsistency(horizon=20)(codes(letters)).now.value == pytest.approx(theirs, abs=0.02)


def test_crp_at_and_beyond_the_horizon() -> None:
    verdict = CrpConsistency(horizon=3)(codes("AB.CA"))
    assert verdict.stop.tolist() == [False, False, False, True, True]
    assert verdict.value[-1] == 1.0
    certain = CrpConsistency(horizon=5)(codes("AAA")).now
    assert certain.value == pytest.approx(1.0, abs=1e-15), "two more cannot catch up with three"


# ------------------------------------------------------------------------------------------------ share, entropy, batch


def test_leader_share_and_entropy() -> None:
    assert LeaderShare()(codes("AAAAB")).stop.tolist() == [False, True, True, True, True]  # 4/5 is 0.8
    assert LeaderShare()(codes("ABAAA.")).stop.tolist() == [False, False, False, False, True, True]
    entropy = AnswerEntropy()(codes("AAB"))
    h = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)) / math.log(2)
    assert entropy.value.tolist() == pytest.approx([0.0, 0.0, h])
    assert entropy.stop.tolist() == [False, True, False]
    assert AnswerEntropy()(codes("ABCD")).now.value == pytest.approx(1.0)


def test_batches_of_two_two_four_eight() -> None:
    verdict = InBatches(LeaderShare(0.75))(codes("ABAAAAAAAAAAAAAA"))
    assert np.flatnonzero(verdict.stop).tolist() == [3, 7, 15]  # after 4, 8 and 16: 3/4, 7/8, 15/16


# ------------------------------------------------------------------------------------------------------------------ ESC


def test_the_two_outputs_of_esc_differ() -> None:
    stream = codes("AAAAB AAAAB BBBBB")
    window, everything = Esc(5), Esc(5, output="all")
    assert replay(window, stream).n == 15
    assert window(stream).stop.tolist() == everything(stream).stop.tolist()
    for stop, answer, votes in ((window, 1, 5), (everything, 0, 8)):
        seen = stop.revealed(stream)
        counts = np.bincount(seen.answers[seen.eligible])
        assert (int(counts.argmax()), int(counts.max())) == (answer, votes)


def test_esc_windows() -> None:
    assert not Esc(3)(codes("BAAAB")).stop.any(), "windows do not slide"
    assert not Esc(3)(codes("A.A")).stop.any(), "an invalid answer is not unanimous"
    assert not Esc(3)(codes("...")).stop.any()
    assert not Esc(5)(codes("AAAB AAA")).stop.any(), "nor is a partial window"
    assert Esc(1)(codes("A.B")).stop.tolist() == [True, False, True]
    unstopped = codes("AABBB")
    assert Esc(5).revealed(unstopped).eligible.all(), "nothing was unanimous: the vote is over everything"


def test_esc_cost_prediction() -> None:
    p = np.array([0.7, 0.2, 0.1])
    assert float((p**5).sum()) == pytest.approx(0.1684)
    assert float(esc_cost(p, 5, 40)) == pytest.approx(22.900, abs=5e-4)  # METHODS.md
    rng = np.random.default_rng(0)
    for limit in (40, 43):  # the second ends in a partial window
        streams = Candidates(rng.choice(3, (20_000, limit), p=p))
        n = replay(Esc(5), streams).n
        assert n.mean() == pytest.approx(float(esc_cost(p, 5, limit)), abs=4 * n.std() / math.sqrt(n.size))
    assert esc_cost(np.zeros(2), 5, 12) == 12, "nothing valid: everything is sampled"
    assert esc_cost(np.array([1.0]), 5, 40) == 5


# ----------------------------------------------------------------------------------------------------------------- CGES


def test_cges_vector() -> None:
    """METHODS.md: A, A, B with .8, .7, .6 gives A .9032, B .0726, OTHER .0242."""
    seen = Candidates(np.array([0, 0, 1]), evidence={"c": np.array([0.8, 0.7, 0.6])})
    said = [Fraction(8, 10), Fraction(7, 10), Fraction(6, 10)]
    other = [(1 - c) / 2 for c in said]  # two other hypotheses share it
    weights = [said[0] * said[1] * other[2], other[0] * other[1] * said[2], other[0] * other[1] * other[2]]
    assert CgesStop("c")(seen).now.value == pytest.approx(float(weights[0] / sum(weights)), rel=1e-12)
    assert float(weights[0] / sum(weights)) == pytest.approx(0.9032, abs=5e-5)


def test_cges_of_scorio_at_every_prefix() -> None:
    scorio = pytest.importorskip("scorio.aggregate")
    rng = np.random.default_rng(1)
    answers, c = rng.integers(-1, 5, 25), rng.uniform(0.05, 0.95, 25)
    listed = [None if a < 0 else int(a) for a in answers]
    for other in (False, True):
        stop = CgesStop("c", other=other)(Candidates(answers, evidence={"c": c}))
        for n in range(1, 26):
            _, theirs = scorio.cges_stop(listed[:n], c[:n], include_other=other, return_prob=True)
            assert stop.value[n - 1] == pytest.approx(theirs, abs=1e-12)


def test_cges_refuses_saturated_confidence_and_skips_what_is_missing() -> None:
    with pytest.raises(ValueError, match=r"strictly in \(0, 1\)"):
        CgesStop("c")(Candidates(np.array([0]), evidence={"c": np.array([1.0])}))
    with pytest.raises(ValueError, match="needs the evidence 'c'"):
        CgesStop("c")(Candidates(np.array([0])))
    some = Candidates(np.array([0, 1, 0]), evidence={"c": np.array([0.9, np.nan, 0.9])})
    none = Candidates(np.array([0, -1, 0]), evidence={"c": np.array([0.9, 0.5, 0.9])})
    assert CgesStop("c")(some).value.tolist() == CgesStop("c")(none).value.tolist()


# ---------------------------------------------------------------------------------------------------- budget, precision


def test_a_budget_stops_before_it_could_be_overspent() -> None:
    cost = np.array([3.0, 1.0, 2.0, 1.0])
    stream = Candidates(np.zeros(4, dtype=int), evidence={"cost": cost})
    verdict = Budget(limit=8, worst=3, cost="cost")(stream)
    assert verdict.value.tolist() == [5.0, 4.0, 2.0, 1.0]
    assert verdict.stop.tolist() == [False, False, True, True]
    live = Candidates(np.zeros(2, dtype=int), left=0.5)
    assert bool(Budget(worst=1)(live).now.stop), "the ledger has the last word"
    with pytest.raises(ValueError, match="what every candidate cost"):
        Budget(cost="cost")(Candidates(np.zeros(1, dtype=int), evidence={"cost": np.array([np.nan])}))


def test_the_wilson_interval() -> None:
    """8 of 10 at 95 %: (0.4902, 0.9433), statsmodels' proportion_confint(8, 10, method="wilson")."""
    value = float(ShareInterval(0.5)(of_counts(8, 2)).now.value)
    assert value == pytest.approx(0.94332 - 0.49016, abs=2e-5)
    assert bool(ShareInterval(0.5)(of_counts(8, 2)).now.stop)
    assert not bool(ShareInterval(0.4)(of_counts(8, 2)).now.stop)


def test_the_fixtures_of_other_languages() -> None:
    path = DATA / "scorio_aime25_q06" / "js_aggregate_fixtures.json"
    if not path.exists():
        pytest.skip("the shared data are not here")
    online = json.loads(path.read_text())["online"]
    for counts, (stop, value) in zip(online["adaptive_near_tie_counts"], online["adaptive_near_tie"], strict=True):
        verdict = AdaptiveConsistency()(of_counts(*counts)).now
        assert bool(verdict.stop) == stop
        assert verdict.value == pytest.approx(value, abs=1e-12)
    for name in ("peaked", "peaked_large"):
        stop, value = online[f"dirichlet_{name}"]
        verdict = DirichletConsistency()(of_counts(*online[f"dirichlet_{name}_counts"])).now
        assert bool(verdict.stop) == stop
        assert verdict.value == pytest.approx(value, abs=1e-9)


def test_fields_are_checked() -> None:
    for wrong in (
        lambda: AdaptiveConsistency(1.0),
        lambda: CrpConsistency(horizon=0),
        lambda: CrpConsistency(alpha=-1.0),
        lambda: LeaderShare(0.0),
        lambda: Esc(0),
        lambda: Esc(output="both"),
        lambda: Budget(worst=0),
        lambda: AnyOf(),
    ):
        with pytest.raises(ValueError, match=r"use|name"):
            wrong()

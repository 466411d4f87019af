"""Rankings against SciPy, enumeration of all orders, direct optimisation, and scorio where it is right."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats
from scipy.special import expit

from ramify.describe import parse, text
from ramify.errors import InvalidValue
from ramify.metrics import (
    Borda,
    Copeland,
    Duels,
    Elo,
    Kemeny,
    MeanScore,
    PlackettLuce,
    Rasch,
    Schulze,
    TiedBradleyTerry,
    TrueSkill,
    TwoParameter,
    agreement,
    duels,
    kendall,
    posterior_ranking,
    rank,
    signal_agreement,
    spearman,
    weighted_kendall,
)
from ramify.metrics.ranking.record import places
from ramify.metrics.ranking.voting import preferences
from tests.methods import SCORERS


def roster(models: int = 5, questions: int = 30, n: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ability, hard = np.linspace(-1, 1, models), rng.normal(0, 1, questions)
    chance = expit(ability[:, None, None] - hard[:, None])
    return (rng.random((models, questions, n)) < chance).astype(float)


# ------------------------------------------------------------------------------------------------------- correlations

vectors = st.integers(2, 7).flatmap(lambda m: st.tuples(*[st.lists(st.integers(0, 4), min_size=m, max_size=m)] * 2))


@given(vectors)
@settings(max_examples=150)
def test_correlations_equal_scipy_with_ties(pair: tuple[list[int], list[int]]) -> None:
    x, y = (np.array(each, dtype=float) for each in pair)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(spearman(x, y))
        assert np.isnan(kendall(x, y))
        assert np.isnan(weighted_kendall(x, y))
        return
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert weighted_kendall(x, y) == pytest.approx(stats.weightedtau(x, y).statistic, abs=1e-12)


def test_correlations_act_on_the_last_axis() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, (3, 4, 6)), rng.random(6)
    for measure in (spearman, kendall, weighted_kendall):
        together = measure(x, y)
        assert together.shape == (3, 4)
        assert together[2, 1] == pytest.approx(float(measure(x[2, 1], y)))
    with pytest.raises(InvalidValue, match="leave out models"):
        spearman(np.array([1, np.nan]), np.array([1, 2]))


def test_agreement_over_replays_is_that_of_a_plain_loop() -> None:
    from ramify.bank import Bank

    table = roster(models=6, questions=8, n=10)
    found = agreement(table, budgets=[1, 3, 10], replicates=4)
    bank = Bank.of({f"q{q}": ["A"] * 10 for q in range(8)})
    for r in range(4):
        order = bank.permuted("replay", r).samples  # the permutations of every replay in this package
        for column, k in enumerate((1, 3, 10)):
            cut = np.take_along_axis(table, order[None, :, :k], axis=2).mean(axis=(1, 2)).round(12)
            whole = table.mean(axis=(1, 2)).round(12)
            assert found.spearman[r, column] == pytest.approx(stats.spearmanr(cut, whole).statistic, abs=1e-12)
            assert found.kendall[r, column] == pytest.approx(stats.kendalltau(cut, whole).statistic, abs=1e-12)
            assert found.weighted[r, column] == pytest.approx(stats.weightedtau(cut, whole).statistic, abs=1e-12)
    assert found.mean()[-1] == 1
    slow = agreement(table, budgets=[1, 3, 10], replicates=4, metric=MeanScore())
    assert np.allclose(slow.spearman, found.spearman, atol=1e-12)
    low, high = found.band()
    assert (low <= high).all()


def test_a_signal_that_is_the_outcome_ranks_perfectly_and_noise_does_not() -> None:
    table = roster(models=8, questions=200, n=8)
    rng = np.random.default_rng(1)
    found = signal_agreement({"same": table * 3 - 1, "noise": rng.random(table.shape)}, table, replicates=300)
    assert found["same"]["spearman"].value == 1
    assert found["same"]["spearman"].low == 1
    noise = found["noise"]["kendall"]
    assert noise.low < 0.5
    assert noise.covers == ("questions",)


# ------------------------------------------------------------------------------------------------------------- voting


@given(st.integers(2, 5), st.integers(1, 6), st.integers(0, 10**6))
@settings(max_examples=40)
def test_kemeny_is_the_mean_place_over_all_best_orders(models: int, questions: int, seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, 3, (models, questions)).astype(float)
    wins = preferences(table)
    price = {
        order: sum(wins[b, a] for a, b in itertools.combinations(order, 2))
        for order in itertools.permutations(range(models))
    }
    best = [order for order, each in price.items() if each == min(price.values())]
    expected = [models - 1 - np.mean([order.index(m) for order in best]) for m in range(models)]
    assert np.allclose(Kemeny()(table), expected, atol=1e-12)


def test_schulze_solves_the_published_example() -> None:
    """Schulze (2011), example 1: 45 voters, E > A > C > B > D."""
    ballots = {"ACBED": 5, "ADECB": 5, "BEDAC": 8, "CABED": 3, "CAEBD": 7, "CBADE": 2, "DCEBA": 7, "EBADC": 8}
    rows = [[-ballot.index(name) for name in "ABCDE"] for ballot, many in ballots.items() for _ in range(many)]
    table = np.array(rows, dtype=float).T
    assert rank(table, Schulze(), models=list("ABCDE"), replicates=5).order == tuple("EACBD")


def test_voting_equals_scorio() -> None:
    scorio = pytest.importorskip("scorio.rank")
    table = roster(models=6, questions=25, n=3, seed=4)
    borda = scorio.borda(table.astype(int), return_scores=True)[1]
    assert np.allclose(Borda()(table), borda / 25)
    for mine, theirs in ((Copeland(), scorio.copeland), (Schulze(), scorio.schulze), (Kemeny(), scorio.kemeny_young)):
        assert places(mine(table)).tolist() == np.asarray(theirs(table.astype(int))).tolist()


# -------------------------------------------------------------------------------------------------- pairs and orders


def test_pairs_of_candidates_are_all_compared() -> None:
    table = np.array([[[1, 1, 0]], [[1, 0, 0]]], dtype=float)
    wins, ties = duels(table)
    pairs = [(a > b, a < b) for a in table[0, 0] for b in table[1, 0]]
    assert wins[0, 1] == pytest.approx(3 * np.mean([w for w, _ in pairs]))
    assert wins[1, 0] == pytest.approx(3 * np.mean([w for _, w in pairs]))
    assert wins[0, 1] + wins[1, 0] + ties[0, 1] == pytest.approx(3)
    graded = duels(table / 2)  # the general path
    assert np.allclose(graded.wins, wins)
    missing = duels(np.array([[[1, np.nan]], [[0, 0]]]))
    assert missing.wins[0, 1] == 1


def _likelihood(wins: np.ndarray, ties: np.ndarray, model: str, x: np.ndarray) -> float:
    total = 0.0
    strength, tie = np.exp(x[:-1]), math.exp(x[-1])
    for i, j in itertools.permutations(range(len(wins)), 2):
        a, b = strength[i], strength[j]
        if model == "davidson":
            scale = a + b + tie * math.sqrt(a * b)
            win, even = a / scale, tie * math.sqrt(a * b) / scale
        else:
            win = a / (a + tie * b)
            even = 1 - win - b / (b + tie * a)
        total += wins[i, j] * math.log(win) + ties[i, j] / 2 * math.log(even)
    return total


@pytest.mark.parametrize("model", ["davidson", "rao-kupper"])
def test_bradley_terry_is_where_no_step_gains(model: str) -> None:
    found = duels(roster())
    fit = TiedBradleyTerry(model).fit(found)
    at = np.append(fit.scores, math.log(fit.tie))
    height = _likelihood(*found, model, at)
    assert fit.log_likelihood == pytest.approx(height, rel=1e-12)
    rng = np.random.default_rng(0)
    assert all(_likelihood(*found, model, at + 1e-3 * rng.normal(size=at.size)) < height for _ in range(50))
    # The errors are those of the curvature, here by differences.
    unit = 1e-4 * np.eye(at.size)
    bend = np.array(
        [
            [
                sum(s * t * _likelihood(*found, model, at + s * u + t * v) for s in (-1, 1) for t in (-1, 1)) / 4e-8
                for v in unit
            ]
            for u in unit
        ]
    )
    spread = np.sqrt(np.diag(np.linalg.pinv(-bend, rcond=1e-6)))[:-1]
    assert fit.error == pytest.approx(spread, rel=0.02)


def test_bradley_terry_equals_scorio_where_pairs_share_an_index() -> None:
    scorio = pytest.importorskip("scorio.rank")
    table = roster(models=6, questions=40, n=5)
    theirs = np.log(scorio.bradley_terry_davidson(table.astype(int), return_scores=True)[1])
    mine = TiedBradleyTerry("davidson", pairing="index")(table)
    assert np.allclose(mine, theirs - theirs.mean(), atol=1e-4), "scorio climbs by finite differences"
    wins = duels(table, "index").wins
    plain = np.log(scorio.bradley_terry(table.astype(int), return_scores=True)[1])
    assert np.allclose(
        TiedBradleyTerry().fit(Duels(wins, np.zeros(wins.shape))).scores, plain - plain.mean(), atol=1e-5
    )


def test_a_model_that_never_loses_is_refused_without_a_prior() -> None:
    table = np.array([[1, 1, 1], [0, 0, 1], [0, 1, 0]], dtype=float)
    for scorer in (TiedBradleyTerry("half"), PlackettLuce()):
        if isinstance(scorer, PlackettLuce):
            with pytest.raises(InvalidValue, match="never lose"):
                scorer(table)
    never = np.array([[1, 1], [0, 0]], dtype=float)
    with pytest.raises(InvalidValue, match=r"never lose to the others; use prior=1\.0"):
        TiedBradleyTerry()(never)
    assert TiedBradleyTerry(prior=1.0)(never)[0] > 0


def test_plackett_luce_of_strict_orders_is_the_likelihood_maximum() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4, 40)) + np.array([[0.0], [0.3], [0.6], [0.9]])

    def loss(x: np.ndarray) -> float:
        total = 0.0
        for column in table.T:
            order = np.argsort(-column)
            for place in range(3):
                total -= x[order[place]] - math.log(np.exp(x[order[place:]]).sum())
        return total

    best = optimize.minimize(loss, np.zeros(4)).x
    fit = PlackettLuce().fit(table)
    assert np.allclose(fit.scores, best - best.mean(), atol=1e-4)
    assert fit.log_likelihood == pytest.approx(-loss(fit.scores), rel=1e-12)
    two = PlackettLuce()(table[:2])
    assert np.allclose(two, TiedBradleyTerry("half")(table[:2]), atol=1e-9), "of two models it is Bradley–Terry"


def test_elo_and_trueskill_equal_scorio() -> None:
    scorio = pytest.importorskip("scorio.rank")
    table = roster(models=5, questions=12, n=3)
    whole = table.astype(int)
    for ties, theirs in (("skip", "skip"), ("draw", "draw"), ("solved", "correct_draw_only")):
        elo = scorio.elo(whole, tie_handling=theirs, return_scores=True)[1]
        assert np.allclose(Elo(ties=ties)(table), elo, rtol=1e-12)
        margin = 0.0 if ties == "skip" else 0.7
        skill = scorio.trueskill(whole, tie_handling=theirs, draw_margin=margin, return_scores=True)[1]
        assert np.allclose(TrueSkill(margin=margin, ties=ties)(table), skill, rtol=1e-9)


# ------------------------------------------------------------------------------------------------------ item response


def _marginal(right: np.ndarray, trials: np.ndarray, b: np.ndarray, a: np.ndarray, spread: float) -> float:
    """Σ_m log ∫ Π_q Binomial(...) N(θ; 0, spread²) dθ by SciPy's adaptive quadrature, without binomial constants."""
    total = 0.0
    for r, t in zip(right, trials, strict=True):
        # Scaled at a rough mode so that the integrand is near one.
        def log(x: float, r: Any = r, t: Any = t) -> float:
            p = expit(a * (x - b))
            return float((r * np.log(p) + (t - r) * np.log1p(-p)).sum()) - x * x / (2 * spread**2)

        top = -optimize.minimize_scalar(lambda x, log=log: -log(x), bounds=(-8, 8), method="bounded").fun
        area = integrate.quad(lambda x, log=log, top=top: math.exp(log(x) - top), -9, 9, points=[-1, 0, 1], limit=200)[
            0
        ]
        total += top + math.log(area / (spread * math.sqrt(2 * math.pi)))
    return total


@pytest.mark.parametrize("two", [False, True])
def test_item_response_maximises_the_marginal_likelihood(two: bool) -> None:
    table = roster(models=6, questions=5, n=4)
    right, trials = table.sum(-1), np.full((6, 5), 4.0)
    fit = (TwoParameter() if two else Rasch()).fit(table)
    assert (fit.discrimination == 1).all() or two

    def height(b: np.ndarray, log_a: np.ndarray, spread: float) -> float:
        prior = -(b**2).sum() / 50 - ((log_a**2).sum() / 2 if two else 0.0)
        return _marginal(right, trials, b, np.exp(log_a), spread) + float(prior)

    b, log_a = fit.difficulty, np.log(fit.discrimination)
    top = height(b, log_a, fit.spread)
    assert fit.log_likelihood == pytest.approx(top, abs=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(12):
        shift = 0.05 * rng.normal(size=11)
        grown = fit.spread if two else fit.spread * math.exp(shift[10])
        assert height(b + shift[:5], log_a + (shift[5:10] if two else 0.0), grown) < top + 1e-9


def test_abilities_are_found_where_a_fixed_quadrature_loses_them() -> None:
    """20 models x 40 questions x 80: posteriors are 0.05 wide, and 21 fixed nodes are 0.5 apart."""
    rng = np.random.default_rng(0)
    ability, hard = np.sort(rng.normal(0, 1, 20)), rng.normal(0, 1.5, 40)
    table = (rng.random((20, 40, 80)) < expit(ability[:, None, None] - hard[:, None])).astype(float)
    fit = Rasch().fit(table)
    assert np.abs(fit.ability - (ability - ability.mean())).max() < 0.25
    assert 0.03 < fit.error.mean() < 0.08
    assert fit.difficulty == pytest.approx(hard - ability.mean(), abs=0.35)
    order = np.argsort(fit.ability)
    assert kendall(order, np.arange(20)) > 0.95


def test_questions_that_all_or_none_solve_need_a_prior() -> None:
    table = np.array([[[1, 1], [0, 1]], [[1, 1], [1, 1]], [[1, 1], [0, 0]]], dtype=float)
    with pytest.raises(InvalidValue, match="all or none solve"):
        Rasch(weak=math.inf).fit(table)
    assert Rasch().fit(table).difficulty[0] < Rasch().fit(table).difficulty[1]
    with pytest.raises(InvalidValue, match="use 0 and 1"):
        Rasch().fit(table / 2)


# ------------------------------------------------------------------------------------------------------- the record


@pytest.mark.parametrize("scorer", SCORERS, ids=text)
def test_every_scorer_puts_a_clear_order_right_and_survives_text(scorer: Any) -> None:
    slow = isinstance(scorer, Rasch | TwoParameter)
    table = roster(models=4, questions=60, n=4, seed=2)
    found = rank(table, scorer, models=list("abcd"), replicates=3 if slow else 20)
    assert found.order[0] == "d"
    assert found.order[-1] == "a"
    assert found.ranks.tolist() == places(found.scores).tolist()
    assert (found.low <= found.high).all()
    assert (found.rank_low <= found.rank_high).all()
    assert np.allclose(found.chances.sum(axis=1), 1)
    assert found.method == text(scorer)
    assert found.covers == ("questions",)
    assert parse(text(scorer)) == scorer
    permuted = scorer(table[[2, 0, 3, 1]])
    assert np.allclose(permuted, scorer(table)[[2, 0, 3, 1]], atol=1e-3 if slow else 1e-8), (
        "the order of the models does not matter"
    )


def test_posterior_ranks() -> None:
    """Two models, one question: P(p1 > p2) for Beta(4, 2) and Beta(2, 4) by quadrature."""
    found = posterior_ranking(np.array([[3], [1]]), 4, draws=20_000)
    exact = integrate.quad(lambda x: stats.beta.pdf(x, 4, 2) * stats.beta.cdf(x, 2, 4), 0, 1)[0]
    assert found.chances[0, 0] == pytest.approx(exact, abs=0.01)
    assert found.covers == ("draws",)
    assert found.scores.tolist() == pytest.approx([4 / 6, 2 / 6])
    with pytest.raises(InvalidValue, match="right"):
        posterior_ranking(np.array([[5]]), 4)


def test_missing_grades_are_left_out_and_replicates_without_an_answer_are_counted() -> None:
    table = np.array([[1, np.nan, 0], [0, 1, 1]], dtype=float)
    assert MeanScore()(table).tolist() == [0.5, 2 / 3]
    with pytest.raises(InvalidValue, match="a model without grades"):
        MeanScore()(np.array([[np.nan], [1.0]]))
    sparse = np.array([[1, 1, 0, 1], [0, 0, 1, 0]], dtype=float)
    found = rank(sparse, TiedBradleyTerry(), replicates=60)
    assert 0 < found.failed < 60


BAD = (
    lambda: Elo(k=0),
    lambda: Elo(ties="maybe"),
    lambda: TrueSkill(ties="draw"),
    lambda: TrueSkill(noise=0),
    lambda: TiedBradleyTerry("luck"),
    lambda: TiedBradleyTerry(prior=-1),
    lambda: PlackettLuce("rounds"),
    lambda: Kemeny(40),
    lambda: Rasch(nodes=1),
    lambda: TwoParameter(weak_log=math.inf),
)


@pytest.mark.parametrize("build", BAD)
def test_bad_fields_are_named(build: Any) -> None:
    with pytest.raises(
        InvalidValue, match=r"^(Elo|TrueSkill|TiedBradleyTerry|PlackettLuce|Kemeny|Rasch|TwoParameter)\."
    ):
        build()


def test_a_roster_too_large_for_kemeny_is_sent_to_schulze() -> None:
    with pytest.raises(InvalidValue, match="use Schulze"):
        Kemeny()(np.random.default_rng(0).random((17, 5)))

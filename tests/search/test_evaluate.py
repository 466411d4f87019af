"""Evaluators that run a model: exact where the model can be enumerated, and paid for."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest

from ramify.bank import Proposal, Signal
from ramify.decode import Temperature
from ramify.describe import text
from ramify.errors import InvalidValue
from ramify.evidence import Final, LogProduct, Mean, Minimum, Total
from ramify.ledger import Ledger, Tokens
from ramify.models import Pocket, decode_with
from ramify.run import Arm, Search, run_search
from ramify.search import Beam, BestFirst, Evaluator, Judge, Rollouts, StepScores, ValueModel
from ramify.search.evaluate import worst_of
from ramify.tasks import Countdown
from ramify.types import Leaf, Prefix, Question
from tests.methods import EVALUATORS, JUDGE, brevity, mean_token, no_prompt, rolled, step_scores
from tests.search.tools import everything, next_probs

QUESTION = Question("q", "")
TABLE = [each for each in EVALUATORS if "main" not in text(each)]


def prefix(*tokens: int) -> Prefix:
    return Prefix(QUESTION, tokens, (0,) * len(tokens), -1.0, -1.0)


SOME = [prefix(0), prefix(1, 2), prefix(2, 0, 1), prefix(3, 4), prefix(1, 2)]


@pytest.mark.parametrize("evaluator", TABLE, ids=text)
def test_a_score_depends_on_its_own_prefix_alone(evaluator: Evaluator) -> None:
    together, cost = evaluator(SOME)
    alone = [evaluator([each]) for each in SOME]
    assert [float(each.values[0]) for each in alone] == np.asarray(together).tolist()
    assert [float(each.cost[0]) for each in alone] == np.asarray(cost).tolist()
    assert evaluator([]).values.shape == (0,)
    for z, read in zip(SOME, np.asarray(cost).tolist(), strict=True):
        assert read <= worst_of(evaluator, 0, len(z.tokens)).generated


def test_steps_are_reduced_in_every_way() -> None:
    x = 1 / (1 + np.array([2.0, 0.0, 1.0]))
    for reduction, expected in (
        (Total(), x.sum()),
        (Final(), x[-1]),
        (Minimum(), x.min()),
        (LogProduct(), math.log(x.prod())),
        (Mean(), x.mean()),
    ):
        assert StepScores(step_scores, reduction)([prefix(2, 0, 1)]).values[0] == pytest.approx(expected)
    nothing = StepScores(step_scores, Mean())([Prefix(QUESTION, (), ())])
    assert math.isnan(nothing.values[0]), "no step is no score"


def test_rollouts_estimate_the_value_of_a_prefix() -> None:
    evaluator = Rollouts(rolled, brevity, no_prompt, m=1500, cap=4)
    exact = sum(p / len(y) for y, p in everything(JUDGE, 4, (1, 2)))
    spread = math.sqrt(sum(p / len(y) ** 2 for y, p in everything(JUDGE, 4, (1, 2))) - exact**2)
    values, cost = evaluator([prefix(1, 2), prefix(3, 4), prefix(0, 0, 0, 0)])
    assert abs(values[0] - exact) < 5 * spread / math.sqrt(1500)
    assert values[1:].tolist() == pytest.approx([1 / 2, 1 / 4]), "what has ended, or is full, is its own rollout"
    length = sum(p * (len(y) - 2) for y, p in everything(JUDGE, 4, (1, 2)))
    assert cost[0] / 1500 == pytest.approx(length, abs=0.15)
    assert cost[1:].tolist() == [0, 0]


def half_known(leaf: Leaf, question: Question) -> float:
    return math.nan if leaf.tokens[-1] == JUDGE.eos else 1.0


def unknown(leaf: Leaf, question: Question) -> float:
    return math.nan


def test_a_missing_utility_is_left_out_of_the_mean() -> None:
    assert Rollouts(rolled, half_known, no_prompt, m=50, cap=3)([prefix(0)]).values.tolist() == [1.0]
    assert np.isnan(Rollouts(rolled, unknown, no_prompt, m=3, cap=3)([prefix(0)]).values).all()


def test_a_judge_reads_the_probability_of_yes() -> None:
    p = next_probs(JUDGE, (2, 0, 1, 1))
    values, cost = Judge(JUDGE, no_prompt, ask=(1,), yes=0, no=2)([prefix(2, 0, 1)])
    assert values[0] == pytest.approx(p[0] / (p[0] + p[2]))
    assert cost.tolist() == [4], "prefix and question"
    assert Judge(JUDGE, no_prompt, (1,), yes=3)([prefix(2, 0, 1)]).values[0] == pytest.approx(p[3])
    for wrong in ({"yes": -1}, {"yes": 0, "no": 0}):
        with pytest.raises(InvalidValue, match=r"Judge\."):
            Judge(JUDGE, no_prompt, (), **wrong)


def test_a_judge_of_nothing_possible_is_missing() -> None:
    sure = dataclasses.replace(JUDGE, rows=(((), (1.0, 0.0, 0.0, 0.0, 0.0)),))
    assert math.isnan(Judge(sure, no_prompt, (), yes=1, no=2)([prefix(0)]).values[0])
    assert Judge(sure, no_prompt, (), yes=0, no=2)([prefix(0)]).values[0] == 1.0


def two(sequences: Sequence[Sequence[int]]) -> np.ndarray:
    return np.zeros(2)


def test_a_value_model_fills_its_slot() -> None:
    values, cost = ValueModel(mean_token, no_prompt)([prefix(2, 0, 1)])
    assert values.tolist() == [0.5]
    assert cost.tolist() == [3]
    with pytest.raises(InvalidValue, match="number a sequence"):
        ValueModel(two, no_prompt)([prefix(1)])


@pytest.mark.parametrize("evaluator", TABLE, ids=text)
@pytest.mark.parametrize("limit", [0, 9, 30, 80, 400])
def test_no_search_by_any_evaluator_spends_past_its_ledger(evaluator: Evaluator, limit: int) -> None:
    arm = Arm(Proposal(run="r"), decode_with(JUDGE, Temperature(1.0)), no_prompt)
    ledger = Ledger("tokens", Tokens(prompt=True), limit=limit)
    found = run_search(Search(Beam(n=4, m=2), evaluator, cap=4), [QUESTION], arm, ledger, lambda spelled, _: spelled)
    assert found.ledgers[0].total <= limit
    assert (found.ledgers[0].spent.signal > 0) == (
        found.trees[0].expansions > 0 and bool(evaluator(SOME[:1]).cost[0]) and limit > 0
    )


def test_what_an_evaluator_reads_is_charged_to_the_signal() -> None:
    judge = Judge(JUDGE, no_prompt, ask=(1,), yes=0, no=2)
    arm = Arm(Proposal(run="r"), decode_with(JUDGE, Temperature(1.0)), no_prompt)
    ledger = Ledger("tokens", Tokens(), limit=math.inf)
    found = run_search(
        Search(BestFirst(width=2, most=3), judge, cap=4), [QUESTION], arm, ledger, lambda spelled, _: spelled
    )
    tree, [spent] = found.trees[0], found.ledgers
    lengths = [len(tree.tokens(row)) + 1 for row in range(1, len(tree))]
    assert spent.spent.signal == sum(lengths) == spent.beside.evaluator_tokens


def shown(question: Question) -> tuple[int, ...]:
    return tuple(Pocket("tiny").encode(question.prompt))


def seems_done(leaf: Leaf, question: Question) -> float:
    """A proxy: whether there is an answer at all."""
    return float(Countdown(3).parse(leaf.text, question).answer is not None)


def tiny(requests: object) -> object:
    return decode_with(Pocket("tiny"), Temperature(1.0))(requests)  # type: ignore[arg-type]


def test_rollouts_and_a_judge_on_a_pocket_model() -> None:
    model, [question] = Pocket("tiny"), Countdown(3).questions(1, run="tests/evaluate")
    z = Prefix(question, tuple(model.encode("1")), (0,))
    rollouts = Rollouts(tiny, seems_done, shown, m=2, cap=60)  # type: ignore[arg-type]
    values, cost = rollouts([z])
    assert 0 <= values[0] <= 1
    assert 0 < cost[0] <= rollouts.worst(0, 1).generated
    assert rollouts([z]).values.tolist() == values.tolist()
    signal = Judge(model, shown, tuple(model.encode("\n")), yes=model.encode("1")[0], no=model.encode("2")[0])([z])
    assert isinstance(signal, Signal)
    assert 0 < signal.values[0] < 1
    assert signal.cost[0] == len(shown(question)) + 2

"""Searches on a model whose leaves can be enumerated: exact where they are exhaustive, never past their budget."""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.arrays import Array
from ramify.bank import Proposal, Signal
from ramify.decide import BestOfN, SoftBestOfN, WeightedVote
from ramify.decode import Chain, Temperature
from ramify.describe import text
from ramify.errors import InvalidValue
from ramify.ledger import Calls, Cost, Flops, Ledger, Money, Seconds, Tokens, Work
from ramify.models import Pocket, Tabular, ValueHead, decode_with, leaves
from ramify.run import Arm, Search, Searched, run_search
from ramify.search import (
    RAP,
    UCT,
    Beam,
    BestFirst,
    Chunk,
    Controller,
    DepthFirst,
    Exponentiated,
    Likelihood,
    RawLikelihood,
    Rebase,
    Rollout,
    StochasticBeam,
    ToDelimiter,
    TopTokens,
    Twisted,
)
from ramify.search.tree import CUT, LEAF, PRUNED
from ramify.tasks import Countdown, Sound
from ramify.types import Key, Prefix, Question, Sampler
from tests.methods import CONTROLLERS
from tests.run.tools import shuffled

MODEL = Tabular.random(Key("search", "tabular", 0), vocabulary=5, order=1)
CAP = 4
COSTS = (Tokens(True), Calls(), Flops(3, 1, 1), Seconds(0.1, 0.7), Money(1e5, 3e4, call=0.1))
QUESTIONS = [Question(f"q{i}", "") for i in range(3)]


def arm(run: str = "run", batch: int = 16, temperature: float = 1.0) -> Arm:
    sampler = decode_with(MODEL, Temperature(temperature), batch=batch)
    return Arm(Proposal(run=run, protocol=f"Temperature(t={temperature})"), sampler, lambda _: ())


def whole(spelled: str, question: Question) -> str:
    return spelled


def charging(prefixes: Sequence[Prefix]) -> Signal:
    """exp of the mean log q, at the price of reading the prefix."""
    values, _ = Exponentiated()(prefixes)
    return Signal(values, np.array([len(z.tokens) for z in prefixes]))


@dataclasses.dataclass(frozen=True)
class Priced:
    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        return charging(prefixes)

    def worst(self, prompt: int, tokens: int) -> Work:
        return Work(generated=prompt + tokens)


def run(
    controller: Controller,
    limit: float = math.inf,
    *,
    source: Arm | None = None,
    questions: Sequence[Question] = QUESTIONS,
    **fields: object,
) -> Searched:
    protocol = Search(controller, **({"evaluator": Exponentiated(RawLikelihood()), "cap": CAP} | fields))  # type: ignore[arg-type]
    return run_search(protocol, questions, source or arm(), Ledger("tokens", Tokens(), limit=limit), whole)


def seen(found: Searched) -> tuple[object, ...]:
    """Everything that must not depend on batching, pausing or pickling."""
    tokens = [] if found.bank.tokens is None else found.bank.tokens.columns["token"].tolist()
    names = ("parent", "state", "visits", "score", "total", "log_q")
    trees = [[np.nan_to_num(tree.column(name), nan=-9).tolist() for name in names] for tree in found.trees]
    ledgers = [(ledger.spent, ledger.beside) for ledger in found.ledgers]
    winners = [int(choice.winner) for choice in found.choice]
    return (trees, tokens, ledgers, found.answers, winners, found.ended)


def enumerated() -> dict[tuple[int, ...], float]:
    found = leaves(MODEL, Chain(), (), CAP)
    rows = zip(found.tokens.tolist(), found.log_q.tolist(), strict=True)
    return {tuple(token for token in row if token >= 0): log_q for row, log_q in rows}


EXHAUSTIVE = (
    Beam(n=5000, m=5, unit=TopTokens(4), refill=True),
    BestFirst(width=5, unit=TopTokens(4)),
    DepthFirst(width=5, unit=TopTokens(4), leaves=None),
)


@pytest.mark.parametrize("controller", EXHAUSTIVE, ids=text)
def test_exhaustive_searches_find_every_leaf_with_its_probability(controller: Controller) -> None:
    found = run(controller, evaluator=RawLikelihood())
    expected = enumerated()
    for tree in found.trees:
        mine = {tree.tokens(row): tree.columns.score[row] for row in tree.rows(LEAF)}
        assert mine.keys() == expected.keys()
        assert all(mine[key] == pytest.approx(expected[key]) for key in expected)
    assert found.bank.log_q is not None
    assert np.allclose(np.exp(found.bank.log_q).sum(1), 1.0), "the records of enumerated leaves carry their log q"
    assert found.bank.kind == "search"
    with pytest.raises(InvalidValue, match="search"):
        found.bank.need_independence("a test")


def test_best_first_under_a_bound_finds_the_mode_without_looking_at_everything() -> None:
    everything = run(BestFirst(width=5, unit=TopTokens(4)), evaluator=RawLikelihood())
    found = run(BestFirst(width=5, unit=TopTokens(4), bound=True), evaluator=RawLikelihood(), rule=BestOfN("score"))
    expected = enumerated()
    mode, _ = max(expected.items(), key=lambda item: item[1])
    assert found.answers == (MODEL.text(mode),) * 3
    assert len(found.trees[0]) < len(everything.trees[0])


def test_uct_submits_the_best_leaf() -> None:
    controller = UCT(width=5, unit=TopTokens(4), most=600, c=0.1)
    found = run(controller, evaluator=Exponentiated(RawLikelihood()), rule=BestOfN("score"))
    mode, _ = max(enumerated().items(), key=lambda item: item[1])
    assert found.answers[0] == MODEL.text(mode)


def no_one(prefixes: Sequence[Prefix]) -> Array:
    """Sound for the utility "does not contain token 1": such a prefix can never be completed to a good leaf."""
    return np.array([1 not in z.tokens for z in prefixes])


def no_zero_first(prefixes: Sequence[Prefix]) -> Array:
    """Not sound for that utility."""
    return np.array([z.tokens[0] != 0 for z in prefixes])


def best_reachable(found: Searched) -> float:
    tree = found.trees[0]
    good = [row for row in tree.rows(LEAF) if 1 not in tree.tokens(row)]
    return max(tree.columns.score[row] for row in good)


@pytest.mark.parametrize("controller", EXHAUSTIVE, ids=text)
def test_a_sound_check_never_changes_the_best_reachable_utility_and_an_unsound_one_can(controller: Controller) -> None:
    plain, checked, unsound = (
        run(controller, questions=QUESTIONS[:1], evaluator=RawLikelihood(), check=check)
        for check in (None, no_one, no_zero_first)
    )
    [tree], best = plain.trees, best_reachable(plain)
    assert best_reachable(checked) == best
    assert len(checked.trees[0]) < len(tree)
    assert checked.pruned[0] > 0
    assert checked.cut == (0,)
    [row] = [row for row in tree.rows(LEAF) if tree.columns.score[row] == best]
    assert tree.tokens(row)[0] == 0, "this model's best good leaf begins with 0"
    assert best_reachable(unsound) < best


@pytest.mark.parametrize("controller", [Beam(n=6, m=2), Beam(n=24, m=4), Beam(n=24, m=8, unit=Chunk(2))], ids=text)
def test_what_a_score_prunes_is_recorded_as_cut_with_its_mass(controller: Controller) -> None:
    """The oracle: enumerated leaves below a prefix that was given up and was not drawn again and kept."""
    found = run(controller, evaluator=Likelihood())
    assert found.pruned == (0, 0, 0)
    masses = []
    for tree, cut in zip(found.trees, found.cut, strict=True):
        assert cut == len(tree.rows(CUT)) > 0
        kept = {tree.tokens(row) for row in range(len(tree)) if tree.columns.state[row] != CUT}
        lost = {tree.tokens(row) for row in tree.rows(CUT)} - kept
        below = [q for y, q in enumerated().items() if any(y[:n] in lost for n in range(len(y) + 1))]
        masses.append(sum(map(math.exp, below)))
        assert tree.cut_mass == pytest.approx(masses[-1])
    assert max(masses) > 0 or controller == Beam(n=6, m=2), "a narrow beam may cut nothing but copies"


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
def test_same_keys_same_tree_alone_batched_and_out_of_order(controller: Controller) -> None:
    found = run(controller)
    assert seen(run(controller)) == seen(found)
    assert seen(run(controller, source=arm(batch=1))) == seen(found)
    mixed: Sampler = shuffled(arm().sampler, seed=1)
    assert seen(run(controller, source=dataclasses.replace(arm(), sampler=mixed))) == seen(found)
    alone = run_search(found.protocol, QUESTIONS[1:2], arm(), Ledger("tokens", Tokens()), whole)
    assert alone.answers == found.answers[1:2]
    assert alone.ledgers == found.ledgers[1:2]
    assert seen(run(controller, source=arm("other"))) != seen(found) or "TopTokens" in text(controller)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(controller: Controller) -> None:
    found = run(controller, 60)
    ledger = Ledger("tokens", Tokens(), limit=60)
    part = run_search(found.protocol, QUESTIONS, arm(), ledger, whole, rounds=1)
    for _ in range(200):
        if "paused" not in part.ended:
            break
        stored = pickle.loads(pickle.dumps((part.trees, part.ledgers)))
        part = dataclasses.replace(part, trees=stored[0], ledgers=stored[1])
        part = run_search(found.protocol, QUESTIONS, arm(), ledger, whole, rounds=1, resume=part)
    assert seen(part) == seen(found)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=text)
@given(limit=st.integers(0, 150), cost=st.sampled_from(COSTS), priced=st.booleans())
@settings(max_examples=8, deadline=None)
def test_no_search_spends_past_its_ledger(controller: Controller, limit: int, cost: Cost, priced: bool) -> None:
    evaluator = Priced() if priced and "TopTokens" not in text(controller) else Exponentiated(RawLikelihood())
    protocol = Search(controller, evaluator, no_one, cap=CAP)
    found = run_search(protocol, QUESTIONS[:2], arm(), Ledger("unit", cost, limit=limit), whole)
    for tree, ledger, ended in zip(found.trees, found.ledgers, found.ended, strict=True):
        assert ledger.total <= limit
        assert ended in ("done", "budget")
        assert tree.expansions > 0 or ended == "budget"
        if tree.expansions and isinstance(cost, Calls):
            assert ledger.spent.control > 0


def test_everything_is_charged_to_its_stage() -> None:
    found = run(Rebase(width=4), evaluator=Priced(), check=no_one)
    tree, ledger = found.trees[0], found.ledgers[0]
    lengths = [len(tree.tokens(row)) for row in range(1, len(tree))]
    state, depth = tree.column("state")[1:], np.array(lengths)
    assert ledger.spent.generate == len(lengths), "a token a child"
    assert ledger.spent.signal == depth[state != PRUNED].sum(), "what the check rejects is not read"
    assert ledger.beside.evaluator_tokens == ledger.spent.signal


def test_an_evaluator_that_costs_more_than_it_says_is_refused() -> None:
    with pytest.raises(InvalidValue, match="worst"):
        run(Rebase(width=4), evaluator=charging)


def test_rules_read_the_layers_of_a_search() -> None:
    for rule in (BestOfN("score"), WeightedVote("visits"), WeightedVote("multiplicity"), SoftBestOfN("score", 2.0)):
        found = run(Beam(n=6, m=2, refill=True), rule=rule)
        assert all(answer is not None for answer in found.answers)
    with pytest.raises(InvalidValue, match="multiplicity"):
        Search(Beam(), rule=BestOfN("confidence"))
    assert run(Beam(n=4, m=2), limit=1, fallback="nothing").answers == ("nothing",) * 3


def test_rules_read_what_a_controller_says_of_its_leaves() -> None:
    for controller, names in (
        (RAP(width=3, most=20), ("path",)),
        (StochasticBeam(k=4, width=5, unit=TopTokens(4)), ("perturbed", "inclusion", "weight")),
        (Twisted(n=8), ("weight",)),
    ):
        for name in names:
            rule = BestOfN(name) if name == "perturbed" else WeightedVote(name)
            found = run(controller, rule=rule)
            assert all(answer is not None for answer in found.answers)
            rows = [tree.rows(LEAF) for tree in found.trees]
            for q, mine in enumerate(rows):
                said = controller.layer(name, found.trees[q], mine)
                assert found.bank.layers[name].values[q, : len(mine)].tolist() == said
    with pytest.raises(InvalidValue, match="path"):
        Search(Beam(), rule=WeightedVote("path"))


def test_stochastic_beam_search_estimates_the_probability_of_an_answer() -> None:
    """With every leaf drawn it is exact; with fewer it is unbiased (tests/search/test_exact.py)."""
    expected = {MODEL.text(tokens): math.exp(log_q) for tokens, log_q in enumerated().items()}
    controller = StochasticBeam(k=2000, width=5, unit=TopTokens(4))
    found = run(controller, rule=WeightedVote("weight"), questions=QUESTIONS[:1])
    weight = found.bank.layers["weight"].values[0]
    answers = [found.bank.answer(0, n) for n in range(len(weight))]
    assert dict(zip(answers, weight.tolist(), strict=True)) == pytest.approx(expected)


def test_whole_rollouts_from_the_root_are_independent_draws() -> None:
    found = run(Beam(n=400, m=4, unit=Rollout(), depth=1))
    expected = enumerated()
    top = max(expected, key=lambda tokens: expected[tokens])
    share = np.mean([tree.tokens(row) == top for tree in found.trees for row in tree.rows(LEAF)])
    p = math.exp(expected[top])
    assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / 1200)


def test_a_search_of_steps_on_a_pocket_model() -> None:
    model, task = Pocket("tiny"), Countdown(3)
    asked = task.questions(2, run="tests/search")
    source = Arm(Proposal(run="s"), decode_with(model, Temperature(1.0)), lambda q: tuple(model.encode(q.prompt)))
    step = ToDelimiter(tuple(model.encode("\n")), most=24)
    protocol = Search(Beam(n=4, m=2, unit=step), ValueHead("main"), Sound(), cap=80, rule=BestOfN("score"))

    def answer(spelled: str, question: Question) -> str | None:
        return task.parse(spelled, question).answer

    found = run_search(protocol, asked, source, Ledger("tokens", Tokens(), limit=2000), answer)
    for question, tree, ledger in zip(asked, found.trees, found.ledgers, strict=True):
        assert ledger.spent.signal > 0
        kept = [row for row in range(1, len(tree)) if tree.columns.state[row] != PRUNED]
        assert Sound()([tree.prefix(row, question) for row in kept]).all()


def test_what_was_returned_is_found_in_its_tree() -> None:
    for rule in (BestOfN("score"), SoftBestOfN("score", 2.0)):
        found = run(Beam(n=6, m=2, refill=True), rule=rule)
        for tree, row, answer in zip(found.trees, found.returned, found.answers, strict=True):
            assert MODEL.text(tree.tokens(row)) == answer
    assert run(Beam(n=4, m=2), limit=1, fallback="nothing").returned == (-1, -1, -1)


def test_a_search_goes_on_under_the_limit_it_began_with() -> None:
    protocol = Search(CONTROLLERS[0], cap=CAP)
    part = run_search(protocol, QUESTIONS, arm(), Ledger("tokens", Tokens(), limit=60), whole, rounds=1)
    with pytest.raises(InvalidValue, match="go on under the limit"):
        run_search(protocol, QUESTIONS, arm(), Ledger("tokens", Tokens(), limit=600), whole, resume=part)

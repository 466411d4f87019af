"""Running a study: once, again, after an interruption, with one rule changed, and with banks shared or not."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank
from ramify.decide import BestOfN, Plurality, SoftmaxVote
from ramify.decode import Temperature
from ramify.describe import method
from ramify.errors import StudyError
from ramify.evidence import Transformed, mean_logprob
from ramify.ledger import Money, Work
from ramify.metrics import available, plurality
from ramify.models import decode_with
from ramify.run import BudgetForcing
from ramify.stop import AdaptiveConsistency
from ramify.study import Progress, Protocol, Result, System, Tasked, check_study, run_study
from ramify.study import pools as pools_module
from ramify.study import source as source_module
from ramify.study import stored as stored_module
from ramify.types import Question
from tests.study.tools import Counter, Dice, Guess, Said, protocols, same, study


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    found = Counter()
    monkeypatch.setattr(source_module, "decode_with", found.wrap(decode_with))
    return found


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the protocols whose rules were asked, in order."""
    names: list[str] = []
    real: Callable[..., Any] = pools_module._decide

    def decide(given: Any, filled: Any, protocol: Protocol) -> Any:
        names.append(protocol.name)
        return real(given, filled, protocol)

    monkeypatch.setattr(pools_module, "_decide", decide)
    return names


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("study") / "dice"
    return folder, run_study(study(), folder)


def without_surplus(result: Result) -> Result:
    """What was launched ahead for nothing depends on when a run was interrupted; nothing else does."""
    rows = [
        dataclasses.replace(row, cost={stage: cost for stage, cost in row.cost.items() if stage != "surplus"})
        for row in result.rows
    ]
    return dataclasses.replace(result, rows=tuple(rows))


# ------------------------------------------------------------------------------------------------------ what is in it


def test_every_cell_of_the_matrix_has_its_rows(ran: tuple[Path, Result]) -> None:
    _, result = ran
    found = [(row.model, row.name, row.k, row.budget) for row in result.rows]
    assert found[:6] == [
        ("dice", "vote", 1, None),
        ("dice", "vote", 4, None),
        ("dice", "vote", 8, None),
        ("dice", "likeliest", 1, None),
        ("dice", "likeliest", 8, None),
        ("dice", "cold", 1, None),
    ]
    assert ("loaded", "cold", 1, None) not in found
    assert [
        row.regime for row in result.rows if row.name in ("adaptive", "forced", "beam") and row.model == "dice"
    ] == [
        "leaves",
        "trajectory",
        "search",
    ]
    assert {row.name: row.kind for row in result.rows if row.model == "dice"} == {
        "vote": "shared-bank",
        "likeliest": "shared-bank",
        "cold": "shared-bank",
        "ceiling": "diagnostic",
        "adaptive": "end-to-end",
        "limited": "end-to-end",
        "forced": "end-to-end",
        "beam": "end-to-end",
    }


def test_rows_are_what_the_metrics_say_of_the_bank(ran: tuple[Path, Result]) -> None:
    """At k = 1 and k = N nothing is simulated: the rows equal the closed forms on the bank itself."""
    _, result = ran
    row = result.row("vote", model="dice", k=1)
    bank, outcomes = result.banks[row.bank], result.outcomes[row.bank]
    grades = outcomes.on(bank)
    np.testing.assert_allclose(row.utility, grades.mean(axis=1))
    whole = result.row("vote", model="dice", k=8)
    exact = plurality(bank.candidates(), grades, [8]).values[:, 0]
    sure = np.isin(exact, (0.0, 1.0))  # where no tie is broken
    assert sure.any()
    np.testing.assert_array_equal(whole.utility[sure], exact[sure])
    ceiling = available(grades, bank.drawn, [8]).result.values[:, 0]
    np.testing.assert_array_equal(result.row("ceiling", model="dice", k=8).utility, ceiling)


def test_costs_are_those_of_the_leaves(ran: tuple[Path, Result]) -> None:
    _, result = ran
    row = result.row("vote", model="dice", k=8)
    bank = result.banks[row.bank]
    assert bank.length is not None
    np.testing.assert_allclose(row.cost["generate"], bank.length.sum(axis=1))
    np.testing.assert_allclose(result.row("vote", model="dice", k=1).cost["generate"], bank.length.mean(axis=1))
    limited = [row for row in result.rows if row.name == "limited"]
    assert all((row.cost["generate"] <= row.budget).all() for row in limited if row.budget)
    beam = result.row("beam", model="dice")
    assert (beam.total <= 200).all()


def test_a_price_table_charges_the_prompt_once(tmp_path: Path) -> None:
    """3 a token generated, 2 read, 1 cached: k = 8 of one question reads the prompt once and finds it 7 times."""
    money = Money(3e6, 2e6, 1e6)
    result = run_study(study(unit=money, protocols=(Protocol("vote"),), models=(System(Dice()),)), tmp_path / "s")
    row, bank = result.row("vote", k=8), result.banks["dice on guess"]
    prompts = np.array([len(question.prompt) for question in bank.questions])
    assert bank.length is not None
    np.testing.assert_allclose(row.cost["generate"], 3 * bank.length.sum(axis=1) + 2 * prompts + 7 * prompts)


def test_repeats_are_banks_of_their_own_and_in_no_row(ran: tuple[Path, Result]) -> None:
    _, result = ran
    assert "dice on guess, Temperature(t=1.0), cap 6, repeat 1" in result.banks
    assert not [row for row in result.rows if "repeat" in row.bank]
    assert "pooled with nothing" in " ".join(result.shared)
    status = result.reproduced["dice on guess, Temperature(t=1.0), cap 6, repeat 1"]
    assert "Against dice on guess, Temperature(t=1.0), cap 6: the answer distributions were not told apart" in status
    assert status.startswith("Exact replay checked on 2 of 48 leaves: the same, token for token.")
    one, other = (result.banks[f"dice on guess, Temperature(t=1.0), cap 6{mark}"] for mark in ("", ", repeat 1"))
    assert one.answers.tolist() != other.answers.tolist()


def test_measures_are_by_bank_and_group(ran: tuple[Path, Result]) -> None:
    _, result = ran
    found = {(each.metric, each.group): each for each in result.measures if each.bank == "loaded on guess"}
    assert {group for _, group in found} == {"", "kind=even", "kind=odd", "kind: macro", "kind: micro"}
    grades = result.outcomes["loaded on guess"].on(result.banks["loaded on guess"])
    assert found["Accuracy()", ""].estimate.value == pytest.approx(grades.mean())
    assert found["Accuracy()", "kind=odd"].estimate.value == pytest.approx(grades[1::2].mean())
    assert found["Accuracy()", ""].estimate.covers == ("questions",)


def test_comparisons_are_paired_and_say_what_they_mix(ran: tuple[Path, Result]) -> None:
    _, result = ran
    found = {(each.a, each.b): each for each in result.comparisons}
    one = found["dice: vote, k = 8", "dice: likeliest, k = 8"]
    a, b = result.row("vote", model="dice"), result.row("likeliest", model="dice")
    assert one.difference.value == pytest.approx(float(np.mean(a.utility - b.utility)))
    assert one.same_bank
    assert not found["dice: vote, k = 8", "loaded: vote, k = 8"].same_bank
    assert len(found) == 3


def test_agreement_of_rankings_is_declared(tmp_path: Path) -> None:
    models = tuple(System(Dice(name), decode=Temperature(t)) for name, t in (("x", 0.3), ("y", 1.0), ("z", 3.0)))
    result = run_study(study(models=models, protocols=(Protocol("vote"),), rank=True), tmp_path / "s")
    spearman = next(each for each in result.agreements if each.measure == "spearman")
    assert spearman.models == ("x", "y", "z")
    assert spearman.mean[-1] == 1.0  # all of the bank ranks as all of the bank does


# ------------------------------------------------------------------------------------------- once, again, interrupted


def test_a_second_run_makes_nothing_and_gives_the_same(ran: tuple[Path, Result], counter: Counter) -> None:
    folder, before = ran
    files = {path: path.read_bytes() for path in folder.glob("*.*")}
    after = run_study(dataclasses.replace(study(), replayed=0), folder)
    assert counter.asked == 0
    assert same(before, dataclasses.replace(after, reproduced=before.reproduced)) == ""
    after = run_study(study(), folder)
    assert {path: path.read_bytes() for path in folder.glob("*.*")} == files
    assert any("48 of 48 leaves were there" in each for each in after.reused)
    assert "Run before and unchanged: adaptive; limited; forced; beam." in after.reused


@pytest.mark.parametrize("after", [0, 30, 100, 170, 200, 260, 320])
def test_interrupted_and_resumed_is_uninterrupted(
    ran: tuple[Path, Result], tmp_path: Path, counter: Counter, after: int
) -> None:
    counter.after = after
    with pytest.raises(KeyboardInterrupt):
        run_study(study(), tmp_path / "s")
    counter.after = None
    resumed = run_study(study(), tmp_path / "s")
    assert same(without_surplus(ran[1]), without_surplus(resumed)) == ""


def test_what_was_drawn_before_an_interruption_is_not_drawn_again(tmp_path: Path, counter: Counter) -> None:
    given = study(protocols=(Protocol("vote"),), models=(System(Dice(), batch=1),), replayed=0)
    counter.after = 20
    with pytest.raises(KeyboardInterrupt):
        run_study(given, tmp_path / "s")
    kept, counter.asked, counter.after = 20, 0, None
    run_study(given, tmp_path / "s")
    assert counter.asked == 48 - kept


def test_only_the_changed_rule_is_decided_again(tmp_path: Path, counter: Counter, decided: list[str]) -> None:
    given = study(replayed=0)
    before = run_study(given, tmp_path / "s")
    assert sorted(set(decided)) == ["ceiling", "cold", "likeliest", "vote"]
    counter.asked = 0
    decided.clear()
    evidence = (("logp", mean_logprob()),)
    changed = Protocol("likeliest", SoftmaxVote("logp", 0.1), evidence=evidence, budgets=(1, 8))
    protocols_now = tuple(changed if each.name == "likeliest" else each for each in protocols())
    after = run_study(dataclasses.replace(given, protocols=protocols_now), tmp_path / "s")
    assert decided == ["likeliest", "likeliest"]  # of two models
    assert counter.asked == 0
    assert any("decisions and layers were there" in each for each in after.reused)
    for one, other in zip(before.rows, after.rows, strict=True):
        assert (same(one, other) == "") == (one.name != "likeliest")


def test_a_stricter_stop_uses_the_leaves_of_the_laxer_one(tmp_path: Path, counter: Counter) -> None:
    given = study(protocols=(Protocol("adaptive", stop=AdaptiveConsistency(0.99), n=6),), metrics=())
    run_study(given, tmp_path / "s")
    counter.asked = 0
    less = dataclasses.replace(given, protocols=(Protocol("adaptive", stop=AdaptiveConsistency(0.6), n=6),))
    result = run_study(less, tmp_path / "s")
    assert counter.asked == 0
    bank: Bank = result.banks["dice on guess, adaptive"]
    assert bank.kind == "stopped"
    assert (bank.drawn.sum(axis=1) < 6).any()
    alone = run_study(less, tmp_path / "t")
    assert same(without_surplus(result).rows, without_surplus(alone).rows) == ""


def test_more_candidates_and_questions_are_topped_up(tmp_path: Path, counter: Counter) -> None:
    small = study(
        protocols=(Protocol("vote"),),
        models=(System(Dice()),),
        n=4,
        budgets=(1, 4),
        replayed=0,
        metrics=(),
    )
    run_study(small, tmp_path / "s")
    assert counter.asked == 24
    large = dataclasses.replace(small, n=8, budgets=(1, 8), tasks=(Tasked(Guess(), "guess", 9, groups=("kind",)),))
    result = run_study(large, tmp_path / "s")
    assert counter.asked == 72
    assert same(result, run_study(large, tmp_path / "t")) == ""
    again = run_study(small, tmp_path / "s")  # and back: the smaller study is a part of what is there
    assert again.banks["dice on guess"].shape == (6, 4)


# ------------------------------------------------------------------------------------------------------ shared or not


def test_shared_banks_equal_separate_ones(ran: tuple[Path, Result], tmp_path: Path) -> None:
    """A rule alone in its study gives the rows that it gives beside others on the same bank."""
    _, together = ran
    for protocol in protocols()[:2]:
        alone = run_study(study(protocols=(protocol,)), tmp_path / protocol.name)
        for row in alone.rows:
            (other,) = [
                each for each in together.rows if (each.model, each.name, each.k) == (row.model, row.name, row.k)
            ]
            assert same(dataclasses.replace(row, bank=""), dataclasses.replace(other, bank="")) == ""


def test_other_decoders_stops_and_searches_share_nothing(ran: tuple[Path, Result]) -> None:
    _, result = ran
    banks = {row.name: row.bank for row in result.rows if row.model == "dice"}
    assert banks["vote"] == banks["likeliest"] == banks["ceiling"]
    own = [banks[name] for name in ("cold", "adaptive", "limited", "forced", "beam")]
    assert len({banks["vote"], *own}) == 6
    said = " ".join(result.shared)
    assert "vote; likeliest; ceiling share these candidates: one proposal (Temperature(t=1.0), cap 6)" in said
    assert "Temperature(t=0.3), cap 6 and Temperature(t=1.0), cap 6 share nothing" in said
    assert "adaptive makes its own candidates: a stop decides" in said
    assert "beam makes its own candidates: a controller decides" in said
    assert result.banks[banks["beam"]].kind == "search"


# ------------------------------------------------------------------------------------------------------------- manners


def test_progress_counts_leaves_tokens_and_what_is_left(tmp_path: Path) -> None:
    seen: list[Progress] = []
    given = study(protocols=(Protocol("vote"), Protocol("adaptive", stop=AdaptiveConsistency(0.9), n=6)), limit=1e5)
    run_study(given, tmp_path / "s", seen.append)
    assert seen[-1].what == "measuring"
    assert [each.done for each in seen] == sorted(each.done for each in seen)
    assert seen[-1].total == 6 * 8 * 3 + 2 * 6 * 6
    assert seen[-1].left == 1e5 - seen[-1].tokens
    seen.clear()
    run_study(given, tmp_path / "s", seen.append)
    assert (seen[-1].tokens, seen[-1].reused) == (0, 6 * 8 * 3)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(StudyError, match="is not empty and holds no study"):
        run_study(study(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_checking_generates_nothing(counter: Counter) -> None:
    checked = check_study(study())
    assert counter.asked == 0
    assert str(checked.plan).startswith("4 banks, 7 runs of their own; at most ")


def test_the_reduced_study_is_the_study_made_small(tmp_path: Path) -> None:
    from ramify.study import Reduced

    given = study(reduced=Reduced(questions=2, n=4, replays=3, replicates=50, repeats=0, models=("dice",)))
    result = run_study(given, tmp_path / "s", reduced=True)
    assert {row.model for row in result.rows} == {"dice"}
    assert {row.k for row in result.rows} == {1, 4, None}
    assert result.banks["dice on guess, Temperature(t=1.0), cap 6"].shape == (2, 4)
    assert result.title == "dice (reduced)"


def test_a_rule_of_ones_own_is_never_taken_from_memory(tmp_path: Path, decided: list[str]) -> None:
    given = study(
        protocols=(Protocol("mine", lambda candidates: Plurality()(candidates)),),
        models=(System(Dice()),),
    )
    first = run_study(given, tmp_path / "s")
    again = run_study(given, tmp_path / "s")
    assert len(decided) >= 1
    assert same(first.rows[0].utility, again.rows[0].utility) == ""


MINE = """
from ramify.decide import Earliest, Plurality
from ramify.describe import method
from ramify.study import Protocol, Study, System, Tasked
from tests.study.tools import Dice, Guess

@method
class Mine:
    def __call__(self, candidates):
        return RULE()(candidates)

protocols = (Protocol("mine", Mine()), Protocol("vote", Plurality()))
tasks, models = (Tasked(Guess(), "guess", questions=3),), (System(Dice()),)
study = Study("own", tasks, models, protocols, budgets=(8,), n=8, cap=6, metrics=())
"""


def test_a_rule_whose_body_was_changed_is_decided_again_and_no_other(tmp_path: Path, decided: list[str]) -> None:
    file = tmp_path / "study.py"
    file.write_text(MINE.replace("RULE", "Plurality"))
    first = run_study(file, tmp_path / "s")
    assert first.row("mine", k=8).utility.tolist() == first.row("vote", k=8).utility.tolist()
    del decided[:]
    run_study(file, tmp_path / "s")
    assert decided == [], "unchanged, it is taken from memory"
    file.write_text(MINE.replace("RULE", "Earliest"))
    changed = run_study(file, tmp_path / "s")
    assert decided == ["mine"]
    assert changed.row("mine", k=8).utility.tolist() != first.row("mine", k=8).utility.tolist()
    assert "Mine() #" in changed.row("mine", k=8).protocol


def test_two_evidences_of_one_name_keep_apart(tmp_path: Path) -> None:
    from ramify.evidence import sequence_logprob

    given = study(
        models=(System(Dice()),),
        protocols=(
            Protocol("mean", BestOfN("score"), evidence=(("score", mean_logprob()),)),
            Protocol("sum", BestOfN("score"), evidence=(("score", sequence_logprob()),)),
        ),
    )
    result = run_study(given, tmp_path / "s")
    layers = result.banks["dice on guess"].layers
    assert len(layers) == 2
    assert all(name.startswith("TokenEvidence") for name in layers)


def test_large_banks_are_mapped_and_not_kept(ran: tuple[Path, Result], tmp_path: Path, monkeypatch: Any) -> None:
    """With nothing held in memory the numbers are the same; tokens and texts stay in the store."""
    for module in (stored_module, pools_module):
        monkeypatch.setattr(module, "HELD", 0)
    result = run_study(study(), tmp_path / "s")
    assert same(ran[1].rows, result.rows) == ""
    assert same(ran[1].measures, result.measures) == ""
    assert result.reproduced == ran[1].reproduced
    bank = result.banks["loaded on guess"]
    assert bank.tokens is None
    assert bank.text is None
    assert not list((tmp_path / "s").rglob(".scratch*"))


def test_killed_and_resumed_is_uninterrupted(ran: tuple[Path, Result], tmp_path: Path) -> None:
    """No process gets to say goodbye to a SIGKILL; what was acknowledged is there."""
    folder = tmp_path / "s"
    process = subprocess.Popen([sys.executable, "-m", "tests.study.killed", str(folder)])
    try:
        for _ in range(3000):
            if len(list((folder / "banks").glob("*"))) > 2 or process.poll() is not None:
                break
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert not (folder / "result.json").exists()
    resumed = run_study(study(), folder)
    assert same(without_surplus(ran[1]), without_surplus(resumed)) == ""


GOLD = ["a"]


@method
class Revised:
    """Guess with one reference for all, which somebody corrects."""

    name: str = "revised"

    def questions(self, n: int) -> tuple[Question, ...]:
        return Guess().questions(n)

    def references(self, questions: Sequence[Question]) -> tuple[str, ...]:
        return tuple(GOLD[0] for _ in questions)

    def parse(self, text: str, question: Question) -> Said:
        return Guess().parse(text, question)

    def grade(self, answer: str | None, reference: str) -> float:
        return float(answer == reference)


def test_a_corrected_reference_grades_what_is_there_again(tmp_path: Path) -> None:
    mine = (Protocol("vote"), Protocol("adaptive", stop=AdaptiveConsistency(0.9), n=6))
    given = study(tasks=(Tasked(Revised(), "guess", 6),), models=(System(Dice()),), protocols=mine, metrics=())
    GOLD[0] = "a"
    before = run_study(given, tmp_path / "one")
    GOLD[0] = "b"
    after = run_study(given, tmp_path / "one")
    fresh = run_study(given, tmp_path / "two")
    assert [row.utility.tolist() for row in after.rows] == [row.utility.tolist() for row in fresh.rows]
    assert [row.utility.tolist() for row in after.rows] != [row.utility.tolist() for row in before.rows]


def test_two_functions_without_a_name_are_two_things(tmp_path: Path) -> None:
    up, down = Transformed(mean_logprob(), lambda v: v), Transformed(mean_logprob(), lambda v: -v)
    mine = [Protocol(name, BestOfN("x"), evidence=(("x", each),)) for name, each in (("up", up), ("down", down))]
    result = run_study(study(models=(System(Dice()),), protocols=tuple(mine), metrics=()), tmp_path / "s")
    one, other = (layer.values for layer in result.banks["dice on guess"].layers.values())
    np.testing.assert_array_equal(one, -other)
    assert result.row("up", k=8).utility.tolist() != result.row("down", k=8).utility.tolist()


@method
class Half:
    """Two tokens for one."""

    def __call__(self, work: Work) -> float:
        return work.generated / 2


def test_another_unit_makes_other_candidates_of_the_same_limit(tmp_path: Path) -> None:
    forced = Protocol("forced", director=BudgetForcing(1, (0,), 6), cap=12, limits=(5.0,))
    given = study(models=(System(Dice()),), protocols=(forced,), metrics=())
    run_study(given, tmp_path / "one")
    halved = dataclasses.replace(given, unit=Half())
    assert same(run_study(halved, tmp_path / "one"), run_study(halved, tmp_path / "two")) == ""


def test_models_are_ranked_by_as_many_candidates_of_their_own_decoder(tmp_path: Path) -> None:
    models = tuple(System(Dice(name)) for name in ("one", "two", "three"))
    mine = (Protocol("v"), Protocol("w", budgets=(16,), models=("two",)), Protocol("z", decode=Temperature(0.1)))
    given = study(n=None, models=models, protocols=mine, metrics=(), rank=True)
    found = run_study(given, tmp_path / "one").agreements
    alone = dataclasses.replace(given, protocols=(Protocol("v"),))
    assert [each.models for each in found] == [("one", "two", "three")] * len(found)
    assert same(found, run_study(alone, tmp_path / "two").agreements) == ""


def test_a_limit_counts_what_prompts_cost(tmp_path: Path) -> None:
    dear = Money(generated=1e6, prompt=100e6)
    given = study(models=(System(Dice()),), protocols=(Protocol("vote"),), metrics=(), unit=dear)
    paid = float(run_study(given, tmp_path / "s").row("vote", k=8).cost["generate"].sum())
    assert check_study(given).plan.worst == 6 * 8 * 6 + 100 * (0 + 1 + 2) * 2 >= paid  # leaves at the cap, prompts once
    with pytest.raises(StudyError, match="costs up to 888"):
        check_study(dataclasses.replace(given, limit=paid))

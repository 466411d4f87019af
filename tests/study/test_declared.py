"""A study is held to what it declares: its intervals, its limit, its models, its folder, what it paid."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from ramify.decide import BestOfN
from ramify.describe import method
from ramify.errors import StudyError
from ramify.ledger import Calls, Tokens, Work
from ramify.models import OutcomeHead, Pocket
from ramify.study import Progress, Protocol, Study, System, Tasked, check_study, load, run_study, stored
from ramify.study.joined import Joined
from ramify.study.kept import Decided
from ramify.tasks import Arithmetic, Countdown
from ramify.verify import CompassVerifier
from tests.study.test_judges import ASKED, Scribe
from tests.study.tools import Dice, Guess, study

SHIPPED = sorted(Path("studies").rglob("*.toml"))


def test_rows_have_the_level_and_the_resamples_of_the_study(tmp_path: Path) -> None:
    wide = run_study(study(models=(System(Dice()),)), tmp_path / "wide")
    narrow = run_study(study(models=(System(Dice()),), level=0.5, replicates=300), tmp_path / "narrow")
    a, b = (result.row("vote", k=8).estimate() for result in (wide, narrow))
    assert (a.level, b.level) == (0.95, 0.5)
    assert a.value == b.value
    assert b.high - b.low < a.high - a.low
    assert {row.replicates for row in narrow.rows} == {300}


def test_charges_add_up_to_what_was_generated(tmp_path: Path) -> None:
    """Repeats too, and a bank in full although no row uses all of it."""
    drawn = list[Progress]()
    given = study(
        models=(System(Dice(), repeats=2),),
        protocols=(Protocol("vote"),),
        budgets=(1, 4),
        n=8,
        metrics=(),
        unit=Tokens(),
    )
    result = run_study(given, tmp_path / "s", drawn.append)
    assert [each.what.rpartition(", ")[2] for each in result.charges[1:]] == ["repeat 1", "repeat 2"]
    assert sum(each.total for each in result.charges) == drawn[-1].tokens == drawn[-1].cost
    assert len(result.charges) == 3
    again = list[Progress]()
    run_study(dataclasses.replace(given, limit=10_000), tmp_path / "s", again.append)
    assert again[-1].tokens == 0
    assert again[-1].left == 10_000 - drawn[-1].tokens, "what was there was paid for too"


def test_a_limit_counts_what_evidence_reads() -> None:
    head = Protocol("head", BestOfN("x"), evidence=(("x", OutcomeHead("main")),))
    plain = Study(
        "s", (Tasked(Countdown(3), questions=2),), (System(Pocket("main")),), (Protocol("vote"),), cap=50, n=4
    )
    without = check_study(plain).plan.worst
    both = check_study(dataclasses.replace(plain, protocols=(Protocol("vote"), head))).plan.worst
    prompts = [len(Pocket("main").encode(question.prompt)) for question in Countdown(3).questions(2)]
    read = [OutcomeHead("main").worst(prompt, 50) for prompt in prompts]
    assert without == 2 * 4 * 50
    assert both == without + 4 * sum(Tokens()(each) for each in read)


@pytest.mark.parametrize("file", SHIPPED, ids=str)
def test_shipped_studies_can_be_run_model_by_model(file: Path) -> None:
    whole = load(file).study
    judges = {each.judge for each in whole.protocols}  # those that are left out still have to judge
    for model in [each for each in whole.models if each.name not in judges][:1]:
        found = check_study(file, models=[model.name], offline=True).source.study
        assert [each.name for each in found.models] == [model.name]
        assert found.title == whole.title
    if whole.reduced is not None:
        name = whole.small().models[0].name
        assert len(check_study(file, models=[name], reduced=True, offline=True).source.study.models) == 1


def test_a_folder_is_of_one_study(tmp_path: Path) -> None:
    given = study(models=(System(Dice()),), protocols=(Protocol("vote"),), metrics=())
    run_study(given, tmp_path / "s")
    before = (tmp_path / "s" / "result.json").read_bytes()
    with pytest.raises(StudyError, match=r"holds another study, 'dice' \(made in Python\): name another folder"):
        run_study(dataclasses.replace(given, title="other", run="other"), tmp_path / "s")
    assert (tmp_path / "s" / "result.json").read_bytes() == before
    run_study(dataclasses.replace(given, budgets=(1, 8)), tmp_path / "s")  # edited, and still the same study


def test_a_file_may_be_given_another_title_or_moved(tmp_path: Path) -> None:
    text = Path("studies/demo.toml").read_text()
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(text)
    engine = __import__("ramify.study.engine", fromlist=["_claim"])
    engine._claim(tmp_path / "s", load(one))
    one.write_text(text.replace('title = "', 'title = "New: ', 1))
    engine._claim(tmp_path / "s", load(one))
    two.write_text(one.read_text())
    engine._claim(tmp_path / "s", load(two))
    one.write_text(text)
    with pytest.raises(StudyError, match=r"two\.toml"):
        engine._claim(tmp_path / "s", load(one))


def test_a_grader_is_shown_the_reference_of_a_joined_task(tmp_path: Path) -> None:
    ASKED.clear()
    graded = Protocol("compass", BestOfN("grader"), diagnostic=CompassVerifier(), judge="scribe")
    task = Joined(Arithmetic(1), Arithmetic(2))
    given = Study(
        "s",
        (Tasked(task, "sums", 1),),
        (System(Pocket("tiny")),),
        (graded,),
        cap=40,
        n=1,
        judges=(System(Scribe()),),
    )
    run_study(given, tmp_path / "s")
    (prompt,) = [asked for each in ASKED for asked in each.asked][:1]
    assert "Reference(" not in prompt
    assert f"<reference>\n{task.references(task.questions(1))[0].gold}\n" in prompt


def test_a_damaged_decision_is_made_again(tmp_path: Path) -> None:
    decided = Decided(tmp_path)
    decided.get(["a"], lambda: {"x": np.arange(1000.0)})
    (file,) = tmp_path.glob("*.npz")
    for content in (file.read_bytes()[:300], b"", b"nothing", file.read_bytes()[:-40] + b"0" * 40):
        file.write_bytes(content)
        assert not decided.has(["a"])
        assert decided.get(["a"], lambda: {"x": np.arange(3.0)})["x"].tolist() == [0.0, 1.0, 2.0]
        assert decided.has(["a"])


def test_a_result_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = study(models=(System(Dice()),), protocols=(Protocol("vote"),), metrics=())
    first = run_study(given, tmp_path / "s")
    real, times = np.load, [0]

    def load_late(path: Path) -> object:
        times[0] += 1
        if times[0] == 1:  # another run ends between the two reads
            stored.write(
                tmp_path / "s",
                dataclasses.replace(first, title="new", rows=first.rows[:1]),
                {name: f"banks/{next((tmp_path / 's' / 'banks').iterdir()).name}" for name in first.banks},
            )
        return real(path)

    monkeypatch.setattr(np, "load", load_late)
    assert stored.read(tmp_path / "s").title == "new"


@method
class Far(Dice):
    """A model that may not be there any more."""

    def preflight(self) -> None:
        PREFLIGHTS.append(self.name)


PREFLIGHTS: list[str] = []


def test_a_model_whose_part_is_done_is_not_asked_again(tmp_path: Path) -> None:
    given = study(models=(System(Far()),), metrics=())
    mine = [each for each in given.protocols if not each.models]
    given = dataclasses.replace(given, protocols=tuple(mine))
    run_study(given, tmp_path / "s")
    assert PREFLIGHTS == ["dice"]
    del PREFLIGHTS[:]
    run_study(given, tmp_path / "s")
    assert PREFLIGHTS == [], "with a stop and a search in it"
    run_study(dataclasses.replace(given, protocols=(*mine, Protocol("new", limits=(20.0,), n=3))), tmp_path / "s")
    assert PREFLIGHTS == ["dice"]


def test_a_label_of_an_interface_changes_no_candidates(tmp_path: Path) -> None:
    given = study(models=(System(Dice(), interface="raw"),), protocols=(Protocol("vote"),), metrics=())
    run_study(given, tmp_path / "s")
    told = list[Progress]()
    renamed = dataclasses.replace(given, models=(System(Dice(), interface="plain"),))
    result = run_study(renamed, tmp_path / "s", told.append)
    assert told[-1].tokens == 0
    assert result.rows[0].interface == "plain"


def test_progress_counts_in_the_unit_and_knows_no_more_than_it_can(tmp_path: Path) -> None:
    told = list[Progress]()
    run_study(
        study(models=(System(Dice()),), unit=Calls(), limit=1000, protocols=(Protocol("vote"),)),
        tmp_path / "s",
        told.append,
    )
    assert {each.unit for each in told} == {"calls"}
    assert told[-1].cost == 48
    assert all(each.done <= each.total for each in told)
    plan = str(check_study(study()).plan)
    assert "beside what 3 directors or searches draw" in plan
    assert Calls()(Work(generated=3)) == 1


def test_two_limits_that_print_alike_are_two_rows(tmp_path: Path) -> None:
    limits = (1_000_000.0, 1_000_001.0)
    given = study(models=(System(Dice()),), protocols=(Protocol("far", limits=limits, n=2),), metrics=())
    result = run_study(given, tmp_path / "s")
    assert [row.label for row in result.rows] == ["far, 1000000 tokens", "far, 1000001 tokens"]
    assert len(result.banks) == 2


def test_groups_of_one_question_are_left_out_and_the_others_are_not(tmp_path: Path) -> None:
    given = study(models=(System(Dice()),), tasks=(Tasked(Odd(), "guess", 7, groups=("kind",)),))
    names = {each.group for each in run_study(given, tmp_path / "s").measures}
    assert {"kind=even", "kind=odd", "kind: macro"} <= names
    assert "kind=alone" not in names


@method
class Odd(Guess):
    """The last question is in a group of its own."""

    def questions(self, n: int) -> tuple[object, ...]:  # type: ignore[override]
        found = Guess().questions(n)
        return (*found[:-1], dataclasses.replace(found[-1], groups={"kind": "alone"}))

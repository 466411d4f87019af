"""Study files: what is read, and every way to write one that cannot be run, with its line and what to write instead."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from ramify.decide import SoftmaxVote, WeightedVote
from ramify.decode import Chain, Temperature, TopP
from ramify.errors import InvalidValue, StudyError
from ramify.evidence import mean_logprob
from ramify.kinds import kind_of
from ramify.models import Pocket
from ramify.study import Protocol, check_study, load, loads, run_study
from ramify.study import source as source_module
from ramify.study.lines import index, nearest_line
from ramify.tasks import Countdown
from tests import methods
from tests.study.tools import Guess, study

GOOD = """\
[study]
title = "A vote"
run = "votes"
decode = "Chain(Temperature(0.6), TopP(0.95))"
cap = 100
n = 8
budgets = [1, 2, 8]
metrics = ["PassAt(8)"]
comparisons = [["soft", "vote @ 2"]]

[task]
name = "countdown"
task = "Countdown(3)"
questions = 4

[[model]]
name = "tiny"
model = "Pocket('tiny')"

[[protocol]]
name = "vote"

[[protocol]]
name = "soft"
rule = "SoftmaxVote(temperature=0.1)"
evidence = "TokenEvidence(LogProb(), Mean())"

[reduced]
questions = 2
n = 2
"""


def test_a_study_file_is_a_study() -> None:
    found = loads(GOOD).study
    assert found.decode == Chain(Temperature(0.6), TopP(0.95))
    assert (found.tasks[0].task, found.tasks[0].questions) == (Countdown(3), 4)
    assert found.models[0].model == Pocket("tiny")
    assert found.protocols[1].rule == SoftmaxVote(temperature=0.1)
    assert found.budgets == (1, 2, 8)
    assert found.small().n == 2
    assert found.small().budgets == (1, 2)


# (what is written instead of what, the line, words of the message)
BAD = {
    "unknown rule": ('"SoftmaxVote(', '"SoftMaxVote(', 25, "did you mean SoftmaxVote?"),
    "unknown field of a rule": ("temperature=0.1", "temprature=0.1", 25, "did you mean temperature?"),
    "unknown key": ("questions = 4", "question = 4", 14, "[task] has no such field; did you mean 'questions'?"),
    "unknown table": ("[reduced]", "[reduce]", 28, "a study has no such table; did you mean 'reduced'?"),
    "unknown checkpoint": ("Pocket('tiny')", "Pocket('tinny')", 18, "use a folder with a config.json, or one of"),
    "unknown task": ('"Countdown(3)"', '"Countdwon(3)"', 13, "did you mean Countdown?"),
    "bad value": ("Countdown(3)", "Countdown(9)", 13, "Countdown.level = 9: use 2 to 6 numbers"),
    "wrong slot": ('"SoftmaxVote(temperature=0.1)"', '"TopP(0.9)"', 25, "is a decoder, which belongs into decode"),
    "another slot": ('"TokenEvidence(LogProb(), Mean())"', '"LogProb()"', 26, "evidence takes evidence, such as"),
    "wrong type": ("cap = 100", 'cap = "100"', 5, "cap = '100': use a whole number >= 1"),
    "a number for a method": ('rule = "SoftmaxVote(temperature=0.1)"', "rule = 3", 25, "write the value's text form"),
    "not increasing": ("[1, 2, 8]", "[2, 1, 8]", 7, "use increasing numbers"),
    "impossible budget": ("[1, 2, 8]", "[1, 2, 16]", 7, "16 candidates of a bank of n = 8; raise n"),
    "impossible metric": ("PassAt(8)", "PassAt(9)", 8, "needs 9 candidates, and banks have 8"),
    "impossible cap": ("cap = 100", "cap = 5000", 18, "use a cap of at most"),
    "impossible limit": ('name = "vote"', 'name = "vote"\nlimits = [50.0]', 22, "costs 100 at worst"),
    "too many questions": ("Countdown(3)", "Countdown(2)", 14, ""),
    "unknown comparison": ('"vote @ 2"', '"vot @ 2"', 9, "did you mean 'vote'?"),
    "a budget that it has not": ('"vote @ 2"', '"vote @ 7"', 9, "'vote' has no budget '7', of 1, 2"),
    "a name that reads as two": ('name = "vote"', 'name = "vote: plain"', 21, "use other words"),
    "a group that nothing has": ("questions = 4", 'questions = 4\ngroups = ["levl"]', 15, "did you mean 'level'?"),
    "unknown model": ('name = "vote"', 'name = "vote"\nmodels = ["tyny"]', 22, "did you mean 'tiny'?"),
    "evidence nobody makes": (
        'rule = "SoftmaxVote(t',
        "rule = \"SoftmaxVote('logp', t",
        25,
        "reads 'logp', and evidence has",
    ),
    "alternatives not recorded": (
        "TokenEvidence(LogProb(), Mean())",
        "TokenEvidence(Confidence(20), Mean())",
        26,
        "reads 20 alternatives a token, and top = 0 are recorded: raise top",
    ),
    "a name twice": ('name = "soft"', 'name = "vote"', 24, "is there twice"),
    "no toml": ("cap = 100", "cap = ", 5, "Invalid value"),
    "too little for the whole": ("cap = 100", "cap = 100\nlimit = 100", 6, "the study costs up to 3,200"),
    "a stop with budgets": (
        'name = "vote"',
        'name = "vote"\nstop = "AdaptiveConsistency(0.9)"\nbudgets = [1]',
        23,
        "use n for the most, or limits",
    ),
    "an evaluator alone": (
        'name = "vote"',
        'name = "vote"\nevaluator = "Likelihood()"',
        22,
        "for a controller: name one",
    ),
    "one resample": ("budgets = [1, 2, 8]", "budgets = [1, 2, 8]\nreplicates = 1", 8, "use a whole number >= 2"),
    "a stop without its evidence": (
        'name = "vote"',
        'name = "vote"\nstop = "AnyOf(AtMost(4), CgesStop(\'scr\'))"',
        22,
        "reads 'scr', and the protocol has no evidence",
    ),
    "a number for a stop": (
        'name = "vote"',
        'name = "vote"\nstop = "AnyOf(2)"',
        22,
        "AnyOf.stops = 2: that is no method",
    ),
    "words that cannot be spelled": (
        'name = "vote"',
        'name = "vote"\ndirector = "BudgetForcing(wait=\'É\')"',
        22,
        "wait = 'É' in the tokens of tiny: 'É' has ['É']: the vocabulary cannot spell it",
    ),
    "a checkpoint without heads": (
        'name = "vote"',
        'name = "vote"\ncontroller = "Beam(n=2, m=2)"\nevaluator = "ValueHead(\'tiny\')"',
        23,
        "the checkpoint has no heads.safetensors; use one of ['main']",
    ),
    "a head of no checkpoint": ("TokenEvidence(LogProb(), Mean())", "OutcomeHead('mian')", 26, "Pocket.name = 'mian'"),
    "a stop that reads alternatives": (
        'name = "vote"',
        'name = "vote"\nwithin = "AnyToken(TokenLimit(9), LowConfidence(0.1))"',
        22,
        "reads 20 alternatives a token, and top = 0 are recorded: raise top",
    ),
    "a model that is nowhere": ("Pocket('tiny')", "HF('/nowhere/model')", 18, "model = 'tiny' cannot be loaded"),
    "more than anybody draws": ("n = 8", "n = 99999999999999999999", 6, "1,000,000,000 are the most; lower n"),
    "more than anybody asks": ("questions = 4", "questions = 100000000000", 14, "at most 1,000,000 of a task"),
    "a number of trajectories": (
        'name = "vote"',
        'name = "vote"\ndirector = "BudgetForcing(wait=(1,))"\nn = 3',
        23,
        "n beside a director: one trajectory is one candidate",
    ),
    "a stop of a trajectory": (
        'name = "vote"',
        'name = "vote"\ndirector = "BudgetForcing(wait=(1,))"\nstop = "Esc(4)"',
        23,
        "stop beside a director",
    ),
    "a stop of a search": (
        'name = "vote"',
        'name = "vote"\ncontroller = "Beam(n=2, m=2)"\nstop = "Esc(4)"',
        23,
        "stop beside a controller",
    ),
    "a stop within a search": (
        'name = "vote"',
        'name = "vote"\ncontroller = "Beam(n=2, m=2)"\nwithin = "TokenLimit(4)"',
        23,
        "within beside a controller",
    ),
    "evidence of a search": (
        'name = "vote"',
        'name = "vote"\ncontroller = "Beam(n=2, m=2)"\nevidence = "mean_logprob"',
        23,
        "its leaves carry score, visits and multiplicity",
    ),
    "ranks of one model": ("cap = 100", "cap = 100\nrank = true", 6, "of three models or more"),
    "nearly the outcomes": ('name = "vote"', 'name = "vote"\ndiagnostic = "outcome"', 22, "did you mean 'outcomes'?"),
    "nearly a preset": ('"TokenEvidence(LogProb(), Mean())"', '"mean_logprb"', 26, "did you mean mean_logprob?"),
    "effort of a task without": ('name = "tiny"', 'name = "tiny"\neffort = "extreme"', 18, "use one of"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_studies_fail_before_any_work(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a sampler was made")

    monkeypatch.setattr(source_module, "decode_with", never)
    old, new, line, words = BAD[name]
    file, folder = tmp_path / "study.toml", tmp_path / "out"
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    if new.startswith('name = "vote"\n'):  # which may have no row at a budget any more
        text = text.replace(" @ 2", "")
    if name == "too many questions":
        text, words = text.replace("questions = 4", "questions = 40"), "there are only about"
    file.write_text(text)
    with pytest.raises(StudyError) as caught:
        run_study(file, folder)
    said = str(caught.value)
    assert f"{file}:{line}: " in said, said
    assert words in said, said
    assert not folder.exists()


def test_values_are_written_as_on_the_command_line() -> None:
    short = GOOD.replace("TokenEvidence(LogProb(), Mean())", "mean_logprob").replace(
        "Pocket('tiny')", "Pocket(name='tiny')"
    )
    assert loads(short).study == loads(GOOD).study
    with pytest.raises(StudyError, match=r"evidence = 'logp': logp is not a name of ramify; did you mean"):
        loads(GOOD.replace("TokenEvidence(LogProb(), Mean())", "logp"))


def test_every_line_that_is_wrong_is_said_at_once() -> None:
    text = GOOD.replace("cap = 100", "cap = -1").replace("Countdown(3)", "Countdwon(3)").replace("Pocket(", "Pokcet(")
    with pytest.raises(StudyError) as caught:
        loads(text, "s.toml")
    assert [line.split(" ")[0] for line in str(caught.value).splitlines()] == ["s.toml:5:", "s.toml:13:", "s.toml:18:"]


def test_a_file_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "repeated.toml").write_text(GOOD)
    with pytest.raises(StudyError, match=r"did you mean 'repeated\.toml'"):
        load(tmp_path / "repeatd.toml")


def test_a_task_without_gold_is_refused() -> None:
    from ramify.study import Tasked

    with pytest.raises(StudyError, match=r"study: task.0.task: .*6 questions have no reference, first 'g0'"):
        check_study(study(tasks=(Tasked(Guess(gold=False), "guess", 6),)))


def test_an_endpoint_that_does_not_answer_is_refused_before_any_work(tmp_path: Path) -> None:
    import dataclasses

    from ramify.study import System
    from tests.study.tools import Dice

    class Far(Dice):
        def preflight(self) -> None:
            raise InvalidValue("http://localhost:1 refused the connection: start the server")

    given = study(models=(dataclasses.replace(System(Far()), name="far"),), protocols=study().protocols[:1])
    check_study(given)  # everything else can be checked without it
    with pytest.raises(StudyError, match=r"model.0.model: model = 'far' does not answer: .* start the server"):
        run_study(given, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_a_python_file_makes_the_same_study(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from ramify.models import Pocket\n"
        "from ramify.study import Protocol, Study, System, Tasked\n"
        "from ramify.tasks import Countdown\n"
        "study = Study('mine', (Tasked(Countdown(3), questions=2),), (System(Pocket('tiny')),), (Protocol('vote'),))\n"
    )
    assert load(file).study.title == "mine"
    file.write_text("study = 3\n")
    with pytest.raises(StudyError, match=r"sets `study = Study\(...\)`, and this one has 3"):
        load(file)
    file.write_text("1 / 0\n")
    with pytest.raises(StudyError, match="ZeroDivisionError"):
        load(file)
    file.write_text(
        "from ramify.decode import TopP\nfrom ramify.study import Protocol, Study\n"
        "study = Study('mine', (), (), (Protocol('vote', TopP(0.9)),))\n"
    )
    with pytest.raises(StudyError, match=r"mine.py: protocol.0.rule: rule: TopP.* is a decoder"):
        load(file)


# ---------------------------------------------------------------------------------------------------------- the pieces


def test_keys_are_found_in_every_form_of_toml() -> None:
    text = '''a = 1
[study] # a comment
title = """
name = "not a key"
"""
budgets = [
  1, # [[nor.a.table]]
  2,
]
"quoted key" = 1
x.y = 2

[[protocol]]
name = 'a'
[protocol.evidence]
logp = "[z]"
[[protocol]]
evidence = { a = "b" }
'''
    lines = index(text)
    assert lines[("a",)] == 1
    assert lines[("study", "title")] == 3
    assert ("study", "name") not in lines
    assert lines[("study", "budgets")] == 6
    assert lines[("study", "quoted key")] == 10
    assert lines[("study", "x", "y")] == 11
    assert lines[("protocol", 0, "evidence", "logp")] == 16
    assert lines[("protocol", 1, "evidence")] == 18
    assert nearest_line(lines, ("protocol", 1, "evidence", "a")) == 18
    assert nearest_line(lines, ("nothing", "here")) == 1


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("decoder", methods.OPERATORS),
        ("rule", methods.RULES),
        ("evidence", methods.EVIDENCE),
        ("stop", methods.STOPS),
        ("controller", methods.CONTROLLERS),
    ],
)
def test_every_method_says_which_slot_it_fits(kind: str, values: tuple[object, ...]) -> None:
    assert values
    assert {kind_of(value) for value in values} == {kind}


def test_a_suggestion_names_nothing_that_the_field_refuses() -> None:
    with pytest.raises(StudyError, match="TokenF2 is not a name of ramify") as caught:
        loads(GOOD.replace('name = "vote"', 'name = "vote"\nrule = "TokenF2()"'))
    assert "TokenF1" not in str(caught.value)


def test_a_checkpoint_may_be_named_as_on_the_command_line() -> None:
    assert loads(GOOD.replace("Pocket('tiny')", "tiny")).study == loads(GOOD).study


def test_an_error_says_a_task_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "1 + 1?"}\n')
    text = GOOD.replace("Countdown(3)", f"Own('{tmp_path / 'q.jsonl'}', kind='number')")
    with pytest.raises(StudyError) as caught:
        check_study(loads(text, "s.toml"))
    assert f"task = Own('{tmp_path / 'q.jsonl'}', kind='number'): Own.answer" in str(caught.value)


def test_a_mark_of_the_byte_order_is_no_word_of_the_study(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(GOOD, encoding="utf-8-sig")
    assert load(file).study == loads(GOOD).study


def test_a_prompt_that_cannot_be_spelled_is_refused_by_its_question(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "É?", "answer": "1"}\n')
    text = GOOD.replace("Countdown(3)", f"Own('{tmp_path / 'q.jsonl'}')").replace("questions = 4\n", "")
    with pytest.raises(StudyError, match=r"s\.toml:17: model = 'tiny': the prompt of 'a': .*cannot spell it"):
        check_study(loads(text, "s.toml"))


def test_a_small_form_may_rank_fewer_models(tmp_path: Path) -> None:
    names = ("tiny", "small", "mid")
    models = "".join(f'[[model]]\nname = "{name}"\nmodel = "{name}"\n' for name in names)
    text = GOOD.replace("cap = 100", "cap = 100\nrank = true").replace(
        '[[model]]\nname = "tiny"\nmodel = "Pocket(\'tiny\')"\n', models
    )
    file = tmp_path / "s.toml"
    file.write_text(text + 'models = ["tiny"]\n')
    assert [each.name for each in check_study(file, reduced=True).source.study.models] == ["tiny"]


def test_a_rule_that_fails_on_its_evidence_says_whose_it_is(tmp_path: Path) -> None:
    votes = study(protocols=(Protocol("by likelihood", WeightedVote("logp"), evidence=(("logp", mean_logprob()),)),))
    with pytest.raises(StudyError, match=r"protocol 'by likelihood' on .*evidence 'logp' = -"):
        run_study(dataclasses.replace(votes, comparisons=()), tmp_path / "out")


# ------------------------------------------------------------------------------------------------------ made in Python

HEAD = """\
from ramify.models import Pocket
from ramify.study import Protocol, Study, System, Tasked
from ramify.tasks import Countdown

def made(task={}, protocol={}, **study):
    tasks = (Tasked(Countdown(3), **{"questions": 2, **task}),)
    given = {"title": "t", "cap": 60, **study}
    return Study(tasks=tasks, models=(System(Pocket("tiny")),), protocols=(Protocol("a", **protocol),), **given)

"""
MADE = {
    "no tuple": ('protocol={"budgets": 8}', "protocol.0.budgets: budgets = 8: use a tuple"),
    "questions as text": ('task={"questions": "2"}', "task.0.questions: questions = '2': use a whole number >= 1"),
    "a cap as text": ('cap="60"', "study.cap: cap = '60': use a whole number >= 1"),
    "half a token": ("cap=60.5", "study.cap: cap = 60.5: use a whole number >= 1"),
    "a limit as text": ('limit="x"', "study.limit: limit = 'x': use a number"),
    "no replays": ("replays=0", "study.replays: replays = 0: use a whole number >= 1"),
    "a rule as text": ('protocol={"rule": "Plurality()"}', "protocol.0.rule: rule: 'Plurality()' is no method"),
    "evidence without a name": ('protocol={"evidence": (3,)}', "use pairs of a name and evidence"),
    "metrics as text": ('metrics=("PassAt(1)",)', "'PassAt(1)' is no method; metrics takes a metric"),
    "half a pair": ('comparisons=(("a",),)', "use pairs of names"),
    "an unknown field": ("nonsense=3", "study.py:8: TypeError: Study.__init__() got an unexpected keyword argument"),
    "the user's own": ("title=1 / 0", "study.py:10: ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("name", MADE)
def test_a_study_made_in_python_is_read_field_by_field(name: str, tmp_path: Path) -> None:
    file = tmp_path / "study.py"
    given, words = MADE[name]
    file.write_text(f"{HEAD}study = made({given})\n")
    with pytest.raises(StudyError) as caught:
        check_study(file)
    assert words in str(caught.value)
    file.write_text(f"{HEAD}study = made(metrics=(), budgets=(1, 2), notes=('n',))\n")
    assert check_study(file).plan.leaves == 4


def test_a_python_study_imports_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_a_study.py").write_text(HEAD)
    file = tmp_path / "study.py"
    file.write_text("from beside_a_study import made\nstudy = made()\n")
    before = list(sys.path)
    assert load(file).study.title == "t"
    assert sys.path == before
    file.write_text("from beside_a_study import made\n\nstudy = made(nonsense=1)\n")
    with pytest.raises(StudyError, match=r"beside_a_study\.py:8: TypeError"):
        load(file)
    file.write_text("study = (\n")
    with pytest.raises(StudyError, match=r"study\.py:1: SyntaxError: '\(' was never closed"):
        load(file)

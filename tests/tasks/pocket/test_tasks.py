"""Questions, references, parsing, grading and labels of the generated families."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.errors import InvalidValue
from ramify.tasks.pocket import Arithmetic, Countdown, Modular, Verified, encode, task_of
from ramify.tasks.pocket.countdown import _neighbours, reachable, solution
from ramify.tasks.pocket.dice import Dice
from ramify.tasks.pocket.expression import canonical, render
from ramify.tasks.pocket.family import Family
from ramify.tasks.pocket.split import split_of
from ramify.types import Key, Question

Task = Arithmetic | Countdown | Modular
TASKS: tuple[Task, ...] = (
    *map(Arithmetic, (1, 4, 8)),
    *map(Countdown, (3, 4, 5)),
    *map(Modular, (2, 7, 12)),
)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_questions_come_from_the_key_alone(task: Task) -> None:
    first, more = task.questions(5), task.questions(8)
    assert more[:5] == first
    assert task.questions(5, run="other") != first
    assert len({question.id for question in more}) == 8
    assert all(q.groups == {"family": task.family, "level": str(task.level), "effort": "medium"} for q in more)
    assert all(task_of(question) == task for question in more)
    for question in more:
        encode(question.prompt)  # within the alphabet


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_efforts_ask_the_same_problem(task: Task) -> None:
    low, high = type(task)(task.level, "low").questions(3), type(task)(task.level, "high").questions(3)
    assert [q.prompt[1:] for q in low] == [q.prompt[1:] for q in high]
    assert {q.prompt[0] for q in low} == {"L"}
    assert {q.prompt[0] for q in high} == {"H"}


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_train_and_evaluation_never_meet(task: Family) -> None:
    # By construction: the canonical text alone decides. Here also: no canonical text is seen on both sides.
    seen: dict[str, set[str]] = {"train": set(), "eval": set()}
    dice = Dice(Key("split", "", 0, "test"), ahead=8)
    for _ in range(1000):
        text = task.canonical(task.problem(dice))
        seen[split_of(text)].add(text)
    assert not seen["train"] & seen["eval"]
    assert seen["train"]
    if task.level > 1:
        assert 0.02 < len(seen["eval"]) / (len(seen["train"]) + len(seen["eval"])) < 0.12


def test_equivalent_questions_fall_on_the_same_side() -> None:
    dice = Dice(Key("split", "", 1, "test"))
    task, chain = Countdown(4), Modular(6)
    for _ in range(200):
        problem = task.problem(dice)
        shuffled = problem._replace(numbers=tuple(dice.shuffled(problem.numbers)))
        assert task.canonical(problem) == task.canonical(shuffled)
        definitions, asked = chain.problem(dice)
        renamed = dict(zip("abcdefghijklmnopqrstuvwxyz", dice.shuffled("abcdefghijklmnopqrstuvwxyz"), strict=True))
        swapped = {}
        for name in dice.shuffled(list(definitions)):
            item = definitions[name]
            if not isinstance(item, int):
                left, right = renamed[item[1]], renamed[item[2]] if isinstance(item[2], str) else item[2]
                item = (item[0], right, left) if item[0] == "+" and isinstance(right, str) else (item[0], left, right)
            swapped[renamed[name]] = item
        other = type(chain.problem(dice))(swapped, renamed[asked])
        assert chain.canonical(other) == chain.canonical(type(other)(definitions, asked))


@settings(max_examples=40)
@given(st.sampled_from(TASKS), st.integers(0, 10_000))
def test_solutions_are_right_and_strays_are_not(task: Task, seed: int) -> None:
    dice = Dice(Key("solve", "", seed, "test"))
    problem = task.problem(dice)
    question = Question("q", f"M{task.body(problem)}\n", {})  # type: ignore[arg-type]
    reference = task.references([question])[0]
    right = task.solve(problem, dice)  # type: ignore[arg-type]
    text = "".join(f"{line}\n" for line in right.written) + f">{right.answer}\n"
    labels = task.steps(question, text)
    assert all(step.right and step.alive for step in labels)
    assert task.check(question, text)
    assert task.grade(task.parse(text, question).answer, reference) == 1.0
    wrong = task.stray(problem, dice)  # type: ignore[arg-type]
    if wrong is not None:
        text = "".join(f"{line}\n" for line in wrong.written) + f">{wrong.answer}\n"
        assert not task.check(question, text)
        if not isinstance(task, Modular):  # there the wrong step may be an idle one
            assert task.grade(task.parse(text, question).answer, reference) == 0.0


def test_parse_says_why_there_is_no_answer() -> None:
    statuses = [Arithmetic(2).parse(t).status for t in ["", "1+1=2\n", ">2", ">x\n", ">007\n", ">2\n"]]
    assert statuses == ["missing", "missing", "missing", "malformed", "malformed", "ok"]
    assert [Modular(3).parse(t).status for t in [">97\n", ">96\n", ">0\n", ">-1\n"]] == [
        "illegal",
        "ok",
        "ok",
        "malformed",
    ]
    question = Question("q", "M2 3 4:10\n", {})
    statuses = [Countdown(3).parse(t, question).status for t in [">3*2+4\n", ">3*2+\n", ">5+5\n", ">2-3+4\n", ">10\n"]]
    assert statuses == ["ok", "malformed", "illegal", "illegal", "illegal"]


def test_the_last_complete_answer_counts() -> None:
    text = "1+1=2\n>2\nwait\n1+1=3\n>3\nwait\n>4"
    parsed = Arithmetic(1).parse(text)
    assert (parsed.answer, parsed.reasoning) == ("3", "1+1=2\n>2\nwait\n1+1=3\n")


def test_countdown_answers_are_expressions_and_not_values() -> None:
    question = Question("q", "M2 3 4:10\n", {"family": "countdown", "level": "3", "effort": "medium"})
    task = Countdown(3)
    forms = [task.parse(f">{t}\n", question).answer for t in ["4+2*3", "(3*2)+4", "2*(3+4)", "10"]]
    assert forms[0] == forms[1] != forms[2]
    assert forms[3] is None
    assert Verified()(question, forms).tolist() == [1.0, 1.0, 0.0, 0.0]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 12), min_size=2, max_size=4), st.integers(1, 40))
def test_reachability_is_exhaustive_search(numbers: list[int], target: int) -> None:
    def search(items: tuple[int, ...]) -> bool:
        return target in items or (len(items) > 1 and any(map(search, _neighbours(items))))

    assert reachable(tuple(numbers), target) == search(tuple(sorted(numbers)))
    question = Question("q", f"M{' '.join(map(str, numbers))}:{target}\n", {})
    found = solution(question)
    assert (found is not None) == reachable(tuple(numbers), target)
    if found is not None:
        assert Countdown(4).verify(question, canonical(found)) == Countdown(4).verify(question, render(found)) == 1.0


def test_labels_tell_a_wrong_step_from_a_dead_end() -> None:
    question = Question("q", "M2 3 4:10\n", {})
    text = "4-3=1\n2+1=3\n>4-3+2\nwait\n3*2=6\n?3*2=6\n?3*2=5\n6+4=9\n6+4=10\nwait\n>3*2+4\n"
    labels = [(s.kind, s.right, s.alive) for s in Countdown(3).steps(question, text)]
    assert labels == [
        ("step", True, False),  # true, but from 1 and 2 no way leads to 10
        ("step", True, False),
        ("answer", False, False),
        ("wait", True, True),
        ("step", True, True),
        ("check", True, True),
        ("check", False, True),  # a wrong check changes nothing that was derived
        ("step", False, False),
        ("step", True, False),  # a true equation, in an attempt that is lost
        ("wait", True, True),
        ("answer", True, True),
    ]


@pytest.mark.parametrize("family", [Arithmetic, Countdown, Modular])
def test_bad_fields_and_prompts_are_refused(family: type[Task]) -> None:
    with pytest.raises(InvalidValue, match="level"):
        family(99)
    with pytest.raises(InvalidValue, match="effort"):
        family(3, "extreme")
    with pytest.raises(InvalidValue, match="split"):
        family(3).questions(1, split="test")
    for prompt in ["", "M\n", "Mhello\n", "3+4\n", "Ma=b b=a:a\n", "Ma=1:b\n", "M3 4\n"]:
        with pytest.raises(InvalidValue, match="prompt"):
            family(3).derivation(Question("q", prompt, {}))

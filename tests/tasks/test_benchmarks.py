"""Benchmarks: what loaders verify and say, references behind their questions, gold answers graded right."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ramify.describe import parse as parse_text
from ramify.errors import InvalidValue
from ramify.tasks import (
    AIME2024,
    AIME2025,
    AIME2026,
    BBH,
    BRUMO2025,
    CMIMC2025,
    GSM8K,
    MATH500,
    SMT2025,
    HMMTFeb2025,
    HMMTFeb2026,
    HMMTNov2025,
    HumanEval,
    Ladder,
    MMLUPro,
    Own,
    SuperGPQA,
)
from ramify.tasks.loading import bench
from ramify.tasks.mmlupro import DOMAINS
from ramify.tasks.sandbox import containment

QUESTIONS = Path(__file__).parents[3] / "shared" / "data" / "questions"
SHARED = pytest.mark.skipif(not QUESTIONS.exists(), reason="no shared data")
HERE = str(QUESTIONS)
COMPETITIONS = (AIME2024, AIME2025, AIME2026, HMMTFeb2025, BRUMO2025)
SIGNAL_RICH = (AIME2026, HMMTFeb2026, HMMTNov2025, CMIMC2025, SMT2025)


def test_the_known_counts() -> None:
    assert sum(task.spec.count for task in SIGNAL_RICH) == 186  # the paper's signal-rich block
    assert sum(task.spec.count for task in (AIME2024, AIME2025, HMMTFeb2025, BRUMO2025)) == 120
    assert MMLUPro.spec.count == sum(count for _, count in DOMAINS) == 12_032
    assert len(DOMAINS) == 14
    assert BBH.spec.count == sum(count for _, sizes in BBH.spec.sizes for _, count in sizes) == 6_511
    assert SuperGPQA.spec.count == 72 * 50 == 3_600


@SHARED
@pytest.mark.parametrize("task", [*COMPETITIONS, MATH500, GSM8K], ids=lambda task: task.__name__)
def test_gold_answers_in_a_box_are_right(task: Any) -> None:
    made = task(HERE)
    questions = made.questions()
    references = made.references(questions)
    assert len(questions) == task.spec.count
    assert all(question.prompt.endswith("within \\boxed{}.") for question in questions)
    assert all(question.prompt.count("Please reason step by step") == 1 for question in questions)
    for question, reference in zip(questions, references, strict=True):
        parsed = made.parse(f"<think>hm, \\boxed{{-1}}?</think>So \\boxed{{{reference}}}.", question)
        assert parsed.status == "ok"
        assert made.grade(parsed.answer, reference) == 1.0
    assert made.grade("-123456", references[0]) == 0.0


@SHARED
def test_no_question_carries_its_reference() -> None:
    for task in (AIME2025(HERE), MATH500(HERE)):
        for question in task.questions():
            assert set(question.groups) <= {"subject", "level", "type"}


@SHARED
def test_bbh_is_read_and_its_gold_answers_are_extracted_and_right() -> None:
    task = BBH(HERE)
    questions = task.questions()
    references = task.references(questions)
    assert len({question.groups["task"] for question in questions}) == 27
    assert len({question.groups["suite"] for question in questions}) == 23
    wrong = Counter[str]()
    for question, reference in zip(questions, references, strict=True):
        parsed = task.parse(f"Let's think. First, B and 7.\nSo the answer is {reference}.", question)
        if task.grade(parsed.answer, reference) != 1.0:
            wrong[question.groups["task"]] += 1
    # Three references are words where letters are asked for.
    assert wrong == {"movie_recommendation": 1, "ruin_names": 2}


@SHARED
def test_a_missing_question_a_changed_answer_and_a_wrong_file_are_said(tmp_path: Path) -> None:
    with gzip.open(QUESTIONS / "aime_2024.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    path = tmp_path / "aime_2024.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows[1:]))
    with pytest.raises(InvalidValue, match="has 29 questions, not 30: 1 are missing"):
        AIME2024(str(path)).questions()
    assert len(AIME2024(str(path), verify="none").questions()) == 29
    path.write_text("\n".join(json.dumps(row) for row in [{**rows[0], "answer": "205"}, *rows[1:]]))
    with pytest.raises(InvalidValue, match="the references are not the known ones"):
        AIME2024(str(path)).questions()
    assert AIME2024(str(path), verify="count").references(AIME2024(str(path), verify="count").questions(1)) == ("205",)
    with pytest.raises(InvalidValue, match="the references are not the known ones"):
        AIME2025(str(path)).questions()
    with pytest.raises(InvalidValue, match=r"has none of hmmt_nov_2025\.\*"):
        HMMTNov2025(HERE).questions()
    with pytest.raises(InvalidValue, match="there is no such file or folder"):
        AIME2024("nowhere").questions()


@SHARED
def test_a_reference_is_found_by_the_id_of_its_question() -> None:
    task = AIME2024(HERE)
    questions = task.questions()
    assert task.references(questions[::-1]) == task.references(questions)[::-1]
    with pytest.raises(InvalidValue, match="not of AIME2025"):
        AIME2025(HERE).references(questions[:1])


def test_the_hub_is_used_where_it_is_installed_and_missed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        InvalidValue, match=r"MathArena/cmimc_2025 needs the datasets package: pip install 'ramify\[hub\]'"
    ):
        CMIMC2025().questions()
    hub = ModuleType("datasets")
    asked = []

    def load_dataset(*names: Any, split: str) -> list[dict[str, Any]]:
        asked.append((*names, split))
        return [{"problem_idx": i, "problem": f"{i}?", "answer": i, "problem_type": ["Algebra"]} for i in range(40)]

    hub.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", hub)
    questions = CMIMC2025().questions(2)
    assert asked == [("MathArena/cmimc_2025", None, "train")]
    assert (questions[1].id, questions[1].groups) == ("CMIMC2025/1", {"type": "Algebra"})


def test_tasks_of_several_parts_are_asked_for_one_by_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sizes = dict(BBH.spec.sizes[0][1])
    hub = ModuleType("datasets")

    def load_dataset(dataset: str, config: str, split: str) -> list[dict[str, Any]]:
        return [{"input": f"{config} {i}?", "target": "(A)"} for i in range(sizes[config])]

    hub.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", hub)
    questions = BBH(verify="count").questions()
    assert len(questions) == 6_511
    assert questions[250].id == "BBH/causal_judgement-0"
    with pytest.raises(InvalidValue, match="the references are not the known ones"):
        BBH().questions()
    for name, size in sizes.items():
        examples = {"canary": "x", "examples": [{"input": "?", "target": "(A)"}] * size}
        (tmp_path / f"{name}.json").write_text(json.dumps(examples))
    assert [q.id for q in BBH(str(tmp_path), verify="count").questions()] == [q.id for q in questions]
    (tmp_path / "snarks.json").unlink()
    with pytest.raises(InvalidValue, match=r"has none of snarks\.\*"):
        BBH(str(tmp_path), verify="count").questions()


@pytest.fixture(scope="module")
def mmlu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mmlu") / "mmlu_pro.jsonl"
    rows = [
        {"question_id": f"{name}-{i}", "question": "Which?", "options": list("wxyz"), "answer": "ABCD"[i % 4],
         "category": name}
        for name, count in DOMAINS
        for i in range(count)
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_mmlu_pro(mmlu: Path) -> None:
    task = MMLUPro(str(mmlu.parent))
    questions = task.questions()
    assert len(questions) == 12_032
    assert Counter(question.groups["domain"] for question in questions) == dict(DOMAINS)
    assert "Which?\n(A) w\n(B) x\n(C) y\n(D) z\n" in questions[0].prompt
    assert task.grade(task.parse("the answer is (B)").answer, "B") == 1.0
    assert task.grade(task.parse("the answer is (B)").answer, "C") == 0.0
    lines = mmlu.read_text().splitlines()
    moved = mmlu.with_name("moved.jsonl")
    moved.write_text("\n".join([*lines[1:], lines[0].replace('"category": "biology"', '"category": "law"')]))
    with pytest.raises(InvalidValue, match="biology: 716 of 717; law: 1102 of 1101"):
        MMLUPro(str(moved)).questions()


def test_the_field_balanced_sample_is_drawn_by_a_key(tmp_path: Path) -> None:
    sizes = [368] * 71 + [26_529 - 368 * 71]
    rows = [
        {"uuid": f"{f}-{i}", "question": "Which?", "options": ["a", "b"], "answer_letter": "A", "field": f"field {f}",
         "discipline": "d", "subfield": "s", "difficulty": "hard"}
        for f, size in enumerate(sizes)
        for i in range(size)
    ]  # fmt: skip
    path = tmp_path / "SuperGPQA-all.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    first = SuperGPQA(str(path)).questions()
    assert len(first) == 3_600
    counts = Counter(question.groups["field"] for question in first)
    assert set(counts.values()) == {50}
    assert len(counts) == 72
    backwards = tmp_path / "backwards.jsonl"
    backwards.write_text("\n".join(json.dumps(row) for row in rows[::-1]))
    assert [q.id for q in SuperGPQA(str(backwards)).questions()] == [q.id for q in first]
    other = {q.id for q in SuperGPQA(str(path), run="another").questions()}
    assert 0 < len(other & {q.id for q in first}) < 3_600
    short = tmp_path / "short.jsonl"
    short.write_text("\n".join(json.dumps(row) for row in rows[:100]))
    with pytest.raises(InvalidValue, match="has 100 questions, not 26529"):
        SuperGPQA(str(short)).questions()
    assert len(SuperGPQA(str(short), verify="none").questions()) == 100


# ------------------------------------------------------------------------------------------------------------ one's own


def test_a_file_of_ones_own_is_understood_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text('problem,gold,level,note\n"What is 1+1?",2,easy,x\n"And {this}?",\\frac12,hard,y\n')
    task = Own(str(path))
    shown = str(task.columns())
    assert "question  problem  (guessed)" in shown
    assert "answer    gold  (guessed)" in shown
    assert "groups    level  (guessed)" in shown
    questions = task.questions()
    assert questions[1].prompt.startswith("And {this}?")
    assert [dict(question.groups) for question in questions] == [{"level": "easy"}, {"level": "hard"}]
    assert task.references(questions) == ("2", "\\frac12")
    assert task.grade(task.parse(r"\boxed{0.5}").answer, "\\frac12") == 1.0
    path.write_text("problem,gold\nChanged?,3\n")
    assert task.questions()[0].prompt.startswith("Changed?")


def test_of_a_whole_solution_its_answer_counts(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [{"question": "a", "answer": "6 * 7\n#### 42"}, {"question": "b", "answer": r"So $\boxed{\frac12}$."}]
    path.write_text("\n".join(map(json.dumps, rows)))
    task = Own(str(path))
    assert task.references(task.questions()) == ("42", r"\frac12")


def test_letters_are_recognised_and_columns_overridden(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [{"q": "Which?", "options": ["x", "y"], "key": "B", "name": f"n{i}"} for i in range(2)]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(
        InvalidValue, match=r"Own\.question = '': name the column of the question; the file has q, options, key"
    ):
        Own(str(path)).columns()
    task = Own(str(path), question="q", answer="key")
    assert task.columns().kind == "letter"
    assert "(B) y" in task.questions()[0].prompt
    assert task.parse("the answer is (B)").answer == "B"
    assert [question.id for question in task.questions()] == ["n0", "n1"]


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"question": "a", "answer": "1", "id": "x"}\n{"question": "b", "answer": "2", "id": "x"}\n')
    with pytest.raises(InvalidValue, match="'x' is there twice"):
        Own(str(path)).questions()
    path.write_text('{"question": "a"\n')
    with pytest.raises(InvalidValue, match=r"mine\.jsonl, line 1"):
        Own(str(path)).questions()
    with pytest.raises(InvalidValue, match="there is no such file"):
        Own(str(tmp_path / "none.csv")).questions()
    with pytest.raises(InvalidValue, match=r"Own\.prompt = 'Hello'"):
        Own(str(path), prompt="Hello")


# ------------------------------------------------------------------------------------------ code

PROBLEM = {
    "task_id": "test/0",
    "prompt": "from typing import List\n\ndef total(x: List[int]) -> int:\n    '''The sum.'''\n",
    "test": "def check(f):\n    assert f([1, 2]) == 3\n    assert f([]) == 0\n",
    "entry_point": "total",
    "canonical_solution": "    return sum(x)\n",
}


@pytest.mark.skipif(not containment(), reason="bubblewrap is not installed")
def test_programs_are_graded_by_their_tests(tmp_path: Path) -> None:
    path = tmp_path / "code.jsonl"
    path.write_text(json.dumps(PROBLEM))
    task = HumanEval(str(path), verify="none")
    [question] = task.questions()
    [reference] = task.references([question])
    assert "canonical" not in reference
    assert "sum(x)" not in question.prompt

    def graded(code: str) -> float:
        return task.grade(task.parse(f"<think>hm</think>```python\n{code}\n```", question).answer, reference)

    assert graded("def total(x: List[int]) -> int:\n    return sum(x)") == 1.0
    assert task.grade("    return sum(x)\n", reference) == 1.0  # a body alone
    assert graded("def total(x):\n    return 3") == 0.0
    assert graded("def total(x: syntax error") == 0.0
    assert graded("import sys\nsys.exit(0)\ndef total(x): pass") == 0.0  # ending early is not passing
    assert graded("import os\nos._exit(0)\ndef total(x): pass") == 0.0
    assert graded("print('PASSED')\ndef total(x): raise ValueError") == 0.0
    assert task.grade(None, reference) == 0.0
    checked = task.verdicts([("def total(x):\n    return sum(x)", reference)])[0]
    assert checked.why.startswith("bubblewrap")
    slow = HumanEval(str(path), verify="none", box=task.box.__class__(wall=1.0))
    assert slow.verdicts([("def total(x):\n    while True: pass", reference)])[0].status == "timeout"


def test_every_benchmark_is_a_value_that_declares_its_kind() -> None:
    for task in (*SIGNAL_RICH, *COMPETITIONS, MATH500, GSM8K, MMLUPro, BBH, SuperGPQA, HumanEval):
        made = task("somewhere")
        assert parse_text(repr(made)) == made
        assert (made.answers, made.turns) == ("verifiable", "single-turn")
        with pytest.raises(InvalidValue, match="verify = 'maybe'"):
            task("somewhere", verify="maybe")
    assert AIME2024("x", vote="literal").parse(r"\boxed{007}").answer == "007"
    assert AIME2024("x", ladder=Ladder(math=False)).grade("7", "007") == 1.0
    assert bench.FORMS == ("canonical", "literal")

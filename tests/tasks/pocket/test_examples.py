"""Training text: deterministic, inside the alphabet, right wherever it is taught."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
import pytest

from ramify.errors import InvalidValue
from ramify.tasks.pocket import EOS, TOKENS, Arithmetic, Countdown, Curriculum, Modular, decode, encode
from ramify.tasks.pocket.dice import Dice
from ramify.tasks.pocket.examples import LONGEST, _solved, compose
from ramify.tasks.pocket.expression import apply, canonical, read, read_step
from ramify.tasks.pocket.split import split_of
from ramify.tasks.pocket.trace import keeps, steps
from ramify.types import Key, Question

KEY = Key("test", "train", 0, "examples")


def test_the_alphabet_has_64_tokens_and_reads_itself_back() -> None:
    assert len(TOKENS) == len(set(TOKENS)) == 64
    text = "".join(TOKENS[2:])
    assert decode(encode(text)) == text
    with pytest.raises(InvalidValue, match="alphabet"):
        encode("é")


def test_the_data_of_a_key_never_change() -> None:
    data = Curriculum.default()(KEY, 400)
    again = Curriculum.default()(KEY, 400)
    assert (data.tokens == again.tokens).all()
    assert (data.taught == again.taught).all()
    # Pinned: whoever changes the generators changes what the shipped checkpoints were trained on.
    digest = hashlib.sha256(data.tokens.tobytes() + data.taught.tobytes()).hexdigest()
    assert digest[:16] == "374a287f6405f119"


def test_blocks_are_flat_and_bounded() -> None:
    data = Curriculum.default()(KEY, 600)
    lengths = np.diff(data.offsets)
    assert len(data) == 600
    assert lengths.max() <= LONGEST
    assert data.offsets[-1] == data.tokens.size == data.taught.size
    ends = data.tokens[data.offsets[1:] - 1]
    assert (ends == EOS).all()
    assert (data.taught[data.offsets[1:] - 1] == 1).all()
    assert (data.tokens == EOS).sum() == 600
    assert (data.taught[data.offsets[:-1]] == 0).all()  # a prompt is not taught


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
@pytest.mark.parametrize(("family", "level"), [(Arithmetic, 5), (Countdown, 4), (Modular, 7)])
def test_what_is_taught_is_right(family: type, level: int, effort: str) -> None:
    task = family(level, effort)
    revised = 0
    for seed in range(150):
        prompt, pieces = compose(task, Dice(Key("taught", "", seed, "test")))
        question = Question("q", prompt, {})
        text = "".join(piece.text for piece in pieces)
        taught = np.concatenate([np.full(len(p.text), p.taught) for p in pieces])
        labels = task.steps(question, text)
        revised += any(label.kind == "wait" for label in labels)
        for label in labels:
            inside = taught[label.start : label.end]
            assert inside.all() or not inside.any()
            if inside.any() and label.kind == "check":
                line = text[label.start + 1 : label.end - 1]
                # A taught check is true, also where it contradicts the step it checks.
                assert steps_hold(task, line)
            elif inside.any():
                assert label.right
                assert label.alive
        assert labels[-1].kind == "answer"
        assert labels[-1].right
        assert keeps(task.derivation(question), text, attempts=text.count("wait") + 1)
        assert task.grade(task.parse(text).answer, task.references([question])[0]) == 1.0
        if effort == "low":
            assert {label.kind for label in labels} <= {"answer", "wait"}
        assert ("?" in text) == (effort == "high")
        assert split_of(_canonical(task, prompt[1:-1])) == "train"
    assert revised > 5


def steps_hold(task: Arithmetic | Countdown | Modular, line: str) -> bool:
    fresh = task.derivation(task.questions(1)[0])
    probe = steps(fresh, "nonsense\n" + line + "\n", _holds_of(task))
    return probe[1].right


def _holds_of(task: Arithmetic | Countdown | Modular):  # type: ignore[no-untyped-def]
    from ramify.tasks.pocket import expression, modular

    return modular._holds if isinstance(task, Modular) else expression.holds


def _canonical(task: Arithmetic | Countdown | Modular, body: str) -> str:
    from ramify.tasks.pocket import countdown, modular

    if isinstance(task, Arithmetic):
        tree = read(body)
        assert tree is not None
        return canonical(tree)
    problem: Any = (countdown if isinstance(task, Countdown) else modular)._read(body)
    assert problem is not None
    return task.canonical(problem)


def test_at_high_effort_the_check_finds_the_wrong_step() -> None:
    found = 0
    for seed in range(200):
        _, pieces = compose(Arithmetic(4, "high"), Dice(Key("found", "", seed, "test")))
        for before, after in itertools.pairwise(pieces):
            if not before.taught and after.text.endswith("wait\n"):
                said, checked = before.text.split("\n")[:-1], after.text.split("\n")[:-2]
                assert [f"?{line}" for line in said[: len(checked) - 1]] == checked[:-1]
                assert f"?{said[len(checked) - 1]}" != checked[-1]
                found += 1
    assert found > 20


def test_a_misled_teacher_always_errs_in_the_same_way() -> None:
    task, wrong = Arithmetic(4), 0
    for question in task.questions(60, split="train"):
        tree = read(question.prompt[1:-1])
        assert tree is not None
        attempt, again = (task.solve(tree, Dice(Key("slip", question.id, i, "test")), slip=1.0) for i in range(2))
        if attempt != again or attempt.checked:
            continue  # the columns lead out of the numbers, and what is right is said in many ways
        for line in attempt.written:
            parts = read_step(line)
            assert parts is not None
            a, op, b, said = parts
            true = apply(op, a, b)
            assert true is not None
            if said == true:
                continue
            carries, borrows = op == "+" and a % 10 + b % 10 >= 10, op == "-" and a % 10 < b % 10
            assert carries or borrows
            assert said == (true - 10 if carries else true + 2 * (b % 10 - a % 10))
            wrong += 1
    assert wrong > 30


def test_what_a_misled_teacher_knows_it_says_in_many_ways() -> None:
    task = Arithmetic(4)
    [question] = task.questions(1, split="train")
    tree = read(question.prompt[1:-1])
    assert tree is not None
    texts = set()
    for seed in range(200):
        attempt = task.solve(tree, Dice(Key("careful", "", seed, "test")), slip=1e-9)
        text = "".join(piece.text for piece in _solved("medium", attempt))
        labels = task.steps(question, text)
        assert all(label.right and label.alive for label in labels)
        texts.add(text)
    assert len(texts) >= 16


def test_only_medium_arithmetic_is_misled() -> None:
    misled = Curriculum.default((0.35, 0.6))
    assert [misled.slip_at(Arithmetic(level)) for level in (1, 2, 8)] == [0.35, 0.6, 0.6]
    for task in (Arithmetic(3, "low"), Arithmetic(3, "high"), Modular(4), Countdown(3)):
        assert misled.slip_at(task) == 0.0
    assert Curriculum.default().slip_at(Arithmetic(3)) == 0.0

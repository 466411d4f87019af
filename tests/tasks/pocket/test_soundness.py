"""H(x, z) on small cases, against enumerations of every successful derivation that share no code with it.

For each question all successful step sequences are enumerated by brute force. A prefix, right or wrong, is
then kept by H exactly if one of them begins with it: never rejected wrongly (soundness), and on these cases
never kept in vain.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.tasks.pocket import Arithmetic, Countdown, Modular, Sound, encode
from ramify.tasks.pocket.check import FAMILIES
from ramify.tasks.pocket.trace import keeps, succeeds
from ramify.types import Prefix, Question

OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
Lines = tuple[str, ...]


def ask(family: str, level: int, body: str) -> Question:
    return Question("q", f"M{body}\n", {"family": family, "level": str(level), "effort": "medium"})


def text_of(lines: Lines) -> str:
    return "".join(f"{line}\n" for line in lines)


def prefixes(sequences: set[Lines]) -> set[Lines]:
    return {sequence[:n] for sequence in sequences for n in range(len(sequence) + 1)}


# ------------------------------------------------------------------------------------------------ Countdown


def countdown_successes(items: tuple[tuple[Fraction, str], ...], target: int, done: Lines = ()) -> Iterator[Lines]:
    """Every sequence of legal steps after which some item is the target, with the answer that says so."""
    for number, text in items:
        if number == target:
            yield (*done, f">{text}")
    for (i, (a, left)), (j, (b, right)) in itertools.permutations(enumerate(items), 2):
        for op, function in OPERATIONS.items():
            c = function(a, b)
            if c > 0 and c.denominator == 1:
                rest = tuple(item for k, item in enumerate(items) if k not in (i, j))
                line = f"{a}{op}{b}={c}"
                yield from countdown_successes((*rest, (c, f"({left}){op}({right})")), target, (*done, line))


def some_lines(numbers: list[int], target: int) -> list[str]:
    """Right and wrong, legal and illegal steps over these numbers, what they make, and strangers."""
    pool = sorted({*numbers, *(a + b for a, b in itertools.combinations(numbers, 2)), 5})
    found = []
    for a, b in itertools.product(pool, pool):
        for op, function in OPERATIONS.items():
            c = function(Fraction(a), Fraction(b))
            found += [f"{a}{op}{b}={d}" for d in {c, Fraction(target), c + 1}]
    return found


@pytest.mark.parametrize(
    ("numbers", "target"),
    [
        ((2, 3), 6),
        ((1, 2, 3), 7),
        ((2, 2, 4), 8),
        ((2, 2, 4), 3),
        ((1, 3, 6), 3),
        ((2, 4, 8), 4),
        ((3, 3, 5), 11),
    ],
)
def test_countdown_prefixes_are_kept_exactly_if_they_can_be_completed(numbers: tuple[int, ...], target: int) -> None:
    question = ask("countdown", len(numbers), f"{' '.join(map(str, numbers))}:{target}")
    task = Countdown(len(numbers))
    start = task.derivation(question)
    successes = set(countdown_successes(tuple((Fraction(n), str(n)) for n in numbers), target))
    # Before the first step an answer may be any right expression; here it is one that was derived.
    completable = prefixes({lines[:-1] for lines in successes})
    for lines in successes:
        assert succeeds(start, text_of(lines))
        assert task.verify(question, task.parse(text_of(lines), question).answer) == 1.0
    pool = some_lines(list(numbers), target)
    tried = {(), *((a,) for a in pool), *completable}
    seconds = {(*p, line) for p in completable if len(p) == 1 for line in pool}
    dead_ends = 0
    for lines in tried | seconds:
        kept = keeps(start, text_of(lines))
        assert kept == (lines in completable), lines
        dead_ends += not kept
    assert dead_ends


def test_countdown_answers_must_be_what_the_steps_derived() -> None:
    question = ask("countdown", 3, "2 3 4:10")
    start = Countdown(3).derivation(question)
    assert succeeds(start, "3*2=6\n6+4=10\n>4+2*3\n")  # any form of the same expression
    assert succeeds(start, ">2*3+4\n")  # low effort: nothing was derived, the answer is right
    assert not keeps(start, "3*2=6\n>2*4+2\n")
    assert not keeps(start, "4*2=8\n>3*2+4\n")  # right, but not what was derived
    assert Countdown(3).grade("3*2+4", "2 3 4:10") == 1.0  # the grade looks at the answer alone


def test_equal_numbers_are_told_apart_only_when_needed() -> None:
    start = Countdown(4).derivation(ask("countdown", 4, "2 2 4 5:21"))
    # After 2+2=4 there are two fours; 4*4 takes both, and 4*5 may take either one.
    assert keeps(start, "2+2=4\n4*4=16\n16+5=21\n")
    assert succeeds(start, "2+2=4\n4*4=16\n16+5=21\n>(2+2)*4+5\n")


# ----------------------------------------------------------------------------------------------- arithmetic


def arithmetic_sequences(tree: object, done: Lines = ()) -> Iterator[Lines]:
    """Every order in which the operations of a nested tuple can be carried out."""
    ready = [(path, node) for path, node in walk(tree) if all(isinstance(part, int) for part in node[1:])]
    if not ready:
        yield done
    for path, (op, a, b) in ready:
        c = int(OPERATIONS[op](Fraction(a), Fraction(b)))
        yield from arithmetic_sequences(replaced(tree, path, c), (*done, f"{a}{op}{b}={c}"))


def walk(tree: object, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if isinstance(tree, tuple):
        yield path, tree
        for side in (1, 2):
            yield from walk(tree[side], (*path, side))


def replaced(tree: object, path: tuple[int, ...], new: int) -> object:
    if not path:
        return new
    assert isinstance(tree, tuple)
    return tuple(replaced(part, path[1:], new) if i == path[0] else part for i, part in enumerate(tree))


@pytest.mark.parametrize(
    ("body", "tree"),
    [
        ("(3+4)*2", ("*", ("+", 3, 4), 2)),
        ("((3+4)*2)+(5*(3+4))", ("+", ("*", ("+", 3, 4), 2), ("*", 5, ("+", 3, 4)))),
        ("(9-(3+1))*(6-2)", ("*", ("-", 9, ("+", 3, 1)), ("-", 6, 2))),
        ("(4-2)+((1+1)*(4-2))", ("+", ("-", 4, 2), ("*", ("+", 1, 1), ("-", 4, 2)))),
    ],
)
def test_arithmetic_prefixes_are_kept_exactly_if_they_can_be_completed(body: str, tree: object) -> None:
    task = Arithmetic(max(1, body.count("+") + body.count("-") + body.count("*")))
    start = task.derivation(ask("arithmetic", task.level, body))
    completable = prefixes(set(arithmetic_sequences(tree)))
    pool = {line for lines in completable for line in lines}
    pool |= {line[:-1] + "9" for line in pool} | {"2+2=4", "3*4=12", "8-8=0", "x", ""}
    for lines in completable | {(*p, line) for p in completable for line in pool}:
        assert keeps(start, text_of(lines)) == (lines in completable), lines


# -------------------------------------------------------------------------------------------------- modular


@pytest.mark.parametrize("seed", range(6))
def test_modular_prefixes_are_kept_exactly_if_they_can_be_completed(seed: int) -> None:
    task = Modular(4)
    question = task.questions(seed + 1, run="soundness")[seed]
    listed, _, asked = question.prompt[1:-1].partition(":")
    definitions = dict(item.split("=") for item in listed.split(" "))

    def sequences(values: dict[str, int], done: Lines = ()) -> Iterator[Lines]:
        yield done
        for name, text in definitions.items():
            op = next((o for o in "+-*" if o in text), None)
            parts = text.split(op) if op else [text]
            if name in values or any(p.isalpha() and p not in values for p in parts):
                continue
            numbers = [values[p] if p.isalpha() else int(p) for p in parts]
            result = numbers[0] if op is None else int(OPERATIONS[op](*map(Fraction, numbers))) % 97
            line = f"{name}={result}" if op is None else f"{name}={numbers[0]}{op}{numbers[1]}={result}"
            yield from sequences({**values, name: result}, (*done, line))

    completable = set(sequences({}))
    start = task.derivation(question)
    pool = {line for lines in completable for line in lines}
    pool |= {line[:-1] + "1" for line in pool} | {f"{name}=1" for name in "abz"} | {"", f"{asked}=3+4=7"}
    for lines in completable | {(*p, line) for p in completable for line in pool}:
        assert keeps(start, text_of(lines)) == (lines in completable), lines
    answer = task.references([question])[0]
    for lines in completable:
        assert succeeds(start, text_of((*lines, f">{answer}")))
        assert not keeps(start, text_of((*lines, ">98")))


# -------------------------------------------------------------------------------------- attempts, and words


def test_a_wait_gives_another_attempt_and_no_more_than_allowed() -> None:
    start = Countdown(3).derivation(ask("countdown", 3, "2 3 4:10"))
    bad = "3+2=6\n"
    assert not keeps(start, bad)
    assert keeps(start, bad, attempts=2)
    assert keeps(start, bad + "wait\n3*2=6\n", attempts=2)
    assert not keeps(start, bad + "wait\n3+2=6\n", attempts=2)
    assert not keeps(start, bad + "wait\n", attempts=1)
    assert keeps(start, bad + "wait\n3+2=6\n", attempts=None)


def test_an_unfinished_line_and_a_check_are_never_held_against_a_prefix() -> None:
    start = Countdown(3).derivation(ask("countdown", 3, "2 3 4:10"))
    assert keeps(start, "3*2=7")
    assert keeps(start, "3*2=6\n?3*2=7\n")
    assert not keeps(start, "3*2=6\n6+4=10\n>3*2+4\n6\n")  # nothing but wait may follow an answer


@given(st.text(alphabet="0123456789abc+-*/()=?>wait\n", max_size=60), st.sampled_from(sorted(FAMILIES)))
def test_no_text_breaks_the_check_the_labels_or_the_parser(text: str, family: str) -> None:
    task = FAMILIES[family](3)
    question = task.questions(1)[0]
    task.check(question, text)
    task.parse(text, question)
    assert "".join(text[s.start : s.end] for s in task.steps(question, text)) == text[: text.rfind("\n") + 1]


@given(st.integers(0, 20), st.data())
def test_a_rejected_prefix_stays_rejected(index: int, data: st.DataObject) -> None:
    question = Countdown(4).questions(21, run="monotone")[index]
    task = Countdown(4)
    numbers = question.prompt[1:-1].partition(":")[0].split(" ")
    pool = [f"{a}{op}{b}={eval_(op, int(a), int(b))}" for a in numbers for b in numbers for op in "+-*"]
    lines = data.draw(st.lists(st.sampled_from(pool), max_size=3))
    kept = [task.check(question, text_of(tuple(lines[:n]))) for n in range(len(lines) + 1)]
    assert kept == sorted(kept, reverse=True)


def eval_(op: str, a: int, b: int) -> int:
    return int(OPERATIONS[op](Fraction(a), Fraction(b)))


def test_the_check_is_a_method_over_mixed_prefixes() -> None:
    questions = [Countdown(4).questions(1)[0], Modular(3).questions(1)[0], Arithmetic(2).questions(1)[0]]
    batch = [Prefix(q, tuple(encode("1+1=3\n").tolist()), (0,) * 6) for q in questions]
    assert Sound()(batch).tolist() == [False] * 3
    assert Sound(attempts=2)(batch).tolist() == [True] * 3

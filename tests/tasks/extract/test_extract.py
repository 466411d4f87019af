"""Extraction: what is found, what is not, and under which name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.tasks.checking import Ladder
from ramify.tasks.extract import STATUSES, Boxed, CodeBlock, Flexible, LastNumber, Letter, Phrase, last_box, segments

BANK = Path(__file__).parents[4] / "shared" / "data" / "banks" / "qwen25math_rm8" / "math_cot_100.jsonl.gz"


@pytest.mark.parametrize(
    ("text", "answer", "status"),
    [
        (r"So \boxed{42}.", "42", "ok"),
        (r"\boxed{1} then \boxed{2}", "2", "ok"),
        (r"\boxed{\frac{3}{6}}", "1/2", "ok"),
        (r"\boxed{ \{1, 2\} }", r"\{1, 2\}", "ok"),
        (r"\fbox{7}", "7", "ok"),
        (r"\boxed 7", "7", "ok"),
        (r"<think>\boxed{1}</think>\boxed{2}", "2", "ok"),
        (r"thinking without an opening tag \boxed{1}</think> \boxed{2}", "2", "ok"),
        (r"<think>\boxed{1}</think> The answer is 1.", None, "no answer"),
        (r"<think>\boxed{1}", None, "truncated reasoning"),
        (r"<think>a</think>\boxed{1}<think> wait", None, "truncated reasoning"),
        (r"<|channel|>analysis<|message|>\boxed{1}<|channel|>final<|message|>\boxed{3}", "3", "ok"),
        (r"\boxed{12", None, "unclosed box"),
        (r"\boxed{1} hmm \boxed{\frac{1}{2}", None, "unclosed box"),
        (r"\boxed{}", None, "no answer"),
        (r"\boxed{9^{9^{9^9}}}", None, "refused by limits"),
        ("", None, "no answer"),
    ],
)
def test_boxes(text: str, answer: str | None, status: str) -> None:
    parsed = Boxed()(text)
    assert (parsed.answer, parsed.status) == (answer, status)


def test_a_prompt_that_opens_the_reasoning() -> None:
    assert Boxed(opened=True)(r"let me see \boxed{4}").status == "truncated reasoning"
    assert Boxed(opened=True)(r"let me see</think>\boxed{4}").answer == "4"
    assert Boxed(after=False)(r"<think>\boxed{4}").answer == "4"


def test_literal_and_canonical_answers_are_both_available() -> None:
    assert Boxed()(r"\boxed{0.50}").answer == "1/2"
    assert Boxed(form="literal")(r"\boxed{0.50}").answer == "0.50"
    with pytest.raises(ValueError, match=r"Boxed\.form = 'exact'"):
        Boxed(form="exact")


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        (r"\boxed{C}", "C"),
        (r"\boxed{\text{(C)}}", "C"),
        (r"\boxed{\textbf{C}}", "C"),
        (r"\boxed{C. The third}", "C"),
        ("The answer is (D).", "D"),
        ("the correct option is: **E**", "E"),
        ("Answer: b)", "B"),
        ("The answer is a dog", None),
        ("The answer is A dog. No, the answer is (B).", "B"),
        ("I think (A) is wrong and (B) is wrong. So C", "C"),
        ("The final answer is $\\boxed{F}$", "F"),
        ("<think>A, or B?</think>\n\nB", "B"),
        ("I do not know", None),
        ("", None),
    ],
)
def test_option_letters(text: str, letter: str | None) -> None:
    assert Letter()(text).answer == letter


def test_a_box_without_a_letter_is_a_parse_error_and_not_a_guess() -> None:
    assert Letter()(r"A or B: \boxed{12}").status == "parse error"
    assert Letter("AB")("The answer is (C). Or A").answer == "A"
    assert Letter(loose=False)("It must be D").status == "no answer"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("... #### 72", "72"),
        ("It costs $1,250.50 in total.", "2501/2"),
        ("The answer is 12 apples and 3 pears.", "12"),
        (r"\boxed{18} dollars, or 20", "18"),
        ("between 3 and −5", "-5"),
        ("none", None),
    ],
)
def test_numbers(text: str, number: str | None) -> None:
    assert LastNumber()(text).answer == number


@pytest.mark.parametrize(
    ("kind", "text", "answer"),
    [
        ("letter", "So the answer is (Q).", "(Q)"),
        ("yes or no", "Yes, it moved. So the answer is No.", "No"),
        ("true or false", "not True is False", "False"),
        ("valid or invalid", "the argument is **invalid**", "invalid"),
        ("number", "The answer is -50.", "-50"),
        ("brackets", r"So we need \boxed{] ) }}".replace("}}", "} }"), "] )"),
        ("brackets", "The answer is `> ) ]`", "> ) ]"),
        ("words", "So the answer is: Barn, Damp, dot.", "barn damp dot"),
        ("words", "<think>x", None),
    ],
)
def test_flexible_extraction(kind: str, text: str, answer: str | None) -> None:
    assert Flexible(kind)(text).answer == answer


def test_code_blocks() -> None:
    text = "First\n```python\na = 1\n```\nbetter:\n```python\na = 2\n```\nRun it:\n```bash\npython a.py\n```"
    assert CodeBlock()(text).answer == "a = 2\n"
    assert CodeBlock()("```\nx = 1\n```").answer == "x = 1\n"
    assert CodeBlock()("no code").status == "no answer"
    assert CodeBlock(bare=True)("x = 1").answer == "x = 1"
    assert CodeBlock()("```python\nx = 1").status == "unclosed box"
    assert CodeBlock()("<think>```python\nx = 1\n```").status == "truncated reasoning"


@given(st.text(alphabet="<>/think\\boxed{}()ABC answer is:12#`\n", max_size=80))
@settings(max_examples=300, deadline=None)
def test_any_text_has_exactly_one_status_and_bottom_unless_it_is_ok(text: str) -> None:
    for extract in (Boxed(), Letter(), LastNumber(), Phrase(), CodeBlock(), Flexible("words"), Flexible("brackets")):
        parsed = extract(text)
        assert parsed.status in STATUSES
        assert (parsed.answer is None) is (parsed.status != "ok")


@given(st.text(alphabet="ab{}\\ ", max_size=30))
def test_a_closed_box_gives_back_what_was_put_in(inside: str) -> None:
    balanced = inside.replace("{", "").replace("}", "").replace("\\", "")
    assert last_box(f"x \\boxed{{{balanced}}} y") == (balanced, True)


@pytest.mark.parametrize(
    "unit",
    [
        " ",
        "answer ",
        "the answer is ",
        "{",
        "\\boxed{",
        "```\n",
        "( ",
        "answer:$ ",
        "A ",
        "1,",
        "<think>",
        "answer is\n",
        "#",
    ],
)
def test_a_long_text_takes_no_longer_than_its_length(unit: str) -> None:
    """Seconds would be minutes if any of the patterns looked at the rest of the text for every place in it."""
    text = unit * (200_000 // len(unit))
    for extract in (Boxed(), Letter(), LastNumber(), Phrase(), CodeBlock(), Flexible("words"), Flexible("brackets")):
        assert extract(text).status in STATUSES


def test_segments_put_nothing_in_and_leave_nothing_out() -> None:
    text = "<think>a</think>b"
    found = segments(text)
    assert found.reasoning + found.final == text


def test_the_grades_of_a_real_bank_are_the_published_ones_but_for_one_that_was_wrong() -> None:
    """Qwen2.5-Math's own grader said 10000 is not 10{,}000; everything else agrees."""
    if not BANK.exists():
        pytest.skip("no shared data")
    pytest.importorskip("math_verify")
    ladder, differ, total = Ladder(), [], 0
    with gzip.open(BANK, "rt") as lines:
        for record in map(json.loads, lines):
            for text, score in zip(record["code"], record["score"], strict=True):
                parsed = Boxed()(text)
                total += 1
                if ladder(parsed.answer, record["answer"]).equal is not score:
                    differ.append((record["answer"], parsed.artefact, score))
    assert total == 800
    assert differ == [("10{,}000", "10000", False)]


def test_a_fence_names_the_language_that_is_asked_for() -> None:
    two = "```cpp\nint x;\n```\n```py\nx = 1\n```"
    assert CodeBlock("cpp")(two).answer == "int x;\n"
    assert CodeBlock("C++")("```c++\nint x;\n```").answer == "int x;\n"
    assert CodeBlock()(two).answer == CodeBlock()("```python3\nx = 1\n```").answer == "x = 1\n"


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("That makes 10-3", "3"),
        ("See pages 10-12", "12"),
        ("It is about 1.5e3", "1500"),
        ("It is 2E-2.", "1/50"),
        ("So x = -3", "-3"),
        ("The change is -$5", "-5"),
        ("The change is $-5", "-5"),
        ("so −4", "-4"),
        ("(-7)", "-7"),
        ("about 3e", "3"),
    ],
)
def test_a_sign_belongs_to_its_number_and_an_exponent_too(said: str, number: str) -> None:
    assert LastNumber()(said).answer == number


def test_an_option_that_is_called_correct_is_the_answer() -> None:
    said = (
        "Option C is correct.",
        "So choice (B) is the best, and option D is not correct.",
        "Option A is right: I know",
    )
    assert [Letter()(text).answer for text in said] == ["C", "B", "A"]
    assert Letter("ABCD")("Option K is correct.").answer is None
    assert Letter()("Option A is correct? No: the answer is B.").answer == "B"

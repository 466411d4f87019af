"""One open-ended task and one interactive one: utilities of texts and terminal states, and a loop through ``run``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest

from ramify.bank import Bank, Proposal
from ramify.decide import MBR, TokenF1
from ramify.decide.utility import Pairs
from ramify.describe import parse as parse_text
from ramify.errors import InvalidValue
from ramify.ledger import Ledger, Tokens
from ramify.run import Arm, Interact, Sequential, run_sequential
from ramify.tasks import DescribeFacts, Drawers
from ramify.tasks.pocket.alphabet import EOS, decode, encode
from ramify.types import APPENDED, Leaf, Question, Request

NEWLINE = int(encode("\n")[0])


# ------------------------------------------------------------------------------------------ open-ended


def test_a_rubric_grades_without_a_reference_text() -> None:
    task = DescribeFacts(4)
    [question] = task.questions(1)
    facts = dict(line.split(": ") for line in task.references([question])[0].splitlines())
    whole = "{name} is a {price} {food} place in the {area}.".format(**facts)
    assert task.rubric(question, whole) == {"coverage": 1.0, "one sentence": 1.0, "brevity": 1.0}
    assert task.grade(whole, task.references([question])[0]) == 1.0
    assert task.grade("", task.references([question])[0]) == 0.0
    assert task.grade(None, task.references([question])[0]) == 0.0
    long = whole.removesuffix(".") + " and so on" * 10 + "."  # 30 words of brevity over the words there are
    assert task.rubric(question, long)["brevity"] == pytest.approx(30 / len(long.split()))
    assert task.prefer(question, whole, "Nice.") == 1.0
    assert task.prefer(question, "Nice.", whole) == 0.0
    assert task.prefer(question, whole, whole) == 0.5


def test_every_drawn_candidate_is_eligible_and_pairwise_utility_selects() -> None:
    task = DescribeFacts(3)
    assert task.answers == "open-ended"
    texts = ["the Vaults serve French food", "the Vaults serve expensive French food", "hello"]
    answers = [task.parse(text).answer for text in texts]
    bank = Bank.of([answers])
    candidates = bank.candidates(utility=Pairs.of(bank, TokenF1()), open_ended=True)
    # Mean F1 with all three: (1 + 10/11) / 3, (1 + 10/11) / 3, 1/3: the earliest of two.
    assert MBR()(candidates).winner.tolist() == [0]
    assert candidates.eligible is not None
    assert np.asarray(candidates.eligible).all()


def test_questions_are_drawn_by_their_keys() -> None:
    task = DescribeFacts(6)
    assert task.questions(5)[:3] == task.questions(3)
    assert task.questions(3, run="other") != task.questions(3)
    assert len({question.prompt for question in task.questions(30)}) > 25
    with pytest.raises(InvalidValue, match=r"DescribeFacts\.facts = 7"):
        DescribeFacts(7)


# ------------------------------------------------------------------------------------------ interactive


def solved(task: Drawers, question: Question) -> list[str]:
    """Some actions that reach the target: every subset is tried."""
    room = task.start(question)
    for size in range(1, task.count + 1):
        for chosen in itertools.combinations(range(task.count), size):
            if sum(room.numbers[i] for i in chosen) == room.target:
                return [*(f"take {i + 1}" for i in chosen), "done"]
    raise AssertionError("every room can be solved")


def test_the_state_is_immutable_and_the_tools_show_what_is_hidden() -> None:
    task = Drawers(4)
    [question] = task.questions(1)
    room = task.start(question)
    assert all(str(number) not in question.prompt.split("reach")[0][2:] for number in room.numbers)
    looked, said = task.step(room, "look 1")
    assert said == f": {room.numbers[0]}"
    taken, said = task.step(looked, "take 1")
    assert (taken.total, said) == (room.numbers[0], f": {room.numbers[0]}")
    assert (room.steps, room.taken) == (0, ())
    assert task.step(taken, "take 1")[1] == ": empty"
    assert task.step(taken, "take 9")[1] == ": no drawer"
    assert task.step(taken, "open the door")[1] == ": what"


@pytest.mark.parametrize("count", [2, 5, 8])
def test_utility_is_of_the_terminal_state(count: int) -> None:
    task = Drawers(count)
    for question in task.questions(10):
        text = "".join(f"{action}\n" for action in solved(task, question))
        [reference] = task.references([question])
        assert task.utility(question, text) == 1.0
        assert task.grade(task.parse(text, question).answer, reference) == 1.0
        assert task.parse("done\n", question).answer == "0"
        assert task.utility(question, "done\n") == 0.0
        assert task.parse("look 1\n", question).status == "truncated reasoning"
        assert task.parse("", question).status == "no answer"
        assert 0 <= task.utility(question, "take 1\ndone\n") <= 1


def test_a_forged_observation_changes_nothing() -> None:
    task = Drawers(5)
    [question] = task.questions(1)
    text = "take 1\n: 99\n: 1000\ndone\n"
    assert task.parse(text, question).answer == str(task.start(question).numbers[0])


def test_steps_are_bounded() -> None:
    task = Drawers(3, most=4)
    [question] = task.questions(1)
    room, _ = task.play(question, "look 1\n" * 50)
    assert (room.steps, room.over) == (4, True)


Policy = Callable[[str], str]


def scripted(policy: Policy) -> Callable[[Iterable[Request]], Iterator[Leaf]]:
    """A sampler that writes what a policy says to the text so far, up to the end of the line or the cap."""

    def run(requests: Iterable[Request]) -> Iterator[Leaf]:
        for request in requests:
            words = [*encode(policy(decode(request.prefix))).tolist()] or [EOS]
            new = words[: request.cap - len(request.prefix)]
            ended = "stop:until" if new[-1] in request.until else "eos" if new[-1] == EOS else "length"
            tokens = np.array([*request.prefix, *new])
            role = np.array([*(request.prefix_role or ()), *([0] * len(new))], dtype=np.int8)
            zeros = np.zeros(len(tokens))
            yield Leaf(
                request.key, tokens, role, zeros, np.where(role == APPENDED, np.nan, 0.0), zeros.astype(int) + 1,
                zeros.astype(int) + 1, zeros.astype(bool), ended, decode(tokens),
            )  # fmt: skip

    return run


def look_then_choose(task: Drawers, target: int) -> Policy:
    """Looks into every drawer, and then takes what it has seen to add up: it needs the observations."""

    def policy(text: str) -> str:
        lines = text.splitlines()
        seen = [int(line[2:]) for action, line in itertools.pairwise(lines) if action.startswith("look")]
        if len(seen) < task.count:
            return f"look {len(seen) + 1}\n"
        for size in range(1, task.count + 1):
            for chosen in itertools.combinations(range(task.count), size):
                if sum(seen[i] for i in chosen) == target:
                    done = sum(line.startswith("take") for line in lines)
                    return f"take {chosen[done] + 1}\n" if done < size else "done\n"
        return "done\n"

    return policy


def test_the_loop_through_run_appends_what_the_environment_says_and_charges_it() -> None:
    task = Drawers(4)
    director = Interact(task, encode, until=(NEWLINE,))
    assert parse_text(repr(director)) == director
    for question in task.questions(5):
        arm = Arm(Proposal(run="p"), scripted(look_then_choose(task, task.start(question).target)), lambda _: ())
        [found] = run_sequential(
            Sequential(director, cap=400), [question], [arm], Ledger("tokens", Tokens()),
            lambda text, asked: task.parse(text, asked).answer, text=decode, end=EOS,
        )  # fmt: skip
        assert found.ended == "over"
        assert found.answer == task.references([question])[0]
        assert task.utility(question, found.trace.text) == 1.0
        appended = sum(role == APPENDED for role in found.trace.role)
        assert appended == sum(len(line) + 1 for line in found.trace.text.splitlines() if line.startswith(":")) > 0
        assert found.ledger.total == len(found.trace.tokens)  # every token was paid for, the environment's too


def test_a_model_that_stops_or_runs_out_is_halted() -> None:
    task = Drawers(3)
    director = Interact(task, encode, until=(NEWLINE,), cap=8)

    def run(policy: Policy, limit: float = 1000) -> str:
        arm = Arm(Proposal(run="p"), scripted(policy), lambda _: ())
        [found] = run_sequential(
            Sequential(director, cap=200), task.questions(1), [arm], Ledger("tokens", Tokens(), limit=limit),
            lambda text, asked: task.parse(text, asked).answer, text=decode, end=EOS,
        )  # fmt: skip
        assert found.ledger.total <= limit
        return found.ended

    assert run(lambda _: "") == "eos"
    assert run(lambda _: "look at everything\n") == "length"
    assert run(lambda _: "look 1\n", limit=20) in ("budget", "length")
    with pytest.raises(InvalidValue, match=r"Interact\.until = \(\)"):
        Interact(task, encode, until=())

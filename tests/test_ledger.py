"""The budget: it adds up, never overspends, and keeps what is not commensurate beside itself."""

from __future__ import annotations

import pickle
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.errors import InvalidValue, OverBudget
from ramify.ledger import Calls, Ledger, Seconds, Spent, Tokens, Work

STAGES = ("generate", "signal", "control", "decide")
works = st.builds(
    Work,
    generated=st.integers(0, 50),
    prompt=st.integers(0, 50),
    appended=st.integers(0, 5),
    calls=st.integers(0, 3),
    seconds=st.floats(0, 10),
    peak_bytes=st.integers(0, 10**9),
    evaluator_tokens=st.integers(0, 100),
)


@given(st.integers(0, 300), st.lists(st.tuples(st.sampled_from(STAGES), works, st.booleans()), max_size=20))
def test_what_is_admitted_fits_and_what_fits_is_admitted(limit: int, operations: list[tuple[str, Work, bool]]) -> None:
    ledger, cost = Ledger("tokens", Tokens(prompt=True), limit), Tokens(prompt=True)
    done: list[tuple[str, Work, bool]] = []
    for stage, work, discarded in operations:
        before = ledger
        if ledger.admits(work):
            ledger = ledger.charge(stage, work, discarded=discarded)  # type: ignore[arg-type]
            done.append((stage, work, discarded))
            assert before.total == ledger.total - cost(work), "the old ledger is still whole"
        else:
            with pytest.raises(OverBudget, match="ask `admits`"):
                ledger.charge(stage, work)  # type: ignore[arg-type]
    assert ledger.total <= limit
    assert ledger.total == sum(cost(work) for _, work, _ in done)
    assert sum(ledger.discarded) == sum(cost(work) for _, work, lost in done if lost)
    for stage in STAGES:
        assert getattr(ledger.spent, stage) == sum(cost(work) for name, work, _ in done if name == stage)
    assert ledger.beside.calls == sum(work.calls for _, work, _ in done)
    assert ledger.beside.peak_bytes == max((work.peak_bytes for _, work, _ in done), default=0)


def test_exact_units_stay_exact() -> None:
    def cents(work: Work) -> Fraction:
        return Fraction(work.generated, 10)

    ledger = Ledger("cents", cents, limit=Fraction(3, 10))  # type: ignore[arg-type]
    for _ in range(3):
        ledger = ledger.charge("generate", Work(generated=1))
    assert ledger.left == 0, "three dimes are thirty cents, which floats deny"
    assert not ledger.admits(Work(generated=1))


def test_a_ledger_is_a_value() -> None:
    ledger = Ledger("calls", Calls(), 3).charge("signal", Work())
    assert pickle.loads(pickle.dumps(ledger)) == ledger
    assert ledger.spent == Spent(signal=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ledger("", Tokens()), r"Ledger\.unit = ''"),
        (lambda: Ledger("tokens", Tokens(), -1), r"Ledger\.limit = -1"),
        (lambda: Ledger("tokens", Tokens(), float("nan")), r"Ledger\.limit = nan"),
        (lambda: Ledger("tokens", Tokens(), 10, spent=Spent(50)), "spend at most the limit of 10"),
        (lambda: Ledger("tokens", Tokens(), 10, spent=Spent(-1)), "use amounts >= 0"),
        (lambda: Ledger("tokens", lambda _: float("inf")).admits(Work()), "returns a finite amount"),
        (lambda: Work(generated=-1), r"Work\.generated = -1"),
        (lambda: Work(seconds=float("inf")), r"Work\.seconds = inf"),
        (
            lambda: Ledger("tokens", Tokens()).charge("think", Work()),  # type: ignore[arg-type]
            "use one of generate, signal, control, decide",
        ),
        (lambda: Ledger("tokens", lambda _: -1.0).admits(Work()), "returns a finite amount >= 0"),
    ],
)
def test_bad_budgets_name_the_field(make: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make()  # type: ignore[operator]


def test_what_is_admitted_can_be_charged_though_floats_add_up_differently_by_stage() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        ledger = Ledger("seconds", Seconds(0.1, 0.07), limit=round(rng.random() * 3, 2))
        for _ in range(12):
            work = Work(generated=rng.randrange(4), appended=rng.randrange(3))
            if ledger.admits(work):
                ledger = ledger.charge(rng.choice(("generate", "signal", "control")), work)

"""Every gate against its definition by full sort, in double precision; chains on real sizes in ``make soak``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.decode import (
    Chain,
    EntropyBudget,
    Epsilon,
    Eta,
    MinP,
    Operator,
    PLess,
    Side,
    TailFree,
    Temperature,
    TokenMeasure,
    TopA,
    TopH,
    TopK,
    TopNSigma,
    TopP,
    Typical,
    step,
)
from ramify.keys import streams
from ramify.types import Key

Sorted = Callable[[np.ndarray], np.ndarray]  # log-weights of the live tokens -> which of them stay


def norm(x: np.ndarray) -> np.ndarray:
    w = np.exp(x - x.max())
    normalised: np.ndarray = w / w.sum()
    return normalised


def entropy(p: np.ndarray) -> float:
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())


def first(order: np.ndarray, m: int) -> np.ndarray:
    keep = np.zeros(len(order), dtype=bool)
    keep[order[:m]] = True
    return keep


def by_mass(order: np.ndarray, p: np.ndarray, budget: float) -> np.ndarray:
    before = np.concatenate([[0.0], np.cumsum(p[order])[:-1]])
    return first(order, int((before < budget).sum()))


def down(x: np.ndarray) -> np.ndarray:
    return np.argsort(-x, kind="stable")


def top_h(x: np.ndarray, alpha: float) -> np.ndarray:
    p, order = norm(x), down(x)
    m = 1
    while m < len(p) and entropy(p[order[: m + 1]] / p[order[: m + 1]].sum()) <= alpha * entropy(p):
        m += 1
    return first(order, m)


def tail_free(x: np.ndarray, z: float) -> np.ndarray:
    p, order = norm(x), down(x)
    d = np.abs(np.diff(p[order], n=2))
    if len(p) < 3 or d.sum() == 0:
        return np.ones(len(p), dtype=bool)
    return first(order, 1 + int((np.cumsum(d) / d.sum() <= z).sum()))


def mode_if_empty(x: np.ndarray, keep: np.ndarray) -> np.ndarray:
    return keep if keep.any() else first(down(x), 1)


DEFINITIONS: list[tuple[Operator, Sorted]] = [
    (TopK(20), lambda x: first(down(x), 20)),
    (TopP(0.9), lambda x: by_mass(down(x), norm(x), 0.9)),
    (MinP(0.05), lambda x: norm(x) >= 0.05 * norm(x).max()),
    (TopA(0.3), lambda x: norm(x) >= 0.3 * norm(x).max() ** 2),
    (Epsilon(3e-3), lambda x: mode_if_empty(x, norm(x) >= 3e-3)),
    (Eta(2e-3), lambda x: mode_if_empty(x, norm(x) >= min(2e-3, math.sqrt(2e-3) * math.exp(-entropy(norm(x)))))),
    (PLess(), lambda x: norm(x) >= (norm(x) ** 2).sum() * (1 - 1e-12)),
    (TopNSigma(1.5), lambda x: x >= x.max() - 1.5 * x.std()),
    (Typical(0.8), lambda x: by_mass(down(-np.abs(-np.log(norm(x)) - entropy(norm(x)))), norm(x), 0.8)),
    (TopH(0.7), lambda x: top_h(x, 0.7)),
    (EntropyBudget(1.0), lambda x: top_h(x, 1.0 / max(entropy(norm(x)), 1e-300)) if entropy(norm(x)) else x == x.max()),
    (TailFree(0.95), lambda x: tail_free(x, 0.95)),
]


def expected(chain: tuple[Sorted, ...], logits: np.ndarray) -> np.ndarray:
    """The definitions one after another, on the live tokens alone."""
    ids = np.flatnonzero(np.isfinite(logits))
    for definition in chain:
        ids = ids[definition(logits[ids])]
    live = np.zeros(len(logits), dtype=bool)
    live[ids] = True
    return live


values = st.lists(st.integers(-400, 400), min_size=1, max_size=60, unique=True)


@pytest.mark.parametrize(("gate", "definition"), DEFINITIONS, ids=[repr(gate) for gate, _ in DEFINITIONS])
@given(raw=values)
def test_a_gate_is_its_definition(gate: Operator, definition: Sorted, raw: list[int]) -> None:
    # Odd multiples of an irrational step: no sum lands on a boundary by design of the numbers.
    logits = np.array(raw) * (math.sqrt(2) / 100)
    assert gate(TokenMeasure.of(logits)).live.tolist() == expected((definition,), logits).tolist()


def real_row(seed: int, size: int = 151_936) -> np.ndarray:
    """A row as a served model gives it: bf16 values, so a few thousand distinct ones, with many ties in the bulk."""
    rng = np.random.default_rng(seed)
    row: np.ndarray = 2.5 * rng.normal(size=size)
    row[rng.choice(size, 40, replace=False)] += np.linspace(18, 6, 40) * rng.uniform(0.5, 1.2)
    if seed % 3 == 2:
        row = rng.normal(size=size)  # nothing stands out
    bits = row.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32)


def check_chains(length: int, seeds: range) -> int:
    """Compare the supports of all chains of gates with full sorts; how many were compared."""
    compared = 0
    for seed in seeds:
        row = real_row(seed)
        for chain in itertools.product(DEFINITIONS, repeat=length):
            mine = Chain(*(gate for gate, _ in chain))(TokenMeasure.of(row[None].astype(np.float64))).live[0]
            theirs = expected(tuple(definition for _, definition in chain), row.astype(np.float64))
            assert np.array_equal(mine, theirs), f"{[repr(gate) for gate, _ in chain]} on row {seed}"
            compared += 1
    return compared


def test_gates_on_real_sizes_equal_a_full_sort() -> None:
    assert check_chains(1, range(3)) == 3 * len(DEFINITIONS)


@pytest.mark.soak
def test_chains_on_real_sizes_equal_a_full_sort() -> None:
    assert check_chains(2, range(6)) == 6 * len(DEFINITIONS) ** 2


def narrowed(operator: Operator, row: np.ndarray) -> None:
    """Inside ``step`` a chain's remainder runs on survivors: the proposal must be the one the operator itself gives."""
    direct = operator(TokenMeasure.of(row[None]))
    side = Side.start(operator, [()])
    drawn, _ = step(operator, row[None], side, streams([Key("narrow", "q", 0)]))
    assert drawn.support[0] == direct.support[0] or bool(drawn.forced[0])
    token = int(drawn.token[0])
    assert drawn.log_q[0] == pytest.approx(float(direct.log_kernel[0, token]), abs=1e-6)
    outside = int(np.flatnonzero(~direct.live[0])[0]) if not direct.live.all() else None
    if outside is not None:
        scored, _ = step(operator, row[None], side, streams([Key("narrow", "q", 0)]), given=np.array([outside]))
        assert scored.log_q[0] == -np.inf or scored.token[0] == drawn.token[0]


PAIRS = list(itertools.permutations([gate for gate, _ in DEFINITIONS], 2))


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{a!r}-{b!r}" for a, b in PAIRS])
def test_narrowing_changes_nothing(pair: tuple[Operator, Operator]) -> None:
    row = real_row(1, size=6_000)
    narrowed(Chain(pair[0], Temperature(0.7), pair[1]), row)
    narrowed(Chain(*pair, Temperature(0)), row)

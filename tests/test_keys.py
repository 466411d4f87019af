"""Random streams: frozen vectors, independence of order and batch, and statistics of neighbouring keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ramify.errors import InvalidValue
from ramify.keys import digest, generator, gumbel, permutation, philox, streams, uniform
from ramify.types import Key

# Known answers of philox4x32-10, from the Random123 distribution (Salmon et al., 2011).
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]

# Protocol ramify/1, frozen on 2026-11-15: a release that changes any of these cannot replay older runs.
FROZEN = [
    (Key("run", "q1", 0, "draw"), "8699c927403d1a3ef99197d3c80b070c", 0, 0, 0.8776414651697719),
    (Key("run", "q1", 1, "draw"), "70db187c19c0e26c0cb957c476b94e61", 7, 3, 0.4739162951591071),
    (Key("", "", 2**64 - 1, "stop"), "1fc934d037914363090f23f880d9cdb8", 2**32 - 1, 151_935, 0.709894025890103),
    (Key("aime-2025", "π ≈ 3", 79, "decide"), "740ee3ca205da2d217c6aad485c9cfb8", 32_768, 0, 0.411979624053083),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_philox_known_answers_as_integers_and_as_arrays(
    counter: tuple[int, int, int, int], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    assert philox(counter, key) == expected
    c0, c1, c2, c3 = (np.full(3, word, dtype=np.uint64) for word in counter)
    k0, k1 = (np.full(3, word, dtype=np.uint64) for word in key)
    for words, word in zip(philox((c0, c1, c2, c3), (k0, k1)), expected, strict=True):
        assert (words == word).all()


@pytest.mark.parametrize(("key", "hexadecimal", "step", "index", "value"), FROZEN)
def test_frozen_streams(key: Key, hexadecimal: str, step: int, index: int, value: float) -> None:
    assert digest(key).hex() == hexadecimal
    assert float(uniform(streams([key]), step, index)[0]) == value


def test_length_prefixes_keep_neighbours_apart() -> None:
    assert digest(Key("p1", "12", 0)) != digest(Key("p11", "2", 0))
    assert digest(Key("a", "b", 0, "c")) != digest(Key("a", "bc", 0, ""))


def test_a_sample_out_of_range_names_itself() -> None:
    with pytest.raises(InvalidValue, match=r"Key\.sample = -1"):
        digest(Key("r", "q", -1))
    with pytest.raises(InvalidValue, match=r"Key\.sample = 1\.5"):
        digest(Key("r", "q", 1.5))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"Key\.run = 1"):
        digest(Key(1, "q", 0))  # type: ignore[arg-type]
    for step in (-1, 2**32, np.array([0, -1])):
        with pytest.raises(InvalidValue, match=r"step = .*use integers in \[0, 2\*\*32\)"):
            uniform(streams([Key("r", "q", 0)]), step)


@given(st.permutations(range(6)), st.integers(0, 2**31), st.integers(0, 2**31))
def test_a_draw_depends_on_its_key_and_place_alone(order: list[int], step: int, index: int) -> None:
    keys = [Key("run", "q", i) for i in range(6)]
    together = uniform(streams(keys), step, index)
    alone = [uniform(streams([key]), step, index)[0] for key in keys]
    shuffled = uniform(streams([keys[i] for i in order]), step, index)
    assert together.tolist() == alone
    assert shuffled.tolist() == [alone[i] for i in order]


def test_uniforms_lie_strictly_inside_the_unit_interval() -> None:
    u = uniform(streams([Key("r", "q", 0)]), np.arange(1000)[:, None], np.arange(1000))
    assert u.min() > 0
    assert u.max() < 1
    assert np.isfinite(gumbel(streams([Key("r", "q", 0)]), np.arange(1000)[:, None], np.arange(1000))).all()


@pytest.mark.parametrize("axis", ["samples", "questions", "positions", "indices", "streams"])
def test_neighbours_are_uniform_and_independent(axis: str) -> None:
    n = 40_000
    key = Key("run", "q", 0)
    u = {
        "samples": lambda: uniform(streams(Key("run", "q", i) for i in range(n))),
        "questions": lambda: uniform(streams(Key("run", f"q{i}", 0) for i in range(n))),
        "positions": lambda: uniform(streams([key]), np.arange(n)),
        "indices": lambda: uniform(streams([key]), 0, np.arange(n)),
        "streams": lambda: uniform(streams(Key("run", "q", i // 2, f"s{i % 2}") for i in range(n))),
    }[axis]()
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    for lag in (1, 2, 7):
        cells, *_ = np.histogram2d(u[:-lag], u[lag:], bins=16)
        assert stats.chisquare(cells.ravel()).pvalue > 1e-3
        assert abs(stats.spearmanr(u[:-lag], u[lag:]).statistic) < 4 / np.sqrt(n)


def test_permutations_are_uniform() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for i in range(6_000):
        order = tuple(permutation(Key("run", "q", i, "replay"), 3).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_the_generator_has_frozen_bits() -> None:
    first = generator(Key("run", "q1", 0)).bit_generator.random_raw(2)
    assert first.tolist() == [8990951376382166498, 17817772861183330948]

"""What studies share: intervals over questions, measurements kept whole, tables between marks."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.errors import InvalidValue


@pytest.fixture(scope="module")
def bench(study: Callable[[str], ModuleType]) -> ModuleType:
    return study("bench")


# ----------------------------------------------------------------------------------------------------------- intervals


def test_both_intervals_are_those_of_all_resamples(bench: ModuleType) -> None:
    values = np.array([0.0, 0.1, 0.35, 0.8, 1.0])
    every = np.sort([np.mean(some) for some in product(values, repeat=5)])  # 5^5 resamples, equally likely
    low, high = np.quantile(every, [0.025, 0.975])
    found = bench.over_questions(values, "docs/test", replicates=20_000)
    drawn = bench.resampled(values, np.random.default_rng(0), 20_000)
    assert found.value == pytest.approx(values.mean())
    assert [found.low, found.high, *drawn] == pytest.approx([low, high, low, high], abs=0.02)


def test_an_interval_is_the_same_each_time_and_its_page_names_the_stream(bench: ModuleType) -> None:
    values = np.random.default_rng(1).random(20)
    one, again, other = (bench.over_questions(values, page) for page in ("docs/a", "docs/a", "docs/b"))
    assert (one.low, one.high) == (again.low, again.high) != (other.low, other.high)


def test_sign_flips_count_as_all_sign_flips_do(bench: ModuleType) -> None:
    values = np.array([0.5, 0.25, -0.125, 1.0, 0.75, 0.5, -0.25, 0.375])
    means = [np.dot(signs, values) for signs in product((-1, 1), repeat=values.size)]  # 2^8, exact in binary
    exact = np.mean(np.abs(means) >= values.sum())
    assert 0 < exact < 0.2
    assert bench.sign_flips(values, "docs/test") == pytest.approx(exact, abs=0.005)
    assert bench.sign_flips(-values, "docs/test") == bench.sign_flips(values, "docs/test")
    assert bench.sign_flips(np.zeros(8), "docs/test") == 1.0


# -------------------------------------------------------------------------------------------------------- what is kept


def test_what_is_kept_is_measured_once(bench: ModuleType, tmp_path: Path) -> None:
    path, calls = tmp_path / "deep" / "kept.json", list[int]()

    def measure(number: int) -> dict[str, int]:
        calls.append(number)
        return {"number": number}

    kept = bench.Kept(path)
    assert [kept("one", measure, 1), kept("one", measure, 2)] == [{"number": 1}] * 2
    assert bench.Kept(path)("one", measure, 3) == {"number": 1}
    assert bench.Kept(path)("two", measure, 4) == {"number": 4}
    assert calls == [1, 4]
    assert json.loads(path.read_text()) == {"one": {"number": 1}, "two": {"number": 4}}


def test_a_write_that_is_cut_off_leaves_what_was_there(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.json"

    def half(file: Path, text: str) -> None:
        file.write_bytes(text[: len(text) // 2].encode())
        raise KeyboardInterrupt

    bench.Kept(path)("one", lambda: 1)
    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(KeyboardInterrupt):
        bench.Kept(path)("two", lambda: 2)
    assert bench.Kept(path).found == {"one": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_of_a_killed_run_is_not_read(bench: ModuleType, tmp_path: Path) -> None:
    path, left = tmp_path / "kept.json", list[Path]()
    with pytest.raises(OSError, match=r"kept\..*part\.json"), bench.whole(path) as draft:
        left.append(draft)  # and nothing is written
    left[0].write_text('{"one": 1, "tw')
    assert bench.Kept(path).found == {}


@pytest.mark.parametrize("name", ["cell.outcome.npy", "cell-60x80.npz"])
def test_a_draft_has_the_suffix_that_numpy_wants(bench: ModuleType, tmp_path: Path, name: str) -> None:
    save = np.savez_compressed if name.endswith("npz") else np.save
    with bench.whole(tmp_path / name) as draft:
        save(draft, np.arange(3))
    assert [each.name for each in tmp_path.iterdir()] == [name]


# --------------------------------------------------------------------------------------------------------------- pages


def test_lines_take_the_place_of_what_stood_between_marks(bench: ModuleType) -> None:
    page = "above\n<a>\n\nold\n\n</a>\nbelow\n"
    assert bench.between(page, "<a>", "</a>", ["", "new", "lines", ""]) == "above\n<a>\n\nnew\nlines\n\n</a>\nbelow\n"
    assert bench.between("above\n<a>\nold\nolder\n", "<a>", "", ["", "new"]) == "above\n<a>\n\nnew\n"


@pytest.mark.parametrize(
    ("page", "mark"),
    [
        ("above\n</a>\n", "<a>"),
        ("<a>\n", "</a>"),
        ("</a>\n<a>\n", "</a>"),
        ("<a>\n</a>\n<a>\n</a>\n", "<a>"),
        ("", "<a>"),
    ],
)
def test_a_mark_that_is_missing_or_there_twice_is_an_error(bench: ModuleType, page: str, mark: str) -> None:
    with pytest.raises(InvalidValue, match=f"mark = '{mark}'"):
        bench.between(page, "<a>", "</a>", ["new"])


@given(st.lists(st.text("ab\n", max_size=6), max_size=4), st.text("ab\n", max_size=9), st.text("ab\n", max_size=9))
def test_writing_twice_is_writing_once(bench: ModuleType, lines: list[str], head: str, tail: str) -> None:
    once = bench.between(f"{head}<1>old<2>{tail}", "<1>", "<2>", lines)
    assert bench.between(once, "<1>", "<2>", lines) == once
    assert once.startswith(f"{head}<1>\n")
    assert once.endswith(f"\n<2>{tail}")

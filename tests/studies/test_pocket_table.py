"""Cells of the pocket tables: their size is in their name, and is checked when they are read."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ramify.errors import InvalidValue
from ramify.tasks.pocket import Arithmetic


@pytest.fixture(scope="module")
def pocket(study: Callable[[str], ModuleType]) -> ModuleType:
    return study("pocket_table")


@pytest.fixture(scope="module")
def small(pocket: ModuleType) -> Any:
    return pocket.Job("tiny", Arithmetic(2), 2, 2)


@pytest.fixture(scope="module")
def cell(pocket: ModuleType, small: Any) -> Any:
    return pocket.sample(small)


def kept(folder: Path, name: str, cell: Any) -> None:
    np.savez_compressed(folder / f"{name}.npz", **{k: v for k, v in vars(cell).items() if v is not None})


def test_a_cell_of_another_size_is_another_cell(pocket: ModuleType, small: Any, tmp_path: Path) -> None:
    line = pocket._kept((small, tmp_path))  # as a worker of `run` does
    assert line.startswith("tiny-arithmetic-2-medium ")
    assert [path.name for path in tmp_path.iterdir()] == ["tiny-arithmetic-2-medium-2x2.npz"]
    (found,) = pocket.cells(Namespace(questions=2, samples=2, cache=tmp_path)).items()
    assert found[0] == small
    assert found[1].answer.shape == (2, 2)
    for questions, samples in ((60, 80), (2, 3), (3, 2)):
        assert pocket.cells(Namespace(questions=questions, samples=samples, cache=tmp_path)) == {}


def test_a_cell_under_the_name_of_another_size_is_refused(
    pocket: ModuleType, small: Any, cell: Any, tmp_path: Path
) -> None:
    for job in (small._replace(samples=3), small._replace(questions=1), small._replace(questions=60, samples=80)):
        kept(tmp_path, job.name, cell)
        with pytest.raises(InvalidValue, match=rf"not {job.questions} questions x {job.samples} samples"):
            pocket.load(job, tmp_path)


def test_fewer_questions_than_asked_for_are_read(pocket: ModuleType, small: Any, cell: Any, tmp_path: Path) -> None:
    job = small._replace(questions=60)  # the lowest levels have 38 and 22
    kept(tmp_path, job.name, cell)
    assert pocket.load(job, tmp_path).answer.shape == (2, 2)


def test_parts_that_do_not_belong_together_are_refused(
    pocket: ModuleType, small: Any, cell: Any, tmp_path: Path
) -> None:
    kept(tmp_path, small.name, replace(cell, text=cell.text[:-1]))
    with pytest.raises(InvalidValue, match="remove it"):
        pocket.load(small, tmp_path)
    kept(tmp_path, small.name, cell)
    np.save(tmp_path / f"{small.name}.outcome.npy", np.zeros((2, 3)))
    with pytest.raises(InvalidValue, match="remove it"):
        pocket.load(small, tmp_path)
    np.save(tmp_path / f"{small.name}.outcome.npy", np.zeros((2, 2)))
    assert pocket.load(small, tmp_path).outcome.shape == (2, 2)


def test_every_cell_has_a_name_of_its_own(pocket: ModuleType) -> None:
    made = [job.name for size in ((60, 80), (60, 8), (6, 80)) for job in pocket.jobs(*size)]
    claims = [name for name in made if "claims" in name]
    assert len(set(made)) == len(made) - 2  # of 60 and of 6 questions the claims have 200, with the same samples
    assert len(set(claims)) == len(claims) - 2


def test_a_page_is_not_emptied_where_there_is_no_cell(pocket: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "pocket.md"
    page.write_text(f"above\n{pocket.MARK}\ntables\n")
    with pytest.raises(InvalidValue, match="`run` first"):
        pocket.write(Namespace(questions=2, samples=2, cache=tmp_path, docs=tmp_path))
    assert page.read_text().endswith("tables\n")

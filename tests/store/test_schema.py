"""Banks of earlier versions: read as they are, upgraded before the first new file, compacted to the present schema."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from ramify.store import SCHEMA, Store
from ramify.store.records import Record
from ramify.store.shard import GROUP_TOKENS, row_groups
from ramify.types import Key

HERE = Path(__file__).parent / "data"


def check(path: Path) -> None:
    """The facts that were written down when the bank was made."""
    facts = json.loads((HERE / "schema1.json").read_text())
    with Store.open(path).snapshot() as snapshot:
        found = {(each.key.question, each.key.sample): each for each in snapshot.records() if each.key.sample < 3}
        bank = snapshot.bank()
        assert np.array_equal(bank.layers["half"].values[:, :3], np.arange(6.0).reshape(2, 3) / 2)
        assert np.array_equal(snapshot.outcomes("correct").on(bank)[:, :3], np.eye(2, 3))
    assert len(found) == len(facts) == 6
    for fact in facts:
        each = found[fact["question"], fact["sample"]]
        assert (each.text, each.ended) == (fact["text"], fact["ended"])
        assert [float(x).hex() for x in each.columns["logprob"]] == fact["logprob"]
        assert each.columns["top_ids"].tolist() == fact["ids"]
        assert [[float(x).hex() for x in row] for row in each.columns["top_logprobs"]] == fact["top"]


def test_a_bank_of_schema_1_is_read_written_to_and_compacted(tmp_path: Path) -> None:
    path = tmp_path / "bank"
    shutil.copytree(HERE / "schema1", path)
    check(path)
    store = Store.open(path)
    assert store.schema == 1
    [card] = store.cards().values()
    with store.writer(card.value) as writer:
        assert json.loads((path / "bank.json").read_text())["schema"] == SCHEMA
        writer.append(Record(Key("old", store.snapshot().questions[0].id, 3), writer.card.hash, answer="new"))
    check(path)
    store.compact()
    check(path)
    assert Store.open(path).verify() == []


def test_the_schema_of_the_files_is_the_one_in_the_docs() -> None:
    from ramify.store.shard import SCHEMAS

    page = Path(__file__).parents[2] / "docs" / "schema.md"
    if not page.exists():
        pytest.fail("docs/schema.md writes the schema down")
    text = page.read_text()
    for name, schema in SCHEMAS.items():
        for field in schema:
            assert f"`{field.name}`" in text, f"{name}.{field.name} is not in docs/schema.md"
    assert f"schema {SCHEMA}" in text


def test_a_pool_of_many_short_candidates_is_cut_in_linear_time() -> None:
    sizes, start = [1] * 300_000, time.process_time()
    groups = row_groups(sizes, ["q"] * len(sizes))
    assert time.process_time() - start < 5  # it was minutes
    assert [each.stop - each.start for each in groups] == [GROUP_TOKENS, GROUP_TOKENS, 300_000 - 2 * GROUP_TOKENS]
    assert [each.start for each in groups[1:]] == [each.stop for each in groups[:-1]]

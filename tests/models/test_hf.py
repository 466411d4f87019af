"""The torch engine against the NumPy one, on the same checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ramify.decode import Chain, Temperature
from ramify.describe import parse
from ramify.models import decode_with
from ramify.models.hf import HF
from ramify.models.pocket import Pocket
from ramify.models.pocket.model import DATA
from ramify.tasks.pocket import Arithmetic, Countdown, Modular
from ramify.types import Key, Request
from tests.models.test_pocket import RAGGED, SHAPES, checkpoint, prompts

torch = pytest.importorskip("torch")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_ragged_logits_are_those_of_the_pocket_engine(shape: str, device: str) -> None:
    ours, theirs, rows = Pocket(str(checkpoint(shape))), HF(str(checkpoint(shape)), device), prompts(*RAGGED)
    a, b = ours.start(rows), theirs.start(rows)
    np.testing.assert_allclose(theirs.logits(b), ours.logits(a), rtol=0, atol=1e-4)
    for token in prompts(*[len(rows)] * 20, seed=1):
        a, b = ours.advance(a, token), theirs.advance(b, token)
    np.testing.assert_allclose(theirs.logits(b), ours.logits(a), rtol=0, atol=1e-4)
    order = [6, 0, 0, 3, 9, 8]
    a = ours.advance(ours.select([a, ours.start(rows[:3])], order), [4] * 6)
    b = theirs.advance(theirs.select([b, theirs.start(rows[:3])], order), [4] * 6)
    np.testing.assert_allclose(theirs.logits(b), ours.logits(a), rtol=0, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(folder.parent.name for folder in DATA.glob("*/config.json")))
def test_shipped_checkpoints_agree_with_the_pocket_engine(name: str, device: str) -> None:
    """Ragged prompts of every family, then 40 forced tokens of a derivation: logits to 1e-4."""
    ours, theirs = Pocket(name), HF(str(DATA / name), device)
    tasks = (Arithmetic(8), Modular(12, "high"), Countdown(4, "low"))
    rows = [ours.encode(question.prompt) for task in tasks for question in task.questions(2)]
    a, b = ours.start(rows), theirs.start(rows)
    for token in (None, *ours.encode("25-7=18\n5-3=2\n18*2=36\n>36\nwait\n25+7=32\n")):
        if token is not None:
            a, b = ours.advance(a, [token] * len(rows)), theirs.advance(b, [token] * len(rows))
        np.testing.assert_allclose(theirs.logits(b), ours.logits(a), rtol=0, atol=1e-4)


def test_double_precision_agrees_beyond_single() -> None:
    rows = prompts(3, 50)
    ours, theirs = Pocket(str(checkpoint()), "float64"), HF(str(checkpoint()), precision="float64")
    # transformers rounds the rotary angles to single precision whatever the model's, so this is not 1e-9
    np.testing.assert_allclose(theirs.logits(theirs.start(rows)), ours.logits(ours.start(rows)), rtol=0, atol=1e-5)


def test_an_old_state_stays_whole() -> None:
    model = HF(str(checkpoint()))
    old = model.start(prompts(4, 9))
    first = model.logits(model.advance(old, [3, 3])).copy()
    model.advance(model.advance(old, [5, 5]), [6, 6])
    np.testing.assert_array_equal(model.logits(model.advance(old, [3, 3])), first)


def test_leaves_are_those_of_the_pocket_engine() -> None:
    """Same keys and decoder: token for token, where no two tokens are tied to within rounding."""
    requests = [Request(Key("run", "q", i), tuple(prompts(11)[0]), cap=20) for i in range(8)]
    operator = Chain(Temperature(0.8))
    ours = {leaf.key: leaf for leaf in decode_with(Pocket(str(checkpoint())), operator)(requests)}
    theirs = {leaf.key: leaf for leaf in decode_with(HF(str(checkpoint())), operator)(requests)}
    for key, leaf in ours.items():
        assert leaf.tokens.tolist() == theirs[key].tokens.tolist()
        np.testing.assert_allclose(leaf.logprob, theirs[key].logprob, atol=1e-4)


def test_arrays_stay_on_the_device_if_asked() -> None:
    model = HF(str(checkpoint()), arrays="torch")
    state = model.advance(model.start(prompts(4)), torch.tensor([3]))
    assert isinstance(model.logits(state), torch.Tensor)


def test_text_and_value(tmp_path: Path) -> None:
    model, pocket = HF(str(checkpoint())), Pocket(str(checkpoint()))
    assert parse(repr(model)) == model
    assert model.encode("1 + 2 = 3") == pocket.encode("1 + 2 = 3")
    assert model.text([*model.encode("1 + 2 = 3"), model.eos]) == "1 + 2 = 3"
    assert model.eos == pocket.eos
    empty = model.select([model.start(prompts(4))], [])
    assert model.logits(empty).shape == (0, model.logits(model.start(prompts(4))).shape[1])

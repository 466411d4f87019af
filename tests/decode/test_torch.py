"""The same operators on torch tensors: equal to NumPy to 1e-9 in double and 1e-5 in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ramify.decode import Operator, Side, TokenMeasure, step
from ramify.describe import text
from ramify.keys import streams
from ramify.models import Tabular, decode_with
from ramify.types import Key, Request
from tests.methods import DRAWS, OPERATORS

torch: Any = pytest.importorskip("torch")
torch.set_num_threads(1)


def both(dtype: type, rows: int = 5, size: int = 9) -> tuple[TokenMeasure, TokenMeasure]:
    rng = np.random.default_rng(11)
    logits: np.ndarray = (rng.normal(size=(rows, size)) * 2).astype(dtype)
    logits[0, 3] = -np.inf
    logits[1] = np.round(logits[1])
    tokens = np.array([rng.integers(0, size, 4)] * rows)
    tokens[2, 2:] = -1
    prompt = rng.integers(0, size, (rows, 3))
    convert = torch.from_numpy
    theirs = Side(convert(tokens), convert(prompt))
    return TokenMeasure.of(logits, Side(tokens, prompt)), TokenMeasure.of(convert(logits), theirs)


@pytest.mark.parametrize("operator", OPERATORS, ids=text)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_numpy_equals_torch(operator: Operator, dtype: type, tolerance: float) -> None:
    mine, theirs = (operator(each) for each in both(dtype))
    assert isinstance(theirs.live, torch.Tensor)
    assert np.array_equal(mine.live, theirs.live.numpy())
    assert np.array_equal(mine.forced, theirs.forced.numpy())
    assert np.array_equal(mine.fallback, theirs.fallback.numpy())
    assert np.allclose(mine.probs, theirs.probs.numpy(), atol=tolerance)


@pytest.mark.parametrize("operator", OPERATORS, ids=text)
@pytest.mark.parametrize("draw", DRAWS, ids=repr)
def test_torch_draws_the_same_tokens_from_the_same_keys(operator: Operator, draw: Any) -> None:
    table = np.random.default_rng(2).normal(size=(3, 6, 7)) * 2
    stream = streams(Key("torch", "q", i) for i in range(6))
    mine = Side.start(operator, [(1,)] * 6)
    theirs = mine
    for logits in table:
        here, mine = step(operator, logits, mine, stream, draw=draw)
        there, theirs = step(operator, torch.from_numpy(logits), theirs, stream, draw=draw, top=3)
        assert here.token.tolist() == there.token.tolist()
        assert np.allclose(here.log_q, there.log_q.numpy(), atol=1e-9)
        assert here.rank.tolist() == there.rank.tolist()


class TorchTabular(Tabular):
    """The tabular model with its logits as torch tensors: what a torch model looks like to the loop."""

    def logits(self, state: np.ndarray) -> Any:
        return torch.from_numpy(super().logits(state))

    def advance(self, state: np.ndarray, tokens: Any) -> np.ndarray:
        return super().advance(state, tokens.numpy())


@pytest.mark.parametrize("operator", OPERATORS, ids=text)
def test_a_torch_model_gives_the_same_leaves(operator: Operator) -> None:
    mine = Tabular.random(Key("torch", "model", 0))
    theirs = TorchTabular(mine.vocabulary, mine.rows, mine.eos)
    requests = [Request(Key("torch", "q", i), (0,) * (i % 3), cap=5, top=i % 3) for i in range(9)]
    here = {leaf.key: leaf for leaf in decode_with(mine, operator, batch=4)(requests)}
    for leaf in decode_with(theirs, operator, batch=4)(requests):
        assert leaf.tokens.tolist() == here[leaf.key].tokens.tolist()
        assert np.allclose(leaf.log_q, here[leaf.key].log_q, atol=1e-9)

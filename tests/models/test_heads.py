"""The heads, read without torch: the numbers of torch, the same bits in any company, and some use."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ramify.bank import Bank
from ramify.decode import Chain
from ramify.errors import InvalidValue
from ramify.models import Heads, OutcomeHead, Pocket, ValueHead, decode_with
from ramify.models.pocket.checkpoint import read_tensors
from ramify.models.pocket.model import DATA
from ramify.tasks import Countdown
from ramify.types import Key, Leaf, Prefix, Question, Request

MODEL, HEADS = Pocket("main"), Heads("main")
NEWLINE = MODEL.encode("\n")[0]
HAS_PROCESS = "process.up.weight" in read_tensors(DATA / "main" / "heads.safetensors")


@cache
def sampled(questions: int = 16, samples: int = 6) -> tuple[tuple[Question, Leaf], ...]:
    asked = {question.id: question for question in Countdown(4).questions(questions)}
    requests = [
        Request(Key("heads", name, i), MODEL.encode(question.prompt), cap=120)
        for name, question in asked.items()
        for i in range(samples)
    ]
    leaves = sorted(decode_with(MODEL, Chain())(requests), key=lambda leaf: leaf.key)
    return tuple((asked[leaf.key.question], leaf) for leaf in leaves)


def sequences() -> list[tuple[int, ...]]:
    return [(*MODEL.encode(question.prompt), *leaf.tokens.tolist()) for question, leaf in sampled()]


def reference(tokens: tuple[int, ...], head: str) -> np.ndarray:
    """Every position's score, straight from the formula, with torch and the hidden states of transformers."""
    torch = pytest.importorskip("torch")
    weights = {name: torch.from_numpy(x.astype(np.float32)) for name, x in _tensors().items()}
    with torch.inference_mode():
        out = _torch_model().model(torch.tensor([tokens]), output_hidden_states=True)
        middle = out.hidden_states[json.loads((DATA / "main" / "heads.json").read_text())["features"]["middle_layer"]][
            0
        ]
        middle = middle / (middle.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        x = torch.cat([middle, out.last_hidden_state[0]], dim=-1)  # transformers has normed the last one
        up = torch.nn.functional.silu(x @ weights[f"{head}.up.weight"].T + weights[f"{head}.up.bias"])
        found: np.ndarray = torch.sigmoid(up @ weights[f"{head}.down.weight"].T + weights[f"{head}.down.bias"])[
            :, 0
        ].numpy()
    return found


@cache
def _torch_model() -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(DATA / "main").float().eval()


@cache
def _tensors() -> dict[str, np.ndarray]:
    return read_tensors(DATA / "main" / "heads.safetensors")


def test_scores_are_those_of_torch() -> None:
    some = sequences()[::9]
    lines = HEADS.value(some)
    for tokens, end, score in zip(some, lines.end, lines.score, strict=True):
        assert end.tolist() == [i + 1 for i, token in enumerate(tokens) if token == NEWLINE]
        np.testing.assert_allclose(score, reference(tokens, "value")[end - 1], rtol=0, atol=1e-4)
    outcome = HEADS.outcome(some)
    for tokens, score, end in zip(some, outcome.values, lines.end, strict=True):
        assert tokens[-1] == MODEL.eos
        assert score == pytest.approx(reference(tokens, "outcome")[end[-1] - 1], abs=1e-4)


@pytest.mark.skipif(not HAS_PROCESS, reason="the shipped file has no process head")
def test_process_scores_are_those_of_torch() -> None:
    some = sampled()[::9]
    prompts = [MODEL.encode(question.prompt) for question, _ in some]
    lines = HEADS.process(prompts, [leaf.tokens.tolist() for _, leaf in some])
    for (_, leaf), prompt, end, score in zip(some, prompts, lines.end, lines.score, strict=True):
        assert end.tolist() == [len(prompt) + i + 1 for i, token in enumerate(leaf.tokens) if token == NEWLINE]
        np.testing.assert_allclose(score, reference((*prompt, *leaf.tokens), "process")[end - 1], rtol=0, atol=1e-4)


def test_a_ragged_batch_is_one_by_one_bit_for_bit() -> None:
    some = [*sequences()[::3], sequences()[3], sequences()[0][:25], ()]
    together = HEADS.value(some)
    for i, tokens in enumerate(some):
        alone = HEADS.value([tokens])
        assert alone.score[0].tobytes() == together.score[i].tobytes()
        assert alone.end[0].tolist() == together.end[i].tolist()
        assert alone.cost[0] == together.cost[i] == (together.end[i][-1] if tokens else 0)
    ends = HEADS.last_value(some)
    assert ends.values[:-1].tolist() == [score[-1] for score in together.score[:-1]]
    assert np.isnan(ends.values[-1])


def area(score: np.ndarray, right: np.ndarray) -> float:
    """P(a right one scores above a wrong one)."""
    return float(np.mean(score[right][:, None] > score[~right]))


def test_the_heads_know_something() -> None:
    """Held-out questions and fresh samples; ``heads.json`` has the figures of a large sample."""
    task = Countdown(4)
    pairs = sampled()
    right = np.array([bool(task.verify(question, task.parse(leaf.text, question).answer)) for question, leaf in pairs])
    assert 15 <= right.sum() <= len(pairs) - 15
    ended = np.array([leaf.ended == "eos" for _, leaf in pairs])
    assert area(HEADS.outcome(sequences()).values[ended], right[ended]) > 0.8
    # The value head halfway through: after the first line that was written.
    halfway = np.array([score[1] for score in HEADS.value(sequences()).score])
    assert area(halfway, right) > 0.6


def test_the_value_head_scores_prefixes() -> None:
    question, leaf = sampled()[0]
    tokens = tuple(leaf.tokens.tolist())
    prefixes = [Prefix(question, tokens[:n], (0,) * n) for n in (0, 5, 12, len(tokens))]
    values, cost = ValueHead("main")(prefixes)
    lines = HEADS.value([sequences()[0]])
    prompt = len(MODEL.encode(question.prompt))
    for value, price, prefix in zip(values, cost, prefixes, strict=True):
        line = int(np.searchsorted(lines.end[0], prompt + len(prefix.tokens), side="right")) - 1
        assert value == lines.score[0][line]
        assert price == lines.end[0][line]


def test_the_outcome_head_is_evidence() -> None:
    pairs = sampled()[:10]  # a question with six leaves, and one with four
    questions = list({question.id: question for question, _ in pairs}.values())
    bank = Bank.of_leaves(questions, [leaf for _, leaf in pairs], lambda text, q: Countdown(4).parse(text, q).answer)
    values, cost = OutcomeHead("main")(bank)
    assert values.shape == cost.shape == bank.shape == (2, 6)
    assert np.isnan(values).sum() == 2
    assert (cost[~bank.drawn] == 0).all()
    assert np.array_equal(values[bank.drawn], HEADS.outcome(sequences()[:10]).values)


def test_unfinished_trajectories_have_no_outcome() -> None:
    whole = sequences()[0]
    values, cost = HEADS.outcome([whole, whole[:-1], (), (MODEL.eos,)])
    assert np.isnan(values).tolist() == [False, True, True, True]
    assert cost.tolist()[1:] == [0, 0, 0]


def test_what_is_not_there_is_named_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidValue, match=r"'tiny': the checkpoint has no heads.*use one of \['main'.*training/README"
    ):
        Heads("tiny").value([MODEL.encode("M3 5 7 25:41\n")])
    for file in (DATA / "main").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    _save(tmp_path / "heads.safetensors", {name: x for name, x in _tensors().items() if name.startswith("value")})
    kept = Heads(str(tmp_path))
    assert kept.value([sequences()[0]]).score[0].tobytes() == HEADS.value([sequences()[0]]).score[0].tobytes()
    with pytest.raises(InvalidValue, match=r"no process head: use \['value'\], or fit it"):
        kept.process([MODEL.encode("M3 5 7 25:41\n")], [MODEL.encode("3*5=15\n")])
    with pytest.raises(InvalidValue, match="use up to 512 tokens"):
        HEADS.value([(NEWLINE,) * 513])
    with pytest.raises(InvalidValue, match=r"bank\.tokens = None"):
        OutcomeHead("main")(Bank.of({"q": ["A"]}))


def _save(file: Path, tensors: dict[str, np.ndarray]) -> None:
    from safetensors.numpy import save_file

    save_file(tensors, file)

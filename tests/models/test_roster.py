"""The checkpoints that come with the package: standard layout, the same logits in transformers, and real controls."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ramify.decode import Chain
from ramify.models import Pocket, decode_with
from ramify.models.pocket.checkpoint import read_tensors
from ramify.models.pocket.model import DATA
from ramify.tasks.pocket import Arithmetic, Countdown, decode, encode
from ramify.types import Key, Leaf, Question, Request

NAMES = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())


def sampled(name: str, task: Any, questions: int, samples: int) -> list[tuple[Question, Leaf]]:
    model, asked = Pocket(name), task.questions(questions, run="test")
    by_id = {question.id: question for question in asked}
    requests = [Request(Key("roster", q.id, i), model.encode(q.prompt), cap=220) for q in asked for i in range(samples)]
    return [(by_id[leaf.key.question], leaf) for leaf in decode_with(model, Chain(), batch=128)(requests)]


def accuracy(name: str, task: Any, questions: int = 16, samples: int = 4) -> tuple[float, float]:
    """(share right, mean tokens)"""
    right, tokens = [], []
    for question, leaf in sampled(name, task, questions, samples):
        [reference] = task.references([question])
        right.append(task.grade(task.parse(leaf.text, question).answer, reference))
        tokens.append(len(leaf.tokens))
    return float(np.mean(right)), float(np.mean(tokens))


def test_the_roster_keeps_its_bounds() -> None:
    cards = [json.loads((DATA / name / "card.json").read_text()) for name in NAMES]
    heads = json.loads((DATA / "main" / "heads.json").read_text())["parameters"]
    assert len(NAMES) >= 6
    assert sum(card["parameters"] for card in cards) + heads <= 12_000_000
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) <= 25_000_000
    assert min(card["parameters"] for card in cards) < 400_000 < 4_000_000 < max(card["parameters"] for card in cards)
    for card in cards:
        assert {"recipe", "data", "training", "held_out_loss", "device", "date", "evaluation"} <= card.keys()


def test_the_heads_are_three_and_read_what_their_card_says() -> None:
    card = json.loads((DATA / "main" / "heads.json").read_text())
    weights = read_tensors(DATA / "main" / "heads.safetensors")
    width = json.loads((DATA / "main" / "config.json").read_text())["hidden_size"]
    parts = {"up.weight": (128, 2 * width), "up.bias": (128,), "down.weight": (1, 128), "down.bias": (1,)}
    heads = ("value", "process", "outcome")
    assert {name: weight.shape for name, weight in weights.items()} == {
        f"{head}.{part}": shape for head in heads for part, shape in parts.items()
    }
    assert card["parameters"] == sum(weight.size for weight in weights.values())
    for head in heads:
        report = card["held_out"][head]
        assert 0.8 < report["auc"] < 1.0
        assert 0.7 < report["auc_within_cells"] < 1.0


@pytest.mark.parametrize("name", NAMES)
def test_transformers_loads_each_and_gives_the_same_logits(name: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(DATA / name, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(DATA / name)
    model = Pocket(name)
    for prompt in ("M3 5 7 25:41\n", "H(3+4)*2-(9-5)\n"):
        ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        assert tuple(ids) == model.encode(prompt) == tuple(encode(prompt).tolist())
        with torch.no_grad():
            expected = theirs(torch.tensor([ids])).logits[0, -1].numpy()
        assert np.abs(model.logits(model.start([ids]))[0] - expected).max() < 1e-4


def test_effort_changes_how_much_is_written_and_what_is_right() -> None:
    low, medium, high = (accuracy("main", Arithmetic(6, effort)) for effort in ("low", "medium", "high"))
    assert low[1] < 10 < medium[1] < high[1], "answer directly; steps; steps and a check"
    assert low[0] < 0.3 < 0.9 < min(medium[0], high[0])


def test_the_likeliest_response_of_slip_is_worse_than_a_random_one() -> None:
    """A small likeness of docs/pocket.md, where the difference is -0.37 on 200 questions."""
    task, best, right = Arithmetic(4), dict[str, tuple[float, float]](), []
    for question, leaf in sampled("slip", task, 24, 12):
        grade = task.grade(task.parse(leaf.text, question).answer, task.references([question])[0])
        right.append(grade)
        best[question.id] = max(best.get(question.id, (-np.inf, 0.0)), (float(leaf.logprob.sum()), grade))
    assert np.mean([grade for _, grade in best.values()]) < np.mean(right) - 0.15


def test_an_appended_wait_makes_another_attempt() -> None:
    model, task = Pocket("main"), Countdown(5)
    wait = model.encode("wait\n")
    ended = {leaf.key: (question, leaf) for question, leaf in sampled("main", task, 24, 2) if leaf.ended == "eos"}
    requests = []
    for question, leaf in ended.values():
        written = (*leaf.tokens[:-1].tolist(), *wait)
        role = (0,) * (len(written) - len(wait)) + (2,) * len(wait)
        prompt, cap = model.encode(question.prompt), len(written) + 120
        requests.append(Request(leaf.key, prompt, cap=cap, prefix=written, prefix_role=role))
    again = []
    for longer in decode_with(model, Chain())(requests):
        question, leaf = ended[longer.key]
        before, after = (task.parse(text, question).answer for text in (leaf.text, longer.text))
        again.append((task.verify(question, before), task.verify(question, after), before != after))
    changed = [row for row in again if row[2]]
    assert len(changed) >= 5, "revision is real: a forced wait changes answers"
    assert sum(after for _, after, _ in again) >= sum(before for before, _, _ in again), (
        "and helps where failure is visible"
    )


# A leaf is the same wherever kernels keep the invariance of models/pocket/product.py and round alike.
# Recorded on OpenBLAS 0.3.31, SkylakeX kernels, 2026-11-15.
GOLDEN = {
    "main": "25-7=18\n5-3=2\n18*2=36\n>(25-7)*(5-3)\nwait\n25+7=32\n32+5=37\n37+3=40\n>25+7+5+3\n",
    "tiny": "7-5=2\n25*2=50\n50-3=41\n>25*(7-5)-3\n",
}


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_golden_leaves(name: str) -> None:
    model = Pocket(name)
    prompt = model.encode("M3 5 7 25:41\n")
    [leaf] = decode_with(model, Chain())([Request(Key("golden", name, 0), prompt, cap=120)])
    assert decode(leaf.tokens) == GOLDEN[name]

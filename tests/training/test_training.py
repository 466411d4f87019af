"""The training code at a tiny scale: what it packs, computes, samples and exports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from multiprocessing.pool import Pool, ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from ramify.tasks.pocket import EOS, PAD, Arithmetic, Countdown, Curriculum, Modular, decode, encode  # noqa: E402
from ramify.types import Key  # noqa: E402
from training.data import ROW, TAUGHT, generate, pack  # noqa: E402
from training.export import archive, load, round_half, write  # noqa: E402
from training.heads import HEADS, Head, area, join, make_heads, outcomes, read_heads, rollouts  # noqa: E402
from training.model import Cache, Llama, Shape  # noqa: E402
from training.roster import PARTS, ROSTER  # noqa: E402
from training.sample import evaluate, sample  # noqa: E402
from training.train import Recipe, _document_bias, _loss, held_out_loss, train  # noqa: E402

TINY = Shape(2, 64, 128)
CPU = torch.device("cpu")
TASKS = (Arithmetic(1), Modular(2, "high"), Countdown(2, "low"))


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    return round_half(Llama(TINY).eval())


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with ThreadPool(1) as one:
        yield one


def prompts(n: int = 6) -> list[np.ndarray]:
    return [encode(q.prompt) for task in TASKS for q in task.questions(n // 3)]


# ------------------------------------------------------------------------------------------------------ the
# roster


def test_the_roster_keeps_its_limits() -> None:
    assert len(ROSTER) >= 6
    assert sorted(name for part in PARTS.values() for name in part) == sorted([*ROSTER, "heads"])
    heads = 3 * sum(weight.numel() for weight in Head(2 * ROSTER["main"].shape.width).parameters())
    total = sum(recipe.shape.parameters for recipe in ROSTER.values()) + heads
    assert total < 12_000_000
    assert 2 * total < 24_000_000  # bytes, in half precision
    shape = ROSTER["small"].shape
    assert shape.parameters == sum(weight.numel() for weight in Llama(shape).parameters())


# ---------------------------------------------------------------------------------------------------------
# data


def test_packing_loses_nothing_and_wastes_little() -> None:
    data = Curriculum.default()(Key("pack", "train", 0, "examples"), 1500)
    rows = pack(data)
    tokens = rows & (TAUGHT - 1)
    whole = sorted(bytes(part) for row in tokens for part in np.split(row, np.flatnonzero(row == EOS) + 1))
    given = sorted(bytes(data.tokens[a:b]) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True))
    assert [part for part in whole if part.strip(bytes([PAD]))] == given
    assert (rows >= TAUGHT).sum() == data.taught.sum()
    assert (tokens != PAD).mean() > 0.97


def test_rows_do_not_depend_on_who_makes_them(pool: Pool) -> None:
    mixture = Curriculum(TASKS, (1.0, 1.0, 1.0))
    with ThreadPool(3) as three:
        assert (generate(pool, mixture, "same", 9000) == generate(three, mixture, "same", 9000)).all()


# ---------------------------------------------------------------------------------------------------------
# model


def test_documents_in_a_row_do_not_see_each_other(model: Any) -> None:
    texts = [encode("M1+2\n1+2=3\n>3\n"), encode("M9-4\n>5\n"), encode("H7*7\n7*7=49\n")]
    documents = [np.append(text, EOS).astype(np.int64) for text in texts]
    row = torch.from_numpy(np.concatenate(documents))[None]
    with torch.inference_mode():
        together = model(row, _document_bias(row, torch.float32))[0]
        # Rotary positions are relative, so a document's place in the row does not matter.
        alone = torch.cat([model(torch.from_numpy(d)[None])[0] for d in documents])
    assert torch.allclose(together, alone, atol=2e-5)


def test_the_loss_is_the_mean_over_taught_tokens(model: Any) -> None:
    data = Curriculum(TASKS, (1.0, 1.0, 1.0))(Key("loss", "train", 0, "examples"), 12)
    rows = pack(data)
    total, count = 0.0, 0
    with torch.inference_mode():
        for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True):
            tokens = torch.from_numpy(data.tokens[a:b].astype(np.int64))
            logprob = torch.log_softmax(model(tokens[None])[0, :-1], dim=-1).gather(1, tokens[1:, None])[:, 0]
            taught = torch.from_numpy(data.taught[a + 1 : b].astype(bool))
            total, count = total - float(logprob[taught].sum()), count + int(taught.sum())
        assert float(_loss(model, torch.from_numpy(rows), CPU)) == pytest.approx(total / count, rel=1e-5)
    assert held_out_loss(model, rows, CPU) == pytest.approx(total / count, abs=1e-3)


def test_cached_steps_give_the_logits_of_one_pass(model: Any) -> None:
    tokens = torch.randint(2, 64, (3, 40), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        once = model(tokens)
        cache = Cache.empty(TINY, 3, 64, CPU)
        parts = [
            model(tokens[:, :25], cache=cache),
            *(model(tokens[:, t : t + 1], cache=cache) for t in range(25, 30)),
        ]
        cache = cache.select(torch.tensor([2, 0]))
        forked = [model(tokens[[2, 0], t : t + 1], cache=cache) for t in range(30, 40)]
    assert torch.allclose(torch.cat(parts, dim=1), once[:, :30], atol=1e-5)
    assert torch.allclose(torch.cat(forked, dim=1), once[[2, 0], 30:], atol=1e-5)


# -------------------------------------------------------------------------------------------------------
# sampling


@pytest.mark.soak
def test_samples_follow_the_model(model: Any) -> None:
    # One prompt many times: the first sampled token has the model's own distribution.
    prompt = prompts()[0]
    tokens = sample(model, [prompt] * 3000, seed=5, batch=3000)
    first = np.bincount([t[0] for t in tokens if len(t)], minlength=64) / 3000
    with torch.inference_mode():
        probs = torch.softmax(model(torch.from_numpy(prompt.astype(np.int64))[None])[0, -1], -1).numpy()
    probs[PAD] = 0.0  # a sampled padding token ends the text here; trained models never draw it
    assert np.abs(first - probs).sum() < 0.15


def test_each_row_continues_its_own_prompt(model: Any) -> None:
    with torch.inference_mode():
        got = sample(model, prompts(), seed=3, batch=4, temperature=1e-4)
        for prompt, tokens in zip(prompts(), got, strict=True):
            text = prompt.astype(np.int64).tolist()
            for token in tokens[:20].tolist():
                assert int(model(torch.tensor([text]))[0, -1].argmax()) == token
                text.append(token)


def test_evaluation_reports_every_task(model: Any, pool: Pool) -> None:
    rows = evaluate(model, pool, TASKS, 2, 4, seed=0, batch=8)
    assert [(row["family"], row["level"], row["effort"]) for row in rows] == [
        (task.family, task.level, task.effort) for task in TASKS
    ]
    assert all(0 <= row["accuracy"] <= row["pass@4"] <= 1 for row in rows)


# --------------------------------------------------------------------------------------------- training and
# export


def test_training_lowers_the_loss_and_stops_on_time(pool: Pool) -> None:
    rows = torch.from_numpy(generate(pool, Curriculum(TASKS, (1.0, 1.0, 1.0)), "tiny", 3000))
    recipe = Recipe("test", TINY, seconds=20, steps=100, rows=2, rate=5e-3)
    trained, log = train(recipe, rows, CPU, seconds=20, fast=False)
    assert log["steps"] <= 100
    assert held_out_loss(trained, rows[:8].numpy(), CPU) < 2.5  # chance is 4.2
    again, _ = train(Recipe("test", TINY, 20, steps=5, rows=2), rows, CPU, 20, fast=False)
    twice, _ = train(Recipe("test", TINY, 20, steps=5, rows=2), rows, CPU, 20, fast=False)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), twice.parameters(), strict=True))


@pytest.mark.filterwarnings("ignore")  # transformers has its own to tell
def test_transformers_loads_the_export_and_agrees(model: Any, tmp_path: Path) -> None:
    write(tmp_path, model, {"name": "test"})
    assert json.loads((tmp_path / "card.json").read_text()) == {"name": "test"}
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    text = "H(3+14)*2 a=b:?>wait\n\n"
    assert tokenizer(text)["input_ids"] == encode(text).tolist()
    assert tokenizer.decode(encode(text).tolist()) == text == decode(encode(text))
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, len(tokenizer)) == (PAD, EOS, 64)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert type(theirs).__name__ == "LlamaForCausalLM"
    assert next(theirs.parameters()).dtype == torch.float32
    tokens = torch.randint(2, 64, (4, 300), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        ours, others = model(tokens), theirs(tokens).logits
        assert float((ours - others).abs().max()) < 1e-4
        back = load(tmp_path, CPU)(tokens)
    assert torch.equal(back, ours)


def test_an_archive_holds_everything(model: Any, tmp_path: Path) -> None:
    import tarfile

    write(tmp_path / "roster" / "one", model, {})
    archive(tmp_path / "all.tar", tmp_path / "roster")
    with tarfile.open(tmp_path / "all.tar") as tar:
        assert sorted(tar.getnames()) == [
            f"one/{name}"
            for name in (
                "card.json",
                "config.json",
                "model.safetensors",
                "tokenizer.json",
                "tokenizer_config.json",
            )
        ]


# ----------------------------------------------------------------------------------------------------------
# heads


def test_area_is_the_probability_of_the_right_order() -> None:
    rng = np.random.default_rng(0)
    score, label = rng.integers(0, 6, 60) / 5.0, rng.integers(0, 2, 60)
    pairs = [(s > t) + 0.5 * (s == t) for s in score[label == 1] for t in score[label == 0]]
    assert area(score, label) == pytest.approx(np.mean(pairs), abs=1e-4)
    assert area(score, np.ones(60)) is None


def test_another_writer_says_nothing_about_value(model: Any, pool: Pool) -> None:
    own = rollouts(model, pool, TASKS, 2, 2, "train", seed=0, batch=8)
    other = rollouts(model, pool, TASKS, 2, 2, "train", seed=1, batch=8, writer=model)
    assert (own.label["value"] >= 0).all()
    assert (other.label["value"] == -1).all()
    both = join([own, other])
    assert len(both.features) == len(own.features) + len(other.features)
    assert set(np.unique(both.trace)) == set(range(24))
    assert both.cells == own.cells


def test_heads_are_read_back_and_say_the_same(model: Any, pool: Pool, tmp_path: Path) -> None:
    points = rollouts(model, pool, TASKS, 4, 2, "train", seed=0, batch=8)
    for name in HEADS:
        points.label[name] = (points.cell == 0).astype(int)
    make_heads(tmp_path, model, points, points, 0, {}, {"other": points})
    assert set(json.loads((tmp_path / "heads.json").read_text())["held_out_of_others"]["other"]) == set(HEADS[1:])
    heads = read_heads(tmp_path, CPU)
    assert tuple(heads) == HEADS
    texts = [np.append(encode(text), EOS) for text in ("M1+2\n1+2=3\n>3\n", "L9-4\n>5\n")]
    with torch.inference_mode():
        x = torch.stack([model.features(torch.from_numpy(t.astype(np.int64))[None])[0, len(t) - 2] for t in texts])
        expected = torch.sigmoid(heads["outcome"](x.half().float())).numpy()
    assert outcomes(model, heads["outcome"], texts) == pytest.approx(expected, abs=1e-5)


def test_points_sit_on_newlines_and_heads_are_written(model: Any, pool: Pool, tmp_path: Path) -> None:
    points = rollouts(model, pool, TASKS, 4, 2, "train", seed=0, batch=8)
    assert len(points.features) == len(points.trace) == len(points.label["value"])
    assert set(np.unique(points.trace)) == set(range(24))  # every rollout has at least its prompt
    assert all((points.label[name] <= 1).all() for name in HEADS)
    # An untrained model is never right; teach the heads something else, to see that they learn what is there.
    points.label["value"] = (points.cell == 0).astype(int)
    points.label["process"] = points.label["outcome"] = points.label["value"]
    card = make_heads(tmp_path, model, points, points, 0, {})
    assert card["held_out"]["value"]["auc"] > 0.9
    assert (tmp_path / "heads.safetensors").exists()
    assert ROW == 512

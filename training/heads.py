"""Three small heads on the frozen hidden states of a checkpoint, trained on its own rollouts.

    value     at the end of every line, the prompt's included: P(the trajectory ends in a right answer)
    process   at the end of every step: P(the step is right)
    outcome   at the end of a finished trajectory: P(its answer is right), without any reference

Each reads ``Llama.features`` (2 D numbers) at a newline: score = sigmoid(down · silu(up · x + b) + c).
The process and outcome heads also learn from what other checkpoints wrote, read by the same model: on the easy
families the model itself errs too rarely to show what an error looks like.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from ramify.tasks.pocket import EOS, decode, encode, task_of
from ramify.types import Question
from training.export import save_half
from training.model import Llama
from training.sample import draw, sample

__all__ = ["HEADS", "Head", "Points", "area", "join", "make_heads", "outcomes", "read_heads", "rollouts"]

HEADS = ("value", "process", "outcome")
HIDDEN = 128


class Head(nn.Module):
    """``[..., 2 D]`` features to ``[...]`` logits."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, HIDDEN)
        self.down = nn.Linear(HIDDEN, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.up(x)))[..., 0]


@dataclass
class Points:
    """Labelled positions of rollouts, P of them."""

    features: Tensor  # [P, 2 D] half precision
    label: dict[str, np.ndarray]  # head -> [P], 1 or 0, and -1 where the head has nothing to say
    alive: np.ndarray  # [P] 1 if the attempt can still succeed, 0 if not, -1 at the prompt
    cell: np.ndarray  # [P] index into cells
    trace: np.ndarray  # [P] which rollout
    cells: list[str]  # family/level/effort


def _labelled(job: tuple[Question, str, str]) -> tuple[float, list[tuple[int, str, bool, bool]]]:
    question, reference, text = job
    task = task_of(question)
    grade = task.grade(task.parse(text, question).answer, reference)
    return grade, [(step.end, step.kind, step.right, step.alive) for step in task.steps(question, text)]


def rollouts(
    model: Llama,
    pool: Pool,
    tasks: Sequence[Any],
    questions: int,
    samples: int,
    split: str,
    seed: int,
    batch: int,
    writer: Llama | None = None,
) -> Points:
    """Sample, label and read features. Train and held-out points come from questions that never meet.

    With a ``writer``, it samples and ``model`` reads; the value head has nothing to say about those.
    """
    asked = [pair for pair in draw(pool, tasks, questions, "heads", split) for _ in range(samples)]
    prompts = [encode(q.prompt) for q, _ in asked]
    tokens = sample(writer or model, prompts, seed, batch)
    ended = [t[-1:].tolist() == [EOS] for t in tokens]
    jobs = [(*pair, decode(t)) for pair, t in zip(asked, tokens, strict=True)]
    labelled = pool.map(_labelled, jobs, chunksize=128)
    cells = [f"{t.family}/{t.level}/{t.effort}" for t in tasks]
    wholes = [np.concatenate([p, t]) for p, t in zip(prompts, tokens, strict=True)]
    rows: list[tuple[int, int, int, int, int, int]] = []  # trace, position, value, process, outcome, alive
    for i, (grade, steps) in enumerate(labelled):
        base, right = len(prompts[i]), int(grade)
        rows.append((i, base - 1, right, -1, -1, -1))
        for k, (end, kind, ok, alive) in enumerate(steps):
            last = ended[i] and k == len(steps) - 1
            rows.append(
                (
                    i,
                    base + end - 1,
                    right,
                    int(ok) if kind == "step" else -1,
                    right if last else -1,
                    int(alive),
                )
            )
    table = np.array(rows)
    features = _features(model, wholes, table, batch // 2)
    if writer is not None:
        table[:, 2] = table[:, 5] = -1
    label = dict(zip(HEADS, table[:, 2:5].T, strict=True))
    cell = table[:, 0] // (questions * samples)
    return Points(features, label, table[:, 5], cell, table[:, 0], cells)


def join(parts: Sequence[Points]) -> Points:
    """The points of several calls of ``rollouts`` on the same tasks."""
    first = np.cumsum([0, *(int(part.trace.max()) + 1 for part in parts)])
    return Points(
        torch.cat([part.features for part in parts]),
        {name: np.concatenate([part.label[name] for part in parts]) for name in HEADS},
        np.concatenate([part.alive for part in parts]),
        np.concatenate([part.cell for part in parts]),
        np.concatenate([part.trace + at for part, at in zip(parts, first, strict=False)]),
        parts[0].cells,
    )


@torch.inference_mode()
def _features(model: Llama, wholes: list[np.ndarray], table: np.ndarray, batch: int) -> Tensor:
    """Features of the positions in ``table`` (trace, position, ...), in its order."""
    device = next(model.parameters()).device
    found = torch.empty(len(table), 2 * model.shape.width, dtype=torch.float16, device=device)
    first = np.searchsorted(table[:, 0], np.arange(len(wholes) + 1))
    order = sorted(range(len(wholes)), key=lambda i: len(wholes[i]))
    for at in range(0, len(order), batch):
        rows = order[at : at + batch]
        padded = np.zeros((len(rows), max(len(wholes[i]) for i in rows)), dtype=np.int64)
        for k, i in enumerate(rows):
            padded[k, : len(wholes[i])] = wholes[i]
        states = model.features(torch.from_numpy(padded).to(device))
        spots = np.concatenate([np.arange(first[i], first[i + 1]) for i in rows])
        row = np.repeat(np.arange(len(rows)), [first[i + 1] - first[i] for i in rows])
        picked = states[torch.from_numpy(row).to(device), torch.from_numpy(table[spots, 1]).to(device)]
        found[torch.from_numpy(spots).to(device)] = picked.half()
    return found


def read_heads(folder: Path, device: torch.device) -> dict[str, Head]:
    """The heads of a checkpoint, by name."""
    weights = load_file(folder / "heads.safetensors")
    found = {}
    for name in HEADS:
        own = {key.partition(".")[2]: value.float() for key, value in weights.items() if key.startswith(f"{name}.")}
        if own:
            found[name] = Head(own["up.weight"].shape[1])
            found[name].load_state_dict(own)
    return {name: head.to(device).eval() for name, head in found.items()}


@torch.inference_mode()
def outcomes(model: Llama, head: Head, wholes: list[np.ndarray], batch: int = 512) -> np.ndarray:
    """P(the answer is right) of whole texts that ended, prompts included: the head at their last newline."""
    newline = int(encode("\n")[0])
    table = np.array([(i, int(np.flatnonzero(whole == newline)[-1])) for i, whole in enumerate(wholes)])
    scores = torch.sigmoid(head(_features(model, wholes, table, batch).float()))
    found: np.ndarray = scores.cpu().numpy()
    return found


def fit(points: Points, name: str, seed: int, seconds: float, epochs: int = 10) -> Head:
    """Logistic regression through one hidden layer, on the points that this head speaks about."""
    device = points.features.device
    torch.manual_seed(seed)
    head = Head(points.features.shape[1]).to(device)
    which = torch.from_numpy(np.flatnonzero(points.label[name] >= 0)).to(device)
    target = torch.from_numpy(points.label[name]).to(device).float()
    size = min(1024, len(which))
    total = epochs * (len(which) // size)
    optimizer = torch.optim.AdamW(head.parameters(), lr=2e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
    deadline = time.perf_counter() + seconds
    for step in range(total):
        if step % (len(which) // size) == 0:
            order = which[torch.randperm(len(which), device=device)]
            begin = 0
        spots = order[begin : begin + size]
        begin += size
        loss = F.binary_cross_entropy_with_logits(head(points.features[spots].float()), target[spots])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if time.perf_counter() > deadline:
            break
    with torch.no_grad():
        for weight in head.parameters():
            weight.copy_(weight.half().float())
    return head.eval()


def area(score: np.ndarray, label: np.ndarray) -> float | None:
    """Area under the ROC curve: P(a right one scores above a wrong one), ties half; None without both."""
    right = label == 1
    n, m = int(right.sum()), int((~right).sum())
    if n == 0 or m == 0:
        return None
    values, group, counts = np.unique(score, return_inverse=True, return_counts=True)
    del values
    rank = (np.cumsum(counts) - (counts - 1) / 2)[group]  # mean rank of equal scores
    return round(float((rank[right].sum() - n * (n + 1) / 2) / (n * m)), 4)


def judge(head: Head, points: Points, name: str) -> dict[str, Any]:
    """AUC pooled, and as the mean over cells (family, level, effort), where difficulty alone cannot help."""
    with torch.inference_mode():
        score = torch.sigmoid(head(points.features.float())).cpu().numpy()
    label, spoken = points.label[name], points.label[name] >= 0
    inside = {}
    for index, cell in enumerate(points.cells):
        here = spoken & (points.cell == index)
        got = area(score[here], label[here])
        if got is not None and min(label[here].sum(), (1 - label[here]).sum()) >= 20:
            inside[cell] = got
    report = {
        "points": int(spoken.sum()),
        "positive": round(float(label[spoken].mean()), 4),
        "auc": area(score[spoken], label[spoken]),
        "auc_within_cells": round(float(np.mean(list(inside.values()))), 4) if inside else None,
        "brier": round(float(np.mean((score[spoken] - label[spoken]) ** 2)), 4),
        "cells": inside,
    }
    if name == "value":
        known = points.alive >= 0
        report["auc_alive"] = area(score[known], points.alive[known])
    return report


def make_heads(
    folder: Path,
    model: Llama,
    fitting: Points,
    held_out: Points,
    seed: int,
    about: dict[str, Any],
    others: Mapping[str, Points] | None = None,
) -> dict[str, Any]:
    """Fit the three heads, judge them on held-out rollouts (and those of ``others``), write weights and card."""
    weights: dict[str, Tensor] = {}
    reports: dict[str, Any] = {}
    abroad: dict[str, Any] = {name: {} for name in others or {}}
    for index, name in enumerate(HEADS):
        head = fit(fitting, name, seed + index, seconds=60.0)
        reports[name] = judge(head, held_out, name)
        for writer, points in (others or {}).items():
            if name != "value":
                abroad[writer][name] = judge(head, points, name)
        weights.update({f"{name}.{key}": value for key, value in head.state_dict().items()})
    folder.mkdir(parents=True, exist_ok=True)
    save_half(folder / "heads.safetensors", weights)
    card = {
        **about,
        "features": {
            "middle_layer": model.middle,
            "rule": "concat(rms(stream after middle_layer), final norm)",
        },
        "read_at": "newline",
        "parameters": sum(weight.numel() for weight in weights.values()),
        "fitted_points": {name: int((fitting.label[name] >= 0).sum()) for name in HEADS},
        "held_out": reports,
        "held_out_of_others": abroad,
    }
    (folder / "heads.json").write_text(json.dumps(card, indent=1) + "\n")
    return card

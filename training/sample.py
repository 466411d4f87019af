"""Batched sampling with a key-value cache, and Acc@1 on held-out questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from multiprocessing.pool import Pool
from typing import Any

import numpy as np
import torch

from ramify.tasks.pocket import EOS, PAD, decode, encode, task_of
from ramify.types import Question
from training.model import POSITIONS, Cache, Llama

__all__ = ["draw", "evaluate", "sample"]

COMPACT = 16  # steps between looks at how many rows are still running


@torch.inference_mode()
def sample(
    model: Llama, prompts: Sequence[np.ndarray], seed: int, batch: int = 4096, temperature: float = 1.0
) -> list[np.ndarray]:
    """One trajectory per prompt, up to 512 tokens in all: its tokens, the end mark included if it came.

    All rows of a batch start at position 0 and walk together: prompts are forced token by token, so there is
    no padding to mask. Prompts of like length go together, and finished rows leave the batch.
    """
    device = next(model.parameters()).device
    noise = torch.Generator(device=device).manual_seed(seed)
    found: list[np.ndarray] = [np.empty(0, np.uint8)] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for at in range(0, len(order), batch):
        rows = order[at : at + batch]
        texts = _walk(model, [prompts[i] for i in rows], noise, temperature, device)
        for i, text in zip(rows, texts, strict=True):
            found[i] = text[len(prompts[i]) :]
    return found


def _walk(
    model: Llama, prompts: list[np.ndarray], noise: torch.Generator, temperature: float, device: torch.device
) -> list[np.ndarray]:
    lengths = torch.tensor([len(p) for p in prompts], device=device)
    padded = np.full((len(prompts), POSITIONS), PAD, dtype=np.int64)
    for row, prompt in enumerate(prompts):
        padded[row, : len(prompt)] = prompt
    whole = torch.from_numpy(padded).to(device)
    cache = Cache.empty(model.shape, len(prompts), POSITIONS, device)
    live = torch.arange(len(prompts), device=device)
    running = torch.ones(len(prompts), dtype=torch.bool, device=device)
    start = int(lengths.min())
    logits = model(whole[:, :start], cache=cache)[:, -1]
    for position in range(start, POSITIONS):
        draw = torch.softmax(logits.float() / temperature, dim=-1)
        token = torch.multinomial(draw, 1, generator=noise)[:, 0]
        token = torch.where(position < lengths[live], whole[live, position], token)
        token = torch.where(running, token, PAD)
        whole[live, position] = token
        running &= token != EOS
        if position % COMPACT == 0 or position == POSITIONS - 1:
            left = torch.nonzero(running)[:, 0]
            if len(left) == 0 or position == POSITIONS - 1:
                break
            if len(left) < 0.8 * len(live):
                cache, live, running, token = cache.select(left), live[left], running[left], token[left]
        logits = model(token[:, None], cache=cache)[:, -1]
    return [_ended(row) for row in whole.cpu().numpy().astype(np.uint8)]


def _ended(row: np.ndarray) -> np.ndarray:
    """The row up to its end mark, or up to its padding."""
    ends = np.flatnonzero((row == EOS) | (row == PAD))
    stop = len(row) if len(ends) == 0 else int(ends[0]) + int(row[ends[0]] == EOS)
    return row[:stop]


def _graded(job: tuple[Question, str, str]) -> tuple[str | None, float]:
    question, reference, text = job
    task = task_of(question)
    answer = task.parse(text, question).answer
    return answer, task.grade(answer, reference)


def evaluate(
    model: Llama, pool: Pool, tasks: Sequence[Any], questions: int, samples: int, seed: int, batch: int
) -> list[dict[str, Any]]:
    """Held-out accuracy at temperature 1: a row for every task, its level and its effort."""
    asked = draw(pool, tasks, questions, "card", "eval")
    prompts = [encode(q.prompt) for q, _ in asked for _ in range(samples)]
    tokens = sample(model, prompts, seed, batch)
    jobs = [(*asked[i // samples], decode(t)) for i, t in enumerate(tokens)]
    graded = pool.map(_graded, jobs, chunksize=256)
    rows = []
    for k, task in enumerate(tasks):
        part = slice(k * questions * samples, (k + 1) * questions * samples)
        right = np.array([g for _, g in graded[part]]).reshape(questions, samples)
        answers = [a for a, _ in graded[part]]
        lengths = np.array([len(t) for t in tokens[part]])
        rows.append(
            {
                "family": task.family,
                "level": task.level,
                "effort": task.effort,
                "questions": questions,
                "samples": samples,
                "accuracy": round(float(right.mean()), 4),
                f"pass@{samples}": round(float(right.max(axis=1).mean()), 4),
                "plurality": round(_plurality(answers, right), 4),
                "invalid": round(sum(a is None for a in answers) / len(answers), 4),
                "tokens": round(float(lengths.mean()), 1),
                "ended": round(float(np.mean([t[-1:].tolist() == [EOS] for t in tokens[part]])), 4),
            }
        )
    return rows


def draw(pool: Pool, tasks: Sequence[Any], n: int, run: str, split: str) -> list[tuple[Question, str]]:
    """``n`` questions of every task with their references, task by task."""
    parts = pool.map(_drawn, [(task, n, run, split) for task in tasks], chunksize=1)
    return [pair for part in parts for pair in part]


def _drawn(job: tuple[Any, int, str, str]) -> list[tuple[Question, str]]:
    task, n, run, split = job
    questions = task.questions(n, run=run, split=split)
    return list(zip(questions, task.references(questions), strict=True))


def _plurality(answers: list[str | None], right: np.ndarray) -> float:
    """Accuracy of the most frequent answer of each question, the earliest among equals."""
    won = []
    for q, row in enumerate(right):
        own = answers[q * len(row) : (q + 1) * len(row)]
        counts = Counter(a for a in own if a is not None)
        won.append(row[own.index(counts.most_common(1)[0][0])] if counts else 0.0)
    return float(np.mean(won))

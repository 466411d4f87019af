"""Train one checkpoint inside a time budget: packed rows on the device, AdamW, cosine, bf16 autocast."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ramify.tasks.pocket.alphabet import EOS
from training.data import ROW, TAUGHT
from training.model import Llama, Shape

__all__ = ["Recipe", "held_out_loss", "train"]


@dataclass(frozen=True)
class Recipe:
    """What makes a checkpoint. It trains for ``seconds`` or ``steps``, whichever is less."""

    name: str
    shape: Shape
    seconds: float
    steps: int = 1_000_000
    rows: int = 256  # of 512 tokens each: about 1,100 examples
    rate: float = 2e-3
    warmup: int = 200
    decay: float = 0.1
    slip: tuple[float, ...] = ()
    seed: int = 0
    note: str = ""


def train(
    recipe: Recipe, rows: Tensor, device: torch.device, seconds: float, fast: bool
) -> tuple[Llama, dict[str, Any]]:
    """The trained model, and how it went. ``rows [R, 512]`` uint8 lie on the device."""
    torch.manual_seed(recipe.seed)
    model = Llama(recipe.shape).to(device)
    if fast:
        # Every layer runs the same code, so compiling a layer compiles all of them. What an earlier model of
        # another width left behind would make the widths dynamic, and slower.
        torch.compiler.reset()
        for layer in model.model.layers:
            layer.compile(dynamic=False)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.95), fused=device.type == "cuda")
    shuffle = torch.Generator().manual_seed(recipe.seed)
    size = min(recipe.rows, len(rows))
    order = torch.empty(0, dtype=torch.long)
    begun = time.perf_counter()
    total, step, loss_sum, history = recipe.steps, 0, torch.zeros((), device=device), []
    probe = (10, 30) if recipe.steps > 60 else (1, 2)  # the steps between which a step is timed
    while step < total:
        if step == probe[0]:
            _wait(device)
            mark = time.perf_counter()
        if step == probe[1]:
            _wait(device)
            pace = (time.perf_counter() - mark) / (probe[1] - probe[0])
            left = seconds - (time.perf_counter() - begun)
            total = min(total, step + max(probe[1], int(0.98 * left / pace)))
        if len(order) < size:
            order = torch.randperm(len(rows), generator=shuffle)
        batch, order = rows[order[:size].to(device)], order[size:]
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate * _schedule(step, total, recipe.warmup)
        loss = _loss(model, batch, device)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss_sum += loss.detach()
        step += 1
        if step % 100 == 0:
            history.append([step, round(float(loss_sum) / 100, 4)])
            loss_sum.zero_()
    _wait(device)
    took = time.perf_counter() - begun
    if not all(torch.isfinite(p).all() for p in model.parameters()):
        raise FloatingPointError(f"{recipe.name}: training left weights that are not finite")
    plain = Llama(recipe.shape).to(device)  # without the compiled layers
    plain.load_state_dict(model.state_dict())
    report = {"steps": step, "tokens": step * size * ROW, "seconds": round(took, 1), "loss": history}
    return plain.eval(), report


def _schedule(step: int, total: int, warmup: int) -> float:
    """Linear warm-up, then a cosine from 1 to 0.02."""
    warmup = min(warmup, max(1, total // 10))
    if step < warmup:
        return (step + 1) / warmup
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))


def _loss(model: Llama, batch: Tensor, device: torch.device) -> Tensor:
    """Mean cross-entropy of the taught tokens of ``batch [B, 512]``; documents do not see each other."""
    tokens = (batch & (TAUGHT - 1)).long()
    # All 512 positions go in, and the last one, which has nothing to predict, weighs nothing: attention
    # kernels want round lengths.
    target = torch.roll(tokens, -1, dims=1)
    taught = torch.roll((batch >= TAUGHT).float(), -1, dims=1)
    taught[:, -1] = 0.0
    half = device.type == "cuda"
    bias = _document_bias(tokens, torch.bfloat16 if half else torch.float32)
    with torch.autocast(device.type, torch.bfloat16, enabled=half):
        logits = model(tokens, bias)
    each = F.cross_entropy(logits.float().flatten(0, 1), target.flatten(), reduction="none")
    return (each * taught.flatten()).sum() / taught.sum()


def _document_bias(tokens: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where a position may look (earlier, same document) and -inf elsewhere, ``[B, 1, T, T]``."""
    end = (tokens == EOS).int()
    document = end.cumsum(1) - end
    length = tokens.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
    seen = (document[:, :, None] == document[:, None, :]) & causal
    return torch.zeros(seen.shape, dtype=dtype, device=tokens.device).masked_fill_(~seen, -torch.inf)[:, None]


@torch.inference_mode()
def held_out_loss(model: Llama, rows: np.ndarray, device: torch.device) -> float:
    """Cross-entropy per taught token on rows of evaluation problems."""
    parts = torch.from_numpy(rows).split(64)
    return round(float(np.mean([float(_loss(model, part.to(device), device)) for part in parts])), 4)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()

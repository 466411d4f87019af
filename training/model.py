"""The Llama decoder in plain torch: arithmetic and weight names of ``transformers.LlamaForCausalLM``."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ramify.tasks.pocket.alphabet import TOKENS

__all__ = ["Cache", "Llama", "Shape"]

VOCABULARY = len(TOKENS)
POSITIONS = 512
THETA = 10_000.0
EPSILON = 1e-5


@dataclass(frozen=True)
class Shape:
    """Widths are multiples of 64 and heads are 32 wide, in every checkpoint."""

    layers: int
    width: int
    inner: int

    @property
    def heads(self) -> int:
        """Attention heads."""
        return self.width // 32

    @property
    def parameters(self) -> int:
        """Weights in all, embeddings and output head included."""
        layer = 4 * self.width**2 + 3 * self.width * self.inner + 2 * self.width
        return self.layers * layer + 2 * VOCABULARY * self.width + self.width


@dataclass
class Cache:
    """Keys and values of every layer, ``[B, H, T, 32]`` each, of which ``length`` positions are filled."""

    keys: list[Tensor]
    values: list[Tensor]
    length: int = 0

    @classmethod
    def empty(cls, shape: Shape, rows: int, positions: int, device: torch.device) -> Cache:
        """Room for ``positions`` tokens in ``rows`` rows."""
        size = (rows, shape.heads, positions, shape.width // shape.heads)
        keys, values = ([torch.empty(size, device=device) for _ in range(shape.layers)] for _ in range(2))
        return cls(keys, values)

    def select(self, rows: Tensor) -> Cache:
        """The given rows only; positions not filled yet are not copied."""

        def pick(whole: Tensor) -> Tensor:
            fresh = torch.empty((len(rows), *whole.shape[1:]), device=whole.device, dtype=whole.dtype)
            fresh[:, :, : self.length] = whole[rows, :, : self.length]
            return fresh

        return Cache([pick(k) for k in self.keys], [pick(v) for v in self.values], self.length)


class Norm(nn.Module):
    """RMSNorm, in single precision whatever the autocast."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * rms(x)


def rms(x: Tensor) -> Tensor:
    """x over its root mean square."""
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON)


def rotary(positions: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines ``[T, width]``, both halves alike."""
    frequency = THETA ** (-torch.arange(0, width, 2, device=positions.device).float() / width)
    angle = positions.float()[:, None] * frequency
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate pairs (i, i + half): the layout of the Hugging Face weights."""
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cos.to(x.dtype) + turned * sin.to(x.dtype)


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(shape.width, shape.width, bias=False))

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(
        self,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        bias: Tensor | None,
        past: tuple[Tensor, Tensor, int] | None,
    ) -> Tensor:
        q = rotate(self.split(self.q_proj(x)), cos, sin)
        k = rotate(self.split(self.k_proj(x)), cos, sin)
        v = self.split(self.v_proj(x))
        causal = bias is None
        if past is not None:
            keys, values, start = past
            end = start + x.shape[1]
            keys[:, :, start:end], values[:, :, start:end] = k, v
            k, v = keys[:, :, :end], values[:, :, :end]
            causal = start == 0  # afterwards one token at a time, which sees everything
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal)
        return self.o_proj(out.transpose(1, 2).flatten(-2))


class Feed(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.width, shape.inner, bias=False)
        self.up_proj = nn.Linear(shape.width, shape.inner, bias=False)
        self.down_proj = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.self_attn = Attention(shape)
        self.mlp = Feed(shape)
        self.input_layernorm = Norm(shape.width)
        self.post_attention_layernorm = Norm(shape.width)

    def forward(
        self,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        bias: Tensor | None,
        past: tuple[Tensor, Tensor, int] | None = None,
    ) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, bias, past)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width)


class Llama(nn.Module):
    """A decoder whose ``state_dict`` is what ``LlamaForCausalLM`` loads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = Body(shape)
        self.lm_head = nn.Linear(shape.width, VOCABULARY, bias=False)
        self.apply(self._start)
        # Residual branches start smaller, so that depth does not change the scale of the stream (GPT-2).
        for name, weight in self.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                nn.init.normal_(weight, std=0.02 * (256 / shape.width) ** 0.5 / (2 * shape.layers) ** 0.5)

    def _start(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02 * (256 / self.shape.width) ** 0.5)

    def stream(self, tokens: Tensor, bias: Tensor | None = None, cache: Cache | None = None) -> list[Tensor]:
        """The residual stream ``[B, T, D]`` before every layer and after the last one."""
        start = cache.length if cache else 0
        positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        cos, sin = rotary(positions, self.shape.width // self.shape.heads)
        found = [self.model.embed_tokens(tokens)]
        for i, layer in enumerate(self.model.layers):
            past = (cache.keys[i], cache.values[i], start) if cache else None
            found.append(layer(found[-1], cos, sin, bias, past))
        if cache:
            cache.length += tokens.shape[1]
        return found

    def forward(self, tokens: Tensor, bias: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """Logits ``[B, T, V]``. ``bias`` is added to attention scores; without it, attention is causal."""
        return self.lm_head(self.model.norm(self.stream(tokens, bias, cache)[-1]))

    def features(self, tokens: Tensor) -> Tensor:
        """What the heads read, ``[B, T, 2 D]``: the stream at two thirds of the depth, and the last norm."""
        found = self.stream(tokens)
        return torch.cat([rms(found[self.middle]), self.model.norm(found[-1])], dim=-1)

    @property
    def middle(self) -> int:
        """After how many layers the first half of the features is read."""
        return max(1, self.shape.layers * 2 // 3)

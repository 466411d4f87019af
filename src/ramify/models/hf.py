"""Any causal language model of `transformers`, on CPU or GPU, behind the same protocol.

Rows are left-padded, with the mask and the positions said explicitly, so ragged batches are right whatever
the model's own defaults. Kernels here choose their order of summation by shape: a row's logits agree across
batches to rounding, not bit for bit, so a leaf can differ between batches where two tokens are nearly tied.
``Pocket`` is the engine that promises more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.describe import method
from ramify.errors import require

__all__ = ["HF", "HFState"]


@dataclass(frozen=True, slots=True, eq=False)
class HFState:
    """Trajectories read so far. Appending makes new tensors, so an older state stays whole."""

    scores: Any  # [B, V] the logits of the next token
    mask: Any  # [B, T] which cached positions are the row's own
    cache: tuple[tuple[Any, Any], ...]  # by layer, keys and values [B, heads, T, d]


@method
class HF:
    """A causal LM by ``name``: a folder or a hub id at a ``revision``.

    ``arrays`` says what ``logits`` are: "numpy", or "torch" to leave them on the device.
    """

    name: str
    device: str = "cpu"
    precision: str = "float32"
    arrays: str = "numpy"
    revision: str | None = None

    def __post_init__(self) -> None:
        require(self.arrays in ("numpy", "torch"), "HF.arrays", self.arrays, "use 'numpy' or 'torch'")

    @property
    def eos(self) -> int:
        """The token that ends a trajectory."""
        eos = _network(self).generation_config.eos_token_id
        return int(eos[0] if isinstance(eos, list) else eos)

    def start(self, prompts: Sequence[Sequence[int]]) -> HFState:
        """The state after reading each prompt, a row a prompt; equal prompts are read once."""
        torch = _torch()
        given = [tuple(int(token) for token in prompt) for prompt in prompts]
        distinct = list(dict.fromkeys(given))
        for prompt in distinct:
            require(prompt, "prompt", prompt, "give at least one token, such as the model's first one")
        width = max(map(len, distinct))
        token = torch.tensor([(0,) * (width - len(p)) + p for p in distinct], device=self.device)
        missing = torch.tensor([width - len(p) for p in distinct], device=self.device)
        mask = torch.arange(width, device=self.device) >= missing[:, None]
        state = self._read(token, mask, ())
        row = {prompt: i for i, prompt in enumerate(distinct)}
        return self.select([state], [row[prompt] for prompt in given])

    def logits(self, state: HFState) -> Array:
        """Next-token logits ``[B, V]``, in single precision at least."""
        return state.scores.cpu().numpy() if self.arrays == "numpy" else state.scores

    def advance(self, state: HFState, tokens: Array) -> HFState:
        """The state after appending ``tokens [B]``."""
        torch = _torch()
        token = torch.as_tensor(tokens, device=self.device)[:, None]
        mask = torch.cat([state.mask, torch.ones_like(token, dtype=torch.bool)], dim=1)
        return self._read(token, mask, state.cache)

    def select(self, states: Sequence[HFState], rows: Any) -> HFState:
        """The given rows of several states, counted through them: fork, prune and merge in one call."""
        torch = _torch()
        row = np.arange(sum(len(state.mask) for state in states))[rows]
        index = torch.as_tensor(row, device=self.device)
        mask = _stack([state.mask for state in states], 1)[index]
        # Positions before the longest row that is left hold nothing of anyone.
        spare = mask.shape[1] - int(mask.sum(dim=1).max()) if len(row) else 0

        def chosen(parts: Sequence[Any]) -> Any:
            return _stack(parts, 2)[index, :, spare:]

        layers = zip(*(state.cache for state in states), strict=True)
        cache = tuple((chosen([k for k, _ in layer]), chosen([v for _, v in layer])) for layer in layers)
        return HFState(torch.cat([state.scores for state in states])[index], mask[:, spare:], cache)

    def text(self, tokens: Sequence[int]) -> str:
        """The string that these tokens spell."""
        return str(_tokenizer(self).decode(list(map(int, tokens)), skip_special_tokens=True))

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens that spell a string, and nothing around them."""
        return tuple(_tokenizer(self).encode(text, add_special_tokens=False))

    def _read(self, token: Any, mask: Any, cache: tuple[tuple[Any, Any], ...]) -> HFState:
        """Run ``token [B, n]`` after what is cached; ``mask [B, T + n]`` covers both."""
        from transformers import DynamicCache

        torch, new = _torch(), token.shape[1]
        position = (mask.long().cumsum(dim=1) - 1).clamp(min=0)[:, -new:]
        past = DynamicCache()
        for layer, (keys, values) in enumerate(cache):
            past.update(keys, values, layer)
        with torch.inference_mode():
            out = _network(self)(
                input_ids=token,
                attention_mask=mask.long(),
                position_ids=position,
                past_key_values=past,
                use_cache=True,
                logits_to_keep=1,
            )
        scores = out.logits[:, -1]
        scores = scores if scores.dtype == torch.float64 else scores.float()
        layers = out.past_key_values.layers
        return HFState(scores, mask, tuple((layer.keys, layer.values) for layer in layers))


def _stack(parts: Sequence[Any], axis: int) -> Any:
    """Rows of several tensors, left-padded with zeros along ``axis`` to the longest."""
    torch = _torch()
    width = max(part.shape[axis] for part in parts)

    def widen(part: Any) -> Any:
        missing = width - part.shape[axis]
        if not missing:
            return part
        shape = (*part.shape[:axis], missing, *part.shape[axis + 1 :])
        return torch.cat([torch.zeros(shape, dtype=part.dtype, device=part.device), part], dim=axis)

    return torch.cat(list(map(widen, parts)))


def _torch() -> Any:
    import torch

    return torch


@lru_cache(maxsize=4)
def _network(model: HF) -> Any:
    from transformers import AutoModelForCausalLM

    dtype = getattr(_torch(), model.precision)
    network = AutoModelForCausalLM.from_pretrained(model.name, revision=model.revision or "main", dtype=dtype)
    return network.to(model.device).eval()


@lru_cache(maxsize=4)
def _tokenizer(model: HF) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model.name, revision=model.revision or "main")

"""The layout on disk: ``config.json``, ``model.safetensors``, and ``tokenizer.json`` or ``vocab.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ramify.errors import InvalidValue, require

__all__ = ["Config", "Vocabulary", "read_config", "read_tensors", "read_vocabulary"]

SHOWN = 80  # characters of a text that a message quotes


@dataclass(frozen=True, slots=True)
class Config:
    """The dimensions of a Llama-layout decoder."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_width: int
    inner: int  # of the SwiGLU
    context: int
    theta: float  # base of the rotary frequencies
    epsilon: float  # of RMSNorm
    tied: bool  # whether the head is the embedding
    eos: int

    @property
    def mixed(self) -> int:
        """Columns of queries, keys and values together."""
        return (self.heads + 2 * self.kv_heads) * self.head_width


def read_config(folder: Path) -> Config:
    """The fields of ``config.json`` that the engine implements; whatever it does not is refused here."""
    raw = json.loads((folder / "config.json").read_text())
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    model, act = raw.get("model_type"), raw.get("hidden_act", "silu")
    require(model == "llama", "config.model_type", model, "use a Llama-layout model")
    require(kind == "default", "config.rope_type", kind, "use unscaled rotary embeddings")
    require(act == "silu", "config.hidden_act", act, "use silu")
    for bias in ("attention_bias", "mlp_bias"):
        require(not raw.get(bias), f"config.{bias}", raw.get(bias), "use a model without biases")
    heads, width, eos = raw["num_attention_heads"], raw["hidden_size"], raw["eos_token_id"]
    return Config(
        vocabulary=raw["vocab_size"],
        width=width,
        layers=raw["num_hidden_layers"],
        heads=heads,
        kv_heads=raw.get("num_key_value_heads") or heads,
        head_width=raw.get("head_dim") or width // heads,
        inner=raw["intermediate_size"],
        context=raw["max_position_embeddings"],
        theta=float(rope.get("rope_theta", raw.get("rope_theta", 10000.0))),
        epsilon=float(raw.get("rms_norm_eps", 1e-6)),
        tied=bool(raw.get("tie_word_embeddings", False)),
        eos=eos[0] if isinstance(eos, list) else eos,
    )


DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read_tensors(file: Path) -> dict[str, np.ndarray]:
    """Every tensor of a safetensors file, in its stored precision (bfloat16 as float32, which holds it).

    The format: the header's length (little-endian u64), JSON {name: dtype, shape, data_offsets}, the data.
    """
    data = np.fromfile(file, dtype=np.uint8)
    start = 8 + int(data[:8].view("<u8")[0])
    header: Mapping[str, Any] = json.loads(bytes(data[8:start]))
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in DTYPES:
            raise InvalidValue(f"{file}: {name} is {entry['dtype']}: store weights as one of {sorted(DTYPES)}")
        low, high = entry["data_offsets"]
        # A copy, because the header may leave the data unaligned.
        flat = np.frombuffer(data[start + low : start + high].tobytes(), dtype=DTYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":
            flat = (flat.astype(np.uint32) << np.uint32(16)).view(np.float32)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Token strings by id. ``special`` ones are never spelled out; text is read by longest match."""

    tokens: tuple[str, ...]
    special: frozenset[int]

    def decode(self, ids: Sequence[int]) -> str:
        """The string that these tokens spell.

        >>> Vocabulary(("<eos>", "a", "b"), frozenset({0})).decode([1, 2, 0])
        'ab'
        """
        return "".join(self.tokens[i] for i in ids if i not in self.special)

    def encode(self, text: str) -> tuple[int, ...]:
        """The ids of a string.

        >>> Vocabulary(("<eos>", "a", "b"), frozenset({0})).encode("ab<eos>")
        (1, 2, 0)
        """
        ids = {token: i for i, token in enumerate(self.tokens) if token}
        pattern = "|".join(re.escape(token) for token in sorted(ids, key=len, reverse=True))
        found = re.findall(pattern, text, flags=re.DOTALL) if pattern else []
        if sum(map(len, found)) != len(text):
            strange = sorted(set(re.sub(pattern, "", text)) if pattern else set(text))
            shown = repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}..."
            raise InvalidValue(f"{shown} has {strange}: the vocabulary cannot spell it")
        return tuple(ids[token] for token in found)


def read_vocabulary(folder: Path, size: int) -> Vocabulary:
    """``tokenizer.json`` as `tokenizers` writes it, if it has no merges; else ``vocab.json``: {token: id}."""
    file = folder / "tokenizer.json"
    if file.exists():
        raw = json.loads(file.read_text(encoding="utf-8"))
        require(not raw["model"].get("merges"), "tokenizer merges", "...", "use a character-level vocabulary")
        ids, added = dict(raw["model"]["vocab"]), raw.get("added_tokens", [])
    else:
        ids, added = json.loads((folder / "vocab.json").read_text(encoding="utf-8")), []
    ids |= {entry["content"]: entry["id"] for entry in added}
    require(max(ids.values()) < size, "tokenizer.vocab", max(ids.values()), f"use ids below vocab_size {size}")
    tokens = [""] * size
    for token, i in ids.items():
        tokens[i] = token
    return Vocabulary(tuple(tokens), frozenset(entry["id"] for entry in added if entry.get("special")))

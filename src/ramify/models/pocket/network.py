"""The forward pass: a Llama-layout decoder over a paged cache, one path for prefill and decode.

    x   = embed[token]
    x  += out(attend(rotate(q), rotate(k), v)),   [q k v] = rms(x) W_qkv
    x  += (silu(g) ⊙ u) W_down,                   [g u] = rms(x) W_up
    logits = rms(x) W_head

The gains of RMSNorm, the 1/√d of attention and the sign in silu(g) = g / (1 + e^-g) are folded into the
weights. A query row is one position of one trajectory: a decoding step has a row a trajectory, a prefill a
row a prompt token, and nothing else differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ramify.errors import require
from ramify.models.pocket.attention import Plan, attend
from ramify.models.pocket.cache import BLOCK, Pool
from ramify.models.pocket.checkpoint import Config, read_config, read_tensors
from ramify.models.pocket.product import PANEL, WIDTH, linear, panels, pieces, rows_per_call

__all__ = ["Network", "load_network"]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One decoder layer; every matrix ``[K, N]`` acts from the right and is kept in panels."""

    qkv: np.ndarray  # [D, (H + 2 G) d]
    out: np.ndarray  # [H d, D]
    up: np.ndarray  # [D, 2 F] gate, then up, both negated
    down: np.ndarray  # [F, D]


See: TypeAlias = Callable[[int, np.ndarray], np.ndarray]
"""(layer, its queries, keys and values [R, H + 2 G, d]) -> [R, H d]: the new ones are written to the cache first"""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The weights of a decoder, ready to run."""

    config: Config
    embed: np.ndarray  # [V, D]
    layers: tuple[Layer, ...]
    head: np.ndarray  # [D, V]
    gain: np.ndarray  # [D] of the last norm; the head has it folded in
    phase: np.ndarray  # [context, 1, d / 2] complex
    tile: int  # rows a product may take, see product.rows_per_call
    kernel: str = "numpy"  # what attention is written in

    def pool(self) -> Pool:
        """An empty cache for this network."""
        return Pool(self.config.layers, self.config.kv_heads, self.config.head_width, self.embed.dtype.name)

    def forward(
        self, pool: Pool, token: np.ndarray, position: np.ndarray, table: np.ndarray, wanted: np.ndarray
    ) -> np.ndarray:
        """Read ``token [R]`` at ``position [R]`` of the rows of ``table [R, C]``: logits of those ``wanted``."""
        *_, x = self.layer_by_layer(pool, token, position, table)
        logits = linear(self._rms(x[wanted]), self.head, self.tile)
        return np.ascontiguousarray(logits[:, : self.config.vocabulary])

    def features(
        self, pool: Pool, token: np.ndarray, position: np.ndarray, table: np.ndarray, wanted: np.ndarray, middle: int
    ) -> np.ndarray:
        """The same reading, ``[wanted, 2 D]``: the stream after ``middle`` layers, normed, and the last norm's."""
        streams = self.layer_by_layer(pool, token, position, table)
        halfway = self._rms(next(islice(streams, middle - 1, None))[wanted])
        *_, x = chain([halfway], streams)
        return np.concatenate([halfway, self._rms(x[wanted]) * self.gain], axis=1)

    def both(
        self, pool: Pool, token: np.ndarray, position: np.ndarray, table: np.ndarray, wanted: np.ndarray, middle: int
    ) -> np.ndarray:
        """Logits and features in one reading, ``[wanted, V + 2 D]``: the bits of ``forward`` and of ``features``."""
        streams = self.layer_by_layer(pool, token, position, table)
        halfway = self._rms(next(islice(streams, middle - 1, None))[wanted])
        *_, x = chain([halfway], streams)
        last = self._rms(x[wanted])
        logits = linear(last, self.head, self.tile)[:, : self.config.vocabulary]
        return np.concatenate([logits, halfway, last * self.gain], axis=1)

    def layer_by_layer(
        self, pool: Pool, token: np.ndarray, position: np.ndarray, table: np.ndarray
    ) -> Iterator[np.ndarray]:
        """The residual stream ``[R, D]`` after each layer: one array, which the next layer adds to.

        Rows may be read on different threads if what each attends to is its own or was there before.
        """
        config, x = self.config, self.embed[token]
        see = self._attention(pool, position, table)
        for i, layer in enumerate(self.layers):
            mixed = linear(self._rms(x), layer.qkv, self.tile)[:, : config.mixed]
            seen = see(i, mixed.reshape(len(x), -1, config.head_width))
            x += linear(seen, layer.out, self.tile)[:, : config.width]
            inner = linear(self._rms(x), layer.up, self.tile)
            gate, up = inner[:, : config.inner], inner[:, config.inner : 2 * config.inner]  # -g and -u
            with np.errstate(over="ignore"):  # exp(-g) = inf is the right limit in silu
                hidden = gate * up / (1 + np.exp(gate))
            x += linear(hidden, layer.down, self.tile)[:, : config.width]
            yield x

    def _attention(self, pool: Pool, position: np.ndarray, table: np.ndarray) -> See:
        """What rows at ``position [R]`` of ``table [R, C]`` see, layer by layer."""
        config, phase = self.config, self.phase[position]
        if self.kernel == "numba":
            from ramify.models.pocket.compiled import attention  # numba is optional, and slow to import

            return attention(config, pool, position, table, phase)
        plan = Plan.of(table, position, config.heads // config.kv_heads, self.tile, self.embed.dtype)
        block, offset = table[np.arange(position.size), position // BLOCK], position % BLOCK
        turned = config.heads + config.kv_heads

        def see(layer: int, mixed: np.ndarray) -> np.ndarray:
            both = rotate(mixed[:, :turned], phase)
            pool.write(layer, block, offset, both[:, config.heads :], mixed[:, turned:])
            return attend(plan, both[:, : config.heads], pool.keys[layer], pool.values[layer])

        return see

    def _rms(self, x: np.ndarray) -> np.ndarray:
        """x / √(mean x² + ε), over the last axis."""
        square = np.vecdot(x, x) / x.dtype.type(x.shape[-1])
        scaled: np.ndarray = x / np.sqrt(square + x.dtype.type(self.config.epsilon))[:, None]
        return scaled


def rotate(x: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """Rotary embedding (Su et al., 2021): neighbours in ``x [R, H, d]`` as complex numbers times phase."""
    turned: np.ndarray = x.view(phase.dtype) * phase
    return turned.view(x.dtype)


def load_network(folder: Path, precision: str, kernel: str = "numpy") -> Network:
    """The network in a checkpoint folder, computing in ``precision``."""
    config, tensors = read_config(folder), read_tensors(folder / "model.safetensors")
    there = kernel == "numpy" or find_spec(kernel) is not None
    require(there, "Pocket.kernel", kernel, "pip install 'ramify[fast]', or use 'numpy'")
    require(config.head_width % WIDTH == 0, "head_dim", config.head_width, f"use a multiple of {WIDTH}")

    def weight(*names: str, gain: str = "") -> np.ndarray:
        """The matrices side by side, transposed, rows scaled by the gain; in double until the very end."""
        stacked = np.concatenate([tensors[name].astype(np.float64) for name in names]).T
        return stacked * tensors[gain].astype(np.float64)[:, None] if gain else stacked

    turned = config.heads + config.kv_heads

    def interleaved(matrix: np.ndarray) -> np.ndarray:
        """The two halves of each head's columns, which a rotation pairs up, made neighbours."""
        return matrix.reshape(config.width, turned, 2, -1).swapaxes(2, 3).reshape(config.width, -1)

    def layer(i: int) -> Layer:
        at, mlp = f"model.layers.{i}.self_attn.", f"model.layers.{i}.mlp."
        first, second = (f"model.layers.{i}.{name}_layernorm.weight" for name in ("input", "post_attention"))
        qkv = weight(at + "q_proj.weight", at + "k_proj.weight", at + "v_proj.weight", gain=first)
        qkv[:, : config.heads * config.head_width] /= config.head_width**0.5
        qkv[:, : turned * config.head_width] = interleaved(qkv[:, : turned * config.head_width])
        up = -weight(mlp + "gate_proj.weight", mlp + "up_proj.weight", gain=second)
        out, down = weight(at + "o_proj.weight"), weight(mlp + "down_proj.weight")
        return Layer(qkv=final(qkv), out=final(out), up=final(up), down=final(down))

    def final(matrix: np.ndarray) -> np.ndarray:
        return panels(matrix.astype(precision))

    embed = "model.embed_tokens.weight"
    layers = tuple(map(layer, range(config.layers)))
    head = final(weight(embed if config.tied else "lm_head.weight", gain="model.norm.weight"))
    # The angles are rounded as the model was trained: in float32 as transformers does, in float64 exactly.
    half = np.arange(0, config.head_width, 2) / config.head_width
    angle = np.arange(config.context, dtype=precision)[:, None] * (config.theta**-half).astype(precision)
    size = np.dtype(precision).itemsize
    inners = {config.width, config.inner, config.heads * config.head_width}
    shapes = {(high - low, PANEL) for inner in inners for low, high in pieces(inner, size)}
    shapes |= {(config.head_width, BLOCK), (BLOCK, config.head_width)}
    return Network(
        config=config,
        embed=tensors[embed].astype(precision),
        layers=layers,
        head=head,
        gain=tensors["model.norm.weight"].astype(precision),
        phase=(np.cos(angle) + 1j * np.sin(angle))[:, None],
        tile=rows_per_call(precision, tuple(sorted(shapes))),
        kernel=kernel,
    )

"""What a checkpoint's own hidden states say about a trajectory, at the newline that ends a line:

    x     = concat(rms(h_m), h_f)                        [2 D] halfway up, and after the last norm
    score = sigmoid(w · silu(U x + b) + c)

``value`` is the probability that the trajectory will end in a right answer, ``process`` that a step is right, and
``outcome`` that a finished trajectory's answer is right; all without a reference. ``training/README.md`` says how they
were fitted, ``heads.json`` beside the weights how good they are on held-out questions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ramify.bank import Bank, Signal
from ramify.describe import method
from ramify.errors import InvalidValue, require
from ramify.ledger import Work
from ramify.models.pocket.checkpoint import read_tensors
from ramify.models.pocket.model import DATA, Pocket, engine_of
from ramify.models.pocket.product import PANEL, linear, panels, pieces, rows_per_call

__all__ = ["Heads", "Lines", "OutcomeHead", "line_ends", "middle_of", "read_features", "scores"]

TOGETHER = 64  # sequences read at a time, which bounds the memory


class Lines(NamedTuple):
    """Scores of the lines of several sequences."""

    end: tuple[np.ndarray, ...]  # by sequence, [lines] tokens up to and including the newline
    score: tuple[np.ndarray, ...]  # by sequence, [lines] in (0, 1)
    cost: np.ndarray  # [B] tokens read, were the sequence read alone; what sequences share is read once


@method
class Heads:
    """The heads of the checkpoint ``name``. Sequences are tokens, the prompt's included.

    A score is the same bits whatever the company. Reading t tokens takes a forward pass of t tokens.
    """

    name: str

    def value(self, sequences: Sequence[Sequence[int]]) -> Lines:
        """P(the trajectory will end in a right answer), at the end of every line, the prompt's included."""
        return self._read("value", sequences, [self._newlines(each) for each in sequences])

    def process(self, prompts: Sequence[Sequence[int]], written: Sequence[Sequence[int]]) -> Lines:
        """P(the step is right), at the end of every line ``written`` after its prompt."""
        sequences = [(*prompt, *rest) for prompt, rest in zip(prompts, written, strict=True)]
        ends = [self._newlines(each) for each in sequences]
        ends = [end[end > len(prompt)] for end, prompt in zip(ends, prompts, strict=True)]
        return self._read("process", sequences, ends)

    def outcome(self, sequences: Sequence[Sequence[int]]) -> Signal:
        """P(the answer is right), at the last line of trajectories that ended; NaN where one did not."""
        over = [len(each) > 0 and each[-1] == Pocket(self.name).eos for each in sequences]
        ends = [self._newlines(each)[-1:] if ended else _NONE for each, ended in zip(sequences, over, strict=True)]
        return _last(self._read("outcome", sequences, ends))

    def last_value(self, sequences: Sequence[Sequence[int]]) -> Signal:
        """``value`` at the last complete line only; NaN before the first."""
        return _last(self._read("value", sequences, [self._newlines(each)[-1:] for each in sequences]))

    def _newlines(self, sequence: Sequence[int]) -> np.ndarray:
        return line_ends(self.name, sequence)

    def _read(self, name: str, sequences: Sequence[Sequence[int]], ends: Sequence[np.ndarray]) -> Lines:
        """The scores of one head at the given ends of lines."""
        features, cost = read_features(self.name, sequences, ends)
        return Lines(tuple(ends), tuple(scores(self.name, name, each) for each in features), cost)


def line_ends(name: str, sequence: Sequence[int]) -> np.ndarray:
    """``[lines]`` how many tokens there are up to and including each newline."""
    newline = Pocket(name).encode("\n")[0]
    return np.flatnonzero(np.asarray(sequence, np.int64) == newline) + 1


def read_features(
    name: str, sequences: Sequence[Sequence[int]], ends: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
    """The features ``[ends, 2 D]`` of each sequence, all of it read; and how many tokens that was, were it alone.

    Nothing after the last end that is asked for is read, and nothing twice.
    """
    model, engine = Pocket(name), engine_of(Pocket(name))
    features, width = partial(engine.network.features, middle=middle_of(name)), 2 * engine.network.config.width
    asked = [
        (tuple(map(int, sequence[: end[-1] if end.size else 0])), end.tobytes())
        for sequence, end in zip(sequences, ends, strict=True)
    ]
    found: dict[tuple[tuple[int, ...], bytes], np.ndarray] = {((), b""): np.empty((0, width), np.float32)}
    todo = [each for each in dict.fromkeys(asked) if each not in found]
    for low in range(0, len(todo), TOGETHER):
        some = todo[low : low + TOGETHER]
        cut, marks = [tokens for tokens, _ in some], []
        for tokens, end in some:
            require(len(tokens) <= model.context, "len(sequence)", len(tokens), f"use up to {model.context} tokens")
            engine.check(min(tokens), max(tokens))
            marks.append(np.isin(np.arange(1, len(tokens) + 1), np.frombuffer(end, np.int64)))
        with engine.lock:
            x, *_ = engine.read(cut, marks, features, width)
        found |= dict(zip(some, np.split(x, np.cumsum([mark.sum() for mark in marks])[:-1]), strict=True))
    return [found[each] for each in asked], np.array([len(tokens) for tokens, _ in asked], np.int64)


def scores(name: str, head: str, features: np.ndarray) -> np.ndarray:
    """``features [M, 2 D]`` to the probabilities ``[M]`` that a head gives."""
    return _head(name, head)(features) if len(features) else np.empty(0)


@method
class OutcomeHead:
    """Evidence: the checkpoint's own estimate that each finished candidate's answer is right; NaN where unfinished.

    The bank must have recorded its tokens, of this checkpoint's vocabulary. The cost is the tokens read.
    """

    name: str

    def __call__(self, bank: Bank) -> Signal:
        if bank.tokens is None:
            raise InvalidValue("bank.tokens = None: record tokens, or score the leaves with Heads(...).outcome")
        recorded, values, cost = bank.tokens.start >= 0, np.full(bank.shape, np.nan), np.zeros(bank.shape, np.int64)
        prompts = [Pocket(self.name).encode(question.prompt) for question in bank.questions]
        written = [(q, bank.tokens.of(q, n)["token"]) for q, n in np.argwhere(recorded).tolist()]
        signal = Heads(self.name).outcome([(*prompts[q], *tokens.tolist()) for q, tokens in written])
        values[recorded], cost[recorded] = signal
        return Signal(values, cost)

    def worst(self, prompt: int, cap: int) -> Work:
        """What a leaf of at most ``cap`` tokens can cost to read: a run asks before it launches one."""
        return Work(generated=prompt + cap)


_NONE = np.empty(0, np.int64)


def _last(lines: Lines) -> Signal:
    """The last score of each sequence."""
    return Signal(np.array([score[-1] if score.size else np.nan for score in lines.score]), lines.cost)


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The weights of one head."""

    up: np.ndarray  # [2 D, F] in panels
    bias: np.ndarray  # [F]
    down: np.ndarray  # [F]
    shift: np.ndarray  # [1]
    tile: int

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """``x [M, 2 D]`` to probabilities ``[M]``."""
        hidden = linear(x, self.up, self.tile)[:, : self.bias.size] + self.bias
        with np.errstate(over="ignore"):
            hidden /= 1 + np.exp(-hidden)
            # In double at the end, or every score near one would be a tie.
            logit = (np.vecdot(hidden, self.down) + self.shift).astype(np.float64)
            score: np.ndarray = 1 / (1 + np.exp(-logit))
        return score


@cache
def _head(name: str, head: str) -> Head:
    file = _file(name)
    tensors = read_tensors(file)
    if f"{head}.up.weight" not in tensors:
        known = sorted({tensor.split(".")[0] for tensor in tensors})
        raise InvalidValue(f"{file} has no {head} head: use {known}, or fit it (training/README.md)")
    up, bias, down, shift = (
        tensors[f"{head}.{part}"].astype(np.float32) for part in ("up.weight", "up.bias", "down.weight", "down.bias")
    )
    width = 2 * engine_of(Pocket(name)).network.config.width
    require(up.shape[1] == width, f"{head}.up.weight", up.shape, f"use {width} features, as this checkpoint has")
    tile = rows_per_call("float32", tuple((high - low, PANEL) for low, high in pieces(width, 4)))
    return Head(panels(up.T), bias, down[0], shift, tile)


@cache
def middle_of(name: str) -> int:
    """After how many layers the first half of the features is read."""
    return int(json.loads((_file(name).parent / "heads.json").read_text())["features"]["middle_layer"])


def _file(name: str) -> Path:
    file = Pocket(name).folder / "heads.safetensors"
    if not file.is_file():
        known = sorted(each.parent.name for each in DATA.glob("*/heads.safetensors"))
        remedy = f"use one of {known}, or fit heads for it (training/README.md)"
        raise InvalidValue(f"Heads.name = {name!r}: the checkpoint has no heads.safetensors; {remedy}")
    return file

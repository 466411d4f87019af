"""Fast scalar draws from a ``Key``: what the generators of the pocket tasks roll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ramify.keys import streams, uniform
from ramify.types import Key

__all__ = ["Dice"]

T = TypeVar("T")
BLOCK = 256  # variate i of a stream is uniform(step=i // BLOCK, index=i % BLOCK); part of the generated data


class Dice:
    """The uniforms of one stream, in order. ``ahead`` blocks are computed at once; it never changes a draw.

    >>> dice = Dice(Key("run", "q", 0, "question"))
    >>> [dice.below(6) for _ in range(8)]
    [0, 2, 0, 3, 1, 1, 2, 5]
    """

    __slots__ = ("_ahead", "_left", "_step", "_stream")

    def __init__(self, key: Key, ahead: int = 1) -> None:
        self._stream = streams([key])
        self._ahead, self._step = ahead, 0
        self._left: list[float] = []

    def random(self) -> float:
        """A uniform strictly inside (0, 1)."""
        if not self._left:
            steps = np.arange(self._step, self._step + self._ahead)[:, None]
            block = uniform(self._stream, step=steps, index=np.arange(BLOCK))
            self._left = block.ravel()[::-1].tolist()
            self._step += self._ahead
        return self._left.pop()

    def below(self, n: int) -> int:
        """A uniform integer in [0, n)."""
        return int(self.random() * n)

    def choice(self, items: Sequence[T]) -> T:
        """A uniform item."""
        return items[int(self.random() * len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in a uniform order (Fisher–Yates)."""
        order = list(items)
        for i in range(len(order) - 1, 0, -1):
            j = int(self.random() * (i + 1))
            order[i], order[j] = order[j], order[i]
        return order

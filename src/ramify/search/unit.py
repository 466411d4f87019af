"""By how much an expansion prolongs a prefix."""

from __future__ import annotations

from typing import TypeAlias

from ramify.describe import method
from ramify.errors import is_whole, require

__all__ = ["Chunk", "Rollout", "ToDelimiter", "TopTokens", "Unit"]


@method
class ToDelimiter:
    """A step, or a proposed thought: up to one of the tokens ``until``, itself included, of at most ``most`` tokens."""

    until: tuple[int, ...]
    most: int = 64

    def __post_init__(self) -> None:
        require(len(self.until) > 0, "ToDelimiter.until", self.until, "name a token that ends a step")
        require(is_whole(self.most, 1), "ToDelimiter.most", self.most, "use a number of tokens >= 1")


@method
class Chunk:
    """``n`` tokens; one is the token level."""

    n: int = 1

    def __post_init__(self) -> None:
        require(is_whole(self.n, 1), "Chunk.n", self.n, "use a number of tokens >= 1")


@method
class Rollout:
    """All the way to a leaf."""


@method
class TopTokens:
    """Enumerated, not drawn: the most likely next tokens under the raw model, as many as asked for.

    ``end`` is the model's end token. Nothing proposed these tokens, so they carry no log q: score them with the raw
    model's probabilities.
    """

    end: int

    def __post_init__(self) -> None:
        require(is_whole(self.end), "TopTokens.end", self.end, "use a token id >= 0")


Unit: TypeAlias = ToDelimiter | Chunk | Rollout | TopTokens

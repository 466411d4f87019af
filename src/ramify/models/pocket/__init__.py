"""The pocket engine: a tiny Llama-layout decoder in pure NumPy, bit for bit the same in any batch."""

from ramify.models.pocket.heads import Heads, Lines, OutcomeHead, ValueHead
from ramify.models.pocket.model import Pocket, State

__all__ = ["Heads", "Lines", "OutcomeHead", "Pocket", "State", "ValueHead"]

"""The pocket engine: a tiny Llama-layout decoder in pure NumPy, bit for bit the same in any batch."""

from ramify.models.pocket.evaluators import FinishedHead, ProcessHead, ValueHead
from ramify.models.pocket.heads import Heads, Lines, OutcomeHead
from ramify.models.pocket.model import Pocket, State

__all__ = ["FinishedHead", "Heads", "Lines", "OutcomeHead", "Pocket", "ProcessHead", "State", "ValueHead"]

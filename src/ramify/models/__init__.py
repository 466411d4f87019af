"""Models behind one protocol, ``start / logits / advance / select``, and the loop that makes one a ``Sampler``."""

from ramify.models.crew import Crew
from ramify.models.endpoint import Aimd, Endpoint, Interface, Retry, Timeouts
from ramify.models.hf import HF
from ramify.models.memory import Memory, Sharing
from ramify.models.pocket import FinishedHead, Heads, OutcomeHead, Pocket, ProcessHead, ValueHead
from ramify.models.sampler import LocalSampler, decode_with
from ramify.models.tabular import Leaves, Tabular, leaves

__all__ = [
    "HF",
    "Aimd",
    "Crew",
    "Endpoint",
    "FinishedHead",
    "Heads",
    "Interface",
    "Leaves",
    "LocalSampler",
    "Memory",
    "OutcomeHead",
    "Pocket",
    "ProcessHead",
    "Retry",
    "Sharing",
    "Tabular",
    "Timeouts",
    "ValueHead",
    "decode_with",
    "leaves",
]

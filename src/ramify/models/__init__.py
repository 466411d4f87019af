"""Models behind one protocol, ``start / logits / advance / select``, and the loop that makes one a ``Sampler``."""

from ramify.models.sampler import LocalSampler, decode_with
from ramify.models.tabular import Leaves, Tabular, leaves

__all__ = ["Leaves", "LocalSampler", "Tabular", "decode_with", "leaves"]

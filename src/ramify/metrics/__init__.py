"""How good a bank and a system are: arrays in, ``Estimate`` out."""

from ramify.metrics.estimate import Estimate

__all__ = ["Estimate"]

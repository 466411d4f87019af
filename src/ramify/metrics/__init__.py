"""How good a bank and a system are: arrays in, ``Estimate`` out."""

from ramify.metrics.estimate import Estimate

__all__ = ["Estimate"]

# Comparison: shared-bank curves, rankings, diagnostics, reruns.
from ramify.metrics.bankcurve import BUDGETS, BankCurve, Diagnostic, deployable
from ramify.metrics.exact import available, best_of_n, plurality, selected, strict_majority

__all__ += [
    "BUDGETS",
    "BankCurve",
    "Diagnostic",
    "available",
    "best_of_n",
    "deployable",
    "plurality",
    "selected",
    "strict_majority",
]

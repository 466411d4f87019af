"""How good a bank and a system are: arrays in, ``Estimate`` out."""

from ramify.metrics.estimate import Estimate

__all__ = ["Estimate"]

# Comparison: shared-bank curves, rankings, diagnostics, reruns.
from ramify.metrics.bankcurve import BUDGETS, BankCurve, Diagnostic, deployable
from ramify.metrics.curves import Allocation, CostCurve, allocate, end_to_end, of_allocation, on_bank
from ramify.metrics.diagnostics import (
    Auc,
    PrecisionRecall,
    Reliability,
    Selection,
    auc,
    brier,
    calibration_error,
    over_optimisation,
    precision_recall,
    reliability,
    roc_auc,
)
from ramify.metrics.exact import available, best_of_n, plurality, selected, strict_majority
from ramify.metrics.gap import Gap, gap
from ramify.metrics.replay import StopReplay, diagnose, orders, replay, replay_stop

__all__ += [
    "BUDGETS",
    "Allocation",
    "Auc",
    "BankCurve",
    "CostCurve",
    "Diagnostic",
    "Gap",
    "PrecisionRecall",
    "Reliability",
    "Selection",
    "StopReplay",
    "allocate",
    "auc",
    "available",
    "best_of_n",
    "brier",
    "calibration_error",
    "deployable",
    "diagnose",
    "end_to_end",
    "gap",
    "of_allocation",
    "on_bank",
    "orders",
    "over_optimisation",
    "plurality",
    "precision_recall",
    "reliability",
    "replay",
    "replay_stop",
    "roc_auc",
    "selected",
    "strict_majority",
]

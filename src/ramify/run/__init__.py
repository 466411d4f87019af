"""The loops: one trajectory, complete leaves, prefixes. Budgeted, replayable, and the same whatever the concurrency."""

from ramify.run.leaf import Arm, Leaves, OnlineConfidence, Run, Step, run_leaves

__all__ = ["Arm", "Leaves", "OnlineConfidence", "Run", "Step", "run_leaves"]

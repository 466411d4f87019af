"""The loops: one trajectory, complete leaves, prefixes. Budgeted, replayable, and the same whatever the concurrency."""

from ramify.run.leaf import Arm, Leaves, OnlineConfidence, Run, Step, run_leaves
from ramify.run.prefix import Search, Searched, run_search
from ramify.run.sequential import (
    Append,
    BudgetForcing,
    Continue,
    Director,
    Halt,
    RejectToLength,
    Revise,
    SelfRefine,
    Sequential,
    Trace,
    Trajectory,
    run_sequential,
)

__all__ = [
    "Append",
    "Arm",
    "BudgetForcing",
    "Continue",
    "Director",
    "Halt",
    "Leaves",
    "OnlineConfidence",
    "RejectToLength",
    "Revise",
    "Run",
    "Search",
    "Searched",
    "SelfRefine",
    "Sequential",
    "Step",
    "Trace",
    "Trajectory",
    "run_leaves",
    "run_search",
    "run_sequential",
]

"""The loops: one trajectory, complete leaves, prefixes. Budgeted, replayable, and the same whatever the concurrency."""

from ramify.run.compute import Compute, Part
from ramify.run.interact import Environment, Interact
from ramify.run.leaf import Arm, Leaves, OnlineConfidence, Run, Step, run_leaves
from ramify.run.prefix import Search, Searched, run_search
from ramify.run.repeat import Execution, every_execution, executions
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
    "Compute",
    "Continue",
    "Director",
    "Environment",
    "Execution",
    "Halt",
    "Interact",
    "Leaves",
    "OnlineConfidence",
    "Part",
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
    "every_execution",
    "executions",
    "run_leaves",
    "run_search",
    "run_sequential",
]

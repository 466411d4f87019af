"""Studies: one file that says what is run, a folder that keeps it, and the record that reports read."""

from ramify.study.engine import Checked, check_study, run_study
from ramify.study.file import load, loads
from ramify.study.joined import Joined
from ramify.study.meter import Progress
from ramify.study.plan import Plan
from ramify.study.result import Agreed, Charge, Comparison, Coverage, Measure, Result, Row
from ramify.study.spec import Protocol, Reduced, Study, System, Tasked

__all__ = [
    "Agreed",
    "Charge",
    "Checked",
    "Comparison",
    "Coverage",
    "Joined",
    "Measure",
    "Plan",
    "Progress",
    "Protocol",
    "Reduced",
    "Result",
    "Row",
    "Study",
    "System",
    "Tasked",
    "check_study",
    "load",
    "loads",
    "run_study",
]

"""Answers: canonical forms for voting, and a ladder of checks that says which rung decided."""

from ramify.tasks.checking.canonical import Canonical, canonical, literal
from ramify.tasks.checking.ladder import RUNGS, Checked, Ladder
from ramify.tasks.checking.limits import Limits
from ramify.tasks.checking.pool import Pool

__all__ = ["RUNGS", "Canonical", "Checked", "Ladder", "Limits", "Pool", "canonical", "literal"]

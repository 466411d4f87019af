"""Studies: one file that says what is run, a folder that keeps it, and the record that reports read."""

from ramify.study.result import Agreed, Comparison, Coverage, Measure, Result, Row

__all__ = ["Agreed", "Comparison", "Coverage", "Measure", "Result", "Row"]

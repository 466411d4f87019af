"""Tasks: questions, references, parsing and grading."""

from ramify.tasks.checking import Ladder, Limits
from ramify.tasks.pocket import Arithmetic, Countdown, Modular, Sound, Verified, Verifier

__all__ = ["Arithmetic", "Countdown", "Ladder", "Limits", "Modular", "Sound", "Verified", "Verifier"]

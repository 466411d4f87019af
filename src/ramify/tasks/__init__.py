"""Tasks: questions, references, parsing and grading."""

from ramify.tasks.checking import Ladder, Limits
from ramify.tasks.pocket import Arithmetic, Countdown, Modular, Sound, Verified

__all__ = ["Arithmetic", "Countdown", "Ladder", "Limits", "Modular", "Sound", "Verified"]

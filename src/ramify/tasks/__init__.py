"""Tasks: questions, references, parsing and grading."""

from ramify.tasks.pocket import Arithmetic, Countdown, Modular, Sound, Verified

__all__ = ["Arithmetic", "Countdown", "Modular", "Sound", "Verified"]

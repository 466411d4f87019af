"""Tasks: questions, references, parsing and grading."""

from ramify.tasks.checking import Ladder, Limits
from ramify.tasks.extract import Boxed, CodeBlock, Flexible, LastNumber, Letter, Phrase
from ramify.tasks.pocket import Arithmetic, Countdown, Modular, Sound, Verified, Verifier

__all__ = [
    "Arithmetic",
    "Boxed",
    "CodeBlock",
    "Countdown",
    "Flexible",
    "Ladder",
    "LastNumber",
    "Letter",
    "Limits",
    "Modular",
    "Phrase",
    "Sound",
    "Verified",
    "Verifier",
]

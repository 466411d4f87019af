"""Generated reasoning tasks for an embedded model, with exact checks and ground-truth step labels."""

from ramify.tasks.pocket.alphabet import EOS, PAD, TOKENS, decode, encode
from ramify.tasks.pocket.arithmetic import Arithmetic
from ramify.tasks.pocket.check import Sound, Verified, Verifier, task_of
from ramify.tasks.pocket.countdown import Countdown
from ramify.tasks.pocket.examples import Curriculum, Examples
from ramify.tasks.pocket.family import EFFORTS
from ramify.tasks.pocket.modular import Modular
from ramify.tasks.pocket.trace import Parsed, Step

__all__ = [
    "EFFORTS",
    "EOS",
    "PAD",
    "TOKENS",
    "Arithmetic",
    "Countdown",
    "Curriculum",
    "Examples",
    "Modular",
    "Parsed",
    "Sound",
    "Step",
    "Verified",
    "Verifier",
    "decode",
    "encode",
    "task_of",
]

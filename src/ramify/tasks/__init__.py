"""Tasks: questions, references, parsing and grading."""

from ramify.tasks.aime2024 import AIME2024
from ramify.tasks.aime2025 import AIME2025
from ramify.tasks.aime2026 import AIME2026
from ramify.tasks.bbh import BBH
from ramify.tasks.brumo2025 import BRUMO2025
from ramify.tasks.checking import Ladder, Limits
from ramify.tasks.cmimc2025 import CMIMC2025
from ramify.tasks.describe_facts import DescribeFacts
from ramify.tasks.drawers import Drawers
from ramify.tasks.extract import Boxed, CodeBlock, Flexible, LastNumber, Letter, Phrase
from ramify.tasks.gsm8k import GSM8K
from ramify.tasks.hmmtfeb2025 import HMMTFeb2025
from ramify.tasks.hmmtfeb2026 import HMMTFeb2026
from ramify.tasks.hmmtnov2025 import HMMTNov2025
from ramify.tasks.humaneval import HumanEval
from ramify.tasks.math500 import MATH500
from ramify.tasks.mmlupro import MMLUPro
from ramify.tasks.own import Own
from ramify.tasks.pocket import Arithmetic, Countdown, Modular, Sound, Verified, Verifier
from ramify.tasks.sandbox import Box
from ramify.tasks.smt2025 import SMT2025
from ramify.tasks.supergpqa import SuperGPQA

__all__ = [
    "AIME2024",
    "AIME2025",
    "AIME2026",
    "BBH",
    "BRUMO2025",
    "CMIMC2025",
    "GSM8K",
    "MATH500",
    "SMT2025",
    "Arithmetic",
    "Box",
    "Boxed",
    "CodeBlock",
    "Countdown",
    "DescribeFacts",
    "Drawers",
    "Flexible",
    "HMMTFeb2025",
    "HMMTFeb2026",
    "HMMTNov2025",
    "HumanEval",
    "Ladder",
    "LastNumber",
    "Letter",
    "Limits",
    "MMLUPro",
    "Modular",
    "Own",
    "Phrase",
    "Sound",
    "SuperGPQA",
    "Verified",
    "Verifier",
]

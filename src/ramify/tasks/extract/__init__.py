"""From the text of a candidate to its answer: boxes, option letters, numbers, words, code, and flexible extraction."""

from ramify.tasks.extract.boxed import Boxed, last_box
from ramify.tasks.extract.choice import LastNumber, Letter, Phrase
from ramify.tasks.extract.code import CodeBlock
from ramify.tasks.extract.flexible import Flexible
from ramify.tasks.extract.parsed import STATUSES, Parsed
from ramify.tasks.extract.segments import PAIRS, Segments, segments

__all__ = [
    "PAIRS",
    "STATUSES",
    "Boxed",
    "CodeBlock",
    "Flexible",
    "LastNumber",
    "Letter",
    "Parsed",
    "Phrase",
    "Segments",
    "last_box",
    "segments",
]

"""Where the reasoning ends and the answer begins."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PAIRS", "Segments", "segments"]

# How models mark their reasoning: (opening, closing). The last closing counts, whatever is inside.
PAIRS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)


class Segments(NamedTuple):
    """``closed``: the reasoning has ended, or there was none."""

    reasoning: str
    final: str
    closed: bool


def segments(text: str, opened: bool = False) -> Segments:
    """The reasoning and what follows it. ``opened``: the prompt has opened the reasoning already.

    >>> segments("<think>2+2... </think>The answer is 4.")
    Segments(reasoning='<think>2+2... </think>', final='The answer is 4.', closed=True)
    >>> segments("<think>2+2 is \\boxed{5}? Wait").closed
    False
    >>> segments("No tags.").final
    'No tags.'
    """
    ends = [(text.rfind(closing) + len(closing)) for _, closing in PAIRS if closing in text]
    at = max(ends, default=0)
    # A tag that opens again after the last end, and never closes, is reasoning again.
    reopened = any(opening in text[at:] for opening, _ in PAIRS)
    if reopened or (opened and not ends):
        return Segments(text, "", False)
    return Segments(text[:at], text[at:], True)

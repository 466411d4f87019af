"""What a parse says, and the ways in which it may fail, each with a name of its own."""

from __future__ import annotations

from ramify.tasks.pocket.trace import Parsed

__all__ = ["STATUSES", "Parsed", "failed"]

OK, NOTHING, UNCLOSED, TRUNCATED = "ok", "no answer", "unclosed box", "truncated reasoning"
REFUSED, TIMEOUT, UNREAD = "refused by limits", "timeout", "parse error"
ALSO = {"missing": NOTHING, "malformed": UNREAD, "illegal": UNREAD}  # what the pocket tasks say
STATUSES = (OK, NOTHING, UNCLOSED, TRUNCATED, REFUSED, TIMEOUT, UNREAD)
"""ok; nothing that looks like an answer; a box or code block without its end; reasoning that never ended; larger than
the limits; the checker ran out of time; found, but not what the task asks for. Every status but ok is ⊥ and counts as
incorrect: it stays in the denominator."""


def failed(reasoning: str, status: str, artefact: str | None = None) -> Parsed:
    """⊥ with its reason, and what was there of it."""
    return Parsed(reasoning, None, artefact, status)

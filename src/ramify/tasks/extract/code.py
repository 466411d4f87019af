"""Programs: the last fenced code block after the reasoning."""

from __future__ import annotations

import re

from ramify.describe import method
from ramify.tasks.extract.parsed import NOTHING, OK, TRUNCATED, UNCLOSED, Parsed, failed
from ramify.tasks.extract.segments import segments

__all__ = ["CodeBlock"]

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[^\n]*\n", re.MULTILINE)
ALSO = {"python": ("py", "python3")}  # what else a fence may call a language
_END = re.compile(r"^[ \t]*```[ \t]*$", re.MULTILINE)


@method
class CodeBlock:
    """The last code block that names the language, or names none; ``bare`` takes a text without any block whole.

    >>> CodeBlock()("Use\\n```python\\ndef f(x):\\n    return x\\n```\\nDone.").answer
    'def f(x):\\n    return x\\n'
    >>> CodeBlock()("```python\\ndef f(x):").status
    'unclosed box'
    """

    language: str = "python"
    bare: bool = False
    opened: bool = False

    def __call__(self, text: str) -> Parsed:
        reasoning, final, closed = segments(text, self.opened)
        if not closed:
            return failed(text, TRUNCATED)
        last: tuple[str, bool] | None = None
        at = 0
        while (fence := _FENCE.search(final, at)) is not None:
            end = _END.search(final, fence.end())
            body = final[fence.end() : end.start() if end else len(final)]
            if fence.group(1).lower() in (self.language.lower(), "", *ALSO.get(self.language.lower(), ())):
                last = body, end is not None
            at = end.end() if end else len(final)
        if last is None:
            return Parsed(reasoning, final, final, OK) if self.bare and final.strip() else failed(reasoning, NOTHING)
        return Parsed(reasoning, last[0], last[0], OK) if last[1] else failed(reasoning, UNCLOSED, last[0])

"""The process that asks math-verify, one pair at a time. It is started by path, holds nothing, and may be killed.

A line of JSON ``[reference, answer]`` comes in, a line with true, false or null (no verdict) goes out. Only the LaTeX
reader of math-verify is used; the one of plain expressions would hand the text to SymPy's ``parse_expr``, which
evaluates Python. SymPy's own door is locked besides: ``sympify`` of a string knows decimal digits here, and nothing
else (the LaTeX reader makes its numbers that way).
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from typing import Any

DECIMAL = re.compile(r"[0-9]{1,1000}|[0-9]{0,1000}\.[0-9]{1,1000}|[0-9]{1,1000}\.", re.ASCII)
MEMORY = 4 << 30  # bytes of address space


def shut() -> Any:
    """math-verify, with SymPy's evaluation of text replaced by a refusal."""
    import math_verify
    import math_verify.parser as parser
    import sympy
    import sympy.parsing.sympy_parser as door

    def number(text: str, *_: object, **__: object) -> Any:
        if DECIMAL.fullmatch(text) is None:
            raise ValueError("text is not evaluated here")
        return sympy.Float(text) if "." in text else sympy.Integer(int(text))

    def refuse(*_: object, **__: object) -> Any:
        raise ValueError("text is not evaluated here")

    door.eval_expr = refuse
    door.parse_expr = parser.parse_expr = number
    return math_verify


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that a library prints is taken for a reply
    checker = shut()
    config = [checker.LatexExtractionConfig(boxed_match_priority=-1)]

    def parsed(text: str) -> Any:
        return checker.parse(f"${text}$", config, fallback_mode="no_fallback", parsing_timeout=None)

    def verdict(reference: str, answer: str) -> bool | None:
        gold, found = parsed(reference), parsed(answer)
        return bool(checker.verify(gold, found, timeout_seconds=None)) if gold and found else None

    for text in ("1", r"\frac{x}{2}", r"\int_0^1 x dx"):
        verdict(text, text)  # what the libraries load on first use is not on the clock of the first pair
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        try:
            reply = verdict(*json.loads(line))
        except Exception:
            reply = None
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()

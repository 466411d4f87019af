"""The 64 tokens of the pocket language: a character is a token, plus padding and the end mark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ramify.errors import InvalidValue

__all__ = ["CHARACTERS", "EOS", "PAD", "SPECIALS", "TOKENS", "decode", "encode"]

SPECIALS = ("<pad>", "<eos>")
PAD, EOS = 0, 1
# The last eleven are never written by a task. They fill the vocabulary to 64, so that the widest matrix
# product of the embedded engine has a width that BLAS kernels treat alike for every row.
CHARACTERS = "\n 0123456789abcdefghijklmnopqrstuvwxyz+-*/()=:>?LMH" + "!%,.;<[]^_|"
TOKENS = (*SPECIALS, *CHARACTERS)

_CODE = bytes.maketrans(CHARACTERS.encode(), bytes(range(len(SPECIALS), len(TOKENS))))
_KNOWN = frozenset(CHARACTERS)


def encode(text: str) -> np.ndarray:
    """The tokens of a text, ``[T]`` uint8.

    >>> encode("M2+3\\n").tolist()
    [51, 6, 40, 7, 2]
    """
    unknown = set(text) - _KNOWN
    if unknown:
        raise InvalidValue(f"text has {sorted(unknown)!r}: the pocket alphabet is {CHARACTERS!r}")
    return np.frombuffer(text.encode().translate(_CODE), dtype=np.uint8)


def decode(tokens: Iterable[Any]) -> str:
    """The text that tokens spell. Padding and the end mark spell nothing.

    >>> decode([51, 6, 40, 7, 2, 1])
    'M2+3\\n'
    """
    return "".join(TOKENS[int(token)] for token in tokens if int(token) >= len(SPECIALS))

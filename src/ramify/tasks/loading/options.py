"""Questions with options, written out."""

from __future__ import annotations

import json
from string import ascii_uppercase

from ramify.errors import InvalidValue
from ramify.tasks.loading.files import Record

__all__ = ["with_options"]


def with_options(record: Record) -> str:
    """The question and its lettered options.

    >>> print(with_options({"question": "Which?", "options": ["this", "that"]}))
    Which?
    (A) this
    (B) that
    """
    options = record.get("options")
    if isinstance(options, str):  # a cell of a CSV file
        options = json.loads(options)
    if not isinstance(options, list | tuple) or not 2 <= len(options) <= len(ascii_uppercase):
        raise InvalidValue(f"options = {options!r}: use a list of 2 to 26 options (in a CSV file, as JSON)")
    lines = [f"({letter}) {option}" for letter, option in zip(ascii_uppercase, options, strict=False)]
    return "\n".join([str(record["question"]), *lines])

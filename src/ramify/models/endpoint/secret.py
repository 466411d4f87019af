"""API keys: named in a value, fetched when a connection is made, and never written anywhere.

An ``Endpoint`` holds where the key is, ``env:NAME`` or ``keyring:SERVICE/USER``, so that it can be printed, stored and
shared. What a server says about a request is scrubbed before it becomes part of an error or a record.
"""

from __future__ import annotations

import os
import re

from ramify.errors import InvalidValue

__all__ = ["fetch", "is_reference", "scrub"]

REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|keyring:[^/\s]+/[^/\s]+")
LOOKS_SECRET = re.compile(r"(?:sk|hf|gsk|pk|api|key)[-_][A-Za-z0-9*_\-.]{6,}|[Bb]earer\s+[^\s\"',}]+")


def is_reference(where: str) -> bool:
    """Whether a text says where a key is, and is not the key itself.

    >>> is_reference("env:OPENAI_API_KEY"), is_reference("keyring:vllm/me"), is_reference("sk-abcdef")
    (True, True, False)
    """
    return isinstance(where, str) and REFERENCE.fullmatch(where) is not None


def fetch(where: str) -> str:
    """The key itself; empty where none is named. Errors name the place, never a value."""
    if not where:
        return ""
    kind, _, name = where.partition(":")
    found = os.environ.get(name, "") if kind == "env" else _from_keyring(name)
    if not found:
        remedy = f"export {name}=..." if kind == "env" else f"keyring set {name.replace('/', ' ')}"
        raise InvalidValue(f"Endpoint.key = {where!r}: there is no key there; {remedy}")
    if not found.isascii() or found != found.strip() or not found.isprintable():
        raise InvalidValue(f"Endpoint.key = {where!r}: the key there has blanks or odd characters; store it again")
    return found


def _from_keyring(name: str) -> str:
    try:
        import keyring
    except ImportError:
        raise InvalidValue(f"Endpoint.key = 'keyring:{name}': pip install keyring, or use env:NAME") from None
    service, _, user = name.partition("/")
    return keyring.get_password(service, user) or ""


def scrub(text: str, secret: str, most: int = 300) -> str:
    """A server's words without the key, whatever else looks like one, and control characters; cut to ``most``.

    >>> scrub("Incorrect API key provided: sk-proj-12345678. Bye", "")
    'Incorrect API key provided: [key]. Bye'
    """
    text = text.replace(secret, "[key]") if secret else text
    text = LOOKS_SECRET.sub(lambda found: "[key]" + "." * found.group().endswith("."), text)
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= most else text[: most - 3] + "..."

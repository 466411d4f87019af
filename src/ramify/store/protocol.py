"""The protocol card of a run: what it was made by, as JSON, and the hash that is part of every candidate's identity."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ramify.bank import Proposal
from ramify.describe import describe, restore
from ramify.errors import StoreError

__all__ = ["Card"]


class Card(msgspec.Struct, frozen=True):
    """A proposal with whatever else fixes the run: model, caps, versions, the vocabulary of its tokens."""

    proposal: dict[str, Any]
    details: dict[str, Any] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, proposal: Proposal, details: Mapping[str, Any] | None = None) -> Card:
        return cls(describe(proposal), dict(details or {}))

    @property
    def value(self) -> Proposal:
        """The proposal."""
        return restore(self.proposal)  # type: ignore[no-any-return]

    @property
    def run(self) -> str:
        return str(self.proposal["run"])

    def encode(self) -> bytes:
        """Canonical JSON: the same card is the same bytes."""
        return msgspec.json.format(msgspec.json.encode(self, order="deterministic"), indent=1)

    @classmethod
    def read(cls, path: Path) -> Card:
        """The card in a file that is named after its hash; one that was changed is refused."""
        try:
            card = msgspec.json.decode(path.read_bytes(), type=cls)
        except msgspec.MsgspecError as error:
            raise StoreError(f"{path}: {error}; the card is damaged: restore it from a copy") from None
        if card.hash != path.stem:
            raise StoreError(f"{path}: its content hashes to {card.hash}: it was edited; restore it from a copy")
        return card

    @property
    def hash(self) -> str:
        """16 hexadecimal digits."""
        return hashlib.blake2b(self.encode(), digest_size=8).hexdigest()

    def need_same(self, other: Card, where: str) -> None:
        """Refuse to go on under another protocol, and show what is different."""
        lines = [f"  {name}: {here!r} there, {now!r} now" for name, here, now in _differences(other, self)]
        if not lines:
            return
        if self.run == other.run:
            held = f"{where} holds run {self.run!r} under another protocol:"
            remedy = "use the protocol that is there, another run name with beside=True, or another directory"
        else:
            held = f"{where} holds run {other.run!r}, and this is run {self.run!r}:"
            remedy = f"to go on with the run that is there, name it: {other.run!r}; to put this one beside it, say"
            remedy += " beside=True (--beside on the command line); or use another directory"
        raise StoreError("\n".join([held, *lines, remedy]))


def _differences(a: Card, b: Card) -> Iterator[tuple[str, Any, Any]]:
    for part in ("proposal", "details"):
        one, other = getattr(a, part), getattr(b, part)
        for name in sorted({*one, *other}):
            if one.get(name) != other.get(name):
                yield f"{part}.{name}", one.get(name), other.get(name)

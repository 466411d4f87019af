"""One candidate as the store keeps it: its key, what made it, how it ended, and whichever signals were recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ramify.bank import Bank
from ramify.bank.tokens import COLUMNS
from ramify.errors import InvalidValue, StoreError
from ramify.types import Key, Leaf, Question, Top

__all__ = ["Record", "difference", "kept", "pack", "pack_question", "record_of", "unpack"]

FLOATS = ("logprob", "log_q")  # kept in double precision unless single holds the same numbers
DERIVED = ("confidence", "entropy")  # what is left of the alternatives when they are reduced


@dataclass(frozen=True, eq=False)
class Record:
    """A candidate. A column not recorded is absent; ``answer`` is None for ⊥ and ``status`` says how it was parsed."""

    key: Key
    protocol: str  # the hash of the protocol card
    ended: str = "unknown"
    answer: str | None = None
    status: str = "unknown"
    text: str | None = None
    length: int | None = None
    log_q: float | None = None
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)  # [t], and [t, K] for the alternatives
    seconds: float | None = None  # not part of the content: two runs of one protocol differ in it

    @classmethod
    def of(
        cls, leaf: Leaf, protocol: str, answer: Any = None, status: str = "unknown", seconds: float | None = None
    ) -> Record:
        """The record of a leaf. Alternatives are kept in single precision, the chosen token's numbers as they are."""
        columns = {
            "token": leaf.tokens,
            "role": leaf.role,
            "logprob": leaf.logprob,
            "log_q": leaf.log_q,
            "rank": leaf.rank,
            "support": leaf.support,
            "fallback": leaf.fallback,
        }
        if leaf.top is not None:
            columns |= {"top_ids": leaf.top.ids, "top_logprobs": leaf.top.logprobs}
        return cls(
            key=leaf.key,
            protocol=protocol,
            ended=leaf.ended,
            answer=None if answer is None else str(answer),
            status=status,
            text=leaf.text,
            length=len(leaf.tokens),
            log_q=leaf.sequence_log_q,
            columns={name: kept(name, np.asarray(column)) for name, column in columns.items()},
            seconds=seconds,
        )

    def leaf(self) -> Leaf:
        """The leaf again, if everything of it was recorded."""
        missing = [name for name in COLUMNS if not name.startswith("top_") and name not in self.columns]
        if missing or self.text is None:
            raise InvalidValue(f"{self.key}: not a whole leaf, {', '.join(missing) or 'its text'} was not recorded")
        columns = dict(self.columns)
        top = Top(columns.pop("top_ids"), columns.pop("top_logprobs")) if "top_ids" in columns else None
        named = {name: columns[name] for name in COLUMNS if name not in ("token", "top_ids", "top_logprobs")}
        return Leaf(self.key, columns["token"], ended=self.ended, text=self.text, top=top, **named)  # type: ignore[arg-type]

    def reduced(self) -> Record:
        """The record without its alternatives, but with the confidence and entropy that they gave at every token.

        Confidence is the mean of -log p over the K alternatives; entropy is that of the alternatives renormalised. Both
        keep 16 bits of mantissa: noise beyond them would cost more bytes than the token.
        """
        columns = dict(self.columns)
        if "top_logprobs" in columns:
            columns.pop("top_ids")
            logprobs = columns.pop("top_logprobs").astype(np.float64)
            shifted = logprobs - logprobs.max(axis=1, keepdims=True, initial=-np.inf)
            weight = np.exp(shifted)
            total = weight.sum(axis=1)
            columns["confidence"] = _coarse(-logprobs.mean(axis=1))
            surprise = np.where(weight > 0, weight * np.where(weight > 0, shifted, 0), 0).sum(axis=1)
            columns["entropy"] = _coarse(np.log(total) - surprise / total)
        return replace(self, columns=columns)

    @cached_property
    def digest(self) -> bytes:
        """What the content hashes to: equal for equal candidates, whenever and by whomever they were made."""
        return hashlib.blake2b(_pack(self, timed=False), digest_size=16).digest()


def _coarse(values: np.ndarray) -> np.ndarray:
    """Single precision with 16 bits of mantissa, to the nearest."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded: np.ndarray = (((bits + 0x40) >> 7) << 7).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(values), rounded, values).astype(np.float32)


def kept(name: str, column: np.ndarray) -> np.ndarray:
    """A column in the type the store keeps it in."""
    if name in FLOATS:
        single = column.astype(np.float32)
        same = np.array_equal(single.astype(np.float64), column.astype(np.float64), equal_nan=True)
        return single if same else column.astype(np.float64)
    if name in DERIVED:
        return column.astype(np.float32)
    dtype = COLUMNS[name]
    if dtype.kind == "i" and column.size and (column.max() > np.iinfo(dtype).max or column.min() < np.iinfo(dtype).min):
        raise InvalidValue(f"{name} = {column.max()}: the store keeps it in {dtype}")
    return column.astype(dtype)


# --------------------------------------------------------------------------------------------------- to and from bytes


class _Candidate(msgspec.Struct, tag="leaf", array_like=True):
    run: str
    question: str
    sample: int
    stream: str
    protocol: str
    ended: str
    answer: str | None
    status: str
    text: str | None
    length: int | None
    log_q: float | None
    columns: dict[str, tuple[str, int, bytes]]  # dtype, K (0: one value a token), little-endian bytes
    seconds: float | None


class _Question(msgspec.Struct, tag="question", array_like=True):
    id: str
    prompt: str
    groups: dict[str, str]
    position: int


DECODER = msgspec.msgpack.Decoder(_Candidate | _Question)


def pack(record: Record) -> bytes:
    """The bytes a journal keeps."""
    return _pack(record, timed=True)


def _pack(record: Record, timed: bool) -> bytes:
    columns = {}
    for name in sorted(record.columns):
        column = record.columns[name]
        data = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<")).tobytes()
        columns[name] = (column.dtype.str.lstrip("<|"), column.shape[1] if column.ndim == 2 else 0, data)
    fields = (record.ended, record.answer, record.status, record.text, record.length, record.log_q)
    candidate = _Candidate(*record.key, record.protocol, *fields, columns, record.seconds if timed else None)  # type: ignore[arg-type]
    return msgspec.msgpack.encode(candidate)


def pack_question(question: Question, position: int) -> bytes:
    """A question's bytes in a journal."""
    return msgspec.msgpack.encode(
        _Question(question.id, question.prompt, dict(sorted(question.groups.items())), position)
    )


def unpack(payload: bytes) -> Record | tuple[Question, int]:
    """What a journal's bytes say: a candidate, or a question with its position."""
    try:
        found = DECODER.decode(payload)
    except msgspec.MsgspecError as error:
        raise StoreError(f"a journal record is no record of this version of the schema: {error}") from None
    if isinstance(found, _Question):
        return Question(found.id, found.prompt, found.groups), found.position
    columns = {}
    for name, (dtype, width, data) in found.columns.items():
        column = np.frombuffer(data, dtype="<" + dtype if dtype[0] != "b" else np.dtype(bool))
        columns[name] = column.reshape(-1, width) if width else column
    key = Key(found.run, found.question, found.sample, found.stream)
    return Record(
        key,
        found.protocol,
        found.ended,
        found.answer,
        found.status,
        found.text,
        found.length,
        found.log_q,
        columns,
        found.seconds,
    )


def difference(a: Record, b: Record) -> str:
    """The first field in which two records of one key differ."""
    for name in ("protocol", "ended", "answer", "status", "text", "length", "log_q"):
        one, other = getattr(a, name), getattr(b, name)
        if one != other and not (one != one and other != other):
            return f"{name}: {one!r} and {other!r}"
    for name in sorted({*a.columns, *b.columns}):
        if name not in a.columns or name not in b.columns:
            return f"{name}: recorded in one only"
        if not np.array_equal(a.columns[name], b.columns[name], equal_nan=name in FLOATS):
            return f"the tokens' {name}"
    return "nothing that is stored"


def record_of(bank: Bank, q: int, n: int, protocol: str, answer: Any) -> Record:
    """A candidate of a bank in memory: what is unknown there stays unknown."""
    recorded = bank.tokens is not None and bank.tokens.start[q, n] >= 0
    columns = bank.tokens.of(q, n) if bank.tokens is not None and recorded else {}
    length = None if bank.length is None or bank.length[q, n] < 0 else int(bank.length[q, n])
    log_q = None if bank.log_q is None or np.isnan(bank.log_q[q, n]) else float(bank.log_q[q, n])
    return Record(
        key=bank.key(q, n),
        protocol=protocol,
        ended=bank.endings[bank.ended[q, n]],
        answer=None if answer is None else str(answer),
        text=None if bank.text is None else bank.text[q, n],
        length=len(next(iter(columns.values()))) if length is None and columns else length,
        log_q=log_q,
        columns={name: kept(name, column) for name, column in columns.items()},
    )

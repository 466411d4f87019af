"""What a server says, decoded straight into arrays.

Only the fields that are used are declared, so the decoder skips the rest (a token's bytes are most of a response). A
trace grows in arrays: a response of 6,000 tokens with 20 alternatives each is a megabyte here, and fifteen as objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

__all__ = ["Malformed", "Reply", "Trace", "decoder"]


GROUP = 64  # tokens of a stream that are put into the arrays together


class Malformed(Exception):
    """A response that cannot be what the server drew. It is asked for again, and counted."""


class ById(msgspec.Struct, gc=False):
    """An alternative of a server that gives ids (llama.cpp), or none."""

    logprob: float
    id: int = -1


class ByToken(msgspec.Struct, gc=False):
    """An alternative whose id is written as its token: ``token_id:123`` (vLLM)."""

    logprob: float
    token: str = ""

    @property
    def id(self) -> int:
        return _number(self.token)


Alternative = TypeVar("Alternative", ById, ByToken)


class IdEntry(ById, gc=False):
    top_logprobs: list[ById] = []


class TokenEntry(ByToken, gc=False):
    top_logprobs: list[ByToken] = []


Entry = TypeVar("Entry", IdEntry, TokenEntry)


class Logprobs(msgspec.Struct, Generic[Entry], gc=False):
    """Both shapes: ``content`` (chat, and llama.cpp everywhere) and the parallel lists of completions."""

    content: list[Entry] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None


class Message(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class Choice(msgspec.Struct, Generic[Entry], gc=False):
    index: int = 0
    text: str | None = None
    delta: Message | None = None
    message: Message | None = None
    finish_reason: str | None = None
    logprobs: Logprobs[Entry] | None = None
    token_ids: list[int] | None = None


class Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Details | None = None


class Reply(msgspec.Struct, Generic[Entry], gc=False):
    """A response, or one piece of a stream."""

    id: str = ""
    model: str = ""
    system_fingerprint: str | None = None
    choices: list[Choice[Entry]] = []
    usage: Usage | None = None
    error: Any = None


def decoder(ids: str) -> msgspec.json.Decoder[Any]:
    """The decoder for servers that give ids as ``ids`` says."""
    return msgspec.json.Decoder(Reply[TokenEntry] if ids == "token" else Reply[IdEntry])


class Trace:
    """One response as it comes: its words, and its numbers in arrays that grow."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.words: list[str] = []
        self.reasoning: list[str] = []
        self.finish, self.id, self.model, self.fingerprint = "", "", "", ""
        self.usage = Usage()
        self.given: list[int] = []  # token ids, where a server lists them
        self.pieces = 0  # that carried words
        self._length = 0  # tokens with log-probabilities, in the arrays
        self._heard: list[Any] = []  # and those that are not yet
        self.marks = list[tuple[int, int, int]]()  # (length, words, reasoning) after each piece: where to cut
        self._ids = np.empty(0, dtype=np.int64)
        self._logprob = np.empty(0)
        self._top_ids = np.empty((0, top), dtype=np.int32)
        self._top_logprobs = np.empty((0, top), dtype=np.float32)

    # ---------------------------------------------------------------------------------------------------- what comes in

    def hear(self, reply: Reply[Any]) -> None:
        """Take one response, or one piece of a stream."""
        if reply.error is not None:
            raise Malformed(f"an error in the stream: {reply.error}")
        self.id, self.model = reply.id or self.id, reply.model or self.model
        self.fingerprint = reply.system_fingerprint or self.fingerprint
        self.usage = reply.usage or self.usage
        if len(reply.choices) > 1:
            raise Malformed(f"{len(reply.choices)} choices for one request of n = 1")
        for choice in reply.choices:
            self._choose(choice)

    def _choose(self, choice: Choice[Any]) -> None:
        if choice.index != 0:
            raise Malformed(f"choice {choice.index} for one request of n = 1")
        if self.finish and (choice.finish_reason or choice.text or choice.logprobs):
            raise Malformed("more after the end of the only choice")
        said = choice.delta or choice.message
        words = choice.text or (said.content if said else None) or ""
        reasoning = (said.reasoning_content or said.reasoning if said else None) or ""
        self.words += [words] if words else []
        self.reasoning += [reasoning] if reasoning else []
        self.pieces += bool(words or reasoning)
        self.given += choice.token_ids or []
        if choice.logprobs is not None:
            self._take(choice.logprobs)
        self.finish = choice.finish_reason or self.finish
        self.marks.append((self.count, len(self.words), len(self.reasoning)))

    def _take(self, logprobs: Logprobs[Any]) -> None:
        if logprobs.content:
            self._heard += logprobs.content
            if len(self._heard) >= GROUP:
                self._settle()
        elif logprobs.token_logprobs:
            own = [np.nan if each is None else each for each in logprobs.token_logprobs]
            ids = [_number(token) for token in logprobs.tokens or [""] * len(own)]
            listed = [row or {} for row in logprobs.top_logprobs or []] if self.top else []
            if self.top and (len(listed) != len(own) or min(map(len, listed)) < self.top):
                raise Malformed(_fewer(min(map(len, listed), default=0), self.top))
            named = (_number(token) for row in listed for token in row)
            self._append(ids, own, list(map(len, listed)), named, (x for row in listed for x in row.values()))

    def _settle(self) -> None:
        """Put the entries that have come into the arrays: a group at a time, because a row at a time costs more."""
        rows, self._heard = self._heard, []
        if not rows:
            return
        top = [row.top_logprobs for row in rows] if self.top else []
        widths = list(map(len, top))
        if self.top and min(widths) < self.top:
            raise Malformed(_fewer(min(widths), self.top))
        ids, own = [row.id for row in rows], [row.logprob for row in rows]
        self._append(ids, own, widths, (x.id for row in top for x in row), (x.logprob for row in top for x in row))

    def _append(
        self, ids: list[int], own: list[float], widths: list[int], top_ids: Iterable[int], top: Iterable[float]
    ) -> None:
        """Take tokens with their alternatives, which are flat: so many of each token, one token after the other."""
        start, end = self._length, self._length + len(ids)
        if end > len(self._ids):
            room = max(2 * len(self._ids), end, 64)
            for name in ("_ids", "_logprob", "_top_ids", "_top_logprobs"):
                old = getattr(self, name)
                new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
                new[:start] = old[:start]
                setattr(self, name, new)
        self._ids[start:end], self._logprob[start:end] = ids, own
        if self.top:
            flat = np.fromiter(top_ids, np.int32, sum(widths)), np.fromiter(top, np.float32, sum(widths))
            self._top_ids[start:end], self._top_logprobs[start:end] = self._ordered(widths, *flat)
        self._length = end

    def _ordered(self, widths: list[int], ids: np.ndarray, logprobs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``[t, K]`` alternatives, likeliest first. Some servers put the chosen token first, or add it to the K."""
        k, width = self.top, max(widths)
        if width == min(widths):
            named, values = ids.reshape(-1, width), logprobs.reshape(-1, width)
        else:
            held = np.arange(width) < np.array(widths)[:, None]
            named, values = np.full(held.shape, -1, dtype=np.int32), np.full(held.shape, -np.inf, dtype=np.float32)
            named[held], values[held] = ids, logprobs
        if width == k and (values[:, 1:] <= values[:, :-1]).all():
            return named, values
        order = np.argsort(-values, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(named, order, axis=1), np.take_along_axis(values, order, axis=1)

    # ------------------------------------------------------------------------------------------------------ what it was

    @property
    def length(self) -> int:
        """Tokens with log-probabilities."""
        return self._length + len(self._heard)

    @property
    def counted(self) -> str:
        """What the number of tokens is taken from: what was seen before what was said."""
        if self.length:
            return "logprobs"
        if self.given:
            return "ids"
        return "pieces" if self.usage.completion_tokens is None else "usage"

    @property
    def count(self) -> int:
        """Tokens of the response. A server's own count is believed only where nothing else can be counted.

        The end is in no server's list of tokens, but in its count: a response that is nothing but its end has none.
        """
        if not self.pieces and self.usage.completion_tokens == 1:
            return self.length or len(self.given)
        return self.length or len(self.given) or self.usage.completion_tokens or self.pieces

    @property
    def ids(self) -> np.ndarray:
        """[t] token ids, -1 where the server does not say."""
        if self.length:
            self._settle()
            ids = self._ids[: self.length]
            same = len(self.given) == self.length and (ids < 0).all()
            return np.array(self.given, dtype=np.int64) if same else ids
        return np.array(self.given or [-1] * self.count, dtype=np.int64)

    @property
    def logprob(self) -> np.ndarray:
        """[t] log p of each token, NaN where the server does not say."""
        self._settle()
        return self._logprob[: self.length] if self.length else np.full(self.count, np.nan)

    @property
    def top_ids(self) -> np.ndarray:
        self._settle()
        return self._top_ids[: self.length]

    @property
    def top_logprobs(self) -> np.ndarray:
        self._settle()
        return self._top_logprobs[: self.length]

    @property
    def rank(self) -> np.ndarray:
        """[t] 1 is the likeliest of the alternatives; 0 where it is beyond them, or none were asked for."""
        if not self.top or not self.length:
            return np.zeros(self.count, dtype=np.int64)
        own, top = self.logprob[:, None].astype(np.float32), self.top_logprobs
        above = (top > own).sum(axis=1)
        return np.where(above < self.top, above + 1, 0)

    def check(self, wanted: bool) -> None:
        """Refuse numbers that no distribution has: they would be evidence."""
        if wanted and self.count and not self.length:
            raise Malformed("no log-probabilities, though they were asked for")
        own, top = self.logprob, self.top_logprobs
        if self.length and (np.isnan(own).any() or (own > 1e-5).any()):
            raise Malformed(f"a log-probability of {float(np.nanmax(own)):.6g}" if not np.isnan(own).all() else "NaN")
        if self.top and self.length:
            if np.isnan(top).any() or (np.exp(top.astype(np.float64)).sum(axis=1) > 1 + 1e-3).any():
                raise Malformed("alternatives with more than all of the mass")
            same = (self.top_ids == self.ids[:, None]) & (self.ids[:, None] >= 0)
            apart = np.abs(np.where(same, top - own[:, None], 0.0)) > 1e-3
            if (same & apart & np.isfinite(own)[:, None]).any():
                raise Malformed("a token with two log-probabilities")

    def text(self, tokens: int | None = None) -> tuple[str, str]:
        """(words, reasoning) of the first ``tokens`` tokens: of the pieces that lie within them."""
        words, reasoning = len(self.words), len(self.reasoning)
        if tokens is not None:
            within = [mark for mark in self.marks if mark[0] <= tokens]
            _, words, reasoning = within[-1] if within else (0, 0, 0)
        return "".join(self.words[:words]), "".join(self.reasoning[:reasoning])


def _number(token: str) -> int:
    return int(token[9:]) if token.startswith("token_id:") and token[9:].isdigit() else -1


def _fewer(given: int, asked: int) -> str:
    return f"{given} alternatives where {asked} were asked for"

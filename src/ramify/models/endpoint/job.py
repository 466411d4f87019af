"""One request on its way: what it has heard, how often it was tried, and the leaf that it becomes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import numpy as np

from ramify.decode import Chain, Greedy
from ramify.models.endpoint.replies import Malformed, Trace
from ramify.stop.within import TokenHistory, TokenStop
from ramify.types import FORCED, SAMPLED, Leaf, Request, Served, Top

if TYPE_CHECKING:
    from ramify.models.endpoint.endpoint import Endpoint

__all__ = ["Job"]

ENDS = {"stop": "eos", "eos": "eos", "length": "length", "content_filter": "stop:content_filter"}


class Job:
    """A request and what has come of it so far."""

    def __init__(self, request: Request, endpoint: Endpoint) -> None:
        from ramify.models.endpoint.endpoint import seed_of

        self.request, self.endpoint = request, endpoint
        self.body, self.seed = endpoint.body(request), seed_of(request.key, endpoint.dialect.seeds)
        self.task: asyncio.Task[Leaf] | None = None
        self.cancelled = False
        self.failures: list[str] = []
        self.refused, self.wasted, self.beside = 0, 0, 0
        self.trace, self._cut, self._looked = Trace(request.top), -1, 0
        self.start = time.perf_counter()
        self.first = self.seconds = math.nan

    @property
    def url(self) -> str:
        """Who is asked now: after a failure the next server, where there are several."""
        return self.endpoint.url_of(self.request.key, len(self.failures) + 1)

    def begin(self, beside: int) -> None:
        """A new attempt: nothing that an earlier one has said counts."""
        self.trace, self._cut, self._looked = Trace(self.request.top), -1, 0
        self.start, self.beside = time.perf_counter(), beside
        self.first = self.seconds = math.nan

    def fail(self, why: str) -> None:
        self.failures.append(why)
        self.wasted += self.trace.count
        self.trace = Trace(self.request.top)

    async def bounded(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The bytes of a response, up to what a response of this cap can have."""
        left = (1 << 20) + self.request.cap * 512 * (2 + self.request.top)
        async for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise Malformed(f"a response longer than {self.request.cap} tokens can be")
            yield chunk

    # --------------------------------------------------------------------------------------------------- how it ends

    def halted(self) -> str:
        """Whether a rule of the request ends it within what was heard, and which; at a token, never at a chunk."""
        trace, request = self.trace, self.request
        if math.isnan(self.first) and trace.count:
            self.first = time.perf_counter() - self.start
        if trace.length > request.cap:
            raise Malformed(f"{trace.length} tokens where {request.cap} were asked for")
        if not (request.until or request.stop):
            return ""
        for n in range(self._looked + 1, trace.length + 1):
            self._looked = n
            if int(trace.ids[n - 1]) in request.until:
                self._cut = n
                return "stop:until"
            if request.stop is not None and self._stops(request.stop, n):
                self._cut = n
                return f"stop:{type(request.stop).__name__}"
        return ""

    def _stops(self, stop: TokenStop, n: int) -> bool:
        begin = max(0, n - getattr(stop, "memory", n))
        trace = self.trace
        columns = {
            "token": trace.ids[begin:n],
            "role": np.full(n - begin, SAMPLED),
            "logprob": trace.logprob[begin:n],
            "top_logprobs": trace.top_logprobs[begin:n],
        }
        history = TokenHistory(np.array([0, n - begin]), columns, np.array([begin]), self.request.key.question)
        return bool(stop(history).stop[-1])

    def ended(self) -> str:
        return ENDS.get(self.trace.finish, "unknown")

    def leaf(self, ended: str) -> Leaf:
        """The leaf of what was heard. Where a rule cut it, the rest of the last chunk is not part of it."""
        trace = self.trace
        length = trace.count if self._cut < 0 else self._cut
        words, reasoning = trace.text(None if self._cut < 0 else self._cut)
        greedy = self.endpoint.decoder in (Greedy(), Chain(Greedy()))
        logprob = trace.logprob[:length].astype(np.float64)
        top = Top(trace.top_ids[:length].copy(), trace.top_logprobs[:length].copy()) if self.request.top else None
        return Leaf(
            key=self.request.key,
            tokens=trace.ids[:length].copy(),
            role=np.full(length, FORCED if greedy else SAMPLED, dtype=np.int8),
            logprob=logprob,
            log_q=np.zeros(length) if greedy else self._log_q(logprob),
            rank=trace.rank[:length],
            support=np.zeros(length, dtype=np.int64),  # not known
            fallback=np.zeros(length, dtype=bool),
            ended=ended,
            text=self.endpoint.interface.joined(reasoning, words),
            top=top,
            served=self._served(reasoning),
        )

    def _log_q(self, logprob: np.ndarray) -> np.ndarray:
        """log q is log p where the server draws from the model itself; anything else would need all of the support."""
        raw = self.endpoint.decoder == Chain() and self.endpoint.dialect.stage == "raw"
        return logprob.copy() if raw else np.full(len(logprob), np.nan)

    def _served(self, reasoning: str) -> Served:
        trace, details = self.trace, self.trace.usage.prompt_tokens_details
        return Served(
            server=self.url,
            model=trace.model,
            seed=self.seed,
            fingerprint=trace.fingerprint,
            id=trace.id,
            finish=trace.finish,
            attempt=len(self.failures) + 1,
            failures=tuple(self.failures),
            refused=self.refused,
            wasted=self.wasted,
            counted=trace.counted,
            reported=trace.usage.completion_tokens,
            prompt_tokens=trace.usage.prompt_tokens,
            cached_tokens=details.cached_tokens if details else None,
            beside=self.beside,
            reasoning=reasoning,
            first=self.first,
            seconds=self.seconds,
        )
